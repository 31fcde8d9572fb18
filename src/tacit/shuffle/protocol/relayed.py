"""Uploads through a relay: the part for one shuffler inside Oblivious HTTP, so that the shuffler sees no address.

A shuffler is its own gateway, under the key of the session document: a key that is fetched could be another one for
every respondent, and would be a name. Requests of a session have one size, and so have all responses, whatever became
of the upload. It needs the standard library and `crypto` alone.
"""

from tacit.device.numbers.coins import Coins
from tacit.shuffle.crypto.bhttp import BinaryRequest, BinaryResponse
from tacit.shuffle.crypto.ohttp import KeyConfig, ResponseOpener, encapsulate
from tacit.shuffle.protocol.sealing import ShuffleUpload, seal_key
from tacit.shuffle.protocol.session import ShuffleSession

ACCEPTED = BinaryResponse(202).to_bytes()
RESPONSE_BYTES = 16 + len(ACCEPTED) + 16
"""Of every response: nonce, padded message, tag."""


def gateway_config(public: bytes) -> KeyConfig:
    """The key of a shuffler as that of a gateway; its number is its first byte, so that no document has to say it."""
    return KeyConfig(public[0], public)


def upload_path(session: str) -> str:
    """Where uploads of a session go, at every shuffler."""
    return f"/s/{session}/uploads"


def encapsulate_upload(
    session: ShuffleSession, upload: ShuffleUpload, party: int, coins: Coins, *, token: bytes = b""
) -> tuple[bytes, ResponseOpener]:
    """The body for `/r/{party}` of a relay, and what opens the response, which is `ACCEPTED`."""
    content = upload.slot + upload.parts[party - 1] + token
    # The authority is always the same: a request says nothing that the session document does not.
    request = BinaryRequest("POST", "https", "shuffler", upload_path(session.id), {}, content)
    return encapsulate(gateway_config(seal_key(session, party)), request.to_bytes(), coins)
