"""What bounds unary privatizing: the batch against its coins and a bare bit-sliced loop over as many words.

    python benchmarks/unary.py [SIZE]

CPU time on one thread. The limit is the time to draw the words that the reports take from the same coins, and to turn
as many words into bits by the bare loop of `bare.c`, which has no true value, no check and no report to write.
"""

from __future__ import annotations

import os
import sys

# Before numpy is imported, so that everything stays on one core.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TACIT_THREADS": "1"}

from typing import Any

import bare
import numpy as np
from timing import medians
from worker import zipf_values

import tacit
from tacit import kernels
from tacit.simulate.coins import SimulationCoins

REPORTS, REPEATS = 20_000, 7
# Words that privatizing draws at a time; drawing them all at once would only measure the memory.
AT_A_TIME = 1 << 16


class CountedCoins(SimulationCoins):
    """Coins that count the words that are taken."""

    taken = 0

    def skip(self, count: int) -> None:
        """Consume words."""
        self.taken += count
        super().skip(count)


def measure(kind: str, size: int) -> None:
    """Print the rates of one kind."""
    mechanism: Any = getattr(tacit, kind)(size=size, epsilon="1")
    values, coins, counted = zipf_values(REPORTS, size), tacit.SystemCoins(), CountedCoins(1)
    mechanism.privatize(values, counted)
    blocks = REPORTS * -(-size // 64)
    words = np.frombuffer(SimulationCoins(2).words(64 + counted.taken * 11 // 10), np.uint64)

    def draw() -> None:
        for _ in range(counted.taken // AT_A_TIME):
            coins.words(AT_A_TIME, kernels.expand_keys)
        coins.words(counted.taken % AT_A_TIME, kernels.expand_keys)

    work = {
        "tacit": lambda: mechanism.privatize(values, coins),
        "coins": draw,
        "loop": lambda: bare.lanes(words, blocks, mechanism.thresholds[1]),
    }
    spent = medians(work, REPEATS)
    rate = {name: REPORTS / seconds / 1e6 for name, seconds in spent.items()}
    limit = REPORTS / (spent["coins"] + spent["loop"]) / 1e6
    each = f"{rate['tacit']:.2f} M/s | {limit:.2f} M/s | {rate['tacit'] / limit:.2f}"
    print(f"| {kind} | {size:,} | {each} | {rate['coins']:.2f} M/s | {rate['loop']:.2f} M/s |")


def main(arguments: list[str]) -> None:
    """Print a table."""
    print("| kind | d | privatize | limit | share | coins alone | loop alone |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in ("OUE", "SUE"):
        measure(kind, int(arguments[0]) if arguments else 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
