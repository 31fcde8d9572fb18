"""Blind RSA signatures (RFC 9474), the half of who asks for a signature: blind, finalize, verify.

The variant is RSABSSA-SHA384-PSS-Deterministic, which RFC 9578, section 6, asks for in publicly verifiable tokens (type
0x0002). The signer sees a blinded message that is uniform over the units modulo n whatever the message is, so nothing
that it keeps tells it later which of its signatures a signed message carries. The signer's half is
`tacit.shuffle.crypto.blind_signer`; the twin in JavaScript is `js/src/sealed/blind_rsa.js`.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> key = BlindKey(modulus=(2**521 - 1) * (2**607 - 1), exponent=65537)
    >>> blinding = blind(key, b"message", ReplayCoins(b"blinding"))
    >>> private = pow(key.exponent, -1, (2**521 - 2) * (2**607 - 2))
    >>> answer = pow(int.from_bytes(blinding.blinded, "big"), private, key.modulus).to_bytes(key.width, "big")
    >>> is_blind_signed(key, b"message", finalize(key, b"message", answer, blinding))
    True
"""

import hmac
from dataclasses import dataclass, field
from hashlib import sha384
from math import gcd

from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, ProtocolViolation

SALT_BYTES = 48
"""The salt is as long as the hash (RFC 9474, section 5)."""
MOST_BITS, MOST_EXPONENT_BITS = 8192, 64
"""Of a modulus, and of an exponent, which is 65537 nearly everywhere: work grows with their product."""
_HASH_BYTES = 48
_TRAILER = b"\xbc"


@dataclass(frozen=True)
class BlindKey:
    """The public key of a signer."""

    modulus: int
    exponent: int

    def __post_init__(self) -> None:
        """Refuse keys under which no message has an encoding, and those that would keep a device busy."""
        # EMSA-PSS (RFC 8017, section 9.1.1, step 3) needs room for hash, salt and two bytes.
        least = 8 * (_HASH_BYTES + SALT_BYTES + 2)
        bits = self.modulus.bit_length()
        if self.modulus % 2 == 0 or self.modulus < 0 or not least <= bits <= MOST_BITS:
            rule = f"positive, odd and have at least {least} and at most {MOST_BITS}"
            raise InvalidSpec(f"blind RSA: the modulus has {bits} bits, must be {rule}")
        if not 3 <= self.exponent < 1 << MOST_EXPONENT_BITS or self.exponent % 2 == 0:
            raise InvalidSpec(f"blind RSA: the exponent must be odd, at least 3 and below 2^{MOST_EXPONENT_BITS}")

    @property
    def width(self) -> int:
        """Bytes of a signature."""
        return (self.modulus.bit_length() + 7) // 8


@dataclass(frozen=True)
class Blinding:
    """A message that was blinded, and what removes the blinding; the inverse never leaves the device."""

    blinded: bytes
    inverse: int = field(repr=False)


def blind(key: BlindKey, message: bytes, coins: Coins) -> Blinding:
    """Blind a message with fresh coins (RFC 9474, section 4.2)."""
    encoded = int.from_bytes(encode_pss(message, coins.words(SALT_BYTES // 8), key.modulus.bit_length() - 1), "big")
    if gcd(encoded, key.modulus) != 1:
        raise ProtocolViolation("blind RSA: the message is no unit modulo n; the key is broken, do not take part")
    factor = _unit(key.modulus, coins)
    return blind_with(key, encoded, factor)


def blind_with(key: BlindKey, encoded: int, factor: int) -> Blinding:
    """Blind an encoded message by a unit modulo n, which is drawn once and used once."""
    blinded = cover(encoded, factor, key.exponent, key.modulus)
    return Blinding(blinded.to_bytes(key.width, "big"), pow(factor, -1, key.modulus))


def cover(encoded: int, factor: int, exponent: int, modulus: int) -> int:
    """What the signer sees of an encoded message: for every message each unit modulo n, by exactly one factor."""
    return encoded * pow(factor, exponent, modulus) % modulus


def finalize(key: BlindKey, message: bytes, answer: bytes, blinding: Blinding) -> bytes:
    """Remove the blinding from the signer's answer and check the signature (RFC 9474, section 4.4)."""
    if len(answer) != key.width:
        raise ProtocolViolation(f"blind RSA: the signer's answer has {len(answer)} bytes, must have {key.width}")
    signature = int.from_bytes(answer, "big") * blinding.inverse % key.modulus
    signed = signature.to_bytes(key.width, "big")
    if not is_blind_signed(key, message, signed):
        raise ProtocolViolation("blind RSA: the signer's answer is no signature on what was blinded; do not use it")
    return signed


def is_blind_signed(key: BlindKey, message: bytes, signature: bytes) -> bool:
    """Whether this is the signature of the key's holder on the message (RSASSA-PSS-VERIFY, RFC 8017, section 8.1.2)."""
    number = int.from_bytes(signature, "big")
    if len(signature) != key.width or number >= key.modulus:
        return False
    bits = key.modulus.bit_length() - 1
    opened = pow(number, key.exponent, key.modulus)
    # The encoding has one bit less than the modulus, and a byte less where that makes a whole number of bytes.
    return opened.bit_length() <= bits and _fits(message, opened.to_bytes((bits + 7) // 8, "big"), bits)


def encode_pss(message: bytes, salt: bytes, bits: int) -> bytes:
    """EMSA-PSS-ENCODE with SHA-384 and MGF1 (RFC 8017, section 9.1.1), for encodings of so many bits."""
    length = (bits + 7) // 8
    digest = _salted(message, salt)
    block = bytes(length - len(salt) - _HASH_BYTES - 2) + b"\x01" + salt
    masked = _keep(_xor(block, _mask(digest, len(block))), 8 * length - bits)
    return masked + digest + _TRAILER


def _fits(message: bytes, encoded: bytes, bits: int) -> bool:
    """EMSA-PSS-VERIFY (RFC 8017, section 9.1.2)."""
    spare = 8 * len(encoded) - bits
    masked, digest = encoded[: -_HASH_BYTES - 1], encoded[-_HASH_BYTES - 1 : -1]
    block = _keep(_xor(masked, _mask(digest, len(masked))), spare)
    salt = block[-SALT_BYTES:]
    framed = block[:-SALT_BYTES] == bytes(len(block) - SALT_BYTES - 1) + b"\x01"
    whole = encoded.endswith(_TRAILER) and _keep(masked, spare) == masked
    return framed and whole and hmac.compare_digest(digest, _salted(message, salt))


def _salted(message: bytes, salt: bytes) -> bytes:
    """The hash that an encoding holds."""
    return sha384(bytes(8) + sha384(message).digest() + salt).digest()


def _mask(seed: bytes, length: int) -> bytes:
    """MGF1 with SHA-384 (RFC 8017, appendix B.2.1)."""
    rounds = range(-(-length // _HASH_BYTES))
    return b"".join(sha384(seed + number.to_bytes(4, "big")).digest() for number in rounds)[:length]


def _xor(left: bytes, right: bytes) -> bytes:
    """Two strings of one length, bit by bit."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _keep(data: bytes, spare: int) -> bytes:
    """The data without its first `spare` bits, which become zero."""
    return bytes([data[0] & (255 >> spare)]) + data[1:]


def _unit(modulus: int, coins: Coins) -> int:
    """A uniform unit modulo n, by rejection: cutting a longer number down would favour small ones."""
    bits = modulus.bit_length()
    while True:
        drawn = int.from_bytes(coins.words(-(-bits // 64)), "big") & ((1 << bits) - 1)
        if 0 < drawn < modulus and gcd(drawn, modulus) == 1:
            return drawn
