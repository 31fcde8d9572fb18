"""Oracles over domains too large to enumerate: the tally is a log of reports, counted once candidates are named."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

import numpy.typing as npt

from tacit.arrays import I64, U64
from tacit.core.mechanism import Oracle, Reports
from tacit.core.tally import Counts, Log, Tally, checked_weights


class LazyOracle(Oracle):
    """An oracle whose public field `state` says whether it keeps counts of the whole domain or a log of reports."""

    state: str = "counts"

    @property
    def cell_count(self) -> int:
        """One for every value, or a log."""
        return self.size if self.state == "counts" else 0

    @abstractmethod
    def _count_at(self, reports: Reports, weights: I64 | None, *, candidates: U64) -> I64:
        """Total weight of the reports that support each candidate."""

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        return self._count_at(reports, weights, candidates=self._everything)

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Tally:
        """Counts of the whole domain, or a log of reports, as the spec says."""
        if self.state == "counts":
            return super().tally(reports, weights)
        array = self.check_reports(reports)
        checked = None if weights is None else (checked_weights(weights, len(array)),)
        return Log(self, (array,), checked)

    def _counted(self, tally: Tally, candidates: U64) -> Counts:
        count: Callable[[Reports, I64 | None], I64] = partial(self._count_at, candidates=candidates)
        return tally.fold(count) if isinstance(tally, Log) else super()._counted(tally, candidates)
