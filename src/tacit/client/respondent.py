"""One person on one device: answer a collection once, and send the noisy report until the collector has it.

    answer = encode -> perturb -> write to the ledger (PENDING) -> send -> note the outcome

Reports of a shuffled collection are sealed between perturbing and writing, for a session that was verified before
anything was drawn, and are sent to its shufflers. `client.sealed` does that, and is loaded only then.

`client.ledger` explains why writing comes before sending. The true answer exists only inside `_record`.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

from tacit.client.ledger import HELD, PENDING, Kept, Ledger, LedgerEntry, Receipt, Spending
from tacit.client.tokens import Redeemer
from tacit.client.transport import JSON_TYPE, Address, Transport
from tacit.client.windows import WindowedCollection
from tacit.device.kinds.memo import KEY_BYTES, MemoizedDevice, Memory
from tacit.device.numbers.coins import Coins, SystemCoins
from tacit.device.windows.account import DevicePolicy
from tacit.errors import InvalidSpec, InvalidValue, MissingExtra
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id
from tacit.wire.document import Collection

if TYPE_CHECKING:
    from tacit.client.sealed.inclusion import Inclusion
    from tacit.client.sealed.sealer import Sealer


class Respondent:
    """Fetches and verifies documents, perturbs once with the operating system's entropy, and keeps a ledger.

    `store` is the path of the ledger, or a `Ledger`; without one the ledger lives in memory and is forgotten.
    """

    def __init__(
        self,
        store: "Ledger | str | os.PathLike[str] | None" = None,
        *,
        coins: Coins | None = None,
        transport: Transport | None = None,
        policy: DevicePolicy | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Set up ledger and transport; InvalidSpec for coins that somebody could predict, such as seeded ones."""
        self._coins = coins or SystemCoins()
        if not self._coins.secure:
            raise InvalidSpec(f"coins: {type(self._coins).__name__} are not secure; real reports need SystemCoins")
        self._ledger = store if isinstance(store, Ledger) else Ledger(store, clock=clock)
        self._policy, self._clock = policy, clock
        self._transport = transport or Transport()

    def open(self, url: str) -> Collection:
        """Fetch a document and verify that its digest is the one in the address."""
        address = Address.parse(url)
        return _verified(Collection.from_json(self._transport.fetch(address)), address)

    def answer(
        self,
        where: "str | Collection",
        answers: Mapping[str, Any],
        *,
        collector: str = "",
        invitation: str = "",
        row: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Answer a collection: perturb once, remember the noisy bytes, send them.

        `where` is the address of the collection, or a document that was opened before together with the address of
        its `collector`. `row` holds the public columns of a collection that takes them along; those that are left
        out are null, and they are sent as they are. A report that cannot be sent now stays pending until `flush`. A
        second answer raises `AlreadyAnswered`, which carries the receipt of the first, unless the mechanism memoises.
        """
        return self._send(self._record(self._find(where, collector), answers, row, invitation)).receipt

    def join(self, where: "str | Collection", *, collector: str = "") -> WindowedCollection:
        """Take part in a collection that asks again and again: call `tick(value)` of the result once a day."""
        document, address = self._find(where, collector)
        return WindowedCollection(
            document, address.base, self._ledger, self._coins, self._send, self._policy, self._clock
        ).checked()

    def prepare(
        self,
        where: "str | Collection",
        answers: Mapping[str, Any],
        *,
        collector: str = "",
        invitation: str = "",
        row: Mapping[str, Any] | None = None,
    ) -> LedgerEntry:
        """Perturb once and store the report as held: it can be shown to its owner, and is not sent before `release`."""
        return self._record(self._find(where, collector), answers, row, invitation, HELD)

    def release(self, batch: str) -> Receipt:
        """Send a held report, whose owner has agreed; InvalidSpec if no such report is held."""
        for entry in self._ledger.read().entries:
            if entry.batch == batch and entry.state == HELD:
                return self._send(self._ledger.settle(entry, state=PENDING)).receipt
        raise InvalidSpec("ledger: no report with this batch id is held; it was released before, or never made")

    def _record(
        self,
        found: tuple[Collection, Address],
        answers: Mapping[str, Any],
        row: Mapping[str, Any] | None,
        invitation: str,
        state: str = PENDING,
    ) -> LedgerEntry:
        """Perturb once and store the report; nothing is sent."""
        collection, address = found
        if collection.windows is not None:
            raise InvalidSpec(f"collection {collection.id}: asks again and again; take part with Respondent.join")
        # Everything that can fail for a wrong answer fails here, before coins are drawn and epsilon is spent.
        value, columns = collection.encode(answers), _row(collection, row)
        mechanism, repeats = collection.mechanism, isinstance(collection.mechanism, MemoizedDevice)
        answered = self._ledger.read().first(collection.id, collection.plan_id) is not None
        if collection.tokens is not None and (repeats or not answered):
            invitation = Redeemer(self._ledger, self._transport, self._coins).redeem(collection, address, invitation)
        # A session that is not as it must be is refused here as well. There is no way on in the clear.
        seal = None if collection.shuffle is None else self._sealer(collection.id).session(collection, address)

        # Called by the ledger under its lock, only where the collection was not answered before.
        def make(kept: Kept) -> LedgerEntry:
            if isinstance(mechanism, MemoizedDevice):
                report = self._memoised(mechanism, collection.id, value, kept)
            else:
                report = mechanism.privatize_one(value, self._coins)
            sealed = None if seal is None else seal(report)
            kept.tokens.pop(collection.id, None)
            entry = _entry(collection, report, address.base, invitation)
            return replace(entry, state=state, row=columns, sealed=sealed)

        return self._ledger.record(collection.id, make, plan=collection.plan_id, repeats=repeats)

    def redeem(self, where: "str | Collection", invitation: str, *, collector: str = "") -> None:
        """Redeem an invitation for an anonymous token, which `answer` then sends along; a while before is best.

        Who asks for a token and reports a moment later is connected by the clock. `answer` redeems by itself where
        there is no token yet. TokenRefused, or Unreachable, where there is none to be had.
        """
        collection, address = self._find(where, collector)
        if collection.tokens is None:
            raise InvalidSpec(f"collection {collection.id}: takes reports without tokens; answer it")
        Redeemer(self._ledger, self._transport, self._coins).redeem(collection, address, invitation)

    def flush(self) -> list[Receipt]:
        """Send pending reports, except where the collector asked for a longer wait (Retry-After).

        A sealed report whose session was aborted, sent or not, is sealed for the next session and sent again.
        """
        now = time()
        renewed = [self._renewed(entry) for entry in self._ledger.sealed()]
        known = {entry.batch: entry for entry in renewed if entry.state == PENDING}
        waiting = [known.pop(entry.batch, entry) for entry in self._ledger.pending()]
        return [(self._send(entry) if entry.not_before <= now else entry).receipt for entry in waiting]

    def check(self, receipt: Receipt) -> "Inclusion":
        """Find out whether a sealed report took part in the shuffle, from its shufflers and the transcript."""
        for entry in self._ledger.sealed():
            if entry.batch == receipt.batch:
                address = Address(entry.base, entry.collection)
                document = partial(self.open, address.document)
                found, sealed = self._sealer(entry.collection).look_up(entry, document, address)
                self._ledger.settle(entry, sealed=sealed, invitation="" if found.took_part else entry.invitation)
                return found
        raise InvalidSpec("ledger: no report with this batch id was sealed and sent; only sealed ones have a slot")

    def ledger(self) -> Spending:
        """Return what was spent per collection, and in total."""
        return self._ledger.spending()

    def _find(self, where: "str | Collection", collector: str) -> tuple[Collection, Address]:
        if isinstance(where, str):
            return self.open(where), Address.parse(where)
        return where, Address.parse(f"{collector.rstrip('/')}/c/{where.id}")

    def _memoised(self, mechanism: MemoizedDevice, collection: str, value: Any, kept: Kept) -> bytes:
        """Return the memoised report of this value, and update the collection's memory in the ledger's contents."""
        # One secret per device, drawn once: a lost secret would redraw answers and spend epsilon again.
        kept.secret = kept.secret or self._coins.words(KEY_BYTES // 8).hex()
        known = kept.memories.get(collection, {"seen": [], "last": ""})
        seen = [bytes.fromhex(tag) for tag in known["seen"]]
        memory = Memory(bytes.fromhex(kept.secret), collection, seen, bytes.fromhex(known["last"]))
        report = mechanism.report(value, memory, self._coins)
        kept.memories[collection] = {"seen": [tag.hex() for tag in memory.seen], "last": memory.last.hex()}
        return report

    def _sealer(self, collection: str) -> "Sealer":
        """What seals reports; MissingExtra, before anything is drawn, where its libraries are not installed."""
        try:
            from tacit.client.sealed.sealer import Sealer
        except ModuleNotFoundError:
            raise MissingExtra(
                f"collection {collection}: reports must be sealed for shufflers, and the library for that is not "
                "installed; nothing was drawn: python -m pip install 'tacit[shuffle]'"
            ) from None
        return Sealer(self._transport, self._coins)

    def _renewed(self, entry: LedgerEntry) -> LedgerEntry:
        """The entry as it is, or with the same report sealed for another session if its own was aborted."""
        if entry.sealed is None or entry.sealed["took_part"]:
            return entry
        address = Address(entry.base, entry.collection)
        sealed = self._sealer(entry.collection).renewed(entry, partial(self.open, address.document), address)
        return entry if sealed is None else self._ledger.settle(entry, sealed=sealed, state=PENDING, reason="")

    def _send(self, entry: LedgerEntry) -> LedgerEntry:
        """Upload the stored bytes, and write the outcome to the ledger."""
        if entry.sealed is not None:
            outcome = self._sealer(entry.collection).send(entry)
            # The invitation stays: it admits to the next session as well, should this one be aborted.
            return self._ledger.settle(entry, state=outcome.state, reason=outcome.reason)
        address = Address(entry.base, entry.collection)
        outcome = self._transport.upload(address, _batch_bytes(entry), entry.invitation, media_type=_media_type(entry))
        # An invitation is a credential; it is erased as soon as it is not needed for another attempt.
        left = entry.invitation if outcome.state == PENDING else ""
        change = {"state": outcome.state, "reason": outcome.reason, "not_before": outcome.not_before}
        return self._ledger.settle(entry, invitation=left, **change)


def _verified(collection: Collection, address: Address) -> Collection:
    """Return the document if its digest is the id in the address; InvalidSpec otherwise."""
    if collection.id != address.id:
        raise InvalidSpec(
            f"collection {address.id}: the document has the digest {collection.id}; it is not the one this address "
            "names, do not answer it"
        )
    return collection


def _entry(collection: Collection, report: bytes, base: str, invitation: str) -> LedgerEntry:
    """A report that waits to be sent."""
    member, payload = collection.mechanism.split(report)
    return LedgerEntry(
        collection=collection.id,
        base=base,
        title=collection.title,
        epsilon=collection.epsilon,
        batch=new_batch_id().hex(),
        report=payload.hex(),
        plan=collection.plan_id,
        member=member,
        invitation=invitation,
    )


def _row(collection: Collection, row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return all public columns that go along, missing ones as null; None for a collection that takes none."""
    if collection.rows is not None:
        return collection.rows.check_row({} if row is None else row)
    if row:
        raise InvalidValue("row: the collection has no public columns, so nothing may go along with a report")
    return None


def _media_type(entry: LedgerEntry) -> str:
    return MEDIA_TYPE if entry.row is None else JSON_TYPE


def _batch_bytes(entry: LedgerEntry) -> bytes:
    """Return the upload, the same bytes at every attempt: a binary batch, or JSON where a row goes along."""
    if entry.row is not None:
        report = {"member": entry.member, "report": entry.report, "row": entry.row}
        return json.dumps({"collection": entry.collection, "batch": entry.batch, "reports": [report]}).encode()
    block = Block(entry.member, 1, bytes.fromhex(entry.report))
    window = entry.window if entry.window >= 0 else None
    return encode_batch(Batch(entry.collection, bytes.fromhex(entry.batch), (block,), window))
