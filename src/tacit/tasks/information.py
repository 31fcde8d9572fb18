"""An interval for the mutual information of two attributes, by projecting a confidence region of tables.

Near independence the plugged-in information is nothing like normal: it cannot be negative, and noise alone makes it
positive. Under strong dependence some cells are nearly empty, and cutting the raw table to what a table can be moves
it. So the interval holds the information of every table that the raw one does not contradict: those within the
chi-square distance that the covariance of the mechanism and of sampling gives. Coverage: docs/maths/association.md.
"""

from math import log

import numpy as np
import numpy.typing as npt

from tacit.core.level import check_level
from tacit.core.normal import normal_isf
from tacit.post.marginal_answers import simplex
from tacit.tasks.association import Measured, chi_square_tail, mutual_information, sampling_covariance
from tacit.tasks.information_region import Region, least_and_most, nearest_table
from tacit.tasks.marginals import Table

F64 = npt.NDArray[np.float64]

MOST_ANSWERS = 5
"""The most answers of an attribute up to which an interval is not of blocks of them."""

_EVEN = 0.001
"""How much of an even table is mixed into the one whose covariance is taken, so that no cell is known for certain."""

_EMPTY = 1e-9
_WIDER = 1e-3


def information_interval(table: Table, *, level: float = 0.95, population: bool = True) -> Measured:
    """Mutual information in nats, corrected for noise, with an interval that starts at zero where independence may be.

    `population` counts the respondents as a sample of more people.

    Noise hides where the dependence of a large table lies. Answers beyond five are therefore put together in blocks:
    blocks share no more information than the answers themselves, so their lower end holds, and the upper end is the
    most that so many answers may share.
    """
    check_level(level)
    corrected = mutual_information(table).corrected
    blocks = np.kron(_blocks(table.shape[0]), _blocks(table.shape[1]))
    rows, columns = (min(size, MOST_ANSWERS) for size in table.shape)
    covariance = blocks @ _covariance(table, population) @ blocks.T
    low, high = _ends((rows, columns), blocks @ table.raw.value, covariance, level)
    most = log(min(table.shape))
    if (rows, columns) != table.shape:
        high = most
    low, high = max(0.0, low), min(most, high)
    error = (high - low) / (2 * normal_isf((1 - level) / 2))
    return Measured(min(max(corrected, low), high), error, low, high)


def _covariance(table: Table, population: bool) -> F64:
    """What noise and sampling do to the cells of a table like the one that was found, but without an empty cell."""
    found = simplex(table.raw.value.reshape(table.shape))
    truth = (1 - _EVEN) * found + _EVEN / found.size
    covariance = table.covariance_at(truth)
    return covariance + sampling_covariance(truth, table.respondents) if population else covariance


def _ends(shape: tuple[int, int], cells: F64, covariance: F64, level: float) -> tuple[float, float]:
    """The least and the most information of the tables that a raw one does not contradict."""
    metric = _inverse(covariance)
    nearest = nearest_table(cells, metric)
    distance = float((nearest - cells) @ metric @ (nearest - cells))
    interactions = chi_square_quantile(level, (shape[0] - 1) * (shape[1] - 1))
    # Margins are free to follow the interactions, unless a cell is at its end.
    limit = interactions if nearest.min() > _EMPTY else chi_square_quantile(level, len(cells) - 1)
    region = Region(shape, cells, metric, max(limit, distance + interactions))
    try:
        low, high = least_and_most(region, nearest)
    except np.linalg.LinAlgError:
        return 0.0, np.inf  # Too ill-conditioned to look for the ends: all that can be is in the interval.
    return low - _WIDER, high + _WIDER


def _inverse(covariance: F64) -> F64:
    """The inverse of a covariance; a total that is known for certain counts as known as well as a cell."""
    cells = len(covariance)
    ones = np.full((cells, cells), 1 / cells)
    known = covariance - ones @ covariance - covariance @ ones + ones @ covariance @ ones
    scale = float(np.trace(known)) / cells
    whole = (known + known.T) / 2 + (scale + _EMPTY) * ones + 1e-9 * scale * np.eye(cells)
    return np.asarray(np.linalg.inv(whole), np.float64)


def chi_square_quantile(level: float, degrees: int) -> float:
    """The value that a chi-square of so many degrees exceeds with probability 1 - level.

    >>> round(chi_square_quantile(0.95, 1), 4), round(chi_square_quantile(0.95, 24), 4)
    (3.8415, 36.415)
    """
    low, high = 0.0, 1.0
    while chi_square_tail(high, degrees) > 1 - level:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chi_square_tail(middle, degrees) > 1 - level else (low, middle)
    return high


def _blocks(answers: int) -> F64:
    """Which block of neighbouring answers every answer is in, one row each; all are alone where they are few."""
    out = np.zeros((min(answers, MOST_ANSWERS), answers))
    for row, places in zip(out, np.array_split(np.arange(answers), len(out)), strict=True):
        row[places] = 1.0
    return out
