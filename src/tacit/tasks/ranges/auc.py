"""The area under the curve of a score: how often a positive scores higher than a negative, ties counting half.

With shares p of positives and q of negatives by score, the area is p' K q, where K is 1 below the diagonal and 1/2 on
it. Estimates of p and q from two collections are independent and unbiased, and so is the area; its exact variance is
a' P a + b' Q b + tr(K' P K Q) with a = K q, b = K' p and the covariances P, Q. From one collection of (score, label)
the numerator is a quadratic form of the cells, its expectation exceeds the truth by a trace that is taken off, and the
ratio to the product of the labels' shares has the variance of its first-order terms plus that of the quadratic one.
Kulkarni's dissertation, section 7.1, with ties counted and the variance for correlated cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.patience import check
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec
from tacit.post.grids.grid import MOST_CELLS
from tacit.tasks.ranges.ranges import Ranges
from tacit.tasks.ranges.rectangles import Rectangles

EXACT_SIZE = 128
"""Up to this many scores the variance is exact; above it the products of errors are bounded, which errs upwards."""

LEAST_SHARE = 3.0
"""A label's share must exceed this many standard errors for a ratio to be stated."""


@dataclass(frozen=True)
class Area:
    """The estimate and its variance; a value of None says that the data do not tell."""

    value: float | None
    variance: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a normal interval clipped to [0, 1]; all of it where nothing is known."""
        if self.value is None or not np.isfinite(self.variance):
            return 0.0, 1.0
        half = normal_isf((1 - level) / 2) * float(np.sqrt(self.variance))
        return max(0.0, self.value - half), min(1.0, self.value + half)

    def to_row(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers for JSON."""
        low, high = self.interval(level)
        error = float(np.sqrt(self.variance)) if self.value is not None and np.isfinite(self.variance) else None
        return {"estimate": self.value, "standard_error": error, "low": low, "high": high}


NOTHING = Area(None, np.inf)


def below(shares: F64) -> F64:
    """Return K @ shares: the mass below every score, and half of the mass at it (ties count half)."""
    return np.cumsum(shares) - shares / 2


def above(shares: F64) -> F64:
    """Return K.T @ shares: the mass above every score, and half of the mass at it (ties count half)."""
    return np.cumsum(shares[::-1])[::-1] - shares / 2


def covariances(linear: Callable[[F64], F64], size: int) -> F64:
    """Return the covariance matrix of the cells by polarisation: cov(i, j) = (var(i + j) - var(i) - var(j)) / 2."""
    first, second = np.triu_indices(size, 1)
    single, pairs = linear(np.eye(size)), np.zeros(0)
    # In blocks of pairs: all size^2/2 rows at once would need size^3/2 numbers of memory.
    for start in range(0, len(first), 4096):
        check()
        part = slice(start, start + 4096)
        rows = np.zeros((len(first[part]), size))
        at = np.arange(len(rows))
        rows[at, first[part]] = rows[at, second[part]] = 1.0
        pairs = np.append(pairs, linear(rows))
    matrix = np.diag(single)
    matrix[first, second] = matrix[second, first] = (pairs - single[first] - single[second]) / 2
    return matrix


def auc_of_two(positives: Ranges, negatives: Ranges) -> Area:
    """Return the area from two independent collections, of the positives' scores and of the negatives'."""
    if positives.size != negatives.size:
        raise InvalidSpec("auc: both collections must ask for the same scores")
    if positives.n == 0 or negatives.n == 0:
        return NOTHING
    a, b = below(negatives.leaves), above(positives.leaves)
    value = float(positives.leaves @ a)
    variance = float(positives.linear(a[None, :])[0] + negatives.linear(b[None, :])[0])
    if positives.size <= EXACT_SIZE and np.isfinite(variance):
        # The errors inside a and b have added the trace twice, on average; it belongs there once.
        p, q = covariances(positives.linear, positives.size), covariances(negatives.linear, negatives.size)
        order = np.tri(positives.size, k=-1) + np.eye(positives.size) / 2
        variance = max(0.0, variance - float(np.sum((order.T @ p @ order) * q)))
    return Area(value, variance)


def auc_of_labels(found: Rectangles) -> Area:
    """Return the area from one collection of (score, label); label 1 marks the positives."""
    if len(found.sizes) != 2 or found.sizes[1] != 2:
        raise InvalidSpec("auc: the question must have two attributes, a score and a label with two values")
    if found.fit.shape.cells > MOST_CELLS:
        raise InvalidSpec(f"auc: there are {found.sizes[0]} scores, must be at most {MOST_CELLS // 2}; group them")
    if found.n == 0:
        return NOTHING
    size, linear = found.sizes[0], found.fit.linear
    cells = found.fit.leaves.reshape(size, 2)
    negatives, positives = cells[:, 0], cells[:, 1]
    share, sides = float(positives.sum()), np.tile([0.0, 1.0], size)
    error = float(np.sqrt(linear(sides[None, :])[0]))
    if not np.isfinite(error) or min(share, 1 - share) <= LEAST_SHARE * error:
        return NOTHING
    # Cells are flat as (score, label): gradient of the numerator p' K q, with labels 0 (negatives) and 1 (positives).
    gradient = np.stack([above(positives), below(negatives)], axis=1).reshape(-1)
    whole, quadratic = share * (1 - share), 0.0
    if size <= EXACT_SIZE // 2:
        form = _form(size) @ covariances(linear, 2 * size)
        quadratic = 2 * float(np.sum(form * form.T))
    value = (float(positives @ below(negatives)) - _bias(linear, size)) / whole
    # Quotient rule for numerator / (share (1 - share)); `sides` picks the positives, whose sum is the share.
    slope = gradient / whole - value / whole * ((1 - share) * sides - share * sides)
    variance = float(linear(slope[None, :])[0]) - quadratic / whole**2
    return Area(value, max(0.0, variance) if np.isfinite(variance) else np.inf)


def _bias(linear: Callable[[F64], F64], size: int) -> float:
    """Return the bias of the numerator: the summed covariances of every positive cell with the negatives below it.

    E[p' K q] exceeds the truth by tr(K cov(q, p)), since both estimates come from the same reports.
    """
    order = np.tri(size, k=-1) + np.eye(size) / 2
    own, lower = np.zeros((size, size, 2)), np.zeros((size, size, 2))
    own[:, :, 1], lower[:, :, 0] = np.eye(size), order
    a, b = own.reshape(size, -1), lower.reshape(size, -1)
    return float(np.sum(linear(a + b) - linear(a) - linear(b))) / 2


def _form(size: int) -> F64:
    """Return the symmetric matrix A with numerator = x' A x over flat cells (score, label)."""
    order = np.tri(size, k=-1) + np.eye(size) / 2
    form = np.zeros((size, 2, size, 2))
    form[:, 1, :, 0], form[:, 0, :, 1] = order / 2, order.T / 2
    return form.reshape(2 * size, 2 * size)
