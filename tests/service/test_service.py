"""The collector's chores: one that fails holds up neither the others nor the end, and answers wait for a fold."""

from collections.abc import Callable
from threading import Event, Thread

import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import PLAIN, NoNoise, wide_draft

from tacit.catalog import CATALOG
from tacit.collector.collections.access import Access
from tacit.collector.collections.publish import publish_document
from tacit.collector.ports import Fold, NewBatch
from tacit.collector.ports import Store as AnyStore
from tacit.collector.service import Collector
from tacit.errors import StorageFull, StorageUnavailable


class Store(MemoryStore):
    """Fails where it is told to."""

    bad = ""
    is_closed = is_full = False

    def fold_some(self, collection, shard, fold, most):
        if collection == self.bad:
            raise StorageUnavailable("storage: away")
        return super().fold_some(collection, shard, fold, most)

    def count_rejected(self, collection, reasons):
        if self.is_full:
            raise StorageFull("storage: full")
        super().count_rejected(collection, reasons)

    def close(self):
        self.is_closed = True


@pytest.fixture
def store() -> Store:
    return Store()


def test_a_collection_that_cannot_be_folded_does_not_hold_up_the_others(store: Store):
    collector = Collector(store, catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
    plan = collector.planner.plan
    names = [publish_document(store, plan(wide_draft(200 + i, minimum_cohort=1))[0]).id for i in range(8)]
    for name in names:
        store.add_batches([NewBatch(name, bytes(16), bytes(3), 3, {})])
    for store.bad in names:
        collector.touch_all()
        with pytest.raises(StorageUnavailable):
            collector.fold_touched()
        assert [bool(store.tallies(name)) for name in names if name != store.bad] == [True] * 7
    store.bad = ""
    collector.touch_all()
    collector.fold_touched()
    assert all(collector.folder.total(collector.find(name)).n == 3 for name in names)
    collector.stop()


def test_a_stop_that_cannot_note_refusals_releases_the_database(store: Store):
    collector = Collector(store)
    collector.rejections.add("a" * 64, "range")
    store.is_full = True
    with pytest.raises(StorageFull):
        collector.stop()
    assert store.is_closed


def test_when_no_admin_token_holds_the_next_start_makes_one(store: Store):
    day = [100]
    access = Access(store, lambda: day[0])
    token, _ = access.create("admin", days=7)
    assert access.first_admin() is None
    day[0] = 107
    fresh = access.first_admin()
    assert access.bearer(token) is None
    assert access.bearer(fresh).scope == "admin"
    assert access.first_admin() is None


class Held:
    """Another store whose first fold waits in the middle of its transaction until it is let go."""

    def __init__(self, store: AnyStore) -> None:
        self._store, self.begun, self.go = store, Event(), Event()

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int) -> int:
        def held(*state) -> bytes:
            if not self.begun.is_set():
                self.begun.set()
                self.go.wait()
            return fold(*state)

        return self._store.fold_some(collection, shard, held, most)


def test_an_answer_waits_for_a_fold_that_has_claimed_what_it_needs(open_store: Callable[[], AnyStore]):
    store = Held(open_store())
    collector = Collector(store, catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))  # type: ignore[arg-type]
    name = publish_document(store, collector.planner.plan(wide_draft(200, minimum_cohort=1))[0]).id
    store.add_batches([NewBatch(name, bytes(16), bytes(3), 3, {})])
    collector.touch(name)
    answers: list[int] = []
    chore = Thread(target=collector.fold_touched)
    answer = Thread(target=lambda: answers.append(collector.answers(name, 0.95).n))
    chore.start()
    store.begun.wait()
    answer.start()
    # An answer that does not wait is given now, without the three reports. This join never decides for good code.
    answer.join(timeout=0.2)
    store.go.set()
    chore.join()
    answer.join()
    assert answers == [3]
    collector.work.stop()
