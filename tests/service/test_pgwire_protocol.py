"""PostgreSQL's protocol to the letter: revoked tokens, texts that are too long, and function calls."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Any

import psycopg
import pytest
from psycopg import errors
from tests.service.pg_people import FEW, Served, served
from tests.service.pg_raw import message, raw, rest, until_ready

from tacit.collector.pg import text
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.parameters import bind
from tacit.sql.parse import parsing
from tacit.sql.parse.parsing import MAX_TEXT, parse_text


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("pg"), n=FEW) as found:
        yield found


@pytest.fixture
def token(table: Served) -> tuple[str, Callable[[], None]]:
    """A token, and how it is revoked."""
    made = table.make_token("analyst")

    def revoke() -> None:
        assert table.client.api("DELETE", f"/tokens/{made['id']}").status_code in (200, 204)

    return made["token"], revoke


GROUPS = "SELECT purchases, COUNT(*) FROM people GROUP BY purchases"


@pytest.mark.parametrize("query", [GROUPS, "SELECT typname FROM pg_type"], ids=["table", "catalogue"])
@pytest.mark.parametrize("word", ["FETCH 2 FROM c", "MOVE 2 FROM c", "FETCH ALL FROM c"])
def test_a_revoked_token_cannot_fetch(table: Served, token: Any, query: str, word: str) -> None:
    password, revoke = token
    connection = psycopg.connect(table.address(password=password))
    connection.execute(f"DECLARE c CURSOR FOR {query}")
    assert len(connection.execute("FETCH 2 FROM c").fetchall()) == 2
    revoke()
    with pytest.raises(psycopg.OperationalError, match="does not hold any more"):
        connection.execute(word)
    assert connection.closed
    connection.close()


PREPARE = message(b"P", b"s\0" + GROUPS.encode() + b"\0\0\0")
BIND, ONE_ROW = message(b"B", b"p\0s\0\0\0\0\0\0\0"), message(b"E", b"p\0" + struct.pack("!I", 1))
AGAIN = message(b"B", b"q\0s\0\0\0\0\0\0\0") + message(b"E", b"q\0\0\0\0\0")


@pytest.mark.parametrize("more", [ONE_ROW, AGAIN], ids=["a suspended portal", "a prepared statement"])
def test_a_revoked_token_cannot_go_on_with(table: Served, token: Any, more: bytes) -> None:
    password, revoke = token
    with raw(table, opened=True, token=password) as connection:
        connection.sendall(message(b"Q", b"BEGIN\0"))
        until_ready(connection)
        connection.sendall(PREPARE + BIND + ONE_ROW + message(b"S"))
        assert b"s\0\0\0\x04" in until_ready(connection), "there are more rows"
        revoke()
        connection.sendall(more + message(b"S"))
        said = rest(connection)
        assert b"28000" in said and b"does not hold any more" in said and b"FATAL" in said


# Lengths.


def test_a_text_that_no_query_may_have_is_not_read(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    tokens = text._tokens  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(text, "_tokens", lambda sql: read.append(len(sql)) or tokens(sql))
    with psycopg.connect(table.address(), autocommit=True) as connection:
        read.clear()
        for length in (MAX_TEXT + 1, 30_000, 64_000, 100_000):
            sql = "SELECT COUNT(*) FROM people WHERE age < 30 OR age < 30".ljust(length - 1) + "1"
            for parameters in (None, ()):
                with pytest.raises(errors.ProgramLimitExceeded, match=f"at most {MAX_TEXT} characters"):
                    connection.execute(sql, parameters)
        assert read == []
        sql = "SELECT COUNT(*) FROM people"
        assert connection.execute(sql.ljust(MAX_TEXT)).fetchone() == (FEW,)


def test_a_query_whose_parameters_are_longer_than_a_query_is_refused() -> None:
    parsed = parse_text("SELECT COUNT(*) FROM people WHERE os = $1")
    assert "x" * 19_000 in bind(parsed, ["x" * 19_000], lists=True).tree.sql()
    with pytest.raises(PgError, match="the parameters of a statement may have at most"):
        bind(parsed, ["x" * 20_000], lists=True)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed from now on, by whichever door they come."""
    texts: list[str] = []
    tree = parsing._tree  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(parsing, "_tree", lambda tokens, sql: texts.append(sql) or tree(tokens, sql))
    return texts


def test_a_query_is_parsed_once(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection:
        texts = counted(monkeypatch)
        connection.execute("SELECT COUNT(*) FROM people WHERE age < 30")
        assert texts == ["SELECT COUNT(*) FROM people WHERE age < 30"]
        connection.execute("EXPLAIN SELECT COUNT(*) FROM people WHERE age < 30")
        assert len(texts) == 2
        connection.execute("SELECT relname FROM pg_class")
        assert len(texts) == 3


def test_a_prepared_query_is_parsed_once_however_often_it_runs(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection:
        texts = counted(monkeypatch)
        for age in (30, 40, 50):
            connection.execute("SELECT COUNT(*) FROM people WHERE age < %s", (age,), prepare=True)
        assert texts == ["SELECT COUNT(*) FROM people WHERE age < $1"]


def test_a_query_over_http_is_parsed_once(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    sql, texts = "SELECT COUNT(*) FROM people WHERE age < 30", counted(monkeypatch)
    assert table.client.api("POST", f"/collections/{table.collection}/query", {"sql": sql}).status_code == 200
    assert texts == [sql]


# Function calls.

CALL = message(b"F", struct.pack("!IhhhI", 2200, 0, 0, 0, 0))


def test_a_function_call_is_refused_at_once_and_the_session_goes_on(table: Served) -> None:
    with raw(table, opened=True) as connection:
        connection.sendall(CALL)
        said = until_ready(connection)
        assert said.startswith(b"E") and b"0A000" in said and said.endswith(b"Z\0\0\0\x05I")
        connection.sendall(message(b"Q", b"SELECT 1\0"))
        assert b"SELECT 1" in until_ready(connection)


def test_a_function_call_inside_a_transaction_fails_it(table: Served) -> None:
    with raw(table, opened=True) as connection:
        connection.sendall(message(b"Q", b"BEGIN\0"))
        assert until_ready(connection).endswith(b"T")
        connection.sendall(CALL)
        assert until_ready(connection).endswith(b"Z\0\0\0\x05E")
        connection.sendall(message(b"Q", b"ROLLBACK\0"))
        assert until_ready(connection).endswith(b"I")


def test_a_function_call_after_an_error_of_the_extended_protocol_waits_for_its_sync(table: Served) -> None:
    with raw(table, opened=True) as connection:
        connection.sendall(message(b"P", b"\0SELEC\0\0\0") + CALL + message(b"S"))
        said = until_ready(connection)
        assert b"42601" in said and b"0A000" not in said and said.count(b"Z\0\0\0\x05") == 1
