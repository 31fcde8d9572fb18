"""Are two attributes related, and how? Tests and measures that know how noisy the tables are.

The usual chi-square test takes the table for a table of counts. On noisy tables it calls nearly every independent pair
dependent (86 to 96 % of them); it is here for comparison, under a name that says so. The Wald test divides what the
table shows by the variance that the mechanism states, so that its level is the one that was asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any

import numpy as np

from tacit.core.statistics.chi_square import chi_square_tail
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec, NoData
from tacit.post.frequencies.methods import hull
from tacit.post.views.answers import simplex
from tacit.post.views.table import given_rows
from tacit.tasks.marginals.marginals import Table
from tacit.tasks.marginals.sources import F64

LEAST_MARGIN = 0.005
"""Margins with a smaller share are too rare for the delta method, which linearises around them."""

LEAST_EXPECTED = 1.0
"""With fewer expected respondents in a cell, the chi-square approximation understates the tail (Cochran 1954)."""

_LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Verdict:
    """The outcome of a test; `reliable` is false where a margin, or a cell under independence, is nearly empty."""

    statistic: float
    degrees: int
    p_value: float
    reliable: bool
    method: str

    def rejects(self, level: float = 0.05) -> bool:
        """Return whether independence is rejected at this significance level."""
        return self.p_value < level


@dataclass(frozen=True)
class Measured:
    """A number with its standard error and interval."""

    value: float
    standard_error: float
    low: float
    high: float

    def to_row(self) -> dict[str, float | None]:
        """Return plain numbers for JSON; None for NaN and infinity."""
        pairs = vars(self).items()
        return {name: number if np.isfinite(number) else None for name, number in pairs}


def sampling_covariance(p: F64, respondents: float) -> F64:
    """Return the multinomial covariance of the respondents' shares p, as a sample of a population."""
    flat = p.ravel()
    return (np.diag(flat) - np.outer(flat, flat)) / max(1.0, respondents)


def error_covariance(table: Table, *, population: bool) -> F64:
    """Return the covariance of the raw cells, as a statement about the respondents or about those they were drawn from.

    Tests and measures speak about a population unless told otherwise, so that a test agrees with the interval beside
    it; tables, and shares within them, are about the respondents.
    """
    covariance = table.covariance()
    if not population:
        return covariance
    return covariance + sampling_covariance(simplex(table.cells), table.respondents)


def _check_pair(table: Table) -> None:
    """Raise for anything but a table of two attributes that were asked together."""
    if len(table.shape) != 2 or min(table.shape) < 2:
        raise InvalidSpec("association: needs a table of two attributes with at least two answers each")
    if table.status != "covered":
        raise NoData(f"association: these attributes were not asked together ({table.status}); plan for tables of two")


def wald_test(table: Table, *, population: bool = True) -> Verdict:
    """Test independence of two attributes by a Wald test: the delta method on the raw table.

    The (r - 1)(c - 1) interactions p_ij - p_i p_j vanish under independence. Their covariance is that of the cells,
    which the mechanism states, plus that of sampling the respondents from a population unless told otherwise, taken at
    independence: with the observed cells in its place, empty ones would seem to have no error at all. Of two binary
    attributes and Hadamard coefficients it is Z = T_12 - T_1 T_2 over its variance.
    """
    _check_pair(table)
    cells, covariance = table.cells, table.covariance()
    rows, columns = cells.sum(axis=1), cells.sum(axis=0)
    if population:
        covariance = covariance + sampling_covariance(_independent(cells), table.respondents)
    interaction = (cells - np.outer(rows, columns))[1:, 1:].ravel()
    gradient = _interaction_gradient(rows, columns)
    spread = gradient @ covariance @ gradient.T
    # The pseudo-inverse drops directions without variance, e.g. of interactions that the mechanism does not report.
    statistic = float(interaction @ np.linalg.pinv(spread, rcond=1e-10, hermitian=True) @ interaction)
    degrees = len(interaction)
    # The linearisation needs margins away from zero, and the chi-square law at least one expected respondent a cell.
    rarest = float(rows.min()) * float(columns.min()) * table.respondents
    reliable = bool(min(rows.min(), columns.min()) > LEAST_MARGIN and (rarest >= LEAST_EXPECTED or not population))
    return Verdict(statistic, degrees, chi_square_tail(statistic, degrees), reliable, "wald")


def _independent(cells: F64) -> F64:
    """Return the product of the table's margins: the table under the null hypothesis."""
    p: F64 = simplex(cells)
    rows: F64 = p.sum(axis=1, keepdims=True)
    columns: F64 = p.sum(axis=0, keepdims=True)
    return rows * columns


def _interaction_gradient(rows: F64, columns: F64) -> F64:
    """Return the Jacobian of p_ij - p_i p_j (all but the first row and column) with respect to every cell."""
    r, c = len(rows), len(columns)
    out: list[F64] = []
    for i in range(1, r):
        for j in range(1, c):
            # d(p_ij - p_i. p_.j) = 1 at the cell itself, -p_.j along its row, -p_i. along its column.
            part = np.zeros((r, c))
            part[i, j] += 1
            part[i, :] -= columns[j]
            part[:, j] -= rows[i]
            out.append(part.ravel())
    return np.array(out)


def naive_chi_square(table: Table) -> Verdict:
    """Test as if the projected table were counts (chi-square). Wrong on noisy tables; for comparison only."""
    p = table.projected
    if p.ndim != 2:
        raise InvalidSpec("association: needs a table of two attributes")
    expected = np.outer(p.sum(axis=1), p.sum(axis=0))
    # Cells that cannot occur under independence hold nothing either, so 0/0 is left out.
    seen = expected > 0
    statistic = float(table.respondents * np.sum((p - expected)[seen] ** 2 / expected[seen]))
    degrees = (p.shape[0] - 1) * (p.shape[1] - 1)
    return Verdict(
        statistic, degrees, chi_square_tail(statistic, degrees), False, "naive chi-square, ignores the noise"
    )


def information_rows(tables: F64) -> F64:
    """Return the mutual information of every table of a stack, in nats; 0 ln 0 = 0.

    >>> information_rows(np.array([[[.25, .25], [.25, .25]], [[.5, 0.], [0., .5]]])).round(6).tolist()
    [0.0, 0.693147]
    """
    expected = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
    ratio = np.where(tables > 0, tables / np.where(expected > 0, expected, 1.0), 1.0)
    return np.sum(tables * np.log(ratio), axis=(1, 2))


def entropy_gain(p: F64) -> float:
    """Return the mutual information of one table of two attributes, in nats."""
    return float(information_rows(p[None])[0])


@dataclass(frozen=True)
class Information:
    """Mutual information in nats: plugged in, and less what the noise alone would show."""

    plugged_in: float
    bias: float

    @property
    def corrected(self) -> float:
        """The information less the bias, not below zero."""
        return max(0.0, self.plugged_in - self.bias)


def mutual_information(table: Table) -> Information:
    """Return the mutual information of the projected table, and the bias that the variance of the raw one explains.

    To second order, noise adds half the trace of (Hessian times covariance). The Hessian is that at independence, which
    is right where it matters: far from independence the bias is small next to the information. Cells with shares below
    their standard error are cut off at zero, so that noise adds no more there than that error: it stands for the share.
    """
    _check_pair(table)
    cells, covariance = table.cells, table.covariance()
    least = np.sqrt(np.maximum(np.diag(covariance), _LEAST_SHARE**2)).reshape(cells.shape)
    p = np.maximum(np.outer(simplex(cells).sum(axis=1), simplex(cells).sum(axis=0)), least)
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    # d2 I / dp_ij dp_kl = [ij = kl]/p_ij - [i = k]/p_i. - [j = l]/p_.j + 1, at cells in row-major order.
    hessian = np.diag(1 / p.ravel())
    r, c = p.shape
    hessian -= np.kron(np.diag(1 / rows), np.ones((c, c))) + np.kron(np.ones((r, r)), np.diag(1 / columns))
    hessian += 1.0
    bias = max(0.0, float(np.sum(hessian * covariance)) / 2)
    return Information(entropy_gain(table.projected), bias)


def delta_method(
    table: Table, measure: Callable[[F64], float], *, level: float = 0.95, population: bool = True
) -> Measured:
    """Return a smooth measure of a table with its standard error by the delta method; derivatives are numerical.

    NaN with an infinite interval where the measure is not defined at the raw table.
    """
    cells, covariance = table.cells, error_covariance(table, population=population)
    # Central differences: the error is of order step^2, and rounding adds about 1e-16/step, both far below the noise.
    step = 1e-6
    gradient = np.empty(cells.size)
    for i in range(cells.size):
        up, down = cells.copy(), cells.copy()
        up.flat[i] += step
        down.flat[i] -= step
        gradient[i] = (measure(up) - measure(down)) / (2 * step)
    value, variance = measure(cells), float(gradient @ covariance @ gradient)
    if not np.isfinite(value) or not np.isfinite(variance):
        return Measured(float("nan"), float("inf"), float("-inf"), float("inf"))
    error = sqrt(max(0.0, variance))
    half = normal_isf((1 - level) / 2) * error
    return Measured(value, error, value - half, value + half)


def odds_ratio(table: Table, *, level: float = 0.95, population: bool = True) -> Measured:
    """Return the odds ratio of two binary attributes; NaN where a raw cell is not positive.

    The interval is that of its logarithm, which is nearer to normal, and so it is never negative.
    """
    if table.shape != (2, 2):
        raise InvalidSpec("odds ratio: needs a table of two binary attributes")

    def log_odds(p: F64) -> float:
        return float(np.log(p[0, 0] * p[1, 1] / (p[0, 1] * p[1, 0]))) if p.min() > 0 else float("nan")

    log_ratio = delta_method(table, log_odds, level=level, population=population)
    if not np.isfinite(log_ratio.value):
        return Measured(float("nan"), float("inf"), 0.0, float("inf"))
    # exp overflows beyond 709; the standard error follows by the delta method, exp' = exp.
    ends = [float(np.exp(np.clip(x, -700, 700))) for x in (log_ratio.value, log_ratio.low, log_ratio.high)]
    return Measured(ends[0], log_ratio.standard_error * ends[0], ends[1], ends[2])


def correlation(
    table: Table, *, level: float = 0.95, values: tuple[Any, Any] | None = None, population: bool = True
) -> Measured:
    """Return Pearson's correlation of two attributes; their answers count 0, 1, 2, ... unless values are given."""
    x, y = (np.asarray(v, np.float64) for v in (values or tuple(np.arange(size) for size in table.shape)))

    def pearson(p: F64) -> float:
        a, b = p.sum(axis=1), p.sum(axis=0)
        mx, my = a @ x, b @ y
        vx, vy = a @ x**2 - mx**2, b @ y**2 - my**2
        return float((x @ p @ y - mx * my) / np.sqrt(vx * vy)) if vx > 0 and vy > 0 else float("nan")

    measured = delta_method(table, pearson, level=level, population=population)
    if not np.isfinite(measured.value):
        return measured
    # No correlation lies outside of [-1, 1], so that an interval cut to it covers as often.
    low, high = (min(1.0, max(-1.0, end)) for end in (measured.low, measured.high))
    return replace(measured, low=low, high=high)


@dataclass(frozen=True, eq=False)
class Conditional:
    """Shares of the last attribute's answers given the others', with standard errors."""

    value: F64
    standard_error: F64


def conditional(table: Table, axis: int = -1) -> Conditional:
    """Return the distribution of one attribute, the last axis of the result, given the others, among the respondents.

    Where nobody is left, it is its overall distribution, with an infinite error. The shares are those of the
    consistent table and biased; `conditional_interval` allows for that.
    """
    p = np.moveaxis(table.consistent, axis, -1)
    covariance = table.covariance()
    # One row per combination of the other attributes; its entries are the row's cells in the flat covariance matrix.
    places = np.moveaxis(np.arange(p.size).reshape(table.shape), axis, -1).reshape(-1, p.shape[-1])
    value, errors = given_rows(p.reshape(places.shape)), np.full(places.shape, np.inf)
    pairs = zip(places, value, p.sum(axis=-1).ravel(), errors, strict=True)
    for places_of_row, shares, total, error in pairs:
        if total > LEAST_MARGIN:
            # p/(p + rest): the derivatives with respect to its own cell and to the others of the row.
            gradient = (np.eye(len(shares)) - shares[:, None]) / total
            inner = covariance[np.ix_(places_of_row, places_of_row)]
            error[:] = np.sqrt(np.maximum(0.0, np.einsum("ij,jk,ik->i", gradient, inner, gradient)))
    return Conditional(value.reshape(p.shape), errors.reshape(p.shape))


def conditional_interval(table: Table, axis: int = -1, *, level: float = 0.95) -> tuple[F64, F64]:
    """Return intervals of conditional shares: the hull of those around ratios of raw cells and of consistent ones.

    Consistent shares are biased, so their own interval alone would undercover. Errors are those of a table into which a
    few respondents were mixed evenly, because few reports may happen to show no error at all.
    """
    z, cells = normal_isf((1 - level) / 2), prod(table.shape)
    # As Agresti and Coull do for one proportion: z^2 even pseudo-respondents among the real ones.
    mixed = z**2 / (table.respondents + z**2)
    covariance = table.covariance_at((1 - mixed) * simplex(table.cells) + mixed / cells)
    places = np.moveaxis(np.arange(cells).reshape(table.shape), axis, -1)
    low, high = np.zeros(places.shape), np.ones(places.shape)
    for at in np.ndindex(*places.shape[:-1]):
        row = places[at]
        low[at], high[at] = _ratios(table.cells.ravel()[row], covariance[np.ix_(row, row)], z, table.step / 2)
    plugged_in = conditional(table, axis)
    half = z * plugged_in.standard_error
    return hull((low, high), (plugged_in.value - half, plugged_in.value + half))


def _ratios(cells: F64, covariance: F64, z: float, half: float) -> tuple[F64, F64]:
    """Return intervals of every cell over their sum: shares t with |cell - t sum| <= z errors (Fieller, JRSS B 1954).

    Where the sum may be zero the data exclude no share, and the interval is [0, 1]. Half a report, divided by the
    sum, is allowed on top.
    """
    total, among, own = float(cells.sum()), covariance.sum(axis=1), np.diag(covariance)
    # (cell - t total)^2 <= z^2 (own - 2 t among + t^2 sum(among)) is the quadratic square t^2 - 2 middle t + rest <= 0.
    square = total**2 - z**2 * float(among.sum())
    if square <= 0 or total <= 0:
        return np.zeros(len(cells)), np.ones(len(cells))
    middle, rest = cells * total - z**2 * among, cells**2 - z**2 * own
    root = np.sqrt(np.maximum(middle**2 - square * rest, 0))
    return (middle - root) / square - half / total, (middle + root) / square + half / total
