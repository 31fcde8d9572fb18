"""Sending sealed parts to shufflers: straight, or through a relay by Oblivious HTTP (RFC 9458).

Shufflers answer every upload with the same 202, so that nobody on the way learns what became of it. That a report took
part is therefore seen afterwards, by its slot (`inclusion`).
"""

from tacit.client.sealed.sealing import SealedPart, SealedReport
from tacit.client.transport import Outcome, Transport
from tacit.device.numbers.coins import Coins
from tacit.errors import OpenFailed, ReportRejected
from tacit.shuffle.crypto.bhttp import BinaryRequest, BinaryResponse
from tacit.shuffle.crypto.ohttp import REQUEST_TYPE, KeyConfig, ResponseOpener, encapsulate
from tacit.wire.batch import invitation_hash

ACCEPTED = 202
UPLOAD_TYPE = "application/octet-stream"


def gateway_key(public: bytes) -> KeyConfig:
    """The key of a shuffler's gateway: the one that the session names, whose number is its first byte.

    Every respondent of a session uses the same, so that a key never becomes a name.
    """
    return KeyConfig(public[0], public)


class SealedPost:
    """Uploads sealed reports over a transport; coins are for the keys of requests through a relay."""

    def __init__(self, transport: Transport, coins: Coins) -> None:
        """Send over this transport."""
        self._transport, self._coins = transport, coins

    def send(self, sealed: SealedReport, token: bytes = b"") -> Outcome:
        """Send every part; a report is sent when all shufflers have answered, else it stays pending.

        `token` admits to a collection by invitation, see `token_of`.
        """
        # All parts are tried, also after one has failed, so that fewer are left for the next attempt.
        failed = [
            f"shuffler_{number}: {fault}"
            for number, part in enumerate(sealed.parts, start=1)
            if (fault := self._send_part(sealed, number, part, token))
        ]
        return Outcome("pending", "; ".join(failed)[:200]) if failed else Outcome("sent")

    def _send_part(self, sealed: SealedReport, number: int, part: SealedPart, token: bytes) -> str:
        """Send one part; returns what went wrong, or nothing."""
        body, path = bytes.fromhex(part.body) + token, f"/s/{sealed.session}/uploads"
        if sealed.relay:
            return self._through_relay(f"{sealed.relay}/r/{number}", path, part.key, body)
        reply = self._transport.post(part.url + path, body, UPLOAD_TYPE)
        return "" if reply.status == ACCEPTED else _fault(reply.status)

    def _through_relay(self, relay: str, path: str, key: str, body: bytes) -> str:
        # The same for every shuffler and client, so that sizes tell nothing but the mode.
        request = BinaryRequest("POST", "https", "shuffler", path, content=body)
        # Encapsulated afresh at every attempt, because a gateway may drop what it has seen; inside it is the same.
        sent, waiting = encapsulate(gateway_key(bytes.fromhex(key)), request.to_bytes(), self._coins)
        reply = self._transport.post(relay, sent, REQUEST_TYPE)
        return _answered(reply.body, waiting) if 200 <= reply.status < 300 else _fault(reply.status)


def token_of(invitation: str) -> bytes:
    """The token of an invitation; nothing if there is none."""
    return invitation_hash(invitation) if invitation else b""


def _answered(body: bytes, waiting: ResponseOpener) -> str:
    """What the shuffler behind a relay answered; only it can have sealed that."""
    try:
        status = BinaryResponse.from_bytes(waiting.open(body)).status
    except (OpenFailed, ReportRejected):
        return "the relay did not bring an answer of the shuffler"
    return "" if status == ACCEPTED else _fault(status)


def _fault(status: int) -> str:
    return f"status {status}" if status else "no reply"
