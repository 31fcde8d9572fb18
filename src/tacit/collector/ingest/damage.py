"""A record of which collections have a corrupt tally, so that lists can flag them and still show the others."""

import logging
from threading import Lock

from tacit.collector.ingest.fold import Folder
from tacit.errors import StorageDamaged

LOG = logging.getLogger("tacit.collector")


class Damage:
    """Verifies the stored tallies of collections, and remembers which were corrupt at the last look."""

    def __init__(self, folder: Folder) -> None:
        """Verify the tallies that a folder reads."""
        self._folder, self._lock, self._seen = folder, Lock(), set[str]()

    @property
    def number(self) -> int:
        """How many collections were corrupt at the last look (a metric)."""
        return len(self._seen)

    def look(self, collection: str, *, rows: bool) -> bool:
        """Verify a collection and return whether it is corrupt; the log gets a line only when that is new."""
        try:
            self._folder.check(collection, rows=rows)
        except StorageDamaged as error:
            with self._lock:
                # Decided under the lock, so that of two threads that find the damage at once only one logs it.
                is_new = collection not in self._seen
                self._seen.add(collection)
            if is_new:
                LOG.error("%s", error)
            return True
        self.forget(collection)
        return False

    def forget(self, collection: str) -> None:
        """Forget a collection, because it is whole again or its reports were dropped."""
        with self._lock:
            self._seen.discard(collection)
