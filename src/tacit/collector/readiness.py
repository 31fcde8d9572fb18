"""Whether reports can be stored now: by what became of those that came last, and by a write of our own."""

from collections.abc import Callable
from threading import Lock
from time import monotonic

from tacit.collector.ports import Store
from tacit.collector.writer import Writer
from tacit.errors import StorageUnavailable

HOLD_SECONDS = 3.0
"""For how long after a commit that failed the collector is not ready: a small write may succeed where those fail."""

PROBE_SECONDS = 1.0
"""The time between two writes: somebody who asks often must not make the disk busy."""


class Readiness:
    """Not ready from a commit that failed until none has failed for a while and a write of our own succeeds."""

    def __init__(self, store: Store, writer: Writer, ticks: Callable[[], float] = monotonic) -> None:
        """Watch a writer; `ticks` is a clock that never jumps."""
        self._store, self._writer, self._ticks, self._lock = store, writer, ticks, Lock()
        self._seen: StorageUnavailable | None = None
        self._since = self._written = float("-inf")
        self._fault: StorageUnavailable | None = None

    def check(self) -> None:
        """Raise `StorageUnavailable` while reports cannot be stored."""
        with self._lock:
            now, failure = self._ticks(), self._writer.failure
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
    """A full disk is no other answer to somebody who asks whether to send reports here."""
    return StorageUnavailable(str(error))
