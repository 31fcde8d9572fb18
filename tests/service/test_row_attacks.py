"""Uploads with rows that are small to send and would be large to read or to keep: refused before they cost anything."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.service.plain import binary, plain_app, serving, wide_draft
from tests.service.row_bodies import ARROW, publish_rows, stream, table, twin
from tests.service.submitting import submit
from tests.service.test_row_judging import Bench
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.http import reports as http_reports
from tacit.collector.ingest import uploads as ingest
from tacit.collector.ingest.uploads import Form, Ingest, JudgedBatch
from tacit.collector.limits import MOST_BATCH_BYTES, MOST_WAITING_BYTES
from tacit.collector.ports import STORED
from tacit.hosting.limits import Limits
from tacit.hosting.problems import Problem
from tacit.wire.batch import new_batch_id

WIDE = [{"name": f"c{i}", "type": "integer"} for i in range(256)]
FIT = MOST_BATCH_BYTES // (4 + 256 * 8)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.collector.stop()


@pytest.fixture(scope="module")
def wide() -> Iterator[Bench]:
    made = Bench(columns=WIDE)
    yield made
    made.collector.stop()


def written(schema: pa.Schema, batches: list[pa.RecordBatch], metadata: Any = None, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch, custom_metadata=metadata)
    return sink.getvalue().to_pybytes()


def reports(n: int) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(4), n, [None, pa.py_buffer(bytes(4 * n))])


def arrow_bytes(work: Callable[[], Any]) -> tuple[Any, int]:
    """What some work gives, and by how much it raised the most memory that Arrow ever had."""
    before = pa.default_memory_pool().max_memory()
    found = work()
    return found, pa.default_memory_pool().max_memory() - before


# Compression.


def test_the_old_way_to_say_compressed_is_refused_before_anything_is_unpacked(bench: Bench):
    """In metadata of version 4, a word beside a record batch says so: 512 MB in some kilobytes."""
    claimed = 1 << 29
    packed = claimed.to_bytes(8, "little") + pa.Codec("zstd").compress(bytes(claimed)).to_pybytes()
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(1), len(packed), [None, pa.py_buffer(packed)])
    batch = pa.RecordBatch.from_arrays([column], names=["report"])
    old = {"ARROW:experimental_compression": "zstd"}
    body = written(batch.schema, [batch], old, metadata_version=pa.ipc.MetadataVersion.V4)
    assert len(body) < 1 << 16
    assert arrow_bytes(lambda: bench.judge(body)) == ("malformed", 0)


def test_metadata_of_other_versions_are_refused_compressed_or_not(bench: Bench):
    given = table(range(3)).to_batches()
    assert bench.judge(written(given[0].schema, given, metadata_version=pa.ipc.MetadataVersion.V4)) == "malformed"
    assert isinstance(bench.judge(written(given[0].schema, given)), JudgedBatch)


# Columns that nobody sends.


@pytest.mark.parametrize("sent", ["missing", "null"])
def test_columns_that_are_left_out_count_before_they_are_made(wide: Bench, sent: str):
    n = 65_536
    columns = {"report": reports(n)} | ({f"c{i}": pa.nulls(n) for i in range(256)} if sent == "null" else {})
    body = stream(pa.table(columns))
    assert len(body) < 1 << 19
    assert arrow_bytes(lambda: wide.judge(body))[1] < 1 << 24
    with pytest.raises(Problem, match=f"at most {FIT} rows") as caught:
        wide.collector.ingest.judge(wide.active, body, Form.ARROW, "", "0" * 32)
    assert caught.value.status == 413


def kept(segments: Iterable[Any]) -> tuple[int, int]:
    """How many rows are sealed, and in how many of them the last column is null."""
    found = [(segment.n, segment.load()[0]["c255"].null_count) for segment in segments]
    return sum(n for n, _ in found), sum(nulls for _, nulls in found)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.slow
def test_as_many_rows_as_fit_are_stored_and_sealed(wide: Bench, dense: bool):
    """What is accepted is not turned away by the writer, however much larger it is kept than it was sent."""
    given = np.arange(FIT, dtype=np.int8)
    columns: dict[str, Any] = {"report": reports(FIT)} | ({f"c{i}": given for i in range(256)} if dense else {})
    body, name = stream(pa.table(columns)), new_batch_id()
    upload = wide.collector.ingest.judge(wide.active, body, Form.ARROW, "", name.hex())
    assert isinstance(upload, JudgedBatch) and upload.batch is not None
    assert len(upload.batch.payload) <= (MOST_WAITING_BYTES if dense else 2 * len(body))
    assert submit(wide.collector.writer, upload.batch).result(PATIENT_SECONDS) == STORED
    rows, nulls = kept(wide.collector.folder.segments(wide.active))
    sealed = kept(wide.collector.segments(wide.id))
    assert sealed == (rows + FIT, nulls + (0 if dense else FIT)), "the rows without columns have nulls, and no others"


def test_what_the_writer_never_has_room_for_is_refused_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ingest, "MOST_WAITING_BYTES", 1000)
    assert bench.judge(stream(table(range(500)))) == "too_large"
    assert bench.judge(twin(bench.id, range(500), new_batch_id()), Form.JSON) == "too_large"


def test_empty_rows_of_a_wide_table_cost_what_they_say(wide: Bench):
    def body(n: int) -> bytes:
        return json.dumps({
            "collection": wide.id, "batch": "0" * 32, "reports": [{"report": "00000000", "row": {}}] * n,
        }).encode()  # fmt: skip

    assert wide.judge(body(FIT + 1), Form.JSON) == "too_large"
    upload = wide.judge(body(FIT), Form.JSON)
    assert isinstance(upload, JudgedBatch) and upload.batch is not None
    assert len(upload.batch.payload) < 4 * FIT + 1000


def test_rows_that_leave_most_out_keep_what_they_have(wide: Bench):
    rows: list[Any] = [{"c3": 1}, {"c200": 2, "c3": None}, {"c999": 1}, {}, {"c3": "x"}, {"c3": 4}]
    items = [{"report": bytes([i, 0, 0, 0]).hex(), "row": row} for i, row in enumerate(rows)]
    body = json.dumps({"collection": wide.id, "batch": "1" * 32, "reports": items}).encode()
    upload = wide.judge(body, Form.JSON)
    assert isinstance(upload, JudgedBatch) and upload.batch is not None
    assert upload.bad_rows == (2, 4)
    known = {segment.key for segment in wide.collector.segments(wide.id)}
    assert submit(wide.collector.writer, upload.batch).result(PATIENT_SECONDS) == STORED
    (made,) = [s for s in wide.collector.segments(wide.id) if s.key not in known and s.n < 10] or [None]
    assert made is not None
    columns = made.load()[0]
    assert columns["c3"].to_pylist() == [1, None, None, 4]
    assert columns["c200"].to_pylist() == [None, 2, None, None]


# Record batches and dictionaries without end.


def test_a_stream_has_few_record_batches_and_none_is_empty(bench: Bench):
    given = table(range(64))
    assert isinstance(bench.judge(stream(given, max_chunksize=1)), JudgedBatch)
    assert bench.judge(stream(table(range(65)), max_chunksize=1)) == "too_large"
    (batch,) = given.to_batches()
    assert bench.judge(written(batch.schema, [batch, batch.slice(0, 0)])) == "malformed"


def coded(words: list[str], n: int = 1) -> pa.RecordBatch:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array(words))
    return pa.RecordBatch.from_arrays([reports(n), column], names=["report", "os"])


def test_a_dictionary_comes_once(bench: Bench):
    one, more, other = coded(["a"]), coded(["a", "b"]), coded(["c"])
    assert isinstance(bench.judge(written(one.schema, [one, one])), JudgedBatch)
    assert bench.judge(written(one.schema, [one, other])) == "malformed"
    assert bench.judge(written(one.schema, [one, more], emit_dictionary_deltas=True)) == "malformed"


def test_a_long_dictionary_is_not_looked_at_again_and_again(bench: Bench):
    batch = coded([""] * 400_000)
    assert bench.judge(written(batch.schema, [batch] * 64)) == "too_large"
    assert isinstance(bench.judge(written(batch.schema, [batch] * 8)), JudgedBatch)


# Types that nobody sends.


def day_time(body: bytes) -> bytes:
    """The same stream, with an interval of days where it has one of months: a type that Python has no arrays of."""
    for place in range(len(body) - 2):
        if body[place : place + 2] == b"\2\0":
            changed = body[:place] + b"\1\0" + body[place + 2 :]
            try:
                if "day_time" in str(pa.ipc.open_stream(changed).schema):
                    return changed
            except (pa.ArrowException, OSError):
                continue
    raise AssertionError("there is no interval in this stream")


def test_types_are_looked_at_before_anything_is_read(bench: Bench):
    months = pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval())
    given = table(range(3)).set_column(1, "hours", months)
    assert bench.judge(stream(given)) == "malformed"
    assert bench.judge(day_time(stream(given))) == "malformed"


def test_whatever_arrow_stumbles_over_is_malformed(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    def fails(*_: Any) -> Any:
        raise KeyError(22)

    monkeypatch.setattr("tacit.collector.rows.arrow_stream._check_schema", fails)
    assert bench.judge(stream(table(range(3)))) == "malformed"


def test_a_record_batch_that_lies_about_its_length_allocates_nothing(wide: Bench):
    body = bytearray(stream(pa.table({"report": reports(7), "c0": pa.nulls(7)})))
    lies = 0
    for place in range(len(body) - 8):
        if struct.unpack_from("<q", body, place) == (7,):
            lie = bytes(body[:place]) + struct.pack("<q", 1 << 40) + bytes(body[place + 8 :])
            found, grown = arrow_bytes(lambda lie=lie: wide.judge(lie))
            assert found in ("malformed", "too_large")
            assert grown < 1 << 20
            lies += 1
    assert lies > 1


# Receipts.


def test_a_receipt_names_the_first_of_very_many_refusals(bench: Bench):
    codes = [b"\xff" * 4, b"\0" * 4] * 5000
    given = pa.table({"report": pa.array(codes, pa.binary(4)), "hours": [0.0, float("nan")] * 5000})
    upload = bench.judge(stream(given))
    assert isinstance(upload, JudgedBatch)
    assert upload.refused == {"range": 5000, "row": 5000}
    listed = upload.receipt("")["rejected"]
    assert listed == [{"index": i, "reason": ["range", "row"][i % 2]} for i in range(ingest.MOST_LISTED)]


# Threads.


def test_uploads_are_judged_aside_and_keep_nobody_else_waiting(monkeypatch: pytest.MonkeyPatch):
    """More uploads than there are threads for anything else; a collection that nobody asked for yet is found."""
    gate, names, judge = threading.Event(), list[str](), Ingest.judge

    def slow(self: Ingest, *given: Any) -> JudgedBatch:
        names.append(threading.current_thread().name)
        assert gate.wait(PATIENT_SECONDS)
        return judge(self, *given)

    app = plain_app(limits=Limits(requests_per_second=0))
    with serving(app) as client, ThreadPoolExecutor(40) as senders:
        mine, other = publish_rows(app.collector.store), client.publish(wide_draft(200, title="Plain"))
        app.collector.shelf._kept.clear()
        monkeypatch.setattr(Ingest, "judge", slow)
        arrow, text = stream(table(range(9))), twin(mine, range(40), new_batch_id())
        assert len(text) > 4096
        bodies = [(arrow, ARROW)] * 36 + [(text, "application/json")]
        sent = [
            senders.submit(client.send, mine, body, kind, Tacit_Batch=new_batch_id().hex()) for body, kind in bodies
        ]
        try:
            assert client.send(other, binary(other, bytes([1]))).status_code == 201
            assert client.http.get("/healthz").status_code == 200
        finally:
            gate.set()
        assert {each.result().status_code for each in sent} == {201}
    assert len(names) == 37
    assert len(set(names)) == 2
    assert all(name.startswith("tacit-judge") for name in names)


def test_no_more_waits_to_be_judged_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch):
    gate, begun, judge = threading.Event(), threading.Event(), Ingest.judge

    def slow(self: Ingest, *given: Any) -> JudgedBatch:
        begun.set()
        assert gate.wait(PATIENT_SECONDS)
        return judge(self, *given)

    monkeypatch.setattr(http_reports, "MOST_WAITING_BYTES", 0)
    body = stream(table(range(100)))
    app = plain_app(limits=Limits(requests_per_second=0, body_bytes=len(body) + 100))
    with serving(app) as client, ThreadPoolExecutor(1) as senders:
        mine = publish_rows(app.collector.store)
        monkeypatch.setattr(Ingest, "judge", slow)
        first = senders.submit(client.send, mine, body, ARROW, Tacit_Batch=new_batch_id().hex())
        try:
            assert begun.wait(PATIENT_SECONDS)
            second = client.send(mine, body, ARROW, Tacit_Batch=new_batch_id().hex())
            assert (second.status_code, second.json()["type"]) == (503, "urn:tacit:error:unavailable")
        finally:
            gate.set()
        assert first.result().status_code == 201
        assert client.send(mine, body, ARROW, Tacit_Batch=new_batch_id().hex()).status_code == 201
