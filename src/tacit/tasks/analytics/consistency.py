"""Constrained inference as coefficients: the least noisy combination of all levels, with the total as it is known.

Levels say the same thing twice, once at a node and once at its children. Among all coefficients a on nodes, with a
constant c for everybody, for which sum_l a(node of x at l) + c is 1 inside a region and 0 outside, take those of least
noise. They are a_l = (share_l/noise_l) times the sums over nodes of a solution of the normal equations (Hay et al.,
VLDB 2010, for one tree with equal levels; here for any levels of a grid). Being linear, they serve weighted sums.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidSpec
from tacit.post.grid_shape import GridShape, Heights, Inverse
from tacit.tasks.analytics.cover import Coefficients, Part
from tacit.tasks.analytics.regions import Region

F64 = npt.NDArray[np.float64]
MAX_CELLS = 1 << 12
_MAX_RAGGED = 1 << 10
"""Incomplete trees are solved as matrices; beyond so many combinations that is not done without being asked for."""
_DIGITS = 12
"""Equal coefficients that differ by rounding alone become one, so that the kernel counts their nodes together."""


def affordable(shape: GridShape) -> bool:
    """Whether combining all levels takes well under a second."""
    return shape.cells <= (MAX_CELLS if shape.complete else _MAX_RAGGED)


@dataclass(frozen=True, eq=False)
class Consistent:
    """Coefficients for a grid whose members have these precisions: probability over noise of one node."""

    shape: GridShape
    precisions: dict[Heights, float]

    def __post_init__(self) -> None:
        """Refuse what would take gigabytes."""
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

    def region(self, region: Region) -> Coefficients | None:
        """The best coefficients, or None where the levels do not determine the region."""
        inside = sum(self._box(box) for box in region.boxes) + np.zeros(self.shape.cells)
        if not self._inverse.known(inside):
            return None
        solved = self._inverse.apply(inside)
        constant = float(solved.sum() / self._ones.sum())
        solved = solved - constant * self._ones
        parts: dict[Heights, Part] = {}
        for heights, precision in self.precisions.items():
            values = np.round(precision * self.shape.sums(solved, heights), _DIGITS)
            nodes = np.flatnonzero(values)
            if len(nodes):
                parts[heights] = Part(nodes.astype(np.uint64), values[nodes])
        return Coefficients(constant, parts)

    def _box(self, box: tuple[tuple[tuple[int, int], ...], ...]) -> F64:
        found = np.ones(1)
        for spans, size in zip(box, self.shape.sizes, strict=True):
            side = np.zeros(size)
            for low, high in spans:
                side[low : high + 1] = 1.0
            found = np.multiply.outer(found, side).reshape(-1)
        return found
