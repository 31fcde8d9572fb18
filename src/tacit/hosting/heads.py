"""Heads of requests that were parsed before, by their bytes.

Browsers of one release on one page send the same head with every report, and parsing it costs more than all that is
done about its body. The parser is the only one that says what a head means: here is what it said of the same bytes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

from tacit.hosting.limits import FORGET_SECONDS

END = b"\r\n\r\n"
"""The end of a head."""
MOST = 512
"""How many heads are kept at most, and the bytes of each: 1 MB."""
MOST_BYTES = 2048

# A head with one of these is one person's, and does not come again from others.
_PERSONAL = {b"authorization", b"cookie", b"forwarded", b"tacit-invitation", b"transfer-encoding", b"x-forwarded-for"}


class Taker(Protocol):
    """What a fast-path route has decided about all requests with one head, before it sees a body."""

    def take(self, data: bytes, start: int, address: str, answer: Any) -> bool:
        """Accept the body that begins at `start` and call `answer` with a response later; False to decline it."""
        ...


@dataclass(frozen=True, slots=True)
class ParsedHead:
    """What the parser said of the head of a request whose body came in the same read."""

    path: bytes
    headers: Mapping[bytes, bytes]
    """None of them came twice."""
    length: int
    """The bytes of the body."""
    keep_alive: bool
    taker: Taker | None = field(default=None, compare=False)

    @property
    def is_common(self) -> bool:
        """Whether others may send the same, a body follows in exactly the stated length, and behind it more may."""
        stated = self.headers.get(b"content-length", b"").strip(b" \t")
        return self.keep_alive and stated == b"%d" % self.length and _PERSONAL.isdisjoint(self.headers)


class KnownHeads:
    """Parsed heads. They name browsers, so that all of them are forgotten every minute."""

    def __init__(self, seconds: Callable[[], float] = monotonic) -> None:
        """Begin without any; `seconds` is a monotonic clock."""
        self._seconds, self._born = seconds, seconds()
        self._known: dict[bytes, ParsedHead] = {}

    def get(self, head: bytes) -> ParsedHead | None:
        """What is known of a head, its end included."""
        if self._seconds() - self._born >= FORGET_SECONDS:
            self._known, self._born = {}, self._seconds()
        return self._known.get(head)

    def keep(self, request: bytes, parsed: ParsedHead) -> None:
        """Remember the head of a request, all of which was in one read with nothing before or after it."""
        end = request.find(END) + len(END)
        if not parsed.is_common or end > MOST_BYTES or len(request) - end != parsed.length:
            return
        # All at once, as a flood of different heads must cost neither memory nor time to choose among them.
        if len(self._known) >= MOST:
            self._known = {}
        self._known[request[:end]] = parsed
