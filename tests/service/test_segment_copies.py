"""Sealed rows are dropped when their time has come, and go along with a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.service.row_bench import Bench, damaged

from tacit.cli.backup import backup, restore
from tacit.collector.collections.retention import Retention
from tacit.collector.limits import Intervals
from tacit.collector.ports import Store
from tacit.collector.rows.segments import SegmentFiles
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.segment_copies import beside
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.errors import InvalidSpec, SegmentDamaged, StorageUnavailable
from tacit.hosting.clock import Clock

# Retention.


def test_retention_drops_the_files_as_well(bench: Bench):
    bench.seal(range(50))
    bench.add(range(50, 60))
    clock = Clock(day=lambda: 30_000, seconds=lambda: bench.seconds)
    retention = Retention(bench.store, clock, forget=bench.collector.files.drop)
    retention.look()
    bench.seconds += Intervals().confirm_drop
    assert retention.look() == [bench.id]
    assert not bench.folder.exists()
    assert bench.store.stored_reports(bench.id) == 0
    assert bench.collector.segments(bench.id) == []


def test_files_that_a_crash_left_after_retention_are_swept(bench: Bench):
    bench.seal(range(50))
    bench.store.drop_reports(bench.id)  # And then the power goes.
    assert len(bench.files) == 1
    assert bench.sweep() == 1
    assert bench.files == []


def test_files_that_somebody_copies_are_swept_after_retention(memory: Bench):
    memory.seal(range(50))
    memory.store.drop_reports(memory.id)
    with SegmentFiles(memory.store.segments).shared():
        memory.collector.files.drop(memory.id)
        assert len(memory.files) == 1
    memory.collector.files.drop(memory.id)
    assert memory.files == []


# Backups.


def test_a_backup_takes_the_segments_along(bench: Bench, tmp_path: Path):
    bench.seal(range(50))
    bench.seal(range(50, 60))
    bench.add(range(60, 70))
    file = tmp_path / "monday.sqlite"
    bench.store.backup(str(file))
    assert {path.name for path in (beside(file) / bench.id).iterdir()} == {entry.file for entry in bench.entries}
    assert reopened(SqliteStore.restore(file, tmp_path / "copy"), bench.id) == list(range(70))
    with pytest.raises(StorageUnavailable, match="exists"):
        bench.store.backup(str(file))


def reopened(store: Store, collection: str) -> list[int]:
    """What another process finds in a store."""
    other = Bench(store, collection)
    try:
        return other.values()
    finally:
        other.collector.stop()


@pytest.mark.parametrize("how", ["missing", "a bit"])
def test_a_damaged_backup_is_not_restored(tmp_path: Path, how: str):
    bench = Bench(SqliteStore(tmp_path / "data"))
    bench.seal(range(50))
    file = tmp_path / "monday.sqlite"
    bench.store.backup(str(file))
    (copied,) = (beside(file) / bench.id).iterdir()
    data = damaged(copied, how)
    with pytest.raises(SegmentDamaged, match=copied.name):
        SqliteStore.restore(file, tmp_path / "copy")
    assert not (tmp_path / "copy" / "tacit.sqlite").exists()
    copied.write_bytes(data)
    SqliteStore.restore(file, tmp_path / "copy").close()
    # A segment that is damaged itself is not backed up as if it were whole.
    damaged(bench.files[0], how)
    with pytest.raises(SegmentDamaged):
        bench.store.backup(str(tmp_path / "tuesday.sqlite"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "data", file.name, beside(file).name]
    bench.collector.stop()


def test_the_commands_back_up_and_restore_between_databases(postgres: Any, tmp_path: Path):
    bench = Bench(SqliteStore(tmp_path / "data"))
    bench.seal(range(50))
    bench.collector.stop()
    file, rows, url = str(tmp_path / "b.sqlite"), str(tmp_path / "rows"), postgres.url
    run = CliRunner()
    assert run.invoke(backup, [file, "--data", str(tmp_path / "data")]).exit_code == 0
    postgres_store = PostgresStore(url)
    with pytest.raises(InvalidSpec, match="--segments"):
        postgres_store.restore(file)
    assert postgres_store.collections() == []
    postgres_store.close()
    store = PostgresStore(url, segments=rows)
    store.restore(file)
    back = str(tmp_path / "back.sqlite")
    store.backup(back)
    store.close()
    done = run.invoke(restore, [back, "--data", str(tmp_path / "again")])
    assert done.exit_code == 0, done.output
    assert reopened(SqliteStore(tmp_path / "again"), bench.id) == list(range(50))
