"""Regions: sets of combinations of private values, as unions of disjoint boxes, closed under AND, OR and NOT.

A WHERE clause on private columns becomes one region. A box has one set of indices per dimension, and need not be
contiguous: `age IN (1, 2, 7) AND NOT city = 'b'` is a single box. Boxes stay disjoint, so that counts of boxes add up.

    minus(box, other):    +---+-------+---+
                          |   |   2   |   |
                          |   +-------+   |     1: outside of `other` in the first dimension: one box of two spans
                          | 1 | other | 1 |
                          |   +-------+   |     2: inside in the first dimension, outside in the second
                          |   |   2   |   |
                          +---+-------+---+
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery

# Every box is covered by nodes of its own, so the time of a query grows with their number.
MAX_BOXES = 256

Spans = tuple[tuple[int, int], ...]
"""A set of indices in canonical form: ranges with both ends included, sorted, with a gap between any two.

Equal sets are equal tuples, so that regions can be compared and used as keys of caches.
"""

Box = tuple[Spans, ...]
"""One non-empty set per dimension; the box is their Cartesian product."""


def as_spans(ranges: Iterable[tuple[int, int]]) -> Spans:
    """The canonical set of some ranges: empty ones are dropped, and ranges that overlap or touch are merged."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(item for item in ranges if item[0] <= item[1]):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def meet(a: Spans, b: Spans) -> Spans:
    """The intersection of two sets."""
    return as_spans((max(x[0], y[0]), min(x[1], y[1])) for x in a for y in b)


def outside(spans: Spans, size: int) -> Spans:
    """The complement of a set in 0..size-1."""
    starts = [0, *(high + 1 for _, high in spans)]
    ends = [*(low - 1 for low, _ in spans), size - 1]
    return as_spans(zip(starts, ends, strict=True))


def span_size(spans: Spans) -> int:
    """How many indices a set has."""
    return sum(high - low + 1 for low, high in spans)


def minus(box: Box, other: Box, sizes: Sequence[int]) -> list[Box]:
    """The difference of two boxes as disjoint boxes, at most one per dimension (see the sketch above)."""
    if _apart(box, other):
        return [box]
    found: list[Box] = []
    left = list(box)
    for i, size in enumerate(sizes):
        part = meet(left[i], outside(other[i], size))
        if part:
            found.append((*left[:i], part, *left[i + 1 :]))
        # What the next dimensions divide lies inside `other` in this one, so that the pieces stay disjoint.
        left[i] = meet(left[i], other[i])
        if not left[i]:
            return [box]
    return found


def _merged(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """Merge disjoint boxes that are equal in all dimensions but one, until there are no such boxes left."""
    kept = list(boxes)
    before = len(kept) + 1
    while len(kept) < before:
        before = len(kept)
        for i in range(len(kept[0]) if kept else 0):
            # Boxes by all of their sides but the i-th; those with the same key differ in dimension i alone.
            alike: dict[Box, list[tuple[int, int]]] = {}
            for box in kept:
                alike.setdefault((*box[:i], *box[i + 1 :]), []).extend(box[i])
            if len(alike) < len(kept):
                kept = [(*rest[:i], as_spans(spans), *rest[i:]) for rest, spans in alike.items()]
    return tuple(sorted(kept))


def _apart(a: Box, b: Box) -> bool:
    """A cheap test that two boxes are disjoint: their bounding ranges are, in some dimension. False proves nothing."""
    return any(x[-1][1] < y[0][0] or y[-1][1] < x[0][0] for x, y in zip(a, b, strict=True))


@dataclass(frozen=True)
class Region:
    """A union of disjoint boxes in a product of domains of these sizes; immutable and hashable."""

    sizes: tuple[int, ...]
    boxes: tuple[Box, ...]

    def __post_init__(self) -> None:
        """Refuse regions of so many boxes that answering would take too long."""
        if len(self.boxes) > MAX_BOXES:
            raise InvalidQuery(
                f"condition: it falls into {len(self.boxes)} boxes of private values, must be at most {MAX_BOXES}; "
                "ask for its parts one by one",
                code="54001",
            )

    @cached_property
    def is_full(self) -> bool:
        """Whether the region is the whole domain, so that its count is known without any noise."""
        return self.boxes == everything(self.sizes).boxes

    @property
    def is_empty(self) -> bool:
        """Whether the region holds no combination at all."""
        return not self.boxes

    @property
    def volume(self) -> float:
        """The fraction of all combinations that are inside: the expected share of rows if values were uniform."""
        inside = sum(prod(map(span_size, box)) for box in self.boxes)
        return inside / prod(self.sizes)

    def __and__(self, other: "Region") -> "Region":
        """The intersection (SQL AND)."""
        pairs = (tuple(map(meet, a, b)) for a in self.boxes for b in other.boxes if not _apart(a, b))
        return Region(self.sizes, _merged([box for box in pairs if all(box)]))

    def __or__(self, other: "Region") -> "Region":
        """The union (SQL OR): this region, and what the other has beyond it, so that the boxes stay disjoint."""
        added = list(other.boxes)
        for box in self.boxes:
            added = [part for item in added for part in minus(item, box, self.sizes)]
            _check_growth(added)
        return Region(self.sizes, _merged([*self.boxes, *added]))

    def __invert__(self) -> "Region":
        """The complement (SQL NOT)."""
        left = list(everything(self.sizes).boxes)
        for box in self.boxes:
            left = [part for item in left for part in minus(item, box, self.sizes)]
            _check_growth(left)
        return Region(self.sizes, _merged(left))

    def holds(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """For every row of indices whether it lies inside; for rehearsals, where the true values are known."""
        found = np.zeros(len(values), np.bool_)
        for box in self.boxes:
            inside = np.ones(len(values), np.bool_)
            for i, spans in enumerate(box):
                column = values[:, i]
                inside &= np.logical_or.reduce([(low <= column) & (column <= high) for low, high in spans])
            found |= inside
        return found

    def constrained(self, box: Box) -> tuple[int, ...]:
        """The dimensions in which a box does not hold every value: those that a query on it constrains."""
        return tuple(i for i, size in enumerate(self.sizes) if box[i] != ((0, size - 1),))


def _check_growth(boxes: list[Box]) -> None:
    """Stop a union or complement that explodes on the way; merging at its end may still shrink it by a factor."""
    # Sixteen times the final limit: enough slack for boxes that merge, and little enough to stop within milliseconds.
    if len(boxes) > 16 * MAX_BOXES:
        raise InvalidQuery(
            "condition: it falls into too many boxes of private values; ask for its parts one by one", code="54001"
        )


def everything(sizes: Sequence[int]) -> Region:
    """The whole domain: the region of a query without private conditions."""
    return Region(tuple(sizes), (tuple(((0, size - 1),) for size in sizes),))


def nothing(sizes: Sequence[int]) -> Region:
    """The empty region."""
    return Region(tuple(sizes), ())


def slab(sizes: Sequence[int], dimension: int, spans: Spans) -> Region:
    """The region of a condition on one dimension, all others being free."""
    if not spans:
        return nothing(sizes)
    whole = everything(sizes).boxes[0]
    return Region(tuple(sizes), ((*whole[:dimension], spans, *whole[dimension + 1 :]),))


def corners(sizes: Sequence[int], ranges: Sequence[tuple[int, int]]) -> Region:
    """The box with one range (both ends included) per dimension."""
    parts = [slab(sizes, i, as_spans([item])) for i, item in enumerate(ranges)]
    found = everything(sizes)
    for part in parts:
        found = found & part
    return found
