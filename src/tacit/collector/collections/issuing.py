"""The issuer of anonymous tokens: a key per collection, one blind signature for one invitation.

The issuer sees an invitation and a blinded message, and keeps the hashes of both; the collector sees a token with a
report, and keeps the hash of its nonce. Nothing that is kept in one place is in the other (decision 0065).
"""

import re
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from math import gcd
from typing import TYPE_CHECKING, Any

from tacit.collector.collections.active import Active
from tacit.collector.ports import CLOSED, DUPLICATE, SPENT, Store
from tacit.core.extras import need
from tacit.hosting.problems import Problem
from tacit.wire.batch import invitation_hash
from tacit.wire.tokens import SIGNATURE_BYTES, TokenTerms

if TYPE_CHECKING:
    from tacit.shuffle.crypto.blind_signer import BlindSigner

_BLINDED = re.compile(rf"[0-9a-f]{{{2 * SIGNATURE_BYTES}}}")


def draw_issuer() -> tuple[TokenTerms, bytes]:
    """A new key for a collection: its public half for the document, and its private half."""
    need("shuffle")
    from tacit.shuffle.crypto.blind_signer import BlindSigner

    signer = BlindSigner.draw()
    return TokenTerms.of(signer.public), signer.dump()


@lru_cache(maxsize=64)
def _signer(secret: bytes) -> "BlindSigner":
    """The signer of a private key; kept, because loading checks the key, which takes longer than signing."""
    from tacit.shuffle.crypto.blind_signer import BlindSigner

    return BlindSigner.load(secret)


class Issuing:
    """Signs tokens for those who were invited, without seeing the tokens."""

    def __init__(self, store: Store) -> None:
        """Work on a store."""
        self._store = store

    def sign(self, active: Active, blinded: Any, invitation: str, *, trusted: bool = False) -> tuple[str, bool]:
        """A blind signature for an invitation, or for an operator; and whether the same was asked for before.

        The same message for the same invitation is signed again, so that whoever lost the reply loses nothing.
        """
        terms = self._need_tokens(active)
        if not isinstance(blinded, str) or not _BLINDED.fullmatch(blinded):
            digits = 2 * SIGNATURE_BYTES
            raise Problem("malformed", f"tokens: blinded must be {digits} lower-case hexadecimal digits")
        if not invitation and not trusted:
            raise Problem("invitation", "a token is signed for an invitation; send the one you were given")
        message = bytes.fromhex(blinded)
        # Before anything is spent on what cannot be signed.
        if gcd(int(blinded, 16), modulus := int(terms.key, 16)) != 1 or int(blinded, 16) >= modulus:
            raise Problem("malformed", "tokens: blinded must be a unit modulo the key of the document; blind it again")
        spends = invitation_hash(invitation) if invitation else b""
        return self._signed(active.id, message, spends)

    def numbers(self, active: Active) -> dict[str, int]:
        """How many tokens were signed, and how many came with reports; Problem `conflict` where none are asked for."""
        self._need_tokens(active)
        return asdict(self._store.issuing.numbers(active.id))

    def _need_tokens(self, active: Active) -> TokenTerms:
        if active.collection.tokens is None:
            raise Problem("conflict", "the collection takes reports without tokens; publish one with tokens: true")
        return active.collection.tokens

    def _signed(self, collection: str, message: bytes, spends: bytes) -> tuple[str, bool]:
        secret = self._store.issuing.key(collection)
        # Spent before it is signed: a crash in between costs a repeated request, and never gives two signatures.
        outcome = CLOSED if secret is None else self._store.issuing.issue(collection, sha256(message).digest(), spends)
        if secret is None or outcome == CLOSED:
            raise Problem("closed", "the collection is closed and takes no more reports")
        if outcome == SPENT:
            raise Problem("invitation", "the invitation is unknown or was redeemed for another token")
        return _signer(secret).sign(message).hex(), outcome == DUPLICATE
