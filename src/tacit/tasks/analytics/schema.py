"""What an operator declares: private dimensions with their domains; every other column of the rows is public."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery, InvalidSpec, InvalidValue
from tacit.post.grid_shape import GridShape
from tacit.tasks.analytics.faults import explained
from tacit.tasks.analytics.regions import Spans
from tacit.tasks.analytics.scales import Labels, Numbers, Scale

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

MAX_MEASURE = 1e12
"""The largest measure; the fourth powers that a standard deviation needs then stay far from overflow."""

MAX_LABELS = 1 << 16
"""Labels that a rehearsal takes from data without asking."""


@dataclass(frozen=True)
class Dimension:
    """A private column: integers from `low` to `high`, one of some labels without an order, or a scale of its own.

    >>> Dimension("age", low=0, high=99).size
    100
    """

    name: str
    low: int = 0
    high: int = 0
    labels: tuple[str, ...] = ()
    scale: Scale | None = None

    def __post_init__(self) -> None:
        """Refuse empty domains and labels that repeat."""
        if self.scale is None and not self.labels and not -(1 << 40) <= self.low <= self.high <= 1 << 40:
            raise InvalidSpec(f"{self.name}: the domain must be a range such as 0-99")
        if self.scale is not None:
            object.__setattr__(self, "labels", self.scale.labels)
        elif self.labels:
            assert self._scale  # Refuses labels that repeat.

    @cached_property
    def _scale(self) -> Scale:
        if self.scale is not None:
            return self.scale
        return Labels(self.labels) if self.labels else Numbers(self.low, self.high - self.low + 1)

    @property
    def is_ordinal(self) -> bool:
        """Whether values have an order, so that ranges are asked for."""
        return self._scale.is_ordinal

    @property
    def type(self) -> str:
        """What its values are in answers: integer, text or boolean."""
        return self._scale.type

    @property
    def size(self) -> int:
        """Number of values."""
        return self._scale.size

    def label(self, index: int) -> Any:
        """The value at an index."""
        return self._scale.label(index)

    def rank(self, label: Any) -> Any:
        """By what values are sorted: the place of text that has an order of its own, else the value itself."""
        return self._ranks.get(label, label) if self.is_ordinal and self.labels else label

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def indices(self, values: Sequence[Any]) -> I64:
        """Private values as indices; what is outside of the domain is refused without being shown."""
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
        """The lower and upper end of every value, equal where values are numbers; labels are refused."""
        return self._scale.ends(self.name)

    def spans(self, sign: str, value: Any) -> Spans:
        """The indices that compare so with a constant."""
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

    @cached_property
    def kept_sizes(self) -> tuple[int, ...]:
        """Sizes of the domains that have at least two values, over which regions are."""
        return tuple(self.dimensions[i].size for i in self.kept)

    def shape(self, fanout: int) -> GridShape:
        """Trees over ordinal dimensions, and single values under one root for labels."""
        asked = [self.dimensions[i] for i in self.kept]
        fanouts = tuple(min(fanout, d.size) if d.is_ordinal else d.size for d in asked)
        return GridShape(self.kept_sizes, fanouts)

    def dimension(self, name: str) -> int | None:
        """The place of a private column."""
        return next((i for i, dimension in enumerate(self.dimensions) if dimension.name == name), None)

    def indices(self, columns: dict[str, Sequence[Any]]) -> I64:
        """Private values as rows of indices, of the dimensions that have at least two."""
        asked = [self.dimensions[i] for i in self.kept]
        return np.stack([d.indices(columns[d.name]) for d in asked], axis=1)


def nearest_column(name: str, known: Iterable[str]) -> str:
    """The column of this name, whatever its case, or InvalidQuery with the nearest one."""
    names = list(known)
    if name in names:
        return name
    folded = [item for item in names if item.lower() == name.lower()]
    if len(folded) == 1:
        return folded[0]
    near = get_close_matches(name.lower(), [item.lower() for item in names], 1, 0.5)
    close = next((item for item in names if near and item.lower() == near[0]), None)
    hint = f"; did you mean {close}?" if close else f"; there are {', '.join(names[:12])}"
    raise InvalidQuery(f"sql: there is no column {name[:60]!r}{hint}")
