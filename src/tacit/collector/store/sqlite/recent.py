"""A write buffer for batch ids: new ids are appended to a small table, and moved to the big sorted one in bulk.

Ids are random, so that each one dirties another page of the sorted table `batches`: a commit of 64 single reports would
write 64 pages. New ids are therefore appended to the table `recent`, which has no index and fills a page or two, and
are moved many at a time, when reports are folded. Until then a set in memory answers "was this id stored?":

    duplicate = id in batches (B-tree)  or  id in recent (set in memory, a copy of the table)
"""

from tacit.collector.ports import NewBatch
from tacit.hosting.sqlite import Database, array

MOST = 16_384
"""At most so many ids are buffered: a bound on memory, and on the time to read them after a start."""

NEW = """SELECT key FROM collections WHERE id = ?1 AND state = 'published' AND NOT EXISTS
    (SELECT 1 FROM carray(?2) WHERE EXISTS (SELECT 1 FROM batches WHERE collection = key AND batch = value))"""
"""The key of a collection if it is published and none of these ids is in `batches`: one statement for both checks."""


class Recent:
    """The buffered ids and their copy in memory. Every method must be called inside a write transaction."""

    def __init__(self, most: int = MOST) -> None:
        """Begin without a copy, which is read on first use; at most `most` ids are buffered."""
        self._most = most
        self._ids: dict[int, set[bytes]] | None = None
        self._version = -1

    def known(self, db: Database) -> dict[int, set[bytes]]:
        """The buffered ids by collection key; read again if another process has changed the database."""
        # data_version changes when another connection commits, not when this one does.
        version = int(db.run("PRAGMA data_version")[0][0])
        if self._ids is None or version != self._version:
            self._ids, self._version = {}, version
            for key, batch in db.run("SELECT collection, batch FROM recent"):
                self._ids.setdefault(key, set()).add(batch)
        return self._ids

    def forget(self) -> None:
        """Drop the copy in memory, because a transaction was rolled back, or may have been."""
        self._ids = None

    def among(self, db: Database, key: int, batches: list[bytes]) -> set[bytes]:
        """Those of these ids that are buffered, for one collection."""
        return self.known(db).get(key, set[bytes]()).intersection(batches)

    def add_new(self, db: Database, collection: str, batches: "list[NewBatch]") -> int | None:
        """Fast path: buffer the ids of a plain group if its collection is published and all ids are new.

        Returns the collection's key, or None (nothing is changed) if the slow path has to look at every batch.
        """
        ids = sorted({batch.batch for batch in batches})
        known = self.known(db)
        rows = db.run(NEW, collection, array(ids)) if len(ids) == len(batches) else []
        if not rows or not known.get(rows[0][0], set[bytes]()).isdisjoint(ids):
            return None
        key = int(rows[0][0])
        # Inserted in sorted order, so that the table tells nothing of the order of arrival.
        db.change("INSERT INTO recent SELECT ?, value FROM carray(?)", key, array(ids))
        known.setdefault(key, set()).update(ids)
        if sum(map(len, known.values())) > self._most:
            self.sort_in(db)
        return key

    def sort_in(self, db: Database) -> None:
        """Move all buffered ids into the table `batches`, in its order."""
        if any(self.known(db).values()):
            db.run("INSERT INTO batches SELECT collection, batch FROM recent ORDER BY 1, 2; DELETE FROM recent")
            self._ids = {}
