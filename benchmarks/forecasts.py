"""What a search for frequent words is forecast to find, and what it finds, on real words: benchmarks/FORECASTS.md.

    TACIT_DATA=data python benchmarks/forecasts.py [--sets names] [--epsilons 1,2,4] [--seeds 2] [--write]

`found` is the mean F1 of simulated searches among 600,000 respondents, with its standard error over all searches of a
row; `words known` is the forecast from a counted list of such words, `four shares` that from the shares of the ranks
1, k/4, k and 4k and the words without their counts. Seeds are fixed. Data that are absent from TACIT_DATA are left
out, and said so.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tacit.device.domains.domain import Domain
from tacit.errors import InvalidValue
from tacit.simulate.hitters import Population, Search, simulate_hitters
from tacit.simulate.hitters_data import Columns, read_population, value_domain
from tacit.tasks.hitters.forecast import counted_reference, forecast_f1, told_reference
from tacit.tasks.hitters.plan import plan_pem
from tacit.tasks.hitters.spelling import spelling_of

DATA = Path(os.environ.get("TACIT_DATA", "data"))
PAGE = Path(__file__).with_name("FORECASTS.md")
N, MOST_EVALUATIONS, WALKS = 600_000, 5e9, 6
KS = (16, 24, 32)
TITLE = (
    "# Forecasts of searches for frequent words\n\n"
    "Written by `python benchmarks/forecasts.py --write`, which says what the columns are."
)
HEAD = "| words | epsilon | k | found | words known | four shares |\n|---|---|---|---|---|---|"


def queries() -> Population:
    """The first six bytes of search queries."""
    domain = value_domain("text", 48, "bytes", 6)
    return read_population(str(DATA / "aol_query_6bytes.txt.gz"), domain, columns=Columns()).population


def names() -> Population:
    """First names of a year, cut to ten letters."""
    domain: Domain = value_domain("text", 48, "lower", 10)
    held = Counter[int]()
    for line in (DATA / "yob2010.txt").read_text().splitlines():
        name, _, count = line.split(",")
        try:
            held[domain.encode(name.lower()[:10])] += int(count)
        except InvalidValue:
            continue
    return Population(domain, np.array(list(held), np.uint64), np.array(list(held.values()), np.int64))


SETS = {"queries": queries, "names": names}


def setting(everybody: Population, epsilon: str, k: int, seeds: int) -> dict[str, Any]:
    """The F1 found and forecast for a list of k values."""
    order = np.argsort(-everybody.counts, kind="stable")
    values, held = everybody.values[order], everybody.counts[order]
    shares, spelling = held / everybody.n, spelling_of(everybody.domain)
    people = np.random.default_rng(3).multinomial(N, shares).astype(np.int64)
    search = Search(epsilon, k, most_evaluations=MOST_EVALUATIONS)
    population = Population(everybody.domain, values, people)
    found = [simulate_hitters(population, search, "pem", seed=seed).f1 for seed in range(1, seeds + 1)]
    plan = plan_pem(spelling, epsilon=epsilon, n=N, k=k, most_evaluations=MOST_EVALUATIONS)
    counted = counted_reference(values.tolist(), held.tolist())
    told = told_reference(spelling, k, shares[[0, k // 4 - 1, k - 1, 4 * k - 1]].tolist(), values.tolist())
    known, four = (forecast_f1(plan, reference, k=k, walks=WALKS) for reference in (counted, told))
    error = float(np.std(found, ddof=1) / np.sqrt(seeds)) if seeds > 1 else None
    return {"epsilon": epsilon, "k": k, "found": float(np.mean(found)), "error": error, "known": known, "four": four}


def rows(sets: list[str], epsilons: list[str], seeds: int) -> Iterator[dict[str, Any]]:
    """All settings of the data that are there."""
    for name in sets:
        try:
            everybody = SETS[name]()
        except OSError as error:
            print(f"left out: {name} ({error.filename} is not in TACIT_DATA)", file=sys.stderr)
            continue
        for epsilon in epsilons:
            yield from ({"words": name, **setting(everybody, epsilon, k, seeds)} for k in KS)


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    spread = "" if row["error"] is None else f" ± {row['error']:.2f}"
    return (
        f"| {row['words']} | {row['epsilon']} | {row['k']} | {row['found']:.2f}{spread} "
        f"| {row['known']:.2f} | {row['four']:.2f} |"
    )


def verdict(found: list[dict[str, Any]]) -> str:
    """How far the forecasts are off, and whether shorter lists are at least as good."""
    worst = {name: max(abs(row[name] - row["found"]) for row in found) for name in ("known", "four")}
    pairs = [(a, b) for a, b in pairwise(found) if a["k"] < b["k"]]
    fall = max((b["found"] - a["found"] for a, b in pairs), default=0.0)
    return (
        f"The forecast from counted words is off by at most {worst['known']:.2f}, that from four shares by at most "
        f"{worst['four']:.2f}.\nF1 of a shorter list is below that of the next longer one by at most "
        f"{max(0.0, fall):.2f}."
    )


def main() -> None:
    """Print the table as it grows, and write the page if asked."""
    options = argparse.ArgumentParser(description="Forecasts of searches for frequent words")
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--sets", default=",".join(SETS))
    options.add_argument("--epsilons", default="1,2,4")
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    print(HEAD, flush=True)
    found: list[dict[str, Any]] = []
    for row in rows(given.sets.split(","), given.epsilons.split(","), given.seeds):
        found.append(row)
        print(line(row), flush=True)
    if not found:
        return
    print(verdict(found))
    if given.write:
        PAGE.write_text("\n\n".join([TITLE, "\n".join([HEAD, *map(line, found)]), verdict(found)]) + "\n")


if __name__ == "__main__":
    main()
