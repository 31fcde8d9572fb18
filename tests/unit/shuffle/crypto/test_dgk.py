"""DGK: sums under encryption, no symbol that shows a bit, and nothing decrypted that is no ciphertext."""

import json
import sys
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, MissingExtra, ProtocolViolation
from tacit.shuffle.crypto import dgk
from tacit.shuffle.crypto.dgk import DgkParameters, DgkPrivateKey, DgkPublicKey, draw_dgk_key
from tacit.shuffle.crypto.stream import AesStream

SMALL = DgkParameters(modulus_bits=512, plain_bits=32, order_bits=64)
KEY = draw_dgk_key(ReplayCoins(b"small"), SMALL)
STORED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "dgk_test_key.json").read_text())


def stream(i: int = 0) -> AesStream:
    return AesStream(bytes([i]) * 32)


@pytest.mark.parametrize("plain_bits", [8, 32, 64])
def test_keys_have_the_structure_that_security_needs(plain_bits: int):
    key = draw_dgk_key(ReplayCoins(b"sizes"), DgkParameters(512, plain_bits, 64))
    public = key.public
    assert public.n.bit_length() == 512 and key.p != key.q and key.order_p != key.order_q
    for prime, order in ((key.p, key.order_p), (key.q, key.order_q)):
        assert gmpy2.is_prime(prime, 40) and gmpy2.is_prime(order, 40)
        assert prime.bit_length() == 256 and prime >> 254 == 3 and order.bit_length() == 64
        free, rest = divmod((prime - 1) >> plain_bits, order)
        assert rest == 0 and free % 2 == 1 and (prime - 1) % (1 << plain_bits) == 0
        # The order of g is exactly 2^l v, that of h exactly v.
        assert gmpy2.powmod(public.g, order << plain_bits, prime) == 1
        assert gmpy2.powmod(public.g, order << (plain_bits - 1), prime) != 1
        assert gmpy2.powmod(public.g, 1 << plain_bits, prime) != 1
        assert gmpy2.powmod(public.h, order, prime) == 1 and public.h % prime != 1


@pytest.mark.parametrize("value", [0, 1, 255, 256, 0x01020304, (1 << 32) - 1])
def test_what_is_encrypted_decrypts(value: int):
    sealed = KEY.public.encrypt(value, ReplayCoins(value.to_bytes(4, "big")))
    assert len(sealed) == KEY.public.width == 64
    assert KEY.decrypt(sealed) == value


def test_sums_wrap_around_and_are_re_randomised():
    words = np.array([0, 5, (1 << 32) - 1, 1 << 31], np.uint64)
    more = np.array([0, 7, 1, 1 << 31], np.uint64)
    rows = KEY.public.encrypt_words(words, stream())
    sums = KEY.public.add_words(rows, more, stream(1))
    got, opened = KEY.decrypt_rows(sums)
    assert opened.all() and got.tolist() == [0, 12, 0, 0]
    # Adding nothing gives another ciphertext of the same word.
    same = KEY.public.add_words(rows, np.zeros(4, np.uint64), stream(2))
    assert not (same == rows).all(axis=1).any() and KEY.decrypt_rows(same)[0].tolist() == words.tolist()


def test_a_hop_leaves_nothing_that_links_before_and_after():
    """c g^-m is a power of h alone: without re-randomisation it would be the same before and after."""
    public, word = KEY.public, 1234
    before = KEY.public.read(public.encrypt(word, ReplayCoins(b"x")))
    row = np.frombuffer(int(before).to_bytes(64, "big"), np.uint8).reshape(1, 64)
    after = public.read(public.add_words(row, np.array([99], np.uint64), stream())[0].tobytes())
    plain = before * gmpy2.powmod(public.g, 99, public.n) % public.n

    def left(c: Any, m: int) -> Any:
        return c * gmpy2.powmod(public.g, -m, public.n) % public.n

    assert left(plain, word + 99) == left(before, word)
    assert left(after, word + 99) != left(before, word)


def test_no_symbol_shows_a_bit_of_the_plaintext():
    coins = ReplayCoins(b"bits")
    for word in range(16):
        c = KEY.public.read(KEY.public.encrypt(word, coins))
        assert gmpy2.jacobi(c, KEY.public.n) == 1
    # Only who knows a factor sees it: modulo p odd plaintexts are no squares.
    symbols = [gmpy2.legendre(KEY.public.read(KEY.public.encrypt(word, coins)), KEY.p) for word in range(4)]
    assert symbols == [1, -1, 1, -1]


def test_a_key_with_the_wrong_symbol_is_refused():
    public = KEY.public
    # A number that is no square modulo p and a square modulo q has symbol -1.
    wrong = next(x for x in range(2, 1000) if gmpy2.jacobi(x, public.n) == -1)
    for g, h in ((wrong, public.h), (public.g, wrong), (0, public.h), (public.n, public.h), (KEY.p, public.h)):
        with pytest.raises(InvalidSpec, match="refuse it"):
            DgkPublicKey(public.n, g, h, SMALL)
    with pytest.raises(InvalidSpec, match="wrong size"):
        DgkPublicKey(public.n, public.g, public.h, DgkParameters(1024, 32, 64))


def test_a_key_that_randomises_nothing_is_refused():
    """With such an h a row would look the same before and after every hop, and whoever made the key could follow it."""
    n, g, h = (int(part) for part in (KEY.public.n, KEY.public.g, KEY.public.h))
    # Order 1, order 2, and the part of g whose order is 2^l.
    two_power = pow(g, int(KEY.order_p) * int(KEY.order_q), n)
    for bad in (1, n - 1, pow(two_power, 2, n)):
        with pytest.raises(InvalidSpec, match="tiny order"):
            DgkPublicKey(n, g, bad, SMALL)
        with pytest.raises(InvalidSpec, match="tiny order"):
            DgkPublicKey(n, bad, h, SMALL)


def test_what_is_no_ciphertext_is_not_decrypted():
    n = KEY.public.n
    outside = next(
        x for x in range(2, 1000) if gmpy2.jacobi(x, n) == 1 and gmpy2.powmod(x, KEY.order_q << 32, KEY.q) != 1
    )
    for number in (0, int(n), int(n) + 1, int(KEY.p), outside, (1 << 512) - 1):
        assert KEY.decrypt(int(number).to_bytes(64, "big")) is None
    # Good modulo q and not modulo p: no digit is found.
    step = KEY.q * gmpy2.invert(KEY.q, KEY.p)
    half = next(
        c for x in range(2, 1000)
        if gmpy2.jacobi(c := (1 + (x - 1) * step) % n, n) == 1 and gmpy2.powmod(c, KEY.order_p << 32, KEY.p) != 1
    )  # fmt: skip
    assert half % KEY.q == 1 and KEY.decrypt(int(half).to_bytes(64, "big")) is None
    rows = np.stack([np.zeros(64, np.uint8), KEY.public.encrypt_words(np.array([3], np.uint64), stream())[0]])
    assert KEY.decrypt_rows(rows)[1].tolist() == [False, True]
    with pytest.raises(ProtocolViolation, match="shuffler_2"):
        KEY.public.check_rows(rows, "shuffler_2")
    KEY.public.check_rows(rows[1:], "shuffler_2")
    with pytest.raises(ProtocolViolation):
        KEY.public.check_rows(rows[1:, :63], "shuffler_2")


def test_keys_are_stored_and_read():
    again = DgkPrivateKey.from_json(json.loads(json.dumps(KEY.to_json())))
    assert again.decrypt(KEY.public.encrypt(77, ReplayCoins(b"x"))) == 77
    assert str(int(KEY.p)) not in repr(again)
    public = DgkPublicKey.from_json(KEY.public.to_json())
    assert (public.n, public.g, public.h) == (KEY.public.n, KEY.public.g, KEY.public.h)
    for wrong in ({}, {**KEY.public.to_json(), "n": "xyz"}):
        with pytest.raises(InvalidSpec, match="lacks fields"):
            DgkPublicKey.from_json(wrong)
    other = draw_dgk_key(ReplayCoins(b"other"), SMALL)
    with pytest.raises(InvalidSpec, match="does not belong"):
        DgkPrivateKey(KEY.p, KEY.q, KEY.order_p, KEY.order_q, other.public)


@pytest.mark.parametrize("sizes", [(512, 64, 256), (510, 32, 64), (512, 12, 64), (512, 72, 64)])
def test_sizes_without_room_are_refused(sizes: tuple[int, int, int]):
    with pytest.raises(InvalidSpec, match="leave"):
        DgkParameters(*sizes)


def test_the_stored_key_of_full_size_works():
    key = DgkPrivateKey.from_json(STORED)
    assert key.public.parameters == DgkParameters() and key.public.width == 384
    words = np.array([0, (1 << 64) - 1, 0x0123456789ABCDEF], np.uint64)
    rows = key.public.add_words(key.public.encrypt_words(words, stream()), np.array([0, 1, 1], np.uint64), stream(1))
    got, opened = key.decrypt_rows(rows)
    assert opened.all() and got.tolist() == [0, 0, 0x0123456789ABCDF0]


@pytest.mark.slow
def test_a_fresh_key_of_full_size_works():
    key = draw_dgk_key(AesStream.from_system())
    assert key.public.n.bit_length() == 3072
    assert key.decrypt(key.public.encrypt(1 << 63, AesStream.from_system())) == 1 << 63


def test_without_gmpy2_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "gmpy2", None)
    dgk._gmp.cache_clear()
    with pytest.raises(MissingExtra, match=r"tacit\[shuffle\]"):
        draw_dgk_key(ReplayCoins(b"x"), SMALL)
    dgk._gmp.cache_clear()
