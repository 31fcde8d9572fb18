"""Group commit: one thread stores the batches of many requests in one transaction.

A commit costs an fsync, however much it holds. While one transaction is being written the next group gathers, so that
groups grow with the load, and a lone batch never waits for others. The queue is bounded in batches and in bytes; when
it is full, batches are refused with Busy (back-pressure).
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import compress, groupby, repeat
from operator import itemgetter
from typing import Protocol

from tacit.collector.limits import MOST_WAITING_BYTES
from tacit.collector.ports import BatchIntake, NewBatch, Outcome
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


Tell = Callable[[Sequence[Waiter], Sequence[Outcome] | BaseException], None]
"""A callback with the outcomes of one transaction, or its error. It runs in the writer thread and must not raise."""

Item = tuple[NewBatch, Waiter, Tell]


class BatchWriter:
    """The writer thread. The outcome of a batch is reported exactly once, and not before it is durable."""

    def __init__(
        self, store: BatchIntake, *, most_waiting: int = 4096, most_bytes: int = MOST_WAITING_BYTES, group: int = 512
    ) -> None:
        self._store = store
        self._most_waiting, self._most_bytes, self._group = most_waiting, most_bytes, group
        self._waiting: deque[Item] = deque()
        self._bytes = 0
        self._stopping = False
        self._failure: StorageUnavailable | None = None
        self._change = threading.Condition(threading.Lock())
        self._thread = threading.Thread(target=self._run, name="tacit-writer", daemon=True)
        self._thread.start()

    def submit_all(self, batches: Sequence[NewBatch], waiters: Sequence[Waiter], tell: Tell) -> int:
        """Queue as many batches as there is room for; returns how many.

        `tell` will be called with the outcomes of those; of the others nothing will be heard, and `refusal` says why.
        """
        with self._change:
            taken = self._room_for(batches)
            if taken:
                self._waiting.extend(zip(batches[:taken], waiters, repeat(tell), strict=False))
                self._change.notify()
        return taken

    def _room_for(self, batches: Sequence[NewBatch]) -> int:
        """How many of these batches fit into the queue; reserves their bytes. The lock is held."""
        if self._stopping:
            return 0
        most = max(0, min(len(batches), self._most_waiting - len(self._waiting)))
        for taken in range(most):
            size = self._bytes + len(batches[taken].payload)
            if size > self._most_bytes:
                return taken
            self._bytes = size
        return most

    def refusal(self) -> Busy:
        """The error for a batch that was not queued."""
        if self._stopping:
            return Busy("collector: is stopping; send the same batch again shortly")
        return Busy(f"collector: {len(self._waiting)} batches wait to be stored; send the same one again shortly")

    @property
    def waiting(self) -> int:
        """Number of queued batches (a metric)."""
        return len(self._waiting)

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
            gone = [item[1].cancelled() for item in group]
            if any(gone):
                _tell(list(compress(group, gone)), Busy("collector: the request was given up"))
                group = [item for item, is_gone in zip(group, gone, strict=True) if not is_gone]
            if group:
                self._store_group(group)

    def _next_group(self) -> list[Item]:
        """Wait for batches and take up to a group of them; empty when stopping and the queue is drained."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._stopping)
            # Bounded, so that after a long stall one commit does not hold all waiting batches at once.
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._group))]
            self._bytes -= sum(len(batch.payload) for batch, _, _ in group)
            return group

    def _store_group(self, group: list[Item]) -> None:
        outcomes: list[Outcome] | BaseException
        try:
            outcomes = self._store.add_batches([batch for batch, _, _ in group])
            if len(outcomes) != len(group):
                raise RuntimeError(f"storage: {len(outcomes)} outcomes for {len(group)} batches")
            self._failure = None
        except BaseException as error:
            # Whatever it was, the waiters must get it, and the thread must go on: without it the collector would accept
            # requests that are never answered.
            outcomes = error
            self._failure = error if isinstance(error, StorageUnavailable) else self._failure
        _tell(group, outcomes)


def _tell(group: list[Item], outcomes: "list[Outcome] | BaseException") -> None:
    """Report outcomes, with one call per run of batches with the same callback: it wakes an event loop once."""
    at = 0
    for tell, items in groupby(group, itemgetter(2)):
        waiters = [waiter for _, waiter, _ in items]
        tell(waiters, outcomes if isinstance(outcomes, BaseException) else outcomes[at : at + len(waiters)])
        at += len(waiters)
