"""Domains of numbers: integers on a grid, and reals in half-open buckets.

A number is read as the decimal its owner wrote. Text and integers are exact already; a float stands for its
shortest decimal, so that 0.3 falls into the bucket that begins at "0.3", although its binary value is less.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.device.base import as_integer
from tacit.device.domains.domain import Attribute, bounded, listed
from tacit.device.numbers.canonical import shortest_decimal
from tacit.errors import InvalidSpec, InvalidValue

_SAFE = (1 << 53) - 1
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{1,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_EDGE = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,18})?")
_MAX_EDGES = 1 << 20


def as_number(value: Any) -> Fraction | None:
    """The exact number a value stands for; None for NaN, infinities, booleans and other text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Fraction):
        return value
    if (whole := as_integer(value)) is not None:
        return Fraction(whole)
    text = repr(float(value)) if isinstance(value, float) else str(value)
    readable = isinstance(value, (str, float, Decimal)) and _NUMBER.fullmatch(text)
    return Fraction(text) if readable else None


def _canonical_edge(who: str, given: Any) -> str:
    """The shortest decimal text of an edge: "01.50" -> "1.5"."""
    text = str(given) if type(given) is int else given
    if not isinstance(text, str) or not _EDGE.fullmatch(text):
        raise InvalidSpec(f'{who}: an edge must be decimal text such as "-0.5", with at most 15 digits and 18 decimals')
    return shortest_decimal(text)


@dataclass(frozen=True)
class Integers(Attribute):
    """The integers low, low + step, ..., high.

    >>> Integers("age", 0, 120).encode("42")
    42
    """

    kind: ClassVar[str] = "integers"

    low: int
    high: int
    step: int = 1

    def _check(self) -> None:
        low = bounded(self.low, self.name, "low", -_SAFE, _SAFE)
        high = bounded(self.high, self.name, "high", -_SAFE, _SAFE)
        step = bounded(self.step, self.name, "step", 1, _SAFE)
        if high < low or (high - low) % step or (high - low) // step >= _SAFE:
            raise InvalidSpec(f"{self.name}: high must be low plus fewer than 2^53 whole steps")
        for field, value in (("low", low), ("high", high), ("step", step)):
            self._set(field, value)

    @property
    def size(self) -> int:
        """Number of grid points."""
        return (self.high - self.low) // self.step + 1

    def _label(self, index: int) -> int:
        return self.low + index * self.step

    def encode(self, value: Any) -> int:
        """Steps above low; the value must lie on the grid."""
        number = as_number(value)
        if number is None or not self.low <= number <= self.high or (number - self.low) % self.step:
            steps = "" if self.step == 1 else f" in steps of {self.step}"
            rule = f"must be an integer from {self.low} to {self.high}{steps}"
            raise InvalidValue(f"{self.name}: the value is outside the domain, {rule}")
        return int(number - self.low) // self.step


@dataclass(frozen=True)
class Buckets(Attribute):
    """Real numbers in half-open buckets [edge, next edge); open ends get a bucket of their own.

    >>> Buckets("income", ("0", "999.5", "5000"), open_above=True).all_labels()
    ['[0, 999.5)', '[999.5, 5000)', '>= 5000']
    """

    kind: ClassVar[str] = "buckets"

    edges: tuple[str, ...]
    open_below: bool = False
    open_above: bool = False

    def _check(self) -> None:
        edges = listed(self.edges, self.name, "edges")
        if type(self.open_below) is not bool or type(self.open_above) is not bool:
            raise InvalidSpec(f"{self.name}: open_below and open_above must be true or false")
        self._set("edges", tuple(_canonical_edge(self.name, edge) for edge in edges))
        if not 1 <= len(edges) <= _MAX_EDGES or self.size < 1:
            raise InvalidSpec(f"{self.name}: edges must be 2 to {_MAX_EDGES} numbers, or 1 with an open end")
        if any(a >= b for a, b in zip(self._bounds, self._bounds[1:], strict=False)):
            raise InvalidSpec(f"{self.name}: edges must increase")

    @cached_property
    def _bounds(self) -> list[Fraction]:
        return [Fraction(edge) for edge in self.edges]

    @property
    def size(self) -> int:
        """Buckets between the edges, and one for each open end."""
        return len(self.edges) - 1 + self.open_below + self.open_above

    def _label(self, index: int) -> str:
        place = index - self.open_below
        if place < 0:
            return f"< {self.edges[0]}"
        if place == len(self.edges) - 1:
            return f">= {self.edges[-1]}"
        return f"[{self.edges[place]}, {self.edges[place + 1]})"

    def encode(self, value: Any) -> int:
        """The bucket that holds the number."""
        number = as_number(value)
        if number is None:
            raise InvalidValue(f"{self.name}: the value must be a number or decimal text")
        index = bisect_right(self._bounds, number) - 1 + self.open_below
        if not 0 <= index < self.size:
            raise InvalidValue(f"{self.name}: the value is outside the domain, must be {self._rule()}")
        return index

    def _rule(self) -> str:
        at_least = "" if self.open_below else f"at least {self.edges[0]}"
        below = "" if self.open_above else f"below {self.edges[-1]}"
        return " and ".join(part for part in (at_least, below) if part)
