"""Covers: a region of private values written as a signed sum of tree nodes, with the least variance.

For one ordinal dimension of 12 values with fan-out 2, the range 3..10 is peeled from the finest height up, as in a
segment tree; whole boxes are products of such sides:

    height 2  |       0       |       1       |       2       |
    height 1  |   0   |   1   |   2   |   3   |   4   |   5   |
    height 0  | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10| 11|
    range                 [===============================]
    cover                 [ 3 ]                       [ 10]       height 0: leaves 3 and 10
                                              [   4   ]           height 1: node 4, leaves 8 and 9
                              [       1       ]                   height 2: node 1, leaves 4 to 7

The alternative, root minus the cover of the complement, uses the total, which is known without noise. `Covering` picks
per box and per dimension whichever has the smaller variance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf, prod

import numpy as np

from tacit.arrays import F64, I64, U64, crossed_index
from tacit.post.grids.shape import GridShape, Heights
from tacit.sql.schema.regions import Box, Region, Spans, outside

# Every node is hashed for every report, so a cover of a million nodes takes many minutes at a million reports.
MAX_NODES = 1 << 20
FEW_BOXES = 16
"""The complement of more boxes than these is hardly ever simpler and is expensive to compute, so it is not tried."""


@dataclass(frozen=True, eq=False)
class LevelCoefficients:
    """Coefficients on some nodes of one combined level.

    `nodes` is sorted (lookups use binary search) and holds flat indices: node (i, j, ...) of a level with counts
    (n_1, n_2, ...) is i * n_2 * ... + j * ... , the last dimension fastest.
    """

    nodes: U64
    coefficients: F64

    @property
    def constant(self) -> float | None:
        """The one coefficient that all nodes have, or None where they differ."""
        first = float(self.coefficients[0])
        return first if bool(np.all(self.coefficients == first)) else None


@dataclass(frozen=True, eq=False)
class NodeCoefficients:
    """A linear query: f(x) = constant + sum over levels of the coefficient of the node above x, or 0 if it has none."""

    constant: float
    parts: dict[Heights, LevelCoefficients]

    @property
    def nodes(self) -> int:
        """How many nodes have a coefficient; the cost of a query is proportional to it."""
        return sum(len(part.nodes) for part in self.parts.values())


Side = list[tuple[int, I64, float]]
"""One dimension of a box as nodes: (height, nodes of that height, their sign), the sign -1 for what is subtracted."""


def cover_spans(spans: Spans, size: int, fanout: int, heights: Sequence[int]) -> list[tuple[int, I64]] | None:
    """Return the fewest nodes of these heights (in rising order) whose union is a set of leaves.

    Unaligned nodes are peeled off at both ends of every range, from the finest height up (see the sketch above). The
    last node of a height may cover fewer leaves than the others, because the domain ends in it. The result is None
    where a range begins or ends inside a node of the finest height that was asked.
    """
    found: dict[int, list[I64]] = {}
    widths = [fanout**height for height in heights]
    for low, high in spans:
        start, stop = low, high + 1
        if start % widths[0] or (stop % widths[0] and stop != size):
            return None
        for i, width in enumerate(widths):
            # [start, stop) is what is left; [inner, outer) is its part that whole nodes of the next height cover.
            # A range that reaches the end of the domain is rounded up: the last node's missing leaves hold nobody.
            above = widths[i + 1] if i + 1 < len(widths) else 0
            inner = -(-start // above) * above if above else stop
            outer = (-(-stop // above) if stop >= size else stop // above) * above if above else stop
            if not above or inner >= outer:
                found.setdefault(heights[i], []).append(_between(start, stop, width))
                break
            ends = [_between(start, inner, width), _between(outer, stop, width)]
            found.setdefault(heights[i], []).extend(end for end in ends if len(end))
            start, stop = inner, outer
    return [(height, np.concatenate(nodes)) for height, nodes in sorted(found.items()) if nodes]


def _between(start: int, stop: int, width: int) -> I64:
    """The nodes of one width that cover the leaves [start, stop)."""
    return np.arange(start // width, -(-stop // width), dtype=np.int64)


def sides(spans: Spans, size: int, fanout: int, heights: Sequence[int], top: int) -> list[Side]:
    """The ways to write one dimension of a box: its own nodes, or the root minus the nodes of its complement."""
    ways: list[Side] = []
    direct = cover_spans(spans, size, fanout, heights)
    if direct is not None:
        ways.append([(height, nodes, 1.0) for height, nodes in direct])
    rest = outside(spans, size)
    if rest and top in heights:
        other = cover_spans(rest, size, fanout, heights)
        if other is not None:
            root: Side = [(top, np.zeros(1, np.int64), 1.0)]
            ways.append(root + [(height, nodes, -1.0) for height, nodes in other])
    return ways


def _crossed(shape: GridShape, chosen: Sequence[Side]) -> list[tuple[Heights, U64, float]]:
    """Multiply out the sides of a box: for every combination of heights the flat indices of its nodes, and a sign."""
    found: list[tuple[Heights, U64, float]] = []
    for combination in product(*chosen):
        heights = tuple(height for height, _, _ in combination)
        index = crossed_index([nodes for _, nodes, _ in combination], shape.nodes(heights))
        found.append((heights, index.astype(np.uint64), prod(sign for _, _, sign in combination)))
    return found


def net(shape: GridShape, terms: Sequence[tuple[Heights, U64, float]], constant: float = 0.0) -> NodeCoefficients:
    """Add up signed terms into one linear query.

    Coefficients of equal nodes are added, and nodes whose coefficients cancel are dropped. The node above everybody
    (all roots together) is no estimate but the known total, so it goes into the constant.
    """
    grouped: dict[Heights, list[tuple[U64, float]]] = {}
    for heights, nodes, sign in terms:
        if heights == shape.tops:
            constant += sign
        else:
            grouped.setdefault(heights, []).append((nodes, sign))
    parts: dict[Heights, LevelCoefficients] = {}
    for heights, items in grouped.items():
        if len(items) == 1:  # The nodes of one product are different, and in rising order once sorted.
            parts[heights] = LevelCoefficients(np.sort(items[0][0]), np.full(len(items[0][0]), items[0][1]))
            continue
        nodes, at = np.unique(np.concatenate([nodes for nodes, _ in items]), return_inverse=True)
        signs = np.concatenate([np.full(len(nodes), sign) for nodes, sign in items])
        sums = np.asarray(np.bincount(at, signs, len(nodes)), np.float64)
        if np.any(sums != 0):
            parts[heights] = LevelCoefficients(nodes[sums != 0], sums[sums != 0])
    return NodeCoefficients(constant, parts)


@dataclass(frozen=True, eq=False)
class Covering:
    """How regions are covered by the levels (members) that a design asks.

    `score(heights, k)` is what k nodes of one level, all with coefficient 1 or all with -1, add to the variance if
    private values are uniform. Where a respondent draws one of several levels (`drawn`), it is a second moment, and
    the squared mean is subtracted once: that of the region, or of the total minus the region.
    """

    shape: GridShape
    members: frozenset[Heights]
    score: Callable[[Heights, int], float]
    drawn: bool = True

    @cached_property
    def heights(self) -> list[list[int]]:
        """For every dimension the heights at which some level asks it; its root's, where some level leaves it out."""
        return [sorted({heights[i] for heights in self.members}) for i in range(len(self.shape.sizes))]

    def _variance(self, chosen: Sequence[Side], volume: float) -> float:
        """Variance of one way to write a box under uniform values; infinite if it needs a level that was not asked."""
        # Minus E[(1[inside] - c)^2]. With c = 0 that is the volume. With the root in use c = 1, and it is 1 - volume,
        # so the loop subtracts the difference of the two, 1 - 2 * volume, when it meets the root.
        total = -volume if self.drawn else 0.0
        for combination in product(*chosen):
            heights = tuple(height for height, _, _ in combination)
            if heights == self.shape.tops:
                total -= 1 - 2 * volume if self.drawn else 0.0
                continue
            if heights not in self.members:
                return inf
            total += self.score(heights, prod(len(nodes) for _, nodes, _ in combination))
        return total

    def region(self, region: Region) -> NodeCoefficients | None:
        """The cover of least variance: box by box, or the total minus the complement. None if neither is possible."""
        direct, noise = self._boxes(region)
        rest = ~region if len(region.boxes) <= FEW_BOXES else region
        if len(region.boxes) <= FEW_BOXES and len(rest.boxes) <= len(region.boxes) + len(region.sizes):
            other, less = self._boxes(rest)
            if other is not None and less < noise:
                return negated(net(self.shape, [term for side in other for term in _crossed(self.shape, side)]))
        if direct is None:
            return None
        return net(self.shape, [term for side in direct for term in _crossed(self.shape, side)])

    def _boxes(self, region: Region) -> tuple[list[Sequence[Side]] | None, float]:
        """The best way to write every box and their total variance, or (None, inf) if some box has none."""
        found: list[Sequence[Side]] = []
        total = 0.0
        for box in region.boxes:
            chosen, noise = self._box(box)
            if chosen is None:
                return None, inf
            found.append(chosen)
            total += noise
        return found, total

    def _box(self, box: Box) -> tuple[Sequence[Side] | None, float]:
        """The best of all combinations of ways per dimension: 2^d of them at most, as each has one or two."""
        shape = self.shape
        each = [
            sides(spans, shape.sizes[i], shape.fanouts[i], self.heights[i], shape.tops[i])
            for i, spans in enumerate(box)
        ]
        pairs = zip(box, shape.sizes, strict=True)
        volume = prod(sum(high - low + 1 for low, high in spans) / size for spans, size in pairs)
        best: Sequence[Side] | None = None
        least = inf
        for chosen in product(*each):
            if prod(sum(len(nodes) for _, nodes, _ in side) for side in chosen) > MAX_NODES:
                continue
            noise = self._variance(chosen, volume)
            if noise < least:
                best, least = chosen, noise
        return best, least


def negated(coefficients: NodeCoefficients) -> NodeCoefficients:
    """The coefficients of a region's complement: everybody (constant 1) minus the region."""
    parts = {heights: LevelCoefficients(part.nodes, -part.coefficients) for heights, part in coefficients.parts.items()}
    return NodeCoefficients(1 - coefficients.constant, parts)
