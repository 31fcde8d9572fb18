"""Segments: sealed rows as Parquet files in a folder, written once, named by their checksum, and checked when opened.

A file is on the disk under its name before the transaction commits that names it in a manifest, and is removed only
when no manifest names it. Whoever is killed in between leaves a file that nobody names, and the sweep removes it later.
"""

import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from time import monotonic
from typing import Any

import numpy.typing as npt

from tacit.collector.active import Active
from tacit.collector.rows.batches import reports_of, rows_of
from tacit.collector.rows.columns import REPORT, schema_of
from tacit.collector.rows.manifest import SUFFIX, Entry
from tacit.errors import InvalidSpec, SegmentDamaged, StorageFull, StorageUnavailable
from tacit.tasks.analytics.imports import arrow, parquet

LOCK, PART = ".lock", ".part"
NO_FOLDER = "this collector has no folder for rows; its operator starts it with --segments FOLDER"

CONFIRM_SECONDS = 900.0
"""For how long a file must have been without a name in any manifest, before it is removed.

A commit whose outcome nobody heard may still be taking effect, and a query may be reading a segment that was merged.
"""


class SegmentFiles:
    """The folder of segments, one folder in it for every collection."""

    def __init__(self, folder: Path | None, ticks: Callable[[], float] = monotonic) -> None:
        """Work in a folder, which is made when it is needed; None where the collector was not given one."""
        self._folder, self._ticks = folder, ticks
        self._checked: set[tuple[str, str]] = set()
        self._noticed: dict[Path, float] = {}

    @property
    def is_ready(self) -> bool:
        """Whether there is a place for segments."""
        return self._folder is not None

    @property
    def folder(self) -> Path:
        """Where the segments are."""
        if self._folder is None:
            raise InvalidSpec(f"segments: {NO_FOLDER}")
        return self._folder

    @contextmanager
    def shared(self) -> Generator[None]:
        """Keep sweeps away, in whichever process: from writing a segment until it is named, or while copying."""
        with explained(self.folder):
            make_folder(self.folder)
            lock = os.open(self.folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _alone(self) -> Generator[bool]:
        """Whether nobody is writing, in this or another process; for as long as the block runs nobody begins."""
        lock = os.open(self.folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        alone = True
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                alone = False
            yield alone
        finally:
            os.close(lock)

    def write(self, collection: str, table: Any) -> Entry:
        """Make rows durable as a segment; writing the same rows again gives the same file."""
        folder = self.folder / collection
        part = folder / f"{secrets.token_hex(8)}{PART}"
        try:
            with explained(part):
                if make_folder(folder):
                    sync(self.folder)
                entry = _write(part, table)
                # Replacing a file of the same name replaces it by the same bytes.
                os.replace(part, folder / entry.file)
                sync(folder)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return entry

    def read(self, active: Active, entry: Entry, *, anew: bool = False) -> Any:
        """The rows of a segment; its checksum is verified when this process opens it first, or anew."""
        path = self.folder / active.id / entry.file
        if anew or (active.id, entry.sha256) not in self._checked:
            check_file(path, entry)
            self._checked.add((active.id, entry.sha256))
        try:
            table = parquet().ParquetFile(path, page_checksum_verification=True).read()
        except FileNotFoundError:
            self._checked.discard((active.id, entry.sha256))
            raise damaged(path, "is missing") from None
        except (OSError, arrow().ArrowException):
            raise damaged(path, "cannot be read") from None
        if table.num_rows != entry.rows or not table.schema.equals(schema_of(rows_of(active), active.dtype.itemsize)):
            raise damaged(path, "has other rows or columns than were sealed")
        return table

    def sweep(self, named: Callable[[str], Iterable[str] | None]) -> int:
        """Remove files that no manifest names and that were not named for long enough; returns how many.

        `named` gives the files of a collection that its manifests name, or None to leave all of them alone. Nobody
        writes meanwhile, in any process, so what it says is true until the sweep ends; if somebody writes already,
        there is no sweep this time.
        """
        if self._folder is None or not self._folder.is_dir():
            return 0
        removed = 0
        with explained(self._folder), self._alone() as alone:
            for folder in sorted(self._folder.iterdir()) if alone else []:
                names = named(folder.name) if folder.is_dir() else None
                if names is not None:
                    removed += self._sweep_folder(folder, set(names))
        return removed

    def _sweep_folder(self, folder: Path, named: set[str]) -> int:
        now, removed = self._ticks(), 0
        for path in folder.iterdir():
            if path.name in named:
                self._noticed.pop(path, None)
            elif path.suffix == PART or now - self._noticed.setdefault(path, now) >= CONFIRM_SECONDS:
                self._remove(path)
                removed += 1
        return removed

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._noticed.pop(path, None)
        self._checked.discard((path.parent.name, path.stem))

    def drop(self, collection: str) -> None:
        """Remove the files of a collection whose reports were dropped; what somebody holds up waits for the sweep."""
        if self._folder is None or not (self._folder / collection).is_dir():
            return
        with explained(self._folder), self._alone() as alone:
            for path in list((self._folder / collection).iterdir()) if alone else []:
                self._remove(path)
            if alone:
                (self._folder / collection).rmdir()

    def usage(self) -> tuple[int, int]:
        """Number of segments on the disk and their bytes, those that wait for the sweep included."""
        if self._folder is None:
            return 0, 0
        sizes: list[int] = []
        for path in self._folder.glob(f"*/*{SUFFIX}"):
            with suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return len(sizes), sum(sizes)


def _write(part: Path, table: Any) -> Entry:
    public = [name for name in table.column_names if name != REPORT]
    with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b") as file:
        parquet().write_table(
            table,
            file,
            row_group_size=max(1, table.num_rows),
            compression="zstd",
            # Noise has no words that come again.
            use_dictionary=public,
            write_page_checksum=True,
        )
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        digest = file_digest(file, "sha256").hexdigest()
        return Entry(digest + SUFFIX, table.num_rows, file.tell(), digest, table.nbytes)


def check_file(path: Path, entry: Entry) -> None:
    """Refuse a file that is missing or has other bytes than its manifest says."""
    try:
        with path.open("rb") as file:
            fits = os.fstat(file.fileno()).st_size == entry.bytes
            fits = fits and file_digest(file, "sha256").hexdigest() == entry.sha256
    except FileNotFoundError:
        raise damaged(path, "is missing") from None
    except OSError as error:
        raise damaged(path, f"cannot be read ({error.strerror})") from None
    if not fits:
        raise damaged(path, "has other bytes than were sealed")


def damaged(path: Path, fault: str) -> SegmentDamaged:
    """The error that names a file that is not as it was sealed."""
    where = f"{path.parent.name}/{path.name}"
    return SegmentDamaged(
        f"segment {where}: {fault}; bring this file back from a backup, nothing is answered without it"
    )


@dataclass(frozen=True)
class RowSegment:
    """A sealed segment of a collection, as queries read it."""

    files: SegmentFiles
    active: Active
    entry: Entry

    @property
    def key(self) -> str:
        """What tells segments of all collections apart: the place of the file, whose name is its checksum.

        Equal rows of two collections are two segments, for their reports may mean other things.
        """
        return f"{self.active.id}/{self.entry.sha256}"

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.entry.rows

    def load(self) -> tuple[Any, npt.NDArray[Any]]:
        """The public columns as an Arrow table, and the reports in the mechanism's layout, row by row."""
        table = self.files.read(self.active, self.entry)
        return table.drop_columns([REPORT]), reports_of(self.active, table)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> bool:
    """Make a private folder; False if it is there already."""
    if folder.is_dir():
        return False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sync(folder.parent)
    return True


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Turn errors of files into the collector's."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"segments: no room to write {path}; make room on its disk, then go on") from error
        raise StorageUnavailable(f"segments: cannot use {path}: {error.strerror or error}") from error
