"""Scales: the domain of a private column, as an enumeration of its values.

A scale maps values to indices 0..size-1 and back, and translates a comparison such as `age < 30` into the set of
indices that satisfy it. Ordinal scales get a tree of ranges over their values; the others (labels without an order,
truth values) are asked value by value. To add a type of column, implement the protocol `Scale`.
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

from tacit.arrays import F64, I64
from tacit.device.base import as_integer
from tacit.device.domains.domain import MAX_LABELS
from tacit.device.domains.reals import as_number
from tacit.errors import InvalidQuery, InvalidSpec
from tacit.sql.schema.faults import fault_of, is_missing
from tacit.sql.schema.regions import Spans, as_spans, outside
from tacit.sql.schema.truths import truth_of

# Beyond 2^53 doubles skip integers, so that a number read as a double may not be the one that was meant.
_WHOLE = 2.0**53


class Scale(Protocol):
    """The protocol of a domain: values of a private column, numbered from 0."""

    @property
    def type(self) -> str:
        """The type of its values in answers: integer, text or boolean."""
        ...

    @property
    def size(self) -> int:
        """Number of values."""
        ...

    @property
    def is_ordinal(self) -> bool:
        """Whether the values have an order that ranges (<, BETWEEN) may use."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """The values as text where the document lists them one by one; empty for numbers."""
        ...

    def label(self, index: int) -> Any:
        """The value with this index, as answers show it."""
        ...

    def describe(self) -> str:
        """The domain in words, for error messages."""
        ...

    def indices(self, values: Sequence[Any]) -> I64:
        """The index of every value; one below 0 or not below `size` for values outside of the domain."""
        ...

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """The indices of the values v for which `v sign constant` holds; `name` is the column's, for errors."""
        ...

    def ends(self, name: str) -> tuple[F64, F64]:
        """The lower and upper end of every value as numbers, for SUM and AVG; InvalidQuery for labels.

        They are equal but for buckets.
        """
        ...

    def fault(self, value: Any) -> str:
        """Why a value is outside of the domain, as one of the phrases of the module `faults`."""
        ...


def _range(sign: str, below: int, up_to: int, size: int) -> Spans:
    """The indices that satisfy a comparison with a constant, on a scale in rising order.

    `below` values are less than the constant and `up_to` are less or equal; they are equal if none of them is the
    constant itself.
    """
    # Index:       0 .. below-1 | below .. up_to-1 | up_to .. size-1
    # Value is:        <        |        =         |        >         the constant
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
    """The integers low, low + step, ..., `size` of them."""

    low: int
    size: int
    step: int = 1
    type: str = "integer"
    is_ordinal: bool = True
    labels: tuple[str, ...] = ()

    def label(self, index: int) -> int:
        """The number with this index."""
        return self.low + index * self.step

    def describe(self) -> str:
        """The lowest and highest number, and the step if it is not 1."""
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        return f"{self.low} to {self.label(self.size - 1)}{steps}"

    def indices(self, values: Sequence[Any]) -> I64:
        """How many steps every number lies above the lowest; -1 for fractions, NaN, infinities and other types."""
        try:
            numbers = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            return np.full(len(values), -1, np.int64)
        # Bad numbers become -2^53 before the cast, as casting NaN to int64 is undefined; that is below any domain.
        good = np.isfinite(numbers) & (np.abs(numbers) < _WHOLE) & (numbers == np.floor(numbers))
        above = np.where(good, numbers, -_WHOLE).astype(np.int64) - self.low
        return np.where(above % self.step == 0, above // self.step, -1)

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """The indices that compare so; = and <> take values of the domain alone, as others are surely mistakes."""
        place = (_constant(name, value) - self.low) / self.step
        if sign in ("=", "<>") and not (place.denominator == 1 and 0 <= place < self.size):
            raise InvalidQuery(
                f"sql: {name} is a whole number from {self.describe()}, it is never {value}", code="22003"
            )
        return _range(sign, ceil(place), floor(place) + 1, self.size)

    def ends(self, name: str) -> tuple[F64, F64]:
        """The numbers themselves, twice."""
        found = self.low + self.step * np.arange(self.size, dtype=np.float64)
        return found, found

    def fault(self, value: Any) -> str:
        """NULL or NaN, not a number, a fraction, below, above, or between two steps."""
        low, high = Fraction(self.low), Fraction(self.label(self.size - 1))
        return fault_of(value, low, high, whole=True, rest="between the steps of the domain")


def _constant(name: str, value: Any) -> Fraction:
    """The constant of a comparison with an integer column; a number in quotes counts, as it does in PostgreSQL."""
    number = as_number(value.strip() if isinstance(value, str) else value)
    if number is None:
        raise InvalidQuery(f"sql: {name} holds whole numbers, compare it with a number, not with text", code="42804")
    return number


@dataclass(frozen=True)
class ListedScale:
    """A list of integers in rising order with gaps between them, such as codes."""

    values: tuple[int, ...]
    type: str = "integer"
    is_ordinal: bool = True
    labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of integers in the list."""
        return len(self.values)

    def label(self, index: int) -> int:
        """The number with this index."""
        return self.values[index]

    def describe(self) -> str:
        """How many integers there are, the lowest and the highest."""
        return f"{self.size} whole numbers from {self.values[0]} to {self.values[-1]}"

    def indices(self, values: Sequence[Any]) -> I64:
        """The position of every value in the list, or -1."""
        places: dict[int | None, int] = {value: i for i, value in enumerate(self.values)}
        return np.array([places.get(as_integer(value), -1) for value in values], np.int64)

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """The indices that compare so; = and <> take numbers of the list alone."""
        number = _constant(name, value)
        below, up_to = bisect_left(self.values, number), bisect_right(self.values, number)
        if sign in ("=", "<>") and below == up_to:
            raise InvalidQuery(
                f"sql: {name} is never {value}; it is one of {_some([str(v) for v in self.values])}", code="22003"
            )
        return _range(sign, below, up_to, self.size)

    def ends(self, name: str) -> tuple[F64, F64]:
        """The numbers themselves, twice."""
        found = np.array(self.values, np.float64)
        return found, found

    def fault(self, value: Any) -> str:
        """NULL or NaN, not a number, a fraction, below, above, or not in the list."""
        low, high = Fraction(self.values[0]), Fraction(self.values[-1])
        return fault_of(value, low, high, whole=True, rest="none of its numbers")


@dataclass(frozen=True)
class Labels:
    """Text labels, with or without an order; where `other` is set, values that are not listed count as that label."""

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
        """The number of labels, and whether they have an order."""
        return f"{self.size} labels" + (" in order" if self.is_ordinal else "")

    def indices(self, values: Sequence[Any]) -> I64:
        """The position of every label, ignoring blanks around it; those of `other` or -1 for all other values."""
        # With an `other`, NULL and NaN count as that label, like every value that is not listed.
        missing = -1 if self.other is None else self.places[self.other]
        # Nearly all values are labels as they are spelt; only the others are looked at more closely.
        quick = [self._spelt.get(value) if type(value) is str else None for value in values]
        pairs = zip(values, quick, strict=True)
        return np.array([self._found(value, missing) if at is None else at for value, at in pairs], np.int64)

    @cached_property
    def _spelt(self) -> dict[str, int]:
        """The places of labels without blanks around them, which need not be looked for."""
        return {label: place for label, place in self.places.items() if label == label.strip()}

    def _found(self, value: Any, missing: int) -> int:
        return missing if is_missing(value) else self.places.get(str(value).strip(), missing)

    def ends(self, name: str) -> tuple[F64, F64]:
        """InvalidQuery: labels cannot be summed."""
        raise InvalidQuery(
            f"sql: {name} has labels, which are no numbers; write COUNT(*) and GROUP BY {name}, or collect integers",
            code="42804",
        )

    def fault(self, value: Any) -> str:
        """NULL or NaN, or not a label."""
        return "missing (NULL or NaN)" if is_missing(value) else "none of its labels"

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """The indices that compare so; < and > need labels that have an order."""
        if sign not in ("=", "<>") and not self.is_ordinal:
            raise InvalidQuery(f"sql: {name} has labels without an order; compare it with =, <>, or IN", code="42883")
        place = self._place(name, value)
        return _range(sign, place, place + 1, self.size)

    def _place(self, name: str, value: Any) -> int:
        # A number without quotes means the label that spells it: drivers bind `code = 7` as an integer.
        whole = None if isinstance(value, (str, bool)) else as_number(value)
        spelt = str(whole) if whole is not None else value
        text = normalize("NFC", spelt) if isinstance(spelt, str) else None
        if text in self.places:
            return self.places[text]
        # difflib is quadratic in lengths and linear in labels, so both are cut: refusing must not take seconds.
        near = get_close_matches(str(value)[:80], self.labels[: 1 << 12], 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else f"; there are {_some(self.labels)}"
        hint += "" if self.other is None else f" What is not listed is counted as '{self.other}'"
        raise InvalidQuery(
            f"sql: {name} is never {str(value)[:40]!r}, which is not one of its labels{hint}", code="22P02"
        )


def _some(labels: Sequence[str]) -> str:
    return ", ".join(f"'{label[:20]}'" for label in labels[:6]) + (", ..." if len(labels) > 6 else "")


@dataclass(frozen=True)
class Edges:
    """Numbers grouped into half-open buckets [edge, next edge), and unbounded buckets at either end if declared.

    Queries compare the number, not the bucket, so that the constants of < and >= must be edges: the reports cannot tell
    values inside a bucket apart.
    """

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
        """The first and last bucket, and how many there are."""
        return f"{self.labels[0]} to {self.labels[-1]}, {self.size} buckets"

    def indices(self, values: Sequence[Any]) -> I64:
        """The bucket of every number, or -1; compared as exact fractions, so that 0.1 is never below an edge of 0.1."""
        numbers = [as_number(value) for value in values]
        # bisect_right - 1 is the last edge at or below x, as buckets hold their lower end; below the first edge that is
        # -1, which is outside, or becomes the unbounded bucket 0 where there is one and all others move up by one.
        found = [-1 if x is None else bisect_right(self._bounds, x) - 1 + self.open_below for x in numbers]
        return np.array(found, np.int64)

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """The buckets that compare so: `< edge`, `>= edge`, or = and <> with a bucket's label, such as '[0, 10)'."""
        if isinstance(value, str) and sign in ("=", "<>") and value in self.labels:
            place = self.labels.index(value)
            return _range(sign, place, place + 1, self.size)
        number = None if isinstance(value, (str, bool)) else as_number(value)
        if number is None or sign in ("=", "<>"):
            raise InvalidQuery(
                f"sql: {name} is known in buckets such as '{self.labels[0]}'; write {name} = '{self.labels[0]}', "
                f"or < and >= with {self._near(number)}",
                code="22P02",
            )
        below = self._below(name, number)
        # At an edge, `<= 10` would need the single value 10 out of the bucket [10, 20), which nobody reported.
        if sign in ("<=", ">") and number in self._bounds and below < self.size:
            raise InvalidQuery(
                f"sql: buckets of {name} hold their lower end, not their upper one; "
                f"write {name} < {value} or {name} >= {value}, not {sign} (or BETWEEN)",
                code="22003",
            )
        return _range(sign, below, below, self.size)

    def ends(self, name: str) -> tuple[F64, F64]:
        """The lower and upper edge of every bucket, infinite for unbounded ones."""
        edges = [float(edge) for edge in self.edges]
        whole = [-inf] * self.open_below + edges + [inf] * self.open_above
        return np.array(whole[:-1]), np.array(whole[1:])

    def fault(self, value: Any) -> str:
        """NULL or NaN, not a number, below, or above."""
        return fault_of(value, self._bounds[0], self._bounds[-1], whole=False, rest="above")

    def _below(self, name: str, number: Fraction) -> int:
        """How many buckets lie below a number; InvalidQuery if it lies inside a bucket."""
        bounds = self._bounds
        # A number outside of all buckets cuts none, unless the bucket there is unbounded.
        cuts = number not in bounds and (
            (bounds[0] < number or self.open_below) and (number < bounds[-1] or self.open_above)
        )
        if cuts:
            raise InvalidQuery(
                f"sql: {float(number):g} lies inside a bucket of {name}; write {self._near(number)}", code="22003"
            )
        return min(self.size, bisect_left(bounds, number) + (self.open_below and number >= bounds[0]))

    def _near(self, number: Fraction | None) -> str:
        """The edges next to a number, as a suggestion of what to write."""
        place = 1 if number is None else bisect_left(self._bounds, number)
        return " or ".join(self.edges[max(0, place - 1) : place + 1])


@dataclass(frozen=True)
class Truths:
    """The domain of a boolean column: FALSE is index 0 and TRUE is index 1."""

    type: str = "boolean"
    size: int = 2
    is_ordinal: bool = False
    labels: tuple[str, ...] = ()

    def label(self, index: int) -> bool:
        """FALSE for 0 and TRUE for 1."""
        return bool(index)

    def describe(self) -> str:
        """The two values, for error messages."""
        return "true or false"

    def indices(self, values: Sequence[Any]) -> I64:
        """0 or 1 for booleans, the numbers 0 and 1, and the words true and false in any case; else -1."""
        places = {"0": 0, "1": 1, "false": 0, "true": 1}
        return np.array([places.get(str(value).lower(), -1) for value in values], np.int64)

    def spans(self, name: str, sign: str, value: Any) -> Spans:
        """The index that = or <> with TRUE or FALSE selects; words as PostgreSQL reads them count."""
        truth = truth_of(value) if isinstance(value, str) else value
        if sign not in ("=", "<>") or not isinstance(truth, bool):
            raise InvalidQuery(
                f"sql: {name} is true or false; write {name}, NOT {name}, or {name} = TRUE", code="42804"
            )
        return _range(sign, int(truth), truth + 1, self.size)

    def ends(self, name: str) -> tuple[F64, F64]:
        """InvalidQuery: truth values cannot be summed."""
        raise InvalidQuery(f"sql: {name} is true or false; write COUNT(*) FILTER (WHERE {name})", code="42804")

    def fault(self, value: Any) -> str:
        """NULL or NaN, or neither TRUE nor FALSE."""
        return "missing (NULL or NaN)" if is_missing(value) else "none of its labels"
