"""The storage port over SQLite: one folder with one database, for one collector of one or several processes.

Locks, always taken in this order:

    _folding    one fold at a time, of all processes; held while the fold function runs
    _lock       the writing connection; held for one short transaction
"""

import shutil
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

import apsw

from tacit.collector.ports import (
    STORED,
    AuditEntry,
    BatchNumbers,
    CollectionRecord,
    Fold,
    Keep,
    KeptReports,
    NewBatch,
    Outcome,
    StoredTally,
    TokenRecord,
    WindowNumbers,
)
from tacit.collector.store.checksums import COLUMNS, TallyRow, by_window, checked, stored
from tacit.collector.store.intake import (
    by_collection,
    decide,
    decide_tally,
    invitations,
    pack,
    plain_group,
    refusals,
    tokens,
    unpack,
    window_numbers,
)
from tacit.collector.store.issuing import IssuingTables
from tacit.collector.store.notices import NoticeTables, Run
from tacit.collector.store.party_copies import new_party_copy, party_beside, restore_party
from tacit.collector.store.segment_copies import beside, copy_segments, new_copies, refuse_lost
from tacit.collector.store.singles import SingleBatches
from tacit.collector.store.sqlite import statements as sql
from tacit.collector.store.sqlite.recent import ID_BYTES, MOST, Recent
from tacit.collector.store.sqlite.schema import migrate, migrate_file
from tacit.errors import StorageUnavailable
from tacit.hosting.clock import today
from tacit.hosting.durable import FolderLock
from tacit.hosting.sqlite import (
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
from tacit.shuffler.party_database import PartyFile

FILE, SEGMENTS, PARTY = "tacit.sqlite", "segments", "shuffle.db"
"""Names, inside the store's folder, of the database, of the folder of segments, and of the file about shuffles."""

LOW_BYTES = 1 << 26
"""A disk with less free space counts as nearly full: the WAL, and then a checkpoint, may need as much at any time."""

# More than the threads that answer queries, so that lists and health checks seldom wait for a connection.
_READERS = 6


class _Stale(Exception):
    """The tally or the waiting batches that a fold had read changed before it could commit."""


class SqliteStore:
    """One connection writes, under a lock; a pool of others reads consistent snapshots without blocking it (WAL)."""

    def __init__(
        self,
        folder: str | Path,
        *,
        vfs: str | None = None,
        today: Callable[[], int] = today,
        most_recent: int = MOST,
    ) -> None:
        """Open or create the database of a folder.

        `vfs` names SQLite's virtual file system (tests inject faults through it); `most_recent` is the number of batch
        ids that may be buffered (see `recent`).
        """
        check_library(apsw.sqlite_lib_version())
        self.file = Path(folder) / FILE
        self._vfs = vfs
        self._today = today
        self._lock = threading.Lock()
        self._recent = Recent(most_recent)
        self._refuse_lost_file()
        make_private(self.file.parent, self.file)
        # The stack closes all connections if anything below fails; `pop_all` disarms it once all is well.
        with explained(self.file), ExitStack() as opened:
            self._folding = opened.enter_context(closing(FolderLock(self.file.parent)))
            self._writer = opened.enter_context(closing(open_writer(self.file, vfs)))
            migrate(self._writer)
            self._readers = Readers(
                [opened.enter_context(closing(open_reader(self.file, vfs))) for _ in range(_READERS)]
            )
            if not self.collections():
                refuse_lost(f"{self.file} holds no collection", self.segments)
            opened.pop_all()

    def _refuse_lost_file(self) -> None:
        """StorageUnavailable, before anything is touched, if a database was here and was lost."""
        there = self.file.exists()
        if there and self.file.stat().st_size:
            return
        state = f"{self.file} is {'empty' if there else 'missing'}"
        refuse_lost(state, self.segments)
        log = self.file.with_name(f"{FILE}-wal")
        # Opening would lose data: SQLite deletes a WAL beside an empty database, and with it all commits since the
        # last checkpoint.
        if log.exists() and log.stat().st_size:
            raise StorageUnavailable(
                f"storage: {state}, but the log {log.name} beside it is not: the database was lost; move both away and "
                "restore a backup with `tacit restore`"
            )

    @property
    def segments(self) -> Path:
        """The folder for segments of rows."""
        return self.file.parent / SEGMENTS

    @property
    def notices(self) -> NoticeTables:
        """Webhooks, messages to them, and events that were told."""
        return NoticeTables(self._transact)

    @property
    def issuing(self) -> IssuingTables:
        """What is kept of anonymous tokens where they are signed."""
        return IssuingTables(self._transact)

    def _transact(self, work: Callable[[Run], Any]) -> Any:
        with self._write() as db:

            def run(text: str, *values: Any) -> list[tuple[Any, ...]]:
                return db.run(text.replace("@", "main."), *values)

            return work(run)

    def open_party(self) -> PartyFile:
        """Open what is kept of shuffles: a file beside the database, whose pages are rewritten after erasures."""
        return PartyFile(self.file.parent / PARTY)

    @contextmanager
    def _write(self) -> Generator[Database]:
        """A write transaction on the writing connection, under the lock."""
        with self._changing(), self._writer.transaction("BEGIN IMMEDIATE"):
            yield self._writer

    @contextmanager
    def _changing(self) -> Generator[None]:
        """The writing connection to oneself, under the lock."""
        with self._lock, explained(self.file):
            try:
                yield
            except BaseException:
                # Ids that were added to the set in memory may have been rolled back in the database.
                self._recent.forget()
                raise

    def _query(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        with explained(self.file), self._readers.lend() as db:
            return db.run(text, *values)

    # Collections.

    def add_collection(self, record: CollectionRecord, windows: int = 0) -> None:
        """Add a draft or a published collection, published today; one whose id is there already is left as it is."""
        day = 0 if record.state == "draft" else self._today()
        columns, places = "id, state, document, published, team", "?, ?, ?, ?, ?"
        text = f"INSERT INTO collections ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING"
        with self._write() as db:
            db.run(text, record.id, record.state, record.document, day, record.team)
            if windows:
                db.run(sql.ADD_WINDOWS, record.id, windows, day)

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

    def assign(self, collection: str, team: str) -> None:
        """Give a collection to a team, or to none; `InvalidSpec` if there is no such collection."""
        with self._write() as db:
            changed = db.change("UPDATE collections SET team = ? WHERE id = ?", team, collection)
            sql.need(changed, collection, "is unknown")

    def collection(self, collection: str) -> CollectionRecord | None:
        """One collection."""
        rows = self._query("SELECT id, state, document, team FROM collections WHERE id = ?", collection)
        return CollectionRecord(*rows[0]) if rows else None

    def collections(self) -> list[CollectionRecord]:
        """All collections, in order of creation."""
        text = "SELECT id, state, document, team FROM collections WHERE instr(id, '.') = 0 ORDER BY key"
        return [CollectionRecord(*row) for row in self._query(text)]

    def windows(self, collection: str) -> list[WindowNumbers]:
        """The windows of a collection, in their order."""
        return window_numbers(self._query(sql.WINDOWS, collection))

    def window_tallies(self, collection: str) -> dict[int, list[StoredTally]]:
        """The verified tallies of all windows that have any, by window."""
        text = f"SELECT {COLUMNS} FROM {sql.TALLIES} WHERE {sql.OF_WINDOWS} ORDER BY id, shard"
        return by_window(self._query(text, collection))

    def published_day(self, collection: str) -> int:
        """Unix day of publication; 0 for a draft."""
        rows = self._query("SELECT published FROM collections WHERE id = ?", collection)
        sql.need(len(rows), collection, "is unknown")
        return int(rows[0][0])

    # Reports.

    def add_batches(self, batches: Sequence[NewBatch]) -> list[Outcome]:
        """Store batches in one transaction and say what became of each; durable when this returns."""
        with self._changing():
            if self._add_new(batches):
                return [STORED] * len(batches)
            with self._writer.transaction("BEGIN IMMEDIATE"):
                return self._add_any(self._writer, batches)

    def _add_new(self, batches: Sequence[NewBatch]) -> bool:
        """Fast path for a plain group of new batches; False, having changed nothing, if it is not one."""
        name = plain_group(batches)
        if name is None:
            return False
        ids = batches.ids if isinstance(batches, SingleBatches) else [batch.batch for batch in batches]
        return self._recent.add_new(self._writer, name, ids, pack(batches))

    def _add_any(self, db: Database, batches: Sequence[NewBatch]) -> list[Outcome]:
        """Slow path: any mix of collections, duplicates, invitations and refusals."""
        found = ((name, sql.find(db, name)) for name in dict.fromkeys(batch.collection for batch in batches))
        known = {name: pair for name, pair in found if pair is not None}
        keys = {name: key for name, (key, _) in known.items()}
        states = {name: state for name, (_, state) in known.items()}
        stored = sql.present(db, sql.STORED_IDS, keys, [(batch.collection, batch.batch) for batch in batches])
        for name in keys:
            mine = [batch.batch for batch in batches if batch.collection == name]
            stored.update((name, batch) for batch in self._recent.among(db, name, mine))
        unspent = sql.present(db, sql.UNSPENT, keys, invitations(batches))
        unspent |= set(tokens(batches)) - sql.present(db, sql.USED, keys, tokens(batches))
        self._recent.make_room(db, len(batches))
        outcomes = decide(batches, states, stored, unspent)
        accepted = [batch for batch, outcome in zip(batches, outcomes, strict=True) if outcome == STORED]
        sql.insert(db, keys, accepted)
        for name, reasons in refusals(accepted).items():
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

    def batch_numbers(self, collection: str) -> BatchNumbers:
        """Numbers of batches and reports, folded and waiting, in one snapshot."""
        recent = f"coalesce(sum(length(ids)), 0) / {ID_BYTES} FROM recent"
        parts = ("count(*) FROM batches", recent, "coalesce(sum(reports), 0) FROM tallies",
                 "coalesce(sum(batches), 0) FROM waiting", "coalesce(sum(reports), 0) FROM waiting")  # fmt: skip
        text = ", ".join(f"(SELECT {part} WHERE collection = {sql.KEY})" for part in parts)
        sorted_in, new, folded, waiting, reports = self._query(f"SELECT {text}", collection)[0]
        return BatchNumbers(sorted_in + new - waiting, folded, waiting, reports)

    def reports_by_day(self, collection: str) -> dict[int, int]:
        """Numbers of folded reports by the Unix day on which they were."""
        text = f"SELECT day, sum(reports) FROM days WHERE collection = {sql.KEY} GROUP BY day ORDER BY day"
        rows = self._query(text, collection)
        return {int(day): int(reports) for day, reports in rows}

    def set_origins(self, collection: str, origins: Sequence[str]) -> None:
        """Replace the sites that an operator allows beside those of the document."""
        with self._write() as db:
            key = sql.key_of(db, collection)
            db.run("DELETE FROM origins WHERE collection = ?", key)
            for origin in origins:
                db.run("INSERT INTO origins VALUES (?, ?)", key, origin)

    def origins(self) -> dict[str, tuple[str, ...]]:
        """The sites that operators allow, by collection."""
        return by_collection(self._query("SELECT id, origin FROM origins JOIN collections ON key = collection"))

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int, keep: Keep | None = None) -> int:
        """Fold about `most` waiting batches, oldest first, into a shard's tally; returns how many there were.

        Exactly once, without holding the write lock while `fold` runs (optimistic concurrency):

            read transaction     tally at version v, waiting blobs 1..k
            no transaction       new content = fold(content, batches)
            write transaction    tally v -> v + 1 and delete blobs 1..k, both or neither; if stale, roll back
        """
        with self._folding:
            with explained(self.file), self._readers.lend() as db:
                key = sql.key_of(db, collection)
                tally, fence = sql.tally(db, collection, shard), sql.fence(db)
                rows = sql.oldest(db, key, most)
            if not rows:
                return 0
            batches = [batch for row in rows for batch in unpack(row.payload)]
            reports = sum(row.reports for row in rows)
            also = None if keep is None else keep(tally.content if tally.folds else None, batches)
            folded = tally.folded(fold(tally.content if tally.folds else None, batches), reports)
            with suppress(_Stale), self._write() as db:
                kept = sql.fence(db) == fence and sql.replace_tally(db, key, folded)
                if not (kept and sql.drop_segments(db, key, rows)):
                    raise _Stale
                sql.count_day(db, key, self._today(), shard, reports)
                if also is not None:
                    db.run(sql.KEEP, key, *astuple(also))
                self._recent.sort_in(db)
                return len(batches)
            return 0

    def kept_reports(self, collection: str) -> list[KeptReports]:
        """What is kept of reports for integrity, by part and then by name."""
        text = f"SELECT part, name, payload FROM kept WHERE collection = {sql.KEY} ORDER BY part, name"
        return [KeptReports(*row) for row in self._query(text, collection)]

    def add_tally(self, collection: str, tally: StoredTally, sources: Sequence[bytes]) -> Outcome:
        """Add a tally that was made elsewhere as a shard of its own, with the ids of its sources."""
        with self._write() as db:
            key, state = sql.find(db, collection) or (0, None)
            marks = [(collection, source) for source in sources]
            known = {source for _, source in sql.present(db, sql.STORED_IDS, {collection: key}, marks)}
            outcome = decide_tally(state, sources, known | self._recent.among(db, collection, list(sources)))
            if outcome == STORED:
                db.run("INSERT INTO batches SELECT ?, value FROM carray(?)", key, array(sources))
                sql.replace_tally(db, key, TallyRow(collection, tally.shard, 1, tally.reports, tally.content))
                sql.count_day(db, key, self._today(), tally.shard, tally.reports)
            return outcome

    def fence(self) -> None:
        """Keep every fold that has begun and not committed from committing; those of this process finish first."""
        with self._folding, self._write() as db:
            db.run("INSERT INTO meta VALUES ('fence', 1) ON CONFLICT DO UPDATE SET value = value + 1")

    def tally(self, collection: str, shard: str) -> bytes | None:
        """The verified tally of one shard, or None if it was never folded."""
        rows = self._query(f"SELECT {COLUMNS} FROM {sql.TALLIES} WHERE id = ? AND shard = ?", collection, shard)
        return checked(rows[0]).content if rows else None

    def tallies(self, collection: str) -> list[StoredTally]:
        """The verified tallies of all shards; readers add them up."""
        rows = self._query(f"SELECT {COLUMNS} FROM {sql.TALLIES} WHERE id = ? ORDER BY shard", collection)
        return [stored(row) for row in rows]

    def drop_reports(self, collection: str) -> None:
        """Close a collection and remove its reports, tallies, batch ids, invitations and counts (retention)."""
        with self._folding, self._write() as db:
            sql.close(db, collection)
            for table in ("waiting", "tallies", "batches", "recent", "invitations", "issued", "used", "days"):
                db.run(f"DELETE FROM {table} WHERE collection = {sql.KEY}", collection)
            self._recent.forget()

    # Access.

    def add_token(self, token: TokenRecord) -> None:
        """Add a token."""
        with self._write() as db:
            db.run("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?)", *astuple(token))

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

    def invitations(self, collection: str) -> list[bytes]:
        """The hashes of all unspent invitations to a collection."""
        text = "SELECT hash FROM invitations JOIN collections ON key = collection WHERE id = ? AND NOT spent"
        return [row[0] for row in self._query(text, collection)]

    def add_invitations(self, collection: str, hashes: Sequence[bytes]) -> None:
        """Add unspent invitations; one that is there already stays as it is, spent or not."""
        # WHERE true, because SQLite would parse ON CONFLICT behind a bare FROM as the ON of a join.
        text = "INSERT INTO invitations SELECT ?, value, 0 FROM carray(?) WHERE true ON CONFLICT DO NOTHING"
        with self._write() as db:
            key = sql.key_of(db, collection)
            if hashes:
                db.run(text, key, array(hashes))

    def audit(self, entry: AuditEntry) -> None:
        """Append an operator's action to the audit log."""
        with self._write() as db:
            db.run("INSERT INTO audit (day, actor, action, subject, team) VALUES (?, ?, ?, ?, ?)", *astuple(entry))

    def audit_log(self, most: int, team: str = "") -> list[AuditEntry]:
        """The latest actions, newest first: all, or those that are about a team."""
        text = (
            "SELECT day, actor, action, subject, team FROM audit WHERE ?1 IN ('', team) ORDER BY number DESC LIMIT ?2"
        )
        rows = self._query(text, team, most)
        return [AuditEntry(*row) for row in rows]

    # The database as a whole.

    def backup(self, path: str) -> None:
        """Write a consistent copy to a new file while reports go on arriving; segments are copied beside it."""
        # VACUUM INTO reads one snapshot; the segments it names cannot be swept while `new_copies` holds the lock.
        party = self.open_party() if (self.file.parent / PARTY).exists() else None
        with new_party_copy(party, path), new_file(path) as part, explained(part), new_copies(self.segments, path):
            with closing(open_reader(self.file, self._vfs)) as db:
                db.run("VACUUM INTO ?", str(part))
            copy_segments(part, self.segments, beside(path))

    @classmethod
    def restore(cls, backup: str | Path, folder: str | Path) -> "SqliteStore":
        """Create a store from a backup in an empty folder; the database gets its name last, after all segments."""
        target = Path(folder) / FILE
        if target.exists():
            raise StorageUnavailable(f"restore: {target} exists; restore into an empty folder")
        with new_file(str(target)) as part, explained(Path(backup)):
            with closing(open_reader(Path(backup), None)) as db:
                db.run("VACUUM INTO ?", str(part))
            migrate_file(part)
            copy_segments(part, beside(backup), target.with_name(SEGMENTS))
            if party_beside(backup).exists():
                with closing(PartyFile(target.with_name(PARTY))) as party:
                    restore_party(backup, party)
        return cls(folder)

    def probe(self, *, write: bool = False) -> bool:
        """Health check: read and, if asked, write something; returns whether the disk is nearly full."""
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
        self._folding.close()
