"""The storage port over PostgreSQL, for several collector processes on one database."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

from tacit.collector.ports import (
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
from tacit.collector.store.checksums import COLUMNS, by_window, checked, stored
from tacit.collector.store.intake import by_collection, window_numbers
from tacit.collector.store.issuing import IssuingTables
from tacit.collector.store.notices import NoticeTables, Run
from tacit.collector.store.party_copies import new_party_copy, party_beside, restore_party
from tacit.collector.store.postgres import statements as sql
from tacit.collector.store.postgres.connection import Connection, Pool
from tacit.collector.store.postgres.party import PostgresParty, has_party_tables
from tacit.collector.store.postgres.schema import migrate
from tacit.collector.store.segment_copies import beside, copy_segments, new_copies, refuse_lost
from tacit.collector.store.transfer import read_backup, up_to_date, write_backup
from tacit.hosting.clock import today

_TOKENS: LiteralString = "SELECT hash, scope, collection, name, expires, team FROM tacit.tokens"


class PostgresStore:
    """Every method is one transaction on a pooled connection; row locks order those of several processes."""

    def __init__(self, url: str, *, segments: str | Path | None = None, today: Callable[[], int] = today) -> None:
        self._url, self._pool, self._segments = url, Pool(url), None if segments is None else Path(segments)
        self._today = today
        try:
            self._pool.run(migrate)
            if not self.collections():
                refuse_lost("the database holds no collection", self._segments)
        except BaseException:
            self._pool.close()
            raise

    @property
    def segments(self) -> Path | None:
        """The folder of segments, which all collectors on this database must share; None if there is none."""
        return self._segments

    @property
    def notices(self) -> NoticeTables:
        """Webhooks, messages to them, and events that were told."""
        return NoticeTables(self._transact)

    @property
    def issuing(self) -> IssuingTables:
        """What is kept of anonymous tokens where they are signed."""
        return IssuingTables(self._transact)

    def _transact(self, work: Callable[[Run], Any]) -> Any:
        return self._pool.run(lambda db: work(partial(sql.run, db)))

    def open_party(self) -> PostgresParty:
        """Open the shuffle tables, which all collectors on this database share."""
        return PostgresParty(self._url)

    def _query(self, text: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
        return self._pool.run(lambda db: sql.rows(db, text, *values))

    def _change(self, text: LiteralString, *values: Any) -> int:
        return self._pool.run(lambda db: db.execute(text, values).rowcount)

    # Collections.

    def add_collection(self, record: CollectionRecord, windows: int = 0) -> None:
        """Add a draft or a published collection, published today; one whose id is there already is left as it is."""
        day = 0 if record.state == "draft" else self._today()
        self._pool.run(lambda db: sql.add_collection(db, record, day, windows))

    def replace_draft(self, record: CollectionRecord) -> None:
        """Replace the document of a draft; `InvalidSpec` if there is none, for published documents never change."""
        text = "UPDATE tacit.collections SET document = %s WHERE id = %s AND state = 'draft'"
        sql.need(self._change(text, record.document, record.id), record.id, "is no draft")

    def delete_draft(self, collection: str) -> None:
        """Remove a draft; `InvalidSpec` if there is none."""
        text = "DELETE FROM tacit.collections WHERE id = %s AND state = 'draft'"
        sql.need(self._change(text, collection), collection, "is no draft")

    def close_collection(self, collection: str) -> None:
        """Take no more reports; `InvalidSpec` if it was never published."""
        self._pool.run(lambda db: sql.close(db, collection))

    def assign(self, collection: str, team: str) -> None:
        """Give a collection to a team, or to none; `InvalidSpec` if there is no such collection."""
        changed = self._change("UPDATE tacit.collections SET team = %s WHERE id = %s", team, collection)
        sql.need(changed, collection, "is unknown")

    def collection(self, collection: str) -> CollectionRecord | None:
        """One collection."""
        rows = self._query("SELECT id, state, document, team FROM tacit.collections WHERE id = %s", collection)
        return CollectionRecord(*rows[0]) if rows else None

    def collections(self) -> list[CollectionRecord]:
        """All collections, in order of creation."""
        text = "SELECT id, state, document, team FROM tacit.collections WHERE position('.' in id) = 0 ORDER BY key"
        return [CollectionRecord(*row) for row in self._query(text)]

    def windows(self, collection: str) -> list[WindowNumbers]:
        """The windows of a collection, in their order."""
        return window_numbers(self._query(sql.WINDOWS, f"{collection}.%"))

    def window_tallies(self, collection: str) -> dict[int, list[StoredTally]]:
        """The verified tallies of all windows that have any, by window."""
        text = f"SELECT {COLUMNS} FROM {sql.TALLIES} WHERE id LIKE %s ORDER BY id, shard"
        return by_window(self._query(text, f"{collection}.%"))

    def published_day(self, collection: str) -> int:
        """Unix day of publication; 0 for a draft."""
        rows = self._query("SELECT published FROM tacit.collections WHERE id = %s", collection)
        sql.need(len(rows), collection, "is unknown")
        return int(rows[0][0])

    # Reports.

    def add_batches(self, batches: Sequence[NewBatch]) -> list[Outcome]:
        """Store batches in one transaction and say what became of each; durable when this returns."""
        return self._pool.run(lambda db: sql.BatchGroup(db, batches).store())

    def count_rejected(self, collection: str, reasons: Mapping[str, int]) -> None:
        """Count refused reports by reason."""
        self._pool.run(lambda db: sql.count(db, sql.key_of(db, collection), reasons))

    def rejected(self, collection: str) -> dict[str, int]:
        """Refused reports by reason."""
        text = "SELECT reason, reports FROM tacit.rejected JOIN tacit.collections ON key = collection WHERE id = %s"
        return {str(reason): int(reports) for reason, reports in self._query(text, collection)}

    def stored_reports(self, collection: str) -> int:
        """Number of reports accepted so far, folded or not."""
        text = """SELECT coalesce(sum(reports), 0)::bigint FROM
            (SELECT collection, reports FROM tacit.tallies UNION ALL SELECT collection, reports FROM tacit.waiting) AS t
            WHERE collection = (SELECT key FROM tacit.collections WHERE id = %s)"""
        return int(self._query(text, collection)[0][0])

    def batch_numbers(self, collection: str) -> BatchNumbers:
        """Numbers of batches and reports, folded and waiting, in one snapshot."""
        text = """SELECT (SELECT count(*) FROM tacit.batches WHERE collection = key),
            (SELECT coalesce(sum(reports), 0)::bigint FROM tacit.tallies WHERE collection = key),
            (SELECT coalesce(sum(batches), 0)::bigint FROM tacit.waiting WHERE collection = key),
            (SELECT coalesce(sum(reports), 0)::bigint FROM tacit.waiting WHERE collection = key)
            FROM tacit.collections WHERE id = %s"""
        rows = self._query(text, collection)
        batches, folded, waiting, reports = rows[0] if rows else (0, 0, 0, 0)
        return BatchNumbers(batches - waiting, folded, waiting, reports)

    def reports_by_day(self, collection: str) -> dict[int, int]:
        """Numbers of folded reports by the Unix day on which they were."""
        text = """SELECT day, sum(reports)::bigint FROM tacit.days JOIN tacit.collections ON key = collection
            WHERE id = %s GROUP BY day ORDER BY day"""
        return {int(day): int(reports) for day, reports in self._query(text, collection)}

    def set_origins(self, collection: str, origins: Sequence[str]) -> None:
        """Replace the sites that an operator allows beside those of the document."""
        self._pool.run(lambda db: sql.set_origins(db, collection, origins))

    def origins(self) -> dict[str, tuple[str, ...]]:
        """The sites that operators allow, by collection."""
        rows = self._query("SELECT id, origin FROM tacit.origins JOIN tacit.collections ON key = collection")
        return by_collection(rows)

    def fold_some(self, collection: str, shard: str, fold: Fold, most: int, keep: Keep | None = None) -> int:
        """Fold about `most` waiting batches, oldest first, into a shard's tally; returns how many there were."""
        return self._pool.run(lambda db: sql.fold_some(db, collection, shard, fold, most, self._today(), keep))

    def kept_reports(self, collection: str) -> list[KeptReports]:
        """What is kept of reports for integrity, by part and then by name."""
        text = """SELECT part, name, payload FROM tacit.kept AS k JOIN tacit.collections AS c ON c.key = k.collection
                  WHERE c.id = %s ORDER BY part, name"""
        return [KeptReports(part, bytes(name), bytes(payload)) for part, name, payload in self._query(text, collection)]

    def add_tally(self, collection: str, tally: StoredTally, sources: Sequence[bytes]) -> Outcome:
        """Add a tally that was made elsewhere as a shard of its own, with the ids of its sources."""
        return self._pool.run(lambda db: sql.add_tally(db, collection, tally, sources, self._today()))

    def fence(self) -> None:
        """Keep every fold that has begun and not committed from committing; it is retried."""
        self._change("UPDATE tacit.meta SET value = value + 1 WHERE key = 'fence'")

    def tally(self, collection: str, shard: str) -> bytes | None:
        """The verified tally of one shard, or None if it was never folded."""
        rows = self._query(f"SELECT {COLUMNS} FROM {sql.TALLIES} WHERE id = %s AND shard = %s", collection, shard)
        return checked(rows[0]).content if rows else None

    def tallies(self, collection: str) -> list[StoredTally]:
        """The verified tallies of all shards; readers add them up."""
        rows = self._query(f"SELECT {COLUMNS} FROM {sql.TALLIES} WHERE id = %s ORDER BY shard", collection)
        return [stored(row) for row in rows]

    def drop_reports(self, collection: str) -> None:
        """Close a collection and remove its reports, tallies, batch ids, invitations and counts (retention)."""
        self._pool.run(lambda db: sql.drop_reports(db, collection))

    # Access.

    def add_token(self, token: TokenRecord) -> None:
        """Add a token."""
        self._change(
            """INSERT INTO tacit.tokens (hash, scope, collection, name, expires, team) VALUES (%s, %s, %s, %s, %s, %s)
            ON CONFLICT (hash) DO UPDATE SET scope = excluded.scope, collection = excluded.collection,
            name = excluded.name, expires = excluded.expires, team = excluded.team""",
            *astuple(token),
        )

    def token(self, hash: bytes) -> TokenRecord | None:
        """The token of a hash."""
        rows = self._query(f"{_TOKENS} WHERE hash = %s", hash)
        return TokenRecord(*rows[0]) if rows else None

    def tokens(self) -> list[TokenRecord]:
        """All tokens."""
        rows = self._query(f"{_TOKENS} ORDER BY number")
        return [TokenRecord(*row) for row in rows]

    def revoke_token(self, hash: bytes) -> bool:
        """Remove a token; False if there was none."""
        return self._change("DELETE FROM tacit.tokens WHERE hash = %s", hash) == 1

    def invitations(self, collection: str) -> list[bytes]:
        """The hashes of all unspent invitations to a collection."""
        text = """SELECT hash FROM tacit.invitations AS i JOIN tacit.collections AS c ON c.key = i.collection
                  WHERE c.id = %s AND i.spent = 0"""
        return [bytes(row[0]) for row in self._query(text, collection)]

    def add_invitations(self, collection: str, hashes: Sequence[bytes]) -> None:
        """Add unspent invitations; one that is there already stays as it is, spent or not."""
        self._pool.run(lambda db: sql.add_invitations(db, collection, hashes))

    def audit(self, entry: AuditEntry) -> None:
        """Append an operator's action to the audit log."""
        text = "INSERT INTO tacit.audit (day, actor, action, subject, team) VALUES (%s, %s, %s, %s, %s)"
        self._change(text, *astuple(entry))

    def audit_log(self, most: int, team: str = "") -> list[AuditEntry]:
        """The latest actions, newest first: all, or those that are about a team."""
        text = """SELECT day, actor, action, subject, team FROM tacit.audit WHERE %s::text IN ('', team)
            ORDER BY number DESC LIMIT %s"""
        rows = self._query(text, team, most)
        return [AuditEntry(*row) for row in rows]

    # The database as a whole.

    def backup(self, path: str) -> None:
        """Write a consistent copy to a new file: an SQLite database, from which either kind of store is restored."""
        party = self.open_party() if self._pool.run(has_party_tables) else None
        with new_party_copy(party, path), new_copies(self.segments, path):
            self._pool.run(
                lambda db: write_backup(db, path, lambda part: copy_segments(part, self.segments, beside(path)))
            )

    def restore(self, path: str) -> None:
        """Fill an empty database and the folder of segments from a backup."""

        with up_to_date(path) as copy:

            def restore(db: Connection) -> None:
                # Segments are copied before the transaction commits, so that no manifest names a missing file.
                read_backup(db, copy)
                copy_segments(copy, beside(path), self.segments)

            if party_beside(path).exists():
                with closing(self.open_party()) as party:
                    restore_party(path, party)
            self._pool.run(restore)

    def probe(self, *, write: bool = False) -> bool:
        """Health check: read and, if asked, write something; False, as the server's free disk is not known here."""
        self.collection("")
        if write:
            self._change(
                """INSERT INTO tacit.meta AS kept VALUES ('probe', 1)
                ON CONFLICT (key) DO UPDATE SET value = kept.value + 1"""
            )
        return False

    def close(self) -> None:
        """Release the connections."""
        self._pool.close()
