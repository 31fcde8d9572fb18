"""The readiness check: can reports be stored now? Judged by recent commits, and by a probe write if in doubt."""

from threading import Lock

from tacit.collector.ingest.writer import BatchWriter
from tacit.collector.ports import Store
from tacit.errors import StorageUnavailable
from tacit.hosting.clock import Clock

HOLD_SECONDS = 3.0
"""The collector is not ready for this long after a failed commit, even if a probe succeeds: a tiny write may fit on a
full disk where a group of batches does not, and readiness would flap."""

PROBE_SECONDS = 1.0
"""Least time between two probe writes, so that frequent health checks do not keep the disk busy."""


class Readiness:
    """Not ready from a failed commit on, until none has failed for a while and a probe write succeeds."""

    def __init__(self, store: Store, writer: BatchWriter, clock: Clock | None = None) -> None:
        """Watch the failures of a writer."""
        self._store, self._writer, self._clock, self._lock = store, writer, clock or Clock(), Lock()
        self._seen: StorageUnavailable | None = None
        self._since = self._written = float("-inf")
        self._fault: StorageUnavailable | None = None

    def check(self) -> None:
        """StorageUnavailable while reports cannot be stored; returns quietly otherwise."""
        with self._lock:
            now, failure = self._clock.seconds(), self._writer.failure
            # By identity: a new exception object is a new failure, even if it says the same.
            if failure is not self._seen:
                self._seen, self._since = failure, now
            if failure is not None and now - self._since < HOLD_SECONDS:
                raise _not_ready(failure)
            is_low = self._store.probe()
            doubted = is_low or failure is not None or self._fault is not None
            if doubted and now - self._written >= PROBE_SECONDS:
                self._write(now, failure)
            if self._fault is not None:
                raise self._fault

    def _write(self, now: float, failure: StorageUnavailable | None) -> None:
        self._written = now
        try:
            self._store.probe(write=True)
        except StorageUnavailable as error:
            self._fault = _not_ready(error)
        else:
            self._fault = None
            self._writer.recovered(failure)


def _not_ready(error: StorageUnavailable) -> StorageUnavailable:
    """The same error as plain StorageUnavailable: a load balancer wants a 503 for a full disk too, not a 507."""
    return StorageUnavailable(str(error))
