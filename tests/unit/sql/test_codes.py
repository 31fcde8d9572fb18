"""Refused queries carry their SQLSTATE and the character at fault; nobody has to read the message for them."""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path
from time import thread_time

import pytest
from sqlglot import exp

import tacit.sql
from tacit.errors import InvalidQuery
from tacit.sql.parse.parsing import parse_text
from tacit.sql.parse.select import parse_sql

COLUMNS = ["age", "state", "os", "hours"]

# The caret stands under the character that the error points to; without one, no place is known.
REFUSED = [
    ("42703", "SELECT COUNT(*) FROM t WHERE ^aeg < 3"),
    ("42703", "SELECT ^aeg, COUNT(*) FROM t GROUP BY aeg"),
    ("42703", "EXPLAIN SELECT COUNT(*)\nFROM t\nWHERE age < 3 AND ^stat = 'x'"),
    ("42P01", "SELECT COUNT(*) FROM ^other"),
    ("42P01", "SELECT COUNT(*) FROM t WHERE ^u.age < 3"),
    ("42601", "SELECT COUNT(* ^FROM t"),
    ("42601", "SELECT COUNT(*) FROM t WHERE age ^<"),
    ("42601", "EXPLAIN SELECT COUNT(*) FROM t ^WHERE"),
    ("42601", "^DROP TABLE t"),
    ("42601", "SELECT COUNT(*) FROM t;^ SELECT COUNT(*) FROM t"),
    ("42601", "SELECT 'open FROM t"),
    ("42803", "SELECT ^os, COUNT(*) FROM t"),
    ("42883", "SELECT ^pg_sleep(10) FROM t"),
    ("42883", "SELECT COUNT(*) FROM t WHERE ^fun(age) = 3"),
    ("42P10", "SELECT COUNT(*) FROM t ORDER BY ^7"),
    ("42P10", "SELECT COUNT(*) FROM t ORDER BY ^os"),
    ("42P02", "SELECT COUNT(*) FROM t WHERE age = $^1"),
    ("22P02", "SELECT COUNT(*) FROM t WHERE os = CAST(^'perhaps' AS BOOLEAN)"),
    ("22P02", "SELECT COUNT(*) FROM t WHERE age = CAST(^'x' AS INT)"),
    ("22003", "SELECT COUNT(*) FROM t WHERE age = ^1e999"),
    ("22003", "SELECT PERCENTILE_CONT(^2) WITHIN GROUP (ORDER BY age) FROM t"),
    ("22023", "SELECT COUNT(*) FROM t WHERE age BETWEEN ^9 AND 1"),
    ("2201W", "SELECT COUNT(*) FROM t LIMIT ^'x'"),
    ("2201X", "SELECT COUNT(*) FROM t OFFSET ^1.5"),
    ("0A000", "SELECT ^* FROM t"),
    ("0A000", "SELECT ^MAX(hours) + 1 FROM t"),
    ("0A000", "SELECT SUM(n) FROM (SELECT ^COUNT(*) AS n FROM t GROUP BY os) AS v"),
    ("22007", "SELECT COUNT(*) FROM t WHERE os > ^'soon'::date"),
    ("42703", "SELECT COUNT(*) FROM (SELECT os AS o FROM t) AS v WHERE ^oo = 'x'"),
    ("0A000", "SELECT COUNT(*) FROM t ^JOIN u ON 1 = 1"),
    ("0A000", "SELECT DISTINCT ON (^os) os FROM t"),
    ("0A000", "SELECT COUNT(*) FROM t GROUP BY os HAVING COUNT(*) > ^hours"),
    ("0A000", "WITH RECURSIVE ^a AS (SELECT os FROM t) SELECT COUNT(*) FROM t"),
    ("0A000", "SELECT ^COUNT(*) OVER () FROM t"),
    ("54000", "SELECT COUNT(*) FROM t" + " " * 20_000),
    ("54001", "SELECT COUNT(*) FROM t WHERE " + "NOT " * 200 + "age < 3"),
    ("22021", "SELECT COUNT(*) FROM t WHERE os = '\0'"),
]


@pytest.mark.parametrize(("code", "marked"), REFUSED, ids=[f"{code}-{i}" for i, (code, _) in enumerate(REFUSED)])
def test_every_refusal_has_its_code_and_place(code: str, marked: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        parse_sql(marked.replace("^", ""), COLUMNS, "t")
    assert (caught.value.code, caught.value.position) == (code, marked.find("^") + 1), str(caught.value)


def test_messages_name_nothing_of_the_parser() -> None:
    for text in (
        "SELECT COUNT(*) FROM t WHERE age <",
        "SELECT FROM WHERE x",
        "SELECT COUNT(*) FROM t WHERE date_trunc('eon', os) = 'x'",
        "SELECT date_trunc('day', os) FROM t",
        "SELECT date_trunc('eon', os) FROM t GROUP BY 1",
        "SELECT os::jsonb, COUNT(*) FROM t GROUP BY 1",
    ):
        with pytest.raises(InvalidQuery) as caught:
            parse_sql(text, COLUMNS, "t")
        words = str(caught.value)
        assert not any(part in words for part in ("class", "Token", "sqlglot", "TIMESTAMPTRUNC", "\x1b")), words


def test_no_refusal_in_the_sources_forgets_its_code() -> None:
    """A new `raise InvalidQuery(...)` without `code=` would reach clients as a guess."""
    folder, raised = Path(tacit.sql.__file__).parent, 0
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "InvalidQuery":
                raised += 1
                assert "code" in [keyword.arg for keyword in node.keywords], f"{path.name}:{node.lineno}"
    assert raised > 50


def test_a_place_that_is_known_is_not_replaced() -> None:
    error = InvalidQuery("sql: x", code="42703", position=3)
    assert error.at(9).position == 3 and InvalidQuery("sql: x").at(9).position == 9


def test_parameters_side_by_side_are_parameters() -> None:
    tree = parse_text("SELECT $1::int,$2, '$3,$4', $$a,$5$$, $x$ $$ $6 $x$, \"$7\", $8 -- $9,$10\n /* $11,$12 */").tree
    assert {node.name for node in tree.find_all(exp.Parameter)} == {"1", "2", "8"}


def test_texts_full_of_unfinished_quotes_are_read_once() -> None:
    """Each of 10,000 openings would be searched for its end otherwise: 4e8 steps, where one search takes 2e4."""
    for opening in ("/*", "$$", "$a$", "'"):
        started = thread_time()
        with suppress(InvalidQuery):
            parse_text("SELECT $1 " + opening * 10_001)
        assert thread_time() - started < 2
