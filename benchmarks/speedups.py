"""How much faster kinds have become: this tree against another one, in turns, reports per second on one thread.

    git worktree add ../before COMMIT && python ../before/src/tacit/kernels/build.py
    python benchmarks/speedups.py ../before/src [LINE ...]

Every line runs in a process of its own, under the package of either tree, one after the other and several times; what
is compared is CPU time, so that another process's load enters both alike. Without a folder, this tree is measured
alone.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROUNDS, REPEATS = 3, 3
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TACIT_THREADS": "1"}


def halves(kind: str, n: int, d: int, epsilon: str, half: str) -> tuple[Callable[[], Any], int]:
    """One half of an oracle on Zipf values: the work, and the reports that it does."""
    from worker import zipf_values

    import tacit

    mechanism, coins = getattr(tacit, kind)(size=d, epsilon=epsilon), tacit.SystemCoins()
    values = zipf_values(n, d)
    if half == "privatize":
        return (lambda: mechanism.privatize(values, coins)), n
    reports = mechanism.privatize(values, coins)
    return (lambda: mechanism.estimate(mechanism.tally(reports))), n


def one_of(n: int, *kinds: str) -> tuple[Callable[[], Any], int]:
    """Privatizing one question out of several of 64 answers each."""
    import numpy as np

    import tacit
    from tacit.core.compose import OneOf, Questions

    members = tuple(getattr(tacit, kind)(size=64, epsilon="1") for kind in kinds)
    mechanism, coins = OneOf(family=Questions(mechanisms=members)), tacit.SystemCoins()
    values = np.random.default_rng(1).integers(64, size=(n, len(members)))
    return (lambda: mechanism.privatize(values, coins)), n


LINES: dict[str, Callable[[], tuple[Callable[[], Any], int]]] = {
    "ss server, d=1,024, epsilon 4": lambda: halves("SS", 100_000, 1024, "4", "server"),
    "ss server, d=128, epsilon 4": lambda: halves("SS", 100_000, 128, "4", "server"),
    "hrr_subspace privatize, d=1,024, epsilon 4": lambda: halves("HRRSubspace", 50_000, 1024, "4", "privatize"),
    "hrr_subspace server, d=1,024, epsilon 4": lambda: halves("HRRSubspace", 50_000, 1024, "4", "server"),
    "hrr_subspace server, d=2^20, epsilon 4": lambda: halves("HRRSubspace", 50_000, 1 << 20, "4", "server"),
    "abr server, d=1,024, epsilon 1": lambda: halves("ABR", 100_000, 1024, "1", "server"),
    "abr server, d=1,024, epsilon 4": lambda: halves("ABR", 100_000, 1024, "4", "server"),
    "abr server, d=1,024, epsilon 4, small batch": lambda: halves("ABR", 4_000, 1024, "4", "server"),
    "one_of grr, olh, abr privatize": lambda: one_of(50_000, "GRR", "OLH", "ABR"),
    "one_of grr, oue, olh privatize": lambda: one_of(20_000, "GRR", "OUE", "OLH"),
    "oue privatize, d=1,024, epsilon 1": lambda: halves("OUE", 20_000, 1024, "1", "privatize"),
    "sue privatize, d=1,024, epsilon 1": lambda: halves("SUE", 20_000, 1024, "1", "privatize"),
    "oue server, d=1,024, epsilon 1": lambda: halves("OUE", 20_000, 1024, "1", "server"),
    "grr privatize, d=1,024, epsilon 1": lambda: halves("GRR", 500_000, 1024, "1", "privatize"),
}


def run(line: str) -> float:
    """Reports per second of a line, in this process."""
    from timing import medians

    work, n = LINES[line]()
    return n / medians({line: work}, REPEATS)[line]


def measured(line: str, source: Path) -> float:
    """Reports per second of a line under the package in a folder, in a process of its own."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(source)}
    command = [sys.executable, str(HERE), "--line", line]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=HERE.parent)
    return float(json.loads(done.stdout))


def main(arguments: list[str]) -> None:
    """Print a row per line: both rates and their ratio."""
    if arguments[:1] == ["--line"]:
        print(json.dumps(run(arguments[1])))
        return
    mine = HERE.parent.parent / "src"
    sources = [Path(arguments[0]).resolve(), mine] if arguments else [mine]
    chosen = [line for line in LINES if not arguments[1:] or any(word in line for word in arguments[1:])]
    print("| line | before | now | ratio |\n| --- | --- | --- | --- |")
    for line in chosen:
        rounds = [[measured(line, source) for source in sources] for _ in range(ROUNDS)]
        rates = [statistics.median(column) for column in zip(*rounds, strict=True)]
        ratio = statistics.median(now / before for before, now in ((row[0], row[-1]) for row in rounds))
        before = f"{rates[0] / 1e6:.2f} M/s" if len(rates) > 1 else "-"
        print(f"| {line} | {before} | {rates[-1] / 1e6:.2f} M/s | {ratio:.1f}x |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
