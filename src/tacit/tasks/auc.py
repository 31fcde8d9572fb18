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
import numpy.typing as npt

from tacit.core.normal import normal_isf
from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.tasks.ranges import Ranges
from tacit.tasks.rectangles import Rectangles

F64 = npt.NDArray[np.float64]

EXACT_SIZE = 128
"""Up to this many scores the products of errors are worked out; above it they are bounded, which is never too small."""

LEAST_SHARE = 3.0
"""A label's share must exceed this many standard errors for a ratio to be stated."""


@dataclass(frozen=True)
class Area:
    """The estimate and its variance; a value of None says that the data do not tell."""

    value: float | None
    variance: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A normal interval within 0 and 1; all of it where nothing is known."""
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
    """K times shares: what lies below every score, and half of what is at it."""
    return np.cumsum(shares) - shares / 2


def above(shares: F64) -> F64:
    """K' times shares: what lies above every score, and half of what is at it."""
    return np.cumsum(shares[::-1])[::-1] - shares / 2


def covariances(linear: Callable[[F64], F64], size: int) -> F64:
    """All covariances of the cells, from the variances of sums of two."""
    first, second = np.triu_indices(size, 1)
    single, pairs = linear(np.eye(size)), np.zeros(0)
    for start in range(0, len(first), 4096):
        check()
        part = slice(start, start + 4096)
        rows = np.zeros((len(first[part]), size))
        at = np.arange(len(rows))
        rows[at, first[part]] = rows[at, second[part]] = 1.0
        pairs = np.append(pairs, linear(rows))
    found = np.diag(single)
    found[first, second] = found[second, first] = (pairs - single[first] - single[second]) / 2
    return found


def auc_of_two(positives: Ranges, negatives: Ranges) -> Area:
    """The area from one collection of the positives' scores and one of the negatives'."""
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
    """The area from one collection of (score, label), label 1 being the positives."""
    if len(found.sizes) != 2 or found.sizes[1] != 2:
        raise InvalidSpec("auc: the question must have two attributes, a score and a label with two values")
    if found.n == 0:
        return NOTHING
    size, linear = found.sizes[0], found.fit.linear
    cells = found.fit.leaves.reshape(size, 2)
    negatives, positives = cells[:, 0], cells[:, 1]
    share, sides = float(positives.sum()), np.tile([0.0, 1.0], size)
    error = float(np.sqrt(linear(sides[None, :])[0]))
    if not np.isfinite(error) or min(share, 1 - share) <= LEAST_SHARE * error:
        return NOTHING
    gradient = np.stack([above(positives), below(negatives)], axis=1).reshape(-1)
    whole, quadratic = share * (1 - share), 0.0
    if size <= EXACT_SIZE // 2:
        form = _form(size) @ covariances(linear, 2 * size)
        quadratic = 2 * float(np.sum(form * form.T))
    value = (float(positives @ below(negatives)) - _bias(linear, size)) / whole
    slope = gradient / whole - value / whole * ((1 - share) * sides - share * sides)
    variance = float(linear(slope[None, :])[0]) - quadratic / whole**2
    return Area(value, max(0.0, variance) if np.isfinite(variance) else np.inf)


def _bias(linear: Callable[[F64], F64], size: int) -> float:
    """What the products of errors add to the numerator: the covariances of every positive with what is below it."""
    order = np.tri(size, k=-1) + np.eye(size) / 2
    own, lower = np.zeros((size, size, 2)), np.zeros((size, size, 2))
    own[:, :, 1], lower[:, :, 0] = np.eye(size), order
    a, b = own.reshape(size, -1), lower.reshape(size, -1)
    return float(np.sum(linear(a + b) - linear(a) - linear(b))) / 2


def _form(size: int) -> F64:
    """The symmetric matrix A with numerator = x' A x over cells (score, label)."""
    order = np.tri(size, k=-1) + np.eye(size) / 2
    found = np.zeros((size, 2, size, 2))
    found[:, 1, :, 0], found[:, 0, :, 1] = order / 2, order.T / 2
    return found.reshape(2 * size, 2 * size)
