"""Shuffles in backups: a file beside the copy of the database, with keys, sessions and letters as they were.

It is copied *before* the database. A session that was counted in between is counted again after a restore, under the
same batch id, and found to be there; the other way round it would be taken for counted, and its reports be lost.

A restored collector must not contradict what it signed after the copy was made. Nearly all it can sign is determined by
what is kept: letters that wait are sent again byte for byte, and Ed25519 signs the same bytes alike. What is not (new
tokens, other spot checks) it does no more for sessions of before: they are marked here, see `shuffle.steps`.
"""

import json
import shutil
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tacit.errors import StorageUnavailable
from tacit.hosting.sqlite import explained, make_private, new_file
from tacit.shuffler.party_database import PartyDatabase, PartyFile

RESTORED = "restored"
"""In the progress of a session: it was under way when the backup was made."""
_TABLES = {
    "secrets": 2, "seal_keys": 3, "sessions": 12, "kept": 3, "uploads": 3, "inbox": 7, "outbox": 6, "admissions": 3,
    "counters": 3,
}  # fmt: skip
"""Tables with their numbers of columns, ordered so that references are to earlier ones only."""


def party_beside(backup: str | Path) -> Path:
    """The file about shuffles that belongs to a backup file."""
    return Path(f"{backup}.shuffle")


@contextmanager
def new_party_copy(source: PartyDatabase | None, backup: str) -> Generator[None]:
    """Copy the shuffle database, if there is one, before the block copies the rest; removed if the block fails."""
    if source is None:
        yield
        return
    target = party_beside(backup)
    with closing(source), new_file(str(target)) as part, explained(part):
        with closing(PartyFile(part)) as copy:
            _copy(source, copy)
            # Leaving WAL mode merges the log into the file, so that the copy is one file.
            copy.run("PRAGMA journal_mode = DELETE")
    try:
        yield
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def restore_party(backup: str | Path, target: PartyDatabase) -> None:
    """Fill empty tables from the copy beside a backup, and mark the sessions that were under way."""
    with TemporaryDirectory(prefix="tacit-restore-") as folder:
        # A copy of the copy: opening migrates, and a backup is never changed.
        file = Path(folder) / "copy"
        make_private(file.parent, file)
        shutil.copyfile(party_beside(backup), file)
        with closing(PartyFile(file)) as source:
            _copy(source, target)
    _mark_restored(target)


def _copy(source: PartyDatabase, target: PartyDatabase) -> None:
    # With the right to write, so that no phase is stored between two tables.
    with source.transaction("BEGIN IMMEDIATE"), target.transaction("BEGIN IMMEDIATE"):
        if target.run("SELECT 1 FROM secrets"):
            raise StorageUnavailable(f"restore: {target.file} has keys of a collector; restore into an empty one")
        for table, columns in _TABLES.items():
            text = f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"
            for row in source.run(f"SELECT * FROM {table} ORDER BY 1"):
                target.run(text, *row)
        target.renumber()


def _mark_restored(party: PartyDatabase) -> None:
    """Note in all sessions that are under way that others may know more about them than is kept here."""
    with party.transaction("BEGIN IMMEDIATE"):
        for key, progress in party.run("SELECT key, progress FROM sessions WHERE is_over = 0"):
            marked = json.dumps({**json.loads(progress), RESTORED: True})
            party.run("UPDATE sessions SET progress = ? WHERE key = ?", marked, key)
