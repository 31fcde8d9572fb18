"""Counts of ranges of an ordered private column, answered monotone: by the nearest distribution function.

    SELECT COUNT(*) FROM t WHERE age BETWEEN 30 AND 39 AND os = 'ios'

is a range of `age` among the rows with `os = 'ios'`. Beside the count itself the rows of these are counted up to some
values of `age`: even cuts of its domain, and the ends of the ranges that the query asks for. Noise makes such prefixes
fall here and there, and a true distribution function never does: the nearest one has less error (`post.frequencies.
isotonic`). All ranges of a query over the same rows are read off the same function.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.arrays import F64
from tacit.post.frequencies.isotonic import monotone_distribution
from tacit.sql.engine.predicate import OrderedRange, ordered_range
from tacit.sql.engine.query import Query
from tacit.sql.parse.syntax import Aggregate, Both, ColumnRef, Condition, Output, Select, TruthLiteral
from tacit.sql.schema.schema import Schema

CUTS = 16
"""Even parts that a column is cut into, beside the ends of the ranges that are asked for."""

MOST_WORK = 1 << 21
"""The most rows times prefixes: beyond, a count would take seconds more, and is clipped instead."""


@dataclass(frozen=True, eq=False)
class RangeCounts:
    """The ranges of one column over the same rows: the query for its prefixes, and what they make of the ranges."""

    schema: Schema
    ranges: tuple[tuple[int, OrderedRange], ...]
    """By place of the aggregate; of one column, with one public condition."""

    @property
    def _one(self) -> OrderedRange:
        return self.ranges[0][1]

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """The last indices of all prefixes that are counted; that of all values is known."""
        size = self._one.size
        ends = {end for _, item in self.ranges for low, high in item.spans for end in (low - 1, high)}
        even = {size * i // CUTS - 1 for i in range(1, CUTS)}
        return tuple(sorted(cut for cut in ends | even if 0 <= cut < size - 1))

    @cached_property
    def query(self) -> Query:
        """Counts the rows up to every cut."""
        one = self._one
        asked = Aggregate("prefixes", ColumnRef(one.name), TruthLiteral(True), "prefixes", cuts=self.cuts)
        return Query(self.schema, Select((Output("prefixes", asked),), one.public, (), (), None, 0))

    def shares(self, prefixes: F64, n: int) -> dict[int, float]:
        """The share of the rows in every range, by place of the aggregate; none without rows."""
        if not n:
            return {}
        below = monotone_distribution(np.concatenate([[0.0], prefixes / n, [1.0]]))
        boundaries = [0, *(cut + 1 for cut in self.cuts), self._one.size]
        mass = dict(zip(boundaries, below.tolist(), strict=True))
        return {
            place: float(sum(mass[high + 1] - mass[low] for low, high in item.spans)) for place, item in self.ranges
        }


def range_counts(query: Query, rows: int) -> list[RangeCounts]:
    """The ranges that a query without groups counts, those over the same rows together; none if that is much work."""
    select = query.select
    if select.groups:
        return []
    found: dict[tuple[str, Condition], list[tuple[int, OrderedRange]]] = {}
    for place, item in enumerate(select.aggregates):
        if item.function == "count" and _counts_rows(query.schema, item):
            asked = ordered_range(query.schema, Both((select.condition, item.condition)))
            if asked:
                found.setdefault((asked.name, asked.public), []).append((place, asked))
    some = [RangeCounts(query.schema, tuple(ranges)) for ranges in found.values()]
    return some if _is_affordable(some, rows) else []


def _counts_rows(schema: Schema, item: Aggregate) -> bool:
    """Whether every row counts: COUNT of a public column leaves out those where it is NULL."""
    column = item.argument
    return column is None or (isinstance(column, ColumnRef) and schema.dimension(column.name) is not None)


def _is_affordable(some: Sequence[RangeCounts], rows: int) -> bool:
    return rows * sum(len(one.cuts) for one in some) <= MOST_WORK
