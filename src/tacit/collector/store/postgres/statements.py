"""The SQL statements of the PostgreSQL store; callers hold a transaction. A group of batches is bound as arrays.

Several processes write at once. Every statement locks rows in the order of their keys, so that two processes that
store the same batches queue up instead of deadlocking. Storing and closing both begin with the row of the collection,
and folding and dropping both lock `waiting` before `tallies`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from typing import Any, LiteralString

from psycopg.errors import SerializationFailure

from tacit.collector.ports import STORED, CollectionRecord, Fold, Keep, NewBatch, Outcome, StoredTally
from tacit.collector.store.checksums import COLUMNS, TallyRow, checked
from tacit.collector.store.intake import Mark, decide, decide_tally, invitations, refusals, segments, tokens, unpack
from tacit.collector.store.postgres.connection import Connection
from tacit.collector.store.sqlite.statements import FOLD_BYTES, need

FOLD_SEGMENTS = 256
"""One process claims at most so many blobs at once, so that others have something to fold too."""


TALLIES: LiteralString = "tacit.tallies JOIN tacit.collections ON key = collection"


WINDOWS: LiteralString = """SELECT id, state,
    (SELECT coalesce(sum(reports), 0)::bigint FROM tacit.tallies WHERE collection = key),
    (SELECT coalesce(sum(reports), 0)::bigint FROM tacit.waiting WHERE collection = key)
    FROM tacit.collections WHERE id LIKE %s"""


def add_collection(db: Connection, record: CollectionRecord, day: int, windows: int) -> None:
    """Insert a collection and, with ids that follow from its own, its windows."""
    db.execute(
        """INSERT INTO tacit.collections (id, state, document, published, team) VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT DO NOTHING""",
        (record.id, record.state, record.document, day, record.team),
    )
    db.execute(
        """INSERT INTO tacit.collections (id, state, document, published)
        SELECT %s || '.' || k, 'published', '{}'::bytea, %s FROM generate_series(0, %s - 1) AS k
        ON CONFLICT DO NOTHING""",
        (record.id, day, windows),
    )


def rows(db: Connection, text: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
    """All rows of a query, transferred in binary format, as payloads would double in size as hexadecimal text."""
    return db.execute(text, values, binary=True).fetchall()


def run(db: Connection, text: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement that is written for both databases (see `store.notices`) and return its rows, if it has any."""
    found = db.execute(text.replace("?", "%s").replace("@", "tacit."), values)
    return [] if found.description is None else found.fetchall()


def key_of(db: Connection, collection: str) -> int:
    """Key of a collection; InvalidSpec if there is none."""
    found = rows(db, "SELECT key FROM tacit.collections WHERE id = %s", collection)
    need(len(found), collection, "is unknown")
    return int(found[0][0])


def close(db: Connection, collection: str) -> int:
    """Close a published collection and return its key.

    The row lock makes it wait for transactions that are adding reports (see `BatchGroup`), so that no report is stored
    after a collection is seen as closed.
    """
    text = "UPDATE tacit.collections SET state = 'closed' WHERE id = %s AND state <> 'draft' RETURNING key"
    found = rows(db, text, collection)
    need(len(found), collection, "was never published")
    db.execute("UPDATE tacit.collections SET state = 'closed' WHERE id LIKE %s", (f"{collection}.%",))
    db.execute("DELETE FROM tacit.issuers WHERE id = %s", (collection,))
    db.execute("DELETE FROM tacit.kept WHERE collection = %s", (int(found[0][0]),))
    return int(found[0][0])


def count(db: Connection, key: int, reasons: Mapping[str, int]) -> None:
    """Add to the counts of refused reports of a collection."""
    # In sorted order: two processes that upsert the same rows in different orders would deadlock.
    names = sorted(reasons)
    db.execute(
        """INSERT INTO tacit.rejected AS kept SELECT %s, * FROM unnest(%s::text[], %s::bigint[])
        ON CONFLICT (collection, reason) DO UPDATE SET reports = kept.reports + excluded.reports""",
        (key, names, [reasons[name] for name in names]),
    )


def count_day(db: Connection, key: int, day: int, shard: str, reports: int) -> None:
    """Add to the number of reports that were folded on a day; a row per shard, so that processes do not queue up."""
    db.execute(
        """INSERT INTO tacit.days AS kept VALUES (%s, %s, %s, %s)
        ON CONFLICT (collection, day, shard) DO UPDATE SET reports = kept.reports + excluded.reports""",
        (key, day, shard, reports),
    )


class BatchGroup:
    """Stores a group of batches in one transaction.

    Ids are claimed first, by INSERT ... ON CONFLICT DO NOTHING: the unique index makes another process with the same
    batch wait for this transaction. Claims of batches that are refused afterwards are deleted again.
    """

    def __init__(self, db: Connection, batches: Sequence[NewBatch]) -> None:
        self._db, self._batches = db, batches
        names = sorted({batch.collection for batch in batches})
        # FOR SHARE: groups do not block each other, but closing a collection waits for this group, or this group waits
        # for the closing and then sees the collection closed.
        text = "SELECT id, key, state FROM tacit.collections WHERE id = ANY(%s) ORDER BY key FOR SHARE"
        found = rows(db, text, names)
        self._keys = {str(name): int(key) for name, key, _ in found}
        self._states = {str(name): str(state) for name, _, state in found}
        self._names = {key: name for name, key in self._keys.items()}

    def store(self) -> list[Outcome]:
        """Store the batches that are new and allowed; returns the outcome of each."""
        ids = {(batch.collection, batch.batch) for batch in self._batches}
        claimed = self._claim({mark for mark in ids if self._states.get(mark[0]) == "published"})
        stored = self._stored(ids - claimed)
        free = self._claim_tokens({mark for mark in tokens(self._batches) if self._states.get(mark[0]) == "published"})
        outcomes = decide(self._batches, self._states, stored, self._unspent() | free)
        accepted = [batch for batch, outcome in zip(self._batches, outcomes, strict=True) if outcome == STORED]
        self._release(claimed - {(batch.collection, batch.batch) for batch in accepted})
        self._release_tokens(free - set(tokens(accepted)))
        self._spend(invitations(accepted))
        self._insert(accepted)
        for name, reasons in sorted(refusals(accepted).items()):
            count(self._db, self._keys[name], reasons)
        return outcomes

    def _arrays(self, marks: Collection[Mark]) -> tuple[list[int], list[bytes]]:
        known = sorted((self._keys[name], value) for name, value in marks if name in self._keys)
        return [key for key, _ in known], [value for _, value in known]

    def _marks(self, text: LiteralString, marks: Collection[Mark]) -> set[Mark]:
        keys, values = self._arrays(marks)
        found = rows(self._db, text, keys, values) if keys else []
        return {(self._names[key], bytes(value)) for key, value in found}

    def _claim(self, marks: Collection[Mark]) -> set[Mark]:
        """Insert batch ids and return those that were new; waits for other transactions that insert the same ids."""
        return self._marks(
            """INSERT INTO tacit.batches SELECT * FROM unnest(%b::bigint[], %b::bytea[])
            ON CONFLICT DO NOTHING RETURNING collection, batch""",
            marks,
        )

    def _claim_tokens(self, marks: Collection[Mark]) -> set[Mark]:
        """Insert tokens as used and return those that were new; waits like `_claim`."""
        return self._marks(
            """INSERT INTO tacit.used SELECT * FROM unnest(%b::bigint[], %b::bytea[])
            ON CONFLICT DO NOTHING RETURNING collection, hash""",
            marks,
        )

    def _release_tokens(self, marks: Collection[Mark]) -> None:
        self._marks(
            """DELETE FROM tacit.used AS u USING unnest(%b::bigint[], %b::bytea[]) AS gone (collection, hash)
            WHERE u.collection = gone.collection AND u.hash = gone.hash RETURNING u.collection, u.hash""",
            marks,
        )

    def _stored(self, marks: Collection[Mark]) -> set[Mark]:
        return self._marks(
            """SELECT collection, batch FROM tacit.batches
            JOIN unnest(%b::bigint[], %b::bytea[]) AS asked (collection, batch) USING (collection, batch)""",
            marks,
        )

    def _unspent(self) -> set[Mark]:
        return self._marks(
            """SELECT collection, hash FROM tacit.invitations
            JOIN unnest(%b::bigint[], %b::bytea[]) AS asked (collection, hash) USING (collection, hash)
            WHERE spent = 0 ORDER BY collection, hash FOR UPDATE OF invitations""",
            set(invitations(self._batches)),
        )

    def _release(self, marks: Collection[Mark]) -> None:
        self._marks(
            """DELETE FROM tacit.batches AS b USING unnest(%b::bigint[], %b::bytea[]) AS gone (collection, batch)
            WHERE b.collection = gone.collection AND b.batch = gone.batch RETURNING b.collection, b.batch""",
            marks,
        )

    def _spend(self, marks: Collection[Mark]) -> None:
        self._marks(
            """UPDATE tacit.invitations AS i SET spent = 1
            FROM unnest(%b::bigint[], %b::bytea[]) AS used (collection, hash)
            WHERE i.collection = used.collection AND i.hash = used.hash RETURNING i.collection, i.hash""",
            marks,
        )

    def _insert(self, batches: Sequence[NewBatch]) -> None:
        text = "INSERT INTO tacit.waiting (collection, batches, reports, payload) VALUES (%s, %s, %s, %b)"
        for name, segment in segments(batches).items():
            self._db.execute(text, (self._keys[name], segment.batches, segment.reports, segment.payload))


def set_origins(db: Connection, collection: str, origins: Sequence[str]) -> None:
    """Replace the sites that an operator allows."""
    key = key_of(db, collection)
    db.execute("DELETE FROM tacit.origins WHERE collection = %s", (key,))
    db.execute("INSERT INTO tacit.origins SELECT %s, * FROM unnest(%s::text[])", (key, list(origins)))


def add_tally(db: Connection, collection: str, tally: StoredTally, sources: Sequence[bytes], day: int) -> Outcome:
    """Insert the tally and the ids of its sources, or nothing if one of them is there already."""
    # FOR UPDATE, unlike a group of batches: two imports of one collection queue up, and the second sees the first.
    found = rows(db, "SELECT key, state FROM tacit.collections WHERE id = %s FOR UPDATE", collection)
    key, state = found[0] if found else (0, None)
    text = "SELECT batch FROM tacit.batches WHERE collection = %s AND batch = ANY(%b::bytea[])"
    known = {bytes(batch) for (batch,) in rows(db, text, key, list(sources))}
    outcome = decide_tally(state, sources, known)
    if outcome == STORED:
        db.execute("INSERT INTO tacit.batches SELECT %s, * FROM unnest(%b::bytea[])", (key, sorted(sources)))
        _insert_tally(db, key, TallyRow(collection, tally.shard, 1, tally.reports, tally.content))
        count_day(db, key, day, tally.shard, tally.reports)
    return outcome


def fold_some(
    db: Connection, collection: str, shard: str, fold: Fold, most: int, day: int, keep: Keep | None = None
) -> int:
    """Claim waiting blobs, fold them into a tally and delete them, all in one transaction: exactly once.

    Other processes skip claimed blobs (SKIP LOCKED) until this transaction ends; if this process dies, the server rolls
    back and the blobs are free again.
    """
    key, fence = key_of(db, collection), rows(db, _FENCE)
    # FOR SHARE: closing waits for this transaction, and then deletes what it kept.
    text = "SELECT 1 FROM tacit.collections WHERE key = %s AND state = 'published' FOR SHARE"
    is_open = keep is not None and rows(db, text, key)
    numbers, reports = _claim_segments(db, key, most)
    if not numbers:
        _await_others(db, key)
        return 0
    text = "SELECT payload FROM tacit.waiting WHERE number = ANY(%s) ORDER BY number"
    batches = [batch for (payload,) in rows(db, text, numbers) for batch in unpack(payload)]
    tally = _locked_tally(db, key, TallyRow(collection, shard, 0, 0, b""))
    before = tally.content if tally.folds else None
    folded = tally.folded(fold(before, batches), reports)
    # Locked until the commit: a process that raises the fence waits for it, and then sees what it named.
    if rows(db, _FENCE + " FOR SHARE") != fence:
        raise SerializationFailure("folds were fenced off")
    db.execute(
        """UPDATE tacit.tallies SET folds = %s, reports = %s, content = %b, checksum = %b
        WHERE collection = %s AND shard = %s""",
        (folded.folds, folded.reports, folded.content, folded.checksum(), key, shard),
    )
    db.execute("DELETE FROM tacit.waiting WHERE number = ANY(%s)", (numbers,))
    count_day(db, key, day, shard, reports)
    if keep is not None and is_open:
        text = "INSERT INTO tacit.kept VALUES (%s, %s, %s, %s)"
        db.execute(text, (key, *astuple(keep(before, batches))))
    return len(batches)


_FENCE: LiteralString = "SELECT value FROM tacit.meta WHERE key = 'fence'"


def _await_others(db: Connection, key: int) -> None:
    """Wait until the blobs that other processes are folding now are in their tallies.

    Whoever answers from tallies next has counted everything that was acknowledged before, by whichever process.
    """
    db.execute("SELECT 1 FROM tacit.waiting WHERE collection = %s ORDER BY number FOR SHARE", (key,))


def _locked_tally(db: Connection, key: int, new: TallyRow) -> TallyRow:
    """The verified tally row of a shard, locked until the transaction ends; `new` if it was never folded."""
    # FOR UPDATE cannot lock a row that does not exist, so an empty one is inserted first: processes that begin the
    # same shard at the same time then wait for each other.
    _insert_tally(db, key, new)
    text = f"SELECT {COLUMNS} FROM {TALLIES} WHERE key = %s AND shard = %s FOR UPDATE OF tallies"
    return checked(rows(db, text, key, new.shard)[0])


def _insert_tally(db: Connection, key: int, new: TallyRow) -> None:
    text = """INSERT INTO tacit.tallies (collection, shard, folds, reports, content, checksum)
        VALUES (%s, %s, %s, %s, %b, %b) ON CONFLICT DO NOTHING"""
    db.execute(text, (key, new.shard, new.folds, new.reports, new.content, new.checksum()))


def _claim_segments(db: Connection, key: int, most: int) -> tuple[list[int], int]:
    """Lock the oldest blobs that no other process is folding; returns their numbers and number of reports."""
    # Payloads are read afterwards, and only of the blobs that are taken: here their length is enough.
    text = """SELECT number, batches, reports, octet_length(payload) FROM tacit.waiting
        WHERE collection = %s ORDER BY number LIMIT %s FOR UPDATE SKIP LOCKED"""
    numbers: list[int] = []
    batches = reports = size = 0
    for number, held, inside, length in rows(db, text, key, min(most, FOLD_SEGMENTS)):
        if numbers and (batches >= most or size >= FOLD_BYTES):
            break
        numbers.append(number)
        batches, reports, size = batches + held, reports + inside, size + length
    return numbers, reports


def drop_reports(db: Connection, collection: str) -> None:
    """Close a collection and delete its reports; `waiting` before `tallies`, the order in which folds lock them."""
    key = close(db, collection)
    db.execute("DELETE FROM tacit.waiting WHERE collection = %s", (key,))
    db.execute("DELETE FROM tacit.tallies WHERE collection = %s", (key,))
    db.execute("DELETE FROM tacit.batches WHERE collection = %s", (key,))
    db.execute("DELETE FROM tacit.invitations WHERE collection = %s", (key,))
    db.execute("DELETE FROM tacit.issued WHERE collection = %s", (key,))
    db.execute("DELETE FROM tacit.used WHERE collection = %s", (key,))
    db.execute("DELETE FROM tacit.days WHERE collection = %s", (key,))


def add_invitations(db: Connection, collection: str, hashes: Sequence[bytes]) -> None:
    """Insert invitations; existing ones stay as they are, spent or not."""
    db.execute(
        "INSERT INTO tacit.invitations SELECT %s, *, 0 FROM unnest(%b::bytea[]) ON CONFLICT DO NOTHING",
        (key_of(db, collection), list(hashes)),
    )
