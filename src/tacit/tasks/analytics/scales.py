"""What a private column may hold, and which of its values compare so with a constant of a query.

A scale numbers the values of a column. Ranges are asked of those that have an order, points of the others.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf
from typing import Any, Protocol
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from tacit.device.base import as_integer
from tacit.device.reals import as_number
from tacit.errors import InvalidQuery, InvalidSpec
from tacit.tasks.analytics.faults import fault_of, is_missing
from tacit.tasks.analytics.regions import Spans, as_spans, outside
from tacit.tasks.analytics.truths import truth_of

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
MAX_LABELS = 1 << 20
_WHOLE = 2.0**53


class Scale(Protocol):
    """The values of a private column, by number."""

    @property
    def type(self) -> str:
        """What a value is in an answer: integer, text or boolean."""
        ...

    @property
    def size(self) -> int:
        """Number of values."""
        ...

    @property
    def is_ordinal(self) -> bool:
        """Whether ranges are asked for."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The values as text, where they are listed one by one."""
        ...

    def label(self, index: int) -> Any:
        """The value at an index."""
        ...

    def describe(self) -> str:
        """The domain in words."""
        ...

    def indices(self, values: Sequence[Any]) -> I64:
        """Values as indices; -1 for what is outside."""
        ...

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """The indices that compare so with a constant."""
        ...

    def ends(self, name: str) -> tuple[F64, F64]:
        """The lower and upper end of every value, equal where values are numbers; refused where they are none."""
        ...

    def fault(self, value: Any) -> str:
        """Why a value is outside, in the words of `faults`."""
        ...


def _range(sign: str, below: int, up_to: int, size: int) -> Spans:
    """Indices by a comparison: `below` of them are less than the constant, `up_to` are less or equal."""
    ranges = {
        "=": (below, up_to - 1),
        "<>": (below, up_to - 1),
        "<": (0, below - 1),
        "<=": (0, up_to - 1),
        ">": (up_to, size - 1),
        ">=": (below, size - 1),
    }
    low, high = ranges[sign]
    inside = as_spans([(max(low, 0), min(high, size - 1))])
    return outside(inside, size) if sign == "<>" else inside


@dataclass(frozen=True)
class Numbers:
    """Whole numbers low, low + step, ..."""

    low: int
    size: int
    step: int = 1
    type: str = "integer"
    is_ordinal: bool = True
    labels: tuple[str, ...] = ()

    def label(self, index: int) -> int:
        """The number."""
        return self.low + index * self.step

    def describe(self) -> str:
        """Both ends."""
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        return f"{self.low} to {self.label(self.size - 1)}{steps}"

    def indices(self, values: Sequence[Any]) -> I64:
        """Steps above the lowest."""
        try:
            numbers = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            return np.full(len(values), -1, np.int64)
        good = np.isfinite(numbers) & (np.abs(numbers) < _WHOLE) & (numbers == np.floor(numbers))
        above = np.where(good, numbers, -_WHOLE).astype(np.int64) - self.low
        return np.where(above % self.step == 0, above // self.step, -1)

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """Any number will do for a range; only a value of the column for = and <>."""
        place = (_constant(name, value) - self.low) / self.step
        if sign in ("=", "<>") and not (place.denominator == 1 and 0 <= place < self.size):
            raise InvalidQuery(f"sql: {name} is a whole number from {self.describe()}, it is never {value}")
        return _range(sign, ceil(place), floor(place) + 1, self.size)

    def ends(self, name: str) -> tuple[F64, F64]:
        """The numbers."""
        found = self.low + self.step * np.arange(self.size, dtype=np.float64)
        return found, found

    def fault(self, value: Any) -> str:
        """Missing, no number, a fraction, too small, too large, or between two steps."""
        low, high = Fraction(self.low), Fraction(self.label(self.size - 1))
        return fault_of(value, low, high, whole=True, rest="between the steps of the domain")


def _constant(name: str, value: Any) -> Fraction:
    """The number that a column of whole numbers is compared with; one in quotes is a number too, as in PostgreSQL."""
    number = as_number(value.strip() if isinstance(value, str) else value)
    if number is None:
        raise InvalidQuery(f"sql: {name} holds whole numbers, compare it with a number, not with text")
    return number


@dataclass(frozen=True)
class Listed:
    """Some whole numbers in rising order, not all of a range: codes, or what occurs in data."""

    values: tuple[int, ...]
    type: str = "integer"
    is_ordinal: bool = True
    labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.values)

    def label(self, index: int) -> int:
        """The number."""
        return self.values[index]

    def describe(self) -> str:
        """How many, and both ends."""
        return f"{self.size} whole numbers from {self.values[0]} to {self.values[-1]}"

    def indices(self, values: Sequence[Any]) -> I64:
        """Places in the list."""
        places: dict[int | None, int] = {value: i for i, value in enumerate(self.values)}
        return np.array([places.get(as_integer(value), -1) for value in values], np.int64)

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """Any number will do for a range; only one of the list for = and <>."""
        number = _constant(name, value)
        below, up_to = bisect_left(self.values, number), bisect_right(self.values, number)
        if sign in ("=", "<>") and below == up_to:
            raise InvalidQuery(f"sql: {name} is never {value}; it is one of {_some([str(v) for v in self.values])}")
        return _range(sign, below, up_to, self.size)

    def ends(self, name: str) -> tuple[F64, F64]:
        """The numbers."""
        found = np.array(self.values, np.float64)
        return found, found

    def fault(self, value: Any) -> str:
        """Missing, no number, a fraction, or not in the list."""
        low, high = Fraction(self.values[0]), Fraction(self.values[-1])
        return fault_of(value, low, high, whole=True, rest="none of its numbers")


@dataclass(frozen=True)
class Labels:
    """One of some labels, in an order or without; `other` stands for everything that is not listed."""

    labels: tuple[str, ...]
    is_ordinal: bool = False
    other: str | None = None
    type: str = "text"

    def __post_init__(self) -> None:
        """Refuse labels that repeat."""
        if len(set(self.labels)) != len(self.labels) or len(self.labels) > MAX_LABELS:
            raise InvalidSpec(f"labels must be different, at most {MAX_LABELS} of them")

    @property
    def size(self) -> int:
        """Number of labels, `other` among them."""
        return len(self.labels)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of every label."""
        return {label: i for i, label in enumerate(self.labels)}

    def label(self, index: int) -> str:
        """The label."""
        return self.labels[index]

    def describe(self) -> str:
        """How many there are."""
        return f"{self.size} labels" + (" in order" if self.is_ordinal else "")

    def indices(self, values: Sequence[Any]) -> I64:
        """Places of labels, spaces around them apart."""
        missing = -1 if self.other is None else self.places[self.other]
        texts = [None if is_missing(value) else str(value).strip() for value in values]
        return np.array([self.places.get(text, missing) if text is not None else missing for text in texts], np.int64)

    def ends(self, name: str) -> tuple[F64, F64]:
        """Refused: labels are no numbers."""
        raise InvalidQuery(
            f"sql: {name} has labels, which are no numbers; write COUNT(*) and GROUP BY {name}, or collect integers"
        )

    def fault(self, value: Any) -> str:
        """Missing, or not a label."""
        return "missing (NULL or NaN)" if is_missing(value) else "none of its labels"

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """Points; ranges where labels have an order."""
        if sign not in ("=", "<>") and not self.is_ordinal:
            raise InvalidQuery(f"sql: {name} has labels without an order; compare it with =, <>, or IN")
        place = self._place(name, value)
        return _range(sign, place, place + 1, self.size)

    def _place(self, name: str, value: Any) -> int:
        # A whole number stands for the label that spells it.
        whole = None if isinstance(value, (str, bool)) else as_number(value)
        spelt = str(whole) if whole is not None else value
        text = normalize("NFC", spelt) if isinstance(spelt, str) else None
        if text in self.places:
            return self.places[text]
        near = get_close_matches(str(value)[:80], self.labels[: 1 << 12], 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else f"; there are {_some(self.labels)}"
        hint += "" if self.other is None else f" What is not listed is counted as '{self.other}'"
        raise InvalidQuery(f"sql: {name} is never {str(value)[:40]!r}, which is not one of its labels{hint}")


def _some(labels: Sequence[str]) -> str:
    return ", ".join(f"'{label[:20]}'" for label in labels[:6]) + (", ..." if len(labels) > 6 else "")


@dataclass(frozen=True)
class Edges:
    """Numbers in half-open buckets [edge, next edge), and in open ones at the ends."""

    edges: tuple[str, ...]
    labels: tuple[str, ...]
    open_below: bool = False
    open_above: bool = False
    type: str = "text"
    is_ordinal: bool = True

    @property
    def size(self) -> int:
        """Number of buckets."""
        return len(self.labels)

    @cached_property
    def _bounds(self) -> list[Fraction]:
        return [Fraction(edge) for edge in self.edges]

    def label(self, index: int) -> str:
        """The bucket as text, such as [0, 10)."""
        return self.labels[index]

    def describe(self) -> str:
        """Both ends and the number of buckets."""
        return f"{self.labels[0]} to {self.labels[-1]}, {self.size} buckets"

    def indices(self, values: Sequence[Any]) -> I64:
        """The buckets that hold numbers."""
        numbers = [as_number(value) for value in values]
        found = [-1 if x is None else bisect_right(self._bounds, x) - 1 + self.open_below for x in numbers]
        return np.array(found, np.int64)

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """Comparisons with a number at an edge, or of equality with a bucket as it is written in answers."""
        if isinstance(value, str) and sign in ("=", "<>") and value in self.labels:
            place = self.labels.index(value)
            return _range(sign, place, place + 1, self.size)
        number = None if isinstance(value, (str, bool)) else as_number(value)
        if number is None or sign in ("=", "<>"):
            raise InvalidQuery(
                f"sql: {name} is known in buckets such as '{self.labels[0]}'; write {name} = '{self.labels[0]}', "
                f"or < and >= with {self._near(number)}"
            )
        below = self._below(name, number)
        if sign in ("<=", ">") and number in self._bounds and below < self.size:
            raise InvalidQuery(
                f"sql: buckets of {name} hold their lower end, not their upper one; "
                f"write {name} < {value} or {name} >= {value}, not {sign} (or BETWEEN)"
            )
        return _range(sign, below, below, self.size)

    def ends(self, name: str) -> tuple[F64, F64]:
        """The edges of every bucket, infinite where it is open."""
        edges = [float(edge) for edge in self.edges]
        whole = [-inf] * self.open_below + edges + [inf] * self.open_above
        return np.array(whole[:-1]), np.array(whole[1:])

    def fault(self, value: Any) -> str:
        """Missing, no number, too small, or too large."""
        return fault_of(value, self._bounds[0], self._bounds[-1], whole=False, rest="above")

    def _below(self, name: str, number: Fraction) -> int:
        """How many buckets lie below a number that cuts none of them."""
        bounds = self._bounds
        cuts = number not in bounds and (
            (bounds[0] < number or self.open_below) and (number < bounds[-1] or self.open_above)
        )
        if cuts:
            raise InvalidQuery(f"sql: {float(number):g} lies inside a bucket of {name}; write {self._near(number)}")
        return min(self.size, bisect_left(bounds, number) + (self.open_below and number >= bounds[0]))

    def _near(self, number: Fraction | None) -> str:
        """The edges next to a number."""
        place = 1 if number is None else bisect_left(self._bounds, number)
        return " or ".join(self.edges[max(0, place - 1) : place + 1])


@dataclass(frozen=True)
class Truths:
    """True or false."""

    type: str = "boolean"
    size: int = 2
    is_ordinal: bool = False
    labels: tuple[str, ...] = ()

    def label(self, index: int) -> bool:
        """The truth value."""
        return bool(index)

    def describe(self) -> str:
        """Both."""
        return "true or false"

    def indices(self, values: Sequence[Any]) -> I64:
        """1 for true."""
        places = {"0": 0, "1": 1, "false": 0, "true": 1}
        return np.array([places.get(str(value).lower(), -1) for value in values], np.int64)

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """Points."""
        truth = truth_of(value) if isinstance(value, str) else value
        if sign not in ("=", "<>") or not isinstance(truth, bool):
            raise InvalidQuery(f"sql: {name} is true or false; write {name}, NOT {name}, or {name} = TRUE")
        return _range(sign, int(truth), truth + 1, self.size)

    def ends(self, name: str) -> tuple[F64, F64]:
        """Refused: a truth is no number."""
        raise InvalidQuery(f"sql: {name} is true or false; write COUNT(*) FILTER (WHERE {name})")

    def fault(self, value: Any) -> str:
        """Missing, or neither."""
        return "missing (NULL or NaN)" if is_missing(value) else "none of its labels"
