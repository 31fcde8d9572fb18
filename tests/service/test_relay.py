"""A relay in front of shufflers: it learns nothing from what it sees, and shufflers learn nothing of who sent it."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.service.shuffling import COINS, Cluster, request

from tacit.shuffle.crypto.bhttp import BinaryRequest, BinaryResponse
from tacit.shuffle.crypto.ohttp import ResponseOpener, encapsulate
from tacit.shuffle.protocol.relayed import (
    ACCEPTED,
    ANSWER_BYTES,
    NO_RESPONSE,
    RESPONSE_BYTES,
    encapsulate_question,
    encapsulate_upload,
    gateway_config,
    pack,
    proof_path,
    responses,
    status_path,
)
from tacit.shuffle.protocol.sealing import ShuffleUpload, seal_key, seal_upload
from tacit.shuffle.protocol.session import ShuffleSession
from tacit.shuffle.protocol.status import says_aborted, signed_status
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


def packed(session: ShuffleSession, upload: ShuffleUpload) -> tuple[bytes, list[ResponseOpener]]:
    """All parts of an upload as one body for a relay, and what opens the responses."""
    pairs = [encapsulate_upload(session, upload, party, COINS) for party in (1, 2, 3)]
    return pack([sealed for sealed, _ in pairs]), [waiting for _, waiting in pairs]


def test_what_a_relay_sees_does_not_depend_on_the_answer(cluster: Cluster) -> None:
    session = cluster.begin()
    watch = Watching(RelayApp([cluster.urls[number] for number in (1, 2, 3)]))
    words = [0, 2**64 - 1, 7]
    uploads = [seal_upload(session, word, COINS) for word in words]
    body, _ = packed(session, uploads[0])
    with listening(watch) as url:
        for upload in uploads:
            body, waiting = packed(session, upload)
            status, reply = request(f"{url}/r", "POST", body, Cookie="me=1", Referer="https://example.org")
            assert status == 200
            assert [each.open(part) for each, part in zip(waiting, responses(reply), strict=True)] == [ACCEPTED] * 3
        seen = watch.seen
        # What differs between respondents is nothing at all.
        assert seen[0] == seen[1] == seen[2]
        # Neither does it for what shufflers refuse: a repetition, noise, another path, another size, a question.
        request(f"{url}/r", "POST", packed(session, uploads[0])[0])
        request(f"{url}/r", "POST", pack([bytes(len(body) // 3)] * 3))
        config = gateway_config(seal_key(session, 1))
        paths = [("/s/x/uploads", bytes(100)), (f"/s/{session.id}/uploads", b"short"), ("/metrics", b"")]
        for method, path, content in [*(("POST", *each) for each in paths), ("GET", f"/s/{session.id}/status", b"")]:
            asked = BinaryRequest(method, "https", "x", path, {}, content).to_bytes(multiple=1024)
            request(f"{url}/r", "POST", pack([encapsulate(config, asked, COINS)[0]] * 3))
        assert {(notes["reply"][0], notes["out"]) for notes in seen} == {(200, 3 * RESPONSE_BYTES)}
        assert {tuple(notes["reply"][1]) for notes in seen[3:]} == {tuple(seen[0]["reply"][1])}
        # A part that comes alone is taken as well.
        alone, opener = encapsulate_upload(session, seal_upload(session, 1, COINS), 1, COINS)
        assert opener.open(request(f"{url}/r/1", "POST", alone)[1]) == ACCEPTED
        assert request(f"{url}/r/4", "POST", alone)[0] == 404
        assert request(f"{url}/r/1", "POST", bytes(5000))[0] == 413
        for bad in (b"", body + body, body[:-1], pack([bytes(5000)]), b"\x00"):
            assert request(f"{url}/r", "POST", bad)[0] == 400
    assert cluster.store(1).counters(session.id) == {"stored": 4, "repeated": 1, "wrong_size": 1}
    assert sorted(cluster.finish().words) == sorted(words)


def test_questions_through_a_relay_have_answers_of_one_size(cluster: Cluster) -> None:
    session = cluster.begin()
    slots = [upload.slot.hex() for upload in (seal_upload(session, word, COINS) for word in (1, 2, 3))]
    watch = Watching(RelayApp([cluster.urls[number] for number in (1, 2, 3)]))
    paths = [
        status_path(session.id),
        proof_path(session.id, slots[0]),
        status_path("0" * 64),
        "/metrics",
        "/s/x/proof/y",
    ]
    with listening(watch) as url:
        answers: list[BinaryResponse] = []
        for path in paths:
            sealed, waiting = encapsulate_question(seal_key(session, 2), path, COINS)
            status, reply = request(f"{url}/r/2", "POST", sealed)
            assert status == 200
            answers.append(BinaryResponse.from_bytes(waiting.open(reply)))
    assert [answer.status for answer in answers] == [200, 404, 404, 404, 404]
    told = json.loads(answers[0].content)
    assert told == signed_status(cluster.store(2).identity, session.id, "COLLECTING", had_sent=False)
    # Straight the same is said, with the same signature, and counts beside.
    assert cluster.state(2) == told | {"uploads": 0, "is_open": True}
    assert len({(notes["in"], notes["out"]) for notes in watch.seen}) == 1
    assert watch.seen[0]["out"] == ANSWER_BYTES


def test_an_abort_is_signed_straight_and_through_a_relay(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster, listening(RelayApp([cluster.urls[i] for i in (1, 2, 3)])) as url:
        session = cluster.begin()
        cluster.apps[1].driver.abort(session.id, "for a test")
        cluster.wait_for_state("ABORTED")
        identities = [bytes.fromhex(party.identity) for party in session.shufflers]
        for number, identity in enumerate(identities, start=1):
            sealed, waiting = encapsulate_question(seal_key(session, number), status_path(session.id), COINS)
            answer = BinaryResponse.from_bytes(waiting.open(request(f"{url}/r/{number}", "POST", sealed)[1]))
            for told in (json.loads(answer.content), cluster.state(number)):
                assert [says_aborted(told, session.id, each) for each in identities] == [
                    each == identity for each in identities
                ]


def test_a_shuffler_is_told_nothing_about_the_respondent(cluster: Cluster) -> None:
    session = cluster.begin()
    watch = Watching(cluster.apps[1])
    with listening_to(watch) as behind, listening(RelayApp([behind])) as url:
        upload = seal_upload(session, 1, COINS)
        sealed, _ = encapsulate_upload(session, upload, 1, COINS)
        who = {"X-Real-IP": "192.0.2.1"}
        request(f"{url}/r/1", "POST", sealed, Cookie="me=1", Forwarded="for=192.0.2.1", **who)
        request(f"{url}/r", "POST", pack([sealed]), Cookie="me=1", Forwarded="for=192.0.2.1", **who)
    assert [notes["path"] for notes in watch.seen] == ["/gateway", "/gateway/uploads"]
    names = {name for notes in watch.seen for name, _ in notes["headers"]}
    assert names == {b"host", b"accept-encoding", b"content-length", b"content-type"}


@pytest.mark.parametrize(
    "path", ["/r/9", "/r/0", "/r/" + "1" * 5000, "/r/-1", "/r/01", "/r/%C2%B2", "/r/1/", "/r/..%2f", "/r/", "/nowhere"]
)
def test_a_gateway_that_a_relay_does_not_have_is_a_problem_document(path: str) -> None:
    with listening(RelayApp(["http://127.0.0.1:1"])) as url:
        status, reply = request(url + path, "POST", b"x")
    problem = json.loads(reply)
    assert (status, problem["status"]) == (404, 404) and problem["type"].endswith("not_found")


def test_one_shuffler_away_and_back_has_every_part_once(cluster: Cluster) -> None:
    session = cluster.begin()
    upload = seal_upload(session, 5, COINS)
    with listening(RelayApp([cluster.urls[1], "http://127.0.0.1:1", cluster.urls[3]])) as url:
        body, waiting = packed(session, upload)
        status, reply = request(f"{url}/r", "POST", body)
        first, missing, third = responses(reply)
        assert (status, missing) == (503, NO_RESPONSE)
        assert [waiting[0].open(first), waiting[2].open(third)] == [ACCEPTED] * 2
    assert [len(cluster.store(i).uploads(session.id).shares) for i in (1, 2, 3)] == [1, 0, 1]
    with listening(RelayApp([cluster.urls[number] for number in (1, 2, 3)])) as url:
        assert request(f"{url}/r", "POST", packed(session, upload)[0])[0] == 200
    assert cluster.store(1).counters(session.id) == {"stored": 1, "repeated": 1}
    assert cluster.store(2).counters(session.id) == {"stored": 1}


def test_no_part_is_forgotten_when_many_come_at_once(cluster: Cluster) -> None:
    session = cluster.begin()
    uploads = [seal_upload(session, word, COINS) for word in range(100)]
    with listening(RelayApp([cluster.urls[1]])) as url:

        def send(upload: ShuffleUpload) -> bytes:
            sealed, waiting = encapsulate_upload(session, upload, 1, COINS)
            return waiting.open(request(f"{url}/r", "POST", pack([sealed]))[1])

        # Few at a time, so that many find nobody waiting just when a request ends: none of them may be forgotten.
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(send, uploads)) == [ACCEPTED] * 100
    assert cluster.store(1).slots(session.id) == b"".join(sorted(upload.slot for upload in uploads))


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
        assert request(f"{url}/r", "POST", pack([b"x" * 100])) == (503, NO_RESPONSE)
        assert request(f"{url}/healthz")[0] == 200
