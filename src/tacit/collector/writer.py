"""Group commit: one thread stores the batches of many requests in one transaction.

A commit waits for the disk, however much it holds. While one transaction is being written the next group gathers, so
that the more there is to do the larger the groups become, and a lone batch is not kept waiting.
"""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any, Protocol

from tacit.collector.limits import MOST_WAITING_BYTES
from tacit.collector.ports import NewBatch, Store
from tacit.errors import Busy, StorageUnavailable


class Audience(Protocol):
    """Those who wait for outcomes; what stands for one of them is their own affair."""

    def claim(self, waiter: Any) -> bool:
        """Say, just before a transaction, whether somebody still wants this batch stored. In the writer's thread."""
        ...

    def tell(self, waiters: "Sequence[Any]", outcomes: "Sequence[str] | BaseException") -> None:
        """Hear what became of batches of one transaction, or why it failed. In the writer's thread; never raises."""
        ...


Item = tuple[NewBatch, Any, Audience]


class _Futures:
    """An audience of futures, one for each batch."""

    def claim(self, waiter: "Future[str]") -> bool:
        return waiter.set_running_or_notify_cancel()

    def tell(self, waiters: "Sequence[Future[str]]", outcomes: "Sequence[str] | BaseException") -> None:
        for i, future in enumerate(waiters):
            if isinstance(outcomes, BaseException):
                future.set_exception(outcomes)
            else:
                future.set_result(outcomes[i])


_FUTURES = _Futures()


class Writer:
    """A thread that stores batches; a batch's outcome is told once, and only once, it is durable."""

    def __init__(
        self, store: Store, *, most_waiting: int = 4096, most_bytes: int = MOST_WAITING_BYTES, group: int = 512
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

    def submit(self, batch: NewBatch) -> "Future[str]":
        """Take a batch, and promise its outcome; `Busy` if too much is waiting already, or on the way out."""
        future: Future[str] = Future()
        if not self.submit_all([batch], [future], _FUTURES):
            raise self.refusal()
        return future

    def submit_all(self, batches: Sequence[NewBatch], waiters: Sequence[Any], audience: Audience) -> int:
        """Take batches as long as there is room, and promise to tell their outcomes; returns how many were taken."""
        with self._change:
            taken = self._room_for(batches)
            if taken:
                self._waiting.extend(zip(batches[:taken], waiters, repeat(audience), strict=False))
                self._change.notify()
        return taken

    def _room_for(self, batches: Sequence[NewBatch]) -> int:
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
        """Why a batch was not taken."""
        if self._stopping:
            return Busy("collector: is stopping; send the same batch again shortly")
        return Busy(f"collector: {len(self._waiting)} batches wait to be stored; send the same one again shortly")

    @property
    def waiting(self) -> int:
        """Number of batches that wait to be stored."""
        return len(self._waiting)

    @property
    def failure(self) -> StorageUnavailable | None:
        """Why the last transaction failed, if the database could not be written; None once one succeeds."""
        return self._failure

    def recovered(self, failure: StorageUnavailable | None) -> None:
        """Say that the database can be written again; a failure that came after this one stays."""
        if self._failure is failure:
            self._failure = None

    def stop(self) -> None:
        """Store what was accepted, then end. Everything promised is settled when this returns."""
        with self._change:
            self._stopping = True
            self._change.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next_group():
            # A request that was given up before its turn has nobody left to tell, and is sent again if it matters.
            live = [item for item in group if item[2].claim(item[1])]
            if live:
                self._store_group(live)

    def _next_group(self) -> list[Item]:
        """Wait for batches and take them; none when stopping and all are done."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._stopping)
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._group))]
            self._bytes -= sum(len(batch.payload) for batch, _, _ in group)
            return group

    def _store_group(self, group: list[Item]) -> None:
        outcomes: list[str] | BaseException
        try:
            outcomes = self._store.add_batches([batch for batch, _, _ in group])
            if len(outcomes) != len(group):
                raise RuntimeError(f"storage: {len(outcomes)} outcomes for {len(group)} batches")
            self._failure = None
        except BaseException as error:
            # Whatever it was, those who wait must hear of it, and the thread must live on for those who come after.
            outcomes = error
            self._failure = error if isinstance(error, StorageUnavailable) else self._failure
        at = 0
        for audience, items in groupby(group, itemgetter(2)):
            waiters = [waiter for _, waiter, _ in items]
            mine = outcomes if isinstance(outcomes, BaseException) else outcomes[at : at + len(waiters)]
            audience.tell(waiters, mine)
            at += len(waiters)
