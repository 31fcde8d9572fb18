"""DET-COSUP on a million reports of 1,024 values, of which the 512 most frequent are looked at in pairs.

    python benchmarks/cosupport.py --output benchmarks/COSUPPORT.md

Times are those of one call, the median of three, after reports were made; the goal is three seconds on two idle
cores. Other work on the machine adds to the seconds that pass, and hardly to those of the CPU.
"""

import argparse
import os
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import tacit
from tacit.integrity.cosupport import MOST_VALUES, co_support
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.population import zipf_counts

SIZE = 1024
KINDS: tuple[tuple[str, Any], ...] = (("oue", tacit.OUE), ("olh", tacit.OLH))


def measured(make: Any, n: int) -> tuple[float, float, float]:
    """Seconds elapsed, seconds of CPU, and the largest z of an honest crowd."""
    mechanism = make(SIZE, "1")
    values = np.repeat(np.arange(SIZE), zipf_counts(SIZE, n))
    reports = mechanism.privatize(values, SimulationCoins(1))
    shares = mechanism.estimate(mechanism.tally(reports)).value
    elapsed, cpu, largest = [], [], 0.0
    for _ in range(3):
        start, busy = perf_counter(), process_time()
        largest = co_support(mechanism, reports, shares, 0.01, most=MOST_VALUES).largest
        elapsed.append(perf_counter() - start)
        cpu.append(process_time() - busy)
    return median(elapsed), median(cpu), largest


def main() -> None:
    """Print a table, and write it to a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    lines = [
        "# Common supports",
        "",
        f"`python benchmarks/cosupport.py`: {asked.n:,} reports on {SIZE:,} values, pairs of {MOST_VALUES}, "
        f"{os.cpu_count()} cores.",
        "",
        "| kind | seconds | CPU seconds | largest z |",
        "|---|---|---|---|",
    ]
    for kind, make in KINDS:
        elapsed, cpu, largest = measured(make, asked.n)
        lines.append(f"| {kind} | {elapsed:.2f} | {cpu:.2f} | {largest:.2f} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if asked.output is not None:
        asked.output.write_text(text)


if __name__ == "__main__":
    main()
