"""Effective cohort size: how evenly the rows of a cell weigh in its answer, from public measures alone.

A row's report counts with a public weight: 1 in COUNT, the measure in SUM. A measure such as 1/((id - 1)^2 + 1e-12)
gives one row nearly all the weight, so that the answer is that row's noisy report, however many rows there are. The
number of rows that matter is the effective one, (sum |w|)^2 / sum w^2 (Kish, Survey Sampling, 1965, section 11.7):
n for equal weights, k where k rows weigh alike and the others nothing.
"""

from dataclasses import dataclass

import numpy as np

from tacit.arrays import F64, I64, Mask

_ROUNDING = 8 * 2.0**-52
"""A few units of double precision: deviations of this size relative to the mean are rounding, the measure constant."""


@dataclass(frozen=True)
class RowWeights:
    """Central moments of the public measure over the rows of one cell whose reports are used."""

    n: int = 0
    mean: float = 0.0
    second: float = 0.0
    """Sum of squared deviations from the mean; `third` and `fourth` are the sums of their third and fourth powers."""
    third: float = 0.0
    fourth: float = 0.0
    size: float = 0.0
    """Sum of absolute values."""
    balance: float = 0.0
    """Sum of the signs of the deviations, which `apart` needs when the mean moves."""
    apart: float = 0.0
    """Sum of absolute deviations from the mean; a lower bound of it where several pieces were added."""

    def effective(self, function: str) -> float:
        """Kish's effective number of rows of an aggregate: the least over the weights that it gives them.

        COUNT weighs all rows alike, and SUM by the measure. AVG weighs by the measure, and by its deviation from the
        mean, since adding a constant to a measure singles nobody out. VARIANCE and STDDEV weigh by the deviation and
        by its square.
        """
        if function == "count":
            return float(self.n)
        if function == "sum":
            return self._of(self.size, self.second + self.n * self.mean**2)
        if self.second <= self.n * (_ROUNDING * self.mean) ** 2:
            return float(self.n)
        apart = self._of(self.apart, self.second)
        if function == "avg":
            return min(apart, self.effective("sum"))
        return min(apart, self._of(self.second, self.fourth))

    def _of(self, total: float, squares: float) -> float:
        """(sum |w|)^2 / sum w^2; all n where all weights are zero, as the answer then depends on no report."""
        return max(0.0, total) ** 2 / squares if squares > 0 else float(self.n)

    def squares(self, polynomial: F64, centre: float) -> float:
        """The sum over rows of w(x - centre)^2, for a polynomial w of degree two at most."""
        # Shift w to the mean, w = a + b d + c d^2 with d = x - mean; then sum w^2 is linear in the central moments
        # (the sum of d is zero), without the cancellation of raw powers.
        a, b, c, *_ = (*polynomial.tolist(), 0.0, 0.0)
        shift = self.mean - centre
        a, b = a + b * shift + c * shift**2, b + 2 * c * shift
        return self.n * a * a + (b * b + 2 * a * c) * self.second + 2 * b * c * self.third + c * c * self.fourth


_FIELDS = ("mean", "second", "third", "fourth", "size", "balance", "apart")


@dataclass(frozen=True, eq=False)
class Weights:
    """`RowWeights` of many groups, a column each; the moments of disjoint sets of rows can be added stably."""

    n: I64
    moments: F64
    """An array of (fields of `RowWeights` after n) x (groups)."""

    def __add__(self, other: "Weights") -> "Weights":
        """Moments of both sets of rows, around their common mean (Pébay, 2008, equations 2.1 and 3.1)."""
        n = self.n + other.n
        # a and b are the shares of the two sets, d is the difference of their means.
        whole, a, b = np.maximum(1, n), self.n / np.maximum(1, n), other.n / np.maximum(1, n)
        mean, second, third, fourth, size, balance, apart = (self.moments[i] for i in range(len(_FIELDS)))
        theirs = other.moments
        d = np.where(other.n > 0, np.where(self.n > 0, theirs[0] - mean, 0.0), 0.0)
        found: list[F64] = [
            np.where(self.n > 0, mean + d * b, theirs[0]),
            second + theirs[1] + whole * a * b * d**2,
            third + theirs[2] + whole * a * b * (a - b) * d**3 + 3 * d * (a * theirs[1] - b * second),
            fourth + theirs[3] + whole * a * b * (a * a - a * b + b * b) * d**4
            + 6 * d**2 * (a * a * theirs[1] + b * b * second) + 4 * d * (a * theirs[2] - b * third),
            size + theirs[4],
            balance + theirs[5],
            # sum |x - m'| >= sum sign(x - m) (x - m') = apart - balance * (m' - m): the signs stay those around the
            # piece's own mean m, so that this is a lower bound, and the effective number of rows errs downwards.
            apart - balance * d * b + theirs[6] + theirs[5] * d * a,
        ]  # fmt: skip
        return Weights(n, np.array(found))

    def placed(self, places: I64, count: int) -> "Weights":
        """Renumber groups: group i becomes group `places[i]` of `count`; the others are empty."""
        n, moments = np.zeros(count, np.int64), np.zeros((len(_FIELDS), count))
        n[places], moments[:, places] = self.n, self.moments
        return Weights(n, moments)

    def group(self, g: int) -> RowWeights:
        """The weights of one group."""
        return RowWeights(int(self.n[g]), *self.moments[:, g].tolist())


def no_weights(groups: int) -> Weights:
    """The neutral element of addition: weights of no rows."""
    return Weights(np.zeros(groups, np.int64), np.zeros((len(_FIELDS), groups)))


def weights_of(measure: F64 | None, masks: tuple[Mask | None, ...], codes: I64 | None, groups: int, n: int) -> Weights:
    """Moments of a measure over the rows where all masks hold, by group; without a measure only counts.

    `codes` is the group of every row, None where there is only one group.
    """
    chosen = [mask for mask in masks if mask is not None]
    rows = np.logical_and.reduce(chosen) if chosen else slice(0, n)
    places = np.zeros(n, np.int64)[rows] if codes is None else codes[rows]
    count = np.bincount(places, minlength=groups)
    if measure is None:
        return Weights(count.astype(np.int64), no_weights(groups).moments)
    x = measure[rows]

    def sums(values: F64) -> F64:
        return np.asarray(np.bincount(places, values, groups), np.float64)

    # Two passes, the mean first, so that large measures of small spread do not cancel.
    mean = sums(x) / np.maximum(1, count)
    off = x - mean[places]
    square = off * off
    found = [mean, sums(square), sums(square * off), sums(square * square), sums(np.abs(x)), sums(np.sign(off))]
    return Weights(count.astype(np.int64), np.array([*found, sums(np.abs(off))]))
