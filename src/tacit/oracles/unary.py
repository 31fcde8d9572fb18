"""Unary encodings: one noisy bit per value. SUE, OUE, RUE and THE differ only in two thresholds."""

from fractions import Fraction
from functools import cached_property
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U8, U64
from tacit.core.mechanism import bits_dtype
from tacit.core.pure import PureOracle
from tacit.core.statistics.moments import Moments, independent_moments
from tacit.core.tally import Counts
from tacit.device.kinds.unary import OUEDevice, RUEDevice, SUEDevice, THEDevice, UnaryDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import as_probability


def unpack(packed: U8, size: int) -> U8:
    """Return the bits of packed rows, bit 0 of a byte first."""
    return np.unpackbits(packed, axis=1, count=size, bitorder="little")


def padding_is_zero(packed: U8, size: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows whose last byte has no bit beyond `size`."""
    # Every report has one encoding: bits that no device sets could otherwise carry anything.
    spare = 8 * packed.shape[1] - size
    return packed[:, -1] >> np.uint8(8 - spare) == 0 if spare else np.ones(len(packed), np.bool_)


def all_bitmaps(size: int) -> U8:
    """Return every vector of `size` bits, packed."""
    codes = np.arange(1 << size, dtype=np.uint32)
    bits = (codes[:, None] >> np.arange(size, dtype=np.uint32) & 1).astype(np.uint8)
    return np.packbits(bits, axis=1, bitorder="little")


def bit_log_prob(packed: U8, set_bits: npt.NDArray[np.bool_], p: Fraction, q: Fraction) -> F64:
    """Return log-probabilities of bit vectors whose bits are set with p where `set_bits` is true, else with q.

    `set_bits` is one row for all vectors, or one row each.

    The complements are rounded once from exact values: at large epsilon 1 - p is far below the rounding of p.
    """
    bits = unpack(packed, set_bits.shape[-1])
    set_log: F64 = np.where(set_bits, log(p), log(q))
    clear_log: F64 = np.where(set_bits, log(1 - p), log(1 - q))
    return np.where(bits == 1, set_log, clear_log).sum(axis=1)


class UnaryOracle(UnaryDevice, PureOracle):
    """What the unary encodings share: packed bits, column sums, independent binomial simulation."""

    exact_simulation = True

    @cached_property
    def p(self) -> Fraction:
        """Probability that the bit of the true value is set."""
        return as_probability(self.thresholds[0])

    @cached_property
    def q(self) -> Fraction:
        """Probability that any other bit is set."""
        return as_probability(self.thresholds[1])

    @cached_property
    def moments(self) -> Moments:
        """Bits are independent given the value."""
        return independent_moments(self.p, self.q)

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """`size` packed bits."""
        return bits_dtype(self.size)

    @property
    def report_bits(self) -> int:
        """One bit per value."""
        return self.size

    @property
    def lanes(self) -> tuple[int, int, int]:
        """One bit per value."""
        return (self.size, *self.thresholds)

    def _privatize(self, indices: U64, coins: Coins) -> npt.NDArray[Any]:
        return kernels.draw_bits(indices.astype(np.int32)[:, None], self.size, [self.thresholds], coins)

    def valid(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """No bit beyond the domain."""
        return padding_is_zero(reports, self.size)

    def _count(self, reports: npt.NDArray[Any], weights: I64 | None) -> I64:
        return kernels.bit_columns(reports, self.size, weights)

    def log_prob(self, reports: npt.NDArray[Any], value: Any) -> F64:
        """Sum over independent bits."""
        return bit_log_prob(reports, np.arange(self.size) == int(value), self.p, self.q)

    def all_reports(self) -> npt.NDArray[Any]:
        """All bit vectors, up to 16 bits."""
        return all_bitmaps(self.size) if self.size <= 16 else super().all_reports()

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw the tally at once: columns are independent, each the sum of two binomials (true bits and others)."""
        true = np.asarray(counts, np.int64)
        n = int(true.sum())
        cells = rng.binomial(true, float(self.p)) + rng.binomial(n - true, float(self.q))
        return Counts(self, n, cells, cells, n, n)


class SUE(SUEDevice, UnaryOracle):
    """Symmetric unary encoding: every bit of the one-hot vector flips with probability 1/(e^(epsilon/2) + 1).

    Reports: d bits. Cost: about 7.3 coin words per 64 bits; O(n d) bit additions to tally.
    Privacy: epsilon, half on the one and half on the zeros.
    Variance: n H/(H - 1)^2 with H = e^(epsilon/2), for every frequency.
    Reference: Wang's dissertation, section 3.3.3; one-shot Basic RAPPOR.

    >>> round(SUE(size=8, epsilon="1").variance_at_zero, 4)
    3.9177
    """


class OUE(OUEDevice, UnaryOracle):
    """Optimised unary encoding: the true bit is a fair coin, the whole budget protects the zeros.

    Reports: d bits. Cost: about 7.3 coin words per 64 bits; O(n d) bit additions to tally.
    Privacy: epsilon exactly.
    Variance: n [4E/(E - 1)^2 + f].
    Reference: Wang's dissertation, section 3.3.3.

    >>> round(OUE(size=8, epsilon="1").variance_at_zero, 4)
    3.6827
    """


class RUE(RUEDevice, UnaryOracle):
    """Re-optimised unary encoding: the split of the budget that minimises the average error for this size.

    Reports: d bits. Cost: about 7.3 coin words per 64 bits; O(n d) bit additions to tally.
    Privacy: epsilon exactly.
    Variance: pure, p = 1/(1 + h) with h^2 = (d - 1 + 1/E)/(d - 1 + E); SUE at d = 2, OUE for large d.
    Reference: Fang, Chen and Liu, USENIX Security 2025, re-derived.

    >>> RUE(size=4, epsilon="4").average_error() < OUE(size=4, epsilon="4").average_error()
    True
    """


class THE(THEDevice, UnaryOracle):
    """Thresholding with histogram encoding: Laplace noise of scale 2/epsilon, one bit per value above theta.

    Reports: d bits (the device thresholds). Cost: as OUE, with which it shares every line but two thresholds.
    Privacy: at most epsilon; thresholding wastes part of it, so this is a baseline.
    Variance: pure, with p = 1 - e^(epsilon (theta - 1)/2)/2 and q = e^(-epsilon theta/2)/2.
    Reference: Wang's dissertation, section 3.3.2; theta defaults to the optimum.

    >>> THE(size=8, epsilon="1").theta
    '0.6186'
    """
