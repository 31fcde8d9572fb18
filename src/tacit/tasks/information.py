"""An interval for the mutual information of two attributes, by inverting a simulated test.

Near independence the plugged-in information is nothing like normal: it cannot be negative, and noise alone makes it
positive. So the interval holds those amounts of dependence under which the information that was seen is not unusual.
Dependence is scaled along one line through the table that was found: its interactions times t, the margins kept. The
law of what would be seen is simulated from the covariance that the mechanism states; docs/maths/association.md has
the coverage.
"""

from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from tacit.core.level import check_level
from tacit.core.normal import normal_isf
from tacit.post.marginal_answers import simplex
from tacit.post.marginal_nonneg import norm_sub_rows
from tacit.tasks.association import (
    Measured,
    entropy_gain,
    information_rows,
    mutual_information,
    sampling_covariance,
)
from tacit.tasks.marginals import Table

F64 = npt.NDArray[np.float64]

DRAWS = 1000
MOST_ANSWERS = 5
"""The most answers of an attribute up to which an interval is not of blocks of them."""

_FLOOR = 1e-6
_LARGEST = 64.0
_HALVINGS = 14
_SWEEPS = 60


@dataclass(frozen=True, eq=False)
class _Line:
    """Tables with the margins of one that was found and t times its interactions, as far as cells stay positive."""

    found: F64
    errors: F64
    """Draws of what noise and sampling add to a table, one row each."""

    def at(self, t: float) -> F64:
        """The table of one t: 0 is independence, 1 the table that was found."""
        rows, columns = self.found.sum(axis=1), self.found.sum(axis=0)
        level = np.outer(rows, columns)
        made = level + t * (self.found - level)
        if made.min() >= _FLOOR:
            return made
        made = np.maximum(made, _FLOOR)
        for _ in range(_SWEEPS):
            made = made * (rows / made.sum(axis=1))[:, None]
            made = made * (columns / made.sum(axis=0))
        return made

    def seen(self, t: float) -> F64:
        """The information that would be plugged in, in every draw."""
        shape = self.found.shape
        return information_rows(norm_sub_rows(self.at(t).ravel() + self.errors).reshape(-1, *shape))

    def information(self, t: float) -> float:
        """The true information at one t."""
        return entropy_gain(self.at(t))


def information_interval(
    table: Table, *, level: float = 0.95, population: bool = True, draws: int = DRAWS, seed: int = 0
) -> Measured:
    """Mutual information in nats, corrected for noise, with an interval that starts at zero where independence may be.

    The upper end is at least what a typical collection about independent attributes would give: information that
    happens to look smaller than noise alone makes it is no proof of independence. The draws come from `seed`, so that
    the same table has the same interval. `population` counts the respondents as a sample of more people.

    Noise hides where the dependence of a large table lies. Answers beyond five are therefore put together in blocks:
    blocks share no more information than the answers themselves, so their lower end holds, and the upper end is the
    most that so many answers may share.
    """
    check_level(level)
    corrected = mutual_information(table).corrected
    blocks = np.kron(_blocks(table.shape[0]), _blocks(table.shape[1]))
    shape = tuple(min(size, MOST_ANSWERS) for size in table.shape)
    cells, covariance = (blocks @ table.raw.value).reshape(shape), blocks @ table.covariance() @ blocks.T
    p = simplex(cells)
    if population:
        covariance = covariance + sampling_covariance(p, table.respondents)
    line = _Line(_inside(p), _errors(covariance, draws, seed))
    observed, tail = entropy_gain(p), (1 - level) / 2
    low = _lower(line, observed, tail)
    high = _upper(line, observed, tail) if shape == table.shape else log(min(table.shape))
    error = (high - low) / (2 * normal_isf(tail))
    return Measured(min(max(corrected, low), high), error, low, high)


def _blocks(answers: int) -> F64:
    """Which block of neighbouring answers every answer is in, one row each; all are alone where they are few."""
    out = np.zeros((min(answers, MOST_ANSWERS), answers))
    for row, places in zip(out, np.array_split(np.arange(answers), len(out)), strict=True):
        row[places] = 1.0
    return out


def _inside(p: F64) -> F64:
    """The table without empty cells, whose logarithms have no end."""
    lifted = np.maximum(p, _FLOOR)
    return lifted / lifted.sum()


def _errors(covariance: F64, draws: int, seed: int) -> F64:
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.clip(values, 0, None))
    half = np.random.default_rng(seed).standard_normal(((draws + 1) // 2, len(covariance)))
    # Draws come in pairs of opposite signs, which makes tails steadier.
    return np.concatenate([half, -half]) @ root.T


def _lower(line: _Line, observed: float, tail: float) -> float:
    """The least dependence under which so much information is not too rare."""

    def rare(t: float) -> bool:
        return float(np.mean(line.seen(t) >= observed)) <= tail

    if not rare(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while rare(high) and high < _LARGEST:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rare(middle) else (low, middle)
    return line.information(low)


def _upper(line: _Line, observed: float, tail: float) -> float:
    """The largest dependence under which so little information is not too rare."""
    at_least = max(observed, float(np.median(line.seen(0.0))))

    def rare(t: float) -> bool:
        return float(np.mean(line.seen(t) <= at_least)) <= tail

    low, high = 0.0, 1.0
    while not rare(high) and high < _LARGEST:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rare(middle) else (middle, high)
    return line.information(high)
