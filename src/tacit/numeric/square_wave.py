"""Square wave: numbers reported near themselves, from whose counts a whole distribution can be fitted.

The mean is estimated here, without bias; distributions are in `tacit.decode.square_wave`, which is biased.
"""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, U64
from tacit.core.mechanism import CodeCounting, Reports, code_dtype, words
from tacit.core.tally import Counts
from tacit.device.kinds.square_wave import SquareWaveDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.numeric.base import MeanMechanism

_BLOCK = 256
"""Numbers whose respondents are simulated at a time."""


class SquareWave(SquareWaveDevice, CodeCounting, MeanMechanism):
    """A number in 0 .. size - 1, reported within a window around it E times as likely as at any place outside.

    Reports: log2(size + width - 1) bits. Cost: one coin word; O(n + size) to tally.
    Privacy: epsilon exactly, up to the rounding of one word in 2^64.
    Variance: of the mean, a quadratic function of the number, see docs/maths/sw.md; distributions are fitted by
    expectation maximisation, with and without smoothing, and their errors come from a parametric bootstrap.
    Reference: Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions under local
    differential privacy", SIGMOD 2020.

    >>> m = SquareWave(size=16, epsilon="1")
    >>> m.width, m.outputs, m.realised_epsilon() <= 1.0
    (9, 24, True)
    """

    exact_simulation = True

    @property
    def top(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The largest number."""
        return self.size - 1

    @cached_property
    def near(self) -> float:
        """Probability of each near output."""
        return self.near_words / self.width / WORD

    @cached_property
    def far(self) -> float:
        """Probability of each far output."""
        return self.low / WORD

    @cached_property
    def _gain(self) -> float:
        """What the mean code moves by for every step of the number."""
        return (self.near - self.far) * self.width

    @cached_property
    def _code_moments(self) -> tuple[F64, F64]:
        """E[code | v] and E[code^2 | v] as polynomials in v, lowest power first."""
        offsets, every = np.arange(self.width, dtype=np.float64), np.arange(self.outputs, dtype=np.float64)
        rise, w = self.near - self.far, self.width
        first = np.array([rise * offsets.sum() + self.far * every.sum(), rise * w, 0.0])
        second = np.array([rise * (offsets**2).sum() + self.far * (every**2).sum(), 2 * rise * offsets.sum(), rise * w])
        return first, second

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One code."""
        return code_dtype(self.outputs)

    @property
    def report_bits(self) -> int:
        """log2 of the number of outputs."""
        return (self.outputs - 1).bit_length()

    @property
    def codes(self) -> range:
        """One code per output."""
        return range(self.outputs)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        drawn, far = words(coins, len(indices), 1)[:, 0], np.uint64((self.size - 1) * self.low)
        other = drawn // np.uint64(self.low)
        other += np.uint64(self.width) * (other >= indices)
        # Below `far` the difference wraps around; np.where discards it there.
        near = indices + (drawn - far) // np.uint64(self.high)
        return np.where(drawn >= far, near, other).astype(self.report_dtype)

    def _mean(self, counts: Counts) -> tuple[float, float, float]:
        """Mean and second moment of the numbers solve two linear equations in those of the codes."""
        mean, square = self._solved(counts.cells, counts.total)
        # The variance weighs every respondent by w^2: so do the moments plugged into it.
        again, squares = (mean, square) if not counts.is_weighted else self._solved(counts.cells2, counts.total2)
        return mean, self._variance_of(again, squares), max(0.0, square - mean**2)

    def _solved(self, cells: npt.NDArray[np.int64], total: int) -> tuple[float, float]:
        codes = np.arange(self.outputs, dtype=np.float64)
        first, second = self._code_moments
        mean = (float(cells @ codes) / total - first[0]) / first[1]
        return mean, (float(cells @ codes**2) / total - second[0] - second[1] * mean) / second[2]

    def _variance_of(self, mean: float, square: float) -> float:
        """The mean over respondents of Var(code | v)/gain^2, which is linear in their first two moments."""
        first, second = self._code_moments
        plain = np.array([1.0, mean, square])
        variance = plain @ second - plain @ np.array([first[0] ** 2, 2 * first[0] * first[1], first[1] ** 2])
        # A mean of squares that noise has made impossible: between the smallest and the largest there is.
        least, most = self._extreme_variances
        return float(np.clip(variance / self._gain**2, least, most))

    @cached_property
    def _extreme_variances(self) -> tuple[float, float]:
        v, (first, second) = np.arange(self.size, dtype=np.float64), self._code_moments
        powers = np.stack([np.ones_like(v), v, v**2])
        variance = (second @ powers - (first @ powers) ** 2) / self._gain**2
        return float(variance.min()), float(variance.max())

    @property
    def worst_variance(self) -> float:
        """The largest variance of one report, over all numbers."""
        return self._extreme_variances[1]

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Return the log-probability of codes: near ones, the last of which has a few words less, and far ones."""
        offset = reports.astype(np.int64) - int(value)
        inside = (offset >= 0) & (offset < self.width)
        near = np.where(offset == self.width - 1, float(self.last), float(self.high))
        return np.log(np.where(inside, near, float(self.low))) - np.log(float(WORD))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw the tally at once.

        A report is uniform over its window with probability near - far times the width, and uniform over all outputs
        otherwise. Who reports from a window is drawn number by number, each report by itself.
        """
        true = np.asarray(counts, np.int64)
        n, inside = int(true.sum()), rng.binomial(true, min(1.0, self._gain))
        cells = rng.multinomial(n - int(inside.sum()), np.full(self.outputs, 1 / self.outputs)).astype(np.int64)
        for start in range(0, len(true), _BLOCK):
            block = slice(start, start + _BLOCK)
            places = np.repeat(np.arange(len(true))[block], inside[block])
            places += rng.integers(0, self.width, len(places))
            cells += np.bincount(places, minlength=self.outputs)
        return Counts(self, n, cells, cells, n, n)
