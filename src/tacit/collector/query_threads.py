"""Queries with a time limit: a few threads answer, everybody else waits for a turn, and nobody waits for ever."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import local
from time import monotonic
from typing import TypeVar

from tacit.collector.problems import Problem

Result = TypeVar("Result")
_RETRY_SECONDS = 5


class QueryThreads:
    """Threads that answer queries."""

    def __init__(self, seconds: float, at_once: int) -> None:
        """Answer so many at once, each within some seconds from its arrival."""
        self._seconds, self._own = seconds, local()
        self._threads = ThreadPoolExecutor(at_once, "tacit-query")

    def run(self, work: Callable[[], Result]) -> Result:
        """The result of some work, or the problem that it took too long."""
        end = monotonic() + self._seconds

        def timed() -> Result:
            self._own.end = end
            self.check()
            return work()

        future = self._threads.submit(timed)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            future.cancel()
            raise self._problem() from None

    def check(self) -> None:
        """Give up if the query that this thread answers has no time left; work calls it between its steps."""
        if monotonic() > getattr(self._own, "end", float("inf")):
            raise self._problem()

    def _problem(self) -> Problem:
        return Problem(
            "query_timeout",
            f"the query was not answered within {self._seconds:g} seconds; ask for fewer groups, or again later",
            retry_seconds=_RETRY_SECONDS,
        )
