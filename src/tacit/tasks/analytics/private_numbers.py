"""SUM, AVG and quantiles of a private number: which functions of private values they need, and cells from their sums.

SUM needs the number itself. AVG also needs the count, and the sum of both functions, whose variance tells how the two
err together. A quantile at a share q is where sum (1[x <= j] - q) over rows changes its sign; its interval holds all
values at which that sum is within its own standard errors of zero (Woodruff, JASA 1952).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, prod, sqrt

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery
from tacit.tasks.analytics.aggregate import BELOW, Cell, Sums, fieller, is_lost, normal_multiple, without
from tacit.tasks.analytics.regions import Region, span_size
from tacit.tasks.analytics.schema import Schema
from tacit.tasks.analytics.scores import Scores, Steps, steps_of
from tacit.tasks.analytics.syntax import Aggregate, Column

F64 = npt.NDArray[np.float64]
FUNCTIONS = ("sum", "avg", "quantile")
MAX_CUTS = 1 << 8
"""Places at which a quantile is looked for, each of which goes through all reports."""


@dataclass(frozen=True, eq=False)
class PrivateNumber:
    """An aggregate of a private column whose values are numbers."""

    aggregate: Aggregate
    place: int
    """The column among those of at least two values."""
    ends: tuple[F64, F64]
    """The lower and upper end of every value: equal but for buckets."""

    @property
    def middles(self) -> F64:
        """What every value counts: the number, or the middle of a bucket."""
        return (self.ends[0] + self.ends[1]) / 2

    @cached_property
    def _centre(self) -> float:
        return float(np.mean(self.middles))

    @cached_property
    def _cuts(self) -> npt.NDArray[np.int64]:
        """The last value of every stretch between places at which a quantile is looked for."""
        size = len(self.ends[0])
        pieces = min(size, MAX_CUTS)
        return np.arange(1, pieces + 1) * size // pieces - 1

    @cached_property
    def functions(self) -> tuple[Steps, ...]:
        """Functions of the column, by the index of its values, whose sums over rows the cell is made of."""
        match self.aggregate.function:
            case "sum":
                return (steps_of(self.middles),)
            case "avg":
                off = self.middles - self._centre
                return steps_of(off), ((0, 1.0),), steps_of(off + 1)
            case _:
                share = self.aggregate.share
                return tuple(((0, 1 - share), (cut + 1, -share)) for cut in self._cuts[:-1].tolist())

    def expected(self, region: Region) -> Scores:
        """The function whose variance a plan speaks of: the number, less its mean where the answer is a mean."""
        held, off = np.zeros(len(self.middles)), 0.0
        for box in region.boxes:
            others = prod(span_size(spans) for i, spans in enumerate(box) if i != self.place)
            for low, high in box[self.place]:
                held[low : high + 1] += others
        finite = np.where(np.isfinite(self.middles), self.middles, 0.0)
        if self.aggregate.function != "sum" and held.any():
            off = float(held @ finite / held.sum())
        return Scores(region, self.place, steps_of(finite - off))

    def cell(self, sums: Sequence[Sums], *, level: float, least: int) -> Cell:
        """The cell of one group from the sums of its functions."""
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

    def _sum(self, sums: Sums, level: float) -> Cell:
        estimate, error = float(sums.inside[0]), sqrt(_variance(sums))
        half = normal_multiple(level) * error
        text = self.aggregate.text
        return Cell(text, estimate, error, estimate - half, estimate + half, sums.n, "estimate", error)

    def _avg(self, sums: Sequence[Sums], level: float) -> Cell:
        (total, count, _), (v2, v0, both) = (item.inside[0] for item in sums), map(_variance, sums)
        text, n, z = self.aggregate.text, sums[0].n, normal_multiple(level)
        if is_lost(float(count), v0, level):
            return without(text, n, "insufficient_data")
        v1, mean = (both - v0 - v2) / 2, float(total / count)
        error = sqrt(max(0.0, v2 - 2 * mean * v1 + mean**2 * v0)) / float(count)
        low, high = fieller(float(count), float(total), [(v0, v1, v2)], z)
        low, high = min(low, mean) + self._centre, max(high, mean) + self._centre
        return Cell(text, mean + self._centre, error, low, high, n, "estimate", error)

    def _quantile(self, sums: Sequence[Sums], level: float) -> Cell:
        signs = np.array([item.inside[0] for item in sums])
        half = normal_multiple(level) * np.sqrt([_variance(item) for item in sums])
        # The sign of the least-squares monotone fit changes where the running sum is least.
        at = int(np.argmin(np.concatenate([[0.0], np.cumsum(signs)])))
        up, down = np.flatnonzero(signs + half >= 0), np.flatnonzero(signs - half < 0)
        first = min(at, int(up[0]) if len(up) else len(signs))
        last = max(at, int(down[-1]) + 1 if len(down) else 0)
        text, n = self.aggregate.text, sums[0].n
        starts = np.concatenate([[0], self._cuts[:-1] + 1])
        low, high = float(self.ends[0][starts[first]]), float(self.ends[1][self._cuts[last]])
        estimate = (float(self.ends[0][starts[at]]) + float(self.ends[1][self._cuts[at]])) / 2
        everything = (first, last) == (0, len(signs)) and bool(np.any(half > 0))
        if everything or not (isfinite(low) and isfinite(high)):
            return without(text, n, "insufficient_data")
        error = (high - low) / (2 * normal_multiple(level)) if np.any(half > 0) else 0.0
        return Cell(text, estimate, error, low, high, n, "estimate", error)


def _variance(sums: Sums) -> float:
    """The plug-in variance, or the respondents' own spread where few rows make that negative."""
    variance = float(sums.variance[0])
    return variance if variance >= 0 else float(sums.squares[0])


def private_number(schema: Schema, aggregate: Aggregate) -> PrivateNumber | None:
    """The aggregate as one of a private number; None where it measures public columns, or counts rows."""
    column = aggregate.argument
    place = schema.dimension(column.name) if isinstance(column, Column) else None
    if place is None or aggregate.function == "count":
        return None
    dimension = schema.dimensions[place]
    if place not in schema.kept:
        raise InvalidQuery(f"sql: {dimension.name} has one value, {dimension.describe()}; there is nothing to estimate")
    low, high = dimension.ends()
    if aggregate.function != "quantile" and not (low[0] > -inf and high[-1] < inf):
        raise InvalidQuery(
            f"sql: {dimension.name} has buckets without an end, which have no middle to sum; ask for MEDIAN or "
            "COUNT(*) of its ranges"
        )
    return PrivateNumber(aggregate, schema.kept.index(place), (low, high))
