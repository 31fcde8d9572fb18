"""Between the event loop and the writer's thread: batches go over together, and outcomes come back together.

The interpreter runs one thread at a time, and waking another costs more than a whole batch. So the batches that arrive
in one turn of the event loop are judged and handed to the writer at its end, and a commit wakes the loop once, however
many requests wait for it.
"""

import asyncio
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

import numpy as np

from tacit.collector.active import Active
from tacit.collector.ports import NewBatch
from tacit.collector.writer import Audience
from tacit.errors import Busy


class Waiter(Protocol):
    """What stands for a request that waits: a future of the event loop, or something as good."""

    def cancelled(self) -> bool:
        """Whether it was given up."""
        ...

    def done(self) -> bool:
        """Whether it waits no longer."""
        ...

    def set_result(self, result: str, /) -> None:
        """Hear an outcome."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Hear why there is none."""
        ...


INVALID = "invalid"
"""The outcome of a batch that was not handed on: some report of it is not one that the mechanism makes."""


class GroupWrites(Protocol):
    """The writer, as far as it is needed here."""

    def submit_all(self, batches: Sequence[NewBatch], waiters: Sequence[Waiter], audience: Audience) -> int:
        """Take batches as long as there is room; returns how many were taken."""
        ...

    def refusal(self) -> Busy:
        """Why a batch was not taken."""
        ...


class _Group:
    """Batches, and who waits for each."""

    __slots__ = ("batches", "waiters")

    def __init__(self) -> None:
        self.batches, self.waiters = list[NewBatch](), list[Waiter]()

    def add(self, batch: NewBatch, waiter: Waiter) -> None:
        self.batches.append(batch)
        self.waiters.append(waiter)


class Outcomes:
    """Hands batches to the writer, and outcomes to the requests that wait for them. Belongs to one event loop."""

    def __init__(self, writer: GroupWrites) -> None:
        """Begin with nothing to hand over."""
        self._writer, self._lock = writer, Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._judged, self._unjudged = _Group(), dict[Active, _Group]()
        self._scheduled = False
        self._told: list[tuple[Sequence[Waiter], Sequence[str] | BaseException]] = []

    def of(self, batch: NewBatch) -> "asyncio.Future[str]":
        """Have a batch of valid reports stored at the end of this turn; the outcome comes once it is durable."""
        waiter = self._running_loop().create_future()
        self.add(batch, waiter)
        return waiter

    def of_unjudged(self, active: Active, batch: NewBatch) -> "asyncio.Future[str]":
        """The same for reports of the right width; INVALID, and nothing is stored, if not all of them are valid."""
        waiter = self._running_loop().create_future()
        self.add_unjudged(active, batch, waiter)
        return waiter

    def add(self, batch: NewBatch, waiter: Waiter) -> None:
        """What `of` does, for somebody who brings a waiter."""
        self._running_loop()
        self._judged.add(batch, waiter)

    def add_unjudged(self, active: Active, batch: NewBatch, waiter: Waiter) -> None:
        """What `of_unjudged` does, for somebody who brings a waiter."""
        self._running_loop()
        group = self._unjudged.get(active)
        if group is None:
            group = self._unjudged[active] = _Group()
        group.add(batch, waiter)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, which will hand on what gathers in this turn."""
        if self._scheduled and self._loop is not None:
            return self._loop
        self._loop, self._scheduled = asyncio.get_running_loop(), True
        self._loop.call_soon(self._hand_on)
        return self._loop

    def _hand_on(self) -> None:
        """Give the writer all that has gathered."""
        self._scheduled = False
        judged, self._judged = self._judged, _Group()
        unjudged, self._unjudged = self._unjudged, {}
        for active, group in unjudged.items():
            self._judge(active, group, judged)
        taken = self._writer.submit_all(judged.batches, judged.waiters, self)
        for waiter in judged.waiters[taken:]:
            _fail(waiter, self._writer.refusal())

    def _judge(self, active: Active, added: _Group, judged: _Group) -> None:
        """Look at the reports of many requests at once; add the batches that may be stored."""
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

    def claim(self, waiter: Waiter) -> bool:
        """Whether a request was not given up; in the writer's thread."""
        return not waiter.cancelled()

    def tell(self, waiters: Sequence[Waiter], outcomes: "Sequence[str] | BaseException") -> None:
        """Wake the event loop, unless it is about to look anyway; in the writer's thread."""
        with self._lock:
            asleep = not self._told
            self._told.append((waiters, outcomes))
        if not asleep or self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._hand_over)
        except RuntimeError:
            # A loop that has ended has nobody left who waits.
            with self._lock:
                self._told.clear()

    def _hand_over(self) -> None:
        with self._lock:
            told, self._told = self._told, []
        for waiters, outcomes in told:
            if isinstance(outcomes, BaseException):
                for waiter in waiters:
                    _fail(waiter, outcomes)
                continue
            for waiter, outcome in zip(waiters, outcomes, strict=True):
                if not waiter.done():
                    waiter.set_result(outcome)


def _fail(waiter: Waiter, error: BaseException) -> None:
    if not waiter.done():
        waiter.set_exception(error)


def valid_batches(active: Active, batches: Sequence[NewBatch]) -> "list[bool] | None":
    """Which batches have valid reports alone; None if all have."""
    reports = np.frombuffer(b"".join([batch.payload for batch in batches]), active.dtype)
    valid = active.mechanism.valid(reports)
    if valid.all():
        return None
    starts = np.cumsum([0, *(batch.count for batch in batches[:-1])])
    return np.logical_and.reduceat(valid, starts).tolist()
