"""A region as a sum of nodes: which nodes of which levels, and with which coefficients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf, prod

import numpy as np
import numpy.typing as npt

from tacit.post.grid_shape import GridShape, Heights
from tacit.tasks.analytics.regions import Box, Region, Spans, outside

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

MAX_NODES = 1 << 20
FEW_BOXES = 16
"""Of more boxes than these, the complement is hardly simpler, and not looked at."""


@dataclass(frozen=True, eq=False)
class Part:
    """Coefficients on some nodes of one combined level, the nodes in rising order."""

    nodes: U64
    coefficients: F64

    @property
    def constant(self) -> float | None:
        """The one coefficient that all nodes have, or None where they differ."""
        first = float(self.coefficients[0])
        return first if bool(np.all(self.coefficients == first)) else None


@dataclass(frozen=True, eq=False)
class Coefficients:
    """A linear query: a known constant for everybody, and coefficients on nodes."""

    constant: float
    parts: dict[Heights, Part]

    @property
    def nodes(self) -> int:
        """How many nodes are used."""
        return sum(len(part.nodes) for part in self.parts.values())


Side = list[tuple[int, I64, float]]
"""One dimension's set as nodes: height, nodes of that height, and their sign."""


def cover_spans(spans: Spans, size: int, fanout: int, heights: Sequence[int]) -> list[tuple[int, I64]] | None:
    """The fewest nodes of these heights (rising) that make up a set; None where it cuts the finest ones.

    Unaligned nodes are peeled off at both ends of every range, from the finest height up. A last node that covers
    fewer leaves than others ends where the domain ends.
    """
    found: dict[int, list[I64]] = {}
    widths = [fanout**height for height in heights]
    for low, high in spans:
        start, stop = low, high + 1
        if start % widths[0] or (stop % widths[0] and stop != size):
            return None
        for i, width in enumerate(widths):
            # A range that reaches the end of the domain also covers the leaves that were only imagined there.
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
    """Nodes of a width from one leaf up to another, which is left out."""
    return np.arange(start // width, -(-stop // width), dtype=np.int64)


def sides(spans: Spans, size: int, fanout: int, heights: Sequence[int], top: int) -> list[Side]:
    """Ways to write a set: its own nodes, or the root without the nodes of the rest."""
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
    """The products of nodes of all dimensions, a list per combination of heights."""
    found: list[tuple[Heights, U64, float]] = []
    for combination in product(*chosen):
        heights = tuple(height for height, _, _ in combination)
        index = np.zeros(1, np.int64)
        for (_, nodes, _), count in zip(combination, shape.nodes(heights), strict=True):
            index = (index[:, None] * count + nodes[None, :]).reshape(-1)
        found.append((heights, index.astype(np.uint64), prod(sign for _, _, sign in combination)))
    return found


def net(shape: GridShape, terms: Sequence[tuple[Heights, U64, float]], constant: float = 0.0) -> Coefficients:
    """Add up terms: equal nodes share a coefficient, those that cancel vanish, and all roots are the known total."""
    grouped: dict[Heights, list[tuple[U64, float]]] = {}
    for heights, nodes, sign in terms:
        if heights == shape.tops:
            constant += sign
        else:
            grouped.setdefault(heights, []).append((nodes, sign))
    parts: dict[Heights, Part] = {}
    for heights, items in grouped.items():
        if len(items) == 1:  # The nodes of one product are different, and in rising order once sorted.
            parts[heights] = Part(np.sort(items[0][0]), np.full(len(items[0][0]), items[0][1]))
            continue
        nodes, at = np.unique(np.concatenate([nodes for nodes, _ in items]), return_inverse=True)
        signs = np.concatenate([np.full(len(nodes), sign) for nodes, sign in items])
        sums = np.asarray(np.bincount(at, signs, len(nodes)), np.float64)
        if np.any(sums != 0):
            parts[heights] = Part(nodes[sums != 0], sums[sums != 0])
    return Coefficients(constant, parts)


@dataclass(frozen=True, eq=False)
class Covering:
    """How regions are covered by the members of a design.

    `score` is what a number of nodes of one member, all with the coefficient 1 or all with -1, add to the variance when
    values are spread evenly. Where one of several members is drawn (`drawn`), it is the second moment, and the square
    of the mean goes off: what the nodes make up, which is the region, or the total less the region.
    """

    shape: GridShape
    members: frozenset[Heights]
    score: Callable[[Heights, int], float]
    drawn: bool = True

    @cached_property
    def heights(self) -> list[list[int]]:
        """The heights at which every dimension is asked, and its root where some member leaves it out."""
        return [sorted({heights[i] for heights in self.members}) for i in range(len(self.shape.sizes))]

    def _variance(self, chosen: Sequence[Side], volume: float) -> float:
        """What decides between two ways to write the same box; infinite if it cannot be answered so."""
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

    def region(self, region: Region) -> Coefficients | None:
        """The least noisy way: box by box, or the total without what is outside. None if there is none."""
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
        """The best way to write every box, and their noise; without a way, it is infinite."""
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


def negated(coefficients: Coefficients) -> Coefficients:
    """Everybody without a region, from the coefficients of the region."""
    parts = {heights: Part(part.nodes, -part.coefficients) for heights, part in coefficients.parts.items()}
    return Coefficients(1 - coefficients.constant, parts)
