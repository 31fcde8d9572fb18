"""Retention: reports are deleted after the number of days that the document promises; the audit log records it."""

from collections.abc import Callable

from tacit.collector.collections.active import parsed_json
from tacit.collector.limits import Intervals
from tacit.collector.ports import AuditEntry, CollectionRecord, Store
from tacit.hosting.clock import Clock

ACTOR, ACTION = "retention", "drop reports"
"""Actor and action of its entries in the audit log."""


class Retention:
    """Deletes the reports of collections that are past their retention; documents stay.

    Deleting cannot be undone, and wall clocks jump: a clock that is wrong for a moment must not cost a collection. So
    reports are deleted only if the calendar still says so `Intervals.confirm_drop` seconds (of the monotonic clock)
    after it first did.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        intervals: Intervals | None = None,
        forget: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Work on a store.

        `forget(collection)` removes data outside of the store (files, caches), after the store has deleted its own.
        """
        self._store, self._clock, self._forget = store, clock, forget
        self._confirm = (intervals or Intervals()).confirm_drop
        self._noticed: dict[str, float] = {}
        self._dropped: set[str] = set()

    def look(self) -> list[str]:
        """Delete the reports of collections past their retention; returns the ids of those collections."""
        today, now = self._clock.day(), self._clock.seconds()
        dropped: list[str] = []
        for record in self._store.collections():
            if record.state == "draft" or record.id in self._dropped:
                continue
            # The calendar has gone back: the wait begins anew.
            if today < self._last_day(record):
                self._noticed.pop(record.id, None)
            elif now - self._noticed.setdefault(record.id, now) >= self._confirm:
                self._drop(record, today)
                dropped.append(record.id)
        return dropped

    def _last_day(self, record: CollectionRecord) -> int:
        return self._store.published_day(record.id) + int(parsed_json(record.document)["retention_days"])

    def _drop(self, record: CollectionRecord, today: int) -> None:
        # `_dropped` is in memory, so after a restart this runs again, as a crash may have left batch ids, invitations
        # or files; the audit log gets no second entry if there is nothing left to see. The entry is written before the
        # deletion: after a crash in between there are two entries, which is better than none.
        if record.state != "closed" or self._store.stored_reports(record.id):
            self._store.audit(AuditEntry(today, ACTOR, ACTION, record.id, record.team))
        self._store.drop_reports(record.id)
        self._forget(record.id)
        self._dropped.add(record.id)
        del self._noticed[record.id]
