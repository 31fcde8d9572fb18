"""Weighted least squares that says which coefficients, and which combinations of them, the rows identify.

Columns are scaled to unit norm first: whether a direction is identified must not depend on units. Where the normal
equations are singular, the eigenvectors with (nearly) zero eigenvalues are the directions that no row can see.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

# Scaled normal equations with a larger condition number are solved by eigenvectors.
_WELL_CONDITIONED = 1e8
# Directions with a smaller share of the largest eigenvalue count as not observed at all.
_UNSEEN_DIRECTION = 1e-10
# A coefficient is not identified when more of its squared unit vector lies in such directions.
_UNSEEN_WEIGHT = 1e-8


class LeastSquaresFit(NamedTuple):
    """Coefficients with variances; a variance is infinite where the rows do not identify it."""

    coefficients: FloatArray
    variances: FloatArray
    intercept: float
    intercept_variance: float


@dataclass(frozen=True, eq=False)
class LinearSolver:
    """The linear map from responses to least-squares coefficients, and the directions no row can see."""

    operator: FloatArray
    """Coefficients are `operator @ response`."""
    unseen: FloatArray
    """Unit columns that span what is not identified, in scaled coordinates."""
    scale: FloatArray
    """Norms of the weighted columns."""

    def identifies(self, combinations: FloatArray) -> BoolArray:
        """Which linear combinations (rows) of the coefficients the responses determine."""
        scaled = combinations / self.scale
        hidden = ((scaled @ self.unseen) ** 2).sum(axis=1)
        return hidden <= _UNSEEN_WEIGHT * np.maximum((scaled**2).sum(axis=1), np.finfo(np.float64).tiny)


def linear_solver(columns: FloatArray, weight: FloatArray) -> LinearSolver:
    """Return the solver for fixed row weights; linearly dependent columns get the minimum-norm solution."""
    # Weighted least squares is ordinary least squares of rows times the root of their weight.
    root = np.sqrt(weight)
    scaled = columns * root[:, None]
    norms = column_norms(scaled)
    scale = np.where(norms > 0.0, norms, 1.0)
    scaled /= scale
    inverse, unseen = _symmetric_inverse(scaled.T @ scaled)
    return LinearSolver((inverse @ (scaled.T * root)) / scale[:, None], unseen, scale)


def weighted_least_squares(
    design: FloatArray | BoolArray, response: FloatArray, sd: FloatArray, *, intercept: bool = True
) -> LeastSquaresFit:
    """Fit response = intercept + design @ b, each row having known standard deviation ``sd``.

    Variances are the diagonal of (X' W^2 X)^-1 with W = 1/sd. Where columns are linearly dependent
    the coefficients are those of a minimum-norm solution, and every coefficient that the rows do
    not determine has infinite variance.
    """
    columns = np.asarray(design, np.float64)
    if intercept:
        columns = np.column_stack([columns, np.ones(len(sd))])
    solver = linear_solver(columns, sd**-2.0)
    beta = solver.operator @ response
    # Rows are independent, so the variance of a linear combination of them is that of its squared coefficients.
    seen = solver.identifies(np.eye(len(beta)))
    variances = np.where(seen, solver.operator**2 @ sd**2, np.inf)
    if not intercept:
        return LeastSquaresFit(beta, variances, 0.0, 0.0)
    return LeastSquaresFit(beta[:-1], variances[:-1], float(beta[-1]), float(variances[-1]))


def column_norms(columns: FloatArray) -> FloatArray:
    """Return the Euclidean norm of every column."""
    return np.sqrt(np.einsum("ij,ij->j", columns, columns))


def _symmetric_inverse(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the (pseudo-)inverse and an orthonormal basis of the directions that are not identified."""
    # The fast path: an inverse costs far less than eigenvectors, and its condition number says if it can be trusted.
    nothing = np.zeros((len(gram), 0))
    try:
        inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        if _one_norm(gram) * _one_norm(inverse) < _WELL_CONDITIONED:
            return inverse, nothing
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(gram)
    seen = values > _UNSEEN_DIRECTION * values[-1]
    inverse = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
    return inverse, vectors[:, ~seen]


def _one_norm(matrix: FloatArray) -> float:
    return float(np.abs(matrix).sum(axis=0).max(initial=0.0))
