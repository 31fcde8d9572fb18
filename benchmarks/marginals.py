"""Time joint distributions: python benchmarks/marginals.py [signs|calm|pairs ...].

- signs: 10^7 reports of INP-HT over 20 binary attributes, k = 3: the tally against one numpy bincount, and one table.
- calm: 32 binary attributes, 10^6 respondents: all 4,960 tables of three, from simulation to consistent answers.
- pairs: 100 attributes with 5 values, 10^6 respondents, epsilon 1: all pairs, with the chosen views and covering.
"""

import resource
import sys
from itertools import combinations
from time import perf_counter

import numpy as np

from tacit.core.compose import OneOf
from tacit.simulate.marginals import latent_classes, simulate_records, true_table
from tacit.tasks.marginal_methods import ask, make_method
from tacit.tasks.marginals_solve import solve_marginals


def signs() -> None:
    n, rng = 10**7, np.random.default_rng(1)
    mechanism = make_method("inp_ht", ask([2] * 20, 3, "1", n))
    assert isinstance(mechanism, OneOf)
    members = len(mechanism.family)
    reports = np.zeros(n, mechanism.report_dtype)
    reports["member"] = rng.integers(0, members, n)
    reports["payload"][:, 0] = rng.integers(0, 2, n)
    flat = (2 * reports["member"].astype(np.int64)) + reports["payload"][:, 0]
    mechanism.tally(reports[:1000])
    bincount = min(_timed(lambda: np.bincount(flat, minlength=2 * members)) for _ in range(3))
    tally = min(_timed(lambda: mechanism.tally(reports)) for _ in range(3))
    answers = solve_marginals(mechanism, mechanism.tally(reports))
    tables = list(combinations(range(20), 3))[:200]
    raw = _timed(lambda: [answers.source.raw(table) for table in tables]) / len(tables)
    both = _timed(lambda: [answers.table(table) for table in tables]) / len(tables)
    full = _timed(lambda: [answers.table(table).raw for table in tables]) / len(tables)
    print(
        f"signs: {members} coefficients, tally {tally:.3f} s, bincount {bincount:.3f} s, ratio {tally / bincount:.2f}"
    )
    print(f"signs: a 3-way table {1e3 * raw:.3f} ms raw, {1e3 * both:.3f} consistent, {1e3 * full:.3f} with variances")


def calm() -> None:
    n, sizes = 10**6, [2] * 32
    records = latent_classes(n, 32, np.random.default_rng(1))
    tables = list(combinations(range(32), 3))
    for epsilon in ("1", "2"):
        start = perf_counter()
        mechanism = make_method("calm", ask(sizes, 3, epsilon, n))
        tally = simulate_records(mechanism, records, np.random.default_rng(2))
        answers = solve_marginals(mechanism, tally)
        found = answers.tables(tables)
        middle = perf_counter()
        errors = [table.raw.variance.sum() for table in found]
        done = perf_counter()
        covered = sum(table.status == "covered" for table in found)
        sse = np.mean([np.sum((t.consistent - true_table(records, sizes, t.attributes)) ** 2) for t in found[::50]])
        print(
            f"calm: epsilon {epsilon}, {len(mechanism.family)} views, {len(found)} tables, {covered} covered: "  # type: ignore[attr-defined]
            f"{middle - start:.1f} s consistent, {done - start:.1f} s with all variances, sse {sse:.5f}, "
            f"mean raw variance {np.mean(errors):.5f}"
        )


def pairs() -> None:
    n, sizes, rng = 10**6, [5] * 100, np.random.default_rng(1)
    base = rng.integers(0, 5, (n, 1))
    records = np.where(rng.random((n, 100)) < 0.3, base, rng.integers(0, 5, (n, 100)))
    tables = list(combinations(range(100), 2))
    for cover in (False, True):
        start = perf_counter()
        mechanism = make_method("calm", ask(sizes, 2, "1", n, cover=cover))
        tally = simulate_records(mechanism, records, np.random.default_rng(2))
        answers = solve_marginals(mechanism, tally)
        found = answers.tables(tables)
        middle = perf_counter()
        for table in found:
            _ = table.raw
        done = perf_counter()
        covered = sum(table.status == "covered" for table in found)
        sse = np.mean([np.sum((t.consistent - true_table(records, sizes, t.attributes)) ** 2) for t in found[::50]])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"pairs: cover {cover}, {len(mechanism.family)} views, {len(found)} tables, {covered} covered: "  # type: ignore[attr-defined]
            f"{middle - start:.1f} s consistent, {done - start:.1f} s with all variances, sse {sse:.5f}, "
            f"peak memory {memory:.2f} GB with the records"
        )


def _timed(run: object) -> float:
    start = perf_counter()
    run()  # type: ignore[operator]
    return perf_counter() - start


if __name__ == "__main__":
    for name in sys.argv[1:] or ["signs", "calm", "pairs"]:
        {"signs": signs, "calm": calm, "pairs": pairs}[name]()
