"""Shares over time from simulated crowds of `tree_steps`: bias, and the stated variance of every window.

Crowds are fixed, so that errors are of noise and of the draw of levels alone. False alarms: 1e-6 per test, by a normal
bound on the mean error of each window and a chi-square bound on scaled squares; power is stated per test.
"""

import numpy as np
import pytest

from tacit.device.kinds.steps import best_threshold, pattern_pair
from tacit.errors import InvalidSpec, SpecMismatch
from tacit.numeric.steps import TreeSteps
from tacit.post.series.steps import covering_nodes, share_on
from tacit.simulate.time.steps import simulate_steps

RUNS, N, WINDOWS = 300, 600, 26


def switching(changes: int, seed: int) -> np.ndarray:
    """States that switch at `changes` random windows, on first, then off and on again."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 2 * WINDOWS, (N, changes)), axis=1)
    return ((np.arange(WINDOWS)[None, :, None] >= times[:, None, :]).sum(axis=2) % 2).astype(np.int8)


def followed(m: TreeSteps, states: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
    """Errors of all windows over many runs, and the mean stated variance."""
    truth, rng = states.mean(axis=0), np.random.default_rng(7)
    found = [share_on(m, simulate_steps(m, states, rng), WINDOWS) for _ in range(RUNS)]
    return np.array([one.value for one in found]) - truth, np.mean([one.variance for one in found], axis=0)


def check(errors: np.ndarray, stated: np.ndarray, low: float, high: float) -> None:
    """No bias (5.5 standard errors, 26 windows: 1e-6), and a mean ratio of squares to stated variances between two."""
    assert np.all(np.abs(errors.mean(axis=0)) < 5.5 * np.sqrt(stated / RUNS))
    assert low < float(np.mean(errors**2 / stated)) < high


@pytest.mark.parametrize("changes", [1, 3])
def test_stated_variances_of_trees_are_bounds_and_not_far_off(changes: int) -> None:
    """At worst, if all windows shared their nodes, a mean of 300 squares with deviation .082: 1.45 is 5.5 of them."""
    m = TreeSteps(fanout=3, levels=3, changes=changes, epsilon="2", weights=(3, 2, 1))
    check(*followed(m, switching(changes, changes)), 0.6, 1.45)


@pytest.mark.parametrize("threshold", [1, 2])
def test_stated_variances_are_bounds_for_every_threshold(threshold: int) -> None:
    """All switch on and off again, the worst case for two signs that tend to differ (threshold 1).

    A mean of 2,000 squares has a deviation of .032, so that 1.17 is 5.5 of them; without the factor it was 1.39.
    """
    m = TreeSteps(fanout=3, levels=1, changes=2, epsilon="4", thresholds=(threshold,))
    states, rng = np.tile(np.array([1, 0], np.int8), (N, 1)), np.random.default_rng(1)
    found = [share_on(m, simulate_steps(m, states, rng), 2) for _ in range(2000)]
    scores = [one.value[1] ** 2 / one.variance[1] for one in found]
    assert np.mean(scores) < 1.17


def test_the_best_thresholds_favour_no_signs_that_differ() -> None:
    for epsilon in (0.1, 1.0, 2.0, 4.0, 8.0, 12.0):
        odds = int(np.exp(epsilon) * 2**64)
        assert all(pattern_pair(odds, c, best_threshold(odds, c)) >= 0 for c in range(1, 33))


def test_stated_variances_of_one_way_trees_are_exact() -> None:
    """As above; a stated variance of twice the true one, or of half of it, would be noticed."""
    m = TreeSteps(fanout=3, levels=3, one_way=True, epsilon="2")
    check(*followed(m, switching(1, 5)), 0.6, 1.45)


def test_devices_that_change_more_often_than_covered_bias_the_share() -> None:
    """All switch on, off and on again; a tree for one change never sees the second and the third."""
    states = np.tile((np.arange(WINDOWS) // 2 % 2 == 0).astype(np.int8), (N, 1))
    m = TreeSteps(fanout=3, levels=3, changes=1, epsilon="4")
    errors, stated = followed(m, states)
    assert np.max(np.abs(errors.mean(axis=0)) / np.sqrt(stated / RUNS)) > 5.5


def test_nodes_cover_every_window_once() -> None:
    m = TreeSteps(fanout=3, levels=3, epsilon="1")
    for window in range(m.count):
        reach = [t for level, end in covering_nodes(m, window) for t in range(end + 1 - 3**level, end + 1)]
        assert reach == list(range(window + 1))
        assert all(m.is_due(level, end) for level, end in covering_nodes(m, window))


def test_windows_without_reports_have_no_answer_and_later_ones_need_them_not() -> None:
    m = TreeSteps(fanout=3, levels=3, epsilon="1")
    tallies = simulate_steps(m, switching(1, 1), np.random.default_rng(1))
    del tallies[1]
    found = share_on(m, tallies, 4)
    # Window 2 ends a node of level 1, so that the lost second window is in no sum but its own.
    assert np.isinf(found.variance).tolist() == [False, True, False, False]
    with pytest.raises(InvalidSpec, match="must be from 1 to 26"):
        share_on(m, tallies, 27)
    with pytest.raises(SpecMismatch):
        share_on(TreeSteps(fanout=3, levels=3, epsilon="2"), tallies, 2)
