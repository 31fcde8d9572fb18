"""Group commit: one thread stores the batches of many requests in one transaction.

A commit waits for the disk, however much it holds. While one transaction is being written the next group gathers, so
that the more there is to do the larger the groups become, and a lone batch is not kept waiting.
"""

import threading
from collections import deque
from concurrent.futures import Future

from tacit.collector.ports import NewBatch, Store
from tacit.errors import Busy

Item = tuple[NewBatch, Future[str]]


class Writer:
    """A thread that stores batches; a batch's future has its outcome once, and only once, it is durable."""

    def __init__(self, store: Store, *, most_waiting: int = 4096, most_bytes: int = 1 << 26, group: int = 512) -> None:
        self._store = store
        self._most_waiting, self._most_bytes, self._group = most_waiting, most_bytes, group
        self._waiting: deque[Item] = deque()
        self._bytes = 0
        self._stopping = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="tacit-writer", daemon=True)
        self._thread.start()

    def submit(self, batch: NewBatch) -> Future[str]:
        """Take a batch, and promise its outcome; `Busy` if too much is waiting already, or on the way out."""
        future: Future[str] = Future()
        with self._change:
            if self._stopping:
                raise Busy("collector: is stopping; send the same batch again shortly")
            if len(self._waiting) >= self._most_waiting or self._bytes + len(batch.payload) > self._most_bytes:
                raise Busy(
                    f"collector: {len(self._waiting)} batches wait to be stored; send the same one again shortly"
                )
            self._waiting.append((batch, future))
            self._bytes += len(batch.payload)
            self._change.notify()
        return future

    @property
    def waiting(self) -> int:
        """Number of batches that wait to be stored."""
        return len(self._waiting)

    def stop(self) -> None:
        """Store what was accepted, then end. Everything promised is settled when this returns."""
        with self._change:
            self._stopping = True
            self._change.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next_group():
            # A request that was given up before its turn has nobody left to tell, and is sent again if it matters.
            live = [item for item in group if item[1].set_running_or_notify_cancel()]
            if live:
                self._store_group(live)

    def _next_group(self) -> list[Item]:
        """Wait for batches and take them; none when stopping and all are done."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._stopping)
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._group))]
            self._bytes -= sum(len(batch.payload) for batch, _ in group)
            return group

    def _store_group(self, group: list[Item]) -> None:
        try:
            outcomes = self._store.add_batches([batch for batch, _ in group])
            settled = list(zip(group, outcomes, strict=True))
        except BaseException as error:
            # Whatever it was, those who wait must hear of it, and the thread must live on for those who come after.
            for _, future in group:
                future.set_exception(error)
        else:
            for (_, future), outcome in settled:
                future.set_result(outcome)
