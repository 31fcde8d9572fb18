"""Where a refused query is at fault."""

from __future__ import annotations

import pytest

from tacit.collector.query_problem import position_of, query_problem

SQL = "SELECT os, SUM(age) FROM people\nWHERE aeg < 3 AND state = 'XX' HAVING 1"
PLACES = [
    ("sql: there is no column 'aeg'; did you mean age?", "aeg"),
    ("sql: age is private; COUNT, SUM, AVG, MEDIAN and PERCENTILE_CONT of it alone are answered", "age"),
    ("sql: HAVING: answers are noisy, so read them all", "HAVING"),
    ("sql: state is never 'XX', which is not one of its labels; did you mean 'NY'?", "XX"),
    ("sql: os is neither in GROUP BY nor inside an aggregate", "os"),
    ("sql: SELECT SUM: write something else", "SUM"),
    ("sql: the text is not SQL: Expecting ). Line 2, Col: 9.", "g < 3"),
    ("sql: several statements at once; send one SELECT", ""),
    ("sql: the query is nested too deeply", ""),
]


@pytest.mark.parametrize(("message", "word"), PLACES, ids=range(len(PLACES)))
def test_messages_point_to_what_they_name(message: str, word: str) -> None:
    place = position_of(message, SQL)
    assert (SQL[place - 1 :].startswith(word)) if word else place == 0
    moved = position_of(message, f"EXPLAIN {SQL}")
    assert moved == (place + len("EXPLAIN ") if place else 0)


def test_a_position_stays_inside_of_the_text() -> None:
    assert position_of("Line 7, Col: 900", "SELECT") == len("SELECT")
    assert position_of("Line 1, Col: 0", "SELECT") == 1
    assert position_of("Line 1, Col: 1", "") == 1
    problem = query_problem("sql: there is no column 'b'", "SELECT a")
    assert "position" not in problem.to_json() and problem.status == 422
    assert problem.detail == "there is no column 'b'"
