"""The short way of a report gives the same answers as the usual one, and is left whenever something is unusual."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import Client, binary, draft, plain_app, serving
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.http import reports as http_reports
from tacit.errors import StorageFull, StorageUnavailable
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id

USUAL = f"{MEDIA_TYPE}; charset=binary"
"""A content type that means the same and takes the usual way."""


class Failing(MemoryStore):
    """A store that fails when told to."""

    failure: Exception | None = None

    def add_batches(self, batches: Any) -> list[str]:
        if self.failure is not None:
            raise self.failure
        return super().add_batches(batches)


@pytest.fixture
def store() -> Failing:
    return Failing()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What the short way said to each request that might have gone it."""
    seen: list[bool] = []
    take = http_reports.ReportRoute.take

    def watched(self: http_reports.ReportRoute, *given: Any) -> bool:
        seen.append(take(self, *given))
        return seen[-1]

    monkeypatch.setattr(http_reports.ReportRoute, "take", watched)
    return seen


@pytest.fixture
def client(store: Failing, taken: list[bool]) -> Iterator[Client]:
    with serving(plain_app(store)) as client:
        yield client


@contextmanager
def connected(client: Client) -> Iterator[socket.socket]:
    address = (client.http.base_url.host, client.http.base_url.port)
    with socket.create_connection(address, timeout=PATIENT_SECONDS) as link:
        yield link


def raw(collection: str, body: bytes, *more: str, version: str = "1.1") -> bytes:
    lines = [f"POST /c/{collection}/reports HTTP/{version}", "Host: x", f"Content-Type: {MEDIA_TYPE}"]
    lines += [f"Content-Length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


def same(short: httpx.Response, usual: httpx.Response) -> None:
    assert short.status_code == usual.status_code
    assert short.json() == usual.json()
    assert dict(short.headers) == dict(usual.headers)


def both(client: Client, mine: str, taken: list[bool], *bodies: bytes) -> httpx.Response:
    """Send the first body the short way and the last the usual one; their answers are the same."""
    client.send(mine, binary(mine, bytes([0])))  # The collection is at hand from here on.
    taken.clear()
    with connected(client) as link:  # In one piece, as httpx does not send it.
        link.sendall(raw(mine, bodies[0], "Connection: close"))
        short = read(link)
    assert taken == [True]
    usual = client.send(mine, bodies[-1], USUAL, Connection="close")
    same(short, usual)
    return short


def read(link: socket.socket) -> httpx.Response:
    """One answer, to the end of the connection."""
    data = b""
    while part := link.recv(65_536):
        data += part
    head, body = data.split(b"\r\n\r\n", 1)
    status, *lines = head.decode().split("\r\n")
    return httpx.Response(int(status.split()[1]), headers=[tuple(line.split(": ", 1)) for line in lines], content=body)


def test_new_batches(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    told = both(client, mine, taken, binary(mine, bytes([0, 1, 2])), binary(mine, bytes([2, 1, 0])))
    assert (told.status_code, told.json()) == (201, {"accepted": 3, "rejected": [], "duplicate": False})
    assert client.status(mine)["reports"] == 7


def test_a_batch_that_was_sent_before(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    body = binary(mine, bytes([1, 1]))
    client.send(mine, body, USUAL)
    assert both(client, mine, taken, body).status_code == 200
    assert client.status(mine)["reports"] == 3
    assert client.status(mine)["rejected"] == {"duplicate": 4}


def test_reports_to_refuse_among_others(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    told = both(client, mine, taken, binary(mine, bytes([0, 9, 2])), binary(mine, bytes([0, 9, 2])))
    assert told.json() == {"accepted": 2, "rejected": [{"index": 1, "reason": "range"}], "duplicate": False}
    assert client.status(mine)["rejected"] == {"range": 2}
    told = both(client, mine, taken, binary(mine, bytes([9])), binary(mine, bytes([9])))
    assert told.json() == {"accepted": 0, "rejected": [{"index": 0, "reason": "range"}], "duplicate": False}


def test_a_closed_collection(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    client.api("POST", f"/collections/{mine}/close")
    assert both(client, mine, taken, binary(mine, bytes([1]))).status_code == 410


@pytest.mark.parametrize("failure", [StorageFull("full"), StorageUnavailable("away"), ZeroDivisionError("secret")])
def test_a_store_that_fails(client: Client, store: Failing, taken: list[bool], failure: Exception):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    store.failure = failure
    told = both(client, mine, taken, binary(mine, bytes([1])))
    assert told.status_code in (500, 503, 507)
    assert "secret" not in told.text


def test_what_is_unusual_takes_the_usual_way(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    here = client.publish(draft(title="Here", origins=["https://a.example"]))
    for each in (mine, here):
        client.send(each, binary(each, bytes([0])))
    body, two = binary(mine, bytes([1])), Batch(mine, new_batch_id(), (Block(0, 1, b"\0"), Block(0, 1, b"\1")))
    taken.clear()
    cases = [
        (raw(mine, body, "Connection: close", version="1.0"), 201),
        (raw(mine, body, "Connection: close", "Content-Encoding: gzip"), 415),
        (raw(mine, encode_batch(two), "Connection: close"), 201),
        (raw(mine, body[:-1], "Connection: close"), 422),
        (raw(mine, b"", "Connection: close"), 400),
        (raw(here, binary(here, bytes([1])), "Connection: close", "Origin: https://a.example"), 201),
        (raw("f" * 64, body, "Connection: close"), 404),
        (raw(mine, body, "Connection: close").replace(b"POST", b"PUT"), 405),
    ]
    for data, status in cases:
        with connected(client) as link:
            link.sendall(data)
            assert read(link).status_code == status
    assert not any(taken)


def test_requests_in_a_row_are_answered_in_order(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    first, second = binary(mine, bytes([0])), binary(mine, bytes([1, 1]))
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with connected(client) as link:
        link.sendall(raw(mine, first) + raw(mine, second) + raw(mine, first) + last)
        data = b""
        while part := link.recv(65_536):
            data += part
    receipts = [b'"accepted":1,"rejected":[],"duplicate":false', b'"accepted":2', b'"duplicate":true', b'"status":"ok"']
    places = [data.index(receipt) for receipt in receipts]
    assert places == sorted(places)


def test_a_client_that_leaves_is_no_trouble(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    for _ in range(20):
        with connected(client) as link:
            link.sendall(raw(mine, binary(mine, bytes([1]))))
    while client.status(mine)["reports"] < 21:
        pass
    assert client.send(mine, binary(mine, bytes([2]))).status_code == 201
