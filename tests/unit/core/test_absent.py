"""Tails of values that nobody holds: exact for pure oracles, bounds under weights, said to be approximate elsewhere."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from tacit.core.absent import absent_tail, absent_threshold, has_exact_tail
from tacit.core.statistics.binomial import least_significant, upper_tail
from tacit.core.statistics.normal import normal_isf, normal_sf
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import FLH, OLH
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.hitters.hitters import find_hitters
from tacit.tasks.hitters.spelling import bit_strings

KINDS: list[Any] = [GRR(size=8, epsilon="3"), OUE(size=8, epsilon="4"), OLH(size=8, epsilon="4")]


@pytest.mark.parametrize("oracle", KINDS, ids=lambda oracle: oracle.kind)
def test_the_tail_is_that_of_the_support(oracle: Any) -> None:
    tally = oracle.tally(oracle.privatize(np.zeros(400, np.uint64), SimulationCoins(1)))
    value = oracle.estimate(tally).value
    expected = binom.sf(tally.cells[:8] - 1, 400, float(oracle.q))
    assert absent_tail(oracle, tally, value) == pytest.approx(expected, rel=1e-10)
    assert absent_tail(oracle, oracle.tally(oracle.decode(b"")), value).tolist() == [1.0] * 8


@pytest.mark.parametrize("oracle", KINDS, ids=lambda oracle: oracle.kind)
def test_the_threshold_is_the_first_share_that_noise_reaches_with_alpha_at_most(oracle: Any) -> None:
    tally = oracle.tally(oracle.privatize(np.zeros(400, np.uint64), SimulationCoins(1)))
    share = absent_threshold(oracle, 400, 1e-3)
    step = 1 / (400 * float(oracle.p - oracle.q))
    at, below = absent_tail(oracle, tally, np.array([share, share - step]))
    assert at <= 1e-3 < below


def test_with_weights_the_tail_is_an_upper_bound() -> None:
    """All 2^10 outcomes of ten respondents' weighted supports against the bound; one weight is large."""
    oracle, weights = OLH(size=1 << 20, epsilon="2", state="log"), np.array([1, 1, 2, 3, 1, 1, 2, 1, 40, 5])
    reports = oracle.privatize(np.arange(10), SimulationCoins(3))
    tally = oracle.tally(reports, weights)
    q, total = float(oracle.q), float(weights.sum())
    outcomes = np.array(list(product([0, 1], repeat=10)))
    chance = np.where(outcomes, q, 1 - q).prod(axis=1)
    support = outcomes @ weights
    for reached in (5, 12, 30, 41, 50, 57):
        exact = float(chance[support >= reached].sum())
        share = (reached / total - q) / float(oracle.p - oracle.q)
        assert exact <= float(absent_tail(oracle, tally, np.array([share]))[0])
    counts = oracle._counted(tally, np.arange(3, dtype=np.uint64))
    share = np.array([0.4])
    # Counts have forgotten the largest weight, so their bound is wider.
    assert absent_tail(oracle, counts, share)[0] >= absent_tail(oracle, tally, share)[0]


def test_shared_hash_functions_have_no_exact_tail_and_the_answer_says_so() -> None:
    oracle, spelling = FLH(size=1 << 8, epsilon="2", pool=256, key=3), bit_strings(8)
    assert not has_exact_tail(oracle) and has_exact_tail(KINDS[2])
    tally = oracle.tally(oracle.privatize(np.zeros(3000, np.uint64), SimulationCoins(1)))
    found = find_hitters(oracle, tally, spelling, k=3)
    assert found.flags == ("approximate_noise",) and found.values[0] == 0
    deviation = np.sqrt(oracle.variance_at_zero / 3000)
    assert found.tails == pytest.approx([normal_sf(x) for x in found.estimate.value / deviation])
    assert absent_threshold(oracle, 3000, 0.5) == 0


@pytest.mark.parametrize(
    ("g", "candidates", "printed"),
    [
        (8, 10**3, (0.15, 0.09, 0.06, 0.05)),
        (56, 10**3, (0.33, 0.17, 0.08, 0.06)),
        (56, 10**5, (0.98, 0.56, 0.15, 0.07)),
        (2982, 10**3, (0.99, 0.99, 0.52, 0.13)),
    ],
)
def test_the_family_wise_error_of_a_normal_tail_is_as_the_documents_say(g: int, candidates: int, printed: Any) -> None:
    """Exact; the exact rule stays at 0.05. docs/maths/heavy-hitters.md prints this table."""
    for n, error in zip((300, 1000, 10**4, 10**5), printed, strict=True):
        z = normal_isf(0.05 / candidates)
        least = np.floor(n / g + z * np.sqrt(n / g * (1 - 1 / g))) + 1
        exact = least_significant(n, 1 / g, 0.05 / candidates)
        tails = upper_tail([least, exact], n, 1 / g)
        found = -np.expm1(candidates * np.log1p(-tails))
        assert found[0] == pytest.approx(error, abs=0.006) and found[1] <= 0.05
