"""Queries that nobody waits for end, large ones are refused, small cohorts are not told, and threads do not collide."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from time import sleep
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from tests.unit.sql.test_segments import COLUMNS, DESIGNS, SCHEMA, Memory, N, assert_same, make_both  # noqa: E402

from tacit.errors import InvalidQuery  # noqa: E402
from tacit.sql.engine import linked as linked_module  # noqa: E402
from tacit.sql.engine.public import ArrowRows, RowEvaluator  # noqa: E402
from tacit.sql.parse.syntax import ColumnRef  # noqa: E402
from tacit.sql.patience import patient  # noqa: E402
from tacit.sql.segments import SegmentCache, SegmentedTable, SegmentRows  # noqa: E402

MANY = ", ".join(f"AVG(hours + {i})" for i in range(2))
WIDE = f"SELECT age, state, {MANY} FROM t GROUP BY age, state"
CELLS = 27 * 3 * 2


class Late(Exception):
    """Nobody waits any more."""


def counting(stop: int | None = None) -> tuple[Callable[[], None], list[int]]:
    """A check that counts its calls, and raises from one of them on."""
    calls = [0]

    def check() -> None:
        calls[0] += 1
        if stop is not None and calls[0] > stop:
            raise Late

    return check, calls


@pytest.mark.slow_cases("consistent", "hio", "mg")
@pytest.mark.parametrize("name", DESIGNS)
def test_a_late_query_ends_at_any_step_and_leaves_everything_usable(name: str):
    """The check is called for every aggregate of every region, so no step is longer than one of these."""
    _, table = make_both(DESIGNS[name], 1)
    check, calls = counting()
    expected = table.query(WIDE)  # What a design knows about its regions is known from here on.
    replace(table, check=check, cache=SegmentCache()).query(WIDE)
    total = calls[0]
    assert total > CELLS
    for stop in (0, 5, total // 2, 9 * total // 10):
        with pytest.raises(Late):
            replace(table, check=counting(stop)[0], cache=SegmentCache()).query(WIDE)
    with pytest.raises(Late):
        replace(table, check=counting(total // 3)[0]).query(WIDE)
    assert_same(table.query(WIDE), expected)


def test_a_late_plan_ends_too():
    _, table = make_both(DESIGNS["hio"], 1)
    check, calls = counting()
    steps = replace(table, check=check).explain(WIDE).steps
    assert len(steps) == CELLS < calls[0]
    for stop in (0, calls[0] // 2, calls[0] - 1):
        with pytest.raises(Late):
            replace(table, check=counting(stop)[0]).explain(WIDE)


def test_hashes_of_many_nodes_are_counted_in_steps(monkeypatch: pytest.MonkeyPatch):
    _, table = make_both(DESIGNS["mg"], 1)
    sql = "SELECT COUNT(*) FROM t WHERE age <> 3 AND state <> 'CA'"
    whole = table.query(sql)
    check, calls = counting()
    replace(table, check=check, cache=SegmentCache()).query(sql)
    monkeypatch.setattr(linked_module, "_STEP", N)
    finer, more = counting()
    assert_same(replace(table, check=finer, cache=SegmentCache()).query(sql), whole)
    assert more[0] > calls[0] + 10


def test_whoever_waits_for_another_query_does_not_wait_for_ever():
    _, table = make_both(DESIGNS["hio"], 1)
    table.query("SELECT COUNT(*) FROM t")
    opened = table.cache.get("s0")
    assert opened is not None
    with opened.piece.lock, pytest.raises(Late):
        replace(table, check=counting(6)[0]).query("SELECT COUNT(*) FROM t")


def test_answers_of_too_many_cells_or_measures_are_refused_with_advice():
    _, table = make_both(DESIGNS["hio"], 1)
    large = "SELECT age, state, score, " + ", ".join(["COUNT(*)"] * 2) + " FROM t GROUP BY age, state, score"
    with pytest.raises(
        InvalidQuery, match=r"has \d+ cells .* 81 private ones and 2 aggregates .* at most 65536; group"
    ):
        table.query(large)
    measures = ", ".join(f"SUM(hours * {i})" for i in range(65))
    for start in ("", "EXPLAIN "):
        with pytest.raises(InvalidQuery, match="65 different things, must be at most 64"):
            table.query(f"{start}SELECT {measures} FROM t")


def test_aggregates_of_the_same_rows_agree_with_each_alone():
    """Sums that aggregates share are those that each would work out."""
    _, table = make_both(DESIGNS["consistent"], 3)
    items = [f"{name}({what})" for what in ("score", "hours") for name in ("SUM", "AVG", "STDDEV", "VAR_POP", "COUNT")]
    items += ["COUNT(*)", "SUM(score) FILTER (WHERE os = 'win')", "AVG(hours) FILTER (WHERE flag AND age > 4)"]
    for rest, asked in (("WHERE age < 20", items), ("WHERE age < 20 OR flag GROUP BY os", items[:-2])):
        every = table.query(f"SELECT {', '.join(asked)} FROM t {rest}")
        for i, item in enumerate(asked):
            alone = table.query(f"SELECT {item} FROM t {rest}")
            assert_same(replace(every, columns=alone.columns, rows=tuple((row[i],) for row in every.rows)), alone)


def test_estimates_of_fewer_rows_than_the_cohort_are_not_told():
    """Of rows one by one, nothing that comes from their reports; what is public of them stays exact."""
    _, table = make_both(DESIGNS["hio"], 2)
    small = replace(table, least=50)
    for row in small.query(
        "SELECT score, COUNT(*), AVG(hours), COUNT(*) FILTER (WHERE age < 9) AS c FROM t GROUP BY 1"
    ).rows:
        assert row[1].status == "exact" and row[1].estimate == row[1].n
        if row[3].n < 50:
            assert row[3].status == "below_minimum_cohort"
            assert {row[3].estimate, row[3].low, row[3].high, row[3].standard_error} == {None}
    systems = small.query("SELECT os, COUNT(*) FROM t WHERE age < 9 GROUP BY os").rows
    assert {cell.status for _, cell in systems} == {"estimate"}
    states = small.query("SELECT state, COUNT(*) FROM t WHERE score < 1000000 AND hours < 2 GROUP BY state").rows
    assert {(cell.status, cell.estimate) for _, cell in states} == {("below_minimum_cohort", None)}


def test_rows_that_are_known_do_not_hide_the_few_that_are_asked():
    """Many rows that are counted exactly, and one whose report would be the rest of the sum."""
    _, table = make_both(DESIGNS["hio"], 2)
    cell = replace(table, least=50).query("SELECT COUNT(*) FROM t WHERE flag OR hours = 7 AND age < 9").cells()[0]
    assert cell.n >= 50 and cell.status == "below_minimum_cohort"
    groups = replace(table, least=50).query("SELECT flag, COUNT(*) FROM t WHERE flag OR age < 9 GROUP BY flag").rows
    assert [(flag, cell.status) for flag, cell in groups] == [(False, "estimate"), (True, "exact"), (None, "estimate")]


def test_groups_come_in_the_order_of_group_by_whatever_the_order_of_reports():
    rng = np.random.default_rng(5)
    _, table = make_both(DESIGNS["hio"], 3)
    sql = "SELECT COUNT(*), flag, state, os FROM t WHERE age < 20 GROUP BY flag, state, os"
    order = ["CA", "NY", "WA"]
    expected = [(row[1], row[2], row[3]) for row in table.query(sql).rows]
    assert expected == sorted(
        expected,
        key=lambda key: ((key[0] is None, key[0] or False), order.index(key[1]), (key[2] is None, key[2] or "")),
    )
    mixed = [Memory(f"m{i}", item.table.take(pa.array(at)), item.reports[at])
             for i, item in enumerate(reversed(table.segments)) for at in [rng.permutation(item.n)]]  # fmt: skip
    other = SegmentedTable(SCHEMA, table.design, COLUMNS, mixed, SegmentCache())
    assert [(row[1], row[2], row[3]) for row in other.query(sql).rows] == expected


class SlowColumn:
    """A column that takes its time."""

    nbytes = 8

    def combine_chunks(self) -> Any:
        sleep(0.05)
        return pa.array([3, 1, 2])


class SlowTable:
    """A table of one slow column."""

    num_rows, column_names = 3, ("a",)

    def __getitem__(self, name: str) -> Any:
        return SlowColumn()


def together(work: Callable[[int], Any], threads: int = 4) -> list[Any]:
    """The results of some threads that begin at once."""
    start = Barrier(threads)

    def begin(i: int) -> Any:
        start.wait()
        return work(i)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def test_threads_that_ask_for_one_column_at_once_all_get_it():
    for _ in range(3):
        rows = SegmentRows(SlowTable(), np.array([1, 2, 0]))
        assert [column.to_pylist() for column in together(lambda _: rows.column("a"))] == [[1, 2, 3]] * 4  # noqa: B023
        assert rows.nbytes > 0


def test_threads_that_measure_and_group_at_once_all_get_the_same():

    table = pa.table({f"c{i}": np.arange(2000) % (i + 2) for i in range(20)})
    public = RowEvaluator(ArrowRows(table))

    def work(i: int) -> bool:
        for k in range(200):
            column = (k * (i + 1)) % 20
            assert public.measure(ColumnRef(f"c{column}"))[0].max() == column + 1
            assert len(public.groups([ColumnRef(f"c{column}")])[1]) == column + 2
            assert public.nbytes > 0
        return True

    assert all(together(work))


def test_segments_that_are_forgotten_are_not_kept_again():
    _, table = make_both(DESIGNS["hio"], 4)
    table.query("SELECT COUNT(*) FROM t")
    opened, cache = table.cache.get("s1"), table.cache
    assert opened is not None
    cache.forget("s", but={"s2"})
    assert [cache.get(f"s{i}") is not None for i in range(4)] == [False, False, True, False]
    cache.forget_for_good("s")
    cache.keep("s1", opened, cache.begin())
    assert cache.get("s1") is None and cache.nbytes == 0
    patient()
