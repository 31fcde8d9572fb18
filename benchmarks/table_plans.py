"""By which rule should plans for tables of several questions be chosen, where nobody knows how they go together?

    TACIT_DATA=data python benchmarks/table_plans.py [--sets adult,nltcs,fair,randhie] [--k 2,3] [--epsilon 0.5,1,2]
                                                     [--seeds 2] [--json FILE]

On the four public sets of `benchmarks/compare.py` every plan is carried out on simulated collections, with fixed seeds.
Plans are shares of the respondents that are asked about one attribute alone, all others about pairs, and the methods of
the planner. A line is a setting: the plan of least found error, and for every rule the plan that it picks from the
forecasts under weak and strong association, with its found error over the least. Rules are the planner's mean of the
logarithms, three to one; even ones; the least of the worst regret of both; either alone; and the forecast under the
strengths that the set really has, which nobody has. The least of noisy errors is too low, so that ratios of a few
seeds are too high.
"""

import argparse
import json
from collections.abc import Callable
from itertools import combinations
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
from compare import data_of

from tacit.errors import InvalidSpec
from tacit.simulate.compare.data import AttributeRecords
from tacit.simulate.marginals import all_tables, simulate_tally, true_table
from tacit.tasks.marginals.forecast import TableForecast
from tacit.tasks.marginals.methods import ALONE, Ask, ask, forecast_errors, make_method, sampled_tables, split_views
from tacit.tasks.marginals.solve import solve_marginals

METHODS = ("views", "marg_ht", "marg_rr_oue", "calm")
MOST_TABLES = 66
"""More tables are sampled, always the same ones."""

Line = dict[str, Any]


def _mean(strong: float) -> Callable[[list[Line]], Line]:
    return lambda plans: min(plans, key=lambda p: (1 - strong) * log(p["weak"]) + strong * log(p["strong"]))


def _least_regret(plans: list[Line]) -> Line:
    best = {law: min(p[law] for p in plans) for law in ("weak", "strong")}
    return min(plans, key=lambda p: max(p[law] / best[law] for law in best))


RULES: dict[str, Callable[[list[Line]], Line]] = {
    "three to one": _mean(0.25), "even": _mean(0.5), "regret": _least_regret,
    "weak": _mean(0.0), "strong": _mean(1.0), "own": lambda plans: min(plans, key=lambda p: p["own"]),
}  # fmt: skip


def strengths(records: AttributeRecords) -> list[float]:
    """The true strength of association of every pair, phi^2."""
    out: list[float] = []
    for pair in combinations(range(len(records.sizes)), 2):
        table = true_table(records.rows, records.sizes, pair)
        a, b = table.sum(axis=1), table.sum(axis=0)
        out.append(float(((table - np.outer(a, b)) ** 2).sum() / ((1 - a @ a) * (1 - b @ b))))
    return out


def plans_of(question: Ask) -> dict[str, Any]:
    """Every plan that fits, by name; a number is the share that is asked about one attribute alone."""
    builders: dict[str, Callable[[], Any]] = {
        f"{alone:g}": lambda alone=alone: split_views(question, alone) for alone in (1.0, *ALONE)
    }
    builders |= {name: lambda name=name: make_method(name, question) for name in METHODS}
    out: dict[str, Any] = {}
    for name, build in builders.items():
        try:
            out[name] = build()
        except InvalidSpec:  # Too few respondents for each question.
            continue
    return out


def setting(records: AttributeRecords, k: int, epsilon: str, seeds: int) -> list[Line]:
    """The found and the forecast errors of every plan."""
    question = ask(records.sizes, k, epsilon, len(records.rows))
    wanted = all_tables(len(records.sizes), k, MOST_TABLES, np.random.default_rng(0))
    truth = [true_table(records.rows, records.sizes, table) for table in wanted]
    law, out = strengths(records), list[Line]()
    crowds = [records.rows[np.random.default_rng([s, 3]).permutation(len(records.rows))] for s in range(seeds)]
    for name, mechanism in plans_of(question).items():
        found: list[float] = []
        for s, crowd in enumerate(crowds):
            tally = simulate_tally(mechanism, crowd, records.sizes, np.random.default_rng([s, 4]), shuffled=True)
            tables = solve_marginals(mechanism, tally, sizes=records.sizes).tables(wanted)
            found += [float(((t.consistent - true) ** 2).sum()) for t, true in zip(tables, truth, strict=True)]
        _, weak, strong = forecast_errors(mechanism, question)
        forecast = TableForecast.of(mechanism, question.sizes, question.n)
        own = np.mean([forecast.squared_error(t, law) for t in sampled_tables(len(question.sizes), k)])
        out.append({"plan": name, "found": float(np.mean(found)), "weak": weak, "strong": strong, "own": float(own)})
    return out


def main() -> None:
    """Run the settings and print a line for each, and what every rule loses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="adult,nltcs,fair,randhie")
    parser.add_argument("--k", default="2,3")
    parser.add_argument("--epsilon", default="0.5,1,2")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write every plan to this file")
    given = parser.parse_args()
    kept, lost = list[Line](), {rule: list[float]() for rule in RULES}
    print(f"{'data':8} k  eps  {'least found':19}" + "".join(f"{rule:>18}" for rule in RULES))
    for name in given.sets.split(","):
        records = data_of("marginals", name)
        assert isinstance(records, AttributeRecords)
        for k, epsilon in ((k, e) for k in map(int, given.k.split(",")) for e in given.epsilon.split(",")):
            plans = setting(records, k, epsilon, given.seeds)
            kept += [{"data": name, "k": k, "epsilon": epsilon} | plan for plan in plans]
            least = min(plans, key=lambda p: p["found"])
            line = f"{name:8} {k}  {epsilon:3}  {least['plan']:11} {least['found']:.4f} "
            for rule, choose in RULES.items():
                pick = choose(plans)
                lost[rule].append(pick["found"] / least["found"])
                line += f"{pick['plan']:>13} {lost[rule][-1]:.2f}"
            print(line, flush=True)
    for title, over in (("mean", lambda x: exp(np.mean(np.log(x)))), ("worst", max)):
        print(f"{title:36}" + "".join(f"{over(lost[rule]):18.2f}" for rule in RULES))
    if given.json:
        given.json.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
