"""Coverage of intervals at few reports and large epsilon, by enumeration wherever the law of the estimate allows.

A report supports a value with probability p if its respondent holds it and q if not, so the support of a value that
some of n respondents hold is a sum of two binomials: coverage is a finite sum, without any false alarm. Where the tests
must sample, each assertion fails by chance with probability below ALPHA. Normal intervals fail the same assertions.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tacit
from tacit.core.estimate import Estimate
from tacit.core.mechanism import UNEVEN
from tacit.core.tally import Counts
from tacit.testing.statistics import ALPHA

F64 = npt.NDArray[np.float64]

EPSILONS = ("0.5", "1", "4", "16")
SIZES = (50, 1000)
SHARES = (0.0, 0.02, 0.5, 1.0)
LEAST = 0.93

PURE: dict[str, Callable[[str], Any]] = {
    "grr": lambda epsilon: tacit.GRR(size=16, epsilon=epsilon),
    "grr of 2": lambda epsilon: tacit.GRR(size=2, epsilon=epsilon),
    "sue": lambda epsilon: tacit.SUE(size=16, epsilon=epsilon),
    "oue": lambda epsilon: tacit.OUE(size=16, epsilon=epsilon),
    "the": lambda epsilon: tacit.THE(size=16, epsilon=epsilon),
    "blh": lambda epsilon: tacit.BLH(size=16, epsilon=epsilon),
    "olh": lambda epsilon: tacit.OLH(size=16, epsilon=epsilon),
    "ss": lambda epsilon: tacit.SS(size=16, epsilon=epsilon),
    "hrr_subspace": lambda epsilon: tacit.HRRSubspace(size=16, coefficients=2, epsilon=epsilon),
}


def binomial(n: int, p: float) -> F64:
    """Probabilities of 0 .. n successes."""
    k = np.arange(n + 1)
    if p in (0, 1):
        return (k == n * p).astype(np.float64)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return np.exp(factorials[n] - factorials - factorials[::-1] + k * np.log(p) + (n - k) * np.log1p(-p))


def supports(n: int, holders: int, p: float, q: float) -> F64:
    """Probabilities of every support of a value."""
    return np.convolve(binomial(holders, p), binomial(n - holders, q))


def outcomes(mechanism: Any, n: int) -> Estimate:
    """The estimates of all supports 0 .. n of one value, as cells of one estimate."""
    p, q = float(mechanism.p), float(mechanism.q)
    value = (np.arange(n + 1) / n - q) / (p - q)
    variance = mechanism.moments.variance(np.clip(value, 0, 1)) / n
    return Estimate(value, variance, n, law=mechanism.moments.law(1 / n))


def covered(estimate: Estimate, truth: float, probability: F64, level: float = 0.95) -> float:
    low, high = estimate.interval(level)
    return float(probability[(low <= truth + 1e-12) & (truth - 1e-12 <= high)].sum())


def coverages(mechanism: Any, n: int, *, normal: bool = False, level: float = 0.95) -> list[float]:
    estimate = replace(outcomes(mechanism, n), law=None) if normal else outcomes(mechanism, n)
    p, q, found = float(mechanism.p), float(mechanism.q), list[float]()
    for holders in (round(share * n) for share in SHARES):
        found.append(covered(estimate, holders / n, supports(n, holders, p, q), level))
    return found


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", PURE)
def test_intervals_of_pure_oracles_hold_at_few_reports(kind: str, epsilon: str, n: int):
    assert min(coverages(PURE[kind](epsilon), n)) >= LEAST


@pytest.mark.parametrize("epsilon", ["1", "4", "8", "16"])
@pytest.mark.parametrize("kind", ["grr", "oue", "olh"])
def test_they_hold_whatever_the_share(kind: str, epsilon: str):
    mechanism, n = PURE[kind](epsilon), 50
    estimate, p, q = outcomes(mechanism, n), float(mechanism.p), float(mechanism.q)
    for level, least in ((0.95, 0.945), (0.8, 0.78), (0.99, 0.985)):
        assert min(covered(estimate, v / n, supports(n, v, p, q), level) for v in range(n + 1)) >= least


def test_normal_intervals_did_not():
    """What a plugged-in variance gives, by the same enumeration."""
    assert min(coverages(tacit.OUE(size=16, epsilon="16"), 50, normal=True)) < 0.51
    assert min(coverages(tacit.OUE(size=16, epsilon="16"), 1000)) > 0.949


@pytest.mark.parametrize("kind", PURE)
def test_a_mechanism_states_the_law_that_was_enumerated(kind: str):
    mechanism, rng = PURE[kind]("2"), np.random.default_rng(3)
    counts = np.zeros(mechanism.size, int)
    counts[:2] = 30, 20
    stated, expected = mechanism.estimate(mechanism.simulate_tally(counts, rng)), outcomes(mechanism, 50)
    assert (stated.law.slope, stated.law.step) == pytest.approx((expected.law.slope, expected.law.step))
    assert stated.law.step * 50 == pytest.approx(1 / float(mechanism.p - mechanism.q), rel=1e-9)
    nearest = np.abs(stated.value[:, None] - expected.value).argmin(axis=1)
    for stated_end, end in zip(stated.interval(), expected.interval(), strict=True):
        assert stated_end == pytest.approx(end[nearest], abs=1e-9)


@pytest.mark.parametrize("kind", PURE)
def test_they_are_the_normal_ones_at_many_reports(kind: str):
    mechanism, n = PURE[kind]("1"), 100_000
    value = np.array([0.0, 0.02, 0.5])
    estimate = Estimate(value, mechanism.moments.variance(value) / n, n, law=mechanism.moments.law(1 / n))
    ends, normal = estimate.interval(), replace(estimate, law=None).interval()
    np.testing.assert_allclose(ends, normal, atol=0.02 * float(np.max(normal[1] - normal[0])))
    assert np.all(ends[1] - ends[0] < 1.02 * (normal[1] - normal[0]))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_of_hadamard_response_hold(epsilon: str, n: int):
    """A report agrees with the sign of its own value with probability p, with that of another value as rows do."""
    mechanism = tacit.HRR(size=16, epsilon=epsilon)
    keep, rows = float(mechanism.keep), mechanism.order - 1
    p, q = (1 + keep) / 2, (1 - keep / rows) / 2
    agreeing = np.arange(n + 1)
    value = (1 + rows / keep * (2 * agreeing / n - 1)) / mechanism.order
    moments = mechanism.moments
    estimate = Estimate(value, moments.variance(np.clip(value, 0, 1)) / n, n, law=moments.law(1 / n))
    for holders in (round(share * n) for share in SHARES):
        assert value @ supports(n, holders, p, q) == pytest.approx(holders / n, abs=1e-9)
        assert covered(estimate, holders / n, supports(n, holders, p, q)) >= LEAST


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_for_the_population_hold(epsilon: str, n: int):
    """Of respondents drawn at random the support is binomial."""
    for mechanism in (PURE["grr"](epsilon), PURE["oue"](epsilon)):
        estimate, p, q = outcomes(mechanism, n), float(mechanism.p), float(mechanism.q)
        low, high = estimate.interval(target="population")
        for share in SHARES:
            probability = binomial(n, q + (p - q) * share)
            assert float(probability[(low <= share + 1e-12) & (share - 1e-12 <= high)].sum()) >= LEAST


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_of_one_bit_means_hold(epsilon: str, n: int):
    """All respondents with the same number: the ones are binomial."""
    mechanism = tacit.OneBit(top=10, epsilon=epsilon)
    ones = np.arange(n + 1)
    intervals = [
        mechanism.estimate(Counts(mechanism, n, cells := np.array([n - k, k]), cells, n, n)).interval() for k in ones
    ]
    low, high = (np.array(ends)[:, 0] for ends in zip(*intervals, strict=True))
    for number in (0, 1, 5, 10):
        probability = binomial(n, mechanism.threshold(number) / 2**64)
        assert float(probability[(low <= number + 1e-9) & (number - 1e-9 <= high)].sum()) >= LEAST


HEAVY = 500


@pytest.mark.parametrize("holds", [False, True], ids=["not the heavy one", "the heavy one"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_heavy_weight_does_not_hide_its_noise(epsilon: str, holds: bool):
    """One report of weight 500 among 1,000: the law is enumerated over its bit and over the support of the others."""
    n, mechanism = 1000, tacit.OUE(size=1000, epsilon=epsilon)
    p, q = float(mechanism.p), float(mechanism.q)
    for others in (0, 20, 500, 999):
        probability = supports(n - 1, others, p, q)
        truth, coverage = (others + HEAVY * holds) / (n - 1 + HEAVY), 0.0
        for bit, chance in ((1, p if holds else q), (0, 1 - (p if holds else q))):
            estimate = weighted_outcomes(mechanism, n, bit)
            assert estimate.caution == UNEVEN
            coverage += chance * covered(estimate, truth, probability)
        assert coverage >= LEAST


def weighted_outcomes(mechanism: Any, n: int, bit: int) -> Estimate:
    """Every cell is one outcome: the light reports support it 0 .. n - 1 times, the heavy one as its bit says."""
    cells, cells2 = np.arange(n) + HEAVY * bit, np.arange(n) + HEAVY**2 * bit
    return mechanism.estimate(Counts(mechanism, n, cells, cells2, n - 1 + HEAVY, n - 1 + HEAVY**2))


def test_normal_intervals_of_a_heavy_weight_did_not_hold():
    mechanism = tacit.OUE(size=1000, epsilon="16")
    silent = replace(weighted_outcomes(mechanism, 1000, 0), law=None)
    assert covered(silent, HEAVY / 1499, supports(999, 0, 0.5, float(mechanism.q))) == 0


def test_equal_weights_change_nothing():
    mechanism, reports = tacit.GRR(size=4, epsilon="2"), np.repeat(np.arange(4), 25).astype("u1")
    plain, weighted = (
        mechanism.estimate(mechanism.tally(reports)),
        mechanism.estimate(mechanism.tally(reports, [7] * 100)),
    )
    np.testing.assert_allclose(plain.interval(), weighted.interval())
    assert weighted.caution == plain.caution == ""


@pytest.mark.parametrize("epsilon", ["1", "16"])
def test_sums_of_cells_hold(epsilon: str):
    """GRR supports one value per report, so the support of a set of values is a sum of binomials as well."""
    mechanism, n, half = tacit.GRR(size=16, epsilon=epsilon), 50, np.repeat([1.0, 0.0], 8)
    p, q = float(mechanism.p), float(mechanism.q)
    inside, outside = p + 7 * q, 8 * q
    for holders in (0, 1, 25, 50):
        coverage = 0.0
        for support, chance in enumerate(supports(n, holders, inside, outside)):
            cells = np.zeros(16, np.int64)
            cells[0], cells[-1] = support, n - support
            low, high = mechanism.estimate(Counts(mechanism, n, cells, cells, n, n)).combine(half).interval()
            coverage += chance * bool(low[0] <= holders / n <= high[0])
        assert coverage >= LEAST


SAMPLED: dict[str, Callable[[str], Any]] = {
    "hrr_t": lambda epsilon: tacit.HRRT(size=16, coefficients=2, epsilon=epsilon),
    "she": lambda epsilon: tacit.SHE(size=16, epsilon=epsilon),
    "dbitflip": lambda epsilon: tacit.DBitFlip(size=16, sampled=4, epsilon=epsilon),
    "rue": lambda epsilon: tacit.RUE(size=16, epsilon=epsilon),
}


@pytest.mark.slow_cases("dbitflip-16", "hrr_t-16")
@pytest.mark.parametrize("epsilon", ["1", "16"])
@pytest.mark.parametrize("kind", SAMPLED)
def test_intervals_of_other_kinds_hold(kind: str, epsilon: str):
    """Cells of 400 collections of 50 respondents; sampled, with a false-alarm probability below ALPHA per share."""
    mechanism, n, rng = SAMPLED[kind](epsilon), 50, np.random.default_rng(17)
    counts = np.array([25, 24, 1, *[0] * 13])
    hits = np.zeros((400, 16), bool)
    for run in range(len(hits)):
        low, high = mechanism.estimate(mechanism.simulate_tally(counts, rng)).interval()
        hits[run] = (low <= counts / n + 1e-12) & (counts / n - 1e-12 <= high)
    for cell in range(4):
        missed = int((~hits[:, cell]).sum())
        assert binomial(400, 1 - LEAST)[missed:].sum() > ALPHA
