"""Ranges that are answered monotone: the intervals cover, on made-up and on real distributions."""

import os
from pathlib import Path

import numpy as np
import pytest

from tacit.simulate.ranges import some_ranges
from tacit.tasks.ranges.forecast import reference_shape
from tacit.tasks.ranges.plan import choose_ranges
from tacit.tasks.ranges.ranges import solve_ranges

LEAVES, N, RANGES = 256, 100_000, 300
REAL = ("INCOME", "NETTRACE", "SEARCHLOGS", "HEPTH")


def counts_of(name: str) -> np.ndarray:
    """100,000 respondents of a reference shape, or of a histogram of TACIT_DATA in 256 bins."""
    if name not in REAL:
        shares = reference_shape(name, LEAVES)
    else:
        path = Path(os.environ.get("TACIT_DATA", "data")) / f"{name}.n4096.npy"
        if not path.exists():
            pytest.skip(f"{path.name} is not in TACIT_DATA")
        shares = np.load(path).reshape(LEAVES, -1).sum(axis=1).astype(float)
    return np.random.default_rng(7).multinomial(N, shares / shares.sum())


CASES = [("exponential", 50), *(pytest.param(name, 50, marks=pytest.mark.slow) for name in REAL)]


@pytest.mark.slow_cases("exponential-50-0.5")
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize(("name", "seeds"), CASES)
def test_intervals_of_monotone_ranges_cover(name: str, seeds: int, epsilon: str) -> None:
    """At least 93 % of 300 ranges.

    Ranges of a run share its errors, so runs are what counts: the standard error of the mean over runs is below 0.008
    (checked), which puts 0.93 at least 2.5 below the nominal 0.95 for raw intervals, and the hull is
    wider: chance below 0.006 for fresh seeds; these are fixed. Intervals half as wide would be noticed.
    """
    counts, rng = counts_of(name), np.random.default_rng(11)
    mechanism = choose_ranges(size=LEAVES, epsilon=epsilon, n=N, oracles=["oue"]).pick.mechanism
    truth = np.append(0.0, np.cumsum(counts / N))
    low, high = some_ranges(LEAVES, RANGES, rng)
    share = truth[high] - truth[low]
    covered, halved = np.zeros(seeds), np.zeros(seeds)
    for run in range(seeds):
        found = solve_ranges(mechanism, mechanism.simulate_tally(counts, rng)).shares(low, high - 1)
        down, up = found.interval(0.95)
        assert ((down >= 0) & (up <= 1) & (down <= found.value) & (found.value <= up)).all()
        covered[run] = np.mean((down <= share + 1e-12) & (share - 1e-12 <= up))
        quarter = (up - down) / 4
        halved[run] = np.mean((down + quarter <= share) & (share <= up - quarter))
    assert covered.std() / np.sqrt(seeds) < 0.008
    assert covered.mean() >= 0.93
    assert halved.mean() < 0.93
