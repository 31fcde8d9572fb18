"""SQL on Spark answers as the embedded engine does."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.service.rows import PEOPLE, crowd

from tacit.catalog import CATALOG
from tacit.cli import cli
from tacit.collector.collections.publish import Planner
from tacit.core.members import as_bytes
from tacit.distributed.spark import open_rows, sessions, tally_collection
from tacit.distributed.spark.lakes import read_lake
from tacit.distributed.spark.rows import FrameTable
from tacit.errors import InvalidQuery
from tacit.lake.about import About
from tacit.lake.files import write_table
from tacit.lake.layout import fixed_binary, reports_of
from tacit.simulate.coins import SimulationCoins
from tacit.sql.engine.query import Query
from tacit.sql.open import open_table
from tacit.tasks.table import TASKS
from tacit.wire.tallies import dump_tally

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

PEOPLE_ROWS = 4000
TOLERANCE = 1e-9
"""Sums of the embedded engine and of partitions are rounded in another order; relative to the larger of both."""

QUERIES = [
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*), SUM(hours) FROM people WHERE age BETWEEN 30 AND 39",
    "SELECT os, AVG(hours), STDDEV(hours) FROM people WHERE age >= 30 AND state = 'CA' GROUP BY os",
    "SELECT state, COUNT(*) FROM people WHERE os = 'ios' AND hours > 10 GROUP BY state",
    "SELECT AVG(age), MAX(os), COUNT(*) FILTER (WHERE hours < 20) FROM people WHERE os IN ('ios', 'win')",
    "SELECT COUNT(*) FROM people WHERE os IS NULL AND age < 50",
    "SELECT COUNT(*), SUM(hours) FROM people WHERE os = 'beos' AND age < 50",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], Any]:
    """Rows of a published collection in three files, the document, and all of them as one table."""
    planner = Planner(CATALOG, TASKS, takes_rows=True, check_shuffled=lambda *_: None)
    collection = planner.plan(PEOPLE)[0]
    mechanism: Any = collection.mechanism
    people, folder = crowd(PEOPLE_ROWS), tmp_path_factory.mktemp("rows")
    answers = zip(people.age.tolist(), people.state.tolist(), strict=True)
    values = np.array([mechanism.family.of_answers(answer) for answer in answers])
    reports = mechanism.privatize(values, SimulationCoins(1))
    members, payloads = mechanism.split_batch(reports)
    own = {"member": members} if mechanism.drawn_from is not None else {}
    columns = own | {"report": fixed_binary(as_bytes(payloads))}
    table = pa.table(columns | {"os": pa.array(people.os, pa.string()), "hours": people.hours})
    about = About(mechanism, collection.to_json())
    for i, part in enumerate((table[:1000], table[1000:1300], table[1300:])):
        write_table(str(folder / f"{i}.parquet"), part, about)
    return folder, collection.to_json(), table


def same(here: Any, there: Any) -> bool:
    if not isinstance(here, float) or not isinstance(there, float):
        return here == there
    return bool(abs(here - there) <= TOLERANCE * max(1.0, abs(here), abs(there)))


@pytest.fixture(scope="module")
def opened(spark: Any, lake: Any) -> FrameTable:
    return open_rows(spark.read.parquet(str(lake[0])), lake[1])


def test_answers_are_those_of_the_embedded_engine(lake: Any, opened: FrameTable) -> None:
    _, _, table = lake
    mechanism: Any = opened.design.mechanism
    public = table.select(["os", "hours"])
    embedded = replace(open_table(opened.schema, public, opened.design, reports_of(mechanism, table)), least=100)
    assert opened.least == 100
    for query, found in zip(QUERIES, opened.queries(QUERIES), strict=True):
        expected = embedded.query(query)
        assert found.columns == expected.columns
        for a, b in zip(found.cells(), expected.cells(), strict=True):
            assert a.n == b.n and a.status == b.status, query
            pairs = [(getattr(a, name), getattr(b, name)) for name in ("estimate", "standard_error", "low", "high")]
            assert all(same(*pair) for pair in pairs), (query, pairs)


def test_neither_the_order_of_partitions_nor_of_files_changes_a_bit(spark: Any, lake: Any, opened: FrameTable) -> None:
    folder, document, _ = lake
    # One partition per file, then the same partitions the other way round.
    frames = [spark.read.parquet(str(folder / f"{i}.parquet")) for i in range(3)]
    there = frames[0].union(frames[1]).union(frames[2])
    back = frames[2].union(frames[1]).union(frames[0])
    queries = [QUERIES[1], QUERIES[2]]
    answers = [open_rows(frame, document).queries(queries) for frame in (there, back)]
    assert [a.rows for a in answers[0]] == [a.rows for a in answers[1]]


def test_public_conditions_and_columns_are_pushed_down(opened: FrameTable) -> None:
    plan = _plan(opened, "SELECT COUNT(*) FROM people WHERE os = 'ios' AND hours > 10 AND age < 50")
    assert "PushedFilters: [" in plan and "EqualTo(os,ios)" in plan and "GreaterThan(hours,10.0)" in plan
    assert "age" not in plan
    assert "hours" not in _plan(opened, "SELECT os, COUNT(*) FROM people WHERE age < 50 GROUP BY os")


def test_executors_read_files_where_no_row_can_be_skipped(spark: Any, lake: Any, opened: FrameTable) -> None:
    """And Spark, which skips pages by public conditions, where one might be."""
    table = read_lake(spark, [str(lake[0])]).table()
    private, public = QUERIES[0], QUERIES[3]
    assert "PushedFilters" not in _plan(table, private) and "EqualTo(os,ios)" in _plan(table, public)
    for query in (QUERIES[1], QUERIES[2], public):
        found, expected = (
            [(cell.n, cell.estimate, cell.standard_error) for cell in each.query(query).cells()]
            for each in (table, opened)
        )
        assert len(found) == len(expected)
        assert all(same(*pair) for cells in zip(found, expected, strict=True) for pair in zip(*cells, strict=True))


def _plan(table: FrameTable, sql: str) -> str:
    _, frame, _ = table.prepared([Query(table.schema, table.parse(sql))])
    return frame._jdf.queryExecution().executedPlan().toString()


def test_what_is_refused(spark: Any, lake: Any, opened: FrameTable) -> None:
    folder, document, _ = lake
    with pytest.raises(InvalidQuery, match="EXPLAIN"):
        opened.query("EXPLAIN SELECT COUNT(*) FROM people")
    with pytest.raises(InvalidQuery, match="there is no column"):
        opened.query("SELECT SUM(hour) FROM people")
    with pytest.raises(InvalidQuery, match="50 rows; queries are answered from 100 rows on"):
        open_rows(spark.read.parquet(str(folder)).limit(50), document)
    with pytest.raises(InvalidQuery, match="no rows"):
        open_rows(spark.read.parquet(str(folder)), document | {"rows": None})


def test_the_command_prints_what_the_engine_answers(
    spark: Any, lake: Any, opened: FrameTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "session", lambda master: nullcontext(spark))
    words = ["spark", "query", QUERIES[1], "--master", "local[2]", "--input", str(lake[0])]
    shown, told = (CliRunner().invoke(cli, [*words, *more]) for more in ([], ["--json"]))
    assert (shown.exit_code, told.exit_code) == (0, 0), shown.output + told.output
    answer = json.loads(told.stdout)
    expected = [cell.estimate for cell in opened.query(QUERIES[1]).cells()]
    # Executors cut files into other pieces than Spark does.
    assert all(same(cell["estimate"], other) for cell, other in zip(answer["rows"][0], expected, strict=True))
    assert (answer["table"], answer["n"]) == ("people", PEOPLE_ROWS) and "±" in shown.stdout
    refused = CliRunner().invoke(cli, [*words[:2], "SELECT SUM(hour) FROM people", *words[3:]])
    assert isinstance(refused.exception, InvalidQuery) and "there is no column" in str(refused.exception)


def test_the_reports_of_a_collection_with_rows_are_tallied_too(spark: Any, lake: Any) -> None:
    folder, document, table = lake
    found = tally_collection(spark.read.parquet(str(folder)), document)
    mechanism: Any = found.mechanism
    assert dump_tally(found) == dump_tally(mechanism.tally(reports_of(mechanism, table)))
    assert len(pq.read_schema(folder / "0.parquet").names) == len(table.column_names)
