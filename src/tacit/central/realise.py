"""From a solver's matrix in floating point to one that is private in exact arithmetic. Not local."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from tacit.arrays import F64
from tacit.central.count import Alpha, Columns, CountMechanism, Neighbours, as_alpha
from tacit.errors import InvalidSpec

# Entries become multiples of 2^-60, finer than the doubles they come from; the mixing share has a finer grain still,
# since it is tiny for a solver's matrix and is rounded up.
_GRAIN = 1 << 60
_MIX_GRAIN = 1 << 96


def realise(
    matrix: F64, alpha: Alpha, *, name: str = "given", neighbours: Neighbours = "adjacent", symmetric: bool = False
) -> CountMechanism:
    """Return a mechanism close to a matrix of floats that is private in exact arithmetic.

    Entries become multiples of 2^-60, columns are divided by their sums, and the least share t of the uniform
    mechanism is mixed in that brings every ratio within alpha: that keeps every property the matrix had, and costs
    at most t of the objective's scale. `mixed` of the result is t, below 1e-7 for a solver's matrix; a matrix that is
    far from private is not refused: it becomes mostly uniform.
    """
    exact = as_alpha(alpha)
    columns = _rational(np.asarray(matrix, np.float64))
    if symmetric:
        columns = symmetrise(columns)
    share = _needed(columns, exact, neighbours)
    if share:
        even = share / len(columns)
        columns = tuple(tuple((1 - share) * p + even for p in column) for column in columns)
    return CountMechanism(name, exact, columns, neighbours, share)


def symmetrise(columns: Columns) -> Columns:
    """Return the mean of a matrix and its point reflection: keeps privacy, all properties and L0 (Theorem 8).

    Any sum objective stays the same if its prior is symmetric, which the text leaves out; a worst case cannot grow.
    """
    mirrored = [column[::-1] for column in columns[::-1]]
    return tuple(
        tuple((p + q) / 2 for p, q in zip(column, mirror, strict=True))
        for column, mirror in zip(columns, mirrored, strict=True)
    )


def _rational(matrix: F64) -> Columns:
    """Every column in multiples of 2^-60, over their sum."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise InvalidSpec("a mechanism must be a square matrix of numbers, row = output, column = truth")
    grains = [[max(0, round(Fraction(p) * _GRAIN)) for p in column] for column in matrix.T.tolist()]
    totals = [sum(column) for column in grains]
    if any(not 0.999 < total / _GRAIN < 1.001 for total in totals):
        raise InvalidSpec("every column of a mechanism must sum to 1: columns are the true counts")
    return tuple(tuple(Fraction(p, t) for p in column) for column, t in zip(grains, totals, strict=True))


def _needed(columns: Columns, alpha: Fraction, neighbours: Neighbours) -> Fraction:
    """The least share of the uniform mechanism that makes the matrix private, rounded up to 2^-96.

    The uniform mechanism has slack (1 - alpha)/(n + 1) in every rule: (1 - t) excess <= t slack.
    """
    pairs = pairwise(columns) if neighbours == "adjacent" else combinations(columns, 2)
    # Mixing scales the worst violation by 1 - t and adds t times the slack of the uniform mechanism.
    excess = max(max(alpha * a - b, alpha * b - a) for one, other in pairs for a, b in zip(one, other, strict=True))
    if excess <= 0:
        return Fraction(0)
    share = excess / (excess + (1 - alpha) / len(columns))
    return Fraction(-(-share.numerator * _MIX_GRAIN // share.denominator), _MIX_GRAIN)
