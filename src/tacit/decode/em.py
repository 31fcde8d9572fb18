"""Maximum likelihood by expectation-maximisation, from nothing but a mechanism's `log_prob`.

It serves any mechanism whose reports are known: one code per report in the tally, a joint table, a log, or the
reports themselves. Equal reports are grouped, so the work is (distinct reports) x (values) per step. The result
is biased, because frequencies cannot be negative; it is a `LikelihoodFit`, not an `Estimate`, and belongs
into no linear step.

Reference: Dempster, Laird and Rubin (1977); for joint reports Fanti, Pihur and Erlingsson, "Building a RAPPOR with
the unknown" (PoPETs 2016). The bound by which convergence is judged is that of mixture likelihoods, Lindsay (1983).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, cast

import numpy as np

from tacit.arrays import F64, I64, Mask
from tacit.core.compose import AllOf, OneOf, PerMember
from tacit.core.mechanism import CodeCounting, Mechanism, Reports
from tacit.core.members import as_bytes
from tacit.core.patience import check
from tacit.core.tally import Counts, Log
from tacit.errors import InvalidSpec, NoData

MAX_CELLS = 1 << 25
"""The largest table of (distinct report, value) probabilities that is kept: 256 MB."""

# A frequency worth less than this many respondents counts as zero, on the boundary of the simplex.
_ABSENT_RESPONDENTS = 0.01
# Information matrices with a larger condition number count as singular.
_SINGULAR = 1e12


@dataclass(frozen=True, eq=False)
class LikelihoodFit:
    """The most likely frequencies. Biased: they are never negative and always sum to one.

    `standard_error` is the error against the respondents, from the observed information. It is a large-sample
    statement and holds inside the simplex: values on the `boundary` (less than a hundredth of a respondent) have an
    infinite one, and the others' is given that those values are absent, hence too small if they are not. Where the
    reports do not tell the values apart (`identified` is false), and after smoothing, all are infinite.
    """

    values: Sequence[Any]
    frequency: F64
    standard_error: F64
    boundary: Mask
    identified: bool
    log_likelihood: float
    gap: float
    """The log-likelihood is within this of its maximum."""
    iterations: int
    converged: bool
    n: int
    smoothed: bool = False

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per value, ready for JSON; an infinite error becomes None."""
        columns = zip(self.values, self.frequency.tolist(), self.standard_error.tolist(), self.boundary, strict=True)
        return [
            {"value": value, "frequency": share, "standard_error": error if np.isfinite(error) else None,
             "boundary": bool(edge)}
            for value, share, error, edge in columns
        ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Observed:
    """Distinct reports and how often each was sent."""

    reports: Reports
    counts: I64


def group_reports(reports: Reports) -> Observed:
    """Return the distinct reports and how often each was sent, whatever their layout."""
    if not len(reports):
        return Observed(reports, np.zeros(0, np.int64))
    # Every report as one opaque value of its bytes, which np.unique can sort.
    rows = as_bytes(reports)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).reshape(-1)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return Observed(reports[first], counts.astype(np.int64))


def observed(mechanism: Mechanism, tally: Any) -> Observed:
    """Return the reports behind a tally, where they can be recovered; sums over bits or candidates do not allow it."""
    if getattr(tally, "is_weighted", False):
        raise InvalidSpec(f"{mechanism.kind}: weighted reports have no likelihood; tally them without weights")
    if isinstance(tally, Log):
        nothing = np.empty(0, mechanism.report_dtype)
        return group_reports(np.concatenate([nothing, *tally.chunks]))
    if isinstance(tally, PerMember) and isinstance(mechanism, OneOf):
        return _of_members(mechanism, tally)
    if isinstance(tally, Counts) and _keeps_reports(mechanism):
        reports = mechanism.all_reports()
        cells = tally.cells[int(mechanism.codes.start) :] if isinstance(mechanism, CodeCounting) else tally.cells
        seen = np.flatnonzero(cells)
        return Observed(reports[seen], cells[seen])
    raise InvalidSpec(f"{mechanism.kind}: this tally does not tell which reports were sent; keep the reports instead")


def _keeps_reports(mechanism: Mechanism) -> bool:
    """Whether every cell of the counts is the number of times one report was sent, in the order of `all_reports`."""
    if isinstance(mechanism, CodeCounting):
        return type(mechanism)._count is CodeCounting._count  # pyright: ignore[reportPrivateUsage]
    return isinstance(mechanism, AllOf) and mechanism.state == "joint"


def _of_members(mechanism: OneOf, tally: PerMember) -> Observed:
    """The reports of all members, each wrapped as the family sends it: member number, then padded payload."""
    parts = [observed(mechanism.member(i), tally.member(i)) for i in range(len(mechanism.family))]
    wrapped = [mechanism.wrapped(i, part.reports) for i, part in enumerate(parts)]
    return Observed(np.concatenate(wrapped), np.concatenate([part.counts for part in parts]))


def all_values(mechanism: Mechanism) -> Sequence[Any]:
    """Return every value a mechanism can be asked about: indices, or tuples of answers to several questions."""
    family = mechanism.drawn_from
    if family is not None and family.together:
        _check_few(mechanism.kind, family.answer_sizes())
        return list(family.values())
    parts = mechanism.per_question
    sizes = [getattr(part, "size", None) for part in parts] if family is None else list(family.answer_sizes())
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) < len(sizes):
        raise InvalidSpec(f"{mechanism.kind}: has no list of values; name the values to fit")
    if np.prod([float(size) for size in known]) > MAX_CELLS:
        raise InvalidSpec(f"{mechanism.kind}: has too many values; name the values to fit")
    if family is not None:
        return list(family.values())
    return range(known[0]) if parts == (mechanism,) else list(product(*map(range, known)))


def _check_few(kind: str, sizes: tuple[int, ...]) -> None:
    """Refuse combinations of answers to questions that are asked together where they are too many."""
    if prod(sizes) > MAX_CELLS:
        raise InvalidSpec(f"{kind}: has {prod(sizes)} combinations of answers, too many to fit; name some of them")


def maximum_likelihood(
    mechanism: Mechanism,
    data: Any,
    *,
    values: Sequence[Any] | None = None,
    smooth: bool = False,
    tolerance: float = 1e-3,
    max_iterations: int = 10_000,
) -> LikelihoodFit:
    """Return the frequencies under which the reports are most likely; `data` is a tally or an array of reports.

    It stops when the log-likelihood is proven to be within `tolerance` of its maximum: it never exceeds the present one
    by more than n times the largest directional derivative. `smooth` averages neighbouring values with (1, 2, 1)/4
    after every step (EMS), for ordered domains with smooth frequencies; it then stops when the log-likelihood
    changes by less than `tolerance`, and the result maximises nothing.
    """
    if not tolerance > 0 or max_iterations < 1:
        raise InvalidSpec(f"em: tolerance is {tolerance} and max_iterations {max_iterations}, must be positive")
    sent = _observed_reports(mechanism, data)
    n = int(sent.counts.sum())
    if n == 0:
        raise NoData(f"{mechanism.kind}: there are no reports to fit")
    chosen = all_values(mechanism) if values is None else values
    likelihood = _Likelihood(_table(mechanism, sent.reports, chosen), sent.counts / n, n)
    run = _smoothed if smooth else _accelerated
    theta, iterations, converged = run(likelihood, tolerance, max_iterations)
    errors, boundary, identified = likelihood.errors(theta)
    if smooth:
        # Smoothing leaves the maximum, so that the information there says nothing about the error.
        errors = np.full(len(theta), np.inf)
    level, gap = likelihood.value(theta), likelihood.gap(theta)
    return LikelihoodFit(chosen, theta, errors, boundary, identified, level, gap, iterations, converged, n, smooth)


def _observed_reports(mechanism: Mechanism, data: Any) -> Observed:
    if isinstance(data, np.ndarray):
        return group_reports(mechanism.check_reports(cast("Reports", data)))
    return observed(mechanism, data)


def _table(mechanism: Mechanism, reports: Reports, values: Sequence[Any]) -> F64:
    """Probability of every distinct report (rows) given every value (columns)."""
    if not len(values) or len(reports) * len(values) > MAX_CELLS:
        cells = f"{len(reports)} distinct reports and {len(values)} values"
        raise InvalidSpec(f"{mechanism.kind}: {cells} make more than {MAX_CELLS} cells, or none; name fewer values")
    table = np.exp(np.stack([mechanism.log_prob(reports, value) for value in values], axis=1))
    if not (table > 0).any(axis=1).all():
        raise InvalidSpec(f"{mechanism.kind}: a report is impossible under every value named; name all values")
    return table


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """A mixture: distinct reports with shares, and their probabilities under every value."""

    table: F64
    shares: F64
    n: int

    def value(self, theta: F64) -> float:
        """Return the log-likelihood, up to the multinomial constant of having grouped the reports."""
        return self.n * float(self.shares @ np.log(self.table @ theta))

    def gradient(self, theta: F64) -> F64:
        """Return the derivative with respect to every frequency, over n; its mean under theta is one."""
        return self.table.T @ (self.shares / (self.table @ theta))

    def step(self, theta: F64) -> F64:
        """Return theta after one EM step: posterior shares of the values, averaged over the reports."""
        after = theta * self.gradient(theta)
        return after / after.sum()

    def gap(self, theta: F64) -> float:
        """Return an upper bound of how far the log-likelihood is from its maximum (Lindsay 1983).

        It is concave, so it lies below its tangent, which rises the most towards a single value.
        """
        return self.n * max(0.0, float(self.gradient(theta).max()) - 1.0)

    def errors(self, theta: F64) -> tuple[F64, Mask, bool]:
        """Return standard errors against the respondents, a mask of boundary values, and whether values are identified.

        The covariance is the inverse of the observed information over the values inside the simplex.
        """
        boundary = theta * self.n < _ABSENT_RESPONDENTS
        inside = ~boundary
        error = np.full(len(theta), np.inf)
        scaled = self.table[:, inside] / (self.table @ theta)[:, None]
        information = self.n * (scaled * self.shares[:, None]).T @ scaled
        covariance = _on_simplex(information)
        if covariance is None:
            return error, boundary, False
        # The information speaks of the population; the respondents' own scatter is not an error about them.
        share = theta[inside]
        error[inside] = np.sqrt(np.clip(covariance - share * (1 - share) / self.n, 0, None))
        return error, boundary, True


def _on_simplex(information: F64) -> F64 | None:
    """Diagonal of the inverse information along directions that keep the sum; None where it is singular."""
    k = len(information)
    if k == 1:
        return np.zeros(1)
    # An orthonormal basis of the directions that sum to zero.
    basis = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, 1:]]))[0][:, 1:]
    inner = basis.T @ information @ basis
    if np.linalg.cond(inner) > _SINGULAR:
        return None
    return np.einsum("ij,jk,ik->i", basis, np.linalg.inv(inner), basis)


def _accelerated(likelihood: _Likelihood, tolerance: float, limit: int) -> tuple[F64, int, bool]:
    """EM with squared extrapolation (Varadhan and Roland, 2008), taken back wherever it does not climb."""
    theta = np.full(likelihood.table.shape[1], 1 / likelihood.table.shape[1])
    # A round is two EM steps, an extrapolation along them, and one step from there.
    for used in range(0, limit, 3):
        check()
        if likelihood.gap(theta) <= tolerance:
            return theta, used, True
        once = likelihood.step(theta)
        twice = likelihood.step(once)
        leap = likelihood.step(_extrapolated(theta, once, twice))
        theta = leap if likelihood.value(leap) >= likelihood.value(twice) else twice
    return theta, limit, likelihood.gap(theta) <= tolerance


def _extrapolated(theta: F64, once: F64, twice: F64) -> F64:
    """The squared-extrapolation point, back inside the simplex."""
    # Steplength S3 of the paper, at least 1, where the extrapolation is the second EM step itself.
    first, second = once - theta, twice - 2 * once + theta
    curvature = float(np.linalg.norm(second))
    length = max(1.0, float(np.linalg.norm(first)) / curvature) if curvature > 0 else 1.0
    moved = theta + 2 * length * first + length**2 * second
    # A frequency of zero could never rise again, so what overshoots keeps a small part of its last value.
    moved = np.maximum(moved, 1e-4 * twice)
    return moved / moved.sum()


def _smoothed(likelihood: _Likelihood, tolerance: float, limit: int) -> tuple[F64, int, bool]:
    """EM with a smoothing step, until the log-likelihood stands still."""
    size = likelihood.table.shape[1]
    theta, level = np.full(size, 1 / size), -np.inf
    for used in range(limit):
        check()
        before, level = level, likelihood.value(theta)
        if abs(level - before) < tolerance:
            return theta, used, True
        theta = smooth_once(likelihood.step(theta))
    return theta, limit, False


def smooth_once(theta: F64) -> F64:
    """Average every value with its neighbours by (1, 2, 1)/4, the ends by (2, 1)/3, and renormalise."""
    if len(theta) < 2:
        return theta
    padded = np.concatenate([[0.0], theta, [0.0]])
    smooth = (padded[:-2] + 2 * theta + padded[2:]) / 4
    smooth[0], smooth[-1] = (2 * theta[0] + theta[1]) / 3, (2 * theta[-1] + theta[-2]) / 3
    return smooth / smooth.sum()
