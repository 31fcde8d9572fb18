"""Who is who in a shuffle: parties by number and by name, and which of them hide the order in which round."""

from itertools import combinations

from tacit.errors import InvalidSpec

COLLECTOR = 0
"""The number of the collector; shufflers are numbered from 1."""


def party_name(number: int) -> str:
    """The name of a party in documents and envelopes.

    >>> party_name(COLLECTOR), party_name(3)
    ('collector', 'shuffler_3')
    """
    return f"shuffler_{number}" if number else "collector"


def party_names(shufflers: int) -> list[str]:
    """The names of all parties that sign, the collector first."""
    return [party_name(number) for number in range(shufflers + 1)]


def hiders_needed(shufflers: int) -> int:
    """t = (r + 1)/2: how many shufflers know the order of a round. One fewer learn nothing, even with the collector."""
    # An even number tolerates no more collusion than the odd number below it, and costs more rounds.
    if shufflers < 3 or shufflers % 2 == 0:
        raise InvalidSpec(
            f"resharing: {shufflers} shufflers; must be an odd number of at least 3, so that a majority can be honest"
        )
    return (shufflers + 1) // 2


def rounds_of(shufflers: int) -> list[tuple[int, ...]]:
    """The hiders of every round: all sets of t shufflers, in lexicographic order.

    Any coalition of r - t shufflers misses at least one set completely, and does not know the order of that round.

    >>> rounds_of(3)
    [(1, 2), (1, 3), (2, 3)]
    """
    return list(combinations(range(1, shufflers + 1), hiders_needed(shufflers)))
