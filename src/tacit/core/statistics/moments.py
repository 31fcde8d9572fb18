"""Exact per-respondent moments of an unbiased estimator, from which every variance follows.

A frequency oracle that treats all values alike is described by four numbers: the variance of a respondent's
contribution to its own cell and to another cell, and the covariances of an (own, other) and an (other, other)
pair of cells. Single-cell variances, sums of cells and the average error over the domain are all read off here.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np

from tacit.arrays import F64
from tacit.core.statistics.score import Law

Sums = TypeVar("Sums", float, F64)
"""Sums over cells: of one answer, or of many."""


@dataclass(frozen=True)
class Moments:
    """(Co)variances of one respondent's contributions, on the scale where the true contribution is 0 or 1."""

    own: float
    """Variance of the contribution to the respondent's own cell."""
    other: float
    """Variance of the contribution to any other cell."""
    own_other: float = 0.0
    """Covariance of the contributions to the own cell and another one."""
    other_other: float = 0.0
    """Covariance of the contributions to two other cells."""

    def variance(self, frequency: F64) -> F64:
        """Return n times the variance of the estimates of cells with these true frequencies."""
        # In place, as domains have millions of values: other + frequency (own - other).
        variance = frequency * (self.own - self.other)
        variance += self.other
        return variance

    def combined(self, weights: F64, frequency: F64) -> F64:
        """Return n times the variance of `weights @ estimate`; rows of `weights` are answers, columns are cells.

        Respondents whose value is not among the cells count as holders of other values.
        """
        mass = np.clip(frequency, 0, None)
        mass = mass / max(1.0, float(mass.sum()))
        squares = weights**2
        return self.of_sums(weights.sum(axis=-1), squares.sum(axis=-1), weights @ mass, squares @ mass)

    def of_sums(self, weights: Sums, squares: Sums, mass: Sums, square_mass: Sums) -> Sums:
        """Return n times the variance of an answer, from four sums over the cells: w, w^2, w f and w^2 f.

        A respondent with value v adds w_v^2 own + A2 other + 2 w_v A1 own_other + (A1^2 - A2) other_other, where
        A1 and A2 are the sums of the other weights and of their squares; averaged over the respondents.
        """
        # The mean over respondents of w_v A1 and of A1^2 - A2, with A1 = weights - w_v and A2 = squares - w_v^2.
        own_pairs = weights * mass - square_mass
        other_pairs = weights**2 - squares - 2 * own_pairs
        return (
            square_mass * self.own
            + (squares - square_mass) * self.other
            + 2 * own_pairs * self.own_other
            + other_pairs * self.other_other
        )

    @property
    def step(self) -> float:
        """What one report changes about a cell: the distance of its two possible contributions, 1/(p - q) if pure.

        Contributions u and -l have variance u l about 0 and (u - 1)(1 + l) about 1, which gives u + l. Of kinds with
        more than two contributions it is a scale.
        """
        return float(np.sqrt(4 * self.other + (1 + self.own - self.other) ** 2))

    def law(self, scale: float, *, step: float | None = None) -> Law:
        """Return how the variance of cells depends on their true shares, for score intervals.

        `scale` is 1/n and `step` the weight share of the heaviest report. All cells are alike, so one number each.
        """
        slope, pairs = self.own - self.other, 2 * (self.own_other - self.other_other)
        return Law(slope=slope * scale, step=self.step * (scale if step is None else step), pairs=pairs * scale)

    def contrast(self, cells: float) -> float:
        """Return n times the variance per squared weight of a contrast of `cells` cells, respondents evenly spread.

        Their own spread, 1/cells, is in it: they are a random part of everybody.
        """
        return self.of_sums(0.0, 1.0, 0.0, 1 / cells) + 1 / cells

    def average(self, size: int) -> float:
        """Return n times the mean squared error averaged over the whole domain; it does not depend on the data."""
        return (self.own + (size - 1) * self.other) / size


@lru_cache(maxsize=1024)  # Fractions of 64-bit numbers are slow, and plans compare many sizes of the same p and q.
def pure_moments(p: Fraction, q: Fraction, own_other: Fraction, other_other: Fraction) -> Moments:
    """Return the moments of a pure oracle from its support probabilities, single and joint, all exact."""
    scale = (p - q) ** 2
    return Moments(
        own=float(p * (1 - p) / scale),
        other=float(q * (1 - q) / scale),
        own_other=float((own_other - p * q) / scale),
        other_other=float((other_other - q * q) / scale),
    )


def independent_moments(p: Fraction, q: Fraction) -> Moments:
    """Return the moments of a pure oracle whose supports of different values are independent given the true value."""
    return pure_moments(p, q, p * q, q * q)


def block_moments(m: int, k: int, p: Fraction) -> Moments:
    """Return the moments where reports are blocks of k of m points and any three points are alike.

    Subset selection and block designs: which points of a block are which follows by counting.
    """
    q = (k - p) / (m - 1)
    if m == 2:
        return pure_moments(p, q, Fraction(0), q * q)
    # The own point is in with probability p, and a block has then k - 1 of the other m - 1 points, else k of them.
    both = p * (k - 1) / (m - 1)
    pair = (p * (k - 1) * (k - 2) + (1 - p) * k * (k - 1)) / Fraction((m - 1) * (m - 2))
    return pure_moments(p, q, both, pair)
