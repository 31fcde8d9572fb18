"""Post-processing: every method keeps what the table promises, and each against an independent computation."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.examples import examples

import tacit
from tacit.core.estimate import Estimate, no_data
from tacit.core.statistics.binomial import upper_tail
from tacit.core.statistics.moments import Moments
from tacit.errors import InvalidSpec
from tacit.oracles.unary import OUE
from tacit.post.frequencies.methods import METHODS, NAMES, QUERIES, Method, default_method, find_method, process
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.priors import PowerLaw, gauss_prior, power, power_ns
from tacit.post.frequencies.significance import cut_threshold, significance_threshold
from tacit.post.frequencies.simplex import base_cut, mle_apx, norm, norm_cut, norm_mul, project_to_simplex
from tacit.testing.statistics import assert_unbiased

F64 = npt.NDArray[np.float64]
NOISE = Noise(10_000, 1e-4, 5e-5)
VECTORS = st.lists(st.floats(-2, 2), min_size=1, max_size=30).map(np.array)
by_method = pytest.mark.parametrize("method", METHODS, ids=NAMES)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@by_method
@given(value=VECTORS)
@examples(30)
def test_methods_keep_their_promises(method: Method, value: F64) -> None:
    """Table 8.1: non-negative, summing to one, order kept, input untouched."""
    before = value.copy()
    made = method.apply(value, NOISE)
    assert np.array_equal(value, before)
    assert made.shape == value.shape
    assert np.isfinite(made).all()
    assert not method.non_negative or made.min() >= 0
    if method.sums_to_one == "yes":
        assert made.sum() == pytest.approx(1, abs=1e-9)
    if method.sums_to_one == "almost":
        assert made.sum() <= 1 + 1e-9
    if not method.ordered:
        order = np.argsort(value, kind="stable")
        assert (np.diff(made[order]) >= -1e-12).all()


@pytest.mark.parametrize(
    "name", ["base", "base_pos", "post_pos", "base_cut", "norm", "norm_mul", "norm_cut", "norm_sub"]
)
@given(value=VECTORS)
@examples(30)
def test_doing_it_twice_changes_nothing(name: str, value: F64) -> None:
    step = find_method(name).apply
    once = step(value, NOISE)
    assert step(once, NOISE) == pytest.approx(once, abs=1e-9)


@by_method
@pytest.mark.parametrize("value", [[0.3], [-0.2], [-0.5, -0.1, -3.0], [5.0, 4.0, -1.0], [1e12, -1e12, 0.0], [0.0, 0.0]])
def test_extreme_vectors(method: Method, value: list[float]) -> None:
    """One value, nothing positive, far above one, huge, all zero."""
    made = method.apply(np.array(value), NOISE)
    assert np.isfinite(made).all()
    assert not method.non_negative or made.min() >= 0
    assert method.sums_to_one != "yes" or made.sum() == pytest.approx(1, abs=1e-3)


@by_method
@pytest.mark.parametrize("value", [[], [np.nan, 0.5], [np.inf, 0.1], [[0.5, 0.5]]])
def test_what_is_no_vector_of_numbers_is_refused(method: Method, value: Any) -> None:
    with pytest.raises(InvalidSpec, match="post"):
        method.apply(np.array(value, float), NOISE)


def test_the_table_is_found_by_name() -> None:
    assert [find_method(name) for name in NAMES] == list(METHODS)
    assert find_method("cls").name == "norm_sub"
    with pytest.raises(InvalidSpec, match="norm_sub"):
        find_method("norm-sub")
    assert {method.name for method in METHODS if not method.biased} == {"base", "norm"}
    for method in METHODS:
        assert set(method.to_row()) == {
            "name", "title", "non_negative", "sums_to_one", "biased", "best_for", "needs", "ordered", "least_cells",
        }  # fmt: skip


def test_defaults_by_type_of_query() -> None:
    """Without a selection: what wins its ties. Norm and Base-Cut are no defaults, being far worse on small shares."""
    for query in QUERIES:
        assert default_method(query.name, cells=31).name == "norm_sub"
        assert default_method(query.name, cells=32).name == "npmle"
    with pytest.raises(InvalidSpec, match="largest"):
        default_method("everything", cells=5)


def nearest_by_enumeration(value: F64, variance: F64) -> F64:
    """The quadratic program over every possible support, for small domains."""
    best, least = value, np.inf
    for support in itertools.product([False, True], repeat=len(value)):
        on = np.array(support)
        if not on.any():
            continue
        made = np.where(on, value + variance * (1 - value[on].sum()) / variance[on].sum(), 0.0)
        distance = float(((made - value) ** 2 / variance).sum())
        if made.min() >= 0 and distance < least:
            best, least = made, distance
    return best


@given(value=st.lists(st.floats(-1, 1.5), min_size=1, max_size=7).map(np.array), seed=st.integers(0, 99))
@examples(30)
def test_the_projection_is_the_nearest_point(value: F64, seed: int) -> None:
    ones = np.ones(len(value))
    assert project_to_simplex(value) == pytest.approx(nearest_by_enumeration(value, ones), abs=1e-9)
    variance = rng(seed).uniform(0.1, 3, len(value))
    found = project_to_simplex(value, variance=variance)
    assert found == pytest.approx(nearest_by_enumeration(value, variance), abs=1e-9)


def test_worked_projections() -> None:
    """Clipping before the shift, as some published code does, would give (1, 0) for the first."""
    assert project_to_simplex(np.array([0.5, -0.01])) == pytest.approx([0.755, 0.245])
    assert project_to_simplex(np.array([0.7, 0.4, -0.05])) == pytest.approx([0.65, 0.35, 0])
    assert project_to_simplex(np.array([-7.0])) == pytest.approx([1])
    assert project_to_simplex(np.array([3.0, 1.0]), 2.0) == pytest.approx([2, 0])
    assert project_to_simplex(np.array([1e20, 0.0])) == pytest.approx([1, 0])


@pytest.mark.parametrize("variance", [[1.0], [1.0, 0.0], [1.0, np.inf], [-1.0, 1.0]])
def test_impossible_variances_are_refused(variance: list[float]) -> None:
    with pytest.raises(InvalidSpec, match="variances"):
        project_to_simplex(np.array([0.5, 0.5]), variance=np.array(variance))


def objective(made: F64, value: F64, noise: Noise) -> float:
    return float(((made - value) ** 2 / (noise.at_zero + noise.slope * made)).sum())


@pytest.mark.parametrize("slope", [3.0, 0.2, -0.05, -0.9])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_mle_apx_minimises_its_objective(slope: float, scale: float) -> None:
    """Against a general solver; at the large scale some estimates lie beyond the pole of the objective."""
    noise = Noise(1, 1.0, slope)
    for seed in range(12):
        d = 2 + seed % 5
        value = rng(seed).normal(1 / d, scale, d)
        found = mle_apx(value, noise)
        assert found.sum() == pytest.approx(1)
        solved = minimize(
            objective, np.full(d, 1 / d), (value, noise), bounds=[(0, 1)] * d, method="SLSQP",
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1}, options={"ftol": 1e-12, "maxiter": 500},
        )  # fmt: skip
        assert objective(found, value, noise) <= solved.fun + 1e-7


def test_mle_apx_is_the_projection_where_the_variance_is_constant() -> None:
    """p + q = 1, as in SUE: identical, and continuous in the slope."""
    value = rng().normal(0.1, 0.2, 20)
    exact = project_to_simplex(value)
    assert mle_apx(value, Noise(100, 1e-3)) == pytest.approx(exact, abs=1e-15)
    for slope in (1e-15, -1e-15, 1e-9):
        assert mle_apx(value, Noise(100, 1e-3, slope)) == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("size", [1, 4])
def test_mle_apx_is_uniform_where_every_estimate_lies_on_the_pole(size: int) -> None:
    noise = Noise(10_000, 1e-4, 5e-5)
    assert mle_apx(np.full(size, -2.0), noise) == pytest.approx(np.full(size, 1 / size))


def test_the_printed_formula_of_mle_apx_does_not_sum_to_one() -> None:
    """Between equation (8.4) and the next line the sign of (p - q)(1 - p - q)x flips; both versions on one vector."""
    p, q, e = 0.5, 0.27, np.array([0.5, 0.4, 0.3])
    a, c, k, total = q * (1 - q), 1 - p - q, 3, e.sum()
    wrong = (p - q) * (total - 1) / ((p - q) * c - k * a)
    right = (p - q) * (1 - total) / (k * a + (p - q) * c)
    made = [(a * x + e * (p - q)) / ((p - q) * (1 - c * x)) for x in (wrong, right)]
    assert abs(made[0].sum() - 1) > 1e-3
    assert made[1].sum() == pytest.approx(1)
    moments = Noise(1, a / (p - q) ** 2, c / (p - q))
    assert mle_apx(e, moments) == pytest.approx(made[1])


def test_base_cut_keeps_what_is_significant() -> None:
    """T = isf(2/1024) s = 2.886 s."""
    noise = Noise(10**6, 1e-6)
    value = np.zeros(1024)
    value[:3] = 0.1, 0.00289, 0.00288
    assert np.flatnonzero(base_cut(value, noise)).tolist() == [0, 1]
    assert base_cut(value, noise, keep=3)[:4].tolist() == [0.1, 0.00289, 0.00288, 0]
    spread = base_cut(value, noise, spread_rest=True)
    assert spread.sum() == pytest.approx(1)
    assert spread[0] == 0.1
    assert not base_cut(value - 1, noise).any()


@pytest.mark.parametrize(("d", "alpha"), [(1, 2.0), (2, 2.0), (3, 2.0), (4, 2.0), (10, 50.0)])
def test_the_threshold_of_small_domains_is_zero(d: int, alpha: float) -> None:
    assert cut_threshold(d, alpha, 0.1) == 0
    assert cut_threshold(10**12, 0.05, 1.0) == pytest.approx(7.4409, abs=1e-4)


def test_norm_cut_keeps_the_longest_prefix_that_fits() -> None:
    assert norm_cut(np.array([0.6, 0.3, 0.2, -0.4])).tolist() == [0.6, 0.3, 0, 0]
    assert norm_cut(np.array([0.3, 0.2, -0.4])).tolist() == [0.3, 0.2, 0]  # Fits as it is.
    assert norm_cut(np.array([0.5, 0.3, 0.3, 0.1])).tolist() == [0.5, 0, 0, 0]  # Equal values go together.
    assert norm_cut(np.array([1.7, 0.3])).tolist() == [1, 0]  # The rule alone would leave nothing.
    assert norm_cut(np.array([0.8, 0.8, 0.1])).tolist() == [0.4, 0.4, 0]
    assert norm_cut(np.array([0.6, 0.3, 0.2]), rescale=True).sum() == pytest.approx(1)


def test_norm_mul_without_anything_positive_is_uniform() -> None:
    assert norm_mul(np.array([-1.0, -2.0, 0.0, -1.0])).tolist() == [0.25] * 4


@pytest.mark.parametrize(("n", "deviation", "exponent"), [(50, 4.0, 1.2), (5000, 90.0, 1.5), (60_000, 700.0, 0.6)])
def test_power_is_the_posterior_mean(n: int, deviation: float, exponent: float) -> None:
    """Against the sum over all counts, equation (8.7): within a thousandth of the noise."""
    k = np.arange(1, n + 1.0)
    counts = np.append(rng().uniform(-8, 39, 2000) * deviation, [0.0, deviation])
    counts = counts[counts < n + 3 * deviation]
    logs = -exponent * np.log(k) - ((counts[:20, None] - k) / deviation) ** 2 / 2
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    expected = (weights @ k) / weights.sum(axis=1)
    noise = Noise(n, (deviation / n) ** 2)
    for chosen in (counts, counts[:20]):  # From the table, and few values directly.
        found = n * power(chosen / n, noise, prior=PowerLaw(exponent))[:20]
        assert np.abs(found - expected).max() < 1e-3 * deviation


def test_power_continues_smoothly_beyond_its_table() -> None:
    noise = Noise(10**6, (500 / 10**6) ** 2)
    value = np.linspace(35, 45, 2001) * 500 / 10**6
    steps = np.diff(power(value, noise, prior=PowerLaw(1.5)))
    assert steps.min() > 0
    assert steps.max() < 1.2 * steps.min()
    assert power(np.array([1.2, -0.2]), noise)[0] == 1


def test_the_power_law_is_fitted_to_the_mean() -> None:
    k = np.arange(1, 10**5 + 1.0)
    for exponent in (0.0, 0.5, 1.0, 1.7, 4.0):
        mean = float((k ** (1 - exponent)).sum() / (k**-exponent).sum())
        assert PowerLaw(exponent).mean(10**5) == pytest.approx(mean, rel=1e-12)
        assert PowerLaw.fit(mean, 10**5).exponent == pytest.approx(exponent, abs=1e-9)
    assert PowerLaw.fit(0.3, 100).exponent == 1.01  # Fewer respondents than values.
    assert PowerLaw.fit(20.0, 40).exponent < 1  # Two values only.
    assert PowerLaw(2.0).mean(3) == pytest.approx((1 + 1 / 2 + 1 / 3) / (1 + 1 / 4 + 1 / 9))


def test_power_takes_any_prior() -> None:
    """A flat prior changes nothing far from its ends."""

    class Flat:
        def masses(self, low: F64, high: F64) -> tuple[F64, F64]:
            return high - low + 1, (low + high) / 2

        def slope(self, count: F64) -> F64:
            return 0 * count

    value = np.array([0.2, 0.3, 0.5])
    assert power(value, Noise(10**4, 1e-4), prior=Flat()) == pytest.approx(value, abs=1e-6)


def test_the_gaussian_prior_shrinks_towards_the_mean() -> None:
    value = np.array([0.1, 0.3, 0.2, 0.4])
    spread = value.var() - 0.005
    found = gauss_prior(value, Noise(100, 0.005))
    assert found == pytest.approx(0.25 + (value - 0.25) * spread / (spread + 0.005))
    assert gauss_prior(value, Noise(100, 1.0)) == pytest.approx(np.full(4, 0.25))  # Nothing but noise.
    assert gauss_prior(value, Noise(100, 0.0)) == pytest.approx(value)


def test_power_ns_is_interactive_for_large_domains() -> None:
    """d = 10^5, n = 10^7; the table has the same size for any n. The benchmark measures it."""
    value = rng().normal(0, 6e-4, 100_000)
    value[:50] += 0.01
    assert power_ns(value, Noise(10**7, 3.6e-7)).sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["OUE", "OLH", "GRR", "HRR", "SS", "CBR"])
def test_the_noise_is_read_from_an_estimate(kind: str) -> None:
    mechanism = getattr(tacit, kind)(size=12, epsilon="1.5")
    counts = np.array([500, 300, 200] + [0] * 9)
    reports = mechanism.privatize(np.repeat(np.arange(12), counts), tacit.ReplayCoins(b"noise"))
    found = Noise.of(mechanism.estimate(mechanism.tally(reports)))
    exact = Noise.of_moments(mechanism.moments, 1000)
    assert found.n == exact.n
    assert found.at_zero == pytest.approx(exact.at_zero)
    assert found.slope == pytest.approx(exact.slope, abs=1e-9 * exact.at_zero)


def test_the_noise_of_an_estimate_without_absent_values_is_extrapolated() -> None:
    value, moments = np.array([0.5, 0.3, 0.2]), Moments(own=3.0, other=2.0)
    found = Noise.of(Estimate(value, moments.variance(value) / 50, 50))
    assert (found.at_zero, found.slope) == (pytest.approx(2 / 50), pytest.approx(1 / 50))
    assert Noise.of(Estimate(np.array([0.4]), np.array([0.1]), 5)).at_zero == pytest.approx(0.1)
    with pytest.raises(InvalidSpec, match="noise"):
        Noise(0, 1.0)


def test_norm_keeps_exact_variances() -> None:
    """Every cell, and a set of k values: (1 - k/d)^2 of its own noise and (k/d)^2 of the others'."""
    d, raw = 5, Estimate(np.array([0.5, 0.2, 0.1, 0.1, 0.3]), np.array([4.0, 1.0, 2.0, 3.0, 5.0]) / 100, 100)
    made = process(raw, "norm")
    cells = [(1 - 1 / d) ** 2 * v + (raw.variance.sum() - v) / d**2 for v in raw.variance]
    assert made.estimate.variance == pytest.approx(cells)
    pair = made.estimate.combine([1, 1, 0, 0, 0])
    own, rest = raw.variance[:2].sum(), raw.variance[2:].sum()
    assert pair.variance[0] == pytest.approx((3 / 5) ** 2 * own + (2 / 5) ** 2 * rest)
    assert made.estimate.combine(np.ones(d)).variance[0] == pytest.approx(0, abs=1e-15)
    wide = Estimate(np.zeros(3000), np.ones(3000), 10)
    assert np.array_equal(process(wide, "norm").estimate.variance, wide.variance)


@pytest.mark.parametrize(("kind", "changes"), [("GRR", False), ("SS", False), ("HRR", True), ("OUE", True)])
def test_norm_changes_nothing_where_the_sum_is_one_already(kind: str, changes: bool) -> None:
    """True of GRR and subset selection; section 8.1.2 says the same of Hadamard response, which is wrong."""
    mechanism = getattr(tacit, kind)(size=6, epsilon="1")
    reports = mechanism.privatize(np.arange(600) % 6, tacit.ReplayCoins(b"norm"))
    raw = mechanism.estimate(mechanism.tally(reports)).value
    assert (np.abs(norm(raw) - raw).max() > 1e-6) == changes


def test_norm_is_unbiased() -> None:
    """400 collections with the exact variance of Norm; false-alarm probability 1e-7."""
    mechanism, counts, draws = tacit.OUE(size=6, epsilon="1"), np.array([500, 300, 150, 50, 0, 0]), rng(7)
    made = [process(mechanism.estimate(mechanism.simulate_tally(counts, draws)), "norm") for _ in range(400)]
    variance = Moments.variance(mechanism.moments, counts / 1000) / 1000
    # Five of the six, because their sum is known; half as much again, because the five depend on each other.
    cells = (1 - 1 / 6) ** 2 * variance + (variance.sum() - variance) / 36
    assert_unbiased(np.array([one.value[:5] for one in made]) - counts[:5] / 1000, cells[:5] * 1.5)
    shifted = np.array([one.value[:5] for one in made]) - counts[:5] / 1000 + 0.02
    with pytest.raises(AssertionError):
        assert_unbiased(shifted, cells[:5] * 1.5)


def test_base_pos_has_the_bias_of_a_clipped_normal() -> None:
    """s phi(f/s) - f Phi(-f/s): 765 counts at f = 0 and s = 1919; 10^6 draws, six standard errors of 1.1."""
    draws = rng().normal(0, 1919, 10**6)
    made = find_method("base_pos").apply(draws, NOISE)
    assert made.mean() == pytest.approx(765.6, abs=6.8)
    assert (made**2).mean() == pytest.approx(1919**2 / 2, rel=0.02)


def test_post_pos_clips_answers_and_not_values() -> None:
    raw = Estimate(np.array([0.5, -0.2, -0.1]), np.full(3, 0.01), 100)
    rows = [[1, 1, 0], [0, 1, 1]]
    assert process(raw, "post_pos").combine(rows) == pytest.approx([0.3, 0])
    assert process(raw, "base_pos").combine(rows) == pytest.approx([0.5, 0])
    assert process(raw, "base").combine(rows) == pytest.approx([0.3, -0.3])


@by_method
def test_results_are_labelled_and_intervals_hold_the_value(method: Method) -> None:
    raw = Estimate(np.array([0.9, 0.3, -0.25]), np.full(3, 0.01), 100, labels=["a", "b", "c"])
    made = process(raw, method)
    low, high = made.interval(0.95)
    assert made.raw is raw
    assert made.estimate.labels == ["a", "b", "c"]
    assert (made.estimate.covariance is None) == (method.name != "norm")
    if method.biased:
        assert (low < high).all()
        value = np.clip(made.value, 0, 1) if method.non_negative else made.value
        assert not method.non_negative or ((low >= 0) & (high <= 1)).all()
        assert ((low <= value) & (value <= high)).all()
        ends = raw.interval(0.95)
        raw_low, raw_high = (end.clip(0, 1) for end in ends) if method.non_negative else ends
        assert ((low <= raw_low) & (high >= raw_high)).all()
    empty = process(no_data(3), method)
    assert not empty.estimate.has_data


def test_the_significance_threshold_of_an_oracle_is_exact_and_that_of_a_number_is_not() -> None:
    """How many absent values pass on average, from the binomial law of their support."""
    n, d = 1000, 1000
    oracle = OUE(size=d, epsilon="4")
    empty = Estimate(np.zeros(d), np.full(d, oracle.variance_at_zero / n), n)
    passing = []
    for noise in (oracle, oracle.variance_at_zero):
        threshold = significance_threshold(empty, noise).threshold
        support = np.floor(n * float(oracle.q) + threshold * n * float(oracle.p - oracle.q)) + 1
        passing.append(d * float(upper_tail(support, n, float(oracle.q))))
    assert passing[0] <= 0.05 and passing[1] == pytest.approx(0.21, abs=0.005)


def test_weights_raise_the_significance_threshold() -> None:
    oracle = OUE(size=10, epsilon="1")
    equal = Estimate(np.zeros(10), np.ones(10), 1000)
    uneven = Estimate(np.zeros(10), np.ones(10), 1000, effective=250.0)
    for noise in (oracle, oracle.variance_at_zero):
        ratio = significance_threshold(uneven, noise).threshold / significance_threshold(equal, noise).threshold
        assert ratio == pytest.approx(2, rel=0.05)
