"""Strangers at the door of PostgreSQL's protocol: they are silent, slow, many, or talk nonsense inside TLS."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from tests.service.pg_people import Served, certificate, served
from tests.service.pg_raw import OPENING, SSL_REQUEST, message, raw, rest

from tacit.collector.pg import channel
from tacit.collector.pg.messages import PgLimits

FEW = 500
PATIENT = PgLimits(opening_seconds=20.0, strangers=30, strangers_each=10, lingering_seconds=0.5, connections=20)
IMPATIENT = PgLimits(opening_seconds=1.0, message_seconds=0.7)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: Any) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("pg"), PATIENT, FEW) as found:
        yield found


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: Any) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("pg")
    cert, key = certificate(folder)
    with served(folder, IMPATIENT, FEW, cert=cert, key=key) as found:
        yield found


def answers_soon(table: Served) -> None:
    started = time.monotonic()
    with psycopg.connect(table.address(), connect_timeout=10) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert time.monotonic() - started < 3


def settled(table: Served, most: int) -> bool:
    """Whether there are soon no more connections than so many."""
    end = time.monotonic() + 5
    while table.pg.connections > most and time.monotonic() < end:
        time.sleep(0.02)
    return table.pg.connections <= most


@pytest.mark.parametrize("said", [b"", b"\0", SSL_REQUEST, OPENING], ids=["silent", "a byte", "encryption", "a name"])
def test_strangers_who_show_nothing_keep_nobody_out(patient: Served, said: bytes) -> None:
    with ExitStack() as held:
        flood = [held.enter_context(raw(patient)) for _ in range(3 * PATIENT.strangers)]
        for connection in flood[-PATIENT.strangers :]:
            connection.sendall(said)
        assert settled(patient, PATIENT.strangers)
        for _ in range(3):
            answers_soon(patient)
    assert settled(patient, 0)


def test_whoever_lingers_leaves_for_others_from_the_same_address(patient: Served) -> None:
    with ExitStack() as held:
        first = [held.enter_context(raw(patient)) for _ in range(PATIENT.strangers_each + 5)]
        time.sleep(2 * PATIENT.lingering_seconds)
        answers_soon(patient)
        assert rest(first[0]) == b"" and settled(patient, PATIENT.strangers_each)
        first[-1].sendall(OPENING)
        assert first[-1].recv(9) == b"R\0\0\0\x08\0\0\0\x03"
    assert settled(patient, 0)


def test_who_is_inside_stays_inside_during_a_flood(patient: Served) -> None:
    with psycopg.connect(patient.address()) as inside, ExitStack() as held:
        for _ in range(2 * PATIENT.strangers):
            held.enter_context(raw(patient))
        assert inside.execute("SELECT COUNT(*) FROM people").fetchone() == (FEW,)
    assert settled(patient, 0)


def trickle(connection: socket.socket, data: bytes, seconds: float = 6.0) -> float:
    """Send a byte now and then until the other side hangs up; how long it took."""
    started = time.monotonic()
    connection.settimeout(0.1)
    for i in range(len(data)):
        try:
            connection.sendall(data[i : i + 1])
            while connection.recv(1000):
                pass
            break
        except TimeoutError:
            if time.monotonic() - started > seconds:
                break
        except OSError:
            break
    return time.monotonic() - started


def test_bytes_that_come_one_by_one_meet_a_deadline(impatient: Served) -> None:
    with raw(impatient) as connection:
        assert trickle(connection, OPENING * 10) < 3
    with raw(impatient) as connection:
        connection.sendall(OPENING)
        connection.recv(9)
        assert trickle(connection, message(b"p", impatient.token.encode() * 5 + b"\0")) < 3
    with raw(impatient, opened=True) as connection:
        assert trickle(connection, message(b"Q", b"SELECT " + b"1" * 200 + b"\0")) < 3
    answers_soon(impatient)


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
def test_a_handshake_that_goes_wrong_ends_soon(impatient: Served, name: str) -> None:
    with raw(impatient) as connection:
        connection.sendall(SSL_REQUEST)
        assert connection.recv(1) == b"S"
        started = time.monotonic()
        try:
            connection.sendall(HANDSHAKES[name])
        except OSError:
            pass
        reply = rest(connection)
        assert time.monotonic() - started < 4 and b"Traceback" not in reply and b"SELECT" not in reply
    assert settled(impatient, 0)
    answers_soon(impatient)


def test_a_slow_handshake_meets_the_deadline(impatient: Served) -> None:
    with raw(impatient) as connection:
        connection.sendall(SSL_REQUEST)
        assert connection.recv(1) == b"S"
        assert trickle(connection, first_record()) < 3
    assert settled(impatient, 0)


def test_tls_that_is_never_ended_by_the_other_side_is_cut(impatient: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "_CLOSING_SECONDS", 0.5)
    with raw(impatient) as connection:
        connection.sendall(SSL_REQUEST)
        assert connection.recv(1) == b"S"
        coming, going, tls = hello()
        while not step(tls.do_handshake):
            connection.sendall(going.read())
            coming.write(connection.recv(65536))
        tls.write(b"\0\0\0\1 nonsense inside")
        connection.sendall(going.read())
        started = time.monotonic()
        rest(connection)
        assert time.monotonic() - started < 4
