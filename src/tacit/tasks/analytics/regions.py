"""Regions of a product of finite domains: unions of disjoint boxes, closed under AND, OR and NOT."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery

MAX_BOXES = 256

Spans = tuple[tuple[int, int], ...]
"""A set of indices: ranges with both ends included, sorted, with a gap between any two."""

Box = tuple[Spans, ...]
"""One set per dimension; the box is their product, and none of them is empty."""


def as_spans(ranges: Iterable[tuple[int, int]]) -> Spans:
    """Ranges in any order as a set; empty ones vanish and touching ones become one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(item for item in ranges if item[0] <= item[1]):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def meet(a: Spans, b: Spans) -> Spans:
    """Indices of both sets."""
    return as_spans((max(x[0], y[0]), min(x[1], y[1])) for x in a for y in b)


def outside(spans: Spans, size: int) -> Spans:
    """Indices below `size` that are not in the set."""
    starts = [0, *(high + 1 for _, high in spans)]
    ends = [*(low - 1 for low, _ in spans), size - 1]
    return as_spans(zip(starts, ends, strict=True))


def span_size(spans: Spans) -> int:
    """How many indices a set has."""
    return sum(high - low + 1 for low, high in spans)


def minus(box: Box, other: Box, sizes: Sequence[int]) -> list[Box]:
    """The box without another one, as disjoint boxes: what is outside of the first dimension, then the second..."""
    if _apart(box, other):
        return [box]
    found: list[Box] = []
    left = list(box)
    for i, size in enumerate(sizes):
        part = meet(left[i], outside(other[i], size))
        if part:
            found.append((*left[:i], part, *left[i + 1 :]))
        left[i] = meet(left[i], other[i])
        if not left[i]:
            return [box]
    return found


def _merged(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """Disjoint boxes that differ in one dimension alone become one, as long as there are any."""
    kept = list(boxes)
    before = len(kept) + 1
    while len(kept) < before:
        before = len(kept)
        for i in range(len(kept[0]) if kept else 0):
            alike: dict[Box, list[tuple[int, int]]] = {}
            for box in kept:
                alike.setdefault((*box[:i], *box[i + 1 :]), []).extend(box[i])
            if len(alike) < len(kept):
                kept = [(*rest[:i], as_spans(spans), *rest[i:]) for rest, spans in alike.items()]
    return tuple(sorted(kept))


def _apart(a: Box, b: Box) -> bool:
    """Whether two boxes are seen to be disjoint by their ends alone."""
    return any(x[-1][1] < y[0][0] or y[-1][1] < x[0][0] for x, y in zip(a, b, strict=True))


@dataclass(frozen=True)
class Region:
    """Disjoint boxes in a product of domains of these sizes."""

    sizes: tuple[int, ...]
    boxes: tuple[Box, ...]

    def __post_init__(self) -> None:
        """Refuse what would take too long to answer."""
        if len(self.boxes) > MAX_BOXES:
            raise InvalidQuery(
                f"condition: it falls into {len(self.boxes)} boxes of private values, must be at most {MAX_BOXES}; "
                "ask for its parts one by one"
            )

    @cached_property
    def is_full(self) -> bool:
        """Whether everything is inside."""
        return self.boxes == everything(self.sizes).boxes

    @property
    def is_empty(self) -> bool:
        """Whether nothing is inside."""
        return not self.boxes

    @property
    def volume(self) -> float:
        """The share of all combinations that are inside."""
        inside = sum(prod(map(span_size, box)) for box in self.boxes)
        return inside / prod(self.sizes)

    def __and__(self, other: "Region") -> "Region":
        """What is in both."""
        pairs = (tuple(map(meet, a, b)) for a in self.boxes for b in other.boxes if not _apart(a, b))
        return Region(self.sizes, _merged([box for box in pairs if all(box)]))

    def __or__(self, other: "Region") -> "Region":
        """What is in either: this one, and what the other adds to it."""
        added = list(other.boxes)
        for box in self.boxes:
            added = [part for item in added for part in minus(item, box, self.sizes)]
            _check_growth(added)
        return Region(self.sizes, _merged([*self.boxes, *added]))

    def __invert__(self) -> "Region":
        """What is outside."""
        left = list(everything(self.sizes).boxes)
        for box in self.boxes:
            left = [part for item in left for part in minus(item, box, self.sizes)]
            _check_growth(left)
        return Region(self.sizes, _merged(left))

    def holds(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether rows of indices are inside."""
        found = np.zeros(len(values), np.bool_)
        for box in self.boxes:
            inside = np.ones(len(values), np.bool_)
            for i, spans in enumerate(box):
                column = values[:, i]
                inside &= np.logical_or.reduce([(low <= column) & (column <= high) for low, high in spans])
            found |= inside
        return found

    def constrained(self, box: Box) -> tuple[int, ...]:
        """The dimensions that a box does not cover whole."""
        return tuple(i for i, size in enumerate(self.sizes) if box[i] != ((0, size - 1),))


def _check_growth(boxes: list[Box]) -> None:
    if len(boxes) > 16 * MAX_BOXES:
        raise InvalidQuery("condition: it falls into too many boxes of private values; ask for its parts one by one")


def everything(sizes: Sequence[int]) -> Region:
    """The region without any condition."""
    return Region(tuple(sizes), (tuple(((0, size - 1),) for size in sizes),))


def nothing(sizes: Sequence[int]) -> Region:
    """The empty region."""
    return Region(tuple(sizes), ())


def slab(sizes: Sequence[int], dimension: int, spans: Spans) -> Region:
    """A condition on one dimension."""
    if not spans:
        return nothing(sizes)
    whole = everything(sizes).boxes[0]
    return Region(tuple(sizes), ((*whole[:dimension], spans, *whole[dimension + 1 :]),))


def corners(sizes: Sequence[int], ranges: Sequence[tuple[int, int]]) -> Region:
    """One box with a range per dimension."""
    parts = [slab(sizes, i, as_spans([item])) for i, item in enumerate(ranges)]
    found = everything(sizes)
    for part in parts:
        found = found & part
    return found
