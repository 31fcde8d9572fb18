"""Anonymous tokens: the field `tokens` of a document, and the token that goes along with a report.

A token is a nonce that the device drew and the issuer's blind signature on it and on the collection (decision 0065).
Standard library only: devices make tokens, and collectors check them.
"""

import re
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from tacit.device.numbers.blind_rsa import BlindKey, is_blind_signed
from tacit.errors import InvalidSpec
from tacit.wire.fields import stated_fields

NONCE_BYTES, SIGNATURE_BYTES = 32, 256
EXPONENT = 65537
KEY = r"[89a-f][0-9a-f]{510}[13579bdf]"
"""The modulus of an issuer's key: 2048 bits, of which the first and the last are set, in hexadecimal."""
TOKEN_MOST = 400
"""More characters than a token, or an invitation, has."""
_PREFIX = "tok_"
_TOKEN = re.compile(r"tok_[A-Za-z0-9_-]{384}")
_LABEL = b"tacit token\0"


@dataclass(frozen=True)
class TokenTerms:
    """The public key under which tokens of a collection are signed; the same one for everybody who has its address."""

    key: str

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read `document.tokens`."""
        given = stated_fields(value, "document.tokens", ("key",))
        if not isinstance(given["key"], str) or not re.fullmatch(KEY, given["key"]):
            raise InvalidSpec("document.tokens.key must be an odd modulus of 2048 bits, 512 hexadecimal digits")
        return cls(given["key"])

    @classmethod
    def of(cls, key: BlindKey) -> Self:
        """The terms for a key that was drawn for a collection."""
        return cls.from_json({"key": f"{key.modulus:0512x}"})

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        return {"key": self.key}

    @property
    def public(self) -> BlindKey:
        """The key that signatures are checked with."""
        return BlindKey(modulus=int(self.key, 16), exponent=EXPONENT)


@dataclass(frozen=True)
class AnonymousToken:
    """A nonce and its signature."""

    nonce: bytes
    signature: bytes

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The token of a text; None if it is none."""
        if not _TOKEN.fullmatch(text):
            return None
        data = b64decode(text.removeprefix(_PREFIX), altchars=b"-_")
        return cls(data[:NONCE_BYTES], data[NONCE_BYTES:])

    @property
    def text(self) -> str:
        """The text that is sent in the place of an invitation."""
        return _PREFIX + urlsafe_b64encode(self.nonce + self.signature).decode()

    @property
    def spent(self) -> bytes:
        """The hash that is kept of a token once it came with a report."""
        return sha256(b"token:" + self.nonce).digest()

    def is_signed(self, collection: str, terms: TokenTerms) -> bool:
        """Whether the issuer of a collection signed this token for it."""
        return is_blind_signed(terms.public, token_message(collection, self.nonce), self.signature)


def token_message(collection: str, nonce: bytes) -> bytes:
    """The message that is signed: a nonce and the id of the collection."""
    return _LABEL + bytes.fromhex(collection) + nonce


_EXCLUDED = {
    "shuffle": "its shufflers admit reports by invitations",
    "windows": "a token is for one report",
    "plan": "every round would need a key of its own, which no document of an earlier round can pin",
}


def check_tokens(document: Any) -> None:
    """Refuse tokens where they admit to nothing; `document` is a `Collection`, whose module imports this one."""
    if document.tokens is None:
        return
    if not document.invitations:
        raise InvalidSpec("document.invitations must be true where there are tokens: an invitation is redeemed for one")
    for name, why in _EXCLUDED.items():
        if getattr(document, name) is not None:
            raise InvalidSpec(f"document.{name} must be null where there are tokens: {why}")
