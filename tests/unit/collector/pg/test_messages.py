"""PostgreSQL's protocol byte by byte: what is decoded, refused, spelt and filled in, whatever the bytes."""

from __future__ import annotations

import re
import struct
import time
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.collector.pg import messages as say
from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_functions import SessionFacts
from tacit.collector.pg.commands import SessionState, declared, fetched, run_command
from tacit.collector.pg.messages import PgError, PgLimits
from tacit.collector.pg.parameters import bind, parameter_types
from tacit.collector.pg.patterns import ilike, like
from tacit.collector.pg.settings import SessionSettings, opening_options
from tacit.collector.pg.text import statements
from tacit.errors import InvalidQuery
from tacit.sql.parse.parsing import MAX_TEXT, parse_text
from tacit.sql.parse.select import parse_sql, read_query, select_of

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@given(st.binary(min_size=1, max_size=1), st.binary(max_size=200))
def test_any_body_is_a_message_or_refused(letter: bytes, body: bytes) -> None:
    try:
        say.decode(letter, body)
    except PgError as error:
        assert error.state in ("08P01", "22021")


@given(st.binary(max_size=200))
def test_any_opening_is_read_or_refused(body: bytes) -> None:
    try:
        found = say.decode_opening(body)
    except PgError:
        return
    assert all(isinstance(text, str) for pair in found.items() for text in pair)


NAMES = st.text("abcé", max_size=5)


@given(NAMES, NAMES, st.lists(st.none() | st.binary(max_size=9), max_size=5), st.sampled_from([(), (1,), (0,)]))
def test_a_bind_comes_back(portal: str, statement: str, values: list[bytes | None], formats: tuple[int, ...]) -> None:
    body = say.text(portal) + say.text(statement) + struct.pack(f"!h{len(formats)}h", len(formats), *formats)
    body += struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    found = say.decode(b"B", body + struct.pack("!hh", 1, 1))
    assert found == say.Bind(portal, statement, formats, tuple(values), (1,))
    with pytest.raises(PgError):
        say.decode(b"B", body + b"\0")


@pytest.mark.parametrize(
    ("value", "oid"),
    [
        (True, pg.BOOL), (-5, pg.INT2), (7, pg.INT4), (-(2**40), pg.INT8), (0.1, pg.FLOAT8), ("grüße", pg.TEXT),
        ("2030-12-31", pg.DATE), ("1999-01-01", pg.DATE),
    ],
)  # fmt: skip
def test_values_come_back_in_both_formats(value: Any, oid: int) -> None:
    for binary in (0, 1):
        assert pg.decode_parameter(pg.encode_value(value, oid, binary), oid, binary) == value


def test_spellings_are_those_of_postgresql() -> None:
    assert pg.encode_value(True, pg.BOOL, 0) == b"t" and pg.encode_value(2.0, pg.FLOAT8, 0) == b"2"
    assert pg.encode_value(date(2000, 1, 2), pg.DATE, 1) == b"\0\0\0\1" and pg.encode_value(None, pg.DATE, 1) is None
    assert pg.encode_value(1e300, pg.FLOAT8, 0) == b"1e+300" and pg.encode_value(float("nan"), pg.FLOAT8, 0) == b"NaN"
    assert pg.encode_value("{a,NULL}", pg.TEXTS, 1) == bytes.fromhex(
        "00000001 00000001 00000019 00000002 00000001 00000001 61 ffffffff"
    )


@given(st.decimals(-(10**12), 10**12, places=4))
def test_binary_numerics_are_read(number: Decimal) -> None:
    sign, digits, _ = number.as_tuple()
    text = "".join(map(str, digits)).rjust(24, "0")
    groups = [int(text[i : i + 4]) for i in range(0, 24, 4)]
    data = struct.pack("!hhHh6h", 6, 4, 0x4000 if sign else 0, 4, *groups)
    assert pg.decode_parameter(data, pg.NUMERIC, 1) == pytest.approx(float(number), rel=1e-12, abs=1e-12)


@given(st.binary(max_size=30), st.sampled_from(sorted({*pg.WIDTHS, *pg.ELEMENTS, pg.NUMERIC, 0, 99999})), st.booleans())
def test_any_parameter_is_a_value_or_refused(data: bytes, oid: int, binary: bool) -> None:
    try:
        pg.decode_parameter(data, oid, int(binary))
    except PgError as error:
        assert error.state in ("22P03", "22P02", "22021", "22003", "22007", "22008", "0A000", "08P01", "54000")


@given(st.lists(st.none() | TEXTS, max_size=6))
def test_arrays_come_back(items: list[str | None]) -> None:
    assert pg.parse_array(pg.array_text(items)) == items


@settings(deadline=None)
@given(TEXTS)
def test_a_parameter_is_one_constant_whatever_it_says(value: str) -> None:
    parsed = read_query("SELECT COUNT(*) FROM t WHERE os = $1 -- $1\n AND 'x$1' <> os")
    condition: Any = select_of(bind(parsed, [value]), ["os"], "t").condition
    assert condition.items[0].right.value == value and condition.items[1].left.value == "x$1"


@settings(deadline=None)
@given(st.integers(-(10**12), 10**12) | st.floats(-1e12, 1e12))
def test_numbers_never_join_what_stands_beside_them(value: float) -> None:
    parsed = read_query("SELECT COUNT(*) FROM t WHERE a -$1 < 3")
    condition: Any = select_of(bind(parsed, [value]), ["a"], "t").condition
    assert condition.left.sign == "-" and condition.left.right.value == value


@pytest.mark.slow_cases("60")
@pytest.mark.parametrize("n", [3, pytest.param(12, marks=pytest.mark.slow), 60])
def test_queries_that_double_the_work_of_the_parser_are_refused(n: int) -> None:
    """Few of them are parsed at once; of many, none is even begun."""
    slow = [
        "SELECT 1 FROM a" + " JOIN a" * n,
        "SELECT 1 FROM a" + " LEFT JOIN LATERAL (SELECT 1) x" * n,
        "SELECT 1 FROM a" + " JOIN a JOIN a JOIN a ON true" * n,
        "SELECT 1 FROM a WHERE " + "( UNION " * n,
        "SELECT 1 FROM a WHERE " + "a LIMIT f(" * n,
        "SELECT " + "VALUES LIMIT ROW(" * n,
        "SELECT 1 FROM a WHERE " + "'x', ( FROM " * n,
    ]
    for text in slow:
        started = time.thread_time()
        try:
            parse_text(text)
        except InvalidQuery as error:
            assert error.code in ("54001", "42601")
        else:
            with pytest.raises(InvalidQuery):
                parse_sql(text, ["a"], "a")
        assert time.thread_time() - started < 5
    joined = "SELECT 1 FROM a" + " JOIN a ON true CROSS JOIN b" * n + " UNION ALL SELECT 1" * n
    assert parse_text(joined).tree is not None


def test_lists_and_casts_of_parameters() -> None:
    parsed = read_query("SELECT COUNT(*) FROM t WHERE a = ANY($1) AND d > $2::date AND a = ANY($3::text[])")
    assert parameter_types(parsed, (), {"a": pg.TEXT})[1] == pg.DATE
    bound = bind(parsed, [["x'y", None, "z"], "2030-01-01", ["w"]], lists=True)
    condition: Any = select_of(bound, ["a", "d"], "t").condition
    assert [value.value for value in condition.items[0].values] == ["x'y", "z"]
    assert condition.items[1].right.value == "2030-01-01"
    assert [value.value for value in condition.items[2].values] == ["w"]
    with pytest.raises(PgError, match="empty list"):
        bind(parsed, [[], "2030-01-01", []], lists=True)
    with pytest.raises(PgError, match=r"no parameter \$2"):
        bind(parsed, ["x"])


def test_a_statement_can_be_bound_again() -> None:
    parsed = read_query("SELECT COUNT(*) FROM t WHERE a = $1 LIMIT $2")
    first, second = (select_of(bind(parsed, [value, n]), ["a"], "t") for value, n in (("x", 1), ("y", 2)))
    assert (first.limit, second.limit) == (1, 2) and first.condition != second.condition
    with pytest.raises(InvalidQuery) as caught:
        select_of(parsed, ["a"], "t")
    assert caught.value.code == "42P02"


def test_a_statement_is_as_long_as_a_query_may_be() -> None:
    assert PgLimits().text_bytes == MAX_TEXT


@settings(deadline=None)
@given(st.text("SELECT'$1;\"/*-\n \\E", max_size=30))
def test_any_text_is_cut_or_refused(text: str) -> None:
    try:
        found = statements(text, 1000)
    except PgError as error:
        assert error.state in ("42601", "42P02")
        return
    for statement in found:
        assert statement.text in text and statement.words


@given(st.text("ab%_\\", max_size=8), st.text("ab_%", max_size=8))
def test_like_is_that_of_regular_expressions(pattern: str, value: str) -> None:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    signs = {"%": ".*", "_": "."}
    expected = "".join(signs.get(part) or re.escape(part[-1]) for part in parts if part != "\\")
    assert like(value, pattern) == int(re.fullmatch(expected, value, re.DOTALL) is not None)
    assert ilike(value.upper(), pattern) == like(value, pattern)


def _state() -> SessionState:
    return SessionState(SessionFacts("ann", "tacit", 1, 5433, SessionSettings("ann")))


def test_settings_are_set_shown_and_reset() -> None:
    state = _state()
    for sql in ("SET tacit.errors = on", "SET SESSION tacit.level TO '0.9'", "SET datestyle TO 'ISO, DMY'"):
        assert run_command(state, statements(sql, 100)[0]).tag == "SET"
    assert state.facts.settings.errors and state.facts.settings.level == 0.9
    assert state.facts.changed >= {"DateStyle", "tacit.level"}
    assert run_command(state, statements("SHOW TRANSACTION ISOLATION LEVEL", 100)[0]).rows == [("read committed",)]
    run_command(state, statements("RESET ALL", 100)[0])
    assert not state.facts.settings.errors
    for sql, sqlstate in {
        "SET tacit.level = 1": "22023", "SET tacit.errors = perhaps": "22P02",
        "SET client_encoding TO 'LATIN1'": "22023",
        "SET transaction_read_only = off": "25006", "SET ROLE admin": "42501", "SHOW nosuch": "42704", "SET": "42601",
        "SET DateStyle = 'German'": "22023", "SET server_version = '9'": "55P02", "SAVEPOINT x": "25P01",
        "RESET tacit.nosuch": "",
    }.items():  # fmt: skip
        try:
            run_command(state, statements(sql, 100)[0])
        except PgError as error:
            assert error.state == sqlstate, sql
        else:
            assert not sqlstate, sql


def test_a_local_setting_ends_with_its_transaction() -> None:
    state = _state()
    for sql in ("BEGIN", "SET LOCAL tacit.level = 0.5"):
        run_command(state, statements(sql, 100)[0])
    assert state.facts.settings.level == 0.5
    assert run_command(state, statements("COMMIT", 100)[0]).tag == "COMMIT"
    assert state.facts.settings.level == 0.95


def test_options_of_a_connection() -> None:
    assert opening_options(r"-c tacit.errors=on --tacit.level=0.9 -csearch_path=a\ b") == [
        ("tacit.errors", "on"), ("tacit.level", "0.9"), ("search_path", "a b"),
    ]  # fmt: skip
    with pytest.raises(PgError):
        opening_options("-B 5")


def test_cursors_are_named_and_go_forward() -> None:
    def one(sql: str) -> Any:
        return statements(sql, 200)[0]

    assert declared(one('DECLARE "My c" NO SCROLL CURSOR WITH HOLD FOR SELECT 1'))[:2] == ("My c", True)
    assert fetched(one("FETCH FORWARD 100 FROM c")) == ("c", 100) and fetched(one("FETCH ALL IN c")) == ("c", 0)
    assert fetched(one("FETCH c")) == ("c", 1) and fetched(one("MOVE 5 c")) == ("c", 5)
    for sql in ("FETCH BACKWARD 1 FROM c", "FETCH -1 FROM c", "DECLARE c SELECT 1"):
        with pytest.raises(PgError):
            (declared if sql.startswith("DECLARE") else fetched)(one(sql))


def test_sqlglot_places_tokens_where_they_stand() -> None:
    """Parameters are filled in by these places."""
    text = "SELECT $1, 'é$2' FROM t"
    found = [text[token.start : token.end + 1] for token in sqlglot.tokenize(text, read="postgres")]
    assert found == ["SELECT", "$", "1", ",", "'é$2'", "FROM", "t"]
