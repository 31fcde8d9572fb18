"""One change of level at an unknown time: weighted CUSUM with its exact null law (A-CP).

Windows 0..k-1 against k..m-1, both means weighted by inverse variance:

    Z_k = (mean before - mean after) / sqrt(1/G_k + 1/(G - G_k)),    G_k the sum of the first k weights,

and the statistic is max |Z_k|. Under a constant level the Z_k are standard normal and a Markov chain, with correlation
sqrt(G_k (G - G_l) / (G_l (G - G_k))) for k < l: the probability that all stay within c is a chain of one-dimensional
integrals, evaluated here by quadrature. Nothing is simulated, and the variances may differ from window to window.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tacit.arrays import F64
from tacit.core.estimate import Target
from tacit.errors import InvalidSpec
from tacit.post.series.series import Series

_LEAST_NODES = 32
_NODES_PER_WIDTH = 1.4
"""Quadrature nodes per standard deviation of one step of the chain: the error of p is then below 1e-5."""
_MOST_NODES = 512
_FAR = 9.0
_LONG, _THINNED = 64, 8
"""Of series with more windows than this, every eighth split is looked at first."""


@dataclass(frozen=True)
class ChangePoint:
    """The likeliest change of one cell."""

    cell: int
    row: int
    """The first window (or group of windows) after the change."""
    statistic: float
    p_value: float
    """Probability of such a statistic anywhere, if nothing ever changed; a lower bound where `adjusted` is 1."""
    before: float
    after: float
    adjusted: float = 1.0
    """The p-value adjusted for the number of cells that were looked at (Holm)."""


def change_points(series: Series, *, target: Target = "population") -> list[ChangePoint]:
    """Return the likeliest change of every cell; `adjusted` below alpha is an alarm, false with probability alpha."""
    variance = series.variance(target)
    told = np.isfinite(variance).all(axis=1)
    if int(told.sum()) < 2:
        raise InvalidSpec("change points: fewer than two windows have reports")
    rows = np.flatnonzero(told)
    likeliest = [_cell(series.value[told, cell], variance[told, cell], cell, rows) for cell in range(series.cells)]
    return _holm(_weighed(likeliest, np.cumsum(1 / variance[told], axis=0)))


def _cell(value: F64, variance: F64, cell: int, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> ChangePoint:
    """The likeliest change of a cell; how probable it is by chance is computed later."""
    sums, score = change_scores(value, variance)
    k = int(np.argmax(np.abs(score)))
    weighted = np.cumsum(value / variance)
    before, after = weighted[k] / sums[k], (weighted[-1] - weighted[k]) / (sums[-1] - sums[k])
    statistic = float(abs(score[k]))
    # Score k splits behind window k, so that k + 1 is the first one after; `rows` puts windows without reports back in.
    return ChangePoint(cell, int(rows[k + 1]), statistic, 0.0, float(before), float(after))


def _weighed(found: list[ChangePoint], sums: F64) -> list[ChangePoint]:
    """The points with their p-values; where adjusting makes one of it anyway, with a lower bound of it.

    A chain of every few windows cannot exceed more often than that of all of them, and costs little. Cells are looked
    at from the smallest bound on, until all others are at least b and would be adjusted to one: of M cells with r
    before, (M - r) b >= 1.
    """
    some = sums[_thinned(len(sums))]
    p = {point.cell: exceedance(point.statistic, some[:, point.cell]) for point in found}
    open_, exact = set(p), list[float]()
    while open_:
        cell = min(open_, key=lambda one: p[one])
        if (len(p) - sum(known <= p[cell] for known in exact)) * p[cell] >= 1:
            break
        p[cell] = exceedance(found[cell].statistic, sums[:, cell])
        open_.remove(cell)
        exact.append(p[cell])
    return [replace(point, p_value=p[point.cell]) for point in found]


def _thinned(windows: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Some of the partial sums, the last one among them: all of a short series."""
    if windows <= _LONG:
        return np.arange(windows)
    return np.append(np.arange(_THINNED - 1, windows - 1, _THINNED), windows - 1)


def change_scores(value: F64, variance: F64) -> tuple[F64, F64]:
    """Return the partial sums of the weights, and Z_k for k = 1..m-1."""
    weights = 1 / variance
    sums, weighted = np.cumsum(weights), np.cumsum(weights * value)
    first, rest = sums[:-1], sums[-1] - sums[:-1]
    gap = weighted[:-1] / first - (weighted[-1] - weighted[:-1]) / rest
    return sums, gap / np.sqrt(1 / first + 1 / rest)


def exceedance(statistic: float, sums: F64) -> float:
    """Return Pr[max |Z_k| > statistic] under a constant level, from the partial sums of the weights.

    >>> round(exceedance(2.81, np.cumsum(np.ones(20))), 2)
    0.05
    """
    if statistic <= 0:
        return 1.0
    first, rest = sums[:-1], sums[-1] - sums[:-1]
    # Correlation of neighbours in the chain; the time in which it is stationary is half the logarithm of first/rest.
    rho = np.exp(-np.diff(np.log(first / rest)) / 2)
    sd = np.sqrt(np.maximum(1 - rho**2, 1e-12))
    narrowest = float(sd.min()) if len(sd) else 1.0
    nodes = int(np.clip(_NODES_PER_WIDTH * 2 * statistic / narrowest, _LEAST_NODES, _MOST_NODES))
    at, weight = _half_nodes(nodes + nodes % 2)
    # Legendre's nodes are for -1 .. 1; the integrals run over -statistic .. statistic.
    at, weight = at * statistic, 2 * weight * statistic
    density = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
    for step_rho, step_sd in zip(rho, sd, strict=True):
        # The density of Z_k over paths that have stayed within so far, moved on by one step of the chain. It is even,
        # so that one half of it says everything: a path comes from z or from -z.
        near, far = at[:, None] / step_sd, step_rho / step_sd * at[None, :]
        kernel = np.exp(-((near - far) ** 2) / 2)
        # From the other side a step comes near zero alone: beyond nine standard deviations it is below 1e-17.
        inner = int(np.count_nonzero(at < _FAR * step_sd))
        kernel[:inner] += np.exp(-((near[:inner] + far) ** 2) / 2)
        density = kernel @ (weight * density) / (2 * step_sd * np.sqrt(2 * np.pi))
    return float(np.clip(1 - weight @ density, 0, 1))


@lru_cache(maxsize=64)
def _half_nodes(nodes: int) -> tuple[F64, F64]:
    """The positive half of Legendre's nodes and weights, of an even number of nodes."""
    at, weight = np.polynomial.legendre.leggauss(nodes)
    return at[nodes // 2 :], weight[nodes // 2 :]


def change_threshold(sums: F64, alpha: float) -> float:
    """Return the statistic that is exceeded with probability alpha under a constant level, by bisection."""
    low, high = 0.5, 10.0
    # Forty halvings leave less than 1e-11; the upper end is returned, so that rounding adds no false alarms.
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if exceedance(middle, sums) > alpha else (low, middle)
    return high


def look_level(alpha: float, look: int) -> float:
    """Return the level of the look-th look at a growing series, so that all looks together keep alpha.

    alpha 6/(pi^2 j^2): the sum over j = 1, 2, ... is alpha.
    """
    return alpha * 6 / (np.pi**2 * look**2)


def _holm(found: list[ChangePoint]) -> list[ChangePoint]:
    """Adjust p-values for looking at several cells (Holm 1979); valid however the cells depend on each other."""
    order = sorted(range(len(found)), key=lambda i: found[i].p_value)
    adjusted, so_far = dict[int, float](), 0.0
    for rank, i in enumerate(order):
        # The running maximum keeps adjusted p-values in the order of the raw ones.
        so_far = max(so_far, min(1.0, (len(found) - rank) * found[i].p_value))
        adjusted[i] = so_far
    return [replace(point, adjusted=adjusted[i]) for i, point in enumerate(found)]
