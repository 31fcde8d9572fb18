"""Many sets at once: all items in one array and where each set begins, so that no loop runs over respondents."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidValue

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
_CHUNK = 1 << 16


def starts_of(lengths: npt.NDArray[Any]) -> I64:
    """Where each of consecutive runs begins, and where the last one ends."""
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
        """Sets from sequences of integers; their order does not matter, repeated items are refused.

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
        """Sets whose items come in any order; repeated ones are refused."""
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = np.lexsort((items, rows))
        made = cls(items[order], starts)
        if np.any((np.diff(made.items) == 0) & (np.diff(rows) == 0)):
            raise InvalidValue("sets: an item is repeated in a set, must be named once")
        return made

    def __len__(self) -> int:
        """Number of sets."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> I64:
        """How many items each set has."""
        return np.diff(self.starts)

    def take(self, chosen: npt.NDArray[Any]) -> "Sets":
        """Some of the sets, in this order."""
        lengths = self.lengths[chosen]
        starts = starts_of(lengths)
        shift: I64 = np.repeat(self.starts[:-1][chosen] - starts[:-1], lengths)
        return Sets(self.items[np.arange(int(starts[-1])) + shift], starts)

    def slice(self, start: int, stop: int) -> "Sets":
        """A run of the sets, without a copy of their items."""
        starts = self.starts[start : stop + 1]
        return Sets(self.items[starts[0] : starts[-1]], starts - starts[0])

    def chunks(self, size: int = _CHUNK) -> "Iterable[Sets]":
        """All sets, run by run."""
        return (self.slice(start, min(start + size, len(self))) for start in range(0, len(self), size))

    def keep(self, mapped: npt.NDArray[Any]) -> "Sets":
        """The sets of `mapped` items, one for each item here; negative ones are dropped. The order must not change."""
        kept = mapped >= 0
        return Sets(mapped[kept], starts_of(kept)[self.starts])

    def counts(self, size: int) -> I64:
        """How many sets hold each item."""
        return np.bincount(self.items, minlength=size)

    def tolist(self) -> list[list[int]]:
        """Plain lists."""
        items, starts = self.items.tolist(), self.starts.tolist()
        return [items[a:b] for a, b in pairwise(starts)]


def as_sets(values: Any) -> Sets:
    """A batch of sets, from itself or from a sequence of sequences."""
    if isinstance(values, Sets):
        return values
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InvalidValue("sets: the values must be a list of lists of integers")
    try:
        return Sets.of(cast("Sequence[Sequence[int]]", values))
    except TypeError:
        raise InvalidValue("sets: the values must be a list of lists of integers") from None


def contained_itemsets(sets: Sets, itemsets: Sequence[Sequence[int]], size: int) -> Sets:
    """For each set, the numbers of the itemsets that it contains, increasing."""
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
    """Itemsets as columns of a table of sets by items: a set contains one where all of its columns are set."""
    has = np.zeros((width, len(sets)), np.bool_)
    has[sets.items, np.repeat(np.arange(len(sets)), sets.lengths)] = True
    inside = np.array([has[column].all(axis=0) for column in columns]).T
    numbers = np.nonzero(inside)[1]
    return Sets(numbers, starts_of(inside.sum(axis=1)))
