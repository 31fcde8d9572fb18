"""Hostile and mistaken SQL: a message that names the construct and what to write instead, no traceback, no waiting.

Nothing of a query's text reaches another engine; what is tested here is that it also never reaches a user as an error
of Python, and that nothing that fits into a query takes long.
"""

from time import process_time
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from tacit.core.statistics.simulated import GeneratorCoins  # noqa: E402
from tacit.errors import InvalidQuery  # noqa: E402
from tacit.sql.design.levels import hio  # noqa: E402
from tacit.sql.engine.linked import collect  # noqa: E402
from tacit.sql.open import open_table  # noqa: E402
from tacit.sql.schema.schema import Dimension, Schema  # noqa: E402

N = 500
SECONDS = 5.0
"""Processor time that any query of this file may take; most take milliseconds."""

W = "SELECT COUNT(*) FROM t WHERE "


@pytest.fixture(scope="module")
def table() -> Any:
    rng = np.random.default_rng(1)
    labels = tuple(f"l{i}" for i in range(50))
    schema = Schema((Dimension("a", high=1023), Dimension("b", high=1023), Dimension("größe", labels=labels)))
    values = np.stack([rng.integers(0, size, N) for size in schema.sizes], axis=1)
    design = hio(schema.shape(5), "2")
    rows = pa.table({
        "x": rng.random(N), "os": rng.choice(["win", "ios"], N), "id": np.arange(N), "flag": rng.random(N) < 0.5,
        "day": pa.array(rng.integers(20000, 20010, N).astype(np.int32), pa.date32()), "länge": rng.random(N),
        "holes": pa.array([None if i % 3 else float(i) for i in range(N)]), "none": pa.nulls(N, pa.float64()),
        "huge": np.full(N, 1e13), "inf": np.full(N, np.inf), "nan": np.full(N, np.nan),
        **{f"p{i}": rng.random(N) for i in range(16)},
    })  # fmt: skip
    return open_table(schema, rows, design, collect(design, values, GeneratorCoins(rng), rng))


REFUSED = {
    # Injection and several statements.
    "SELECT COUNT(*) FROM t; DROP TABLE t": "several statements",
    "SELECT COUNT(*) FROM t WHERE os = 'x'; DELETE FROM t; --'": "several statements",
    "SELECT COUNT(*) FROM t;;SELECT 1": "several statements",
    W + "os = 'x' UNION SELECT password FROM users --": "UNION is not answered; write one SELECT",
    W + "a < 3 OR (SELECT COUNT(*) FROM pg_shadow) > 0": "a subquery: write the values",
    W + "a = 3 AND pg_sleep(10) IS NULL": "PG_SLEEP: write comparisons",
    "SELECT pg_read_file('/etc/passwd') FROM t": "PG_READ_FILE: write COUNT, SUM",
    "COPY t TO '/x'": "begins with SELECT (or EXPLAIN SELECT), not with COPY",
    "UPDATE t SET a = 3": "not with UPDATE",
    "BEGIN": "not with BEGIN",
    "EXPLAIN DROP TABLE t": "not with DROP",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM t": "not with ANALYZE",
    "/* SELECT */ DROP TABLE t": "begins with SELECT",
    "SELECT COUNT(*) FROM t -- \n; DROP TABLE t": "several statements",
    "SELECT COUNT(*) INTO OUTFILE '/x' FROM t": "sql: ",
    "SELECT COUNT(*) INTO u FROM t": "SELECT INTO: answers are read only",
    # Other tables, and rows of this one.
    "SELECT COUNT(*) FROM t NATURAL JOIN u": "JOIN: put the columns into the table",
    "SELECT COUNT(*) FROM t LEFT JOIN u USING (id)": "JOIN",
    "SELECT COUNT(*) FROM t CROSS JOIN t AS q": "JOIN",
    "SELECT COUNT(*) FROM t, LATERAL (SELECT 1) AS q": "JOIN",
    "SELECT COUNT(*) FROM (SELECT os, COUNT(*) FROM t GROUP BY os) AS q": "a subquery in FROM",
    "SELECT COUNT(*) FROM (SELECT * FROM t LIMIT 3) AS q": "a subquery in FROM",
    "SELECT COUNT(*) FROM (SELECT DISTINCT os FROM t) AS q": "a subquery in FROM",
    "SELECT COUNT(*) FROM (SELECT COUNT(*) OVER () FROM t) AS q": "a subquery in FROM",
    "SELECT COUNT(*) FROM (SELECT * FROM t UNION SELECT * FROM t) AS q": "a subquery in FROM",
    "SELECT COUNT(*) FROM (SELECT * FROM t) AS q JOIN t ON TRUE": "a subquery in FROM",
    "SELECT COUNT(*) FROM (SELECT os FROM t) AS q WHERE x > 3": "no column 'x'",
    "SELECT q.* FROM (SELECT * FROM t) AS q": "would show rows",
    "SELECT * FROM (SELECT os, x FROM t) AS q": "would show rows",
    "SELECT COUNT(*) FROM information_schema.tables": "no table 'tables'; write FROM t",
    "SELECT COUNT(*) FROM generate_series(1, 3)": "no table 'GENERATE_SERIES(1, 3)'",
    "SELECT COUNT(*) FROM t AS q(z)": "not renamed in FROM",
    "WITH RECURSIVE q AS (SELECT * FROM t) SELECT COUNT(*) FROM q": "WITH RECURSIVE: write one SELECT",
    "WITH q AS (SELECT * FROM q) SELECT COUNT(*) FROM q": "nested too deeply",
    "WITH q AS (SELECT os, COUNT(*) AS n FROM t GROUP BY os) SELECT SUM(n) FROM q": "a subquery in FROM",
    "SELECT COUNT(*) FROM t INTERSECT SELECT COUNT(*) FROM t": "INTERSECT is not answered",
    "SELECT COUNT(*) FROM t EXCEPT SELECT 1": "EXCEPT is not answered",
    "SELECT * FROM t": "would show rows",
    "SELECT t.* FROM t": "would show rows",
    "SELECT id FROM t": "neither in GROUP BY nor inside an aggregate",
    "SELECT DISTINCT os FROM t WHERE a < 3": "would depend on a, which is private",
    "SELECT os FROM t WHERE a < 3 GROUP BY os": "would depend on a, which is private",
    "SELECT DISTINCT ON (os) COUNT(*) FROM t": "DISTINCT",
    "TABLE t": "not with TABLE",
    "VALUES (1)": "not with VALUES",
    # Aggregates and functions.
    "SELECT RANK() OVER (ORDER BY x) FROM t": "window function",
    "SELECT SUM(x) OVER (PARTITION BY os) FROM t": "window function",
    "SELECT COUNTT(*) FROM t": "COUNTT: did you mean COUNT?",
    "SELECT SUMM(x) FROM t": "SUMM: did you mean SUM?",
    "SELECT STDEV_POP(x) FROM t": "STDEV_POP: did you mean STDDEV_POP?",
    "SELECT frobnicate(x) FROM t": "FROBNICATE: write COUNT, SUM",
    "SELECT MAX(a) FROM t": "would depend on a, which is private",
    "SELECT MIN(x) FROM t WHERE a < 3": "extremes of noisy values cannot be estimated",
    "SELECT a, MAX(x) FROM t GROUP BY a": "would depend on a",
    "SELECT MAX(x) + 1 FROM t": "arithmetic with aggregates",
    "SELECT COUNT(os, x) FROM t": "COUNT OF SEVERAL is not answered",
    "SELECT COUNT(DISTINCT os) FROM t": "DISTINCT inside an aggregate",
    "SELECT ARRAY_AGG(os) FROM t": "write COUNT, SUM",
    "SELECT STRING_AGG(os, ',') FROM t": "write COUNT, SUM",
    "SELECT SUM(a * 2) FROM t": "a is private; COUNT, SUM, AVG, MEDIAN",
    "SELECT SUM(x) + 1 FROM t": "arithmetic with aggregates",
    "SELECT os, COUNT(*) FROM t WHERE a < 3 GROUP BY os HAVING COUNT(*) > 3": "would depend on a",
    "SELECT os FROM t GROUP BY os HAVING COUNT(*) FILTER (WHERE a < 3) > 3": "answers are noisy",
    "SELECT os FROM t GROUP BY os HAVING MAX(x) > 3": "HAVING with MIN or MAX",
    "SELECT a, COUNT(*) FROM t GROUP BY a HAVING COUNT(*) > 3": "answers are noisy",
    "SELECT a + 1, COUNT(*) FROM t GROUP BY 1": "group by the column itself",
    "SELECT os, COUNT(*) FROM t GROUP BY CUBE (os)": "GROUP BY takes columns, not CUBE",
    "SELECT COUNT(*) FROM t GROUP BY 7": "names no column of the answer",
    "SELECT COUNT(*) FROM t ORDER BY x": "not in the answer",
    "SELECT COUNT(*) FROM t LIMIT -1": "sql: ",
    "SELECT COUNT(*) FROM t LIMIT 99999999999": "LIMIT must be a whole number",
    # Columns, types, domains.
    W + "agee < 3": "no column 'agee'",
    W + "länge2 < 3": "did you mean länge?",
    W + "\U0001f600 < 3": "no column",
    W + "größe = 'l77'": "not one of its labels",
    W + "größe < 'l7'": "labels without an order",
    W + "a < 'young'": "compare it with a number",
    W + "a = 5000": "whole number from 0 to 1023",
    W + "a = 2.5": "it is never 2.5",
    W + "a BETWEEN 40 AND 30": "BETWEEN 40 AND 30 holds nothing; write BETWEEN 30 AND 40",
    W + "x BETWEEN 0.4 AND 0.3": "holds nothing",
    W + "a BETWEEN SYMMETRIC 9 AND 3": "BETWEEN SYMMETRIC is not answered",
    W + "a BETWEEN b AND 3": "compare it with constants",
    W + "a < b": "compare it with constants, not with columns",
    W + "a * 2 < 3": "no arithmetic with it",
    W + "a LIKE '1%'": "compare it with =, <>",
    W + "x LIKE '1%'": "LIKE is for text",
    W + "x = 'one'": "text is written in quotes and numbers without",
    W + "os > 3": "text is written in quotes and numbers without",
    W + "flag > 'maybe'": "cannot be compared",
    W + "day > 'soon'": "write it as 2026-01-31",
    W + "day > 3": "cannot be compared",
    W + "os": "cannot be compared",
    W + "a IN ()": "IN takes a list",
    W + "a IN (b)": "IN takes a list of constants",
    W + "(a, b) = (1, 2)": "a row of values",
    W + "a = NULL": "IS NULL",
    W + "a IS 3": "sql: ",
    W + "os IS DISTINCT FROM 'w'": "IS DISTINCT FROM: write <>",
    W + "os || 'x' = 'winx'": "|| (joining texts)",
    W + "reverse(os) = 'win'": "REVERSE: write comparisons",
    W + "os SIMILAR TO 'w'": "SIMILAR",
    W + "os ~ 'w.*'": "regular expression",
    W + "os::int = 3": "not every value of os can be cast to integer",
    W + "os::json = 3": "a cast to json",
    W + "day::int = 3": "cannot be cast to integer",
    W + "date_trunc('fortnight', day) > '2030-01-01'": "does not know",
    W + "date_bin('1 month', day, '2000-01-01') > '2030-01-01'": "days or less",
    W + "day > 'soon'::date": "is no date",
    W + "os = ANY('{a,NULL}')": "NULL inside an array",
    W + "os = ANY(x)": "array of constants",
    W + "day = CURRENT_DATE": "write a date such as",
    W + "a = $1": "a parameter",
    W + "a = ?": "sql: ",
    W + "a < 1e999": "too large",
    W + "a < 2²": "sql: ",
    W + "a < 0x1F": "a hexadecimal number",
    W + "os = '\ud800'": "characters that no text has",
    W + "os = 'a\0b'": "characters that no text has",
    W + "os = 'unclosed": "not SQL",
    W + "a < 3 AND": "not SQL",
    "SELECT COUNT(*) FROM [t]": "not SQL",
    "SELECT COUNT(*) FROM `t`": "not SQL",
    "": "begins with SELECT",
    "SELECT": "FROM is missing",
    "\x00\x01\x02": "characters that no text has",
    # Measures.
    "SELECT SUM(huge) FROM t": "huge is infinite or huge in",
    "SELECT SUM(inf) FROM t": "infinite or huge",
    "SELECT AVG(nan) FROM t": "nan is NaN",
    "SELECT SUM(x * 1e300 * 1e300) FROM t": "infinite or huge",
    "SELECT SUM(os) FROM t": "must be a number to calculate with",
    "SELECT AVG('a') FROM t": "must be a number",
    "SELECT SUM(flag) FROM t": "must be a number",
    "SELECT SUM(day) FROM t": "must be a number",
}


@pytest.mark.parametrize("sql", REFUSED, ids=[repr(text)[1:60] for text in REFUSED])
def test_what_is_refused_is_named(table: Any, sql: str):
    with pytest.raises(InvalidQuery) as caught:
        table.query(sql)
    assert REFUSED[sql] in str(caught.value)
    assert "Traceback" not in str(caught.value) and "sqlglot" not in str(caught.value)


ANSWERED = [
    "SELECT COUNT(*) /* a comment */ FROM t -- and another",
    "SELECT COUNT(*) FROM t;",
    'SELECT COUNT(*) AS "; DROP TABLE t" FROM t',
    W + "os = '''; DROP TABLE t; --'",
    W + "os = 'x'' OR 1=1'",
    W + "a BETWEEN -100 AND 100000",
    W + "a > 99999",
    W + "a < " + "9" * 200,
    W + '"größe" = \'l3\' AND "länge" < 0.5',
    W + "day >= DATE '2024-10-05' AND a < '700'::int",
    W + " AND ".join(f"p{i % 16} < 0.9{i}" for i in range(20)) + " AND a < 9",
    "SELECT os AS o, COUNT(*) FROM t WHERE a < 900 GROUP BY o",
    "SELECT SUM(holes), AVG(holes), COUNT(holes), STDDEV(holes) FROM t WHERE a < 900",
    "SELECT SUM(none), AVG(none), VARIANCE(none) FROM t WHERE a < 900",
    "SELECT SUM(x / 0) FROM t WHERE a < 900",
]


@pytest.mark.parametrize("sql", ANSWERED)
def test_what_looks_odd_is_answered(table: Any, sql: str):
    cells = table.query(sql).cells()
    assert cells and all(cell.estimate is None or np.isfinite(cell.estimate) for cell in cells)


def test_quoted_text_stays_text(table: Any):
    """A constant that holds SQL is compared as it is, and no row has it."""
    assert table.query(W + "os = '''; DROP TABLE t; --'").cells()[0].estimate == 0
    assert table.query('SELECT COUNT(*) AS "; DROP" FROM t').columns == ("; DROP",)


LARGE = {
    "a megabyte": W + "a < 3 OR " * 120_000 + "a < 3",
    "a megabyte of comment": "SELECT COUNT(*) FROM t /*" + "x" * 1_000_000 + "*/",
    "ten thousand terms": W + " OR ".join(f"a={i % 1000}" for i in range(10_000)),
    "all terms that fit": W + " OR ".join(f"a={i}" for i in range(1000)),
    "all values that fit": W + "a IN (" + ",".join(str(i % 1024) for i in range(4000)) + ")",
    "every other value of two columns": W
    + " AND ".join(f"{name} IN ({','.join(str(i) for i in range(0, 1024, 2))})" for name in "ab"),
    "a diagonal": W + " OR ".join(f"(a={3 * i} AND b={3 * i})" for i in range(250)),
    "a longer diagonal": W + " OR ".join(f"(a={2 * i} AND b={2 * i})" for i in range(500)),
    "all but a diagonal": W + " AND ".join(f"NOT (a={5 * i} AND b={5 * i})" for i in range(100)),
    "a checkerboard": W
    + " OR ".join(
        f"(a BETWEEN {40 * i} AND {40 * i + 19} AND b BETWEEN {60 * j} AND {60 * j + 29})"
        for i in range(15)
        for j in range(15)
    ),
    "public and private mixed": W + " OR ".join(f"(p{i} < 0.5 AND a < {60 * i})" for i in range(16)),
    "fewer of them": W + " OR ".join(f"(p{i} < 0.5 AND a < {60 * i + 3})" for i in range(8)),
    "deep parentheses": W + "(" * 9900 + "a < 3" + ")" * 9900,
    "some parentheses": W + "(" * 300 + "a < 3" + ")" * 300,
    "many negations": W + "NOT " * 4900 + "a < 3",
    "a deep condition": W + "(os = 'x' OR (x < 1 AND " * 60 + "a < 3" + "))" * 60,
    "a long sum": "SELECT SUM(" + "+".join(["x"] * 2000) + ") FROM t",
    "a nested sum": "SELECT SUM(" + "(" * 200 + "x" + " + 1)" * 200 + ") FROM t",
    "many aggregates": "SELECT " + ", ".join(f"SUM(x + {i})" for i in range(900)) + " FROM t WHERE a < 7",
    "many private groups": "SELECT a, b, COUNT(*) FROM t GROUP BY a, b",
    "a pattern": W + "os LIKE '" + "%a" * 9000 + "'",
    "a long name": W + "x" * 15_000 + " < 3",
    "a long label": W + "größe = '" + "x" * 15_000 + "'",
}


@pytest.mark.slow_cases("a longer diagonal")
@pytest.mark.parametrize("name", LARGE)
def test_large_queries_are_answered_or_refused_in_time(table: Any, name: str):
    start = process_time()
    try:
        assert table.query(LARGE[name]).cells()
    except InvalidQuery as error:
        assert 10 < len(str(error)) < 400
    assert process_time() - start < SECONDS


def test_a_table_without_rows_answers_nothing():
    schema = Schema((Dimension("a", high=9),))
    design = hio(schema.shape(3), "1")
    rng = np.random.default_rng(1)
    empty = open_table(
        schema, pa.table({"x": pa.array([], pa.float64()), "os": pa.array([], pa.string())}), design,
        collect(design, np.zeros((0, 1), np.int64), GeneratorCoins(rng), rng),
    )  # fmt: skip
    cells = empty.query("SELECT COUNT(*), SUM(x), AVG(x), STDDEV(x) FROM t WHERE a < 5").cells()
    assert [cell.estimate for cell in cells] == [0.0, 0.0, None, None] and all(cell.n == 0 for cell in cells)
    assert empty.query("SELECT os, COUNT(*) FROM t WHERE a < 5 GROUP BY os").rows == ()
    assert empty.explain("SELECT AVG(x) FROM t WHERE a < 5").steps[0].rows == 0


@pytest.mark.parametrize(("n", "said"), [(70_000, "70000 groups, must be at most 65536"), (30_000, "300000 cells")])
def test_many_groups_are_refused(n: int, said: str):
    schema = Schema((Dimension("a", high=9),))
    design, rng = hio(schema.shape(3), "1"), np.random.default_rng(1)
    linked = collect(design, np.zeros((n, 1), np.int64), GeneratorCoins(rng), rng)
    table = open_table(schema, pa.table({"id": np.arange(n), "x": rng.random(n)}), design, linked)
    with pytest.raises(InvalidQuery, match=said):
        table.query("SELECT a, id, COUNT(*) FROM t GROUP BY a, id")
