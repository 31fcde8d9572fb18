"""Differences of windows, means over windows, and tests of them with stated false alarms."""

from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from tacit.arrays import F64
from tacit.core.estimate import Estimate, Target
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec
from tacit.post.series.series import Series, band_level


def difference(later: Estimate, earlier: Estimate, *, target: Target = "respondents") -> Estimate:
    """Return later minus earlier, with the sum of their variances (A-DIFF).

    About the population the sampling of both windows is added in the form for disjoint groups. It holds for windows of
    one slot as well, whose groups are the same devices: there it is too large, by what nobody but the devices knows.
    """
    if not (later.has_data and earlier.has_data):
        missing = np.full(len(later), np.inf)
        return Estimate(np.zeros(len(later)), missing, 0, labels=later.labels)
    variance = later.variance + earlier.variance
    if target == "population":
        variance = variance + later.cell_spread / later.effective + earlier.cell_spread / earlier.effective
    # No law: a difference is no share, so its interval is the normal one.
    return Estimate(later.value - earlier.value, variance, min(later.n, earlier.n), labels=later.labels)


def window_mean(series: Series) -> Estimate:
    """Return the mean of the windows' frequencies, each window counting once, whatever its n."""
    told = [estimate for estimate in series.estimates if estimate.has_data]
    if not told:
        return series.estimates[0]
    value = np.mean([estimate.value for estimate in told], axis=0)
    variance = np.sum([estimate.variance for estimate in told], axis=0) / len(told) ** 2
    return Estimate(value, variance, sum(estimate.n for estimate in told), labels=told[0].labels)


def constant_mean(series: Series) -> Estimate:
    """Return the inverse-variance mean: what all windows say if frequencies never changed, an assumption (A-MERGE)."""
    variance = series.variance()
    weights = np.where(np.isfinite(variance), 1 / variance, 0.0)
    total = weights.sum(axis=0)
    if not np.all(total > 0):
        return series.estimates[0]
    value = (weights * series.value).sum(axis=0) / total
    return Estimate(value, 1 / total, int(series.n.sum()), labels=series.estimates[0].labels)


@dataclass(frozen=True, eq=False)
class Jumps:
    """First differences of a series, and which are larger than chance lets any of them be."""

    score: F64
    """Differences of neighbouring windows over their standard errors, a row for every window but the first."""
    threshold: float
    alarms: "tuple[tuple[int, int], ...]"
    """(row of the later window, cell) of every difference beyond the threshold."""


def first_differences(series: Series, alpha: float = 0.05, *, target: Target = "population") -> Jumps:
    """Test all differences of neighbouring windows at once; some alarm comes with probability alpha at most (A-FD)."""
    if len(series) < 2:
        raise InvalidSpec("first differences: the series has one window, must have two at least")
    variance = series.variance(target)
    # A window without reports has infinite variance: its scores are 0, which is no alarm.
    both = variance[1:] + variance[:-1]
    score = np.diff(series.value, axis=0) / np.sqrt(both)
    # Differences that share a window are correlated, which Sidak's inequality allows.
    threshold = normal_isf((1 - band_level(1 - alpha, score.size)) / 2)
    rows, cells = np.nonzero(np.abs(score) > threshold)
    return Jumps(score, threshold, tuple((int(row) + 1, int(cell)) for row, cell in zip(rows, cells, strict=True)))


def two_sided(score: float) -> float:
    """Return Pr[|Z| > |score|] of a standard normal Z."""
    return 1 - erf(abs(score) / sqrt(2))
