"""What mechanisms for the mean of a number share: a grid 0 .. top in, one mean with its variance out."""

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.tally import Counts, checked_weights, count_reports, same_mechanism
from tacit.device.coins import Coins
from tacit.errors import InvalidSpec, InvalidValue

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_CHUNK_REPORTS = 1 << 16


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
        array = np.asarray(values)
        if array.size and (array.dtype.kind not in "iu" or array.ndim != 1):
            raise InvalidValue(f"{self.kind}: values must be a one-dimensional array of integers")
        if array.size and (int(array.min()) < 0 or int(array.max()) > self.top):
            raise InvalidValue(
                f"{self.kind}: a value is outside the domain, must be an integer from 0 to {self.top}; "
                "encode answers with the domain of the collection"
            )
        return array.astype(np.uint64).reshape(-1)

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on a batch of numbers, chunk by chunk."""
        numbers = self.numbers(values)
        chunks = [
            self._privatize(numbers[start : start + _CHUNK_REPORTS], coins)
            for start in range(0, len(numbers), _CHUNK_REPORTS)
        ]
        return np.concatenate(chunks) if chunks else np.empty(0, self.report_dtype)

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Counts:
        """Counts of the reports."""
        array = self.check_reports(reports)
        checked = None if weights is None else checked_weights(weights, len(array))
        return count_reports(self, array, checked, self._count)

    def estimate(self, tally: Counts, candidates: npt.ArrayLike | None = None) -> Estimate:
        """The unbiased mean on the grid (one cell), with the variance that the class states."""
        same_mechanism(self, tally.mechanism)
        if candidates is not None:
            raise InvalidSpec(f"{self.kind}: estimates one mean; there are no candidates to choose from")
        if tally.is_empty:
            return no_data(1)
        mean, variance, spread = self._mean(tally)
        scale = tally.total2 / tally.total**2
        return Estimate(
            np.array([mean]),
            np.array([variance * scale]),
            tally.n,
            float(tally.total),
            spread=np.array([spread]),
        )

    @property
    @abstractmethod
    def worst_variance(self) -> float:
        """The largest variance of one report, over all numbers of the grid."""

    def standard_error(self, n: int) -> float:
        """Root of the largest variance of a mean of n reports."""
        return float(np.sqrt(self.worst_variance / n))
