"""SQL over private columns: the same truth as SQLite, refusals by name, and interfaces."""

import sqlite3
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from tacit.errors import InvalidSpec, ReportRejected  # noqa: E402
from tacit.simulate.analytics import Rehearsal, read_rows, read_schema, rehearse, revealing, simulate_analytics  # noqa: E402
from tacit.sql import dbapi  # noqa: E402
from tacit.sql.connection import Connection  # noqa: E402
from tacit.sql.design.levels import hio, mg  # noqa: E402
from tacit.sql.engine.linked import collect  # noqa: E402
from tacit.sql.open import open_table  # noqa: E402
from tacit.sql.schema.schema import Dimension, Schema  # noqa: E402

N = 400
COLUMNS = ("age", "state", "os", "hours", "score", "flag")


def make_table() -> Any:
    rng = np.random.default_rng(4)
    hours = [None if x < 3 else int(x) for x in rng.integers(0, 60, N)]
    os = [None if x == 3 else ("win", "ios", "mac")[x] for x in rng.integers(0, 4, N)]
    return pa.table({
        "age": rng.integers(0, 20, N), "state": rng.choice(["CA", "NY", "WA"], N), "os": os, "hours": hours,
        "score": rng.normal(0, 2, N).round(3), "flag": rng.random(N) < 0.5,
    })  # fmt: skip


TABLE = make_table()
SCHEMA = Schema((Dimension("age", low=0, high=19), Dimension("state", labels=("CA", "NY", "WA"))))


@pytest.fixture(scope="module")
def rehearsal() -> Rehearsal:
    return rehearse(TABLE, SCHEMA, epsilon="2", queries=[], method="hio", fanout=3)


@pytest.fixture(scope="module")
def truth(rehearsal: Rehearsal) -> Connection:
    return rehearsal.truth()


@pytest.fixture(scope="module")
def noisy(rehearsal: Rehearsal) -> Connection:
    return rehearsal.collect(np.random.default_rng(1))


@pytest.fixture(scope="module")
def sqlite() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (age INT, state TEXT, os TEXT, hours INT, score REAL, flag INT)")
    rows = list(zip(*(TABLE[name].to_pylist() for name in COLUMNS), strict=True))
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
    return database


SAME = [
    "SELECT COUNT(*), COUNT(hours), SUM(hours), AVG(hours) FROM t",
    "SELECT COUNT(*), SUM(score) FROM t WHERE age BETWEEN 5 AND 12 AND state = 'CA'",
    "SELECT COUNT(*) FROM t WHERE NOT (age < 5 OR state <> 'NY')",
    "SELECT SUM(2 * hours - score + 1) FROM t WHERE age >= 4.5",
    "SELECT SUM(hours / score) FROM t WHERE score <> 0 AND age > 3",
    "SELECT COUNT(*) FROM t WHERE age IN (1, 3, 5) OR state IN ('CA', 'WA') AND age <= 9",
    "SELECT COUNT(*) FROM t WHERE 7 < age AND os = 'win'",
    "SELECT COUNT(*) FROM t WHERE os = 'win' OR age < 3",
    "SELECT COUNT(*) FROM t WHERE NOT (os = 'win' OR age < 3)",
    "SELECT COUNT(*) FROM t WHERE NOT (os = 'win' AND age < 3)",
    "SELECT COUNT(*) FROM t WHERE os IS NULL AND age <> 4 OR hours IS NOT NULL AND state = 'NY'",
    "SELECT COUNT(*) FROM t WHERE os NOT IN ('win', 'mac') AND age NOT BETWEEN 3 AND 6",
    "SELECT COUNT(*) FROM t WHERE os LIKE 'i%' OR NOT os LIKE '%c' AND age = 7",
    "SELECT COUNT(*) FROM t WHERE hours > 2 * score AND flag AND age < 15",
    "SELECT COUNT(*) FILTER (WHERE age < 9), SUM(hours) FILTER (WHERE os = 'ios') FROM t WHERE state <> 'CA'",
    "SELECT COUNT(CASE WHEN age < 9 THEN 1 END), SUM(CASE WHEN state = 'NY' THEN hours ELSE 0 END) FROM t",
    "SELECT os, COUNT(*), AVG(score) FROM t WHERE age < 11 GROUP BY os ORDER BY os",
    "SELECT state, COUNT(*) AS n FROM t WHERE age < 11 GROUP BY state ORDER BY n DESC LIMIT 2",
    "SELECT os, state, COUNT(*) FROM t GROUP BY os, state ORDER BY 3 DESC, 1, 2 LIMIT 3 OFFSET 1",
    "SELECT q.os, SUM(q.hours) FROM t AS q WHERE q.age > 2 GROUP BY 1 ORDER BY SUM(q.hours)",
    "SELECT COUNT(*) FROM t WHERE age BETWEEN -7 AND 500",
    "SELECT COUNT(*) FROM t WHERE " + " AND ".join(f"age <> {i}" for i in range(18)) + " AND state <> 'CA' AND age > 1",
    "SELECT COUNT(*) FROM t WHERE TRUE AND age < 4 OR FALSE",
    "SELECT COUNT(*) FROM t WHERE age > 3 AND age < 2",
    "SELECT COUNT(*) FROM t WHERE -score < 1 AND -3 < age",
]


@pytest.mark.parametrize("sql", SAME)
def test_the_truth_is_that_of_sqlite(sql: str, truth: Connection, sqlite: sqlite3.Connection):
    expected = sqlite.execute(sql).fetchall()
    found = truth.cursor().execute(sql).fetchall()
    if "ORDER BY os" in sql:  # SQLite puts what is missing first.
        expected = sorted(expected, key=lambda row: (row[0] is None, row[0] or ""))
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert a == (pytest.approx(b or 0) if isinstance(a, float) else b)


def random_condition(rng: np.random.Generator, depth: int) -> str:
    atoms = [
        lambda: f"age {rng.choice(['<', '<=', '>', '>=', '=', '<>'])} {rng.integers(0, 20)}",
        lambda: f"state {rng.choice(['=', '<>'])} '{rng.choice(['CA', 'NY', 'WA'])}'",
        lambda: f"hours {rng.choice(['<', '>=', '<>'])} {rng.integers(0, 60)}",
        lambda: f"os {rng.choice(['=', '<>'])} '{rng.choice(['win', 'ios'])}'",
        lambda: "hours IS NULL",
    ]
    if depth == 0:
        return atoms[int(rng.integers(len(atoms)))]()
    a, b = random_condition(rng, depth - 1), random_condition(rng, depth - 1)
    return [f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"][int(rng.integers(3))]


def test_random_conditions_with_missing_values(truth: Connection, noisy: Connection, sqlite: sqlite3.Connection):
    rng = np.random.default_rng(8)
    for _ in range(80):
        sql = f"SELECT COUNT(*) FROM t WHERE {random_condition(rng, 3)}"
        exact = truth.query(sql).cells()[0]
        assert exact.estimate == pytest.approx(sqlite.execute(sql).fetchone()[0]), sql
        # Rows that are asked for are those of the public condition alone, noisy or not.
        assert noisy.query(sql).cells()[0].n == exact.n


def test_deviations_are_those_of_numpy(truth: Connection):
    hours = np.array([h for h, a in zip(TABLE["hours"].to_pylist(), TABLE["age"].to_pylist(), strict=True)
                      if h is not None and a < 9])  # fmt: skip
    sql = (
        "SELECT VARIANCE(hours), VAR_POP(hours), STDDEV(hours), STDDEV_POP(hours), VAR_SAMP(hours) FROM t WHERE age < 9"
    )
    found = [cell.estimate for cell in truth.query(sql).cells()]
    expected = [hours.var(ddof=1), hours.var(), hours.std(ddof=1), hours.std(), hours.var(ddof=1)]
    assert found == pytest.approx(expected)


REFUSED = {
    "SELECT * FROM t": "would show rows",
    "SELECT age FROM t": "neither in GROUP BY nor inside an aggregate",
    "SELECT 1 FROM t": "no aggregate",
    "SELECT COUNT(*) FROM t JOIN u ON t.a = u.a": "JOIN: put the columns into the table",
    "SELECT COUNT(*) FROM t, u": "JOIN",
    "SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM t GROUP BY os) q": "subquery in FROM",
    "SELECT COUNT(*) FROM u": "no table 'u'; write FROM t",
    "SELECT COUNT(*)": "FROM is missing",
    "WITH RECURSIVE c AS (SELECT 1) SELECT COUNT(*) FROM t": "WITH RECURSIVE: write one SELECT",
    "SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t": "UNION is not answered",
    "SELECT COUNT(*) FROM t WHERE age > (SELECT 3)": "subquery: write the values",
    "SELECT COUNT(*) FROM t WHERE age IN (SELECT 3)": "list the values",
    "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1)": "EXISTS",
    "SELECT SUM(hours) OVER () FROM t": "window function",
    "SELECT COUNT(DISTINCT os) FROM t": "DISTINCT inside an aggregate",
    "SELECT MAX(age) FROM t": "extremes of noisy values cannot be estimated",
    "SELECT SUM(hours) / COUNT(*) FROM t": "write AVG for SUM/COUNT",
    "SELECT SUM(age + 1) FROM t": "age is private; COUNT, SUM, AVG, MEDIAN and PERCENTILE_CONT of it alone",
    "SELECT COUNT(age) FROM t WHERE agee < 3": "no column 'agee'; did you mean age",
    "SELECT COUNT(*) FROM t WHERE agee < 3": "did you mean age",
    "SELECT COUNT(*) FROM t WHERE zebra < 3": "there are age, state, os",
    "SELECT COUNT(*) FROM t WHERE u.age < 3": "no table 'u'",
    "SELECT COUNT(*) FROM t WHERE state = 'Ca'": "did you mean 'CA'",
    "SELECT COUNT(*) FROM t WHERE state < 'NY'": "labels without an order",
    "SELECT COUNT(*) FROM t WHERE state = 3": "not one of its labels",
    "SELECT COUNT(*) FROM t WHERE age = 'young'": "compare it with a number",
    "SELECT COUNT(*) FROM t WHERE age = 300": "whole number from 0 to 19",
    "SELECT COUNT(*) FROM t WHERE age = 3.5": "it is never 3.5",
    "SELECT COUNT(*) FROM t WHERE age = hours": "compare it with constants, not with columns",
    "SELECT COUNT(*) FROM t WHERE age + 1 < 3": "no arithmetic with it",
    "SELECT COUNT(*) FROM t WHERE age LIKE '3%'": "compare it with =, <>",
    "SELECT COUNT(*) FROM t WHERE os = 3": "text is written in quotes",
    "SELECT COUNT(*) FROM t WHERE hours LIKE '3%'": "LIKE is for text",
    "SELECT SUM(os) FROM t": "must be a number",
    "SELECT COUNT(*) FROM t WHERE hours = NULL": "IS NULL",
    "SELECT COUNT(*) FROM t WHERE hours < 1e400": "too large",
    "SELECT COUNT(*) FROM t WHERE reverse(os) = 'x'": "REVERSE: write comparisons",
    "SELECT COUNT(*) FROM t WHERE os::json = 3": "a cast to json",
    "SELECT COUNT(*) FROM t WHERE os ~ 'a'": "regular expression",
    "SELECT COUNT(*) FROM t WHERE hours = $1": "a parameter",
    "SELECT COUNT(*) FROM t TABLESAMPLE BERNOULLI (10)": "TABLESAMPLE",
    "SELECT COUNT(*) FROM t FOR UPDATE": "read only",
    "SELECT COUNT(*) FROM t ORDER BY hours": "not in the answer",
    "SELECT COUNT(*) FROM t ORDER BY 4": "names no column of the answer, 1 to 1",
    "SELECT COUNT(*) FROM t LIMIT 1 + 1": "LIMIT must be a whole number",
    "SELECT os, COUNT(*) FROM t GROUP BY ROLLUP (os)": "ROLLUP",
    "SELECT COUNT(CASE WHEN age < 3 THEN 1 ELSE 2 END) FROM t": "CASE must be",
    "SELECT COUNT(*) FROM t; DROP TABLE t": "several statements",
    "DROP TABLE t": "begins with SELECT",
    "INSERT INTO t VALUES (1)": "begins with SELECT",
    "": "begins with SELECT",
    "SELECT COUNT(* FROM t": "not SQL",
    "SELECT 'unclosed FROM t": "not SQL",
    "SELECT COUNT(*) FROM t WHERE " + "(" * 3000 + "age < 3" + ")" * 3000: "nested too deeply",
    "SELECT COUNT(*) FROM t WHERE age < 3 -- " + "x" * 30_000: "must have at most",
    "SELECT COUNT(*) FROM t WHERE os = 'x'' OR 1=1; --' OR 1 = 1 UNION SELECT 1": "UNION",
    "SELECT pg_sleep(10) FROM t": "write COUNT, SUM",
    "SELECT COUNT(*) INTO u FROM t": "read only",
}  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED, ids=[text[:50] for text in REFUSED])
def test_what_is_refused_is_named(sql: str, noisy: Connection):
    with pytest.raises(InvalidSpec) as caught:
        noisy.query(sql)
    assert REFUSED[sql] in str(caught.value)


WORDS = (
    "SELECT COUNT ( * ) , SUM AVG STDDEV ( hours ) AS n FROM t q WHERE age < 5 BETWEEN 1 AND 3 OR NOT state = 'CA' <> "
    "'NY' IN ( 'CA' ) os IS NULL LIKE '%' GROUP BY os ORDER 2 DESC LIMIT 3 OFFSET CASE WHEN THEN END FILTER ; -- $1 ? "
    '" 1e9 -1 TRUE [ ] { } :: || @ # \\ /* */ EXPLAIN UNION JOIN ON INTERVAL DATE ARRAY ROW VALUES . .. %s'
).split()


@pytest.mark.parametrize("queries", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_nothing_but_refusals_comes_of_scrambled_queries(noisy: Connection, queries: int):
    rng, answered = np.random.default_rng(11), 0
    for _ in range(queries):
        text = rng.choice(SAME).split()
        for _ in range(int(rng.integers(1, 4))):
            place = int(rng.integers(len(text)))
            text[place : place + int(rng.integers(0, 2))] = rng.choice(WORDS, int(rng.integers(0, 3))).tolist()
        try:
            noisy.query(" ".join(text))
            answered += 1
        except InvalidSpec as error:
            assert str(error)
    assert answered > queries // 30


def test_names_of_columns_ignore_case(truth: Connection):
    assert truth.query("SELECT COUNT(*) FROM T WHERE \"AGE\" < 3 AND Os = 'win'").cells()[0].estimate is not None


def test_unconstrained_queries_are_exact(noisy: Connection):
    for sql in (
        "SELECT COUNT(*), SUM(score), AVG(hours), STDDEV(score) FROM t WHERE os = 'win'",
        "SELECT COUNT(*) FROM t WHERE age BETWEEN 0 AND 19",
        "SELECT COUNT(*) FROM t WHERE age < 5 OR age >= 5",
        "SELECT COUNT(*) FROM t WHERE state IN ('CA', 'NY', 'WA') AND age >= -3",
    ):
        for cell in noisy.query(sql).cells():
            assert cell.status == "exact" and cell.standard_error == 0 and cell.low == cell.estimate == cell.high


def test_ratios_of_lost_counts_are_not_given(noisy: Connection):
    cell = noisy.query("SELECT AVG(score) FROM t WHERE age = 7 AND state = 'NY' AND score > 4").cells()[0]
    assert cell.estimate is None and cell.status == "insufficient_data"
    assert noisy.query("SELECT AVG(score) FROM t WHERE score > 1000").cells()[0].status == "no_data"
    assert cell.to_row()["status"] == "insufficient_data"


def test_infinite_and_huge_measures_are_refused(rehearsal: Rehearsal):
    table = pa.table({"age": [1, 2], "state": ["CA", "NY"], "x": [1.0, float("inf")], "y": [1e300, 2.0], "z": [1, 0]})
    connection = rehearse(table, SCHEMA, epsilon="2", queries=[], method="hio", fanout=3).truth()
    for name in ("x", "y"):
        with pytest.raises(InvalidSpec, match="infinite or huge"):
            connection.query(f"SELECT SUM({name}) FROM t")
    assert connection.query("SELECT SUM(x / z) FROM t WHERE x < 9").cells()[0].estimate == 1.0


def test_explain_reads_no_reports(rehearsal: Rehearsal, noisy: Connection):
    sql = "SELECT COUNT(*), AVG(hours) FROM t WHERE age BETWEEN 3 AND 11 AND os = 'win'"
    plan = rehearsal.collect_nothing().explain(sql)
    assert plan.method == "hio" and [step.exact for step in plan.steps] == [False, False]
    assert plan.steps[0].nodes >= 2 and plan.steps[0].rows < N
    error = noisy.query(sql).cells()[0].standard_error
    assert plan.steps[0].expected_standard_error == pytest.approx(error, rel=0.3)
    assert noisy.query("EXPLAIN " + sql).columns[0] == "mechanism"
    grouped = noisy.explain("SELECT state, COUNT(*) FROM t GROUP BY state")
    assert [step.aggregate for step in grouped.steps] == [f"COUNT(*) [{x}]" for x in ("CA", "NY", "WA")]
    deviation = noisy.explain("SELECT STDDEV(hours), VARIANCE(hours), SUM(hours) FROM t WHERE age < 9")
    assert all(step.expected_standard_error > 0 for step in deviation.steps)


def test_large_private_groups_are_refused():
    schema = Schema((Dimension("age", low=0, high=(1 << 11) - 1),))
    table = pa.table({"x": [1.0]})
    linked = collect(hio(schema.shape(4), "1"), np.zeros((1, 1), np.int64), _coins(), np.random.default_rng(1))
    connection = open_table(schema, table, linked.design, linked)
    with pytest.raises(InvalidSpec, match="2048 combinations of private values"):
        connection.query("SELECT age, COUNT(*) FROM t GROUP BY age")


def _coins():
    from tacit.core.statistics.simulated import GeneratorCoins

    return GeneratorCoins(np.random.default_rng(2))


def test_tables_must_fit_their_reports():
    schema = Schema((Dimension("age", low=0, high=9),))
    linked = collect(mg(schema.shape(4), "1"), np.zeros((3, 1), np.int64), _coins(), np.random.default_rng(1))
    with pytest.raises(ReportRejected, match="3 reports for 1 rows"):
        open_table(schema, pa.table({"x": [1.0]}), linked.design, linked)
    with pytest.raises(InvalidSpec, match="age is private"):
        open_table(schema, pa.table({"age": [1, 2, 3]}), linked.design, linked)


def test_measures_keep_the_decimals_they_declare():
    linked = collect(
        mg(Schema((Dimension("age", high=9),)).shape(4), "1"), np.zeros((2, 1), np.int64), _coins(),
        np.random.default_rng(1),
    )  # fmt: skip
    for decimals, fits in ((2, True), (1, False)):
        schema = Schema((Dimension("age", high=9),), scales={"x": decimals})
        if fits:
            open_table(schema, pa.table({"x": [1.25, -0.1]}), linked.design, linked)
            continue
        with pytest.raises(InvalidSpec, match="more than the 1 decimals"):
            open_table(schema, pa.table({"x": [1.25, -0.1]}), linked.design, linked)


def test_columns_of_other_types():
    import datetime
    from decimal import Decimal

    days = [datetime.date(2026, 1, 1 + i) for i in range(4)]
    table = pa.table({
        "age": [1, 2, 3, 4], "state": pa.array(["CA", "NY", "NY", "WA"]).dictionary_encode(),
        "os": pa.array(["a", None, "b", "a"]).dictionary_encode(), "day": days, "none": pa.nulls(4),
        "price": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("4.40")]), "flag": [True, None, False, True],
    })  # fmt: skip
    truth = rehearse(table, SCHEMA, epsilon="2", queries=[], method="hio", fanout=3).truth()

    def first(sql: str) -> Any:
        return truth.query(sql).cells()[0].estimate

    assert first("SELECT COUNT(*) FROM t WHERE day >= '2026-01-02' AND state = 'NY'") == 2
    assert first("SELECT SUM(price) FROM t WHERE os = 'a'") == pytest.approx(5.5)
    assert first("SELECT COUNT(*) FROM t WHERE NOT flag") == 1
    assert [row[0] for row in truth.query("SELECT os, COUNT(*) FROM t GROUP BY os ORDER BY os").rows] == [
        "a",
        "b",
        None,
    ]
    assert first("SELECT COUNT(none) FROM t") == 0
    for wrong in ("day < 'soon'", "none < 3", "flag < 3"):
        with pytest.raises(InvalidSpec):
            truth.query(f"SELECT COUNT(*) FROM t WHERE {wrong}")


def test_the_golden_table_of_the_dissertation():
    """Table 7.1: SUM(Purchase | State = NY) = 120 + 2 x 100, which a budget without noise gives back."""
    table = pa.table({
        "age": [30, 60, 50, 40], "salary": [50, 80, 90, 70], "state": ["NY", "WA", "NY", "NY"],
        "os": ["Win", "iOS", "Win", "iOS"], "active": [1.6, 1.2, 1.0, 1.8], "purchase": [120, 100, 100, 100],
    })  # fmt: skip
    schema = read_schema("age:0-99, salary:0-99, state", table)
    rehearsal = rehearse(table, schema, epsilon="32", queries=[], method="sc", fanout=5)
    sql = "SELECT SUM(purchase), COUNT(*), AVG(active) FROM t WHERE state = 'NY'"
    assert [c.estimate for c in rehearsal.truth().query(sql).cells()] == pytest.approx([320, 3, 4.4 / 3])
    only = Schema((Dimension("state", labels=("NY", "WA")),))
    known = rehearse(table.drop_columns(["age", "salary"]), only, epsilon="32", queries=[], method="mg", fanout=5)
    cells = known.collect(np.random.default_rng(1)).query(sql).cells()
    assert [c.estimate for c in cells] == pytest.approx([320, 3, 4.4 / 3])


def test_pandas_reads_answers(noisy: Connection):
    import pandas as pd

    sql = "SELECT os, COUNT(*) AS n, AVG(hours) FROM t WHERE age < 15 AND os IS NOT NULL GROUP BY os ORDER BY os"
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql(sql, dbapi.connect(noisy, errors=True))
    assert list(frame["os"]) == ["ios", "mac", "win"]
    assert [name for name in frame.columns if name.startswith("n")] == ["n", "n_standard_error", "n_low", "n_high"]
    assert (frame["n_low"] < frame["n"]).all() and (frame["n_standard_error"] > 0).all()


def test_the_database_interface(noisy: Connection):
    assert (dbapi.apilevel, dbapi.paramstyle) == ("2.0", "format")
    connection = dbapi.connect(noisy)
    cursor = connection.cursor()
    cursor.execute("SELECT os, COUNT(*) FROM t WHERE state = %s AND age < %s GROUP BY os ORDER BY os", ("NY", 9))
    assert [item[0] for item in cursor.description or []] == ["os", "count"]
    assert cursor.rowcount == 4 and len(cursor.fetchmany(2)) == 2 and cursor.fetchone() is not None
    assert len(list(cursor)) == 1 and cursor.fetchall() == []
    # A quote inside a parameter stays inside its constant.
    with pytest.raises(dbapi.ProgrammingError, match="not one of its labels"):
        cursor.execute("SELECT COUNT(*) FROM t WHERE state = %s", ("NY' OR TRUE OR state = 'CA",))
    with pytest.raises(dbapi.ProgrammingError, match="1 places"):
        cursor.execute("SELECT COUNT(*) FROM t WHERE state = %s", ("a", "b"))
    quoted = cursor.execute("SELECT COUNT(*) FROM t WHERE os LIKE '%s%' AND age < %s", (9,)).fetchone()
    # What is asked for the second time is added up from kept parts, in another order: the last bits may differ.
    plain = cursor.execute("SELECT COUNT(*) FROM t WHERE os LIKE '%s%' AND age < 9").fetchone()
    assert quoted == pytest.approx(plain, rel=1e-12)
    with pytest.raises(dbapi.ProgrammingError, match="no such constant"):
        cursor.execute("SELECT COUNT(*) FROM t WHERE age < %s", (float("inf"),))
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany("SELECT 1", [])
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT COUNT(*) FROM t")
    connection.commit()
    connection.rollback()
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()


def test_terms_are_kept_for_other_aggregates(rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch):
    from tacit.sql.engine import source as module

    asked: list[Any] = []
    inner = module.level_terms
    monkeypatch.setattr(module, "level_terms", lambda linked, some, check: asked.extend(some) or inner(linked, some))
    connection = rehearsal.collect(np.random.default_rng(1))
    one = "SELECT COUNT(*), SUM(score), AVG(hours) FROM t WHERE age < 9"
    connection.queries([one, one + " AND os = 'win'"])
    connection.query("SELECT os, COUNT(*) FROM t WHERE NOT age >= 9 GROUP BY os")
    assert len(asked) == 1


def test_a_batch_is_answered_as_its_queries_one_by_one(rehearsal: Rehearsal):
    texts = [sql for sql in SAME if "hours / score" not in sql] + ["EXPLAIN " + SAME[1]]
    batch = rehearsal.collect(np.random.default_rng(1)).queries(texts)
    alone = rehearsal.collect(np.random.default_rng(1))
    for text, answer in zip(texts, batch, strict=True):
        single = alone.query(text)
        assert answer.columns == single.columns and len(answer.rows) == len(single.rows)
        for a, b in zip(answer.cells(), single.cells(), strict=True):
            assert a.estimate == pytest.approx(b.estimate) and a.standard_error == pytest.approx(b.standard_error)
            assert (a.n, a.status) == (b.n, b.status)


def test_files_are_read_with_and_without_a_header(tmp_path):
    plain, headed = tmp_path / "plain.csv", tmp_path / "headed.csv"
    plain.write_text("39, NY, 40\n50, CA, 13\n\n")
    headed.write_text("age,state,hours\n39,NY,40\n50,CA,13\n")
    for table in (read_rows(str(plain), ["age", "state", "hours"]), read_rows(str(headed))):
        schema = read_schema("age:0-99,state", table)
        assert schema.dimensions[1].labels == ("CA", "NY")
        assert schema.indices({n: table[n].to_pylist() for n in ("age", "state")}).tolist() == [[39, 1], [50, 0]]
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert read_rows(str(tmp_path / "t.parquet")).num_rows == 2
    with pytest.raises(InvalidSpec, match="did you mean age"):
        read_schema("agee:0-99", table)
    with pytest.raises(InvalidSpec, match="must be a column"):
        read_schema("age:0-x", table)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("a,b\n1,2\n3\n")
    with pytest.raises(InvalidSpec, match="ragged"):
        read_rows(str(ragged))


def test_public_columns_that_reveal_private_ones_are_named():
    age = TABLE["age"].to_pylist()
    told = TABLE.append_column("born", pa.array([2026 - x for x in age])).append_column("id", pa.array(range(N)))
    assert revealing(rehearse(told, SCHEMA, epsilon="1", queries=[], method="mg", fanout=4)) == [("born", "age")]
    assert revealing(rehearse(TABLE, SCHEMA, epsilon="1", queries=[], method="mg", fanout=4)) == []


def test_the_command(tmp_path):
    import json

    from click.testing import CliRunner

    from tacit.cli import cli

    data = tmp_path / "t.parquet"
    pa.parquet.write_table(TABLE, data)
    sql = "SELECT COUNT(*), SUM(hours), AVG(hours) FROM t WHERE age BETWEEN 3 AND 14 AND state <> 'CA'"
    given = ["simulate", "analytics", "--data", str(data), "--private", "age:0-19,state", "--epsilon", "4"]
    ran = CliRunner().invoke(cli, [*given, "--method", "auto", "--seed", "1", "--json", "--sql", sql])
    assert ran.exit_code == 0, ran.output
    rows = json.loads(ran.stdout)
    assert [row["aggregate"] for row in rows] == ["COUNT(*)", "SUM(hours)", "AVG(hours)"]
    for row in rows:
        assert set(row) - {"better"} == {"aggregate", "estimate", "standard_error", "low", "high", "truth"}
        assert row["low"] < row["estimate"] < row["high"]
    shown = CliRunner().invoke(cli, [*given, "--method", "hio", "--fanout", "3", "--sql", f"EXPLAIN {sql}"])
    assert "expected_standard_error" in shown.output
    assert "group" in CliRunner().invoke(cli, [*given, "--sql", "SELECT os, COUNT(*) FROM t GROUP BY os"]).output
    for wrong in (["--method", "magic"], ["--epsilon", "0"]):
        refused = CliRunner().invoke(cli, [*given, "--sql", sql, *wrong])
        assert isinstance(refused.exception, InvalidSpec)


def test_simulated_answers_stand_beside_the_truth(rehearsal: Rehearsal, sqlite: sqlite3.Connection):
    sql = "SELECT state, COUNT(*) FROM t WHERE age < 11 GROUP BY state ORDER BY 2 DESC LIMIT 1"
    _, rows = simulate_analytics(rehearsal, sql, seed=1)
    expected = dict(sqlite.execute("SELECT state, COUNT(*) FROM t WHERE age < 11 GROUP BY state").fetchall())
    assert len(rows) == 1 and rows[0]["truth"] == expected[rows[0]["group"]["state"]]
    again, _ = simulate_analytics(rehearsal, sql, seed=1)
    assert again.to_rows()[0]["estimate"] == rows[0]["estimate"]
