"""Folding: stored batches become part of a tally exactly once, and their payloads are dropped."""

import logging
import secrets
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import numpy as np

from tacit.collector.active import Active, Shelf
from tacit.collector.ports import Store, StoredBatch, StoredTally, tally_damaged
from tacit.collector.rows.manifest import Entry, load_manifest
from tacit.collector.rows.sealing import sealing
from tacit.collector.rows.segments import RowSegment, SegmentFiles
from tacit.core.mechanism import Reports
from tacit.core.members import PerMember
from tacit.core.tally import Counts, Log
from tacit.errors import ReportRejected, StorageDamaged, TacitError
from tacit.wire.tallies import AnyTally, dump_tally, empty_tally, load_tally

LOG = logging.getLogger("tacit.collector")

MOST_BATCHES = 8192
"""Batches of one fold: what is held in memory at a time."""

MAX_LOG_BYTES, MAX_MANIFEST_BYTES = 1 << 22, 1 << 16
"""What has grown beyond this is left alone and a new shard begun: no fold rewrites all reports, or names all files."""

SEAL_SECONDS = 5.0
"""How often rows are sealed in the background; a query seals what is waiting at once."""


class Folder:
    """Folds the batches of a store into tallies, one shard of them per process."""

    def __init__(self, store: Store, shelf: Shelf, files: SegmentFiles, *, shard: str = "main") -> None:
        """Fold into this shard; processes that share a database have different ones."""
        self._store, self._shelf, self._shard, self._lock = store, shelf, shard, Lock()
        self._files, self._sealed = files, dict[str, float]()
        self._rng = np.random.default_rng(secrets.randbits(128))
        self._part: dict[str, int] = {}

    def fold_all(self, collection: str, seconds: float) -> int:
        """Fold what is waiting, for at most about this long; returns the number of batches."""
        active, end, folded = self._shelf.find(collection), monotonic() + seconds, 0
        while active is not None:
            batches = self.fold_some(active)
            folded += batches
            if not batches or monotonic() >= end:
                break
        return folded

    def fold_some(self, active: Active) -> int:
        """Fold some batches, in one transaction of the store; returns how many."""
        if active.collection.rows is not None:
            return self._seal_some(active)

        shard = self._shard_of(active)

        def folded(data: bytes | None, batches: list[StoredBatch]) -> bytes:
            tally: Any = empty_tally(active.mechanism) if data is None else _load(active, shard, data)
            reports = active.mechanism.decode(b"".join(batch.payload for batch in batches))
            return dump_tally(tally + active.mechanism.tally(self._in_any_order(reports, tally)))

        return self._store.fold_some(active.id, shard, folded, MOST_BATCHES)

    def _seal_some(self, active: Active) -> int:
        self._sealed[active.id] = monotonic()
        with self._files.shared():
            fold = sealing(active, self._files)
            return self._store.fold_some(active.id, self._shard_of(active), fold, MOST_BATCHES)

    def is_due(self, collection: str) -> bool:
        """Whether to fold in the background now; rows wait a little, so that there are fewer and larger segments."""
        return monotonic() - self._sealed.get(collection, -SEAL_SECONDS) >= SEAL_SECONDS

    def segments(self, active: Active) -> list[RowSegment]:
        """The sealed rows of a collection, by whichever process."""
        return [RowSegment(self._files, active, entry) for entry in _entries(active.id, self._store.tallies(active.id))]

    def check(self, collection: str, *, rows: bool) -> None:
        """Raise `StorageDamaged` unless every tally, or list of segments where there are rows, is as it was written."""
        stored = self._store.tallies(collection)
        if rows:
            _entries(collection, stored)

    def sweep(self) -> int:
        """Remove the files of segments that were merged or never came to be named; returns how many."""
        return self._files.sweep(self._named)

    def _named(self, collection: str) -> set[str] | None:
        """The files that the manifests of a collection name; None where that is not known, and nothing is to go.

        A folder of segments may be another database's, or its database may have been lost: what this database has
        never heard of is not its to remove.
        """
        if self._store.collection(collection) is None:
            return None
        try:
            return {entry.file for entry in _entries(collection, self._store.tallies(collection))}
        except StorageDamaged as error:
            LOG.error("%s", error)
            return None

    def _in_any_order(self, reports: Reports, tally: AnyTally) -> Reports:
        # A log would keep the order of arrival; counts forget it by themselves.
        return reports if isinstance(tally, Counts) else reports[self._rng.permutation(len(reports))]

    def _shard_of(self, active: Active) -> str:
        """The shard to fold into: a new one after each log of reports, or manifest, that has grown large."""
        most = MAX_LOG_BYTES if active.collection.rows is None else MAX_MANIFEST_BYTES
        with self._lock:
            while True:
                part = self._part.get(active.id, 0)
                shard = self._shard if part == 0 else f"{self._shard}.{part}"
                if not self._grows(active) or len(self._store.tally(active.id, shard) or b"") < most:
                    return shard
                self._part[active.id] = part + 1

    def _grows(self, active: Active) -> bool:
        """Whether a shard has more bytes the more reports there are."""
        if active.collection.rows is not None:
            return True
        empty = empty_tally(active.mechanism)
        parts = empty.parts if isinstance(empty, PerMember) else (empty,)
        return any(isinstance(part, (Log, tuple)) for part in parts)

    def total(self, active: Active) -> AnyTally:
        """The tally of everything that is folded, by whichever process."""
        return self.sum(active, self._store.tallies(active.id))

    def sum(self, active: Active, stored: Sequence[StoredTally]) -> AnyTally:
        """The tally of all shards, each of which must count as many reports as were folded into it."""
        tallies: list[Any] = [_counted(active, item) for item in stored]
        return reduce(add, tallies, empty_tally(active.mechanism))


def _load(active: Active, shard: str, data: bytes) -> AnyTally:
    try:
        return load_tally(active.mechanism, data)
    except TacitError as error:
        raise tally_damaged(active.id, shard, f"does not fit the collection ({error})") from None


def _counted(active: Active, stored: StoredTally) -> AnyTally:
    tally = _load(active, stored.shard, stored.content)
    if tally.n != stored.reports:
        raise _miscounted(active.id, stored, tally.n)
    return tally


def _entries(collection: str, stored: Sequence[StoredTally]) -> list[Entry]:
    """The segments of all shards, which together hold every row that was folded.

    One that two shards name, because their rows were equal, is there twice.
    """
    entries: list[Entry] = []
    for item in stored:
        try:
            manifest = load_manifest(item.content)
        except ReportRejected as error:
            raise tally_damaged(collection, item.shard, f"is no list of segments ({error})") from None
        if sum(entry.rows for entry in manifest) != item.reports:
            raise _miscounted(collection, item, sum(entry.rows for entry in manifest))
        entries += manifest
    return entries


def _miscounted(collection: str, stored: StoredTally, n: int) -> StorageDamaged:
    fault = f"counts {n} reports where {stored.reports} were folded"
    return tally_damaged(collection, stored.shard, fault)


class Housekeeping:
    """A thread that runs a few chores again and again until it is stopped."""

    def __init__(self, chores: list[tuple[Callable[[], None], float]]) -> None:
        """Chores with the seconds between two runs of each."""
        self._chores, self._stop = chores, Event()
        self._thread = Thread(target=self._run, name="tacit-housekeeping", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the chore at hand and end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        due = [monotonic() + pause for _, pause in self._chores]
        while not self._stop.wait(max(0.01, min(due) - monotonic())):
            for i, (chore, pause) in enumerate(self._chores):
                if monotonic() >= due[i]:
                    _guarded(chore)
                    due[i] = monotonic() + pause


def _guarded(chore: Callable[[], None]) -> None:
    try:
        chore()
    except Exception as error:  # A chore that failed is tried again; the collector goes on taking reports.
        LOG.warning("housekeeping: %s failed with %s", chore.__name__, type(error).__name__)
