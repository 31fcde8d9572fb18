"""What an operator declares: private dimensions with their domains; every other column of the rows is public."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidSpec, InvalidValue
from tacit.post.grid_shape import GridShape
from tacit.tasks.analytics.regions import Spans, as_spans, outside

I64 = npt.NDArray[np.int64]

MAX_MEASURE = 1e12
"""The largest measure; the fourth powers that a standard deviation needs then stay far from overflow."""

MAX_LABELS = 1 << 16


@dataclass(frozen=True)
class Dimension:
    """A private column: integers from `low` to `high`, or one of some labels.

    >>> Dimension("age", low=0, high=99).size
    100
    """

    name: str
    low: int = 0
    high: int = 0
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse empty domains and labels that repeat."""
        if self.labels and (len(set(self.labels)) != len(self.labels) or len(self.labels) > MAX_LABELS):
            raise InvalidSpec(f"{self.name}: labels must be different, at most {MAX_LABELS} of them")
        if not self.labels and not -(1 << 40) <= self.low <= self.high <= 1 << 40:
            raise InvalidSpec(f"{self.name}: the domain must be a range such as 0-99")

    @property
    def is_ordinal(self) -> bool:
        """Whether values are numbers, for which ranges are asked."""
        return not self.labels

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.labels) or self.high - self.low + 1

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def label(self, index: int) -> Any:
        """The value at an index."""
        return self.labels[index] if self.labels else self.low + index

    def indices(self, values: Sequence[Any]) -> I64:
        """Private values as indices; what is outside of the domain is refused without being shown."""
        if self.labels:
            found = np.array([self._places.get(str(value).strip(), -1) for value in values], np.int64)
        else:
            found = _whole_numbers(values) - self.low
        wrong = int(np.count_nonzero((found < 0) | (found >= self.size)))
        if wrong:
            raise InvalidValue(
                f"{self.name}: {wrong} of {len(found)} values are outside the domain, {self.describe()}; "
                "widen the domain, or put them into it before they are privatized"
            )
        return found

    def describe(self) -> str:
        """The domain in words."""
        if self.is_ordinal:
            return f"{self.low} to {self.high}"
        return f"{self.size} labels"

    def spans(self, sign: str, value: Any) -> Spans:
        """The indices that compare so with a constant."""
        if self.is_ordinal:
            return self._ordinal(sign, value)
        if sign not in ("=", "<>"):
            raise InvalidSpec(f"sql: {self.name} has labels without an order; compare it with =, <>, or IN")
        place = self._place(value)
        return ((place, place),) if sign == "=" else outside(((place, place),), self.size)

    def _place(self, value: Any) -> int:
        if isinstance(value, str) and value in self._places:
            return self._places[value]
        near = get_close_matches(str(value), self.labels, 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise InvalidSpec(f"sql: {self.name} is never {str(value)[:40]!r}, which is not one of its labels{hint}")

    def _ordinal(self, sign: str, value: Any) -> Spans:
        if isinstance(value, (str, bool)):
            raise InvalidSpec(f"sql: {self.name} holds whole numbers, compare it with a number, not with text")
        if sign in ("=", "<>") and not (value == int(value) and self.low <= value <= self.high):
            raise InvalidSpec(f"sql: {self.name} is a whole number from {self.describe()}, it is never {value}")
        ranges = {
            "=": (value, value),
            "<>": (value, value),
            "<": (self.low, ceil(value) - 1),
            "<=": (self.low, floor(value)),
            ">": (floor(value) + 1, self.high),
            ">=": (ceil(value), self.high),
        }
        low, high = (int(edge) for edge in ranges[sign])
        inside = as_spans([(max(low, self.low) - self.low, min(high, self.high) - self.low)])
        return outside(inside, self.size) if sign == "<>" else inside


def _whole_numbers(values: Sequence[Any]) -> I64:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return np.full(len(values), np.iinfo(np.int64).min // 2)
    good = np.isfinite(numbers) & (np.abs(numbers) < 2.0**53) & (numbers == np.floor(numbers))
    return np.where(good, numbers, -(2.0**60)).astype(np.int64)


@dataclass(frozen=True)
class Schema:
    """The private dimensions of a table, and its name in SQL.

    Public columns are not protected at all. A public column that follows from a private one, such as a birth year
    beside a private age, voids the protection. A schema cannot notice that; a rehearsal can.
    """

    dimensions: tuple[Dimension, ...]
    table: str = "t"
    scales: dict[str, int] = field(default_factory=dict[str, int])
    """Decimals of measures that declare them: a public column whose values are whole multiples of 10^-decimals."""

    def __post_init__(self) -> None:
        """Refuse schemas without a private dimension, or with two of one name."""
        names = [dimension.name for dimension in self.dimensions]
        if not names or len(set(names)) != len(names):
            raise InvalidSpec("analytics: private columns must be at least one, each with a name of its own")
        if all(dimension.size < 2 for dimension in self.dimensions):
            raise InvalidSpec("analytics: no private column has two values; there is nothing to protect")

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """Dimensions with at least two values; the others are known."""
        return tuple(i for i, dimension in enumerate(self.dimensions) if dimension.size > 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the domains."""
        return tuple(dimension.size for dimension in self.dimensions)

    def shape(self, fanout: int) -> GridShape:
        """Trees over ordinal dimensions, and single values under one root for labels."""
        asked = [self.dimensions[i] for i in self.kept]
        fanouts = tuple(min(fanout, d.size) if d.is_ordinal else d.size for d in asked)
        return GridShape(tuple(d.size for d in asked), fanouts)

    def dimension(self, name: str) -> int | None:
        """The place of a private column."""
        return next((i for i, dimension in enumerate(self.dimensions) if dimension.name == name), None)

    def indices(self, columns: dict[str, Sequence[Any]]) -> I64:
        """Private values as rows of indices, of the dimensions that have at least two."""
        asked = [self.dimensions[i] for i in self.kept]
        return np.stack([d.indices(columns[d.name]) for d in asked], axis=1)


def nearest_column(name: str, known: Iterable[str]) -> str:
    """The column of this name, whatever its case, or InvalidSpec with the nearest one."""
    names = list(known)
    if name in names:
        return name
    folded = [item for item in names if item.lower() == name.lower()]
    if len(folded) == 1:
        return folded[0]
    near = get_close_matches(name.lower(), [item.lower() for item in names], 1, 0.5)
    close = next((item for item in names if near and item.lower() == near[0]), None)
    hint = f"; did you mean {close}?" if close else f"; there are {', '.join(names[:12])}"
    raise InvalidSpec(f"sql: there is no column {name[:60]!r}{hint}")
