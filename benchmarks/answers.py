"""How good the picked answers are: regret of the selection and coverage of the intervals, on real and made-up data.

    TACIT_DATA=data python benchmarks/answers.py [--quick] [--seeds 5] [--sets age,income] [--json FILE]

Every setting is a data set, an epsilon and a number of respondents drawn from the data; OUE is simulated exactly, and
all methods see the same draws. Regret is the mean squared error of what is picked over that of the best single method
of this setting; a setting is good if it is within 5 % or two standard errors of it. Sets are random tenths of the
answers, the largest are the ten that were estimated so. Coverage is that of 95 % intervals of the picked answers: over
all cells, over the ten largest without and with the adjustment for selection, and the worst data set. Data that are
absent from TACIT_DATA are left out, and said so.
"""

import argparse
import json
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tacit.core.statistics.level import selected_level
from tacit.oracles.unary import OUE
from tacit.post.frequencies.methods import QUERIES, find_method, process
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.select import LARGEST, SET_SHARE, select_methods

DATA = Path(os.environ.get("TACIT_DATA", "data"))
LISTED = ("base", "norm", "base_pos", "norm_sub", "norm_mul", "power_ns", "npmle")
ORDERED = ("age", "hours", "income", "nettrace", "searchlogs", "hepth")
"""Data sets whose values are numbers; what uses their order is compared on them too."""
EPSILONS = ("0.5", "1", "2", "4")
SIZES = (10_000, 100_000, 1_000_000)
QUICK_SIZES = (10_000, 1_000_000)


def adult(column: int, *, numbers: bool) -> Any:
    """Counts of one attribute of the census data, in order of value or label."""
    lines = (DATA / "adult.data").read_text().splitlines()
    values = [line.split(", ")[column] for line in lines if line.count(",") > 10]
    if numbers:
        return np.bincount([int(value) for value in values], minlength=100)[1:]
    return np.unique(values, return_counts=True)[1]


def items() -> Any:
    return np.bincount(np.loadtxt(DATA / "kosarak_top128_one_item_per_user.csv", dtype=int, skiprows=1))


def abilities() -> Any:
    """The first eight binary attributes together."""
    rows = np.genfromtxt(DATA / "nltcs.csv", delimiter=",", skip_header=1, dtype=int)[:, :8]
    return np.bincount(rows @ (1 << np.arange(8)), minlength=256)


def grouped(name: str) -> Any:
    return np.load(DATA / f"{name}.n4096.npy").reshape(512, -1).sum(axis=1)


def names() -> Any:
    """The 2,000 commonest first names."""
    counts = [int(line.split(",")[2]) for line in (DATA / "yob2010.txt").read_text().splitlines()]
    return np.sort(counts)[::-1][:2000]


def two() -> Any:
    return np.append([600, 400], np.zeros(62))


SETS: dict[str, Any] = {
    "kosarak": items,
    "age": lambda: adult(0, numbers=True),
    "hours": lambda: adult(12, numbers=True),
    "education": lambda: adult(3, numbers=False),
    "nltcs": abilities,
    "income": lambda: grouped("INCOME"),
    "nettrace": lambda: grouped("NETTRACE"),
    "searchlogs": lambda: grouped("SEARCHLOGS"),
    "hepth": lambda: grouped("HEPTH"),
    "names": names,
    "flat64": lambda: np.ones(64),
    "two64": two,
}


def populations(wanted: Collection[str] = tuple(SETS)) -> Iterator[tuple[str, Any]]:
    """The shares of every data set that is there."""
    for name in wanted:
        try:
            counts = np.asarray(SETS[name](), np.float64)
        except OSError as error:
            print(f"left out: {name} ({error.filename} is not in TACIT_DATA)", file=sys.stderr)
            continue
        yield name, counts / counts.sum()


def losses(value: Any, truth: Any, sets: Any, top: Any) -> list[float]:
    """Mean squared errors of the three types of queries."""
    error = value - truth
    return [float((part**2).mean()) for part in (error, error[sets].sum(axis=1), error[top])]


def coverage(raw: Any, picked: dict[str, Any], truth: Any, top: Any) -> list[float]:
    """The shares of intervals that hold the truth: all cells, the largest, and the largest adjusted for selection."""
    made = process(raw, picked["cells"].pick)
    first = process(raw, picked["largest"].pick)
    wide = selected_level(0.95, len(top), len(truth))
    found: list[float] = []
    for (low, high), places in ((made.interval(), slice(None)), (first.interval(), top), (first.interval(wide), top)):
        found.append(float(np.mean((low <= truth + 1e-12)[places] & (truth - 1e-12 <= high)[places])))
    return found


def listed(*, ordered: bool) -> tuple[str, ...]:
    """The methods that a choice is judged against."""
    return (*LISTED, "monotone") if ordered else LISTED


def setting(shares: Any, epsilon: str, n: int, seeds: int, *, ordered: bool = False) -> dict[str, Any]:
    """All draws of one setting."""
    names = listed(ordered=ordered)
    counts = np.random.default_rng(7).multinomial(n, shares)
    truth, mechanism = counts / n, OUE(size=len(shares), epsilon=epsilon)

    def replay(again: Any, rng: Any) -> Any:
        return mechanism.estimate(mechanism.simulate_tally(again, rng))

    table: list[Any] = []
    picks: list[Any] = []
    covered: list[Any] = []
    chosen: list[str] = []
    for seed in range(1000, 1000 + seeds):
        rng = np.random.default_rng(seed)
        raw = replay(counts, rng)
        sets = np.array(
            [rng.choice(len(truth), max(1, round(SET_SHARE * len(truth))), replace=False) for _ in range(50)]
        )
        top = np.argsort(-raw.value, kind="stable")[:LARGEST]
        noise = Noise.of(raw)
        rows = {m: losses(find_method(m).apply(raw.value, noise), truth, sets, top) for m in names}
        picked = select_methods(raw, replay, ordered=ordered)
        table.append([rows[name] for name in names])
        picks.append([rows[picked[query.name].pick.name][i] for i, query in enumerate(QUERIES)])
        covered.append(coverage(raw, picked, truth, top))
        chosen.append(picked["cells"].pick.name)
    return {"table": np.array(table), "picks": np.array(picks), "covered": np.array(covered), "chosen": chosen}


def judged(found: dict[str, Any], query: int) -> tuple[float, bool]:
    """Regret against the best single method, and whether it is within 5 % or two standard errors."""
    table, picks = found["table"][:, :, query], found["picks"][:, query]
    best = int(table.mean(axis=0).argmin())
    excess = picks - table[:, best]
    least = float(table[:, best].mean())
    slack = 2 * excess.std(ddof=1) / np.sqrt(len(excess)) if len(excess) > 1 else 0.0
    # Errors that are exactly zero (two cells without noise) compare as equal up to rounding.
    regret = (float(picks.mean()) + 1e-18) / (least + 1e-18)
    return regret, bool(excess.mean() <= max(0.05 * least, slack) + 1e-18)


def main() -> None:
    """Run the grid and print a table per type of query."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out n = 10^5")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write every setting to this file")
    parser.add_argument("--sets", help="names of data sets, with commas")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, shares in populations(given.sets.split(",") if given.sets else tuple(SETS)):
        for epsilon in EPSILONS:
            for n in QUICK_SIZES if given.quick else SIZES:
                found = setting(shares, epsilon, n, given.seeds, ordered=name in ORDERED)
                row: dict[str, Any] = {"data": name, "cells": len(shares), "epsilon": epsilon, "n": n}
                for i, query in enumerate(QUERIES):
                    regret, good = judged(found, i)
                    row |= {f"{query.name}_regret": regret, f"{query.name}_within": good}
                cover = found["covered"].mean(axis=0).tolist()
                row |= dict(zip(("covered", "covered_largest", "covered_adjusted"), cover, strict=True))
                rows.append(row | {"picks": found["chosen"]})
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    show(rows, given.seeds)


def show(rows: list[dict[str, Any]], seeds: int) -> None:
    """Print what the grid says."""
    print(f"{len(rows)} settings, {seeds} draws each: regret (geometric mean, largest), settings within 5 % or 2 se")
    for query in QUERIES:
        for epsilon in EPSILONS:
            some = [row for row in rows if row["epsilon"] == epsilon]
            regret = np.array([row[f"{query.name}_regret"] for row in some])
            within = np.mean([row[f"{query.name}_within"] for row in some])
            mean, most = np.exp(np.log(regret).mean()), regret.max()
            print(f"{query.name:>8}  epsilon {epsilon:>3}  {mean:6.3f} {most:7.2f}  {within:6.1%}")
        print(f"{query.name:>8}  all          {np.mean([row[f'{query.name}_within'] for row in rows]):21.1%}")
    print(
        "coverage of 95 % intervals: all cells, ten largest, ten largest adjusted for selection (least of a data set)"
    )
    for epsilon in EPSILONS:
        columns = ("covered", "covered_largest", "covered_adjusted")
        means = [np.mean([row[c] for row in rows if row["epsilon"] == epsilon]) for c in columns]
        data = {row["data"] for row in rows}
        least = [
            min(np.mean([r[c] for r in rows if r["epsilon"] == epsilon and r["data"] == d]) for d in data)
            for c in columns
        ]
        cells = "  ".join(f"{mean:.3f} ({low:.3f})" for mean, low in zip(means, least, strict=True))
        print(f"          epsilon {epsilon:>3}  {cells}")


if __name__ == "__main__":
    main()
