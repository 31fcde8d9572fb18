"""What the CPU time of a process is spent on."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock, local
from time import process_time, thread_time


class CpuMeter:
    """CPU seconds of a process by activity; thread-safe.

    Parts may be nested: what an inner one takes is not counted for the outer one.
    """

    def __init__(self) -> None:
        """Begin at zero."""
        self._spent, self._lock, self._inner = dict[str, float](), Lock(), local()

    @contextmanager
    def spent_on(self, part: str) -> Generator[None]:
        """Count what this thread computes in the block; waiting is not counted."""
        outer, self._inner.seconds = getattr(self._inner, "seconds", 0.0), 0.0
        began = thread_time()
        try:
            yield
        finally:
            whole = thread_time() - began
            with self._lock:
                self._spent[part] = self._spent.get(part, 0.0) + whole - self._inner.seconds
            self._inner.seconds = outer + whole

    def seconds(self) -> dict[str, float]:
        """By part; all other time of the process is "other"."""
        with self._lock:
            spent = dict(self._spent)
        return {**spent, "other": process_time() - sum(spent.values())}
