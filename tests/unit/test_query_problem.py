"""Where a refused query is at fault, and queries that have to wait or take too long."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic, sleep

import pytest

from tacit.collector.problems import Problem
from tacit.collector.query_problem import position_of, query_problem
from tacit.collector.query_threads import QueryThreads

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


def test_queries_wait_for_a_turn_and_not_for_ever() -> None:
    threads, done = QueryThreads(seconds=0.3, at_once=1), Event()
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(threads.run, lambda _: done.wait(5))
        sleep(0.05)
        started = monotonic()
        with pytest.raises(Problem, match=r"within 0\.3 seconds"):
            threads.run(lambda _: 1)
        assert 0.2 < monotonic() - started < 2
        with pytest.raises(Problem):
            first.result()
        done.set()
    assert QueryThreads(seconds=5, at_once=1).run(lambda _: 7) == 7


def test_work_that_looks_at_the_time_ends_by_itself() -> None:
    threads, ended = QueryThreads(seconds=0.05, at_once=1), Event()

    def work(check: Callable[[], None]) -> None:
        try:
            while True:
                check()
                sleep(0.005)
        finally:
            ended.set()

    with pytest.raises(Problem):
        threads.run(work)
    assert ended.wait(5)
    assert threads.run(lambda _: "next") == "next"
