"""Constrained inference (consistency) as coefficients on nodes: the least-squares combination of all levels.

The levels of a tree are redundant: a node and the sum of its children estimate the same count. Among all coefficients
a on nodes, with a constant c for everybody, for which sum_l a(node of x at l) + c is 1 inside a region and 0 outside,
the ones of least variance are a_l = (share_l/noise_l) times the sums over nodes of a solution of the normal equations
(Hay et al., VLDB 2010, for one tree with equal levels; here for any levels of a grid). The total is known, so c costs
no noise. Because the answer stays linear in the reports, the same coefficients serve sums of a public measure.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.arrays import F64
from tacit.errors import InvalidSpec
from tacit.post.grids.shape import GridShape, Heights, Inverse
from tacit.sql.design.cover import LevelCoefficients, NodeCoefficients
from tacit.sql.schema.regions import Region

# Incomplete trees need a dense matrix of cells x cells: 128 MB at this limit, half a gigabyte at twice as many cells.
MAX_CELLS = 1 << 12
_MAX_RAGGED = 1 << 10
"""Largest domain of incomplete trees that a plan tries by itself: these are solved as dense matrices, in O(cells^3)."""
_DIGITS = 12
"""Decimals that coefficients are rounded to.

The hash kernel makes one pass per distinct coefficient, so values that differ in the last bit alone must become equal.
"""


def affordable(shape: GridShape) -> bool:
    """Whether the least squares of a grid are solved in well under a second, so that a plan may try them unasked."""
    return shape.cells <= (MAX_CELLS if shape.complete else _MAX_RAGGED)


@dataclass(frozen=True, eq=False)
class Consistent:
    """Solver for one grid; `precisions` is 1/variance of one node of every level: its probability over its noise."""

    shape: GridShape
    precisions: dict[Heights, float]

    def __post_init__(self) -> None:
        """Refuse domains whose matrices would not fit into memory."""
        if self.shape.cells > MAX_CELLS:
            raise InvalidSpec(
                f"analytics: consistency solves for all {self.shape.cells} combinations, must be at most {MAX_CELLS}"
            )

    @cached_property
    def _inverse(self) -> Inverse:
        return self.shape.inverse(self.precisions)

    @cached_property
    def _ones(self) -> F64:
        return self._inverse.apply(np.ones(self.shape.cells))

    def region(self, region: Region) -> NodeCoefficients | None:
        """The coefficients of least variance, or None where the levels asked do not determine the region."""
        inside = sum(self._box(box) for box in region.boxes) + np.zeros(self.shape.cells)
        if not self._inverse.known(inside):
            return None
        # Lagrange multiplier of the known total: subtracting constant * M^-1 1 makes the solution orthogonal to the
        # all-ones vector, so that the root needs no noisy coefficient and its part goes into the constant.
        solved = self._inverse.apply(inside)
        constant = float(solved.sum() / self._ones.sum())
        solved = solved - constant * self._ones
        parts: dict[Heights, LevelCoefficients] = {}
        for heights, precision in self.precisions.items():
            values = np.round(precision * self.shape.sums(solved, heights), _DIGITS)
            nodes = np.flatnonzero(values)
            if len(nodes):
                parts[heights] = LevelCoefficients(nodes.astype(np.uint64), values[nodes])
        return NodeCoefficients(constant, parts)

    def _box(self, box: tuple[tuple[tuple[int, int], ...], ...]) -> F64:
        """The 0/1 indicator of a box over all cells, the last dimension fastest."""
        found = np.ones(1)
        for spans, size in zip(box, self.shape.sizes, strict=True):
            side = np.zeros(size)
            for low, high in spans:
                side[low : high + 1] = 1.0
            found = np.multiply.outer(found, side).reshape(-1)
        return found
