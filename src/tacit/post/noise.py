"""What a post-processing step may know about the noise of an estimate, read from the estimate itself."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.core.estimate import Estimate
from tacit.core.moments import Moments
from tacit.errors import InvalidSpec

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """The variance of a frequency f is `at_zero + slope f`; a frequency of 1 stands for n respondents."""

    n: float
    at_zero: float
    slope: float = 0.0

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
        """The noise that the variances of an estimate tell.

        Oracles plug max(value, 0) into a variance that is linear in the frequency. Cells that are not positive
        therefore carry the variance at zero exactly, and the others the line through it; with weights, or where
        a random group answered for everybody, the line is the least-squares one.
        """
        frequency = np.clip(estimate.value, 0, 1)
        at_zero = _variance_at_zero(estimate.value, frequency, estimate.variance)
        squares = float(frequency @ frequency)
        slope = float(frequency @ (estimate.variance - at_zero)) / squares if squares > 0 else 0.0
        # The variance of a value that everybody holds is not negative either, whatever rounding says.
        return cls(estimate.effective, at_zero, max(slope, -at_zero * (1 - 1e-9)))


def _variance_at_zero(value: F64, frequency: F64, variance: F64) -> float:
    absent = value <= 0
    if absent.any():
        return float(variance[absent].mean())
    centred = frequency - frequency.mean()
    squares = float(centred @ centred)
    slope = float(centred @ variance) / squares if squares > 0 else 0.0
    at_zero = float(variance.mean() - slope * frequency.mean())
    return at_zero if at_zero > 0 else float(variance.min())
