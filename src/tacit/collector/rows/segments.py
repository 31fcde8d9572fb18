"""Segments: sealed rows as immutable Parquet files, named by their SHA-256 and verified when first opened.

Crash safety is a matter of order (see the life cycle in `manifest`): a file is on the disk, under its final name,
before the transaction commits whose manifest names it, and it is removed only after no manifest names it any more. A
process that is killed in between leaves a file that nobody names, which the sweep removes later.

Processes that share the folder coordinate by flock on `.lock`: writers and copies hold it shared, a sweep exclusively.
"""

import errno
import fcntl
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from threading import Lock
from typing import Any

import numpy.typing as npt

from tacit.collector.collections.active import Active
from tacit.collector.limits import Intervals
from tacit.collector.ports import NO_FOLDER
from tacit.collector.rows.batches import reports_of
from tacit.collector.rows.columns import REPORT
from tacit.collector.rows.filed import SealedFiles, about, inward, outward
from tacit.core.extras import load
from tacit.errors import InvalidSpec, SegmentDamaged, StorageFull, StorageUnavailable
from tacit.hosting.clock import Clock
from tacit.hosting.durable import make_folder, sync
from tacit.lake.about import About, BatchSet
from tacit.lake.entries import SUFFIX, SegmentEntry
from tacit.lake.files import write_table

LOCK, PART = ".lock", ".part"

MOST_CHECKED = 1 << 16
"""Segments that are remembered as verified, in some ten megabytes; of more, the least recently read are forgotten."""


class SegmentFiles:
    """The folder of segments, with a subfolder per collection."""

    def __init__(self, folder: Path | None, clock: Clock | None = None, intervals: Intervals | None = None) -> None:
        """Work in a folder, which is created on first use; None if the collector was not given one."""
        self._folder, self._clock = folder, clock or Clock()
        self._confirm = (intervals or Intervals()).confirm_sweep
        # Segments whose checksum this process has verified: files are immutable, so once is enough for queries. The
        # least recently read ones are forgotten, and verified again when they are next read.
        self._lock, self._checked = Lock(), OrderedDict[tuple[str, str], None]()
        # Unnamed files, and when a sweep first saw them so.
        self._noticed: dict[Path, float] = {}

    @property
    def is_ready(self) -> bool:
        """Whether the collector has a folder for segments, and so can take rows."""
        return self._folder is not None

    @property
    def folder(self) -> Path:
        """Where the segments are."""
        if self._folder is None:
            raise InvalidSpec(f"segments: {NO_FOLDER}")
        return self._folder

    @contextmanager
    def shared(self) -> Generator[None]:
        """Hold the shared lock: no process sweeps meanwhile. Held from writing a segment until the commit names it."""
        with explained(self.folder):
            make_folder(self.folder)
            lock = os.open(self.folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield
        finally:
            # Closing releases the lock, as does the death of the process: no stale locks to clean up.
            os.close(lock)

    @contextmanager
    def _alone(self) -> Generator[bool]:
        """Try to get the exclusive lock, without waiting; yields whether it is held. Nobody writes while it is."""
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

    def write(self, active: Active, table: Any, batches: BatchSet) -> SegmentEntry:
        """Write rows as a segment, durable when this returns; the same rows of the same batches give the same file."""
        folder = self.folder / active.id
        part = folder / f"{secrets.token_hex(8)}{PART}"
        try:
            with explained(part):
                if make_folder(folder):
                    sync(self.folder)
                entry = _write(part, outward(active, table), about(active, batches), table.nbytes)
                # Order matters for crashes: contents are synced in `_write`, then the name appears atomically, then
                # the folder is synced so that the name is durable. A file of this name has the same bytes already.
                os.replace(part, folder / entry.file)
                sync(folder)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return entry

    def read(self, active: Active, entry: SegmentEntry, *, anew: bool = False) -> Any:
        """The rows of a segment; SegmentDamaged if it is not as it was sealed.

        The checksum is verified the first time that this process opens the file, and every time with `anew`.
        """
        path = self.folder / active.id / entry.file
        if anew or (active.id, entry.sha256) not in self._checked:
            check_file(path, entry)
        self._note_checked((active.id, entry.sha256))
        try:
            table = load("pyarrow.parquet").ParquetFile(path, page_checksum_verification=True).read()
        except FileNotFoundError:
            self._forget_checked((active.id, entry.sha256))
            raise damaged(path, "is missing") from None
        except (OSError, load("pyarrow").ArrowException):
            raise damaged(path, "cannot be read") from None
        rows = inward(active, table)
        if rows is None or table.num_rows != entry.rows:
            raise damaged(path, "has other rows or columns than were sealed")
        return rows

    def _note_checked(self, segment: tuple[str, str]) -> None:
        with self._lock:
            self._checked[segment] = None
            self._checked.move_to_end(segment)
            while len(self._checked) > MOST_CHECKED:
                self._checked.popitem(last=False)

    def _forget_checked(self, segment: tuple[str, str]) -> None:
        with self._lock:
            self._checked.pop(segment, None)

    def sweep(self, named: Callable[[str], Iterable[str] | None]) -> int:
        """Garbage collection: remove files that no manifest has named for long enough; returns how many.

        `named` returns the files that the manifests of a collection name, or None to leave the collection alone. The
        exclusive lock is held, so that its result stays true until the sweep ends; if a writer has the lock, this
        sweep is skipped.
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
        now, removed = self._clock.seconds(), 0
        for path in folder.iterdir():
            if path.name in named:
                self._noticed.pop(path, None)
            # A part belongs to a writer, and there are none while the lock is held: its writer was killed. A whole file
            # waits, because a query may have read the manifest before and not opened the file yet.
            elif path.suffix == PART or now - self._noticed.setdefault(path, now) >= self._confirm:
                self._remove(path)
                removed += 1
        return removed

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._noticed.pop(path, None)
        self._forget_checked((path.parent.name, path.stem))

    def drop(self, collection: str) -> None:
        """Remove the files of a collection whose reports were dropped; if a writer has the lock, the sweep does it."""
        if self._folder is None or not (self._folder / collection).is_dir():
            return
        with explained(self._folder), self._alone() as alone:
            for path in list((self._folder / collection).iterdir()) if alone else []:
                self._remove(path)
            if alone:
                (self._folder / collection).rmdir()

    def usage(self) -> tuple[int, int]:
        """Number and bytes of segment files on the disk, garbage that waits for the sweep included."""
        if self._folder is None:
            return 0, 0
        sizes: list[int] = []
        for path in self._folder.glob(f"*/*{SUFFIX}"):
            # A sweep may remove a file between the listing and this call.
            with suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return len(sizes), sum(sizes)


def _write(part: Path, table: Any, about: About, memory: int) -> SegmentEntry:
    with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "w+b") as file:
        write_table(file, table, about)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        digest = file_digest(file, "sha256").hexdigest()
        return SegmentEntry(digest + SUFFIX, table.num_rows, file.tell(), digest, memory)


def check_file(path: Path, entry: SegmentEntry) -> None:
    """SegmentDamaged if a file is missing, or its size or checksum is not the manifest's."""
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
    """The error of a segment file that is not as it was sealed; it names the file and what to do."""
    where = f"{path.parent.name}/{path.name}"
    return SegmentDamaged(
        f"segment {where}: {fault}; bring this file back from a backup, nothing is answered without it"
    )


@dataclass(frozen=True)
class RowSegment:
    """A sealed segment of a collection, as queries read it."""

    files: SealedFiles
    active: Active
    entry: SegmentEntry

    @property
    def key(self) -> str:
        """The cache key of a segment: collection and checksum.

        The checksum alone is not enough: equal bytes in two collections may be reports of different mechanisms.
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


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Translate OSError: StorageFull for a full disk or quota, StorageUnavailable for everything else."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"segments: no room to write {path}; make room on its disk, then go on") from error
        raise StorageUnavailable(f"segments: cannot use {path}: {error.strerror or error}") from error
