"""Whole shuffles over HTTP: all words come out, once, and after a failure nothing does that must not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from tests.service.shuffling import COINS, Cluster, request, resigned, tamper
from tests.service.waiting import wait_until

from tacit.errors import ReleaseRefused
from tacit.shuffle.crypto.dgk import draw_dgk_key
from tacit.shuffle.crypto.envelope import Envelope, is_evidence
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.opening import release
from tacit.shuffle.protocol.resharing import COMMIT, OUTPUT, SPLIT
from tacit.shuffle.protocol.sealing import SLOT_BYTES, seal_upload
from tacit.shuffle.protocol.session import pins
from tacit.shuffle.protocol.transcript import check_receipt, verify
from tacit.shuffler.admission import admission_hash
from tacit.shuffler.letters import ABORT, COUNTS, ERASURE, LEAVES, SLOTS, STATEMENT, Letter, letter, place_of

WORDS = list(range(100, 108))
HARMLESS = {STATEMENT, LEAVES, ABORT, ERASURE}
"""Letters that hold counts, signatures and hashes alone."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster whose shufflers a test may corrupt."""
    with Cluster(tmp_path) as made:
        yield made


def all_erased(cluster: Cluster) -> bool:
    session = cluster.collector.session.id
    stores = [app.driver.store for app in cluster.apps.values()]
    return all(not store.slots(session) and not store.arrived(session) for store in stores)


def test_every_word_comes_out_once_and_everything_can_be_verified(cluster: Cluster) -> None:
    session = cluster.begin(fakes=3)
    uploads = cluster.send_words(WORDS)
    cluster.collector.close()
    cluster.collector.wait_for_outputs()
    proof = json.loads(request(f"{cluster.urls[2]}/s/{session.id}/proof/{uploads[0].slot.hex()}")[1])
    opened = cluster.collector.opened()
    assert len(opened.words) == len(WORDS) + session.fake_rows
    assert sorted(set(map(int, opened.words)) & set(WORDS)) == WORDS
    cluster.collector.acknowledge(opened)
    cluster.wait_for_state("ERASED")
    transcript = cluster.collector.transcript(opened)
    record = cluster.collector.store.session(session.id)
    assert record is not None
    assert "3 of 3 shufflers" in verify(transcript, record.signed, pins(session.parties)).checked[-1]
    # What a shuffler showed before it erased is what anybody finds among the published hashes afterwards.
    found = check_receipt(transcript, uploads[0].receipt.to_json())
    assert found is not None and found == {name: proof[name] for name in found}
    assert request(f"{cluster.urls[2]}/s/{session.id}/proof/{uploads[0].slot.hex()}")[0] == 404
    assert all_erased(cluster)


@pytest.mark.slow
def test_two_sessions_at_once_do_not_mix(cluster: Cluster) -> None:
    first = cluster.begin()
    cluster.send_words([1, 2, 3])
    second = cluster.begin(n_min=3)
    cluster.send_words([4, 5, 6, 7])
    assert sorted(cluster.finish().words) == [4, 5, 6, 7]
    assert cluster.collector.session is second
    cluster.collector.session = first
    assert sorted(cluster.finish().words) == [1, 2, 3]


def test_in_a_chain_a_replayed_onion_counts_once(cluster: Cluster) -> None:
    session = cluster.begin("ss", fakes=2)
    uploads = cluster.send_words(WORDS)
    for i in range(3):
        cluster.upload(replace(uploads[0], slot=bytes([i]) * SLOT_BYTES))
    opened = cluster.finish()
    assert sorted(set(map(int, opened.words)) & set(WORDS)) == WORDS
    assert opened.rows == len(WORDS) + session.fake_rows
    counts = cluster.collector.heard(COUNTS)["shuffler_1"].json()
    assert (counts["taken"], counts["duplicates"], counts["failures"]) == (len(WORDS) + 3, 3, 0)
    record = cluster.collector.store.session(session.id)
    assert record is not None
    verify(cluster.collector.transcript(opened), record.signed, pins(session.parties))


def test_only_what_every_shuffler_has_and_could_open_takes_part(cluster: Cluster) -> None:
    session = cluster.begin()
    uploads = cluster.send_words([1, 2, 3])
    partial = seal_upload(session, 4, COINS)
    cluster.upload(partial, only=[1, 3])
    # A slot is taken once: another part under it changes nothing.
    other = seal_upload(session, 5, COINS)
    cluster.upload(replace(other, slot=uploads[0].slot))
    # Sealed for another session, too short, and for a session that nobody knows.
    foreign = seal_upload(cluster.session(n_max=999), 6, COINS)
    cluster.upload(replace(foreign, session=session.id))
    cluster.upload(replace(other, parts=tuple(part[:-1] for part in other.parts)))
    cluster.upload(replace(other, session="00" * 32))
    assert sorted(cluster.finish().words) == [1, 2, 3]
    counters = cluster.store(1).counters(session.id)
    # The other part is sealed for its own slot, so that it does not even open under that of the first.
    assert counters == {"stored": 4, "unreadable": 2, "wrong_size": 1}


def test_the_same_upload_again_is_a_repetition(cluster: Cluster) -> None:
    session = cluster.begin()
    for upload in cluster.send_words([1, 2]):
        cluster.upload(upload)
    assert cluster.store(1).counters(session.id) == {"stored": 2, "repeated": 2}
    assert sorted(cluster.finish().words) == [1, 2]
    cluster.upload(seal_upload(session, 3, COINS))
    assert cluster.store(1).counters(session.id)["closed"] == 1


def test_with_invitations_every_token_admits_one_upload(cluster: Cluster) -> None:
    session = cluster.session()
    signed = cluster.collector.publish(session)
    tokens = [sha256(bytes([i])).digest() for i in range(3)]
    cluster.collector.admit([admission_hash(token) for token in tokens])
    wait_until(lambda: not any(cluster.store(i).letters(session.id, "admissions") for i in (1, 2, 3)))
    cluster.collector.open(signed)
    for token in tokens:
        cluster.upload(seal_upload(session, 7, COINS), token=token)
    cluster.upload(seal_upload(session, 8, COINS), token=tokens[0])
    cluster.upload(seal_upload(session, 9, COINS), token=bytes(32))
    cluster.upload(seal_upload(session, 9, COINS))
    assert cluster.store(2).counters(session.id) == {"stored": 3, "uninvited": 3}
    assert sorted(cluster.finish().words) == [7, 7, 7]


def test_too_few_respondents_end_the_session_before_anything_reaches_the_collector(cluster: Cluster) -> None:
    cluster.begin(n_min=9)
    cluster.send_words(WORDS)
    cluster.collector.close()
    cluster.wait_for_state("ABORTED")
    assert "the certificate needs 9" in cluster.state(1)["reason"]
    assert cluster.collector.phases() <= HARMLESS
    assert all_erased(cluster)


def test_a_shuffler_that_signs_two_bodies_is_found_out_and_the_evidence_kept(cluster: Cluster) -> None:
    session = cluster.begin()
    cluster.send_words(WORDS)
    guilty = cluster.store(3)
    place = place_of(session, COMMIT, 3, 1, 1)
    letters = [letter(place, bytes([i]) * 32, guilty.identity) for i in (1, 2)]
    url = f"{cluster.urls[1]}/s/{session.id}/messages"
    statuses = [request(url, "POST", each.head + each.body)[0] for each in (letters[0], letters[0], letters[1])]
    assert statuses == [204, 204, 409]
    cluster.wait_for_state("ABORTED")
    for number in (1, 2):
        record = cluster.store(number).session(session.id)
        assert record is not None
        assert record.ending["blames"] == "shuffler_3"
        first, second = (Envelope.from_json(item) for item in record.ending["evidence"])
        assert is_evidence(first, second, record.pinned)
    assert cluster.collector.phases() <= HARMLESS
    assert all_erased(cluster)


def test_a_shuffler_that_shows_different_slots_to_different_shufflers_is_named(fresh: Cluster) -> None:
    session = fresh.begin()
    fresh.send_words(WORDS)

    def show_fewer(taken: Letter) -> Letter:
        if (taken.place.phase, taken.place.receiver) != (SLOTS, "shuffler_1"):
            return taken
        body = taken.body[SLOT_BYTES:]
        return letter(taken.place, body, fresh.store(3).identity, rows=len(body) // SLOT_BYTES)

    tamper(fresh.apps[3], show_fewer)
    fresh.collector.close()
    fresh.wait_for_state("ABORTED")
    # A shuffler has ended before its letter to the collector has arrived.
    wait_until(lambda: fresh.collector.heard(ABORT))
    accusations = [each.json() for each in fresh.collector.heard(ABORT).values()]
    assert {each["blames"] for each in accusations} == {"shuffler_3"}
    assert all(len({item["body"] for item in each["evidence"]}) == 2 for each in accusations)
    assert fresh.collector.phases() <= HARMLESS
    assert fresh.state(1)["session"] == session.id


@pytest.mark.parametrize(
    ("phase", "receiver", "lost"),
    [
        # Behind a seed are all rows.
        pytest.param(SPLIT, "shuffler_1", len(WORDS), marks=pytest.mark.slow),
        pytest.param(SPLIT, "shuffler_2", 1, marks=pytest.mark.slow),
        (OUTPUT, "collector", 1),
    ],
)
def test_a_tampered_row_does_not_open_and_stops_the_release(
    fresh: Cluster, phase: str, receiver: str, lost: int
) -> None:
    session = fresh.begin()
    fresh.send_words(WORDS)

    def flip(taken: Letter) -> Letter:
        if (taken.place.phase, taken.place.receiver) != (phase, receiver):
            return taken
        return resigned(fresh.store(3), taken, bytes([taken.body[0] ^ 1]) + taken.body[1:])

    tamper(fresh.apps[3], flip)
    fresh.collector.close()
    fresh.collector.wait_for_outputs()
    opened = fresh.collector.opened()
    assert (opened.failures, len(opened.words)) == (lost, len(WORDS) - lost)
    with pytest.raises(ReleaseRefused, match="somebody alters rows"):
        release(session, opened, len(WORDS), [])


@pytest.mark.slow
def test_a_body_of_another_size_is_blamed_on_its_sender(fresh: Cluster) -> None:
    fresh.begin()
    fresh.send_words(WORDS)

    def cut(taken: Letter) -> Letter:
        if (taken.place.phase, taken.place.receiver) != (SPLIT, "shuffler_1"):
            return taken
        return letter(taken.place, taken.body[:-56], fresh.store(3).identity, rows=taken.envelope.rows - 1)

    tamper(fresh.apps[3], cut)
    fresh.collector.close()
    fresh.wait_for_state("ABORTED")
    assert fresh.state(1)["blames"] == "shuffler_3"
    assert OUTPUT not in fresh.collector.phases()


def test_strangers_and_wrong_signatures_change_nothing(cluster: Cluster) -> None:
    session = cluster.begin()
    url = f"{cluster.urls[1]}/s/{session.id}/messages"
    place = place_of(session, COMMIT, 3, 1, 1)
    forged = letter(place, bytes(32), Identity.draw(COINS))
    assert request(url, "POST", forged.head + forged.body)[0] == 403
    own = cluster.store(3).identity
    for wrong in (
        place_of(session, COMMIT, 3, 2),  # For somebody else.
        place_of(session, OUTPUT, 3, 1),  # Nothing that a shuffler sends to a shuffler.
        replace(place, attempt=2),
        replace(place, round=0),  # Shuffler 3 is no hider of the first round.
        replace(place, sender="shuffler_1"),
    ):
        each = letter(wrong, bytes(32), own)
        assert request(url, "POST", each.head + each.body)[0] == 403
    large = letter(place, bytes(33), own)
    assert request(url, "POST", large.head + large.body)[0] == 403
    good = letter(place, bytes(32), own)
    for cut in (good.head[:3], good.head[:-1], good.head + good.body[:-1], good.head + good.body + b"x"):
        assert request(url, "POST", cut)[0] == 400
    altered = good.head + bytes([1]) + good.body[1:]
    assert request(url, "POST", altered)[0] == 403
    assert request(url.replace(session.id, "00" * 32), "POST", good.head + good.body)[0] == 404
    assert cluster.store(1).arrived(session.id) == set()
    assert cluster.state(1)["state"] == "COLLECTING"


@pytest.mark.parametrize(("mode", "count"), [
    pytest.param("osh", 5, marks=pytest.mark.slow),
    pytest.param("osh-z", 3, marks=pytest.mark.slow),
    pytest.param("peos-dgk", 3, marks=pytest.mark.slow),
    pytest.param("relay", 1),
    pytest.param("ss", 2, marks=pytest.mark.slow),
])  # fmt: skip
def test_every_mode_gives_all_words_back(tmp_path: Path, mode: str, count: int) -> None:
    with Cluster(tmp_path, count) as cluster:
        more = {"spot_checks": 1} if mode in ("osh-z", "peos-dgk") else {}
        if mode == "peos-dgk":
            cluster.collector.dgk = draw_dgk_key(COINS)
            more["dgk"] = cluster.collector.dgk.public.to_json()
        session = cluster.begin(mode, fakes=2, **more)
        cluster.send_words(WORDS)
        opened = cluster.finish()
        assert sorted(set(map(int, opened.words)) & set(WORDS)) == WORDS
        assert (opened.rows, opened.bad) == (len(WORDS) + session.fake_rows, 0)
        cluster.wait_for_state("ERASED")
        record = cluster.collector.store.session(session.id)
        assert record is not None
        verify(cluster.collector.transcript(opened), record.signed, pins(session.parties))
