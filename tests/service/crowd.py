"""Clients that send values without noise to real servers, and the check that each was counted once.

Every value is sent in one batch only: a count of 2 is a double count, and an acknowledged value with a count of 0 is a
loss.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

import numpy as np
from tests.service.plain import PLAIN, NoNoise, binary, wide_draft
from tests.service.served import Served, hang_up
from tests.service.waiting import wait_until

from tacit.catalog import CATALOG
from tacit.collector.ports import Store
from tacit.collector.service import Collector
from tacit.wire.batch import new_batch_id

SIZE = 1 << 18
WIDTH = 4
CLIENTS = 8


@dataclass
class Sent:
    """A batch on its way: the same bytes, however often they are sent."""

    values: range
    body: bytes
    is_acknowledged: bool = False


@dataclass
class Crowd:
    """Clients that send unique values, some twice, some without waiting for the answer, until they are told to stop."""

    servers: list[Served]
    collection: str
    sent: list[Sent] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter[int])
    strange: list[Any] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _next: int = 0

    @property
    def acknowledged(self) -> int:
        return sum(sent.is_acknowledged for sent in self.sent)

    def _compose(self, count: int) -> Sent:
        with self._lock:
            values = range(self._next, self._next + count)
            self._next += count
            payload = np.arange(values.start, values.stop, dtype="<u4").tobytes()
            self.sent.append(Sent(values, binary(self.collection, payload, width=WIDTH, batch=new_batch_id())))
            return self.sent[-1]

    def _post(self, server: Served, sent: Sent) -> bool:
        """Send a batch once; True if it is acknowledged."""
        try:
            status, reply = server.send(self.collection, sent.body)
        except (OSError, HTTPException):
            return False
        with self._lock:
            self.statuses[status] += 1
            if status in (200, 201):
                sent.is_acknowledged = True
            elif status not in (503, 507) or not reply["type"].startswith("urn:tacit:error:"):
                self.strange.append((status, reply))
        return status in (200, 201)

    def _client(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        mine: list[Sent] = []
        while not self._stop.is_set() and self._next < SIZE - 10_000:
            server = self.servers[rng.integers(len(self.servers))]
            # Now and then something old is sent again, whether or not it was acknowledged.
            sent = mine[rng.integers(len(mine))] if mine and rng.random() < 0.2 else self._compose(rng.integers(1, 40))
            mine.append(sent)
            if rng.random() < 0.2:
                with suppress(OSError):
                    connection = server.begin(self.collection, sent.body)
                    hang_up(connection) if rng.random() < 0.5 else connection.close()
            elif not self._post(server, sent):
                time.sleep(0.05)  # A refusal is followed by a pause, as with any client.

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send for as long as the block runs."""
        self._stop.clear()
        seeds = [len(self.sent) * CLIENTS + i for i in range(CLIENTS)]
        threads = [threading.Thread(target=self._client, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def wait_for_more(self, batches: int) -> None:
        """Until so many more are acknowledged."""
        enough = self.acknowledged + batches
        wait_until(lambda: self.acknowledged >= enough, lambda: (self.statuses, self.strange[:3]))

    def send_the_rest(self) -> None:
        """Retry what was never acknowledged, as devices do; afterwards everything is."""
        for sent in self.sent:
            if not sent.is_acknowledged:
                self.send_now(sent)
        assert self.acknowledged == len(self.sent)

    def send_now(self, sent: Sent | None = None) -> Sent:
        """Send a batch, or a new one, until it is acknowledged (again)."""
        sent = sent or self._compose(1)
        for _ in range(100):
            if self._post(self.servers[0], sent):
                return sent
            time.sleep(0.05)
        raise AssertionError("a batch was never acknowledged")

    def check(self, counts: Any) -> None:
        """Nothing twice, nothing acknowledged missing, no batch in parts."""
        assert self.strange == []
        assert counts.max(initial=0) <= 1, "something was counted twice"
        for sent in self.sent:
            found = set(counts[sent.values.start : sent.values.stop].tolist())
            assert len(found) == 1, "a part of a batch was counted"
            assert found == {1} or not sent.is_acknowledged, "something acknowledged is lost"
        assert not counts[self._next :].any()


def counts_of(store: Store, collection: str) -> Any:
    """How often every value was counted, read from the database when no server runs."""
    collector = Collector(store, catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
    try:
        active = collector.find(collection)
        while collector.folder.fold_all(collection, 10):
            pass
        assert store.stored_reports(collection) == collector.folder.total(active).n
        return collector.folder.total(active).cells
    finally:
        collector.stop()


def start_crowd(*servers: Served) -> Crowd:
    return Crowd(list(servers), servers[0].publish(wide_draft(SIZE, minimum_cohort=1)))
