"""Limits: how much, how often and how slowly anybody may send."""

import secrets
from dataclasses import dataclass
from time import monotonic

FORGET_SECONDS = 60.0
"""After this long, nothing is left that was derived from an address."""

MOST_BATCH_ROWS, MOST_BATCH_BYTES = 1 << 18, 1 << 25
"""What one batch with rows may hold, counted as it is kept and not as it was sent."""

MOST_WAITING_BYTES = 2 * MOST_BATCH_BYTES
"""What may wait to be stored; above what one batch holds, so that none that is accepted is turned away for ever."""


@dataclass(frozen=True)
class Limits:
    """What one request and one address may cost."""

    body_bytes: int = 4 << 20
    body_seconds: float = 15.0
    body_rate: int = 256
    """Bytes a second that a body must arrive at, looked at every few seconds."""
    reading_bytes: int = 64 << 20
    """Bytes of bodies that requests hold together, over all connections; at least two of the largest bodies."""
    drain_bytes: int = 32 << 20
    """What is read and thrown away of a body that was refused, so that its client sees the answer."""
    head_bytes: int = 1 << 16
    head_seconds: float = 10.0
    """From the first byte of a request, or from the connection, to the end of the headers."""
    idle_seconds: float = 30.0
    """Between two requests on one connection."""
    requests_per_second: float = 500.0
    """Of one address; 0 for no limit."""
    burst: int = 5000
    most_addresses: int = 200_000


class RateLimit:
    """Token buckets by address. Only a salted hash of the address is held, and salt and buckets go every minute."""

    def __init__(self, limits: Limits) -> None:
        """Begin with a full bucket for everybody."""
        self._rate, self._burst = limits.requests_per_second, float(limits.burst)
        self._most = limits.most_addresses
        self._buckets: dict[int, tuple[float, float]] = {}
        self._salt, self._born = secrets.randbits(64), monotonic()

    def allows(self, address: str) -> bool:
        """Take one token from an address's bucket, if there is one."""
        if not self._rate:
            return True
        now = monotonic()
        if now - self._born >= FORGET_SECONDS or len(self._buckets) >= self._most:
            self._buckets, self._salt, self._born = {}, secrets.randbits(64), now
        # Text is hashed under a secret of the process already; the salt makes it another hash every minute.
        key = hash((self._salt, address))
        level, seen = self._buckets.get(key, (self._burst, now))
        level = min(self._burst, level + (now - seen) * self._rate)
        self._buckets[key] = (level if level < 1 else level - 1, now)
        return level >= 1
