"""Transcripts: complete and signed ones are believed, all others refused with the name of who is at fault."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.arrays import U8
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.envelope import Envelope, MessagePlace, enclose
from tacit.shuffle.crypto.merkle import inclusion_proof, is_included, merkle_root
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.in_memory import Message, shuffle_in_memory
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.opening import acknowledge, combine, open_rows, sift
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.rehearsal import Rehearsed, rehearse, shares_of
from tacit.shuffle.protocol.roster import Roster, agree
from tacit.shuffle.protocol.sealing import seal_upload
from tacit.shuffle.protocol.shares import PlainAlgebra
from tacit.shuffle.protocol.transcript import Transcript, check_receipt, erasure_note, expected_places, verify


@pytest.fixture(scope="module")
def recorded() -> tuple[Rehearsed, Transcript, Roster]:
    """A real session of three shufflers, with everything that was sent in signed envelopes."""
    cast = rehearse(ReplayCoins(b"keys"), fakes=2)
    session, coins = cast.session, ReplayCoins(b"clients")
    uploads = [seal_upload(session, word, coins) for word in (1, 2, 3)]
    roster = agree(session, [b"".join(upload.slot for upload in uploads)] * 3)
    own = [AesStream(bytes([party]) * 32) for party in (1, 2, 3)]
    vectors = [(shares_of(cast, party, roster, uploads, own[party - 1]),) for party in (1, 2, 3)]
    sent: dict[MessagePlace, Envelope] = {}

    def watch(message: Message) -> None:
        if message.sender != message.outgoing.receiver:
            envelope = signed(cast, message.sender, message.outgoing.receiver, message.outgoing)
            sent[envelope.place] = envelope

    outputs = shuffle_in_memory(vectors, PlainAlgebra(LAYOUTS["osh"]), own, session=session.id_bytes, watch=watch)
    rows = combine(session, outputs, roster.n + session.fake_rows)
    opened = sift(rows, *open_rows(session, cast.keys[0], rows))
    transcript = Transcript(
        session=session.id,
        attempt=1,
        roster={
            "root": roster.root,
            "n": roster.n,
            "leaves": roster.leaves.hex(),
            "signatures": {party_name(i): roster.sign(session, 1, cast.identities[i]) for i in (1, 2, 3)},
        },
        rows=opened.rows,
        envelopes=[sent[place].to_json() for place in expected_places(session, 1)],
        ack=acknowledge(session, 1, opened, cast.identities[0]),
        erasures=[erasure_note(session, 1, i, cast.identities[i]) for i in (1, 2, 3)],
    )
    return cast, transcript, roster


def signed(cast: Rehearsed, sender: int, receiver: int, outgoing: Any) -> Envelope:
    place = MessagePlace(session=cast.session.id, attempt=1, round=outgoing.round, phase=outgoing.phase,
                  sender=party_name(sender), receiver=party_name(receiver))  # fmt: skip
    body: U8 = np.ascontiguousarray(outgoing.body)
    return enclose(place, body.tobytes(), rows=len(body), identity=cast.identities[sender])


def test_a_real_session_is_verified_in_plain_sentences(recorded: tuple[Rehearsed, Transcript, Roster]):
    cast, transcript, _ = recorded
    found = verify(Transcript.from_json(transcript.to_json()), cast.signed, cast.pinned)
    assert len(found.checked) == 5 and "28 messages" in found.checked[2]
    assert any("receipt" in sentence for sentence in found.proves)
    assert any("2 of the 3 shufflers" in sentence for sentence in found.does_not_prove)
    assert len(transcript.root) == 64


def test_a_receipt_is_checked_against_the_transcript(recorded: tuple[Rehearsed, Transcript, Roster]):
    cast, transcript, roster = recorded
    slot = roster.slots[1]
    receipt = {"session": cast.session.id, "slot": slot.hex()}
    # The same path that a shuffler shows, from what is published for ever.
    assert check_receipt(transcript, receipt) == roster.proof(slot)
    assert check_receipt(transcript, {**receipt, "session": "00" * 32}) is None
    assert check_receipt(transcript, {**receipt, "slot": "00" * 16}) is None


def changed_envelope(transcript: Transcript, index: int, **changes: Any) -> Transcript:
    envelopes = [dict(item) for item in transcript.envelopes]
    envelopes[index].update(changes)
    return replace(transcript, envelopes=envelopes)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: replace(t, session="00" * 32), "another session"),
        (lambda t: replace(t, attempt=2), "roster: the signature of shuffler_1"),
        (lambda t: replace(t, rows=7), "not the uploads and the fakes"),
        (lambda t: replace(t, roster={**t.roster, "n": 4}), "signature of shuffler_1"),
        (lambda t: replace(t, roster={**t.roster, "signatures": {}}), "signature of shuffler_1"),
        (lambda t: replace(t, roster={**t.roster, "leaves": t.roster["leaves"][64:]}), "not the hashes of the 3 slots"),
        (lambda t: replace(t, roster={**t.roster, "leaves": t.roster["leaves"][:-2]}), "not the hashes of the 3 slots"),
        (lambda t: replace(t, roster={**t.roster, "leaves": "00" * 96}), "not the hashes of the 3 slots"),
        (lambda t: replace(t, roster={**t.roster, "leaves": None}), "hashes of the slots are missing"),
        (lambda t: replace(t, envelopes=t.envelopes[1:]), "each once"),
        (lambda t: replace(t, envelopes=[t.envelopes[1], t.envelopes[0], *t.envelopes[2:]]), "each once"),
        (lambda t: replace(t, envelopes=[*t.envelopes, t.envelopes[0]]), "each once"),
        (lambda t: changed_envelope(t, 5, body="00" * 32), "not by its pinned key"),
        (lambda t: changed_envelope(t, 5, width=57), "not by its pinned key"),
        (lambda t: replace(t, ack={**t.ack, "failures": 1}), "signature of collector"),
        (lambda t: replace(t, hops=[{}]), "mode osh has no hops"),
        (lambda t: replace(t, erasures=[{**t.erasures[0], "by": "shuffler_2"}]), "signature of shuffler_2"),
    ],
)
def test_whatever_is_changed_is_noticed(recorded: tuple[Rehearsed, Transcript, Roster], change: Any, reason: str):
    cast, transcript, _ = recorded
    with pytest.raises(ProtocolViolation, match=reason):
        verify(change(transcript), cast.signed, cast.pinned)


WRONG: tuple[Any, ...] = (None, True, 7, 1.5, "x", [], {}, [[]], [7])


def spoilt(whole: Any, places: tuple[Any, ...]) -> Any:
    """Every copy of a document with one place, at any depth, missing or of another type."""
    if not places:
        yield from (value for value in WRONG if value != whole)
        return
    first, rest = places[0], places[1:]
    for changed in spoilt(whole[first], rest):
        copy = dict(whole) if isinstance(whole, dict) else list(whole)
        copy[first] = changed
        yield copy


@pytest.mark.parametrize(
    "place",
    [("session",), ("attempt",), ("rows",), ("roster",), ("roster", "root"), ("roster", "n"), ("roster", "signatures"),
     ("roster", "signatures", "shuffler_2"), ("envelopes",), ("envelopes", 3), ("envelopes", 3, "rows"), ("ack",),
     ("ack", "rows"), ("ack", "signature"), ("erasures", 0), ("erasures", 0, "by"), ("erasures", 0, "signature")],
    ids=str,
)  # fmt: skip
def test_parts_of_another_type_are_refused_in_words(recorded: tuple[Rehearsed, Transcript, Roster], place: Any):
    cast, transcript, _ = recorded
    for document in spoilt(transcript.to_json(), place):
        with pytest.raises((ProtocolViolation, InvalidSpec)):
            verify(Transcript.from_json(document), cast.signed, cast.pinned)


def test_a_party_cannot_sign_another_size_than_the_session_has(recorded: tuple[Rehearsed, Transcript, Roster]):
    cast, transcript, _ = recorded
    place = Envelope.from_json(transcript.envelopes[-1]).place
    sender = int(place.sender[-1])
    short = enclose(place, bytes(5 * 56), rows=5, identity=cast.identities[sender])
    with pytest.raises(ProtocolViolation, match="another size than the session"):
        verify(changed_envelope(transcript, -1, **short.to_json()), cast.signed, cast.pinned)


def test_a_seed_cannot_be_replaced_by_rows(recorded: tuple[Rehearsed, Transcript, Roster]):
    cast, transcript, _ = recorded
    envelopes = [Envelope.from_json(item) for item in transcript.envelopes]
    index, place = next((i, e.place) for i, e in enumerate(envelopes) if e.place.phase == "split" and e.rows == 1)
    identity, rows = cast.identities[int(place.sender[-1])], transcript.rows
    long = enclose(place, bytes(rows * 56), rows=rows, identity=identity)
    with pytest.raises(ProtocolViolation, match="another size than the session"):
        verify(changed_envelope(transcript, index, **long.to_json()), cast.signed, cast.pinned)


def test_an_acknowledgement_and_a_note_must_be_about_this_session(recorded: tuple[Rehearsed, Transcript, Roster]):
    cast, transcript, _ = recorded
    note = erasure_note(cast.session, 2, 1, cast.identities[1])
    with pytest.raises(ProtocolViolation, match="another session"):
        verify(replace(transcript, erasures=[note]), cast.signed, cast.pinned)
    found = verify(replace(transcript, erasures=[]), cast.signed, cast.pinned)
    assert "3 shufflers have not yet signed" in found.does_not_prove[-1]
    with pytest.raises(InvalidSpec, match="unknown or missing"):
        Transcript.from_json({"session": "x"})


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 31])
def test_merkle_proofs_of_every_size(size: int):
    leaves = [bytes([i]) * 16 for i in range(size)]
    root = merkle_root(leaves)
    assert Roster.of(leaves).root == root.hex()
    for i, leaf in enumerate(leaves):
        proof = inclusion_proof(leaves, i)
        assert is_included(root, leaf, i, size, proof)
        assert not is_included(root, b"x" * 16, i, size, proof)
        assert not is_included(root, leaf, i, size, [*proof, root])
        assert not is_included(root, leaf, size, size, proof)
        assert size == 1 or not is_included(root, leaf, (i + 1) % size, size, proof)
        assert size == 1 or not is_included(root, leaf, i, size, proof[:-1])


def test_the_roots_of_rfc_6962():
    """The tree of the certificate transparency test suite: leaves "", 00, 10, 2021, 3031, 40414243."""
    leaves = [bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243")]
    assert merkle_root([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert merkle_root(leaves[:1]).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert merkle_root(leaves[:3]).hex() == "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
    assert merkle_root(leaves).hex() == "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"
