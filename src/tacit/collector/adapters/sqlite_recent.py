"""Batch ids of the latest commits, on their way into the table of all ids.

Ids are random, so that each of them changes another page of a sorted table: a commit of 64 single reports would write
64 pages. The ids of new batches are therefore appended to a small table without an index, which is a page or two, and
go into the sorted one many at a time, when reports are folded. Until then a set in memory tells them apart.
"""

from tacit.collector.adapters.sqlite_connection import Database, array
from tacit.collector.ports import NewBatch

MOST = 16_384
"""No more ids than this wait to be sorted in."""

NEW = """SELECT key FROM collections WHERE id = ?1 AND state = 'published' AND NOT EXISTS
    (SELECT 1 FROM carray(?2) WHERE EXISTS (SELECT 1 FROM batches WHERE collection = key AND batch = value))"""
"""The key of a published collection, if none of these ids is in the sorted table."""


class Recent:
    """The ids that are not sorted in yet. Every method is called in a transaction that writes."""

    def __init__(self) -> None:
        """Begin knowing nothing."""
        self._ids: dict[int, set[bytes]] | None = None
        self._version = -1

    def known(self, db: Database) -> dict[int, set[bytes]]:
        """The ids by collection, read again if another process has changed the database."""
        version = int(db.run("PRAGMA data_version")[0][0])
        if self._ids is None or version != self._version:
            self._ids, self._version = {}, version
            for key, batch in db.run("SELECT collection, batch FROM recent"):
                self._ids.setdefault(key, set()).add(batch)
        return self._ids

    def forget(self) -> None:
        """Know nothing: a transaction was undone, or may have been."""
        self._ids = None

    def among(self, db: Database, key: int, batches: list[bytes]) -> set[bytes]:
        """Those ids of a collection that were stored lately."""
        return self.known(db).get(key, set[bytes]()).intersection(batches)

    def add_new(self, db: Database, collection: str, batches: "list[NewBatch]") -> int | None:
        """Note the ids of batches if the collection is published and all are new; gives its key, or None."""
        ids = sorted({batch.batch for batch in batches})
        known = self.known(db)
        rows = db.run(NEW, collection, array(ids)) if len(ids) == len(batches) else []
        if not rows or not known.get(rows[0][0], set[bytes]()).isdisjoint(ids):
            return None
        key = int(rows[0][0])
        # Sorted, so that nothing is kept of the order in which they came.
        db.change("INSERT INTO recent SELECT ?, value FROM carray(?)", key, array(ids))
        known.setdefault(key, set()).update(ids)
        if sum(map(len, known.values())) > MOST:
            self.sort_in(db)
        return key

    def sort_in(self, db: Database) -> None:
        """Move all ids into the sorted table."""
        if any(self.known(db).values()):
            db.run("INSERT INTO batches SELECT collection, batch FROM recent ORDER BY 1, 2; DELETE FROM recent")
            self._ids = {}
