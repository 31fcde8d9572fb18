"""Retention: reports are deleted after the number of days that the document promises; the audit log records it."""

from collections.abc import Callable, Iterator
from datetime import date

from tacit.collector.collections.active import parsed_json
from tacit.collector.limits import Intervals
from tacit.collector.ports import AuditEntry, CollectionRecord, Store, window_id
from tacit.device.windows.terms import WindowTerms
from tacit.hosting.clock import Clock

ACTOR, ACTION = "retention", "drop reports"
"""Actor and action of its entries in the audit log."""


_EPOCH = date(1970, 1, 1).toordinal()


def _final_day(terms: WindowTerms, window: int) -> int:
    """The ordinal of the first day on which a window is final, by whichever zone."""
    return terms.calendar.first_day(window + terms.late + 1).toordinal() + (terms.zone == "local")


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
        for record, last_day in self._kept():
            # The calendar has gone back: the wait begins anew.
            if today < last_day:
                self._noticed.pop(record.id, None)
            elif now - self._noticed.setdefault(record.id, now) >= self._confirm:
                self._drop(record, today)
                dropped.append(record.id)
        return dropped

    def _kept(self) -> Iterator[tuple[CollectionRecord, int]]:
        """Collections whose reports may be there, and their windows, with the day on which those are to be dropped."""
        for record in self._store.collections():
            if record.state == "draft" or record.id in self._dropped:
                continue
            document = parsed_json(record.document)
            days = int(document["retention_days"])
            if not document.get("windows"):
                yield record, self._store.published_day(record.id) + days
                continue
            terms = WindowTerms(**document["windows"])
            for one in self._store.windows(record.id):
                name = window_id(record.id, one.window)
                if name not in self._dropped and (one.reports or one.state != "closed"):
                    # A window is dropped when it is final and its days are over, counted from its last day.
                    last = max(
                        terms.calendar.last_day(one.window).toordinal() + 1 + days, _final_day(terms, one.window)
                    )
                    yield CollectionRecord(name, one.state, b""), last - _EPOCH

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
