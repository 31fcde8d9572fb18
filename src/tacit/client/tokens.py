"""Redeeming an invitation for an anonymous token, before anything is drawn.

    draw nonce and blinding -> write to the ledger -> ask -> unblind, check -> write the token, erase the blinding

The collector signs what it cannot read, under the key that the document pins: everybody who verified the digest of the
document has the same key, so that no key marks anybody. Written before asking: whoever is interrupted asks again with
the same blinded message, and gets the same signature.
"""

import json
from typing import Any, cast

from tacit.client.ledger import Ledger
from tacit.client.transport import JSON_TYPE, Address, Transport, Unreachable, is_final
from tacit.device.numbers.blind_rsa import Blinding, BlindKey, blind, finalize
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, ProtocolViolation, TacitError
from tacit.wire.document import Collection
from tacit.wire.tokens import NONCE_BYTES, AnonymousToken, token_message


class TokenRefused(TacitError):
    """The collector signs no token for this invitation; nothing was drawn."""


class Redeemer:
    """Gets tokens for a device and keeps them in its ledger."""

    def __init__(self, ledger: Ledger, transport: Transport, coins: Coins) -> None:
        """Keep what is asked for in a ledger."""
        self._ledger, self._transport, self._coins = ledger, transport, coins

    def redeem(self, collection: Collection, address: Address, invitation: str) -> str:
        """The token of this device for a collection, asked for if there is none yet."""
        asked = self._asked(collection)
        if "token" in asked:
            return asked["token"]
        if not invitation:
            raise InvalidSpec(f"collection {collection.id}: takes reports with a token alone; an invitation gives one")
        answer = self._ask(collection, address, asked["blinded"], invitation)
        nonce, inverse = bytes.fromhex(asked["nonce"]), int(asked["inverse"], 16)
        blinding = Blinding(bytes.fromhex(asked["blinded"]), inverse)
        signature = finalize(_key(collection), token_message(collection.id, nonce), answer, blinding)
        token = AnonymousToken(nonce, signature).text
        # What could connect the token with the request is erased as soon as it is not needed.
        with self._ledger.change() as kept:
            kept.tokens[collection.id] = {"token": token}
        return token

    def _asked(self, collection: Collection) -> dict[str, Any]:
        """What this device asks for, the same at every attempt."""
        with self._ledger.change() as kept:
            if collection.id not in kept.tokens:
                nonce = self._coins.words(NONCE_BYTES // 8)
                blinding = blind(_key(collection), token_message(collection.id, nonce), self._coins)
                asked = {"nonce": nonce.hex(), "blinded": blinding.blinded.hex(), "inverse": f"{blinding.inverse:x}"}
                kept.tokens[collection.id] = asked
            return kept.tokens[collection.id]

    def _ask(self, collection: Collection, address: Address, blinded: str, invitation: str) -> bytes:
        body = json.dumps({"blinded": blinded}).encode()
        reply = self._transport.post(address.tokens, body, JSON_TYPE, {"Tacit-Invitation": invitation})
        value = reply.json()
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if reply.status in (200, 201) and isinstance(fields.get("signature"), str):
            try:
                return bytes.fromhex(fields["signature"])
            except ValueError:
                raise ProtocolViolation(f"collection {collection.id}: the signature is not hexadecimal") from None
        # What was asked for is forgotten only where the collector itself refuses for good: an earlier attempt may have
        # spent the invitation on it, and its reply be lost.
        if is_final(reply.status) and fields.get("title"):
            with self._ledger.change() as kept:
                kept.tokens.pop(collection.id, None)
            raise TokenRefused(f"collection {collection.id}: no token: {str(fields['title'])[:200]}; nothing was drawn")
        raise Unreachable(
            f"collection {collection.id}: no token now, and nothing was drawn; try again with the same invitation"
        )


def _key(collection: Collection) -> BlindKey:
    assert collection.tokens is not None
    return collection.tokens.public
