"""Questions to shufflers about a sealed report: straight, or through the relay that the report went through."""

from typing import Any, cast

from tacit.client.sealed.sealing import SealedReport
from tacit.client.transport import Reply, Transport, Unreachable
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, OpenFailed, ReportRejected
from tacit.shuffle.crypto.bhttp import BinaryResponse
from tacit.shuffle.crypto.ohttp import REQUEST_TYPE
from tacit.shuffle.protocol.relayed import encapsulate_question


class Asking:
    """Asks shufflers by their numbers; coins are for the keys of requests through a relay."""

    def __init__(self, transport: Transport, coins: Coins) -> None:
        """Ask over this transport."""
        self.transport, self._coins = transport, coins

    def ask(self, sealed: SealedReport, number: int, path: str) -> dict[str, Any] | None:
        """The JSON object at a path of a shuffler; None if it does not answer, or with something else."""
        answer = self._through_relay(sealed, number, path) if sealed.relay else self._straight(sealed, number, path)
        return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None

    def _straight(self, sealed: SealedReport, number: int, path: str) -> Any:
        try:
            return self.transport.fetch_json(sealed.shufflers[number - 1] + path, "what a shuffler is asked for")
        except (Unreachable, InvalidSpec):
            return None

    def _through_relay(self, sealed: SealedReport, number: int, path: str) -> Any:
        keys = sealed.keys or tuple(part.key for part in sealed.parts)
        # Without a key it stays unasked: a straight question would show the address that the relay hid.
        if number > len(keys):
            return None
        sent, waiting = encapsulate_question(bytes.fromhex(keys[number - 1]), path, self._coins)
        reply = self.transport.post(f"{sealed.relay}/r/{number}", sent, REQUEST_TYPE)
        if reply.status != 200:
            return None
        try:
            answer = BinaryResponse.from_bytes(waiting.open(reply.body))
        except (OpenFailed, ReportRejected):
            return None
        return Reply(answer.status, answer.content).json() if answer.status == 200 else None
