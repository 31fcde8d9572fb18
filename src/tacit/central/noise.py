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

from tacit.arrays import F64, I64, U64
from tacit.central.reals import UniformReal
from tacit.core.mechanism import words
from tacit.device.kinds.laplace import powers
from tacit.device.numbers.budget import as_epsilon
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, root_floor
from tacit.errors import InvalidSpec

# Most thresholds in the table of a geometric distribution: half a megabyte.
_MAX_STEPS = 1 << 16
# The table ends where a threshold would fall below this many coin words; what is rarer is drawn by another word.
_RAREST = 1 << 32


class CentralNoise(Protocol):
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

    >>> from tacit.device.numbers.coins import ReplayCoins
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
        """Return independent draws; the difference of two one-sided geometric numbers is two-sided."""
        ones = self._one_sided(words(self.coins, 2 * size, 1)[:, 0])
        return ones[::2] - ones[1::2]

    @cached_property
    def _edges(self) -> U64:
        """Thresholds floor(a^k 2^64), or one less, ascending for k = K .. 1; K is the size of the table.

        word   0 . . . | edge K . | . . . | edge 2 . . | edge 1 . . . . 2^64
        draw   K, on   |  K - 1   | . . . |     1      |       0
        """
        edges = [power >> 128 for power in powers(self.rate, self._steps)[1:]]
        return np.asarray(edges[::-1], np.uint64)

    @cached_property
    def _steps(self) -> int:
        """The size of the table: thresholds from a 2^64 down to 2^32, at most 2^16 of them."""
        # log(1/a) by log1p: for a tiny epsilon and a large sensitivity 1/a is 1 up to the last digits of a double.
        per_step = log1p((self.rate - WORD) / WORD)
        return max(1, min(_MAX_STEPS, int(log(WORD // _RAREST) / per_step)))

    def _one_sided(self, first: U64) -> I64:
        """Draw G with Pr[G >= k] = a^k: how many powers of a a uniform real lies below, whose first word is known.

        The table decides all draws but those whose word is at a threshold or next to it, which are compared exactly.
        """
        edges = self._edges
        place = np.searchsorted(edges, first, side="right")
        drawn = len(edges) - place.astype(np.int64)
        # A threshold may be one too low, so words equal to it or one above are compared exactly.
        near = edges[np.maximum(place, 1) - 1]
        doubtful = (place > 0) & (first - near <= 1)
        for i in np.flatnonzero(doubtful).tolist():
            drawn[i] = self._resolve(int(drawn[i]), UniformReal(int(first[i]), self.coins))
        beyond = np.flatnonzero(drawn == len(edges))
        if len(beyond):  # Whatever lies beyond the table is geometric again.
            drawn[beyond] += self._one_sided(words(self.coins, len(beyond), 1)[:, 0])
        return drawn

    def _resolve(self, sure: int, real: UniformReal) -> int:
        """Count on from the powers that the real is surely below, by exact comparison with fractions."""
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


def noise_of(epsilon: str, sensitivity: int, randomness: Randomness) -> CentralNoise:
    """Return exact integer noise for coins, or Laplace noise in floating point for a numpy generator."""
    if isinstance(randomness, Coins):
        return Geometric(epsilon, sensitivity, randomness)
    if isinstance(randomness, np.random.Generator):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Laplace(epsilon, sensitivity, randomness)
    raise InvalidSpec("noise needs coins, such as SystemCoins(), or a numpy Generator to reproduce Laplace noise")


def geometric_variance(rate: int) -> float:
    """Return the variance 2 a/(1 - a)^2 of two-sided geometric noise with 1/a = rate/2^64."""
    return 2 * WORD * rate / (rate - WORD) ** 2
