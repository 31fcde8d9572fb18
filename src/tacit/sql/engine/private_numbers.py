"""SUM, AVG and quantiles of a private column: the functions of private values they need, and cells from their sums.

SUM needs f(x) = x. AVG is a ratio and needs three functions: x, 1 and x + 1; the variance of the third gives the
covariance of the first two, Cov = (Var(x + 1) - Var(x) - Var(1)) / 2. A quantile at share q is where
S(j) = sum over rows of (1[x <= j] - q) changes its sign; its confidence interval is the set of j at which S(j) is
within its own standard errors of zero (Woodruff, JASA 1952).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, prod, sqrt

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.errors import InvalidQuery
from tacit.sql.engine.aggregate import BELOW, AggregateCell, PowerSums, fieller, is_lost, normal_multiple, without
from tacit.sql.engine.scores import Scores, Steps, steps_of
from tacit.sql.parse.syntax import Aggregate, ColumnRef
from tacit.sql.schema.regions import Region, span_size
from tacit.sql.schema.schema import Schema

FUNCTIONS = ("sum", "avg", "quantile")
MAX_CUTS = 1 << 8
"""Candidate values of a quantile; each is one more function that is evaluated over all reports."""


@dataclass(frozen=True, eq=False)
class PrivateNumber:
    """An aggregate of a private column whose values are numbers."""

    aggregate: Aggregate
    place: int
    """Index of the column among the kept dimensions (see `schema`)."""
    ends: tuple[F64, F64]
    """Arrays of the lower and the upper end of every value; equal but for buckets."""

    @property
    def middles(self) -> F64:
        """The number that every value counts as: itself, or the middle of its bucket."""
        return (self.ends[0] + self.ends[1]) / 2

    @cached_property
    def _centre(self) -> float:
        return float(np.mean(self.middles))

    @cached_property
    def _cuts(self) -> npt.NDArray[np.int64]:
        """Indices of the last value of every stretch: all values if they are few, else `MAX_CUTS` even stretches."""
        size = len(self.ends[0])
        pieces = min(size, MAX_CUTS)
        return np.arange(1, pieces + 1) * size // pieces - 1

    @cached_property
    def functions(self) -> tuple[Steps, ...]:
        """The functions of the column (by value index) whose sums over rows make the cell, as `cell` expects them."""
        match self.aggregate.function:
            case "sum":
                return (steps_of(self.middles),)
            case "avg":
                # Centred for numerical stability; `_avg` adds the centre back.
                off = self.middles - self._centre
                return steps_of(off), ((0, 1.0),), steps_of(off + 1)
            case "prefixes":
                return tuple(((0, 1.0), (cut + 1, 0.0)) for cut in self.aggregate.cuts)
            case _:
                # 1[x <= cut] - q: 1 - q from index 0 on, -q behind the cut. The last cut would always be 1 - q.
                share = self.aggregate.share
                return tuple(((0, 1 - share), (cut + 1, -share)) for cut in self._cuts[:-1].tolist())

    def expected(self, region: Region) -> Scores:
        """The function whose variance EXPLAIN uses: the number, minus its mean under uniform values for AVG.

        By the delta method the error of a ratio is that of sum (x - mean) over the count.
        """
        # `held[i]`: number of combinations in the region that have value i in this column.
        held, off = np.zeros(len(self.middles)), 0.0
        for box in region.boxes:
            others = prod(span_size(spans) for i, spans in enumerate(box) if i != self.place)
            for low, high in box[self.place]:
                held[low : high + 1] += others
        finite = np.where(np.isfinite(self.middles), self.middles, 0.0)
        if self.aggregate.function != "sum" and held.any():
            off = float(held @ finite / held.sum())
        return Scores(region, self.place, steps_of(finite - off))

    def cell(self, sums: Sequence[PowerSums], *, level: float, least: int) -> AggregateCell:
        """The cell of one group from the sums of its functions; no estimate if it has fewer rows than `least`."""
        text, rows, n = self.aggregate.text, max(item.asked.n for item in sums), max(item.n for item in sums)
        if not n:
            return without(text, n, "no_data")
        if rows < least:
            return without(text, n, BELOW)
        match self.aggregate.function:
            case "sum":
                return self._sum(sums[0], level)
            case "avg":
                return self._avg(sums, level)
            case _:
                return self._quantile(sums, level)

    def _sum(self, sums: PowerSums, level: float) -> AggregateCell:
        estimate, error = float(sums.inside[0]), sqrt(_variance(sums))
        half = normal_multiple(level) * error
        text = self.aggregate.text
        return AggregateCell(text, estimate, error, estimate - half, estimate + half, sums.n, "estimate", error)

    def _avg(self, sums: Sequence[PowerSums], level: float) -> AggregateCell:
        (total, count, _), (v2, v0, both) = (item.inside[0] for item in sums), map(_variance, sums)
        text, n, z = self.aggregate.text, sums[0].n, normal_multiple(level)
        if is_lost(float(count), v0, level):
            return without(text, n, "insufficient_data")
        # v0, v1, v2: variance of the count, covariance, variance of the total. Below: delta method, then Fieller.
        v1, mean = (both - v0 - v2) / 2, float(total / count)
        error = sqrt(max(0.0, v2 - 2 * mean * v1 + mean**2 * v0)) / float(count)
        low, high = fieller(float(count), float(total), [(v0, v1, v2)], z)
        low, high = min(low, mean) + self._centre, max(high, mean) + self._centre
        return AggregateCell(text, mean + self._centre, error, low, high, n, "estimate", error)

    def _quantile(self, sums: Sequence[PowerSums], level: float) -> AggregateCell:
        signs = np.array([item.inside[0] for item in sums])
        half = normal_multiple(level) * np.sqrt([_variance(item) for item in sums])
        # S(j) should rise with j, but noise makes it cross zero several times. Its isotonic (least-squares monotone)
        # fit changes sign exactly where the running sum of S is least, so that no fit has to be computed.
        at = int(np.argmin(np.concatenate([[0.0], np.cumsum(signs)])))
        up, down = np.flatnonzero(signs + half >= 0), np.flatnonzero(signs - half < 0)
        first = min(at, int(up[0]) if len(up) else len(signs))
        last = max(at, int(down[-1]) + 1 if len(down) else 0)
        text, n = self.aggregate.text, sums[0].n
        # Stretch k holds the values starts[k].._cuts[k]; `first`, `at` and `last` are stretches.
        starts = np.concatenate([[0], self._cuts[:-1] + 1])
        low, high = float(self.ends[0][starts[first]]), float(self.ends[1][self._cuts[last]])
        estimate = (float(self.ends[0][starts[at]]) + float(self.ends[1][self._cuts[at]])) / 2
        everything = (first, last) == (0, len(signs)) and bool(np.any(half > 0))
        if everything or not (isfinite(low) and isfinite(high)):
            return without(text, n, "insufficient_data")
        error = (high - low) / (2 * normal_multiple(level)) if np.any(half > 0) else 0.0
        return AggregateCell(text, estimate, error, low, high, n, "estimate", error)


def _variance(sums: PowerSums) -> float:
    """The plug-in variance sum of v; where few rows make it negative, the sum of z^2, which never is."""
    variance = float(sums.variance[0])
    return variance if variance >= 0 else float(sums.squares[0])


def private_number(schema: Schema, aggregate: Aggregate) -> PrivateNumber | None:
    """The aggregate as one of a private number, or None if it is a COUNT or measures public columns."""
    column = aggregate.argument
    place = schema.dimension(column.name) if isinstance(column, ColumnRef) else None
    if place is None or aggregate.function == "count":
        return None
    dimension = schema.dimensions[place]
    if place not in schema.kept:
        raise InvalidQuery(
            f"sql: {dimension.name} has one value, {dimension.describe()}; there is nothing to estimate",
            code="0A000",
            position=aggregate.position,
        )
    if aggregate.function == "prefixes":
        # Counts of indices, which ordered labels have as well as numbers.
        places = np.arange(dimension.size, dtype=np.float64)
        return PrivateNumber(aggregate, schema.kept.index(place), (places, places))
    low, high = dimension.ends()
    if aggregate.function != "quantile" and not (low[0] > -inf and high[-1] < inf):
        raise InvalidQuery(
            f"sql: {dimension.name} has buckets without an end, which have no middle to sum; ask for MEDIAN or "
            "COUNT(*) of its ranges",
            code="0A000",
            position=aggregate.position,
        )
    return PrivateNumber(aggregate, schema.kept.index(place), (low, high))
