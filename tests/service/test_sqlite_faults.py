"""Power cuts, full disks and I/O errors, through a disk that is told when to fail.

The disk remembers what each file held when it was last synced and every write since. When the power goes, any of those
writes may have reached the disk, or none of it, or its first part: each is drawn, so that later writes can be there
while earlier ones are not.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from tests.service import numbered
from tests.service.numbered import A, add, batch

from tacit.collector.ports import DUPLICATE, STORED, CollectionRecord
from tacit.collector.store.sqlite.store import FILE, SqliteStore
from tacit.errors import StorageFull, StorageUnavailable
from tacit.hosting import sqlite as sqlite_connection

SECTOR = 512


@dataclass
class Image:
    """One file: what is surely on the disk, and what was written since."""

    synced: bytes
    pending: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    """Places with what was written there; an empty write cuts the file off at that place."""

    def after_power_cut(self, rng: np.random.Generator) -> bytes:
        content = bytearray(self.synced)
        for offset, data in self.pending:
            fate = rng.integers(3)
            if not data:
                del content[offset if fate else len(content) :]
            elif fate:
                part = data if fate == 1 else data[: SECTOR * int(rng.integers(1 + len(data) // SECTOR))]
                content.extend(bytes(max(0, offset + len(part) - len(content))))
                content[offset : offset + len(part)] = part
        return bytes(content)


class Disk(apsw.VFS):
    """A file system that fails on demand. `moments` counts down to a power cut at every write and sync."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self.images: dict[str, Image] = {}
        self.moments: int | None = None
        self.error: type[apsw.Error] | None = None
        self.failing: frozenset[str] = frozenset()

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.moment("write")
        super().xDelete(filename, syncdir)

    def moment(self, operation: str) -> None:
        """Something is about to reach the disk."""
        if self.error is not None and operation in self.failing:
            raise self.error("the disk was told to fail")
        if self.moments is not None:
            self.moments -= 1
            if self.moments < 0:
                raise apsw.IOError("the power is off")

    def cut(self, folder: Path, rng: np.random.Generator) -> None:
        """Leave in a folder what a power cut at this moment leaves."""
        folder.mkdir()
        for path, image in self.images.items():
            if Path(path).exists():
                (folder / Path(path).name).write_bytes(image.after_power_cut(rng))


class File(apsw.VFSFile):
    """A file on such a disk."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._image = disk.images.setdefault(path, Image(Path(path).read_bytes()))

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._disk.moment("write")
        self._image.pending.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.moment("write")
        self._image.pending.append((newsize, b""))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.moment("sync")
        content = bytearray(self._image.synced)
        for offset, data in self._image.pending:
            if data:
                content.extend(bytes(max(0, offset + len(data) - len(content))))
                content[offset : offset + len(data)] = data
            else:
                del content[offset:]
        self._image.synced, self._image.pending = bytes(content), []


numbers = itertools.count()


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk(f"failing-disk-{next(numbers)}")
    yield disk
    disk.unregister()


def counted(store: SqliteStore) -> Counter[int]:
    """How often every number was stored, once everything that waits is folded."""
    while store.fold_some(A, "main", add, 50):
        pass
    return numbered.counted(store)


class Life:
    """A database that lives through one power cut after another."""

    def __init__(self, disk: Disk, folder: Path, rng: np.random.Generator) -> None:
        self.disk, self.folder, self.rng = disk, folder, rng
        self.sent: list[int] = []
        self.acknowledged: set[int] = set()
        self.lost = self.broken = self.cuts = 0
        self.why = ""

    def live(self) -> None:
        """Work until the power goes."""
        self.disk.images.clear()
        self.disk.moments = int(self.rng.integers(4, 120))
        with suppress(StorageUnavailable):
            store = SqliteStore(self.folder, vfs=self.disk.name)
            with suppress(StorageUnavailable):
                self._work(store)
            with suppress(StorageUnavailable, apsw.Error):
                store.close()

    def _work(self, store: SqliteStore) -> None:
        store.add_collection(CollectionRecord(A, "published", b"{}"))
        while True:
            fresh = list(range(len(self.sent), len(self.sent) + int(self.rng.integers(1, 8))))
            self.sent.extend(fresh)
            again = [n for n in self.sent[-20:] if n not in fresh]
            store.add_batches([batch(n) for n in [*fresh, *again]])
            self.acknowledged.update(fresh, again)
            if self.rng.integers(3) == 0:
                store.fold_some(A, "main", add, 5)

    def cut(self) -> None:
        """Look at what is left, and go on from there."""
        self.cuts += 1
        left = self.folder.with_name(f"life-{next(numbers)}")
        self.disk.cut(left, self.rng)
        shutil.rmtree(self.folder)
        self.folder = left
        try:
            self._check()
        except (StorageUnavailable, apsw.Error, AssertionError) as error:
            self.broken += 1
            self.why = repr(error)
            self.acknowledged.clear()
            self.sent.clear()
            (left / FILE).unlink()
            (left / f"{FILE}-wal").unlink(missing_ok=True)
            # A new database while the power holds: making its tables would take up the moments until the next cut.
            self.disk.moments = None
            SqliteStore(left, vfs=self.disk.name).close()

    def _check(self) -> None:
        copy = self.folder.with_name("look")
        self.disk.images.clear()
        self.disk.moments = None
        shutil.copytree(self.folder, copy)
        try:
            store = SqliteStore(copy, vfs=self.disk.name)
            store.add_collection(CollectionRecord(A, "published", b"{}"))
            counts = counted(store)
            outcomes = store.add_batches([batch(n) for n in sorted(self.acknowledged)])
            store.close()
            assert apsw.Connection(str(copy / FILE)).pragma("integrity_check") == "ok"
        finally:
            shutil.rmtree(copy)
        assert set(counts) <= set(self.sent)
        assert max(counts.values(), default=1) == 1
        self.lost += len(self.acknowledged - set(counts))
        assert outcomes.count(STORED) == len(self.acknowledged - set(counts))
        assert outcomes.count(DUPLICATE) == len(self.acknowledged & set(counts))
        self.acknowledged &= set(counts)


def live_through(cuts: int, disk: Disk, folder: Path, rng: np.random.Generator) -> Life:
    life = Life(disk, folder / "data", rng)
    SqliteStore(life.folder, vfs=disk.name).close()
    for _ in range(cuts):
        life.live()
        life.cut()
    return life


def checkpoint_often(monkeypatch: pytest.MonkeyPatch, **changes: str) -> None:
    """Settings under which logs are written back every few commits, where most can go wrong."""
    settings = sqlite_connection.WRITER + "PRAGMA wal_autocheckpoint = 12;"
    for old, new in changes.items():
        assert f"{old} = FULL" in settings
        settings = settings.replace(f"{old} = FULL", f"{old} = {new}")
    monkeypatch.setattr(sqlite_connection, "WRITER", settings)


@pytest.mark.parametrize("cuts", [60, pytest.param(220, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_in_power_cuts(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: int
):
    checkpoint_often(monkeypatch)
    life = live_through(cuts, disk, tmp_path, np.random.default_rng(20))
    assert (life.cuts, life.lost, life.broken, life.why) == (cuts, 0, 0, "")
    assert len(life.acknowledged) > 4 * cuts


@pytest.mark.slow_cases("NORMAL")
@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_power_cuts_do_harm_without_full_synchronisation(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synchronous: str
):
    """The proof that the test above can fail."""
    checkpoint_often(monkeypatch, synchronous=synchronous)
    life = live_through(30, disk, tmp_path, np.random.default_rng(21))
    assert life.lost > 0
    assert life.broken > 0 or synchronous == "NORMAL"


@pytest.mark.parametrize(
    ("error", "refusal", "failing"),
    [
        (apsw.FullError, StorageFull, "write"),
        (apsw.IOError, StorageUnavailable, "write"),
        (apsw.IOError, StorageUnavailable, "sync"),
    ],
)
def test_a_disk_that_fails_is_a_clear_refusal_and_recovers(
    disk: Disk, tmp_path: Path, error: type[apsw.Error], refusal: type[Exception], failing: str
):
    store = SqliteStore(tmp_path / "data", vfs=disk.name)
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    assert store.add_batches([batch(1), batch(2)]) == [STORED] * 2
    disk.error, disk.failing = error, frozenset({failing})
    for number in (3, 3, 4):
        with pytest.raises(refusal, match=FILE) as caught:
            store.add_batches([batch(number, count=2000)])
        assert isinstance(caught.value, StorageUnavailable)
    with pytest.raises(refusal):
        store.fold_some(A, "main", add, 10)
    assert store.stored_reports(A) == 2  # Reading goes on.
    disk.error = None
    assert store.add_batches([batch(2), batch(3), batch(3)]) == [DUPLICATE, STORED, DUPLICATE]
    assert counted(store) == {1: 1, 2: 1, 3: 1}
    store.close()
    again = SqliteStore(tmp_path / "data")
    assert counted(again) == {1: 1, 2: 1, 3: 1}
    again.close()
