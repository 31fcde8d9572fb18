"""A function of one dimension as what every node's mean differs from its parent's by.

Along the nodes above a value these differences add up to the function, whatever it is. Most of a number is in its few
coarse nodes, at which there is little noise; and a function that is constant in a node needs nothing below it.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from tacit.post.grid_shape import GridShape, Heights
from tacit.tasks.analytics.cover import MAX_NODES, Coefficients, Covering, sides
from tacit.tasks.analytics.partitions import added
from tacit.tasks.analytics.regions import Box, Region, Spans

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

Weighed = list[tuple[int, I64, F64]]
"""One dimension's function: height, nodes of that height, and their coefficients."""


def _levels(values: F64, fanout: int, heights: Sequence[int]) -> Weighed | None:
    """Differences of means, coarsest height first; None where the finest nodes do not tell values apart."""
    found: Weighed = []
    above = np.zeros(len(values))
    for height in reversed(heights):
        nodes = np.arange(len(values)) // fanout**height
        count = np.bincount(nodes)
        mean = np.bincount(nodes, values) / count
        starts = np.cumsum(count) - count
        off = mean - above[starts]
        # What differs by rounding alone does not differ.
        kept = np.flatnonzero(np.abs(off) > 1e-12 * max(1.0, float(np.abs(values).max())))
        if len(kept):
            found.append((height, kept, off[kept]))
        above = mean[nodes]
    return found if np.allclose(above, values, rtol=1e-12, atol=1e-12) else None


def _inside(values: F64, spans: Spans) -> F64:
    held = np.zeros(len(values))
    for low, high in spans:
        held[low : high + 1] = values[low : high + 1]
    return held


def telescoped(covering: Covering, region: Region, place: int, values: F64) -> Coefficients | None:
    """Coefficients of a function inside a region, or None where the members do not combine such levels."""
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
    """One box: the function along its own dimension, times the fewest nodes along the others."""
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
    """Products over dimensions; None where a combination of heights was not asked, or there are too many nodes."""
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
