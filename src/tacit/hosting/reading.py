"""Limits of request bodies: size, speed, and memory over all connections.

Every request reads its body through a `RequestBody`, which wraps ASGI's `receive`. Bodies that arrive in one piece
(almost all reports of browsers) are not counted against the memory limit, so that stalled uploads cannot keep them out.
"""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any

from starlette.types import Message, Receive

from tacit.hosting.limits import Limits
from tacit.hosting.problems import Problem

_LOOKS = 5
"""Periodic checks per `body_seconds`; one timer for all uploads is cheaper than one for each."""
_PATIENT_LOOKS = 1
"""How many checks in a row may find a body too slow before it is refused."""
# An upload may be evicted only after this silence, so that one that is just between two packets is safe.
_SILENT_SECONDS = 1.0
_RETRY_SECONDS = 2


class Reading:
    """All request bodies of one event loop, and the memory they hold together."""

    def __init__(self, limits: Limits) -> None:
        """Begin without uploads."""
        self.limits = limits
        # Room for two of the largest bodies at least: one that is stalled must not block all others.
        self.most_bytes = max(limits.reading_bytes, 2 * limits.body_bytes)
        self.held_bytes = 0
        """Bytes of multi-piece bodies, counted from their arrival to the end of their requests."""
        self._open, self._is_looking = set[RequestBody](), False
        self._pause = limits.body_seconds / _LOOKS

    def upload(self, receive: Receive, headers: Sequence[tuple[bytes, bytes]]) -> "RequestBody":
        """Wrap the body of a request; the caller must close it when the request has been answered."""
        return RequestBody(self, receive, dict(headers))

    def begin(self, upload: "RequestBody") -> None:
        """Start to check the speed of an upload."""
        self._open.add(upload)
        if not self._is_looking:
            self._look_again()

    def unwatch(self, upload: "RequestBody") -> None:
        """Stop checking an upload that has arrived."""
        self._open.discard(upload)

    def end(self, upload: "RequestBody") -> None:
        """Forget an upload and release its memory."""
        self.unwatch(upload)
        self.held_bytes -= upload.held_bytes
        upload.held_bytes = 0

    def make_room(self, upload: "RequestBody", size: int) -> None:
        """Reserve memory for a piece; if it is exhausted, evict the uploads that have been silent longest.

        Stalled uploads thus make room for live ones; if there are none to evict, Problem `unavailable` is raised.
        """
        while self.held_bytes + size > self.most_bytes:
            silent = [other for other in self._open if other.is_silent(_SILENT_SECONDS) and other.held_bytes]
            if not silent:
                raise _crowded()
            longest = min(silent, key=lambda other: other.heard)
            longest.cut_off(_crowded())
            self.end(longest)
        self.held_bytes += size
        upload.held_bytes += size

    def _look_again(self) -> None:
        self._is_looking = True
        asyncio.get_running_loop().call_later(self._pause, self._look)

    def _look(self) -> None:
        now = monotonic()
        for upload in list(self._open):
            upload.look(now, self._pause)
        self._is_looking = False
        if self._open:
            self._look_again()


def _crowded() -> Problem:
    return Problem("unavailable", "too many bytes of uploads are held; send the same bytes again shortly",
                   retry_seconds=_RETRY_SECONDS)  # fmt: skip


class RequestBody:
    """The body of one request: an ASGI `receive` that raises a Problem if the body is too large or too slow."""

    def __init__(self, reading: Reading, receive: Receive, head: dict[bytes, bytes]) -> None:
        """Create a body; only `Reading.upload` does."""
        self._reading, self._limits, self._receive = reading, reading.limits, receive
        self._stated, self._expects = head.get(b"content-length"), b"expect" in head
        self.is_whole = self._stated in (None, b"0") and b"transfer-encoding" not in head
        """Whether the body has arrived completely (or there is none)."""
        self.held_bytes = self._size = 0
        self._size_before, self._slow_looks = -1, 0
        self.heard = 0.0
        """When the last piece arrived, or reading began; monotonic seconds."""
        self._end = 0.0
        self._waiting: asyncio.Task[Any] | None = None
        self._refused: Problem | None = None

    async def __call__(self) -> Message:
        """The next ASGI message; after the end of the body this waits for the client to disconnect."""
        if self.is_whole:
            return await self._receive()
        stated = self._stated
        # Refused by its Content-Length, before a byte is read. Cut to 20 digits, as int() refuses very long ones.
        if stated is not None and (not stated.isdigit() or int(stated[:20]) > self._limits.body_bytes):
            raise self._too_large()
        message = await self._next()
        if message["type"] == "http.disconnect":
            self.is_whole = True
            raise Problem("timeout", "the client left before its body was complete")
        is_last, size = not message.get("more_body", False), len(message.get("body", b""))
        # Noted before anything is refused: otherwise `drain` would wait for a piece after the last one, and the client
        # would wait for the response.
        self._note_end(is_last=is_last)
        if self._size + size > self._limits.body_bytes:
            raise self._too_large()
        # A body in one piece is in memory already and about to be used, so it is not counted.
        if self._size or not is_last:
            self._reading.make_room(self, size)
        self._size += size
        return message

    def _too_large(self) -> Problem:
        return Problem("too_large", f"a body may have at most {self._limits.body_bytes} bytes")

    async def _next(self) -> Message:
        """The next message; a periodic check or an eviction cancels the waiting task to raise its Problem here."""
        if self._refused is not None:
            raise self._refused
        if not self._end:
            self.heard = monotonic()
            self._end = self.heard + self._limits.body_seconds
            self._reading.begin(self)
        task = self._waiting = asyncio.current_task()
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            if self._refused is None or task is None:
                raise
            # Our own cancellation, not the server's: undone, and replaced by the Problem.
            task.uncancel()
            raise self._refused from None
        finally:
            self._waiting = None
        self.heard = monotonic()
        return message

    def _note_end(self, *, is_last: bool) -> None:
        if is_last:
            self.is_whole = True
            self._reading.unwatch(self)

    async def drain(self) -> bool:
        """Read and discard the rest of a body; False if it is too large or too slow.

        Many clients send their whole body before they read the response. If the connection is closed meanwhile, TCP
        resets it, and they never see why they were refused.
        """
        if self._expects and not self._end:
            # With Expect: 100-continue the client has not sent its body, and will not.
            return False
        left = self._limits.drain_bytes
        while not self.is_whole:
            try:
                message = await self._next()
            except Problem:
                return False
            left -= len(message.get("body", b""))
            if message["type"] == "http.disconnect" or left < 0:
                return False
            self._size += len(message.get("body", b""))
            self._note_end(is_last=not message.get("more_body", False))
        return True

    def is_silent(self, seconds: float) -> bool:
        """Whether the request is waiting for a piece, and none has arrived for so many seconds."""
        return self._waiting is not None and monotonic() - self.heard > seconds

    def look(self, now: float, seconds: float) -> None:
        """The periodic check: refuse a body past its deadline, or slower than the limit since the last check."""
        limits = self._limits
        if now >= self._end:
            self.cut_off(Problem("timeout", f"the body did not arrive within {limits.body_seconds:g} seconds"))
            return
        is_slow = 0 <= self._size_before and self._size - self._size_before < seconds * limits.body_rate
        self._slow_looks = self._slow_looks + 1 if is_slow else 0
        # A phone that changes networks is silent for a few seconds, so that one slow check is not enough.
        if self._slow_looks > _PATIENT_LOOKS:
            self.cut_off(Problem("timeout", f"the body arrived at less than {limits.body_rate} bytes a second"))
        self._size_before = self._size

    def cut_off(self, problem: Problem) -> None:
        """Refuse the body: the pending or next `receive` raises this Problem."""
        self._refused = problem
        if self._waiting is not None:
            self._waiting.cancel()

    def close(self) -> None:
        """Release the memory, because the request has been answered."""
        self._reading.end(self)
