"""Tallies of the files of a lake: each file is counted once by a process, as files never change."""

from collections import OrderedDict
from functools import reduce
from operator import add
from threading import Lock
from typing import Any

from tacit.collector.collections.active import Active
from tacit.collector.rows.batches import reports_of
from tacit.collector.rows.filed import SealedFiles
from tacit.core.members import AnyTally
from tacit.lake.entries import SegmentEntry
from tacit.wire.tallies import dump_tally, empty_tally, load_tally

_MOST_BYTES = 1 << 28
"""Bytes of tallies that are kept; the least recently used go first."""


class FileCounts:
    """A cache of the tallies of files, by collection and checksum, limited in bytes."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._size, self._lock = 0, Lock()

    def total(self, active: Active, entries: list[SegmentEntry], files: SealedFiles) -> AnyTally:
        """The tally of some files together."""
        tallies: list[Any] = [self._of(active, entry, files) for entry in entries]
        return reduce(add, tallies, empty_tally(active.mechanism))

    def _of(self, active: Active, entry: SegmentEntry, files: SealedFiles) -> AnyTally:
        key = active.id, entry.sha256
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        if kept is not None:
            return load_tally(active.mechanism, kept)
        # Outside of the lock, because counting takes long: two readers may both do it, with the same result.
        tally = active.mechanism.tally(reports_of(active, files.read(active, entry)))
        # As bytes, whose size is known: a tally may be one array or one per member.
        self._keep(key, dump_tally(tally))
        return tally

    def _keep(self, key: tuple[str, str], data: bytes) -> None:
        with self._lock:
            self._size += len(data) - len(self._kept.pop(key, b""))
            self._kept[key] = data
            while self._size > _MOST_BYTES:
                self._size -= len(self._kept.popitem(last=False)[1])

    def forget(self, collection: str) -> None:
        """Let go of a collection whose reports were dropped."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == collection]:
                self._size -= len(self._kept.pop(key))
