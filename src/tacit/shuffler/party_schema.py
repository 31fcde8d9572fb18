"""The schema of a party's database, as numbered migrations.

    meta                   schema version
    secrets, seal_keys     the identity; the keys that respondents seal for, newest last
    sessions --+--< kept         named bytes: state of the machine, vectors, roster; secret
               +--< uploads      slots and shares of respondents, many in a row; secret
               +--< inbox        letters that arrived; the envelope stays when the body has been used
               +--< outbox       letters to others, stored before they are sent; without body once acknowledged
               +--< admissions   hashes of tokens, spent or not
               +--< counters     refused and accepted uploads by reason

Whatever is secret is deleted with `secure_delete` when a session ends. Times and addresses are stored nowhere.
"""

from tacit.errors import StorageUnavailable
from tacit.hosting.sqlite import Database

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE secrets (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
    CREATE TABLE seal_keys (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        public TEXT NOT NULL UNIQUE,
        private BLOB NOT NULL
    ) STRICT;
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        document BLOB NOT NULL,
        party INTEGER NOT NULL,
        state TEXT NOT NULL,
        progress TEXT NOT NULL,
        is_over INTEGER NOT NULL DEFAULT 0,
        is_open INTEGER NOT NULL DEFAULT 0,
        needs_token INTEGER NOT NULL DEFAULT 0,
        most_uploads INTEGER NOT NULL,
        uploads INTEGER NOT NULL DEFAULT 0,
        ending TEXT NOT NULL DEFAULT '{}'
    ) STRICT;
    CREATE TABLE kept (
        session INTEGER NOT NULL REFERENCES sessions,
        name TEXT NOT NULL,
        content BLOB NOT NULL,
        UNIQUE (session, name)
    ) STRICT;
    CREATE TABLE uploads (
        session INTEGER NOT NULL REFERENCES sessions,
        slot BLOB NOT NULL,
        share BLOB NOT NULL,
        PRIMARY KEY (session, slot)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE inbox (
        session INTEGER NOT NULL REFERENCES sessions,
        attempt INTEGER NOT NULL,
        round INTEGER NOT NULL,
        phase TEXT NOT NULL,
        sender TEXT NOT NULL,
        envelope BLOB NOT NULL,
        body BLOB,
        UNIQUE (session, attempt, round, phase, sender)
    ) STRICT;
    -- Letters are numbered once and for all, so that an acknowledgement never meets another letter.
    CREATE TABLE outbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL REFERENCES sessions,
        receiver TEXT NOT NULL,
        phase TEXT NOT NULL,
        envelope BLOB NOT NULL,
        body BLOB
    ) STRICT;
    CREATE INDEX outbox_of_session ON outbox (session);
    CREATE TABLE admissions (
        session INTEGER NOT NULL REFERENCES sessions,
        hash BLOB NOT NULL,
        spent INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (session, hash)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE counters (
        session INTEGER NOT NULL REFERENCES sessions,
        reason TEXT NOT NULL,
        amount INTEGER NOT NULL,
        PRIMARY KEY (session, reason)
    ) STRICT, WITHOUT ROWID;
    """,
    # Without a reference to sessions: SQLite clears a table page by page only if there is no foreign key to look at,
    # and all uploads of a session are deleted at once.
    """
    ALTER TABLE uploads RENAME TO uploads_before;
    CREATE TABLE uploads (
        session INTEGER NOT NULL,
        slot BLOB NOT NULL,
        share BLOB NOT NULL,
        PRIMARY KEY (session, slot)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO uploads SELECT session, slot, share FROM uploads_before;
    DROP TABLE uploads_before;
    """,
    # A row for all uploads of a transaction: `party_uploads` says why.
    """
    ALTER TABLE uploads RENAME TO uploads_before;
    CREATE TABLE uploads (session INTEGER NOT NULL, slots BLOB NOT NULL, shares BLOB NOT NULL) STRICT;
    INSERT INTO uploads SELECT session, slot, share FROM uploads_before;
    DROP TABLE uploads_before;
    """,
)
"""Migration i takes a database from version i to i + 1. New ones are appended; released ones are never edited."""


def migrate_party(db: Database) -> None:
    """Bring a database to the present version in one transaction; StorageUnavailable if a newer release made it."""
    with db.transaction("BEGIN IMMEDIATE"):
        db.run("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT")
        rows = db.run("SELECT value FROM meta WHERE key = 'version'")
        version = int(rows[0][0]) if rows else 0
        if version > len(MIGRATIONS):
            raise StorageUnavailable(
                f"party: the database has schema version {version}, this release knows versions up to "
                f"{len(MIGRATIONS)}; run the release that made it, or a newer one"
            )
        for step in MIGRATIONS[version:]:
            db.run(step)
        if version < len(MIGRATIONS):
            db.run("INSERT OR REPLACE INTO meta VALUES ('version', ?)", len(MIGRATIONS))
