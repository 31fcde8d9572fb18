"""A store in memory: for tests and rehearsals. Nothing survives the process, so nothing here is durable."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock
from time import time

from tacit.collector.ports import (
    CLOSED,
    DUPLICATE,
    SPENT,
    STORED,
    AuditEntry,
    CollectionRecord,
    Fold,
    NewBatch,
    StoredBatch,
    TokenRecord,
)
from tacit.errors import InvalidSpec

_DAY = 86_400


@dataclass
class _Reports:
    """What is kept of one collection's reports."""

    batches: set[bytes] = field(default_factory=set[bytes])
    waiting: list[StoredBatch] = field(default_factory=list[StoredBatch])
    tallies: dict[str, bytes] = field(default_factory=dict[str, bytes])
    rejected: Counter[str] = field(default_factory=Counter[str])
    invitations: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    """Every invitation's hash and whether it is unspent."""
    count: int = 0
    day: int = 0


class MemoryStore:
    """The storage port over dictionaries, one lock around all of them."""

    def __init__(self, clock: Callable[[], float] = time) -> None:
        """Begin empty."""
        self._lock, self._clock = RLock(), clock
        self._records: dict[str, CollectionRecord] = {}
        self._reports: dict[str, _Reports] = {}
        self._tokens: dict[bytes, TokenRecord] = {}
        self._audit: list[AuditEntry] = []

    def _of(self, collection: str) -> _Reports:
        return self._reports.setdefault(collection, _Reports())

    def add_collection(self, record: CollectionRecord) -> None:
        """Add a draft or a published collection; adding the same published one again does nothing."""
        with self._lock:
            if record.id not in self._records:
                self._records[record.id] = record
                self._of(record.id).day = int(self._clock()) // _DAY

    def _draft(self, collection: str) -> CollectionRecord:
        record = self._records.get(collection)
        if record is None or record.state != "draft":
            raise InvalidSpec(f"collection {collection[:12]}: is not a draft; published documents never change")
        return record

    def replace_draft(self, record: CollectionRecord) -> None:
        """Replace the document of a draft; published documents never change."""
        with self._lock:
            self._draft(record.id)
            self._records[record.id] = record

    def delete_draft(self, collection: str) -> None:
        """Remove a draft."""
        with self._lock:
            self._draft(collection)
            del self._records[collection]

    def close_collection(self, collection: str) -> None:
        """Take no more reports."""
        with self._lock:
            self._records[collection] = replace(self._records[collection], state="closed")

    def collection(self, collection: str) -> CollectionRecord | None:
        """One collection."""
        return self._records.get(collection)

    def collections(self) -> list[CollectionRecord]:
        """All collections, in order of creation."""
        with self._lock:
            return list(self._records.values())

    def add_batches(self, batches: Sequence[NewBatch]) -> list[str]:
        """Store batches in one step and say what became of each."""
        with self._lock:
            return [self._add(batch) for batch in batches]

    def _add(self, batch: NewBatch) -> str:
        outcome = self._outcome(batch)
        kept = self._of(batch.collection)
        if outcome == STORED:
            kept.rejected.update(batch.rejected)
            kept.batches.add(batch.batch)
            kept.waiting.append(StoredBatch(batch.payload, batch.count))
            kept.count += batch.count
            if batch.invitation is not None:
                kept.invitations[batch.invitation] = False
        return outcome

    def _outcome(self, batch: NewBatch) -> str:
        record, kept = self._records.get(batch.collection), self._of(batch.collection)
        if batch.batch in kept.batches:
            return DUPLICATE
        if record is None or record.state != "published":
            return CLOSED
        spent = batch.invitation is not None and not kept.invitations.get(batch.invitation, False)
        return SPENT if spent else STORED

    def count_rejected(self, collection: str, reasons: Mapping[str, int]) -> None:
        """Count refused reports by reason."""
        with self._lock:
            self._of(collection).rejected.update(reasons)

    def rejected(self, collection: str) -> dict[str, int]:
        """Refused reports by reason."""
        with self._lock:
            return dict(self._of(collection).rejected)

    def stored_reports(self, collection: str) -> int:
        """Number of reports accepted so far, folded or not."""
        return self._of(collection).count

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int) -> int:
        """Fold waiting batches, oldest first, into a shard's tally, in one step; returns how many there were."""
        with self._lock:
            kept = self._of(collection)
            batches = kept.waiting[:most]
            if batches:
                kept.tallies[shard] = fold(kept.tallies.get(shard), batches)
                del kept.waiting[:most]
            return len(batches)

    def tally(self, collection: str, shard: str) -> bytes | None:
        """The tally of one shard."""
        return self._of(collection).tallies.get(shard)

    def tallies(self, collection: str) -> list[bytes]:
        """The tallies of all shards."""
        with self._lock:
            return list(self._of(collection).tallies.values())

    def add_token(self, token: TokenRecord) -> None:
        """Add a token."""
        with self._lock:
            self._tokens[token.hash] = token

    def token(self, hash: bytes) -> TokenRecord | None:
        """The token of a hash."""
        return self._tokens.get(hash)

    def tokens(self) -> list[TokenRecord]:
        """All tokens."""
        with self._lock:
            return list(self._tokens.values())

    def revoke_token(self, hash: bytes) -> bool:
        """Remove a token; False if there was none."""
        with self._lock:
            return self._tokens.pop(hash, None) is not None

    def add_invitations(self, collection: str, hashes: Sequence[bytes]) -> None:
        """Add unspent invitations."""
        with self._lock:
            self._of(collection).invitations.update(dict.fromkeys(hashes, True))

    def audit(self, entry: AuditEntry) -> None:
        """Note an operator's action."""
        with self._lock:
            self._audit.append(entry)

    def audit_log(self, most: int) -> list[AuditEntry]:
        """The latest actions, newest first."""
        with self._lock:
            return self._audit[: -most - 1 : -1]

    def drop_reports(self, collection: str) -> None:
        """Close a collection and remove its reports, tallies, batch ids and invitations; its document stays."""
        with self._lock:
            self.close_collection(collection)
            self._reports[collection] = _Reports(day=self._of(collection).day)

    def published_day(self, collection: str) -> int:
        """Unix day of publication."""
        return self._of(collection).day

    def backup(self, path: str) -> None:
        """Refused: there is nothing durable to copy."""
        raise InvalidSpec(f"backup: a store in memory cannot be written to {path}; serve from a folder instead")

    def close(self) -> None:
        """Nothing to release."""
