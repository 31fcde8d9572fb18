"""Limits of requests, and the rate limiter."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

FORGET_SECONDS = 60.0
"""How long anything derived from a network address is kept at most."""


@dataclass(frozen=True)
class Limits:
    """Limits of one request and of one address."""

    body_bytes: int = 4 << 20
    body_seconds: float = 15.0
    body_rate: int = 256
    """Least bytes per second at which a body must arrive, checked every few seconds (against slow-loris clients)."""
    reading_bytes: int = 64 << 20
    """Memory for bodies in flight, over all connections; at least two of the largest bodies."""
    drain_bytes: int = 32 << 20
    """How much of a refused body is read and discarded: a client that is still sending may not read the response."""
    head_bytes: int = 1 << 16
    head_seconds: float = 10.0
    """From the first byte of a request, or from the connection, to the end of the headers."""
    idle_seconds: float = 30.0
    """Between two requests on one connection."""
    requests_per_second: float = 500.0
    """Rate limit of one address; 0 for none."""
    burst: int = 5000
    most_addresses: int = 200_000


class RateLimit:
    """Token buckets by address. Only salted hashes of addresses are in memory, and all is forgotten every minute."""

    def __init__(self, limits: Limits, seconds: Callable[[], float] = monotonic) -> None:
        """Begin with full buckets; `seconds` is a monotonic clock."""
        self._seconds = seconds
        self._rate, self._burst = limits.requests_per_second, float(limits.burst)
        self._most = limits.most_addresses
        self._buckets: dict[int, tuple[float, float]] = {}
        self._salt, self._born = secrets.randbits(64), seconds()

    def allows(self, address: str, cost: int = 1) -> bool:
        """Take a token, or as many as a request costs, from the bucket of an address; False if there are too few."""
        if not self._rate:
            return True
        now = self._seconds()
        # Too many addresses also reset all buckets: a flood from everywhere must not exhaust memory. Whoever was
        # limited gets a fresh burst, which is the price.
        if now - self._born >= FORGET_SECONDS or len(self._buckets) >= self._most:
            self._buckets, self._salt, self._born = {}, secrets.randbits(64), now
        # Python's hash of text is keyed with a secret of the process already; the salt changes it every minute.
        key = hash((self._salt, address))
        level, seen = self._buckets.get(key, (self._burst, now))
        level += (now - seen) * self._rate
        level = level if level < self._burst else self._burst
        self._buckets[key] = (level if level < cost else level - cost, now)
        return level >= cost
