"""Two alternatives to HIO's covers: quadtrees (cubes of one tree over all dimensions) and Haar wavelets.

Wang's dissertation discusses both (section 7.6) without building them. Their levels are levels of the same grid, so
the engine computes their exact variances like any other's, and a plan can compare them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from tacit.arrays import F64, I64, U64, crossed_index
from tacit.post.grids.shape import GridShape, Heights
from tacit.sql.design.cover import MAX_NODES, LevelCoefficients, NodeCoefficients
from tacit.sql.schema.regions import Box, Region, Spans, as_spans, minus, span_size


def cube_heights(shape: GridShape) -> list[Heights]:
    """The levels of a quadtree, coarsest first: all dimensions at the same height, capped at their own roots."""
    found = [tuple(min(t, top) for top in shape.tops) for t in range(max(shape.tops))]
    return sorted(found, reverse=True)


def added(parts: Sequence[tuple[Heights, U64, F64]], constant: float) -> NodeCoefficients:
    """One linear query from many parts: coefficients of equal nodes are added, those that cancel are dropped."""
    grouped: dict[Heights, list[tuple[U64, F64]]] = {}
    for heights, nodes, values in parts:
        grouped.setdefault(heights, []).append((nodes, values))
    found: dict[Heights, LevelCoefficients] = {}
    for heights, items in grouped.items():
        nodes, at = np.unique(np.concatenate([nodes for nodes, _ in items]), return_inverse=True)
        sums = np.asarray(np.bincount(at, np.concatenate([values for _, values in items]), len(nodes)), np.float64)
        # Sums of products of fractions cancel up to rounding only, so a threshold and not `!= 0`.
        kept = np.abs(sums) > 1e-12
        if kept.any():
            found[heights] = LevelCoefficients(nodes[kept], sums[kept])
    return NodeCoefficients(constant, found)


def _nodes(spans: Spans) -> I64:
    return np.concatenate([np.arange(low, high + 1, dtype=np.int64) for low, high in spans])


@dataclass(frozen=True)
class Cubes:
    """Covers of boxes by the largest quadtree nodes that fit.

    Their number grows with the surface of a box; HIO's grows with the logarithm of its sides, but HIO asks many more
    levels, so that fewer respondents answer each.
    """

    shape: GridShape

    def region(self, region: Region) -> NodeCoefficients | None:
        """The nodes of every box, each with coefficient 1, or None where there are more than `MAX_NODES`."""
        found: list[tuple[Heights, U64, F64]] = []
        for box in region.boxes:
            # From coarse to fine: `held` are the nodes inside the box, `inner` those of them that coarser nodes cover.
            inner: Box | None = None
            for heights in cube_heights(self.shape):
                held = self._held(box, heights)
                if held is None:
                    continue
                for part in self._new(held, inner, heights):
                    found.append((heights, part, np.ones(len(part))))
                inner = self._finer(held, heights)
        return None if sum(len(nodes) for _, nodes, _ in found) > MAX_NODES else added(found, 0.0)

    def _held(self, box: Box, heights: Heights) -> Box | None:
        """The nodes of a level that lie wholly inside a box, as a box of node indices; None if there is none."""
        sides: list[Spans] = []
        for i, spans in enumerate(box):
            width, size = self.shape.fanouts[i] ** heights[i], self.shape.sizes[i]
            ends = [(-(-low // width), (-(-size // width) if high == size - 1 else (high + 1) // width) - 1)
                    for low, high in spans]  # fmt: skip
            sides.append(as_spans(ends))
        return tuple(sides) if all(sides) else None

    def _finer(self, held: Box, heights: Heights) -> Box:
        """The same area as a box of nodes of the next finer level."""
        finer: list[Spans] = []
        for i, spans in enumerate(held):
            below = max(0, min(heights[i], max(heights) - 1))
            width = self.shape.fanouts[i] ** (heights[i] - below)
            last = self.shape.nodes((*heights[:i], below, *heights[i + 1 :]))[i] - 1
            finer.append(as_spans((low * width, min(last, (high + 1) * width - 1)) for low, high in spans))
        return tuple(finer)

    def _new(self, held: Box, inner: Box | None, heights: Heights) -> list[U64]:
        """Flat indices of the nodes of a level that no coarser node covers already."""
        counts = self.shape.nodes(heights)
        left = [held] if inner is None else minus(held, inner, counts)
        few = [box for box in left if prod(map(span_size, box)) <= MAX_NODES]
        # A box of too many nodes is not listed. A dummy list just above the limit stands for it, so that the sum of
        # lengths in `region` exceeds the limit and the region is refused.
        return [crossed_index([_nodes(spans) for spans in box], counts).astype(np.uint64) for box in few] + (
            [np.zeros(MAX_NODES + 1, np.uint64)] if len(few) < len(left) else []
        )


Side = list[tuple[int, I64, F64]]
"""One dimension of a box: (height, nodes of that height, their coefficients)."""


@dataclass(frozen=True)
class Haar:
    """Covers by Haar wavelets on binary trees.

    The indicator of a set is its mean over the domain, plus, for every node, how much the mean of each half differs
    from the mean of the node. Only nodes that an end of a range cuts differ: two per range and level. Coarse nodes
    have small coefficients, as a range fills little of them. Label columns, which have no tree, are asked value by
    value.
    """

    shape: GridShape
    members: frozenset[Heights]

    def region(self, region: Region) -> NodeCoefficients | None:
        """Products over dimensions, summed over boxes; None where they need a level that was not asked."""
        found: list[tuple[Heights, U64, F64]] = []
        constant = 0.0
        for box in region.boxes:
            for combination in product(*(self._side(i, spans) for i, spans in enumerate(box))):
                heights = tuple(height for height, _, _ in combination)
                values = np.ones(1)
                for _, _, some in combination:
                    values = np.multiply.outer(values, some).reshape(-1)
                if heights == self.shape.tops:
                    constant += float(values[0])
                    continue
                if heights not in self.members:
                    return None
                index = crossed_index([nodes for _, nodes, _ in combination], self.shape.nodes(heights))
                found.append((heights, index.astype(np.uint64), values))
        return added(found, constant)

    def _side(self, i: int, spans: Spans) -> Side:
        """The wavelet coefficients of one dimension of a box."""
        size, fanout, top = self.shape.sizes[i], self.shape.fanouts[i], self.shape.tops[i]
        root = np.zeros(1, np.int64)
        if spans == ((0, size - 1),):
            return [(top, root, np.ones(1))]
        if fanout != 2:
            return [(0, _nodes(spans), np.ones(span_size(spans)))]
        # The tree has 2^top leaves, the domain perhaps fewer. A range that ends with the domain is extended over the
        # padding, where nobody is, so that it does not cut the last nodes and costs no coefficients there.
        whole = 2**top
        padded = [(low, whole - 1 if high == size - 1 else high) for low, high in spans]
        found: Side = [(top, root, np.array([_share(padded, 0, whole)]))]
        for height in range(top - 1, -1, -1):
            width = 2**height
            # Nodes one height up that hold an end of a range; all others are wholly in or out, and add nothing.
            cut = {edge // (2 * width) for low, high in padded for edge in (low, high)}
            pairs = [(2 * node + half, node) for node in sorted(cut) for half in (0, 1)]
            values = [
                _share(padded, child * width, width) - _share(padded, node * 2 * width, 2 * width)
                for child, node in pairs
            ]
            kept = [
                (child, value)
                for (child, _), value in zip(pairs, values, strict=True)
                if value and child * width < size
            ]
            if kept:
                nodes, coefficients = zip(*kept, strict=True)
                found.append((height, np.array(nodes, np.int64), np.array(coefficients)))
        return found


def _share(ranges: Sequence[tuple[int, int]], start: int, width: int) -> float:
    """Which fraction of the leaves [start, start + width) lies in the ranges: the indicator's mean over a node."""
    stop = start + width - 1
    return sum(max(0, min(high, stop) - max(low, start) + 1) for low, high in ranges) / width
