"""Where the terms of queries come from: noisy reports, or known values in a rehearsal."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tacit.tasks.analytics.linked import Linked
from tacit.tasks.analytics.regions import Region
from tacit.tasks.analytics.terms import Terms, level_terms, region_terms

I64 = npt.NDArray[np.int64]
_CACHED_VALUES = 1 << 26
_FEW = 2
"""Up to so many regions are computed for all rows and kept; more are gone through level by level."""

Block = tuple[Region, slice, Terms]


class Source(Protocol):
    """Terms of regions, in blocks of rows that cover all of them once per region."""

    def scan(self, regions: Sequence[Region]) -> Iterator[Block]:
        """Terms of all rows for every region, in any order."""
        ...


class ReportSource:
    """Terms of linked reports; those of the last regions are kept, since many queries ask for the same one."""

    def __init__(self, linked: Linked) -> None:
        """Hold the reports."""
        self._linked = linked
        self._kept: OrderedDict[Region, Terms] = OrderedDict()

    def scan(self, regions: Sequence[Region]) -> Iterator[Block]:
        """Whole columns for few regions; for many, one pass over the reports, a level at a time."""
        known = [region for region in regions if region in self._kept]
        asked = [region for region in regions if region not in self._kept]
        whole = slice(0, self._linked.n)
        yield from ((region, whole, self.terms(region)) for region in known)
        if len(asked) > _FEW and self._linked.order is not None:
            yield from level_terms(self._linked, asked)
        else:
            yield from ((region, whole, self.terms(region)) for region in asked)

    def terms(self, region: Region) -> Terms:
        """Terms of all rows, from memory where they are there."""
        found = self._kept.pop(region, None)
        if found is None:
            found = region_terms(self._linked, region)
        self._kept[region] = found
        while len(self._kept) > max(1, _CACHED_VALUES // max(1, 2 * self._linked.n)):
            self._kept.popitem(last=False)
        return found


class ValueSource:
    """True indicators of known values, for comparing answers with the truth."""

    def __init__(self, values: I64) -> None:
        """Hold rows of private indices."""
        self._values = values

    def scan(self, regions: Sequence[Region]) -> Iterator[Block]:
        """Indicators without variance."""
        zero = np.zeros(len(self._values))
        for region in regions:
            yield region, slice(0, len(self._values)), Terms(region.holds(self._values).astype(np.float64), zero)
