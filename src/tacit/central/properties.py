"""Structural properties of count mechanisms: one list of linear rules, for the checker and the designer. Not local.

Kulkarni, dissertation, section 6.4. Every rule says that one entry of the matrix is at least (or exactly) another.
The printed rule for row monotonicity leaves out the comparison with the diagonal; it belongs there.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64
from tacit.errors import InvalidSpec

Pairs = tuple[I64, I64]
"""Flat indices (larger, smaller) into an (n+1) x (n+1) matrix, row = output, column = truth."""

TOLERANCE = 1e-9
"""A solver's matrix has its properties up to this; matrices in closed form have them exactly."""


def _pairs(n: int, larger: "Callable[[I64, I64], tuple[Any, Any]]", where: "Callable[[I64, I64], Any]") -> Pairs:
    """The rule P[larger(i, j)] >= P[i, j], for all i, j for which `where` is true, as flat indices."""
    i, j = np.divmod(np.arange((n + 1) ** 2), n + 1)
    chosen = where(i, j)
    i, j = i[chosen], j[chosen]
    row, column = larger(i, j)
    return (row * (n + 1) + column).astype(np.int64), (i * (n + 1) + j).astype(np.int64)


def _row_honesty(n: int) -> Pairs:
    return _pairs(n, lambda i, _j: (i, i), lambda i, j: i != j)


def _column_honesty(n: int) -> Pairs:
    return _pairs(n, lambda _i, j: (j, j), lambda i, j: i != j)


# The sign steps one entry towards the diagonal, along the row or along the column.
def _row_monotonicity(n: int) -> Pairs:
    return _pairs(n, lambda i, j: (i, j + np.sign(i - j)), lambda i, j: i != j)


def _column_monotonicity(n: int) -> Pairs:
    return _pairs(n, lambda i, j: (i + np.sign(j - i), j), lambda i, j: i != j)


def _fairness(n: int) -> Pairs:
    """Neighbouring diagonal entries are equal: each is at least the other."""
    larger, smaller = _pairs(n, lambda i, _j: (i - 1, i - 1), lambda i, j: (i == j) & (i > 0))
    return np.concatenate([larger, smaller]), np.concatenate([smaller, larger])


def _symmetry(n: int) -> Pairs:
    return _pairs(n, lambda i, j: (n - i, n - j), lambda i, _j: i >= 0)


RULES: dict[str, Callable[[int], Pairs]] = {
    "row-honesty": _row_honesty,
    "row-monotonicity": _row_monotonicity,
    "column-honesty": _column_honesty,
    "column-monotonicity": _column_monotonicity,
    "fairness": _fairness,
    "symmetry": _symmetry,
}
"""Properties that compare entries. Weak honesty compares the diagonal with 1/(n + 1) instead."""

PROPERTIES = (*RULES, "weak-honesty")
"""row-honesty: an output is likeliest when true. column-honesty: the truth is the likeliest output. The two
monotonicities: probabilities fall away from the diagonal. fairness: the truth is equally likely for every count.
weak-honesty: the truth is at least as likely as under UM. symmetry: reversing counts and outputs changes nothing."""

SHORT = {
    "rh": "row-honesty",
    "rm": "row-monotonicity",
    "ch": "column-honesty",
    "cm": "column-monotonicity",
    "f": "fairness",
    "s": "symmetry",
    "wh": "weak-honesty",
}
"""The abbreviations of the literature."""

_IMPLIED = {"row-monotonicity": "row-honesty", "column-monotonicity": "column-honesty"}


def as_properties(names: Iterable[str]) -> frozenset[str]:
    """Return the full names of properties given by name or abbreviation; "all" stands for all seven.

    >>> sorted(as_properties(["WH", "symmetry"]))
    ['symmetry', 'weak-honesty']
    """
    lowered = [name.strip().lower() for name in names]
    if "all" in lowered:
        return frozenset(PROPERTIES)
    full = [SHORT.get(name, name) for name in lowered]
    unknown = sorted(set(full) - set(PROPERTIES))
    if unknown:
        raise InvalidSpec(f"property {unknown[0][:40]!r} does not exist, must be one of {', '.join(PROPERTIES)}, all")
    return frozenset(full)


def without_implied(properties: "frozenset[str]") -> frozenset[str]:
    """Return the same demands in fewer rules: monotonicity implies honesty."""
    return properties - {implied for name, implied in _IMPLIED.items() if name in properties}


def has_property(matrix: "npt.NDArray[Any]", name: str, *, tolerance: float = TOLERANCE) -> bool:
    """Whether a matrix (of floats, or of fractions with tolerance 0) has a property."""
    if name == "weak-honesty":
        return bool(np.all(np.diagonal(matrix) * len(matrix) >= 1 - tolerance * len(matrix)))
    larger, smaller = RULES[name](len(matrix) - 1)
    flat = matrix.ravel()
    return bool(np.all(flat[larger] - flat[smaller] >= -tolerance))


def properties_of(matrix: "npt.NDArray[Any]", *, tolerance: float = TOLERANCE) -> dict[str, bool]:
    """Return for every property whether the matrix has it."""
    return {name: has_property(matrix, name, tolerance=tolerance) for name in PROPERTIES}
