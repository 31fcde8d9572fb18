"""PostgreSQL's protocol under attack: wrong tokens, garbage, endless claims, silence, floods, and sudden ends."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Generator
from typing import Any

import psycopg
import pytest
from psycopg import errors
from tests.service.pg_people import Served, certificate, served
from tests.service.pg_raw import message, raw, rest, until_ready

from tacit.collector.pg.messages import PgLimits
from tacit.collector.pg.server import PgSettings
from tacit.core.patience import check
from tacit.errors import InvalidSpec

FEW = 500
IMPATIENT = PgLimits(
    opening_seconds=1.0, message_seconds=0.5, idle_seconds=3.0, write_seconds=1.0, query_seconds=20.0, connections=8,
    strangers=6, message_bytes=10_000, statements=5, portals=3,
)  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("pg"), n=FEW) as found:
        yield found


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: Any) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("pg"), IMPATIENT, FEW) as found:
        yield found


def refused(table: Served, **more: Any) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(table.address(**more), connect_timeout=10)
    return str(caught.value)


def still_answers(table: Served) -> None:
    with psycopg.connect(table.address()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_wrong_passwords_and_tokens_that_may_not_read_are_refused(table: Served) -> None:
    for password in ("wrong", "tct_" + "A" * 43, "x" * 900, "'; --"):
        assert "password authentication failed" in refused(table, password=password.replace("'", r"\'"))
    assert "protocol violation" in refused(table, password="x" * 2000)
    reporter = table.make_token("reporter")["token"]
    assert "scope 'reporter' may not read" in refused(table, password=reporter)
    assert refused(table, dbname="nosuch").count('database "nosuch" does not exist') == 1


def test_a_token_for_one_collection_sees_that_one_alone(table: Served) -> None:
    with psycopg.connect(table.address(password=table.reader)) as connection:
        assert connection.execute("SELECT relname FROM pg_class").fetchall() == [("people",)]
        assert connection.execute("SELECT COUNT(*) FROM people").fetchone() == (FEW,)
        with pytest.raises(errors.UndefinedTable, match="There are: people"):
            connection.execute("SELECT COUNT(*) FROM others")
    assert "does not exist" in refused(table, password=table.reader, dbname=table.other)
    with psycopg.connect(table.address(dbname=table.other[:12])) as connection:
        assert connection.execute("SELECT relname FROM pg_class").fetchall() == [("others",)]
    for name in ("postgres", "ann", "tacit"):
        with psycopg.connect(table.address(dbname=name)) as connection:
            row = connection.execute("SELECT current_database(), COUNT(*) FROM pg_class").fetchone()
            assert row == (name, 2)


def test_a_token_that_is_revoked_ends_its_sessions(table: Served) -> None:
    made = table.make_token("analyst")
    connection = psycopg.connect(table.address(password=made["token"]), autocommit=True)
    assert connection.execute("SELECT COUNT(*) FROM people").fetchone() == (FEW,)
    assert table.client.api("DELETE", f"/tokens/{made['id']}").status_code in (200, 204)
    with pytest.raises(psycopg.OperationalError, match="does not hold any more"):
        connection.execute("SELECT COUNT(*) FROM people")
    assert connection.closed
    connection.close()
    assert "password authentication failed" in refused(table, password=made["token"])


WRITES = (
    "INSERT INTO people VALUES (1)", "UPDATE people SET age = 1", "DELETE FROM people", "DROP TABLE people",
    "CREATE TABLE x (a int)", "ALTER TABLE people ADD x int", "TRUNCATE people", "GRANT ALL ON people TO ann",
    "DO $$ BEGIN END $$", "CALL x()", "VACUUM", "COMMENT ON TABLE people IS 'x'", "LOCK people",
)  # fmt: skip
OTHERS = (
    "COPY people FROM STDIN", "PREPARE x AS SELECT 1", "EXECUTE x", "SELECT 1 INTO x", "ATTACH 'x' AS y", "PRAGMA x",
    "SELECT pg_read_file('/etc/passwd')", "SELECT load_extension('x')", "SELECT readfile('/etc/passwd')",
    "SELECT * FROM sqlite_master", "SELECT * FROM pg_class; DROP TABLE pg_class", "SELECT randomblob(1000000000)",
    "WITH x AS (DELETE FROM people RETURNING 1) SELECT * FROM x", "SELECT zeroblob(2000000000)",
)  # fmt: skip


def test_nothing_is_written_or_read_from_elsewhere(table: Served) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection:
        for sql in WRITES:
            with pytest.raises(errors.ReadOnlySqlTransaction):
                connection.execute(sql)
        for sql in OTHERS:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(sql)
            assert "Traceback" not in str(caught.value) and "apsw" not in str(caught.value), sql
        assert connection.execute("SELECT COUNT(*) FROM people").fetchone() == (FEW,)


def test_expensive_catalogue_queries_end(table: Served) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection:
        started = time.monotonic()
        for sql in (
            "SELECT COUNT(*) FROM pg_type a, pg_type b, pg_type c, pg_type d, pg_type e, pg_type f",
            "SELECT COUNT(DISTINCT REPEAT_ME || a.oid || b.oid || c.oid) FROM pg_type a, pg_type b, pg_type c",
            "SELECT array_agg(REPEAT_ME || a.oid || b.oid) FROM pg_type a, pg_type b, pg_type c",
            "SELECT REPEAT_ME LIKE '%%' || 'aaaaaaaa' || 'b' FROM pg_type a, pg_type b, pg_type c",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(sql.replace("REPEAT_ME", "'" + "a" * 15_000 + "'"))
        for pattern, matches in (("^(a+)+$", True), ("(a*)*b", False), ("(a|aa)" * 30 + "b", False)):
            found = connection.execute("SELECT %s ~ %s", ("a" * 90, pattern)).fetchone()
            assert found == (matches,), pattern
        deep = connection.execute("SELECT relname LIKE %s FROM pg_class", ("%a" * 100,)).fetchall()
        assert deep == [(False,), (False,)] and time.monotonic() - started < 20
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT " + "(" * 5000 + "1" + ")" * 5000)
        with pytest.raises(psycopg.Error, match="too entangled"):
            connection.execute("SELECT COUNT(*) FROM people" + " JOIN people" * 40)
        with pytest.raises(errors.ProgramLimitExceeded):
            connection.execute("SELECT '" + "x" * 70_000 + "'")
        assert connection.execute("SELECT 1").fetchone() == (1,)


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a gigabyte": struct.pack("!II", 1 << 30, 196608),
    "less than nothing": struct.pack("!II", 0, 196608),
    "tls without asking": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "version 2": struct.pack("!II", 8, 2 << 16),
    "no end": struct.pack("!II", 13, 196608) + b"user\0",
    "noise": os.urandom(64),
    "endless requests for encryption": struct.pack("!II", 8, 80877103) * 6,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_at_the_door_is_turned_away(table: Served, name: str) -> None:
    with raw(table) as connection:
        connection.sendall(GARBAGE[name])
        reply = rest(connection)
        assert b"Traceback" not in reply and len(reply) < 500
    still_answers(table)


INSIDE = {
    "a gigabyte": b"Q" + struct.pack("!I", 1 << 30),
    "negative": b"Q\xff\xff\xff\xff",
    "an unknown letter": message(b"!", b"x"),
    "no zero": message(b"Q", b"SELECT 1"),
    "more than it says": message(b"Q", b"SELECT 1\0\0\0"),
    "a bind of many": message(b"B", b"\0\0" + struct.pack("!hh", 0, 32767)),
    "a bind of a gigabyte": message(b"B", b"\0\0" + struct.pack("!hhi", 0, 1, 1 << 30)),
    "a format of 7": message(b"B", b"\0\0" + struct.pack("!hh", 1, 7) + b"\0\0\0\0"),
    "a describe of x": message(b"D", b"xy\0"),
    "an empty parse": message(b"P"),
}


@pytest.mark.parametrize("name", INSIDE)
def test_garbage_inside_ends_that_session_alone(table: Served, name: str) -> None:
    with raw(table, opened=True) as connection, psycopg.connect(table.address()) as other:
        connection.sendall(INSIDE[name])
        reply = rest(connection)
        assert b"FATAL" in reply and b"C08P01" in reply and b"Traceback" not in reply
        assert other.execute("SELECT 1").fetchone() == (1,)


def test_text_that_is_not_utf8_is_an_error_and_no_end(table: Served) -> None:
    with raw(table, opened=True) as connection:
        for sql in (b"SELECT '\xff\xfe'", b"\x80", b"SELECT 1 WHERE \xc3("):
            connection.sendall(message(b"Q", sql + b"\0"))
            assert b"C22021" in until_ready(connection)
        connection.sendall(message(b"Q", b"SELECT 'gr\xc3\xbc\xc3\x9fe'\0"))
        assert "grüße".encode() in until_ready(connection)


def test_random_bytes_never_reach_a_traceback(table: Served) -> None:
    for seed in range(60):
        noise = os.urandom(seed * 7 % 300)
        with raw(table, opened=True) as connection:
            letter = b"QPBDECSHFdcfx"[seed % 13 : seed % 13 + 1]
            connection.sendall(message(letter, noise) + message(b"S") + message(b"X"))
            assert b"Traceback" not in rest(connection)
    still_answers(table)


def test_silence_at_the_door_and_inside_ends(impatient: Served) -> None:
    with raw(impatient) as silent, raw(impatient) as slow, raw(impatient, opened=True) as half:
        slow.sendall(struct.pack("!I", 50))
        half.sendall(b"Q\0\0\1")
        started = time.monotonic()
        assert b"no token was shown in time" in rest(silent) and b"no token" in rest(slow)
        rest(half)
        assert time.monotonic() - started < 4
    with raw(impatient, opened=True) as idle:
        assert b"idle-session timeout" in rest(idle)


def test_a_client_that_does_not_read_is_cut_off(impatient: Served) -> None:
    with raw(impatient, opened=True) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sql = b"SELECT a.*, b.* FROM pg_attribute a, pg_type b, pg_type c LIMIT 20000\0"
        started = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while time.monotonic() - started < 30:
                connection.sendall(message(b"Q", sql))
                time.sleep(0.2)
    still_answers(impatient)


def test_too_many_connections_are_told_so_and_others_go_on(impatient: Served) -> None:
    first = psycopg.connect(impatient.address(), autocommit=True)
    held = [psycopg.connect(impatient.address()) for _ in range(7)]
    assert "too many connections" in refused(impatient)
    assert first.execute("SELECT 1").fetchone() == (1,)
    for connection in (*held, first):
        connection.close()
    time.sleep(0.2)
    flood = [socket.create_connection(("127.0.0.1", impatient.port)) for _ in range(30)]
    time.sleep(0.3)
    assert impatient.pg.connections <= IMPATIENT.connections + IMPATIENT.strangers
    for connection in flood:
        connection.close()
    time.sleep(0.5)
    still_answers(impatient)


def test_statements_and_portals_are_limited(impatient: Served) -> None:
    with psycopg.connect(impatient.address(), prepare_threshold=0) as connection:
        connection.prepared_max = None
        with pytest.raises(errors.ProgramLimitExceeded, match="prepared statements"):
            for i in range(9):
                connection.execute(f"SELECT {i}", prepare=True)
        connection.rollback()
        connection.execute("DEALLOCATE ALL")
        with pytest.raises(errors.ProgramLimitExceeded, match="portals"):
            for i in range(9):
                connection.execute(f"DECLARE c{i} CURSOR FOR SELECT 1", prepare=False)


def test_one_token_cannot_take_every_place(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table.pg, "_limits", PgLimits(connections_each=3))
    token = table.make_token("analyst")["token"]
    greedy = [psycopg.connect(table.address(password=token)) for _ in range(3)]
    assert "a token may have at most 3 connections" in refused(table, password=token)
    still_answers(table)
    for connection in greedy:
        connection.close()


def test_cursors_of_one_token_hold_so_much_together(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these cursors holds four cells; closing some makes room for others, in whichever session."""
    query = "SELECT paying, COUNT(*) FROM people GROUP BY paying"
    monkeypatch.setattr(table.pg, "_limits", PgLimits(cells_each=16))
    made = table.make_token("analyst")
    first, second = (psycopg.connect(table.address(password=made["token"])) for _ in range(2))
    with first, second:
        for i in range(2):
            for connection in (first, second):
                connection.execute(f"DECLARE c{i} CURSOR FOR {query}")
                connection.execute(f"FETCH 1 FROM c{i}")
        assert table.pg._cells_held(made["id"]) == 16
        second.execute(f"DECLARE another CURSOR FOR {query}")
        with pytest.raises(errors.OutOfMemory, match="hold more than 16 cells"):
            second.execute("FETCH 1 FROM another")
        with psycopg.connect(table.address()) as other:
            other.execute(f"DECLARE mine CURSOR FOR {query}")
            assert other.execute("FETCH 1 FROM mine").fetchone() is not None
        second.rollback()
        second.execute(f"DECLARE another CURSOR FOR {query}")
        assert second.execute("FETCH 1 FROM another").fetchone() is not None


def test_a_query_of_a_client_that_has_left_ends(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    class Endless(Slow):
        def query(self, *given: Any) -> Any:
            begun.set()
            try:
                while True:
                    check()
                    time.sleep(0.001)
            finally:
                ended.set()

    monkeypatch.setattr(table.pg, "_tables", Endless(table.pg._tables, 0.0))
    with raw(table, opened=True) as connection:
        connection.sendall(message(b"Q", b"SELECT COUNT(*) FROM people\0"))
        assert begun.wait(20)
    assert ended.wait(20)


class Slow:
    """Makes every query over a table wait."""

    def __init__(self, tables: Any, seconds: float) -> None:
        self._tables, self._seconds, self.entered = tables, seconds, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def query(self, *given: Any) -> Any:
        self.entered.set()
        time.sleep(self._seconds)
        return self._tables.query(*given)


@pytest.fixture
def slow(table: Served, monkeypatch: pytest.MonkeyPatch) -> Slow:
    found = Slow(table.pg._tables, 3.0)
    monkeypatch.setattr(table.pg, "_tables", found)
    return found


def test_a_query_is_cancelled_from_another_connection(table: Served, slow: Slow) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection:
        threading.Thread(target=lambda: slow.entered.wait() and connection.cancel_safe(), daemon=True).start()
        started = time.monotonic()
        with pytest.raises(errors.QueryCanceled, match="user request"):
            connection.execute("SELECT COUNT(*) FROM people")
        assert time.monotonic() - started < 2.5
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with raw(table) as stranger:
            stranger.sendall(struct.pack("!IIII", 16, 80877102, connection.info.backend_pid, 12345))
            assert rest(stranger) == b""
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_statement_timeout_is_kept(table: Served, slow: Slow) -> None:
    with psycopg.connect(table.address(options="-c statement_timeout=300ms"), autocommit=True) as connection:
        with pytest.raises(errors.QueryCanceled, match="statement timeout"):
            connection.execute("SELECT COUNT(*) FROM people")
        connection.execute("SET statement_timeout = 0")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_leaves_during_its_query_is_forgotten(table: Served, slow: Slow) -> None:
    before = table.pg.connections
    with raw(table, opened=True) as connection:
        connection.sendall(message(b"Q", b"SELECT COUNT(*) FROM people\0"))
        slow.entered.wait(5)
    end = time.monotonic() + 2
    while table.pg.connections > before and time.monotonic() < end:
        time.sleep(0.02)
    assert table.pg.connections <= before


def test_a_server_that_stops_lets_queries_end_and_says_goodbye(tmp_path: Any) -> None:
    answers: list[Any] = []
    with served(tmp_path, n=FEW) as table:
        slow = Slow(table.pg._tables, 1.0)
        table.pg._tables = slow
        idle, busy = psycopg.connect(table.address()), psycopg.connect(table.address(), autocommit=True)

        def ask() -> None:
            answers.append(busy.execute("SELECT COUNT(*) FROM people").fetchone())

        asking = threading.Thread(target=ask)
        asking.start()
        slow.entered.wait(5)
        started = time.monotonic()
    assert time.monotonic() - started < 8
    asking.join(5)
    assert answers == [(FEW,)]
    with pytest.raises(errors.AdminShutdown, match="administrator command"):
        idle.execute("SELECT 1")
    idle.close()
    busy.close()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(table.address(), connect_timeout=2)


def test_tokens_never_cross_a_network_in_the_clear(tmp_path: Any) -> None:
    with pytest.raises(InvalidSpec, match="tokens would cross the network in the clear"):
        PgSettings(5433, "0.0.0.0")
    with pytest.raises(InvalidSpec, match="go together"):
        PgSettings(5433, cert=tmp_path / "x")
    with pytest.raises(InvalidSpec, match="cannot be read"):
        PgSettings(5433, "0.0.0.0", tmp_path / "x", tmp_path / "y").context()
    assert PgSettings(5433, "::1").context() is None
    assert PgSettings(5433, "0.0.0.0", insecure=True).context() is None


def test_a_stranger_without_tls_is_not_asked_for_a_password(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.collector.pg.channel import Channel

    cert, key = certificate(tmp_path)
    monkeypatch.setattr(Channel, "is_local", False)
    with served(tmp_path, n=FEW, cert=cert, key=key) as table:
        assert "in the clear" in refused(table, sslmode="disable")
        with psycopg.connect(table.address(sslmode="verify-ca", sslrootcert=cert)) as connection:
            assert connection.execute("SELECT COUNT(*) FROM people").fetchone() == (FEW,)
        with raw(table) as connection:
            # What comes in the clear before the handshake must not be taken for what comes after it.
            connection.sendall(struct.pack("!II", 8, 80877103) + message(b"Q", b"SELECT 1\0"))
            assert rest(connection) in (b"", b"S")
        with raw(table) as connection:
            connection.sendall(struct.pack("!II", 8, 80877103))
            assert connection.recv(1) == b"S"
            connection.sendall(b"not a handshake at all, and long enough to be read as a record")
            assert rest(connection)[:1] in (b"", b"\x15")
