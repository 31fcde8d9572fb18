"""Copies of databases, checked: their tallies, and the segments they name, in a folder beside a backup."""

import os
import shutil
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path

from tacit.collector.adapters.checksums import COLUMNS, checked
from tacit.collector.adapters.sqlite_connection import explained as database_explained
from tacit.collector.adapters.sqlite_connection import open_reader
from tacit.collector.adapters.sqlite_statements import TALLIES
from tacit.collector.rows.manifest import SUFFIX, Entry, is_manifest, load_manifest
from tacit.collector.rows.segments import PART, SegmentFiles, damaged, explained, make_folder, sync
from tacit.errors import InvalidSpec, StorageUnavailable

_CHUNK = 1 << 20


def beside(backup: str | Path) -> Path:
    """The folder that goes with a backup file."""
    return Path(f"{backup}.segments")


def refuse_lost(database: str, segments: Path | None) -> None:
    """Refuse to begin with an empty database beside sealed rows, which only a database that was lost can have named."""
    sealed = {path.parent.name for path in segments.glob(f"*/*{SUFFIX}")} if segments is not None else set[str]()
    if sealed:
        raise StorageUnavailable(
            f"storage: {database}, but {segments} has sealed rows of {len(sealed)} collections: their database was "
            "lost, or this is another; restore a backup with `tacit restore`, or move that folder away to begin anew"
        )


@contextmanager
def new_copies(segments: Path | None, backup: str) -> Generator[None]:
    """Keep segments from being swept while a database and then they are copied; removes what failed half-way."""
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
    """Copy every segment that an SQLite database names from one folder to another; returns how many there are.

    All tallies are checked on the way, whether they name segments or not: `StorageDamaged` if one is not as it was
    written, for a copy of damage must not take the place of a backup that is whole.
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


def _named(database: Path) -> list[tuple[str, Entry]]:
    text = f"SELECT {COLUMNS} FROM {TALLIES} ORDER BY key, shard"
    with database_explained(database), closing(open_reader(database, None)) as db:
        with closing(db.stream(text)) as rows:
            manifests = [row for row in map(checked, rows) if is_manifest(row.content)]
    return [(row.collection, entry) for row in manifests for entry in load_manifest(row.content)]


def _copy(source: Path, target: Path, entry: Entry) -> None:
    """Copy a file that has the checksum of its manifest; it gets its name once it is complete and on the disk."""
    part, digest = target.with_name(target.name + PART), sha256()
    try:
        with (
            source.open("rb") as given,
            open(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as made,
        ):
            while chunk := given.read(_CHUNK):
                digest.update(chunk)
                made.write(chunk)
            made.flush()
            os.fsync(made.fileno())
        if digest.hexdigest() != entry.sha256:
            raise damaged(source, "has other bytes than were sealed")
        os.replace(part, target)
        sync(target.parent)
    except FileNotFoundError:
        raise damaged(source, "is missing") from None
    finally:
        part.unlink(missing_ok=True)
