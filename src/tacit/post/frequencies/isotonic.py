"""Isotonic regression: the nearest sequence that never falls (or never rises), by pooling adjacent violators."""

from dataclasses import replace

import numpy as np

from tacit import kernels
from tacit.arrays import F64
from tacit.core.estimate import Estimate
from tacit.errors import InvalidSpec
from tacit.post.frequencies.simplex import finite


def isotonic_regression(values: F64, weights: F64 | None = None, *, increasing: bool = True) -> F64:
    """Return the monotone sequence nearest to the values in (weighted) least squares, in linear time.

    Equal to max over i <= k of min over j >= i of the mean of values i to j. Values that are in order come back bit
    for bit. Hay et al., "Boosting the accuracy of differentially private histograms through consistency", VLDB
    2010, theorem 1.

    >>> isotonic_regression(np.array([1.0, 3.0, 2.0, 2.0, 5.0])).tolist()
    [1.0, 2.3333333333333335, 2.3333333333333335, 2.3333333333333335, 5.0]
    """
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InvalidSpec("isotonic: the values must be a vector of finite numbers")
    checked = None if weights is None else np.asarray(weights, np.float64)
    if checked is not None and (checked.shape != array.shape or not (np.isfinite(checked) & (checked > 0)).all()):
        raise InvalidSpec("isotonic: the weights must be positive and finite, one per value")
    if increasing:
        return kernels.isotonic(array, checked)
    return -kernels.isotonic(-array, checked)


def monotone_distribution(cumulative: F64, weights: F64 | None = None) -> F64:
    """Return the nearest distribution function to cumulative frequencies at boundaries 0 .. d.

    It never falls, lies within [0, 1], and ends at 0 and 1: the exact projection onto such functions (clipping after
    isotonic regression is, for any weights). So the sum of squared errors of the prefixes never grows.
    """
    if len(cumulative) < 3:
        return np.array([0.0, 1.0])
    return np.concatenate([[0.0], isotonic_regression(cumulative[1:-1], weights).clip(0, 1), [1.0]])


def monotone_shares(value: F64) -> F64:
    """Return the shares whose prefixes are the nearest distribution function to those of the values (Monotone). Biased.

    The values are first moved to a sum of one. The i-th prefix of d independent cells then has a variance in proportion
    to i (d - i)/d, and is trusted accordingly. Made for ranges of ordered cells: a single cell may move far.

    >>> monotone_shares(np.array([0.5, -0.1, 0.4, 0.2])).round(3).tolist()
    [0.457, 0.0, 0.343, 0.2]
    """
    d = len(finite(value))
    inner = np.arange(1.0, d)
    moved = value + (1 - value.sum()) / d
    return np.diff(monotone_distribution(np.append(0.0, np.cumsum(moved)), d / (inner * (d - inner))))


def isotonic(estimate: Estimate, *, increasing: bool = True, weighted: bool = False) -> Estimate:
    """Make an estimate monotone in the order of its cells; `weighted` trusts cells by their variance. Biased.

    The variance stays that of the raw estimate, and an estimate without data is returned as it is.
    """
    if not estimate.has_data:
        return estimate
    weights = 1 / estimate.variance if weighted else None
    value = isotonic_regression(estimate.value, weights, increasing=increasing)
    return replace(estimate, value=value, covariance=None)
