"""The report route as a plain ASGI callable: the one that is busy, so nothing is between it and the server."""

import asyncio
from collections.abc import Iterable
from time import perf_counter
from typing import Any
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from tacit.collector.access import REPORT
from tacit.collector.active import Active
from tacit.collector.http_common import (
    PREFLIGHT,
    Header,
    Patience,
    as_problem,
    cors_headers,
    encode_json,
    read_body,
    send_plain,
    send_problem,
)
from tacit.collector.ingest import Form
from tacit.collector.limits import Limits, RateLimit
from tacit.collector.outcomes import Outcomes
from tacit.collector.ports import STORED
from tacit.collector.problems import Problem
from tacit.collector.service import Collector
from tacit.wire.batch import MEDIA_TYPE

FORMS = {MEDIA_TYPE: Form.BINARY, "application/json": Form.JSON, "text/plain": Form.JSON}
"""The content types of a batch; the last one is what a beacon may send without asking first."""

_EXACT = {name.encode(): form for name, form in FORMS.items()}
_IN_THREAD_BYTES = 1 << 16
_REPLY: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class _Head:
    """The headers that matter; no other is looked at."""

    __slots__ = ("encoding", "invitation", "length", "media_type", "origin", "token")

    def __init__(self, headers: Iterable[Header]) -> None:
        self.length: bytes | None = None
        self.media_type = self.origin = self.invitation = self.token = self.encoding = b""
        for key, value in headers:
            if key == b"content-type":
                self.media_type = value
            elif key == b"content-length":
                self.length = value
            elif key == b"origin":
                self.origin = value
            elif key == b"tacit-invitation":
                self.invitation = value
            elif key == b"authorization":
                self.token = value
            elif key == b"content-encoding":
                self.encoding = value


class ReportRoute:
    """POST /c/{id}/reports."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        """Feed a collector within limits."""
        self._collector, self._ingest, self._limits = collector, collector.ingest, limits
        self._patience = Patience(limits.body_seconds)
        self._rate, self._metrics, self._outcomes = RateLimit(limits), collector.metrics, Outcomes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send, collection: str) -> None:
        """Answer one request; every failure is a problem document."""
        head, cors = _Head(scope["headers"]), list[Header]()
        try:
            await self._admit(scope, head)
            active = await self._find(collection)
            cors = cors_headers(head.origin, active.collection.origins)
            if scope["method"] == "OPTIONS":
                await send_plain(send, 204, b"", b"text/plain", [*PREFLIGHT, *cors])
                return
            if scope["method"] != "POST":
                raise Problem("method_not_allowed", "send reports with POST")
            status, receipt = await self._take(scope, receive, head, active)
        except Exception as error:
            problem = as_problem(error)
            self._metrics.count("tacit_rejected_total", f'reason="{problem.kind}"')
            await send_problem(send, problem, cors)
            return
        await send_plain(send, status, encode_json(receipt), b"application/json", [*_REPLY, *cors])

    async def _admit(self, scope: Scope, head: _Head) -> None:
        """Refuse an address that sends too much; a reporter's token is not limited."""
        client = scope.get("client")
        if self._rate.allows(client[0] if client else ""):
            return
        token = head.token[7:].decode("latin-1") if head.token.startswith(b"Bearer ") else ""
        if token:
            bearer = await asyncio.to_thread(self._collector.access.bearer, token)
            if bearer is not None and bearer.may(REPORT, scope["path"].split("/")[2]):
                return
        raise Problem("rate_limited", "too many requests from one address; send larger batches", retry_seconds=1)

    async def _find(self, collection: str) -> Active:
        active = self._collector.shelf.kept(collection)
        return active or await asyncio.to_thread(self._ingest.find, collection)

    async def _take(self, scope: Scope, receive: Receive, head: _Head, active: Active) -> tuple[int, dict[str, Any]]:
        """Read, judge and store a batch; returns once it is durable."""
        form = self._form(head)
        try:
            body = await read_body(receive, self._limits, head.length, self._patience)
        except Problem as problem:
            if problem.kind == "too_large":
                self._collector.rejections.add(active.id, problem.kind)
            raise
        begun = perf_counter()
        invitation = head.invitation.decode("latin-1") or _from_query(scope)
        judge = self._ingest.judge
        if len(body) > _IN_THREAD_BYTES:
            upload = await asyncio.to_thread(judge, active, body, form, invitation)
        else:
            upload = judge(active, body, form, invitation)
        if upload.batch is None:
            self._metrics.count("tacit_rejected_total", 'reason="range"', len(upload.rejected))
            return 201, self._ingest.nothing_stored(active, upload)
        outcome = await self._outcomes.of(self._ingest.store(upload.batch))
        receipt = self._ingest.settle(active, upload, outcome)
        self._collector.touch(active.id)
        if upload.rejected:
            self._metrics.count("tacit_rejected_total", 'reason="range"', len(upload.rejected))
        self._metrics.batch(outcome, upload.accepted if outcome == STORED else 0, perf_counter() - begun)
        return 200 if receipt["duplicate"] else 201, receipt

    def _form(self, head: _Head) -> Form:
        form = _EXACT.get(head.media_type) or FORMS.get(_media_type(head.media_type))
        if form is None:
            raise Problem("unsupported_media_type", f"a batch is one of {', '.join(FORMS)}")
        if head.encoding not in (b"", b"identity"):
            raise Problem("unsupported_media_type", "a batch is sent without a content encoding; noise does not shrink")
        return form


def _media_type(header: bytes) -> str:
    return header.decode("latin-1").partition(";")[0].strip().lower()


def _from_query(scope: Scope) -> str:
    """The invitation of a beacon, which cannot send headers."""
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("invitation", [""])[0] if query else ""
