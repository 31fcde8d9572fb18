"""Group commit of uploads: one thread stores the uploads of many requests in one transaction, with one sync.

Refused uploads take the same way as good ones and are counted in the same transaction, so that the time of an answer
does not tell them apart.
"""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import islice

from tacit.errors import Busy, StorageUnavailable
from tacit.shuffler.party_store import PartyStore
from tacit.shuffler.party_uploads import NewUpload

_Item = tuple[Sequence[NewUpload], "Future[list[str]]"]
"""Uploads that came in one request, and their outcomes."""


class UploadWriter:
    """The writer thread. An outcome is told once, and not before it is durable."""

    def __init__(self, store: PartyStore, *, most_waiting: int = 4096, group: int = 512) -> None:
        """Write to a store; more than `most_waiting` uploads in the queue are refused as Busy."""
        self._store, self._most, self._group = store, most_waiting, group
        self._waiting: deque[_Item] = deque()
        self._count = 0
        self._change, self._is_stopping = threading.Condition(), False
        self.failure: StorageUnavailable | None = None
        """The error of the last transaction, if the database could not be written."""
        self._thread = threading.Thread(target=self._run, name="tacit-intake", daemon=True)
        self._thread.start()

    def submit(self, *uploads: NewUpload) -> "Future[list[str]]":
        """Queue the uploads of a request; its future has their outcomes."""
        told: Future[list[str]] = Future()
        with self._change:
            if self._is_stopping or self._count >= self._most:
                raise Busy("shuffler: too many uploads wait to be stored; send the same one again shortly")
            self._waiting.append((uploads, told))
            self._count += len(uploads)
            self._change.notify()
        return told

    def stop(self) -> None:
        """Write the queued uploads, then stop the thread."""
        with self._change:
            self._is_stopping = True
            self._change.notify()
        self._thread.join()

    def _run(self) -> None:
        while (group := self._next_group()) is not None:
            try:
                outcomes = iter(self._store.add_uploads([upload for uploads, _ in group for upload in uploads]))
                self.failure = None
            except Exception as error:
                self.failure = error if isinstance(error, StorageUnavailable) else self.failure
                for _, told in group:
                    told.set_exception(error)
                continue
            for uploads, told in group:
                told.set_result(list(islice(outcomes, len(uploads))))

    def _next_group(self) -> list[_Item] | None:
        """Wait for uploads and take about a group of them; None when stopping and the queue is drained."""
        items, size = list[_Item](), 0
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._is_stopping)
            while self._waiting and size < self._group:
                items.append(self._waiting.popleft())
                size += len(items[-1][0])
            self._count -= size
        # Whoever was abandoned by its request is left out; the client will send the same upload again.
        return [item for item in items if item[1].set_running_or_notify_cancel()] if items else None
