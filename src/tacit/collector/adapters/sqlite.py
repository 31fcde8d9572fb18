"""The storage port over SQLite: a folder with one database, for one collector process."""

import shutil
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

import apsw

from tacit.collector.adapters import sqlite_statements as sql
from tacit.collector.adapters.checksums import COLUMNS, checked, stored
from tacit.collector.adapters.intake import decide, invitations, pack, plain_group, refusals, unpack
from tacit.collector.adapters.segment_copies import beside, copy_segments, new_copies, refuse_lost
from tacit.collector.adapters.sqlite_connection import (
    Database,
    Readers,
    array,
    check_library,
    explained,
    make_private,
    new_file,
    open_reader,
    open_writer,
)
from tacit.collector.adapters.sqlite_recent import Recent
from tacit.collector.adapters.sqlite_schema import migrate, migrate_file
from tacit.collector.ports import STORED, AuditEntry, CollectionRecord, Fold, NewBatch, StoredTally, TokenRecord
from tacit.errors import StorageUnavailable

FILE, SEGMENTS = "tacit.sqlite", "segments"
"""Names of the database in its folder, and of the folder of segments beside it."""

LOW_BYTES = 1 << 26
"""With less room than this a disk is nearly full: a log and then a checkpoint may be about to need it."""

_READERS = 6


def unix_day() -> int:
    """Today, in days since 1970-01-01 UTC."""
    return int(time.time() // 86_400)


class _Stale(Exception):
    """What a fold was based on has changed."""


class SqliteStore:
    """One connection writes, under a lock; a few others read, each a consistent snapshot while writing goes on."""

    def __init__(self, folder: str | Path, *, vfs: str | None = None, today: Callable[[], int] = unix_day) -> None:
        check_library(apsw.sqlite_lib_version())
        self.file = Path(folder) / FILE
        self._vfs = vfs
        self._today = today
        self._lock = threading.Lock()
        self._folding = threading.Lock()
        self._recent = Recent()
        self._refuse_lost_file()
        make_private(self.file.parent, self.file)
        with explained(self.file), ExitStack() as opened:
            self._writer = opened.enter_context(closing(open_writer(self.file, vfs)))
            migrate(self._writer)
            self._readers = Readers(
                [opened.enter_context(closing(open_reader(self.file, vfs))) for _ in range(_READERS)]
            )
            if not self.collections():
                refuse_lost(f"{self.file} holds no collection", self.segments)
            opened.pop_all()

    def _refuse_lost_file(self) -> None:
        """Refuse to make a database where one was lost, before anything is touched."""
        there = self.file.exists()
        if there and self.file.stat().st_size:
            return
        state = f"{self.file} is {'empty' if there else 'missing'}"
        refuse_lost(state, self.segments)
        log = self.file.with_name(f"{FILE}-wal")
        # SQLite removes the log of an empty database, and with it what was stored since the last checkpoint.
        if log.exists() and log.stat().st_size:
            raise StorageUnavailable(
                f"storage: {state}, but the log {log.name} beside it is not: the database was lost; move both away and "
                "restore a backup with `tacit restore`"
            )

    @property
    def segments(self) -> Path:
        """The folder for segments of rows."""
        return self.file.parent / SEGMENTS

    @contextmanager
    def _write(self) -> Generator[Database]:
        with self._lock, explained(self.file):
            try:
                with self._writer.transaction("BEGIN IMMEDIATE"):
                    yield self._writer
            except BaseException:
                self._recent.forget()
                raise

    def _query(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        with explained(self.file), self._readers.lend() as db:
            return db.run(text, *values)

    # Collections.

    def add_collection(self, record: CollectionRecord) -> None:
        """Add a draft or a published collection, published today; one whose id is there already is left as it is."""
        day = 0 if record.state == "draft" else self._today()
        text = "INSERT INTO collections (id, state, document, published) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        with self._write() as db:
            db.run(text, record.id, record.state, record.document, day)

    def replace_draft(self, record: CollectionRecord) -> None:
        """Replace the document of a draft; `InvalidSpec` if there is none, for published documents never change."""
        text = "UPDATE collections SET document = ? WHERE id = ? AND state = 'draft'"
        with self._write() as db:
            sql.need(db.change(text, record.document, record.id), record.id, "is no draft")

    def delete_draft(self, collection: str) -> None:
        """Remove a draft; `InvalidSpec` if there is none."""
        text = "DELETE FROM collections WHERE id = ? AND state = 'draft'"
        with self._write() as db:
            sql.need(db.change(text, collection), collection, "is no draft")

    def close_collection(self, collection: str) -> None:
        """Take no more reports; `InvalidSpec` if it was never published."""
        with self._write() as db:
            sql.close(db, collection)

    def collection(self, collection: str) -> CollectionRecord | None:
        """One collection."""
        rows = self._query("SELECT id, state, document FROM collections WHERE id = ?", collection)
        return CollectionRecord(*rows[0]) if rows else None

    def collections(self) -> list[CollectionRecord]:
        """All collections, in order of creation."""
        return [
            CollectionRecord(*row) for row in self._query("SELECT id, state, document FROM collections ORDER BY key")
        ]

    def published_day(self, collection: str) -> int:
        """Unix day of publication; 0 for a draft."""
        rows = self._query("SELECT published FROM collections WHERE id = ?", collection)
        sql.need(len(rows), collection, "is unknown")
        return int(rows[0][0])

    # Reports.

    def add_batches(self, batches: Sequence[NewBatch]) -> list[str]:
        """Store batches in one transaction and say what became of each; durable when this returns."""
        with self._write() as db:
            return self._add_new(db, list(batches)) or self._add_any(db, batches)

    def _add_new(self, db: Database, batches: list[NewBatch]) -> list[str]:
        """Store a group in its common form that is new as a whole, as most are; nothing if it is not."""
        name = plain_group(batches)
        key = None if name is None else self._recent.add_new(db, name, batches)
        if key is None:
            return []
        sql.insert_segment(db, key, pack(batches))
        return [STORED] * len(batches)

    def _add_any(self, db: Database, batches: Sequence[NewBatch]) -> list[str]:
        found = ((name, sql.find(db, name)) for name in dict.fromkeys(batch.collection for batch in batches))
        known = {name: pair for name, pair in found if pair is not None}
        keys = {name: key for name, (key, _) in known.items()}
        states = {name: state for name, (_, state) in known.items()}
        stored = sql.present(db, sql.STORED_IDS, keys, [(batch.collection, batch.batch) for batch in batches])
        for name, key in keys.items():
            mine = [batch.batch for batch in batches if batch.collection == name]
            stored.update((name, batch) for batch in self._recent.among(db, key, mine))
        unspent = sql.present(db, sql.UNSPENT, keys, invitations(batches))
        outcomes = decide(batches, states, stored, unspent)
        kept = [batch for batch, outcome in zip(batches, outcomes, strict=True) if outcome == STORED]
        sql.insert(db, keys, kept)
        for name, reasons in refusals(kept).items():
            sql.count(db, keys[name], reasons)
        return outcomes

    def count_rejected(self, collection: str, reasons: Mapping[str, int]) -> None:
        """Count refused reports by reason."""
        with self._write() as db:
            sql.count(db, sql.key_of(db, collection), reasons)

    def rejected(self, collection: str) -> dict[str, int]:
        """Refused reports by reason."""
        rows = self._query(f"SELECT reason, reports FROM rejected WHERE collection = {sql.KEY}", collection)
        return {str(reason): int(reports) for reason, reports in rows}

    def stored_reports(self, collection: str) -> int:
        """Number of reports accepted so far, folded or not."""
        total = f"(SELECT coalesce(sum(reports), 0) FROM {{}} WHERE collection = {sql.KEY})"
        rows = self._query(f"SELECT {total.format('tallies')} + {total.format('waiting')}", collection)
        return int(rows[0][0])

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int) -> int:
        """Fold about `most` waiting batches, oldest first, into a shard's tally; returns how many there were.

        The database is read before and written after `fold` runs, so that it does not hold up reports that arrive
        meanwhile. What it was based on cannot have changed: the transaction that writes checks it and is undone if so.
        """
        with self._folding:
            with explained(self.file), self._readers.lend() as db:
                key = sql.key_of(db, collection)
                tally = sql.tally(db, collection, shard)
                rows = sql.oldest(db, key, most)
            if not rows:
                return 0
            batches = [batch for row in rows for batch in unpack(row.payload)]
            reports = sum(row.reports for row in rows)
            folded = tally.folded(fold(tally.content if tally.folds else None, batches), reports)
            with suppress(_Stale), self._write() as db:
                if not (sql.replace_tally(db, key, folded) and sql.drop_segments(db, key, rows)):
                    raise _Stale
                self._recent.sort_in(db)
                return len(batches)
            return 0

    def tally(self, collection: str, shard: str) -> bytes | None:
        """The tally of one shard."""
        rows = self._query(f"SELECT {COLUMNS} FROM {sql.TALLIES} WHERE id = ? AND shard = ?", collection, shard)
        return checked(rows[0]).content if rows else None

    def tallies(self, collection: str) -> list[StoredTally]:
        """The tallies of all shards; readers add them."""
        rows = self._query(f"SELECT {COLUMNS} FROM {sql.TALLIES} WHERE id = ? ORDER BY shard", collection)
        return [stored(row) for row in rows]

    def drop_reports(self, collection: str) -> None:
        """Close a collection and remove its reports, tallies, batch ids and invitations (retention)."""
        with self._folding, self._write() as db:
            sql.close(db, collection)
            for table in ("waiting", "tallies", "batches", "recent", "invitations"):
                db.run(f"DELETE FROM {table} WHERE collection = {sql.KEY}", collection)
            self._recent.forget()

    # Access.

    def add_token(self, token: TokenRecord) -> None:
        """Add a token."""
        with self._write() as db:
            db.run("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?)", *astuple(token))

    def token(self, hash: bytes) -> TokenRecord | None:
        """The token of a hash."""
        rows = self._query("SELECT * FROM tokens WHERE hash = ?", hash)
        return TokenRecord(*rows[0]) if rows else None

    def tokens(self) -> list[TokenRecord]:
        """All tokens."""
        return [TokenRecord(*row) for row in self._query("SELECT * FROM tokens ORDER BY rowid")]

    def revoke_token(self, hash: bytes) -> bool:
        """Remove a token; False if there was none."""
        with self._write() as db:
            return db.change("DELETE FROM tokens WHERE hash = ?", hash) == 1

    def add_invitations(self, collection: str, hashes: Sequence[bytes]) -> None:
        """Add unspent invitations; one that is there already stays as it is, spent or not."""
        # The condition tells SQLite's parser that ON begins no join.
        text = "INSERT INTO invitations SELECT ?, value, 0 FROM carray(?) WHERE true ON CONFLICT DO NOTHING"
        with self._write() as db:
            key = sql.key_of(db, collection)
            if hashes:
                db.run(text, key, array(hashes))

    def audit(self, entry: AuditEntry) -> None:
        """Note an operator's action."""
        with self._write() as db:
            db.run("INSERT INTO audit (day, actor, action, subject) VALUES (?, ?, ?, ?)", *astuple(entry))

    def audit_log(self, most: int) -> list[AuditEntry]:
        """The latest actions, newest first."""
        rows = self._query("SELECT day, actor, action, subject FROM audit ORDER BY number DESC LIMIT ?", most)
        return [AuditEntry(*row) for row in rows]

    # The database as a whole.

    def backup(self, path: str) -> None:
        """Write a consistent copy to a new file, while reports go on arriving; segments go into a folder beside it."""
        with new_file(path) as part, explained(part), new_copies(self.segments, path):
            with closing(open_reader(self.file, self._vfs)) as db:
                db.run("VACUUM INTO ?", str(part))
            copy_segments(part, self.segments, beside(path))

    @classmethod
    def restore(cls, backup: str | Path, folder: str | Path) -> "SqliteStore":
        """Make a store from a backup, in a folder that holds none."""
        target = Path(folder) / FILE
        if target.exists():
            raise StorageUnavailable(f"restore: {target} exists; restore into an empty folder")
        with new_file(str(target)) as part, explained(Path(backup)):
            with closing(open_reader(Path(backup), None)) as db:
                db.run("VACUUM INTO ?", str(part))
            migrate_file(part)
            copy_segments(part, beside(backup), target.with_name(SEGMENTS))
        return cls(folder)

    def probe(self, *, write: bool = False) -> bool:
        """Read and, if so asked, write something; says whether the disk is nearly full."""
        self.collection("")
        if write:
            with self._write() as db:
                db.run("INSERT INTO meta VALUES ('probe', 1) ON CONFLICT DO UPDATE SET value = value + 1")
        return shutil.disk_usage(self.file.parent).free < LOW_BYTES

    def close(self) -> None:
        """Release the database."""
        with self._folding, self._lock, explained(self.file):
            self._readers.close()
            self._writer.close()
