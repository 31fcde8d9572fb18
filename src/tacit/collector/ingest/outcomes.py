"""The bridge between the event loop and the writer thread: batches cross in groups, and outcomes come back in groups.

Under the GIL, waking another thread costs more than handling a batch. So batches are validated together and handed to
the writer at the end of an iteration of the event loop; while it has some, the next ones gather until it has stored
those. A commit wakes the loop once, however many requests wait for it:

    event loop                                          writer thread
    request, request, request -> add ... add
    end of the iteration      -> _hand_on --submit_all-->  one transaction
    request, request          -> add, add
    the next group, then
    futures are resolved      <- _hand_over <--_tell-----  commit

With many batches the loop waits for the commit (`_wait`), a few milliseconds at most: two busy threads take the GIL
from each other dozens of times in every transaction, and that costs more than the pause.
"""

import asyncio
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np

from tacit.collector.collections.active import Active
from tacit.collector.ingest.plain import singles
from tacit.collector.ingest.writer import BatchWriter, Callers, Waiter
from tacit.collector.ingest.writer import Group as Queued
from tacit.collector.ports import INVALID, STORED, NewBatch, Outcome

MOST_GATHERED = 512
"""So many batches, or bytes of reports, are handed on even while the writer is busy: its queue has the limits."""
MOST_GATHERED_BYTES = 1 << 20
MANY = 8
"""From so many batches on the loop waits for their commit."""
PROMPT_SECONDS = 0.004
"""So long at most. After a commit that took longer, it does not wait for the next one."""


class Gathering(Protocol):
    """Bodies of one report each, all of one length and in the common form, that gather for one collection."""

    active: Active

    def __len__(self) -> int:
        """How many there are."""
        ...

    def take(self) -> tuple[list[bytes], Callers]:
        """Hand out all of them, with whoever waits for each, and begin anew."""
        ...


class _Group:
    """Parallel lists: batches, and the callback handle (waiter) of each."""

    __slots__ = ("batches", "waiters")

    def __init__(self) -> None:
        self.batches, self.waiters = list[NewBatch](), list[Waiter]()

    def add(self, batch: NewBatch, waiter: Waiter) -> None:
        self.batches.append(batch)
        self.waiters.append(waiter)


class Outcomes:
    """Hands batches to the writer and outcomes to waiters. Bound to one event loop; only `_tell` is thread-safe."""

    def __init__(self, writer: BatchWriter, after: Callable[[], None] = lambda: None) -> None:
        """Work with a writer; `after` is called when the outcomes of a commit were delivered.

        The event loop is the one that first adds a batch.
        """
        self._writer, self._lock, self._after = writer, Lock(), after
        self._loop: asyncio.AbstractEventLoop | None = None
        self._judged, self._unjudged = _Group(), dict[Active, _Group]()
        self._gatherings = list[Gathering]()
        self._scheduled = False
        # Batches that the writer has and has not told of, and how many gather meanwhile.
        self._under_way, self._gathered, self._gathered_bytes = 0, 0, 0
        # Written by the writer thread and read by the loop; the lock guards this list alone.
        self._told: list[tuple[Sequence[Waiter], Sequence[Outcome] | BaseException]] = []
        # Locked but for the moment between a commit and the end of the loop's wait for it.
        self._commit, self._waits, self._is_prompt = Lock(), False, True
        self._commit.acquire()

    def of(self, batch: NewBatch) -> "asyncio.Future[Outcome]":
        """Queue a batch of valid reports; the future gets its outcome when the batch is durable."""
        waiter: asyncio.Future[Outcome] = self._running_loop().create_future()
        self.add(batch, waiter)
        return waiter

    def of_unjudged(self, active: Active, batch: NewBatch) -> "asyncio.Future[Outcome]":
        """Queue a batch whose reports have the right width but are not validated yet.

        They are validated together with those of other requests; the outcome is INVALID, and nothing of the batch is
        stored, unless all of its reports are valid.
        """
        waiter: asyncio.Future[Outcome] = self._running_loop().create_future()
        self.add_unjudged(active, batch, waiter)
        return waiter

    def add(self, batch: NewBatch, waiter: Waiter) -> None:
        """Like `of`, with a waiter of the caller's, for the HTTP fast path, which has no futures."""
        self._running_loop()
        self._gathered += 1
        self._gathered_bytes += len(batch.payload)
        self._judged.add(batch, waiter)

    def add_unjudged(self, active: Active, batch: NewBatch, waiter: Waiter) -> None:
        """Like `of_unjudged`, with a waiter of the caller's."""
        self._running_loop()
        self._gathered += 1
        self._gathered_bytes += len(batch.payload)
        group = self._unjudged.get(active)
        if group is None:
            group = self._unjudged[active] = _Group()
        group.batches.append(batch)
        group.waiters.append(waiter)

    def add_gathering(self, gathering: Gathering) -> None:
        """Queue single reports that have begun to gather; all that come until they are handed on go with them."""
        self._running_loop()
        self._gatherings.append(gathering)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop; schedules `_hand_on` for the end of this iteration if that is not done yet."""
        if self._scheduled and self._loop is not None:
            return self._loop
        self._loop, self._scheduled = asyncio.get_running_loop(), True
        self._loop.call_soon(self._hand_on)
        return self._loop

    def _hand_on(self, *, may_wait: bool = True) -> None:
        """Validate all that has gathered, and submit it to the writer, unless `_hand_over` will do so soon."""
        self._scheduled = False
        number = self._gathered + sum([len(gathering) for gathering in self._gatherings])
        is_little = number < MOST_GATHERED and self._gathered_bytes < MOST_GATHERED_BYTES
        if not number or (self._under_way and is_little):
            return
        groups = self._all_judged()
        # Back-pressure: what the writer has no room for fails at once with Busy, and the client sends it again.
        are_many = sum(len(waiters) for _, waiters in groups) >= MANY
        self._waits = is_waiting = may_wait and self._is_prompt and are_many
        taken = self._writer.submit_groups(groups, self._tell)
        self._under_way += sum(taken)
        for (_, waiters), some in zip(groups, taken, strict=True):
            if some < len(waiters):
                for waiter in waiters[some:]:
                    _fail(waiter, self._writer.refusal())
        # Also where there was room for none: a commit that ended meanwhile has taken the loop for one that waits.
        if is_waiting:
            self._wait()

    def _all_judged(self) -> list[Queued]:
        """What has gathered and is valid."""
        self._gathered = self._gathered_bytes = 0
        judged, self._judged = self._judged, _Group()
        unjudged, self._unjudged = self._unjudged, {}
        gatherings, self._gatherings = self._gatherings, []
        for active, group in unjudged.items():
            self._judge(active, group, judged)
        groups = [group for each in gatherings if (group := _judge_singles(each, judged)) is not None]
        return [*groups, (judged.batches, judged.waiters)] if judged.batches else groups

    def _wait(self) -> None:
        """Wait for a commit in this thread, and hand its outcomes over; if it takes long, `_tell` wakes the loop."""
        is_told = self._commit.acquire(timeout=PROMPT_SECONDS)
        with self._lock:
            is_late, self._waits = self._waits, False
        if not is_told and not is_late:
            # It was told in the moment between; the lock is free, or about to be.
            is_told = self._commit.acquire()
        self._is_prompt = is_told
        if is_told:
            self._hand_over()

    def _judge(self, active: Active, added: _Group, judged: _Group) -> None:
        """Validate the reports of many requests with one vectorised call; moves the valid batches to `judged`."""
        try:
            good = valid_batches(active, added.batches)
        except Exception as error:
            for waiter in added.waiters:
                _fail(waiter, error)
            return
        if good is None:
            judged.batches += added.batches
            judged.waiters += added.waiters
            return
        for batch, waiter, is_good in zip(added.batches, added.waiters, good, strict=True):
            if is_good:
                judged.add(batch, waiter)
            elif not waiter.done():
                waiter.set_result(INVALID)

    def _tell(self, waiters: Sequence[Waiter], outcomes: "Sequence[Outcome] | BaseException") -> None:
        """Queue outcomes, and wake the event loop unless it was woken already. Runs in the writer thread."""
        with self._lock:
            asleep = not self._told
            self._told.append((waiters, outcomes))
            waits, self._waits = self._waits, False
        if waits:
            self._commit.release()
            return
        if not asleep or self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._hand_over)
        except RuntimeError:
            # The loop was closed, so nobody waits any more.
            with self._lock:
                self._told.clear()

    def _hand_over(self) -> None:
        # Swapped under the lock: outcomes that come from now on find the list empty and wake the loop again.
        with self._lock:
            told, self._told = self._told, []
        self._under_way -= sum(len(waiters) for waiters, _ in told)
        self._is_prompt = True
        # First of all, so that the writer has something to do while answers are written.
        self._hand_on(may_wait=False)
        for waiters, outcomes in told:
            if isinstance(outcomes, BaseException):
                for waiter in waiters:
                    _fail(waiter, outcomes)
                continue
            if isinstance(waiters, Callers) and outcomes.count(STORED) == len(waiters):
                waiters.stored()
                continue
            for waiter, outcome in zip(waiters, outcomes, strict=True):
                if not waiter.done():
                    waiter.set_result(outcome)
        self._after()


def _judge_singles(gathering: Gathering, judged: _Group) -> "Queued | None":
    """Validate single reports together; if some are bad, the others are moved to `judged`."""
    bodies, callers = gathering.take()
    try:
        batches, valid = singles(gathering.active, bodies)
    except Exception as error:
        for caller in callers:
            _fail(caller, error)
        return None
    if valid.all():
        return batches, callers
    for batch, caller, is_good in zip(batches, callers, valid.tolist(), strict=True):
        if is_good:
            judged.add(batch, caller)
        else:
            caller.set_result(INVALID)
    return None


def _fail(waiter: Waiter, error: BaseException) -> None:
    if not waiter.done():
        waiter.set_exception(error)


def valid_batches(active: Active, batches: Sequence[NewBatch]) -> "list[bool] | None":
    """For every batch whether all of its reports are valid; None (the fast path) if that is so for all of them."""
    reports = np.frombuffer(b"".join([batch.payload for batch in batches]), active.dtype)
    valid = active.mechanism.valid(reports)
    if valid.all():
        return None
    # reduceat takes the conjunction over each batch: from its start up to the next one's.
    starts = np.cumsum([0, *(batch.count for batch in batches[:-1])])
    return np.logical_and.reduceat(valid, starts).tolist()
