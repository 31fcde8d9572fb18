"""Consistent cells of a grid of hierarchies, by weighted least squares, and the exact variance of any linear answer.

Every member of a grid (see `device.families.grid`) estimates sums of cells over rectangles, each by its own
respondents. Least squares with the members' own precisions, under the known total, uses all of them for every answer:
Kulkarni's dissertation, section 7.1, sums the rectangles of B-adic decompositions instead, which `decomposition` gives.

Weights depend on the numbers of reports and on the mechanisms, never on the estimates: answers stay unbiased and
linear. Their variance is that of `tacit.post.trees.variance`, with members in place of levels: what each member's
coefficients give, less the answer's own spread, once, because the members' respondents are disjoint.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from tacit.arrays import F64
from tacit.core.statistics.score import Law, law_between, placed
from tacit.errors import InvalidSpec
from tacit.post.grids.shape import GridShape, Heights, Inverse
from tacit.post.trees.levels import Level, LevelSums

MOST_CELLS = 4096
"""The largest number of cells that least squares solves for together."""

MOST_RAGGED = 1024
"""The largest number of cells where a node lacks children: there the normal matrix itself has to be inverted."""

# Entries of (answer, cell) arrays that are worked on at a time.
_CHUNK_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class GridFit:
    """The consistent cells of a grid, and how they depend on every member."""

    shape: GridShape
    members: dict[Heights, Level]
    """What was learnt about every member that somebody answered."""
    respondents: float
    inverse: Inverse
    total: float
    leaves: F64

    def coefficients(self, rows: F64) -> Iterator[tuple[Heights, Level, F64]]:
        """Yield per member the coefficients of its values in the answers `rows @ leaves`.

        The fit is M^-1 sum_m p_m A_m' v_m, so the coefficients of member m are p_m A_m M^-1 row, after the part of
        M^-1 row along the known total (a Lagrange multiplier) is taken off.
        """
        gradient = self.inverse.apply(rows)
        share = gradient.sum(axis=-1, keepdims=True) / self._whole.sum()
        gradient = gradient - share * self._whole
        known_sums: dict[Heights, F64] = {}
        for heights, level in self.members.items():
            sums = self.shape.sums(gradient, heights, known_sums)
            yield heights, level, _precision(self.shape, heights, level) * sums

    @cached_property
    def _whole(self) -> F64:
        """M^-1 times the total, whose row is all ones."""
        return self.inverse.apply(np.ones(self.shape.cells))

    def linear(self, rows: F64, *, share: float | None = None) -> F64:
        """Return the variance of `rows @ leaves`, against all respondents; infinite where nobody was asked.

        The fit is plugged in for the truth, or a `share` of everybody in each row's cells, the rest outside of them.
        """
        step = max(1, _CHUNK_CELLS // self.shape.cells)
        parts = [self._linear(rows[start : start + step], share) for start in range(0, len(rows), step)]
        return np.concatenate([np.zeros(0), *parts])

    def _linear(self, rows: F64, share: float | None) -> F64:
        # The respondents of different members are disjoint, so every member adds its own variance; their common spread
        # has been counted once too often and is taken off first.
        leaves = self.leaves if share is None else placed(rows, share)
        variance = -self._spread(rows, leaves)
        for heights, level, coefficients in self.coefficients(rows):
            variance = variance + self.member_variance(heights, level, coefficients, leaves)
        return np.where(self.inverse.known(rows), np.clip(variance, 0, None), np.inf)

    def member_variance(self, heights: Heights, level: Level, coefficients: F64, leaves: F64 | None = None) -> F64:
        """Return what a member adds to the variance of answers with these coefficients on its nodes."""
        mass, squares = self.shape.sums(self.leaves if leaves is None else leaves, heights), coefficients**2
        sums = LevelSums(coefficients.sum(axis=-1), squares.sum(axis=-1), dots(coefficients, mass), dots(squares, mass))
        return level.variance(sums, self.respondents)

    def _spread(self, rows: F64, leaves: F64) -> F64:
        """The variance of one respondent's contribution to the answers, over n - 1."""
        return (dots(rows**2, leaves) - dots(rows, leaves) ** 2) / max(1.0, self.respondents - 1)

    def law(self, rows: F64) -> Law:
        """Return how the variances of sums of cells depend on their true shares, for score intervals.

        The total is known: its variance is zero whatever the shares.
        """
        # Three points determine slope and curve of the variance as a function of the true share.
        absent, even, everybody = (self.linear(rows, share=share) for share in (0.0, 0.5, 1.0))
        free = (rows.min(axis=-1) < 1) & np.isfinite(absent + even + everybody)
        step = min((level.moments.step * level.scale for level in self.members.values()), default=0.0)
        sides = (np.where(free, side, 0.0) for side in (absent, even, everybody))
        return law_between(*sides, step=np.where(free, step, 0.0))

    def decomposed(self, low: Sequence[int], high: Sequence[int]) -> tuple[float, float]:
        """Return value and variance of a rectangle from the members of its B-adic decomposition alone, no fit.

        Rectangles that overlap need not agree.
        """
        value, row = 0.0, self.shape.corner(low, high)[None, :]
        variance = -self._spread(row, self.leaves)[0]
        for heights, nodes in decomposition(self.shape, low, high).items():
            if heights == self.shape.tops:
                return 1.0, 0.0
            if heights not in self.members:
                raise InvalidSpec(f"grid: nobody was asked for heights {list(heights)}; use the consistent answer")
            level = self.members[heights]
            value += float(nodes @ level.value)
            variance += self.member_variance(heights, level, nodes[None, :])[0]
        return value, float(variance)


def dots(rows: F64, mass: F64) -> F64:
    """Return the dot product of every row with the same masses (a vector) or with its own (a matrix)."""
    return rows @ mass if mass.ndim == 1 else np.einsum("ij,ij->i", rows, mass)


def fit_grid(
    sizes: Sequence[int],
    fanouts: Sequence[int],
    members: dict[Heights, Level],
    *,
    respondents: float,
    total: float = 1.0,
) -> GridFit:
    """Return the least-squares cells from the members of a grid; members that nobody answered carry no weight."""
    shape = GridShape(tuple(sizes), tuple(fanouts))
    check_cells(shape)
    answered = {heights: level for heights, level in members.items() if not level.is_empty}
    if any(level.signed or len(level.value) != prod(shape.nodes(item)) for item, level in answered.items()):
        raise InvalidSpec("grid: every member must estimate the shares of its nodes; signed levels are for other trees")
    inverse = shape.inverse({heights: _precision(shape, heights, level) for heights, level in answered.items()})
    draft = GridFit(shape, answered, respondents, inverse, total, np.zeros(shape.cells))
    return replace(draft, leaves=_solved(draft))


def check_cells(shape: GridShape) -> None:
    """Refuse more cells than least squares solves for within a request's deadline."""
    if shape.cells > MOST_CELLS:
        raise InvalidSpec(
            f"grid: {shape.cells} combinations of answers are more than least squares solves for, must be at most "
            f"{MOST_CELLS}; make the attributes coarser"
        )
    if shape.cells > MOST_RAGGED and not shape.complete:
        raise InvalidSpec(
            f"grid: {shape.cells} combinations of answers are too many for trees that lack nodes, must be at most "
            f"{MOST_RAGGED}; make every size a power of its fan-out"
        )


def _precision(shape: GridShape, heights: Heights, level: Level) -> float:
    return 1 / level.noise(prod(shape.nodes(heights)))


def _solved(fit: GridFit) -> F64:
    """The cells: unconstrained least squares, moved along M^-1 1 (the direction of the total) to the known total."""
    known = np.zeros(fit.shape.cells)
    for heights, level in fit.members.items():
        known += fit.shape.spread(_precision(fit.shape, heights, level) * level.value, heights)
    free, whole = fit.inverse.apply(known), fit.inverse.apply(np.ones(fit.shape.cells))
    return free + whole * (fit.total - free.sum()) / whole.sum()


def decomposition(shape: GridShape, low: Sequence[int], high: Sequence[int]) -> dict[Heights, F64]:
    """Return the members whose nodes add up to a rectangle, each with its nodes marked 1: the B-adic decomposition."""
    ends = zip(low, high, shape.sizes, shape.fanouts, strict=True)
    # Every attribute's range is a few nodes; the rectangle is the product of those, grouped by their heights.
    pieces = [list(_adic(a, b, size, fanout)) for a, b, size, fanout in ends]
    marks: dict[Heights, F64] = {}
    for parts in product(*pieces):
        heights = tuple(height for height, _ in parts)
        marked = marks.setdefault(heights, np.zeros(shape.nodes(heights)))
        marked[tuple(node for _, node in parts)] = 1.0
    return {heights: marked.reshape(-1) for heights, marked in marks.items()}


def _adic(low: int, high: int, size: int, fanout: int) -> Iterator[tuple[int, int]]:
    """Heights and nodes of the fewest nodes that make up a range, both ends included.

    From the leaves up: nodes that stick out of a parent on the left or right are taken, the rest moves up a height.

        leaves 1 .. 6, fan-out 2     height 1       [ 1 ][ 2 ]
                                     height 0   (1)            (6)
    """
    start, end, height, nodes = low, high + 1, 0, size
    while nodes > 1 and start < end:
        while start < end and start % fanout:
            yield height, start
            start += 1
        while start < end and end % fanout and end < nodes:  # A ragged last node ends where the domain does.
            end -= 1
            yield height, end
        if start == end:
            return
        start, end, nodes, height = start // fanout, -(-end // fanout), -(-nodes // fanout), height + 1
    yield height, start
