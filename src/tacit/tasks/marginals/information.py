"""An interval for the mutual information of two attributes, by projecting a confidence region of tables.

Near independence the plugged-in information is nothing like normal: it cannot be negative, and noise alone makes it
positive. Under strong dependence some cells are nearly empty, and cutting the raw table to what a table can be moves
it. So the interval holds the information of every table that the raw one does not contradict: those within the
chi-square distance that the covariance of the mechanism and of sampling gives. Coverage: docs/maths/association.md.
"""

from math import log

import numpy as np

from tacit.arrays import F64
from tacit.core.statistics.chi_square import chi_square_tail
from tacit.core.statistics.level import check_level
from tacit.core.statistics.normal import normal_isf
from tacit.post.views.answers import simplex
from tacit.tasks.marginals.association import Measured, mutual_information, sampling_covariance
from tacit.tasks.marginals.information_region import TableRegion, least_and_most, nearest_table
from tacit.tasks.marginals.marginals import Table

MOST_ANSWERS = 5
"""Attributes with more answers than this are coarsened to so many blocks of neighbouring answers."""

_EVEN = 0.001
"""The share of the uniform table mixed into the plug-in truth, so that no cell's variance vanishes."""

_EMPTY = 1e-9
"""Shares below this count as empty cells, on the boundary of the simplex."""
_WIDER = 1e-3
"""Nats added at both ends for the accuracy of the interior-point search, which stops short of the boundary."""


def information_interval(table: Table, *, level: float = 0.95, population: bool = True) -> Measured:
    """Mutual information in nats, corrected for noise, with an interval that starts at zero where independence may be.

    `population` counts the respondents as a sample of more people.

    Noise hides where the dependence of a large table lies. Answers beyond five are therefore put together in blocks:
    blocks share no more information than the answers themselves, so their lower end holds, and the upper end is the
    most that so many answers may share.
    """
    check_level(level)
    corrected = mutual_information(table).corrected
    # `blocks` sums the flat cells to those of the coarsened table; it is the identity up to five answers a side.
    blocks = np.kron(_blocks(table.shape[0]), _blocks(table.shape[1]))
    rows, columns = (min(size, MOST_ANSWERS) for size in table.shape)
    covariance = blocks @ _covariance(table, population) @ blocks.T
    low, high = _ends((rows, columns), blocks @ table.cells.ravel(), covariance, level)
    most = log(min(table.shape))
    if (rows, columns) != table.shape:
        high = most
    low, high = max(0.0, low), min(most, high)
    # A nominal standard error from the interval's width, for displays that want one; the interval itself is skew.
    error = (high - low) / (2 * normal_isf((1 - level) / 2))
    return Measured(min(max(corrected, low), high), error, low, high)


def _covariance(table: Table, population: bool) -> F64:
    """Return the covariance of the cells, noise and sampling, at a truth near the estimate that has no empty cell."""
    estimated = simplex(table.cells)
    truth = (1 - _EVEN) * estimated + _EVEN / estimated.size
    covariance = table.covariance_at(truth)
    return covariance + sampling_covariance(truth, table.respondents) if population else covariance


def _ends(shape: tuple[int, int], cells: F64, covariance: F64, level: float) -> tuple[float, float]:
    """Return the least and the most information over the confidence region of tables around the raw one."""
    metric = _inverse(covariance)
    nearest = nearest_table(cells, metric)
    distance = float((nearest - cells) @ metric @ (nearest - cells))
    interactions = chi_square_quantile(level, (shape[0] - 1) * (shape[1] - 1))
    # Degrees of freedom: the margins are nuisance parameters that can follow the (r-1)(c-1) interactions. With an
    # empty cell they are not free any more, and the conservative number of all cells is used.
    limit = interactions if nearest.min() > _EMPTY else chi_square_quantile(level, len(cells) - 1)
    # A raw table far outside the simplex would leave an empty region: let it reach past the nearest table.
    region = TableRegion(shape, cells, metric, max(limit, distance + interactions))
    try:
        low, high = least_and_most(region, nearest)
    except np.linalg.LinAlgError:
        return 0.0, np.inf  # Too ill-conditioned to look for the ends: all that can be is in the interval.
    return low - _WIDER, high + _WIDER


def _inverse(covariance: F64) -> F64:
    """Invert a covariance matrix that is singular along the total, which is known exactly.

    The variance along the all-ones direction is set to that of an average cell. Tables in the region all add up to one,
    so the choice cancels; it only has to keep the matrix well-conditioned.
    """
    # Project out the total on both sides, then put a variance back along it; the tiny ridge guards empty cells.
    cells = len(covariance)
    ones = np.full((cells, cells), 1 / cells)
    known = covariance - ones @ covariance - covariance @ ones + ones @ covariance @ ones
    scale = float(np.trace(known)) / cells
    whole = (known + known.T) / 2 + (scale + _EMPTY) * ones + 1e-9 * scale * np.eye(cells)
    return np.asarray(np.linalg.inv(whole), np.float64)


def chi_square_quantile(level: float, degrees: int) -> float:
    """Return the quantile of the chi-square distribution, by bisection on its tail.

    >>> round(chi_square_quantile(0.95, 1), 4), round(chi_square_quantile(0.95, 24), 4)
    (3.8415, 36.415)
    """
    # Double until the quantile is bracketed; 60 halvings are below the resolution of a float.
    low, high = 0.0, 1.0
    while chi_square_tail(high, degrees) > 1 - level:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chi_square_tail(middle, degrees) > 1 - level else (low, middle)
    return high


def _blocks(answers: int) -> F64:
    """Return the 0/1 matrix (blocks x answers) of neighbouring answers merged; the identity where answers are few."""
    out = np.zeros((min(answers, MOST_ANSWERS), answers))
    for row, places in zip(out, np.array_split(np.arange(answers), len(out)), strict=True):
        row[places] = 1.0
    return out
