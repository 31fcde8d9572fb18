"""Junction trees (decomposable models): sets of attributes whose tables fit together without iteration.

Sets have one if they can be ordered so that what each shares with all earlier ones is within one of them (running
intersection). The table of maximum entropy is then the product of the sets' tables over those of what they share, and
one sweep of proportional fitting in that order is exact.
"""

from collections.abc import Sequence

from tacit.post.views.table import Attributes


def tree_order(sets: Sequence[Attributes]) -> list[int] | None:
    """Return an order of sets with running intersections, or None where there is none.

    Growing a tree by the largest intersections finds one if any does: sets have a junction tree if and only if every
    spanning tree of largest total intersection is one (Maier, "The theory of relational databases", 1983, chapter 13).

    >>> tree_order([(0, 1), (2, 3), (1, 2)]), tree_order([(0, 1), (1, 2), (0, 2)])
    ([0, 2, 1], None)
    """
    if not sets:
        return []
    # Prim's algorithm for a spanning tree of largest weight; shared[i] is the largest intersection of set i with one
    # set of the tree, which must be all that it has in common with the tree.
    parts = [set(one) for one in sets]
    order, seen = [0], set(parts[0])
    shared = {i: parts[i] & parts[0] for i in range(1, len(parts))}
    while shared:
        best = max(shared, key=lambda i: (len(shared[i]), -i))
        if shared.pop(best) != parts[best] & seen:
            return None
        order.append(best)
        seen |= parts[best]
        for i, known in shared.items():
            shared[i] = max(known, parts[i] & parts[best], key=len)
    return order
