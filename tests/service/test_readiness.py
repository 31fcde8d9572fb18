"""/readyz says whether reports can be stored: not on a full disk, and again once there is room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import binary, plain_app, serving, wide_draft
from tests.service.submitting import submit
from tests.service.test_sqlite_faults import Disk
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.ingest.readiness import HOLD_SECONDS, PROBE_SECONDS, Readiness
from tacit.collector.ingest.writer import BatchWriter
from tacit.collector.ports import CollectionRecord, NewBatch
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.errors import StorageFull, StorageUnavailable
from tacit.hosting.clock import Clock

A = "a" * 64


class Brittle(MemoryStore):
    """Fails to write what it is told to, and counts its probes."""

    full_for_reports = full_for_probes = is_low = False
    writes = 0

    def add_batches(self, batches: Any) -> list[str]:
        if self.full_for_reports:
            raise StorageFull("storage: no room")
        return super().add_batches(batches)

    def probe(self, *, write: bool = False) -> bool:
        self.writes += write
        if write and self.full_for_probes:
            raise StorageFull("storage: no room")
        return self.is_low


class Desk:
    """A store, a writer, and a clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.store, self.now, self._sent = Brittle(), 100.0, 0
        self.store.add_collection(CollectionRecord(A, "published", b"{}"))
        self.writer = BatchWriter(self.store)
        self.readiness = Readiness(self.store, self.writer, Clock(seconds=lambda: self.now))

    def send(self) -> None:
        self._sent += 1
        submit(self.writer, NewBatch(A, self._sent.to_bytes(16, "little"), b"x", 1, {})).exception(PATIENT_SECONDS)

    @property
    def is_ready(self) -> bool:
        try:
            self.readiness.check()
        except StorageUnavailable as error:
            assert not isinstance(error, StorageFull), "a full disk is 507 to a report, and 503 to whoever asks"
            return False
        return True


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.writer.stop()


def test_a_commit_that_failed_and_none_since(desk: Desk):
    assert desk.is_ready
    desk.store.full_for_reports = True
    desk.send()
    assert not desk.is_ready
    # A small write succeeds where reports do not: what reports say counts, for a while.
    desk.now += HOLD_SECONDS / 2
    desk.send()
    assert not desk.is_ready
    desk.now += HOLD_SECONDS / 2
    assert not desk.is_ready, "the last failure is more recent"
    assert desk.store.writes == 0
    desk.now += HOLD_SECONDS
    assert desk.is_ready and desk.store.writes == 1
    desk.send()
    assert not desk.is_ready


def test_a_commit_that_succeeds_is_enough(desk: Desk):
    desk.store.full_for_reports = True
    desk.send()
    assert not desk.is_ready
    desk.store.full_for_reports = False
    desk.send()
    assert desk.is_ready and desk.store.writes == 0


def test_without_reports_a_write_of_its_own_finds_room_again(desk: Desk):
    desk.store.full_for_reports = desk.store.full_for_probes = True
    desk.send()
    for _ in range(5):
        assert not desk.is_ready
        desk.now += HOLD_SECONDS
    desk.store.full_for_probes = False
    desk.now += PROBE_SECONDS
    assert desk.is_ready


def test_a_disk_that_is_nearly_full_is_written_to_now_and_then(desk: Desk):
    assert desk.is_ready and desk.store.writes == 0, "nothing is in doubt"
    desk.store.is_low = True
    for _ in range(10):
        assert desk.is_ready
    assert desk.store.writes == 1
    desk.store.full_for_probes = True
    desk.now += PROBE_SECONDS
    for _ in range(10):
        assert not desk.is_ready
    assert desk.store.writes == 2
    desk.store.full_for_probes = desk.store.is_low = False
    desk.now += PROBE_SECONDS
    assert desk.is_ready


class Crowded(SqliteStore):
    """A store that can be told that its disk has little room left."""

    is_low = False

    def probe(self, *, write: bool = False) -> bool:
        return super().probe(write=write) or self.is_low


def test_readyz_is_503_on_a_full_disk_and_recovers_by_itself(tmp_path: Path):
    disk, clock = Disk("disk-of-readiness"), [100.0]
    store = Crowded(tmp_path, vfs=disk.name)
    app = plain_app(store, clock=Clock(seconds=lambda: clock[0]))
    with serving(app) as client:
        mine = client.publish(wide_draft(200, minimum_cohort=1))
        assert client.http.get("/readyz").status_code == 200
        disk.error, disk.failing = apsw.FullError, frozenset({"write"})
        # Nobody sends anything, and there is no room to speak of.
        store.is_low = True
        reply = client.http.get("/readyz")
        assert (reply.status_code, reply.json()["type"]) == (503, "urn:tacit:error:unavailable")
        store.is_low = False
        # Somebody sends something.
        assert client.send(mine, binary(mine, bytes([1]))).status_code == 507
        clock[0] += 100
        assert [client.http.get(path).status_code for path in ("/readyz", "/healthz")] == [503, 200]
        disk.error = None
        clock[0] += 100
        assert client.http.get("/readyz").status_code == 200
        assert client.send(mine, binary(mine, bytes([1]))).status_code == 201
    disk.unregister()


def test_a_probe_writes_to_either_database(store: Any):
    assert store.probe() in (True, False)
    for _ in range(2):
        store.probe(write=True)
