"""The ledger of a device: answered collections, epsilon spent, and noisy reports that wait to be sent.

    prepare()                 answer()                       states of an entry
        |                        |
        v      release()         v      acknowledged
      HELD  ------------->   PENDING  ---------------->  SENT
                               ^   |     refused
             flush(), retries  `---'  ---------------->  REFUSED

The order of writes is what protects the respondent. An entry, with its noisy bytes, is on disk as PENDING before the
first byte is sent, and every attempt sends those bytes. Were it the other way round, a crash between sending and
writing would make the device draw again: two reports on one answer, each of which spends epsilon. This way a crash
costs at most a repeated upload, which the collector recognises by its batch id. SENT and REFUSED are written only after
the collector's reply. PENDING counts as spent, since the report may have arrived; HELD does not, as it never left.

Reports of a shuffled collection are kept twice: the noisy bytes, and the same bytes sealed for the shufflers of one
session. A retry in that session sends the sealed bytes again; if it was aborted, the *same* noisy bytes are sealed
afresh for the next one, since a second report on one answer would spend epsilon again.

It never holds an answer, nor anything that is looked up by one; public columns that go along with a report it does.
For memoised mechanisms it holds one random secret and what `device.kinds.memo.Memory` keeps; whoever takes the file
can then test guesses of those answers, see docs/maths/memo.md.
"""

import fcntl
import json
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from tacit.device.numbers.budget import as_budget
from tacit.errors import TacitError

VERSION = 2
"""Version 2 has accounts and windows; a ledger of version 1 is read, and written back as one of version 2."""
HELD, PENDING, SENT, REFUSED, EXPIRED = "held", "pending", "sent", "refused", "expired"
"""The states of a report. Held: drawn and stored, but its owner has not agreed to send it; it never left the device.
Pending: to be sent until the collector acknowledges it; it may have arrived. Sent: acknowledged. Refused: for good.
Expired: its window takes no more reports.
"""


@dataclass(frozen=True)
class Receipt:
    """What a respondent is told about a report: its collection, what it cost, and its state."""

    collection: str
    batch: str
    epsilon: Any
    """The budget in wire form."""
    state: str
    """"held", "pending", "sent", "refused" or "expired"."""
    reason: str = ""
    """Why the collector refused it, or why a sealed report waits."""
    session: str = ""
    """Where the report was sealed for shufflers: the session that it takes part in."""
    slot: str = ""
    """Its random place in that session, by which `Respondent.check` finds out whether it took part."""


class AlreadyAnswered(TacitError):
    """A collection was answered before on this device; `receipt` is that of the first answer."""

    def __init__(self, receipt: Receipt) -> None:
        """Name the collection in the message."""
        super().__init__(
            f"collection {receipt.collection}: was answered already on this device; "
            "a second answer would spend epsilon again, so nothing was drawn"
        )
        self.receipt = receipt


class LedgerUnusable(TacitError):
    """The ledger cannot be read. Starting a new one would spend epsilon again on what was answered."""


@dataclass(frozen=True)
class LedgerEntry:
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
    """The id of an adaptive plan's first document, which may be answered once in any round; empty without a plan."""
    not_before: int = 0
    """Unix time before which the collector asked not to be tried again."""
    row: dict[str, Any] | None = None
    """The public columns that go along with the report, where the collection has any; they are not protected."""
    sealed: dict[str, Any] | None = None
    """The report as it was sealed for the shufflers of a session (`client.sealed`); sent in place of `report`."""
    window: int = -1
    """The window that the report is about, where its collection has windows."""

    @property
    def receipt(self) -> Receipt:
        """The receipt for the respondent."""
        sealed = self.sealed or {"session": "", "slot": ""}
        place = sealed["session"], sealed["slot"]
        return Receipt(self.collection, self.batch, self.epsilon, self.state, self.reason, *place)


@dataclass
class Kept:
    """The contents of a ledger, as one value that is read, changed and written as a whole."""

    entries: list[LedgerEntry] = field(default_factory=list[LedgerEntry])
    secret: str = ""
    """32 random bytes in hexadecimal, drawn when the first memoised collection is answered; empty before."""
    memories: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Per memoised collection: keyed hashes of what was answered, and the last report."""
    born: str = ""
    """The date on which the ledger was made: a young one may have had a predecessor (`device.windows.account`)."""
    accounts: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Per collector and account: its terms, its record, and what each document charged to it."""
    days: list[list[str]] = field(default_factory=list[list[str]])
    """Dates and epsilons of charges to all accounts, for a policy of the host."""
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Per collection, until a report takes it along: an anonymous token, or what was blinded to ask for one."""

    def first(self, collection: str, plan: str) -> LedgerEntry | None:
        """Return the first report on a collection, or on any round of its plan; None if there is none."""
        about = (
            entry for entry in self.entries if collection == entry.collection or plan in (entry.plan, entry.collection)
        )
        return next(about, None)

    def replace(self, entry: LedgerEntry) -> None:
        """Replace the entry with the same batch id."""
        self.entries = [entry if entry.batch == old.batch else old for old in self.entries]

    def spent(self, entry: LedgerEntry) -> Fraction:
        """Return the epsilon spent on a collection: once, or for a memoised one once per different value."""
        if entry.window >= 0:
            charged = (account["charged"].get(entry.collection) for account in self.accounts.values())
            return sum((Fraction(cost) for cost in charged if cost is not None), Fraction(0))
        memory = self.memories.get(entry.collection)
        return as_budget(entry.epsilon).declared * (len(memory["seen"]) if memory else 1)


@dataclass(frozen=True)
class Spent:
    """What one collection cost, with its state."""

    collection: str
    title: dict[str, str]
    epsilon: Fraction
    state: str


@dataclass(frozen=True)
class Spending:
    """What all collections cost this respondent, one row each."""

    collections: tuple[Spent, ...]

    @property
    def total(self) -> Fraction:
        """The sum over all collections; a report that is held has cost nothing yet."""
        return sum((spent.epsilon for spent in self.collections if spent.state != HELD), Fraction(0))


class Ledger:
    """The store of a device's reports: a file that only its owner may read, or memory for as long as the object lives.

    The file is replaced as a whole, so a crash leaves the old one or the new one. Several processes may share it, and
    several threads may share one ledger, in memory or not.
    """

    def __init__(
        self, path: "str | os.PathLike[str] | None" = None, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Use a file, which is created on the first write, or memory; `clock` dates the ledger."""
        self._path = None if path is None else Path(path)
        self._kept, self._clock = Kept(), clock
        self._mutex = threading.Lock()

    def read(self) -> Kept:
        """Return the contents; LedgerUnusable rather than empty contents if the file cannot be read."""
        if self._path is None:
            return deepcopy(self._kept)
        try:
            return _parse(self._path.read_bytes())
        except FileNotFoundError:
            return Kept()
        # A damaged ledger is not an empty one: forgetting what was answered would spend epsilon twice.
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise LedgerUnusable(
                f"ledger {self._path.name}: cannot be read ({type(error).__name__}); it was not replaced, because "
                "what it holds must not be answered again"
            ) from None

    @contextmanager
    def change(self) -> Generator[Kept]:
        """Yield the contents to be changed, under the lock; on disk when the block ends without an exception."""
        with self._locked():
            contents = self.read()
            # The later of both dates: a ledger must never seem older than it is, in whichever zone it is asked.
            now = self._clock()
            contents.born = contents.born or max(now.astimezone(UTC).date(), now.astimezone().date()).isoformat()
            yield contents
            self._write(contents)

    def record(
        self, collection: str, make: Callable[[Kept], LedgerEntry], *, plan: str = "", repeats: bool = False
    ) -> LedgerEntry:
        """Draw a report by `make` and store it; AlreadyAnswered, without drawing, if there is one and not `repeats`."""
        # Check, draw and write under one lock: two processes answering at once must not both draw.
        with self.change() as contents:
            before = contents.first(collection, plan or collection)
            if before is not None and not repeats:
                raise AlreadyAnswered(before.receipt)
            entry = make(contents)
            contents.entries.append(entry)
            return entry

    def settle(self, entry: LedgerEntry, **change: Any) -> LedgerEntry:
        """Store changed fields of an entry, such as its state, and return it."""
        settled = replace(entry, **change)
        with self.change() as contents:
            contents.replace(settled)
        return settled

    def pending(self) -> list[LedgerEntry]:
        """Return the entries that are to be sent and were not acknowledged."""
        return [entry for entry in self.read().entries if entry.state == PENDING]

    def sealed(self) -> list[LedgerEntry]:
        """Return the entries that were sealed for shufflers and released by their owner, sent or not."""
        return [entry for entry in self.read().entries if entry.sealed is not None and entry.state != HELD]

    def spending(self) -> Spending:
        """What was spent per collection, with the state of its latest report; a held one only if there is no other."""
        contents = self.read()
        last: dict[str, LedgerEntry] = {}
        for entry in contents.entries:
            # Later entries win, but a held one never hides that an earlier report was sent.
            if entry.state != HELD or entry.collection not in last:
                last[entry.collection] = entry
        rows = (Spent(entry.collection, entry.title, contents.spent(entry), entry.state) for entry in last.values())
        return Spending(tuple(rows))

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the mutex for threads and the file lock for processes."""
        # The mutex comes first, so that threads of one process queue in memory; a ledger in memory has no file lock.
        with self._mutex, self._file_lock():
            yield

    @contextmanager
    def _file_lock(self) -> Generator[None]:
        """Hold an exclusive flock on a lock file beside the ledger; nothing for a ledger in memory."""
        if self._path is None:
            yield
            return
        # A lock file of its own: the ledger is replaced by rename, and a lock on the old inode would protect nothing.
        # It is never removed, as another process may be waiting on it.
        lock = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _write(self, kept: Kept) -> None:
        """Replace the file atomically and durably."""
        if self._path is None:
            self._kept = kept
            return
        data = json.dumps({"version": VERSION} | asdict(kept), ensure_ascii=False, indent=1).encode()
        # Write, fsync, rename, fsync the folder: after a crash there is the old file or the new one, never a part.
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            _write_through(temporary, data)
            os.replace(temporary, self._path)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        _sync_folder(self._path.parent)


def _parse(data: bytes) -> Kept:
    """Parse the contents of a ledger file; ValueError, TypeError or KeyError for anything else."""
    value = json.loads(data)
    # A ledger of a newer version may mean more than we can read: refuse it like a damaged one.
    if value["version"] not in (1, VERSION):
        raise ValueError("version")
    entries = [LedgerEntry(**cast("dict[str, Any]", entry)) for entry in value["entries"]]
    kept = Kept(entries, value["secret"], value["memories"], tokens=value.get("tokens", {}))
    # A ledger of version 1 has charged no windows, but it may have replaced one that had: it counts as made today.
    return (
        kept
        if value["version"] == 1
        else replace(kept, born=value["born"], accounts=value["accounts"], days=value["days"])
    )


def _write_through(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, and fsync it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        os.fchmod(handle, 0o600)  # Where the file existed, O_CREAT's mode did not apply.
        file.write(data)
        file.flush()
        os.fsync(handle)


def _sync_folder(folder: Path) -> None:
    """Fsync a folder, so that a rename in it survives a crash as well."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
