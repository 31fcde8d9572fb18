"""A collector whose reports are kept in a lake: counted once, whatever dies, and counted alike by everybody."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.lakes import SMALL, LakeBench, document, ids_of, s3_server
from tests.service.row_bench import Bench

from tacit.collector.ports import Store, StoredBatch
from tacit.collector.rows.lake_files import LakeFiles
from tacit.collector.rows.sealing import sealing
from tacit.collector.service import Collector
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.errors import InvalidSpec, ReportRejected, SegmentDamaged, StorageUnavailable
from tacit.lake.folder import MANIFEST, find_files
from tacit.lake.place import place_of

Open = Callable[[], Store]


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


@pytest.fixture
def make(open_store: Open, lake: str) -> Iterator[Callable[..., LakeBench]]:
    """Opens collectors on one database and one lake."""
    made: list[LakeBench] = []

    def open_one(**options: Any) -> LakeBench:
        made.append(LakeBench(open_store(), lake, **options))
        return made[-1]

    yield open_one
    for bench in made:
        bench.collector.writer.stop()


@pytest.mark.slow_cases("postgres")
def test_sealed_reports_are_counted_alike_by_answers_and_by_files(make: Callable[..., LakeBench]) -> None:
    bench = make(folding=SMALL)
    batches = [range(i, i + 1 + i % 5) for i in range(0, 300, 5)]
    for start in range(0, len(batches), 7):
        bench.seal(*batches[start : start + 7])
    expected = {code: 1 for values in batches for code in values}
    assert bench.published() == bench.answered() == expected
    assert bench.store.stored_reports(bench.id) == len(expected)
    assert bench.batches() == ids_of(*batches)
    # Two collectors on one database see the same, and what one of them counts is kept.
    other = make(shard="other")
    other.seal(range(1000, 1010))
    assert other.published() == bench.answered() == bench.published() == expected | dict.fromkeys(range(1000, 1010), 1)
    assert bench.collector.answers(bench.id, 0.95).n == len(expected) + 10


def test_a_lake_may_come_later_and_reports_in_it_need_it(tmp_path: Path, lake: str) -> None:
    store = SqliteStore(tmp_path / "data")
    before = LakeBench(store, "")
    before.seal(range(10))
    after = LakeBench(store, lake)
    after.seal(range(10, 15))
    assert after.answered() == dict.fromkeys(range(15), 1)
    with pytest.raises(StorageUnavailable, match="its reports are in a lake; name it with --lake URL"):
        before.answered()
    # A backup has the database alone: the files stay where they are.
    store.backup(str(tmp_path / "backup"))
    restored = SqliteStore.restore(tmp_path / "backup", tmp_path / "again")
    assert LakeBench(restored, lake).answered() == dict.fromkeys(range(15), 1)
    restored.close()
    store.close()


@pytest.mark.slow_cases("postgres")
def test_retention_deletes_the_files(make: Callable[..., LakeBench]) -> None:
    bench = make()
    bench.seal(range(5))
    assert MANIFEST in bench.names() and len(bench.names()) == 2
    bench.store.drop_reports(bench.id)
    bench.collector.folder.forget(bench.id)
    assert bench.names() == set() and bench.answered() == {} == bench.answered()
    assert bench.names() == set()
    with pytest.raises(ReportRejected, match=r"no \.parquet file that counts"):
        find_files(bench.url)


def test_orphans_are_swept_after_a_while_and_named_files_never(make: Callable[..., LakeBench]) -> None:
    bench = make()
    bench.seal(range(5))
    named = bench.names()

    def dying(data: bytes | None, batches: list[StoredBatch]) -> bytes:
        files: Any = bench.collector.files
        sealing(bench.active, files, SMALL)(data, batches)
        raise KeyboardInterrupt

    bench.add(range(10, 15))
    with pytest.raises(KeyboardInterrupt):
        bench.store.fold_some(bench.id, "main~lake", dying, 10)
    assert len(bench.names() - named) == 1  # The new batch, merged with the old file.
    assert bench.sweep(1.0) == 0
    assert bench.sweep() == 1 and bench.names() == named
    assert bench.answered() == dict.fromkeys([*range(5), *range(10, 15)], 1)
    bench.sweep()
    assert bench.published() == dict.fromkeys([*range(5), *range(10, 15)], 1)


def test_a_fold_that_began_before_a_sweep_cannot_commit_after_it(make: Callable[..., LakeBench]) -> None:
    """The file that it wrote may be gone: it writes another."""
    bench, other = make(), make(shard="other")
    bench.add(range(5))
    real, attempts = bench.collector.files, list[str]()

    class Slow(LakeFiles):
        def write(self, active: Any, table: Any, batches: Any) -> Any:
            entry = super().write(active, table, batches)
            attempts.append(entry.file)
            if len(attempts) == 1:
                self.place.inner(active.id).remove(entry.file)
                if isinstance(bench.store, SqliteStore):
                    # One process alone works on SQLite; its fence waits for its folds. This is another's.
                    other.store._writer.run("INSERT INTO meta VALUES ('fence', 9)")  # type: ignore[union-attr]
                else:
                    other.store.fence()
            return entry

    assert isinstance(real, LakeFiles)
    bench.collector.folder._files = Slow(real.place)
    bench.collector.folder.fold_all(bench.id, 60)
    bench.collector.folder.fold_all(bench.id, 60)
    assert len(attempts) == 2 and attempts[0] not in bench.names()
    assert bench.published() == bench.answered() == dict.fromkeys(range(5), 1)


def test_damage_is_told_and_a_missing_file_is_not_counted_over(make: Callable[..., LakeBench]) -> None:
    bench = make()
    bench.seal(range(5))
    (file,) = find_files(bench.url)
    path = Path(file.path)
    data = path.read_bytes()
    path.write_bytes(data[:-9] + b"x" + data[-8:])
    with pytest.raises(SegmentDamaged, match="other bytes than were sealed"):
        bench.answered()
    path.unlink()
    with pytest.raises(SegmentDamaged, match="is missing"):
        bench.answered()
    with pytest.raises(ReportRejected, match="missing, or has another size"):
        bench.published()


def test_a_manifest_that_another_process_left_stale_is_published_again(make: Callable[..., LakeBench]) -> None:
    bench, dead = make(), make(shard="dead")
    bench.seal(range(5))
    assert isinstance(dead.collector.files, LakeFiles)
    dead.collector.files.publish = lambda *given: None  # type: ignore[method-assign]
    dead.seal(range(5, 9))
    assert bench.published() == dict.fromkeys(range(5), 1)
    bench.collector.folder.fold_all(bench.id, 1)
    assert bench.published() == dict.fromkeys(range(9), 1)


def test_rows_live_in_a_lake_too(tmp_path: Path, lake: str) -> None:
    store = SqliteStore(tmp_path / "data")
    bench = Bench(store, lake=lake)
    bench.seal(range(50))
    bench.seal(range(50, 90))
    assert bench.values() == list(range(90))
    assert not (tmp_path / "data" / "segments").exists()
    assert {path.suffix for path in Path(lake, bench.id).iterdir()} == {".parquet", ".json"}
    assert bench.sweep() == 1 and bench.values() == list(range(90))
    bench.collector.stop()


def test_rows_that_are_in_a_folder_stay_there(tmp_path: Path, lake: str) -> None:
    store = SqliteStore(tmp_path / "data")
    Bench(store).seal(range(5))
    with pytest.raises(InvalidSpec, match="has sealed rows into"):
        Collector(store, lake=lake)
    store.close()


# Kills.


def live_and_die(place: str, lake: str, first: int, seconds: float, shards: tuple[str, ...]) -> set[int]:
    """Run sealing processes for a while after their first acknowledgements, kill them, and return what they told."""
    root, heard = Path(__file__).parents[2], set[int]()
    commands = [
        [sys.executable, "-m", "tests.service.sealing_process", place, lake, str(first + 1000 * i), shard]
        for i, shard in enumerate(shards)
    ]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) for command in commands]
    begun = [process.stdout.readline() for process in processes if process.stdout is not None]
    time.sleep(seconds)
    for process in processes:
        process.kill()
    for process, line in zip(processes, begun, strict=True):
        with process:
            assert process.stdout is not None
            heard.update(int(line) for line in (line, *process.stdout.readlines()) if line.endswith(b"\n"))
    return heard


def killed(place: str, store: Store, lake: str, cycles: int) -> None:
    """Kill two collectors on PostgreSQL, or one on SQLite, again and again, and count what is left."""
    rng, heard = np.random.default_rng(4), set[int]()
    shards = ("one", "two") if "host=" in place else ("main",)
    LakeBench(store, lake)
    for cycle in range(cycles):
        told = live_and_die(place, lake, 2 + 4000 * cycle, float(rng.uniform(0.2, 1.0)), shards)
        assert told
        heard |= told
    bench = LakeBench(store, lake, shard="last")
    counts = bench.answered()
    assert heard <= counts.keys() and set(counts.values()) == {1}
    assert bench.published() == counts and bench.store.stored_reports(bench.id) == len(counts)
    assert bench.batches() == ids_of(*([code] for code in counts))
    # Whatever was left behind is an orphan, and goes.
    bench.sweep()
    assert len(bench.names()) == 1 + len(find_files(bench.url))
    assert bench.answered() == counts


@pytest.mark.slow
@pytest.mark.slow_cases("postgres")
@pytest.mark.parametrize("cycles", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_killed_collectors_lose_nothing_and_count_nothing_twice(
    place: str, open_store: Open, lake: str, cycles: int
) -> None:
    killed(place, open_store(), lake, cycles)


# An S3 server.


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.mark.slow
def test_everything_holds_on_an_s3_server_too(s3: str, postgres: Any, tmp_path: Path) -> None:
    from tacit.collector.store.postgres.store import PostgresStore

    lake = s3.replace("/reports", "/both")
    stores = [PostgresStore(postgres.url) for _ in range(2)]
    bench, other = (LakeBench(store, lake, shard=name, folding=SMALL) for store, name in zip(stores, "ab", strict=True))
    for start in range(0, 400, 20):
        (bench if start % 40 else other).seal(range(start, start + 20))
    assert bench.published() == other.answered() == dict.fromkeys(range(400), 1)
    orphans = len(bench.names()) - 1 - len(find_files(bench.url))
    assert orphans and bench.sweep() == orphans
    assert bench.published() == dict.fromkeys(range(400), 1)
    bench.collector.folder.forget(bench.id)
    assert bench.names() == set()
    for store in stores:
        store.close()


@pytest.mark.slow
def test_rows_and_kills_on_an_s3_server(s3: str, postgres: Any, tmp_path: Path) -> None:
    from tacit.collector.store.postgres.store import PostgresStore

    store = PostgresStore(postgres.url)
    killed(postgres.url, store, s3.replace("/reports", "/killed"), 2)
    rows = Bench(store, lake=s3.replace("/reports", "/rows"))
    rows.seal(range(30))
    rows.seal(range(30, 60))
    assert rows.values() == list(range(60)) and rows.sweep() == 1 and rows.values() == list(range(60))
    store.close()


def test_a_place_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    bench = LakeBench(SqliteStore(tmp_path / "data"), str(tmp_path / "file" / "lake"))
    bench.add(range(3))
    with pytest.raises(StorageUnavailable, match="lake: cannot use"):
        bench.collector.folder.fold_some(bench.active)
    # Nothing is lost: what was acknowledged waits until the place is back.
    assert bench.store.stored_reports(bench.id) == 3
    bench.store.close()
    assert place_of(str(tmp_path)).is_local and document().mechanism.kind == "grr"
