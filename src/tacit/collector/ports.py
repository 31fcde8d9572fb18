"""The storage port: the interface (a Protocol) that the collector needs of a database, and its record types.

Reports are never stored with an address, a user agent or a time of arrival. A batch is stored once, under an id that
the client chose (idempotency key); adding batches to a tally and deleting them is one transaction, so that every
stored report is counted exactly once, whatever crashes in between.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec

from tacit.errors import StorageDamaged
from tacit.shuffler.party_database import PartyDatabase

NO_FOLDER = "this collector has no folder for rows; its operator starts it with --segments FOLDER"


@dataclass(frozen=True)
class CollectionRecord:
    """A draft or a published document. Drafts have ids beginning with "draft-"; published ones the digest."""

    id: str
    state: str
    """"draft", "published" or "closed"."""
    document: bytes
    """The canonical document of a published collection; a draft's own JSON."""
    team: str = ""
    """The team it belongs to; empty if to none, and then tokens of teams do not reach it."""


# No dataclass: there is one for every report of a browser, and making it would be a tenth of all that is done for one.
class NewBatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The valid reports of one upload, to be stored.

    `payload` is in the mechanism's layout or, for collections with rows, in the format of `rows.batches`.
    """

    collection: str
    batch: bytes
    payload: bytes
    count: int
    rejected: Mapping[str, int]
    """Numbers of refused reports of the same upload, by reason; counted in the same transaction."""
    invitation: bytes | None = None
    """Hash of a single-use invitation to spend with this batch."""
    token: bytes | None = None
    """Hash of an anonymous token, whose signature was checked, to spend with this batch."""


class StoredBatch(msgspec.Struct, frozen=True, gc=False):
    """A batch that is stored and not yet folded. Its id is not here: what is folded cannot be linked to it."""

    payload: bytes
    count: int
    ids: int = 0
    """On the first of a group that was stored together: the sum of the digests of their ids (see `BatchSet`)."""


@dataclass(frozen=True)
class StoredTally:
    """The verified tally of one shard; a store raises StorageDamaged rather than return a corrupt one."""

    shard: str
    reports: int
    """Number of reports that were folded into it."""
    content: bytes


@dataclass(frozen=True)
class BatchNumbers:
    """How many batches and reports of a collection are in tallies, and how many wait; all at one moment."""

    folded: int
    folded_reports: int
    waiting: int
    waiting_reports: int

    @property
    def batches(self) -> int:
        """All batches that were stored."""
        return self.folded + self.waiting

    @property
    def reports(self) -> int:
        """All reports that were stored."""
        return self.folded_reports + self.waiting_reports


def tally_damaged(collection: str, shard: str, fault: str) -> StorageDamaged:
    """The error of a corrupt tally; it names collection, shard and what to do."""
    return StorageDamaged(
        f"collection {collection}: the tally of shard {shard!r} {fault}; restore the collector's database from a "
        "backup, nothing of this collection is answered or folded until then"
    )


@dataclass(frozen=True)
class TokenRecord:
    """An access token: the hash of its secret, and what it allows."""

    hash: bytes
    scope: str
    """"admin", "analyst", "reader" or "reporter"."""
    collection: str
    """The collection it is limited to; empty for all."""
    label: str
    expires: int
    """Unix day on which it ends; 0 for never."""
    team: str = ""
    """The team whose collections it is limited to; empty for those of all teams and of none."""


@dataclass(frozen=True)
class AuditEntry:
    """One action of an operator. There is a day and no time, which could be compared with network logs."""

    day: int
    actor: str
    action: str
    subject: str
    team: str = ""
    """The team that this is about; empty for none, and then only who is in no team reads it."""


@dataclass(frozen=True)
class WebhookRecord:
    """An address that is told about events, and which."""

    id: str
    url: str
    events: str
    """Names of events, separated by commas."""
    secret: str = field(repr=False)
    """What bodies are signed with; kept as it is, since signing needs it."""
    team: str
    """The team whose collections it is told about; empty for all."""
    day: int


@dataclass(frozen=True)
class DeliveryRecord:
    """One message to a webhook, waiting or done. Of one that is done a day is kept, and no time."""

    number: int
    webhook: str
    event: str
    collection: str
    body: str
    state: str
    """"waiting", "delivered" or "failed"."""
    attempts: int
    due: int
    """Seconds since 1970 of the next attempt; 0 when there will be none."""
    day: int
    note: str


@dataclass(frozen=True)
class TokenNumbers:
    """How many anonymous tokens of a collection were signed, and how many came with reports."""

    issued: int
    used: int


class IssuingStore(Protocol):
    """What a database keeps of anonymous tokens where they are signed; nothing of it is about a report."""

    def add_key(self, collection: str, secret: bytes) -> None:
        """Keep the private key of a collection that is about to be published."""
        ...

    def key(self, collection: str) -> bytes | None:
        """The private key of a collection; None if it has none, or is closed."""
        ...

    def issue(self, collection: str, blinded: bytes, invitation: bytes) -> "Outcome":
        """Spend an invitation (empty: none) on a blinded message, of which the hash is kept.

        STORED; DUPLICATE if both came together before; CLOSED; SPENT if the invitation is unknown or was used.
        """
        ...

    def numbers(self, collection: str) -> TokenNumbers:
        """How many tokens of a collection were signed, and how many came with reports."""
        ...


class NoticeStore(Protocol):
    """What a database keeps of webhooks: addresses, a bounded queue that is also the log, and events that were told."""

    def add_webhook(self, webhook: WebhookRecord) -> None:
        """Add a webhook."""
        ...

    def webhooks(self) -> list[WebhookRecord]:
        """All webhooks, in order of their ids."""
        ...

    def remove_webhook(self, webhook: str) -> bool:
        """Remove a webhook and what is queued for it; False if there is none."""
        ...

    def announce(self, mark: str, deliveries: Sequence[DeliveryRecord]) -> bool:
        """Queue messages about an event, in one transaction, unless its mark is there already; whether it was new.

        An empty mark is always new. The oldest messages to the same webhooks make room, and the oldest that are done.
        """
        ...

    def due(self, now: int) -> list[str]:
        """The webhooks for which messages are due, in order of their ids."""
        ...

    def claim(self, webhook: str, now: int, lease: int) -> DeliveryRecord | None:
        """The oldest message to a webhook that is due, with one attempt more.

        Nobody else gets it before the lease is over.
        """
        ...

    def put_off(self, webhook: str, due: int) -> None:
        """Have no waiting message to a webhook due before a time."""
        ...

    def settle(self, delivery: DeliveryRecord) -> None:
        """Write what became of an attempt: state, next attempt, day and note."""
        ...

    def deliveries(self, most: int) -> list[DeliveryRecord]:
        """The latest messages, newest first."""
        ...


@dataclass(frozen=True)
class WindowNumbers:
    """The reports of one window of a collection that asks again and again."""

    window: int
    state: str
    """"published", or "closed": with the collection, or because its reports were dropped."""
    folded: int
    waiting: int
    """Reports that are in a tally, and reports that wait."""

    @property
    def reports(self) -> int:
        """All reports that are stored."""
        return self.folded + self.waiting


def window_id(collection: str, window: int) -> str:
    """The id under which a store keeps the reports of a window, as those of a collection of its own."""
    return f"{collection}.{window}"


def window_number(stored: str) -> int:
    """The window of an id that `window_id` made."""
    return int(stored.rpartition(".")[2])


Fold = Callable[[bytes | None, list[StoredBatch]], bytes]
"""A pure function (tally of a shard or None, batches) -> new tally; stores call it inside `fold_some`."""


@dataclass(frozen=True)
class KeptReports:
    """Reports that were counted and are kept for integrity: in no order, without ids, under a random name."""

    part: int
    """By doublings of the number of reports, from 1 on: all that is known of when they came."""
    name: bytes
    payload: bytes


Keep = Callable[[bytes | None, list[StoredBatch]], KeptReports]
"""A function (tally of a shard before or None, batches) -> what is kept of these."""

Outcome = Literal["stored", "duplicate", "closed", "invitation_spent", "invalid", "overlap"]
"""The outcome of a batch: the one vocabulary from the store through the writer to HTTP and the metrics."""

# STORED and DUPLICATE acknowledge a batch; the others refuse it.
STORED: Final = "stored"
DUPLICATE: Final = "duplicate"
"""A batch with this id was stored before, whatever has happened since; for the client that is success."""
CLOSED: Final = "closed"
SPENT: Final = "invitation_spent"
"""The invitation is unknown, or it or the token was used before."""
INVALID: Final = "invalid"
"""Some report could not have been produced by the mechanism. Such a batch never reaches a store."""

OVERLAP: Final = "overlap"
"""Some of the sources of an imported tally were counted before, and others were not."""


class BatchIntake(Protocol):
    """Where batches become durable: a store, or another process that has one."""

    def add_batches(self, batches: Sequence[NewBatch]) -> list[Outcome]:
        """Store batches in one transaction and say what became of each; durable when this returns.

        Refused reports of a batch are counted when it is stored, so that sending it again does not count them twice.
        """
        ...


class Store(BatchIntake, Protocol):
    """A database. Methods block, are thread-safe, and may raise StorageUnavailable or StorageFull."""

    @property
    def segments(self) -> Path | None:
        """The folder of segments; None if there is none, and then collections with rows are refused."""
        ...

    @property
    def notices(self) -> NoticeStore:
        """What is kept of webhooks."""
        ...

    @property
    def issuing(self) -> IssuingStore:
        """What is kept of anonymous tokens where they are signed."""
        ...

    def open_party(self) -> PartyDatabase:
        """Open the database for keys, sessions and letters of shuffles; it is made at the first call."""
        ...

    def add_collection(self, record: CollectionRecord, windows: int = 0) -> None:
        """Add a draft or a published collection, published today; one whose id is there already is left as it is.

        With windows, so many of them are added along (`window_id`): each takes batches, has tallies and is dropped like
        a collection, and is listed by `windows` alone.
        """
        ...

    def replace_draft(self, record: CollectionRecord) -> None:
        """Replace the document of a draft; `InvalidSpec` if there is none, for published documents never change."""
        ...

    def delete_draft(self, collection: str) -> None:
        """Remove a draft; `InvalidSpec` if there is none."""
        ...

    def close_collection(self, collection: str) -> None:
        """Take no more reports, in none of its windows; `InvalidSpec` if it was never published."""
        ...

    def assign(self, collection: str, team: str) -> None:
        """Give a collection to a team, or to none; `InvalidSpec` if there is no such collection."""
        ...

    def collection(self, collection: str) -> CollectionRecord | None:
        """One collection."""
        ...

    def collections(self) -> list[CollectionRecord]:
        """All collections, in order of creation."""
        ...

    def windows(self, collection: str) -> list[WindowNumbers]:
        """The windows of a collection, in their order."""
        ...

    def window_tallies(self, collection: str) -> dict[int, list[StoredTally]]:
        """The tallies of all windows that have any, by window; StorageDamaged if one is corrupt."""
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

    def batch_numbers(self, collection: str) -> BatchNumbers:
        """Numbers of batches and reports, folded and waiting, in one snapshot."""
        ...

    def reports_by_day(self, collection: str) -> dict[int, int]:
        """Numbers of folded reports by the Unix day on which they were; sums alone, no report stands beside its day."""
        ...

    def set_origins(self, collection: str, origins: Sequence[str]) -> None:
        """Replace the sites that an operator allows beside those of the document; `InvalidSpec` if there is none."""
        ...

    def origins(self) -> dict[str, tuple[str, ...]]:
        """The sites that operators allow, by collection; collections without any are left out."""
        ...

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int, keep: "Keep | None" = None) -> int:
        """Fold about `most` waiting batches, oldest first, into a shard's tally; returns how many there were.

        Replacing the tally and deleting the batches are one transaction: whatever crashes, every batch is in exactly
        one tally, exactly once. Batches that another process is folding are skipped. `fold` must be idempotent in its
        side effects (such as writing files), as it runs again if the transaction is retried. What `keep` makes of the
        same batches is stored along, until the collection is closed.
        """
        ...

    def kept_reports(self, collection: str) -> list[KeptReports]:
        """What is kept of reports for integrity, by part and then by name."""
        ...

    def add_tally(self, collection: str, tally: StoredTally, sources: Sequence[bytes]) -> Outcome:
        """Add a tally that was made elsewhere as a shard of its own, with the ids of its sources, in one transaction.

        The ids are kept like those of batches: STORED if none was there, DUPLICATE if all were, OVERLAP if some.
        """
        ...

    def fence(self) -> None:
        """Keep every fold that has begun and not committed from committing; it begins anew.

        Whoever lists files, then calls this, then reads the tallies, knows all that will ever be named of that list.
        """
        ...

    def tally(self, collection: str, shard: str) -> bytes | None:
        """The tally of one shard, or None; StorageDamaged if it is corrupt."""
        ...

    def tallies(self, collection: str) -> list[StoredTally]:
        """The tallies of all shards, which readers add up; StorageDamaged if one is corrupt."""
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
        """Add unspent invitations; nothing links a spent one to its report."""
        ...

    def invitations(self, collection: str) -> list[bytes]:
        """The hashes of all unspent invitations to a collection, in no particular order."""
        ...

    def audit(self, entry: AuditEntry) -> None:
        """Append an operator's action to the audit log."""
        ...

    def audit_log(self, most: int, team: str = "") -> list[AuditEntry]:
        """The latest actions, newest first: all, or those that are about a team."""
        ...

    def drop_reports(self, collection: str) -> None:
        """Close a collection and remove its reports, tallies, batch ids, invitations and counts by day (retention).

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
        """Health check: read and, if asked, write something; returns whether the disk is known to be nearly full.

        Raises StorageUnavailable if that fails.
        """
        ...

    def close(self) -> None:
        """Release the database."""
        ...
