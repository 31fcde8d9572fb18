"""Checksums of tallies in a database, the same in every database, so that a backup carries them from one to another.

A database notices a page that is not one, and hands out a flipped bit in a cell of a tally without a word. So every
row with a tally has a checksum over all that it says, its collection and its shard included: a row that was moved to
another collection is noticed as well.
"""

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from struct import Struct
from typing import Any, LiteralString, NamedTuple

from tacit.collector.ports import StoredTally, tally_damaged

_NUMBERS = Struct("<QQQQ")


class TallyRow(NamedTuple):
    """The tally of one shard, as a database keeps it."""

    collection: str
    """The id, which is the same in every database; keys are not."""
    shard: str
    folds: int
    """How often it was replaced."""
    reports: int
    content: bytes

    def checksum(self) -> bytes:
        """SHA-256 of all fields; lengths come first, so that no two rows have the same bytes to hash."""
        names = [self.collection.encode(), self.shard.encode()]
        digest = sha256(_NUMBERS.pack(*map(len, names), self.folds, self.reports))
        for part in (*names, self.content):
            digest.update(part)
        return digest.digest()

    def folded(self, content: bytes, reports: int) -> "TallyRow":
        """The row after one more fold."""
        return self._replace(folds=self.folds + 1, reports=self.reports + reports, content=content)


COLUMNS: LiteralString = "id, shard, folds, reports, content, checksum"
"""What `checked` reads, of the tallies joined with their collections."""


def checked(values: Iterable[Any]) -> TallyRow:
    """A row as it was read, its checksum last; `StorageDamaged` if it is not as it was written."""
    collection, shard, folds, reports, content, checksum = values
    row = TallyRow(collection, shard, folds, reports, bytes(content))
    if not _fits(row, bytes(checksum)):
        raise tally_damaged(row.collection, row.shard, "has other bytes than were written")
    return row


def _fits(row: TallyRow, checksum: bytes) -> bool:
    # A flipped sign of a number cannot be packed, and is damage like any other.
    return row.folds >= 0 and row.reports >= 0 and compare_digest(row.checksum(), checksum)


def stored(values: Iterable[Any]) -> StoredTally:
    """What the collector reads of a row."""
    row = checked(values)
    return StoredTally(row.shard, row.reports, row.content)
