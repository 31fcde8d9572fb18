"""The sequential shuffle: counts that add up, replays that are dropped, and hops that keep whole batches."""

from dataclasses import replace
from typing import Any

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ProtocolViolation, ReleaseRefused, SessionAborted
from tacit.shuffle.crypto.envelope import enclose
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.onion import Passed, chain_rows, pass_on
from tacit.shuffle.protocol.opening import acknowledge, open_rows, release, sift
from tacit.shuffle.protocol.rehearsal import Rehearsed, rehearse
from tacit.shuffle.protocol.roster import agree
from tacit.shuffle.protocol.sealing import onion_bytes, seal_onion, seal_upload
from tacit.shuffle.protocol.transcript import Transcript, expected_places, verify


def stream(i: int) -> AesStream:
    return AesStream(bytes([i]) * 32)


def chain(cast: Rehearsed, onions: list[bytes], upto: int | None = None) -> list[Passed]:
    passed: list[Passed] = []
    for party in range(1, (upto or cast.session.shuffler_count) + 1):
        onions = passed[-1].rows if passed else onions
        passed.append(pass_on(cast.session, party, cast.keys[party], onions, stream(party)))
    return passed


def onions_of(cast: Rehearsed, words: list[int]) -> list[bytes]:
    coins = ReplayCoins(b"clients")
    return [seal_onion(cast.session, word, coins) for word in words]


def made(mode: str = "ss", **changes: Any) -> Rehearsed:
    return rehearse(ReplayCoins(b"keys"), mode=mode, **changes)


@pytest.mark.parametrize(("mode", "parties"), [("ss", 3), ("ss", 2), ("ss", 7), ("relay", 1)])
def test_words_come_out_once_with_fakes_of_every_hop(mode: str, parties: int):
    cast = made(mode, shufflers=parties, fakes=2)
    onions = onions_of(cast, [5, 6, 7])
    assert {len(onion) for onion in onions} == {8 + 48 * (parties + 1)} == {onion_bytes(cast.session, 1)}
    passed = chain(cast, onions)
    for hop in passed:
        counts = hop.counts
        assert counts["taken"] - counts["duplicates"] - counts["failures"] + counts["fakes"] == counts["sent"]
    rows = chain_rows(passed[-1].rows)
    opened = sift(rows, *open_rows(cast.session, cast.keys[0], rows))
    out = release(cast.session, opened, 3, [])
    assert (out.n, out.fakes, len(out.words)) == (3, 2 * parties, 3 + 2 * parties)
    assert {5, 6, 7} <= set(out.words.tolist())


def test_the_order_changes_at_every_hop():
    cast = made("relay", shufflers=1)
    onions = onions_of(cast, list(range(40)))
    (first,) = chain(cast, onions)
    rows = chain_rows(first.rows)
    words = open_rows(cast.session, cast.keys[0], rows)[0].tolist()
    # A uniform order of 40 leaves all in place with probability below 1e-47.
    assert sorted(words) == list(range(40)) and words != sorted(words)


def test_a_replayed_onion_is_dropped():
    cast = made()
    onions = onions_of(cast, [5, 6, 7])
    replayed = [*onions, onions[0], onions[0][:32] + bytes(168)]
    first = chain(cast, replayed, 1)[0]
    assert (first.counts["duplicates"], first.counts["failures"], first.counts["sent"]) == (2, 0, 3)
    # The first of several is kept, so that somebody who copies the key of an onion cannot displace it.
    last = chain(cast, replayed)[-1]
    assert sorted(open_rows(cast.session, cast.keys[0], chain_rows(last.rows))[0].tolist()) == [5, 6, 7]


def test_onions_that_do_not_open_are_counted_and_other_sizes_refused():
    cast = made()
    onions = onions_of(cast, [5, 6, 7])
    broken = bytearray(onions[1])
    broken[-1] ^= 1
    first = chain(cast, [onions[0], bytes(broken), onions[2]], 1)[0]
    assert (first.counts["failures"], first.counts["sent"]) == (1, 2)
    with pytest.raises(ProtocolViolation, match="another size than 200"):
        chain(cast, [onions[0], onions[1][:-1]], 1)
    other = made(n_min=3)
    assert other.session.id != cast.session.id
    with pytest.raises(SessionAborted):
        pass_on(other.session, 1, cast.keys[1], onions, stream(1))  # All fail: they belong to another session.


def test_a_batch_that_is_too_small_goes_nowhere():
    cast = made(n_min=3, spot_checks=1, fakes=5)
    with pytest.raises(SessionAborted, match="shuffler_1: fewer than 3"):
        chain(cast, onions_of(cast, [1, 2, 3]), 1)
    assert chain(cast, onions_of(cast, [1, 2, 3, 4]))[-1].counts["sent"] == 4 + 15
    # A later hop counts without the fakes of those before it.
    first = chain(cast, onions_of(cast, [1, 2, 3, 4]), 1)[0]
    with pytest.raises(SessionAborted, match="shuffler_2"):
        pass_on(cast.session, 2, cast.keys[2], first.rows[:8], stream(2))


def test_dropped_rows_count_against_the_release():
    cast = made()
    onions = onions_of(cast, [5, 6, 7])
    last = chain(cast, [*onions, onions[0]])[-1]
    rows = chain_rows(last.rows)
    opened = sift(rows, *open_rows(cast.session, cast.keys[0], rows))
    with pytest.raises(ReleaseRefused, match="3 rows arrived, 4 were signed"):
        release(cast.session, opened, 4, [])
    with pytest.raises(ReleaseRefused, match="1 of 3 rows do not open"):
        release(cast.session, opened, 4, [], dropped=1)


@pytest.fixture(scope="module")
def recorded() -> tuple[Rehearsed, Transcript]:
    cast = made(fakes=1)
    session, coins = cast.session, ReplayCoins(b"clients")
    uploads = [seal_upload(session, word, coins) for word in (5, 6, 7)]
    roster = agree(session, [b"".join(upload.slot for upload in uploads)])
    passed = chain(cast, [upload.parts[0] for upload in uploads])
    rows = chain_rows(passed[-1].rows)
    opened = sift(rows, *open_rows(session, cast.keys[0], rows))
    bodies = [b"".join(hop.rows) for hop in passed]
    places = expected_places(session, 1)
    envelopes = [
        enclose(place, body, rows=len(hop.rows), identity=cast.identities[i]).to_json()
        for i, (place, body, hop) in enumerate(zip(places, bodies, passed, strict=True), start=1)
    ]
    return cast, Transcript(
        session=session.id,
        attempt=1,
        roster={
            "root": roster.root,
            "n": roster.n,
            "signatures": {"shuffler_1": roster.sign(session, 1, cast.identities[1])},
            "leaves": roster.leaves.hex(),
        },
        rows=opened.rows,
        envelopes=envelopes,
        hops=[hop.sign(cast.identities[i]) for i, hop in enumerate(passed, start=1)],
        ack=acknowledge(session, 1, opened, cast.identities[0]),
    )


def test_the_transcript_of_a_chain_is_verified(recorded: tuple[Rehearsed, Transcript]):
    cast, transcript = recorded
    found = verify(transcript, cast.signed, cast.pinned)
    assert any("add up" in sentence for sentence in found.checked)
    assert any("spot checks" in sentence for sentence in found.does_not_prove)
    assert any("one of the 3 shufflers" in sentence for sentence in found.does_not_prove)


def test_hops_that_do_not_fit_together_are_noticed(recorded: tuple[Rehearsed, Transcript]):
    cast, transcript = recorded
    with pytest.raises(ProtocolViolation, match="every hop"):
        verify(replace(transcript, hops=transcript.hops[:2]), cast.signed, cast.pinned)

    with pytest.raises(ProtocolViolation, match="hop: the signature of shuffler_1"):
        verify(replace(transcript, hops=[transcript.hops[1], *transcript.hops[1:]]), cast.signed, cast.pinned)


@pytest.mark.parametrize(
    ("index", "changes", "reason"),
    [
        (1, {"sent": 9}, "shuffler_2: the counts"),
        (1, {"root_in": "00" * 32}, "shuffler_2: it took other rows"),
        (0, {"session": "00" * 32}, "shuffler_1: .* another session"),
        (2, {"attempt": 2}, "shuffler_3: .* another session"),
        (1, {"by": "shuffler_1"}, "shuffler_2: .* another session"),
        (0, {"taken": 4, "duplicates": 1}, "shuffler_1: it took other rows"),  # not the uploads that were signed for
        (0, {"fakes": 0, "failures": -1}, "shuffler_1: .* at least 0"),
        (1, {"fakes": 0, "sent": 4}, "shuffler_2: the counts"),  # not what its envelope says
        (2, {"fakes": 2, "failures": 1}, "shuffler_3: it made 2 fakes, the session asks for 1"),
        (2, {"failures": "0"}, "shuffler_3: .* whole numbers"),
    ],
)
def test_a_hop_cannot_sign_what_did_not_happen(
    recorded: tuple[Rehearsed, Transcript], index: int, changes: dict[str, Any], reason: str
):
    cast, transcript = recorded
    counts = {**transcript.hops[index], **changes}
    counts.pop("signature")
    hops = list(transcript.hops)
    hops[index] = Passed([], counts).sign(cast.identities[index + 1])
    with pytest.raises(ProtocolViolation, match=reason):
        verify(replace(transcript, hops=hops), cast.signed, cast.pinned)
