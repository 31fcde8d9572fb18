"""Numbers of the literature on set-valued data: Wang's dissertation, chapter 5, as corrected, and surrogate data sets.

Where data are not public, the targets are those of a reference simulation on the generators of `simulate.baskets`.
"""

import os
from functools import cache
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from tests.papers.conftest import Beside

from tacit.baselines.approximate_hashing import disjoint_delta, olh_approximate, olh_approximate_printed
from tacit.core.sets import Sets
from tacit.simulate.baskets import Quest, percentile_length, pos_like, quest, read_baskets, top_itemsets
from tacit.simulate.itemsets import ItemsetOutcome, simulate_itemsets, true_itemsets
from tacit.tasks.itemsets.itemsets import Mining
from tacit.tasks.itemsets.padding import amplified_epsilon

LENGTHS = (2, 5, 10, 20, 50, 100)
N, SIZE, K = 515_000, 1657, 64

TABLE_5_1 = {
    0.1: (0.19, 0.42, 0.72, 1.13, 1.83, 2.44),
    0.5: (0.83, 1.45, 2.01, 2.64, 3.51, 4.19),
    1.0: (1.49, 2.26, 2.90, 3.57, 4.46, 5.15),
    2.0: (2.62, 3.49, 4.17, 4.86, 5.77, 6.46),
    4.0: (4.68, 5.59, 6.29, 6.98, 7.89, 8.59),
}

TABLE_5_2 = {
    1e-3: {
        0.1: (0.10, 0.10, 0.11, 0.13, 0.15, 0.15),
        0.5: (0.50, 0.50, 0.54, 0.62, 0.68, 0.80),
        1.0: (1.00, 1.00, 1.24, 1.35, 1.59, 1.73),
        2.0: (2.00, 2.20, 2.62, 3.10, 3.71, 4.28),
        4.0: (4.00, 4.50, 5.19, 5.88, 6.80, 7.20),
    },
    1e-9: {
        0.1: (0.10, 0.10, 0.10, 0.10, 0.12, 0.14),
        0.5: (0.50, 0.50, 0.50, 0.52, 0.59, 0.65),
        1.0: (1.00, 1.00, 1.00, 1.07, 1.30, 1.51),
        2.0: (2.00, 2.00, 2.00, 2.38, 2.93, 3.49),
        4.0: (4.00, 4.00, 4.50, 5.04, 5.82, 6.51),
    },
}

BETTER = {
    (1e-3, 0.5, 50): 0.77,
    (1e-3, 1.0, 20): 1.42,
    (1e-3, 1.0, 50): 1.67,
    (1e-3, 1.0, 100): 1.83,
    (1e-3, 2.0, 50): 3.84,
    (1e-3, 2.0, 100): 4.39,
    (1e-3, 4.0, 5): 4.91,
    (1e-3, 4.0, 100): 7.49,
    (1e-9, 0.5, 100): 0.72,
    (1e-9, 1.0, 20): 1.11,
    (1e-9, 2.0, 10): 2.09,
    (1e-9, 2.0, 50): 2.99,
    (1e-9, 4.0, 50): 5.95,
}
"""Cells in which the theorem allows more than was printed."""


def test_table_5_1_the_amplified_epsilon(beside: Beside) -> None:
    names = [f"epsilon {epsilon}" for epsilon in TABLE_5_1]
    beside("Wang, Table 5.1: the amplified epsilon", x=LENGTHS, axis="padding length", unit="epsilon'",
           printed=dict(zip(names, TABLE_5_1.values(), strict=True)), tolerance="all 30 cells to the digits printed",
           found={n: [amplified_epsilon(e, length) for length in LENGTHS]
                  for n, e in zip(names, TABLE_5_1, strict=True)})  # fmt: skip
    for epsilon, row in TABLE_5_1.items():
        assert [round(amplified_epsilon(epsilon, length), 2) for length in LENGTHS] == list(row)


def test_table_5_2_local_hashing_under_epsilon_and_delta() -> None:
    """All 60 cells as printed, by the search that made them; the theorem itself allows more in 13 of them."""
    for delta, rows in TABLE_5_2.items():
        for epsilon, row in rows.items():
            for length, printed in zip(LENGTHS, row, strict=True):
                made = olh_approximate_printed(epsilon, delta, length)
                best = olh_approximate(epsilon, delta, length)
                assert round(made.inner_epsilon, 2) == printed
                assert round(best.inner_epsilon, 2) == BETTER.get((delta, epsilon, length), printed)
                if epsilon == 1.0 and length <= 20:
                    assert disjoint_delta(epsilon, best.inner_epsilon, best.buckets, length) <= delta


# Fig. 5.3 and 5.4 on the surrogate of point-of-sale data: NCR and hits at k = 64, means of 5 runs.
LADDER = {
    ("0.5", "v1"): (0.15, 6.6),
    ("0.5", "v4"): (0.36, 15.6),
    ("1", "v1"): (0.20, 9.6),
    ("1", "v2"): (0.21, 9.8),
    ("1", "v3"): (0.36, 16.2),
    ("1", "v4"): (0.55, 24.4),
    ("1", "v5"): (0.61, 28.6),
    ("1", "v6"): (0.61, 28.6),
    ("2", "v1"): (0.30, 12.4),
    ("2", "v2"): (0.39, 17.2),
    ("2", "v3"): (0.49, 23.2),
    ("2", "v4"): (0.81, 40.4),
    ("2", "v5"): (0.85, 44.4),
    ("2", "v6"): (0.85, 44.4),
    ("4", "v1"): (0.39, 16.2),
    ("4", "v2"): (0.60, 30.2),
    ("4", "v3"): (0.68, 38.6),
    ("4", "v4"): (0.97, 57.2),
    ("4", "v5"): (0.99, 60.6),
    ("4", "v6"): (0.99, 60.6),
    ("1", "svsm"): (0.65, 31),
    ("2", "svsm"): (0.89, 49),
    ("4", "svsm"): (0.98, 58),
}


@cache
def surrogate(n: int) -> Sets:
    return pos_like(n, seed=0)


@cache
def outcomes(method: str, epsilon: str, runs: int, n: int = N) -> list[ItemsetOutcome]:
    sets = surrogate(n)
    truth = true_itemsets(sets, SIZE, K, method)
    mining = Mining(epsilon, SIZE, K, n)
    return [simulate_itemsets(sets, mining, method, seed=seed, truth=truth) for seed in range(runs)]


@pytest.mark.slow
@pytest.mark.papers
@pytest.mark.parametrize(("epsilon", "method"), LADDER)
def test_the_ladder_on_the_surrogate(epsilon: str, method: str) -> None:
    """NCR within 0.12: runs of either side spread by up to 0.06 and both means are of five.

    SVSM may be better without bound: its padding length is that of least error here, not the 90th percentile.
    """
    ncr, hits = LADDER[epsilon, method]
    found = outcomes(method, epsilon, 5)
    low = mean(outcome.ncr for outcome in found) - ncr
    assert -0.12 < low < (1.0 if method == "svsm" else 0.12)
    assert abs(mean(outcome.hits for outcome in found) - hits) < 8 or method == "svsm"


@pytest.mark.slow
@pytest.mark.papers
def test_svim_has_errors_three_orders_below_ldpminer() -> None:
    """Highlight of the chapter: about 45 items against 12, the variance of their counts three orders lower."""
    miner, best = outcomes("v1", "2", 5), outcomes("svim", "2", 5)
    assert mean(o.hits for o in best) > 2.5 * mean(o.hits for o in miner)
    assert mean(o.variance or 0.0 for o in best) < mean(o.variance or 0.0 for o in miner) / 500


@pytest.mark.slow
@pytest.mark.papers
def test_itemsets_are_hopeless_with_the_phases_of_ldpminer() -> None:
    """NCR .08, .19 and .45 at epsilon 1, 2 and 4 in the reference, far below SVSM's .65, .89 and .98.

    The reference does not say how its second half of respondents was split; here all of them count itemsets padded to
    2k, and NCR stays below 0.3. Only the comparison is asserted.
    """
    for epsilon in ("1", "2", "4"):
        miner, best = outcomes("svsm-ldpminer", epsilon, 3), outcomes("svsm", epsilon, 3)
        assert mean(o.ncr for o in miner) < 0.5 * mean(o.ncr for o in best)


def test_the_ladder_in_small() -> None:
    """A tenth of the respondents at epsilon 4: the order of the methods, by margins that 20 seeds keep."""
    scores = {method: outcomes(method, "4", 1, 50_000)[0].ncr for method in ("v1", "v4", "svim", "svsm")}
    assert scores["svim"] > 0.5 > 0.4 > scores["v1"]
    assert scores["v4"] > scores["v1"]
    assert scores["svsm"] > 0.5


QUEST = [
    (Quest(5, 2, 2000, 1000), 5.21, 8, 935, (0.0276, 0.0227, 0.0168, 0.0128), 0),
    (Quest(5, 4, 2000, 1000), 5.90, 10, 993, (0.0234, 0.0187, 0.0140, 0.0125), 0),
    (Quest(5, 2, 200, 1000), 5.23, 8, 237, (0.1036, 0.0668, 0.0491, 0.0308), 22),
    (Quest(7, 2, 2000, 1657), 7.09, 11, 1341, (0.0458, 0.0255, 0.0195, 0.0154), 9),
]


@pytest.mark.slow
@pytest.mark.papers
@pytest.mark.parametrize(("parameters", "size", "ninety", "used", "frequencies", "pairs"), QUEST)
def test_quest_baskets(
    parameters: Quest, size: float, ninety: int, used: int, frequencies: tuple[float, ...], pairs: int
) -> None:
    """5 % (10 % at ranks 1 and 10): the order of draws inside a basket is not fixed by the description."""
    sets = quest(100_000, parameters, seed=0)
    found = np.sort(sets.counts(parameters.items))[::-1] / len(sets)
    assert sets.lengths.mean() == pytest.approx(size, rel=0.05)
    assert percentile_length(sets) == pytest.approx(ninety, abs=1)
    assert np.count_nonzero(found) == pytest.approx(used, rel=0.05)
    assert found[[0, 9]] == pytest.approx(frequencies[:2], rel=0.1)
    assert found[[31, 63]] == pytest.approx(frequencies[2:], rel=0.05)
    best = top_itemsets(sets, parameters.items, 64, largest=2)
    assert sum(len(one) == 2 for one, _ in best) == pytest.approx(pairs, abs=3)


@pytest.mark.slow
@pytest.mark.papers
def test_retail_baskets() -> None:
    """88,162 real baskets of 16,470 items: SVSM at epsilon 4, k = 32 finds two thirds of the itemsets.

    Measured F1 0.72 and NCR 0.86 over 5 seeds with a spread of 0.11; the bounds are two of these below.
    """
    path = Path(os.environ.get("TACIT_DATA", "data")) / "retail.dat"
    if not path.is_file():
        pytest.skip("retail.dat is not in TACIT_DATA")
    baskets = read_baskets(path)
    assert (len(baskets.sets), baskets.size) == (88_162, 16_470)
    truth = true_itemsets(baskets.sets, baskets.size, 32, "svsm")
    mining = Mining("4", baskets.size, 32, len(baskets.sets))
    found = [simulate_itemsets(baskets.sets, mining, "svsm", seed=seed, truth=truth) for seed in range(3)]
    assert mean(outcome.f1 for outcome in found) > 0.5
    assert mean(outcome.ncr for outcome in found) > 0.7
