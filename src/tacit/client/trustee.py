"""A server that perturbs on behalf of people who trust it with their answers: many reports, in batches, none twice.

    add = encode -> perturb -> buffer        a full buffer -> a file of the outbox -> send -> remove the file

An answer is forgotten when `add` returns; what is buffered and stored is noisy. A batch is in the outbox, under its id,
before it is sent, and every attempt sends the same bytes, so that a crash loses what was buffered and counts nothing
twice. The promise to respondents is that of their own device only as far as they trust this server: it sees answers.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.client.respondent import Respondent
from tacit.client.transport import JSON_TYPE, Address, Transport
from tacit.device.kinds.memo import MemoizedDevice
from tacit.device.numbers.coins import Coins, SystemCoins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.wire.batch import MAGIC, MEDIA_TYPE, Batch, Block, encode_batch, new_batch_id
from tacit.wire.document import Collection

MOST_REPORTS = 10_000
"""Reports of one batch at the most: collectors take bodies of some megabytes."""

_WAITING, _REFUSED = ".batch", ".refused"


@dataclass(frozen=True)
class Delivery:
    """What became of batches: how many were acknowledged, wait for another attempt, or were refused for good."""

    sent: int = 0
    pending: int = 0
    refused: int = 0

    def __add__(self, other: "Delivery") -> "Delivery":
        return Delivery(self.sent + other.sent, self.pending + other.pending, self.refused + other.refused)


class Trustee:
    """Sends reports of many people on one collection.

    `outbox` is a folder of this trustee alone, in which batches wait that could not be sent; without one they wait in
    memory. One trustee belongs to one thread.
    """

    def __init__(
        self,
        address: str,
        *,
        outbox: "str | os.PathLike[str] | None" = None,
        size: int = 500,
        coins: Coins | None = None,
        transport: Transport | None = None,
    ) -> None:
        """Fetch the document and verify that its digest is the one in the address; InvalidSpec if it cannot be used."""
        self._coins, self._transport = coins or SystemCoins(), transport or Transport()
        if not 1 <= size <= MOST_REPORTS:
            raise InvalidSpec(f"trustee: size is {size}, must be from 1 to {MOST_REPORTS}")
        self._address, self._size = Address.parse(address), size
        # As a respondent does it: documents are verified, and coins that somebody could predict refused.
        self.collection = _usable(Respondent(coins=self._coins, transport=self._transport).open(address))
        self._outbox = None if outbox is None else Path(outbox)
        if self._outbox is not None:
            self._outbox.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._buffer: list[tuple[int, bytes, dict[str, Any] | None]] = []
        self._memory: dict[str, bytes] = {}
        self._done = Delivery()

    def add(self, answers: Mapping[str, Any], row: Mapping[str, Any] | None = None) -> Delivery:
        """Perturb the answers of one person; a full batch is sent at once. `row` has the public columns, if any."""
        collection = self.collection
        value = collection.encode(answers)
        if collection.rows is None and row:
            raise InvalidValue("row: the collection has no public columns, so nothing may go along with a report")
        columns = None if collection.rows is None else collection.rows.check_row({} if row is None else row)
        report = collection.mechanism.privatize_one(value, self._coins)
        self._buffer.append((*collection.mechanism.split(report), columns))
        return self.flush() if len(self._buffer) >= self._size else Delivery()

    def add_many(self, people: Iterable[Mapping[str, Any]]) -> Delivery:
        """Perturb the answers of many people, each a mapping from question to answer; `flush` sends the rest."""
        total = Delivery()
        for answers in people:
            total += self.add(answers)
        return total

    def flush(self) -> Delivery:
        """Send the buffered reports and those of earlier failed calls; counts this call's batches, `total` has all."""
        if self._buffer:
            batch = new_batch_id()
            self._keep(batch.hex(), self._body(batch))
            # Cleared only once the batch is kept, so that an error while writing loses nothing.
            self._buffer.clear()
        made = sum((self._send(name) for name in self._waiting()), Delivery())
        self._done += Delivery(made.sent, 0, made.refused)
        return made

    @property
    def total(self) -> Delivery:
        """What became of all batches of this trustee so far, those that `add` sent because they were full included."""
        return self._done + Delivery(pending=len(self._waiting()))

    def _body(self, batch: bytes) -> bytes:
        """The bytes of a batch: binary, or JSON where public columns go along."""
        collection = self.collection
        if collection.rows is not None:
            reports = [{"member": m, "report": payload.hex(), "row": row} for m, payload, row in self._buffer]
            return json.dumps({"collection": collection.id, "batch": batch.hex(), "reports": reports}).encode()
        payloads: dict[int, list[bytes]] = {}
        for member, payload, _ in self._buffer:
            payloads.setdefault(member, []).append(payload)
        # By member and not in the order of arrival, which a collector need not know.
        blocks = tuple(Block(member, len(some), b"".join(some)) for member, some in sorted(payloads.items()))
        return encode_batch(Batch(collection.id, batch, blocks))

    def _keep(self, name: str, body: bytes) -> None:
        if self._outbox is None:
            self._memory[name] = body
            return
        # Under its name only when it is complete: a torn batch would be refused for good.
        part = self._outbox / f"{name}.part"
        with part.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._outbox / f"{name}{_WAITING}")

    def _waiting(self) -> list[str]:
        if self._outbox is None:
            return list(self._memory)
        return sorted(path.stem for path in self._outbox.glob(f"*{_WAITING}"))

    def _send(self, name: str) -> Delivery:
        place = None if self._outbox is None else self._outbox / f"{name}{_WAITING}"
        body = self._memory[name] if place is None else place.read_bytes()
        # A batch of an earlier process is known by its first bytes alone; the outbox has no other record of it.
        media_type = MEDIA_TYPE if body.startswith(MAGIC) else JSON_TYPE
        state = self._transport.upload(self._address, body, media_type=media_type).state
        if state == "pending":
            return Delivery(pending=1)
        self._memory.pop(name, None)
        if place is not None:
            # A refused batch is kept aside, as only its operator can tell why.
            place.unlink() if state == "sent" else place.replace(place.with_suffix(_REFUSED))
        return Delivery(sent=1) if state == "sent" else Delivery(refused=1)


def _usable(collection: Collection) -> Collection:
    """The document, if it can be answered on behalf of others."""
    if collection.shuffle is not None or collection.invitations:
        raise InvalidSpec("trustee: the collection is shuffled or by invitation; every device has to answer it itself")
    if isinstance(collection.mechanism, MemoizedDevice):
        raise InvalidSpec("trustee: the mechanism memoises, which needs a memory for every person; answer on devices")
    return collection
