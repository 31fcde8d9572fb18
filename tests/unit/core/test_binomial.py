"""Binomial tails against exact fractions and SciPy, and what is built on them against its definition."""

from fractions import Fraction
from itertools import accumulate
from math import comb

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom

from tacit.core.statistics.binomial import clopper_pearson, least_significant, lower_tail, upper_tail
from tacit.errors import InvalidSpec

CHANCES = [Fraction(1, 3), Fraction(1, 1000), Fraction(1, 2), Fraction(2, 3), Fraction(999, 1000)]


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("n", [1, 2, 5, 15, 16, 17, 40, 300])
def test_tails_are_the_exact_sums(n: int, chance: Fraction) -> None:
    mass = [comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    below = [float(total) for total in accumulate(mass)]
    above = [float(total) for total in accumulate(reversed(mass))][::-1]
    k = np.arange(n + 1)
    assert upper_tail(k, n, float(chance)) == pytest.approx(above, rel=1e-12, abs=1e-290)
    assert lower_tail(k, n, float(chance)) == pytest.approx(below, rel=1e-12, abs=1e-290)


@pytest.mark.parametrize("n", [10**4, 10**6, 10**8])
@pytest.mark.parametrize("chance", [1 / 3, 1 / 56, 1 / 2982])
def test_tails_agree_with_scipy_far_out(n: int, chance: float) -> None:
    deviation = (n * chance * (1 - chance)) ** 0.5
    k = np.unique(np.clip(np.round(n * chance + deviation * np.linspace(-8, 12, 41)), 0, n))
    assert upper_tail(k, n, chance) == pytest.approx(binom.sf(k - 1, n, chance), rel=1e-10)
    assert lower_tail(k, n, chance) == pytest.approx(binom.cdf(k, n, chance), rel=1e-10)


def test_few_successes_of_very_many_trials_keep_their_digits() -> None:
    n, chance, exact = 10**8, Fraction(1, 10**6), Fraction(0)
    # Terms relative to (1 - p)^n, whose logarithm is n log1p(-p) to all digits.
    for k in range(41):
        exact += comb(n, k) * (chance / (1 - chance)) ** k
    expected = float(exact) * np.exp(n * np.log1p(-1e-6))
    assert float(lower_tail(40, n, 1e-6)) == pytest.approx(expected, rel=1e-12)


def test_the_ends_are_exact() -> None:
    assert upper_tail([-1, 0, 4], 3, 0.2).tolist() == [1.0, 1.0, 0.0]
    assert lower_tail([-1, 3, 4], 3, 0.2).tolist() == [0.0, 1.0, 1.0]
    assert upper_tail([0, 1, 3], 3, [0.0, 0.0, 1.0]).tolist() == [1.0, 0.0, 1.0]
    assert lower_tail([0, 2, 2], 3, [0.0, 1.0, 0.0]).tolist() == [1.0, 0.0, 1.0]
    assert upper_tail([0, 1], 0, 0.5).tolist() == [1.0, 0.0]
    assert upper_tail(np.zeros((2, 0)), 5, 0.5).shape == (2, 0)


def test_arguments_are_broadcast() -> None:
    tails = upper_tail(np.arange(4)[:, None], [3, 10], 0.25)
    assert tails.shape == (4, 2)
    assert float(tails[2, 1]) == pytest.approx(float(binom.sf(1, 10, 0.25)), rel=1e-13)


@pytest.mark.parametrize(("k", "n", "p"), [(0.5, 3, 0.5), (1, -1, 0.5), (1, 3, 1.5), (1, 3, float("nan"))])
def test_what_is_no_binomial_is_refused(k: float, n: float, p: float) -> None:
    with pytest.raises(InvalidSpec, match="binomial"):
        upper_tail(k, n, p)


@pytest.mark.slow_cases("0.5-300", "0.5-10000", "0.999999-300", "0.95-10000")
@pytest.mark.parametrize("n", [1, 10, 300, 10**4, pytest.param(10**6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_clopper_pearson_agrees_with_scipy(n: int, confidence: float) -> None:
    k = np.unique(np.round(np.linspace(0, n, 21)))
    low, high = clopper_pearson(k, n, confidence)
    alpha = (1 - confidence) / 2
    assert (low[0], high[-1]) == (0.0, 1.0)
    assert low[1:] == pytest.approx(betaincinv(k[1:], n - k[1:] + 1, alpha), rel=1e-9)
    assert high[:-1] == pytest.approx(betaincinv(k[:-1] + 1, n - k[:-1], 1 - alpha), rel=1e-9)


def test_clopper_pearson_covers_for_every_p_by_enumeration() -> None:
    n, k = 30, np.arange(31)
    low, high = clopper_pearson(k, n, 0.95)
    for p in np.linspace(0.001, 0.999, 199):
        covered = (low <= p) & (p <= high)
        assert float(binom.pmf(k, n, p)[covered].sum()) >= 0.95
    # The enumeration can tell: intervals of 90 % fail it somewhere.
    low, high = clopper_pearson(k, n, 0.9)
    assert min(float(binom.pmf(k, n, p)[(low <= p) & (p <= high)].sum()) for p in np.linspace(0.001, 0.999, 199)) < 0.95


def test_clopper_pearson_without_trials_and_with_bad_counts() -> None:
    low, high = clopper_pearson(0, 0)
    assert (float(low), float(high)) == (0.0, 1.0)
    with pytest.raises(InvalidSpec, match="from 0 to n"):
        clopper_pearson(4, 3)
    with pytest.raises(InvalidSpec, match="confidence"):
        clopper_pearson(1, 3, 1.0)


@pytest.mark.parametrize(("n", "p", "alpha"), [(300, 1 / 56, 1e-5), (60, 0.3, 0.05), (10**5, 1 / 2982, 1e-9)])
def test_least_significant_is_the_first_count_below_alpha(n: int, p: float, alpha: float) -> None:
    k = least_significant(n, p, alpha)
    assert float(upper_tail(k, n, p)) <= alpha < float(upper_tail(k - 1, n, p))
    assert least_significant(3, 0.9, 0.01) == 4
    assert least_significant(3, 0.9, 1.0) == 0
