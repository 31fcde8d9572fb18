"""Backup and restore of a PostgreSQL store: its tables in an SQLite file, which either kind of store can restore."""

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import LiteralString

from tacit.collector.store.postgres.connection import Connection
from tacit.collector.store.sqlite.recent import Recent
from tacit.collector.store.sqlite.schema import migrate, migrate_file
from tacit.errors import StorageUnavailable
from tacit.hosting.sqlite import (
    Database,
    explained,
    make_private,
    new_file,
    open_reader,
    open_writer,
)

TABLES: dict[LiteralString, LiteralString] = {
    "collections": "key, id, state, document, published, team",
    "batches": "collection, batch",
    "waiting": "number, collection, batches, reports, payload",
    "tallies": "collection, shard, folds, reports, content, checksum",
    "rejected": "collection, reason, reports",
    "invitations": "collection, hash, spent",
    "issuers": "id, secret",
    "issued": "collection, blinded, invitation",
    "used": "collection, hash",
    "kept": "collection, part, name, payload",
    "days": "collection, day, shard, reports",
    "origins": "collection, origin",
    "tokens": "hash, scope, collection, name, expires, team",
    "audit": "number, day, actor, action, subject, team",
    "webhooks": "id, url, events, secret, team, day",
    "deliveries": "number, webhook, event, collection, body, state, attempts, due, day, note",
    "marks": "mark, day",
}
"""Tables and their columns, ordered so that foreign keys refer to earlier tables only."""

# Tables with an identity column, whose sequence must go on behind the restored numbers.
_NUMBERED: dict[LiteralString, LiteralString] = {
    "collections": "key",
    "waiting": "number",
    "audit": "number",
    "deliveries": "number",
}
# Rows per round trip of the server-side cursor, so that no table is held in memory.
_ROWS = 1000


def write_backup(db: Connection, path: str, finish: Callable[[Path], object] = lambda _: None) -> None:
    """Copy all tables to a new SQLite file; `finish(file)` runs before the file gets its final name."""
    # One snapshot for all tables: otherwise a fold between two of them would be copied half.
    db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    with new_file(path) as part, explained(part), closing(open_writer(part, None)) as file:
        migrate(file)
        with file.transaction("BEGIN"):
            for table, columns in TABLES.items():
                _to_sqlite(db, file, table, columns)
        # Leaving WAL mode merges the log into the file, so that the backup is one file.
        file.run("PRAGMA journal_mode = DELETE")
        finish(part)


def _to_sqlite(db: Connection, file: Database, table: LiteralString, columns: LiteralString) -> None:
    places = ", ".join("?" for _ in columns.split(","))
    text = f"INSERT INTO {table} ({columns}) VALUES ({places})"
    order = columns.split(",")[0] if table in _NUMBERED else "1, 2"
    with db.cursor(f"tacit_{table}", binary=True) as cursor:
        cursor.itersize = _ROWS
        for row in cursor.execute(f"SELECT {columns} FROM tacit.{table} ORDER BY {order}"):
            file.run(text, *row)


@contextmanager
def up_to_date(backup: str) -> Generator[Path]:
    """A temporary copy of a backup, migrated to the present schema; the backup itself is never changed."""
    with TemporaryDirectory(prefix="tacit-restore-") as folder:
        copy = Path(folder) / "copy.sqlite"
        make_private(copy.parent, copy)
        with explained(Path(backup)):
            with closing(open_reader(Path(backup), None)) as file:
                file.run("VACUUM INTO ?", str(copy))
            migrate_file(copy)
            # SQLite has batch ids in two tables (see `recent`); elsewhere they are one.
            with closing(open_writer(copy, None)) as file:
                with file.transaction("BEGIN IMMEDIATE"):
                    Recent().sort_in(file)
                file.run("PRAGMA journal_mode = DELETE")
        yield copy


def read_backup(db: Connection, path: Path) -> None:
    """Copy all tables of a backup (of the present schema) into an empty database; StorageUnavailable if it is not."""
    if db.execute("SELECT 1 FROM tacit.collections UNION SELECT 1 FROM tacit.tokens").fetchall():
        raise StorageUnavailable("restore: the database holds collections or tokens; restore into an empty one")
    with explained(path), closing(open_reader(path, None)) as file:
        for table, columns in TABLES.items():
            _to_postgres(db, file, table, columns)
    for table, column in _NUMBERED.items():
        text = f"SELECT setval(pg_get_serial_sequence('tacit.{table}', '{column}'), max({column})) FROM tacit.{table}"
        db.execute(text)


def _to_postgres(db: Connection, file: Database, table: LiteralString, columns: LiteralString) -> None:
    with db.cursor() as cursor, cursor.copy(f"COPY tacit.{table} ({columns}) FROM STDIN") as copy:
        with closing(file.stream(f"SELECT {columns} FROM {table} ORDER BY 1, 2")) as rows:
            for row in rows:
                copy.write_row(row)
