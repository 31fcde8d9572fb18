"""Local hashing: hash the value to g buckets and apply randomised response to the bucket.

BLH and OLH draw a fresh 32-bit seed per report, so that an estimate hashes every candidate for every report. FLH and
RMP draw one of a small public pool of hash functions: a table of counts replaces the reports, at the price of
collisions that many respondents share (`tacit.core.sharing`).
"""

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U32, U64
from tacit.core.lazy import LazyOracle
from tacit.core.mechanism import CodeCounting, Reports, code_dtype, words
from tacit.core.pure import PureOracle
from tacit.core.sharing import SharedHashes, centred_pairs, seeds_at
from tacit.core.statistics.moments import Moments, independent_moments
from tacit.core.tally import Counts
from tacit.device.kinds.local_hash import (
    BLHDevice,
    BucketsDevice,
    FLHDevice,
    LocalHashDevice,
    OLHDevice,
    PooledDevice,
    RMPDevice,
)
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability
from tacit.oracles.grr import grr_batch


def as_u32(column: npt.NDArray[Any]) -> U32:
    """Return a column of a report batch as contiguous 32-bit words."""
    return np.ascontiguousarray(column, np.uint32)


class BucketsOracle(BucketsDevice, PureOracle):
    """Support probabilities of randomised response on g buckets of an ideal hash."""

    @cached_property
    def p(self) -> Fraction:
        """Probability that the true bucket is kept."""
        return as_probability(WORD - (self.g - 1) * self.low)

    @cached_property
    def q(self) -> Fraction:
        """Probability that any other value falls into the reported bucket: 1/g over hash functions."""
        return Fraction(1, self.g)

    @cached_property
    def moments(self) -> Moments:
        """Under a three-wise independent hash, supports of different values are uncorrelated."""
        return independent_moments(self.p, self.q)


class LocalHashOracle(LocalHashDevice, BucketsOracle, LazyOracle):
    """What BLH and OLH share: a seed and a noisy bucket per report."""

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """Seed and bucket."""
        return np.dtype([("seed", "<u4"), ("bucket", code_dtype(self.g))])

    @property
    def report_bits(self) -> int:
        """32 bits of seed and ceil(log2 g)."""
        return 32 + (self.g - 1).bit_length()

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        drawn = words(coins, len(indices), 2)
        reports = np.empty(len(indices), self.report_dtype)
        # The device takes the upper half of the word as well.
        reports["seed"] = drawn[:, 0] >> np.uint64(32)
        true = kernels.buckets_of(as_u32(reports["seed"]), indices, self.g).astype(np.uint64)
        reports["bucket"] = grr_batch(true, self.g, self.low, drawn[:, 1])
        return reports

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """A bucket below g; every seed is possible."""
        return reports["bucket"] < self.g

    def _count_at(self, reports: Reports, weights: I64 | None, *, candidates: U64) -> I64:
        return kernels.hash_support(reports["seed"], reports["bucket"], self.g, candidates, weights)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform seed, then randomised response on the bucket."""
        true = kernels.buckets_of(as_u32(reports["seed"]), np.asarray([value], np.uint64), self.g)
        bucket = np.log(np.where(reports["bucket"] == true, float(self.p), float(as_probability(self.low))))
        return bucket - 32 * np.log(2)

    def reports_of_seed(self, seed: int) -> Reports:
        """Return all reports with one seed, for audits: privacy holds for each seed on its own."""
        reports = np.empty(self.g, self.report_dtype)
        reports["seed"], reports["bucket"] = seed, np.arange(self.g)
        return reports


class BLH(BLHDevice, LocalHashOracle):
    """Binary local hashing: two buckets.

    Reports: 32 bits of seed and one bit. Cost: two coin words; n d hashes to tally.
    Privacy: epsilon exactly, for every seed.
    Variance: n [((E + 1)/(E - 1))^2 - f], under an ideal hash.
    Reference: Wang's dissertation, section 3.3.4 (Bassily and Smith's protocol without its matrix).

    >>> round(BLH(size=8, epsilon="1").variance_at_zero, 4)
    4.6827
    """


class OLH(OLHDevice, LocalHashOracle):
    """Optimised local hashing: hash to the g near e^epsilon + 1 buckets of least variance.

    Reports: 32 bits of seed and log2 g. Cost: two coin words; n hashes per candidate that is asked for.
    Privacy: epsilon exactly, for every seed.
    Variance: n [(E - 1 + g)^2/((E - 1)^2 (g - 1)) + f (1 - p - 1/g)/(p - 1/g)], under an ideal hash.
    Reference: Wang's dissertation, section 3.3.5. Domains up to 2^64: beyond 2^14 values the tally keeps a
    log of reports and counts only the candidates it is asked for.

    >>> OLH(size=1024, epsilon="1.0").buckets
    4
    """


class PooledOracle(PooledDevice, CodeCounting, SharedHashes, BucketsOracle):
    """What FLH and RMP share: a small table of (hash function, bucket) counts instead of n d hashes."""

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One code, row * g + bucket."""
        return code_dtype(self.pool * self.g)

    @property
    def report_bits(self) -> int:
        """log2 of the pool and of g."""
        return (self.pool - 1).bit_length() + (self.g - 1).bit_length()

    @property
    def functions(self) -> int:
        """One hash function per row of the pool."""
        return self.pool

    @property
    def sharing(self) -> float:
        """pool (g - 1)."""
        return float(self.pool * (self.g - 1))

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        drawn = words(coins, len(indices), 2)
        rows = kernels.uniform(drawn[:, 0], self.pool)
        # Few reports of a large pool hash the rows that they drew instead of the whole pool.
        seeds = seeds_at(self.key, rows) if len(rows) < self.pool else self.seeds[rows.astype(np.intp)]
        true = kernels.buckets_of(seeds, indices, self.g).astype(np.uint64)
        noisy = grr_batch(true, self.g, self.low, drawn[:, 1])
        return (rows * np.uint64(self.g) + noisy).astype(self.report_dtype)

    @property
    def codes(self) -> range:
        """Every row and bucket."""
        return range(self.pool * self.g)

    def _support(self, cells: I64, candidates: U64) -> I64:
        return kernels.pooled_support(self.seeds, cells.reshape(self.pool, self.g), candidates)

    def _equal_pairs(self, counts: Counts) -> tuple[float, float]:
        # A report's own bucket stands out from the others by p - low, the factor that debiases the table.
        tables = counts.cells.reshape(self.pool, self.g).astype(np.float64)
        return centred_pairs(tables, float(self.p - as_probability(self.low)), counts.total2)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform row, then randomised response on the bucket."""
        # A code is row * g + bucket.
        rows, buckets = np.divmod(reports.astype(np.uint64), np.uint64(self.g))
        true = kernels.buckets_of(self.seeds[rows.astype(np.intp)], np.asarray([value], np.uint64), self.g)
        bucket = np.where(buckets == true, float(self.p), float(as_probability(self.low)))
        return np.log(bucket) - np.log(self.pool)


class FLH(FLHDevice, PooledOracle):
    """Fast local hashing: OLH over a public pool of hash functions.

    Reports: log2(pool g) bits. Cost: two coin words; the server keeps pool x g counts and hashes pool x d times.
    Privacy: epsilon exactly, for every hash function.
    Variance: OLH's plus sum over other values of n_w (n_w - 1)/(pool (g - 1)): shared collisions do not average out.
    Reference: Cormode, Maddock and Maple, VLDB 2021; the extra variance is derived in docs/maths/flh.md.

    >>> FLH(size=1024, epsilon="1", pool=4096, key=7).report_bits
    14
    """


class RMP(RMPDevice, PooledOracle):
    """Random matrix projection: the noisy sign of one row of a public random +-1 matrix.

    Reports: log2(rows) + 1 bits. Cost: two coin words; rows x d hashes to estimate.
    Privacy: epsilon exactly, for every row.
    Variance: n [((E + 1)/(E - 1))^2 - f] plus sum over other values of n_w (n_w - 1)/rows.
    Reference: Bassily and Smith, STOC 2015; Wang's dissertation, section 3.1.3. A baseline: BLH without sharing.

    >>> RMP(size=8, epsilon="1", pool=1024, key=7).report_bits
    11
    """
