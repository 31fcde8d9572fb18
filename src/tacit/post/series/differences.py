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


@dataclass(frozen=True, eq=False)
class Compared:
    """Every window of a series less another one: a row per window, NaN where there is none to compare with."""

    rows: "tuple[int | None, ...]"
    """Which row every row is compared with."""
    value: F64
    error: F64
    """Standard errors."""

    def interval(self, level: float) -> "tuple[F64, F64]":
        """Return lower and upper ends that each hold with this level. A difference of two shares is within 1 of 0."""
        reach = normal_isf((1 - level) / 2) * self.error
        return np.maximum(self.value - reach, -1), np.minimum(self.value + reach, 1)


def compared(series: Series, row: int | None = None, *, target: Target = "population") -> Compared:
    """Return differences of all windows to one of them, or to the one before each: the sum of both variances (A-DIFF).

    Samples of both windows are added as if their groups were disjoint, as in `difference`.
    """
    others = [i - 1 if row is None else row for i in range(len(series))]
    rows = tuple(other if other >= 0 and other != i else None for i, other in enumerate(others))
    at = [i if other is None else other for i, other in enumerate(rows)]
    variance = series.variance(target)
    value, error = series.value - series.value[at], np.sqrt(variance + variance[at])
    alone = [other is None for other in rows]
    value[alone], error[alone] = np.nan, np.nan
    return Compared(rows, value, error)


def window_mean(series: Series, *, target: Target = "respondents") -> Estimate:
    """Return the mean of the windows' frequencies, each window counting once, whatever its n."""
    told = [i for i, estimate in enumerate(series.estimates) if estimate.has_data]
    if not told:
        return series.estimates[0]
    variance = series.variance(target)[told].sum(axis=0) / len(told) ** 2
    return Estimate(series.value[told].mean(axis=0), variance, int(series.n.sum()), labels=series.estimates[0].labels)


def constant_mean(series: Series, *, target: Target = "respondents") -> Estimate:
    """Return the inverse-variance mean: what all windows say if frequencies never changed, an assumption (A-MERGE)."""
    variance = series.variance(target)
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
