"""Checks of queries: by default that of the running context, so that a query ends when nobody waits for it."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from tacit.core.patience import Check
from tacit.core.patience import check as patient

__all__ = ["Check", "holding", "patient"]

_LOOK_SECONDS = 0.1


@contextmanager
def holding(lock: Lock, check: Check) -> Generator[None]:
    """Acquire a lock; the time limit is checked while another thread holds it."""
    while not lock.acquire(timeout=_LOOK_SECONDS):
        check()
    try:
        yield
    finally:
        lock.release()
