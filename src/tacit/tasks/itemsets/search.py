"""Which itemsets are worth asking about, guessed from the frequencies of their items.

Under independence an itemset's frequency is the product of its items' frequencies. Best-first search enumerates the
largest products without listing all 2^k sets.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from math import log2

_CAP = 0.9
"""The weight of the most frequent item: below 1, so that larger sets always weigh less than their subsets."""
_TINY = 1e-12


def largest_itemset(k: int) -> int:
    """Return the largest size s of an itemset among the k most frequent.

    Its 2^s - 1 nonempty subsets are at least as frequent, so s <= log2(k + 1).
    """
    return int(log2(k + 1) + 1e-9)


def guess_itemsets(frequencies: Sequence[tuple[int, float]], count: int, largest: int) -> tuple[tuple[int, ...], ...]:
    """Return the itemsets of 2 to `largest` items with the highest products of 0.9 f/max f, in canonical order.

    Items with estimates of zero and below keep a tiny weight, so that they are taken only when others run out.

    >>> guess_itemsets([(3, 0.5), (0, 0.4), (7, 0.1)], 2, 2)
    ((0, 3), (3, 7))
    """
    # Scaling by the largest makes weights comparable; without a positive estimate all items weigh the same.
    top = max((frequency for _, frequency in frequencies), default=0.0)
    scaled = [(max(_CAP * f / top if top > 0 else _CAP, _TINY), item) for item, f in frequencies]
    ranked = sorted(scaled, key=lambda pair: (-pair[0], pair[1]))
    itemsets: list[tuple[int, ...]] = []
    for places in best_first([weight for weight, _ in ranked], largest):
        if len(itemsets) == count:
            break
        itemsets.append(tuple(sorted(ranked[place][1] for place in places)))
    return tuple(sorted(itemsets))


def best_first(weights: Sequence[float], largest: int) -> Iterator[tuple[int, ...]]:
    """Yield places of 2 to `largest` weights in order of falling product; weights fall and do not exceed 1.

    Every set is reached once, by its only parent, so no set of seen ones is needed:

        {0} -> {1} -> {2} ...        advance the last place
         |      `--> {1,2} ...       append the next place
         `--> {0,1} -> {0,2} ...

    A heap of sets: the successors of one are the set with its last place advanced, and the set with the next place
    appended. Both have at most its product, so the heap yields sets in order.
    """
    heap: list[tuple[float, tuple[int, ...]]] = []
    _push(heap, weights, (0,))
    while heap:
        _, places = heappop(heap)
        size, last = len(places), places[-1]
        if size > 1:
            yield places
        _push(heap, weights, (*places[:-1], last + 1))
        if size < largest:
            _push(heap, weights, (*places, last + 1))


def _push(heap: list[tuple[float, tuple[int, ...]]], weights: Sequence[float], places: tuple[int, ...]) -> None:
    """Push a set with its product of weights, negated for a min-heap; nothing beyond the last weight."""
    if places[-1] < len(weights):
        product = 1.0
        for place in places:
            product *= weights[place]
        heappush(heap, (-product, places))
