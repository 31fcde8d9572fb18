"""Group commit: outcomes after the commit, one group per transaction, nobody forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any, cast

import pytest

from tacit.collector.ports import DUPLICATE, STORED, CollectionRecord, NewBatch, Store
from tacit.collector.writer import Writer
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
        assert self.go.acquire(timeout=10)
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
def writer(slow: Slow) -> Iterator[Writer]:
    writer = Writer(cast("Store", slow), most_waiting=5, most_bytes=100, group=3)
    yield writer
    for _ in range(20):
        slow.go.release()
    writer.stop()


def hold(writer: Writer, slow: Slow) -> Future[str]:
    """Keep the writer busy with a first batch."""
    first = writer.submit(batch("first"))
    assert slow.begun.acquire(timeout=10)
    return first


def test_an_outcome_comes_after_the_commit_and_to_its_own_batch(writer: Writer, slow: Slow):
    first = hold(writer, slow)
    others = [writer.submit(batch(name)) for name in "abcd"]
    assert not first.done()
    slow.go.release()
    assert first.result(10) == "outcome of first"
    assert not any(other.done() for other in others)
    slow.go.release(2)
    assert [other.result(10) for other in others] == [f"outcome of {name}" for name in "abcd"]
    assert [[new.batch for new in group] for group in slow.groups] == [[b"first"], [b"a", b"b", b"c"], [b"d"]]


def test_too_many_batches_are_refused_until_there_is_room(writer: Writer, slow: Slow):
    hold(writer, slow)
    for name in "abcde":
        writer.submit(batch(name))
    assert writer.waiting == 5
    with pytest.raises(Busy, match="5 batches wait"):
        writer.submit(batch("f"))
    slow.go.release()
    assert slow.begun.acquire(timeout=10)  # The next group has been taken out of the queue.
    slow.go.release(10)
    assert writer.submit(batch("f")).result(10) == "outcome of f"


def test_too_many_bytes_are_refused_until_there_is_room(writer: Writer, slow: Slow):
    hold(writer, slow)
    large = writer.submit(batch("a", 90))
    with pytest.raises(Busy):
        writer.submit(batch("b", 11))
    writer.submit(batch("c", 10))
    slow.go.release(10)
    large.result(10)
    assert writer.submit(batch("b", 100)).result(10) == "outcome of b"


@pytest.mark.parametrize("error", [StorageFull("full"), ValueError("a fault of our own"), MemoryError()])
def test_a_transaction_that_fails_fails_its_own_batches(writer: Writer, slow: Slow, error: Exception):
    slow.failures = [None, error]
    first = hold(writer, slow)
    lost = [writer.submit(batch(name)) for name in "abc"]
    kept = writer.submit(batch("d"))
    slow.go.release(3)
    assert first.result(10) == "outcome of first"
    assert [future.exception(10) for future in lost] == [error] * 3
    assert kept.result(10) == "outcome of d"


def test_stopping_finishes_what_was_accepted(writer: Writer, slow: Slow):
    futures = [hold(writer, slow), *(writer.submit(batch(name)) for name in "abcde")]
    slow.go.release(10)
    writer.stop()
    assert all(future.done() for future in futures)
    with pytest.raises(Busy, match="stopping"):
        writer.submit(batch("late"))
    writer.stop()


def test_a_request_given_up_in_time_is_not_stored(writer: Writer, slow: Slow):
    first = hold(writer, slow)
    given_up, other = writer.submit(batch("a")), writer.submit(batch("b"))
    assert given_up.cancel() and not first.cancel()
    slow.go.release(10)
    assert (first.result(10), other.result(10)) == ("outcome of first", "outcome of b")
    assert [new.batch for group in slow.groups for new in group] == [b"first", b"b"]


def test_a_group_given_up_as_a_whole_does_not_end_the_thread(writer: Writer, slow: Slow):
    hold(writer, slow)
    assert all(future.cancel() for future in [writer.submit(batch("a")), writer.submit(batch("b"))])
    slow.go.release(10)
    assert writer.submit(batch("c")).result(10) == "outcome of c"


def test_many_threads_through_a_real_store(store: Any):
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    writer = Writer(store, group=64)
    futures: list[Future[str]] = []

    def send(me: int) -> None:
        for i in range(100):
            # Every batch is sent by two threads.
            futures.append(writer.submit(NewBatch(A, f"{me // 2}/{i}".encode().ljust(16), b"x" * 16, 1, {})))

    threads = [threading.Thread(target=send, args=(me,)) for me in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.stop()
    outcomes = [future.result(0) for future in futures]
    assert (outcomes.count(STORED), outcomes.count(DUPLICATE)) == (300, 300)
    assert store.stored_reports(A) == 300
