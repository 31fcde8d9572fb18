"""dBitFlip: noisy bits of a few buckets that each respondent draws at random.

A tally has two cells per bucket, 2 j for cleared and 2 j + 1 for set bits of bucket j, so that it knows how many
respondents sampled ("hold") each bucket. Reference: Ding, Kulkarni and Yekhanin, NeurIPS 2017, section 3.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U64
from tacit.core.cell_rule import CellRule
from tacit.core.estimate import Estimate, check_choice
from tacit.core.mechanism import MAX_REPORTS, Oracle, Reports, bits_dtype, code_dtype, words
from tacit.core.statistics.moments import Moments
from tacit.core.statistics.score import Law
from tacit.core.tally import Counts, Tally
from tacit.device.kinds.bit_flip import DBitFlipDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import as_probability
from tacit.oracles.hadamard import distinct_rows
from tacit.oracles.unary import all_bitmaps, padding_is_zero, unpack

Estimator = Literal["observed_holders", "horvitz_thompson"]


class DBitFlip(DBitFlipDevice, Oracle):
    """dBitFlip: s of K buckets, drawn at random and sent along, and a noisy bit for each of them.

    Reports: s log2 K + s bits. Cost: 2 s coin words; O(n s + K) to tally and estimate.
    Privacy: epsilon exactly, half on each of two bits; a single sampled bit spends all of it.
    Variance: with H = e^(epsilon/2), or e^epsilon for s = 1, [(K/s) H/(H - 1)^2 + f (K/s - 1)]/n by
    Horvitz-Thompson, and [H/(H - 1)^2 + f (1 - f) (1 - s/K)]/n_v, the default, when the sum is divided by the
    n_v respondents who hold the bucket.
    Reference: Ding, Kulkarni and Yekhanin, NeurIPS 2017, section 3, which spends half of epsilon at s = 1.

    >>> one, two = DBitFlip(size=32, sampled=1, epsilon="1"), DBitFlip(size=32, sampled=2, epsilon="1")
    >>> one.variance_at_zero < two.variance_at_zero
    True
    """

    @cached_property
    def p(self) -> Fraction:
        """Probability that the bit of the true bucket is set."""
        return as_probability(self.thresholds[0])

    @cached_property
    def q(self) -> Fraction:
        """Probability that the bit of any other sampled bucket is set."""
        return as_probability(self.thresholds[1])

    @cached_property
    def bit_noise(self) -> tuple[float, float]:
        """Variance of a debiased bit of the true bucket, and of any other."""
        scale = (self.p - self.q) ** 2
        return float(self.p * (1 - self.p) / scale), float(self.q * (1 - self.q) / scale)

    @cached_property
    def moments(self) -> Moments:
        """Moments of the Horvitz-Thompson estimator; different buckets are uncorrelated.

        A bucket is sampled with probability s/K, so its bit counts K/s times.
        """
        once = self.size / self.sampled
        own, other = self.bit_noise
        return Moments(own=once * own + once - 1, other=once * other)

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """Bucket numbers in increasing order, then their bits."""
        return np.dtype([("buckets", code_dtype(self.size), (self.sampled,)), ("bits", bits_dtype(self.sampled))])

    @property
    def report_bits(self) -> int:
        """log2 K + 1 per sampled bucket."""
        return self.sampled * ((self.size - 1).bit_length() + 1)

    @property
    def cell_count(self) -> int:
        """Cleared and set bits of every bucket."""
        return 2 * self.size

    @property
    def cell_rule(self) -> CellRule:
        """One of two cells of every sampled bucket."""
        return CellRule(least=self.sampled, most=self.sampled, pairs=True)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        # A report takes s words for its buckets, then one for each of its bits.
        drawn = words(coins, len(indices), 2 * self.sampled)
        buckets = distinct_rows(drawn[:, : self.sampled], self.size)
        t1, t0 = self.thresholds
        thresholds = np.where(buckets == indices[:, None], np.uint64(t1), np.uint64(t0))
        reports = np.empty(len(indices), self.report_dtype)
        reports["buckets"] = buckets
        reports["bits"] = np.packbits(drawn[:, self.sampled :] < thresholds, axis=1, bitorder="little")
        return reports

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Increasing buckets inside the domain, and no bit beyond them."""
        buckets = reports["buckets"]
        increasing = (buckets[:, 1:] > buckets[:, :-1]).all(axis=1)
        return increasing & (buckets[:, -1] < self.size) & padding_is_zero(reports["bits"], self.sampled)

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        """Count reports into cells 2 j and 2 j + 1: cleared and set bits of bucket j."""
        # A report counts s times, once per sampled bucket, and so does its weight.
        bits = unpack(reports["bits"], self.sampled)
        codes = reports["buckets"].astype(np.uint64) << np.uint64(1) | bits
        repeated = None if weights is None else np.repeat(weights, self.sampled)
        return kernels.histogram(codes.reshape(-1), 2 * self.size, repeated)[0]

    def _held(self, cells: I64, candidates: U64) -> tuple[F64, F64]:
        """(holders, sum of debiased bits) of each candidate."""
        at = 2 * candidates.astype(np.intp)
        ones = cells[at + 1].astype(np.float64)
        held = cells[at] + ones
        return held, (ones - float(self.q) * held) / float(self.p - self.q)

    def _unbiased(self, cells: I64, total: int, candidates: U64) -> F64:
        """Horvitz-Thompson: every debiased bit stands for K/s respondents."""
        del total
        return self.size / self.sampled * self._held(cells, candidates)[1]

    def estimate(
        self,
        tally: Tally,
        candidates: npt.ArrayLike | None = None,
        *,
        estimator: Estimator = "observed_holders",
    ) -> Estimate:
        """Return frequencies among the observed holders of each bucket (default), or by Horvitz-Thompson.

        Both are unbiased, the first given that somebody holds the bucket; a bucket nobody holds has no data.
        The frequency in the variance is plugged in, clipped to [0, 1].
        """
        check_choice(self.kind, "estimator", estimator, get_args(Estimator))
        plain = super().estimate(tally, candidates)
        if estimator == "horvitz_thompson" or tally.is_empty or not isinstance(tally, Counts):
            return plain
        return self._observed(tally, self._candidates(candidates), plain)

    def _observed(self, tally: Counts, candidates: U64, plain: Estimate) -> Estimate:
        """The ratio estimator: sums of debiased bits over the respondents who sampled the bucket."""
        # Weighted: sums of w in `held` and `sums`, of w^2 in the other two; equal without weights.
        held, sums = self._held(tally.cells, candidates)
        held2, sums2 = self._held(tally.cells2, candidates)
        value = np.divide(sums, held, out=np.zeros_like(sums), where=held != 0)
        share2 = np.clip(np.divide(sums2, held2, out=np.zeros_like(sums2), where=held2 != 0), 0, 1)
        share = np.clip(value, 0, 1)
        own, other = self.bit_noise
        # The mean square distance from the share is f(1 - f) when all weights are equal.
        sampling = np.clip(share2 * (1 - 2 * share) + share**2, 0, None) * (1 - self.sampled / self.size)
        noise = own * share2 + other * (1 - share2) + sampling
        variance = np.divide(noise * held2, held**2, out=np.full_like(sums, np.inf), where=held != 0)
        covariance = self._together(variance, share, tally.variance_scale)
        law = plain.law if tally.is_uneven else self._holders_law(held, held2)
        return replace(plain, value=value, variance=variance, covariance=covariance, law=law)

    def _holders_law(self, held: F64, held2: F64) -> Law:
        """How the variance among the holders of every bucket depends on its true share."""
        scale = np.divide(held2, held**2, out=np.zeros_like(held), where=held != 0)
        own, other = self.bit_noise
        return Law(
            slope=(own - other) * scale,
            curve=(1 - self.sampled / self.size) * scale,
            step=scale / float(self.p - self.q),
        )

    def _together(self, variance: F64, share: F64, scale: float) -> Callable[[F64], F64]:
        """Variance of linear combinations: errors of two buckets are slightly correlated.

        Draws without replacement put two buckets into one report less often than independent draws would.

        Given the numbers of holders, the covariance is f_a f_b (1 - r)/n with r the number of common holders
        relative to independent draws, K (s - 1)/(s (K - 1)) on average.
        """
        # 1 - r, which is 1 for a single sampled bucket (no common holders) and 0 if all buckets are sampled.
        size, sampled = self.size, self.sampled
        apart = 1 - size * (sampled - 1) / (sampled * (size - 1))

        def combined(rows: F64) -> F64:
            weighted = rows * share
            cross = weighted.sum(axis=-1) ** 2 - (weighted**2).sum(axis=-1)
            # A bucket nobody holds has infinite variance; times a weight of zero that would be NaN.
            single = np.where(rows == 0, 0.0, rows**2 * np.where(rows == 0, 0.0, variance))
            return np.clip(single.sum(axis=-1) + apart * scale * cross, 0, None)

        return combined

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform set of buckets, then independent bits."""
        own, bits = reports["buckets"] == int(value), unpack(reports["bits"], self.sampled)
        one = np.where(own, float(self.p), float(self.q))
        zero = np.where(own, float(1 - self.p), float(1 - self.q))
        logs = np.log(np.where(bits == 1, one, zero)).sum(axis=1)
        return logs - np.log(float(comb(self.size, self.sampled)))

    def all_reports(self) -> Reports:
        """Every set of buckets with every pattern of bits, up to 2^20 of them."""
        if comb(self.size, self.sampled) << self.sampled > MAX_REPORTS:
            return super().all_reports()
        sets = np.asarray(list(combinations(range(self.size), self.sampled)))
        patterns = all_bitmaps(self.sampled)
        reports = np.empty(len(sets) * len(patterns), self.report_dtype)
        reports["buckets"] = np.repeat(sets, len(patterns), axis=0)
        reports["bits"] = np.tile(patterns, (len(sets), 1))
        return reports
