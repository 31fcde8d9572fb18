"""Group commit: one thread stores the batches of many requests in one transaction.

A commit costs an fsync, however much it holds. While one transaction is being written the next group gathers, so that
groups grow with the load, and a lone batch never waits for others. The queue is bounded in batches and in bytes; when
it is full, batches are refused with Busy (back-pressure).
"""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain, compress
from typing import NamedTuple, Protocol

from tacit.collector.limits import MOST_WAITING_BYTES
from tacit.collector.ports import BatchIntake, NewBatch, Outcome
from tacit.collector.store.singles import payload_bytes
from tacit.errors import Busy, StorageUnavailable


class Waiter(Protocol):
    """The callback handle of a request that waits for its batch's outcome: an asyncio future, or its look-alike."""

    def cancelled(self) -> bool:
        """Whether the request was abandoned, so that its batch need not be stored."""
        ...

    def done(self) -> bool:
        """Whether it has a result, or was abandoned."""
        ...

    def set_result(self, result: Outcome, /) -> None:
        """Deliver the outcome."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Deliver the error of a transaction that failed."""
        ...


class Callers(Sequence[Waiter], ABC):
    """Waiters that never give up, and can be told all at once; they are made one by one only if they are asked for."""

    @abstractmethod
    def stored(self) -> None:
        """Deliver STORED to all of them."""


Tell = Callable[[Sequence[Waiter], Sequence[Outcome] | BaseException], None]
"""A callback with the outcomes of one transaction, or its error. It runs in the writer thread and must not raise."""

Group = tuple[Sequence[NewBatch], Sequence[Waiter]]
"""Batches, and the waiter of each."""


class _Queued(NamedTuple):
    """Batches that came together, and the waiter of each."""

    batches: Sequence[NewBatch]
    waiters: Sequence[Waiter]
    tell: Tell


class BatchWriter:
    """The writer thread. The outcome of a batch is reported exactly once, and not before it is durable."""

    def __init__(
        self, store: BatchIntake, *, most_waiting: int = 4096, most_bytes: int = MOST_WAITING_BYTES, group: int = 512
    ) -> None:
        self._store = store
        self._most_waiting, self._most_bytes, self._group = most_waiting, most_bytes, group
        self._queue: deque[_Queued] = deque()
        self._waiting = self._bytes = 0
        self._stopping = False
        self._failure: StorageUnavailable | None = None
        self._change = threading.Condition(threading.Lock())
        self._thread = threading.Thread(target=self._run, name="tacit-writer", daemon=True)
        self._thread.start()

    def submit_all(self, batches: Sequence[NewBatch], waiters: Sequence[Waiter], tell: Tell) -> int:
        """Queue as many batches as there is room for; returns how many.

        `tell` will be called with the outcomes of those; of the others nothing will be heard, and `refusal` says why.
        """
        return self.submit_groups([(batches, waiters)], tell)[0]

    def submit_groups(self, groups: Sequence[Group], tell: Tell) -> list[int]:
        """`submit_all` for several groups, which may become one transaction."""
        with self._change:
            taken = [self._take(batches, waiters, tell) for batches, waiters in groups]
            if any(taken):
                self._change.notify()
        return taken

    def _take(self, batches: Sequence[NewBatch], waiters: Sequence[Waiter], tell: Tell) -> int:
        """Queue as many batches as fit, and return how many. The lock is held."""
        taken = self._room_for(batches)
        if taken < len(batches):
            batches, waiters = batches[:taken], waiters[:taken]
        if taken:
            self._queue.append(_Queued(batches, waiters, tell))
            self._waiting += taken
            self._bytes += payload_bytes(batches)
        return taken

    def _room_for(self, batches: Sequence[NewBatch]) -> int:
        """How many of these batches fit into the queue. The lock is held."""
        if self._stopping:
            return 0
        most = max(0, min(len(batches), self._most_waiting - self._waiting))
        room = self._most_bytes - self._bytes
        if payload_bytes(batches) <= room:
            return most
        for taken in range(most):
            room -= len(batches[taken].payload)
            if room < 0:
                return taken
        return most

    def refusal(self) -> Busy:
        """The error for a batch that was not queued."""
        if self._stopping:
            return Busy("collector: is stopping; send the same batch again shortly")
        return Busy(f"collector: {self._waiting} batches wait to be stored; send the same one again shortly")

    @property
    def waiting(self) -> int:
        """Number of queued batches (a metric)."""
        return self._waiting

    @property
    def failure(self) -> StorageUnavailable | None:
        """The error of the last transaction if the database could not be written; None once one succeeds."""
        return self._failure

    def recovered(self, failure: StorageUnavailable | None) -> None:
        """Clear a failure after a successful probe; compared by identity, so that a newer failure stays."""
        if self._failure is failure:
            self._failure = None

    def stop(self) -> None:
        """Drain the queue, then end the thread. All outcomes have been reported when this returns."""
        with self._change:
            self._stopping = True
            self._change.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next_group():
            # Abandoned requests are skipped: nobody was promised anything, and the client sends the batch again.
            group = [left for queued in group if (left := _without_abandoned(queued)) is not None]
            if group:
                self._store_group(group)

    def _next_group(self) -> list[_Queued]:
        """What goes into the next transaction; nothing once the writer has stopped."""
        with self._change:
            self._change.wait_for(lambda: self._queue or self._stopping)
            # Bounded, so that after a long stall one commit does not hold all waiting batches at once.
            group, room = list[_Queued](), self._group
            while self._queue and room:
                batches, waiters, tell = self._queue.popleft()
                if len(batches) > room:
                    self._queue.appendleft(_Queued(batches[room:], waiters[room:], tell))
                    batches, waiters = batches[:room], waiters[:room]
                group.append(_Queued(batches, waiters, tell))
                room -= len(batches)
                self._waiting -= len(batches)
                self._bytes -= payload_bytes(batches)
            return group

    def _store_group(self, group: list[_Queued]) -> None:
        # What came together goes on together; only what came apart is put into a list.
        batches = group[0].batches if len(group) == 1 else list(chain.from_iterable(queued.batches for queued in group))
        outcomes: list[Outcome] | BaseException
        try:
            outcomes = self._store.add_batches(batches)
            if len(outcomes) != len(batches):
                raise RuntimeError(f"storage: {len(outcomes)} outcomes for {len(batches)} batches")
            self._failure = None
        except BaseException as error:
            # Whatever it was, the waiters must get it, and the thread must go on: without it the collector would accept
            # requests that are never answered.
            outcomes = error
            self._failure = error if isinstance(error, StorageUnavailable) else self._failure
        _tell(group, outcomes)


def _without_abandoned(queued: _Queued) -> _Queued | None:
    """What is left of queued batches whose requests were given up, which is told to them; None if nothing is."""
    batches, waiters, tell = queued
    if isinstance(waiters, Callers):
        return queued
    gone = [waiter.cancelled() for waiter in waiters]
    if not any(gone):
        return queued
    tell(list(compress(waiters, gone)), Busy("collector: the request was given up"))
    if all(gone):
        return None
    stay = [not is_gone for is_gone in gone]
    return _Queued(list(compress(batches, stay)), list(compress(waiters, stay)), tell)


def _tell(group: list[_Queued], outcomes: "list[Outcome] | BaseException") -> None:
    """Report the outcomes of a transaction."""
    at = 0
    for _, waiters, tell in group:
        tell(waiters, outcomes if isinstance(outcomes, BaseException) else outcomes[at : at + len(waiters)])
        at += len(waiters)
