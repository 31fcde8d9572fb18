"""Rectangles of grids with many cells: the fit depth by depth, and variances from the few pieces that an end cuts.

A grid of 1,024 x 1,024 cells has no dense normal matrix that anybody could invert, and a row of coefficients over all
cells for every answer is slow. Neither is needed. In complete trees the fit is a sum over depths of block means (see
`tacit.post.grids.shape`), and the coefficients of a rectangle are constant on a product of few pieces per attribute:
only nodes that an end of the rectangle cuts differ from their siblings. Trees that lack nodes are completed by nodes
that hold nobody: their shares are known to be zero, and the last answer of an attribute stands for all behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.core.patience import check
from tacit.core.statistics.score import Law, law_between
from tacit.errors import InvalidSpec
from tacit.post.grids.shape import UNSEEN, GridShape, Heights, eigenvalues
from tacit.post.trees.levels import Level, LevelSums

MOST_WIDE = 1 << 22
"""The largest number of cells, those included that complete the trees: 32 MB per array of all cells."""

# Entries of (member, piece, piece) arrays that are worked on at a time.
_CHUNK = 1 << 20


class Boxes(NamedTuple):
    """Answers for rectangles."""

    value: F64
    variance: F64
    law: Law


class Side(NamedTuple):
    """One attribute's range, cut into the pieces on which nothing about it changes."""

    bounds: I64
    """Where pieces begin, and the end of the last."""
    parts: F64
    """Components of the range in the contrasts of every depth, at every piece: (depth, piece)."""
    counts: F64
    """How many nodes of every height that somebody can be in begin in a piece, in fractions: (height, piece)."""


@dataclass(frozen=True, eq=False)
class WideFit:
    """The consistent cells of a large grid, and the exact variance of any rectangle."""

    shape: GridShape
    members: dict[Heights, Level]
    """What was learnt about every member that somebody answered."""
    respondents: float
    leaves: F64
    """The cells, the last attribute fastest; the last answers hold what was fitted behind them."""

    @cached_property
    def around(self) -> GridShape:
        """The complete trees around the attributes."""
        return completed(self.shape)

    @cached_property
    def _precisions(self) -> dict[Heights, float]:
        shape = self.shape
        return {item: 1 / level.noise(prod(shape.nodes(item))) for item, level in self.members.items()}

    @cached_property
    def _eigenvalues(self) -> F64:
        return eigenvalues(self.around, self._precisions)

    @cached_property
    def _inverse(self) -> F64:
        """The inverse eigenvalue of every combination of depths; 0 for the total, which is known, and the unseen."""
        values = self._eigenvalues
        inverse = np.where(self._seen, 1 / np.where(self._seen, values, 1.0), 0.0)
        inverse.flat[0] = 0.0
        return inverse

    @cached_property
    def _seen(self) -> npt.NDArray[np.bool_]:
        seen = self._eigenvalues > UNSEEN * self._eigenvalues.max(initial=0.0)
        seen.flat[0] = True
        return seen

    def solved(self) -> "WideFit":
        """Return the fit with its cells: inverse eigenvalues times what all members say about every depth."""
        parts: dict[Heights, F64] = {}
        for heights, level in self.members.items():
            check()
            nodes, full = self.shape.nodes(heights), self.around.nodes(heights)
            table = np.pad(level.value.reshape(nodes), [(0, b - a) for a, b in zip(nodes, full, strict=True)])
            for depths, part in _details(table, self.around, heights).items():
                more = self._precisions[heights] * self._inverse[depths] * part
                parts[depths] = parts[depths] + more if depths in parts else more
        root = (0,) * len(self.shape.sizes)
        parts[root] = np.full((1,) * len(root), 1 / self.around.cells)
        return replace(self, leaves=_folded(_assembled(parts, self.around), self.shape.sizes).reshape(-1))

    def linear(self, rows: F64) -> F64:
        """Return the variance of `rows @ leaves`, one row at a time; infinite where nobody was asked."""
        return np.array([self._linear(row) for row in rows]).reshape(-1)

    def _linear(self, row: F64) -> float:
        check()
        sizes, around = self.shape.sizes, self.around
        table = np.pad(row.reshape(sizes), [(0, b - a) for a, b in zip(sizes, around.sizes, strict=True)], mode="edge")
        details = _details(table, around, (0,) * len(sizes))
        if any(not self._seen[depths] and np.abs(part).max() > 1e-9 for depths, part in details.items()):
            return np.inf
        gradient = _assembled({depths: self._inverse[depths] * part for depths, part in details.items()}, around)
        variance = -float(row**2 @ self.leaves - (row @ self.leaves) ** 2) / max(1.0, self.respondents - 1)
        known: dict[Heights, F64] = {}
        for heights, level in self.members.items():
            inside = tuple(slice(0, nodes) for nodes in self.shape.nodes(heights))
            sums = around.sums(gradient.reshape(-1), heights, known).reshape(around.nodes(heights))[inside].reshape(-1)
            c, mass = self._precisions[heights] * sums, self.shape.sums(self.leaves, heights)
            found = LevelSums(*(np.array([x]) for x in (c.sum(), c @ c, c @ mass, (c * c) @ mass)))
            variance += float(level.variance(found, self.respondents)[0])
        return max(0.0, variance)

    def boxes(self, low: Sequence[Sequence[int]], high: Sequence[Sequence[int]]) -> Boxes:
        """Return the shares of rectangles, ends included, with their exact variances and how those depend on truth."""
        found = [self._box(first, last) for first, last in zip(low, high, strict=True)]
        value = np.array([share for share, _, _ in found])
        known = np.array([seen for _, seen, _ in found], np.bool_)
        # Axes: rectangle, what is plugged in for the truth, member, sum.
        sums = np.array([item for _, _, item in found]).reshape(len(found), 4, len(self.members), 4)
        truth = np.stack([value, *(np.full(len(found), share) for share in (0.0, 0.5, 1.0))])
        variance = -(truth - truth**2) / max(1.0, self.respondents - 1)
        for m, level in enumerate(self.members.values()):
            variance = variance + level.variance(LevelSums(*np.moveaxis(sums[:, :, m], -1, 0)), self.respondents).T
        whole = np.array([self._is_whole(*ends) for ends in zip(low, high, strict=True)], np.bool_)
        variance = np.where(known, np.clip(variance, 0, None), np.inf)
        free = known & ~whole
        step = min((level.moments.step * level.scale for level in self.members.values()), default=0.0)
        sides = (np.where(free, side, 0.0) for side in variance[1:])
        law = law_between(*sides, step=np.where(free, step, 0.0))
        return Boxes(np.where(whole, 1.0, value), np.where(whole, 0.0, variance[0]), law)

    def _is_whole(self, low: Sequence[int], high: Sequence[int]) -> bool:
        return not any(low) and all(b == size - 1 for b, size in zip(high, self.shape.sizes, strict=True))

    def _box(self, low: Sequence[int], high: Sequence[int]) -> tuple[float, bool, F64]:
        """The share of a rectangle, whether all of it was asked, and the sums of every member's coefficients."""
        check()
        sides = [self._side(axis, a, b) for axis, (a, b) in enumerate(zip(low, high, strict=True))]
        held = [(np.abs(side.parts).max(axis=1) > 1e-12).astype(np.float64) for side in sides]
        seen = not bool(np.any((_outer(held) > 0) & ~self._seen))
        share = float(_blocks(self._prefixes, [np.array([a, b + 1]) for a, b in zip(low, high, strict=True)]).sum())
        masses = self._masses(low, high, sides)
        step = max(1, _CHUNK // masses[0].size)
        items = list(self.members)
        parts = [self._sums(items[start : start + step], sides, masses) for start in range(0, len(items), step)]
        return share, seen, np.concatenate([np.zeros((4, 0, 4)), *parts], axis=1)

    def _masses(self, low: Sequence[int], high: Sequence[int], sides: Sequence[Side]) -> F64:
        """Shares of all blocks of pieces: as fitted, and with nobody, half and all of the respondents inside."""
        clipped = [np.minimum(side.bounds, size) for side, size in zip(sides, self.shape.sizes, strict=True)]
        area = _outer([np.diff(bounds).astype(np.float64) for bounds in clipped])
        ends = zip(clipped, low, high, strict=True)
        inside = _outer([((a <= bounds[:-1]) & (bounds[:-1] <= b)).astype(np.float64) for bounds, a, b in ends])
        within, outside = area * inside, area * (1 - inside)
        within, outside = within / max(1.0, within.sum()), outside / max(1.0, outside.sum())
        placed = [share * within + (1 - share) * outside for share in (0.0, 0.5, 1.0)]
        return np.stack([_blocks(self._prefixes, clipped), *placed])

    def _sums(self, items: Sequence[Heights], sides: Sequence[Side], masses: F64) -> F64:
        """The sums of `LevelSums` of some members, for all masses: (mass, member, sum)."""
        found = np.stack([self._weights(heights) for heights in items])
        counts = np.ones((len(items),))
        for axis, side in enumerate(sides):
            # The first of the remaining depth axes becomes the last axis, of pieces: (member, ..., piece).
            found = np.tensordot(found, side.parts, axes=([1], [0]))
            at = side.counts[[heights[axis] for heights in items]]
            counts = counts[..., None] * at.reshape(len(items), *(1,) * axis, -1)
        flat, masses = found.reshape(len(items), -1), masses.reshape(len(masses), -1)
        counts = counts.reshape(len(items), -1)
        squares = flat**2
        alike = np.stack([(flat * counts).sum(axis=1), (squares * counts).sum(axis=1)], axis=-1)
        by_mass = np.stack([masses @ flat.T, masses @ squares.T], axis=-1)
        return np.concatenate([np.broadcast_to(alike, by_mass.shape), by_mass], axis=-1)

    def _weights(self, heights: Heights) -> F64:
        """What a member's coefficients take of the components of every combination of depths."""
        each = list(zip(self.around.fanouts, self.around.tops, heights, strict=True))
        kept = [np.where(np.arange(top + 1) <= top - t, float(fanout) ** t, 0.0) for fanout, top, t in each]
        return self._precisions[heights] * self._inverse * _outer(kept)

    @cached_property
    def _prefixes(self) -> F64:
        """Sums of cells below every corner."""
        table = self.leaves.reshape(self.shape.sizes)
        for axis in range(table.ndim):
            table = np.cumsum(table, axis=axis)
        return np.pad(table, [(1, 0)] * table.ndim)

    def _side(self, axis: int, low: int, high: int) -> Side:
        """Cut an attribute where a node begins or ends that an end of the range, or of the domain, lies in."""
        size, fanout, top = self.shape.sizes[axis], self.shape.fanouts[axis], self.shape.tops[axis]
        full = self.around.sizes[axis]
        start, end = low, full if high == size - 1 else high + 1
        widths = np.array([fanout ** (top - depth) for depth in range(top + 1)], np.int64)
        cuts = np.array([start, end, size], np.int64)[:, None]
        bounds = np.unique(np.concatenate([cuts // widths * widths, -(-cuts // widths) * widths]))
        # By depth and piece: the node that a piece lies in, and how much of the node lies in the range.
        first = bounds[:-1] // widths[:, None] * widths[:, None]
        last = first + widths[:, None]
        share = np.clip(np.minimum(last, end) - np.maximum(first, start), 0, None) / widths[:, None]
        heights = widths[::-1, None]
        real = (bounds[:-1] // heights * heights < size) * np.diff(bounds) / heights
        return Side(bounds, np.diff(share, axis=0, prepend=0.0), real)


def fit_wide(
    sizes: Sequence[int], fanouts: Sequence[int], members: dict[Heights, Level], *, respondents: float
) -> WideFit:
    """Return the least-squares cells of a grid of any size; members that nobody answered carry no weight."""
    shape = GridShape(tuple(sizes), tuple(fanouts))
    check_wide(shape)
    answered = {heights: level for heights, level in members.items() if not level.is_empty}
    if any(level.signed or len(level.value) != prod(shape.nodes(item)) for item, level in answered.items()):
        raise InvalidSpec("grid: every member must estimate the shares of its nodes; signed levels are for other trees")
    return WideFit(shape, answered, respondents, np.zeros(0)).solved()


def check_wide(shape: GridShape) -> None:
    """Refuse grids whose cells do not fit into bounded memory."""
    if completed(shape).cells > MOST_WIDE:
        raise InvalidSpec(
            f"grid: {shape.cells} combinations of answers are too many, must be at most {MOST_WIDE}, with those that "
            "complete the trees; make the attributes coarser"
        )


def completed(shape: GridShape) -> GridShape:
    """Return the complete trees around a shape."""
    pairs = zip(shape.fanouts, shape.tops, strict=True)
    return GridShape(tuple(fanout**top for fanout, top in pairs), shape.fanouts)


def _outer(factors: Sequence[F64]) -> F64:
    return np.asarray(reduce(np.multiply.outer, factors), np.float64)


def _blocks(prefixes: F64, bounds: Sequence[I64]) -> F64:
    """Sums of cells over the blocks between bounds."""
    table = prefixes[np.ix_(*bounds)]
    for axis in range(table.ndim):
        table = np.diff(table, axis=axis)
    return table


def _details(table: F64, shape: GridShape, heights: Heights) -> dict[Heights, F64]:
    """Block means of a table over nodes, as differences from the means one depth up, for all combinations of depths."""
    parts: dict[Heights, F64] = {(): table}
    for axis, (fanout, top, height) in enumerate(zip(shape.fanouts, shape.tops, heights, strict=True)):
        found: dict[Heights, F64] = {}
        for key, values in parts.items():
            for depth in range(top - height, 0, -1):
                grouped = values.reshape(*values.shape[:axis], -1, fanout, *values.shape[axis + 1 :])
                means = grouped.mean(axis=axis + 1)
                found[*key, depth] = values - np.repeat(means, fanout, axis=axis)
                values = means
            found[*key, 0] = values
        parts = found
    return parts


def _assembled(parts: dict[Heights, F64], shape: GridShape) -> F64:
    """The table with these detail coefficients, missing ones taken as zero. The inverse of `_details`."""
    for axis in range(len(shape.sizes) - 1, -1, -1):
        found: dict[Heights, F64] = {}
        for depths, part in sorted(parts.items()):
            key = depths[:-1]
            coarse = found.get(key, np.zeros((1,) * part.ndim))
            widened = np.repeat(coarse, part.shape[axis] // coarse.shape[axis], axis=axis)
            found[key] = widened + part
        size = shape.sizes[axis]
        parts = {key: np.repeat(part, size // part.shape[axis], axis=axis) for key, part in found.items()}
    return parts[()]


def _folded(table: F64, sizes: tuple[int, ...]) -> F64:
    """What lies behind the last answer of an attribute counts for that answer: nobody is there."""
    for axis, size in enumerate(sizes):
        kept, behind = np.split(table, [size], axis=axis)
        last = np.take(kept, [size - 1], axis=axis) + behind.sum(axis=axis, keepdims=True)
        table = np.concatenate([np.delete(kept, size - 1, axis=axis), last], axis=axis)
    return table
