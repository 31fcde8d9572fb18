"""Queries with a time limit: a few threads answer, everybody else waits for a turn, and nobody waits for ever."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

from tacit.collector.problems import Problem

Result = TypeVar("Result")
_RETRY_SECONDS = 5


class QueryThreads:
    """Threads that answer queries; one whose time is over gives up at its next step, and the thread is free again."""

    def __init__(self, seconds: float, at_once: int) -> None:
        """Answer so many at once, each within some seconds from its arrival."""
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(at_once, "tacit-query")

    def run(self, work: Callable[[Callable[[], None]], Result]) -> Result:
        """The result of some work, or the problem that it took too long; work calls the check it is given."""
        end = monotonic() + self._seconds

        def check() -> None:
            if monotonic() > end:
                raise self._problem()

        def timed() -> Result:
            check()
            return work(check)

        future = self._threads.submit(timed)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            future.cancel()
            raise self._problem() from None

    def _problem(self) -> Problem:
        return Problem(
            "query_timeout",
            f"the query was not answered within {self._seconds:g} seconds; "
            "ask for fewer groups or aggregates, or again later",
            retry_seconds=_RETRY_SECONDS,
        )
