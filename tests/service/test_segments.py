"""Sealed rows: merged without loss, checked when they are opened, swept when nobody names them, and backed up."""

from __future__ import annotations

import json
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.service.memory import MemoryStore
from tests.service.plain import draft, plain_app, serving, wide_draft
from tests.service.row_bench import Bench, damaged
from tests.service.row_bodies import ARROW, publish_rows, stream, table
from tests.service.served import CONTEXT
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.collections.publish import publish_document
from tacit.collector.ingest.uploads import Form
from tacit.collector.limits import FoldLimits, Intervals
from tacit.collector.rows import sealing, segments
from tacit.collector.rows.batches import row_bytes, stored_table
from tacit.collector.rows.manifest import dump_manifest, is_manifest, load_manifest
from tacit.collector.rows.segments import RowSegment, SegmentFiles
from tacit.collector.server import make_app
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ReportRejected, SegmentDamaged, StorageFull, StorageUnavailable
from tacit.hosting.problems import Problem, as_problem
from tacit.lake.entries import SegmentEntry
from tacit.wire.batch import new_batch_id

# Sealing and merging.


def test_waiting_batches_of_both_forms_become_one_segment(bench: Bench):
    for i in range(20):
        bench.add(range(10 * i, 10 * i + 10), [Form.ARROW, Form.JSON][i % 2])
    assert bench.files == []
    assert bench.values() == list(range(200))
    (entry,) = bench.entries
    assert (entry.rows, entry.bytes) == (200, bench.files[0].stat().st_size)
    assert bench.store.stored_reports(bench.id) == 200
    assert bench.files[0].name == entry.file
    assert bench.files[0].stat().st_mode & 0o777 == 0o600
    assert bench.folder.stat().st_mode & 0o777 == 0o700


def test_any_tool_reads_a_segment(memory: Bench):
    memory.seal(range(100))
    group = pq.read_metadata(memory.files[0]).row_group(0)
    # Reports are noise, which nothing makes smaller.
    assert [group.column(i).compression for i in range(2)] == ["UNCOMPRESSED", "ZSTD"]
    read = pq.read_table(memory.files[0])
    assert read.column_names == ["report", "hours", "visits", "os", "paying", "since"]
    assert str(read.schema.field("report").type) == "fixed_size_binary[4]"


def test_the_order_of_arrival_is_lost(tmp_path: Path):
    """The same rows in another order, in other batches and merged otherwise are the same rows of a file."""
    rng, files = np.random.default_rng(1), list[Any]()
    for i, parts in enumerate((1, 2, 5)):
        bench = Bench(SqliteStore(tmp_path / str(i)))
        for part in np.array_split(rng.permutation(300), parts):
            bench.seal(part.tolist())
        (entry,) = bench.entries
        files.append(pq.read_table(bench.folder / entry.file))
        bench.collector.stop()
    assert files[0].equals(files[1]) and files[0].equals(files[2])


@examples(10)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=25))
def test_merging_keeps_every_row_and_few_segments(sizes: list[int]):
    most, at, rewritten = 100, 0, 0
    bench = Bench(MemoryStore(), folding=FoldLimits(segment_rows=most))
    for size in sizes:
        held = {entry.file for entry in bench.entries}
        bench.seal(range(at, at + size))
        at += size
        made = sum(entry.rows for entry in bench.entries if entry.file not in held)
        assert made <= most, "a fold rewrites no more than one segment"
        rewritten += made
    assert bench.values() == list(range(at))
    assert sum(entry.rows for entry in bench.entries) == at
    assert max(entry.rows for entry in bench.entries) <= most
    assert len(bench.entries) <= 3 * at / most + np.log2(most) + 1
    assert rewritten <= at * (1 + np.log(most) / np.log(1.5))
    bench.collector.stop()


def test_many_rows_at_once_become_several_segments(make_memory: Callable[..., Bench]):
    memory = make_memory(folding=FoldLimits(segment_rows=64))
    memory.seal(range(200))
    assert sorted(entry.rows for entry in memory.entries) == [50] * 4
    assert memory.values() == list(range(200))
    memory.open(FoldLimits(segment_memory=1 << 10))
    memory.seal(range(200, 300))
    assert max(entry.memory for entry in memory.entries[4:]) < 2 << 10
    assert memory.values() == list(range(300))


def test_no_more_waiting_rows_are_unpacked_than_memory_holds(
    make_memory: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
):
    """Small batches may become large ones, for nulls take no room while they wait."""
    memory, held = make_memory(folding=FoldLimits(segment_memory=10_000)), list[int]()

    def noted(active: Any, batches: Any) -> Any:
        found = stored_table(active, batches)
        held.append(found.num_rows)
        return found

    monkeypatch.setattr(sealing, "stored_table", noted)
    for i in range(10):
        memory.add(range(40 * i, 40 * i + 40), [Form.ARROW, Form.JSON][i % 2])
    assert memory.values() == list(range(400))
    assert len(held) > 2
    assert max(held) * row_bytes(memory.active) <= 10_000
    assert max(entry.memory for entry in memory.entries) <= 10_000


def test_equal_rows_are_equal_segments_and_all_of_them_count(make_memory: Callable[..., Bench]):
    memory = make_memory(folding=FoldLimits(segment_rows=10))
    for _ in range(3):
        memory.seal(range(10))
    assert len(memory.files) == 1
    assert len(memory.entries) == 3
    assert memory.values() == sorted([*range(10)] * 3)
    memory.open(FoldLimits(segment_rows=20))
    memory.seal(range(10, 15))
    assert memory.values() == sorted([*range(10)] * 3 + [*range(10, 15)])
    memory.sweep()
    assert memory.values() == sorted([*range(10)] * 3 + [*range(10, 15)])


def test_a_manifest_that_has_grown_is_left_alone(make_memory: Callable[..., Bench]):
    memory = make_memory(folding=FoldLimits(segment_rows=10, manifest_bytes=600))
    for i in range(8):
        memory.seal(range(10 * i, 10 * i + 10))
    shards = [tally.content for tally in memory.store.tallies(memory.id)]
    assert len(shards) > 1
    assert all(is_manifest(data) and len(data) < 1000 for data in shards)
    assert memory.values() == list(range(80))


def test_rows_wait_a_little_in_the_background_and_not_for_a_query(memory: Bench):
    def sealed_in_the_background() -> int:
        memory.collector.touch(memory.id)
        memory.collector.fold_touched()
        return sum(entry.rows for entry in memory.entries)

    memory.seal(range(5))
    memory.add(range(5, 9))
    assert sealed_in_the_background() == 5
    assert memory.values() == list(range(9))
    memory.add(range(9, 12))
    assert sealed_in_the_background() == 9
    memory.seconds += Intervals().seal
    assert sealed_in_the_background() == 12


def test_a_collection_without_rows_has_no_segments(memory: Bench):
    plain = publish_document(memory.store, memory.collector.planner.plan(wide_draft(9, title="Plain"))[0])
    with pytest.raises(Problem, match="no rows"):
        memory.collector.segments(plain.id)


@pytest.mark.parametrize(
    "data",
    [b"[", b"{}", b"[1]", b'[{"file":"x"}]', b"[null]",
     json.dumps([{"file": "../x", "rows": 1, "bytes": 1, "sha256": "0" * 64, "memory": 1}]).encode(),
     json.dumps([{"file": "zz.parquet", "rows": 1, "bytes": 1, "sha256": "zz", "memory": 1}]).encode()],
)  # fmt: skip
def test_a_manifest_that_cannot_be_is_refused(data: bytes):
    with pytest.raises(ReportRejected, match="manifest"):
        load_manifest(data)


def test_a_manifest_reads_back():
    entry = SegmentEntry("a" * 64 + ".parquet", 5, 6, "a" * 64, 7)
    assert load_manifest(dump_manifest([entry, entry])) == (entry, entry)
    assert load_manifest(None) == ()
    assert not is_manifest(b"TCTL")


# Damage.


@pytest.mark.parametrize("how", ["missing", "short", "empty", "a bit"])
def test_a_damaged_segment_is_named_and_nothing_is_answered_without_it(memory: Bench, how: str):
    memory.seal(range(100))
    (path,) = memory.files
    data = damaged(path, how)
    memory.collector.files._checked.clear()
    with pytest.raises(SegmentDamaged, match=path.name) as caught:
        memory.values()
    assert "backup" in str(caught.value)
    problem = as_problem(caught.value)
    assert (problem.kind, problem.status, path.name in problem.detail) == ("damaged", 500, True)
    memory.seal(range(100, 150))  # What is new is sealed beside it.
    assert len(memory.entries) == 2
    with pytest.raises(SegmentDamaged):
        memory.values()
    path.write_bytes(data)
    assert memory.values() == list(range(150))
    memory.seal(range(150, 400))
    assert len(memory.entries) == 1
    assert memory.values() == list(range(400))


def test_sql_over_a_damaged_segment_is_refused_and_answered_once_it_is_back():
    app = make_app(MemoryStore())
    columns = [{"name": "hours", "type": "number"}]
    with serving(app) as client:
        mine = client.publish(draft(rows={"table": "pets", "columns": columns}, minimum_cohort=1))
        active = app.collector.find(mine)
        made = active.mechanism.privatize(np.arange(90) % 3, ReplayCoins(b"x"))
        rows = pa.table({"report": [report.tobytes() for report in made["payload"]], "member": made["member"]})
        assert client.send(mine, stream(rows), ARROW, Tacit_Batch="0" * 32).status_code == 201
        app.collector.segments(mine)
        (path,) = app.collector.files.folder.glob("*/*.parquet")
        data = damaged(path, "a bit")
        sql = {"sql": "SELECT COUNT(*) FROM pets WHERE pet = 'cat'"}
        refused = client.api("POST", f"/collections/{mine}/query", sql)
        assert (refused.status_code, refused.json()["type"]) == (500, "urn:tacit:error:damaged")
        assert path.name in refused.json()["detail"]
        path.write_bytes(data)
        answered = client.api("POST", f"/collections/{mine}/query", sql)
        assert (answered.status_code, answered.json()["n"]) == (200, 90)


def test_damage_after_the_first_look_never_changes_an_answer(memory: Bench):
    """Pages have checksums of their own, so that later reads, which do not look at the whole, notice as well."""
    memory.seal(range(1000))
    assert memory.values() == list(range(1000))
    (path,) = memory.files
    data, rng, noticed = path.read_bytes(), np.random.default_rng(3), 0
    for place in rng.integers(0, len(data), 60).tolist():
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << rng.integers(8))]) + data[place + 1 :])
        try:
            assert memory.values() == list(range(1000))
        except SegmentDamaged:
            noticed += 1
    assert noticed > 30
    path.unlink()
    with pytest.raises(SegmentDamaged, match="missing"):
        memory.values()


def test_a_segment_of_other_columns_is_refused(memory: Bench):
    memory.seal(range(10))
    (entry,) = memory.entries
    other = Bench(MemoryStore(), size=200)
    other.folder.mkdir(parents=True)
    (other.folder / entry.file).write_bytes(memory.files[0].read_bytes())
    with pytest.raises(SegmentDamaged, match="columns"):
        RowSegment(other.collector.files, other.active, entry).load()
    other.collector.stop()


# Sweeping.


def test_the_sweep_removes_what_no_manifest_names_after_a_while(bench: Bench):
    for i in range(3):
        bench.seal(range(10 * i, 10 * i + 10))
    (entry,) = bench.entries
    assert len(bench.files) == 3
    (bench.folder / f"killed{segments.PART}").write_bytes(b"x")
    assert bench.sweep(Intervals().confirm_sweep - 1) == 0
    assert len(bench.files) == 3, "a part that was never finished goes at once, segments wait"
    assert bench.sweep() == 2
    assert [path.name for path in bench.files] == [entry.file]
    assert bench.values() == list(range(30))
    assert bench.sweep() == 0


def test_the_sweep_keeps_away_while_somebody_writes(memory: Bench):
    memory.seal(range(10))
    memory.seal(range(10, 20))
    other = SegmentFiles(memory.store.segments)
    with other.shared():
        assert memory.sweep() == 0
        assert len(memory.files) == 2
    assert memory.sweep() == 1


def test_only_so_many_verified_segments_are_remembered(memory: Bench, monkeypatch: pytest.MonkeyPatch):
    """The least recently read is forgotten, and verified again; the others are not."""
    for i in range(3):
        memory.seal(range(10 * i, 10 * i + 10))
    files, checked = SegmentFiles(memory.store.segments), list[str]()
    real = segments.check_file
    monkeypatch.setattr(segments, "MOST_CHECKED", 2)
    monkeypatch.setattr(segments, "check_file", lambda path, entry: (checked.append(entry.file), real(path, entry)))
    entries = [_entry(path) for path in sorted(memory.files)]
    first, second, third = (entry.file for entry in entries)
    for entry in (entries[0], entries[1], entries[0], entries[2], entries[0], entries[1]):
        files.read(memory.active, entry)
    assert checked == [first, second, third, second]
    files.read(memory.active, entries[1], anew=True)
    assert checked[-2:] == [second, second]


def _entry(path: Path) -> SegmentEntry:
    rows = pq.read_metadata(path).num_rows
    return SegmentEntry(path.name, rows, path.stat().st_size, path.stem, pq.read_table(path).nbytes)


def test_a_file_that_is_named_again_meanwhile_stays(memory: Bench):
    """A fold failed after it had written; later the same rows are folded again, into the same file."""
    memory.add(range(10))
    with pytest.raises(StorageUnavailable):
        seal = sealing.sealing(memory.active, memory.collector.files, FoldLimits())
        memory.store.fold_some(memory.id, "main", _failing(seal), 99)
    assert (len(memory.files), memory.entries) == (1, [])
    assert memory.collector.folder.sweep() == 0
    memory.seconds += Intervals().confirm_sweep
    memory.collector.folder.fold_some(memory.active)
    assert memory.collector.folder.sweep() == 0
    assert memory.values() == list(range(10))


def _failing(inner: Callable[..., bytes]) -> Callable[..., bytes]:
    def folded(data: Any, batches: Any) -> bytes:
        inner(data, batches)
        raise StorageUnavailable("storage: the commit failed")

    return folded


def test_folding_and_sweeping_at_once_lose_nothing(make_memory: Callable[..., Bench]):
    memory = make_memory(intervals=Intervals(confirm_sweep=0.0))
    stop, faults = threading.Event(), list[BaseException]()

    def sweep() -> None:
        while not stop.is_set():
            try:
                memory.collector.folder.sweep()
            except BaseException as error:
                faults.append(error)

    threads = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(30):
        memory.seal(range(5 * i, 5 * i + 5))
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert memory.values() == list(range(150))


# Disks.


def test_a_full_disk_is_told_and_what_waits_goes_on_waiting(memory: Bench, monkeypatch: pytest.MonkeyPatch):
    memory.seal(range(10))
    memory.add(range(10, 30))
    write = segments.write_table

    def full(*given: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(segments, "write_table", full)
    with pytest.raises(StorageFull, match="no room"):
        memory.collector.segments(memory.id)
    assert as_problem(StorageFull("x")).status == 507
    assert [path.suffix for path in memory.files] == [".parquet"]
    assert memory.store.stored_reports(memory.id) == 30
    memory.add(range(30, 40))
    monkeypatch.setattr(segments, "write_table", write)
    assert memory.values() == list(range(40))


def test_metrics_tell_how_much_is_sealed():
    app = plain_app()
    with serving(app) as client:
        mine = publish_rows(app.collector.store)
        assert "tacit_segments 0" in client.http.get("/metrics").text
        assert client.send(mine, stream(table(range(9))), ARROW, Tacit_Batch="0" * 32).status_code == 201
        (segment,) = app.collector.segments(mine)
        text = client.http.get("/metrics").text
        assert "tacit_segments 1\n" in text
        assert f"tacit_segment_bytes {segment.entry.bytes}\n" in text


def _seal_many(folder: Path, batches: int, told: Any) -> None:
    """Seal 2^14 rows again and again, and tell the memory that this took at its peak."""
    bench, given = Bench(SqliteStore(folder), folding=FoldLimits(segment_rows=1 << 16)), table(range(1 << 14))
    for _ in range(batches):
        name = new_batch_id()
        upload = bench.collector.ingest.judge(bench.active, stream(given), Form.ARROW, "", name.hex())
        assert upload.batch is not None
        bench.store.add_batches([upload.batch])
        bench.collector.folder.fold_some(bench.active)
    assert sum(entry.rows for entry in bench.entries) == batches << 14
    bench.collector.stop()
    told.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)


@pytest.mark.slow
def test_sealing_takes_no_more_memory_the_more_there_is(tmp_path: Path):
    """40 and 120 times 2^14 rows: 34 MB more in memory, if it were kept."""
    told, peaks = CONTEXT.Queue(), list[int]()
    for batches in (40, 120):
        process = CONTEXT.Process(target=_seal_many, args=(tmp_path / str(batches), batches, told))
        process.start()
        peaks.append(told.get(timeout=PATIENT_SECONDS))
        process.join()
    assert peaks[1] - peaks[0] < 16 << 20, peaks
