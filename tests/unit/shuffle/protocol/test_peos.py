"""Mode peos-dgk: words come out once, ciphertexts wander between the shufflers, and every hop re-randomises them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tacit.arrays import U8
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.dgk import DgkParameters, DgkPrivateKey, draw_dgk_key
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.in_memory import Message, shuffle_in_memory
from tacit.shuffle.protocol.opening import OpenedRows, release
from tacit.shuffle.protocol.peos import (
    PLAIN,
    PeosAlgebra,
    combine_encrypted,
    first_vector,
    is_share,
    open_encrypted,
    with_fakes,
)
from tacit.shuffle.protocol.rehearsal import Rehearsed, rehearse
from tacit.shuffle.protocol.sealing import ShuffleUpload, open_part, part_bytes, seal_upload
from tacit.shuffle.protocol.shares import Vector, as_rows, as_words

SMALL = draw_dgk_key(ReplayCoins(b"peos"), DgkParameters(512, 64, 64))
FULL = DgkPrivateKey.from_json(json.loads((Path(__file__).parents[1] / "dgk_test_key.json").read_text()))


def stream(*parts: int) -> AesStream:
    return AesStream(bytes(parts).ljust(32, b"\x00"))


def vectors_of(words: list[int], parties: int, seed: int, key: DgkPrivateKey = SMALL) -> list[Vector]:
    plain = np.array(words, "<u8").view(np.uint8).reshape(-1, 8)
    *shares, last = PLAIN.split((plain,), parties, stream(seed))
    nothing = np.zeros((len(words), 0), np.uint8)
    cipher = key.public.encrypt_words(as_words(last).reshape(-1), stream(seed, 1))
    return [*((share, nothing) for share in shares), (np.zeros_like(last), cipher)]


def words_out(outputs: dict[int, U8], count: int, key: DgkPrivateKey = SMALL) -> list[int]:
    (cipher,) = (rows for rows in outputs.values() if rows.shape[1] != 8)
    words, opened = key.decrypt_rows(cipher)
    assert opened.all()
    plain = PLAIN.join(count, None, [rows for rows in outputs.values() if rows.shape[1] == 8])[0]
    return sorted((words + as_words(plain).reshape(-1)).tolist())


@examples(12)
@given(
    parties=st.sampled_from([3, 3, 5]),
    words=st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=4),
    seed=st.integers(0, 255),
    picks=st.lists(st.integers(0, 1 << 16), min_size=1, max_size=20),
)
def test_every_word_comes_out_once(parties: int, words: list[int], seed: int, picks: list[int]):
    turn = iter(range(1 << 30))
    outputs = shuffle_in_memory(
        vectors_of(words, parties, seed),
        PeosAlgebra(SMALL.public),
        [stream(seed, 2, party) for party in range(parties)],
        pick=lambda waiting: picks[next(turn) % len(picks)] % waiting,
    )
    assert words_out(outputs, len(words)) == sorted(words)


def test_the_ciphertexts_wander_and_no_two_are_equal():
    sent: list[Message] = []
    outputs = shuffle_in_memory(
        vectors_of([1, 2, 3], 3, 5),
        PeosAlgebra(SMALL.public),
        [stream(9, party) for party in range(3)],
        watch=sent.append,
    )
    assert words_out(outputs, 3) == [1, 2, 3]
    wandering = [message for message in sent if message.outgoing.body.shape[1] == SMALL.public.width]
    # Round 0: shuffler 3 seeks and gives them away, then one reshare; at least one more reshare and the output follow.
    assert wandering[0].sender == 3 and wandering[0].outgoing.phase == "split" and wandering[-1].outgoing.receiver == 0
    rows = [row.tobytes() for message in wandering for row in message.outgoing.body]
    assert len(set(rows)) == len(rows) and 4 <= len(wandering) <= 6
    # There is one holder at a time: the phases of one round carry them once each.
    places = [(message.outgoing.round, message.outgoing.phase) for message in wandering]
    assert len(set(places)) == len(places)


def test_the_next_holder_is_drawn_at_random():
    """False-alarm probability below 1e-7: 60 draws miss one of three receivers with probability 3 (2/3)^60."""
    vector = vectors_of([7], 3, 1)[-1]
    algebra, own = PeosAlgebra(SMALL.public), stream(4)
    places = [[body.shape[1] for body in algebra.split(vector, 3, own)].index(SMALL.public.width) for _ in range(60)]
    assert set(places) == {0, 1, 2} and 3 * (2 / 3) ** 60 < 1e-7


def test_two_holders_and_rows_that_are_no_ciphertexts_are_refused():
    algebra, nothing = PeosAlgebra(SMALL.public), np.zeros((1, 0), np.uint8)
    cipher = SMALL.public.encrypt_words(np.array([1], np.uint64), stream(1))
    plain = np.zeros((1, 8), np.uint8)
    with pytest.raises(ProtocolViolation, match="two parties"):
        algebra.join(1, (plain, cipher), [cipher])
    with pytest.raises(ProtocolViolation, match="no ciphertexts"):
        algebra.join(1, (plain, nothing), [np.zeros_like(cipher)])
    assert algebra.accepts(plain) and algebra.accepts(cipher) and not algebra.accepts(cipher[:, :9])


@pytest.fixture(scope="module")
def cast() -> Rehearsed:
    return rehearse(ReplayCoins(b"keys"), mode="peos-dgk", dgk=FULL.public.to_json(), fakes=2)


def encrypted(share: int, coins: object) -> bytes:
    assert isinstance(coins, ReplayCoins)
    return FULL.public.encrypt(share, coins)


def test_a_whole_session_with_a_key_of_full_size(cast: Rehearsed):
    session, coins = cast.session, ReplayCoins(b"clients")
    uploads = [seal_upload(session, word, coins, encrypt=encrypted) for word in (10, 11, 12)]
    assert part_bytes(session) == [56, 56, 432]
    assert {len(upload.to_bytes()) for upload in uploads} == {16 + 56 + 56 + 432}
    assert ShuffleUpload.from_bytes(session, uploads[0].to_bytes()).parts == uploads[0].parts
    own = [stream(7, party) for party in (1, 2, 3)]
    vectors: list[Vector] = []
    for party in (1, 2, 3):
        shares = [open_part(session, party, cast.keys[party], u.slot, u.parts[party - 1]) for u in uploads]
        assert all(is_share(session, party, share, FULL.public) for share in shares)
        assert not is_share(session, party, bytes(len(shares[0]) + 1), FULL.public)
        vector = first_vector(session, party, as_rows(b"".join(shares), len(shares)))
        vectors.append(with_fakes(session, party, vector, FULL.public, own[party - 1]))
    assert not is_share(session, 3, bytes(384), FULL.public)
    outputs = shuffle_in_memory(vectors, PeosAlgebra(FULL.public), own, session=session.id_bytes)
    words, opened = open_encrypted(FULL, combine_encrypted(session, outputs, 5))
    assert opened.all() and {10, 11, 12} <= set(words.tolist()) and len(set(words.tolist())) == 5
    released = release(session, OpenedRows(words, 5, 0, 0), 3, [11])
    assert released.n == 2 and 11 not in released.words.tolist()
    last = {party: body for party, body in outputs.items() if party != 2}
    with pytest.raises(ProtocolViolation, match="2 shufflers; missing: shuffler_2"):
        combine_encrypted(session, last, 5)
    with pytest.raises(ProtocolViolation, match="exactly one vector"):
        combine_encrypted(session, {2: bytes(40), 3: bytes(40)}, 5)
    with pytest.raises(ProtocolViolation, match="shuffler_3: the output is not 5 rows of mode peos-dgk"):
        combine_encrypted(session, {2: bytes(40), 3: bytes(41)}, 5)


def test_a_client_needs_the_encryption_and_a_session_a_key_of_full_size(cast: Rehearsed):
    with pytest.raises(InvalidSpec, match="give `encrypt`"):
        seal_upload(cast.session, 1, ReplayCoins(b"x"))
    with pytest.raises(InvalidSpec, match="3072 bits"):
        rehearse(ReplayCoins(b"keys"), mode="peos-dgk", dgk=SMALL.public.to_json())
    with pytest.raises(InvalidSpec, match="dgk key belongs"):
        rehearse(ReplayCoins(b"keys"), mode="peos-dgk")


def test_what_is_no_ciphertext_is_not_decrypted(cast: Rehearsed):
    right = FULL.public.encrypt_words(np.array([1, 2], np.uint64), stream(1)).copy()
    right[1] ^= np.uint8(1)
    rows = combine_encrypted(cast.session, {2: np.array([7, 7], "<u8").tobytes(), 3: right}, 2)
    words, opened = open_encrypted(FULL, rows)
    assert opened.tolist() == [True, False] and words[0] == 8
