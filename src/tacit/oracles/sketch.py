"""Count mean sketches: CMS sends one noisy row of cells, HCMS one noisy Hadamard coefficient of such a row.

    rows of the sketch   one public hash function each; a respondent draws one
    cells of a row       `width`; the respondent's value is hashed to one of them

An estimate adds the cells of a candidate over all rows, debiased for the noise and for collisions. Reference: Apple
Differential Privacy Team, "Learning with Privacy at Scale" (2017); variances are derived in docs/maths.
"""

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U64
from tacit.core.cell_rule import CellRule
from tacit.core.mechanism import MAX_REPORTS, CodeCounting, Reports, code_dtype, words
from tacit.core.pure import invert
from tacit.core.sharing import SharedHashes, respondents_of
from tacit.core.statistics.moments import Moments
from tacit.core.tally import Counts
from tacit.device.kinds.sketch import CMSDevice, HCMSDevice, SketchDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability
from tacit.oracles.grr import grr_batch
from tacit.oracles.hadamard import parity64
from tacit.oracles.row_bits import all_row_bits, row_bits_dtype, row_tables
from tacit.oracles.unary import all_bitmaps, bit_log_prob, padding_is_zero


class SketchOracle(SketchDevice, SharedHashes):
    """What CMS and HCMS share: public hash functions, and the error of values that share a cell."""

    exact_simulation = True

    @property
    def functions(self) -> int:
        """One hash function per row."""
        return self.rows

    @property
    def sharing(self) -> float:
        """rows (width - 1)."""
        return float(self.rows * (self.width - 1))

    def _cells_of(self, rows: npt.NDArray[Any], indices: U64) -> U64:
        """The cell of every value in its row."""
        return kernels.buckets_of(self.seeds[rows.astype(np.intp)], indices, self.width).astype(np.uint64)


class CMS(CMSDevice, SketchOracle):
    """Private count mean sketch: the noisy one-hot cell of the value under one of `rows` hash functions.

    Reports: log2(rows) + width bits. Cost: one word and about 7.3 per 64 bits; rows hashes per candidate.
    Privacy: epsilon exactly, half on the one and half on the zeros, for every row.
    Variance: (m/(m-1))^2 [n H/(H-1)^2 + (1/m)(1-1/m) sum over others (n_w + n_w (n_w-1)/rows)], m = width,
    H = e^(epsilon/2), over hash functions that are independent on any three values. The last term is a bias
    once the hash functions are fixed; it is estimated from the sketch.
    Reference: Apple Differential Privacy Team, "Learning with Privacy at Scale" (2017); variance re-derived.

    >>> CMS(size=10**6, epsilon="4", rows=1024, width=1024, key=7).report_bits
    1034
    """

    @cached_property
    def p(self) -> Fraction:
        """Probability that the respondent's own cell is set."""
        return as_probability(self.thresholds[0])

    @cached_property
    def q(self) -> Fraction:
        """Probability that the cell of another value is set, over hash functions."""
        low = as_probability(self.thresholds[1])
        return low + (self.p - low) / self.width

    @cached_property
    def _bit_variances(self) -> tuple[Fraction, Fraction]:
        """Variance of the bit of the true cell, and of any other."""
        low = as_probability(self.thresholds[1])
        return self.p * (1 - self.p), low * (1 - low)

    @cached_property
    def moments(self) -> Moments:
        """Cells are independent, but two values that share a cell share its noise too."""
        # Two values share a cell, and then its noise, with probability 1/m; otherwise their bits are independent.
        own, other = self._bit_variances
        scale, m = (self.p - self.q) ** 2, self.width
        return Moments(
            own=float(own / scale),
            other=float(self.q * (1 - self.q) / scale),
            own_other=float(own / m / scale),
            other_other=float((own / m + other * (m - 1) / m) / m / scale),
        )

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """The row, then `width` packed bits."""
        return row_bits_dtype("row", self.rows, self.width)

    @property
    def report_bits(self) -> int:
        """log2 of the rows, and the width."""
        return (self.rows - 1).bit_length() + self.width

    @property
    def cell_count(self) -> int:
        """Reports and bits of every row."""
        return self.rows * (1 + self.width)

    @property
    def cell_rule(self) -> CellRule:
        """One row, and some of its bits."""
        return CellRule(groups=self.rows)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        reports = np.empty(len(indices), self.report_dtype)
        drawn = kernels.draw_hashed_bits(indices, self.seeds[:, None], self.width, [self.thresholds], coins)
        reports["row"], reports["bits"] = drawn
        return reports

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """A row of the sketch, and no bit beyond the width."""
        return (reports["row"] < self.rows) & padding_is_zero(reports["bits"], self.width)

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        return row_tables(reports["row"], reports["bits"], (self.rows, self.width), weights).reshape(-1)

    def _table(self, cells: I64) -> I64:
        """A line per row of the sketch: its number of reports, then its cells."""
        return cells.reshape(self.rows, 1 + self.width)

    def _unbiased(self, cells: I64, total: int, candidates: U64) -> F64:
        support = kernels.pooled_support(self.seeds, self._table(cells)[:, 1:], candidates)
        return invert(self.p, self.q, total, support)

    def _equal_pairs(self, counts: Counts) -> tuple[float, float]:
        low, m = float(as_probability(self.thresholds[1])), self.width
        gap = float(self.p) - low
        table, squares = self._table(counts.cells), self._table(counts.cells2)[:, 0].astype(np.float64)
        rows = table[:, :1].astype(np.float64)
        # Debiased cells less their mean; a respondent's pair with itself, whose noise does not average out, is known.
        centred = (table[:, 1:] - rows * low) / gap - rows / m
        own, other = self._bit_variances
        alone = float(own + (m - 1) * other) / gap**2 + 1 - 1 / m
        moment = float(np.sum(centred**2)) - alone * float(squares.sum())
        return moment * m / (m - 1), float(np.sum(rows**2) - squares.sum())

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform row, then independent bits."""
        cells = self._cells_of(reports["row"], np.full(len(reports), value, np.uint64))
        true = np.arange(self.width, dtype=np.uint64) == cells[:, None]
        low = as_probability(self.thresholds[1])
        return bit_log_prob(reports["bits"], true, self.p, low) - np.log(self.rows)

    def all_reports(self) -> Reports:
        """Every row with every bitmap, for small sketches."""
        if self.rows << self.width > MAX_REPORTS:
            return super().all_reports()
        return all_row_bits(self.report_dtype, "row", self.rows, all_bitmaps(self.width))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw a row per respondent; the bits of a cell are then sums of two binomials."""
        true = np.zeros(self.rows * self.width, np.int64)
        for values in respondents_of(counts):
            rows = rng.integers(0, self.rows, len(values), np.uint64)
            codes = rows * np.uint64(self.width) + self._cells_of(rows, values)
            true += kernels.histogram(codes, len(true), None)[0]
        table = true.reshape(self.rows, self.width)
        rows = table.sum(axis=1, keepdims=True)
        high, low = (float(as_probability(t)) for t in self.thresholds)
        bits = self._noisy(table, high, rng) + self._noisy(rows - table, low, rng)
        cells, n = np.concatenate([rows, bits], axis=1).reshape(-1), int(rows.sum())
        return Counts(self, n, cells, cells, n, n)

    @staticmethod
    def _noisy(trials: I64, chance: float, rng: np.random.Generator) -> I64:
        return np.asarray(rng.binomial(trials, chance), np.int64)


class HCMS(HCMSDevice, CodeCounting, SketchOracle):
    """Private Hadamard count mean sketch: the noisy sign of one coefficient of one row of the sketch.

    Reports: log2(rows) + log2(width) + 1 bits. Cost: three coin words; one histogram and one fast transform.
    Privacy: epsilon exactly, for every row and coefficient.
    Variance: n c^2 - n_x + sum over others n_w (n_w-1)/(rows (m-1)), c = (E+1)/(E-1), m = width, when
    coefficient 0 is skipped; with it, (m/(m-1))^2 times the sum of n c^2 - n_x - (n-n_x)/m and
    (1/m)(1-1/m) sum over others (n_w + n_w (n_w-1)/rows). The collisions are estimated from the sketch.
    Reference: Apple Differential Privacy Team, "Learning with Privacy at Scale" (2017); variance re-derived.

    >>> HCMS(size=10**6, epsilon="4", rows=1024, width=1024, key=7).report_bits
    21
    """

    @cached_property
    def keep(self) -> Fraction:
        """How much of a sign survives."""
        return as_probability(WORD - 2 * self.low)

    @cached_property
    def moments(self) -> Moments:
        """Signs of different cells are orthogonal over the coefficients that are drawn."""
        # A debiased sign is +-1/keep. Without coefficient 0 the signs of two cells add up to zero over coefficients;
        # with it they do not, and the estimate is centred by the factor m/(m - 1).
        c2, m = 1 / self.keep**2, self.width
        if self.skip_zero:
            return Moments(own=float(c2 - 1), other=float(c2))
        scale = Fraction(m, m - 1) ** 2
        return Moments(
            own=float(scale * (c2 - 1)),
            other=float(scale * (c2 - Fraction(1, m * m))),
            own_other=float(scale * (c2 - 1) / m),
            other_other=float(scale * (c2 / m - Fraction(1, m * m))),
        )

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One code, 2 * (row * width + coefficient) + sign; sign 1 stands for -1."""
        return code_dtype(2 * self.rows * self.width)

    @property
    def report_bits(self) -> int:
        """log2 of the rows and of the width, and a sign."""
        return (self.rows - 1).bit_length() + self.width.bit_length()

    def _codes(self, indices: U64, drawn: U64) -> U64:
        rows = kernels.uniform(drawn[:, 0], self.rows)
        coefficients = kernels.uniform(drawn[:, 1], self.width - self.first) + np.uint64(self.first)
        # Entry (i, j) of a Hadamard matrix is -1 to the number of ones in i & j.
        true = parity64(coefficients & self._cells_of(rows, indices))
        signs = grr_batch(true, 2, self.low, drawn[:, 2])
        return (rows * np.uint64(self.width) + coefficients) << np.uint64(1) | signs

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        return self._codes(indices, words(coins, len(indices), 3)).astype(self.report_dtype)

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """A row of the sketch and a coefficient that may be drawn."""
        inside = super().valid(reports)
        if self.skip_zero:
            # Bits of a code: row | coefficient | sign. The mask selects the coefficient, which must not be 0.
            inside &= reports & reports.dtype.type(2 * self.width - 2) != 0
        return inside

    @property
    def codes(self) -> range:
        """Every row, coefficient and sign, those of a skipped coefficient included."""
        return range(2 * self.rows * self.width)

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        cells = super()._count(reports, weights)
        if np.any(cells.reshape(self.rows, self.width, 2)[:, : self.first]):
            self._refuse_invalid(reports)
        return cells

    @property
    def cell_rule(self) -> CellRule:
        """One code; those of a skipped coefficient are never sent."""
        return CellRule(least=1, most=1, unused=tuple(self._skipped()))

    def _skipped(self) -> "list[slice]":
        step = 2 * self.width
        return [slice(step * row, step * row + 2 * self.first) for row in range(self.rows if self.first else 0)]

    def _signed(self, cells: I64) -> I64:
        """Reports with sign + less those with sign -, per row and coefficient."""
        return (cells[0::2] - cells[1::2]).reshape(self.rows, self.width)

    def _unbiased(self, cells: I64, total: int, candidates: U64) -> F64:
        # The transform turns coefficients back into cells; without coefficient 0 they are centred already.
        table = kernels.walsh_hadamard(self._signed(cells))
        sums = kernels.pooled_support(self.seeds, table, candidates).astype(np.float64)
        sums *= 1 / float(self.keep)
        return sums if self.skip_zero else (sums - total / self.width) * self.width / (self.width - 1)

    def _equal_pairs(self, counts: Counts) -> tuple[float, float]:
        """As in `SharedHashes`, without a transform.

        By Parseval, the second moment of the centred table is that of all coefficients but number 0.
        """
        # Coefficient 0 is the same for all cells, so reports on it say nothing about pairs (`constant`).
        signed = self._signed(counts.cells)[:, 1:].astype(np.float64)
        sizes = counts.cells.reshape(self.rows, -1).sum(axis=1).astype(np.float64)
        constant = counts.cells2.reshape(self.rows, self.width, 2)[:, :1].sum()
        informative = counts.total2 - float(constant)
        choices = self.width - self.first
        factor = choices**2 / (self.width - 1) / float(self.keep) ** 2
        moment = float(np.vdot(signed, signed)) - informative
        return factor * moment, float(np.sum(sizes**2)) - counts.total2

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform row and coefficient, then randomised response on the sign."""
        codes = reports.astype(np.uint64)
        places = codes >> np.uint64(1)
        rows, coefficients = np.divmod(places, np.uint64(self.width))
        cells = self._cells_of(rows, np.full(len(codes), value, np.uint64))
        low = float(as_probability(self.low))
        sign = np.where(codes & np.uint64(1) == parity64(coefficients & cells), 1 - low, low)
        return np.log(sign) - np.log(self.rows * (self.width - self.first))

    def all_reports(self) -> Reports:
        """Every row, coefficient that may be drawn, and sign, up to 2^20 codes."""
        codes = super().all_reports()
        return codes[self.valid(codes)]

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw a report per respondent from the generator and count the codes of a chunk at once."""
        cells = np.zeros(2 * self.rows * self.width, np.int64)
        for values in respondents_of(counts):
            drawn = rng.integers(0, 1 << 64, (len(values), 3), np.uint64)
            cells += kernels.histogram(self._codes(values, drawn), len(cells), None)[0]
        n = int(cells.sum())
        return Counts(self, n, cells, cells, n, n)
