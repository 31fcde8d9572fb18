"""A store in memory, as a model of what a database must do. Nothing survives the process."""

import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from weakref import finalize

from tests.service.memory_notices import MemoryNotices

from tacit.collector.ports import (
    CLOSED,
    DUPLICATE,
    SPENT,
    STORED,
    AuditEntry,
    BatchNumbers,
    CollectionRecord,
    Fold,
    Keep,
    KeptReports,
    NewBatch,
    Outcome,
    StoredBatch,
    StoredTally,
    TokenNumbers,
    TokenRecord,
    WindowNumbers,
    window_id,
    window_number,
)
from tacit.collector.store.intake import decide, decide_tally, invitations, tokens
from tacit.collector.store.sqlite.statements import need
from tacit.errors import InvalidSpec
from tacit.hosting.clock import today
from tacit.shuffler.party_database import PartyFile


@dataclass
class _Reports:
    """What is kept of one collection's reports."""

    batches: set[bytes] = field(default_factory=set[bytes])
    waiting: list[StoredBatch] = field(default_factory=list[StoredBatch])
    tallies: dict[str, StoredTally] = field(default_factory=dict[str, StoredTally])
    rejected: Counter[str] = field(default_factory=Counter[str])
    invitations: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    """Every invitation's hash and whether it is unspent."""
    used: set[bytes] = field(default_factory=set[bytes])
    """The hashes of tokens that came with reports."""
    issued: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    """Hashes of blinded messages, and of the invitations that they were signed for."""
    kept: list[KeptReports] = field(default_factory=list[KeptReports])
    count: int = 0
    days: Counter[int] = field(default_factory=Counter[int])
    origins: tuple[str, ...] = ()
    day: int = 0


class MemoryStore:
    """The storage port over dictionaries, one lock around all of them."""

    def __init__(self, *, today: Callable[[], int] = today) -> None:
        """Begin empty."""
        self._lock, self._folding, self._today = RLock(), RLock(), today
        self._records: dict[str, CollectionRecord] = {}
        self._reports: dict[str, _Reports] = {}
        self._tokens: dict[bytes, TokenRecord] = {}
        self._audit: list[AuditEntry] = []
        self._notices = MemoryNotices()
        self._keys: dict[str, bytes] = {}
        # Segments are files wherever the rest is; nobody finds these again.
        self._segments = Path(tempfile.gettempdir()) / f"tacit-{secrets.token_hex(8)}"
        finalize(self, shutil.rmtree, self._segments, ignore_errors=True)

    @property
    def segments(self) -> Path:
        """A folder for segments of rows, which goes with the store."""
        return self._segments

    @property
    def notices(self) -> MemoryNotices:
        """Webhooks and messages to them."""
        return self._notices

    @property
    def issuing(self) -> "MemoryStore":
        """What is kept of anonymous tokens: the store itself."""
        return self

    def add_key(self, collection: str, secret: bytes) -> None:
        """Keep the private key of a collection that is about to be published."""
        self._keys[collection] = secret

    def key(self, collection: str) -> bytes | None:
        """The private key of a collection; None if it has none, or is closed."""
        record = self._records.get(collection)
        return self._keys.get(collection) if record and record.state == "published" else None

    def issue(self, collection: str, blinded: bytes, invitation: bytes) -> Outcome:
        """Spend an invitation (empty: none) on a blinded message; the same again is free."""
        with self._lock:
            kept, record = self._of(collection), self._records.get(collection)
            if kept.issued.get(blinded) == invitation:
                return DUPLICATE
            if record is None or record.state != "published":
                return CLOSED
            if invitation and not kept.invitations.get(invitation, False):
                return SPENT
            if invitation:
                kept.invitations[invitation] = False
            kept.issued.setdefault(blinded, invitation)
            return STORED

    def numbers(self, collection: str) -> TokenNumbers:
        """How many tokens of a collection were signed, and how many came with reports."""
        kept = self._of(collection)
        return TokenNumbers(len(kept.issued), len(kept.used))

    def open_party(self) -> PartyFile:
        """A file for the keys of shuffles, which goes with the store."""
        return PartyFile(self._segments / "shuffle.db")

    def _of(self, collection: str) -> _Reports:
        """What is kept of a collection; nothing of one that is not there."""
        return self._reports.get(collection) or _Reports()

    def _known(self, collection: str) -> _Reports:
        need(collection in self._records, collection, "is unknown")
        return self._reports[collection]

    def add_collection(self, record: CollectionRecord, windows: int = 0) -> None:
        """Add a draft or a published collection, published today; one whose id is there already is left as it is."""
        inside = [CollectionRecord(window_id(record.id, k), "published", b"{}") for k in range(windows)]
        with self._lock:
            for made in (record, *inside):
                if made.id not in self._records:
                    self._records[made.id] = made
                    self._reports[made.id] = _Reports(day=0 if made.state == "draft" else self._today())

    def windows(self, collection: str) -> list[WindowNumbers]:
        """The windows of a collection, in their order."""
        with self._lock:
            found: list[WindowNumbers] = []
            for name, record in self._records.items():
                if name.startswith(f"{collection}."):
                    kept = self._reports[name]
                    folded = sum(tally.reports for tally in kept.tallies.values())
                    waiting = sum(batch.count for batch in kept.waiting)
                    found.append(WindowNumbers(window_number(name), record.state, folded, waiting))
            return sorted(found, key=lambda one: one.window)

    def window_tallies(self, collection: str) -> dict[int, list[StoredTally]]:
        """The tallies of all windows that have any, by window."""
        with self._lock:
            names = [name for name in self._records if name.startswith(f"{collection}.")]
            pairs = ((window_number(name), list(self._reports[name].tallies.values())) for name in names)
            return {window: tallies for window, tallies in pairs if tallies}

    def _need_draft(self, collection: str) -> None:
        record = self._records.get(collection)
        need(record is not None and record.state == "draft", collection, "is no draft")

    def replace_draft(self, record: CollectionRecord) -> None:
        """Replace the document of a draft; `InvalidSpec` if there is none, for published documents never change."""
        with self._lock:
            self._need_draft(record.id)
            self._records[record.id] = record

    def delete_draft(self, collection: str) -> None:
        """Remove a draft; `InvalidSpec` if there is none."""
        with self._lock:
            self._need_draft(collection)
            del self._records[collection], self._reports[collection]

    def close_collection(self, collection: str) -> None:
        """Take no more reports; `InvalidSpec` if it was never published."""
        with self._lock:
            record = self._records.get(collection)
            need(record is not None and record.state != "draft", collection, "was never published")
            for name in [collection, *(name for name in self._records if name.startswith(f"{collection}."))]:
                self._records[name] = replace(self._records[name], state="closed")
                self._reports[name].kept.clear()

    def assign(self, collection: str, team: str) -> None:
        """Give a collection to a team, or to none; `InvalidSpec` if there is no such collection."""
        with self._lock:
            need(collection in self._records, collection, "is unknown")
            self._records[collection] = replace(self._records[collection], team=team)

    def collection(self, collection: str) -> CollectionRecord | None:
        """One collection."""
        return self._records.get(collection)

    def collections(self) -> list[CollectionRecord]:
        """All collections, in order of creation."""
        with self._lock:
            return [record for record in self._records.values() if "." not in record.id]

    def add_batches(self, batches: Sequence[NewBatch]) -> list[Outcome]:
        """Store batches in one step and say what became of each."""
        with self._lock:
            states = {record.id: record.state for record in self._records.values()}
            stored = {(b.collection, b.batch) for b in batches if b.batch in self._of(b.collection).batches}
            unspent = {mark for mark in invitations(batches) if self._of(mark[0]).invitations.get(mark[1], False)}
            unspent |= {mark for mark in tokens(batches) if mark[1] not in self._of(mark[0]).used}
            outcomes = decide(batches, states, stored, unspent)
            for batch, outcome in zip(batches, outcomes, strict=True):
                if outcome == STORED:
                    self._add(batch)
            return outcomes

    def _add(self, batch: NewBatch) -> None:
        kept = self._reports[batch.collection]
        kept.rejected.update(batch.rejected)
        kept.batches.add(batch.batch)
        if batch.count:
            kept.waiting.append(StoredBatch(batch.payload, batch.count))
        kept.count += batch.count
        if batch.invitation is not None:
            kept.invitations[batch.invitation] = False
        if batch.token is not None:
            kept.used.add(batch.token)

    def count_rejected(self, collection: str, reasons: Mapping[str, int]) -> None:
        """Count refused reports by reason."""
        with self._lock:
            self._known(collection).rejected.update(reasons)

    def rejected(self, collection: str) -> dict[str, int]:
        """Refused reports by reason."""
        with self._lock:
            return dict(self._of(collection).rejected)

    def stored_reports(self, collection: str) -> int:
        """Number of reports accepted so far, folded or not."""
        return self._of(collection).count

    def batch_numbers(self, collection: str) -> BatchNumbers:
        """Numbers of batches and reports, folded and waiting."""
        with self._lock:
            kept = self._of(collection)
            reports = sum(batch.count for batch in kept.waiting)
            waiting = len(kept.waiting)
            return BatchNumbers(len(kept.batches) - waiting, kept.count - reports, waiting, reports)

    def reports_by_day(self, collection: str) -> dict[int, int]:
        """Numbers of stored reports by the Unix day on which they were folded."""
        with self._lock:
            return dict(sorted(self._of(collection).days.items()))

    def set_origins(self, collection: str, origins: Sequence[str]) -> None:
        """Replace the sites that an operator allows beside those of the document."""
        with self._lock:
            self._known(collection).origins = tuple(sorted(origins))

    def origins(self) -> dict[str, tuple[str, ...]]:
        """The sites that operators allow, by collection."""
        with self._lock:
            return {name: kept.origins for name, kept in self._reports.items() if kept.origins}

    def fence(self) -> None:
        """Folds are under one lock, so that none has begun and not ended."""
        with self._folding:
            return

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int, keep: Keep | None = None) -> int:
        """Fold waiting batches, oldest first, into a shard's tally, in one step; returns how many there were."""
        with self._folding:
            with self._lock:
                kept = self._known(collection)
                batches, tally = kept.waiting[:most], kept.tallies.get(shard)
            if batches:
                also = None if keep is None else keep(None if tally is None else tally.content, batches)
                folded = fold(None if tally is None else tally.content, batches)
                reports = sum(batch.count for batch in batches) + (0 if tally is None else tally.reports)
                with self._lock:
                    kept.tallies[shard] = StoredTally(shard, reports, folded)
                    kept.days[self._today()] += sum(batch.count for batch in batches)
                    del kept.waiting[: len(batches)]
                    if also is not None and self._records[collection].state == "published":
                        kept.kept.append(also)
            return len(batches)

    def kept_reports(self, collection: str) -> list[KeptReports]:
        """What is kept of reports for integrity, by part and then by name."""
        return sorted(self._of(collection).kept, key=lambda one: (one.part, one.name))

    def add_tally(self, collection: str, tally: StoredTally, sources: Sequence[bytes]) -> Outcome:
        """Add a tally that was made elsewhere as a shard of its own, with the ids of its sources."""
        with self._lock:
            record, kept = self._records.get(collection), self._of(collection)
            outcome = decide_tally(record.state if record else None, sources, kept.batches & set(sources))
            if outcome == STORED:
                kept.batches.update(sources)
                kept.count += tally.reports
                kept.days[self._today()] += tally.reports
                kept.tallies[tally.shard] = tally
            return outcome

    def tally(self, collection: str, shard: str) -> bytes | None:
        """The tally of one shard."""
        found = self._of(collection).tallies.get(shard)
        return None if found is None else found.content

    def tallies(self, collection: str) -> list[StoredTally]:
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

    def invitations(self, collection: str) -> list[bytes]:
        """The hashes of all unspent invitations to a collection."""
        with self._lock:
            return [hash for hash, unspent in self._of(collection).invitations.items() if unspent]

    def add_invitations(self, collection: str, hashes: Sequence[bytes]) -> None:
        """Add unspent invitations; one that is there already stays as it is, spent or not."""
        with self._lock:
            kept = self._known(collection).invitations
            kept.update({mark: True for mark in hashes if mark not in kept})

    def audit(self, entry: AuditEntry) -> None:
        """Note an operator's action."""
        with self._lock:
            self._audit.append(entry)

    def audit_log(self, most: int, team: str = "") -> list[AuditEntry]:
        """The latest actions, newest first."""
        with self._lock:
            return [entry for entry in self._audit[::-1] if team in ("", entry.team)][:most]

    def drop_reports(self, collection: str) -> None:
        """Close a collection and remove its reports, tallies, batch ids and invitations (retention)."""
        with self._folding, self._lock:
            self.close_collection(collection)
            kept = self._reports[collection]
            self._reports[collection] = _Reports(day=kept.day, rejected=kept.rejected, origins=kept.origins)

    def published_day(self, collection: str) -> int:
        """Unix day of publication; 0 for a draft."""
        return self._known(collection).day

    def backup(self, path: str) -> None:
        """Refused: there is nothing durable to copy."""
        raise InvalidSpec(f"backup: a store in memory cannot be written to {path}; serve from a folder instead")

    def probe(self, *, write: bool = False) -> bool:
        """Nothing that could fail, or fill up."""
        return False

    def close(self) -> None:
        """Nothing to release."""
