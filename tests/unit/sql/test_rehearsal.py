"""Rehearsals on data as it comes: ids and times beside, codes as labels, fractions, gaps and NaN."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from tacit.cli.simulate.analytics import analytics  # noqa: E402
from tacit.device.domains.domain import Categories, Ordered  # noqa: E402
from tacit.errors import InvalidQuery, InvalidSpec, InvalidValue  # noqa: E402
from tacit.simulate.analytics import (  # noqa: E402
    MOST_FOUND,
    Rehearsal,
    read_schema,
    rehearse,
    revealing,
    simulate_analytics,
)
from tacit.sql.connection import Connection  # noqa: E402
from tacit.sql.documents import table_schema  # noqa: E402
from tacit.sql.engine.predicate import Conditions  # noqa: E402
from tacit.sql.engine.public import ArrowRows, RowEvaluator  # noqa: E402

RNG = np.random.default_rng(12)
N = 3000
ROWS: dict[str, Any] = {
    "age": RNG.integers(0, 40, N), "edu": RNG.choice([1, 2, 5, 10], N), "hours": RNG.gamma(3, 4, N),
    "os": RNG.choice(["a", "b"], N),
}  # fmt: skip


def rehearsal(private: str = "age:0-39,edu", **columns: Any) -> Rehearsal:
    table = pa.table(ROWS | columns)
    return rehearse(table, read_schema(private, table), epsilon="4", queries=["SELECT COUNT(*) FROM t WHERE age < 9"])


def asked(sql: str, **columns: Any) -> Connection:
    found = rehearsal(**columns)
    connection = found.collect(np.random.default_rng(1))
    connection.query(sql)
    return connection


def test_a_public_column_of_many_values_blocks_nothing_but_groups_by_it():
    n = 70_000
    rng = np.random.default_rng(3)
    table = pa.table({"age": rng.integers(0, 20, n), "uid": np.arange(n), "twice": np.arange(n) // 1,
                      "time": pa.array(np.arange(n) * 1_000_000, pa.timestamp("us"))})  # fmt: skip
    schema = read_schema("age:0-19", table)
    found = rehearse(table, schema, epsilon="4", queries=["SELECT COUNT(*) FROM t WHERE age < 9"], method="mg")
    assert revealing(found) == []
    _, rows = simulate_analytics(found, "SELECT COUNT(*), AVG(uid) FROM t WHERE age < 9 AND uid > 100", seed=1)
    assert [row["aggregate"] for row in rows] == ["COUNT(*)", "AVG(uid)"]
    with pytest.raises(InvalidQuery, match=r"GROUP BY uid has 70000 groups, must be at most 65536; leave it out of"):
        found.collect(rng).query("SELECT uid, COUNT(*) FROM t GROUP BY uid")


def test_labels_are_taken_from_data_up_to_a_limit():
    table = pa.table({"uid": [f"u{i}" for i in range(MOST_FOUND + 1)]})
    assert read_schema("uid", table.slice(1)).dimensions[0].size == MOST_FOUND
    with pytest.raises(
        InvalidSpec, match=r"uid: the data has 65537 labels, at most 65536 are taken from it; give a range"
    ):
        read_schema("uid", table)


@pytest.mark.parametrize("condition", ["edu = 1", "edu = '1'", "edu IN (1, '1')", "edu < 2", "edu <= '1'", "1.0 = edu"])
def test_codes_are_compared_as_whole_numbers_in_quotes_or_without(condition: str):
    found = rehearsal()
    truth = found.truth().query(f"SELECT COUNT(*) FROM t WHERE {condition}").cells()[0].estimate
    assert truth == np.count_nonzero(ROWS["edu"] == 1)


def test_groups_of_codes_come_in_the_order_of_numbers():
    rows = rehearsal().truth().query("SELECT edu, COUNT(*), AVG(edu) FROM t GROUP BY edu").rows
    assert [(row[0], row[2].estimate) for row in rows] == [(1, 1), (2, 2), (5, 5), (10, 10)]
    with pytest.raises(InvalidQuery, match="edu is never 3; it is one of '1', '2', '5', '10'"):
        rehearsal().truth().query("SELECT COUNT(*) FROM t WHERE edu = 3")
    with pytest.raises(InvalidQuery, match="age holds whole numbers, compare it with a number, not with text"):
        rehearsal().truth().query("SELECT COUNT(*) FROM t WHERE age = 'old'")


def test_labels_that_spell_numbers_take_numbers_too():
    schema = table_schema(
        ["code", "size"], [Categories("code", ("1", "2", "x")), Ordered("size", ("1", "2", "3"))], "t"
    )
    conditions = Conditions(schema, RowEvaluator(ArrowRows(pa.table({"os": ["a"]}))))
    from tacit.sql.parse.select import parse_sql

    def region(text: str) -> Any:
        return conditions.regions(parse_sql(f"SELECT COUNT(*) FROM t WHERE {text}", ["code", "size"], "t").condition)

    assert region("code = 1") == region("code = '1'") and region("size < 3") == region("size IN ('1', '2')")
    with pytest.raises(InvalidQuery, match="code is never '3'"):
        region("code = 3")


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        (
            "age",
            3.5,
            r"age: the domain is 0 to 39; 1 of 3000 rows are fractions: round them before .* or cut them into b",
        ),
        ("age", None, r"1 of 3000 rows are missing \(NULL or NaN\): leave these rows out, or give them .*'other'"),
        ("age", float("nan"), r"1 of 3000 rows are missing"),
        ("age", -7, r"1 of 3000 rows are below the domain: widen the domain"),
        ("age", 70, r"1 of 3000 rows are above the domain: widen"),
    ],
)
def test_values_that_do_not_fit_say_what_to_do_and_not_what_they_are(column: str, value: Any, words: str):
    values = ROWS[column].tolist()
    values[17] = value
    with pytest.raises(InvalidValue, match=words) as caught:
        rehearsal(**{column: pa.array(values, pa.float64(), from_pandas=False)})
    assert "3.5" not in str(caught.value) and "70" not in str(caught.value)


def test_gaps_in_codes_and_labels_are_named_too():
    for column, values in (("edu", [None, 2, 3] * 1000), ("os", [None, "b", "c"] * 1000)):
        with pytest.raises(InvalidValue, match=f"{column}: .*1000 of 3000 rows are missing .*'other'"):
            rehearsal(f"age:0-39,{column}", **{column: values})


def test_several_faults_are_counted_apart():
    values = ROWS["age"].astype(float).tolist()
    values[:6] = [0.5, 0.25, None, 99, 99, 99]
    with pytest.raises(InvalidValue, match=r"3 of 3000 rows are above .*; 2 of 3000 rows are fractions.*; 1 of 3000"):
        rehearsal(age=pa.array(values, pa.float64()))


def test_a_measure_that_is_nan_is_called_so_and_matters_only_where_it_is_asked_for():
    hours = ROWS["hours"].copy()
    hours[:4] = [np.nan, np.nan, np.inf, 1e13]
    column = pa.array(hours, from_pandas=False)
    with pytest.raises(InvalidQuery, match=r"hours is NaN \(not a number\) in 2 of the rows .* WHERE hours <= 1e\+12"):
        asked("SELECT AVG(hours) FROM t WHERE age < 9", hours=column)
    with pytest.raises(InvalidQuery, match="hours is infinite or huge in 2 of the rows that are asked for"):
        asked("SELECT SUM(hours) FROM t WHERE age < 9 AND hours > 0", hours=column)
    connection = asked("SELECT COUNT(*), COUNT(hours) FROM t WHERE age < 9", hours=column)
    cell = connection.query("SELECT AVG(hours) FROM t WHERE hours <= 1e12").cells()[0]
    assert cell.estimate == pytest.approx(hours[4:].mean())


@pytest.mark.slow
def test_the_command_sums_private_numbers(tmp_path: Path):
    lines = ["age,edu,uid"] + [f"{a},{e},{i}" for i, (a, e) in enumerate(zip(ROWS["age"], ROWS["edu"], strict=True))]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    sql = "SELECT AVG(age), SUM(age), MEDIAN(age), AVG(edu) FROM t WHERE edu <= 5"
    options = ["--data", str(tmp_path / "people.csv"), "--private", "age:0-39,edu", "--epsilon", "4", "--json"]
    found = CliRunner().invoke(analytics, [*options, "--sql", sql])
    assert found.exit_code == 0, found.output
    assert '"truth"' in found.stdout and "AVG(age)" in found.stdout
