"""What a respondent does with a shuffled collection: verify its session, seal, send, seal again after an abort."""

from collections.abc import Callable
from dataclasses import replace
from time import time
from typing import Any

from tacit.client.ledger import LedgerEntry
from tacit.client.sealed.asking import Asking
from tacit.client.sealed.inclusion import Inclusion, is_aborted, look_up
from tacit.client.sealed.posting import SealedPost, token_of
from tacit.client.sealed.sealing import SealedReport, seal_report
from tacit.client.transport import Address, Outcome, Transport, Unreachable
from tacit.device.numbers.coins import Coins
from tacit.wire.document import Collection
from tacit.wire.sessions import AgreedSession, check_session, terms_of

Seal = Callable[[bytes], dict[str, Any]]
"""Seals a noisy report for a session that was verified; returns what the ledger keeps."""


class Sealer:
    """Seals and sends over a transport, with secure coins."""

    def __init__(self, transport: Transport, coins: Coins) -> None:
        """Use this network and these coins."""
        self._transport, self._coins = transport, coins
        self._asking = Asking(transport, coins)

    def session(self, collection: Collection, address: Address) -> Seal:
        """Fetch and verify the session that takes reports now; nothing is drawn if it is not as it must be."""
        return self._sealing(collection, self.agreed(collection, address))

    def agreed(self, collection: Collection, address: Address) -> AgreedSession:
        """The verified session of a collection; Unreachable if none takes reports now."""
        what = f"collection {collection.id}: a session that takes reports"
        agreed = check_session(collection, self._transport.fetch_json(address.session, what))
        # The device's clock may be wrong; then nothing is lost but the wait for a session that closes later.
        if agreed.session.closes <= time():
            raise Unreachable(f"{what} cannot be fetched (the last one has closed)")
        return agreed

    def _sealing(self, collection: Collection, agreed: AgreedSession) -> Seal:
        session, mechanism = agreed.session, collection.mechanism
        return lambda report: seal_report(session, mechanism, report, self._coins).to_json()

    def send(self, entry: LedgerEntry) -> Outcome:
        """Send the sealed bytes of an entry: the same at every attempt."""
        return SealedPost(self._transport, self._coins).send(_sealed(entry), token_of(entry.invitation))

    def renewed(
        self, entry: LedgerEntry, document: Callable[[], Collection], address: Address
    ) -> dict[str, Any] | None:
        """The same report sealed for another session, if that of the entry was aborted and there is one; else None."""
        try:
            collection = document()
            agreed = self.agreed(collection, address)
        except Unreachable:
            return None
        sealed = _sealed(entry)
        # Asked last, as it is a question to every shuffler; nearly always the session is still the same.
        if agreed.session.id == sealed.session or not is_aborted(terms_of(collection), sealed, self._asking):
            return None
        return self._sealing(collection, agreed)(bytes.fromhex(entry.report))

    def look_up(
        self, entry: LedgerEntry, document: Callable[[], Collection], address: Address
    ) -> tuple[Inclusion, dict[str, Any]]:
        """Whether the report of an entry took part, and what the ledger is to keep of it."""
        sealed = _sealed(entry)
        found, proof = look_up(document, sealed, address.transcript(sealed.session), self._asking)
        # What was certain once stays so, whoever cannot be reached later: such a report is never sealed again.
        return found, replace(sealed, proof=proof, took_part=sealed.took_part or found.took_part).to_json()


def _sealed(entry: LedgerEntry) -> SealedReport:
    assert entry.sealed is not None
    return SealedReport.from_json(entry.sealed)
