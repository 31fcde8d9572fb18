"""The report route as a plain ASGI callable: the one that is busy, so nothing is between it and the server."""

from asyncio import get_running_loop, to_thread
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from tacit.collector.access import REPORT
from tacit.collector.active import Active
from tacit.collector.connection import Answer, header_lines
from tacit.collector.http_common import (
    PREFLIGHT,
    Header,
    cors_headers,
    encode_json,
    problem_headers,
    read_body,
    send_plain,
    send_problem,
)
from tacit.collector.ingest import Form, Upload
from tacit.collector.limits import MOST_WAITING_BYTES, Limits, RateLimit
from tacit.collector.outcomes import INVALID, Outcomes
from tacit.collector.ports import STORED, NewBatch
from tacit.collector.problems import MEDIA_TYPE as PROBLEM_TYPE
from tacit.collector.problems import Problem, as_problem
from tacit.collector.rows.arrow_stream import MEDIA_TYPE as ARROW_TYPE
from tacit.collector.service import Collector
from tacit.errors import Busy
from tacit.wire.batch import MAGIC, MEDIA_TYPE

Head = dict[bytes, bytes]

FORMS = {
    MEDIA_TYPE: Form.BINARY,
    "application/json": Form.JSON,
    "text/plain": Form.JSON,
    ARROW_TYPE: Form.ARROW,
}
"""The content types of a batch; plain text is what a beacon may send without asking first."""

_EXACT = {name.encode(): form for name, form in FORMS.items()}
_IN_THREAD_BYTES = {Form.BINARY: 1 << 16, Form.JSON: 1 << 12, Form.ARROW: 0}
"""Larger bodies are judged in a thread, while the event loop goes on; JSON is read value by value."""
_JUDGES = 2
_BLOCK = len(MAGIC) + 32 + 16
_PAYLOAD = _BLOCK + 8
_NONE: Mapping[str, int] = {}
_BINARY = MEDIA_TYPE.encode()
_REPLY: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


_JSON = header_lines([(b"content-type", b"application/json"), *_REPLY])
_CREATED = b'{"accepted":%d,"rejected":[],"duplicate":false}'
"""The receipt of a batch that was stored whole; `Upload.receipt` has all forms."""


class ReportRoute:
    """POST /c/{id}/reports."""

    def __init__(self, collector: Collector, limits: Limits) -> None:
        """Feed a collector within limits."""
        self._collector, self._ingest, self.limits = collector, collector.ingest, limits
        self._rate, self._metrics, self._outcomes = RateLimit(limits), collector.metrics, Outcomes(collector.writer)
        # Threads of their own, so that uploads which take long keep nobody else waiting.
        self._judges, self._judging_bytes = ThreadPoolExecutor(_JUDGES, "tacit-judge"), 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send, collection: str) -> None:
        """Answer one request; every failure is a problem document."""
        # Of several headers of one name the last is taken. Few of them are ever looked at.
        head, cors = dict[bytes, bytes](scope["headers"]), list[Header]()
        try:
            if not self._rate.allows(scope["client"][0] if scope.get("client") else ""):
                await self._admit(scope, head)
            active = self._collector.shelf.kept(collection) or await to_thread(self._ingest.find, collection)
            if active.collection.origins:
                cors = cors_headers(head.get(b"origin", b""), active.collection.origins)
            if scope["method"] == "OPTIONS":
                await send_plain(send, 204, b"", b"text/plain", [*PREFLIGHT, *cors])
                return
            if scope["method"] != "POST":
                cors.append((b"allow", b"POST, OPTIONS"))
                raise Problem("method_not_allowed", "send reports with POST")
            status, receipt = await self._take(scope, receive, head, active)
        except Exception as error:
            await send_problem(send, self.problem_of(error), cors)
            return
        await send_plain(send, status, receipt, b"application/json", [*_REPLY, *cors])

    async def _admit(self, scope: Scope, head: Head) -> None:
        """Refuse an address that sends too much; a reporter's token is not limited."""
        kind, _, token = head.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and token:
            bearer = await to_thread(self._collector.access.bearer, token.decode("latin-1"))
            if bearer is not None and bearer.may(REPORT, scope["path"].split("/")[2]):
                return
        raise Problem("rate_limited", "too many requests from one address; send larger batches", retry_seconds=1)

    async def _take(self, scope: Scope, receive: Receive, head: Head, active: Active) -> tuple[int, bytes]:
        """Read, judge and store a batch; returns a status and a receipt once it is durable."""
        form = _form(head)
        try:
            body = await read_body(receive)
        except Problem as problem:
            if problem.kind == "too_large":
                self._collector.rejections.add(active.id, problem.kind)
            raise
        begun = perf_counter()
        if form is Form.BINARY and len(body) <= _IN_THREAD_BYTES[form]:
            batch = plain_batch(active, body)
            if batch is not None:
                outcome = await self._outcomes.of_unjudged(active, batch)
                if outcome != INVALID:
                    return self.receipt(active, Upload(batch, batch.count), outcome, begun)
        invitation = head.get(b"tacit-invitation", b"").decode("latin-1") or _from_query(scope)
        named = head.get(b"tacit-batch", b"").decode("latin-1")
        return await self._take_other(active, body, form, (invitation, named), begun)

    async def _take_other(
        self, active: Active, body: bytes, form: Form, told: tuple[str, str], begun: float
    ) -> tuple[int, bytes]:
        """Judge and store what is not the common form, or has reports to refuse; headers told some of it."""
        if len(body) > _IN_THREAD_BYTES[form]:
            upload = await self._judge_in_thread(active, body, form, told)
        else:
            upload = self._ingest.judge(active, body, form, *told)
        self._count_refused(upload)
        if upload.batch is None:
            return 201, encode_json(self._ingest.nothing_stored(active, upload))
        outcome = await self._outcomes.of(upload.batch)
        return self.receipt(active, upload, outcome, begun)

    async def _judge_in_thread(self, active: Active, body: bytes, form: Form, told: tuple[str, str]) -> Upload:
        """Judge without holding up the event loop; `Busy` if too much waits for that already."""
        if self._judging_bytes + len(body) > max(MOST_WAITING_BYTES, self.limits.body_bytes):
            raise Busy("collector: many batches wait to be read; send the same one again shortly")
        self._judging_bytes += len(body)
        try:
            loop = get_running_loop()
            return await loop.run_in_executor(self._judges, self._ingest.judge, active, body, form, *told)
        finally:
            self._judging_bytes -= len(body)

    def take(self, path: bytes, headers: list[Header], body: bytes, address: str, answer: Answer) -> bool:
        """Take a whole request in its common form, without a task; False for all others, which go through a call."""
        active = self._collector.shelf.kept(path[3:-8].decode("latin-1"))
        head = dict(headers)
        if active is None or active.collection.origins or b"content-encoding" in head:
            return False
        if head.get(b"content-type") != _BINARY or len(body) > min(
            _IN_THREAD_BYTES[Form.BINARY], self.limits.body_bytes
        ):
            return False
        batch = plain_batch(active, body)
        if batch is None or not self._rate.allows(address):
            return False
        self._outcomes.add_unjudged(active, batch, _Ticket(self, active, body, Upload(batch, batch.count), answer))
        return True

    def judge_again(self, ticket: "_Ticket") -> None:
        """Judge reports one by one, for those that are valid are taken."""
        ticket.upload = upload = self._ingest.judge(ticket.active, ticket.body, Form.BINARY)
        self._count_refused(upload)
        if upload.batch is None:
            ticket.answer(201, _JSON, encode_json(self._ingest.nothing_stored(ticket.active, upload)))
        else:
            self._outcomes.add(upload.batch, ticket)

    def _count_refused(self, upload: Upload) -> None:
        for reason, reports in upload.refused.items():
            self._metrics.count("tacit_rejected_total", f'reason="{reason}"', reports)

    def problem_of(self, error: BaseException) -> Problem:
        """The problem document of a failure, which is counted."""
        problem = as_problem(error)
        self._metrics.count("tacit_rejected_total", f'reason="{problem.kind}"')
        return problem

    def receipt(self, active: Active, upload: Upload, outcome: str, begun: float) -> tuple[int, bytes]:
        """What the client is told after the commit, or the problem why nothing was stored."""
        if outcome == STORED and not (upload.rejected or upload.bad_rows):
            status, receipt = 201, _CREATED % upload.accepted
        else:
            told = self._ingest.settle(active, upload, outcome)
            status, receipt = 200 if told["duplicate"] else 201, encode_json(told)
        self._collector.touch(active.id)
        self._metrics.batch(outcome, upload.accepted if outcome == STORED else 0, perf_counter() - begun)
        return status, receipt


class _Ticket:
    """A request without a task; waits for an outcome as a future would."""

    __slots__ = ("_begun", "_route", "active", "answer", "body", "upload")

    def __init__(self, route: ReportRoute, active: Active, body: bytes, upload: Upload, answer: Answer) -> None:
        self._route, self._begun = route, perf_counter()
        self.active, self.body, self.upload, self.answer = active, body, upload, answer

    def cancelled(self) -> bool:
        return False

    def done(self) -> bool:
        return False

    def set_result(self, outcome: str, /) -> None:
        try:
            if outcome == INVALID:
                self._route.judge_again(self)
                return
            status, receipt = self._route.receipt(self.active, self.upload, outcome, self._begun)
        except Exception as error:
            self.set_exception(error)
            return
        self.answer(status, _JSON, receipt)

    def set_exception(self, exception: BaseException, /) -> None:
        problem = self._route.problem_of(exception)
        headers: list[Header] = [(b"content-type", PROBLEM_TYPE.encode()), *problem_headers(problem)]
        self.answer(problem.status, header_lines(headers), encode_json(problem.to_json()))


def plain_batch(active: Active, body: bytes) -> NewBatch | None:
    """The batch of a body in its common form, one block of the only member; its reports are not judged yet.

    None for everything else, which `Ingest.judge` reads with care, or refuses in words.
    """
    width = active.widths[0]
    count = (len(body) - _PAYLOAD) // width
    head = MAGIC + bytes.fromhex(active.id)
    block = bytes(4) + count.to_bytes(4, "little") if 0 < count < 1 << 32 else b""
    if not active.plain or _PAYLOAD + count * width != len(body):
        return None
    if not block or body[: len(head)] != head or body[_BLOCK:_PAYLOAD] != block:
        return None
    return NewBatch(active.id, body[len(head) : _BLOCK], body[_PAYLOAD:], count, _NONE)


def _form(head: Head) -> Form:
    media_type = head.get(b"content-type", b"")
    form = _EXACT.get(media_type) or FORMS.get(_media_type(media_type))
    if form is None:
        raise Problem("unsupported_media_type", f"a batch is one of {', '.join(FORMS)}")
    if head.get(b"content-encoding", b"") not in (b"", b"identity"):
        raise Problem("unsupported_media_type", "a batch is sent without a content encoding; noise does not shrink")
    return form


def _media_type(header: bytes) -> str:
    return header.decode("latin-1").partition(";")[0].strip().lower()


def _from_query(scope: Scope) -> str:
    """The invitation of a beacon, which cannot send headers."""
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("invitation", [""])[0] if query else ""
