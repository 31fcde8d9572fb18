"""Where the terms of queries come from: noisy reports, or known values in a rehearsal."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tacit.tasks.analytics.linked import Linked
from tacit.tasks.analytics.patience import Check, patient
from tacit.tasks.analytics.regions import Region
from tacit.tasks.analytics.scores import Scores, score_terms
from tacit.tasks.analytics.terms import Terms, level_terms, region_terms

I64 = npt.NDArray[np.int64]
_CACHED_VALUES = 1 << 26
_FEW = 2
"""Up to so many regions at once are kept for later queries."""
_BLOCK = 1 << 15

Asked = Region | Scores
Block = tuple[Asked, slice, Terms]


class Source(Protocol):
    """Terms of regions, in blocks of rows that cover all of them once per region."""

    def scan(self, regions: Sequence[Asked], check: Check = patient) -> Iterator[Block]:
        """Terms of all rows for every region, in any order."""
        ...


class ReportSource:
    """Terms of linked reports; those of the last regions are kept, since many queries ask for the same one."""

    def __init__(self, linked: Linked, *, kept: int | None = None) -> None:
        """Hold the reports; terms of `kept` regions are kept, or of as many as fit into half a gigabyte."""
        self._linked = linked
        self._most = max(1, _CACHED_VALUES // max(1, 2 * linked.n)) if kept is None else kept
        self._kept: OrderedDict[Asked, Terms] = OrderedDict()
        self._lock = Lock()

    def scan(self, regions: Sequence[Asked], check: Check = patient) -> Iterator[Block]:
        """Blocks that fit into a processor's cache: one pass over the reports for all regions that are not kept."""
        kept = self._known(regions)
        asked = [region for region in regions if region not in kept]
        for region, terms in kept.items():
            yield from self._blocks(region, terms)
        for scores in (item for item in asked if isinstance(item, Scores)):
            check()
            yield from self._blocks(scores, score_terms(self._linked, scores, check))
        plain = [item for item in asked if isinstance(item, Region)]
        if self._linked.order is None:
            for region in plain:
                yield from self._blocks(region, self._keep(region, region_terms(self._linked, region, check)))
        elif len(plain) > _FEW:
            yield from level_terms(self._linked, plain, check)
        else:
            yield from self._kept_levels(plain, check)

    @property
    def nbytes(self) -> int:
        """Memory of the terms that are kept."""
        with self._lock:
            return sum(terms.inside.nbytes + terms.variance.nbytes for terms in self._kept.values())

    def _known(self, regions: Sequence[Asked]) -> dict[Asked, Terms]:
        with self._lock:
            found = {region: self._kept[region] for region in regions if region in self._kept}
            for region in found:
                self._kept.move_to_end(region)
            return found

    def _kept_levels(self, regions: Sequence[Region], check: Check) -> Iterator[Block]:
        """The same, and the terms are put together on the way."""
        n = self._linked.n
        found = {region: Terms(np.empty(n), np.empty(n)) for region in regions}
        for region, rows, terms in level_terms(self._linked, regions, check):
            found[region].inside[rows], found[region].variance[rows] = terms.inside, terms.variance
            yield region, rows, terms
        for region in regions:
            self._keep(region, found[region])

    def _blocks(self, region: Asked, terms: Terms) -> Iterator[Block]:
        for start in range(0, self._linked.n, _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield region, rows, Terms(terms.inside[rows], terms.variance[rows])

    def _keep(self, region: Asked, terms: Terms) -> Terms:
        with self._lock:
            self._kept[region] = terms
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return terms


class NoSource:
    """Terms of no rows."""

    def scan(self, regions: Sequence[Asked], check: Check = patient) -> Iterator[Block]:
        """Nothing."""
        return iter(())


class ValueSource:
    """True indicators of known values, for comparing answers with the truth."""

    def __init__(self, values: I64) -> None:
        """Hold rows of private indices."""
        self._values = values

    def scan(self, regions: Sequence[Asked], check: Check = patient) -> Iterator[Block]:
        """Indicators without variance."""
        zero = np.zeros(len(self._values))
        for region in regions:
            scored = isinstance(region, Scores)
            inside = region.of(self._values) if scored else region.holds(self._values).astype(np.float64)
            yield region, slice(0, len(self._values)), Terms(inside, zero)
