"""The base of mechanisms for the mean of a number: values on a grid 0 .. top, an estimate with one cell."""

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64, U64
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import UNEVEN, Mechanism, Reports, indices_below, privatize_chunks
from tacit.core.statistics.score import Law
from tacit.core.tally import Counts, count_reports, own_tally
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec


class MeanMechanism(Mechanism):
    """Reports on an integer in 0 .. top; the estimate has one cell, the mean of the respondents."""

    top: int

    @abstractmethod
    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        """Reports on numbers that are known to lie on the grid."""

    @abstractmethod
    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        """Cells of a chunk of valid reports."""

    @abstractmethod
    def _mean(self, counts: Counts) -> tuple[float, float, float]:
        """(mean, variance of one report, variance of the numbers) from a tally that is not empty."""

    def numbers(self, values: npt.ArrayLike) -> U64:
        """Values as integers on the grid; a wrong one is refused without being shown."""
        return indices_below(self.top + 1, self.kind, values)

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on a batch of numbers, chunk by chunk."""
        nothing = np.empty(0, self.report_dtype)
        return privatize_chunks(self._privatize, self.numbers(values), coins, nothing)

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Counts:
        """Counts of the reports."""
        return count_reports(self, self._countable(reports), weights, self._count)

    def estimate(self, tally: Counts, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Return the unbiased mean on the grid (one cell), with the variance that the class states."""
        own_tally(self, tally)
        if candidates is not None:
            raise InvalidSpec(f"{self.kind}: estimates one mean; there are no candidates to choose from")
        if tally.is_empty:
            return no_data(1)
        scale = tally.variance_scale
        mean, variance, spread = self._mean(tally)
        return Estimate(
            np.array([mean]),
            np.array([variance * scale]),
            tally.n,
            total=float(tally.total),
            effective=1 / scale,
            spread=np.array([spread]),
            law=self._law(tally),
            caution=UNEVEN if tally.is_uneven else "",
        )

    def _law(self, counts: Counts) -> Law | None:
        """How the variance of the mean depends on the true mean; None where that is not known."""
        del counts
        return None

    @property
    @abstractmethod
    def worst_variance(self) -> float:
        """The largest variance of one report, over all numbers of the grid."""

    def standard_error(self, n: int) -> float:
        """Return the root of the largest variance of a mean of n reports."""
        return float(np.sqrt(self.worst_variance / n))
