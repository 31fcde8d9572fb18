"""Ed25519 signatures on canonical JSON.

What is signed is a label that names the purpose, a zero byte, and the canonical form of the document, so that a
signature on one kind of statement can never be shown as one on another.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> identity = Identity.draw(ReplayCoins(b"identity"))
    >>> signature = identity.sign("note", {"erased": True})
    >>> is_signed(identity.public, "note", {"erased": True}, signature)
    True
    >>> is_signed(identity.public, "ack", {"erased": True}, signature)
    False
"""

import re
from collections.abc import Mapping
from typing import Any, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.device.numbers.canonical import canonical
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, ProtocolViolation

_KEY_BYTES = 32
_SIGNATURE = re.compile(r"[0-9a-f]{128}")


def signed_bytes(label: str, document: Any) -> bytes:
    """The bytes that a signature is on."""
    return b"tacit " + label.encode() + b"\x00" + canonical(document)


class Identity:
    """A private Ed25519 key and its public half: who a party is, for as long as its operator runs it."""

    def __init__(self, private: bytes) -> None:
        """Hold 32 secret bytes."""
        if len(private) != _KEY_BYTES:
            raise InvalidSpec(f"ed25519: a private key has {_KEY_BYTES} bytes, not {len(private)}")
        self._key = Ed25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return f"Identity(public={self.public.hex()})"

    @classmethod
    def draw(cls, coins: Coins) -> Self:
        """Draw a new identity key."""
        return cls(coins.words(_KEY_BYTES // 8))

    def sign(self, label: str, document: Any) -> str:
        """The signature on a document, in hexadecimal."""
        return self._key.sign(signed_bytes(label, document)).hex()


def is_signed(public: bytes, label: str, document: Any, signature: str) -> bool:
    """Whether a signature is by the holder of `public`, on this document, for this purpose."""
    # One text per signature: blanks or capitals would change the hash of a transcript that says the same.
    if not _SIGNATURE.fullmatch(signature):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(bytes.fromhex(signature), signed_bytes(label, document))
    # A malformed key or signature is no signature, and nothing more is said about it.
    except (InvalidSignature, ValueError):
        return False
    return True


def check_signature(pinned: Mapping[str, bytes], who: str, label: str, document: Any, signature: str) -> None:
    """Raise ProtocolViolation unless `who` signed, by the key that is pinned for that party."""
    if who not in pinned:
        raise ProtocolViolation(f"{label}: {who} has no pinned key; pin the keys of all parties before taking part")
    # The key is the pinned one, never one that came with the document: that would prove nothing.
    if not is_signed(pinned[who], label, document, signature):
        raise ProtocolViolation(f"{label}: the signature of {who} is not by its pinned key; do not take part")
