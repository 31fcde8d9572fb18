"""What is SQLite's own: the library's version, files and their modes, schema versions."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import apsw
import pytest

from tacit.collector.ports import STORED, CollectionRecord, NewBatch, StoredBatch
from tacit.collector.store.sqlite import schema as sqlite_schema
from tacit.collector.store.sqlite.store import FILE, SqliteStore
from tacit.errors import StorageUnavailable
from tacit.hosting.sqlite import check_library

A = "a" * 64


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "data")
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    yield store
    store.close()


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "3.100.0", "4.0.0", "3.50.7", "3.50.12", "3.44.6", "3.51.3.1"])
def test_mended_libraries_are_accepted(version: str):
    check_library(version)


@pytest.mark.parametrize("version", ["3.51.2", "3.50.6", "3.44.5", "3.40.1", "3.45.9", "3.49.2", "3.7.0", "3.43.7"])
def test_faulty_libraries_are_refused(version: str):
    with pytest.raises(StorageUnavailable, match=rf"{version}, must be at least 3\.51\.3.*pip install"):
        check_library(version)


def test_a_faulty_library_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.40.1")
    with pytest.raises(StorageUnavailable, match="corrupt"):
        SqliteStore(tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_files_are_for_their_owner_alone(store: SqliteStore):
    store.add_batches([NewBatch(A, b"0" * 16, b"x", 1, {})])
    assert stat.S_IMODE(store.file.parent.stat().st_mode) == 0o700
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.file.parent.iterdir()}
    assert files == {FILE: 0o600, FILE + "-wal": 0o600, FILE + "-shm": 0o600}


def test_commits_are_durable_and_one_connection_checkpoints(store: SqliteStore):
    """2 is FULL. A connection that cannot write cannot checkpoint."""
    writer = store._writer  # pyright: ignore[reportPrivateUsage]
    settings = ("journal_mode", "synchronous", "foreign_keys")
    assert [writer.run(f"PRAGMA {name}")[0][0] for name in settings] == ["wal", 2, 1]
    with store._readers.lend() as reader, pytest.raises(apsw.ReadOnlyError):  # pyright: ignore[reportPrivateUsage]
        reader.run("DELETE FROM batches")


def test_payloads_do_not_outlive_folding(store: SqliteStore):
    """The id stays, so that the batch is never counted again; what was in it goes."""
    secret = os.urandom(40)
    store.add_batches([NewBatch(A, b"0" * 16, secret, 1, {})])
    assert store.fold_some(A, "main", lambda tally, batches: b"tally", 10) == 1
    store.close()  # Writes the log back into the database and removes it.
    assert [path.name for path in store.file.parent.iterdir()] == [FILE]
    data = store.file.read_bytes()
    assert secret not in data and b"0" * 16 in data


def test_a_newer_schema_is_refused_and_left_alone(store: SqliteStore):
    store.close()
    newer = apsw.Connection(str(store.file))
    newer.execute("UPDATE meta SET value = 999")
    newer.close()
    before = store.file.read_bytes()
    with pytest.raises(StorageUnavailable, match=r"version 999, this release knows versions up to \d+"):
        SqliteStore(store.file.parent)
    assert store.file.read_bytes() == before


def test_migrations_run_in_order_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    SqliteStore(tmp_path).close()
    steps = ("CREATE TABLE later (x)", "INSERT INTO later VALUES (1)")
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", sqlite_schema.MIGRATIONS + steps)
    for _ in range(2):
        SqliteStore(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / FILE))
    assert connection.execute("SELECT * FROM later").fetchall() == [(1,)]
    connection.close()


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    SqliteStore(tmp_path).close()
    steps = (*sqlite_schema.MIGRATIONS, "CREATE TABLE later (x)", "SELECT * FROM nowhere")
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", steps)
    with pytest.raises(apsw.SQLError):
        SqliteStore(tmp_path)
    monkeypatch.undo()
    store = SqliteStore(tmp_path)
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    assert store.add_batches([NewBatch(A, b"0" * 16, b"x", 1, {})]) == [STORED]
    store.close()


@pytest.mark.parametrize("content", [b"no database at all, but long enough to have a header" * 100, b"\x00" * 4096])
def test_another_file_is_not_taken_for_a_database(tmp_path: Path, content: bytes):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StorageUnavailable, match=FILE):
        SqliteStore(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable, match="cannot open"):
        SqliteStore(tmp_path / "file" / "data")


def test_reports_dropped_by_another_process_while_they_are_folded_are_gone(store: SqliteStore):
    store.add_batches([NewBatch(A, b"0" * 16, b"x", 1, {})])
    other = SqliteStore(store.file.parent)
    dropping = Thread(target=other.drop_reports, args=[A])

    def meanwhile(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
        # It waits until this fold, which holds the lock on the folder, has ended.
        dropping.start()
        return b"tally"

    assert store.fold_some(A, "main", meanwhile, 10) == 1
    dropping.join()
    assert store.tallies(A) == [] and store.fold_some(A, "main", meanwhile, 10) == 0
    other.close()


def test_a_backup_that_is_none_restores_nothing(tmp_path: Path):
    (tmp_path / "copy").write_bytes(b"not a backup" * 100)
    for name in ("copy", "missing"):
        with pytest.raises(StorageUnavailable, match=name):
            SqliteStore.restore(tmp_path / name, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
