"""End-to-end checksums of tally rows, equal in every database, so that backups carry them from one to another.

Databases detect a page with a broken structure, but return a flipped bit inside a blob without a word, and a tally is
all that is left of its reports. So every tally row has a SHA-256 over all of its fields, collection and shard
included: a row that ends up under another collection is detected as well. It protects against damage, not attackers.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from hmac import compare_digest
from struct import Struct
from typing import Any, LiteralString, NamedTuple

from tacit.collector.ports import StoredTally, tally_damaged, window_number

_NUMBERS = Struct("<QQQQ")


class TallyRow(NamedTuple):
    """The tally of one shard, as the table `tallies` stores it."""

    collection: str
    """The collection's id, not its key: keys are numbers that differ from one database to another."""
    shard: str
    folds: int
    """How many folds it has been through: a version number for optimistic concurrency."""
    reports: int
    content: bytes

    def checksum(self) -> bytes:
        """SHA-256 of all fields; lengths are hashed first, so that no two different rows hash the same bytes."""
        names = [self.collection.encode(), self.shard.encode()]
        digest = sha256(_NUMBERS.pack(*map(len, names), self.folds, self.reports))
        for part in (*names, self.content):
            digest.update(part)
        return digest.digest()

    def folded(self, content: bytes, reports: int) -> "TallyRow":
        """The row after one more fold, which added so many reports."""
        return self._replace(folds=self.folds + 1, reports=self.reports + reports, content=content)


COLUMNS: LiteralString = "id, shard, folds, reports, content, checksum"
"""The columns that `checked` expects, of `tallies` joined with `collections`."""


def checked(values: Iterable[Any]) -> TallyRow:
    """The row of `COLUMNS` as read from a database; StorageDamaged if its checksum does not match."""
    collection, shard, folds, reports, content, checksum = values
    row = TallyRow(collection, shard, folds, reports, bytes(content))
    if not _fits(row, bytes(checksum)):
        raise tally_damaged(row.collection, row.shard, "has other bytes than were written")
    return row


def _fits(row: TallyRow, checksum: bytes) -> bool:
    # A flipped sign bit would make `pack` raise struct.error, but it is damage like any other.
    return row.folds >= 0 and row.reports >= 0 and compare_digest(row.checksum(), checksum)


def stored(values: Iterable[Any]) -> StoredTally:
    """The verified row as the storage port returns it."""
    row = checked(values)
    return StoredTally(row.shard, row.reports, row.content)


def by_window(rows: Iterable[Sequence[Any]]) -> dict[int, list[StoredTally]]:
    """The verified rows of the windows of a collection, by window."""
    found: dict[int, list[StoredTally]] = {}
    for row in rows:
        found.setdefault(window_number(row[0]), []).append(stored(row))
    return found
