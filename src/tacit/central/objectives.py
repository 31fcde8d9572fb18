"""Objectives (loss functions) of count mechanisms: share of wrong answers, mean distance, mean squared error.

Not local. Kulkarni, dissertation, Definition 21.
"""

import re
from dataclasses import dataclass
from math import comb

import numpy as np

from tacit.arrays import F64
from tacit.errors import InvalidSpec

_NAME = re.compile(r"l([012])(?:,([0-9]{1,3}))?", re.IGNORECASE)


@dataclass(frozen=True)
class Objective:
    """The mean (or the worst) of |i - j|^power over outputs more than `beyond` away from the truth.

    Power 0 counts such outputs. A prior weights the true counts; by default all weigh the same. `worst` takes the
    largest weighted cost of a count instead of the sum. Kulkarni, dissertation, Definition 21; where the text has
    distances of at least d, "more than d" is meant, as L0 = L0,0 shows.

    >>> Objective.parse("l0,1")
    Objective(power=0, beyond=1, worst=False, prior=None)
    """

    power: int = 0
    beyond: int = 0
    worst: bool = False
    prior: tuple[float, ...] | None = None

    @classmethod
    def parse(cls, name: str, *, worst: bool = False, prior: "tuple[float, ...] | None" = None) -> "Objective":
        """Return an objective from its name: l0, l0,d, l1, l2."""
        match = _NAME.fullmatch(name.strip())
        if not match:
            raise InvalidSpec(f'objective is {name[:40]!r}, must be l0, l1, l2, or one with a distance such as "l0,1"')
        return cls(int(match[1]), int(match[2] or 0), worst, prior)

    def weights(self, n: int) -> F64:
        """Return the weights of the true counts 0 .. n; they sum to 1."""
        if self.prior is None:
            return np.full(n + 1, 1 / (n + 1))
        prior = np.asarray(self.prior, np.float64)
        if prior.shape != (n + 1,) or not np.all(np.isfinite(prior) & (prior >= 0)) or not prior.sum() > 0:
            raise InvalidSpec(f"prior must be {n + 1} weights that are not negative, one for every count from 0 to {n}")
        return prior / prior.sum()

    def costs(self, n: int) -> F64:
        """Return the weighted cost of every entry of the matrix."""
        if self.beyond >= n:
            raise InvalidSpec(f"objective: distance is {self.beyond}, must be below n = {n}: no output is farther away")
        away = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
        return np.where(away > self.beyond, away.astype(np.float64) ** self.power, 0.0) * self.weights(n)

    def value(self, matrix: F64) -> float:
        """Return the objective, unscaled."""
        by_count = (self.costs(len(matrix) - 1) * matrix).sum(axis=0)
        return float(by_count.max() if self.worst else by_count.sum())

    def scaled(self, matrix: F64) -> float:
        """Return the objective over that of the uniform mechanism, which scores 1."""
        return self.value(matrix) / self.value(np.full(matrix.shape, 1 / len(matrix)))


def binomial_prior(n: int, p: float) -> F64:
    """Return the distribution of the count of n people who each say yes with probability p."""
    if not 0 <= p <= 1:
        raise InvalidSpec(f"p is {p}, must be a probability")
    return np.array([comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)])


def error_histogram(matrix: F64, prior: F64) -> dict[int, float]:
    """Return the probability of every error (output less truth), from -n to n."""
    # Row = output and column = truth, so that one diagonal of the joint distribution is one error.
    n = len(matrix) - 1
    joint = matrix * prior
    return {error: float(np.trace(joint, offset=-error)) for error in range(-n, n + 1)}


def error_probability(matrix: F64, prior: F64, *, beyond: int = 0) -> float:
    """Return the probability that an output is more than `beyond` away from the truth."""
    return sum(share for error, share in error_histogram(matrix, prior).items() if abs(error) > beyond)


def rmse(matrix: F64, prior: F64) -> float:
    """Return the root of the mean squared error."""
    return sum(error**2 * share for error, share in error_histogram(matrix, prior).items()) ** 0.5
