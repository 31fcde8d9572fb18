"""What a mechanism asks, as combined levels of trees: the one shape that ranges, rectangles and prefixes are read from.

A plain oracle is a tree of one level (see docs/decisions/0010-a-flat-oracle-is-a-tree.md), so whoever reads levels
need not know whether a question was planned with a tree, a grid, views, or no family at all.
"""

from dataclasses import dataclass
from typing import Any

from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism, Oracle

Heights = tuple[int, ...]


@dataclass(frozen=True)
class AskedLevels:
    """Trees of some fan-outs over attributes of some sizes, and the combination of levels that each member asks for."""

    mechanism: Mechanism
    sizes: tuple[int, ...]
    fanouts: tuple[int, ...]
    heights: tuple[Heights, ...]
    """For every member, the height of its nodes in every tree; height 0 are the answers themselves."""
    weights: tuple[int, ...]
    """For every member, how often it is drawn, relative to the others."""
    shares: tuple[float, ...]
    """For every member, the exact share of the respondents who draw it."""

    @property
    def members(self) -> list[Mechanism]:
        """The mechanism of every member."""
        return [self.mechanism.member(i) for i in range(len(self.heights))]

    def tallies(self, tally: Any) -> list[Any]:
        """What every member got, out of a tally of the mechanism."""
        return [self.mechanism.marginal(tally, i) for i in range(len(self.heights))]


def asked_levels(mechanism: Mechanism) -> AskedLevels | None:
    """The levels that a mechanism asks for; None where it asks for something else."""
    if isinstance(mechanism, OneOf):
        family = mechanism.family
        levels, shares = family.levels(), tuple(map(mechanism.probability, range(len(family))))
        return None if levels is None else AskedLevels(mechanism, *levels, family.weights, shares)
    if isinstance(mechanism, Oracle):
        return AskedLevels(mechanism, (mechanism.size,), (mechanism.size,), ((0,),), (1,), (1.0,))
    return None


def asked_tree(mechanism: Mechanism) -> AskedLevels | None:
    """The levels of one tree that a mechanism asks for; None where it asks for several attributes, or no levels."""
    asked = asked_levels(mechanism)
    return asked if asked is not None and len(asked.sizes) == 1 else None
