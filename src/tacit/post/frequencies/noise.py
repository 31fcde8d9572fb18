"""The noise model of post-processing: the variance of a frequency as a line, read from the estimate itself."""

from dataclasses import dataclass, field, replace

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate
from tacit.core.statistics.moments import Moments
from tacit.errors import InvalidSpec

_ALIKE = 1.1
"""Variances at zero within this factor of each other are taken for one."""
_MOST_CLASSES = 8
_LEAST_PART = 1e-3
"""The variance at zero of a cell is at least this part of the common one."""


@dataclass(frozen=True)
class Noise:
    """The variance of a frequency f is `at_zero + slope f`; a frequency of 1 stands for n respondents."""

    n: float
    at_zero: float
    slope: float = 0.0
    cells: F64 | None = field(default=None, compare=False, repr=False)
    """The variance at zero of every cell, where they differ; `at_zero` is then one for all."""

    def __post_init__(self) -> None:
        """Refuse noise that cannot be."""
        if not (self.n > 0 and np.isfinite(self.at_zero) and self.at_zero >= 0 and np.isfinite(self.slope)):
            raise InvalidSpec(f"noise: n is {self.n}, at_zero {self.at_zero}, slope {self.slope}; n must be positive")

    @property
    def deviation(self) -> float:
        """Standard deviation of the frequency of a value that nobody holds."""
        return float(np.sqrt(self.at_zero))

    @classmethod
    def of_moments(cls, moments: Moments, n: float) -> "Noise":
        """The exact noise of an oracle with n reports."""
        return cls(n, moments.other / n, (moments.own - moments.other) / n)

    @classmethod
    def of(cls, estimate: Estimate) -> "Noise":
        """Return the noise that the variances of an estimate imply.

        Oracles plug max(value, 0) into a variance that is linear in the frequency. Cells that are not positive
        therefore carry the variance at zero exactly, and the others the line through it; with weights, or where
        a random group answered for everybody, the line is the least-squares one.
        """
        frequency = np.clip(estimate.value, 0, 1)
        at_zero = _variance_at_zero(estimate.value, frequency, estimate.variance)
        # Least squares through the point that is known, (0, at_zero).
        squares = float(frequency @ frequency)
        slope = float(frequency @ (estimate.variance - at_zero)) / squares if squares > 0 else 0.0
        # The variance of a value that everybody holds is not negative either, whatever rounding says.
        slope = max(slope, -at_zero * (1 - 1e-9))
        return cls(estimate.effective, at_zero, slope, _cells(estimate.variance - slope * frequency, at_zero))

    def classes(self, count: int) -> "list[tuple[Noise, I64]]":
        """Return cells of about equal variance with their common noise: at most eight classes, in geometric steps."""
        if self.cells is None or len(self.cells) != count:
            return [(replace(self, cells=None), np.arange(count))]
        logs = np.log(self.cells)
        width = max(np.log(_ALIKE), float(np.ptp(logs)) / _MOST_CLASSES)
        number = np.minimum((logs - logs.min()) // width, _MOST_CLASSES - 1)
        places = (np.flatnonzero(number == each) for each in np.unique(number))
        return [(Noise(self.n, float(np.exp(logs[at].mean())), self.slope), at) for at in places]


def _cells(variance: F64, at_zero: float) -> F64 | None:
    """The variances at zero cell by cell; None where they are all about the same."""
    if at_zero <= 0:
        return None
    floored = np.maximum(variance, _LEAST_PART * at_zero)
    return floored if floored.max() > _ALIKE * floored.min() else None


def _variance_at_zero(value: F64, frequency: F64, variance: F64) -> float:
    """The mean variance of cells that are not positive; without any, the intercept of a fitted line."""
    absent = value <= 0
    if absent.any():
        return float(variance[absent].mean())
    # Every cell is positive: least squares of the variances on the frequencies, read at zero.
    centred = frequency - frequency.mean()
    squares = float(centred @ centred)
    slope = float(centred @ variance) / squares if squares > 0 else 0.0
    at_zero = float(variance.mean() - slope * frequency.mean())
    return at_zero if at_zero > 0 else float(variance.min())
