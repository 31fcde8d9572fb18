"""A cache of summed tallies with their memoized results, valid until something is folded or retention drops it."""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock

from tacit.collector.collections.active import Active
from tacit.collector.collections.parts import Total, settled
from tacit.collector.ingest.fold import Folder
from tacit.collector.ports import Store, StoredTally
from tacit.core.members import AnyTally
from tacit.errors import StorageUnavailable

_MOST_TALLIES = 8
_ATTEMPTS = 5
_MOST_CELLS = 1 << 20
"""Cells of all windows that are kept in memory, at most."""


class TallyCache:
    """Up to `_MOST_TALLIES` summed tallies by collection, validated by a digest of what the store holds."""

    def __init__(self, store: Store, folder: Folder) -> None:
        """Read from a store."""
        self._store, self._folder, self._lock = store, folder, Lock()
        self._totals: OrderedDict[str, tuple[bytes, Total]] = OrderedDict()
        self._forgotten = 0

    def forget(self) -> None:
        """Empty the cache: reports past their retention must not stay in memory either."""
        with self._lock:
            self._totals.clear()
            self._forgotten += 1

    def total(self, active: Active) -> Total:
        """The sum of all shards of a collection; the same object as long as the store holds the same bytes."""
        # The stored bytes are hashed, not a version number: another process may fold, or restore a backup.
        forgotten = self._forgotten
        stored, sessions = self._read(active)
        digest = sha256(sessions.to_bytes(8, "little"))
        for item in stored:
            digest.update(sha256(item.content).digest())
        key = digest.digest()
        with self._lock:
            cached = self._totals.get(active.id)
            if cached is not None and cached[0] == key:
                self._totals.move_to_end(active.id)
                return cached[1]
        # Outside of the lock, because adding tallies takes long: two readers may both do it, and the later one stays.
        tally = settled(active.collection, active.mechanism, self._folder.sum(active, stored), sessions)
        total = Total(tally, sessions=sessions)
        with self._lock:
            # What was read before `forget` may be past its retention by now: it is returned and not cached.
            if forgotten == self._forgotten:
                self._totals[active.id] = key, total
                self._totals.move_to_end(active.id)
                while len(self._totals) > _MOST_TALLIES:
                    self._totals.popitem(last=False)
        return total

    def _read(self, active: Active) -> tuple[list[StoredTally], int]:
        """The tallies of a collection and, of a shuffled one, how many sessions are in them: each is one batch."""
        if active.collection.windows is not None:
            # All windows together, as integers add.
            return [item for stored in self._store.window_tallies(active.id).values() for item in stored], 1
        if active.collection.shuffle is None:
            return self._store.tallies(active.id), 1
        for _ in range(_ATTEMPTS):
            stored, numbers = self._store.tallies(active.id), self._store.batch_numbers(active.id)
            # Something was folded between the two questions if they do not fit together.
            if sum(item.reports for item in stored) == numbers.folded_reports:
                return stored, numbers.folded
        raise StorageUnavailable(f"collection {active.id}: its reports are being counted; ask again in a moment")


class WindowTotals:
    """Sums of the tallies of windows, kept while the store holds the same bytes: most windows never change again."""

    def __init__(self, store: Store, folder: Folder) -> None:
        """Read from a store."""
        self._store, self._folder, self._lock = store, folder, Lock()
        self._kept: dict[tuple[str, int], tuple[bytes, AnyTally]] = {}

    def forget(self) -> None:
        """Forget all: reports past their retention must not stay in memory either."""
        with self._lock:
            self._kept = {}

    def of(self, active: Active) -> dict[int, AnyTally]:
        """The tally of every window that has reports."""
        with self._lock:
            known = self._kept
        found: dict[tuple[str, int], tuple[bytes, AnyTally]] = {}
        for window, stored in self._store.window_tallies(active.id).items():
            key, digest = (
                (active.id, window),
                sha256(b"".join(sha256(item.content).digest() for item in stored)).digest(),
            )
            kept = known.get(key)
            found[key] = kept if kept is not None and kept[0] == digest else (digest, self._folder.sum(active, stored))
        # One collection at a time, and of a size: whoever looks at a chart looks at one.
        if len(found) * active.mechanism.cell_count <= _MOST_CELLS:
            with self._lock:
                # What was read before `forget` is not kept.
                self._kept = found if self._kept is known else self._kept
        return {window: tally for (_, window), (_, tally) in found.items()}
