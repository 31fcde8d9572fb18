"""The mean of numbers from one bit per respondent, set with a probability linear in the number."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, U64
from tacit.core.mechanism import CodeCounting, Reports, words
from tacit.core.statistics.score import Law
from tacit.core.tally import Counts
from tacit.device.kinds.mean import OneBitDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability
from tacit.numeric.base import MeanMechanism


class OneBit(OneBitDevice, CodeCounting, MeanMechanism):
    """The mean of a number in 0 .. top by one bit each (1BitMean), set with probability linear in the number.

    Reports: one bit. Cost: one coin word; O(n) to tally.
    Privacy: epsilon exactly, between the ends of the grid.
    Variance: top^2 [E/(E - 1)^2 + u (1 - u)] per respondent with u = x/top. One bit tells the mean of u and
    not that of u^2; the estimate states the value at the mean of u, which is never too small because
    u (1 - u) is concave, and which is exact for the population that the respondents were drawn from.
    Reference: Duchi, Jordan and Wainwright, FOCS 2013; Ding, Kulkarni and Yekhanin, NeurIPS 2017, section 3.

    >>> m = OneBit(top=10, epsilon="1")
    >>> round(m.standard_error(10_000), 3)
    0.108
    """

    exact_simulation = True

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One byte, 0 or 1."""
        return np.dtype("u1")

    @property
    def report_bits(self) -> int:
        """One bit."""
        return 1

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        thresholds = np.uint64(self.low) + indices * np.uint64(self.slope)
        return (words(coins, len(indices), 1)[:, 0] < thresholds).astype(np.uint8)

    @property
    def codes(self) -> range:
        """A bit."""
        return range(2)

    def _mean(self, counts: Counts) -> tuple[float, float, float]:
        # Solve E[bits set] = n (low + slope mean)/2^64 for the mean, exactly; the division rounds once.
        mean = Fraction(int(counts.cells[1]) * WORD - self.low * counts.total, self.slope * counts.total)
        # The share of set bits, clipped to what the grid allows: it may leave that by chance.
        share = Fraction(int(counts.cells2[1]), counts.total2)
        low, high = as_probability(self.low), as_probability(self.threshold(self.top))
        # The spread of the numbers is already inside the variance: see the class, so nothing is left to add.
        return float(mean), self._bit_variance(min(max(share, low), high)), 0.0

    def _law(self, counts: Counts) -> Law | None:
        """The law for a mean u = x/top: the constant variance of the noise, plus u (1 - u), on the grid's scale."""
        if counts.is_uneven:
            return None
        step = WORD / (self.slope * self.top)
        return Law(curve=counts.variance_scale, step=step * counts.variance_scale, high=float(self.top))

    def _bit_variance(self, share: Fraction) -> float:
        """Variance of a bit that is set with this probability, on the scale of the grid."""
        return float(share * (1 - share) * Fraction(WORD, self.slope) ** 2)

    def variance_at(self, index: int) -> float:
        """Return the exact variance of one report about this number."""
        return self._bit_variance(as_probability(self.threshold(index)))

    @property
    def worst_variance(self) -> float:
        """The variance of a bit that is set half of the time, which no other exceeds."""
        return self._bit_variance(Fraction(1, 2))

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A bit with the probability of this number."""
        p = as_probability(self.threshold(int(value)))
        return np.log(np.where(reports == 1, float(p), float(1 - p)))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw the tally at once: a binomial number of set bits for every number."""
        true = np.asarray(counts, np.int64)
        chances = (float(self.low) + np.arange(len(true)) * float(self.slope)) / float(WORD)
        n, ones = int(true.sum()), int(rng.binomial(true, chances).sum())
        cells = np.array([n - ones, ones], np.int64)
        return Counts(self, n, cells, cells, n, n)
