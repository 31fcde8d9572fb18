"""Group commit: outcomes after the commit, one group per transaction, nobody forgotten."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any, cast

import pytest
from tests.service.submitting import submit
from tests.service.waiting import PATIENT_SECONDS, run_async

from tacit.collector.ingest import outcomes as outcomes_module
from tacit.collector.ingest.outcomes import Outcomes
from tacit.collector.ingest.writer import BatchWriter, Callers
from tacit.collector.ports import DUPLICATE, STORED, CollectionRecord, NewBatch, Store
from tacit.collector.store.singles import SingleBatches
from tacit.errors import Busy, StorageFull

A = "a" * 64


class Slow:
    """A store whose commits wait for the test; one group of each size is remembered."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)
        self.groups: list[list[NewBatch]] = []
        self.failures: list[BaseException | None] = []

    def add_batches(self, batches: Sequence[NewBatch]) -> list[str]:
        self.begun.release()
        assert self.go.acquire(timeout=PATIENT_SECONDS)
        self.groups.append(list(batches))
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return [f"outcome of {batch.batch.decode()}" for batch in batches]


def batch(name: str, size: int = 1) -> NewBatch:
    return NewBatch(A, name.encode(), b"x" * size, 1, {})


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def writer(slow: Slow) -> Iterator[BatchWriter]:
    writer = BatchWriter(cast("Store", slow), most_waiting=5, most_bytes=100, group=3)
    yield writer
    for _ in range(20):
        slow.go.release()
    writer.stop()


def hold(writer: BatchWriter, slow: Slow) -> Future[str]:
    """Keep the writer busy with a first batch."""
    first = submit(writer, batch("first"))
    assert slow.begun.acquire(timeout=PATIENT_SECONDS)
    return first


def test_an_outcome_comes_after_the_commit_and_to_its_own_batch(writer: BatchWriter, slow: Slow):
    first = hold(writer, slow)
    others = [submit(writer, batch(name)) for name in "abcd"]
    assert not first.done()
    slow.go.release()
    assert first.result(PATIENT_SECONDS) == "outcome of first"
    assert not any(other.done() for other in others)
    slow.go.release(2)
    assert [other.result(PATIENT_SECONDS) for other in others] == [f"outcome of {name}" for name in "abcd"]
    assert [[new.batch for new in group] for group in slow.groups] == [[b"first"], [b"a", b"b", b"c"], [b"d"]]


def test_too_many_batches_are_refused_until_there_is_room(writer: BatchWriter, slow: Slow):
    hold(writer, slow)
    for name in "abcde":
        submit(writer, batch(name))
    assert writer.waiting == 5
    with pytest.raises(Busy, match="5 batches wait"):
        submit(writer, batch("f"))
    slow.go.release()
    assert slow.begun.acquire(timeout=PATIENT_SECONDS)  # The next group has been taken out of the queue.
    slow.go.release(10)
    assert submit(writer, batch("f")).result(PATIENT_SECONDS) == "outcome of f"


def test_too_many_bytes_are_refused_until_there_is_room(writer: BatchWriter, slow: Slow):
    hold(writer, slow)
    large = submit(writer, batch("a", 90))
    with pytest.raises(Busy):
        submit(writer, batch("b", 11))
    submit(writer, batch("c", 10))
    slow.go.release(10)
    large.result(PATIENT_SECONDS)
    assert submit(writer, batch("b", 100)).result(PATIENT_SECONDS) == "outcome of b"


@pytest.mark.parametrize("error", [StorageFull("full"), ValueError("a fault of our own"), MemoryError()])
def test_a_transaction_that_fails_fails_its_own_batches(writer: BatchWriter, slow: Slow, error: Exception):
    slow.failures = [None, error]
    first = hold(writer, slow)
    lost = [submit(writer, batch(name)) for name in "abc"]
    kept = submit(writer, batch("d"))
    slow.go.release(3)
    assert first.result(PATIENT_SECONDS) == "outcome of first"
    assert [future.exception(PATIENT_SECONDS) for future in lost] == [error] * 3
    assert kept.result(PATIENT_SECONDS) == "outcome of d"


def test_stopping_finishes_what_was_accepted(writer: BatchWriter, slow: Slow):
    futures = [hold(writer, slow), *(submit(writer, batch(name)) for name in "abcde")]
    slow.go.release(10)
    writer.stop()
    assert all(future.done() for future in futures)
    with pytest.raises(Busy, match="stopping"):
        submit(writer, batch("late"))
    writer.stop()


def test_a_request_given_up_in_time_is_not_stored(writer: BatchWriter, slow: Slow):
    first = hold(writer, slow)
    given_up, other = submit(writer, batch("a")), submit(writer, batch("b"))
    assert given_up.cancel()
    slow.go.release(10)
    assert (first.result(PATIENT_SECONDS), other.result(PATIENT_SECONDS)) == ("outcome of first", "outcome of b")
    assert [new.batch for group in slow.groups for new in group] == [b"first", b"b"]


def test_a_group_given_up_as_a_whole_does_not_end_the_thread(writer: BatchWriter, slow: Slow):
    hold(writer, slow)
    assert all(future.cancel() for future in [submit(writer, batch("a")), submit(writer, batch("b"))])
    slow.go.release(10)
    assert submit(writer, batch("c")).result(PATIENT_SECONDS) == "outcome of c"


def test_many_threads_through_a_real_store(store: Any):
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    writer = BatchWriter(store, group=64)
    futures: list[Future[str]] = []

    def send(me: int) -> None:
        for i in range(100):
            # Every batch is sent by two threads.
            futures.append(submit(writer, NewBatch(A, f"{me // 2}/{i}".encode().ljust(16), b"x" * 16, 1, {})))

    threads = [threading.Thread(target=send, args=(me,)) for me in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.stop()
    outcomes = [future.result(0) for future in futures]
    assert (outcomes.count(STORED), outcomes.count(DUPLICATE)) == (300, 300)
    assert store.stored_reports(A) == 300


class Counting:
    """A running loop's wake-ups from other threads, counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wakes, loop = 0, asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def counted(*given: Any, **more: Any) -> Any:
            self.wakes += 1
            return wake(*given, **more)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)


@pytest.mark.parametrize("prompt", [0.0, PATIENT_SECONDS])
def test_a_commit_wakes_the_event_loop_once(monkeypatch: pytest.MonkeyPatch, slow: Slow, prompt: float):
    """However many requests wait: one turn of the loop is one group, and one group is one wake-up.

    There is none if the loop itself waits for the commit.
    """
    monkeypatch.setattr(outcomes_module, "PROMPT_SECONDS", prompt)
    writer = BatchWriter(cast("Store", slow), group=1000)

    async def send() -> None:
        counting, outcomes = Counting(monkeypatch), Outcomes(writer)
        for turn in range(3):
            names = [f"{turn}/{i}" for i in range(200)]
            waiting = asyncio.gather(*(outcomes.of(batch(name)) for name in names))
            if not prompt:
                # The loop goes on while a commit takes long.
                while not slow.begun.acquire(blocking=False):
                    await asyncio.sleep(0)
            slow.go.release()
            told = await waiting
            assert told == [f"outcome of {name}" for name in names]
            assert counting.wakes == (0 if prompt else turn + 1)

    run_async(send())
    assert [len(group) for group in slow.groups] == [200] * 3
    writer.stop()


def test_batches_gather_while_the_writer_is_busy(slow: Slow):
    """What came meanwhile is the next group, whether it was given up or not, and however many turns the loop took."""
    writer = BatchWriter(cast("Store", slow), group=1000)

    async def send() -> None:
        outcomes = Outcomes(writer)
        first = outcomes.of(batch("first"))
        await asyncio.to_thread(slow.begun.acquire)
        waiting: list[asyncio.Future[Any]] = []
        for name in "abcd":
            waiting.append(outcomes.of(batch(name)))
            await asyncio.sleep(0)
        waiting[1].cancel()
        assert writer.waiting == 0
        slow.go.release(10)
        assert await first == "outcome of first"
        assert [await ended(each) for each in waiting if not each.cancelled()] == [
            f"outcome of {name}" for name in "acd"
        ]
        assert await outcomes.of(batch("last")) == "outcome of last"

    run_async(send())
    assert [[new.batch for new in group] for group in slow.groups] == [[b"first"], [b"a", b"c", b"d"], [b"last"]]
    writer.stop()


def test_requests_of_the_loop_are_given_up_refused_and_failed_like_others(
    writer: BatchWriter, slow: Slow, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(outcomes_module, "MOST_GATHERED", 1)

    async def send() -> None:
        outcomes = Outcomes(writer)
        slow.failures = [None, StorageFull("full")]
        first = outcomes.of(batch("first"))
        await asyncio.to_thread(slow.begun.acquire)
        waiting = [outcomes.of(batch(name)) for name in "abcdef"]
        waiting[0].cancel()
        with pytest.raises(Busy, match="5 batches wait"):
            await waiting[5]
        slow.go.release(10)
        assert await first == "outcome of first"
        # A group of three is taken from the queue; the request that was given up is one of them.
        assert [type(await ended(each)) for each in waiting[1:5]] == [StorageFull, StorageFull, str, str]

    run_async(send())
    assert b"a" not in [new.batch for group in slow.groups for new in group]


def test_a_full_queue_leaves_nobody_waiting_for_ever(slow: Slow, monkeypatch: pytest.MonkeyPatch):
    """While the queue is full, the loop is ready to wait for a commit; it must be woken by the one under way."""
    writer = BatchWriter(cast("Store", slow), most_waiting=1)

    async def send() -> None:
        monkeypatch.setattr(outcomes_module, "MOST_GATHERED", 1)
        outcomes = Outcomes(writer)
        first = outcomes.of(batch("first"))
        await asyncio.to_thread(slow.begun.acquire)
        second = outcomes.of(batch("second"))
        # The second fills the queue in this turn, so that of the others none is taken.
        await asyncio.sleep(0)
        refused = [outcomes.of(batch(str(i))) for i in range(outcomes_module.MANY)]
        assert {type(await ended(each)) for each in refused} == {Busy}
        slow.go.release(10)
        told = await asyncio.wait_for(asyncio.gather(first, second), PATIENT_SECONDS)
        assert told == ["outcome of first", "outcome of second"]
        assert await outcomes.of(batch("later")) == "outcome of later"

    run_async(send())
    writer.stop()


class Told(Callers):
    """Callers that note what they are told: all at once, or one by one."""

    def __init__(self, names: Sequence[str], told: dict[str, Any]) -> None:
        self.names, self.told = list(names), told

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return Told(self.names[place], self.told)
        future: Future[Any] = Future()
        name = self.names[place]
        future.add_done_callback(lambda done: self.told.__setitem__(name, done.exception() or done.result()))
        return future

    def stored(self) -> None:
        self.told |= dict.fromkeys(self.names, "all stored")


def single(names: str) -> SingleBatches:
    return SingleBatches(A, [name.encode() for name in names], b"x" * len(names))


def test_groups_of_single_reports_are_cut_where_there_is_no_room_and_answered_like_others(
    writer: BatchWriter, slow: Slow
):
    first, told = hold(writer, slow), dict[str, Any]()

    def tell(waiters: Sequence[Any], outcomes: Any) -> None:
        for waiter, outcome in zip(waiters, outcomes, strict=True):
            waiter.set_result(outcome)

    # Room for five: three of one transaction, and two of the next, which another batch does not get into any more.
    assert writer.submit_groups([(single("abcdefg"), Told("abcdefg", told)), ([batch("h")], [Future()])], tell) == [
        5,
        0,
    ]
    assert writer.waiting == 5
    slow.go.release(10)
    assert first.result(PATIENT_SECONDS) == "outcome of first"
    writer.stop()
    assert told == {name: f"outcome of {name}" for name in "abcde"}
    assert [[new.batch for new in group] for group in slow.groups[1:]] == [[b"a", b"b", b"c"], [b"d", b"e"]]


def test_groups_that_come_together_share_a_transaction(slow: Slow):
    writer = BatchWriter(cast("Store", slow), group=1000)
    first, told = hold(writer, slow), dict[str, Any]()
    other: Future[Any] = Future()

    def tell(waiters: Sequence[Any], outcomes: Any) -> None:
        for waiter, outcome in zip(waiters, outcomes, strict=True):
            waiter.set_result(outcome)

    assert writer.submit_groups([(single("ab"), Told("ab", told)), ([batch("c")], [other])], tell) == [2, 1]
    slow.go.release(10)
    writer.stop()
    assert first.done() and other.result(0) == "outcome of c"
    assert told == {"a": "outcome of a", "b": "outcome of b"}
    assert [[new.batch for new in group] for group in slow.groups[1:]] == [[b"a", b"b", b"c"]]


async def ended(waiter: asyncio.Future[Any]) -> Any:
    """An outcome, or the error in its place."""
    return (await asyncio.gather(waiter, return_exceptions=True))[0]


def test_a_loop_that_has_ended_does_not_end_the_writer(writer: BatchWriter, slow: Slow):
    async def leave() -> None:
        outcomes = Outcomes(writer)
        outcomes.of(batch("left"))
        await asyncio.sleep(0)

    run_async(leave())
    slow.go.release(10)
    assert submit(writer, batch("next")).result(PATIENT_SECONDS) == "outcome of next"
    assert [new.batch for group in slow.groups for new in group] in ([b"left", b"next"], [b"next"])
