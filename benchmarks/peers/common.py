"""What every peer runner shares: read one job, size it to its budget, time it, print JSON.

Standard library only, because each runner is executed inside the environment of its peer.

A job is `{"what": "encode" | "server", "mechanism", "n", "d", "epsilon", "seconds"}`.
The answer is `{"rate", "n", "seconds", "extrapolated", "clock", "version"}`, rate in reports per second.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

# A pilot run doubles its reports, from the smallest on, until it takes this long.
PILOT_SECONDS = 0.3
SMALLEST_PILOT = 16
REPEATS = 3


@dataclass(frozen=True)
class Opened:
    """One peer mechanism: `encode` maps values to reports, `serve` consumes reports.

    `server_clock` is "wall" where the server works in child processes that the CPU clock does not see.
    `largest` bounds the reports held in memory at once.
    """

    encode: Callable[[Sequence[int]], list[Any]]
    serve: Callable[[list[Any]], Any]
    server_clock: str = "cpu"
    largest: int = 10_000_000


Opener = Callable[[str, int, float], Opened]


def zipf_values(n: int, d: int) -> list[int]:
    """Return n values of [0, d) with frequencies proportional to 1/rank^1.1, the same for every peer."""
    weights = itertools.accumulate(1.0 / (rank + 1) ** 1.1 for rank in range(d))
    return random.Random(20).choices(range(d), cum_weights=list(weights), k=n)


def seconds_of(clock: str, action: Callable[[], Any]) -> float:
    """Return the seconds that one call takes, on the clock named "cpu" or "wall"."""
    now = time.process_time if clock == "cpu" else time.perf_counter
    start = now()
    action()
    return max(now() - start, 1e-9)


def time_once(opened: Opened, what: str, n: int, d: int) -> float:
    """Time one pass over n fresh reports (some peers' reports can be read only once)."""
    values = zipf_values(n, d)
    if what == "encode":
        return seconds_of("cpu", lambda: opened.encode(values))
    reports = opened.encode(values)
    return seconds_of(opened.server_clock, lambda: opened.serve(reports))


def affordable(opened: Opened, job: dict[str, Any]) -> int:
    """Return how many reports fit the budget, from a pilot that doubles until it is long enough to trust."""
    n = min(SMALLEST_PILOT, job["n"])
    spent = time_once(opened, job["what"], n, job["d"])
    while spent < PILOT_SECONDS and n < min(job["n"], opened.largest):
        n *= 2
        spent = time_once(opened, job["what"], n, job["d"])
    return max(1, min(job["n"], opened.largest, int(n * job["seconds"] / spent)))


def warm_up(opened: Opened, job: dict[str, Any]) -> None:
    """Let compiling peers compile and process pools start outside the timed part."""
    reports = opened.encode(zipf_values(4, job["d"]))
    if job["what"] == "server":
        opened.serve(reports)


def measure(opened: Opened, job: dict[str, Any]) -> dict[str, Any]:
    """Run one job within its budget and return its median rate; a cut n is said by `extrapolated`."""
    warm_up(opened, job)
    n = affordable(opened, job)
    # Repeated only as far as the budget goes: slow peers are measured once.
    spent = [time_once(opened, job["what"], n, job["d"])]
    while len(spent) < REPEATS and sum(spent) + spent[0] < job["seconds"]:
        spent.append(time_once(opened, job["what"], n, job["d"]))
    seconds = statistics.median(spent)
    return {
        "rate": n / seconds,
        "n": n,
        "seconds": seconds,
        "extrapolated": n < job["n"],
        "clock": opened.server_clock if job["what"] == "server" else "cpu",
    }


def main(package: str, open_mechanism: Opener) -> None:
    """Execute the job given as the only argument and print its result as one JSON line."""
    job = json.loads(sys.argv[1])
    opened = open_mechanism(job["mechanism"], job["d"], job["epsilon"])
    print(json.dumps({**measure(opened, job), "version": version(package)}))
