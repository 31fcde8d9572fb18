"""A relay in front of shufflers: it learns nothing from what it sees, and shufflers learn nothing of who sent it."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.service.shuffling import COINS, Cluster, request

from tacit.shuffle.crypto.bhttp import BinaryRequest
from tacit.shuffle.crypto.ohttp import encapsulate
from tacit.shuffle.protocol.relayed import ACCEPTED, RESPONSE_BYTES, encapsulate_upload, gateway_config
from tacit.shuffle.protocol.sealing import seal_key, seal_upload
from tacit.shuffler.relay import RelayApp
from tacit.shuffler.server import listening


class Watching:
    """An application and all that can be seen of its traffic: methods, paths, headers, and sizes both ways."""

    def __init__(self, app: Any) -> None:
        self._app, self._lock = app, threading.Lock()
        self.seen: list[dict[str, Any]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        notes: dict[str, Any] = {"path": scope["path"], "headers": sorted(scope["headers"]), "in": 0, "out": 0}

        async def heard() -> Message:
            message = await receive()
            notes["in"] += len(message.get("body", b""))
            return message

        async def said(message: Message) -> None:
            notes["out"] += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                notes["reply"] = (message["status"], sorted(message["headers"]))
            await send(message)

        await self._app(scope, heard, said)
        with self._lock:
            self.seen.append(notes)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def test_what_a_relay_sees_does_not_depend_on_the_answer(cluster: Cluster) -> None:
    session = cluster.begin()
    watch = Watching(RelayApp([cluster.urls[number] for number in (1, 2, 3)]))
    words = [0, 2**64 - 1, 7]
    with listening(watch) as url:
        for word in words:
            upload = seal_upload(session, word, COINS)
            for party in (1, 2, 3):
                sealed, waiting = encapsulate_upload(session, upload, party, COINS)
                status, reply = request(
                    f"{url}/r/{party}", "POST", sealed, Cookie="me=1", Referer="https://example.org"
                )
                assert (status, waiting.open(reply)) == (200, ACCEPTED)
        seen = watch.seen
        # Three respondents, three shufflers: what differs between respondents is nothing at all.
        assert seen[0:3] == seen[3:6] == seen[6:9]
        # Neither does it for what a shuffler refuses: a repetition, noise, another path, another size.
        request(f"{url}/r/1", "POST", encapsulate_upload(session, upload, 1, COINS)[0])
        request(f"{url}/r/1", "POST", bytes(len(sealed)))
        config = gateway_config(seal_key(session, 1))
        for path, content in (("/s/x/uploads", bytes(100)), (f"/s/{session.id}/uploads", b"short"), ("/metrics", b"")):
            asked = BinaryRequest("POST", "https", "x", path, {}, content).to_bytes(multiple=1024)
            request(f"{url}/r/1", "POST", encapsulate(config, asked, COINS)[0])
        assert {(notes["reply"][0], notes["out"]) for notes in seen} == {(200, RESPONSE_BYTES)}
        assert {tuple(notes["reply"][1]) for notes in seen[9:]} == {tuple(seen[0]["reply"][1])}
        assert request(f"{url}/r/4", "POST", sealed)[0] == 404
        assert request(f"{url}/r/1", "POST", bytes(5000))[0] == 413
    assert cluster.store(1).counters(session.id) == {"stored": 3, "repeated": 1, "wrong_size": 1}
    assert sorted(cluster.finish().words) == sorted(words)


def test_a_shuffler_is_told_nothing_about_the_respondent(cluster: Cluster) -> None:
    session = cluster.begin()
    watch = Watching(cluster.apps[1])
    with listening_to(watch) as behind, listening(RelayApp([behind])) as url:
        upload = seal_upload(session, 1, COINS)
        sealed, _ = encapsulate_upload(session, upload, 1, COINS)
        request(f"{url}/r/1", "POST", sealed, Cookie="me=1", Forwarded="for=192.0.2.1", **{"X-Real-IP": "192.0.2.1"})
    (notes,) = watch.seen
    assert notes["path"] == "/gateway"
    names = {name for name, _ in notes["headers"]}
    assert names == {b"host", b"accept-encoding", b"content-length", b"content-type"}


def listening_to(app: Any) -> Any:
    """Serve an application that runs elsewhere already under a second address, without starting it again."""

    async def requests_alone(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await app(scope, receive, send)
            return
        for _ in range(2):
            message = await receive()
            await send({"type": message["type"] + ".complete"})

    return listening(requests_alone)


def test_a_relay_whose_gateway_is_away_says_so_and_comes_back(cluster: Cluster) -> None:
    with listening(RelayApp(["http://127.0.0.1:1"])) as url:
        assert request(f"{url}/r/1", "POST", b"x" * 100)[0] == 503
        assert request(f"{url}/healthz")[0] == 200
