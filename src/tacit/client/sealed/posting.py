"""Sending sealed parts to shufflers: straight, or through a relay by Oblivious HTTP (RFC 9458).

Shufflers answer every upload with the same 202, so that nobody on the way learns what became of it. That a report took
part is therefore seen afterwards, by its slot (`inclusion`).
"""

from urllib.parse import urlsplit

from tacit.client.sealed.sealing import SealedPart, SealedReport
from tacit.client.transport import Outcome, Transport
from tacit.device.numbers.coins import Coins
from tacit.errors import OpenFailed, ReportRejected
from tacit.shuffle.crypto.bhttp import BinaryRequest, BinaryResponse
from tacit.shuffle.crypto.ohttp import REQUEST_TYPE, KeyConfig, ResponseOpener, encapsulate
from tacit.wire.batch import invitation_hash

ACCEPTED = 202
UPLOAD_TYPE = "application/octet-stream"
GATEWAY_KEY_ID = 1
"""A session names one key per shuffler, so that there is no choice of which a relay could make a name."""


class SealedPost:
    """Uploads sealed reports over a transport; coins are for the keys of requests through a relay."""

    def __init__(self, transport: Transport, coins: Coins) -> None:
        """Send over this transport."""
        self._transport, self._coins = transport, coins

    def send(self, sealed: SealedReport, invitation: str = "") -> Outcome:
        """Send every part; a report is sent when all shufflers have answered, else it stays pending."""
        token = invitation_hash(invitation) if invitation else b""
        failed = [
            f"shuffler_{number}: {fault}"
            for number, part in enumerate(sealed.parts, start=1)
            if (fault := self._send_part(sealed, number, part, token))
        ]
        return Outcome("pending", "; ".join(failed)[:200]) if failed else Outcome("sent")

    def _send_part(self, sealed: SealedReport, number: int, part: SealedPart, token: bytes) -> str:
        """Send one part; returns what went wrong, or nothing."""
        body, address = bytes.fromhex(part.body) + token, f"{part.url}/s/{sealed.session}/uploads"
        if sealed.relay:
            return self._through_relay(f"{sealed.relay}/r/{number}", address, part, body)
        reply = self._transport.post(address, body, UPLOAD_TYPE)
        return "" if reply.status == ACCEPTED else _fault(reply.status)

    def _through_relay(self, relay: str, address: str, part: SealedPart, body: bytes) -> str:
        place = urlsplit(address)
        request = BinaryRequest("POST", place.scheme, place.netloc, place.path, {"content-type": UPLOAD_TYPE}, body)
        # Encapsulated afresh at every attempt, because a gateway drops what it has seen; what is inside is the same.
        config = KeyConfig(GATEWAY_KEY_ID, bytes.fromhex(part.key))
        sent, waiting = encapsulate(config, request.to_bytes(), self._coins)
        reply = self._transport.post(relay, sent, REQUEST_TYPE)
        return _answered(reply.body, waiting) if 200 <= reply.status < 300 else _fault(reply.status)


def _answered(body: bytes, waiting: ResponseOpener) -> str:
    """What the shuffler behind a relay answered; only it can have sealed that."""
    try:
        status = BinaryResponse.from_bytes(waiting.open(body)).status
    except (OpenFailed, ReportRejected):
        return "the relay did not bring an answer of the shuffler"
    return "" if status == ACCEPTED else _fault(status)


def _fault(status: int) -> str:
    return f"status {status}" if status else "no reply"
