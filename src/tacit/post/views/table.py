"""Tables over a few attributes: projections, products along axes, and their pure interactions.

A table over attributes A has one axis per attribute, in rising order. Every table is the sum of its pure interactions,
one for every subset of A, each summing to zero along all its axes (the analysis-of-variance decomposition; for binary
attributes, the Hadamard coefficients). Interactions of different subsets are orthogonal, and a margin keeps those of
its own subsets: agreement between overlapping tables is agreement of their interactions.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

import numpy as np

from tacit.arrays import F64
from tacit.errors import InvalidSpec

Attributes = tuple[int, ...]

MAX_TABLE = 1 << 20
"""The largest table that is answered cell by cell."""


def subsets(attributes: Sequence[int]) -> Iterator[Attributes]:
    """Yield all subsets, small ones first, the empty one included."""
    for size in range(len(attributes) + 1):
        yield from combinations(attributes, size)


def shape_of(sizes: Sequence[int], attributes: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of answers of some attributes: the shape of their table."""
    return tuple(sizes[attribute] for attribute in attributes)


def checked_attributes(sizes: Sequence[int], attributes: Sequence[int], *, most: int = MAX_TABLE) -> Attributes:
    """Return attributes in rising order; refused where one is unknown or repeated, or their table is too large."""
    rising = tuple(sorted(int(attribute) for attribute in attributes))
    if not rising or len(set(rising)) < len(rising) or rising[0] < 0 or rising[-1] >= len(sizes):
        raise InvalidSpec(f"marginals: attributes must be different integers from 0 to {len(sizes) - 1}, at least one")
    cells = prod(shape_of(sizes, rising))
    if cells > most:
        raise InvalidSpec(
            f"marginals: the table has {cells} cells, must be at most {most}; ask for fewer attributes at a time"
        )
    return rising


def margin(table: F64, axes: Sequence[int], onto: Sequence[int]) -> F64:
    """Return the marginal of a table over `axes` on the attributes `onto`; leading axes (a stack) are kept."""
    extra = table.ndim - len(axes)
    gone = tuple(extra + i for i, attribute in enumerate(axes) if attribute not in onto)
    return table.sum(axis=gone) if gone else table


def given_rows(table: F64) -> F64:
    """Return conditional shares: every row of a table divided by its sum, the overall shares where a row is empty.

    >>> given_rows(np.array([[1.0, 3.0], [0.0, 0.0]]) / 4).tolist()
    [[0.25, 0.75], [0.25, 0.75]]
    """
    mass = table.sum(axis=1, keepdims=True)
    return np.where(mass > 0, table / np.where(mass > 0, mass, 1), table.sum(axis=0))


def along_axes(matrices: Sequence[F64], table: F64) -> F64:
    """Return the Kronecker product of matrices times a table, computed axis by axis."""
    for axis, matrix in enumerate(matrices):
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return table


def centred(table: F64, axes: int) -> F64:
    """Return the pure interaction of the last `axes` axes: every mean along one of them is taken off."""
    for axis in range(table.ndim - axes, table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def spread_to(table: F64, onto: Sequence[int], axes: Sequence[int], shape: Sequence[int]) -> F64:
    """Return a table over `onto` as one over more attributes, divided evenly over the new cells (by broadcasting).

    Leading axes (a stack) are kept; new axes have length 1.
    """
    extra = table.ndim - len(onto)
    wide = [size if attribute in onto else 1 for attribute, size in zip(axes, shape, strict=True)]
    cells = prod(size for attribute, size in zip(axes, shape, strict=True) if attribute not in onto)
    return table.reshape(*table.shape[:extra], *wide) / cells


def cell_labels(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the tuple of answers that every cell stands for, in order."""
    return [tuple(int(x) for x in cell) for cell in np.ndindex(*shape)]
