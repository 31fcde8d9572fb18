"""The one public hash of Tacit: seeded, 32 bits, two multiplications per value, no linear structure.

The value is spread by a fixed bijection (computed once per candidate), then two words of the seed enter before
and between two multiplications: a plain XOR of seed and value before one mixer leaves pairs of values whose
collision rate is off by several per cent. The upper half of a 64-bit value is mixed with the seed itself, so
nothing is folded before it is seeded. Buckets are ranges of the hash, (h * g) >> 32, which kernels test without
a division. C, numpy and JavaScript (`Math.imul`) have the same function, held together by golden vectors.
"""

from hashlib import sha256
from unicodedata import normalize

_MASK = 0xFFFFFFFF


def mix32(x: int) -> int:
    """A bijection of 32-bit words in which every input bit reaches every output bit (Murmur3's finaliser)."""
    x ^= x >> 16
    x = x * 0x85EBCA6B & _MASK
    x ^= x >> 13
    x = x * 0xC2B2AE35 & _MASK
    return x ^ x >> 16


def hash32(seed: int, value: int) -> int:
    """The seeded hash of a value below 2^64."""
    first = mix32(seed ^ value >> 32)
    second = mix32(first + 0x9E3779B9 & _MASK)
    x = (mix32(value & _MASK) ^ first) * 0x85EBCA6B & _MASK
    return (x ^ x >> 15 ^ second) * 0xC2B2AE35 & _MASK


def bucket(seed: int, value: int, buckets: int) -> int:
    """The bucket of a value among `buckets` ranges of its hash."""
    return hash32(seed, value) * buckets >> 32


def row_seed(key: int, row: int) -> int:
    """The seed of public hash function number `row` of a collection with public key `key`."""
    return hash32(key, row)


def text_id(key: str, text: str) -> int:
    """The 64-bit id of a free string: SHA-256 under a public key, so that ids of two collections differ."""
    tagged = b"tacit-text-1\0" + key.encode() + b"\0" + normalize("NFC", text).encode()
    return int.from_bytes(sha256(tagged).digest()[:8], "little")


def labelled(label: bytes, *parts: bytes) -> bytes:
    """A message for a keyed hash: a label that no other use has, then every part with its length in front.

    The lengths keep two lists of parts from running together into the same bytes.
    """
    return label + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
