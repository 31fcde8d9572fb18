"""Bands and tests of change on simulated windows: false alarms at the stated level, and the power that is claimed.

Binary randomised response at epsilon 1, 2,000 reports in each of 20 windows. The number of false alarms among 4,000
series is binomial: it must lie within 5.33 standard deviations of 5 % (false-alarm probability of the test 1e-7), which
leaves out rates below 3.1 % and above 6.9 %; a level that was twice too large would be found with certainty.
"""

from math import sqrt

import numpy as np
import pytest

from tacit.core.statistics.normal import normal_isf
from tacit.oracles.grr import GRR
from tacit.post.series.change import change_scores, change_threshold
from tacit.post.series.series import band_level

RUNS, WINDOWS, N = 4000, 20, 2000
MECHANISM = GRR(size=2, epsilon="1")
SLACK = 5.33 * sqrt(0.05 * 0.95 / RUNS)


def estimates(yes: "list[int]", seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Unbiased shares of many series at once, a row each, and the variance of every window about its respondents."""
    rng, p, q = np.random.default_rng(seed), float(MECHANISM.p), float(MECHANISM.q)
    held = np.array(yes)
    support = rng.binomial(held, p, (RUNS, WINDOWS)) + rng.binomial(N - held, q, (RUNS, WINDOWS))
    variance = MECHANISM.moments.variance(held / N) / N
    return (support / N - q) / (p - q), variance


@pytest.fixture(scope="module")
def still() -> tuple[np.ndarray, np.ndarray]:
    return estimates([500] * WINDOWS, 11)


def test_bands_hold_all_windows_together(still) -> None:
    value, variance = still
    z = normal_isf((1 - band_level(0.95, WINDOWS)) / 2)
    outside = (np.abs(value - 0.25) > z * np.sqrt(variance)).any(axis=1)
    assert outside.mean() == pytest.approx(0.05, abs=SLACK)


def test_differences_hold_what_they_state_one_by_one(still) -> None:
    """Of windows with other shares and numbers of reports too: both variances add, exactly."""
    value, variance = still
    later, its = estimates([900] * WINDOWS, 12)
    z = normal_isf(0.025)
    outside = np.abs(later[:, 0] - value[:, 0] - 0.2) > z * np.sqrt(its[0] + variance[0])
    assert outside.mean() == pytest.approx(0.05, abs=SLACK)
    # Without the variance of the other window every sixth interval would miss.
    assert (np.abs(later[:, 0] - value[:, 0] - 0.2) > z * np.sqrt(its[0])).mean() > 0.05 + 2 * SLACK


def test_change_points_are_announced_by_mistake_as_often_as_stated(still) -> None:
    value, variance = still
    threshold = change_threshold(np.cumsum(1 / variance), 0.05)
    alarms = [float(np.abs(change_scores(row, variance)[1]).max()) > threshold for row in value]
    assert np.mean(alarms) == pytest.approx(0.05, abs=SLACK)


def test_first_differences_are_announced_by_mistake_less_often_than_stated(still) -> None:
    """Neighbouring differences share a window, so the level is kept with a little to spare (about 4.9 %)."""
    value, variance = still
    score = np.diff(value, axis=1) / np.sqrt(variance[1:] + variance[:-1])
    threshold = normal_isf((1 - band_level(0.95, WINDOWS - 1)) / 2)
    alarms = (np.abs(score) > threshold).any(axis=1).mean()
    assert 0.025 < alarms < 0.05 + SLACK


# Shift at the middle, and the share of series in which it is found.
@pytest.mark.parametrize(("shift", "power"), [(40, 0.37), (80, 0.94), (120, 1.0)])
def test_changes_are_found_as_often_as_claimed(shift: int, power: float) -> None:
    value, variance = estimates([500] * 10 + [500 + shift] * 10, shift)
    threshold = change_threshold(np.cumsum(1 / variance), 0.05)
    scores = np.array([np.abs(change_scores(row, variance)[1]) for row in value])
    # Both rates come from 4,000 series: a standard error of .011 for the difference, five of them allowed.
    assert (scores.max(axis=1) > threshold).mean() == pytest.approx(power, abs=0.055)
    if power > 0.9:
        assert np.median(np.abs(scores.argmax(axis=1) - 9)) == 0
