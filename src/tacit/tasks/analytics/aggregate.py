"""Aggregates from terms: linear ones exactly, ratios by the delta method, all with standard errors and intervals.

Every aggregate is a smooth function of sums of x^k z over the rows, whose influence is a polynomial w(x) of degree at
most two: its variance is the sum of w(x)^2 v. So five sums of x^k v serve count, sum, mean, variance and deviation.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.normal import normal_isf
from tacit.tasks.analytics.terms import Terms

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DEGREES = {"count": 0, "sum": 1, "avg": 1}
_DEGREE = 2
"""The degree of an aggregate's influence in the measure."""

_SURE = 2.0
"""A ratio needs a count of more than so many standard errors."""


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
    """estimate, exact, insufficient_data (the count is lost in the noise), or no_data."""
    per_user_standard_error: float | None = None
    """From the spread of the respondents' terms, without their exact variances; slightly larger on average."""

    def to_row(self) -> dict[str, Any]:
        """Plain values for JSON."""
        row = {name: getattr(self, name) for name in ("aggregate", "estimate", "standard_error", "low", "high")}
        return row if self.status in ("estimate", "exact") else row | {"status": self.status}


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows of one group, by powers of the measure less `centre`."""

    n: int
    centre: float
    inside: F64
    variance: F64
    squares: F64


def power_sums(
    terms: Terms, measure: F64 | None, counted: Mask | None, codes: I64 | None, groups: int, function: str
) -> list[Sums]:
    """The sums of every group; rows that are not counted are left out."""
    inside, variance = terms.inside, terms.variance
    if counted is not None and not counted.all():
        measure = None if measure is None else measure[counted]
        inside, variance = inside[counted], variance[counted]
        codes = None if codes is None else codes[counted]
    count, degree = len(inside), _DEGREES.get(function, _DEGREE)
    centre = float(measure.mean()) if measure is not None and count and degree == _DEGREE else 0.0
    powers = _powers(measure - centre if measure is not None and centre else measure, 2 * degree)
    # A sum has the measure itself as its influence: only squares of it occur.
    squares, used = inside**2, range(2 * degree, -1, -1 if function != "sum" else -2 * degree)

    def sums(values: F64, wanted: Iterable[int]) -> list[F64]:
        chosen = set(wanted)
        return [
            _by_group(values, power, codes, groups) if k in chosen else np.zeros(groups)
            for k, power in enumerate(powers)
        ]

    first = np.array(sums(inside, range(degree + 1)))
    second, third = np.array(sums(variance, {0, *used})), np.array(sums(squares, used))
    sizes = [count] if codes is None else np.bincount(codes, minlength=groups).tolist()
    return [Sums(sizes[g], centre, first[:, g], second[:, g], third[:, g]) for g in range(groups)]


def _powers(measure: F64 | None, most: int) -> list[F64 | None]:
    """The measure to the powers 0 (None) to `most`."""
    found: list[F64 | None] = [None]
    for k in range(1, most + 1):
        last = found[-1]
        found.append(measure if k == 1 or last is None or measure is None else last * measure)
    return found


def _by_group(values: F64, power: F64 | None, codes: I64 | None, groups: int) -> F64:
    if codes is not None:
        return np.bincount(codes, values if power is None else values * power, groups)
    return np.array([values.sum() if power is None else values @ power])


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


def cell_of(function: str, text: str, sums: Sums, *, exact: bool, level: float) -> Cell:
    """One aggregate of one group."""
    n = sums.n
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
