"""A cache of summed tallies with their memoized results, valid until something is folded or retention drops it."""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock

from tacit.collector.collections.active import Active
from tacit.collector.collections.parts import Total, settled
from tacit.collector.ingest.fold import Folder
from tacit.collector.ports import Store

_MOST_TALLIES = 8


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
        digest, forgotten = sha256(), self._forgotten
        stored = self._store.tallies(active.id)
        for item in stored:
            digest.update(sha256(item.content).digest())
        key = digest.digest()
        with self._lock:
            cached = self._totals.get(active.id)
            if cached is not None and cached[0] == key:
                self._totals.move_to_end(active.id)
                return cached[1]
        # Outside of the lock, because adding tallies takes long: two readers may both do it, and the later one stays.
        total = Total(settled(active.collection, active.mechanism, self._folder.sum(active, stored)))
        with self._lock:
            # What was read before `forget` may be past its retention by now: it is returned and not cached.
            if forgotten == self._forgotten:
                self._totals[active.id] = key, total
                self._totals.move_to_end(active.id)
                while len(self._totals) > _MOST_TALLIES:
                    self._totals.popitem(last=False)
        return total
