"""Client-level simulations of every frequency oracle against formulas written down here once more.

Expectations come from the closed formulas of the papers, never from the mechanism under test: bias, variance and
covariance of fixed respondents, coverage of intervals, shared collisions of seed pools, collisions of the hash.
Every assertion has a false-alarm probability of ALPHA = 1e-7 under any dependence between cells, because each
looks at one cell or one sum over independent runs; there are about 500 of them, so the file's share is 5e-5.
Variances are two-sided, and `assert_variance` proves that a variance off by 1.3 would be refused.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tacit
from tacit.core.estimate import Estimate
from tacit.core.statistics.normal import normal_isf
from tacit.kernels import buckets_of
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import ALPHA, assert_unbiased, assert_variance

Array = npt.NDArray[Any]
F64 = npt.NDArray[np.float64]

RUNS = 950
"""Enough for a variance off by 1.3 in either direction to be refused at ALPHA, from one cell alone."""
STATED = 250
"""Runs whose stated variances of combined answers are looked at: they hardly differ, and take longer than a run."""


def skewed(size: int, n: int, absent: int) -> Array:
    """n values, the first about 40 % of all, falling off quickly; the last `absent` values nobody holds."""
    share = 1 / np.arange(1, size - absent + 1) ** 1.6
    counts = np.floor(share / share.sum() * n).astype(int)
    counts[0] += n - counts.sum()
    return np.repeat(np.arange(size - absent), counts)


# Covariance of one respondent's contributions, one matrix per value held: size x size x size.


def bits(p: float, q: float, size: int) -> F64:
    """Supports of different values are independent: unary encoding, and local hashing with 3-wise collisions."""
    out = np.zeros((size, size, size))
    for v in range(size):
        out[v] = np.diag(np.where(np.arange(size) == v, p * (1 - p), q * (1 - q))) / (p - q) ** 2
    return out


def unary(p_of: Callable[[float], tuple[float, float]]) -> Callable[[float, int], F64]:
    return lambda odds, size: bits(*p_of(odds), size)


def hashing(g: int) -> Callable[[float, int], F64]:
    return lambda odds, size: bits(odds / (odds + g - 1), 1 / g, size)


def direct(odds: float, size: int) -> F64:
    """A multinomial draw of one value."""
    p, q = odds / (odds + size - 1), 1 / (odds + size - 1)
    law = np.full((size, size), q) + (p - q) * np.eye(size)
    return np.stack([np.diag(row) - np.outer(row, row) for row in law]) / (p - q) ** 2


def signs(size: int, skip: int) -> tuple[F64, int]:
    """The Hadamard matrix of the padded order, without its first `skip` columns."""
    order = 1 << max(1, math.ceil(math.log2(size)))
    codes = np.arange(order)
    parity = np.array([[int(a & b).bit_count() & 1 for b in codes] for a in codes])
    return (1.0 - 2 * parity)[:, skip:], order


def rows(t: int, skip: int) -> Callable[[float, int], F64]:
    """t distinct rows of the Hadamard matrix whose signs go through direct encoding of 2^t patterns.

    A contribution is skip/K + A sum_l phi_u(l) b_l with A = L u/(K t), u = (E + 2^t - 1)/(E - 1) and L = K - skip
    rows; one sign, and the product of two signs of one report, keep their truth with correlation 1/u.
    """

    def covariance(odds: float, size: int) -> F64:
        phi, order = signs(size, skip)
        usable, u = order - skip, (odds + 2**t - 1) / (odds - 1)
        scale = usable * u / (order * t)
        out = np.zeros((size, size, size))
        for v in range(size):
            twisted = phi[:size] * phi[v]
            gram, sums = twisted @ twisted.T, twisted.sum(axis=1)
            pairs = (np.outer(sums, sums) - gram) / (usable * (usable - 1)) if t > 1 else 0 * gram
            second = t * gram / usable + t * (t - 1) * pairs / u
            mean = (np.arange(size) == v) - skip / order
            out[v] = scale**2 * second - np.outer(mean, mean)
        return out

    return covariance


def subspace(t: int) -> Callable[[float, int], F64]:
    """A report supports one coset of a random subspace of dimension k - t of the k-bit values."""

    def covariance(odds: float, size: int) -> F64:
        _, order = signs(size, 0)
        g, points = 2**t, order // 2**t
        p = odds / (odds + g - 1)
        other = (1 - p) / (g - 1)
        together = (points - 1) / (order - 1)
        three = together * (points - 2) / (order - 2)
        q = p * together + other * (1 - together)
        both = p * three + other * (together - three)
        out = np.zeros((size, size, size))
        for v in range(size):
            joint = np.full((size, size), both)
            joint[v, :] = joint[:, v] = p * together
            mean = np.where(np.arange(size) == v, p, q)
            np.fill_diagonal(joint, mean)
            out[v] = (joint - np.outer(mean, mean)) / (p - q) ** 2
        return out

    return covariance


def laplace_bits(epsilon: float, theta: float) -> tuple[float, float]:
    """Laplace noise of scale 2/epsilon above theta."""
    return 1 - 0.5 * math.exp(epsilon * (theta - 1) / 2), 0.5 * math.exp(-epsilon * theta / 2)


def reoptimised(odds: float, size: int) -> F64:
    h = math.sqrt((size - 1 + 1 / odds) / (size - 1 + odds))
    return bits(1 / (1 + h), 1 / (h * odds + 1), size)


@dataclass(frozen=True)
class Case:
    """A mechanism and the covariance that theory gives one respondent."""

    build: Callable[[], Any]
    covariance: Callable[[float, int], F64]
    odds: float

    def exact(self, size: int) -> F64:
        return self.covariance(self.odds, size)


def case(kind: str, size: int, epsilon: str, covariance: Callable[[float, int], F64], **fields: Any) -> Case:
    return Case(
        lambda: getattr(tacit, kind)(size=size, epsilon=epsilon, **fields), covariance, math.exp(float(epsilon))
    )


CASES = {
    "grr": case("GRR", 7, "1", direct),
    "grr_large": case("GRR", 40, "3", direct),
    "grr_two": case("GRR", 2, "0.7", direct),
    "sue": case("SUE", 23, "1", unary(lambda odds: (odds**0.5 / (odds**0.5 + 1), 1 / (odds**0.5 + 1)))),
    "oue": case("OUE", 23, "1", unary(lambda odds: (0.5, 1 / (odds + 1)))),
    "oue_wide": case("OUE", 40, "4", unary(lambda odds: (0.5, 1 / (odds + 1)))),
    "rue": case("RUE", 9, "2", reoptimised),
    "the": case("THE", 23, "2", unary(lambda odds: laplace_bits(2, 0.7096)), theta="0.7096"),
    "the_one": case("THE", 23, "1", unary(lambda odds: laplace_bits(1, 1)), theta="1"),
    "blh": case("BLH", 23, "1", hashing(2)),
    "olh": case("OLH", 23, "1", hashing(4)),
    "olh_odd": case("OLH", 40, "1.5", hashing(3), buckets=3),  # buckets are no power of two
    "olh_many": case("OLH", 23, "4", hashing(56)),
    "hrr": case("HRR", 8, "1", rows(1, 1)),
    "hrr_padded": case("HRR", 23, "2", rows(1, 1)),
    "hrr_zero": case("HRR", 8, "1", rows(1, 0), skip_zero=False),
    "hrr_t": case("HRRT", 23, "2", rows(2, 1), coefficients=2),
    "hrr_t_three": case("HRRT", 8, "3", rows(3, 1), coefficients=3),
    "hrr_subspace": case("HRRSubspace", 23, "1", subspace(2), coefficients=2),
    "hrr_subspace_small": case("HRRSubspace", 8, "2", subspace(2), coefficients=2),
    "hrr_subspace_wide": case("HRRSubspace", 40, "3", subspace(4), coefficients=4),
}


AGAIN = {
    *("grr_two", "grr_large", "sue", "oue_wide", "the_one", "blh", "olh_many"),
    *("hrr_t_three", "hrr_subspace_small", "hrr_subspace_wide"),
}
"""Other sizes, budgets and probabilities of oracles that fast cases test as well; the laws test every kind."""


def fast_and_slow(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in AGAIN else name for name in names]


@dataclass(frozen=True)
class Runs:
    """Estimates of many runs over the same respondents; `answer_variance` has the first STATED of them only."""

    value: F64
    variance: F64
    answer: F64
    answer_variance: F64
    truth: F64
    shares: F64
    questions: F64
    scale: float


def questions_of(size: int) -> F64:
    """A sum over half of the cells, a contrast, and a weighted total with negative weights."""
    cells = np.arange(size)
    return np.stack([cells % 2 == 0, np.where(cells == 0, 1, -1 / (size - 1)), cells - 0.7]).astype(float)


def collections(mechanism: Any, values: Array, seed: int) -> Iterator[Array]:
    """The reports of RUNS collections from the same respondents, all with coins of their own, drawn in one batch."""
    reports = mechanism.privatize(np.tile(values, RUNS), SimulationCoins(seed))
    return (reports[start : start + len(values)] for start in range(0, len(reports), len(values)))


def simulate(mechanism: Any, values: Array, weights: Array | None, seed: int) -> Runs:
    """RUNS collections from the same respondents with fresh coins."""
    size, n, questions = mechanism.size, len(values), questions_of(mechanism.size)
    found = [mechanism.estimate(mechanism.tally(part, weights)) for part in collections(mechanism, values, seed)]
    value, variance = (np.stack([getattr(one, name) for one in found]) for name in ("value", "variance"))
    combined = [one.combine(questions) for one in found[:STATED]]
    answer = value @ questions.T
    assert np.allclose(answer[:STATED], [one.value for one in combined], rtol=1e-12, atol=1e-12)
    w = np.ones(n) if weights is None else weights.astype(float)
    truth = np.bincount(values, w, size) / w.sum()
    shares = np.bincount(values, w**2, size) / (w**2).sum()
    answer_variance, scale = np.stack([one.variance for one in combined]), float((w**2).sum() / w.sum() ** 2)
    return Runs(value, variance, answer, answer_variance, truth, shares, questions, scale)


def assert_covered(hits: npt.NDArray[np.bool_], level: float, wrong: float) -> None:
    """The share of hits fits `level` (normal bound at ALPHA and 0.006 for discreteness), and `wrong` would not."""
    bound = normal_isf(ALPHA / 2) * math.sqrt(level * (1 - level) / len(hits)) + 0.006
    assert abs(hits.mean() - level) < bound, f"coverage is {hits.mean():.3f}, must be {level} within {bound:.3f}"
    assert abs(wrong - level) > bound, "the test has no power"


def check(runs: Runs, covariance: F64) -> None:
    """Bias, variance, stated variance and coverage: the commonest cell, a middle one, an empty one, three sums."""
    exact = np.einsum("v,vij->ij", runs.shares, covariance) * runs.scale
    size = len(runs.truth)
    z = normal_isf(ALPHA / 2)
    for cell in (0, size // 3, size - 1):
        errors, variance = (runs.value - runs.truth)[:, cell], exact[cell, cell]
        assert_unbiased(errors[:, None], np.array([variance]))
        assert_variance(errors, np.full(RUNS, variance))
        half = normal_isf(0.025) * np.sqrt(runs.variance[:, cell])
        assert_covered(np.abs(errors) < half, 0.95, wrong=0.9)
    for i, question in enumerate(runs.questions):
        errors, variance = runs.answer[:, i] - runs.truth @ question, float(question @ exact @ question)
        assert_unbiased(errors[:, None], np.array([variance]))
        assert_variance(errors, np.full(RUNS, variance))
        half = normal_isf(0.025) * np.sqrt(runs.answer_variance[:, i])
        assert_covered(np.abs(errors[:STATED]) < half, 0.95, wrong=0.85)
        # Shares are clipped at zero before they are plugged in, which moves answers over many rare values: by 11 %.
        assert runs.answer_variance[:, i].mean() == pytest.approx(variance, rel=0.15)
    # The plug-in is linear in the estimate, and clipping hardly ever bites for the commonest cell.
    stated, noise = runs.variance[:, 0].mean(), runs.variance[:, 0].std() / math.sqrt(RUNS)
    assert abs(stated - exact[0, 0]) < z * noise + 2e-3 * exact[0, 0]


@pytest.mark.slow_cases("hrr_subspace", "olh_odd")
@pytest.mark.parametrize("name", fast_and_slow(CASES))
def test_estimates_of_fixed_respondents(name: str):
    mechanism = CASES[name].build()
    values = skewed(mechanism.size, 600, absent=0 if mechanism.size == 2 else 2)
    check(simulate(mechanism, values, None, seed=101), CASES[name].exact(mechanism.size))


@pytest.mark.parametrize("name", ["grr", "oue", "olh", "hrr", "hrr_t", "hrr_subspace"])
@pytest.mark.slow_cases("grr", "oue", "hrr_t", "hrr_subspace", "hrr")
def test_weighted_estimates(name: str):
    """Weights from 1 to 9 that depend on the value, so that the weighted shares differ from the plain ones."""
    mechanism = CASES[name].build()
    values = skewed(mechanism.size, 800, absent=2)
    weights = 1 + (values + np.arange(len(values)) % 3) % 9
    check(simulate(mechanism, values, weights, seed=102), CASES[name].exact(mechanism.size))


def test_candidates_are_cells_of_the_whole():
    mechanism = CASES["olh"].build()
    tally = mechanism.tally(mechanism.privatize(skewed(23, 500, 2), SimulationCoins(3)))
    whole, part = mechanism.estimate(tally), mechanism.estimate(tally, [5, 0, 22])
    assert np.array_equal(part.value, whole.value[[5, 0, 22]])
    assert np.array_equal(part.variance, whole.variance[[5, 0, 22]])
    assert list(part.labels or []) == [5, 0, 22]


@pytest.mark.slow_cases("8-4")
@pytest.mark.parametrize(("size", "epsilon"), [pytest.param(8, "1", marks=pytest.mark.slow), (8, "4"), (14, "2")])
def test_the_ratio_estimator(size: int, epsilon: str):
    """Dividing by each row's own number of reports; variance against these respondents.

    Against a population it is (K-1)[(K-1)c^2 - (K sum f^2 - 1)]/(K^2 n), Kulkarni 4.7; given the respondents,
    f(1 - f)/n of it is gone.
    """
    mechanism = tacit.HRR(size=size, epsilon=epsilon)
    n, order = 3000, 1 << math.ceil(math.log2(size))
    values = skewed(size, n, absent=2)
    truth = np.bincount(values, minlength=size) / n
    odds = math.exp(float(epsilon))
    c2 = ((odds + 1) / (odds - 1)) ** 2
    population = (order - 1) * ((order - 1) * c2 - (order * (truth**2).sum() - 1)) / order**2
    exact = (population - truth * (1 - truth)) / n
    parts = collections(mechanism, values, seed=7)
    runs = [mechanism.estimate(mechanism.tally(part), estimator="ratio") for part in parts]
    for cell in (0, 2, size - 1):
        errors = np.array([run.value[cell] for run in runs]) - truth[cell]
        assert_unbiased(errors[:, None], exact[[cell]])
        assert_variance(errors, np.full(RUNS, exact[cell]))
        stated = np.array([run.variance[cell] for run in runs])
        assert stated.mean() == pytest.approx(exact[cell], rel=0.05)
        assert_covered(np.abs(errors) < normal_isf(0.025) * np.sqrt(stated), 0.95, wrong=0.9)


def test_ratio_estimates_of_a_whole_domain_sum_to_one_without_error():
    """Row 0 is known, so the sum over all K cells is 1 in every run; its stated variance must say so."""
    mechanism = tacit.HRR(size=8, epsilon="1")
    tally = mechanism.tally(mechanism.privatize(skewed(8, 800, 2), SimulationCoins(8)))
    whole = mechanism.estimate(tally, estimator="ratio").combine(np.ones(8))
    assert whole.value == pytest.approx([1.0], abs=1e-12)
    assert whole.variance == pytest.approx([0.0], abs=1e-9)


def pooled(mechanism_of: Callable[[int], Any], values: Array, seed: int) -> tuple[F64, F64]:
    """Estimates and stated variances, every run with a pool of its own."""
    coins, keys = SimulationCoins(seed), np.random.default_rng(seed + 1).integers(1 << 32, size=RUNS)
    value, variance = [], []
    for key in keys:
        mechanism = mechanism_of(int(key))
        estimate = mechanism.estimate(mechanism.tally(mechanism.privatize(values, coins)))
        value.append(estimate.value)
        variance.append(estimate.variance)
    return np.stack(value), np.stack(variance)


# Pools of hash functions, the buckets they hash into, and whether the pool is a matrix of signs.
POOLS = {
    "flh": (lambda key: tacit.FLH(size=11, epsilon="1", pool=64, key=key), 4, 64),
    "flh_odd": (lambda key: tacit.FLH(size=11, epsilon="2", pool=50, key=key, buckets=7), 7, 50),
    "rmp": (lambda key: tacit.RMP(size=11, epsilon="1", pool=64, key=key), 2, 64),
}


@pytest.mark.slow_cases("flh_odd")
@pytest.mark.parametrize("name", [pytest.param("flh", marks=pytest.mark.slow), "flh_odd", "rmp"])
def test_shared_hash_functions_add_variance(name: str):
    """Over random keys: local hashing's variance and sum over other values of n_w (n_w - 1)/(pool (g - 1))."""
    build, g, pool = POOLS[name]
    odds = math.exp(float(build(0).spec()["epsilon"]))
    n, size = 700, 11
    values = skewed(size, n, absent=2)
    counts = np.bincount(values, minlength=size)
    p, q = odds / (odds + g - 1), 1 / g
    own = q * (1 - q) / (p - q) ** 2 + counts / n * (1 - p - q) / (p - q)
    collisions = counts * (counts - 1) / (pool * (g - 1))
    exact = (n * own + collisions.sum() - collisions) / n**2
    value, variance = pooled(build, values, seed=21)
    for cell in (0, 3, size - 1):
        errors = value[:, cell] - counts[cell] / n
        assert_unbiased(errors[:, None], exact[[cell]])
        assert_variance(errors, np.full(RUNS, exact[cell]))
        assert variance[:, cell].mean() == pytest.approx(exact[cell], rel=0.05)
    # Without the second term the last cell would be refused: the collisions are a third of it.
    assert exact[-1] > 1.3 * own[-1] / n


def test_local_hashing_over_64_bits():
    """A log of reports, and candidates that differ only in their upper half, only in their lower, or in one bit."""
    mechanism = tacit.OLH(size=1 << 64, epsilon="1.2")
    common, n = (1 << 63) + 12345, 500
    candidates = np.array([common, common ^ 1, common ^ 1 << 32, common ^ 1 << 62, 0, 12345, (1 << 64) - 1], np.uint64)
    values = np.where(np.arange(n) % 5 < 2, candidates[0], candidates[6])
    values[: n // 10] = candidates[1]
    truth = np.array([np.count_nonzero(values == c) for c in candidates]) / n
    g, odds = mechanism.buckets, math.exp(1.2)
    exact = np.diagonal(bits(odds / (odds + g - 1), 1 / g, 2), axis1=1, axis2=2)
    found = []
    for reports in collections(mechanism, values, seed=5):
        found.append(mechanism.estimate(sum_of(map(mechanism.tally, np.split(reports, 2))), candidates).value)
    errors = np.stack(found) - truth
    for cell, f in enumerate(truth):
        variance = (f * exact[0, 0] + (1 - f) * exact[0, 1]) / n
        assert_unbiased(errors[:, [cell]], np.array([variance]))
        assert_variance(errors[:, cell], np.full(RUNS, variance))
    contrast = errors[:, 0] - errors[:, 2]
    both = (truth[0] + truth[2]) * (exact[0, 0] + exact[0, 1]) + (1 - truth[0] - truth[2]) * 2 * exact[0, 1]
    assert_variance(contrast, np.full(RUNS, both / n))


def sum_of(tallies: Any) -> Any:
    """The sum of some tallies, without a neutral element to start from."""
    first, *rest = tallies
    for tally in rest:
        first = first + tally
    return first


# Values whose differences a weak mixer would remember: neighbours, single bits, both halves, all ones.
HASHED = np.array(
    [0, 1, 2, 3, 7, 255, 256, 65535, 65536, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 33, 1 << 48,
     1 << 63, (1 << 63) + 1, (1 << 64) - 1, 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35, 0x9E3779B97F4A7C15],
    np.uint64,
)  # fmt: skip
SEEDS = 1 << 20


@pytest.mark.slow_cases("56")
@pytest.mark.parametrize("g", [2, *(pytest.param(g, marks=pytest.mark.slow) for g in (3, 4, 8)), 56])
def test_collisions_of_pairs_and_triples(g: int):
    """Over random seeds every pair collides with probability 1/g and every triple with 1/g^2.

    All 231 pairs and the 1,540 triples share ALPHA; 2^20 seeds show a pair rate off by 1.5 % at g = 2 and by
    5 % at g = 56.
    """
    seeds = np.random.default_rng(11).integers(1 << 32, size=SEEDS, dtype=np.uint32)
    codes = [buckets_of(seeds, HASHED[[i]], g).astype(np.uint8) for i in range(len(HASHED))]
    share = ALPHA / (231 + 1540 + len(HASHED) * g)
    for code in codes:
        for count in np.bincount(code, minlength=g):
            assert_rate(int(count), 1 / g, share)
    for i in range(len(codes)):
        for j in range(i):
            equal = codes[i] == codes[j]
            assert_rate(int(np.count_nonzero(equal)), 1 / g, share)
            for k in range(0, j, 3 if g > 8 else 2):
                assert_rate(int(np.count_nonzero(equal & (codes[k] == codes[j]))), 1 / g**2, share)


def assert_rate(hits: int, rate: float, alpha: float) -> None:
    """Hits among SEEDS fit a rate, by the normal bound with a skewness correction for rare events."""
    mean, z = SEEDS * rate, normal_isf(alpha / 2)
    bound = z * math.sqrt(mean * (1 - rate)) + (z**2 - 1) * (1 - 2 * rate) / 6 + 1
    assert abs(hits - mean) < bound, f"rate is {hits / SEEDS:.6f}, must be {rate:.6f} within {bound / SEEDS:.6f}"


def test_intervals_for_the_population():
    """Respondents drawn at random: f(1 - f)/n is added, and without it the intervals would be too short."""
    mechanism, n = tacit.GRR(size=7, epsilon="3"), 500
    population = np.array([0.45, 0.25, 0.15, 0.1, 0.05, 0, 0])
    drawn = np.random.default_rng(31).choice(7, size=n * RUNS, p=population)
    question = np.array([[1.0, 1.0, 0, 0, 0, 1.0, 0]])
    inside, short, summed = [], [], []
    for reports in np.split(mechanism.privatize(drawn, SimulationCoins(32)), RUNS):
        estimate = mechanism.estimate(mechanism.tally(reports))
        inside.append(covers(estimate.interval(0.95, target="population"), population))
        short.append(covers(estimate.interval(0.95), population))
        summed.append(covers(estimate.combine(question).interval(0.95, target="population"), question @ population))
    for cell in (0, 2):
        assert_covered(np.stack(inside)[:, cell], 0.95, wrong=float(np.stack(short)[:, cell].mean()))
    assert_covered(np.stack(summed)[:, 0], 0.95, wrong=0.9)


def covers(interval: tuple[F64, F64], truth: F64) -> npt.NDArray[np.bool_]:
    return (interval[0] < truth) & (truth < interval[1])


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_other_confidence_levels(level: float):
    truth, estimates = some_estimates()
    hits = [covers(estimate.interval(level), truth) for estimate in estimates]
    assert_covered(np.stack(hits)[:, 0], level, wrong=level - 0.1)


@cache
def some_estimates() -> tuple[F64, list[Estimate]]:
    """The truth and RUNS estimates, the same ones for every confidence level."""
    mechanism, values = tacit.SUE(size=9, epsilon="1"), skewed(9, 900, 1)
    estimates = [mechanism.estimate(mechanism.tally(part)) for part in collections(mechanism, values, seed=41)]
    return np.bincount(values, minlength=9) / len(values), estimates


@pytest.mark.parametrize("name", fast_and_slow(n for n, made in CASES.items() if made.build().exact_simulation))
def test_aggregate_simulation_has_the_law_of_real_tallies(name: str):
    """Mean, variance and covariance of simulated tallies are those of one respondent's formula."""
    mechanism = CASES[name].build()
    size, n = mechanism.size, 600
    values = skewed(size, n, absent=0 if size == 2 else 2)
    counts, rng = np.bincount(values, minlength=size), np.random.default_rng(51)
    value = np.stack([mechanism.estimate(mechanism.simulate_tally(counts, rng)).value for _ in range(RUNS)])
    exact = np.einsum("v,vij->ij", counts / n, CASES[name].exact(size)) / n
    errors = value - counts / n
    for question in [*np.eye(size)[[0, size // 3, size - 1]], *questions_of(size)]:
        variance = float(question @ exact @ question)
        assert_unbiased((errors @ question)[:, None], np.array([variance]))
        assert_variance(errors @ question, np.full(RUNS, variance))
