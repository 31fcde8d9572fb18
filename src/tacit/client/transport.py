"""Requests from a device to a collector: addresses, retries with exponential backoff, and what a reply means.

An upload is idempotent: every attempt sends the same bytes under the same batch id, and the collector stores a batch
id once. That is what makes it safe to retry when a reply was lost.
"""

import json
import re
import secrets
from collections.abc import Callable, Mapping
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
# Bounds on what a hostile or broken server can make a device hold in memory.
MAX_DOCUMENT_BYTES = 1 << 24
MAX_REPLY_BYTES = 1 << 16
_PATH = re.compile(r"(.*)/c/([0-9a-f]{64})(?:/document\.json)?/?")
_ANSWERED_LATER = (408, 425, 429)
"""Client errors that ask for a retry: request timeout, a window that has not begun, and too many requests."""


class Unreachable(TacitError):
    """A document could not be fetched: no network, no such collection, or a collector that is down."""


@dataclass(frozen=True)
class Address:
    """Where a collection is: the base address of the collector, and the digest of the document as its id."""

    base: str
    id: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse the address of a collection's page or of its document; InvalidSpec for anything else."""
        parts = urlsplit(url)
        match = _PATH.fullmatch(parts.path)
        if parts.scheme not in ("http", "https") or not parts.netloc or match is None:
            raise InvalidSpec("address: must be that of a collection, such as https://example.org/c/<64 digits>")
        return cls(f"{parts.scheme}://{parts.netloc}{match[1]}", match[2])

    @property
    def document(self) -> str:
        """The address of the document."""
        return f"{self.base}/c/{self.id}/document.json"

    @property
    def reports(self) -> str:
        """The address that reports are posted to."""
        return f"{self.base}/c/{self.id}/reports"

    @property
    def tokens(self) -> str:
        """The address at which anonymous tokens are signed."""
        return f"{self.base}/c/{self.id}/tokens"

    @property
    def session(self) -> str:
        """The address of the session that takes reports of a shuffled collection."""
        return f"{self.base}/c/{self.id}/session.json"

    def transcript(self, session: str) -> str:
        """The address of the transcript of a session of a shuffled collection."""
        return f"{self.base}/c/{self.id}/transcript.json?session={session}"


@dataclass(frozen=True)
class Patience:
    """The retry policy: exponential backoff from the first wait to the longest, with jitter of half the wait."""

    attempts: int = 5
    first_seconds: float = 0.5
    longest_seconds: float = 30.0
    timeout_seconds: float = 15.0

    def wait_seconds(self, attempt: int) -> float:
        """Return the wait after an attempt (from 0); with jitter, so that devices do not all come back at once."""
        longest = min(self.first_seconds * 2.0**attempt, self.longest_seconds)
        return longest * (0.5 + secrets.randbelow(1001) / 2000)


@dataclass(frozen=True)
class Reply:
    """A reply of the collector; status 0 stands for no usable reply."""

    status: int
    body: bytes = b""
    retry_seconds: float = 0.0

    def json(self) -> Any:
        """Return the body parsed as JSON in UTF-8, or None if it is not JSON."""
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
    """Refuses redirects: a report goes to the collector it was drawn for, or nowhere."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Return None, which makes the redirect an error status."""
        return None


class Transport:
    """HTTP with retries. It sends no cookies, and nothing about the device but the standard library's user agent."""

    def __init__(
        self,
        patience: Patience = Patience(),  # noqa: B008 - a frozen value
        *,
        pause: Callable[[float], None] = sleep,
        opener: OpenerDirector | None = None,
    ) -> None:
        """Set the retry policy; `pause` replaces sleeping and `opener` the network in tests."""
        self._patience, self._pause = patience, pause
        self._opener = opener or build_opener(_NoRedirects)

    def fetch(self, address: Address) -> Any:
        """Return the JSON of a document, not yet verified; Unreachable if it cannot be fetched."""
        return self.fetch_json(address.document, f"collection {address.id}: the document")

    def fetch_json(self, url: str, what: str, most: int = MAX_DOCUMENT_BYTES) -> Any:
        """Return the JSON at an address, of at most `most` bytes; Unreachable, which names `what`, if that fails."""
        reply = self._persist(Request(url), most, lambda reply: reply.status == 200)
        if reply.status != 200:
            cause = f"status {reply.status}" if reply.status else "no reply"
            raise Unreachable(f"{what} cannot be fetched ({cause})")
        return reply.json()

    def post(self, url: str, body: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> Reply:
        """Send the same bytes until somebody answers with success or refuses for good; return the last reply."""
        request = Request(url, data=body, headers={"Content-Type": media_type, **(headers or {})}, method="POST")
        return self._persist(request, MAX_REPLY_BYTES, lambda reply: 200 <= reply.status < 300)

    def upload(self, address: Address, batch: bytes, invitation: str = "", *, media_type: str = MEDIA_TYPE) -> Outcome:
        """Send the same bytes until the collector acknowledges or refuses them, or the attempts are used up."""
        headers = {"Content-Type": media_type} | ({"Tacit-Invitation": invitation} if invitation else {})
        request = Request(address.reports, data=batch, headers=headers, method="POST")
        reply = self._persist(request, MAX_REPLY_BYTES, lambda reply: _outcome(reply).state != "pending")
        return _outcome(reply)

    def _persist(self, request: Request, most: int, done: Callable[[Reply], bool]) -> Reply:
        """Repeat a request until `done`, a final status, or the end of patience, and return the last reply."""
        attempt = 0
        while True:
            reply = self._once(request, most)
            attempt += 1
            # A collector that asks for a longer wait than we are willing to sit through is left for a later `flush`.
            tired = attempt >= self._patience.attempts or reply.retry_seconds > self._patience.longest_seconds
            if done(reply) or tired or is_final(reply.status):
                return reply
            # Retry-After is a floor; our own backoff may be longer already.
            self._pause(max(reply.retry_seconds, self._patience.wait_seconds(attempt - 1)))

    def _once(self, request: Request, most: int) -> Reply:
        """Send a request once; an HTTP error is a reply, a network failure is status 0."""
        try:
            with self._opener.open(request, timeout=self._patience.timeout_seconds) as response:
                return _read(cast("HTTPResponse", response), most)
        except HTTPError as error:
            with error:
                return _read(error, most)
        except (OSError, HTTPException):
            return Reply(0)


def _read(response: HTTPResponse | HTTPError, most: int) -> Reply:
    """Read a whole reply; one that is truncated or too long counts as none (status 0)."""
    try:
        # One byte more than allowed tells a reply that is too long from one that just fits.
        body = response.read(most + 1)
    except (OSError, HTTPException):
        return Reply(0)
    # `read` with a limit does not complain when a connection ends before Content-Length bytes.
    stated = response.headers.get("Content-Length", "")
    if len(body) > most or (stated.isdecimal() and int(stated) != len(body)):
        return Reply(0)
    return Reply(int(response.status or 0), body, _retry_seconds(response.headers.get("Retry-After")))


def _retry_seconds(value: str | None) -> float:
    """Parse Retry-After to seconds from now: a number or an HTTP date; 0 for anything else."""
    if value is None:
        return 0.0
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return 0.0


def is_final(status: int) -> bool:
    """Return whether a status means that the same request will never succeed."""
    return 400 <= status < 500 and status not in _ANSWERED_LATER


def _outcome(reply: Reply) -> Outcome:
    """Return what a reply means for a batch of one report."""
    value = reply.json()
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    # A network that answers with a page of its own has stored nothing: success is a receipt, not a status.
    if reply.status in (200, 201) and type(fields.get("accepted")) is int:
        refused = cast("list[dict[str, Any]]", fields.get("rejected") or [])
        # `duplicate`: an earlier attempt arrived although its reply did not, so the report is stored.
        if fields["accepted"] > 0 or fields.get("duplicate") or not refused:
            return Outcome("sent")
        return Outcome("refused", str(refused[0].get("reason", ""))[:200])
    if is_final(reply.status):
        return Outcome("refused", str(fields.get("title") or f"status {reply.status}")[:200])
    # No reply, a 5xx, or a page of some other server: the report may or may not have arrived, so it stays pending.
    wait = reply.retry_seconds
    return Outcome("pending", "", int(time() + wait) if wait else 0)
