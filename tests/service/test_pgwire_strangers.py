"""Strangers at the door of PostgreSQL's protocol: they are silent, slow, many, or talk nonsense inside TLS."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import psycopg
import pytest
from tests.service.pg_people import FEW, Served, certificate, served
from tests.service.pg_raw import OPENING, SSL_REQUEST, is_closed, message, raw, rest
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.collector.pg import channel
from tacit.collector.pg.messages import PgLimits

STRANGERS, STRANGERS_EACH = 30, 10
LIMITS = PgLimits(opening_seconds=600.0, strangers=STRANGERS, strangers_each=STRANGERS_EACH, lingering_seconds=0.2)
"""Nobody is hurried but where a test is about that, by `Served.limited`."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("pg")
    cert, key = certificate(folder)
    with served(folder, LIMITS, FEW, cert=cert, key=key) as found:
        yield found


def answers(table: Served) -> bool:
    """Whether somebody who shows a token is let in."""
    try:
        with psycopg.connect(table.address(), connect_timeout=int(PATIENT_SECONDS)) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def settle(table: Served, most: int = 0) -> None:
    wait_until(lambda: table.is_left_by(most))


@pytest.mark.parametrize("said", [b"", b"\0", SSL_REQUEST, OPENING], ids=["silent", "a byte", "encryption", "a name"])
def test_strangers_who_show_nothing_keep_nobody_out(table: Served, said: bytes) -> None:
    with ExitStack() as held:
        flood = [held.enter_context(raw(table)) for _ in range(3 * STRANGERS)]
        for connection in flood[-STRANGERS:]:
            connection.sendall(said)
        settle(table, STRANGERS)
        for _ in range(3):
            assert answers(table)
    settle(table)


def test_whoever_lingers_leaves_for_others_from_the_same_address(table: Served) -> None:
    with ExitStack() as held:
        first = [held.enter_context(raw(table)) for _ in range(STRANGERS_EACH + 5)]
        # Whoever comes later makes those leave who have lingered; at first nobody has, and all may stay.
        wait_until(lambda: answers(table) and is_closed(first[0]) and table.is_left_by(STRANGERS_EACH))
        first[-1].sendall(OPENING)
        assert first[-1].recv(9) == b"R\0\0\0\x08\0\0\0\x03"
    settle(table)


def test_who_is_inside_stays_inside_during_a_flood(table: Served) -> None:
    with psycopg.connect(table.address()) as inside, ExitStack() as held:
        for _ in range(2 * STRANGERS):
            held.enter_context(raw(table))
        assert inside.execute("SELECT COUNT(*) FROM people").fetchone() == (FEW,)
    settle(table)


def trickle(connection: socket.socket, head: bytes) -> None:
    """Begin something long and go on byte by byte for ever, until the other side hangs up."""
    connection.settimeout(0.02)
    end = time.monotonic() + PATIENT_SECONDS
    with suppress(ConnectionError):
        connection.sendall(head)
        while time.monotonic() < end:
            connection.sendall(b"x")
            with suppress(TimeoutError):
                while connection.recv(1000):
                    pass
                return
        pytest.fail("nobody hung up")


def test_bytes_that_come_one_by_one_meet_a_deadline(table: Served) -> None:
    with table.limited(opening_seconds=0.3):
        with raw(table) as connection:
            trickle(connection, struct.pack("!II", 5000, 196608))
        with raw(table) as connection:
            trickle(connection, OPENING + b"p" + struct.pack("!I", 1000))
    with table.limited(message_seconds=0.3), raw(table, opened=True) as connection:
        trickle(connection, b"Q" + struct.pack("!I", 5000))
    assert answers(table)


@contextmanager
def asking_for_tls(table: Served) -> Generator[socket.socket]:
    """A connection that was told to go on with TLS; again where a busy machine let the deadline come first."""
    for _ in range(100):
        with raw(table) as connection, suppress(ConnectionError):
            connection.sendall(SSL_REQUEST)
            if connection.recv(1) == b"S":
                yield connection
                return
    pytest.fail("TLS was never offered")


def hello() -> tuple[ssl.MemoryBIO, ssl.MemoryBIO, ssl.SSLObject]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    return coming, going, context.wrap_bio(coming, going)


def step(action: Any) -> bool:
    try:
        action()
    except ssl.SSLWantReadError:
        return False
    return True


def first_record() -> bytes:
    _, going, tls = hello()
    step(tls.do_handshake)
    return going.read()


HANDSHAKES = {
    "nothing": b"",
    "noise": b"\x80" * 300,
    "half a record": first_record()[:60],
    "a record and silence": first_record(),
    "a record twice": first_record() * 2,
    "a record of nothing": b"\x16\x03\x01\0\0" * 100,
    "a huge record": b"\x16\x03\x01\xff\xff" + b"x" * 70_000,
    "an alert": b"\x15\x03\x01\0\2\2\x28",
    "plain words after asking": OPENING + message(b"p", b"x\0"),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_a_handshake_that_goes_wrong_ends(table: Served, name: str) -> None:
    with table.limited(opening_seconds=0.3), asking_for_tls(table) as connection:
        with suppress(OSError):
            connection.sendall(HANDSHAKES[name])
        reply = rest(connection)
        assert b"Traceback" not in reply and b"SELECT" not in reply
    settle(table)
    assert answers(table)


def test_a_slow_handshake_meets_the_deadline(table: Served) -> None:
    with table.limited(opening_seconds=0.3), asking_for_tls(table) as connection:
        trickle(connection, b"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03")
    settle(table)


@pytest.mark.slow
def test_tls_that_is_never_ended_by_the_other_side_is_cut(table: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "_CLOSING_SECONDS", 0.1)
    with asking_for_tls(table) as connection:
        coming, going, tls = hello()
        while not step(tls.do_handshake):
            connection.sendall(going.read())
            coming.write(connection.recv(65536))
        tls.write(b"\0\0\0\1 nonsense inside")
        connection.sendall(going.read())
        rest(connection)  # Returns once the server has hung up, and fails where it never does.
