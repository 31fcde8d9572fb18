"""The short way of a report gives the same answers as the usual one, and is left whenever something is unusual."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import Client, binary, draft, plain_app, serving
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.collector.store.singles import SingleBatches
from tacit.errors import StorageFull, StorageUnavailable
from tacit.hosting.connection import HttpConnection, Proxies
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id

USUAL = f"{MEDIA_TYPE}; charset=binary"
"""A content type that means the same and takes the usual way."""


class Failing(MemoryStore):
    """A store that fails when told to."""

    failure: Exception | None = None

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[Any] = []
        # Let go but while a test wants requests to gather behind a commit.
        self.go = threading.Event()
        self.go.set()

    def add_batches(self, batches: Any) -> list[str]:
        self.groups.append(batches)
        assert self.go.wait(PATIENT_SECONDS)
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
    offer = HttpConnection._offer

    def watched(self: HttpConnection, *given: Any) -> bool:
        seen.append(offer(self, *given))
        return seen[-1]

    monkeypatch.setattr(HttpConnection, "_offer", watched)
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


def raw(collection: str, body: bytes, *more: str, version: str = "1.1", form: str = MEDIA_TYPE) -> bytes:
    lines = [f"POST /c/{collection}/reports HTTP/{version}", "Host: x", f"Content-Type: {form}"]
    lines += [f"Content-Length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


def same(short: httpx.Response, usual: httpx.Response) -> None:
    assert short.status_code == usual.status_code
    assert short.json() == usual.json()
    assert dict(short.headers) == dict(usual.headers)


def short_way(client: Client, mine: str, body: bytes, form: str = MEDIA_TYPE, **headers: str) -> httpx.Response:
    """Send a body in one piece, as httpx does not."""
    client.http.get(f"/c/{mine}/document.json")  # The collection is at hand from here on.
    more = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with connected(client) as link:
        link.sendall(raw(mine, body, "Connection: close", *more, form=form))
        return read(link)


def both(
    client: Client, mine: str, taken: list[bool], *bodies: bytes, form: str = MEDIA_TYPE, **headers: str
) -> httpx.Response:
    """Send the first body the short way and the last the usual one; their answers are the same."""
    client.send(mine, binary(mine, bytes([0])), **headers)
    taken.clear()
    short = short_way(client, mine, bodies[0], form, **headers)
    assert taken == [True]
    same(short, client.send(mine, bodies[-1], USUAL, Connection="close", **headers))
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


# What browsers send: plain text, from pages of other origins, one of several questions, by invitation.


def test_a_binary_batch_may_be_sent_as_plain_text(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    bodies = [binary(mine, bytes([value])) for value in range(3)]
    assert both(client, mine, taken, bodies[0], bodies[1], form="text/plain").status_code == 201
    taken.clear()
    assert client.send(mine, bodies[2], "Text/Plain; charset=UTF-8").status_code == 201
    twin = {"collection": mine, "batch": new_batch_id().hex(), "reports": [{"report": "02"}]}
    text = json.dumps(twin).encode()
    assert [short_way(client, mine, text, "text/plain").status_code for _ in range(2)] == [201, 200]
    # What is announced as JSON is JSON.
    assert client.send(mine, bodies[2], "application/json").json()["type"].endswith("malformed")
    assert not any(taken)
    assert client.status(mine)["reports"] == 5


@pytest.mark.parametrize("origins", [["https://a.example", "https://b.example"], ["*"]])
@pytest.mark.parametrize("origin", ["https://a.example", "https://other.example"])
def test_a_page_of_another_origin_may_read_the_answer(
    client: Client, store: Failing, taken: list[bool], origins: list[str], origin: str
):
    mine = client.publish(draft(origins=origins))
    bodies = [binary(mine, bytes([value])) for value in (1, 1, 9, 9)]
    told = both(client, mine, taken, *bodies[:2], form="text/plain", Origin=origin)
    allowed = "*" if origins == ["*"] else origin if origin in origins else None
    assert told.headers.get("access-control-allow-origin") == allowed
    assert told.headers["vary"] == "Origin"
    # So it may when reports are refused, sent again, or not stored.
    assert both(client, mine, taken, *bodies[2:], Origin=origin).json()["accepted"] == 0
    store.failure = StorageUnavailable("away")
    assert both(client, mine, taken, binary(mine, bytes([1])), Origin=origin).status_code == 503


SEVERAL = [
    {"name": name, "text": "Which?", "domain": {"kind": "categories", "labels": labels}}
    for name, labels in (("pet", ["cat", "dog", "fish"]), ("home", ["flat", "house"]))
]


def test_one_of_several_questions(client: Client, taken: list[bool]):
    mine = client.publish(draft(questions=SEVERAL, policy="one_of", minimum_cohort=1))
    good = [binary(mine, bytes([value]), member=member) for member, value in ((1, 1), (1, 1), (0, 2))]
    assert both(client, mine, taken, *good[:2], form="text/plain").json()["accepted"] == 1
    assert short_way(client, mine, good[2], "text/plain").status_code == 201
    for member, value in ((1, 2), (0, 3), (2, 0)):
        bad = binary(mine, bytes([value]), member=member)
        assert both(client, mine, taken, bad).status_code == (422 if member == 2 else 201)
    assert client.status(mine)["reports"] == 3 + 4, "each pair sends one more in advance"
    questions = client.answers(mine)["questions"]
    assert [round(row["raw"]["estimate"], 9) for row in questions[1]["rows"]] == [0, 1]
    assert [round(5 * row["raw"]["estimate"], 9) for row in questions[0]["rows"]] == [4, 0, 1]


def test_invitations(client: Client, taken: list[bool]):
    mine = client.publish(draft(invitations=True))
    made = client.api("POST", f"/collections/{mine}/invitations", {"count": 2}).json()["invitations"]
    first, second = binary(mine, bytes([1])), binary(mine, bytes([2]))
    assert both(client, mine, taken, first, Tacit_Invitation="unknown").status_code == 403
    taken.clear()
    told = [short_way(client, mine, body, Tacit_Invitation=made[0]).status_code for body in (first, first, second)]
    assert told == [201, 200, 403]
    assert short_way(client, mine, binary(mine, bytes([9])), Tacit_Invitation=made[1]).json()["accepted"] == 0
    assert all(taken)
    taken.clear()
    assert short_way(client, mine, second).status_code == 403
    assert short_way(client, mine, binary(mine, bytes([1, 2])), Tacit_Invitation=made[1]).status_code == 403
    assert not any(taken)
    assert short_way(client, mine, second, Tacit_Invitation=made[1]).status_code == 201
    assert client.status(mine)["reports"] == 2


def test_the_address_behind_a_trusted_proxy():
    head = {b"x-forwarded-for": b"203.0.113.9, 10.0.0.7"}
    proxies = Proxies("127.0.0.1, 10.0.0.0/8")
    assert proxies.address("127.0.0.1", head) == "203.0.113.9"
    assert proxies.address("203.0.113.1", head) == "203.0.113.1", "nobody else may say who it is"
    assert proxies.address("127.0.0.1", {}) == "127.0.0.1"
    assert Proxies("").address("127.0.0.1", head) == "127.0.0.1"


def test_what_is_unusual_takes_the_usual_way(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    body, two = binary(mine, bytes([1])), Batch(mine, new_batch_id(), (Block(0, 1, b"\0"), Block(0, 1, b"\1")))
    taken.clear()
    cases = [
        (raw(mine, body, "Connection: close", version="1.0"), 201),
        (raw(mine, body, "Connection: close", "Content-Encoding: gzip"), 415),
        (raw(mine, encode_batch(two), "Connection: close"), 201),
        (raw(mine, body[:-1], "Connection: close"), 422),
        (raw(mine, b"", "Connection: close"), 400),
        (raw(mine, body, "Connection: close", "Origin: https://a.example", "Origin: https://b.example"), 200),
        (raw("f" * 64, body, "Connection: close"), 404),
        (raw(mine, body, "Connection: close").replace(b"POST", b"PUT"), 405),
    ]
    for data, status in cases:
        with connected(client) as link:
            link.sendall(data)
            assert read(link).status_code == status
    assert not any(taken)


@pytest.fixture
def past(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each read on a connection between two requests went past the parser."""
    seen: list[bool] = []
    take = HttpConnection._take_known

    def watched(self: HttpConnection, data: bytes) -> bool:
        seen.append(take(self, data))
        return seen[-1]

    monkeypatch.setattr(HttpConnection, "_take_known", watched)
    return seen


def answer(link: socket.socket) -> httpx.Response:
    """One answer on a connection that stays open."""
    data = b""
    while b"\r\n\r\n" not in data or len(data) < data.index(b"\r\n\r\n") + 4 + stated(data):
        part = link.recv(65_536)
        assert part, "the server ended the connection"
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")[1:]]
    return httpx.Response(int(data.split()[1]), headers=lines, content=body)


def stated(data: bytes) -> int:
    return int(data.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])


def test_a_head_that_was_parsed_before_is_not_parsed_again(client: Client, past: list[bool]):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    one, again, other = (raw(mine, binary(mine, bytes([value]))) for value in (1, 2, 9))
    past.clear()
    with connected(client) as first, connected(client) as second:
        for link, data, is_known in ((first, one, False), (second, again, True), (first, again, True)):
            link.sendall(data)
            told = answer(link)
            assert (told.status_code, past.pop()) == (200 if data is again and link is first else 201, is_known)
        # What is wrong with a body is found as ever, and so is a body of another length, or in two pieces.
        second.sendall(other)
        assert answer(second).json()["rejected"] == [{"index": 0, "reason": "range"}]
        assert past == [True]
        second.sendall(raw(mine, binary(mine, bytes([1, 1]))))
        assert (answer(second).json()["accepted"], past[1:]) == (2, [False])
        fresh = raw(mine, binary(mine, bytes([1])))
        second.sendall(fresh[:-1])
        wait_until(lambda: len(past) == 3)
        second.sendall(fresh[-1:])
        assert (answer(second).json()["accepted"], past[2:]) == (1, [False])
        # After the usual way and two requests in one read, too; the second of those is never past the parser.
        second.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer(second).json() == {"status": "ok"}
        second.sendall(raw(mine, binary(mine, bytes([1]))))
        assert (answer(second).json()["accepted"], past[3:]) == (1, [False, True])
    assert client.status(mine)["reports"] == 7


def test_what_an_operator_allows_holds_at_once_for_known_heads(client: Client, past: list[bool]):
    mine, page = client.publish(draft(origins=["https://first.example"])), "https://shop.example"
    client.send(mine, binary(mine, bytes([0])))
    read_by: list[str | None] = []
    past.clear()
    with connected(client) as link:
        for allowed in ([], [page], [page, "https://other.example"], []):
            assert client.api("PUT", f"/collections/{mine}/origins", {"origins": allowed}).status_code == 200
            link.sendall(raw(mine, binary(mine, bytes([1])), f"Origin: {page}"))
            told = answer(link)
            assert told.status_code == 201
            read_by.append(told.headers.get("access-control-allow-origin"))
    assert read_by == [None, page, page, None]


def test_reports_of_the_short_way_are_counted(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    taken.clear()
    with connected(client) as link:
        for _ in range(3):
            link.sendall(raw(mine, binary(mine, bytes([1, 2]))))
            assert answer(link).status_code == 201
    assert taken == [True] * 3
    told = client.http.get("/metrics", headers={"Authorization": f"Bearer {client.token}"}).text.splitlines()
    expected = {'tacit_batches_total{outcome="stored"} 4', "tacit_reports_total 7", "tacit_acknowledge_seconds_count 4"}
    assert expected <= set(told)


def test_a_known_head_does_not_overtake_a_request_before_it(client: Client, past: list[bool]):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    body = binary(mine, bytes([1]))
    with connected(client) as link:
        link.sendall(raw(mine, body))
        assert answer(link).status_code == 201
        past.clear()
        # Half a request is under way: the bytes that follow are its body, whatever they look like.
        known = raw(mine, body)
        link.sendall(f"POST /c/{mine}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: {len(known)}\r\n\r\n".encode())
        wait_until(lambda: len(past) == 1)
        link.sendall(known)
        assert answer(link).status_code == 415
    assert past == [False]


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


def together(
    client: Client, store: Failing, taken: list[bool], mine: str, bodies: list[bytes]
) -> list[tuple[int, dict[str, Any]]]:
    """The answers to requests that are decided about as one group, each sent over a connection of its own."""
    client.send(mine, binary(mine, bytes([0])))
    store.groups.clear()
    taken.clear()
    store.go.clear()
    with ExitStack() as open_links:
        links = [open_links.enter_context(connected(client)) for _ in range(len(bodies) + 1)]
        try:
            links[0].sendall(raw(mine, binary(mine, bytes([0]))))
            wait_until(lambda: len(store.groups) == 1)
            for link, body in zip(links[1:], bodies, strict=True):
                link.sendall(raw(mine, body))
            wait_until(lambda: taken.count(True) == 1 + len(bodies))
        finally:
            store.go.set()
        return [(told.status_code, told.json()) for told in map(answer, links[1:])]


CREATED = (201, {"accepted": 1, "rejected": [], "duplicate": False})
TWICE = (200, {"accepted": 0, "rejected": [], "duplicate": True})
BAD = (201, {"accepted": 0, "rejected": [{"index": 0, "reason": "range"}], "duplicate": False})


def test_single_reports_are_decided_about_together_and_answered_each(client: Client, store: Failing, taken: list[bool]):
    mine = client.publish(draft())
    good = [binary(mine, bytes([i % 3])) for i in range(20)]
    assert together(client, store, taken, mine, good) == [CREATED] * 20
    assert [type(group) for group in store.groups] == [SingleBatches] * 2
    # A new one, one that is twice in the group, one of before, and two that no device could have sent.
    new, twice = binary(mine, bytes([2])), binary(mine, bytes([1]))
    bodies = [twice, binary(mine, bytes([9])), good[3], new, binary(mine, bytes([200])), twice]
    told = together(client, store, taken, mine, bodies)
    assert told in ([CREATED, BAD, TWICE, CREATED, BAD, TWICE], [TWICE, BAD, TWICE, CREATED, BAD, CREATED])
    assert client.status(mine)["rejected"] == {"range": 2, "duplicate": 2}
    # One before each group, and one while it gathers.
    assert client.status(mine)["reports"] == 20 + 2 + 4


def test_a_group_that_is_not_stored_is_answered_each(client: Client, store: Failing, taken: list[bool]):
    mine = client.publish(draft())
    failure = StorageUnavailable("storage: gone")

    def fail(batches: Any) -> list[str]:
        store.failure = failure if len(batches) > 1 else None
        return Failing.add_batches(store, batches)

    store.add_batches = fail  # type: ignore[method-assign]
    bodies = [binary(mine, bytes([0])) for _ in range(12)]
    told = together(client, store, taken, mine, bodies)
    assert [status for status, _ in told] == [503] * 12
    del store.add_batches
    store.failure = None
    assert together(client, store, taken, mine, bodies) == [CREATED] * 12


def test_a_client_that_leaves_is_no_trouble(client: Client, taken: list[bool]):
    mine = client.publish(draft())
    client.send(mine, binary(mine, bytes([0])))
    for _ in range(20):
        with connected(client) as link:
            link.sendall(raw(mine, binary(mine, bytes([1]))))
    while client.status(mine)["reports"] < 21:
        pass
    assert client.send(mine, binary(mine, bytes([2]))).status_code == 201
