"""Searches at all sizes and budgets: tails keep their level, itemset intervals cover, lists are in printed order."""

from math import exp, lgamma, log, log1p

import numpy as np
import pytest

from tacit import OLH
from tacit.core.sets import contained_itemsets
from tacit.core.statistics.binomial import least_significant
from tacit.simulate.baskets import pos_like
from tacit.simulate.itemsets import simulate_itemsets
from tacit.tasks.itemsets.itemsets import Mining

EPSILONS = ("0.5", "1", "2", "4", "8")
SIZES = (300, 1000, 10_000, 100_000, 1_000_000)
ITEMS, K, FALSE_ALARM = 1657, 16, 1e-6
FAST = [(300, "0.5"), (300, "8"), (3000, "2")]
GRID = [
    (n, epsilon)
    for n in (300, 3000, 30_000, 1_000_000)
    for epsilon in EPSILONS
    if (n, epsilon) not in FAST and (n < 1_000_000 or epsilon in ("0.5", "2", "8"))
]


def tail(k: int, n: int, p: float) -> float:
    """P(Bin(n, p) >= k) by summing its terms, each from factorials: slow, and independent of what it checks."""
    total = 0.0
    for x in range(k, n + 1):
        chance = exp(lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1) + x * log(p) + (n - x) * log1p(-p))
        total += chance
        # Beyond the mean terms fall at least geometrically, so that the rest is below this one.
        if chance < 1e-6 * total:
            break
    return total


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", SIZES)
def test_the_least_certified_support_keeps_the_level_and_no_smaller_one_does(n: int, epsilon: str) -> None:
    """Exact: by Bonferroni any of m absent values is certified with probability 0.05 at most, and nearly that."""
    q = OLH(size=1 << 20, epsilon=epsilon).q
    for m in (1000, 100_000):
        least = least_significant(n, q, 0.05 / m)
        # Nothing can be certified where even a support by everybody would not do.
        assert m * q**n > 0.05 if least > n else m * tail(least, n, q) <= 0.05 * (1 + 1e-4)
        assert m * tail(least - 1, n, q) > 0.05 * (1 - 1e-4)


@pytest.mark.parametrize(
    ("n", "epsilon"), [*FAST, *(pytest.param(*setting, marks=pytest.mark.slow) for setting in GRID)]
)
@pytest.mark.parametrize("method", ["svim", "svsm"])
def test_itemsets_are_covered_and_ordered_at_every_size_and_epsilon(n: int, epsilon: str, method: str) -> None:
    """At most 5 % of the intervals miss; more than this many do by chance with a probability below 1e-6."""
    sets, runs = pos_like(n, seed=3), 3 if n > 100_000 else 10
    wrong = total = 0
    for seed in range(runs):
        rows = simulate_itemsets(sets, Mining(epsilon, ITEMS, K, n), method, seed=seed, truth=[]).result.rows
        frequencies = [row.frequency for row in rows]
        assert frequencies == sorted(frequencies, reverse=True)
        listed = tuple(sorted(row.items for row in rows))
        held = np.bincount(contained_itemsets(sets, listed, ITEMS).items, minlength=len(listed)) / n
        truth = dict(zip(listed, held.tolist(), strict=True))
        wrong += sum(not row.low <= truth[row.items] <= row.high for row in rows)
        total += len(rows)
    print(f"n {n:,}, epsilon {epsilon}, {method}: {wrong} of {total} missed")
    assert total and wrong < least_significant(total, 0.05, FALSE_ALARM)
