"""Clients that dawdle are cut off, over real sockets; those that only wait for us are not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import Client, binary, draft, plain_app, serving
from tests.service.waiting import PATIENT_SECONDS

from tacit.hosting.limits import Limits
from tacit.wire.batch import MEDIA_TYPE

HOUR = 3600.0
HURRIED = Limits(head_seconds=0.5, idle_seconds=HOUR, head_bytes=4000)
"""Little time for a head, and all the time in the world between two requests."""
RESTLESS = Limits(head_seconds=HOUR, idle_seconds=0.2)
"""The other way round."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serving(plain_app(limits=HURRIED)) as client:
        yield client


@contextmanager
def connected(client: Client) -> Iterator[socket.socket]:
    address = (client.http.base_url.host, client.http.base_url.port)
    with socket.create_connection(address, timeout=PATIENT_SECONDS) as link:
        yield link


def is_ended(link: socket.socket) -> bool:
    """Wait until the server closes a connection on which it has nothing more to say."""
    try:
        return link.recv(4096) == b""
    except ConnectionResetError:
        return True


def request(collection: str, body: bytes, *more: str) -> bytes:
    lines = [f"POST /c/{collection}/reports HTTP/1.1", "Host: x", f"Content-Type: {MEDIA_TYPE}"]
    lines += [f"Content-Length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


def dribble(link: socket.socket, data: bytes) -> None:
    """Send a byte at a time, each well before any deadline, until the other side has had enough."""
    end = time.monotonic() + PATIENT_SECONDS
    with pytest.raises(ConnectionError):
        while time.monotonic() < end:
            link.sendall(data[:1])
            data = data[1:] or data
            time.sleep(0.02)


def test_a_client_that_sends_nothing_is_cut_off(client: Client):
    with connected(client) as link:
        assert is_ended(link)


@contextmanager
def welcomed(client: Client, first: bytes, *, answered: bytes) -> Iterator[socket.socket]:
    """A connection whose first request was answered; again where a busy machine let the deadline come first."""
    for _ in range(100):
        with connected(client) as link, suppress(ConnectionError):
            link.sendall(first)
            if reply := link.recv(4096):
                assert reply.startswith(answered), reply
                yield link
                return
    pytest.fail("no request was answered in time")


def test_headers_sent_drop_by_drop_do_not_hold_a_connection(client: Client):
    with connected(client) as link:
        dribble(link, b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 1000)


def test_neither_do_those_of_a_second_request(client: Client):
    with welcomed(client, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", answered=b"HTTP/1.1 200") as link:
        dribble(link, b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 1000)


def test_nor_do_empty_lines_before_a_request(client: Client):
    with connected(client) as link:
        dribble(link, b"\r\n" * 1000)


def test_endless_headers_are_cut_off_before_their_time():
    with serving(plain_app(limits=Limits(head_seconds=HOUR, idle_seconds=HOUR, head_bytes=4000))) as client:
        with connected(client) as link:
            link.sendall(b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 5000)
            assert is_ended(link)


def test_a_connection_may_rest_longer_than_a_head_may_take(client: Client):
    mine = client.publish(draft())
    with welcomed(client, request(mine, binary(mine, bytes([1]))), answered=b"HTTP/1.1 201") as link:
        time.sleep(2 * HURRIED.head_seconds)  # However much longer this takes, an hour is not over.
        link.sendall(request(mine, binary(mine, bytes([1]))))
        assert link.recv(4096).startswith(b"HTTP/1.1 201")


def test_an_idle_connection_is_kept_for_a_while_only():
    with serving(plain_app(limits=RESTLESS)) as client:
        mine = client.publish(draft())
        with welcomed(client, request(mine, binary(mine, bytes([1]))), answered=b"HTTP/1.1 201") as link:
            assert is_ended(link)


def test_a_head_in_two_parts_is_fine_in_time():
    with serving(plain_app()) as client:
        mine = client.publish(draft())
        whole = request(mine, binary(mine, bytes([1])))
        for cut in (10, whole.index(b"\r\n\r\n") + 4, len(whole) - 1):
            with connected(client) as link:
                link.sendall(whole[:cut])
                time.sleep(0.05)  # Most likely the server has read the first part; where not, it reads both at once.
                link.sendall(whole[cut:])
                assert link.recv(4096).startswith((b"HTTP/1.1 201", b"HTTP/1.1 200"))


class SlowStore(MemoryStore):
    """A store that takes its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def add_batches(self, batches: Any) -> list[str]:
        time.sleep(self._seconds)
        return super().add_batches(batches)


def statuses_of_a_slow_store(seconds: float) -> set[bytes]:
    """What two clients are told by a server that has so many seconds for a head, and works longer on each report."""
    with serving(plain_app(SlowStore(1.5 * seconds), Limits(head_seconds=seconds, idle_seconds=seconds))) as client:
        mine = client.publish(draft())
        whole = request(mine, binary(mine, bytes([1])))
        head = whole.index(b"\r\n\r\n") + 4
        with connected(client) as short, connected(client) as usual, suppress(ConnectionError):
            short.sendall(whole)
            usual.sendall(whole[:head])
            time.sleep(0.05)
            usual.sendall(whole[head:])
            return {short.recv(4096)[9:12], usual.recv(4096)[9:12]}
    return set()


def test_nobody_is_cut_off_while_waiting_for_us():
    # A busy machine may not get to sending in time; then both have more time, and the server works longer still.
    assert any(statuses_of_a_slow_store(seconds) == {b"201", b"200"} for seconds in (0.6, 3.0, 15.0))


def test_many_dawdlers_do_not_keep_others_from_reporting(client: Client):
    mine = client.publish(draft())
    links: list[socket.socket] = []
    try:
        for _ in range(200):
            link = socket.create_connection((client.http.base_url.host, client.http.base_url.port))
            link.sendall(b"POST /c/")
            links.append(link)
        assert client.send(mine, binary(mine, bytes([1]))).status_code == 201
        for link in links:
            link.settimeout(PATIENT_SECONDS)
            assert is_ended(link)
    finally:
        for link in links:
            link.close()
    assert threading.active_count() < 100
