"""Requests to a collector: addresses, retries with growing waits, and what a reply means."""

import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from time import sleep, time
from typing import Any, Self, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from tacit.errors import InvalidSpec, TacitError
from tacit.wire.batch import MEDIA_TYPE

JSON_TYPE = "application/json"
MAX_DOCUMENT_BYTES = 1 << 24
MAX_REPLY_BYTES = 1 << 16
_PATH = re.compile(r"(.*)/c/([0-9a-f]{64})(?:/document\.json)?/?")
_ANSWERED_LATER = (408, 429)


class Unreachable(TacitError):
    """A document could not be fetched: no network, no such collection, or a collector that is down."""


@dataclass(frozen=True)
class Address:
    """Where a collection is: the collector and the digest of the document."""

    base: str
    id: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """From the address of a collection's page or of its document."""
        parts = urlsplit(url)
        match = _PATH.fullmatch(parts.path)
        if parts.scheme not in ("http", "https") or not parts.netloc or match is None:
            raise InvalidSpec("address: must be that of a collection, such as https://example.org/c/<64 digits>")
        return cls(f"{parts.scheme}://{parts.netloc}{match[1]}", match[2])

    @property
    def document(self) -> str:
        """Where the document is."""
        return f"{self.base}/c/{self.id}/document.json"

    @property
    def reports(self) -> str:
        """Where reports go."""
        return f"{self.base}/c/{self.id}/reports"


@dataclass(frozen=True)
class Patience:
    """How long to try: waits double from the first to the longest, each with up to half of it at random."""

    attempts: int = 5
    first_seconds: float = 0.5
    longest_seconds: float = 30.0
    timeout_seconds: float = 15.0

    def wait_seconds(self, attempt: int) -> float:
        """The wait after an attempt (from 0); at random, so that devices do not all come back at once."""
        longest = min(self.first_seconds * 2.0**attempt, self.longest_seconds)
        return longest * (0.5 + secrets.randbelow(1001) / 2000)


@dataclass(frozen=True)
class Reply:
    """A reply, or none (status 0)."""

    status: int
    body: bytes = b""
    retry_seconds: float = 0.0

    def json(self) -> Any:
        """The body as JSON in UTF-8, None if it is not."""
        try:
            return json.loads(self.body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Outcome:
    """What became of an upload: "sent", "refused" with a reason, or "pending" until a time."""

    state: str
    reason: str = ""
    not_before: int = 0


class _NoRedirects(HTTPRedirectHandler):
    """A report goes to the collector it was drawn for, or nowhere."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow nothing."""
        return None


class Transport:
    """HTTP with retries. Sends no cookie and nothing about the device but what the standard library says."""

    def __init__(
        self,
        patience: Patience = Patience(),  # noqa: B008 - a frozen value
        *,
        pause: Callable[[float], None] = sleep,
        opener: OpenerDirector | None = None,
    ) -> None:
        """Try with this patience; `pause` waits."""
        self._patience, self._pause = patience, pause
        self._opener = opener or build_opener(_NoRedirects)

    def fetch(self, address: Address) -> Any:
        """The JSON of a document, not yet verified."""
        reply = self._persist(Request(address.document), MAX_DOCUMENT_BYTES, lambda reply: reply.status == 200)
        if reply.status != 200:
            cause = f"status {reply.status}" if reply.status else "no reply"
            raise Unreachable(f"collection {address.id}: the document cannot be fetched ({cause})")
        return reply.json()

    def upload(self, address: Address, batch: bytes, invitation: str = "", *, media_type: str = MEDIA_TYPE) -> Outcome:
        """Send the same bytes until the collector has them or refuses them, or patience ends."""
        headers = {"Content-Type": media_type} | ({"Tacit-Invitation": invitation} if invitation else {})
        request = Request(address.reports, data=batch, headers=headers, method="POST")
        reply = self._persist(request, MAX_REPLY_BYTES, lambda reply: _outcome(reply).state != "pending")
        return _outcome(reply)

    def _persist(self, request: Request, most: int, done: Callable[[Reply], bool]) -> Reply:
        """Repeat a request while the reply asks for it."""
        attempt = 0
        while True:
            reply = self._once(request, most)
            attempt += 1
            tired = attempt >= self._patience.attempts or reply.retry_seconds > self._patience.longest_seconds
            if done(reply) or tired or _is_final(reply.status):
                return reply
            self._pause(max(reply.retry_seconds, self._patience.wait_seconds(attempt - 1)))

    def _once(self, request: Request, most: int) -> Reply:
        try:
            with self._opener.open(request, timeout=self._patience.timeout_seconds) as response:
                return _read(cast("HTTPResponse", response), most)
        except HTTPError as error:
            with error:
                return _read(error, most)
        except (OSError, HTTPException):
            return Reply(0)


def _read(response: HTTPResponse | HTTPError, most: int) -> Reply:
    """A whole reply; one that is cut off or too long is none."""
    try:
        body = response.read(most + 1)
    except (OSError, HTTPException):
        return Reply(0)
    stated = response.headers.get("Content-Length", "")
    if len(body) > most or (stated.isdecimal() and int(stated) != len(body)):
        return Reply(0)
    return Reply(int(response.status or 0), body, _retry_seconds(response.headers.get("Retry-After")))


def _retry_seconds(value: str | None) -> float:
    """Retry-After in seconds: a number, or a date; 0 for anything else."""
    if value is None:
        return 0.0
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return 0.0


def _is_final(status: int) -> bool:
    """Whether trying again is of no use."""
    return 400 <= status < 500 and status not in _ANSWERED_LATER


def _outcome(reply: Reply) -> Outcome:
    """What a reply says about a batch of one report."""
    value = reply.json()
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    # A network that answers with a page of its own has stored nothing: success is a receipt, not a status.
    if reply.status in (200, 201) and type(fields.get("accepted")) is int:
        refused = cast("list[dict[str, Any]]", fields.get("rejected") or [])
        if fields["accepted"] > 0 or fields.get("duplicate") or not refused:
            return Outcome("sent")
        return Outcome("refused", str(refused[0].get("reason", ""))[:200])
    if _is_final(reply.status):
        return Outcome("refused", str(fields.get("title") or f"status {reply.status}")[:200])
    wait = reply.retry_seconds
    return Outcome("pending", "", int(time() + wait) if wait else 0)
