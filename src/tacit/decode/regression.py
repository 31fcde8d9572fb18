"""Regression decoder for Bloom-filter reports with cohorts (full RAPPOR).

Row (cohort, bit) of the design says which candidates set that bit in that cohort; the response
is the unbiased estimate of the fraction of the cohort that has the bit set. The coefficients are
then the candidates' frequencies in the whole population, and one intercept column absorbs the
values that are missing from the candidate list.

Reference: Erlingsson, Pihur and Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving
Ordinal Response" (CCS 2014), section 4. The published decoder repeats fits on re-noised data;
this one weights every row by its known noise, so that standard errors have a closed form and the
significance level is the stated one.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.core.statistics.least_squares import LeastSquaresFit, column_norms, weighted_least_squares
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IndexArray: TypeAlias = NDArray[np.intp]
Method: TypeAlias = Literal["least_squares", "lasso_then_least_squares", "no_data"]

# With more unknowns per row than this, least squares on all candidates is too noisy.
_CROWDED = 0.8
# Columns that may join the working set of the LASSO in one round, besides its current size.
_NEWCOMERS = 64
# Sweeps between two attempts to solve for the support directly, which costs about as much.
_SWEEPS_PER_LEAP = 10


class LassoFit(NamedTuple):
    """Solution of a non-negative LASSO: coefficients, sweeps spent, and whether it converged."""

    coefficients: FloatArray
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Decoded:
    """Frequencies of candidate groups, in the order in which each group first appears.

    Candidates with equal columns cannot be told apart: entry g of every array belongs to all of
    ``groups[g]`` together. ``frequency`` is unbiased and may be negative where ``fitted``; a group
    that the LASSO did not select has frequency 0 and an infinite standard error, for it was not
    measured. After "least_squares", ``intercept`` times Bloom bits over hashes estimates the mass
    of the values that are not listed. After a LASSO it estimates nothing: it also makes up for the
    frequencies of selected candidates, which selection has pushed upwards.
    """

    frequency: FloatArray
    standard_error: FloatArray
    z: FloatArray
    significant: BoolArray
    fitted: BoolArray
    groups: tuple[tuple[int, ...], ...]
    intercept: float
    intercept_standard_error: float
    threshold: float
    method: Method


def nonnegative_lasso(
    design: FloatArray,
    response: FloatArray,
    penalty: float,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 10_000,
) -> LassoFit:
    """Minimise 0.5 |y - X b|^2 + penalty * sum(b) over b >= 0 by coordinate descent.

    Only a working set of columns is descended on, with its Gram matrix at hand (covariance
    updates); the other columns join when their gradient says so, and every few sweeps the support
    is solved for directly. It has converged when a further update of any single coordinate would
    move the fitted values by at most ``tolerance * |y|``. An iteration is one sweep.
    """
    if penalty < 0.0:
        raise InvalidSpec(f"lasso: penalty is {penalty!r}, must not be negative")
    # `gradient` is that of the objective with its sign changed: positive where a coefficient wants to grow.
    norms = column_norms(design)
    coefficients = np.zeros(design.shape[1])
    allowed = tolerance * float(np.linalg.norm(response))
    gradient = design.T @ response - penalty
    iterations = 0
    while not (converged := _largest_move(coefficients, gradient, norms) <= allowed):
        if iterations >= max_iterations:
            break
        working = _working_set(coefficients, gradient, norms)
        part = np.ascontiguousarray(design[:, working])
        start, slope = coefficients[working], gradient[working]
        budget = max_iterations - iterations
        coefficients[working], spent = _descend(part.T @ part, start, slope, allowed, budget)
        gradient = design.T @ (response - part @ coefficients[working]) - penalty
        iterations += spent
    return LassoFit(coefficients, iterations, converged)


def _moves(coefficients: FloatArray, gradient: FloatArray, norms: FloatArray) -> FloatArray:
    """Return by how much each coordinate's own update would move the fitted values."""
    moves = np.zeros_like(coefficients)
    np.divide(gradient, norms, out=moves, where=norms > 0.0)
    return np.maximum(moves, -coefficients * norms)


def _largest_move(coefficients: FloatArray, gradient: FloatArray, norms: FloatArray) -> float:
    return float(np.abs(_moves(coefficients, gradient, norms)).max(initial=0.0))


def _working_set(coefficients: FloatArray, gradient: FloatArray, norms: FloatArray) -> IndexArray:
    """Return the support and the columns outside it that want to enter most."""
    support = np.flatnonzero(coefficients)
    moves = np.where(coefficients > 0.0, 0.0, _moves(coefficients, gradient, norms))
    newcomers = np.argsort(-moves, kind="stable")[: _NEWCOMERS + support.size]
    return np.union1d(support, newcomers[moves[newcomers] > 0.0])


def _descend(
    gram: FloatArray, start: FloatArray, slope: FloatArray, allowed: float, max_sweeps: int
) -> tuple[FloatArray, int]:
    """Sweep over all coordinates until no update moves the fit by half of ``allowed``."""
    coefficients, gradient = start.copy(), slope.copy()
    sweeps, largest = 0, np.inf
    # Half, so that rounding in the maintained gradient cannot keep the caller waiting.
    while largest > 0.5 * allowed and sweeps < max_sweeps:
        largest = _sweep(gram, coefficients, gradient)
        sweeps += 1
        if sweeps % _SWEEPS_PER_LEAP == 0:
            coefficients, gradient = _leap(gram, coefficients, gradient)
    return coefficients, sweeps


def _sweep(gram: FloatArray, coefficients: FloatArray, gradient: FloatArray) -> float:
    """Minimise along every coordinate in turn, in place; return the largest move of the fit."""
    largest = 0.0
    for j, squared_norm in enumerate(gram.diagonal().tolist()):
        # The exact minimum along a coordinate, cut off at zero; covariance updates keep the gradient current.
        step = max(float(gradient[j]) / squared_norm, -float(coefficients[j]))
        if step != 0.0:
            coefficients[j] += step
            gradient -= step * gram[j]
            largest = max(largest, step * step * squared_norm)
    return largest**0.5


def _leap(gram: FloatArray, coefficients: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Jump to the minimum over the current support, clipped at zero, if that is an improvement.

    Columns of a small Bloom filter are strongly correlated; sweeps alone then crawl for thousands
    of rounds, although they have found most of the support after a few.
    """
    support = np.flatnonzero(coefficients)
    part = gram[np.ix_(support, support)]
    # A trace of ridge keeps dependent columns solvable; the comparison below judges the result.
    part[np.diag_indices_from(part)] *= 1.0 + 1e-12
    direction = np.linalg.solve(part, gradient[support])
    target = coefficients.copy()
    target[support] = np.maximum(coefficients[support] + direction, 0.0)
    step = target - coefficients
    change = gram @ step
    if float(step @ (0.5 * change - gradient)) < 0.0:
        return target, gradient - change
    return coefficients, gradient


def decode_candidates(
    design: BoolArray,
    y: FloatArray,
    variance: FloatArray,
    *,
    alpha: float = 0.05,
    intercept: bool = True,
    penalty_factor: float = 2.0,
) -> Decoded:
    """Estimate candidate frequencies and test which are present, at family-wise level ``alpha``.

    Up to 0.8 distinct candidates per row, weighted least squares fits all of them. Beyond that a
    non-negative LASSO, whose penalty is ``penalty_factor`` times the mean column norm, selects the
    candidates that are fitted; testing on the data used for selection is not covered by theory.
    Both divide ``alpha`` by the number of all candidates (Bonferroni), and raise the threshold of z
    where the rows fit worse than their noise explains. Rows whose response or
    variance is not finite (empty cohorts) are dropped. The list may be incomplete unless
    ``intercept`` is false, which is only right when every value held by anybody is listed.
    Takes memory for 8 bytes per row and candidate.
    """
    _check(design, y, variance, alpha)
    answered = np.isfinite(y) & np.isfinite(variance)
    bits, response, sd = design[answered], y[answered], np.sqrt(variance[answered])
    groups = _equal_columns(bits if len(bits) else design)
    columns = np.take(bits, [group[0] for group in groups], axis=1)
    chosen, method = _choose(columns, response, sd, penalty_factor)
    fit = weighted_least_squares(columns[:, chosen], response, sd, intercept=intercept)
    misfit = _misfit(columns[:, chosen], response, sd, fit, intercept=intercept)
    threshold = normal_isf(alpha / max(1, design.shape[1])) * misfit
    return _decoded(fit, chosen, groups, threshold, method)


def _misfit(
    columns: BoolArray, response: FloatArray, sd: FloatArray, fit: LeastSquaresFit, *, intercept: bool
) -> float:
    """Root of the residuals' chi-square per degree of freedom, at least 1: how much they exceed the rows' noise.

    Values that are not listed share bits with candidates. The intercept takes their average away; what is left is
    different in every row, does not shrink with more reports, and would be taken for the presence of a candidate.
    """
    degrees = len(sd) - columns.shape[1] - int(intercept)
    if degrees <= 0:
        return 1.0
    residuals = (response - fit.intercept - columns @ fit.coefficients) / sd
    return max(1.0, float(residuals @ residuals) / degrees) ** 0.5


def _check(design: BoolArray, y: FloatArray, variance: FloatArray, alpha: float) -> None:
    rows = design.shape[0]
    if design.dtype != np.bool_:
        raise InvalidSpec(f"decode: design has type {design.dtype}, must be bool; a bit set twice counts once")
    if y.shape != (rows,) or variance.shape != (rows,):
        raise InvalidSpec(f"decode: y has shape {y.shape}, variance {variance.shape}; the design needs {(rows,)}")
    if not 0.0 < alpha < 1.0:
        raise InvalidSpec(f"decode: alpha is {alpha!r}, must lie between 0 and 1")
    if bool((variance <= 0.0).any()):
        raise InvalidSpec("decode: a variance is not positive; rows without noise cannot be weighted")


def _equal_columns(bits: BoolArray) -> tuple[tuple[int, ...], ...]:
    """Group the indices of equal columns, in order of first appearance."""
    groups: dict[bytes, list[int]] = {}
    for index, packed in enumerate(np.packbits(bits.T, axis=1)):
        groups.setdefault(packed.tobytes(), []).append(index)
    return tuple(tuple(group) for group in groups.values())


def _choose(
    columns: BoolArray, response: FloatArray, sd: FloatArray, penalty_factor: float
) -> tuple[IndexArray, Method]:
    """Return which columns to fit, and the name of the method that decided it."""
    rows, candidates = columns.shape
    if rows == 0:
        return np.arange(0, dtype=np.intp), "no_data"
    capacity = int(_CROWDED * rows)
    if candidates <= capacity:
        return np.arange(candidates, dtype=np.intp), "least_squares"
    scaled = columns * (1.0 / sd)[:, None]
    penalty = penalty_factor * float(column_norms(scaled).mean())
    # The solution only selects columns, so a coarse one serves, converged or not.
    coefficients = nonnegative_lasso(scaled, response / sd, penalty, tolerance=1e-6, max_iterations=1000).coefficients
    # A weak penalty could select more than the rows can carry: keep the largest.
    largest = np.argsort(-coefficients, kind="stable")[:capacity]
    return np.sort(largest[coefficients[largest] > 0.0]), "lasso_then_least_squares"


def _decoded(
    fit: LeastSquaresFit,
    chosen: IndexArray,
    groups: tuple[tuple[int, ...], ...],
    threshold: float,
    method: Method,
) -> Decoded:
    """Fitted coefficients back at the places of their groups; groups that were not selected stay unmeasured."""
    frequency, standard_error = np.zeros(len(groups)), np.full(len(groups), np.inf)
    fitted = np.zeros(len(groups), dtype=np.bool_)
    frequency[chosen], standard_error[chosen] = fit.coefficients, np.sqrt(fit.variances)
    fitted[chosen] = True
    z = frequency / standard_error
    return Decoded(
        frequency=frequency,
        standard_error=standard_error,
        z=z,
        significant=z > threshold,
        fitted=fitted,
        groups=groups,
        intercept=fit.intercept,
        intercept_standard_error=float(np.sqrt(fit.intercept_variance)),
        threshold=threshold,
        method=method,
    )
