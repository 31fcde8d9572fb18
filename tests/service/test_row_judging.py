"""Rows and Arrow streams are judged value by value, and what lies about its size is refused before it is read."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import PLAIN, NoNoise, binary
from tests.service.row_bodies import WIDTH, publish_rows, row, stream, table

from tacit.catalog import CATALOG
from tacit.collector.ingest.plain import plain_batch
from tacit.collector.ingest.uploads import Form, JudgedBatch
from tacit.collector.rows import arrow_stream
from tacit.collector.service import Collector
from tacit.hosting.problems import Problem
from tacit.wire.rows import MAX_NUMBER


class Bench:
    """A collection whose uploads are judged without a server."""

    def __init__(self, **changes: Any) -> None:
        self.collector = Collector(MemoryStore(), catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
        self.id = publish_rows(self.collector.store, **changes)
        self.active = self.collector.find(self.id)

    def judge(self, body: bytes, form: Form = Form.ARROW, named: str = "0" * 32) -> JudgedBatch | str:
        try:
            return self.collector.ingest.judge(self.active, body, form, "", named)
        except Problem as problem:
            return problem.kind


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.collector.stop()


# Rows that do not fit.

GOOD: dict[str, list[Any]] = {
    "hours": [0, -1, 1e12, -1e12, 2.5, None],
    "visits": [0, -(10**12), 10**12, None],
    "os": ["", "x" * 256, "😀" * 256, "a\0b", None],
    "paying": [True, False, None],
    "since": ["0001-01-01", "9999-12-31", "2024-02-29", None],
}
BAD: dict[str, list[Any]] = {
    "hours": [1e12 + 1, -1e13, "1", True, [], {}],
    "visits": [10**12 + 1, -(10**13), 10**30, 1.5, 1.0, "1", True],
    "os": ["x" * 257, "😀" * 257, 1, True, []],
    "paying": [0, 1, "true", []],
    "since": ["2023-02-29", "2024-2-1", "2024-W01-1", "20240101", "2024-01-01T00", 19000, True, ""],
}


@pytest.mark.parametrize("name", list(GOOD))
def test_single_rows_are_judged_by_their_columns(bench: Bench, name: str):
    cases = [({**row(1), name: value}, True) for value in GOOD[name]] + [
        ({**row(1), name: v}, False) for v in BAD[name]
    ]
    items = [{"report": i.to_bytes(4, "little").hex(), "row": given} for i, (given, _) in enumerate(cases)]
    body = json.dumps({"collection": bench.id, "batch": "0" * 32, "reports": items}).encode()
    upload = bench.judge(body, Form.JSON)
    assert isinstance(upload, JudgedBatch)
    assert upload.bad_rows == tuple(i for i, (_, fits) in enumerate(cases) if not fits)
    assert upload.accepted == len(GOOD[name])


def test_rows_may_leave_columns_out_and_bring_no_others(bench: Bench):
    rows: list[Any] = [{}, {"hours": 1}, {"hours": 1, "colour": 2}, None, [], "x", {"": 1}]
    items = [{"report": "00000000", "row": given} for given in rows] + [{"report": "00000000"}]
    body = json.dumps({"collection": bench.id, "batch": "0" * 32, "reports": items}).encode()
    upload = bench.judge(body, Form.JSON)
    assert isinstance(upload, JudgedBatch)
    assert upload.bad_rows == (2, 3, 4, 5, 6, 7)


def test_a_report_out_of_range_is_told_from_a_bad_row(bench: Bench):
    values = [5, 1 << 18, (1 << 18) + 1, 7]
    hours = pa.array([1.0, 1.0, float("inf"), float("-inf")])
    upload = bench.judge(stream(table(values).set_column(1, "hours", hours)))
    assert isinstance(upload, JudgedBatch)
    assert (upload.accepted, upload.rejected, upload.bad_rows) == (1, (1, 2), (3,))
    assert upload.receipt("")["rejected"] == [
        {"index": 1, "reason": "range"}, {"index": 2, "reason": "range"}, {"index": 3, "reason": "row"},
    ]  # fmt: skip
    assert upload.refused == {"range": 2, "row": 1}


ARROW_COLUMNS: list[tuple[str, pa.Array, list[bool]]] = [
    ("visits", pa.array([1, -1, None], pa.int8()), [True, True, True]),
    ("visits", pa.array([1, 2**64 - 1, None], pa.uint64()), [True, False, True]),
    ("visits", pa.array([-(2**63), MAX_NUMBER, MAX_NUMBER + 1], pa.int64()), [False, True, False]),
    ("hours", pa.array([1, 2**63 - 1, None], pa.int64()), [True, False, True]),
    ("hours", pa.array([np.nan, 3.5, None], pa.float32()), [False, True, True]),
    ("hours", pa.array(np.array([np.inf, 2, -1], np.float16)), [False, True, True]),
    ("os", pa.array(["a", "x" * 257, None], pa.large_string()), [True, False, True]),
    ("os", pa.array(["a", "a", None]).dictionary_encode(), [True, True, True]),
    ("os", pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), ["x" * 257, "b"]), [False, True, True]),
    ("os", pa.nulls(3), [True, True, True]),
    ("since", pa.array([date(2024, 2, 29), date.max, None], pa.date64()), [True, True, True]),
    ("since", pa.array([-719163, 2932896, 2932897], pa.int32()).cast(pa.date32()), [False, True, False]),
    ("since", pa.array([86_400_000 << 32, 0, -86_400_000 << 32], pa.int64()).cast(pa.date64()), [False, True, False]),
]


@pytest.mark.parametrize(("name", "column", "fits"), ARROW_COLUMNS, ids=range(len(ARROW_COLUMNS)))
def test_columns_of_related_types_are_taken_and_judged(bench: Bench, name: str, column: pa.Array, fits: list[bool]):
    given = table(range(3))
    upload = bench.judge(stream(given.set_column(given.column_names.index(name), name, column)))
    assert isinstance(upload, JudgedBatch)
    assert upload.bad_rows == tuple(i for i, fit in enumerate(fits) if not fit)
    assert upload.accepted == sum(fits)


@pytest.mark.parametrize("kind", [pa.binary(WIDTH), pa.binary(), pa.large_binary()], ids=str)
def test_reports_of_any_binary_type(bench: Bench, kind: pa.DataType):
    given = table(range(10))
    sliced = given.set_column(0, "report", given["report"].cast(kind)).slice(3, 4)
    upload = bench.judge(stream(sliced))
    assert isinstance(upload, JudgedBatch)
    assert upload.accepted == 4
    assert upload.batch is not None


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        (lambda t: t.append_column("colour", pa.array([1, 2, 3])), "malformed"),
        (lambda t: t.append_column("os", t["os"]), "malformed"),
        (lambda t: t.drop_columns(["report"]), "malformed"),
        (lambda t: t.set_column(0, "report", pa.array([1, 2, 3])), "malformed"),
        (lambda t: t.set_column(0, "report", pa.array(["aaaa", "bbbb", "cccc"])), "malformed"),
        (lambda t: t.set_column(0, "report", pa.array([b"aaaa", b"aaa", b"aaaa"])), "width"),
        (lambda t: t.set_column(0, "report", pa.array([b"\0" * 4, None, b"\0" * 4])), "width"),
        (lambda t: t.set_column(0, "report", pa.array([b"aaaaa"] * 3, pa.binary(5))), "width"),
        (lambda t: t.set_column(0, "report", pa.array([b"\0" * 4] * 3).dictionary_encode()), "malformed"),
        (lambda t: t.set_column(1, "hours", pa.array(["1", "2", "3"])), "malformed"),
        (lambda t: t.set_column(1, "hours", pa.array([[1.0], [2.0], [3.0]])), "malformed"),
        (lambda t: t.set_column(1, "hours", pa.array([1, 2, 3]).dictionary_encode()), "malformed"),
        (lambda t: t.set_column(1, "hours", pa.array([{"a": 1}] * 3)), "malformed"),
        (lambda t: t.set_column(2, "visits", pa.array([1.0, 2.0, 3.0])), "malformed"),
        (lambda t: t.set_column(3, "os", pa.array([1, 2, 3])), "malformed"),
        (lambda t: t.set_column(3, "os", pa.array([b"a", b"b", b"c"])), "malformed"),
        (lambda t: t.set_column(4, "paying", pa.array([0, 1, 0])), "malformed"),
        (lambda t: t.set_column(5, "since", pa.array(["2024-01-01"] * 3)), "malformed"),
        (lambda t: t.set_column(5, "since", pa.array([0, 1, 2], pa.timestamp("s"))), "malformed"),
        (lambda t: t.append_column("member", pa.array([0, 1, 0])), "malformed"),
        (lambda t: t.append_column("member", pa.array([0.0, 0.0, 0.0])), "malformed"),
        (lambda t: t.slice(0, 0), "malformed"),
        (lambda t: t.select([]), "malformed"),
    ],
)
def test_an_upload_that_is_wrong_as_a_whole_is_refused_as_a_whole(bench: Bench, changed: Any, kind: str):
    assert bench.judge(stream(changed(table(range(3))))) == kind


def test_only_the_one_member_may_be_named(bench: Bench):
    upload = bench.judge(stream(table(range(3)).append_column("member", pa.array([0, 0, 0], pa.uint32()))))
    assert isinstance(upload, JudgedBatch)
    assert upload.accepted == 3


# Streams that lie.


@pytest.mark.slow
def test_garbage_is_refused_in_words(bench: Bench):
    good, rng = (
        stream(table(range(40)).set_column(3, "os", table(range(40))["os"].dictionary_encode())),
        np.random.default_rng(5),
    )
    bodies = [b"", b"x" * 999, good[:60], good[: len(good) // 2], b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"a" * 50]
    assert {bench.judge(body) for body in bodies} == {"malformed"}
    seen: set[str] = set()
    for _ in range(1500):
        damaged = bytearray(good)
        for place in rng.integers(0, len(good), rng.integers(1, 5)):
            damaged[place] = rng.integers(256)
        verdict = bench.judge(bytes(damaged))
        seen.add(verdict if isinstance(verdict, str) else "judged")
    assert seen <= {"malformed", "width", "too_large", "judged"}
    assert {"malformed", "judged"} <= seen


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_stream_is_refused_before_anything_is_unpacked(
    bench: Bench, codec: str, monkeypatch: pytest.MonkeyPatch
):
    """64 MB of zeros in a few kilobytes."""
    bomb = pa.table({"report": pa.array([b"\0" * 4] * 3), "hours": pa.array([0.0] * 3)})
    zeros = pa.table({"report": pa.array(np.zeros(1 << 22, "S4"), pa.binary(4)), "hours": np.zeros(1 << 22)})
    before = pa.total_allocated_bytes()
    body = stream(zeros, compression=codec)
    del zeros
    assert len(body) < 1 << 20
    peak = pa.default_memory_pool().max_memory()
    for each in (body, stream(bomb, compression=codec)):
        assert bench.judge(each) == "malformed"
    assert pa.default_memory_pool().max_memory() == peak
    assert pa.total_allocated_bytes() - before < 1 << 24


def test_a_compressed_dictionary_is_refused(bench: Bench):
    given = table(range(3))
    coded = given.set_column(3, "os", given["os"].combine_chunks().dictionary_encode())
    assert bench.judge(stream(coded, compression="zstd")) == "malformed"


def test_dictionaries_that_would_unfold_to_gigabytes_are_refused(bench: Bench):
    n = 200_000
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), pa.array(["x" * (1 << 20)]))
    body = stream(pa.table({"report": pa.array(np.zeros(n, "S4"), pa.binary(4)), "os": long}))
    assert len(body) < 4 << 20
    peak = pa.default_memory_pool().max_memory()
    assert bench.judge(body) == "too_large"
    assert pa.default_memory_pool().max_memory() - peak < 1 << 25


def test_more_rows_than_an_upload_may_have_are_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(arrow_stream, "MOST_BATCH_ROWS", 100)
    assert bench.judge(stream(table(range(101)))) == "too_large"
    assert bench.judge(stream(table(range(101)), max_chunksize=30)) == "too_large"
    assert isinstance(bench.judge(stream(table(range(100)))), JudgedBatch)


def test_columns_without_end_are_refused(bench: Bench):
    many = pa.table({f"c{i}": pa.nulls(1) for i in range(3000)})
    assert bench.judge(stream(many)) == "malformed"
    huge = pa.nulls(1).cast(pa.null())
    body = bytearray(stream(pa.table({"os": huge})))
    # The number of rows is written as 1 in the metadata; any other is a lie that no buffer backs.
    places = [place for place in range(len(body) - 8) if struct.unpack_from("<q", body, place) == (1,)]
    assert places, "the stream has no number of rows to lie about"
    for place in places:
        lie = bytes(body[:place]) + struct.pack("<q", 1 << 60) + bytes(body[place + 8 :])
        assert bench.judge(lie) in ("malformed", "too_large")


def test_the_short_way_takes_no_rows(bench: Bench):
    assert plain_batch(bench.active, binary(bench.id, bytes(4), width=4)) is None
