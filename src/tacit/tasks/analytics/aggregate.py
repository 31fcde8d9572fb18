"""Aggregates from terms: linear ones exactly, ratios by the delta method, all with standard errors and intervals.

Every aggregate is a smooth function of sums of x^k z over the rows, whose influence is a polynomial w(x) of degree at
most two: its variance is the sum of w(x)^2 v. So five sums of x^k v serve count, sum, mean, variance and deviation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.normal import normal_isf
from tacit.tasks.analytics.picked import Picks
from tacit.tasks.analytics.weights import RowWeights, Weights, no_weights, weights_of

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


_CLEAR = 3.0
"""A deviation needs a measure whose public variance is more than so many standard errors of an estimated one."""


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
    asked: RowWeights
    """Rows of which a report is used."""
    centre: float
    inside: F64
    variance: F64
    squares: F64


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over rows, a column per group; those of disjoint rows add."""

    centre: float
    n: I64
    asked: Weights
    """Rows of which a report is used, and how they weigh."""
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
        n, table = np.zeros(count, np.int64), np.zeros((*self.table.shape[:2], count))
        n[places], table[:, :, places] = self.n, self.table
        return GroupSums(self.centre, n, self.asked.placed(places, count), table)

    def group(self, g: int) -> Sums:
        """The sums of one group."""
        return Sums(int(self.n[g]), self.asked.group(g), self.centre, *self.table[:, :, g])


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

    def nothing(self, asked: Weights) -> GroupSums:
        """The sums before any term is counted; which reports will be used is known."""
        shape, none = (3, 2 * self.degree + 1, self.groups), np.zeros(self.groups, np.int64)
        return GroupSums(self.centre, none, asked, np.zeros(shape))

    def asked(self, mask: Mask | None, n: int) -> Weights:
        """How the rows of a mask, of n, weigh where their reports are used."""
        measure = self.measure if self.degree else None
        return weights_of(measure, (mask, self.present), self.codes, self.groups, n)

    def sums(self, picks: Picks, mask: Mask | None) -> GroupSums:
        """Sums over rows with their terms; those outside of the mask, or without a measure, are left out."""
        picked = picks.of((mask, self.present), self.codes, self.groups)
        table = np.zeros((3, 2 * self.degree + 1, self.groups))
        for which, used in enumerate(self._used):
            for k in used:
                table[which, k] = picked.sums(which, self.measure, self.centre, k)
        return GroupSums(self.centre, picked.n, no_weights(self.groups), table)

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
    plain = float(sums.inside[2] / count - mean**2)
    # The square of AVG is too large by the variance of AVG, and a quotient is off where its parts err together: both
    # are the second-order term of the delta method.
    around = _quadratic(np.array([-mean, 1.0]), sums.variance)
    spread = plain + (2 * around - plain * float(sums.variance[0])) / count**2
    scale = count / (count - 1) if sample and count > 1 else 1.0
    return _Value(scale * spread, scale * np.array([mean**2 - spread, -2 * mean, 1.0]) / count)


_VALUES: dict[str, Callable[[Sums], _Value]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "var_pop": lambda sums: _var(sums, sample=False),
    "var_samp": lambda sums: _var(sums, sample=True),
}


def without(text: str, n: int, status: str) -> Cell:
    """A cell that has no estimate."""
    return Cell(text, None, None, None, None, n, status)


def cell_of(function: str, text: str, sums: Sums, *, level: float, least: int = 0) -> Cell:
    """One aggregate of one group; what depends on the reports of effectively fewer than `least` rows is not told."""
    if function.startswith("stddev"):
        variance = cell_of(function.replace("stddev", "var"), text, sums, level=level, least=least)
        return _root(variance, sums)
    n, exact = sums.n, not sums.asked.n
    if not exact and sums.asked.effective(function) < least:
        return without(text, n, BELOW)
    count = float(sums.inside[0])
    if function not in ("count", "sum"):
        if exact and count <= 0:
            return without(text, n, "no_data")
        if is_lost(count, float(sums.variance[0]), level):
            return without(text, n, "insufficient_data")
    value = _VALUES[function](sums)
    if not isfinite(value.estimate):
        return without(text, n, "no_data" if exact else "insufficient_data")
    if exact:
        estimate = max(0.0, value.estimate) if function.startswith("var") else value.estimate
        return Cell(text, estimate, 0.0, estimate, estimate, n, "exact", 0.0)
    found = _estimated(text, value, sums, level)
    if function != "avg":
        return found
    low, high = _ratio_interval(sums, normal_multiple(level))
    return replace(found, low=min(low, value.estimate), high=max(high, value.estimate))


def normal_multiple(level: float) -> float:
    """How many standard errors an interval reaches to either side."""
    return normal_isf((1 - level) / 2)


def is_lost(count: float, variance: float, level: float) -> bool:
    """Whether a count is too close to zero, for its error, to divide by."""
    return count <= max(_SURE, normal_multiple(level)) * sqrt(max(0.0, variance))


def fieller(
    count: float, total: float, variances: Sequence[tuple[float, float, float]], z: float
) -> tuple[float, float]:
    """Fieller's interval (1954) of total/count: every A for which total - A count is within z standard errors of zero.

    That difference has a known error at every A, so the interval holds however much the count errs. `variances` are
    those of the count, of both together and of the total; of several, the largest counts at every A.
    """
    ends: list[float] = []
    for v0, v1, v2 in variances:
        a, b, c = count**2 - z**2 * v0, count * total - z**2 * v1, total**2 - z**2 * v2
        root = sqrt(max(0.0, b * b - a * c))
        ends += [(b - root) / a, (b + root) / a]
    return min(ends), max(ends)


def _ratio_interval(sums: Sums, z: float) -> tuple[float, float]:
    """The interval of AVG, by the larger of the two variances that `_estimated` tells of."""
    rows, (count, total) = sums.asked, sums.inside[:2].tolist()
    shift, even = rows.mean - sums.centre, float(sums.variance[0]) / rows.n
    public = even * rows.n, even * rows.n * shift, even * (rows.second + rows.n * shift**2)
    v0, v1, v2 = sums.variance[:3].tolist()
    low, high = fieller(count, total, [(v0, v1, v2), public], z)
    return low + sums.centre, high + sums.centre


def _estimated(text: str, value: _Value, sums: Sums, level: float) -> Cell:
    """An estimate with its standard error, and an interval of the larger of two variances.

    The plug-in sum of w^2 v is exact in expectation. Where few rows have most of the squared weight it is nearly their
    own v, which errs with their z: it is small just where the estimate is off. Then the mean of v over all rows whose
    reports are used, times the sum of w^2, which is public, says how large such errors are.
    """
    users = _per_user(value.influence, sums)
    variance = _quadratic(value.influence, sums.variance)
    # Few rows can make the plug-in negative; then the respondents' own spread is used.
    variance = variance if variance > 0 else users
    even = float(sums.variance[0]) / sums.asked.n * sums.asked.squares(value.influence, sums.centre)
    half = normal_multiple(level) * sqrt(max(variance, even))
    low, high = value.estimate - half, value.estimate + half
    return Cell(text, value.estimate, sqrt(variance), low, high, sums.n, "estimate", sqrt(users))


def _root(variance: Cell, sums: Sums) -> Cell:
    """A deviation from its variance and that one's interval; not given where the variance might be zero.

    Whether it might is decided by the public spread of the measure as well: were it decided by the estimate alone,
    the deviations that are given would be those that noise made large.
    """
    if variance.estimate is None or variance.low is None or variance.high is None:
        return variance
    if variance.status == "exact":
        root = sqrt(variance.estimate)
        return replace(variance, estimate=root, low=root, high=root)
    error, users = variance.standard_error or 0.0, variance.per_user_standard_error or 0.0
    if variance.estimate <= _SURE * error or variance.low <= 0 or not _is_clear(sums):
        return without(variance.aggregate, variance.n, "insufficient_data")
    root = sqrt(variance.estimate)
    return replace(
        variance, estimate=root, standard_error=error / (2 * root), low=sqrt(variance.low), high=sqrt(variance.high),
        per_user_standard_error=users / (2 * root),
    )  # fmt: skip


def _is_clear(sums: Sums) -> bool:
    """Whether the variance of the measure over all rows that are asked would stand out from the noise."""
    rows, count = sums.asked, float(sums.inside[0])
    spread = rows.second / rows.n
    squares = rows.fourth - rows.n * spread**2
    return spread > _CLEAR * sqrt(max(0.0, float(sums.variance[0]) / rows.n * squares)) / count


def _per_user(influence: F64, sums: Sums) -> float:
    """n/(n - 1) times the sum of squared deviations of the respondents' terms."""
    total = float(influence @ sums.inside[: len(influence)])
    spread = _quadratic(influence, sums.squares) - total**2 / max(1, sums.n)
    return max(0.0, spread) * sums.n / max(1, sums.n - 1)
