"""Waiting for a state, however slow the machine is."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

PATIENT_SECONDS = 300.0
"""Long enough for anything that comes at all on the busiest machine; a test that passes never waits for it."""


def wait_until(holds: Callable[[], Any], what: str | Callable[[], Any] = "it never came to be") -> None:
    """Look again and again until something holds; what is wrong otherwise may be told by a function."""
    end = time.monotonic() + PATIENT_SECONDS
    while not holds():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.005)


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a thread of its own: in a worker with a browser, Playwright's loop runs on the main thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
