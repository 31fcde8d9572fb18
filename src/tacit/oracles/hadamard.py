"""Hadamard randomised response: HRR with one row, HRR-T with several, HRR-SUBSPACE with their span.

Every kind has two halves, one base class each (see docs/decisions/0007-device-half-is-a-base-class.md): the device half
draws one report with the standard library alone, the server half draws batches, counts and estimates.

    device half                 server half
    HadamardDevice              HadamardOracle      signed row sums, one fast transform
      HRRDevice                   HRR               counts codes, so also a CodeCounting
      ManyRowsDevice              ManyRowsOracle    rows and one sign pattern per report
        HRRTDevice                  HRRT
        HRRSubspaceDevice           HRRSubspace     estimates by support, so also a PureOracle
"""

from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U64
from tacit.core.cell_rule import CellRule
from tacit.core.estimate import Estimate, check_choice
from tacit.core.mechanism import MAX_REPORTS, CodeCounting, Oracle, Reports, code_dtype, words
from tacit.core.members import as_bytes
from tacit.core.pure import PureOracle
from tacit.core.statistics.moments import Moments, block_moments
from tacit.core.tally import Counts, Tally, check_sums
from tacit.device.kinds.hadamard import HadamardDevice, HRRDevice, HRRSubspaceDevice, HRRTDevice, ManyRowsDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability
from tacit.oracles.grr import grr_batch

Estimator = Literal["horvitz_thompson", "ratio"]


def distinct_rows(drawn: U64, below: int) -> U64:
    """Floyd's sampler on a batch: as many distinct integers below `below`, ascending, as a row has coin words."""
    count = drawn.shape[1]
    chosen = np.empty(drawn.shape, np.uint64)
    for i in range(count):
        top = below - count + i
        candidate = kernels.uniform(drawn[:, i], top + 1)
        taken = (chosen[:, :i] == candidate[:, None]).any(axis=1)
        # No earlier draw could reach `top`, so that taking it for a repeated one never repeats another.
        chosen[:, i] = np.where(taken, np.uint64(top), candidate)
    return np.sort(chosen, axis=1)


def parity64(x: U64) -> U64:
    """popcount modulo 2 of every word."""
    return np.bitwise_count(x).astype(np.uint64) & np.uint64(1)


def row_moments(order: int, rows: int, keep: Fraction, first: int) -> Moments:
    """Moments of the Horvitz-Thompson estimator from `rows` distinct rows out of order - first, by symmetry.

    With S(x) the sum of entries of column x over the rows that may be drawn, a pair of distinct rows averages
    (S(a) S(b) - S(a xor b)) / (R (R - 1)); every parity of the reported pattern is kept with factor `keep`.
    """
    choices = order - first
    own, other = Fraction(choices), Fraction(-first)  # S(0), and S(x) for any other x.
    once = Fraction(rows, choices)
    twice = rows * (rows - 1) * keep / (choices * (choices - 1)) if rows > 1 else Fraction(0)

    def covariance(a: Fraction, b: Fraction, both: Fraction) -> float:
        """Of two cells; a and b are S at each cell xor the respondent's value, both is S at their xor."""
        product = once * both + twice * (a * b - both)
        return float((product - (once * keep) ** 2 * a * b) / (once * keep * order) ** 2)

    return Moments(
        own=covariance(own, own, own),
        other=covariance(other, other, own),
        own_other=covariance(own, other, other),
        other_other=covariance(other, other, other),
    )


class HadamardOracle(HadamardDevice, Oracle):
    """What HRR and HRR-T share: signed row sums and one fast transform."""

    @cached_property
    def keep(self) -> Fraction:
        """How much of a sign survives: p - q of randomised response on the sign patterns."""
        return as_probability(WORD - self.signs * self.low)

    @property
    def first(self) -> int:
        """The first row that is drawn."""
        return 1

    @property
    def rows(self) -> int:
        """Rows per report."""
        return 1

    @cached_property
    def moments(self) -> Moments:
        """Exact moments of the Horvitz-Thompson estimator."""
        return row_moments(self.order, self.rows, self.keep, self.first)

    def _transformed(self, sums: I64, candidates: U64) -> F64:
        return self._take(kernels.walsh_hadamard(sums), candidates).astype(np.float64)

    def _signed(self, cells: I64) -> I64:
        """Signed row sums. A report of several rows is in several cells; all together may leave 62 bits first."""
        check_sums(float(np.abs(cells).sum(dtype=np.float64)))
        # Cell 2 j + s counts row j with the sign bit s: even cells stand for +1, odd ones for -1.
        return cells[0::2] - cells[1::2]

    def _unbiased(self, cells: I64, total: int, candidates: U64) -> F64:
        """(first * total + choices / (rows keep) * transform of the signed row sums) / K."""
        sums = self._signed(cells)
        scale = float(Fraction(self.order - self.first) / (self.rows * self.keep))
        return (self.first * total + scale * self._transformed(sums, candidates)) / self.order


def _float_transform(x: F64) -> F64:
    """The unscaled Walsh-Hadamard transform of floats along the last axis."""
    out, h = np.asarray(x, np.float64), 1
    # Butterflies (a, b) -> (a + b, a - b) on neighbours at the distances 1, 2, 4, and so on.
    while h < x.shape[-1]:
        pairs = out.reshape(-1, 2, h)
        out = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
        h *= 2
    return out.reshape(x.shape)


class HRR(HRRDevice, CodeCounting, HadamardOracle):
    """Hadamard randomised response: one row of the Hadamard matrix and its noisy sign.

    Reports: log2 K + 1 bits. Cost: two coin words; O(n + K log K) integer additions to estimate.
    Privacy: epsilon exactly, for every row.
    Variance: n [((E + 1)/(E - 1))^2 - f] with row 0, ((K-1)^2 V1 + 2 (K f - 1) + 1)/K^2 - f per report without.
    Reference: Kulkarni's dissertation, section 4.7, with the sampling term its V lacks.

    >>> HRR(size=1000, epsilon="1.0").order
    1024
    """

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One code, 2 * row + sign."""
        return code_dtype(2 * self.order)

    @property
    def report_bits(self) -> int:
        """log2 K + 1."""
        return self.order.bit_length()

    def estimate(
        self,
        tally: Tally,
        candidates: npt.ArrayLike | None = None,
        *,
        estimator: Estimator = "horvitz_thompson",
    ) -> Estimate:
        """Horvitz-Thompson (unbiased, the default) or ratio: each row divided by its own number of reports."""
        check_choice(self.kind, "estimator", estimator, get_args(Estimator))
        plain = super().estimate(tally, candidates)
        if estimator == "horvitz_thompson" or tally.is_empty or not isinstance(tally, Counts):
            return plain
        return self._ratio(tally, self._candidates(candidates), plain)

    def _ratio(self, tally: Counts, chosen: U64, plain: Estimate) -> Estimate:
        """Row means by their own counts; rows nobody drew count as 0.

        A row mean has variance R (1/keep^2 - theta^2)/n over a population, R rows being drawn; the part of it
        that is the respondents' own spread is taken off. Both theta^2 and f are plugged in.
        """
        up, down = tally.cells[0::2].astype(np.float64), tally.cells[1::2].astype(np.float64)
        seen, choices = up + down, self.order - self.first
        means = np.divide(up - down, seen, out=np.zeros_like(seen), where=seen > 0) / float(self.keep)
        # Row 0 of the matrix is all ones: where it is never drawn, its mean is known without noise.
        means[: self.first] = 1.0
        scale = tally.variance_scale
        noise = choices / float(self.keep) ** 2 * scale
        # Squares of noisy means overstate theta^2 by their own variance, which is taken off.
        row_variance = noise - choices * scale * (means**2 - noise)
        row_variance[: self.first] = 0.0
        value = self._take(_float_transform(means) / self.order, chosen)

        def combined(rows: F64) -> F64:
            weights = np.zeros((len(rows), self.order))
            weights[:, chosen.astype(np.intp)] = rows
            population = _float_transform(weights) ** 2 @ row_variance / self.order**2
            own = (rows**2 @ value - (rows @ value) ** 2) * scale
            return np.clip(population - own, 0, None)

        single = np.clip(row_variance.sum() / self.order**2 - value * (1 - value) * scale, 0, None)
        return replace(plain, value=value, variance=single, covariance=combined, law=None)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        drawn = words(coins, len(indices), 2)
        rows = kernels.uniform(drawn[:, 0], self.order - self.first) + np.uint64(self.first)
        signs = grr_batch(parity64(rows & indices), 2, self.low, drawn[:, 1])
        return (rows << np.uint64(1) | signs).astype(self.report_dtype)

    @property
    def codes(self) -> range:
        """Rows that may be drawn, with either sign."""
        return range(2 * self.first, 2 * self.order)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform row, then randomised response on its sign."""
        codes = reports.astype(np.uint64)
        true = parity64((codes >> np.uint64(1)) & np.uint64(value))
        kept = np.where(
            codes & np.uint64(1) == true, 1 - float(as_probability(self.low)), float(as_probability(self.low))
        )
        return np.log(kept / (self.order - self.first))


class ManyRowsOracle(ManyRowsDevice, HadamardOracle):
    """What HRR-T and HRR-SUBSPACE share: rows and one sign pattern per report."""

    @property
    def rows(self) -> int:
        """Rows per report."""
        return self.coefficients

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """The rows, then the pattern in one byte."""
        return np.dtype([("rows", code_dtype(self.order), (self.coefficients,)), ("pattern", "u1")])

    @property
    def report_bits(self) -> int:
        """t log2 K + t."""
        return self.coefficients * self.order.bit_length()

    @property
    def cell_count(self) -> int:
        """Either sign of every row."""
        return 2 * self.order

    @property
    def cell_rule(self) -> CellRule:
        """The sign of every row that a report tells; row 0 is never drawn."""
        return CellRule(least=self.told, most=self.told, pairs=True, unused=(slice(2),))

    @property
    def told(self) -> int:
        """Rows whose signs a report tells."""
        return self.rows

    def _draw(self, drawn: U64, indices: U64) -> tuple[U64, U64]:
        """Rows of every report, one coin word each, and the parities of the index with them, row i in bit i."""
        raise NotImplementedError

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        drawn = words(coins, len(indices), self.coefficients + 1)
        rows, true = self._draw(drawn[:, :-1], indices)
        reports = np.empty(len(indices), self.report_dtype)
        reports["rows"] = rows
        reports["pattern"] = grr_batch(true, self.signs, self.low, drawn[:, -1])
        return reports

    def _rows_are_possible(self, rows: U64) -> npt.NDArray[np.bool_]:
        raise NotImplementedError

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Rows that may be drawn together, and a pattern of t bits."""
        rows = self._rows_of(reports)
        inside = (rows < self.order).all(axis=1) & (rows > 0).all(axis=1)
        return inside & (reports["pattern"] < self.signs) & self._rows_are_possible(rows)

    def _rows_of(self, reports: Reports) -> U64:
        return reports["rows"].astype(np.uint64).reshape(len(reports), self.coefficients)

    def _signs(self, reports: Reports) -> U64:
        pattern = reports["pattern"].astype(np.uint64)
        return pattern[:, None] >> np.arange(self.coefficients, dtype=np.uint64) & np.uint64(1)

    def _choices(self) -> float:
        """Number of equally likely row tuples."""
        raise NotImplementedError

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Uniform rows, then randomised response on the sign pattern."""
        rows = self._rows_of(reports)
        same = (parity64(rows & np.uint64(value)) == self._signs(reports)).all(axis=1)
        low = float(as_probability(self.low))
        return np.log(np.where(same, 1 - (self.signs - 1) * low, low)) - np.log(self._choices())

    def all_reports(self) -> Reports:
        """Every tuple of rows and pattern, up to 2^20 of them before the impossible ones are dropped."""
        if (self.order - 1) ** self.rows * self.signs > MAX_REPORTS:
            return super().all_reports()
        tuples = np.array(np.meshgrid(*[np.arange(1, self.order)] * self.rows, indexing="ij"))
        rows = tuples.reshape(self.rows, -1).T.astype(np.uint64)
        reports = np.empty(len(rows) * self.signs, self.report_dtype)
        reports["rows"] = np.repeat(rows, self.signs, axis=0)
        reports["pattern"] = np.tile(np.arange(self.signs, dtype=np.uint8), len(rows))
        return reports[self.valid(reports)]


class HRRT(HRRTDevice, ManyRowsOracle):
    """HRR-T: t distinct rows whose sign pattern is perturbed as one symbol.

    Reports: t (log2 K + 1) bits. Cost: t + 1 coin words; O(n t + K log K).
    Privacy: epsilon exactly, for every choice of rows.
    Variance: about [(E + 2^t - 1)^2/(t (E - 1)^2) - f]/n; t = 2 beats t = 1 above epsilon 1.34.
    Reference: Kulkarni's dissertation, section 4.7, with its claim that t = 1 is always best corrected.

    >>> HRRT(size=64, epsilon="2").coefficients
    2
    """

    def _draw(self, drawn: U64, indices: U64) -> tuple[U64, U64]:
        rows = distinct_rows(drawn, self.order - 1) + np.uint64(1)
        shifts = np.arange(self.coefficients, dtype=np.uint64)
        return rows, (parity64(rows & indices[:, None]) << shifts).sum(axis=1, dtype=np.uint64)

    def _rows_are_possible(self, rows: U64) -> npt.NDArray[np.bool_]:
        return np.all(rows[:, 1:] > rows[:, :-1], axis=1)

    def _choices(self) -> float:
        return float(comb(self.order - 1, self.rows))

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        codes = self._rows_of(reports) << np.uint64(1) | self._signs(reports)
        repeated = None if weights is None else np.repeat(weights, self.rows)
        return kernels.histogram(codes.reshape(-1), 2 * self.order, repeated)[0]


class HRRSubspace(HRRSubspaceDevice, ManyRowsOracle, PureOracle):
    """HRR-SUBSPACE: t independent rows; the server learns all 2^t - 1 rows of their span.

    Reports: t (log2 K + 1) bits. Cost: t + 1 coin words; O(n 2^t + K log K), where OLH needs n d.
    Privacy: epsilon exactly, for every choice of rows.
    Variance: that of OLH with g = 2^t, and below: a report is an affine subspace of K/g points, a 3-design.
    Reference: an extension of Kulkarni's dissertation, section 4.7; see docs/maths/hrr_subspace.md.

    >>> HRRSubspace(size=1024, epsilon="1").signs
    4
    """

    @cached_property
    def p(self) -> Fraction:
        """Probability that the true value lies in the reported subspace."""
        return as_probability(WORD - (self.signs - 1) * self.low)

    @cached_property
    def q(self) -> Fraction:
        """Every report supports exactly K/2^t points."""
        return (Fraction(self.order, self.signs) - self.p) / (self.order - 1)

    @cached_property
    def moments(self) -> Moments:
        """Affine subspaces over two elements are alike for any three points."""
        return block_moments(self.order, self.order // self.signs, self.p)

    @property
    def told(self) -> int:
        """The whole span of the rows but row 0."""
        return self.signs - 1

    def _draw(self, drawn: U64, indices: U64) -> tuple[U64, U64]:
        return kernels.draw_subspaces(drawn, indices, self.order)

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Independent rows, and a pattern of t bits."""
        return kernels.valid_spans(as_bytes(reports), self.rows, self.order)

    def _countable(self, reports: Reports) -> Reports:
        return self._check_layout(reports)

    def _choices(self) -> float:
        return float(np.prod([float(self.order - (1 << i)) for i in range(self.rows)]))

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        """Signed row sums over the whole span, as (plus, minus) histograms like HRR's."""
        cells, bad = kernels.count_spans(as_bytes(reports), self.rows, self.order, weights)
        if bad:
            self._refuse_invalid(reports)
        return cells

    def _support(self, cells: I64, candidates: U64) -> I64:
        sums = self._signed(cells)
        # Row 0 is +1 in every span, so that its sum is the total of the reports, each of which is in 2^t - 1 cells.
        sums[0] = (cells.sum()) // (self.signs - 1)
        # Over a span, signs add up to 2^t at the points of the reported subspace and to 0 everywhere else.
        return self._take(kernels.walsh_hadamard(sums), candidates) // self.signs

    def _unbiased(self, cells: I64, total: int, candidates: U64) -> F64:
        return PureOracle._unbiased(self, cells, total, candidates)
