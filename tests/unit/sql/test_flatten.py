"""Subqueries in FROM and WITH queries are the same SELECT as the one without them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.errors import InvalidQuery
from tacit.sql.parse.select import parse_sql
from tacit.sql.parse.syntax import Select

COLUMNS = ["age", "state", "os", "hours", "purchases", "joined"]


def parse(text: str) -> Select:
    return parse_sql(text, COLUMNS, "t")


def unnamed(select: Select) -> Select:
    """The query without the texts of its aggregates, which name their columns as they were written."""
    outputs = tuple(
        replace(o, name="", item=replace(o.item, text="") if hasattr(o.item, "text") else o.item)
        for o in select.outputs
    )
    return replace(select, outputs=outputs)


SAME = [
    ("SELECT COUNT(*) FROM (SELECT * FROM t) AS v", "SELECT COUNT(*) FROM t"),
    (
        "SELECT v.os, COUNT(*) FROM (SELECT * FROM t WHERE hours > 3) AS v WHERE v.purchases = 2 GROUP BY v.os",
        "SELECT os, COUNT(*) FROM t WHERE hours > 3 AND purchases = 2 GROUP BY os",
    ),
    (
        "SELECT a, SUM(b) FROM (SELECT os AS a, hours * 2 AS b FROM t) v GROUP BY a ORDER BY a",
        "SELECT os, SUM(hours * 2) FROM t GROUP BY os ORDER BY os",
    ),
    (
        "SELECT a, AVG(b) FROM (SELECT os, hours FROM t) AS v(a, b) GROUP BY a",
        "SELECT os, AVG(hours) FROM t GROUP BY os",
    ),
    (
        "SELECT SUM(y) FROM (SELECT x AS y FROM (SELECT hours AS x, os FROM t WHERE age < 30) a WHERE os = 'w') b",
        "SELECT SUM(hours) FROM t WHERE age < 30 AND os = 'w'",
    ),
    (
        "SELECT m, COUNT(*) FROM (SELECT date_trunc('month', joined) AS m FROM t) v GROUP BY m ORDER BY m DESC",
        "SELECT date_trunc('month', joined), COUNT(*) FROM t GROUP BY 1 ORDER BY 1 DESC",
    ),
    ("WITH v AS (SELECT * FROM t WHERE age < 3) SELECT COUNT(*) FROM v", "SELECT COUNT(*) FROM t WHERE age < 3"),
    (
        "WITH a(k) AS (SELECT os FROM t), b AS (SELECT k FROM a WHERE k <> 'w') SELECT k, COUNT(*) FROM b GROUP BY 1",
        "SELECT os, COUNT(*) FROM t WHERE os <> 'w' GROUP BY os",
    ),
    # An outer SELECT that only shows.
    (
        "SELECT * FROM (SELECT os, COUNT(*) AS n FROM t GROUP BY 1) v ORDER BY n DESC LIMIT 3",
        "SELECT os, COUNT(*) AS n FROM t GROUP BY os ORDER BY n DESC LIMIT 3",
    ),
    (
        "SELECT v.n FROM (SELECT os, COUNT(*) AS n FROM t GROUP BY os ORDER BY 2 LIMIT 9) v",
        "SELECT COUNT(*) FROM t GROUP BY os ORDER BY 1 LIMIT 9",
    ),
    (
        "SELECT v.os, v.n FROM (SELECT os, COUNT(*) AS n FROM t GROUP BY os) v WHERE v.os = 'w' AND v.n > 3",
        "SELECT os, COUNT(*) FROM t GROUP BY os HAVING COUNT(*) > 3 AND os = 'w'",
    ),
    # Names of the outer SELECT, which hide those of the inner one in ORDER BY alone.
    (
        "SELECT date_trunc('day', joined) AS joined, COUNT(*) FROM (SELECT * FROM t) v GROUP BY 1 ORDER BY joined",
        "SELECT date_trunc('day', joined), COUNT(*) FROM t GROUP BY 1 ORDER BY 1",
    ),
]


@pytest.mark.parametrize(("nested", "plain"), SAME)
def test_a_subquery_that_only_filters_or_renames_is_written_out(nested: str, plain: str) -> None:
    assert unnamed(parse(nested)) == unnamed(parse(plain))


def test_columns_keep_the_names_of_the_outermost_select() -> None:
    nested = "SELECT a, b AS c, COUNT(*) AS n FROM (SELECT os AS a, state AS b FROM t) v GROUP BY a, b"
    assert [output.name for output in parse(nested).outputs] == ["a", "c", "n"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM (SELECT os, COUNT(*) FROM t GROUP BY os) v",
        "SELECT COUNT(*) FROM (SELECT DISTINCT os FROM t) v",
        "SELECT COUNT(*) FROM (SELECT * FROM t LIMIT 10) v",
        "SELECT COUNT(*) FROM (SELECT * FROM t OFFSET 10) v",
        "SELECT COUNT(*) FROM (SELECT hours, ROW_NUMBER() OVER () FROM t) v",
        "SELECT COUNT(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) v",
        "SELECT COUNT(*) FROM (SELECT * FROM t, u) v",
        "SELECT COUNT(*) FROM (SELECT * FROM t) v, (SELECT * FROM t) w",
        "SELECT COUNT(*) FROM (SELECT * FROM t) v JOIN t ON TRUE",
        "SELECT COUNT(*) FROM (VALUES (1)) v",
        "SELECT COUNT(*) FROM (SELECT 1) v",
        "SELECT * FROM (SELECT COUNT(*)) v",
        "WITH v AS (SELECT 1) SELECT COUNT(*) FROM v",
        "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 30 + "t" + ") v" * 30,
        "SELECT os FROM (SELECT os, COUNT(*) AS n FROM t GROUP BY os LIMIT 3) v ORDER BY os",
    ],
)
def test_any_other_subquery_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        parse(text)
    assert caught.value.code in ("0A000", "54001"), caught.value


def test_columns_that_a_subquery_does_not_have_are_not_seen_through_it() -> None:
    for text in (
        "SELECT COUNT(*) FROM (SELECT os FROM t) v WHERE hours > 3",
        "SELECT SUM(hours) FROM (SELECT hours AS h FROM t) v",
        "SELECT SUM(t.h) FROM (SELECT hours AS h FROM t) v",
    ):
        with pytest.raises(InvalidQuery) as caught:
            parse(text)
        assert caught.value.code in ("42703", "42P01")
