"""SQLite connections: library version, file modes, durability settings, and translation of errors."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import LifoQueue
from typing import Any, cast

import apsw

from tacit.errors import StorageFull, StorageUnavailable
from tacit.hosting.durable import sync

# Releases in which the WAL corruption of `check_library` is fixed: all from this one on, and two backports.
_FIXED = (3, 51, 3)
_BACKPORTS = {(3, 44): 6, (3, 50): 7}

# Ten seconds: another process (a command line tool, the old collector during a restart) writes for moments only.
_BOTH = """
PRAGMA busy_timeout = 10000;
PRAGMA foreign_keys = ON;
"""

# An acknowledged report must survive a power cut, which in WAL mode only FULL promises; fullfsync makes a sync reach
# the disk on systems where it would stop at the drive's cache. Batch ids are random, so that they change pages all over
# their table: a cache of 32 MB and rare checkpoints (of 16 MB) write such a page back once for many ids.
WRITER = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;
PRAGMA secure_delete = FAST;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -32768;
PRAGMA wal_autocheckpoint = 4096;
"""

_UNAVAILABLE = (
    apsw.IOError,
    apsw.CantOpenError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.ConnectionClosedError,
)


def check_library(version: str) -> None:
    """StorageUnavailable for SQLite libraries that may corrupt a database in WAL mode.

    From 3.7.0 to 3.51.2, two connections that write and checkpoint at the same moment may corrupt the file; this was
    fixed in 3.51.3, 3.50.7 and 3.44.6.
    """
    major, minor, patch = (*(int(part) for part in version.split(".")[:3]), 0, 0)[:3]
    backport = _BACKPORTS.get((major, minor))
    if (major, minor, patch) >= _FIXED or (backport is not None and patch >= backport):
        return
    raise StorageUnavailable(
        f"storage: the SQLite library is {version}, must be at least 3.51.3 (or 3.50.7, or 3.44.6 of their series); "
        "older ones can corrupt a database; upgrade with: pip install --upgrade apsw"
    )


def make_private(folder: Path, file: Path) -> None:
    """Create a folder (0700) and a file (0600) for the owner alone; SQLite gives -wal and -shm the file's mode."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StorageUnavailable(f"storage: cannot open {file}: {error.strerror}") from error


@contextmanager
def new_file(path: str) -> Generator[Path]:
    """Write a new file atomically: yields `<name>.part`, which is synced and renamed when the block succeeds."""
    target = Path(path)
    part = target.with_name(target.name + ".part")
    if target.exists():
        raise StorageUnavailable(f"backup: {target} exists; name a new file")
    part.unlink(missing_ok=True)
    make_private(target.parent, part)
    try:
        yield part
        sync(part)
        os.replace(part, target)
        sync(target.parent)
    finally:
        part.unlink(missing_ok=True)


class Database:
    """A connection that fetches all rows at once: an unfinished statement keeps its snapshot, and stops checkpoints."""

    def __init__(self, file: Path, flags: int, settings: str, vfs: str | None) -> None:
        # The binding's types name things that the oldest supported Python does not have.
        self._apsw = cast("Any", apsw.Connection(str(file), flags=flags, vfs=vfs))
        self.run(settings)

    def run(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one or several statements and return all rows."""
        return self._apsw.execute(text, values or None).fetchall()

    def change(self, text: str, *values: Any) -> int:
        """Run a statement that changes rows, and return how many."""
        self._apsw.execute(text, values)
        return self._apsw.changes()

    def commit(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement as a transaction of its own, and return all rows."""
        try:
            return self.run(text, *values)
        finally:
            if self._apsw.in_transaction:
                self.run("ROLLBACK")

    def stream(self, text: str, *values: Any) -> Generator[tuple[Any, ...]]:
        """Run a statement and yield rows lazily; the caller closes the generator to release the snapshot early."""
        cursor = self._apsw.execute(text, values)
        try:
            yield from cursor
        finally:
            cursor.close()

    @contextmanager
    def transaction(self, begin: str) -> Generator[None]:
        """A transaction: commit at the end of the block, roll back on any exception."""
        self.run(begin)
        try:
            yield
            self.run("COMMIT")
        finally:
            # After some errors (full disk, I/O error) SQLite has rolled back by itself, and ROLLBACK would fail.
            if self._apsw.in_transaction:
                self.run("ROLLBACK")

    def close(self) -> None:
        """Release the files."""
        self._apsw.close()


def array(values: Sequence[bytes]) -> Any:
    """Bind blobs for the table-valued function `carray`, so that one statement handles many values."""
    return cast("Any", apsw).carray(tuple(values))


def open_writer(file: Path, vfs: str | None, *, page_bytes: int = 4096) -> Database:
    """Open the writing connection: its commits are durable, and it is the only one that checkpoints.

    `page_bytes` is for new files.
    """
    settings = f"PRAGMA page_size = {page_bytes};\n{_BOTH}{WRITER}"
    return Database(file, apsw.SQLITE_OPEN_READWRITE, settings, vfs)


def open_reader(file: Path, vfs: str | None) -> Database:
    """Open a read-only connection, which never checkpoints, not even as the last one to be closed."""
    return Database(file, apsw.SQLITE_OPEN_READONLY, _BOTH, vfs)


class Readers:
    """A small pool of read-only connections; `lend` blocks while all are in use."""

    def __init__(self, connections: list[Database]) -> None:
        self._all = connections
        self._idle: LifoQueue[Database] = LifoQueue()
        for connection in connections:
            self._idle.put(connection)

    @contextmanager
    def lend(self) -> Generator[Database]:
        """A connection inside a read transaction: one consistent snapshot for the length of the block."""
        connection = self._idle.get()
        try:
            with connection.transaction("BEGIN"):
                yield connection
        finally:
            self._idle.put(connection)

    def close(self) -> None:
        """Close all of them."""
        for connection in self._all:
            connection.close()


@contextmanager
def explained(file: Path) -> Generator[None]:
    """Translate SQLite's errors into StorageFull and StorageUnavailable."""
    try:
        yield
    except apsw.FullError as error:
        raise StorageFull(f"storage: no room to write {file}; make room on its disk, then go on") from error
    except _UNAVAILABLE as error:
        raise StorageUnavailable(f"storage: cannot use {file}: {error}") from error
