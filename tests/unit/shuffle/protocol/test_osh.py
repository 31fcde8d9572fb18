"""A session in modes osh and osh-z from words to released words, and everything that stops it."""

from typing import Any

import numpy as np
import pytest

from tacit import GRR, OLH
from tacit.arrays import U8
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import OpenFailed, ProtocolViolation, ReleaseRefused, SessionAborted
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.fakes import fake_shares
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.leaves import check_statements, took_part
from tacit.shuffle.protocol.opening import OpenedRows, acknowledge, combine, open_rows, release, sift
from tacit.shuffle.protocol.rehearsal import Rehearsed, rehearse, run
from tacit.shuffle.protocol.roster import Roster, agree
from tacit.shuffle.protocol.sealing import (
    ShuffleUpload,
    open_part,
    part_bytes,
    seal_upload,
    seal_word,
)  # fmt: skip
from tacit.shuffle.protocol.shares import PlainAlgebra
from tacit.shuffle.protocol.word_arrays import decode_words
from tacit.shuffle.protocol.words import WordRule, decode_word, encode_word


def streams(parties: int) -> list[AesStream]:
    return [AesStream(bytes([party]) * 32) for party in range(1, parties + 1)]


def uploads_of(cast: Rehearsed, words: list[int]) -> list[ShuffleUpload]:
    coins = ReplayCoins(b"clients")
    return [seal_upload(cast.session, word, coins) for word in words]


@pytest.mark.parametrize(("mode", "parties", "fakes"), [("osh", 3, 4), ("osh", 5, 0), ("osh-z", 3, 5)])
def test_words_come_out_once_with_the_fakes(mode: str, parties: int, fakes: int):
    cast = rehearse(ReplayCoins(b"keys"), mode=mode, shufflers=parties, fakes=fakes, spot_checks=1)
    words = [3, 2**64 - 1, 77, 3, 12345678901234567890]
    roster, opened = run(cast, uploads_of(cast, words), streams(parties))
    assert (opened.rows, opened.failures, opened.duplicates) == (5 + cast.session.fake_rows, 0, 0)
    out = release(cast.session, opened, roster.n, [77])
    assert (out.n, out.fakes) == (4, cast.session.fake_rows)
    assert [word for word in (3, 3, 12345678901234567890, 2**64 - 1) if word not in out.words.tolist()] == []
    assert len(out.words) == 4 + cast.session.fake_rows and 77 not in out.words.tolist()
    # Equal words of different clients are no replay: their sealed bytes differ.
    assert out.words.tolist().count(3) == 2
    assert len(out.alarms) == 1 and "1 words came twice" in out.alarms[0]


def test_reports_become_words_and_reports_again():
    for mechanism in (GRR(size=10, epsilon="2"), OLH(size=100, epsilon="2")):
        coins = ReplayCoins(b"answers")
        cast = rehearse(ReplayCoins(b"keys"), words=WordRule(10, seeded=False))
        reports = [mechanism.privatize_one(value, coins) for value in (1, 1, 5, 9)]
        words = [encode_word(mechanism, report, coins) for report in reports]
        _, opened = run(cast, uploads_of(cast, words), streams(3))
        got = decode_words(mechanism, opened.words)
        assert sorted(row.tobytes() for row in got) == sorted(reports)
        assert sorted(decode_word(mechanism, word) for word in words) == sorted(reports)


@pytest.mark.parametrize(("mode", "sizes"), [("osh", [104] * 3), ("osh-z", [112] * 3), ("ss", [200]), ("relay", [104])])
def test_uploads_have_one_size_and_travel_as_bytes(mode: str, sizes: list[int]):
    cast = rehearse(ReplayCoins(b"keys"), mode=mode, shufflers=1 if mode == "relay" else 3)
    assert part_bytes(cast.session) == sizes
    bodies = [upload.to_bytes() for upload in uploads_of(cast, [0, 2**64 - 1])]
    assert {len(body) for body in bodies} == {16 + sum(sizes)}
    again = ShuffleUpload.from_bytes(cast.session, bodies[0])
    assert again.to_bytes() == bodies[0] and again.receipt.slot == again.slot.hex()
    assert again.receipt.to_json() == {"session": cast.session.id, "slot": again.slot.hex()}
    with pytest.raises(ProtocolViolation, match=f"must be {16 + sum(sizes)}"):
        ShuffleUpload.from_bytes(cast.session, bodies[0] + b"\x00")


def test_a_part_opens_for_its_shuffler_slot_and_session_alone():
    cast = rehearse(ReplayCoins(b"keys"))
    session, upload = cast.session, uploads_of(cast, [5])[0]
    assert len(open_part(session, 1, cast.keys[1], upload.slot, upload.parts[0])) == 56
    other = rehearse(ReplayCoins(b"keys"), n_min=3).session
    wrong: list[tuple[Any, ...]] = [
        (session, 2, cast.keys[1], upload.slot, upload.parts[0]),
        (session, 1, cast.keys[2], upload.slot, upload.parts[0]),
        (session, 1, cast.keys[1], bytes(16), upload.parts[0]),
        (session, 1, cast.keys[1], upload.slot, upload.parts[1]),
        (other, 1, cast.keys[1], upload.slot, upload.parts[0]),
    ]
    for arguments in wrong:
        with pytest.raises(OpenFailed):
            open_part(*arguments)


def test_too_few_respondents_end_the_session_before_anything_reaches_the_collector():
    cast = rehearse(ReplayCoins(b"keys"), n_min=3, spot_checks=1)
    sent = [upload.slot for upload in uploads_of(cast, [1, 2, 3, 4])]
    slots, fewer, turned = (b"".join(some) for some in (sent, sent[1:], sent[::-1]))
    assert agree(cast.session, [slots, slots, turned]).slots == sorted(sent)
    # One shuffler lacks a slot: it takes no part, and three uploads with one spot check are too few.
    with pytest.raises(SessionAborted, match="2 respondents, the certificate needs 3"):
        agree(cast.session, [slots, fewer, slots])
    with pytest.raises(SessionAborted, match="2 of 3 shufflers"):
        agree(cast.session, [slots, slots])
    with pytest.raises(SessionAborted, match="at most 3"):
        agree(rehearse(ReplayCoins(b"keys"), n_max=3).session, [slots] * 3)
    with pytest.raises(SessionAborted):
        run(rehearse(ReplayCoins(b"keys"), n_min=5), uploads_of(cast, [1, 2]), streams(3))


def test_a_slot_that_comes_twice_counts_once():
    cast = rehearse(ReplayCoins(b"keys"))
    uploads = uploads_of(cast, [1, 2, 3])
    roster, opened = run(cast, [*uploads, uploads[0]], streams(3))
    assert roster.n == 3 and sorted(opened.words.tolist()) == [1, 2, 3]


def test_shufflers_sign_one_root_and_a_receipt_proves_that_a_slot_took_part():
    cast = rehearse(ReplayCoins(b"keys"))
    uploads = uploads_of(cast, list(range(7)))
    roster = agree(cast.session, [b"".join(upload.slot for upload in uploads)] * 3)
    signatures = {f"shuffler_{i}": roster.sign(cast.session, 1, cast.identities[i]) for i in (1, 2, 3)}
    statement = roster.statement(cast.session, 1)
    check_statements(cast.session, statement, signatures, cast.pinned)
    with pytest.raises(ProtocolViolation, match="shuffler_1"):
        check_statements(cast.session, {**statement, "n": 8}, signatures, cast.pinned)
    with pytest.raises(ProtocolViolation, match="shuffler_3"):
        check_statements(cast.session, statement, {**signatures, "shuffler_3": "00"}, cast.pinned)
    for upload in uploads:
        assert took_part(roster.root, roster.n, roster.proof(upload.slot))
    foreign = {**roster.proof(uploads[0].slot), "slot": "00" * 16}
    assert not took_part(roster.root, roster.n, foreign)
    with pytest.raises(ProtocolViolation, match="did not take part"):
        roster.proof(bytes(16))
    assert Roster.of([b"b" * 16, b"a" * 16, b"b" * 16]).slots == [b"a" * 16, b"b" * 16]


def rows_of(cast: Rehearsed, words: list[int]) -> U8:
    """Rows as the collector gets them, without the shuffle before."""
    coins = ReplayCoins(b"rows")
    sealed = b"".join(seal_word(cast.session, word, coins) for word in words)
    return np.frombuffer(sealed, np.uint8).reshape(len(words), 56).copy()


def test_a_tampered_row_does_not_open():
    cast = rehearse(ReplayCoins(b"keys"))
    rows = rows_of(cast, [1, 2, 3])
    rows[1, 40] ^= 1
    words, opened = open_rows(cast.session, cast.keys[0], rows)
    assert opened.tolist() == [True, False, True] and words[opened].tolist() == [1, 3]
    found = sift(rows, words, opened)
    assert (found.failures, found.duplicates, found.words.tolist()) == (1, 0, [1, 3])
    with pytest.raises(ReleaseRefused, match="1 of 3 rows do not open"):
        release(cast.session, found, 3, [])


def test_a_shuffler_that_alters_its_output_only_destroys_rows():
    cast = rehearse(ReplayCoins(b"keys"))
    uploads = uploads_of(cast, [1, 2, 3, 4])
    algebra = PlainAlgebra(LAYOUTS["osh"])
    rows = rows_of(cast, [1, 2, 3, 4])
    parts = algebra.split((rows,), 2, AesStream(bytes(32)))
    parts[0][2] ^= 1
    words, opened = open_rows(cast.session, cast.keys[0], combine(cast.session, {2: parts[0], 3: parts[1]}, 4))
    assert opened.tolist() == [True, True, False, True] and len(uploads) == 4 and words[3] == 4


def test_the_collector_needs_the_vectors_of_all_last_hiders():
    cast = rehearse(ReplayCoins(b"keys"))
    whole = bytes(3 * 56)
    with pytest.raises(ProtocolViolation, match="missing: shuffler_3"):
        combine(cast.session, {2: whole}, 3)
    with pytest.raises(ProtocolViolation, match="shuffler_3: the output is not 3 rows"):
        combine(cast.session, {2: whole, 3: bytes(3 * 64)}, 3)


def test_replayed_rows_are_counted_once_and_stop_the_release_if_there_are_many():
    cast = rehearse(ReplayCoins(b"keys"))
    rows = rows_of(cast, [1, 2])[[0, 1, 0]]
    words, opened = open_rows(cast.session, cast.keys[0], rows)
    found = sift(rows, words, opened)
    assert (found.duplicates, sorted(found.words.tolist())) == (1, [1, 2])
    with pytest.raises(ReleaseRefused, match="1 came twice"):
        release(cast.session, found, 3, [])


def opened_rows(count: int, *, failures: int = 0, duplicates: int = 0) -> OpenedRows:
    words = AesStream(bytes(32)).array(count - failures - duplicates)
    return OpenedRows(words, count, failures, duplicates)


def test_the_release_rule():
    session = rehearse(ReplayCoins(b"keys"), n_min=1990, spot_checks=3).session
    fine = opened_rows(2000)
    assert release(session, fine, 2000, []).alarms == ()
    # One failure is an alarm, more than one in a thousand a refusal.
    alarmed = release(session, opened_rows(2000, failures=1), 2000, [])
    assert alarmed.n == 1999 and "1 rows did not open" in alarmed.alarms[0]
    assert release(session, opened_rows(2000, failures=2), 2000, []).alarms
    with pytest.raises(ReleaseRefused, match="more than 1 in 1000"):
        release(session, opened_rows(2000, failures=2, duplicates=1), 2000, [])
    assert "came twice" in release(session, opened_rows(2000, duplicates=1), 2000, []).alarms[0]
    with pytest.raises(ReleaseRefused, match="2000 rows arrived, 2001 were signed"):
        release(session, fine, 2001, [])
    present = [int(word) for word in fine.words[:3]]
    assert release(session, fine, 2000, present).n == 1997
    with pytest.raises(ReleaseRefused, match="1 of 3 spot checks are missing"):
        release(session, fine, 2000, [*present[:2], 5])
    with pytest.raises(ReleaseRefused, match="distinct"):
        release(session, fine, 2000, present[:1] * 2)
    small = rehearse(ReplayCoins(b"keys"), n_min=1998, spot_checks=3).session
    with pytest.raises(ReleaseRefused, match="1997 respondents, the certificate needs 1998"):
        release(small, fine, 2000, present)


def test_copied_words_and_chosen_seeds_raise_alarms():
    session = rehearse(ReplayCoins(b"keys"), words=WordRule(8, seeded=True)).session
    copied = opened_rows(2000)
    copied.words[:3] = copied.words[3]
    assert "3 words came twice" in release(session, copied, 2000, []).alarms[0]
    chosen = opened_rows(2000)
    chosen.words[:300] &= np.uint64((1 << 56) - 1)
    assert release(session, chosen, 2000, []).alarms == ("seeds are not evenly spread: somebody chooses them",)
    unseeded = rehearse(ReplayCoins(b"keys")).session
    assert release(unseeded, chosen, 2000, []).alarms == ()


def test_fakes_are_uniform_words_that_only_their_maker_knows():
    cast = rehearse(ReplayCoins(b"keys"), fakes=5)
    parts = [fake_shares(cast.session, party, stream) for party, stream in enumerate(streams(3), start=1)]
    assert {part.shape for part in parts} == {(9, 56)}
    owners = [[party for party in range(3) if parts[party][i].any()] for i in range(9)]
    assert owners == [[i % 3] for i in range(9)]
    rows = parts[0] ^ parts[1] ^ parts[2]
    words, opened = open_rows(cast.session, cast.keys[0], rows)
    assert opened.all() and len(set(words.tolist())) == 9


def test_jointly_random_fakes_change_with_every_shufflers_summand():
    cast = rehearse(ReplayCoins(b"keys"), mode="osh-z", fakes=4)
    algebra = PlainAlgebra(LAYOUTS["osh-z"])
    seen: set[int] = set()
    for changed in range(4):
        own = [AesStream(bytes([party + 10 * (party == changed)]) * 32) for party in (1, 2, 3)]
        parts = [fake_shares(cast.session, party, stream) for party, stream in enumerate(own, start=1)]
        words, opened = open_rows(cast.session, cast.keys[0], algebra.join(4, None, parts)[0])
        assert opened.all()
        seen |= set(words.tolist())
    assert len(seen) == 16


def test_the_acknowledgement_is_signed():
    cast = rehearse(ReplayCoins(b"keys"))
    ack = acknowledge(cast.session, 1, opened_rows(10, failures=1), cast.identities[0])
    assert (ack["rows"], ack["failures"]) == (10, 1) and len(ack["signature"]) == 128
