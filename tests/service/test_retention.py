"""Retention: dropped when the document says so, not when a clock jumps, and noted in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.service.plain import PLAIN, NoNoise, draft
from tests.service.waiting import wait_until

from tacit.catalog import CATALOG
from tacit.collector.collections.publish import publish_document
from tacit.collector.collections.retention import Retention
from tacit.collector.limits import Intervals
from tacit.collector.ports import CLOSED, STORED, AuditEntry, CollectionRecord, NewBatch, Store
from tacit.collector.service import Collector
from tacit.errors import StorageFull
from tacit.hosting.clock import Clock

HOUR = Intervals().confirm_drop
DAY = 20_000  # What the stores of these tests take for the day of publication.


class Calendar:
    """A day and a number of seconds that tests set."""

    def __init__(self) -> None:
        self.day, self.seconds = DAY, 0.0

    def jump(self, day: int, seconds: float = HOUR) -> None:
        self.day, self.seconds = day, self.seconds + seconds


class Life:
    """A collection that keeps its reports for 30 days, with 9 of them, and who drops them."""

    def __init__(self, store: Store) -> None:
        self.store, self.calendar = store, Calendar()
        collector = Collector(store, catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
        self.collector = collector
        self.id = publish_document(store, collector.planner.plan(draft(retention_days=30))[0]).id
        self.other = publish_document(store, collector.planner.plan(draft(title="Longer", retention_days=99))[0]).id
        for name in (self.id, self.other):
            assert store.add_batches([NewBatch(name, bytes(16), bytes(9), 9, {"range": 2})]) == [STORED]
        self.retention = self.start()

    def start(self) -> Retention:
        return Retention(self.store, Clock(lambda: self.calendar.day, lambda: self.calendar.seconds))

    def look(self, day: int, seconds: float = HOUR) -> list[str]:
        self.calendar.jump(day, seconds)
        return self.retention.look()


@pytest.fixture
def life(store: Store) -> Iterator[Life]:
    made = Life(store)
    yield made
    made.collector.stop()


def test_reports_are_dropped_when_they_are_past_their_retention(life: Life):
    store = life.store
    life.collector.answers(life.id, 0.95)  # One batch is folded, one is not.
    store.add_batches([NewBatch(life.id, bytes([1] * 16), bytes(3), 3, {})])
    store.add_invitations(life.id, [b"i"])
    for day, dropped in ((DAY + 29, []), (DAY + 29, []), (DAY + 30, []), (DAY + 30, [life.id]), (DAY + 31, [])):
        assert life.look(day) == dropped
    assert store.stored_reports(life.id) == 0
    assert (store.tallies(life.id), store.stored_reports(life.other)) == ([], 9)
    assert store.collection(life.id).state == "closed"
    assert store.audit_log(9) == [AuditEntry(DAY + 30, "retention", "drop reports", life.id)]
    assert store.add_batches([NewBatch(life.id, bytes(16), bytes(9), 9, {})]) == [CLOSED]
    assert store.rejected(life.id) == {"range": 2}  # A number of refusals says nothing about anybody.
    answers = life.collector.answers(life.id, 0.95)
    assert (answers.n, answers.status) == (0, "below_minimum_cohort")


def test_a_clock_that_jumps_for_a_moment_drops_nothing(life: Life):
    for day in (DAY + 400, DAY - 400, DAY + 10**6, DAY, -5, DAY + 30, DAY + 29):
        assert life.look(day) == []
    for _ in range(9):
        assert life.look(DAY + 400, HOUR / 10) == []
    assert life.look(DAY) == []
    assert life.look(DAY + 400) == []
    assert (life.store.stored_reports(life.id), life.store.stored_reports(life.other)) == (9, 9)
    assert life.store.collection(life.id).state == "published"
    assert life.store.audit_log(9) == []


def test_going_back_in_time_brings_nothing_back(life: Life):
    life.look(DAY + 30)
    assert life.look(DAY + 30) == [life.id]
    assert life.look(DAY) == []
    assert life.store.collection(life.id).state == "closed"


def test_a_restart_notes_nothing_twice(life: Life):
    life.look(DAY + 30)
    life.look(DAY + 30)
    life.retention = life.start()
    assert life.look(DAY + 31) == []
    assert life.look(DAY + 31) == [life.id]  # Harmless, and for whatever a crash in between has left.
    assert len(life.store.audit_log(9)) == 1


def test_a_collection_without_reports_is_closed_too(life: Life):
    """Otherwise it would acknowledge reports that are dropped within the hour."""
    empty = publish_document(life.store, life.collector.planner.plan(draft(title="Empty", retention_days=3))[0]).id
    draft_id = "draft-" + "0" * 32
    life.store.add_collection(CollectionRecord(draft_id, "draft", b"{}"))
    life.look(DAY + 3)
    assert life.look(DAY + 3) == [empty]
    assert life.store.collection(empty).state == "closed"
    assert life.store.collection(draft_id).state == "draft"


def test_a_drop_that_fails_is_tried_again(life: Life, monkeypatch: pytest.MonkeyPatch):
    life.look(DAY + 30)
    drop: Callable[[str], None] = life.store.drop_reports

    def fail(collection: str) -> None:
        raise StorageFull(collection)

    monkeypatch.setattr(life.store, "drop_reports", fail)
    with pytest.raises(StorageFull):
        life.look(DAY + 30)
    monkeypatch.setattr(life.store, "drop_reports", drop)
    assert life.look(DAY + 30) == [life.id]


def test_the_collector_looks_by_itself(store: Any):
    collector = Collector(
        store,
        catalog=(*CATALOG, NoNoise),
        tasks=(PLAIN,),
        clock=Clock(day=lambda: DAY + 30),
        intervals=Intervals(retire=0.02, confirm_drop=0.02),
    )
    mine = publish_document(store, collector.planner.plan(draft(retention_days=30))[0]).id
    collector.start()
    try:
        wait_until(lambda: store.collection(mine).state == "closed", "nothing was dropped")
    finally:
        collector.stop()
