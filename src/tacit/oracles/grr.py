"""Generalised randomised response, and its batch sampler, which local hashing and sketches use on their buckets."""

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64, U64
from tacit.core.mechanism import CodeCounting, code_dtype, words
from tacit.core.pure import PureOracle
from tacit.core.statistics.moments import Moments, block_moments
from tacit.core.tally import Counts
from tacit.device.arguments import explained
from tacit.device.kinds.grr import GRRDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability


def grr_batch(values: U64, size: int, low: int, coin_words: U64) -> U64:
    """Return noisy values: the device's `grr_draw` on a batch, one coin word per value.

        words   | other 0 | other 1 | ... | other d-2 |        true value         |
                0        low      2 low  ...     (d-1) low                      2^64

    Others are numbered without the true value, so those from it on move up by one.
    """
    # Words of the last part would give numbers beyond d - 2; np.where discards those.
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
        """The moments of a block design with blocks of one point."""
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
        """Draw the tally at once, with exactly the law of real ones.

        A report is the true value with probability p - q and a uniform value (true one included) otherwise.
        """
        n, cells = simulate_codes(counts, float(self.p - self.q), self.size, rng)
        return Counts(self, n, cells, cells, n, n)


def simulate_codes(counts: npt.ArrayLike, kept: float, size: int, rng: np.random.Generator) -> tuple[int, I64]:
    """Return how many reports there are, and how many say each value: the true one if kept, a uniform one otherwise."""
    true = np.asarray(counts, np.int64)
    truthful = rng.binomial(true, kept)
    noise = rng.multinomial(int(true.sum() - truthful.sum()), np.full(size, 1 / size))
    return int(true.sum()), (truthful + noise).astype(np.int64)


@explained
def RR(epsilon: Any) -> GRR:  # noqa: N802 - the name of the paper
    """Randomised response on one bit: GRR over two values (Warner 1965)."""
    return GRR(size=2, epsilon=epsilon)
