"""The ledger of a device: what was answered, what that spent, and the noisy bytes that wait to be sent.

It never holds an answer, nor anything that is looked up by one; public columns that go along with a report it does.
For memoised mechanisms it holds one random secret and what `tacit.device.memo.Memory` keeps; whoever takes the file can
then test guesses of those answers, see docs/maths/memo.md.
"""

import fcntl
import json
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from tacit.device.budget import as_budget
from tacit.errors import TacitError

VERSION = 1
HELD, PENDING, SENT, REFUSED = "held", "pending", "sent", "refused"
"""What becomes of a report. Held: made and kept, and its owner has not agreed to send it; it never left the device.
Pending: to be sent until the collector has acknowledged it; it may have arrived. Sent: acknowledged. Refused: for good.
"""


@dataclass(frozen=True)
class Receipt:
    """What a respondent is told about a report: where it belongs, what it cost, and what became of it."""

    collection: str
    batch: str
    epsilon: Any
    """The budget in wire form."""
    state: str
    """"held", "pending", "sent" or "refused"."""
    reason: str = ""
    """Why the collector refused it."""


class AlreadyAnswered(TacitError):
    """A collection was answered before on this device; `receipt` is that of the first answer."""

    def __init__(self, receipt: Receipt) -> None:
        """Say which collection."""
        super().__init__(
            f"collection {receipt.collection}: was answered already on this device; "
            "a second answer would spend epsilon again, so nothing was drawn"
        )
        self.receipt = receipt


class LedgerUnusable(TacitError):
    """The ledger cannot be read. Starting a new one would spend epsilon again on what was answered."""


@dataclass(frozen=True)
class Entry:
    """One report, perturbed once: every attempt to send it sends the same bytes."""

    collection: str
    base: str
    title: dict[str, str]
    epsilon: Any
    batch: str
    report: str
    member: int = 0
    state: str = PENDING
    reason: str = ""
    invitation: str = ""
    plan: str = ""
    """What is answered once: the first document of an adaptive plan, or the collection itself if empty."""
    not_before: int = 0
    """Unix time before which the collector asked not to be tried again."""
    row: dict[str, Any] | None = None
    """The public columns that go along with the report, where the collection has any; they are not protected."""

    @property
    def receipt(self) -> Receipt:
        """What the respondent is told."""
        return Receipt(self.collection, self.batch, self.epsilon, self.state, self.reason)


@dataclass
class Kept:
    """Everything a ledger holds."""

    entries: list[Entry] = field(default_factory=list[Entry])
    secret: str = ""
    """32 random bytes in hexadecimal, made when a memoised collection is answered first."""
    memories: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Per memoised collection: keyed hashes of what was answered, and the last report."""

    def first(self, collection: str, plan: str) -> Entry | None:
        """The first report on a collection, or on any round of its plan; neither is ever answered twice."""
        about = (
            entry for entry in self.entries if collection == entry.collection or plan in (entry.plan, entry.collection)
        )
        return next(about, None)

    def replace(self, entry: Entry) -> None:
        """Put a report in the place of the one with the same batch id."""
        self.entries = [entry if entry.batch == old.batch else old for old in self.entries]

    def spent(self, entry: Entry) -> Fraction:
        """What a collection cost: a memoised one epsilon for every different value, any other epsilon once."""
        memory = self.memories.get(entry.collection)
        return as_budget(entry.epsilon).declared * (len(memory["seen"]) if memory else 1)


@dataclass(frozen=True)
class Spent:
    """What one collection cost."""

    collection: str
    title: dict[str, str]
    epsilon: Fraction
    state: str


@dataclass(frozen=True)
class Spending:
    """What all collections cost this respondent."""

    collections: tuple[Spent, ...]

    @property
    def total(self) -> Fraction:
        """The sum over all collections; a report that is held has cost nothing yet."""
        return sum((spent.epsilon for spent in self.collections if spent.state != HELD), Fraction(0))


class Ledger:
    """What this device answered: in a file that only its owner may read, or in memory for as long as it lives.

    The file is replaced as a whole, so a crash leaves the old one or the new one. Several processes may share it, and
    several threads may share one ledger, in memory or not.
    """

    def __init__(self, path: "str | os.PathLike[str] | None" = None) -> None:
        """Use a file, which is made when first needed, or memory."""
        self._path = None if path is None else Path(path)
        self._kept = Kept()
        self._mutex = threading.Lock()

    def read(self) -> Kept:
        """What the ledger holds now."""
        if self._path is None:
            return deepcopy(self._kept)
        try:
            return _parse(self._path.read_bytes())
        except FileNotFoundError:
            return Kept()
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise LedgerUnusable(
                f"ledger {self._path.name}: cannot be read ({type(error).__name__}); it was not replaced, because "
                "what it holds must not be answered again"
            ) from None

    @contextmanager
    def change(self) -> Generator[Kept]:
        """What the ledger holds, to be changed; written back and on disk when the block ends without an error."""
        with self._locked():
            kept = self.read()
            yield kept
            self._write(kept)

    def record(self, collection: str, make: Callable[[Kept], Entry], *, plan: str = "", repeats: bool = False) -> Entry:
        """Draw a report on a collection, or on a round of a plan, and remember it; unless `repeats`, only ever once."""
        with self.change() as kept:
            before = kept.first(collection, plan or collection)
            if before is not None and not repeats:
                raise AlreadyAnswered(before.receipt)
            entry = make(kept)
            kept.entries.append(entry)
            return entry

    def settle(self, entry: Entry, **change: Any) -> Entry:
        """Note what became of a report."""
        settled = replace(entry, **change)
        with self.change() as kept:
            kept.replace(settled)
        return settled

    def pending(self) -> list[Entry]:
        """Reports that are to be sent and were not acknowledged."""
        return [entry for entry in self.read().entries if entry.state == PENDING]

    def spending(self) -> Spending:
        """What was spent per collection, with the state of its last report that is not held, if there is one."""
        kept = self.read()
        last: dict[str, Entry] = {}
        for entry in kept.entries:
            if entry.state != HELD or entry.collection not in last:
                last[entry.collection] = entry
        rows = (Spent(entry.collection, entry.title, kept.spent(entry), entry.state) for entry in last.values())
        return Spending(tuple(rows))

    @contextmanager
    def _locked(self) -> Generator[None]:
        """One change at a time: of all threads, and for a file of all processes that have it open."""
        with self._mutex, self._file_lock():
            yield

    @contextmanager
    def _file_lock(self) -> Generator[None]:
        if self._path is None:
            yield
            return
        lock = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _write(self, kept: Kept) -> None:
        if self._path is None:
            self._kept = kept
            return
        data = json.dumps({"version": VERSION} | asdict(kept), ensure_ascii=False, indent=1).encode()
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            _write_through(temporary, data)
            os.replace(temporary, self._path)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        _sync_folder(self._path.parent)


def _parse(data: bytes) -> Kept:
    value = json.loads(data)
    if value["version"] != VERSION:
        raise ValueError("version")
    entries = [Entry(**cast("dict[str, Any]", entry)) for entry in value["entries"]]
    return Kept(entries, value["secret"], value["memories"])


def _write_through(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, and wait until it is on disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        os.fchmod(handle, 0o600)
        file.write(data)
        file.flush()
        os.fsync(handle)


def _sync_folder(folder: Path) -> None:
    """The new name must survive a crash as well."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
