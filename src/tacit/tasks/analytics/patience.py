"""Work that may be given up: between its steps it calls a check, which raises once nobody waits for the answer."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock

Check = Callable[[], None]

_LOOK_SECONDS = 0.1


def patient() -> None:
    """The check of whoever waits as long as it takes."""


@contextmanager
def holding(lock: Lock, check: Check) -> Generator[None]:
    """Hold a lock, and go on checking while somebody else does."""
    while not lock.acquire(timeout=_LOOK_SECONDS):
        check()
    try:
        yield
    finally:
        lock.release()
