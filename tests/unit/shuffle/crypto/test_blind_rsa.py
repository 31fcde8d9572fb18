"""Blind signatures: signer and asker agree, the library for RSA agrees with both, and the signer learns nothing."""

import json
from collections import Counter
from math import gcd
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tacit.device.numbers.blind_rsa import (
    Blinding,
    BlindKey,
    blind,
    blind_with,
    cover,
    encode_pss,
    finalize,
    is_blind_signed,
)
from tacit.device.numbers.coins import ReplayCoins, SystemCoins
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.blind_signer import TOKEN_BITS, BlindSigner

VECTOR = Path(__file__).resolve().parents[4] / "spec" / "vectors" / "blind_rsa.json"
MESSAGE = b"type, nonce, challenge and key id"


@pytest.fixture(scope="module")
def signer() -> BlindSigner:
    """One key for all tests: drawing primes takes longer than everything else."""
    return BlindSigner.draw()


def signed(signer: BlindSigner, message: bytes = MESSAGE) -> bytes:
    """A signature as a device gets it."""
    blinding = blind(signer.public, message, SystemCoins())
    return finalize(signer.public, message, signer.sign(blinding.blinded), blinding)


def test_the_vector_of_the_draft_of_the_rfc_holds_at_every_step() -> None:
    vector = json.loads(VECTOR.read_text(encoding="utf-8"))
    p, q, exponent, inverse = (int(vector[name], 16) for name in ("p", "q", "exponent", "inverse"))
    message, salt, blinded, answer, signature = (
        bytes.fromhex(vector[name]) for name in ("message", "salt", "blinded", "answer", "signature")
    )
    private = pow(exponent, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(exponent, p * q)
    parts = rsa.rsa_crt_dmp1(private, p), rsa.rsa_crt_dmq1(private, q), rsa.rsa_crt_iqmp(p, q)
    signer = BlindSigner(rsa.RSAPrivateNumbers(p, q, private, *parts, public).private_key())
    encoded = int.from_bytes(encode_pss(message, salt, public.n.bit_length() - 1), "big")
    blinding = blind_with(signer.public, encoded, pow(inverse, -1, public.n))
    assert blinding == Blinding(blinded, inverse)
    assert signer.sign(blinded) == answer
    assert finalize(signer.public, message, answer, blinding) == signature


@pytest.mark.parametrize("bits", [1024, 1025, 1031, 1032, TOKEN_BITS])  # 1025: encodings are a byte shorter than n
def test_the_rsa_library_accepts_what_was_signed_blindly(bits: int) -> None:
    signer = BlindSigner.draw(bits)
    signature = signed(signer)
    public = rsa.RSAPublicNumbers(signer.public.exponent, signer.public.modulus).public_key()
    public.verify(signature, MESSAGE, padding.PSS(padding.MGF1(hashes.SHA384()), 48), hashes.SHA384())


def test_what_the_rsa_library_signs_is_accepted(signer: BlindSigner) -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=TOKEN_BITS)
    numbers = private.public_key().public_numbers()
    signature = private.sign(MESSAGE, padding.PSS(padding.MGF1(hashes.SHA384()), 48), hashes.SHA384())
    assert is_blind_signed(BlindKey(numbers.n, numbers.e), MESSAGE, signature)
    assert not is_blind_signed(signer.public, MESSAGE, signature)
    # A salt of another length is another scheme.
    shorter = private.sign(MESSAGE, padding.PSS(padding.MGF1(hashes.SHA384()), 32), hashes.SHA384())
    assert not is_blind_signed(BlindKey(numbers.n, numbers.e), MESSAGE, shorter)


def test_no_other_bytes_are_a_signature(signer: BlindSigner) -> None:
    signature = signed(signer)
    key = signer.public
    assert is_blind_signed(key, MESSAGE, signature)
    assert not is_blind_signed(key, MESSAGE + b"!", signature)
    for place in range(0, key.width, 16):
        changed = signature[:place] + bytes([signature[place] ^ 1]) + signature[place + 1 :]
        assert not is_blind_signed(key, MESSAGE, changed)
    # Shorter, longer, zero, and the same number plus n, which would be a second text of one signature.
    above = (int.from_bytes(signature, "big") + key.modulus).to_bytes(key.width + 1, "big")
    for other in (signature[1:], b"\x00" + signature, bytes(key.width), above, above[-key.width :], b""):
        assert not is_blind_signed(key, MESSAGE, other)


def test_a_key_survives_being_written(signer: BlindSigner) -> None:
    again = BlindSigner.load(signer.dump())
    assert again.public == signer.public
    assert is_blind_signed(signer.public, MESSAGE, signed(again))
    assert repr(signer) == "BlindSigner(bits=2048)"


def test_bytes_that_are_no_rsa_key_are_refused() -> None:
    other = ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(InvalidSpec, match="of another kind"):
        BlindSigner.load(other)
    with pytest.raises(InvalidSpec, match="no private key"):
        BlindSigner.load(b"key")


def test_the_signer_refuses_what_is_no_blinded_message(signer: BlindSigner) -> None:
    width, modulus = signer.public.width, signer.public.modulus
    for bad in (b"", bytes(width), bytes(width - 1) + b"\x01\x00", modulus.to_bytes(width, "big"), b"\xff" * width):
        with pytest.raises(ProtocolViolation, match="is a unit modulo n"):
            signer.sign(bad)


def test_a_wrong_answer_of_the_signer_is_not_used(signer: BlindSigner) -> None:
    blinding = blind(signer.public, MESSAGE, SystemCoins())
    answer = signer.sign(blinding.blinded)
    with pytest.raises(ProtocolViolation, match="no signature on what was blinded"):
        finalize(signer.public, MESSAGE + b"!", answer, blinding)
    with pytest.raises(ProtocolViolation, match="has 255 bytes, must have 256"):
        finalize(signer.public, MESSAGE, answer[1:], blinding)
    assert str(blinding.inverse) not in repr(blinding)


def test_keys_without_room_for_an_encoding_or_without_end_are_refused() -> None:
    odd = 2**1024 + 1
    moduli = [(modulus, 3) for modulus in (2**1024, 2**700 + 1, 0, -odd, 2**8192 + 1)]
    for modulus, exponent in (*moduli, (odd, 1), (odd, 4), (odd, -3), (odd, 2**64 + 1)):
        with pytest.raises(InvalidSpec, match=r"blind RSA: the (modulus|exponent)"):
            BlindKey(modulus, exponent)


def test_a_message_that_shares_a_factor_with_the_modulus_shows_a_broken_key() -> None:
    # 3 divides this modulus; of 64 salts about a third give such an encoding: none among 64 has probability 6e-12.
    key = BlindKey(3 * (2**1279 - 1), 65537)
    coins = ReplayCoins(b"salts")

    def is_refused() -> bool:
        try:
            blind(key, MESSAGE, coins)
        except ProtocolViolation:
            return True
        return False

    refused = [is_refused() for _ in range(64)]
    assert any(refused)
    assert not all(refused)


@pytest.mark.parametrize(("p", "q", "exponent"), [(11, 17, 3), (5, 23, 3), (13, 19, 5)])
def test_every_blinded_message_fits_every_token_equally_well(p: int, q: int, exponent: int) -> None:
    """The signer's view is uniform whatever is signed, by enumeration of all factors for all messages."""
    modulus = p * q
    units = [number for number in range(1, modulus) if gcd(number, modulus) == 1]
    private = pow(exponent, -1, (p - 1) * (q - 1))
    for encoded in units:
        seen = Counter(cover(encoded, factor, exponent, modulus) for factor in units)
        assert seen == Counter(units)
        # For any view and any finished token there is the one factor that connects them: all pairs are as likely.
        token = pow(encoded, private, modulus)
        for view in units:
            answer = pow(view, private, modulus)
            factor = answer * pow(token, -1, modulus) % modulus
            assert cover(encoded, factor, exponent, modulus) == view


def test_an_exponent_that_is_no_bijection_would_be_seen_by_the_enumeration() -> None:
    modulus, units = 11 * 17, [number for number in range(1, 187) if gcd(number, 187) == 1]
    # 5 divides 11 - 1, so fifth powers hit a fifth of the units, and views of different messages differ.
    views = {encoded: frozenset(cover(encoded, factor, 5, modulus) for factor in units) for encoded in units}
    assert len(set(views.values())) == 5


def test_blinding_twice_shows_two_unrelated_messages(signer: BlindSigner) -> None:
    first, second = (blind(signer.public, MESSAGE, SystemCoins()) for _ in range(2))
    assert first.blinded != second.blinded
    with pytest.raises(ProtocolViolation):
        finalize(signer.public, MESSAGE, signer.sign(first.blinded), Blinding(first.blinded, second.inverse))
