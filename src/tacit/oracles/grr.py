"""Generalised randomised response."""

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.mechanism import CodeCounting, code_dtype, words
from tacit.core.moments import Moments, block_moments
from tacit.core.pure import PureOracle
from tacit.core.tally import Counts
from tacit.device.coins import Coins
from tacit.device.exact import WORD, as_probability
from tacit.device.grr import GRRDevice

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]


def grr_batch(values: U64, size: int, low: int, coin_words: U64) -> U64:
    """`grr_draw` on a batch, one coin word per value."""
    other = coin_words // np.uint64(low)
    other += other >= values
    return np.where(coin_words >= np.uint64((size - 1) * low), values, other)


class GRR(GRRDevice, CodeCounting, PureOracle):
    """Generalised randomised response (direct encoding): the true value, or any other with equal probability.

    Reports: one index, ceil(log2 d) bits. Cost: one coin word; O(n + d) to tally and estimate.
    Privacy: epsilon exactly, up to the rounding of one word in 2^64.
    Variance: n [(d - 2 + E)/(E - 1)^2 + f (d - 2)/(E - 1)]; estimates always sum to one.
    Reference: Wang's dissertation, section 3.3.1; optimal for d up to about sqrt(2) E.

    >>> m = GRR(size=4, epsilon="1.0")
    >>> m.realised_epsilon() <= 1.0
    True
    """

    exact_simulation = True

    @cached_property
    def p(self) -> Fraction:
        """Probability of keeping the true value."""
        return as_probability(WORD - (self.size - 1) * self.low)

    @cached_property
    def q(self) -> Fraction:
        """Probability of moving to one particular other value."""
        return as_probability(self.low)

    @cached_property
    def moments(self) -> Moments:
        """Blocks of one point."""
        return block_moments(self.size, 1, self.p)

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One index."""
        return code_dtype(self.size)

    @property
    def report_bits(self) -> int:
        """ceil(log2 d)."""
        return (self.size - 1).bit_length()

    def _privatize(self, indices: U64, coins: Coins) -> npt.NDArray[Any]:
        drawn = grr_batch(indices, self.size, self.low, words(coins, len(indices), 1)[:, 0])
        return drawn.astype(self.report_dtype)

    @property
    def codes(self) -> range:
        """Every index."""
        return range(self.size)

    def log_prob(self, reports: npt.NDArray[Any], value: Any) -> F64:
        """ln p for the value itself, ln q for any other."""
        return np.log(np.where(reports == value, float(self.p), float(self.q)))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Keep with probability p - q, else a uniform value: exactly the law of the sum."""
        true = np.asarray(counts, np.int64)
        kept = rng.binomial(true, float(self.p - self.q))
        noise = rng.multinomial(int(true.sum() - kept.sum()), np.full(self.size, 1 / self.size))
        n, cells = int(true.sum()), (kept + noise).astype(np.int64)
        return Counts(self, n, cells, cells, n, n)


def RR(*, epsilon: Any) -> GRR:  # noqa: N802 - the name of the paper
    """Randomised response on one bit: GRR over two values (Warner 1965)."""
    return GRR(size=2, epsilon=epsilon)
