"""Limits: how much, how often and how slowly anybody may send."""

import secrets
from dataclasses import dataclass
from hashlib import blake2b
from time import monotonic

FORGET_SECONDS = 60.0
"""After this long, nothing is left that was derived from an address."""


@dataclass(frozen=True)
class Limits:
    """What one request and one address may cost."""

    body_bytes: int = 4 << 20
    body_seconds: float = 15.0
    requests_per_second: float = 500.0
    """Of one address; 0 for no limit."""
    burst: int = 5000
    most_addresses: int = 200_000


class RateLimit:
    """Token buckets by address. Only a salted hash of the address is held, and salt and buckets go every minute."""

    def __init__(self, limits: Limits) -> None:
        """Begin with a full bucket for everybody."""
        self._rate, self._burst, self._most = limits.requests_per_second, limits.burst, limits.most_addresses
        self._buckets: dict[bytes, tuple[float, float]] = {}
        self._salt, self._born = secrets.token_bytes(16), monotonic()

    def allows(self, address: str) -> bool:
        """Take one token from an address's bucket, if there is one."""
        if not self._rate:
            return True
        now = monotonic()
        if now - self._born >= FORGET_SECONDS or len(self._buckets) >= self._most:
            self._buckets, self._salt, self._born = {}, secrets.token_bytes(16), now
        key = blake2b(address.encode(errors="replace"), digest_size=8, key=self._salt).digest()
        level, seen = self._buckets.get(key, (float(self._burst), now))
        level = min(float(self._burst), level + (now - seen) * self._rate)
        if level < 1:
            self._buckets[key] = (level, now)
            return False
        self._buckets[key] = (level - 1, now)
        return True
