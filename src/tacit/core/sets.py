"""Many sets in two flat arrays (compressed sparse rows), so that no Python loop runs over respondents.

sets     {0, 2}  {}  {1}
items    0 2 1
starts   0 2 2 3          set i is items[starts[i]:starts[i + 1]]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64
from tacit.errors import InvalidValue

_CHUNK = 1 << 16


def starts_of(lengths: npt.NDArray[Any]) -> I64:
    """Return the offsets of consecutive runs with these lengths, the end of the last one included."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


@dataclass(frozen=True, eq=False)
class Sets:
    """n sets of integers: set i is `items[starts[i]:starts[i + 1]]`, its items different and increasing."""

    items: npt.NDArray[Any]
    starts: I64

    @classmethod
    def of(cls, sets: Iterable[Iterable[Any]]) -> Self:
        """Return sets from sequences of integers; their order does not matter, repeated items are refused.

        >>> Sets.of([[2, 0], [], [1]]).items.tolist()
        [0, 2, 1]
        """
        lists = [list(one) for one in sets]
        lengths = np.fromiter((len(one) for one in lists), np.int64, len(lists))
        flat = [item for one in lists for item in one]
        if not all(isinstance(item, (int, np.integer)) and not isinstance(item, bool) for item in flat):
            raise InvalidValue("sets: items must be integers; encode answers with the domain of the collection")
        return cls.sorted(np.array(flat, np.int64), starts_of(lengths))

    @classmethod
    def sorted(cls, items: npt.NDArray[Any], starts: I64) -> Self:
        """Return sets from items in any order within their set; repeated ones are refused."""
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        # By set first and item second: the sets stay where they are, so `starts` and `rows` remain right.
        ordered = cls(items[np.lexsort((items, rows))], starts)
        if np.any((np.diff(ordered.items) == 0) & (np.diff(rows) == 0)):
            raise InvalidValue("sets: an item is repeated in a set, must be named once")
        return ordered

    def __len__(self) -> int:
        """Number of sets."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> I64:
        """How many items each set has."""
        return np.diff(self.starts)

    def take(self, chosen: npt.NDArray[Any]) -> "Sets":
        """Return some of the sets, in this order."""
        lengths = self.lengths[chosen]
        starts = starts_of(lengths)
        # Item j of the result is j places after its set's new start, so it was as far after the old start.
        shift: I64 = np.repeat(self.starts[:-1][chosen] - starts[:-1], lengths)
        return Sets(self.items[np.arange(int(starts[-1])) + shift], starts)

    def slice(self, start: int, stop: int) -> "Sets":
        """Return a run of the sets, without a copy of their items."""
        starts = self.starts[start : stop + 1]
        return Sets(self.items[starts[0] : starts[-1]], starts - starts[0])

    def chunks(self, size: int = _CHUNK) -> "Iterable[Sets]":
        """Yield all sets in runs of at most `size`."""
        return (self.slice(start, min(start + size, len(self))) for start in range(0, len(self), size))

    def keep(self, mapped: npt.NDArray[Any]) -> "Sets":
        """Return the sets with item `items[j]` replaced by `mapped[j]`, or dropped where that is negative.

        The mapping must keep the order of the items.
        """
        stays = mapped >= 0
        # starts_of(stays)[j] is how many of the first j items stay: exactly the new offset of what began at j.
        return Sets(mapped[stays], starts_of(stays)[self.starts])

    def counts(self, size: int) -> I64:
        """Return for every item how many sets hold it."""
        return np.bincount(self.items, minlength=size)

    def tolist(self) -> list[list[int]]:
        """Plain lists."""
        items, starts = self.items.tolist(), self.starts.tolist()
        return [items[a:b] for a, b in pairwise(starts)]


def as_sets(values: Any) -> Sets:
    """Return a batch of sets, from `Sets` or from a sequence of sequences."""
    if isinstance(values, Sets):
        return values
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InvalidValue("sets: the values must be a list of lists of integers")
    try:
        return Sets.of(cast("Sequence[Sequence[int]]", values))
    except TypeError:
        raise InvalidValue("sets: the values must be a list of lists of integers") from None


def memberships(values: Any, kind: str, size: int) -> npt.NDArray[np.int8]:
    """A batch of sets as an array of 0 and 1: a row per set, a column per item.

    >>> memberships([[2, 0], []], "ticks", 3).tolist()
    [[1, 0, 1], [0, 0, 0]]
    """
    sets = as_sets(values)
    if len(sets.items) and (int(sets.items.min()) < 0 or int(sets.items.max()) >= size):
        raise InvalidValue(f"{kind}: an item is outside the domain, must be from 0 to {size - 1}")
    held = np.zeros((len(sets), size), np.int8)
    held[np.repeat(np.arange(len(sets)), sets.lengths), sets.items] = 1
    return held


def contained_itemsets(sets: Sets, itemsets: Sequence[Sequence[int]], size: int) -> Sets:
    """Return for each set the numbers of the itemsets that it contains, increasing."""
    # Only items of some itemset matter; they get the columns 0, 1, ... and all others are dropped.
    involved = sorted({item for itemset in itemsets for item in itemset})
    place = np.full(size, -1, np.int64)
    place[involved] = np.arange(len(involved))
    if all(len(itemset) == 1 for itemset in itemsets):
        return sets.keep(place[sets.items])  # Single items are sorted, so their numbers are as well.
    columns = [[int(place[item]) for item in itemset] for itemset in itemsets]
    parts = [_contained(chunk.keep(place[chunk.items]), columns, len(involved)) for chunk in sets.chunks()]
    numbers = np.concatenate([np.zeros(0, np.int64), *(part.items for part in parts)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)])
    return Sets(numbers, starts_of(lengths))


def _contained(sets: Sets, columns: list[list[int]], width: int) -> Sets:
    """Which itemsets each set contains, by a table of items by sets: those all of whose items' rows are set."""
    has = np.zeros((width, len(sets)), np.bool_)
    has[sets.items, np.repeat(np.arange(len(sets)), sets.lengths)] = True
    inside = np.array([has[column].all(axis=0) for column in columns]).T
    numbers = np.nonzero(inside)[1]
    return Sets(numbers, starts_of(inside.sum(axis=1)))
