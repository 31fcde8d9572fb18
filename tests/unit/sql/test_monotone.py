"""Counts of ranges of an ordered private column have a monotone one beside: nearer to the truth, never far from it."""

import numpy as np
import pyarrow as pa
import pytest

from tacit.simulate.analytics import rehearse
from tacit.sql.connection import Connection
from tacit.sql.engine import monotone
from tacit.sql.engine.aggregate import AggregateCell
from tacit.sql.engine.better import CLIPPED, MONOTONE
from tacit.sql.engine.predicate import ordered_range
from tacit.sql.parse.select import parse_sql
from tacit.sql.schema.schema import Dimension, Schema

SIZE, ROWS, SEEDS = 64, 4000, 4
SCHEMA = Schema((Dimension("age", low=0, high=SIZE - 1), Dimension("state", labels=("CA", "NY"))))
ENDS = np.sort(np.random.default_rng(5).integers(0, SIZE, (30, 2)), axis=1)
RANGES = [f"SELECT COUNT(*) FROM t WHERE half = 1 AND age BETWEEN {low} AND {high}" for low, high in ENDS]


@pytest.fixture(scope="module")
def people() -> pa.Table:
    rng = np.random.default_rng(1)
    ages = np.minimum(SIZE - 1, rng.geometric(0.12, ROWS) - 1)
    return pa.table({"age": ages, "state": rng.choice(["CA", "NY"], ROWS), "half": np.arange(ROWS) % 2})


@pytest.fixture(scope="module")
def tables(people: pa.Table) -> list[Connection]:
    rehearsal = rehearse(people, SCHEMA, epsilon="1", queries=RANGES[:3], method="hio")
    return [rehearsal.collect(np.random.default_rng(seed)) for seed in range(SEEDS)]


def only(table: Connection, sql: str) -> AggregateCell:
    return table.query(sql).cells()[0]


def test_ranges_are_nearer_to_the_truth_and_their_intervals_hold(people: pa.Table, tables: list[Connection]) -> None:
    """Fixed seeds; half the squared error is a wide margin, as it is about a third for counts of geometric ages."""
    ages = np.asarray(people["age"])[np.asarray(people["half"]) == 1]
    truth = np.array([((low <= ages) & (ages <= high)).sum() for low, high in ENDS])
    cells = [[answer.cells()[0] for answer in table.queries(RANGES)] for table in tables]
    assert {cell.better.method for some in cells for cell in some} == {MONOTONE}
    raw, better = (
        np.array([[one.estimate for one in some] for some in rows])
        for rows in (cells, [[cell.better for cell in some] for some in cells])
    )
    assert ((better - truth) ** 2).mean() < ((raw - truth) ** 2).mean() / 2
    assert (better >= 0).all() and (better <= ROWS / 2).all()
    # The guard: within 1.5 standard errors of the unbiased count, or at the end of what is possible.
    errors = np.array([[cell.standard_error for cell in some] for some in cells])
    possible = raw.clip(0, ROWS / 2)
    assert (np.abs(better - possible) <= 1.5 * errors + 1e-6).all()
    held = [
        cell.better.low <= count <= cell.better.high for some in cells for cell, count in zip(some, truth, strict=True)
    ]
    # 120 intervals of four tables are far from independent: 95 % on average, and 85 % here.
    assert np.mean(held) > 0.85


def test_filters_of_one_query_are_read_off_one_function(tables: list[Connection]) -> None:
    """Parts of the domain make up the rows, unless the guard has moved one of them."""
    parts = ", ".join(f"COUNT(*) FILTER (WHERE age BETWEEN {low} AND {low + 15})" for low in range(0, SIZE, 16))
    cells = tables[0].query(f"SELECT {parts}, COUNT(*) FILTER (WHERE NOT age < 48) FROM t").cells()
    assert [cell.better.method for cell in cells] == [MONOTONE] * 5
    assert cells[4].better.estimate == pytest.approx(cells[3].better.estimate)
    free = [abs(cell.better.estimate - cell.estimate) < 1.49 * cell.standard_error for cell in cells]
    assert not all(free) or sum(cell.better.estimate for cell in cells[:4]) == pytest.approx(ROWS)


@pytest.mark.parametrize(
    "rest",
    [
        "WHERE state = 'CA'",  # no order
        "WHERE age < 20 AND state = 'CA'",  # a box of two columns
        "WHERE age < 20 OR half = 1",  # mixed with a public column by OR
    ],
)
def test_other_single_counts_are_clipped(tables: list[Connection], rest: str) -> None:
    assert only(tables[0], f"SELECT COUNT(*) FROM t {rest}").better.method == CLIPPED


def test_counts_of_a_public_column_and_of_very_many_rows_are_clipped(
    tables: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert only(tables[0], "SELECT COUNT(half) FROM t WHERE age < 20").better.method == CLIPPED
    assert only(tables[0], "SELECT COUNT(age) FROM t WHERE age < 20").better.method == MONOTONE
    monkeypatch.setattr(monotone, "MOST_WORK", ROWS)
    assert only(tables[0], "SELECT COUNT(*) FROM t WHERE age < 20").better.method == CLIPPED


def test_a_count_of_everything_and_of_nothing_needs_no_noise(tables: list[Connection]) -> None:
    assert only(tables[0], "SELECT COUNT(*) FROM t WHERE age >= 0").status == "exact"
    assert only(tables[0], "SELECT COUNT(*) FROM t WHERE age < 0").better is None
    none = only(tables[0], "SELECT COUNT(*) FROM t WHERE half = 7 AND age < 20")
    assert none.better is None


@pytest.mark.parametrize(
    ("condition", "spans"),
    [
        ("age BETWEEN 3 AND 9", ((3, 9),)),
        ("half = 1 AND age < 5", ((0, 4),)),
        ("NOT (age >= 5 OR half = 1)", ((0, 4),)),
        ("age IN (1, 2, 7)", ((1, 2), (7, 7))),
        ("age > 60 OR age < 2", ((0, 1), (61, 63))),
        ("state = 'CA'", None),
        ("age < 5 AND state = 'CA'", None),
        ("age < 5 OR half = 1", None),
        ("half = 1", None),
    ],
)
def test_what_is_a_range(condition: str, spans: object) -> None:
    select = parse_sql(f"SELECT COUNT(*) FROM t WHERE {condition}", ["age", "state", "half"], "t")
    found = ordered_range(SCHEMA, select.condition)
    assert (found and found.spans) == spans
