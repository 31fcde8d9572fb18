"""Every kind of the catalogue at its smallest: reports per second that are privatized and tallied, on one thread.

Run with ``python benchmarks/kinds.py [kind …]``. The instances are the tiny ones of the laws, so the figures say what a
report costs before its domain does; `make bench` measures ordinary sizes of a few kinds against other libraries.
"""

from __future__ import annotations

import os
import sys

# Before numpy is imported, so that everything stays on one core.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TACIT_THREADS": "1"}

from typing import Any

import numpy as np
from timing import medians

from tacit.catalog import CATALOG
from tacit.device.numbers.coins import SystemCoins
from tacit.testing.examples import example
from tacit.testing.laws import values_of

REPORTS = 20_000


def batch(mechanism: Any, n: int) -> Any:
    """The values of n respondents, all of a small domain in turn; sets of several sizes stay a list."""
    values = values_of(mechanism)
    repeated = [values[i % len(values)] for i in range(n)]
    ragged = isinstance(values[0], tuple) and len({len(value) for value in values}) > 1
    return repeated if ragged else np.array(repeated)


def measure(kind: str, n: int = REPORTS, repeats: int = 3) -> dict[str, float]:
    """Reports per second of both halves of a kind."""
    mechanism = example(kind, "1")
    values, coins = batch(mechanism, n), SystemCoins()
    reports = mechanism.privatize(values, coins)
    work = {"privatize": lambda: mechanism.privatize(values, coins), "tally": lambda: mechanism.tally(reports)}
    return {half: n / seconds for half, seconds in medians(work, repeats).items()}


def main(kinds: list[str]) -> None:
    """Print a line per kind."""
    print(f"{'kind':<14}{'privatize':>16}{'tally':>16}   reports per second")
    for kind in kinds or [entry.kind for entry in CATALOG]:
        rates = measure(kind)
        print(f"{kind:<14}{rates['privatize']:>16,.0f}{rates['tally']:>16,.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
