"""The SQL statements of the SQLite store; callers hold a transaction. A group of batches is bound as arrays.

Few statements matter because of the GIL: it is released and taken again around every statement, and each time the
writer thread may have to wait for a busy HTTP thread.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from tacit.collector.ports import NewBatch
from tacit.collector.store.checksums import COLUMNS, TallyRow, checked
from tacit.collector.store.intake import BatchSegment, Mark, segments
from tacit.errors import InvalidSpec
from tacit.hosting.sqlite import Database, array

KEY = "(SELECT key FROM collections WHERE id = ?1)"
TALLIES = "tallies JOIN collections ON key = collection"

# A window has the id of its collection, a dot and its number; "/" is the character after the dot.
OF_WINDOWS = "id > ?1 || '.' AND id < ?1 || '/'"
ADD_WINDOWS = """WITH RECURSIVE numbers (k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM numbers WHERE k + 1 < ?2)
    INSERT INTO collections (id, state, document, published)
    SELECT ?1 || '.' || k, 'published', CAST('{}' AS BLOB), ?3 FROM numbers WHERE true ON CONFLICT DO NOTHING"""
WINDOWS = f"""SELECT id, state,
    (SELECT coalesce(sum(reports), 0) FROM tallies WHERE collection = key),
    (SELECT coalesce(sum(reports), 0) FROM waiting WHERE collection = key)
    FROM collections WHERE {OF_WINDOWS}"""

STORED_IDS = "EXISTS (SELECT 1 FROM batches WHERE collection = ?1 AND batch = value)"
UNSPENT = "EXISTS (SELECT 1 FROM invitations WHERE collection = ?1 AND hash = value AND NOT spent)"
USED = "EXISTS (SELECT 1 FROM used WHERE collection = ?1 AND hash = value)"
# Not after closing, which has deleted what was kept: batches may still wait then.
KEEP = "INSERT INTO kept SELECT key, ?2, ?3, ?4 FROM collections WHERE key = ?1 AND state = 'published'"

FOLD_BYTES = 1 << 25
"""A fold reads at most about this much payload, but always at least one packed blob."""


class Waiting(NamedTuple):
    """A row of the table `waiting`: packed batches that are to be folded."""

    number: int
    batches: int
    reports: int
    payload: bytes


def need(changed: int, collection: str, fault: str) -> None:
    """InvalidSpec if a statement found no row to work on."""
    if not changed:
        raise InvalidSpec(f"collection {collection}: {fault}; see the list of collections for those there are")


def find(db: Database, collection: str) -> tuple[int, str] | None:
    """Key and state of a collection, or None."""
    rows = db.run("SELECT key, state FROM collections WHERE id = ?", collection)
    return (int(rows[0][0]), str(rows[0][1])) if rows else None


def key_of(db: Database, collection: str) -> int:
    """Key of a collection; InvalidSpec if there is none."""
    rows = db.run("SELECT key FROM collections WHERE id = ?", collection)
    need(len(rows), collection, "is unknown")
    return int(rows[0][0])


def close(db: Database, collection: str) -> None:
    """Close a published collection, with its windows."""
    text = "UPDATE collections SET state = 'closed' WHERE id = ? AND state <> 'draft'"
    need(db.change(text, collection), collection, "was never published")
    db.run(f"UPDATE collections SET state = 'closed' WHERE {OF_WINDOWS}", collection)
    db.run("DELETE FROM issuers WHERE id = ?", collection)
    db.run(f"DELETE FROM kept WHERE collection = {KEY}", collection)


def count(db: Database, key: int, reasons: Mapping[str, int]) -> None:
    """Add to the counts of refused reports of a collection."""
    text = "INSERT INTO rejected VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET reports = reports + excluded.reports"
    for reason, reports in reasons.items():
        db.run(text, key, reason, reports)


def present(db: Database, condition: str, keys: Mapping[str, int], marks: Collection[Mark]) -> set[Mark]:
    """The subset of marks for which an SQL condition on `value` holds."""
    found: set[Mark] = set()
    for name, key in keys.items():
        values = tuple(value for collection, value in marks if collection == name)
        if values:
            # One row of text instead of many rows: every row fetched would release and take the GIL.
            text = f"SELECT group_concat(hex(value), ' ') FROM carray(?2) WHERE {condition}"
            rows = db.run(text, key, array(values))
            found.update((name, bytes.fromhex(digits)) for digits in (rows[0][0] or "").split())
    return found


def count_day(db: Database, key: int, day: int, shard: str, reports: int) -> None:
    """Add to the number of reports that were folded on a day."""
    text = "INSERT INTO days VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET reports = reports + excluded.reports"
    db.run(text, key, day, shard, reports)


def insert(db: Database, keys: Mapping[str, int], batches: Sequence[NewBatch]) -> None:
    """Insert batches that were decided to be stored: their ids, what they spend, and their reports."""
    for name, key in keys.items():
        mine = [batch for batch in batches if batch.collection == name]
        if mine:
            ids = array([batch.batch for batch in mine])
            db.run("INSERT INTO batches SELECT ?, value FROM carray(?)", key, ids)
        spent = [batch.invitation for batch in mine if batch.invitation is not None]
        if spent:
            text = "UPDATE invitations SET spent = 1 WHERE collection = ? AND hash IN (SELECT value FROM carray(?))"
            db.run(text, key, array(spent))
        used = [batch.token for batch in mine if batch.token is not None]
        if used:
            db.run("INSERT INTO used SELECT ?, value FROM carray(?)", key, array(used))
    for name, segment in segments(batches).items():
        insert_segment(db, keys[name], segment)


def insert_segment(db: Database, key: int, segment: BatchSegment) -> None:
    """Insert packed batches, to be folded later."""
    text = "INSERT INTO waiting (collection, batches, reports, payload) VALUES (?, ?, ?, ?)"
    db.change(text, key, segment.batches, segment.reports, segment.payload)


def tally(db: Database, collection: str, shard: str) -> TallyRow:
    """The verified tally row of a shard; an empty one with folds = 0 if it was never folded."""
    rows = db.run(f"SELECT {COLUMNS} FROM {TALLIES} WHERE id = ? AND shard = ?", collection, shard)
    return checked(rows[0]) if rows else TallyRow(collection, shard, 0, 0, b"")


def fence(db: Database) -> int:
    """How often folds have been fenced off (see the port); a fold commits only if that has not changed meanwhile."""
    rows = db.run("SELECT value FROM meta WHERE key = 'fence'")
    return int(rows[0][0]) if rows else 0


def oldest(db: Database, key: int, most: int) -> list[Waiting]:
    """The oldest waiting blobs of a collection, until they hold `most` batches or `FOLD_BYTES`."""
    text = "SELECT number, batches, reports, payload FROM waiting WHERE collection = ? ORDER BY number"
    segments: list[Waiting] = []
    batches = size = 0
    with closing(db.stream(text, key)) as rows:
        for segment in map(Waiting._make, rows):
            segments.append(segment)
            batches, size = batches + segment.batches, size + len(segment.payload)
            if batches >= most or size >= FOLD_BYTES:
                break
    return segments


def replace_tally(db: Database, key: int, row: TallyRow) -> bool:
    """Write a tally if it is still at the version before; False if another fold came first (compare and swap)."""
    if row.folds == 1:
        text = "INSERT INTO tallies (collection, shard, folds, reports, content, checksum) VALUES (?, ?, ?, ?, ?, ?)"
        values = (key, row.shard, row.folds, row.reports, row.content, row.checksum())
        return db.change(text + " ON CONFLICT DO NOTHING", *values) == 1
    text = "UPDATE tallies SET folds = ?, reports = ?, content = ?, checksum = ?"
    values = (row.folds, row.reports, row.content, row.checksum(), key, row.shard, row.folds - 1)
    return db.change(text + " WHERE collection = ? AND shard = ? AND folds = ?", *values) == 1


def drop_segments(db: Database, key: int, segments: Sequence[Waiting]) -> bool:
    """Delete the oldest blobs of a collection; False if they are not exactly those that were read."""
    # Numbers only grow (AUTOINCREMENT), so all blobs up to the last one read are the ones read, unless some were
    # folded or dropped meanwhile: then the number of deleted rows differs.
    text = "DELETE FROM waiting WHERE collection = ? AND number <= ?"
    return db.change(text, key, segments[-1].number) == len(segments)
