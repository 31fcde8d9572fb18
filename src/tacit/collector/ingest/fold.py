"""Folding: waiting batches are added to a tally exactly once, and their payloads are deleted.

    waiting batches  --fold_some, one transaction of the store-->  tally (with rows: manifest) of this process's shard
    tallies of all shards  --sum-->  what answers are computed from

Every process folds into a shard of its own, so that processes never contend for a tally; readers add the shards.
"""

import logging
import secrets
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import numpy as np

from tacit.collector.collections.active import Active, Shelf
from tacit.collector.ingest.file_counts import FileCounts
from tacit.collector.ingest.watching import Watches, framed, unframed, watched
from tacit.collector.limits import FoldLimits, Intervals
from tacit.collector.ports import KeptReports, Store, StoredBatch, StoredTally, tally_damaged
from tacit.collector.rows.lake_files import LakeFiles
from tacit.collector.rows.manifest import IN_LAKE, is_manifest, load_manifest
from tacit.collector.rows.sealing import sealing
from tacit.collector.rows.segments import RowSegment, SegmentFiles
from tacit.core.mechanism import Reports
from tacit.core.members import keeps_reports
from tacit.core.tally import Counts
from tacit.errors import ReportRejected, StorageDamaged, StorageUnavailable, TacitError
from tacit.hosting.clock import Clock
from tacit.integrity.tails import look_number
from tacit.lake.entries import SegmentEntry
from tacit.wire.tallies import AnyTally, dump_tally, empty_tally, load_tally

LOG = logging.getLogger("tacit.collector")

MOST_BATCHES = 8192
"""How many batches one fold takes at most, as they are all in memory at once."""
_LARGE = 1 << 18
"""Bytes of a shard from which on it is not rewritten several times a second."""


class Folder:
    """Folds the waiting batches of a store into tallies, into one shard per process."""

    def __init__(
        self,
        store: Store,
        shelf: Shelf,
        files: SegmentFiles | LakeFiles,
        *,
        shard: str = "main",
        clock: Clock | None = None,
        intervals: Intervals | None = None,
        limits: FoldLimits | None = None,
    ) -> None:
        """Fold into this shard; processes that share a database must have different ones."""
        self._seconds, self._seal_interval = (clock or Clock()).seconds, (intervals or Intervals()).seal
        self._limits = limits or FoldLimits()
        self._store, self._shelf, self._shard, self._lock = store, shelf, shard, Lock()
        self._files, self._sealed = files, dict[str, float]()
        self._rng = np.random.default_rng(secrets.randbits(128))
        # By collection: how many shards of this process are full (see `_shard_of`).
        self._part: dict[str, int] = {}
        self._counts = FileCounts()
        self._folding: dict[str, Lock] = {}

    def fold_all(self, collection: str, seconds: float) -> int:
        """Fold until nothing is waiting or about this many seconds have passed; returns the number of batches."""
        active, end, folded = self._shelf.find(collection), self._seconds() + seconds, 0
        # The deadline is checked after a fold, not before: every call makes progress.
        while active is not None:
            # One fold of a collection at a time. A store skips batches that another fold has claimed: an answer would
            # find nothing waiting and be computed from a tally without reports that were acknowledged before.
            with self._lock_of(collection):
                batches = self.fold_some(active)
            folded += batches
            if not batches or self._seconds() >= end:
                break
        return folded

    def _lock_of(self, collection: str) -> Lock:
        with self._lock:
            return self._folding.setdefault(collection, Lock())

    def fold_some(self, active: Active) -> int:
        """Fold up to `MOST_BATCHES` batches in one transaction of the store; returns how many."""
        if self._is_sealed(active):
            return self._seal_some(active)

        shard = self._shard_of(active)

        # Runs inside the store's transaction: tally and claimed batches change together, or not at all.
        def folded(data: bytes | None, batches: list[StoredBatch]) -> bytes:
            tally: Any = empty_tally(active.mechanism) if data is None else _load(active, shard, data)
            reports = active.mechanism.decode(b"".join(batch.payload for batch in batches))
            total = tally + active.mechanism.tally(self._in_any_order(reports, tally))
            watches = watched(active, {} if data is None else unframed(data)[0], reports, total)
            shard_bytes = framed(watches, dump_tally(total))
            if len(shard_bytes) > _LARGE:
                # Folding rewrites a shard, so that large ones wait a while for more; answers fold when they are asked.
                self._sealed[active.id] = self._seconds()
            return shard_bytes

        if active.collection.integrity is None:
            return self._store.fold_some(active.id, shard, folded, MOST_BATCHES)
        return self._store.fold_some(active.id, shard, folded, MOST_BATCHES, partial(self._kept, active, shard))

    def _kept(self, active: Active, shard: str, data: bytes | None, batches: list[StoredBatch]) -> KeptReports:
        """What is kept of batches for integrity: their reports in no order, under a name that says nothing."""
        reports = active.mechanism.decode(b"".join(batch.payload for batch in batches))
        before = 0 if data is None else _load(active, shard, data).n
        payload = np.ascontiguousarray(reports[self._rng.permutation(len(reports))]).tobytes()
        return KeptReports(look_number(before + len(reports)), secrets.token_bytes(16), payload)

    def _is_sealed(self, active: Active) -> bool:
        """Whether reports are kept as files: those with rows always, all others in a lake."""
        return active.collection.rows is not None or isinstance(self._files, LakeFiles)

    def _seal_some(self, active: Active) -> int:
        """Fold batches by sealing them into files."""
        self._sealed[active.id] = self._seconds()
        if isinstance(self._files, LakeFiles):
            fold = sealing(active, self._files, self._limits)
            sealed = self._store.fold_some(active.id, self._shard_of(active), fold, MOST_BATCHES)
            # Also if nothing was waiting: the process that sealed last may have died before it published.
            self._files.publish(active, lambda: self._entries_of(active.id))
            return sealed
        # The shared lock spans writing the files and the commit that names them: a sweep in between would take the
        # new files for garbage.
        with self._files.shared():
            fold = sealing(active, self._files, self._limits)
            return self._store.fold_some(active.id, self._shard_of(active), fold, MOST_BATCHES)

    def is_due(self, collection: str) -> bool:
        """Whether background folding should run now; rows wait a while, so that segments are fewer and larger."""
        sealed = self._sealed.get(collection)
        return sealed is None or self._seconds() - sealed >= self._seal_interval

    def segments(self, active: Active) -> list[RowSegment]:
        """The sealed segments of a collection, of all processes."""
        return [RowSegment(self._files, active, entry) for entry in self._entries_of(active.id)]

    def _entries_of(self, collection: str) -> list[SegmentEntry]:
        """The files that the manifests of a collection name; shards with tallies have none."""
        stored = [item for item in self._store.tallies(collection) if is_manifest(item.content)]
        if any(IN_LAKE in item.shard for item in stored) and not isinstance(self._files, LakeFiles):
            raise _without_lake(collection)
        return _entries(collection, stored)

    def check(self, collection: str, *, rows: bool) -> None:
        """Verify all tallies and manifests of a collection; StorageDamaged if one is corrupt.

        A collection with rows has manifests and nothing else.
        """
        stored = self._store.tallies(collection)
        _entries(collection, [item for item in stored if rows or is_manifest(item.content)])

    def sweep(self) -> int:
        """Garbage-collect files that were merged away or never committed; returns how many."""
        if isinstance(self._files, LakeFiles):
            self._files.check_published()
            return self._files.sweep(self._named, self._store.fence)
        return self._files.sweep(self._named)

    def _named(self, collection: str) -> set[str] | None:
        """The files that the manifests of a collection name; None if that is not known, so that nothing is removed.

        The folder may belong to another database, or its database may have been lost: a collection that this database
        does not know is not its to clean up.
        """
        if self._store.collection(collection) is None:
            return None
        try:
            return {entry.file for entry in self._entries_of(collection)}
        except (StorageDamaged, StorageUnavailable) as error:
            LOG.error("%s", error)
            return None

    def _in_any_order(self, reports: Reports, tally: AnyTally) -> Reports:
        # A log would keep the order of arrival, which might identify respondents; counts have no order to begin with.
        return reports if isinstance(tally, Counts) else reports[self._rng.permutation(len(reports))]

    def _shard_of(self, active: Active) -> str:
        """The shard to fold into: `main`, then `main.1`, `main.2`, ... as logs of reports or manifests grow large.

        A fold rewrites its whole shard, so that without this the cost of folds would grow with all reports so far.
        """
        limits = self._limits
        most = limits.manifest_bytes if self._is_sealed(active) else limits.log_bytes
        # A tally and a manifest cannot share a shard; a collection has both if the lake came later.
        first = self._shard + (IN_LAKE if isinstance(self._files, LakeFiles) else "")
        with self._lock:
            while True:
                part = self._part.get(active.id, 0)
                shard = first if part == 0 else f"{first}.{part}"
                if not self._grows(active) or len(self._store.tally(active.id, shard) or b"") < most:
                    return shard
                self._part[active.id] = part + 1

    def _grows(self, active: Active) -> bool:
        """Whether the size of a tally grows with the number of reports (logs and manifests do, counts do not)."""
        if self._is_sealed(active):
            return True
        return keeps_reports(empty_tally(active.mechanism))

    def forget(self, collection: str) -> None:
        """Remove the files of a collection and their cached tallies, which are outside of the database."""
        self._files.drop(collection)
        self._counts.forget(collection)

    def total(self, active: Active) -> AnyTally:
        """The sum of the tallies of all shards, of all processes."""
        return self.sum(active, self._store.tallies(active.id))

    def watches(self, active: Active) -> list[Watches]:
        """What the shards of a collection keep for integrity, in order of their names."""
        stored = sorted(self._store.tallies(active.id), key=lambda item: item.shard)
        return [unframed(item.content)[0] for item in stored if not is_manifest(item.content)]

    def sum(self, active: Active, stored: Sequence[StoredTally]) -> AnyTally:
        """The sum of stored tallies; StorageDamaged if one counts another number of reports than it was given."""
        tallies: list[Any] = [self._counted(active, item) for item in stored]
        return reduce(add, tallies, empty_tally(active.mechanism))

    def _counted(self, active: Active, stored: StoredTally) -> AnyTally:
        """The tally of a shard, which counts the files that it names where it is a manifest."""
        if not is_manifest(stored.content):
            return _counted(active, stored)
        if not isinstance(self._files, LakeFiles):
            raise _without_lake(active.id)
        return self._counts.total(active, _entries(active.id, [stored]), self._files)


def _without_lake(collection: str) -> StorageUnavailable:
    return StorageUnavailable(
        f"collection {collection}: its reports are in a lake; name it with --lake URL, or TACIT_LAKE"
    )


def _load(active: Active, shard: str, data: bytes) -> AnyTally:
    try:
        return load_tally(active.mechanism, unframed(data)[1])
    except TacitError as error:
        raise tally_damaged(active.id, shard, f"does not fit the collection ({error})") from None


def _counted(active: Active, stored: StoredTally) -> AnyTally:
    tally = _load(active, stored.shard, stored.content)
    # The number of reports is stored beside the tally, and was counted independently of it.
    if tally.n != stored.reports:
        raise _miscounted(active.id, stored, tally.n)
    return tally


def _entries(collection: str, stored: Sequence[StoredTally]) -> list[SegmentEntry]:
    """The segments of all shards, which together hold every row that was folded; StorageDamaged if rows are missing.

    A file that two shards name, because their rows are equal, is listed twice, as its rows count twice.
    """
    entries: list[SegmentEntry] = []
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
    """A background thread that runs periodic chores one after another until it is stopped."""

    def __init__(self, chores: list[tuple[Callable[[], None], float]]) -> None:
        """Take pairs of a chore and the seconds between two runs of it."""
        self._chores, self._stop = chores, Event()
        self._thread = Thread(target=self._run, name="tacit-housekeeping", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Let the running chore finish, then end the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        # Waiting on the event, not sleeping, so that `stop` takes effect at once.
        due = [monotonic() + pause for _, pause in self._chores]
        while not self._stop.wait(max(0.01, min(due) - monotonic())):
            for i, (chore, pause) in enumerate(self._chores):
                if monotonic() >= due[i]:
                    _guarded(chore)
                    due[i] = monotonic() + pause


def _guarded(chore: Callable[[], None]) -> None:
    try:
        chore()
    except Exception as error:
        # Logged by type only, as a message might hold data. The chore runs again when it is due; an exception that
        # ended the thread would stop folding for good.
        LOG.warning("housekeeping: %s failed with %s", chore.__name__, type(error).__name__)
