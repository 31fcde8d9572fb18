"""What was seen of collections, kept until more reports have come: looking again at the same reports tells nothing."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

from tacit.collector.answers.integrity import integrity
from tacit.collector.collections.active import Active
from tacit.collector.collections.parts import Total
from tacit.collector.ingest.fold import Folder
from tacit.collector.ports import Store

_MOST = 256


class Looks:
    """The latest look at each of the latest collections that were looked at."""

    def __init__(self) -> None:
        """Nothing was looked at."""
        self._lock, self._seen = Lock(), dict[str, tuple[Hashable, dict[str, Any]]]()

    def of(self, collection: str, what: Hashable, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The look at `what` there is of a collection, a new one where that has changed."""
        with self._lock:
            known, found = self._seen.get(collection, (None, {}))
        if found and known == what:
            return found
        # Not under the lock: others look at other collections meanwhile.
        found = look()
        with self._lock:
            self._seen.pop(collection, None)
            self._seen[collection] = what, found
            if len(self._seen) > _MOST:
                del self._seen[next(iter(self._seen))]
        return found

    def at(self, active: Active, total: Total, store: Store, folder: Folder) -> dict[str, Any]:
        """Whether the reports of a collection look forged, from what is stored now."""

        def look() -> dict[str, Any]:
            kept = [] if active.collection.integrity is None else store.kept_reports(active.id)
            return integrity(active, total.tally, folder.watches(active), kept)

        record = store.collection(active.id)
        # Kept reports are deleted when a collection is closed.
        return self.of(active.id, (total.n, record and record.state), look)

    def forget(self, collection: str) -> None:
        """The reports of a collection were dropped."""
        with self._lock:
            self._seen.pop(collection, None)
