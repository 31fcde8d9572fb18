"""Which collections hold a tally that is not as it was written, so that lists show it and go on with the others."""

import logging
from threading import Lock

from tacit.collector.fold import Folder
from tacit.errors import StorageDamaged

LOG = logging.getLogger("tacit.collector")


class Damage:
    """Looks at the stored tallies of collections, and remembers which were damaged when they were last looked at."""

    def __init__(self, folder: Folder) -> None:
        """Look at the tallies that a folder reads."""
        self._folder, self._lock, self._seen = folder, Lock(), set[str]()

    @property
    def number(self) -> int:
        """How many collections were damaged when they were last looked at."""
        return len(self._seen)

    def look(self, collection: str, *, rows: bool) -> bool:
        """Whether a collection, with rows or without, is damaged now; the log names it when that is new."""
        try:
            self._folder.check(collection, rows=rows)
        except StorageDamaged as error:
            with self._lock:
                is_new = collection not in self._seen
                self._seen.add(collection)
            if is_new:
                LOG.error("%s", error)
            return True
        self.forget(collection)
        return False

    def forget(self, collection: str) -> None:
        """Remember nothing of a collection, as when its reports are dropped."""
        with self._lock:
            self._seen.discard(collection)
