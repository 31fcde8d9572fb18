"""Retention: what a document says is dropped after so many days is dropped, and the audit log says so."""

from collections.abc import Callable
from time import monotonic

from tacit.collector.active import parsed_json
from tacit.collector.ports import AuditEntry, CollectionRecord, Store

CONFIRM_SECONDS = 3600.0
"""For how long the calendar must agree that a collection is past its retention, before its reports are dropped."""

ACTOR, ACTION = "retention", "drop reports"
"""How the audit log tells it."""


class Retention:
    """Drops what came from respondents once it is past its retention; documents stay.

    Dropping cannot be undone, and clocks jump: one that was wrong for a moment must not cost a collection. So nothing
    is dropped when the calendar first says so, but when it still does an hour later.
    """

    def __init__(
        self,
        store: Store,
        day: Callable[[], int],
        ticks: Callable[[], float] = monotonic,
        forget: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Work on a store; `day` is the calendar, `ticks` a clock that never jumps.

        `forget` removes what is kept of a collection outside the store, once the store has dropped what names it.
        """
        self._store, self._day, self._ticks, self._forget = store, day, ticks, forget
        self._noticed: dict[str, float] = {}
        self._dropped: set[str] = set()

    def look(self) -> list[str]:
        """Drop what has been past its retention for long enough; returns the ids of those collections."""
        today, now = self._day(), self._ticks()
        dropped: list[str] = []
        for record in self._store.collections():
            if record.state == "draft" or record.id in self._dropped:
                continue
            if today < self._last_day(record):
                self._noticed.pop(record.id, None)
            elif now - self._noticed.setdefault(record.id, now) >= CONFIRM_SECONDS:
                self._drop(record, today)
                dropped.append(record.id)
        return dropped

    def _last_day(self, record: CollectionRecord) -> int:
        return self._store.published_day(record.id) + int(parsed_json(record.document)["retention_days"])

    def _drop(self, record: CollectionRecord, today: int) -> None:
        # Dropping is repeated after a restart, for batch ids or invitations may be left; what changes nothing anybody
        # could see is not noted again. The note comes first: twice, after a crash in between, is better than never.
        if record.state != "closed" or self._store.stored_reports(record.id):
            self._store.audit(AuditEntry(today, ACTOR, ACTION, record.id))
        self._store.drop_reports(record.id)
        self._forget(record.id)
        self._dropped.add(record.id)
        del self._noticed[record.id]
