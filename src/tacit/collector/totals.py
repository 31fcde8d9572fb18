"""Tallies at hand: the same object as long as nothing new is folded, so that what was worked out of it is reused."""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock

from tacit.collector.active import Active
from tacit.collector.fold import Folder
from tacit.collector.ports import Store
from tacit.core.members import AnyTally
from tacit.tasks.marginal_task import forget

_MOST_KEPT = 8


class Totals:
    """The tallies that were asked for lately."""

    def __init__(self, store: Store, folder: Folder) -> None:
        """Read from a store."""
        self._store, self._folder, self._lock = store, folder, Lock()
        self._kept: OrderedDict[str, tuple[bytes, AnyTally]] = OrderedDict()

    def forget(self) -> None:
        """Keep nothing, and nothing that was worked out of it: what is past its retention must not stay in memory."""
        with self._lock:
            self._kept.clear()
        forget()

    def total(self, active: Active) -> AnyTally:
        """The tally of everything that is folded, by whichever process."""
        digest = sha256()
        stored = self._store.tallies(active.id)
        for item in stored:
            digest.update(sha256(item.content).digest())
        found = self._kept.get(active.id)
        if found is not None and found[0] == digest.digest():
            return found[1]
        tally = self._folder.sum(active, stored)
        with self._lock:
            self._kept[active.id] = digest.digest(), tally
            self._kept.move_to_end(active.id)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return tally
