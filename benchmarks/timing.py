"""Medians of interleaved runs: what is compared is measured in turns, so that both meet the same machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Action = Callable[[], Any]


def cpu_seconds() -> float:
    """The CPU time of this process with all its threads: another process's load does not enter it."""
    return time.process_time()


def wall_seconds() -> float:
    """The time on the clock on the wall, for what runs in several threads."""
    return time.perf_counter()


def seconds_of(action: Action, clock: Callable[[], float] = cpu_seconds) -> float:
    """Return the seconds of one call."""
    start = clock()
    action()
    return max(clock() - start, 1e-9)


def medians(actions: dict[str, Action], repeats: int, clock: Callable[[], float] = cpu_seconds) -> dict[str, float]:
    """Call all actions in turns, `repeats` times after one warm-up; return the median seconds of each."""
    for action in actions.values():
        action()
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            spent[name].append(seconds_of(action, clock))
    return {name: statistics.median(times) for name, times in spent.items()}
