"""Intervals that hold for few reports as well: score intervals with half a report as continuity correction.

The variance of a share depends on the share itself. An interval that plugs the estimate into it is far too narrow
where few reports happen to say zero: of OUE at epsilon 16, half of those who hold a value send nothing for it. A score
interval holds every truth f from which the estimate is at most z standard errors away, the error being the one *at f*
(Wilson, JASA 1927). Supports are counts, so half of what one report changes is allowed on top. At large n both
differences vanish against the normal interval. docs/maths/intervals.md has the exact coverage.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64

Numbers = F64 | float


@dataclass(frozen=True, eq=False)
class Law:
    """How the variance of an estimate depends on the truth f: `slope f + curve f (1 - f)` and a constant.

    The truth lies between `low` and `high`; all other fields are on the scale where those are 0 and 1. One number of a
    field stands for all cells.
    """

    slope: Numbers = 0.0
    curve: Numbers = 0.0
    step: Numbers = 0.0
    """What one report changes about the estimate, at most."""
    pairs: float = 0.0
    """What every further cell of a sum adds to the slope of the sum's variance."""
    floor: float = 0.0
    """The variance is taken for at least this; for weights so uneven that the reports hardly tell their variance."""
    low: float = 0.0
    high: float = 1.0

    @property
    def is_uniform(self) -> bool:
        """Whether all cells have the same law."""
        return all(np.ndim(field) == 0 for field in (self.slope, self.curve, self.step))

    def take(self, places: npt.NDArray[np.int64]) -> "Law":
        """Return the law of some cells."""

        def at(field: Numbers) -> Numbers:
            return field if np.ndim(field) == 0 else np.asarray(field)[places]

        return replace(self, slope=at(self.slope), curve=at(self.curve), step=at(self.step))

    def of_sums(self, cells: F64) -> "Law":
        """Return the law of sums, each of this many cells."""
        return replace(self, slope=self.slope + self.pairs * (cells - 1), pairs=0.0)

    def scaled(self, factor: float) -> "Law":
        """Return the law of shares that are `factor` times those that were estimated, and still at most one."""
        return replace(
            self,
            slope=self.slope * factor + self.curve * (factor - 1),
            step=self.step * factor,
            pairs=self.pairs * factor,
            floor=self.floor * factor**2,
        )

    def sampled(self, more: Numbers) -> "Law":
        """Return the law with `more` times f (1 - f) added to the variance: sampling of the respondents themselves."""
        return replace(self, curve=self.curve + more)


def placed(rows: F64, share: float) -> F64:
    """Return hypothetical frequencies per row of zeros and ones: `share` spread evenly over the ones, the rest outside.

    >>> placed(np.array([[1.0, 1.0, 0.0]]), 0.5).tolist()
    [[0.25, 0.25, 0.5]]
    """
    outside = 1 - rows
    inside = rows / np.maximum(rows.sum(axis=-1, keepdims=True), 1)
    return share * inside + (1 - share) * outside / np.maximum(outside.sum(axis=-1, keepdims=True), 1)


def law_between(absent: Numbers, even: Numbers, everybody: Numbers, step: Numbers) -> Law:
    """Return the law of answers from their variances if nobody, half and all of the respondents were in them."""
    return Law(slope=everybody - absent, curve=4 * even - 2 * (absent + everybody), step=step)


def score_interval(value: F64, variance: F64, law: Law, z: float) -> tuple[F64, F64]:
    """Return the ends of the score interval: every truth at most z standard errors and half a report from the estimate.

    `variance` is the one at the estimate, clipped to where the truth can be.

    >>> law = Law(slope=0.02, step=0.04)  # OUE at a large epsilon, 50 reports, none of which supports the value.
    >>> low, high = score_interval(np.zeros(1), np.zeros(1), law, 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.02], [0.113])
    """
    width = law.high - law.low
    share = (value - law.low) / width
    inside = np.clip(share, 0, 1)
    # The constant of the law, from the variance at the estimate.
    at_zero = np.maximum(variance / width**2, law.floor) - law.slope * inside - law.curve * inside * (1 - inside)
    # Half a report for counts being whole; more at high levels, where skewness matters (Cornish and Fisher, 1937).
    half = np.asarray(law.step) * max(0.5, (z**2 - 1) / 6)
    # The upper end is the lower end of the complement 1 - f, whose variance has the slope reversed.
    low = _least(share - half, at_zero, law.slope, law.curve, z)
    high = 1 - _least(1 - share - half, at_zero + law.slope, -np.asarray(law.slope), law.curve, z)
    return law.low + width * low, law.low + width * high


def _least(share: F64, at_zero: F64, slope: Numbers, curve: Numbers, z: float) -> F64:
    """The least f with share - f <= z sqrt(at_zero + slope f + curve f (1 - f)); below 0, the variance is that at 0."""
    at_zero = np.maximum(at_zero, 0)
    below = share - z * np.sqrt(at_zero)
    # Squaring share - f <= z sqrt(...) gives a quadratic inequality in f, valid where share - f is not negative.
    squares = 1 + z**2 * np.asarray(curve)
    middle = share + z**2 * (np.asarray(slope) + curve) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = share**2 - z**2 * at_zero
        # The smaller root of squares f^2 - 2 middle f + rest, in the form that subtracts nothing.
        root = rest / (middle + np.sqrt(np.maximum(middle**2 - squares * rest, 0)))
    return np.where(below <= 0, below, np.minimum(root, share))
