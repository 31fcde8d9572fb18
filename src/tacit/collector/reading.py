"""Reading bodies: how large, how slowly, and how many bytes of them are held over all connections.

Every request reads its body through an `Upload`, whatever its route does with it. Bodies that arrive whole in one piece
(almost all reports of browsers) are not counted, so stalled uploads cannot keep them out.
"""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any

from starlette.types import Message, Receive

from tacit.collector.limits import Limits
from tacit.collector.problems import Problem

_LOOKS = 5
"""How often uploads are looked at while the longest of them may last: cheaper than a timer for each."""
_PATIENT_LOOKS = 1
"""So many looks in a row may find a body too slow."""
_SILENT_SECONDS = 1.0
_RETRY_SECONDS = 2


class Reading:
    """All bodies that are being read by one event loop, and what they hold together."""

    def __init__(self, limits: Limits) -> None:
        """Begin with none."""
        self.limits = limits
        self.most_bytes = max(limits.reading_bytes, 2 * limits.body_bytes)
        self.held_bytes = 0
        """Bytes of bodies in several pieces, from their arrival to the end of their requests."""
        self._open, self._is_looking = set[Upload](), False
        self._pause = limits.body_seconds / _LOOKS

    def upload(self, receive: Receive, headers: Sequence[tuple[bytes, bytes]]) -> "Upload":
        """The body of a request that is about to be answered; close it in the end."""
        return Upload(self, receive, dict(headers))

    def begin(self, upload: "Upload") -> None:
        """Watch an upload that waits for its first piece."""
        self._open.add(upload)
        if not self._is_looking:
            self._look_again()

    def unwatch(self, upload: "Upload") -> None:
        """Stop watching an upload, which has arrived."""
        self._open.discard(upload)

    def end(self, upload: "Upload") -> None:
        """Forget an upload and what it holds."""
        self.unwatch(upload)
        self.held_bytes -= upload.held_bytes
        upload.held_bytes = 0

    def make_room(self, upload: "Upload", size: int) -> None:
        """Count a further piece; where too much is held already, whoever has been silent longest gives way.

        So stalled uploads make way for those that go on; if there are none, the piece is refused.
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


class Upload:
    """The body of one request, as an ASGI `receive` that raises the problem of a body that is too large or too slow."""

    def __init__(self, reading: Reading, receive: Receive, head: dict[bytes, bytes]) -> None:
        """Made by `Reading.upload`."""
        self._reading, self._limits, self._receive = reading, reading.limits, receive
        self._stated, self._expects = head.get(b"content-length"), b"expect" in head
        self.is_whole = self._stated in (None, b"0") and b"transfer-encoding" not in head
        """Whether there is nothing left to read."""
        self.held_bytes = self._size = 0
        self._size_before, self._slow_looks = -1, 0
        self.heard = 0.0
        """When a piece arrived last, or the reading began."""
        self._end = 0.0
        self._waiting: asyncio.Task[Any] | None = None
        self._refused: Problem | None = None

    async def __call__(self) -> Message:
        """The next message of the request; after the end of its body, this waits for the client to leave."""
        if self.is_whole:
            return await self._receive()
        stated = self._stated
        if stated is not None and (not stated.isdigit() or int(stated[:20]) > self._limits.body_bytes):
            raise self._too_large()
        message = await self._next()
        if message["type"] == "http.disconnect":
            self.is_whole = True
            raise Problem("timeout", "the client left before its body was complete")
        is_last, size = not message.get("more_body", False), len(message.get("body", b""))
        if self._size + size > self._limits.body_bytes:
            raise self._too_large()
        if self._size or not is_last:
            self._reading.make_room(self, size)
        self._size += size
        self._note_end(is_last=is_last)
        return message

    def _too_large(self) -> Problem:
        return Problem("too_large", f"a body may have at most {self._limits.body_bytes} bytes")

    async def _next(self) -> Message:
        """The next message, unless it takes too long; whoever looks around cancels the waiting task then."""
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
        """Read what is left and throw it away; False if it is too much or comes too slowly.

        Many clients write their whole body before they read, and a connection that is closed meanwhile is reset: they
        would never see why they were refused.
        """
        if self._expects and not self._end:
            return False  # The client waits for leave to send its body, which it does not get.
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
        """Whether nothing has arrived for so long although it was waited for."""
        return self._waiting is not None and monotonic() - self.heard > seconds

    def look(self, now: float, seconds: float) -> None:
        """Give up on a body that is past its time, or arrived too slowly in the seconds since the last look."""
        limits = self._limits
        if now >= self._end:
            self.cut_off(Problem("timeout", f"the body did not arrive within {limits.body_seconds:g} seconds"))
            return
        is_slow = 0 <= self._size_before and self._size - self._size_before < seconds * limits.body_rate
        self._slow_looks = self._slow_looks + 1 if is_slow else 0
        # A phone that changes its network is silent for a few seconds; one slow look is no reason to give up.
        if self._slow_looks > _PATIENT_LOOKS:
            self.cut_off(Problem("timeout", f"the body arrived at less than {limits.body_rate} bytes a second"))
        self._size_before = self._size

    def cut_off(self, problem: Problem) -> None:
        """End the wait for the next piece with a problem."""
        self._refused = problem
        if self._waiting is not None:
            self._waiting.cancel()

    def close(self) -> None:
        """Say that the request has been answered."""
        self._reading.end(self)
