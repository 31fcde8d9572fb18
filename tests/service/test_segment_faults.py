"""Power cuts, kills and failing disks while rows are sealed and merged: every acknowledged row is there, once.

The disk of these tests remembers which files were synced and which names were. When the power goes, what was not synced
is cut off, and a name that was not synced may be gone.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.crowd import SIZE, Crowd, Sent
from tests.service.row_bench import Bench
from tests.service.row_bodies import ARROW, publish_rows, stream, table, twin
from tests.service.served import Forgetful, Hasty, Served, served
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.collector.ports import Fold
from tacit.collector.rows import sealing, segments
from tacit.collector.rows.segments import SegmentFiles
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.errors import SegmentDamaged, StorageFull, StorageUnavailable
from tacit.hosting import durable
from tacit.wire.batch import new_batch_id


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On the disk: where a commit takes its time, a kill comes before its acknowledgement more often."""
    return tmp_path_factory.mktemp("killed")


# Power cuts.


class PowerCut(BaseException):
    """Nothing runs any more."""


class Disk:
    """What `segments` takes for the operating system: counts down to a power cut at whatever reaches the disk."""

    def __init__(self, *, honest: bool = True) -> None:
        self.moments: int | None = None
        self.error: OSError | None = None
        self._honest, self._synced, self._named = honest, set[int](), list[Path]()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _moment(self) -> None:
        if self.moments is not None:
            self.moments -= 1
            if self.moments < 0:
                raise self.error or PowerCut

    def open(self, path: Any, *given: int) -> int:
        self._moment()
        return os.open(path, *given)

    def fsync(self, descriptor: int) -> None:
        self._moment()
        state = os.fstat(descriptor)
        if self._honest and stat.S_ISDIR(state.st_mode):
            self._named = [path for path in self._named if path.parent.stat().st_ino != state.st_ino]
        elif self._honest:
            self._synced.add(state.st_ino)

    def replace(self, old: Path, new: Path) -> None:
        self._moment()
        os.replace(old, new)
        self._named.append(Path(new))

    def cut(self, folder: Path, rng: np.random.Generator) -> None:
        """Leave in a folder what a power cut at this moment leaves."""
        for path in folder.glob("*/*"):
            if path.stat().st_ino not in self._synced:
                os.truncate(path, int(rng.integers(path.stat().st_size + 1)))
        for path in self._named:
            if rng.random() < 0.5:
                path.unlink(missing_ok=True)


class Cutting(SqliteStore):
    """A store under which the power goes between the files and the transaction, or just after it."""

    when = ""

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int) -> int:
        def folded(data: Any, batches: Any) -> bytes:
            made = fold(data, batches)
            if self.when == "before":
                raise PowerCut
            return made

        done = super().fold_some(collection, shard, folded, most)
        if self.when == "after":
            raise PowerCut
        return done


@dataclass
class Life:
    """What went in, and what there must be."""

    folder: Path
    disk: Disk
    rng: np.random.Generator

    def run(self, moments: int | None, when: str = "") -> bool:
        """Seal twice, then once more until the power goes; True if it went."""
        store = Cutting(self.folder / "data")
        bench, cut = Bench(store), False
        bench.seal(range(40))
        bench.seal(range(40, 50))
        bench.add(range(50, 80))
        bench.add(range(80, 90))
        self.disk.moments, store.when = moments, when
        try:
            bench.collector.folder.fold_some(bench.active)
        except (PowerCut, StorageUnavailable):
            cut = True
        self.disk.moments, store.when = None, ""
        bench.collector.stop()
        self.disk.cut(self.folder / "data" / "segments", self.rng)
        self.after(bench.id)
        return cut

    def after(self, collection: str) -> None:
        """What a new process finds."""
        bench = Bench(SqliteStore(self.folder / "data"), collection)
        try:
            sealed = sum(entry.rows for entry in bench.entries)
            assert bench.store.stored_reports(collection) == 90
            assert sealed in (50, 90)
            assert bench.values() == list(range(90))
            bench.sweep()
            assert {path.name for path in bench.files} == {entry.file for entry in bench.entries}
            bench.collector.files._checked.clear()
            assert bench.values() == list(range(90))
        finally:
            bench.collector.stop()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    for module in (segments, durable):  # Files are synchronised by one, folders by the other.
        monkeypatch.setattr(module, "os", made)
    return made


@pytest.mark.parametrize("merging", [True, False], ids=["merging", "alone"])
@pytest.mark.parametrize("error", [None, errno.EIO, errno.ENOSPC], ids=["power cut", "i/o error", "full"])
@pytest.mark.slow_cases("i/o error-merging", "power cut-alone", "full-merging", "full-alone")
def test_a_fault_at_any_moment_of_sealing_loses_nothing(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merging: bool, error: int | None
):
    if not merging:
        monkeypatch.setattr(sealing, "to_merge", lambda *_: [])
    disk.error = None if error is None else OSError(error, os.strerror(error))
    for moments in range(50):
        folder = tmp_path / str(moments)
        folder.mkdir()
        if not Life(folder, disk, np.random.default_rng(moments)).run(moments):
            break
    assert 6 <= moments < 50, "the file, its name and its folder must all have been interrupted, and then no more"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_power_cut_around_the_commit_loses_nothing(disk: Disk, tmp_path: Path, when: str):
    assert Life(tmp_path, disk, np.random.default_rng(1)).run(None, when)


def test_the_check_tells_a_disk_that_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The proof that the tests above can fail: syncs that do nothing lose what was named."""
    disk = Disk(honest=False)
    for module in (segments, durable):
        monkeypatch.setattr(module, "os", disk)
    with pytest.raises(SegmentDamaged):
        Life(tmp_path, disk, np.random.default_rng(2)).run(None, "after")


def test_errors_of_the_disk_are_told_apart(disk: Disk, tmp_path: Path):
    bench = Bench(SqliteStore(tmp_path / "data"))
    for number, kind in ((errno.ENOSPC, StorageFull), (errno.EDQUOT, StorageFull), (errno.EIO, StorageUnavailable)):
        bench.add([number])
        disk.moments, disk.error = 0, OSError(number, os.strerror(number))
        with pytest.raises(kind, match="segments"):
            bench.values()
        disk.moments = None
    assert bench.values() == sorted([errno.ENOSPC, errno.EDQUOT, errno.EIO])
    bench.collector.stop()


# Real servers, killed.


class RowServer:
    """A server whose clients send rows: the first 16 bytes of a body are the batch id of an Arrow stream."""

    def __init__(self, server: Served) -> None:
        self._server = server

    def _form(self, body: bytes) -> tuple[bytes, str, dict[str, str]]:
        # A random batch id may begin like JSON, but an Arrow stream ends with zeros.
        if body.endswith(b"}"):
            return body, "application/json", {}
        return body[16:], ARROW, {"Tacit_Batch": body[:16].hex()}

    def send(self, collection: str, body: bytes) -> Any:
        data, form, head = self._form(body)
        return self._server.send(collection, data, form, **head)

    def begin(self, collection: str, body: bytes) -> Any:
        data, form, head = self._form(body)
        return self._server.begin(collection, data, form, **head)


class RowCrowd(Crowd):
    """Clients that send unique values with their rows, in both forms."""

    def _compose(self, count: int) -> Sent:
        with self._lock:
            values, name = range(self._next, self._next + count), new_batch_id()
            self._next += count
            if name[0] % 2:
                body = twin(self.collection, values, name)
            else:
                body = name + stream(table(values))
            self.sent.append(Sent(values, body))
            return self.sent[-1]


def counts_of(store: Any, collection: str) -> Any:
    """How often every value is sealed or waits, and a look at the files, when no server runs."""
    bench = Bench(store, collection)
    try:
        while bench.collector.folder.fold_all(collection, 10):
            pass
        values = bench.values()
        assert len(values) == store.stored_reports(collection)
        bench.sweep()
        assert {path.name for path in bench.files} == {entry.file for entry in bench.entries}
        return np.bincount(values, minlength=SIZE)
    finally:
        bench.collector.stop()


def kill_again_and_again(folder: Path, cycles: int, sqlite: type[SqliteStore] = SqliteStore) -> tuple[RowCrowd, Any]:
    rng = np.random.default_rng(9)
    folder.mkdir(exist_ok=True)
    store = SqliteStore(folder / "data")
    mine = publish_rows(store, SIZE)
    store.close()
    with served(str(folder / "data"), folder, sqlite) as server:
        crowd = RowCrowd([RowServer(server)], mine)  # type: ignore[list-item]
        with crowd.sending():
            for _ in range(cycles):
                crowd.wait_for_more(25)
                # Kill while a file is being written, or just after: that is when something can go wrong.
                # Where none is seen for a while, the kill comes anyway: nothing is concluded from the time.
                end = time.monotonic() + 1
                while time.monotonic() < end and not list((folder / "data").glob(f"segments/*/*{segments.PART}")):
                    time.sleep(0.0005)
                time.sleep(rng.choice([0, 0, 0.002, 0.01, 0.1]))
                server.kill()
                server.start()
        server.kill()
    return crowd, counts_of(SqliteStore(folder / "data"), mine)


@pytest.mark.parametrize("cycles", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_a_server_killed_while_it_seals_keeps_every_acknowledged_row_once(tmp_path: Path, cycles: int):
    crowd, counts = kill_again_and_again(tmp_path, cycles)
    crowd.check(counts)
    assert crowd.acknowledged >= 25 * cycles
    assert crowd.statuses[200] > 0, "no duplicate was ever answered"
    assert crowd.acknowledged < len(crowd.sent), "no response was ever dropped"


@pytest.mark.parametrize(
    ("sqlite", "fault"), [(Forgetful, "counted twice"), pytest.param(Hasty, "is lost", marks=pytest.mark.slow)]
)
def test_the_check_tells_a_server_that_counts_twice_or_loses(tmp_path: Path, sqlite: type[SqliteStore], fault: str):
    """The proof that the test above can fail; a kill may find nothing promised too early, so some are tried."""
    faults: list[str] = []
    for attempt in range(6):
        crowd, counts = kill_again_and_again(tmp_path / str(attempt), 1, sqlite)
        try:
            crowd.check(counts)
        except AssertionError as error:
            faults.append(str(error))
            break
    assert faults and fault in faults[0]


@pytest.fixture
def pair(postgres: Any, tmp_path: Path) -> Iterator[list[Served]]:
    """Two collectors on one database, with one folder for segments."""
    with ExitStack() as stack:
        yield [stack.enter_context(served(postgres.url, tmp_path)) for _ in range(2)]


@pytest.mark.slow
def test_two_collectors_seal_into_one_folder_and_are_killed(
    pair: list[Served], postgres: Any, make_store: Any, tmp_path: Path
):
    store = make_store(postgres.url)
    mine = publish_rows(store, SIZE)
    crowd = RowCrowd([RowServer(server) for server in pair], mine)  # type: ignore[misc]
    with crowd.sending():
        for i in range(15):
            crowd.wait_for_more(20)
            pair[i % 2].kill()
            crowd.wait_for_more(10)
            pair[i % 2].start()
        crowd.wait_for_more(20)
    crowd.send_the_rest()
    for server in pair:
        server.stop()
        assert '"level": "error"' not in server.log.read_text()
    assert len(store.tallies(mine)) >= 2, "both have sealed"
    counts = counts_of(store, mine)
    crowd.check(counts)
    assert counts.sum() == sum(len(sent.values) for sent in crowd.sent)


def test_a_folder_that_cannot_be_written_holds_up_sealing_and_nothing_else(tmp_path: Path):
    store = SqliteStore(tmp_path / "data")
    mine = publish_rows(store, SIZE)
    store.close()
    with served(str(tmp_path / "data"), tmp_path) as server:
        rows = RowServer(server)
        assert rows.send(mine, new_batch_id() + stream(table(range(100))))[0] == 201
        wait_until(lambda: list((tmp_path / "data").glob("segments/*/*.parquet")))
        (tmp_path / "data" / "segments" / mine).rename(tmp_path / "away")
        (tmp_path / "data" / "segments" / mine).write_bytes(b"in the way")
        for i in range(3):
            assert rows.send(mine, new_batch_id() + stream(table(range(100 + i, 101 + i))))[0] == 201
        wait_until(lambda: "failed with" in server.log.read_text())
        assert server.get("/healthz")[0] == 200
        (tmp_path / "data" / "segments" / mine).unlink()
        (tmp_path / "away").rename(tmp_path / "data" / "segments" / mine)
        server.stop()
    assert counts_of(SqliteStore(tmp_path / "data"), mine)[:103].tolist() == [1] * 103


def test_the_lock_of_a_killed_process_is_gone(tmp_path: Path):
    files = SegmentFiles(tmp_path / "segments")
    child = os.fork()
    if child == 0:  # pragma: no cover
        with suppress(BaseException), files.shared():
            (tmp_path / "held").touch()
            time.sleep(PATIENT_SECONDS)
        os._exit(1)
    wait_until((tmp_path / "held").exists)
    (tmp_path / "segments" / "c").mkdir()
    (tmp_path / "segments" / "c" / f"x{segments.PART}").touch()
    assert files.sweep(lambda _: []) == 0
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert files.sweep(lambda _: []) == 1
