"""Segments in backups: a backup is a database file, and a folder beside it with the segments that it names.

Copying verifies every tally and every segment, so that a backup that was made is known to be whole.
"""

import os
import shutil
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path

from tacit.collector.rows.manifest import IN_LAKE, is_manifest, load_manifest
from tacit.collector.rows.segments import PART, SegmentFiles, damaged, explained
from tacit.collector.store.checksums import COLUMNS, checked
from tacit.collector.store.sqlite.statements import TALLIES
from tacit.errors import InvalidSpec, StorageUnavailable
from tacit.hosting.durable import make_folder, sync
from tacit.hosting.sqlite import explained as database_explained
from tacit.hosting.sqlite import open_reader
from tacit.lake.entries import SUFFIX, SegmentEntry

_CHUNK = 1 << 20


def beside(backup: str | Path) -> Path:
    """The folder of segments that belongs to a backup file."""
    return Path(f"{backup}.segments")


def refuse_lost(database: str, segments: Path | None) -> None:
    """StorageUnavailable for an empty database beside a folder of segments: the database that named them was lost.

    Starting anyway would begin anew, as if nothing had ever been collected.
    """
    sealed = {path.parent.name for path in segments.glob(f"*/*{SUFFIX}")} if segments is not None else set[str]()
    if sealed:
        raise StorageUnavailable(
            f"storage: {database}, but {segments} has sealed rows of {len(sealed)} collections: their database was "
            "lost, or this is another; restore a backup with `tacit restore`, or move that folder away to begin anew"
        )


@contextmanager
def new_copies(segments: Path | None, backup: str) -> Generator[None]:
    """Hold off sweeps while a database and then its segments are copied; removes the copies if that fails."""
    # The lock is taken before the database is copied: a segment that the copy names could be merged and swept before
    # its own turn.
    target = beside(backup)
    if target.exists():
        raise StorageUnavailable(f"backup: {target} exists; name a new file")
    there = segments is not None and segments.is_dir()
    with SegmentFiles(segments).shared() if there else nullcontext():
        try:
            yield
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise


def copy_segments(database: Path, source: Path | None, target: Path | None) -> int:
    """Copy every segment that an SQLite database names from one folder to another; returns how many.

    All tallies are verified on the way, whether they name segments or not: StorageDamaged if one is corrupt, because
    a corrupt backup must not replace a good one.
    """
    copied = 0
    for collection, entry in _named(database):
        if source is None or target is None:
            raise InvalidSpec(
                "segments: there are rows, so a folder for them is needed; give it with --segments FOLDER"
            )
        with explained(target):
            make_folder(target)
            make_folder(target / collection)
            _copy(source / collection / entry.file, target / collection / entry.file, entry)
        copied += 1
    return copied


def _named(database: Path) -> list[tuple[str, SegmentEntry]]:
    """All segments that the manifests of a database name, with their collections; what is in a lake stays there."""
    text = f"SELECT {COLUMNS} FROM {TALLIES} ORDER BY key, shard"
    with database_explained(database), closing(open_reader(database, None)) as db:
        with closing(db.stream(text)) as rows:
            found = [row for row in map(checked, rows) if is_manifest(row.content)]
            manifests = [row for row in found if IN_LAKE not in row.shard]
    return [(row.collection, entry) for row in manifests for entry in load_manifest(row.content)]


def _copy(source: Path, target: Path, entry: SegmentEntry) -> None:
    """Copy one file, verifying its checksum; it gets its final name when it is complete and synced."""
    part, digest = target.with_name(target.name + PART), sha256()
    try:
        with (
            source.open("rb") as reader,
            open(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as writer,
        ):
            while chunk := reader.read(_CHUNK):
                digest.update(chunk)
                writer.write(chunk)
            writer.flush()
            os.fsync(writer.fileno())
        if digest.hexdigest() != entry.sha256:
            raise damaged(source, "has other bytes than were sealed")
        os.replace(part, target)
        sync(target.parent)
    except FileNotFoundError:
        raise damaged(source, "is missing") from None
    finally:
        part.unlink(missing_ok=True)
