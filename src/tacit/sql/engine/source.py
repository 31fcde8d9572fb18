"""Sources of per-row terms: noisy reports (with an LRU cache), or the true values in a rehearsal.

The engine asks a source for the terms (see `terms`) of all rows for some regions, and gets them in blocks. That is the
one expensive step of a query: it hashes every node of a region's cover for every report.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Protocol

import numpy as np

from tacit.arrays import I64
from tacit.sql.engine.linked import Linked
from tacit.sql.engine.scores import Scores, score_terms
from tacit.sql.engine.terms import Terms, level_terms, region_terms
from tacit.sql.patience import Check, patient
from tacit.sql.schema.regions import Region

# 2^26 doubles are 512 MB; a region takes two per row.
_CACHED_VALUES = 1 << 26
_FEW = 2
"""A scan of more regions than this bypasses the cache.

A GROUP BY on private columns asks for hundreds of regions at once, which would evict everything and not fit anyway.
"""
# 2^15 rows of two doubles are half a megabyte: a block and the sums made of it stay in a core's L2 cache.
_BLOCK = 1 << 15

Asked = Region | Scores
Block = tuple[Asked, slice, Terms]


class TermSource(Protocol):
    """The protocol of a source: per region, blocks that cover every row exactly once."""

    def scan(self, regions: Sequence[Asked], check: Check = patient) -> Iterator[Block]:
        """Yield (region, rows, terms) for all rows of every region, in any order; `check` may raise to stop."""
        ...


class ReportSource:
    """Terms estimated from reports, with an LRU cache by region: dashboards ask for the same regions all the time."""

    def __init__(self, linked: Linked, *, kept: int | None = None) -> None:
        """Read from linked reports; the cache holds `kept` regions, by default as many as fit into half a gigabyte."""
        self._linked = linked
        self._most = max(1, _CACHED_VALUES // max(1, 2 * linked.n)) if kept is None else kept
        self._kept: OrderedDict[Asked, Terms] = OrderedDict()
        self._lock = Lock()

    def scan(self, regions: Sequence[Asked], check: Check = patient) -> Iterator[Block]:
        """Blocks of cached regions first, then one pass over the reports for all other regions."""
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
        """Bytes of the cached terms."""
        with self._lock:
            return sum(terms.inside.nbytes + terms.variance.nbytes for terms in self._kept.values())

    def _known(self, regions: Sequence[Asked]) -> dict[Asked, Terms]:
        """The cache hits among some regions, which become the most recently used ones."""
        with self._lock:
            found = {region: self._kept[region] for region in regions if region in self._kept}
            for region in found:
                self._kept.move_to_end(region)
            return found

    def _kept_levels(self, regions: Sequence[Region], check: Check) -> Iterator[Block]:
        """Yield the blocks of a pass, and assemble the terms of whole regions from them for the cache."""
        # The generator may be closed half-way (deadline, client gone); only complete terms reach the cache.
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
    """The source of an empty table."""

    def scan(self, regions: Sequence[Asked], check: Check = patient) -> Iterator[Block]:
        """Yield nothing."""
        return iter(())


class ValueSource:
    """The exact source of a rehearsal: true indicators of known private values, to compare noisy answers with."""

    def __init__(self, values: I64) -> None:
        """Read from a matrix of private indices, a row per respondent."""
        self._values = values

    def scan(self, regions: Sequence[Asked], check: Check = patient) -> Iterator[Block]:
        """Yield 0 or 1 (or the score) of every row, with variance 0."""
        zero = np.zeros(len(self._values))
        for region in regions:
            scored = isinstance(region, Scores)
            inside = region.of(self._values) if scored else region.holds(self._values).astype(np.float64)
            yield region, slice(0, len(self._values)), Terms(inside, zero)
