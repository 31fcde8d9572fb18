"""A write buffer for batch ids: new ids are appended to a small table, and moved to the big sorted one in bulk.

Ids are random, so that each one dirties another page of the sorted table `batches`: a commit of 64 single reports would
write 64 pages. The new ids of a group are therefore appended to the table `recent` as one row, side by side, and are
moved many at a time, when reports are folded. Until then a set in memory answers "was this id stored?":

    duplicate = id in batches (B-tree)  or  id in recent (set in memory, a copy of the table)
"""

from tacit.collector.store.intake import BatchSegment
from tacit.hosting.sqlite import Database, array

MOST = 16_384
"""At most so many ids are buffered: a bound on memory, and on the time to read them after a start."""
ID_BYTES = 16
"""The length of a batch id."""

# One statement for everything, which is a transaction of its own: the interpreter's lock is let go once, and another
# process cannot come between a check and what was checked. `arriving` is a view whose trigger appends to two tables.
ADD = """INSERT INTO arriving SELECT key, ?2, ?3, ?4, ?5 FROM collections WHERE id = ?1 AND state = 'published'
    AND (SELECT data_version FROM pragma_data_version) = ?6 AND NOT EXISTS
    (SELECT 1 FROM carray(?7) WHERE EXISTS (SELECT 1 FROM batches WHERE collection = key AND batch = value))
    RETURNING collection"""


class Recent:
    """The buffered ids and their copy in memory, by collection. All methods but `add_new` need a write transaction."""

    def __init__(self, most: int = MOST) -> None:
        """Begin without a copy, which is read on first use; at most `most` ids are buffered."""
        self._most = most
        self._ids: dict[str, set[bytes]] | None = None
        self._version, self._number = -1, 0

    def known(self, db: Database) -> dict[str, set[bytes]]:
        """The buffered ids by collection; read again if another process has changed the database."""
        # data_version changes when another connection commits, not when this one does.
        version = int(db.run("PRAGMA data_version")[0][0])
        if self._ids is None or version != self._version:
            self._ids, self._version = {}, version
            for name, ids in db.run("SELECT id, ids FROM recent JOIN collections ON key = collection"):
                self._ids.setdefault(name, set()).update(_split(ids))
            self._number = sum(map(len, self._ids.values()))
        return self._ids

    def forget(self) -> None:
        """Drop the copy in memory, because a transaction was rolled back, or may have been."""
        self._ids = None

    def among(self, db: Database, collection: str, batches: list[bytes]) -> set[bytes]:
        """Those of these ids that are buffered, for one collection."""
        return self.known(db).get(collection, set[bytes]()).intersection(batches)

    def add_new(self, db: Database, collection: str, batches: list[bytes], segment: BatchSegment) -> bool:
        """Fast path: store a plain group in one statement if its collection is published and all ids are new.

        Outside of a transaction. False (nothing is changed) if the slow path has to look at every batch: also if the
        buffer is full, or another process has changed the database.
        """
        all_known = self._ids
        if all_known is None:
            with db.transaction("BEGIN"):
                all_known = self.known(db)
        # Sorted, so that the table tells nothing of the order of arrival.
        ids = sorted(set(batches))
        row, known = b"".join(ids), all_known.setdefault(collection, set())
        is_full = self._number + len(ids) > self._most
        if is_full or len(row) != ID_BYTES * len(batches) or not known.isdisjoint(ids):
            return False
        values = (collection, segment.batches, segment.reports, segment.payload, row, self._version, array(ids))
        if not db.commit(ADD, *values):
            return False
        known.update(ids)
        self._number += len(ids)
        return True

    def make_room(self, db: Database, ids: int) -> None:
        """Sort all ids in if there is no room for so many more."""
        self.known(db)
        if self._number + ids > self._most:
            self.sort_in(db)

    def sort_in(self, db: Database) -> None:
        """Move all buffered ids into the table `batches`, in its order."""
        text = "INSERT INTO batches SELECT key, value FROM collections, carray(?2) WHERE id = ?1 ORDER BY value"
        for name, ids in self.known(db).items():
            if ids:
                db.run(text, name, array(sorted(ids)))
        if self._number:
            db.run("DELETE FROM recent")
        self._ids, self._number = {}, 0


def _split(ids: bytes) -> list[bytes]:
    return [ids[i : i + ID_BYTES] for i in range(0, len(ids), ID_BYTES)]
