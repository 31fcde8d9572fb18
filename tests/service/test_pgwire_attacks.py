"""PostgreSQL's protocol under attack: wrong tokens, garbage, endless claims, silence, floods, and sudden ends."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import errors
from tests.service.pg_people import FEW, Served, certificate, served
from tests.service.pg_raw import is_closed, message, raw, rest, until_ready
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.collector.pg.listen import PgSettings
from tacit.core.patience import check
from tacit.errors import InvalidSpec


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("pg"), n=FEW) as found:
        yield found


def refused(table: Served, **more: Any) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(table.address(**more), connect_timeout=int(PATIENT_SECONDS))
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


@pytest.mark.slow
def test_expensive_catalogue_queries_end(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection, monkeypatch.context() as hurried:
        hurried.setattr("tacit.collector.pg.catalog._SECONDS", 0.2)
        for sql in (
            "SELECT COUNT(*) FROM pg_type a, pg_type b, pg_type c, pg_type d, pg_type e, pg_type f",
            "SELECT COUNT(DISTINCT REPEAT_ME || a.oid || b.oid || c.oid) FROM pg_type a, pg_type b, pg_type c",
            "SELECT array_agg(REPEAT_ME || a.oid || b.oid) FROM pg_type a, pg_type b, pg_type c",
            "SELECT REPEAT_ME LIKE '%%' || 'aaaaaaaa' || 'b' FROM pg_type a, pg_type b, pg_type c",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(sql.replace("REPEAT_ME", "'" + "a" * 15_000 + "'"))
        hurried.undo()
        for pattern, matches in (("^(a+)+$", True), ("(a*)*b", False), ("(a|aa)" * 30 + "b", False)):
            found = connection.execute("SELECT %s ~ %s", ("a" * 90, pattern)).fetchone()
            assert found == (matches,), pattern
        deep = connection.execute("SELECT relname LIKE %s FROM pg_class", ("%a" * 100,)).fetchall()
        assert deep == [(False,), (False,)]
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


def test_silence_at_the_door_and_inside_ends(table: Served) -> None:
    with table.limited(opening_seconds=0.3), raw(table) as silent, raw(table) as slow:
        slow.sendall(struct.pack("!I", 50))
        assert b"no token was shown in time" in rest(silent) and b"no token" in rest(slow)
    with table.limited(message_seconds=0.1), raw(table, opened=True) as half:
        half.sendall(b"Q\0\0\1")
        rest(half)
    with table.limited(idle_seconds=0.1), raw(table, opened=True) as idle:
        assert b"idle-session timeout" in rest(idle)


@pytest.mark.slow
def test_a_client_that_does_not_read_is_cut_off(table: Served) -> None:
    with table.limited(write_seconds=0.2), raw(table, opened=True) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sql = b"SELECT a.*, b.* FROM pg_attribute a, pg_type b, pg_type c LIMIT 20000\0"
        # A server that goes on waiting stops reading as well: then sending blocks, and fails with another error.
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while True:
                connection.sendall(message(b"Q", sql))
                time.sleep(0.02)
    still_answers(table)


def test_too_many_connections_are_told_so_and_others_go_on(table: Served) -> None:
    wait_until(lambda: table.is_left_by(0))
    with table.limited(connections=8, strangers=6):
        first = psycopg.connect(table.address(), autocommit=True)
        held = [psycopg.connect(table.address()) for _ in range(7)]
        assert "too many connections" in refused(table)
        assert first.execute("SELECT 1").fetchone() == (1,)
        for connection in (*held, first):
            connection.close()
        wait_until(lambda: table.is_left_by(0))
        flood = [socket.create_connection(("127.0.0.1", table.port)) for _ in range(30)]
        wait_until(lambda: sum(map(is_closed, flood)) >= 24)
        assert table.is_left_by(6)
        for connection in flood:
            connection.close()
        wait_until(lambda: table.is_left_by(0))
    still_answers(table)


def test_statements_and_portals_are_limited(table: Served) -> None:
    with (
        table.limited(statements=5, portals=3),
        psycopg.connect(table.address(), prepare_threshold=0) as connection,
    ):
        connection.prepared_max = None
        with pytest.raises(errors.ProgramLimitExceeded, match="prepared statements"):
            for i in range(9):
                connection.execute(f"SELECT {i}", prepare=True)
        connection.rollback()
        connection.execute("DEALLOCATE ALL")
        with pytest.raises(errors.ProgramLimitExceeded, match="portals"):
            for i in range(9):
                connection.execute(f"DECLARE c{i} CURSOR FOR SELECT 1", prepare=False)


def test_one_token_cannot_take_every_place(table: Served) -> None:
    token = table.make_token("analyst")["token"]
    with table.limited(connections_each=3):
        greedy = [psycopg.connect(table.address(password=token)) for _ in range(3)]
        assert "a token may have at most 3 connections" in refused(table, password=token)
        still_answers(table)
    for connection in greedy:
        connection.close()


def test_cursors_of_one_token_hold_so_much_together(table: Served) -> None:
    """Each of these cursors holds four cells; closing some makes room for others, in whichever session."""
    query = "SELECT paying, COUNT(*) FROM people GROUP BY paying"
    made = table.make_token("analyst")
    address = table.address(password=made["token"])
    with table.limited(cells_each=16), psycopg.connect(address) as first, psycopg.connect(address) as second:
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


def test_a_query_of_a_client_that_has_left_ends(table: Served) -> None:
    begun, ended = threading.Event(), threading.Event()

    class Endless(Held):
        def query(self, *given: Any) -> Any:
            begun.set()
            try:
                while True:
                    check()
                    time.sleep(0.001)
            finally:
                ended.set()

    with replaced(table, Endless(table.pg._tables)):
        with raw(table, opened=True) as connection:
            connection.sendall(message(b"Q", b"SELECT COUNT(*) FROM people\0"))
            assert begun.wait(PATIENT_SECONDS)
        assert ended.wait(PATIENT_SECONDS)


class Held:
    """Makes every query over a table wait until it is let go; catalogue queries go on."""

    def __init__(self, tables: Any) -> None:
        self._tables, self.entered, self.go = tables, threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def query(self, *given: Any) -> Any:
        self.entered.set()
        assert self.go.wait(PATIENT_SECONDS)
        return self._tables.query(*given)


@contextmanager
def replaced(table: Served, tables: Any) -> Generator[None]:
    """Put something else in the place of the tables that a server asks."""
    before, table.pg._tables = table.pg._tables, tables
    try:
        yield
    finally:
        table.pg._tables = before


@pytest.fixture
def held(table: Served) -> Generator[Held]:
    found = Held(table.pg._tables)
    with replaced(table, found):
        yield found
    found.go.set()


def test_a_query_is_cancelled_from_another_connection(table: Served, held: Held) -> None:
    """The query is not let go before the end of the test: whoever hears of it has not waited for it."""
    with psycopg.connect(table.address(), autocommit=True) as connection:
        threading.Thread(target=lambda: held.entered.wait() and connection.cancel_safe(), daemon=True).start()
        with pytest.raises(errors.QueryCanceled, match="user request"):
            connection.execute("SELECT COUNT(*) FROM people")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with raw(table) as stranger:
            stranger.sendall(struct.pack("!IIII", 16, 80877102, connection.info.backend_pid, 12345))
            assert rest(stranger) == b""
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_statement_timeout_is_kept(table: Served, held: Held) -> None:
    with psycopg.connect(table.address(options="-c statement_timeout=300ms"), autocommit=True) as connection:
        # On a busy machine a short time is over before the query has begun; then it is asked again with a longer one.
        for limit in ("300ms", "3s", "30s", "300s"):
            connection.execute(f"SET statement_timeout = '{limit}'")
            with pytest.raises(errors.QueryCanceled, match="statement timeout"):
                connection.execute("SELECT COUNT(*) FROM people")
            if held.entered.is_set():
                break
        connection.execute("SET statement_timeout = 0")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert held.entered.is_set()


def test_a_client_that_leaves_during_its_query_is_forgotten(table: Served, held: Held) -> None:
    wait_until(lambda: table.is_left_by(0))
    with raw(table, opened=True) as connection:
        connection.sendall(message(b"Q", b"SELECT COUNT(*) FROM people\0"))
        assert held.entered.wait(PATIENT_SECONDS)
    wait_until(lambda: table.is_left_by(0))


def test_a_server_that_stops_lets_queries_end_and_says_goodbye(tmp_path: Any) -> None:
    """A query is let go only after others were told goodbye, so the server has begun to stop and waits for it."""
    answers: list[Any] = []
    with ExitStack() as after, served(tmp_path, n=FEW) as table:
        watching = after.enter_context(raw(table, opened=True))
        held = Held(table.pg._tables)
        table.pg._tables = held
        idle, busy = psycopg.connect(table.address()), psycopg.connect(table.address(), autocommit=True)

        def ask() -> None:
            answers.append(busy.execute("SELECT COUNT(*) FROM people").fetchone())

        def let_go() -> None:
            rest(watching)
            held.go.set()

        threads = [threading.Thread(target=target) for target in (ask, let_go)]
        for thread in threads:
            thread.start()
        assert held.entered.wait(PATIENT_SECONDS)
    for thread in threads:
        thread.join(PATIENT_SECONDS)
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
