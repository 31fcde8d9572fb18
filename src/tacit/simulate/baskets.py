"""Populations of sets: baskets from a file, two generators of synthetic ones, and their true frequent itemsets."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import sqrt
from pathlib import Path
from typing import cast

import numpy as np

from tacit.arrays import F64, I64, U8
from tacit.core.sets import Sets, starts_of
from tacit.errors import InvalidSpec, NoData

# Sets whose bitmaps are made at a time.
_CHUNK = 1 << 16
# Most patterns that are drawn for one basket, as corruption may leave nothing of them.
_TRIES = 50


@dataclass(frozen=True, eq=False)
class Baskets:
    """Sets over listed items."""

    sets: Sets
    labels: Sequence[str]
    repeated: int = 0
    """Items that a basket named more than once; a set holds them once."""

    @property
    def size(self) -> int:
        """Number of different items."""
        return len(self.labels)


def _numbered(items: I64, lengths: I64) -> Sets:
    """Sets from items with repetitions, which count once; set i is the i-th run of these lengths."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    width = int(items.max()) + 1 if len(items) else 1
    # One code per (set, item): sorting groups the sets, orders their items and puts repetitions side by side.
    codes = np.sort(rows * width + items)
    codes = codes[np.diff(codes, prepend=-1) != 0]
    distinct = np.bincount(codes // width, minlength=len(lengths))
    return Sets(codes % width, starts_of(distinct))


def read_baskets(path: str | Path) -> Baskets:
    """Read one basket per line, items split at white space; gzip is recognised by its first bytes, not by the name.

    Empty lines are empty sets, but for one at the end of the file.
    """
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    lines = data.decode("utf-8", errors="replace").splitlines()
    if not lines:
        raise NoData(f"{Path(path).name} has no lines; a line is a basket of items split by spaces")
    return number_items([line.split() for line in lines])


def number_items(baskets: Sequence[Sequence[str]]) -> Baskets:
    """Return baskets of labels as sets of numbers, in order of the labels."""
    places: dict[str, int] = {}
    flat = np.fromiter((places.setdefault(item, len(places)) for one in baskets for item in one), np.int64)
    labels = sorted(places)
    if len(labels) < 2:
        raise NoData("baskets: there are fewer than two different items, nothing to tell apart")
    # Items were numbered as they appeared; `rank` maps those numbers to the order of the labels.
    rank = np.empty(len(labels), np.int64)
    rank[[places[label] for label in labels]] = np.arange(len(labels))
    lengths = np.fromiter((len(one) for one in baskets), np.int64, len(baskets))
    sets = _numbered(rank[flat], lengths)
    return Baskets(sets, labels, repeated=len(flat) - len(sets.items))


def pos_like(n: int, *, size: int = 1657, mean: float = 7.5, most: int = 60, exponent: float = 0.9, seed: int) -> Sets:
    """Draw baskets of min(Geometric(mean), most) items of popularity 1/rank^exponent, repetitions removed.

    Strong pairs, as in point-of-sale data, because popular items meet often.
    """
    rng = np.random.default_rng(seed)
    cumulative: F64 = np.cumsum(np.arange(1, size + 1, dtype=np.float64) ** -exponent)
    lengths = np.minimum(rng.geometric(1 / mean, n), most).astype(np.int64)
    draws = rng.random(int(lengths.sum())) * cumulative[-1]
    items = cast("I64", np.searchsorted(cumulative, draws, side="right"))
    return _numbered(np.minimum(items, size - 1), lengths)


@dataclass(frozen=True)
class Quest:
    """Parameters of the IBM Quest generator: mean sizes of baskets and patterns, numbers of patterns and items."""

    basket: float = 5
    pattern: float = 2
    patterns: int = 2000
    items: int = 1000
    correlation: float = 0.5
    corruption: float = 0.5
    variance: float = 0.1


def quest(n: int, parameters: Quest = Quest(), *, seed: int) -> Sets:  # noqa: B008 - a frozen value
    """Draw baskets of overlapping patterns that lose items at random (Agrawal and Srikant, VLDB 1994).

    A pattern that would exceed the size of a basket goes in half of the time and else into the next basket. Empty
    baskets are dropped, so that there may be fewer than n.
    """
    if parameters.items < 2 or parameters.patterns < 1 or n < 1:
        raise InvalidSpec("quest: needs at least one basket, one pattern and two items")
    rng = np.random.default_rng(seed)
    patterns = _patterns(parameters, rng)
    weights = rng.exponential(1.0, parameters.patterns)
    cumulative = np.cumsum(weights / weights.sum())
    corruption = np.clip(rng.normal(parameters.corruption, sqrt(parameters.variance), parameters.patterns), 0, 1)
    baskets: list[set[int]] = []
    carried: list[int] = []
    for size in np.maximum(1, rng.poisson(parameters.basket, n)).tolist():
        basket, carried = _basket(size, carried, patterns, cumulative, corruption, rng)
        baskets.append(basket)
    return Sets.of(sorted(basket) for basket in baskets if basket)


def _patterns(parameters: Quest, rng: np.random.Generator) -> list[I64]:
    """Itemsets, each sharing some items with the one before it."""
    patterns: list[I64] = []
    for i in range(parameters.patterns):
        size = min(max(1, int(rng.poisson(parameters.pattern))), parameters.items)
        shared = round(min(1.0, rng.exponential(parameters.correlation)) * size) if i else 0
        last = patterns[-1] if i else np.zeros(0, np.int64)
        taken = rng.choice(last, min(shared, size, len(last)), replace=False) if i else last
        items = set(taken.tolist())
        while len(items) < size:
            items.add(int(rng.integers(parameters.items)))
        patterns.append(np.array(sorted(items), np.int64))
    return patterns


def _basket(
    size: int, carried: list[int], patterns: list[I64], cumulative: F64, corruption: F64, rng: np.random.Generator
) -> tuple[set[int], list[int]]:
    """One basket, and the items carried over to the next one."""
    basket: set[int] = set()
    for _ in range(_TRIES):
        if len(basket) >= size:
            break
        # What the last basket had no room for comes first, then fresh patterns.
        itemset, carried = carried or _corrupted(patterns, cumulative, corruption, rng), []
        if not itemset:
            continue
        if basket and len(basket | set(itemset)) > size:
            if rng.random() < 0.5:
                return basket | set(itemset), []
            return basket, itemset
        basket |= set(itemset)
    return basket, []


def _corrupted(patterns: list[I64], cumulative: F64, corruption: F64, rng: np.random.Generator) -> list[int]:
    """A pattern drawn by weight, in random order, without the items that it loses."""
    number = min(int(np.searchsorted(cumulative, rng.random(), side="right")), len(patterns) - 1)
    itemset: list[int] = rng.permutation(patterns[number]).tolist()
    while itemset and rng.random() < corruption[number]:
        itemset.pop()
    return itemset


def labelled(sets: Sets, size: int) -> Baskets:
    """Return synthetic baskets, whose items are labelled by their numbers."""
    return Baskets(sets, [str(i) for i in range(size)])


def percentile_length(sets: Sets, share: float = 0.9) -> int:
    """Return the smallest length that this share of the sets does not exceed."""
    return max(1, int(np.sort(sets.lengths)[max(0, int(np.ceil(share * len(sets))) - 1)])) if len(sets) else 1


def top_itemsets(sets: Sets, size: int, k: int, *, largest: int | None = None) -> list[tuple[tuple[int, ...], int]]:
    """Return the k itemsets that most sets contain, exactly, with their counts; ties go to the first in order.

    Only items among the k most frequent (ties included) can take part: every item of a frequent itemset is as frequent.
    Best-first search: no extension of an itemset is more frequent than itself, so the k first that leave the queue are
    the answer.
    """
    counts = sets.counts(size)
    # The count of the k-th item: an itemset below it cannot be among the k best, as k single items are above.
    least = int(np.sort(counts)[-min(k, size)])
    items = np.flatnonzero(counts >= max(1, least))
    heap = [(-int(counts[item]), (int(item),)) for item in items]
    heapify(heap)
    bitmaps = dict(zip(items.tolist(), _bitmaps(sets, items, size), strict=True)) if largest != 1 else {}
    top: list[tuple[tuple[int, ...], int]] = []
    while heap and len(top) < k:
        count, itemset = heappop(heap)
        top.append((itemset, -count))
        if len(itemset) < (largest or size):
            _extend(heap, itemset, bitmaps)
    return top


def count_itemsets(sets: Sets, size: int, itemsets: Sequence[tuple[int, ...]]) -> I64:
    """Return how many sets contain all items of each itemset, exactly."""
    items = np.unique([item for itemset in itemsets for item in itemset]).astype(np.int64)
    bitmaps = dict(zip(items.tolist(), _bitmaps(sets, items, size), strict=True)) if len(items) else {}
    held = (np.bitwise_and.reduce([bitmaps[item] for item in itemset]) for itemset in itemsets)
    return np.array([int(np.bitwise_count(bits).sum()) for bits in held], np.int64)


def _extend(heap: list[tuple[int, tuple[int, ...]]], itemset: tuple[int, ...], bitmaps: "dict[int, U8]") -> None:
    """Push every itemset with one further, later item that some set contains."""
    # Only later items, so that every itemset is reached once, from its own prefix.
    held, last = np.bitwise_and.reduce([bitmaps[item] for item in itemset]), itemset[-1]
    for item, bitmap in bitmaps.items():
        if item > last and (count := int(np.bitwise_count(held & bitmap).sum())):
            heappush(heap, (-count, (*itemset, item)))


def _bitmaps(sets: Sets, items: I64, size: int) -> U8:
    """One packed row per item: which sets hold it."""
    place = np.full(size, -1, np.int64)
    place[items] = np.arange(len(items))
    packed = [np.zeros((len(items), 0), np.uint8)]
    for chunk in sets.chunks(_CHUNK):
        listed = chunk.keep(place[chunk.items])
        has = np.zeros((len(items), len(chunk)), np.bool_)
        has[listed.items, np.repeat(np.arange(len(listed)), listed.lengths)] = True
        packed.append(np.packbits(has, axis=1))
    return np.concatenate(packed, axis=1)
