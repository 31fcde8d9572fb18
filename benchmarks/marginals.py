"""Time joint distributions: python benchmarks/marginals.py [signs|calm|wide|pairs|cover|models ...].

- signs: 10^7 reports of INP-HT over 20 binary attributes, k = 3: the tally against one numpy bincount, and one table.
- calm: 32 binary attributes, 10^6 respondents: all 4,960 tables of three, from simulation to consistent answers.
- wide: tables of 6, 8 and 10 of 32 attributes that no view covers, by maximum entropy.
- pairs: 100 attributes with 5 values, 10^6 respondents, epsilon 1: all pairs from the chosen views; most are flagged.
- cover: the same with views that cover every pair (cover=True).
- models: a tree, a junction tree, synthetic records and intervals of information on the answers of 32 attributes.

Every part runs in a process of its own, so that its peak memory is its own; records are in it. Times are wall-clock
seconds on whatever the machine is doing; what is compared is measured in turns and in CPU time.
"""

import resource
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from timing import medians

from tacit.baselines.marginals_binary import uniform_sse
from tacit.core.compose import OneOf
from tacit.simulate.marginals import latent_classes, simulate_records, true_table
from tacit.tasks.marginals.dependence import chow_liu, sample_tree
from tacit.tasks.marginals.information import information_interval
from tacit.tasks.marginals.junction import junction_tree, sample_cliques
from tacit.tasks.marginals.marginals import Marginals, Table
from tacit.tasks.marginals.methods import ask, make_method
from tacit.tasks.marginals.solve import solve_marginals

Records = npt.NDArray[Any]


def signs() -> None:
    n, rng = 10**7, np.random.default_rng(1)
    mechanism = make_method("inp_ht", ask([2] * 20, 3, "1", n))
    assert isinstance(mechanism, OneOf)
    members = len(mechanism.family)
    reports = np.zeros(n, mechanism.report_dtype)
    reports["member"] = rng.integers(0, members, n)
    reports["payload"][:, 0] = rng.integers(0, 2, n)
    flat = (2 * reports["member"].astype(np.int64)) + reports["payload"][:, 0]
    spent = medians({"bincount": lambda: np.bincount(flat, minlength=2 * members),
                     "tally": lambda: mechanism.tally(reports)}, 5)  # fmt: skip
    answers = solve_marginals(mechanism, mechanism.tally(reports))
    tables = list(combinations(range(20), 3))[:200]
    each = medians({"raw": lambda: [answers.source.raw(table) for table in tables],
                    "consistent": lambda: [answers.table(table) for table in tables],
                    "variances": lambda: [answers.table(table).raw for table in tables]}, 5)  # fmt: skip
    ratio = spent["tally"] / spent["bincount"]
    print(f"signs: {members} coefficients, tally {spent['tally']:.3f} s, bincount {spent['bincount']:.3f} s, "
          f"ratio {ratio:.2f} (at most 2)")  # fmt: skip
    shown = ", ".join(f"{1e3 * seconds / len(tables):.3f} ms {name}" for name, seconds in each.items())
    print(f"signs: a 3-way table {shown} (at most 1); {_memory()}")


def _collected(sizes: list[int], k: int, epsilon: str, records: Records, cover: bool = False) -> tuple[int, Marginals]:
    mechanism = make_method("calm", ask(sizes, k, epsilon, len(records), cover=cover))
    assert isinstance(mechanism, OneOf)
    tally = simulate_records(mechanism, records, np.random.default_rng(2))
    return len(mechanism.family), solve_marginals(mechanism, tally)


def _all_tables(name: str, sizes: list[int], k: int, epsilon: str, records: Records, cover: bool = False) -> None:
    tables, start = list(combinations(range(len(sizes)), k)), perf_counter()
    views, answers = _collected(sizes, k, epsilon, records, cover)
    solved = answers.tables(tables)
    middle = perf_counter()
    # Raw tables compute their variances when they are read, which is why they are timed apart.
    variance = np.mean([table.raw.variance.sum() for table in solved])
    done = perf_counter()
    print(
        f"{name}: epsilon {epsilon}, {views} views, {len(solved)} tables, {_statuses(solved)}: "
        f"{middle - start:.1f} s to consistent tables, {done - start:.1f} s with all variances, "
        f"sse {_sse(solved, records, sizes)}, noise + sampling {variance:.5f}, {_memory()}"
    )


def _statuses(tables: list[Table]) -> str:
    names = [table.status for table in tables]
    return ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))


def _sse(tables: list[Table], records: Records, sizes: list[int]) -> str:
    """Mean squared errors of about a hundred consistent tables, and of the uniform table as a yardstick."""
    some = tables[:: max(1, len(tables) // 100)]
    truth = [true_table(records, sizes, table.attributes) for table in some]
    error = np.mean([np.sum((table.consistent - true) ** 2) for table, true in zip(some, truth, strict=True)])
    return f"{error:.5f} (uniform {np.mean([uniform_sse(true) for true in truth]):.5f})"


def calm() -> None:
    records = latent_classes(10**6, 32, np.random.default_rng(1))
    for epsilon in ("1", "2"):
        _all_tables("calm", [2] * 32, 3, epsilon, records)


def wide() -> None:
    sizes, records = [2] * 32, latent_classes(10**6, 32, np.random.default_rng(1))
    _, answers = _collected(sizes, 3, "1", records)
    # The first answer settles the views once for all; it is not part of what is timed.
    answers.tables([(0, 1, 2)])
    for k in (6, 8, 10):
        tables = [tuple(range(first, first + k)) for first in range(0, 20, 4)]
        start = perf_counter()
        solved = answers.tables(tables)
        each = (perf_counter() - start) / len(tables)
        print(f"wide: a table of {k} attributes, {2**k} cells: {each:.3f} s, {_statuses(solved)}")


def _five_values() -> Records:
    """A hidden answer that three in ten answers repeat; made attribute by attribute, to take little memory."""
    n, rng = 10**6, np.random.default_rng(1)
    hidden = rng.integers(0, 5, n, np.uint8)
    records = np.empty((n, 100), np.uint8)
    for attribute in range(100):
        records[:, attribute] = np.where(rng.random(n) < 0.3, hidden, rng.integers(0, 5, n, np.uint8))
    return records


def pairs() -> None:
    _all_tables("pairs", [5] * 100, 2, "1", _five_values())


def cover() -> None:
    _all_tables("cover", [5] * 100, 2, "1", _five_values(), cover=True)


def models() -> None:
    records = latent_classes(10**6, 32, np.random.default_rng(1))
    _, answers = _collected([2] * 32, 2, "2", records)
    rng = np.random.default_rng(3)
    tree, cliques = chow_liu(answers), junction_tree(answers)
    steps: dict[str, Callable[[], object]] = {
        "tree of 32 attributes": lambda: chow_liu(answers),
        "junction tree": lambda: junction_tree(answers),
        "10^5 records by the tree": lambda: sample_tree(answers, tree, 100_000, rng),
        "10^5 records by the junction tree": lambda: sample_cliques(answers, cliques, 100_000, rng),
    }
    spent = medians(steps, 3)
    print("models: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in spent.items()))
    table = answers.table((0, 1))
    each = medians({"interval": lambda: information_interval(table)}, 5)["interval"]
    print(f"models: an interval of information {1e3 * each:.1f} ms; {_memory()}")


def _memory() -> str:
    return f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB"


PARTS: dict[str, Callable[[], None]] = {
    "signs": signs, "calm": calm, "wide": wide, "pairs": pairs, "cover": cover, "models": models,
}  # fmt: skip


def main() -> int:
    """Run one part here, or several in processes of their own."""
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in chosen if name not in PARTS]:
        print(f"there is no part {unknown[0]!r}, must be one of {', '.join(PARTS)}", file=sys.stderr)
        return 2
    if len(chosen) == 1:
        PARTS[chosen[0]]()
        return 0
    return max(subprocess.run([sys.executable, __file__, name], check=False).returncode for name in chosen)


if __name__ == "__main__":
    sys.exit(main())
