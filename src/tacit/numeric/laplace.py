"""Numbers with discrete Laplace noise, clamped to a finite range and yet unbiased.

    number + noise   ... -3 -2 -1 | 0 1 2 ... top | top+1 ...
    report           clamped to -bound .. top + bound; code = output + bound

The geometric tail beyond a clamp has a known mean, which the decoder adds back at the two ends.
"""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, U64
from tacit.core.mechanism import CodeCounting, Reports, code_dtype, words
from tacit.core.statistics.score import Law
from tacit.core.tally import Counts
from tacit.device.kinds.laplace import DiscreteLaplaceDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.numeric.base import MeanMechanism


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
        """An unbiased number per output: the output itself inside, the mean of what was clamped at the two ends."""
        numbers = np.arange(-self.bound, self.top + self.bound + 1).astype(np.float64)
        numbers[0] -= self.overshoot
        numbers[-1] += self.overshoot
        return numbers

    @cached_property
    def decoded_square(self) -> F64:
        """An unbiased squared number per output: the square less the noise variance, or less half of it at the ends."""
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
        # One table of cumulative words serves all numbers: its middle is noise 0, `reach` places from its start.
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
        # The share of reports at either end, which is what the variance depends on; squared weights for a variance.
        clamped = int(counts.cells2[0] + counts.cells2[-1]) / counts.total2
        return mean, self.noise_variance * (1 - clamped / 2), max(0.0, square - mean**2)

    def _law(self, counts: Counts) -> Law | None:
        """A law without slope, as the noise does not depend on the numbers; sums are integers, hence the step."""
        if counts.is_uneven:
            return None
        return Law(step=counts.variance_scale / self.top, high=float(self.top))

    def variance_at(self, index: int) -> float:
        """Return the variance of one report about this number."""
        # Probabilities of being clamped below and above, in coin words.
        low, high = self.tails[self.bound + index], self.tails[self.reach - index]
        return self.noise_variance * (1 - (low + high) / WORD / 2)

    @property
    def worst_variance(self) -> float:
        """Numbers in the middle are clamped least often."""
        return self.variance_at(self.top // 2)

    def _words(self, value: int) -> F64:
        """How many of the 2^64 coin words lead to every output, given a number; the two ends take all that is left."""
        sums = [0, *self.cumulative[self.top - value : self.top - value + self.outputs - 1], WORD]
        return np.asarray([b - a for a, b in pairwise(sums)], np.float64)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Return the log-probability of outputs: the noise table, shifted by the number and clamped."""
        return (np.log(self._words(int(value))) - np.log(float(WORD)))[reports.astype(np.intp)]

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw the tally at once: a multinomial over the outputs for every number that occurs."""
        true = np.asarray(counts, np.int64)
        cells = np.zeros(self.outputs, np.int64)
        for value in np.flatnonzero(true).tolist():
            cells += rng.multinomial(true[value], self._words(value) / float(WORD))
        n = int(true.sum())
        return Counts(self, n, cells, cells, n, n)
