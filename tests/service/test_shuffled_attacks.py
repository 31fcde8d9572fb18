"""Attacks on running sessions in the modes whose rows do not authenticate themselves: each ends as it must."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.shuffled import Shuffling, shuffling
from tests.service.shuffling import COINS, Cluster, request
from tests.service.waiting import wait_until

from tacit.arrays import U8
from tacit.shuffle.crypto.dgk import draw_dgk_key
from tacit.shuffle.crypto.envelope import Envelope, is_evidence
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.resharing import COMMIT
from tacit.shuffle.protocol.sealing import SLOT_BYTES, seal_upload
from tacit.shuffler.letters import letter, place_of

MODES = ["osh-z", pytest.param("peos-dgk", marks=pytest.mark.slow)]
CROWD = ["cat"] * 6
SPOTS = 3


def altered(parties: Shuffling, mode: str, change: Callable[[U8], None]) -> None:
    """Let a shuffler alter what it hands over: in mode peos-dgk whoever of both has such rows, which is drawn."""

    def changed(body: U8) -> U8:
        copy = body.copy()
        change(copy)
        return copy

    for app in parties.shufflers[1:] if mode == "peos-dgk" else parties.shufflers[2:]:
        steps = app.driver.steps
        honest = steps._change

        def make(
            record: Any, after: Any, state: Any, sent: Sequence[Any], *rest: Any, honest: Any = honest, **more: Any
        ) -> Any:
            others = [replace(each, body=changed(each.body)) if each.phase == "output" else each for each in sent]
            return honest(record, after, state, others, *rest, **more)

        steps._change = make


def shift(body: U8) -> None:
    """Add one to the words that are not sealed: every report becomes another one."""
    if body.shape[1] == 8:
        body.view("<u8")[:] += np.uint64(1)
    elif body.shape[1] == 64:
        body.view("<u8")[:, 7] += np.uint64(1)


def flip(body: U8) -> None:
    """Alter one sealed row, or one ciphertext."""
    if body.shape[1] > 8:
        body[0, 5] ^= 1


def attacked(folder: Path, mode: str, change: Callable[[U8], None]) -> tuple[Any, str]:
    """How a session ends in which rows were altered, and the status of what is answered."""
    with shuffling(folder) as parties:
        mine = parties.publish(parties.draft(mode=mode, fakes=0, minimum=5, spot_checks=SPOTS))
        parties.answer(mine, CROWD)
        altered(parties, mode, change)
        parties.close(mine)
        status = parties.wait_for(mine, "RELEASED", "ABORTED")
        # What the collector has seen is never asked for again, and shufflers have erased theirs.
        again = parties.client.api("POST", f"/collections/{mine}/session")
        assert again.status_code == 409 and "have been seen" in again.json()["detail"]
        wait_until(lambda: not any(app.driver.store.sessions(only_live=True) for app in parties.shufflers))
        return status, parties.client.answers(mine)["status"]


@pytest.mark.parametrize("mode", MODES)
def test_words_that_were_shifted_are_noticed_by_spot_checks_and_not_counted(tmp_path: Path, mode: str) -> None:
    status, answers = attacked(tmp_path, mode, shift)
    assert (status["state"], answers) == ("ABORTED", "below_minimum_cohort")
    assert f"{SPOTS} of {SPOTS} spot checks are missing; somebody replaces rows" in status["note"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["osh-z", "peos-dgk"])
def test_a_row_that_does_not_open_stops_the_release(tmp_path: Path, mode: str) -> None:
    status, answers = attacked(tmp_path, mode, flip)
    assert (status["state"], answers) == ("ABORTED", "below_minimum_cohort")
    assert "rows do not open" in status["note"] and "somebody alters rows" in status["note"]


@pytest.fixture(scope="module", params=MODES)
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[[], Cluster]]:
    """Begins another session in a mode, among the same shufflers."""
    mode = request.param
    with Cluster(tmp_path_factory.mktemp("attacked")) as cluster:
        more: dict[str, Any] = {"spot_checks": 1}
        if mode == "peos-dgk":
            cluster.collector.dgk = draw_dgk_key(COINS)
            more["dgk"] = cluster.collector.dgk.public.to_json()

        def begin() -> Cluster:
            cluster.begin(mode, **more)
            return cluster

        yield begin


def test_replayed_uploads_and_slots_that_come_twice_count_once(begun: Callable[[], Cluster]) -> None:
    cluster = begun()
    session = cluster.collector.session
    uploads = cluster.send_words([100, 101, 102])
    cluster.upload(uploads[0])
    # The parts of a report under another slot, and those of another report under its slot.
    cluster.upload(replace(uploads[0], slot=bytes(SLOT_BYTES)))
    cluster.upload(replace(uploads[1], slot=uploads[2].slot))
    assert cluster.store(1).counters(session.id) == {"stored": 3, "repeated": 1, "unreadable": 2}
    assert sorted(cluster.finish().words) == [100, 101, 102]


def test_a_wrong_signature_changes_nothing_and_two_bodies_end_the_session(begun: Callable[[], Cluster]) -> None:
    cluster = begun()
    session = cluster.collector.session
    cluster.send_words([100, 101, 102])
    place, url = place_of(session, COMMIT, 3, 1, 1), f"{cluster.urls[1]}/s/{session.id}/messages"
    forged = letter(place, bytes(32), Identity.draw(COINS))
    assert request(url, "POST", forged.head + forged.body)[0] == 403
    assert cluster.state(1)["state"] == "COLLECTING" and not cluster.store(1).arrived(session.id)
    twice = [letter(place, bytes([i]) * 32, cluster.store(3).identity) for i in (1, 2)]
    assert [request(url, "POST", each.head + each.body)[0] for each in twice] == [204, 409]
    cluster.wait_for_state("ABORTED")
    for number in (1, 2):
        record = cluster.store(number).session(session.id)
        assert record is not None and record.ending["blames"] == "shuffler_3"
        first, second = (Envelope.from_json(item) for item in record.ending["evidence"])
        assert is_evidence(first, second, record.pinned)
    wait_until(lambda: "abort" in cluster.collector.phases())
    assert cluster.collector.phases() <= {"abort", "erasure"}
    # Nothing is left of what respondents sent.
    assert not any(cluster.store(number).slots(session.id) for number in (1, 2, 3))


@pytest.mark.slow
def test_a_ciphertext_of_nobody_is_refused_when_it_is_uploaded(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.collector.dgk = key = draw_dgk_key(COINS)
        session = cluster.begin("peos-dgk", spot_checks=1, dgk=key.public.to_json())
        cluster.send_words([99, 100, 101])
        # A multiple of one of the factors would tell the collector something when it is decrypted.
        outside = (int(key.p) * 3).to_bytes(key.public.width, "big")
        cluster.upload(seal_upload(session, 102, COINS, encrypt=lambda word, coins: outside))
        assert cluster.store(3).counters(session.id) == {"stored": 3, "unreadable": 1}
        assert sorted(cluster.finish().words) == [99, 100, 101]
