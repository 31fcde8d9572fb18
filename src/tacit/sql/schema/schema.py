"""The schema of a table: which columns are private, and their domains. Every other column of the rows is public.

Indices of dimensions come in two kinds, which are easy to mix up:

    place      the position in `Schema.dimensions`, as declared: what `dimension(name)` returns
    kept       the position among dimensions of at least two values, over which regions, designs and reports are

A dimension of one value tells nothing, so it is never asked; `Schema.kept[i]` is the place of kept dimension i.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.errors import InvalidQuery, InvalidSpec, InvalidValue
from tacit.post.grids.shape import GridShape
from tacit.sql.schema.faults import explained
from tacit.sql.schema.regions import Spans
from tacit.sql.schema.scales import Labels, Numbers, Scale

MAX_MEASURE = 1e12
"""The largest absolute value of a measure.

The variance of a standard deviation needs sums of fourth powers: 1e48 times the number of rows is far from overflow.
"""


@dataclass(frozen=True)
class Dimension:
    """A private column: integers from `low` to `high`, labels without an order, or any `scale`.

    >>> Dimension("age", low=0, high=99).size
    100
    """

    name: str
    low: int = 0
    high: int = 0
    labels: tuple[str, ...] = ()
    scale: Scale | None = None

    def __post_init__(self) -> None:
        """Refuse empty domains and duplicate labels."""
        if self.scale is None and not self.labels and not -(1 << 40) <= self.low <= self.high <= 1 << 40:
            raise InvalidSpec(f"{self.name}: the domain must be a range such as 0-99")
        if self.scale is not None:
            object.__setattr__(self, "labels", self.scale.labels)
        elif self.labels:
            # Builds the scale now, so that duplicate labels are refused here and not at the first query.
            assert self._scale

    @cached_property
    def _scale(self) -> Scale:
        if self.scale is not None:
            return self.scale
        return Labels(self.labels) if self.labels else Numbers(self.low, self.high - self.low + 1)

    @property
    def is_ordinal(self) -> bool:
        """Whether the values have an order, so that the column gets a tree of ranges."""
        return self._scale.is_ordinal

    @property
    def type(self) -> str:
        """The type of its values in answers: integer, text or boolean."""
        return self._scale.type

    @property
    def size(self) -> int:
        """Number of values."""
        return self._scale.size

    def label(self, index: int) -> Any:
        """The value with this index, as answers show it."""
        return self._scale.label(index)

    def rank(self, label: Any) -> Any:
        """The sort key of a value in ORDER BY: the declared position of ordered labels, else the value itself."""
        return self._ranks.get(label, label) if self.is_ordinal and self.labels else label

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def indices(self, values: Sequence[Any]) -> I64:
        """The index of every private value; InvalidValue, which never shows a value, if some lie outside."""
        found = self._scale.indices(values)
        wrong = np.flatnonzero((found < 0) | (found >= self.size)).tolist()
        if wrong:
            faults = [self._scale.fault(values[i]) for i in wrong]
            raise InvalidValue(explained(self.name, self.describe(), faults, len(found)))
        return found

    def describe(self) -> str:
        """The domain in words."""
        return self._scale.describe()

    def ends(self) -> tuple[F64, F64]:
        """The lower and upper end of every value as numbers (equal but for buckets); InvalidQuery for labels."""
        return self._scale.ends(self.name)

    def spans(self, sign: str, value: Any) -> Spans:
        """The indices of the values v for which `v sign value` holds."""
        return self._scale.spans(self.name, sign, value)


@dataclass(frozen=True)
class Schema:
    """The private dimensions of a table, and its name in SQL.

    Public columns are not protected at all. A public column that follows from a private one, such as a birth year
    beside a private age, voids the protection. A schema cannot notice that; a rehearsal can.
    """

    dimensions: tuple[Dimension, ...]
    table: str = "t"
    scales: dict[str, int] = field(default_factory=dict[str, int])
    """Fixed-point measures: public column -> decimals, where its values are integers times 10^-decimals."""

    def __post_init__(self) -> None:
        """Refuse schemas without a private dimension, or with two of one name."""
        names = [dimension.name for dimension in self.dimensions]
        if not names or len(set(names)) != len(names):
            raise InvalidSpec("analytics: private columns must be at least one, each with a name of its own")
        if all(dimension.size < 2 for dimension in self.dimensions):
            raise InvalidSpec("analytics: no private column has two values; there is nothing to protect")

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """Places of the dimensions with at least two values; those of one value need no reports."""
        return tuple(i for i, dimension in enumerate(self.dimensions) if dimension.size > 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the domains of all dimensions, as declared."""
        return tuple(dimension.size for dimension in self.dimensions)

    @cached_property
    def kept_sizes(self) -> tuple[int, ...]:
        """Sizes of the kept dimensions: the axes of regions and designs."""
        return tuple(self.dimensions[i].size for i in self.kept)

    def shape(self, fanout: int) -> GridShape:
        """The grid of trees: fan-out `fanout` for ordinal dimensions, and all values under one root for labels."""
        asked = [self.dimensions[i] for i in self.kept]
        # A fan-out of the whole size makes a tree of one level: every value right under the root.
        fanouts = tuple(min(fanout, d.size) if d.is_ordinal else d.size for d in asked)
        return GridShape(self.kept_sizes, fanouts)

    def dimension(self, name: str) -> int | None:
        """The place of a private column, or None if there is no such one (it may be public)."""
        return next((i for i, dimension in enumerate(self.dimensions) if dimension.name == name), None)

    def indices(self, columns: dict[str, Sequence[Any]]) -> I64:
        """Private values as a matrix of indices: a row per respondent, a column per kept dimension."""
        asked = [self.dimensions[i] for i in self.kept]
        return np.stack([d.indices(columns[d.name]) for d in asked], axis=1)


def nearest_column(name: str, known: Iterable[str]) -> str:
    """The spelling of a column in the schema, ignoring case; InvalidQuery suggests the nearest name if none fits."""
    names = list(known)
    # An exact match wins, so that columns that differ in case alone can all be named.
    if name in names:
        return name
    folded = [item for item in names if item.lower() == name.lower()]
    if len(folded) == 1:
        return folded[0]
    # Names that differ in case alone are ambiguous without an exact match; the nearest one is then suggested.
    near = get_close_matches(name.lower(), [item.lower() for item in names], 1, 0.5)
    close = next((item for item in names if near and item.lower() == near[0]), None)
    hint = f"; did you mean {close}?" if close else f"; there are {', '.join(names[:12])}"
    raise InvalidQuery(f"sql: there is no column {name[:60]!r}{hint}", code="42703")
