"""Limits of requests, sizes of folds, intervals of background chores, and the rate limiter."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

FORGET_SECONDS = 60.0
"""How long anything derived from a network address is kept at most."""

MOST_BATCH_ROWS, MOST_BATCH_BYTES = 1 << 18, 1 << 25
"""Limits of one batch with rows, measured decoded and not as sent."""

MOST_WAITING_BYTES = 2 * MOST_BATCH_BYTES
"""Bytes that may be queued for the writer. It exceeds the largest batch, which would otherwise never fit."""


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


@dataclass(frozen=True)
class Intervals:
    """Periods of the background chores, and how long to wait before something is deleted; in seconds."""

    fold: float = 0.25
    """Between two folds of batches into tallies."""
    seal: float = 5.0
    """Between two segments of one collection; rows wait for it, so that segments are fewer and larger."""
    note_refusals: float = 1.0
    """Between two writes of the number of refused reports."""
    advance: float = 2.0
    """Between two looks at the rounds of adaptive plans."""
    touch: float = 60.0
    """Between two looks for batches that another process has left behind."""
    retire: float = 3600.0
    """Between two looks for collections that are past their retention."""
    confirm_drop: float = 3600.0
    """For how long the calendar must agree that a collection is past its retention, before its reports are dropped."""
    sweep: float = 300.0
    """Between two looks for files of segments that no manifest names."""
    confirm_sweep: float = 900.0
    """For how long no manifest must have named a file, before it is removed.

    A commit whose outcome nobody heard may still be taking effect, and a query may be reading a merged segment.
    """
    damage: float = 300.0
    """Between two readings of all tallies to see whether they are as they were written."""


@dataclass(frozen=True)
class FoldLimits:
    """Size limits of what a fold rewrites: a shard or segment beyond them is left alone, and a new one is begun."""

    log_bytes: int = 1 << 22
    """Bytes of a shard with a log of reports."""
    manifest_bytes: int = 1 << 16
    """Bytes of a manifest."""
    segment_rows: int = 1 << 20
    segment_memory: int = 1 << 27
    """Decoded bytes of a segment. These two bound what a fold rewrites beside the new rows."""


class RateLimit:
    """Token buckets by address. Only salted hashes of addresses are in memory, and all is forgotten every minute."""

    def __init__(self, limits: Limits, seconds: Callable[[], float] = monotonic) -> None:
        """Begin with full buckets; `seconds` is a monotonic clock."""
        self._seconds = seconds
        self._rate, self._burst = limits.requests_per_second, float(limits.burst)
        self._most = limits.most_addresses
        self._buckets: dict[int, tuple[float, float]] = {}
        self._salt, self._born = secrets.randbits(64), seconds()

    def allows(self, address: str) -> bool:
        """Take one token from the bucket of an address; False if it is empty."""
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
        level = min(self._burst, level + (now - seen) * self._rate)
        self._buckets[key] = (level if level < 1 else level - 1, now)
        return level >= 1
