"""A thread pool for expensive work (planning, answering, SQL), behind a bounded and fair queue.

Everything else (reports, health checks, lists, tokens) never waits for these threads. One token can use only some of
the threads and a part of the queue. Every job has a deadline, and is cancelled when its client disconnects: a waiting
job is taken out of the queue, a running one ends at its next call of `check` (cooperative cancellation).
"""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar

from tacit.core.patience import checked_by
from tacit.hosting.problems import Problem

Result = TypeVar("Result")
_RETRY_SECONDS = 2


@dataclass(frozen=True)
class WorkLimits:
    """Sizes of the thread pool and its queue, in all and for one token."""

    threads: int = 3
    threads_each: int = 2
    """Threads that one token may use at once; fewer than all, so that nobody can starve the others."""
    jobs: int = 200
    """Limit of running and waiting jobs."""
    jobs_each: int = 50
    """The same for one token."""
    seconds: float = 30.0
    """Deadline of a job, from its arrival to its result."""
    write_seconds: float = 300.0
    """Deadline for tokens that may write: large drafts take long to plan, and operators are trusted to wait."""


PUBLIC = ""
"""The owner of jobs of visitors without a token. They share one extra thread, which no token can use."""


class Job(Generic[Result]):
    """An accepted piece of work: it waits, runs, and ends with a result, an error, or because it was cancelled."""

    def __init__(self, work: "Work", owner: str, run: Callable[[], Result], seconds: float) -> None:
        """Create a job; only `Work.submit` does."""
        self.owner, self.seconds = owner, seconds
        self.future: Future[Result] = Future()
        # Marked as running from the start, so that cancelling an asyncio wrapper cannot cancel the future under the
        # thread that will set its result: only `give_up` ends a job.
        self.future.set_running_or_notify_cancel()
        self._work, self._run, self._end, self._is_given_up = work, run, monotonic() + seconds, False

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self._end - monotonic())

    def check(self) -> None:
        """Raise Problem `query_timeout` if the deadline has passed or the client has left."""
        if self._is_given_up or monotonic() > self._end:
            raise self.late()

    def late(self) -> Problem:
        """The problem of a job that missed its deadline."""
        return Problem(
            "query_timeout",
            f"this was not answered within {self.seconds:g} seconds; "
            "ask for fewer groups, aggregates or questions, or again later",
            retry_seconds=5,
        )

    def give_up(self) -> None:
        """Cancel the job, because nobody waits for it any more; does nothing if it is done."""
        self._is_given_up = True
        self._work.drop(self)

    def do(self) -> Callable[[], None]:
        """Run the job in this thread; returns a function that resolves its future."""
        try:
            self.check()
            with checked_by(self.check):
                return partial(self.future.set_result, self._run())
        except BaseException as error:
            return partial(self.future.set_exception, error)


class Work:
    """The thread pool, and the queue in front of it."""

    def __init__(self, limits: WorkLimits | None = None) -> None:
        """Create the pool; its threads start on demand."""
        self.limits = limits or WorkLimits()
        # One more thread, for visitors without a token. The executor's own queue is never used: jobs are submitted
        # only when a thread is free, so that this class decides about fairness.
        self._threads = ThreadPoolExecutor(self.limits.threads + 1, "tacit-work")
        self._lock, self._is_stopped = Lock(), False
        self._waiting, self._running = list[Job[Any]](), list[Job[Any]]()

    def submit(self, owner: str, run: Callable[[], Result], seconds: float | None = None) -> Job[Result]:
        """Queue a job for the owner of a token; Problem `rate_limited` or `unavailable` if there is no room."""
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
        """Start waiting jobs while threads are free, owners with the fewest running jobs first. The lock is held."""
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
        """Whether one more job of an owner may run; `used` counts the running jobs by owner."""
        if owner == PUBLIC:
            return used[PUBLIC] < 1
        return used.total() - used[PUBLIC] < self.limits.threads and used[owner] < self.limits.threads_each

    def _do(self, job: Job[Any]) -> None:
        tell = job.do()
        # The slot is freed before the future is resolved: a client that sends its next request right after an answer
        # must not be refused because its last job still counts.
        with self._lock:
            self._running.remove(job)
            self._start_more()
        tell()

    def drop(self, job: Job[Any]) -> None:
        """Remove a job from the queue if it has not started; its future gets the deadline's problem."""
        with self._lock:
            if job not in self._waiting:
                return
            self._waiting.remove(job)
        job.future.set_exception(job.late())

    @property
    def running(self) -> int:
        """Number of running jobs (a metric)."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Number of waiting jobs (a metric)."""
        return len(self._waiting)

    def stop(self) -> None:
        """Refuse new jobs and cancel all others; running ones end at their next check, and are not waited for."""
        with self._lock:
            self._is_stopped = True
            jobs = [*self._waiting, *self._running]
        for job in jobs:
            job.give_up()
        self._threads.shutdown(wait=False)
