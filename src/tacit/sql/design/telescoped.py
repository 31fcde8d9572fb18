"""Sums of a private number: a function of one dimension as telescoping differences of node means.

Every node gets the mean of the function over its leaves, minus the mean of its parent. Along the path from the root to
a value these differences telescope to the function itself:

    values         0   1   2   3         f(x) = x, fan-out 2
    height 2     [      1.5      ]       coefficient  1.5
    height 1     [ 0.5 ] [ 2.5 ]         coefficients -1, +1
    height 0      0   1   2   3          coefficients -.5, +.5, -.5, +.5      f(3) = 1.5 + 1 + .5

Most of the variation of a number is in its few coarse nodes, which have little noise, and a function that is constant
inside a node needs no coefficients below it.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from tacit.arrays import F64, I64, U64
from tacit.post.grids.shape import GridShape, Heights
from tacit.sql.design.cover import MAX_NODES, Covering, NodeCoefficients, sides
from tacit.sql.design.partitions import added
from tacit.sql.schema.regions import Box, Region, Spans

Weighed = list[tuple[int, I64, F64]]
"""One dimension of a box: (height, nodes of that height, their coefficients)."""


def _levels(values: F64, fanout: int, heights: Sequence[int]) -> Weighed | None:
    """Differences of means, coarsest height first; None where the function varies inside nodes of the finest height."""
    found: Weighed = []
    above = np.zeros(len(values))
    for height in reversed(heights):
        nodes = np.arange(len(values)) // fanout**height
        count = np.bincount(nodes)
        mean = np.bincount(nodes, values) / count
        starts = np.cumsum(count) - count
        # `above` holds the parent's mean at every leaf; a node's first leaf tells it as well as any other.
        off = mean - above[starts]
        # Differences of the size of rounding errors would each cost a node, and the kernel a pass, for nothing.
        kept = np.flatnonzero(np.abs(off) > 1e-12 * max(1.0, float(np.abs(values).max())))
        if len(kept):
            found.append((height, kept, off[kept]))
        above = mean[nodes]
    return found if np.allclose(above, values, rtol=1e-12, atol=1e-12) else None


def _inside(values: F64, spans: Spans) -> F64:
    """The function inside a set of indices, and zero elsewhere."""
    held = np.zeros(len(values))
    for low, high in spans:
        held[low : high + 1] = values[low : high + 1]
    return held


def telescoped(covering: Covering, region: Region, place: int, values: F64) -> NodeCoefficients | None:
    """Coefficients of a function of dimension `place` inside a region and 0 outside.

    The result is None where they need combined levels that the design does not ask; callers then fall back to one
    region per step of the function (see `engine.scores`).
    """
    constant = 0.0
    parts: list[tuple[Heights, U64, F64]] = []
    for box in region.boxes:
        found = _box(covering, box, place, values)
        if found is None:
            return None
        for heights, nodes, off in found:
            if heights == covering.shape.tops:
                constant += float(off.sum())
            else:
                parts.append((heights, nodes, off))
    return added(parts, constant)


def _box(covering: Covering, box: Box, place: int, values: F64) -> list[tuple[Heights, U64, F64]] | None:
    """One box: the differences along the function's own dimension times the smallest cover of each other one."""
    shape = covering.shape
    own = _levels(_inside(values, box[place]), shape.fanouts[place], covering.heights[place])
    ways: list[Weighed] = []
    for i, spans in enumerate(box):
        if i == place:
            if own is None:
                return None
            ways.append(own)
            continue
        every = sides(spans, shape.sizes[i], shape.fanouts[i], covering.heights[i], shape.tops[i])
        if not every:
            return None
        fewest = min(every, key=lambda side: sum(len(nodes) for _, nodes, _ in side))
        ways.append([(height, nodes, np.full(len(nodes), sign)) for height, nodes, sign in fewest])
    return _crossed(shape, covering.members, ways)


def _crossed(
    shape: GridShape, members: frozenset[Heights], ways: Sequence[Weighed]
) -> list[tuple[Heights, U64, F64]] | None:
    """Products over dimensions; None where they need a level that was not asked, or more than `MAX_NODES` nodes."""
    found: list[tuple[Heights, U64, F64]] = []
    total = 0
    for combination in product(*ways):
        heights = tuple(height for height, _, _ in combination)
        if heights != shape.tops and heights not in members:
            return None
        index, off = np.zeros(1, np.int64), np.ones(1)
        for (_, nodes, some), count in zip(combination, shape.nodes(heights), strict=True):
            index = (index[:, None] * count + nodes[None, :]).reshape(-1)
            off = np.multiply.outer(off, some).reshape(-1)
        total += len(index)
        if total > MAX_NODES:
            return None
        found.append((heights, index.astype(np.uint64), off))
    return found
