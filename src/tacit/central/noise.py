"""Integer noise for central histograms: exact two-sided geometric, and Laplace for reproductions. Not local.

A histogram is noised at a *sensitivity*: the number of cells that one tuple changes, each by one. Two neighbouring
histograms then differ by at most that many factors 1/a, where a is the ratio of neighbouring noise probabilities.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log, log1p
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tacit.central.reals import UniformReal
from tacit.core.mechanism import words
from tacit.device.budget import as_epsilon
from tacit.device.coins import Coins
from tacit.device.exact import WORD, root_floor
from tacit.device.laplace import powers
from tacit.errors import InvalidSpec

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_MAX_STEPS = 1 << 16
_RAREST = 1 << 32


class Noise(Protocol):
    """What a histogram needs of its noise."""

    @property
    def variance(self) -> float:
        """Variance of one draw."""
        ...

    def draw(self, size: int) -> F64 | I64:
        """Independent draws."""
        ...


@dataclass(frozen=True)
class Geometric:
    """Two-sided geometric noise: Pr[z] = (1 - a)/(1 + a) a^|z| exactly, with a rational a.

    Privacy: 1/a = rate/2^64 with rate the `sensitivity`-th root of the odds, rounded down, so (1/a)^sensitivity is at
    most e^epsilon. Cost: two coin words a draw; more only where a word falls on a threshold, about once in 2^48.
    Variance: 2 a/(1 - a)^2. Reference: Ghosh, Roughgarden and Sundararajan, STOC 2009.

    >>> from tacit.device.coins import ReplayCoins
    >>> noise = Geometric("1", 1, ReplayCoins(b"seed"))
    >>> noise.draw(5).tolist(), round(noise.variance, 3)
    ([0, 0, -1, -1, 0], 1.841)
    """

    epsilon: str
    sensitivity: int
    coins: Coins

    @cached_property
    def rate(self) -> int:
        """1/a over 2^64."""
        return root_floor(as_epsilon(self.epsilon).odds, self.sensitivity)

    @property
    def ratio(self) -> Fraction:
        """The largest likelihood ratio of one cell that changes by one: 1/a, exactly."""
        return Fraction(self.rate, WORD)

    @property
    def variance(self) -> float:
        """2 a/(1 - a)^2."""
        return geometric_variance(self.rate)

    def draw(self, size: int) -> I64:
        """The difference of two one-sided draws is two-sided."""
        ones = self._one_sided(words(self.coins, 2 * size, 1)[:, 0])
        return ones[::2] - ones[1::2]

    @cached_property
    def _edges(self) -> U64:
        """floor(a^k 2^64) or one less, ascending, for k = K .. 1, K the steps one table holds."""
        edges = [power >> 128 for power in powers(self.rate, self._steps)[1:]]
        return np.asarray(edges[::-1], np.uint64)

    @cached_property
    def _steps(self) -> int:
        """As many steps as keep neighbouring thresholds apart, at most 2^16."""
        per_step = log1p((self.rate - WORD) / WORD)
        return max(1, min(_MAX_STEPS, int(log(WORD // _RAREST) / per_step)))

    def _one_sided(self, first: U64) -> I64:
        """G with Pr[G >= k] = a^k: how many powers of a the uniform real that begins with a word lies below."""
        edges = self._edges
        place = np.searchsorted(edges, first, side="right")
        drawn = len(edges) - place.astype(np.int64)
        near = edges[np.maximum(place, 1) - 1]
        doubtful = (place > 0) & (first - near <= 1)
        for i in np.flatnonzero(doubtful).tolist():
            drawn[i] = self._resolve(int(drawn[i]), UniformReal(int(first[i]), self.coins))
        beyond = np.flatnonzero(drawn == len(edges))
        if len(beyond):  # Whatever lies beyond the table is geometric again.
            drawn[beyond] += self._one_sided(words(self.coins, len(beyond), 1)[:, 0])
        return drawn

    def _resolve(self, sure: int, real: UniformReal) -> int:
        """Continue from the powers that the real is surely below, by exact comparison."""
        a = 1 / self.ratio
        while sure < len(self._edges) and real.below(a ** (sure + 1)):
            sure += 1
        return sure


@dataclass(frozen=True)
class Laplace:
    """Laplace noise in floating point, for reproductions only: floats leak, so no privacy is claimed for it."""

    epsilon: str
    sensitivity: int
    rng: np.random.Generator

    @property
    def scale(self) -> float:
        """Sensitivity over epsilon."""
        return self.sensitivity / float(as_epsilon(self.epsilon).declared)

    @property
    def variance(self) -> float:
        """Twice the squared scale."""
        return 2 * self.scale**2

    def draw(self, size: int) -> F64:
        """Independent draws of the generator."""
        return self.rng.laplace(0, self.scale, size)


Randomness = Coins | np.random.Generator


def noise_of(epsilon: str, sensitivity: int, randomness: Randomness) -> Noise:
    """Coins give exact integer noise; a numpy generator gives Laplace noise in floating point, for reproductions."""
    if isinstance(randomness, Coins):
        return Geometric(epsilon, sensitivity, randomness)
    if isinstance(randomness, np.random.Generator):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Laplace(epsilon, sensitivity, randomness)
    raise InvalidSpec("noise needs coins, such as SystemCoins(), or a numpy Generator to reproduce Laplace noise")


def geometric_variance(rate: int) -> float:
    """2 a/(1 - a)^2 with 1/a = rate/2^64."""
    return 2 * WORD * rate / (rate - WORD) ** 2
