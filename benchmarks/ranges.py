"""Figures for ranges: tallying, solving and simulating large trees, and designing count mechanisms.

Usage: python benchmarks/ranges.py
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from time import perf_counter
from typing import Any

# Before tacit is imported; figures are of one thread unless the caller says otherwise.
os.environ.setdefault("TACIT_THREADS", "1")

import numpy as np

from tacit.core.compose import OneOf
from tacit.device.families.levels import Tree, node_count
from tacit.oracles.hadamard import HRR
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.tasks.ranges.ranges import solve_ranges

EPSILON = "1.1"
RUNS = 5


def tree(size: int, fanout: int, kind: Callable[..., Any]) -> OneOf:
    heights = [height for height in range(64) if node_count(size, fanout, height) > 1][::-1]
    members = tuple(kind(size=node_count(size, fanout, height), epsilon=EPSILON) for height in heights)
    return OneOf(family=Tree(size=size, fanout=fanout, heights=tuple(heights), mechanisms=members))


def seconds(work: Callable[[], Any], runs: int = RUNS) -> float:
    """The median of a few runs."""
    times = []
    for _ in range(runs):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return float(np.median(times))


def tallying(rng: np.random.Generator) -> None:
    """10^7 reports of the Haar transform over 2^20 leaves, against one bincount over the same reports."""
    mechanism, n = tree(1 << 20, 2, HRRSigned), 10_000_000
    members = rng.integers(0, len(mechanism.family), n)
    cells = np.array([2 * mechanism.member(i).order for i in range(len(mechanism.family))])  # type: ignore[attr-defined]
    codes = (rng.random(n) * cells[members]).astype("<u4")
    reports = np.zeros(n, mechanism.report_dtype)
    reports["member"] = members
    reports["payload"] = codes.view(np.uint8).reshape(n, 4)[:, : mechanism.payload_bytes]
    # What a bincount needs ready-made: the cell of every report in one array over all members.
    places = np.concatenate([[0], np.cumsum(cells)])[members] + codes
    ours, bare = [], []
    for _ in range(RUNS):  # In turns: the machine may be busy.
        bare.append(seconds(lambda: np.bincount(places, minlength=int(cells.sum())), 1))
        ours.append(seconds(lambda: mechanism.tally(reports), 1))
    ratio = np.median(np.array(ours) / np.array(bare))
    print(f"haar tally, n=10^7, D=2^20: {np.median(ours):.3f} s, {ratio:.2f}x one bincount (target at most 3x)")


def solving(rng: np.random.Generator) -> None:
    size, n = 1 << 22, 1 << 26
    counts = rng.multinomial(n, np.full(size, 1 / size))
    for name, mechanism in (("haar", tree(size, 2, HRRSigned)), ("hh2 hrr", tree(size, 2, HRR))):
        start = perf_counter()
        tally = mechanism.simulate_tally(counts, rng)
        simulated = perf_counter() - start
        solve = seconds(lambda m=mechanism, t=tally: solve_ranges(m, t), 3)
        answers = solve_ranges(mechanism, tally)
        answer = seconds(lambda solved=answers: solved.ranges([5], [size // 3]), 3)
        print(
            f"{name}, D=2^22, N=2^26: simulated in {simulated:.1f} s (target 10), estimates and inference "
            f"{solve:.2f} s (target 0.5), a range with its variance {1000 * answer:.1f} ms"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"memory of this process at its peak: {peak:.2f} GB, the population and both simulations included")


def designing() -> None:
    from tacit.central.design import design
    from tacit.central.properties import PROPERTIES

    took = seconds(lambda: design(64, "0.9", objective="l1", properties=tuple(PROPERTIES)), 1)
    print(f"count mechanism by linear program, n=64, all properties: {took:.1f} s (target 10)")


def main() -> None:
    rng = np.random.default_rng(1)
    tallying(rng)
    solving(rng)
    designing()


if __name__ == "__main__":
    main()
