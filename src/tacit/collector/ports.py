"""The storage port: what the collector needs from a database, in the collector's own words.

Reports are never stored with an address, a user agent or a time of arrival. A batch is stored once, under the id the
client made for it; folding batches into a tally and marking them as folded is one transaction, so every stored report
is counted exactly once whatever is killed in between.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tacit.errors import StorageDamaged


@dataclass(frozen=True)
class CollectionRecord:
    """A draft or a published document. Drafts have ids beginning with "draft-"; published ones the digest."""

    id: str
    state: str
    """"draft", "published" or "closed"."""
    document: bytes
    """The canonical document of a published collection; a draft's own JSON."""


@dataclass(frozen=True)
class NewBatch:
    """Valid reports of one upload, in the mechanism's own layout; with rows, packed together with them."""

    collection: str
    batch: bytes
    payload: bytes
    count: int
    rejected: Mapping[str, int]
    """Reports of the same upload that were refused, by reason; counted in the same transaction."""
    invitation: bytes | None = None
    """Hash of a single-use invitation to spend with this batch."""


@dataclass(frozen=True)
class StoredBatch:
    """A batch that waits to be folded."""

    payload: bytes
    count: int


@dataclass(frozen=True)
class StoredTally:
    """The tally of one shard, as it was written: a store raises `StorageDamaged` rather than hand out another one."""

    shard: str
    reports: int
    """Number of reports that were folded into it."""
    content: bytes


def tally_damaged(collection: str, shard: str, fault: str) -> StorageDamaged:
    """The error that names a tally that is not as it was written."""
    return StorageDamaged(
        f"collection {collection}: the tally of shard {shard!r} {fault}; restore the collector's database from a "
        "backup, nothing of this collection is answered or folded until then"
    )


@dataclass(frozen=True)
class TokenRecord:
    """A token's hash and what it may do."""

    hash: bytes
    scope: str
    """"admin", "analyst", "reader" or "reporter"."""
    collection: str
    """The collection it is limited to; empty for all."""
    label: str
    expires: int
    """Unix day on which it ends; 0 for never."""


@dataclass(frozen=True)
class AuditEntry:
    """One action of an operator."""

    day: int
    actor: str
    action: str
    subject: str


Fold = Callable[[bytes | None, list[StoredBatch]], bytes]
"""A shard's tally so far (None at first) and the batches to add to it, to the tally with them."""

STORED, DUPLICATE, CLOSED, SPENT = "stored", "duplicate", "closed", "invitation_spent"
"""Outcomes of adding a batch. A batch that was stored before is a duplicate, whatever has happened since."""


class Store(Protocol):
    """A database. Methods are synchronous, may be called from any thread and may raise `StorageUnavailable`."""

    @property
    def segments(self) -> Path | None:
        """The folder for segments of rows; None if there is none, and then no rows are taken."""
        ...

    def add_collection(self, record: CollectionRecord) -> None:
        """Add a draft or a published collection, published today; one whose id is there already is left as it is."""
        ...

    def replace_draft(self, record: CollectionRecord) -> None:
        """Replace the document of a draft; `InvalidSpec` if there is none, for published documents never change."""
        ...

    def delete_draft(self, collection: str) -> None:
        """Remove a draft; `InvalidSpec` if there is none."""
        ...

    def close_collection(self, collection: str) -> None:
        """Take no more reports; `InvalidSpec` if it was never published."""
        ...

    def collection(self, collection: str) -> CollectionRecord | None:
        """One collection."""
        ...

    def collections(self) -> list[CollectionRecord]:
        """All collections, in order of creation."""
        ...

    def add_batches(self, batches: Sequence[NewBatch]) -> list[str]:
        """Store batches in one transaction and say what became of each; durable when this returns.

        Refused reports of a batch are counted when it is stored, so that sending it again does not count them twice.
        """
        ...

    def count_rejected(self, collection: str, reasons: Mapping[str, int]) -> None:
        """Count refused reports by reason."""
        ...

    def rejected(self, collection: str) -> dict[str, int]:
        """Refused reports by reason."""
        ...

    def stored_reports(self, collection: str) -> int:
        """Number of reports accepted so far, folded or not."""
        ...

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int) -> int:
        """Fold about `most` waiting batches, oldest first, into a shard's tally; returns how many there were.

        Reading, folding and dropping the payloads are one transaction: whatever fails or is killed, every batch is in
        exactly one tally, exactly once. Batches that another process is folding are left to it. `fold` has no effects
        of its own that a repetition would harm, for it runs again if the transaction has to be tried again.
        """
        ...

    def tally(self, collection: str, shard: str) -> bytes | None:
        """The tally of one shard; `StorageDamaged` if it is not as it was written."""
        ...

    def tallies(self, collection: str) -> list[StoredTally]:
        """The tallies of all shards; readers add them. `StorageDamaged` if one is not as it was written."""
        ...

    def add_token(self, token: TokenRecord) -> None:
        """Add a token."""
        ...

    def token(self, hash: bytes) -> TokenRecord | None:
        """The token of a hash."""
        ...

    def tokens(self) -> list[TokenRecord]:
        """All tokens."""
        ...

    def revoke_token(self, hash: bytes) -> bool:
        """Remove a token; False if there was none."""
        ...

    def add_invitations(self, collection: str, hashes: Sequence[bytes]) -> None:
        """Add unspent invitations; spent ones are kept apart from reports."""
        ...

    def audit(self, entry: AuditEntry) -> None:
        """Note an operator's action."""
        ...

    def audit_log(self, most: int) -> list[AuditEntry]:
        """The latest actions, newest first."""
        ...

    def drop_reports(self, collection: str) -> None:
        """Close a collection and remove its reports, tallies, batch ids and invitations (retention).

        It takes no more reports, because without its batch ids it could not tell a new batch from an old one.
        """
        ...

    def published_day(self, collection: str) -> int:
        """Unix day of publication; 0 for a draft."""
        ...

    def backup(self, path: str) -> None:
        """Write a consistent copy to a new file, an SQLite database whatever the store; segments go beside it."""
        ...

    def probe(self, *, write: bool = False) -> bool:
        """Read something and, if so asked, write something; says whether the disk is known to be nearly full.

        Raises `StorageUnavailable` if that cannot be done.
        """
        ...

    def close(self) -> None:
        """Release the database."""
        ...
