"""Sealed reports in a lake: files at a URL, and beside them a published manifest of those that count.

An object store has neither rename nor locks. It needs none, because the commit is in the database:

    put file under a name nobody had --commit--> named by a manifest of the database --merged--> not named --> removed
    (killed: an orphan)                          (published as _tacit.json)

What locks do in a folder, a fence in the database does here. The sweep lists files, raises the fence, then reads the
manifests: a fold that had written a file before the list was made either has committed, and its file is named, or
cannot commit any more. Names are made unique by a nonce, so that a file of the list is never written again. No clock
takes part in this, as it would with leases.
"""

import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import PurePosixPath
from threading import Lock
from typing import Any

from tacit.collector.collections.active import ID, Active
from tacit.collector.limits import Intervals
from tacit.collector.rows.filed import about, inward, outward
from tacit.core.extras import load
from tacit.errors import SegmentDamaged
from tacit.hosting.clock import Clock
from tacit.lake.about import BatchSet
from tacit.lake.entries import SegmentEntry
from tacit.lake.files import put_table
from tacit.lake.folder import MANIFEST, dump_manifest_file
from tacit.lake.place import LakePlace

_MOST_PUBLISHED = 16
"""How often a manifest is written at a time while others go on sealing; the next fold goes on."""


class LakeFiles:
    """The files of a lake, in a folder (or prefix) per collection."""

    def __init__(self, place: LakePlace, clock: Clock | None = None, intervals: Intervals | None = None) -> None:
        """Work at a place; several collectors of one database work at the same one."""
        self.place, self._clock = place, clock or Clock()
        self._confirm = (intervals or Intervals()).confirm_sweep
        self._lock, self._noticed = Lock(), dict[str, float]()
        # By collection, what was published last: number and bytes of files, and the manifest's digest.
        self._published: dict[str, tuple[int, int, bytes]] = {}

    @property
    def is_ready(self) -> bool:
        """Always: a lake is there to take rows."""
        return True

    def write(self, active: Active, table: Any, batches: BatchSet) -> SegmentEntry:
        """Write rows as a file under a name that no file had before."""
        return put_table(
            self.place.inner(active.id), outward(active, table), about(active, batches, secrets.token_hex(16))
        )

    def read(self, active: Active, entry: SegmentEntry, *, anew: bool = False) -> Any:
        """The rows of a file; SegmentDamaged if it is not as it was sealed. It is verified every time."""
        del anew
        data = self.place.inner(active.id).get(entry.file)
        if data is None or sha256(data).hexdigest() != entry.sha256:
            raise self._damaged(active.id, entry, "is missing" if data is None else "has other bytes than were sealed")
        # The bytes are verified, so that a parser sees nothing that this system has not written.
        table = inward(active, load("pyarrow.parquet").ParquetFile(load("pyarrow").BufferReader(data)).read())
        if table is None or table.num_rows != entry.rows:
            raise self._damaged(active.id, entry, "has other rows or columns than were sealed")
        return table

    def _damaged(self, collection: str, entry: SegmentEntry, fault: str) -> SegmentDamaged:
        return SegmentDamaged(
            f"lake file {collection}/{entry.file}: {fault}; bring this file back, nothing is answered without it"
        )

    def publish(self, active: Active, entries: Callable[[], list[SegmentEntry]]) -> None:
        """Publish which files count, unless the last that was published says the same.

        `entries` reads the database. It is read again after every writing: of two collectors that publish at the same
        time the one that wrote last then notices what it has not seen.
        """
        with self._lock:
            for _ in range(_MOST_PUBLISHED):
                found = entries()
                if not found and active.id not in self._published:
                    return
                data = dump_manifest_file(about(active, BatchSet()), found)
                # What this process wrote last is remembered and not read back: that would cost a request each time.
                digest = sha256(data).digest()
                if self._published.get(active.id, (0, 0, b""))[2] == digest:
                    return
                self.place.inner(active.id).put(MANIFEST, data)
                self._published[active.id] = len(found), sum(entry.bytes for entry in found), digest

    def check_published(self) -> None:
        """Forget the digests of published manifests, so that they are compared again: another process may have died."""
        with self._lock:
            self._published = {key: (files, size, b"") for key, (files, size, _) in self._published.items()}

    def sweep(self, named: Callable[[str], Iterable[str] | None], fence: Callable[[], None]) -> int:
        """Remove files that no manifest has named for long enough; returns how many.

        `named` returns the files that the manifests of a collection name, or None to leave it alone.
        """
        listed: dict[str, set[str]] = {}
        for info in self.place.files():
            path = PurePosixPath(info.path)
            if ID.fullmatch(path.parent.name) and path.name != MANIFEST:
                listed.setdefault(path.parent.name, set()).add(path.name)
        # The fence stops folds, if only for a moment: only where something was there to be removed already.
        if not any(self._due(f"{collection}/{name}") for collection, names in listed.items() for name in names):
            return self._note(listed, named)
        # From here on nothing of the list can be named that is not named already.
        fence()
        due = {c: {name for name in names if self._due(f"{c}/{name}")} for c, names in listed.items()}
        removed = 0
        for collection, unnamed in self._unnamed(due, named):
            self.place.inner(collection).remove(unnamed)
            self._noticed.pop(f"{collection}/{unnamed}", None)
            removed += 1
        self._note(listed, named)
        return removed

    def _due(self, file: str) -> bool:
        return self._clock.seconds() - self._noticed.get(file, float("inf")) >= self._confirm

    def _note(self, listed: dict[str, set[str]], named: Callable[[str], Iterable[str] | None]) -> int:
        """Remember since when files are unnamed; a query may still read one that was merged."""
        now, unnamed = self._clock.seconds(), {f"{c}/{name}" for c, name in self._unnamed(listed, named)}
        self._noticed = {file: self._noticed.get(file, now) for file in unnamed}
        return 0

    def _unnamed(
        self, listed: dict[str, set[str]], named: Callable[[str], Iterable[str] | None]
    ) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for collection, names in listed.items():
            kept = named(collection) if names else None
            if kept is not None:
                found += [(collection, name) for name in sorted(names - set(kept))]
        return found

    def drop(self, collection: str) -> None:
        """Remove the files of a collection whose reports were dropped, the manifest first."""
        place = self.place.inner(collection)
        # Without a manifest nobody begins to count what is about to go.
        place.remove(MANIFEST)
        for info in place.files():
            place.remove(PurePosixPath(info.path).name)
        with self._lock, suppress(KeyError):
            del self._published[collection]

    def usage(self) -> tuple[int, int]:
        """Number and bytes of the files that count, of collections that this process has published."""
        with self._lock:
            known = list(self._published.values())
        return sum(files for files, _, _ in known), sum(size for _, size, _ in known)
