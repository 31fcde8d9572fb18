"""Two more ways to write regions as nodes: cubes of one tree over all dimensions, and Haar's differences of siblings.

Wang's dissertation discusses both as alternatives (section 7.6) without building them. They are levels of the same
grid, so the engine has their exact variances, and a plan can compare them with the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from tacit.post.grid_shape import GridShape, Heights
from tacit.tasks.analytics.cover import MAX_NODES, Coefficients, Part
from tacit.tasks.analytics.regions import Box, Region, Spans, as_spans, minus, span_size

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


def cube_heights(shape: GridShape) -> list[Heights]:
    """Levels at which all dimensions are split alike, coarsest first; one that is down to its root stays there."""
    found = [tuple(min(t, top) for top in shape.tops) for t in range(max(shape.tops))]
    return sorted(found, reverse=True)


def added(parts: Sequence[tuple[Heights, U64, F64]], constant: float) -> Coefficients:
    """Coefficients with those of equal nodes added up."""
    grouped: dict[Heights, list[tuple[U64, F64]]] = {}
    for heights, nodes, values in parts:
        grouped.setdefault(heights, []).append((nodes, values))
    found: dict[Heights, Part] = {}
    for heights, items in grouped.items():
        nodes, at = np.unique(np.concatenate([nodes for nodes, _ in items]), return_inverse=True)
        sums = np.asarray(np.bincount(at, np.concatenate([values for _, values in items]), len(nodes)), np.float64)
        kept = np.abs(sums) > 1e-12
        if kept.any():
            found[heights] = Part(nodes[kept], sums[kept])
    return Coefficients(constant, found)


def _indices(counts: Sequence[int], sides: Sequence[I64]) -> U64:
    """The numbers of all combinations of nodes."""
    index = np.zeros(1, np.int64)
    for nodes, count in zip(sides, counts, strict=True):
        index = (index[:, None] * count + nodes[None, :]).reshape(-1)
    return index.astype(np.uint64)


def _nodes(spans: Spans) -> I64:
    return np.concatenate([np.arange(low, high + 1, dtype=np.int64) for low, high in spans])


@dataclass(frozen=True)
class Cubes:
    """Covers by the largest cubes that fit: as many as the surface of a box has, not as the logarithm of its sides."""

    shape: GridShape

    def region(self, region: Region) -> Coefficients | None:
        """The cubes of every box, or None where there are too many."""
        found: list[tuple[Heights, U64, F64]] = []
        for box in region.boxes:
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
        """Nodes of a level that lie inside a box, as a box of nodes."""
        sides: list[Spans] = []
        for i, spans in enumerate(box):
            width, size = self.shape.fanouts[i] ** heights[i], self.shape.sizes[i]
            ends = [(-(-low // width), (-(-size // width) if high == size - 1 else (high + 1) // width) - 1)
                    for low, high in spans]  # fmt: skip
            sides.append(as_spans(ends))
        return tuple(sides) if all(sides) else None

    def _finer(self, held: Box, heights: Heights) -> Box:
        """The same nodes as nodes of the next finer level."""
        finer: list[Spans] = []
        for i, spans in enumerate(held):
            below = max(0, min(heights[i], max(heights) - 1))
            width = self.shape.fanouts[i] ** (heights[i] - below)
            last = self.shape.nodes((*heights[:i], below, *heights[i + 1 :]))[i] - 1
            finer.append(as_spans((low * width, min(last, (high + 1) * width - 1)) for low, high in spans))
        return tuple(finer)

    def _new(self, held: Box, inner: Box | None, heights: Heights) -> list[U64]:
        """Nodes that no coarser level holds already."""
        counts = self.shape.nodes(heights)
        left = [held] if inner is None else minus(held, inner, counts)
        few = [box for box in left if prod(map(span_size, box)) <= MAX_NODES]
        # Too many nodes are still counted, so that the region is refused.
        return [_indices(counts, [_nodes(spans) for spans in box]) for box in few] + (
            [np.zeros(MAX_NODES + 1, np.uint64)] if len(few) < len(left) else []
        )


Side = list[tuple[int, I64, F64]]
"""One dimension's set: height, nodes of that height, and their coefficients."""


@dataclass(frozen=True)
class Haar:
    """A set of one dimension is its mean, and for every node it cuts, how much its halves differ from that.

    An end of a range is in one node per level, so few nodes are used, at coefficients that get smaller upwards.
    Dimensions without a tree are asked value by value.
    """

    shape: GridShape
    members: frozenset[Heights]

    def region(self, region: Region) -> Coefficients | None:
        """Products over dimensions, added up over boxes; None where a level was not asked."""
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
                found.append((heights, _indices(self.shape.nodes(heights), [n for _, n, _ in combination]), values))
        return added(found, constant)

    def _side(self, i: int, spans: Spans) -> Side:
        size, fanout, top = self.shape.sizes[i], self.shape.fanouts[i], self.shape.tops[i]
        root = np.zeros(1, np.int64)
        if spans == ((0, size - 1),):
            return [(top, root, np.ones(1))]
        if fanout != 2:
            return [(0, _nodes(spans), np.ones(span_size(spans)))]
        # What is beyond the domain belongs to the last range that reaches its end, so that its nodes are not cut.
        whole = 2**top
        padded = [(low, whole - 1 if high == size - 1 else high) for low, high in spans]
        found: Side = [(top, root, np.array([_share(padded, 0, whole)]))]
        for height in range(top - 1, -1, -1):
            width = 2**height
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
    """The share of some leaves that are in a set."""
    stop = start + width - 1
    return sum(max(0, min(high, stop) - max(low, start) + 1) for low, high in ranges) / width
