"""DISTINCT, HAVING, MIN and MAX: what is listed or singled out is held by at least the minimum cohort of rows."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.sql.test_segments import Memory

from tacit.core.statistics.simulated import GeneratorCoins
from tacit.errors import InvalidQuery
from tacit.sql.design.levels import hio
from tacit.sql.engine.linked import collect_reports
from tacit.sql.schema.schema import Dimension, Schema
from tacit.sql.segments import SegmentCache, SegmentedTable

N, LEAST = 2000, 100
SCHEMA = Schema((Dimension("age", low=0, high=26), Dimension("state", labels=("CA", "NY"))))
COLUMNS = [("uid", "integer"), ("os", "text"), ("day", "date"), ("bill", "number"), ("level", "integer")]


def make_rows() -> dict[str, list[Any]]:
    """Everybody has an id and a bill of their own; few use the third system, and nobody but one is of level 9."""
    rng = np.random.default_rng(3)
    return {
        "uid": list(range(N)),
        "os": ["ios" if i % 2 else "win" if i > 40 else "haiku" if i > 10 else None for i in range(N)],
        "day": [date(2030, 1, 1) + timedelta(days=i % 10 if i else 400) for i in range(N)],
        "bill": np.round(rng.gamma(2, 10, N), 6).tolist(),
        "level": [9 if i == 7 else -5 if i == 8 else i % 3 for i in range(N)],
    }


PEOPLE = make_rows()


def make_table() -> SegmentedTable:
    rng = np.random.default_rng(8)
    design = hio(SCHEMA.shape(3), "2")
    values = np.stack([rng.integers(0, 27, N), rng.integers(0, 2, N)], axis=1)
    reports = collect_reports(design, values, GeneratorCoins(rng), rng)
    rows = pa.table(PEOPLE)
    # Values that are frequent overall are rare in every single segment.
    parts = np.array_split(rng.permutation(N), 4)
    segments = [Memory(f"s{i}", rows.take(pa.array(at)), reports[at]) for i, at in enumerate(parts)]
    return SegmentedTable(SCHEMA, design, COLUMNS, segments, SegmentCache(), least=LEAST)


TABLE = make_table()


def answer(sql: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(item, "estimate", item) for item in row) for row in TABLE.query(sql).rows]


def held(*names: str) -> list[tuple[Any, ...]]:
    """Combinations of values that enough people hold."""
    counts = Counter(zip(*(PEOPLE[name] for name in names), strict=True))
    return sorted(key for key, count in counts.items() if count >= LEAST)


def test_distinct_lists_what_enough_rows_hold() -> None:
    assert answer("SELECT DISTINCT os FROM t") == held("os") == [("ios",), ("win",)]
    assert answer("SELECT os FROM t GROUP BY os ORDER BY os DESC") == held("os")[::-1]
    assert answer("SELECT DISTINCT os, level FROM t") == held("os", "level")
    assert answer("SELECT DISTINCT level FROM t ORDER BY level DESC LIMIT 1") == [(2,)]
    assert answer("SELECT DISTINCT uid FROM t") == answer("SELECT DISTINCT bill FROM t") == []


def test_distinct_values_of_a_private_column_are_those_of_its_domain() -> None:
    assert answer("SELECT DISTINCT state FROM t") == [("CA",), ("NY",)]
    assert answer("SELECT DISTINCT state, os FROM t") == [
        (state, os) for state in ("CA", "NY") for os in ("ios", "win")
    ]
    assert answer("SELECT DISTINCT state FROM t WHERE uid = 3") == []


def test_having_keeps_groups_of_enough_rows_that_meet_it() -> None:
    counts = Counter(PEOPLE["level"])
    large = [(level, float(n)) for level, n in sorted(counts.items()) if n >= 667]
    assert answer("SELECT level, COUNT(*) FROM t GROUP BY level HAVING COUNT(*) >= 667") == large
    assert answer("SELECT level FROM t GROUP BY 1 HAVING NOT (COUNT(*) < 667 OR AVG(bill) < 0)") == [large[0][:1]]
    # A public count decides about groups whose other cells are estimates.
    noisy = answer("SELECT os, COUNT(*) FILTER (WHERE age < 9) FROM t GROUP BY os HAVING COUNT(*) > 500")
    assert [row[0] for row in noisy] == ["ios", "win"]
    assert answer("SELECT COUNT(*) FROM t HAVING COUNT(*) > 1") == [(float(N),)]
    assert answer("SELECT COUNT(*) FROM t HAVING COUNT(*) > 10000") == []


# Whoever wants to know that somebody is there, and who it is.


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT level FROM t GROUP BY level HAVING COUNT(*) = 1",
        "SELECT level, COUNT(*) FROM t GROUP BY level HAVING COUNT(*) < 100",
        "SELECT os, day, COUNT(*) FROM t GROUP BY 1, 2 HAVING COUNT(*) = 1",
        "SELECT uid, SUM(bill) FROM t GROUP BY uid HAVING SUM(bill) > 0",
        "SELECT uid FROM t GROUP BY uid HAVING COUNT(*) > 0 OR TRUE",
        "SELECT uid FROM t GROUP BY uid HAVING NOT COUNT(*) > 1",
        "SELECT uid FROM t GROUP BY uid HAVING COUNT(*) FILTER (WHERE level = 9) = 1",
        "SELECT COUNT(*) FROM t WHERE uid = 7 HAVING COUNT(*) = 1",
        "SELECT COUNT(*), SUM(bill) FROM t WHERE level = 9 HAVING SUM(bill) > 3",
        "SELECT DISTINCT uid FROM t WHERE level = 9",
        "SELECT DISTINCT os FROM t WHERE uid < 99",
        "SELECT DISTINCT bill FROM t",
        "SELECT DISTINCT os, uid FROM t",
        "SELECT DISTINCT date_bin('1 second', day, TIMESTAMP '2001-01-01'), uid FROM t",
        "SELECT date_trunc('year', day) FROM t WHERE day > '2031-01-01' GROUP BY 1",
        "SELECT * FROM (SELECT level, COUNT(*) AS n FROM t GROUP BY level) v WHERE v.n = 1",
        "SELECT DISTINCT upper(os) FROM (SELECT os FROM t WHERE uid = 7) v",
    ],
)
def test_groups_of_few_rows_are_not_listed(sql: str) -> None:
    assert answer(sql) == []


def test_extremes_are_those_of_values_that_enough_rows_hold() -> None:
    assert answer("SELECT MIN(level), MAX(level) FROM t") == [(0, 2)]
    assert answer("SELECT MIN(day), MAX(day), COUNT(*) FROM t") == [(date(2030, 1, 1), date(2030, 1, 10), float(N))]
    assert answer("SELECT MIN(os), MAX(os) FROM t") == [("ios", "win")]
    expected = [("ios", 0), ("win", 0)]
    assert answer("SELECT os, MIN(level) FROM t GROUP BY os HAVING COUNT(*) > 0") == expected
    assert answer("SELECT MAX(level) FILTER (WHERE level < 2) FROM t") == [(1,)]
    assert answer("SELECT MAX(level + 1), MAX(level)::text FROM t") == [(3, "2")]
    assert answer("SELECT level, MAX(level) AS m FROM t WHERE level >= 0 GROUP BY level ORDER BY m DESC") == [
        (2, 2), (1, 1), (0, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MIN(bill) FROM t",
        "SELECT MAX(uid) FROM t",
        "SELECT MAX(level) FROM t WHERE uid = 7",
        "SELECT MAX(level) FROM t WHERE level > 2",
        "SELECT MAX(day) FROM t WHERE day > '2030-02-01'",
        "SELECT MAX(bill) FROM t WHERE uid < 50",
        "SELECT MIN(day) FILTER (WHERE uid = 0) FROM t",
        "SELECT MAX(level) FROM t WHERE uid BETWEEN 0 AND 98",
        "SELECT MAX(level * 1000 + uid) FROM t",
    ],
)
def test_the_extreme_of_few_rows_is_not_told(sql: str) -> None:
    assert answer(sql) == [(None,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MAX(age) FROM t",
        "SELECT MIN(level) FROM t WHERE age < 9",
        "SELECT state, MIN(level) FROM t GROUP BY state",
        "SELECT MAX(level) FILTER (WHERE state = 'CA') FROM t",
        "SELECT DISTINCT os FROM t WHERE state = 'CA'",
        "SELECT os FROM t WHERE age < 9 GROUP BY os",
        "SELECT os, COUNT(*) FROM t WHERE age < 9 GROUP BY os HAVING COUNT(*) > 200",
        "SELECT os FROM t GROUP BY os HAVING COUNT(*) FILTER (WHERE age < 9) > 200",
        "SELECT os FROM t GROUP BY os HAVING AVG(age) > 13",
        "SELECT state, COUNT(*) FROM t GROUP BY state HAVING COUNT(*) > 200",
        "SELECT DISTINCT age + 1 FROM t",
        "SELECT state::int, COUNT(*) FROM t GROUP BY 1",
    ],
)
def test_what_would_depend_on_private_values_is_refused(sql: str) -> None:
    with pytest.raises(InvalidQuery, match=r"which is private|is private;") as caught:
        TABLE.query(sql)
    assert caught.value.code == "0A000"


def test_tiny_bins_do_not_put_a_report_beside_its_row() -> None:
    for group in ("date_bin('1 second', day, TIMESTAMP '2001-01-01'), uid", "uid::text", "floor(bill)", "uid + 0"):
        rows = TABLE.query(f"SELECT {group}, COUNT(*) AS n FROM t WHERE age < 9 GROUP BY {group}").rows
        few = [row[-1] for row in rows if row[-1].n < LEAST]
        assert few and {cell.status for cell in few} == {"below_minimum_cohort"}
        assert {cell.estimate for cell in few} == {None}


def test_casts_round_the_estimate_and_keep_its_error() -> None:
    plain, cast = (TABLE.query(f"SELECT COUNT(*){kind} FROM t WHERE age < 9").cells()[0] for kind in ("", "::int"))
    assert cast.estimate == round(plain.estimate) != plain.estimate
    assert (cast.standard_error, cast.low, cast.high) == (plain.standard_error, plain.low, plain.high)


def test_private_columns_may_be_cast_to_what_they_are() -> None:
    for cast, plain in {
        "SELECT COUNT(*) FROM t WHERE age::numeric < 9 AND CAST(state AS text) = 'CA'": (
            "SELECT COUNT(*) FROM t WHERE age < 9 AND state = 'CA'"
        ),
        "SELECT state::varchar, AVG(age::float) FROM t GROUP BY 1": "SELECT state, AVG(age) FROM t GROUP BY state",
    }.items():
        for one, other in zip(answer(cast), answer(plain), strict=True):
            assert one[:-1] == other[:-1] and one[-1] == pytest.approx(other[-1])
