"""The database of a party: what `party_store` needs of one, and the usual one, a file of SQLite.

A file belongs to one process. Where several collectors share a database (see `tacit.collector.store.postgres.party`)
any of them takes letters, and one of them at a time leads: it alone makes steps and sends what is to be sent.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from tacit.hosting.sqlite import check_library, explained, make_private, open_writer
from tacit.shuffler.party_schema import migrate_party

_VACUUM_BYTES = 64 << 20
"""A larger database is not rewritten after an erasure; its free pages have been overwritten with zeros anyway."""
_PAGE_BYTES, _LOG_BYTES = 1 << 16, 64 << 20
_SIZES = ("page_count", "freelist_count", "page_size")


class PartyDatabase(Protocol):
    """One connection, used under the lock of its party store; statements have `?` for values."""

    @property
    def file(self) -> Path:
        """The file, or a name for messages."""
        ...

    def run(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows."""
        ...

    def change(self, text: str, *values: Any) -> int:
        """Run a statement that changes rows, and return how many."""
        ...

    def transaction(self, begin: str) -> AbstractContextManager[None]:
        """A transaction; those that write follow each other, whichever process makes them."""
        ...

    def keep_others_out(self) -> bool:
        """Try to be the one process that decides about sessions; a success counts, and is to be given back."""
        ...

    def let_others_in(self) -> None:
        """Give back what `keep_others_out` got."""
        ...

    def leads(self) -> bool:
        """Whether this process makes the steps of sessions; it becomes the one as soon as there is no other."""
        ...

    def shrink(self) -> None:
        """Leave nothing of deleted rows behind, as far as that is possible."""
        ...

    def renumber(self) -> None:
        """Go on counting behind the numbers of rows that were copied in."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class PartyFile:
    """A file of SQLite, for one process."""

    def __init__(self, file: Path) -> None:
        """Open or make the file, in a folder that only its owner can read."""
        import apsw

        check_library(apsw.sqlite_lib_version())
        self.file = file
        make_private(file.parent, file)
        with explained(file):
            # Bodies of letters are megabytes: large pages make few writes of them. A file that an earlier release made
            # keeps the pages that it has.
            self._db = open_writer(file, None, page_bytes=_PAGE_BYTES)
            # FAST, the setting of other writers, would leave deleted content on free pages.
            self._db.run("PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;")
            # Vectors of a phase are written and erased again within moments; what a later frame of the log overwrites
            # never has to be copied into the file.
            self._db.run(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // _PAGE_BYTES};")
            migrate_party(self._db)

    def run(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows."""
        return self._db.run(text, *values)

    def change(self, text: str, *values: Any) -> int:
        """Run a statement that changes rows, and return how many."""
        return self._db.change(text, *values)

    def transaction(self, begin: str) -> AbstractContextManager[None]:
        """A transaction of SQLite."""
        return self._db.transaction(begin)

    def keep_others_out(self) -> bool:
        """True: the file belongs to one process."""
        return True

    def let_others_in(self) -> None:
        """There are no others."""

    def leads(self) -> bool:
        """True: there is no other process."""
        return True

    def shrink(self) -> None:
        """Leave nothing of deleted rows in the file or in its log."""
        pages, free, size = (self._db.run(f"PRAGMA {name}")[0][0] for name in _SIZES)
        # Rows that moved between pages can leave copies behind that deleting does not reach; rewriting does.
        if (pages - free) * size <= _VACUUM_BYTES:
            self._db.run("VACUUM")
        self._db.run("PRAGMA wal_checkpoint(TRUNCATE)")

    def renumber(self) -> None:
        """SQLite does that by itself."""

    def close(self) -> None:
        """Release the file."""
        self._db.close()
