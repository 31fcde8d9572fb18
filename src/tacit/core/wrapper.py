"""The base of mechanisms that wrap another one and send its reports: layout, checks and counts are the inner one's."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.cell_rule import CellRule
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.tally import own_tally


class Wrapper(Mechanism):
    """A mechanism whose reports are those of `inner`. Its tallies are its own, so that the two are not mixed."""

    inner: Mechanism

    @property
    def sends(self) -> Mechanism:
        """The mechanism whose law a single report has: the inner one, unless noise is put on top of its reports."""
        return self.inner

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """Delegated to the inner mechanism."""
        return self.inner.report_dtype

    @property
    def report_bits(self) -> int:
        """Delegated to the inner mechanism."""
        return self.inner.report_bits

    @property
    def cell_count(self) -> int:
        """Delegated to the inner mechanism."""
        return self.inner.cell_count

    @property
    def cell_rule(self) -> CellRule:
        """Delegated to the inner mechanism."""
        return self.inner.cell_rule

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Delegated to the inner mechanism."""
        return self.inner.valid(reports)

    def all_reports(self) -> Reports:
        """Delegated to the inner mechanism."""
        return self.inner.all_reports()

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Any:
        """As the inner mechanism; the tally belongs to this one."""
        return replace(self.inner.tally(reports, weights), mechanism=self)

    def inner_tally(self, tally: Any) -> Any:
        """A tally of this mechanism as one of the mechanism that `sends` is."""
        own_tally(self, tally)
        return replace(tally, mechanism=self.sends)
