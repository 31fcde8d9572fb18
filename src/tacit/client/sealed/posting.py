"""Sending sealed parts to shufflers: straight, or all at once through a relay by Oblivious HTTP (RFC 9458).

Shufflers answer every upload with the same 202, so that nobody on the way learns what became of it. That a report took
part is therefore seen afterwards, by its slot (`inclusion`).
"""

from tacit.client.sealed.sealing import SealedPart, SealedReport
from tacit.client.transport import Outcome, Reply, Transport
from tacit.device.numbers.coins import Coins
from tacit.errors import OpenFailed, ReportRejected
from tacit.shuffle.crypto.bhttp import BinaryResponse
from tacit.shuffle.crypto.ohttp import ResponseOpener
from tacit.shuffle.protocol.relayed import encapsulate_body, pack, responses, upload_path
from tacit.wire.batch import invitation_hash

ACCEPTED = 202
UPLOAD_TYPE = "application/octet-stream"
_NO_ANSWER = "the relay did not bring an answer of the shuffler"


class SealedPost:
    """Uploads sealed reports over a transport; coins are for the keys of requests through a relay."""

    def __init__(self, transport: Transport, coins: Coins) -> None:
        """Send over this transport."""
        self._transport, self._coins = transport, coins

    def send(self, sealed: SealedReport, token: bytes = b"") -> Outcome:
        """Send every part; a report is sent when all shufflers have answered, else it stays pending.

        `token` admits to a collection by invitation, see `token_of`.
        """
        faults = self._relayed(sealed, token) if sealed.relay else self._straight(sealed, token)
        failed = [f"shuffler_{number}: {fault}" for number, fault in enumerate(faults, start=1) if fault]
        return Outcome("pending", "; ".join(failed)[:200]) if failed else Outcome("sent")

    def _straight(self, sealed: SealedReport, token: bytes) -> list[str]:
        """Send every part to its shuffler; returns what went wrong with each, or nothing."""
        # All parts are tried, also after one has failed, so that fewer are left for the next attempt.
        return [_fault(self._post(sealed, part, token).status) for part in sealed.parts]

    def _post(self, sealed: SealedReport, part: SealedPart, token: bytes) -> Reply:
        return self._transport.post(
            part.url + upload_path(sealed.session), bytes.fromhex(part.body) + token, UPLOAD_TYPE
        )

    def _relayed(self, sealed: SealedReport, token: bytes) -> list[str]:
        """Send all parts in one request to the relay; shufflers that have theirs already know it by its slot."""
        # Encapsulated afresh at every call, because a gateway may drop what it has seen; inside it is the same.
        pairs = [
            encapsulate_body(bytes.fromhex(part.key), sealed.session, bytes.fromhex(part.body) + token, self._coins)
            for part in sealed.parts
        ]
        reply = self._transport.post(f"{sealed.relay}/r", pack([sent for sent, _ in pairs]), UPLOAD_TYPE)
        answers = responses(reply.body)
        # A relay that missed some shufflers brings the answers of the others all the same.
        if reply.status not in (200, 503) or len(answers) != len(pairs):
            return [_NO_ANSWER if reply.status == 200 else _fault(reply.status)] * len(pairs)
        return [_answered(answer, waiting) for answer, (_, waiting) in zip(answers, pairs, strict=True)]


def token_of(invitation: str) -> bytes:
    """The token of an invitation; nothing if there is none."""
    return invitation_hash(invitation) if invitation else b""


def _answered(body: bytes, waiting: ResponseOpener) -> str:
    """What the shuffler behind a relay answered; only it can have sealed that."""
    try:
        status = BinaryResponse.from_bytes(waiting.open(body)).status
    except (OpenFailed, ReportRejected):
        return _NO_ANSWER
    return _fault(status)


def _fault(status: int) -> str:
    if status == ACCEPTED:
        return ""
    return f"status {status}" if status else "no reply"
