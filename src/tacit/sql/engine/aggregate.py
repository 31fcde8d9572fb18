"""Aggregates of public measures over private regions: estimates, standard errors and confidence intervals.

Every aggregate is a smooth function of the sums of x^k z over rows. By the delta method its error is the sum of
w(x) (z - E z), where the influence w is a polynomial of degree at most two in the measure x, so that its variance is
the sum of w(x)^2 v. Five sums of x^k v (k = 0..4) therefore serve COUNT, SUM, AVG, VARIANCE and STDDEV:

    function     estimate                       influence w(x), in powers of x
    COUNT        S0                             1
    SUM          S1                             x
    AVG          A = S1/S0                      (x - A)/S0
    VAR          V = S2/S0 - A^2                ((x - A)^2 - V)/S0
    STDDEV       sqrt(V)                        that of V over 2 sqrt(V)
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import numpy as np

from tacit.arrays import F64, I64, Mask
from tacit.core.statistics.normal import normal_isf
from tacit.sql.engine.picked import Picks
from tacit.sql.engine.weights import RowWeights, Weights, no_weights, weights_of

_DEGREES = {"count": 0, "sum": 1, "avg": 1}
_DEGREE = 2
"""The degree of the influence polynomial: by function, and 2 for all others (variances and deviations)."""

BELOW = "below_minimum_cohort"
"""The status of a cell that depends on the reports of too few rows."""

_SURE = 2.0
"""A ratio is given only if its denominator is more than so many standard errors away from zero.

Nearer to zero the delta method is meaningless, and Fieller's interval is unbounded.
"""


_CLEAR = 3.0
"""A STDDEV is given only if the public variance of the measure exceeds so many standard errors of an estimated one."""


def is_centred(function: str) -> bool:
    """Whether an aggregate is invariant under shifts, so that its measure is centred for numerical stability."""
    return function not in ("count", "sum")


@dataclass(frozen=True)
class BetterCount:
    """A count that is biased and expected to be nearer to the truth, with an interval that holds it."""

    estimate: float
    low: float
    high: float
    method: str
    """How it was made: a method of `post.frequencies.methods`, or "clipped"."""

    def to_row(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class AggregateCell:
    """One aggregate of one group. `status` says why where there is no estimate."""

    aggregate: str
    estimate: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    n: int
    """Number of rows that meet the public conditions; public, and therefore exact."""
    status: str = "estimate"
    """estimate, exact, insufficient_data (the count is lost in the noise), no_data, or below_minimum_cohort."""
    per_user_standard_error: float | None = None
    """A cross-check from the empirical spread of the respondents' terms, without v; slightly larger on average."""
    better: BetterCount | None = None
    """Beside a COUNT: what the other groups and the number of rows make of it; see `engine.better`."""

    def to_row(self) -> dict[str, Any]:
        """Plain values for JSON."""
        row = {name: getattr(self, name) for name in ("aggregate", "estimate", "standard_error", "low", "high")}
        row |= {"better": self.better.to_row()} if self.better else {}
        return row if self.status in ("estimate", "exact") else row | {"status": self.status}


ERROR_ENDS = ("_standard_error", "_low", "_high")
"""Suffixes of the columns that follow an aggregate's own where errors are asked for, in the order of `flat_row`."""


def flat_row(row: Sequence[Any], *, errors: bool) -> tuple[Any, ...]:
    """A row of an answer as plain values; with `errors`, each estimate is followed by its error and interval."""
    found: list[Any] = []
    for item in row:
        if not isinstance(item, AggregateCell):
            found.append(item)
            continue
        found += [item.estimate, item.standard_error, item.low, item.high] if errors else [item.estimate]
    return tuple(found)


@dataclass(frozen=True, eq=False)
class PowerSums:
    """Sums over the rows of one group, each an array over powers k of (x - centre)^k: times z, v and z^2."""

    n: int
    asked: RowWeights
    """The rows whose reports are used; none for exact cells."""
    centre: float
    inside: F64
    variance: F64
    squares: F64


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over rows for all groups at once; sums of disjoint sets of rows are added with +."""

    centre: float
    n: I64
    asked: Weights
    """The rows whose reports are used, and their weights."""
    table: F64
    """Axes: (z, v, z^2) x (power k of the centred measure) x (group)."""

    def __add__(self, other: "GroupSums") -> "GroupSums":
        """The sums over both sets of rows."""
        # A piece without rows has no centre of its own (0), so that of the other one counts.
        centre = self.centre if self.n.any() else other.centre
        return GroupSums(centre, self.n + other.n, self.asked + other.asked, self.table + other.table)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.n)

    def placed(self, places: I64, count: int) -> "GroupSums":
        """Renumber groups: group i becomes group `places[i]` of `count`; the others are empty."""
        if count == len(places) and bool(np.all(places == np.arange(count))):
            return self
        n, table = np.zeros(count, np.int64), np.zeros((*self.table.shape[:2], count))
        n[places], table[:, :, places] = self.n, self.table
        return GroupSums(self.centre, n, self.asked.placed(places, count), table)

    def group(self, g: int) -> PowerSums:
        """The sums of one group."""
        return PowerSums(int(self.n[g]), self.asked.group(g), self.centre, *self.table[:, :, g])


@dataclass(frozen=True, eq=False)
class PublicMeasure:
    """The public side of one aggregate: measure (None: COUNT), rows where it is not NULL, and the groups of rows."""

    function: str
    measure: F64 | None
    present: Mask | None
    codes: I64 | None
    groups: int
    centre: float = 0.0
    """Subtracted from the measure before powers are taken, so that large numbers of small spread do not cancel."""

    @property
    def degree(self) -> int:
        """The degree of the influence polynomial."""
        return _DEGREES.get(self.function, _DEGREE)

    def nothing(self, asked: Weights) -> GroupSums:
        """Zero sums to start from; which reports will be used, and their weights, are public and known in advance."""
        shape, none = (3, 2 * self.degree + 1, self.groups), np.zeros(self.groups, np.int64)
        return GroupSums(self.centre, none, asked, np.zeros(shape))

    def asked(self, mask: Mask | None, n: int) -> Weights:
        """The weights of the rows of a mask (n rows in all), for the minimum cohort."""
        measure = self.measure if self.degree else None
        return weights_of(measure, (mask, self.present), self.codes, self.groups, n)

    def sums(self, picks: Picks, mask: Mask | None) -> GroupSums:
        """The sums over a block of terms, without rows outside of the mask or with a NULL measure."""
        picked = picks.of((mask, self.present), self.codes, self.groups)
        table = np.zeros((3, 2 * self.degree + 1, self.groups))
        for which, used in enumerate(self._used):
            for k in used:
                table[which, k] = picked.sums(which, self.measure, self.centre, k)
        return GroupSums(self.centre, picked.n, no_weights(self.groups), table)

    @cached_property
    def _used(self) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """Which powers of the measure are needed with z, v and z^2; the others stay zero in the table.

        The influence of SUM is x, so that only x^2 is needed with v and z^2; and v alone for the mean variance.
        """
        every = frozenset(range(2 * self.degree + 1))
        errors = frozenset({2}) if self.function == "sum" else every
        return frozenset(range(self.degree + 1)), errors | {0}, errors


def _quadratic(polynomial: F64, sums: F64) -> float:
    """The sum over rows of w(x)^2 y, from the sums of x^k y; convolving the coefficients of w squares it."""
    square = np.convolve(polynomial, polynomial)
    return float(square @ sums[: len(square)])


@dataclass(frozen=True)
class _Value:
    """An estimate and its influence polynomial in the centred measure, lowest power first."""

    estimate: float
    influence: F64


def _count(sums: PowerSums) -> _Value:
    return _Value(float(sums.inside[0]), np.array([1.0]))


def _sum(sums: PowerSums) -> _Value:
    return _Value(float(sums.inside[1] + sums.centre * sums.inside[0]), np.array([sums.centre, 1.0]))


def _avg(sums: PowerSums) -> _Value:
    count, mean = float(sums.inside[0]), float(sums.inside[1] / sums.inside[0])
    return _Value(mean + sums.centre, np.array([-mean, 1.0]) / count)


def _var(sums: PowerSums, *, sample: bool) -> _Value:
    count, mean = float(sums.inside[0]), float(sums.inside[1] / sums.inside[0])
    plain = float(sums.inside[2] / count - mean**2)
    # Second-order bias correction of the delta method: the squared estimate of the mean is too large by its variance,
    # and a ratio is biased by the covariance of numerator and denominator.
    around = _quadratic(np.array([-mean, 1.0]), sums.variance)
    spread = plain + (2 * around - plain * float(sums.variance[0])) / count**2
    scale = count / (count - 1) if sample and count > 1 else 1.0
    return _Value(scale * spread, scale * np.array([mean**2 - spread, -2 * mean, 1.0]) / count)


_VALUES: dict[str, Callable[[PowerSums], _Value]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "var_pop": lambda sums: _var(sums, sample=False),
    "var_samp": lambda sums: _var(sums, sample=True),
}


def without(text: str, n: int, status: str) -> AggregateCell:
    """A cell without an estimate, for the reason that the status names."""
    return AggregateCell(text, None, None, None, None, n, status)


def cell_of(function: str, text: str, sums: PowerSums, *, level: float, least: int = 0) -> AggregateCell:
    """The cell of one aggregate of one group, with its interval at `level`.

    It is withheld if its effective number of reports is below `least` (the minimum cohort), and has no estimate where
    the denominator of a ratio drowns in noise. Cells that use no report are exact.
    """
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
        return AggregateCell(text, estimate, 0.0, estimate, estimate, n, "exact", 0.0)
    found = _estimated(text, value, sums, level)
    if function != "avg":
        return found
    low, high = _ratio_interval(sums, normal_multiple(level))
    return replace(found, low=min(low, value.estimate), high=max(high, value.estimate))


def normal_multiple(level: float) -> float:
    """The normal quantile: how many standard errors a two-sided interval at this level reaches to either side."""
    return normal_isf((1 - level) / 2)


def is_lost(count: float, variance: float, level: float) -> bool:
    """Whether a count is within the noise around zero, so that nothing may be divided by it."""
    return count <= max(_SURE, normal_multiple(level)) * sqrt(max(0.0, variance))


def fieller(
    count: float, total: float, variances: Sequence[tuple[float, float, float]], z: float
) -> tuple[float, float]:
    """Fieller's interval (1954) of a ratio: all A for which total - A count is within z standard errors of zero.

    Unlike the delta method it holds however noisy the count is. `variances` are triples (variance of the count,
    covariance, variance of the total); of several, the widest interval counts.
    """
    ends: list[float] = []
    for v0, v1, v2 in variances:
        # (total - A count)^2 <= z^2 (v2 - 2 A v1 + A^2 v0) is a quadratic inequality, a A^2 - 2 b A + c <= 0. Callers
        # made sure with `is_lost` that a > 0, so that its solutions are an interval.
        a, b, c = count**2 - z**2 * v0, count * total - z**2 * v1, total**2 - z**2 * v2
        root = sqrt(max(0.0, b * b - a * c))
        ends += [(b - root) / a, (b + root) / a]
    return min(ends), max(ends)


def _ratio_interval(sums: PowerSums, z: float) -> tuple[float, float]:
    """The interval of AVG, from the wider of the two variances that `_estimated` describes."""
    rows, (count, total) = sums.asked, sums.inside[:2].tolist()
    shift, even = rows.mean - sums.centre, float(sums.variance[0]) / rows.n
    public = even * rows.n, even * rows.n * shift, even * (rows.second + rows.n * shift**2)
    v0, v1, v2 = sums.variance[:3].tolist()
    low, high = fieller(count, total, [(v0, v1, v2), public], z)
    return low + sums.centre, high + sums.centre


def _estimated(text: str, value: _Value, sums: PowerSums, level: float) -> AggregateCell:
    """The cell of an estimate: standard error, and an interval from the larger of two variances.

    The plug-in variance, the sum of w^2 v, is unbiased. But if few rows carry most of the squared weight, it is nearly
    their own v, which is correlated with their z: it is small just where the estimate is off. The second variance
    replaces v by its mean over all rows whose reports are used, times the sum of w^2, which is public and exact.
    """
    users = _per_user(value.influence, sums)
    variance = _quadratic(value.influence, sums.variance)
    # Single v may be negative, and so may their sum over few rows; the empirical spread is not.
    variance = variance if variance > 0 else users
    even = float(sums.variance[0]) / sums.asked.n * sums.asked.squares(value.influence, sums.centre)
    half = normal_multiple(level) * sqrt(max(variance, even))
    low, high = value.estimate - half, value.estimate + half
    return AggregateCell(text, value.estimate, sqrt(variance), low, high, sums.n, "estimate", sqrt(users))


def _root(variance: AggregateCell, sums: PowerSums) -> AggregateCell:
    """A STDDEV from the cell of the variance; withheld where the variance may be zero.

    That is decided by the public spread of the measure too. If the noisy estimate alone decided, the published
    deviations would be those that noise had made large (selection bias).
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


def _is_clear(sums: PowerSums) -> bool:
    """Whether the public variance of the measure, over all rows asked, is well above the error of an estimate of it."""
    rows, count = sums.asked, float(sums.inside[0])
    spread = rows.second / rows.n
    squares = rows.fourth - rows.n * spread**2
    return spread > _CLEAR * sqrt(max(0.0, float(sums.variance[0]) / rows.n * squares)) / count


def _per_user(influence: F64, sums: PowerSums) -> float:
    """The empirical variance of the sum of w z: n/(n - 1) times the squared deviations of the respondents' terms."""
    total = float(influence @ sums.inside[: len(influence)])
    spread = _quadratic(influence, sums.squares) - total**2 / max(1, sums.n)
    return max(0.0, spread) * sums.n / max(1, sums.n - 1)
