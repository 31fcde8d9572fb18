"""Aggregates from terms: linear ones exactly, ratios by the delta method, all with standard errors and intervals.

Every aggregate is a smooth function of sums of x^k z over the rows, whose influence is a polynomial w(x) of degree at
most two: its variance is the sum of w(x)^2 v. So five sums of x^k v serve count, sum, mean, variance and deviation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.normal import normal_isf
from tacit.tasks.analytics.picked import Picks

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DEGREES = {"count": 0, "sum": 1, "avg": 1}
_DEGREE = 2
"""The degree of an aggregate's influence in the measure."""

BELOW = "below_minimum_cohort"
"""The status of a cell that depends on the reports of too few rows."""

_SURE = 2.0
"""A ratio needs a count of more than so many standard errors."""


def is_centred(function: str) -> bool:
    """Whether differences between measures matter, so that large measures of small spread would cancel."""
    return function not in ("count", "sum")


@dataclass(frozen=True)
class Cell:
    """One aggregate of one group; without an estimate where the status says why."""

    aggregate: str
    estimate: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    n: int
    """Rows that meet the public conditions."""
    status: str = "estimate"
    """estimate, exact, insufficient_data (the count is lost in the noise), no_data, or below_minimum_cohort."""
    per_user_standard_error: float | None = None
    """From the spread of the respondents' terms, without their exact variances; slightly larger on average."""

    def to_row(self) -> dict[str, Any]:
        """Plain values for JSON."""
        row = {name: getattr(self, name) for name in ("aggregate", "estimate", "standard_error", "low", "high")}
        return row if self.status in ("estimate", "exact") else row | {"status": self.status}


ERROR_ENDS = ("_standard_error", "_low", "_high")
"""What the columns of an aggregate's error are called after its own, in the order of `flat_row`."""


def flat_row(row: Sequence[Any], *, errors: bool) -> tuple[Any, ...]:
    """A row of an answer as plain values: estimates, each followed by its error and interval if asked for."""
    found: list[Any] = []
    for item in row:
        if not isinstance(item, Cell):
            found.append(item)
            continue
        found += [item.estimate, item.standard_error, item.low, item.high] if errors else [item.estimate]
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows of one group, by powers of the measure less `centre`."""

    n: int
    asked: int
    centre: float
    inside: F64
    variance: F64
    squares: F64


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over rows, a column per group; those of disjoint rows add."""

    centre: float
    n: I64
    asked: I64
    """Rows of which a report is used."""
    table: F64
    """Powers of the measure times z, times v and times z^2, along the first two axes."""

    def __add__(self, other: "GroupSums") -> "GroupSums":
        """The sums over both sets of rows."""
        # Where there were no rows, there was no centre yet.
        centre = self.centre if self.n.any() else other.centre
        return GroupSums(centre, self.n + other.n, self.asked + other.asked, self.table + other.table)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.n)

    def placed(self, places: I64, count: int) -> "GroupSums":
        """The same among more groups: group i becomes `places[i]` of `count`, all different."""
        if count == len(places) and bool(np.all(places == np.arange(count))):
            return self
        (n, asked), table = np.zeros((2, count), np.int64), np.zeros((*self.table.shape[:2], count))
        n[places], asked[places], table[:, :, places] = self.n, self.asked, self.table
        return GroupSums(self.centre, n, asked, table)

    def group(self, g: int) -> Sums:
        """The sums of one group."""
        return Sums(int(self.n[g]), int(self.asked[g]), self.centre, *self.table[:, :, g])


@dataclass(frozen=True, eq=False)
class Measured:
    """What one aggregate needs of the public columns: measure, rows that have one, and groups."""

    function: str
    measure: F64 | None
    present: Mask | None
    codes: I64 | None
    groups: int
    centre: float = 0.0
    """Where powers are taken from, so that large measures of small spread do not cancel."""

    @property
    def degree(self) -> int:
        """The degree of the influence in the measure."""
        return _DEGREES.get(self.function, _DEGREE)

    @property
    def nothing(self) -> GroupSums:
        """The sums over no rows."""
        shape, none = (3, 2 * self.degree + 1, self.groups), np.zeros(self.groups, np.int64)
        return GroupSums(self.centre, none, none, np.zeros(shape))

    def sums(self, picks: Picks, mask: Mask | None, *, known: bool) -> GroupSums:
        """Sums over rows with their terms; those outside of the mask, or without a measure, are left out.

        `known` says that nothing is estimated: the terms do not come from reports.
        """
        picked = picks.of((mask, self.present), self.codes, self.groups)
        table = np.zeros((3, 2 * self.degree + 1, self.groups))
        for which, used in enumerate(self._used):
            for k in used:
                table[which, k] = picked.sums(which, self.measure, self.centre, k)
        return GroupSums(self.centre, picked.n, np.zeros_like(picked.n) if known else picked.n, table)

    @cached_property
    def _used(self) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """Powers that are needed of z, v and z^2; the influence of a sum is the measure itself, which is squared."""
        every = frozenset(range(2 * self.degree + 1))
        errors = frozenset({2}) if self.function == "sum" else every
        return frozenset(range(self.degree + 1)), errors | {0}, errors


def _quadratic(polynomial: F64, sums: F64) -> float:
    """The sum of w(x)^2 times something, from the sums of its powers."""
    square = np.convolve(polynomial, polynomial)
    return float(square @ sums[: len(square)])


@dataclass(frozen=True)
class _Value:
    estimate: float
    influence: F64


def _count(sums: Sums) -> _Value:
    return _Value(float(sums.inside[0]), np.array([1.0]))


def _sum(sums: Sums) -> _Value:
    return _Value(float(sums.inside[1] + sums.centre * sums.inside[0]), np.array([sums.centre, 1.0]))


def _avg(sums: Sums) -> _Value:
    count, mean = float(sums.inside[0]), float(sums.inside[1] / sums.inside[0])
    return _Value(mean + sums.centre, np.array([-mean, 1.0]) / count)


def _var(sums: Sums, *, sample: bool) -> _Value:
    count, mean = float(sums.inside[0]), float(sums.inside[1] / sums.inside[0])
    spread = float(sums.inside[2] / count - mean**2)
    scale = count / (count - 1) if sample and count > 1 else 1.0
    return _Value(scale * spread, scale * np.array([mean**2 - spread, -2 * mean, 1.0]) / count)


def _stddev(sums: Sums, *, sample: bool) -> _Value | None:
    variance = _var(sums, sample=sample)
    if variance.estimate <= 0:
        return None
    root = sqrt(variance.estimate)
    return _Value(root, variance.influence / (2 * root))


_VALUES: dict[str, Callable[[Sums], _Value | None]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "var_pop": lambda sums: _var(sums, sample=False),
    "var_samp": lambda sums: _var(sums, sample=True),
    "stddev_pop": lambda sums: _stddev(sums, sample=False),
    "stddev_samp": lambda sums: _stddev(sums, sample=True),
}


def _without(text: str, n: int, status: str) -> Cell:
    return Cell(text, None, None, None, None, n, status)


def cell_of(function: str, text: str, sums: Sums, *, level: float, least: int = 0) -> Cell:
    """One aggregate of one group; what depends on the reports of fewer than `least` rows is not told."""
    n, exact = sums.n, not sums.asked
    if not exact and sums.asked < least:
        return _without(text, n, BELOW)
    count = float(sums.inside[0])
    if function not in ("count", "sum"):
        if exact and count <= 0:
            return _without(text, n, "no_data")
        if count <= _SURE * sqrt(max(0.0, float(sums.variance[0]))):
            return _without(text, n, "insufficient_data")
    value = _VALUES[function](sums)
    if value is None or not isfinite(value.estimate):
        return _without(text, n, "no_data" if exact else "insufficient_data")
    if exact:
        estimate = max(0.0, value.estimate) if function.startswith("var") else value.estimate
        return Cell(text, estimate, 0.0, estimate, estimate, n, "exact", 0.0)
    users = _per_user(value.influence, sums)
    # The plug-in is exact in expectation; where few rows make it negative, the respondents' own spread is used.
    variance = _quadratic(value.influence, sums.variance)
    error = sqrt(variance if variance > 0 else users)
    half = normal_isf((1 - level) / 2) * error
    low, high = value.estimate - half, value.estimate + half
    return Cell(text, value.estimate, error, low, high, n, "estimate", sqrt(users))


def _per_user(influence: F64, sums: Sums) -> float:
    """n/(n - 1) times the sum of squared deviations of the respondents' terms."""
    total = float(influence @ sums.inside[: len(influence)])
    spread = _quadratic(influence, sums.squares) - total**2 / max(1, sums.n)
    return max(0.0, spread) * sums.n / max(1, sums.n - 1)
