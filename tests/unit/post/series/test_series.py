"""Bands, differences, joined windows, change points and smoothing, against closed forms and dense solves."""

import numpy as np
import pytest

from tacit.core.estimate import Estimate, no_data
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.post.series.change import change_points, change_threshold, exceedance, look_level
from tacit.post.series.differences import constant_mean, difference, first_differences, window_mean
from tacit.post.series.kalman import filter_online, series_noise, smooth, steady_state, variance_at
from tacit.post.series.series import Series, band_level, sparse_groups
from tacit.simulate.coins import SimulationCoins


def made(values: "list[float]", variance: float = 0.01, n: int = 100) -> Series:
    estimates = tuple(Estimate(np.array([value]), np.array([variance]), n, spread=np.zeros(1)) for value in values)
    return Series(estimates, tuple((t, t) for t in range(len(values))))


def test_a_band_is_wider_than_intervals_by_the_number_of_cells() -> None:
    series = made([0.1, 0.2, 0.3])
    low, high = series.band(0.95)
    z = normal_isf((1 - 0.95 ** (1 / 3)) / 2)
    assert np.allclose(high - low, 2 * z * 0.1)
    assert normal_isf((1 - band_level(0.95, 52)) / 2) == pytest.approx(3.2945, abs=5e-5)


def test_windows_without_reports_do_not_widen_the_band() -> None:
    told = made([0.1, 0.2])
    gap = Series((*told.estimates, no_data(1)), ((0, 0), (1, 1), (2, 2)))
    assert np.allclose(gap.band(0.95)[0][:2], told.band(0.95)[0])
    assert gap.n.tolist() == [100, 100, 0]


@pytest.mark.parametrize(
    ("n", "minimum", "per", "groups"),
    [
        ([40, 30, 120, 10, 0, 95, 300, 20], 100, 7, [(0, 2), (3, 5), (6, 6)]),
        ([10, 10, 10, 200], 100, 3, [(3, 3)]),  # A group that stays below after three windows is left out.
        ([], 100, 7, []),
        ([100, 99], 100, 1, [(0, 0)]),
    ],
)
def test_sparse_windows_are_joined_from_left_to_right(n, minimum, per, groups) -> None:
    assert sparse_groups(n, minimum, per) == groups


def test_a_difference_has_the_sum_of_both_variances_and_of_both_samples() -> None:
    mechanism = GRR(size=2, epsilon="1")
    rng = np.random.default_rng(1)
    one, two = (mechanism.estimate(mechanism.simulate_tally([700, 300], rng)) for _ in range(2))
    gap = difference(two, one)
    assert np.allclose(gap.variance, one.variance + two.variance)
    wider = difference(two, one, target="population")
    assert np.all(wider.variance > gap.variance)
    assert not difference(two, no_data(2)).has_data


def test_means_over_windows_weigh_windows_or_their_precision() -> None:
    series = Series((*made([0.1, 0.3]).estimates, no_data(1)), ((0, 0), (1, 1), (2, 2)))
    mean = window_mean(series)
    assert (mean.value[0], mean.variance[0], mean.n) == (pytest.approx(0.2), pytest.approx(0.005), 200)
    uneven = Series((made([0.1]).estimates[0], made([0.4], 0.02).estimates[0]), ((0, 0), (1, 1)))
    assert constant_mean(uneven).value[0] == pytest.approx(0.2)
    assert constant_mean(uneven).variance[0] == pytest.approx(1 / 150)


# Windows and quantiles of the largest of the weighted scores, at 95 % and 99 %, from 60,000 simulated series.
@pytest.mark.parametrize(
    ("m", "at_95", "at_99"), [(5, 2.43, 2.98), (10, 2.65, 3.17), (20, 2.81, 3.36), (50, 2.97, 3.52)]
)
def test_the_null_law_of_the_change_statistic(m: int, at_95: float, at_99: float) -> None:
    # 60,000 draws leave a standard error of about .005 at 95 % and .013 at 99 %.
    sums = np.cumsum(np.ones(m))
    assert change_threshold(sums, 0.05) == pytest.approx(at_95, abs=0.02)
    assert change_threshold(sums, 0.01) == pytest.approx(at_99, abs=0.05)


def test_the_null_law_of_two_windows_is_a_normal_tail() -> None:
    assert exceedance(normal_isf(0.025), np.array([1.0, 3.0])) == pytest.approx(0.05, abs=1e-9)
    assert exceedance(0.0, np.array([1.0, 3.0])) == 1.0


def test_a_change_is_found_where_it_is_and_adjusted_for_the_cells_looked_at() -> None:
    rng = np.random.default_rng(7)
    level = np.repeat([0.2, 0.3], [12, 8])
    noise = rng.normal(0, 0.02, (20, 2))
    estimates = tuple(
        Estimate(np.array([level[t] + noise[t, 0], 0.5 + noise[t, 1]]), np.full(2, 4e-4), 100, spread=np.zeros(2))
        for t in range(20)
    )
    moved, still = change_points(Series(estimates, tuple((t, t) for t in range(20))))
    assert moved.row == 12 and moved.adjusted < 1e-6
    assert (moved.before, moved.after) == (pytest.approx(0.2, abs=0.02), pytest.approx(0.3, abs=0.02))
    assert still.adjusted >= still.p_value > 0.01
    jumps = first_differences(Series(estimates, tuple((t, t) for t in range(20))), 0.05)
    assert all(cell == 0 for _, cell in jumps.alarms)


def test_first_differences_have_the_stated_threshold() -> None:
    assert first_differences(made([0.1] * 52), 0.05).threshold == pytest.approx(3.289, abs=5e-4)
    with pytest.raises(InvalidSpec, match="two"):
        first_differences(made([0.1]))


def test_repeated_looks_keep_alpha_together() -> None:
    assert sum(look_level(0.05, j) for j in range(1, 100_000)) == pytest.approx(0.05, rel=1e-4)


def dense(y: np.ndarray, r: np.ndarray, q: float) -> tuple[np.ndarray, np.ndarray]:
    """The posterior mean and variance of a random walk whose start has a flat prior, by one dense solve."""
    m = len(y)
    precision = np.diag(np.where(np.isfinite(r), 1 / r, 0.0))
    steps = np.diff(np.eye(m), axis=0)
    precision += steps.T @ steps / q
    covariance = np.linalg.inv(precision)
    return covariance @ np.where(np.isfinite(r), y / r, 0.0), np.diag(covariance)


def test_filter_and_smoother_are_the_dense_gaussian_solution() -> None:
    rng = np.random.default_rng(3)
    r, q = rng.uniform(1e-4, 3e-4, 30), 1e-5
    r[4] = r[17] = np.inf  # Windows without reports.
    y = 0.2 + np.cumsum(rng.normal(0, q**0.5, 30)) + rng.normal(0, 0.01, 30)

    def noise(t: int, f: np.ndarray) -> np.ndarray:
        return np.full_like(f, r[t])

    found = smooth(y[:, None], noise, drifts=np.array([q]))
    mean, variance = dense(y, r, q)
    assert np.allclose(found.value[:, 0], mean, atol=1e-12)
    assert np.allclose(found.variance[:, 0], variance, rtol=1e-9)
    online = filter_online(y[:, None], noise, drifts=np.array([q]))
    for t in (6, 20, 29):
        mean, variance = dense(y[: t + 1], r[: t + 1], q)
        assert online.value[t, 0] == pytest.approx(mean[-1], abs=1e-12)
        assert online.variance[t, 0] == pytest.approx(variance[-1], rel=1e-9)


def test_the_filter_reaches_its_steady_state() -> None:
    q, r = 1e-6, 1e-4
    rows = np.zeros((4000, 1)) + 0.3
    found = filter_online(rows, lambda t, f: np.full_like(f, r), drifts=np.array([q]))
    online, afterwards = steady_state(q, r)
    assert found.variance[-1, 0] == pytest.approx(online, rel=1e-12)
    middle = smooth(rows, lambda t, f: np.full_like(f, r), drifts=np.array([q]))
    assert middle.variance[2000, 0] == pytest.approx(afterwards, rel=1e-9)


def test_the_variance_moves_with_the_frequency_as_the_mechanism_says() -> None:
    mechanism = GRR(size=4, epsilon="1")
    rng = np.random.default_rng(2)
    estimate = mechanism.estimate(mechanism.simulate_tally([400, 300, 200, 100], rng))
    f = np.full(4, 0.25)
    expected = (mechanism.moments.variance(f) + f * (1 - f)) / 1000
    assert np.allclose(variance_at(estimate, f), expected, rtol=1e-9)
    noise = series_noise(Series((estimate, no_data(4)), ((0, 0), (1, 1))))
    assert np.all(np.isinf(noise(1, f)))


def test_a_series_is_about_one_domain() -> None:
    with pytest.raises(InvalidSpec, match="same domain"):
        Series((no_data(2), no_data(3)), ((0, 0), (1, 1)))
    with pytest.raises(InvalidSpec, match="one each"):
        Series((no_data(2),), ())


def test_long_series_are_adjusted_as_if_every_split_had_been_looked_at() -> None:
    """Cells that are adjusted to one have a lower bound for their p-value; all others have the exact one."""
    rng = np.random.default_rng(8)
    counts = np.stack(
        [rng.multinomial(400, [0.3, 0.3, 0.2, 0.2] if t < 60 else [0.24, 0.36, 0.2, 0.2]) for t in range(120)]
    )
    mechanism = GRR(size=4, epsilon="3")
    estimates = tuple(mechanism.estimate(mechanism.simulate_tally(row, rng)) for row in counts)
    series = Series(estimates, tuple((t, t) for t in range(120)))
    found = change_points(series)
    sums = np.cumsum(1 / series.variance("population"), axis=0)
    exact = [exceedance(point.statistic, sums[:, point.cell]) for point in found]
    order = sorted(range(4), key=lambda i: exact[i])
    adjusted = np.maximum.accumulate([min(1.0, (4 - rank) * exact[i]) for rank, i in enumerate(order)])
    assert [found[i].adjusted for i in order] == pytest.approx(adjusted.tolist(), abs=1e-12)
    assert found[order[0]].adjusted < 1e-6
    assert all(point.p_value <= true + 1e-9 for point, true in zip(found, exact, strict=True))


def test_intervals_of_many_windows_at_once_are_those_of_each() -> None:
    mechanism, rng = GRR(size=3, epsilon="2"), np.random.default_rng(9)
    estimates = tuple(mechanism.estimate(mechanism.simulate_tally(np.array([n, 2 * n, n]), rng)) for n in (5, 50, 500))
    for given in (
        estimates,
        (
            *estimates,
            mechanism.estimate(mechanism.tally(mechanism.privatize(np.zeros(0, np.int64), SimulationCoins(1)))),
        ),
    ):
        series = Series(given, tuple((t, t) for t in range(len(given))))
        low, high = series.intervals(0.9, target="population")
        each = [estimate.interval(0.9, target="population") for estimate in given]
        assert np.array_equal(low, np.stack([ends[0] for ends in each]), equal_nan=True)
        assert np.array_equal(high, np.stack([ends[1] for ends in each]), equal_nan=True)
