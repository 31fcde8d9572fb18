"""What goes through a relay: uploads and questions inside Oblivious HTTP, so that shufflers see no address.

A shuffler is its own gateway, under the key of the session document: a key that is fetched could be another one for
every respondent, and would be a name. It needs the standard library and `crypto` alone.

    upload     all parts of a report travel in one request to the relay, each sealed for its shuffler (`pack`). Requests
               of a session have one size, and every response has RESPONSE_BYTES, whatever became of the upload
    question   whether a slot takes part, or how a session stands: requests of one size, answers of ANSWER_BYTES
"""

import re
from collections.abc import Sequence

from tacit.device.numbers.coins import Coins
from tacit.errors import ReportRejected
from tacit.shuffle.crypto.bhttp import BinaryRequest, BinaryResponse
from tacit.shuffle.crypto.ohttp import KeyConfig, ResponseOpener, encapsulate
from tacit.shuffle.protocol.sealing import ShuffleUpload, seal_key
from tacit.shuffle.protocol.session import ShuffleSession

ACCEPTED = BinaryResponse(202).to_bytes()
_SEALING_BYTES = 32
"""A nonce before a response, a tag behind it."""
RESPONSE_BYTES = _SEALING_BYTES + len(ACCEPTED)
"""Of every response to an upload."""
NO_RESPONSE = bytes(RESPONSE_BYTES)
"""In the place of a response that a gateway did not give; it never opens."""
_QUESTION_BYTES, _ANSWER_MESSAGE_BYTES = 256, 4096
ANSWER_BYTES = _SEALING_BYTES + _ANSWER_MESSAGE_BYTES
"""Of every answer to a question: a path through two hundred million slots fits."""
_LENGTH_BYTES = 2
_STATUS = re.compile(r"/s/([0-9a-f]{64})/status")
_PROOF = re.compile(r"/s/([0-9a-f]{64})/proof/([0-9a-f]{32})")


def gateway_config(public: bytes) -> KeyConfig:
    """The key of a shuffler as that of a gateway; its number is its first byte, so that no document has to say it.

    Every respondent of a session uses the same, so that a key never becomes a name.
    """
    return KeyConfig(public[0], public)


# Uploads.


def upload_path(session: str) -> str:
    """Where uploads of a session go, at every shuffler."""
    return f"/s/{session}/uploads"


def encapsulate_body(key: bytes, session: str, body: bytes, coins: Coins) -> tuple[bytes, ResponseOpener]:
    """The body of an upload for the shuffler with this key, and what opens the response, which is `ACCEPTED`."""
    # The authority is always the same: a request says nothing that the session document does not.
    request = BinaryRequest("POST", "https", "shuffler", upload_path(session), {}, body)
    return encapsulate(gateway_config(key), request.to_bytes(), coins)


def encapsulate_upload(
    session: ShuffleSession, upload: ShuffleUpload, party: int, coins: Coins, *, token: bytes = b""
) -> tuple[bytes, ResponseOpener]:
    """The part of an upload for one shuffler, and what opens the response."""
    content = upload.slot + upload.parts[party - 1] + token
    return encapsulate_body(seal_key(session, party), session.id, content, coins)


def pack(requests: Sequence[bytes]) -> bytes:
    """Several encapsulated requests as one body: each after its length, two bytes, most significant first.

    >>> unpack(pack([b"one", b"", b"three"]))
    [b'one', b'', b'three']
    """
    return b"".join(len(each).to_bytes(_LENGTH_BYTES, "big") + each for each in requests)


def unpack(body: bytes) -> list[bytes]:
    """The requests of a body; ReportRejected if it is cut off."""
    requests: list[bytes] = []
    place = 0
    while place < len(body):
        start = place + _LENGTH_BYTES
        place = start + int.from_bytes(body[place:start], "big")
        if place > len(body) or start > len(body):
            raise ReportRejected("relayed requests: the body is cut off")
        requests.append(body[start:place])
    return requests


def responses(body: bytes) -> list[bytes]:
    """The responses to packed requests, in their order."""
    return [body[i : i + RESPONSE_BYTES] for i in range(0, len(body), RESPONSE_BYTES)]


# Questions.


def status_path(session: str) -> str:
    """Where a shuffler says how a session stands."""
    return f"/s/{session}/status"


def proof_path(session: str, slot: str) -> str:
    """Where a shuffler shows that a slot takes part."""
    return f"/s/{session}/proof/{slot}"


def encapsulate_question(key: bytes, path: str, coins: Coins) -> tuple[bytes, ResponseOpener]:
    """A question to the shuffler with this key; all have one size, so that a relay cannot tell what is asked."""
    request = BinaryRequest("GET", "https", "shuffler", path)
    return encapsulate(gateway_config(key), request.to_bytes(multiple=_QUESTION_BYTES), coins)


def asked_status(path: str) -> str | None:
    """The session whose status a path asks for."""
    found = _STATUS.fullmatch(path)
    return found[1] if found else None


def asked_proof(path: str) -> tuple[str, str] | None:
    """Session and slot whose proof a path asks for."""
    found = _PROOF.fullmatch(path)
    return (found[1], found[2]) if found else None


def answer_message(status: int, content: bytes) -> bytes:
    """An answer, padded to the size of all answers."""
    message = BinaryResponse(status, {}, content).to_bytes(multiple=_ANSWER_MESSAGE_BYTES)
    # What does not fit would have a size of its own; nothing that is asked for here is so long.
    return message if len(message) == _ANSWER_MESSAGE_BYTES else answer_message(500, b"")
