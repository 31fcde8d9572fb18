"""Block responses: subset selection SS, cyclic block response CBR and affine block response ABR.

A report is a block of k among m points and supports the values in it. Where every pair of points lies in
equally many blocks, the oracle is pure with p = k E/(k E + m - k) and q = (k - p)/(m - 1); with the best k no
unbiased oracle has a smaller error.
"""

from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb, log
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U32, U64
from tacit.core.cell_rule import CellRule
from tacit.core.lazy import LazyOracle
from tacit.core.mechanism import MAX_REPORTS, CodeCounting, Reports, bits_dtype, code_dtype, words
from tacit.core.pure import PureOracle
from tacit.core.statistics.moments import Moments, block_moments
from tacit.core.tally import Counts
from tacit.device.kinds.blocks import ABRDevice, BlockDevice, CBRDevice, SSDevice, cyclic_design, cyclic_points
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import as_probability
from tacit.errors import InvalidSpec, Overflow
from tacit.oracles.certify import block_indicator, certify_cyclic
from tacit.oracles.unary import padding_is_zero

C128 = npt.NDArray[np.complex128]

# An aggregate simulation of CBR draws a multinomial over k translates for every value that somebody holds.
_MAX_SIMULATED = 10**7
# Coin words that are drawn at a time for subset selection: 8 megabytes.
_CHUNK_WORDS = 1 << 20
# Convolutions of integers below this are exact in doubles for every design: the error stays below 0.01.
_LIMB = 1 << 20


class BlockOracle(BlockDevice, PureOracle):
    """What the block responses share: support probabilities and moments of a 2-design."""

    @cached_property
    def p(self) -> Fraction:
        """Probability that the block contains the respondent's value."""
        return as_probability(self.include)

    @cached_property
    def q(self) -> Fraction:
        """Probability that the block contains one particular other point."""
        return (self.k - self.p) / (self.m - 1)

    @cached_property
    def moments(self) -> Moments:
        """Moments of blocks in which any three points are alike.

        Exact for SS. CBR and ABR treat only pairs alike, which is enough for the variance of single values.
        """
        return block_moments(self.m, self.k, self.p)

    def _positions(self, drawn: U64) -> U64:
        """Draw a position per value from two words: below k inside the base block, from k on outside.

            points of the design   | base block: 0 .. k-1 | all others: k .. m-1 |
            first word < include   | uniform here         |                      |
            otherwise              |                      | uniform here         |

        The report is the translate of the block that puts the value at this position.
        """
        inside = kernels.uniform(drawn[:, 1], self.k)
        outside = kernels.uniform(drawn[:, 1], self.m - self.k) + np.uint64(self.k)
        return np.where(drawn[:, 0] < np.uint64(self.include), inside, outside)

    def _log_rates(self, with_value: int, without: int) -> tuple[float, float]:
        """Log-probability of one block with the value and of one without, from how many blocks there are of each."""
        return log(self.p) - log(with_value), log(1 - self.p) - log(without)


class SS(SSDevice, BlockOracle):
    """Subset selection: a set of k values, near d/(E + 1), that more likely holds the true one than not.

    Reports: a bitmap of d bits with k of them set. Cost: 1 + k coin words; O(n d) bit additions to tally.
    Privacy: epsilon; the unevenness of the draws is taken off it and is below 2^-39.
    Variance: n [q(1 - q)/(p - q)^2 + f (1 - p - q)/(p - q)], the least possible; estimates sum to one.
    Reference: Ye and Barg, IEEE Trans. Inf. Theory 64 (2018); Wang et al., arXiv 1607.08025 (2016).

    >>> m = SS(size=10, epsilon="1")
    >>> m.subset, round(m.average_error(), 6)
    (3, 2.910406)
    """

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """`size` packed bits."""
        return bits_dtype(self.size)

    @property
    def report_bits(self) -> int:
        """One bit per value."""
        return self.size

    @property
    def cell_rule(self) -> CellRule:
        """A set of k values."""
        return CellRule(least=self.k, most=self.k)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        # A report takes 1 + k words, which for large sets is far more than what other oracles draw at a time.
        rows = max(1, _CHUNK_WORDS // (1 + self.k))
        parts = [self._draw(indices[start : start + rows], coins) for start in range(0, len(indices), rows)]
        return np.concatenate(parts)

    def _draw(self, indices: U64, coins: Coins) -> Reports:
        drawn = words(coins, len(indices), 1 + self.k)
        keep = (drawn[:, 0] < np.uint64(self.include)).astype(np.uint8)
        return kernels.draw_subsets(indices.astype(np.uint32), keep, self.size, self.k, drawn[:, 1:])

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Exactly k bits, none beyond the domain."""
        return (kernels.bit_counts(reports) == self.k) & padding_is_zero(reports, self.size)

    def _countable(self, reports: Reports) -> Reports:
        return self._check_layout(reports)

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        if weights is not None:
            self._refuse_invalid(reports)
            return kernels.bit_columns(reports, self.size, weights)
        # One pass: the count notices sets of another size, and only then are the reports looked at again.
        cells, bad = kernels.set_columns(reports, self.size, self.k)
        if bad:
            self._refuse_invalid(reports)
        return cells

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Uniform among the sets that contain the value, or among those that do not."""
        inside, outside = self._log_rates(comb(self.size - 1, self.k - 1), comb(self.size - 1, self.k))
        # Bit v of a report is bit v mod 8 of byte v / 8.
        bit = reports[:, int(value) >> 3] >> np.uint8(int(value) & 7) & np.uint8(1)
        return np.where(bit == 1, inside, outside)

    def all_reports(self) -> Reports:
        """Every set of k values, for small domains."""
        if comb(self.size, self.k) > MAX_REPORTS:
            return super().all_reports()
        sets = np.array(list(combinations(range(self.size), self.k)))
        bits = np.zeros((len(sets), self.size), np.uint8)
        np.put_along_axis(bits, sets, 1, axis=1)
        return np.packbits(bits, axis=1, bitorder="little")


def smooth_length(least: int) -> int:
    """Return the smallest 2^a 3^b 5^c that is not below `least`: a length at which every FFT is fast."""
    # Start from the next power of two; for every 3^b 5^c below it, the smallest power of two that fills up is known.
    best = 1 << (least - 1).bit_length()
    fives = 1
    while fives < best:
        odd = fives
        while odd < best:
            best = min(best, odd << (-(-least // odd) - 1).bit_length())
            odd *= 3
        fives *= 5
    return best


@lru_cache(maxsize=4)
def certified_spectrum(family: str, order: int, dimension: int) -> C128:
    """Return the Fourier transform of the block, padded to a smooth length, after proving it a difference set."""
    design = cyclic_design(family, order, dimension)
    indicator = block_indicator(design.block, design.modulus)
    certify_cyclic(indicator, design.k, design.lam)
    return np.fft.rfft(indicator.astype(np.float64), smooth_length(2 * design.modulus - 1))


def cyclic_convolution(cells: I64, spectrum: C128, k: int) -> I64:
    """Return the sum of `cells` over every translate of the block, in exact integers.

    Large cells (sums of weights) are cut into limbs that doubles convolve exactly; rounding and the total are
    checked, not assumed.
    """
    # cells = limb_0 + limb_1 2^20 + limb_2 2^40 + ..., and convolution is linear.
    support = np.zeros_like(cells)
    scale = 1
    while cells.any():
        # fmod has the sign of the cells (weights may be negative), so the division below is exact.
        limb = np.fmod(cells, _LIMB)
        support += scale * _convolve(limb, spectrum, k)
        cells, scale = (cells - limb) // _LIMB, scale * _LIMB
    return support


def _convolve(cells: I64, spectrum: C128, k: int) -> I64:
    m, length = len(cells), smooth_length(2 * len(cells) - 1)
    raw = np.fft.irfft(np.fft.rfft(cells, length) * spectrum, length)
    # The padded transform gives the linear convolution of 2 m - 1 terms; its tail wraps round modulo m.
    raw[: m - 1] += raw[m : 2 * m - 1]
    rounded = np.rint(raw[:m])
    support = rounded.astype(np.int64)
    if np.abs(raw[:m] - rounded).max() >= 0.1 or int(support.sum()) != k * int(cells.sum()):
        raise Overflow(f"cbr: the sums over {m} translates were not exact in floating point; nothing is estimated")
    return support


class CBR(CBRDevice, CodeCounting, BlockOracle):
    """Cyclic block response: a translate of a difference set that more likely holds the value than not.

    Reports: one residue, ceil(log2 m) bits. Cost: two coin words; O(n + m log m) to estimate, by FFT.
    Privacy: epsilon; the unevenness of the draws is taken off it and is below 2^-41.
    Variance: that of SS on m points, within about 3 % of the optimum unless epsilon is large for the domain.
    Reference: Feldman, Nelson, Nguyen and Talwar, ICML 2022; in cyclic form: docs/maths/cbr.md.

    >>> m = CBR(size=1024, epsilon="1")
    >>> m.family, m.order, m.dimension, m.report_bits
    ('singer', 3, 7, 11)
    """

    exact_simulation = True

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One residue."""
        return code_dtype(self.m)

    @property
    def report_bits(self) -> int:
        """ceil(log2 m)."""
        return (self.m - 1).bit_length()

    @property
    def points(self) -> U32:
        """All residues, those of the block first; shared, never written."""
        return np.frombuffer(cyclic_points(self.family, self.order, self.dimension), np.uint32)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        at = self._positions(words(coins, len(indices), 2))
        # The translate t + block holds the value at point b if t = value - b modulo m; unsigned, so m is added first.
        shifted = indices + np.uint64(self.m) - self.points[at.astype(np.intp)]
        return (shifted % np.uint64(self.m)).astype(self.report_dtype)

    @property
    def codes(self) -> range:
        """All residues."""
        return range(self.m)

    def _support(self, cells: I64, candidates: U64) -> I64:
        spectrum = certified_spectrum(self.family, self.order, self.dimension)
        return self._take(cyclic_convolution(cells, spectrum, self.k), candidates)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Uniform among the translates that contain the value, or among those that do not."""
        design = cyclic_design(self.family, self.order, self.dimension)
        member = block_indicator(design.block, self.m)[(int(value) - reports.astype(np.int64)) % self.m]
        return np.where(member == 1, *self._log_rates(self.k, self.m - self.k))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw the tally at once: uniform translates, and uniform ones among the k that contain a holder's value.

        Pr[translate] is (1 - p)/(m - k) for all of them, and what is left over is spread over those with the value.
        """
        if self.size * self.k > _MAX_SIMULATED:
            raise InvalidSpec(
                "cbr: too many points for an aggregate simulation; privatize a simulated population instead"
            )
        true = np.asarray(counts, np.int64)
        block = self.points[: self.k].astype(np.int64)
        truthful = rng.binomial(true, float(1 - (1 - self.p) * self.m / (self.m - self.k)))
        cells = rng.multinomial(int(true.sum() - truthful.sum()), np.full(self.m, 1 / self.m)).astype(np.int64)
        for value in np.flatnonzero(truthful):
            cells[(value - block) % self.m] += rng.multinomial(truthful[value], np.full(self.k, 1 / self.k))
        n = int(true.sum())
        return Counts(self, n, cells, cells, n, n)


class ABR(ABRDevice, BlockOracle, LazyOracle):
    """Affine block response: an affine image of an interval that more likely holds the value than not.

    Reports: (w, c), which supports i if (w i - c) mod m < k; ceil(log2(m (m - 1)/2)) bits.
    Cost: three coin words; n multiplications per candidate that is asked for.
    Privacy: epsilon; the unevenness of the draws is taken off it and is about m/2^64.
    Variance: that of SS on m points, m the next prime: the least possible but for that padding.
    Reference: derived in docs/maths/abr.md; Pan, arXiv 2603.11523 (2026), on how many reports suffice. Beyond
    2^12 values the tally keeps a log of reports and counts only the candidates it is asked for.

    >>> m = ABR(size=100, epsilon="1")
    >>> m.modulus, m.block
    (101, 27)
    """

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """Multiplier and shift."""
        return np.dtype([("w", code_dtype(self.m)), ("c", code_dtype(self.m))])

    @property
    def report_bits(self) -> int:
        """Logarithm of the number of reports, m (m - 1)/2."""
        return (self.m * (self.m - 1) // 2 - 1).bit_length()

    @property
    def cell_rule(self) -> CellRule:
        """A block of k points, of which those beyond the domain are not counted."""
        return CellRule(least=max(0, self.k - (self.m - self.size)), most=self.k)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        drawn = words(coins, len(indices), 3)
        m = np.uint64(self.m)
        # Multipliers w and m - w give the same blocks, so half of them suffice. Products stay below 2^64.
        w = kernels.uniform(drawn[:, 0], (self.m - 1) // 2) + np.uint64(1)
        reports = np.empty(len(indices), self.report_dtype)
        reports["w"] = w
        # c = w i - position: with this shift the value lies at its drawn position of the interval.
        reports["c"] = (w * indices + (m - self._positions(drawn[:, 1:]))) % m
        return reports

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """A multiplier of the smaller half, not zero, and a residue modulo m."""
        w = reports["w"]
        return (w >= 1) & (w <= (self.m - 1) // 2) & (reports["c"] < self.m)

    def _count_at(self, reports: Reports, weights: I64 | None, *, candidates: U64) -> I64:
        w, c = (np.ascontiguousarray(reports[name], np.uint32) for name in ("w", "c"))
        return kernels.affine_support(w, c, self.m, self.k, candidates, weights)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform multiplier, then uniform among the blocks that contain the value, or that do not."""
        points = reports["w"].astype(np.uint64) * np.uint64(value) + (np.uint64(self.m) - reports["c"])
        member = points % np.uint64(self.m) < self.k
        return np.where(member, *self._log_rates(self.k, self.m - self.k)) - log((self.m - 1) // 2)

    def all_reports(self) -> Reports:
        """Every multiplier and shift, for small domains."""
        half = (self.m - 1) // 2
        if half * self.m > MAX_REPORTS:
            return super().all_reports()
        reports = np.empty(half * self.m, self.report_dtype)
        reports["w"] = np.repeat(np.arange(1, half + 1), self.m)
        reports["c"] = np.tile(np.arange(self.m), half)
        return reports
