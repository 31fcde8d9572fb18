"""Tables in segments answer as tables in memory do, to rounding, in memory that is bounded."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from tacit.core.statistics.simulated import GeneratorCoins  # noqa: E402
from tacit.errors import InvalidQuery, InvalidSpec, ReportRejected  # noqa: E402
from tacit.sql import dbapi  # noqa: E402
from tacit.sql.connection import Connection  # noqa: E402
from tacit.sql.design.levels import Design, hio, mg, sco  # noqa: E402
from tacit.sql.documents import design_of  # noqa: E402
from tacit.sql.engine.linked import collect_reports  # noqa: E402
from tacit.sql.open import open_table  # noqa: E402
from tacit.sql.schema.schema import Dimension, Schema  # noqa: E402
from tacit.sql.segments import SegmentCache, SegmentedTable  # noqa: E402

N = 700
SCHEMA = Schema((Dimension("age", low=0, high=26), Dimension("state", labels=("CA", "NY", "WA"))))
COLUMNS = [("os", "text"), ("hours", "integer"), ("score", "number"), ("flag", "boolean"), ("day", "date")]
TYPES = [pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32()]
DESIGNS = {"hio": hio(SCHEMA.shape(3), "3"), "mg": mg(SCHEMA.shape(3), "3"), "sco": sco(SCHEMA.shape(3), "6"),
           "consistent": design_of(hio(SCHEMA.shape(3), "3").mechanism, SCHEMA)}  # fmt: skip

QUERIES = [
    "SELECT COUNT(*), COUNT(hours), SUM(score), AVG(hours), VARIANCE(score), STDDEV(hours) FROM t WHERE age < 20",
    "SELECT COUNT(*), SUM(hours) FROM t",
    "SELECT os, COUNT(*), AVG(score), STDDEV(score) FROM t WHERE age BETWEEN 3 AND 19 GROUP BY os",
    "SELECT state, os, SUM(hours) AS total FROM t WHERE flag GROUP BY state, os ORDER BY total DESC, os LIMIT 5",
    "SELECT day, flag, COUNT(*) FROM t WHERE state <> 'CA' OR hours IS NULL AND age > 4 GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT score, COUNT(*) FROM t WHERE score > 1e9 GROUP BY score",
    "SELECT state, COUNT(*) FROM t GROUP BY state ORDER BY state",
    "SELECT COUNT(*) FILTER (WHERE os = 'win'), AVG(hours / score) FROM t WHERE day < '2026-01-03'",
]


@dataclass
class Memory:
    """A segment of rows in memory that counts how often it is loaded."""

    key: str
    table: Any
    reports: Any
    loads: list[int] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.reports)

    def load(self) -> tuple[Any, Any]:
        self.loads.append(1)
        return self.table, self.reports


def make_rows(rng: np.random.Generator) -> Any:
    """Rows with missing values, and a measure that is large beside its spread."""

    def holes(values: Any) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    given = [
        rng.choice(["win", "ios", "ünïx"], N).tolist(), rng.integers(0, 60, N).tolist(), 1e6 + rng.normal(0, 2, N),
        (rng.random(N) < 0.5).tolist(), rng.integers(20454, 20458, N).tolist(),
    ]  # fmt: skip
    arrays = [pa.array(holes(values), kind) for values, kind in zip(given, TYPES, strict=True)]
    return pa.table(arrays, names=[name for name, _ in COLUMNS])


def make_both(design: Design, pieces: int, limit: int = 1 << 30) -> tuple[Connection, SegmentedTable]:
    """The same rows in memory, and split at random into segments of which some are empty."""
    rng = np.random.default_rng(3)
    rows = make_rows(rng)
    values = np.stack([rng.integers(0, 27, N), rng.integers(0, 3, N)], axis=1)
    reports = collect_reports(design, values, GeneratorCoins(rng), rng)
    owners = rng.integers(0, pieces, N)
    places = [np.flatnonzero(owners == i) for i in range(pieces)] + [np.zeros(0, np.int64)]
    segments = [Memory(f"s{i}", rows.take(pa.array(place)), reports[place]) for i, place in enumerate(places)]
    table = SegmentedTable(SCHEMA, design, COLUMNS, segments, SegmentCache(limit))
    return open_table(SCHEMA, rows, design, reports), table


def assert_same(a: Any, b: Any) -> None:
    """Equal groups; equal estimates and errors to rounding."""
    assert a.columns == b.columns and len(a.rows) == len(b.rows)
    for mine, theirs in zip(a.rows, b.rows, strict=True):
        for x, y in zip(mine, theirs, strict=True):
            if not hasattr(x, "estimate"):
                assert x == (pytest.approx(y) if isinstance(x, float) else y)
                continue
            assert (x.n, x.status) == (y.n, y.status)
            for name in ("estimate", "standard_error", "low", "high", "per_user_standard_error"):
                first, second = getattr(x, name), getattr(y, name)
                assert first == (None if second is None else pytest.approx(second, rel=1e-7, abs=1e-7)), name


@pytest.mark.slow_cases("7-hio", "7-consistent", "7-sco", "1-mg", "1-consistent")
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("pieces", [1, pytest.param(2, marks=pytest.mark.slow), 7])
def test_segments_answer_as_memory_does(name: str, pieces: int):
    memory, table = make_both(DESIGNS[name], pieces)
    for sql in QUERIES:
        assert_same(table.query(sql), memory.query(sql))
    for a, b in zip(
        table.queries([*QUERIES, "EXPLAIN " + QUERIES[2]]),
        memory.queries([*QUERIES, "EXPLAIN " + QUERIES[2]]),
        strict=True,
    ):
        assert_same(a, b)
    mine, theirs = table.explain(QUERIES[0]), memory.explain(QUERIES[0])
    for a, b in zip(mine.steps, theirs.steps, strict=True):
        assert (a.aggregate, a.boxes, a.nodes, a.levels, a.rows) == (b.aggregate, b.boxes, b.nodes, b.levels, b.rows)
        assert a.expected_standard_error == pytest.approx(b.expected_standard_error)
    assert table.columns == memory.columns and table.n == N


def test_a_batch_loads_every_segment_once_and_the_cache_keeps_them():
    _, table = make_both(DESIGNS["hio"], 5)
    table.queries(QUERIES)
    table.query(QUERIES[0])
    loads = [len(segment.loads) for segment in table.segments]
    assert loads == [1, 1, 1, 1, 1, 0]  # The last one has no rows.


@pytest.mark.parametrize("limit", [0, 30_000])
def test_memory_stays_below_the_limit(limit: int):
    memory, table = make_both(DESIGNS["hio"], 6, limit)
    for sql in QUERIES[:3]:
        assert_same(table.query(sql), memory.query(sql))
        assert table.cache.nbytes <= limit
    loads = [len(segment.loads) for segment in table.segments[:6]]
    # Of a table that does not fit, a part stays: later queries open only the rest again.
    assert max(loads) == 3 and (min(loads) == 1) == (limit > 0)


def test_one_cache_serves_several_tables():
    cache = SegmentCache(1 << 30)
    _, first = make_both(DESIGNS["hio"], 2)
    for level in (0.9, 0.99):
        table = SegmentedTable(SCHEMA, first.design, COLUMNS, first.segments, cache).with_level(level)
        cell = table.query(QUERIES[0]).cells()[0]
        assert cell.high - cell.low == pytest.approx(
            2 * {0.9: 1.6449, 0.99: 2.5758}[level] * cell.standard_error, rel=1e-4
        )
    assert [len(segment.loads) for segment in first.segments] == [1, 1, 0]


def test_a_table_without_rows_has_empty_answers():
    table = SegmentedTable(SCHEMA, DESIGNS["hio"], COLUMNS, [], SegmentCache())
    cell = table.query("SELECT COUNT(*) FROM t WHERE age < 3").cells()[0]
    assert (cell.estimate, cell.n) == (0.0, 0)
    assert table.query("SELECT AVG(hours) FROM t WHERE age < 3").cells()[0].status in ("no_data", "insufficient_data")
    assert table.query("SELECT os, COUNT(*) FROM t GROUP BY os").rows == ()
    assert table.explain("SELECT COUNT(*) FROM t WHERE age < 3").steps[0].rows == 0
    for wrong in ("os < 3", "day > 'soon'", "hours LIKE 'x'", "agee < 3", "state < 'NY'"):
        with pytest.raises(InvalidQuery):
            table.query(f"SELECT COUNT(*) FROM t WHERE {wrong}")


def test_segments_that_do_not_fit_are_refused():
    _, table = make_both(DESIGNS["hio"], 1)
    segment = table.segments[0]
    short = Memory("x", segment.table.slice(0, 10), segment.reports)
    with pytest.raises(ReportRejected, match="700 reports for 10 rows"):
        SegmentedTable(SCHEMA, table.design, COLUMNS, [short], SegmentCache()).query("SELECT COUNT(*) FROM t")
    with pytest.raises(InvalidSpec, match="age is private"):
        SegmentedTable(SCHEMA, table.design, [("age", "integer")], [], SegmentCache())


def test_columns_of_other_widths_are_cast():
    memory, table = make_both(DESIGNS["hio"], 2)
    for segment in table.segments:
        narrow = segment.table["hours"].cast(pa.int16())
        segment.table = segment.table.set_column(1, "hours", narrow).append_column("more", narrow)
    assert_same(table.query(QUERIES[0]), memory.query(QUERIES[0]))


def test_the_database_interface_over_segments():
    _, table = make_both(DESIGNS["hio"], 3)
    found = dbapi.connect(table, errors=True).cursor().execute(QUERIES[2]).fetchall()
    assert [row[0] for row in found] == ["ios", "win", "ünïx", None]


def test_queries_of_several_threads_agree():
    from concurrent.futures import ThreadPoolExecutor

    memory, table = make_both(DESIGNS["hio"], 4, 40_000)
    texts = QUERIES[:5] * 6
    with ThreadPoolExecutor(4) as pool:
        for sql, answer in zip(texts, pool.map(table.query, texts), strict=True):
            assert_same(answer, memory.query(sql))
