"""Webhooks and the lookout of one collector, in a thread of their own."""

from typing import Any, Protocol

from tacit.collector.collections.active import Active, Shelf
from tacit.collector.ingest.fold import Housekeeping
from tacit.collector.limits import Intervals
from tacit.collector.notices.lookout import Lookout, Sight
from tacit.collector.notices.webhooks import Webhooks
from tacit.collector.ports import Store
from tacit.hosting.clock import Clock


class Watched(Protocol):
    """What the lookout needs of a collector."""

    store: Store
    shelf: Shelf

    def stored(self, active: Active) -> tuple[int, bool]:
        """The number of stored reports, and whether the collection is corrupt."""
        ...

    def refused(self, collection: str) -> dict[str, int]:
        """Refused reports by reason."""
        ...

    def integrity(self, collection: str) -> dict[str, Any]:
        """What the detectors say of a collection."""
        ...


class NoticeFront:
    """What a collector tells its operators."""

    def __init__(self, collector: Watched, clock: Clock, intervals: Intervals, *, private: bool) -> None:
        """Tell about a collector; `private` allows webhooks inside this network."""
        self._collector = collector
        self.webhooks = Webhooks(collector.store.notices, clock, private=private)
        self.lookout = Lookout(self.webhooks, self._sights, self._inspected)
        # A thread of its own: inspections take long, and folding does not wait for them.
        self._thread = Housekeeping([(self.lookout.look, intervals.look_out), (self._deliver, intervals.deliver)])

    def _deliver(self) -> None:
        # Nobody waits here for what was begun: what comes meanwhile is for others.
        self.webhooks.begin_due()

    def start(self) -> None:
        """Look out and deliver, in the one process of a folder that does the chores."""
        self._thread.start()

    def stop(self) -> None:
        """Finish running deliveries within seconds; queued messages stay in the database."""
        self.webhooks.stop()
        self._thread.stop()

    def _sights(self) -> list[Sight]:
        """Every collection that was published and is not damaged."""
        found: list[Sight] = []
        for record in self._collector.store.collections():
            active = self._collector.shelf.find(record.id) if record.state != "draft" else None
            reports, damaged = (0, True) if active is None else self._collector.stored(active)
            if active is not None and not damaged:
                least, refused = active.collection.least_reports, self._collector.refused(record.id)
                found.append(Sight(record.id, record.state, record.team, reports, least, refused))
        return found

    def _inspected(self, collection: str) -> dict[str, Any] | None:
        """The integrity of a collection; None for those with rows, which are not counted, and with windows."""
        active = self._collector.shelf.find(collection)
        if active is None or active.collection.rows is not None or active.collection.windows is not None:
            return None
        return self._collector.integrity(collection)
