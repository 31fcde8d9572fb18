"""Heavy hitters: printed thresholds, and F1 of the protocols on the synthetic population SYN and on real data.

Source: Wang's dissertation, chapter 4 (Table 4.1; Figures 4.2 to 4.6, of which only the claims in words are printed).
F1 values that are not printed there are those of an independent aggregate simulation with 4 to 10 runs, whose means
have standard errors of about 0.02; the tolerances below are three to four of them together with ours.
"""

import os
from functools import cache
from math import exp
from pathlib import Path

import numpy as np
import pytest

from tacit.simulate.hitters import Population, Search, simulate_hitters, syn
from tacit.simulate.hitters_data import Columns, read_population, value_domain
from tacit.tasks.hitters.plan import plan_lengths, sensitivity_threshold
from tacit.tasks.hitters.spelling import bit_strings

pytestmark = pytest.mark.papers

AOL = Path(os.environ.get("TACIT_DATA", "data")) / "aol_query_6bytes.txt.gz"
NAMES = Path(os.environ.get("TACIT_DATA", "data")) / "yob2010.txt"

TABLE_4_1 = {
    (1, 32, 1e4): (0.119629, 0.137374, 0.144731, 0.154686),
    (1, 32, 1e5): (0.037832, 0.043285, 0.045536, 0.048738),
    (1, 32, 1e6): (0.011960, 0.013674, 0.014388, 0.015396),
    (1, 32, 1e7): (0.003781, 0.004322, 0.004546, 0.004866),
    (1, 64, 1e6): (0.017426, 0.018599, 0.019218, 0.019845),
    (1, 128, 1e7): (0.007923, 0.008173, 0.008272, 0.008437),
    (2, 32, 1e6): (0.005302, 0.006063, 0.006376, 0.006825),
    (2, 48, 1e5): (0.020964, 0.022907, 0.023511, 0.024903),
    (2, 64, 1e4): (0.077477, 0.082466, 0.085355, 0.088244),
    (2, 128, 1e7): (0.003513, 0.003624, 0.003668, 0.003741),
}  # fmt: skip


@pytest.mark.parametrize("key", TABLE_4_1, ids=str)
def test_table_4_1_sensitivity_thresholds(key: "tuple[int, int, float]") -> None:
    """The thresholds are reproduced with k = 1024, which is not stated, d = k 2^step without the printed "- k", and
    twice that d in the column g = 2. Printed values sit up to 0.9 % above the normal approximation at n = 10^4."""
    epsilon, bits, n = key
    variance = 4 * exp(epsilon) / (exp(epsilon) - 1) ** 2
    tolerance = {1e4: 0.01, 1e5: 0.005, 1e6: 0.0015, 1e7: 0.0006}[n]
    for groups, printed in enumerate(TABLE_4_1[key], start=1):
        lengths = [10 + -(-i * (bits - 10) // groups) for i in range(groups + 1)]
        candidates = 2.0**bits if groups == 1 else 1024 * 2.0 ** (lengths[-1] - lengths[-2])
        candidates *= 2 if groups == 2 else 1
        assert sensitivity_threshold(variance, candidates, n / groups) == pytest.approx(printed, rel=tolerance)


@cache
def people(seed: int) -> Population:
    """SYN with a million respondents."""
    return syn(1_000_000, 64, seed)


def f1(method: str, epsilon: str, runs: int, **search: float) -> float:
    """Mean F1 on SYN with a million respondents and k = 16."""
    found = [simulate_hitters(people(seed), Search(epsilon, 16, **search), method, seed=seed).f1  # type: ignore[arg-type]
             for seed in range(runs)]  # fmt: skip
    return float(np.mean(found))


BASELINES = [
    ("hash", "1.2", 0.79), ("hash", "4", 0.86), ("hash-split", "0.9", 0.02), ("hash-split", "1.2", 0.27),
    ("spm", "2", 0.80), ("spm-split", "4", 0.92), ("treehist", "2", 0.68), ("treehist", "4", 0.91),
    ("sfp-split", "1", 0.03), ("sfp-split", "2", 0.72), ("sfp", "1", 0.66), ("sfp", "2", 0.97),
]  # fmt: skip
MORE = [
    ("hash", "0.9", 0.62), ("hash-split", "2", 0.67), ("spm", "4", 0.95), ("treehist", "1", 0.15),
    ("sfp-split", "4", 0.96), ("sfp", "0.7", 0.28),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "epsilon", "expected"), [*BASELINES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)]
)
@pytest.mark.slow_cases(
    "sfp-2-0.97", "sfp-split-1-0.03", "sfp-split-2-0.72", "spm-2-0.8", "spm-split-4-0.92", "sfp-1-0.66"
)
def test_baselines_on_the_synthetic_population(method: str, epsilon: str, expected: float) -> None:
    """Six runs each; below epsilon 2 a partitioned or split protocol is in transition and varies most."""
    assert f1(method, epsilon, 6) == pytest.approx(expected, abs=0.11)


def test_partitioned_channels_beat_a_split_budget() -> None:
    """Figure 4.5a: at epsilon 1.2 nearly 0.8 where respondents are split, and far less where the budget is. (The
    printed "below 0.2" depends on a block length that is not stated; blocks of 8 bits give 0.27.)"""
    assert f1("hash", "1.2", 4) > f1("hash-split", "1.2", 4) + 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "expected"), [("0.7", 0.51), ("1", 0.76), ("2", 0.90), ("4", 0.98)])
def test_an_interactive_trie_with_a_threshold(epsilon: str, expected: float) -> None:
    assert f1("privtrie", epsilon, 6, threshold=0.023) == pytest.approx(expected, abs=0.12)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "groups", "expected"), [
    ("0.9", 6, 0.79), ("2", 6, 0.95), ("0.9", 30, 0.36), ("1.5", 15, 0.83),
])  # fmt: skip
def test_plain_prefix_extension_by_step(epsilon: str, groups: int, expected: float) -> None:
    """Figure 4.5b: F1 0.4 with steps of 2 bits and 0.8 with 10 at epsilon 0.9. Eight runs with real reports."""
    assert f1("pem-plain", epsilon, 8, groups=groups) == pytest.approx(expected, abs=0.08)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "least"), [("0.9", 0.84), ("2", 0.95)])
def test_planned_prefix_extension_beats_the_plain_one(epsilon: str, least: float) -> None:
    """0.88 and 0.98 over ten seeds, against 0.79 and 0.95; the standard error of five runs is 0.02."""
    assert f1("pem", epsilon, 5) >= least


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "expected"), [("1", 0.91), ("2", 0.97), ("4", 0.98)])
def test_the_threshold_version_with_slack(epsilon: str, expected: float) -> None:
    """Threshold 0.023 and slack 1.645: every value above it. The bound is one-sided: ranking by all groups may help."""
    assert f1("pem-plain", epsilon, 4, threshold=0.023, groups=6) >= expected - 0.08


def test_the_guard_predicts_which_thresholds_explode() -> None:
    """At epsilon 0.5 nine children of every false prefix pass; the search is refused before it is begun."""
    plan = plan_lengths(bit_strings(64), "0.5", 1_000_000, 16, (14, 24, 34, 44, 54, 64))
    assert plan.oracle.variance_at_zero == pytest.approx(15.8174, abs=1e-3)
    with pytest.raises(Exception, match="false prefixes multiply"):
        f1("pem-plain", "0.5", 1, threshold=0.023, groups=6)


@pytest.mark.slow
def test_queries_of_a_search_engine() -> None:
    """48 bits, epsilon 4, k = 32: 0.82 over ten seeds; k prefixes in equal groups, as in the literature, give 0.70."""
    if not AOL.exists():
        pytest.skip(f"{AOL.name} is not in TACIT_DATA")
    population = read_population(str(AOL), value_domain("text", 48), columns=Columns()).population
    assert population.n == 657_427
    found = [simulate_hitters(population, Search("4", 32), "pem", seed=seed).f1 for seed in range(4)]
    assert np.mean(found) >= 0.75


@pytest.mark.slow
def test_first_names() -> None:
    """3.7 million people; the 16 most frequent names have shares from 0.4 % on, far above what is detectable."""
    if not NAMES.exists():
        pytest.skip(f"{NAMES.name} is not in TACIT_DATA")
    columns = Columns("name", "count", ("name", "sex", "count"))
    read = read_population(str(NAMES), value_domain("text", 64, "lower", 11), columns=columns, lower=True)
    assert simulate_hitters(read.population, Search("4", 16), "pem", seed=1).f1 >= 0.85
