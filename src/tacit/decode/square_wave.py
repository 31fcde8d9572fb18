"""The distribution behind square-wave reports: maximum likelihood by EM, and EM with smoothing (EMS). Biased.

The probability of an output is `far` plus `near - far` times the mass of the numbers whose window holds it, so that
both products with the matrix of the mechanism are differences of running sums, in O(size). Li, Wang,
Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions under local differential privacy", SIGMOD 2020.
"""

import numpy as np

from tacit.arrays import F64
from tacit.core.patience import check
from tacit.numeric.square_wave import SquareWave

MOST_STEPS = 10_000
_TOLERANCE = 1e-3
"""Steps end when the log-likelihood changes by less: times e^epsilon for EM, which moves on slowly for long."""
_LOOK = 10
"""The likelihood is looked at after so many steps."""


def report_shares(mechanism: SquareWave, shares: F64) -> F64:
    """Return the probabilities of all outputs, given shares of the numbers (a vector, or one row per distribution)."""
    sums = np.cumsum(np.pad(shares, [(0, 0)] * (shares.ndim - 1) + [(1, 0)]), axis=-1)
    last = np.arange(1, mechanism.outputs + 1)
    # Output k is in the windows of the numbers k - width + 1 .. k, as far as these exist.
    inside = sums[..., np.minimum(last, mechanism.size)] - sums[..., np.maximum(0, last - mechanism.width)]
    return mechanism.far * sums[..., -1:] + (mechanism.near - mechanism.far) * inside


def _back(mechanism: SquareWave, ratios: F64) -> F64:
    """The transposed product: by number, the sum over outputs of its probability times a ratio."""
    sums = np.cumsum(np.pad(ratios, [(0, 0)] * (ratios.ndim - 1) + [(1, 0)]), axis=-1)
    first = np.arange(mechanism.size)
    inside = sums[..., first + mechanism.width] - sums[..., first]
    return mechanism.far * sums[..., -1:] + (mechanism.near - mechanism.far) * inside


def smoothed(shares: F64) -> F64:
    """Return shares averaged with their neighbours by 1 : 2 : 1, at the ends by 2 : 1, summing to what they did."""
    padded = np.pad(shares, [(0, 0)] * (shares.ndim - 1) + [(1, 1)])
    weights = np.full(shares.shape[-1], 4.0)
    weights[[0, -1]] = 3.0
    mixed = (padded[..., :-2] + 2 * shares + padded[..., 2:]) / weights
    return mixed * (shares.sum(axis=-1, keepdims=True) / mixed.sum(axis=-1, keepdims=True))


def fit_wave(mechanism: SquareWave, cells: F64, *, smooth: bool) -> F64:
    """Return the fitted shares of all numbers from counts of outputs; of several rows of counts, as many rows.

    Every step multiplies a share by how much better it explains the reports than average. With `smooth` each is
    followed by averaging neighbours (EMS): right for smooth distributions, with a bias on spikes.

    >>> m = SquareWave(size=8, epsilon="4")
    >>> fit_wave(m, 1000 * report_shares(m, np.array([0, 0, 0.5, 0, 0, 0, 0.5, 0])), smooth=False).round(2).tolist()
    [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.5, 0.0]
    """
    rows = np.atleast_2d(np.asarray(cells, np.float64))
    total = np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    fitted = np.full((len(rows), mechanism.size), 1 / mechanism.size)
    tolerance = _TOLERANCE * (1.0 if smooth else mechanism.near / mechanism.far)
    moving, before = np.arange(len(rows)), np.full(len(rows), -np.inf)
    for step in range(MOST_STEPS):
        expected = report_shares(mechanism, fitted[moving])
        if step % _LOOK == 0:
            check()
            likelihood = (rows[moving] * np.log(expected)).sum(axis=1)
            # A change over several steps is compared with as many times the tolerance of one.
            still = np.abs(likelihood - before[moving]) >= _LOOK * tolerance
            before[moving] = likelihood
            moving, expected = moving[still], expected[still]
            if not len(moving):
                break
        better = fitted[moving] * _back(mechanism, rows[moving] / expected) / total[moving]
        fitted[moving] = smoothed(better) if smooth else better
    fitted /= fitted.sum(axis=1, keepdims=True)
    return fitted if np.ndim(cells) > 1 else fitted[0]
