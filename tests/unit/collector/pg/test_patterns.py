"""Patterns and texts from clients of PostgreSQL that were made to take long."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from tacit.collector.pg import values as pg
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.parameters import bind
from tacit.collector.pg.patterns import ilike, like, regex
from tacit.collector.pg.text import statements
from tacit.sql.parse.parsing import parse_text


@contextmanager
def bounded_work(seconds: float = 2.0) -> Generator[None]:
    """Bound the CPU time: that of a fast algorithm is far below, that of an exponential one far above."""
    started = time.thread_time()
    yield
    assert time.thread_time() - started < seconds


def test_regular_expressions_match_as_psql_needs() -> None:
    for text, pattern, expected in (
        ("people", "^(people)$", 1),
        ("people2", "^(people)$", 0),
        ("people", "^(pe.*)$", 1),
        ("a.b", "^(a\\.b)$", 1),
        ("axb", "^(a\\.b)$", 0),
        ("a{b", "^(a\\{b)$", 1),
        ("grüße", "^gr..e$", 1),
        ("two\nlines", "^two.lines$", 1),
        ("pg_toast_1", "^pg_(toast|temp_[0-9]+)", 1),
    ):
        assert regex(text, pattern) == expected, (text, pattern)
    assert regex(None, "x") is None and regex("x", None) is None and regex("ABC", "b", ignore_case=True) == 1


@pytest.mark.parametrize(
    "pattern",
    ["(a|aa)" * 40 + "b", "(a*)*b", "^(a+)+$b", "(.*)" * 60 + "b", "(a|b|ab)*c", "(((a?)?)?)*b", "[^x]*a" * 40 + "b"],
)
def test_no_regular_expression_runs_away(pattern: str) -> None:
    with bounded_work():
        assert regex("a" * 100_000, pattern) == 0


LARGE = (
    "a{1000}", "(a|b)*a.{0,1000}", "\\[a{1000}]", "\\Q[\\Ea{1000}]", "\\\\{1000}", "\\pL", "[\\pL]", "\\1", "(?=a)",
    "(", "a**", "a{2}{3}", "\\", "a" * 257,
)  # fmt: skip


@pytest.mark.parametrize("pattern", LARGE)
def test_regular_expressions_that_would_be_large_are_refused(pattern: str) -> None:
    with bounded_work(), pytest.raises(PgError):
        regex("a" * 1000, pattern)


def test_like_looks_at_the_beginning_of_a_text_and_at_short_patterns() -> None:
    with bounded_work():
        assert like("a" * 1_000_000, "%" + "a" * 250 + "b") == 0 and ilike("A" * 1_000_000, "%" + "a" * 250 + "b") == 0
    assert like("a" * 1_000_000, "a%") == 1 and ilike("ABC", "%bC") == 1
    with pytest.raises(PgError, match="at most 256 characters"):
        like("a", "%" * 257)


def test_arrays_and_dates_are_read_once() -> None:
    with bounded_work():
        assert len(pg.parse_array('{"' + '\\"' * 100_000 + "}")) == 1
        with pytest.raises(PgError):
            pg.decode_parameter(b"2030-01-01" + b" " * 500_000 + b"x", pg.DATE, 0)
        with pytest.raises(PgError):
            pg.decode_parameter(b"{" + (b"2030-01-01" + b" " * 480 + b"x,") * 2000 + b"}", 1182, 0)
        with pytest.raises(PgError):
            pg.decode_parameter(b"1" * 900_000, pg.FLOAT8, 0)
    assert pg.parse_array('{"a\\"b",c,"",NULL}') == ['a"b', "c", "", None]
    for text in (" 2030-01-02 ", "2030-01-02 00:00:00 +02:00 ", "2030-01-02T00:00Z"):
        assert pg.decode_parameter(text.encode(), pg.DATE, 0) == "2030-01-02"


def test_texts_that_grow_are_refused() -> None:
    parsed = parse_text("SELECT " + "$1 , " * 3_000 + "1")
    with bounded_work(), pytest.raises(PgError, match="the parameters of a statement"):
        bind(parsed, ["x" * 500_000])
    with bounded_work(8), pytest.raises(PgError, match="explained at once"):
        statements("EXPLAIN SELECT 1;" * 1000, 64_000)
