"""Numbers with discrete Laplace noise, clamped to a finite range and yet unbiased."""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.mechanism import CodeCounting, Reports, code_dtype, words
from tacit.core.score import Law
from tacit.core.tally import Counts
from tacit.device.coins import Coins
from tacit.device.exact import WORD
from tacit.device.laplace import DiscreteLaplaceDevice
from tacit.numeric.base import MeanMechanism

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]


class DiscreteLaplace(DiscreteLaplaceDevice, CodeCounting, MeanMechanism):
    """A number in 0 .. top plus discrete Laplace noise, clamped to -bound .. top + bound.

    Reports: log2(top + 2 bound + 1) bits. Cost: one coin word; O(n + top) to tally.
    Privacy: epsilon between the ends of the grid, proportionally less between near numbers.
    Variance: s (1 - c/2) per respondent with s = 2 a/(1 - a)^2, a = e^(-epsilon/top), and c the probability
    of a clamped report: clamping only removes noise, because what lies beyond a clamp is geometric whatever
    the number was, and its mean is added back. The share of clamped reports estimates c without bias.
    Reference: Ghosh, Roughgarden and Sundararajan, STOC 2009 (range-restricted geometric mechanism); the
    unbiased decoder is derived in docs/maths/dlap.md.

    >>> m = DiscreteLaplace(top=10, epsilon="1")
    >>> m.outputs, round(m.variance_at(5), 2)
    (11, 136.2)
    """

    exact_simulation = True

    @cached_property
    def overshoot(self) -> float:
        """a/(1 - a): mean distance of a clamped number from the clamp."""
        return WORD / (self.rate - WORD)

    @cached_property
    def noise_variance(self) -> float:
        """2 a/(1 - a)^2: variance of the noise before clamping."""
        return 2 * WORD * self.rate / (self.rate - WORD) ** 2

    @cached_property
    def decoded(self) -> F64:
        """The unbiased number of every output: itself inside, its mean given the clamp at the ends."""
        numbers = np.arange(-self.bound, self.top + self.bound + 1).astype(np.float64)
        numbers[0] -= self.overshoot
        numbers[-1] += self.overshoot
        return numbers

    @cached_property
    def decoded_square(self) -> F64:
        """The unbiased square of the number of every output: less the noise variance, or half of it."""
        squares = self.decoded**2 - self.noise_variance
        squares[[0, -1]] += self.noise_variance / 2
        return squares

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One code, output + bound."""
        return code_dtype(self.outputs)

    @property
    def report_bits(self) -> int:
        """log2 of the number of outputs."""
        return (self.outputs - 1).bit_length()

    @cached_property
    def _edges(self) -> U64:
        return np.asarray(self.cumulative, np.uint64)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        noise = np.searchsorted(self._edges, words(coins, len(indices), 1)[:, 0], side="right") - self.reach
        noisy = indices.astype(np.int64) + noise + self.bound
        return np.clip(noisy, 0, self.outputs - 1).astype(self.report_dtype)

    @property
    def codes(self) -> range:
        """One code per output."""
        return range(self.outputs)

    def _mean(self, counts: Counts) -> tuple[float, float, float]:
        mean = float(counts.cells @ self.decoded) / counts.total
        square = float(counts.cells @ self.decoded_square) / counts.total
        clamped = int(counts.cells2[0] + counts.cells2[-1]) / counts.total2
        return mean, self.noise_variance * (1 - clamped / 2), max(0.0, square - mean**2)

    def _law(self, counts: Counts) -> Law | None:
        """The noise does not depend on the numbers, but sums of it are whole numbers."""
        if counts.is_uneven:
            return None
        return Law(step=counts.variance_scale / self.top, high=float(self.top))

    def variance_at(self, index: int) -> float:
        """The variance of one report about this number."""
        low, high = self.tails[self.bound + index], self.tails[self.reach - index]
        return self.noise_variance * (1 - (low + high) / WORD / 2)

    @property
    def worst_variance(self) -> float:
        """Numbers in the middle are clamped least often."""
        return self.variance_at(self.top // 2)

    def _words(self, value: int) -> F64:
        """Coin words of every output, given a number."""
        sums = [0, *self.cumulative[self.top - value : self.top - value + self.outputs - 1], WORD]
        return np.asarray([b - a for a, b in pairwise(sums)], np.float64)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """The cells of the table, shifted by the number and clamped."""
        return (np.log(self._words(int(value))) - np.log(float(WORD)))[reports.astype(np.intp)]

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """A multinomial per number that somebody has."""
        true = np.asarray(counts, np.int64)
        cells = np.zeros(self.outputs, np.int64)
        for value in np.flatnonzero(true).tolist():
            cells += rng.multinomial(true[value], self._words(value) / float(WORD))
        n = int(true.sum())
        return Counts(self, n, cells, cells, n, n)
