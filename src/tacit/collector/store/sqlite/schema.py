"""The schema of the SQLite store, as numbered migrations.

    collections --+--< batches       ids of all batches ever stored (duplicate detection)
                  +--< recent        the newest of these ids, not yet in `batches` (write buffer, see `recent`)
                  +--< arriving      a view to insert a group through: its trigger appends to `waiting` and `recent`
                  +--< waiting       packed batches that are stored and not yet folded
                  +--< tallies       one row per shard: a tally or, with rows, a manifest of segments
                  +--< rejected      counts of refused reports by reason
                  +--< invitations   hashes of single-use invitations, spent or not
                  +--< issued        hashes of blinded messages that were signed, each for an invitation
                  +--< used          hashes of anonymous tokens that came with reports
                  +--< kept          counted reports that are kept for integrity, until the collection is closed
                  +--< days          numbers of folded reports by day and shard
                  +--< origins       sites that an operator allows beside those of the document
    tokens, audit, meta              access tokens (hashes), operators' actions, schema version
    issuers                          private keys that sign the anonymous tokens of collections, until they are closed
    webhooks, deliveries, marks      addresses that are told about events, messages to them, events that were told

A report is in `waiting` or in `tallies`, never in both: a fold moves it in one transaction. Times of arrival and
network addresses are stored nowhere; `days` has sums that no report can be told from.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tacit.collector.store.checksums import TallyRow
from tacit.errors import StorageUnavailable
from tacit.hosting.sqlite import Database, open_writer


def _seal_tallies(db: Database) -> None:
    """Add the column `checksum` and fill it in, row by row, as tallies may be large."""
    # A collector of an earlier release may still be running, and must not write a tally without a checksum. Renaming
    # the column makes its folds fail; what is waiting waits for a collector of this release.
    db.run("ALTER TABLE tallies RENAME COLUMN tally TO content")
    db.run("ALTER TABLE tallies ADD COLUMN checksum BLOB NOT NULL DEFAULT x''")
    text = "SELECT id, shard, folds, reports, content FROM tallies JOIN collections ON key = collection"
    for key, shard in db.run("SELECT collection, shard FROM tallies"):
        for values in db.run(f"{text} WHERE key = ? AND shard = ?", key, shard):
            checksum = TallyRow(*values).checksum()
            db.run("UPDATE tallies SET checksum = ? WHERE collection = ? AND shard = ?", checksum, key, shard)


Step = str | Callable[[Database], None]

MIGRATIONS: tuple[Step, ...] = (
    """
    CREATE TABLE collections (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        state TEXT NOT NULL CHECK (state IN ('draft', 'published', 'closed')),
        document BLOB NOT NULL,
        published INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE batches (
        collection INTEGER NOT NULL REFERENCES collections,
        batch BLOB NOT NULL,
        PRIMARY KEY (collection, batch)
    ) STRICT, WITHOUT ROWID;
    -- Rows are numbered once and for all, so that a segment never takes the number of one that was dropped.
    CREATE TABLE waiting (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        collection INTEGER NOT NULL REFERENCES collections,
        batches INTEGER NOT NULL,
        reports INTEGER NOT NULL,
        payload BLOB NOT NULL
    ) STRICT;
    CREATE INDEX waiting_of_collection ON waiting (collection);
    CREATE TABLE tallies (
        collection INTEGER NOT NULL REFERENCES collections,
        shard TEXT NOT NULL,
        folds INTEGER NOT NULL,
        reports INTEGER NOT NULL,
        tally BLOB NOT NULL,
        PRIMARY KEY (collection, shard)
    ) STRICT;
    CREATE TABLE rejected (
        collection INTEGER NOT NULL REFERENCES collections,
        reason TEXT NOT NULL,
        reports INTEGER NOT NULL,
        PRIMARY KEY (collection, reason)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE invitations (
        collection INTEGER NOT NULL REFERENCES collections,
        hash BLOB NOT NULL,
        spent INTEGER NOT NULL,
        PRIMARY KEY (collection, hash)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE tokens (
        hash BLOB PRIMARY KEY,
        scope TEXT NOT NULL,
        collection TEXT NOT NULL,
        label TEXT NOT NULL,
        expires INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE audit (
        number INTEGER PRIMARY KEY,
        day INTEGER NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        subject TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE recent (
        collection INTEGER NOT NULL REFERENCES collections,
        batch BLOB NOT NULL
    ) STRICT;
    """,
    _seal_tallies,
    """
    CREATE TABLE days (
        collection INTEGER NOT NULL REFERENCES collections,
        day INTEGER NOT NULL,
        shard TEXT NOT NULL,
        reports INTEGER NOT NULL,
        PRIMARY KEY (collection, day, shard)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE origins (
        collection INTEGER NOT NULL REFERENCES collections,
        origin TEXT NOT NULL,
        PRIMARY KEY (collection, origin)
    ) STRICT, WITHOUT ROWID;
    """,
    # A column of tokens is renamed, so that collectors of earlier releases that still run accept no token at all: they
    # would take one that is limited to a team for one without limits.
    """
    ALTER TABLE collections ADD COLUMN team TEXT NOT NULL DEFAULT '';
    ALTER TABLE tokens RENAME COLUMN label TO name;
    ALTER TABLE tokens ADD COLUMN team TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN team TEXT NOT NULL DEFAULT '';
    """,
    # A row of `recent` has the ids of a whole group. The column is renamed, so that a collector of an earlier release
    # that still runs stores nothing, rather than take a row for one id.
    """
    ALTER TABLE recent RENAME COLUMN batch TO ids;
    CREATE VIEW arriving AS SELECT collection, batches, reports, payload, x'' AS ids FROM waiting;
    CREATE TRIGGER arrive INSTEAD OF INSERT ON arriving BEGIN
        INSERT INTO waiting (collection, batches, reports, payload)
            VALUES (NEW.collection, NEW.batches, NEW.reports, NEW.payload);
        INSERT INTO recent VALUES (NEW.collection, NEW.ids);
    END;
    """,
    """
    CREATE TABLE webhooks (
        id TEXT PRIMARY KEY,
        url TEXT NOT NULL,
        events TEXT NOT NULL,
        secret TEXT NOT NULL,
        team TEXT NOT NULL,
        day INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE deliveries (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        webhook TEXT NOT NULL,
        event TEXT NOT NULL,
        collection TEXT NOT NULL,
        body TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
        attempts INTEGER NOT NULL,
        due INTEGER NOT NULL,
        day INTEGER NOT NULL,
        note TEXT NOT NULL
    ) STRICT;
    CREATE TABLE marks (mark TEXT PRIMARY KEY, day INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    """,
    """
    CREATE TABLE issuers (id TEXT PRIMARY KEY, secret BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE issued (
        collection INTEGER NOT NULL REFERENCES collections,
        blinded BLOB NOT NULL,
        invitation BLOB NOT NULL,
        PRIMARY KEY (collection, blinded)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE used (
        collection INTEGER NOT NULL REFERENCES collections,
        hash BLOB NOT NULL,
        PRIMARY KEY (collection, hash)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE kept (
        collection INTEGER NOT NULL REFERENCES collections,
        part INTEGER NOT NULL,
        name BLOB NOT NULL,
        payload BLOB NOT NULL,
        PRIMARY KEY (collection, part, name)
    ) STRICT, WITHOUT ROWID;
    """,
)
"""Migration i takes a database from version i to i + 1. New ones are appended; released ones are never edited."""


def migrate(db: Database) -> None:
    """Migrate a database to the present version in one transaction; StorageUnavailable if it is of a newer release."""
    # IMMEDIATE takes the write lock before the version is read, so that of two processes one migrates.
    with db.transaction("BEGIN IMMEDIATE"):
        db.run("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT")
        rows = db.run("SELECT value FROM meta WHERE key = 'version'")
        version = int(rows[0][0]) if rows else 0
        check_version(version, len(MIGRATIONS))
        for step in MIGRATIONS[version:]:
            if callable(step):
                step(db)
            else:
                db.run(step)
        if version < len(MIGRATIONS):
            db.run("INSERT OR REPLACE INTO meta VALUES ('version', ?)", len(MIGRATIONS))


def migrate_file(file: Path) -> None:
    """Migrate a copy of a database, and leave it as one file without a WAL beside it."""
    with closing(open_writer(file, None)) as db:
        migrate(db)
        db.run("PRAGMA journal_mode = DELETE")


def check_version(found: int, known: int) -> None:
    """StorageUnavailable for a schema version that this release does not know."""
    if found > known:
        raise StorageUnavailable(
            f"storage: the database has schema version {found}, this release knows versions up to {known}; "
            "run the release that made it, or a newer one"
        )
