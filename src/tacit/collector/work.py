"""Expensive work: planning, answering and SQL run on a few threads of their own, behind a bounded queue.

Everything else (reports, health checks, lists, tokens) never waits for these threads. One token can use only some of
them and only a part of the queue, every job has a deadline, and a job whose client has left is given up: one that
waits is taken out of the queue, one that runs ends at its next `check`.
"""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar

from tacit.collector.problems import Problem
from tacit.core.patience import checked_by

Result = TypeVar("Result")
_RETRY_SECONDS = 2


@dataclass(frozen=True)
class WorkLimits:
    """How much expensive work is done at once, and how much of it for one token."""

    threads: int = 3
    threads_each: int = 2
    """Threads that jobs of one token may use at once; fewer than all, so that others get their turn."""
    jobs: int = 200
    """Jobs that run or wait."""
    jobs_each: int = 50
    """Of these for one token."""
    seconds: float = 30.0
    """From the arrival of a job to its result."""
    write_seconds: float = 300.0
    """The same for those who may write: large drafts take long to plan, and operators are trusted to wait."""


PUBLIC = ""
"""The owner of jobs of visitors without a token. They have one thread that no token can use."""


class Job(Generic[Result]):
    """Work that was accepted: waits, runs, and ends with a result, an error, or because it was given up."""

    def __init__(self, work: "Work", owner: str, run: Callable[[], Result], seconds: float) -> None:
        """Made by `Work.submit`."""
        self.owner, self.seconds = owner, seconds
        self.future: Future[Result] = Future()
        self.future.set_running_or_notify_cancel()  # Only `give_up` ends a job; waiters cannot cancel its future.
        self._work, self._run, self._end, self._is_given_up = work, run, monotonic() + seconds, False

    @property
    def seconds_left(self) -> float:
        """Until the deadline."""
        return max(0.0, self._end - monotonic())

    def check(self) -> None:
        """Raise if nobody waits for the result any more."""
        if self._is_given_up or monotonic() > self._end:
            raise self.late()

    def late(self) -> Problem:
        """The problem of a job that was not done in time."""
        return Problem(
            "query_timeout",
            f"this was not answered within {self.seconds:g} seconds; "
            "ask for fewer groups, aggregates or questions, or again later",
            retry_seconds=5,
        )

    def give_up(self) -> None:
        """Say that nobody waits any more; does nothing if the job is done."""
        self._is_given_up = True
        self._work.drop(self)

    def do(self) -> Callable[[], None]:
        """Run the job in this thread; returns what tells whoever waits for it how it ended."""
        try:
            self.check()
            with checked_by(self.check):
                return partial(self.future.set_result, self._run())
        except BaseException as error:
            return partial(self.future.set_exception, error)


class Work:
    """The threads, and the queue in front of them."""

    def __init__(self, limits: WorkLimits | None = None) -> None:
        """Threads are started when they are first needed."""
        self.limits = limits or WorkLimits()
        self._threads = ThreadPoolExecutor(self.limits.threads + 1, "tacit-work")
        self._lock, self._is_stopped = Lock(), False
        self._waiting, self._running = list[Job[Any]](), list[Job[Any]]()

    def submit(self, owner: str, run: Callable[[], Result], seconds: float | None = None) -> Job[Result]:
        """Accept a job for the bearer of a token, or raise the problem why not."""
        limits = self.limits
        job = Job(self, owner, run, limits.seconds if seconds is None else seconds)
        with self._lock:
            jobs = [*self._waiting, *self._running]
            if sum(other.owner == owner for other in jobs) >= limits.jobs_each:
                raise Problem(
                    "rate_limited",
                    f"{limits.jobs_each} requests of this token are being answered; wait for some of them",
                    retry_seconds=_RETRY_SECONDS,
                )
            if len(jobs) >= limits.jobs or self._is_stopped:
                raise Problem("unavailable", "too many requests wait to be answered", retry_seconds=_RETRY_SECONDS)
            self._waiting.append(job)
            self._start_more()
        return job

    def _start_more(self) -> None:
        """Give free threads to waiting jobs, first to those of tokens that use fewest; the lock is held."""
        while not self._is_stopped:
            used = Counter(job.owner for job in self._running)
            ready = [job for job in self._waiting if self._may_start(job.owner, used)]
            if not ready:
                return
            job = min(ready, key=lambda job: used[job.owner])
            self._waiting.remove(job)
            self._running.append(job)
            self._threads.submit(self._do, job)

    def _may_start(self, owner: str, used: "Counter[str]") -> bool:
        """Whether there is a thread for one more job of an owner, beside the jobs that run for every owner."""
        if owner == PUBLIC:
            return used[PUBLIC] < 1
        return used.total() - used[PUBLIC] < self.limits.threads and used[owner] < self.limits.threads_each

    def _do(self, job: Job[Any]) -> None:
        tell = job.do()
        # The thread is free before anybody is told, so that whoever has an answer can ask again.
        with self._lock:
            self._running.remove(job)
            self._start_more()
        tell()

    def drop(self, job: Job[Any]) -> None:
        """Take a job out of the queue, if it has not been started."""
        with self._lock:
            if job not in self._waiting:
                return
            self._waiting.remove(job)
        job.future.set_exception(job.late())

    @property
    def running(self) -> int:
        """How many jobs run now."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """How many jobs wait for a thread."""
        return len(self._waiting)

    def stop(self) -> None:
        """Take no more jobs and give up all there are."""
        with self._lock:
            self._is_stopped = True
            jobs = [*self._waiting, *self._running]
        for job in jobs:
            job.give_up()
        self._threads.shutdown(wait=False)
