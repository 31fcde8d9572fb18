"""Overlapping views made to agree: each interaction is the weighted average of the views that contain it.

Views whose tables are independent, with cells of equal variance V in view i of L cells, estimate the interaction of a
subset with a variance in proportion to L V. Averaging every interaction with weights 1/(L V) is therefore the weighted
least-squares solution, the same as the consistency step of PriView and CALM over the closure of the views under
intersection, in any order (Qardaji, Yang and Li, SIGMOD 2014; Zhang et al., CCS 2018; Wang's dissertation, section
6.2.4). The total is known to be one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tacit.arrays import F64, I64
from tacit.errors import InvalidSpec
from tacit.post.views.table import Attributes, centred, margin, shape_of, spread_to, subsets

# Cells of all interactions together, as doubles: 128 megabytes.
MAX_COMPONENT_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class ViewGroup:
    """Views of one shape: their numbers, and where each subset of their axes has its interaction."""

    shape: tuple[int, ...]
    members: I64
    places: dict[Attributes, I64]
    """Local axes -> the interaction of every member."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Which interactions a set of views contains, and which views contain each.

    Interactions are numbered by `index` and their cells lie one after the other in one array:

        values   | () | (0,) . . | (1,) . . . | (0, 1) . . . . . . | ...      for attributes of 2 and 3 answers
                 starts[0]  [1]        [2]          [3]
    """

    sizes: tuple[int, ...]
    views: tuple[Attributes, ...]
    index: dict[Attributes, int]
    groups: tuple[ViewGroup, ...]

    @cached_property
    def starts(self) -> I64:
        """The first cell of every interaction in the array of all cells, and the end."""
        cells = [prod(shape_of(self.sizes, attributes)) for attributes in self.index]
        return np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)

    @cached_property
    def cells(self) -> F64:
        """Cells of every view."""
        return np.array([prod(shape_of(self.sizes, view)) for view in self.views], np.float64)

    def sums(self, per_view: F64) -> F64:
        """Return per interaction the sum of a number per view, over the views that contain it."""
        out = np.zeros(len(self.index))
        for group in self.groups:
            for places in group.places.values():
                out += np.bincount(places, per_view[group.members], len(out))
        return out

    def grouped(self, tables: Sequence[F64]) -> list[F64]:
        """Return the tables of the views, stacked by shape, so that equal shapes are worked on at once."""
        members: list[list[int]] = [group.members.tolist() for group in self.groups]
        pairs = zip(self.groups, members, strict=True)
        return [np.stack([tables[i].reshape(group.shape) for i in places]) for group, places in pairs]

    def average(self, stacked: Sequence[F64], weight: F64) -> "Components":
        """Return the weighted average of every interaction; the total is one."""
        total = self.sums(weight)
        share = 1 / np.where(total > 0, total, 1.0)
        values = np.zeros(int(self.starts[-1]))
        for group, tables in zip(self.groups, stacked, strict=True):
            for axes, places in group.places.items():
                pure = centred(margin(tables, range(len(group.shape)), axes), len(axes))
                pure = pure.reshape(len(places), -1) * (weight[group.members] * share[places])[:, None]
                # Several views may add to one interaction, so the cells are added by bincount and not assigned.
                at: I64 = self.starts[places][:, None] + np.arange(prod(pure.shape[1:]))
                values += np.bincount(at.ravel(), pure.ravel(), len(values))
        # The interaction of no attributes is the total, which is known and not averaged.
        values[self.starts[self.index[()]]] = 1.0
        return Components(self, values, total)


def structure_of(sizes: Sequence[int], views: Sequence[Attributes]) -> Structure:
    """Return the interactions of views, numbered; refused where they have too many cells together."""
    index: dict[Attributes, int] = {(): 0}
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for i, view in enumerate(views):
        by_shape.setdefault(shape_of(sizes, view), []).append(i)
    groups = tuple(_group(shape, members, views, index) for shape, members in by_shape.items())
    structure = Structure(tuple(sizes), tuple(views), index, groups)
    if structure.starts[-1] > MAX_COMPONENT_CELLS:
        raise InvalidSpec(
            f"marginals: the views hold {structure.starts[-1]} cells of interactions, must be at most "
            f"{MAX_COMPONENT_CELLS}; use smaller views"
        )
    return structure


def _group(
    shape: tuple[int, ...], members: list[int], views: Sequence[Attributes], index: dict[Attributes, int]
) -> ViewGroup:
    """Views of one shape; interactions that are met for the first time get the next number in `index`."""
    places: dict[Attributes, I64] = {}
    for axes in subsets(range(len(shape))):
        named = [tuple(views[i][axis] for axis in axes) for i in members]
        places[axes] = np.array([index.setdefault(attributes, len(index)) for attributes in named], np.int64)
    return ViewGroup(shape, np.array(members, np.int64), places)


@dataclass(frozen=True, eq=False)
class Components:
    """The interactions of views that agree; `weight` is the sum of the weights behind each, zero if none is known."""

    structure: Structure
    values: F64
    weight: F64

    def component(self, attributes: Attributes) -> F64 | None:
        """Return the pure interaction of a set of attributes, or None where no view with data contains it."""
        place = self.structure.index.get(attributes)
        if place is None or (attributes and self.weight[place] <= 0):
            return None
        start, end = self.structure.starts[place], self.structure.starts[place + 1]
        return self.values[start:end].reshape(shape_of(self.structure.sizes, attributes))

    def table(self, attributes: Attributes) -> F64:
        """Return the table of some attributes; unknown interactions are zero (the least-squares completion)."""
        shape = shape_of(self.structure.sizes, attributes)
        out = np.zeros(shape)
        for inner in subsets(attributes):
            part = self.component(inner)
            if part is not None:
                out = out + spread_to(part, inner, attributes, shape)
        return out

    def knows(self, attributes: Attributes) -> bool:
        """Whether every interaction of a table is known."""
        return all(self.component(inner) is not None for inner in subsets(attributes))

    def stacked(self) -> list[F64]:
        """Return the agreeing tables of all views, stacked by shape."""
        return [self._stack(group) for group in self.structure.groups]

    def _stack(self, group: ViewGroup) -> F64:
        out: F64 = np.zeros((len(group.members), *group.shape))
        every = tuple(range(len(group.shape)))
        for axes, places in group.places.items():
            shape = tuple(group.shape[axis] for axis in axes)
            at = self.structure.starts[places][:, None] + np.arange(prod(shape))
            out = out + spread_to(self.values[at].reshape(len(places), *shape), axes, every, group.shape)
        return out


def make_consistent(sizes: Sequence[int], views: Sequence[Attributes], tables: Sequence[F64], weight: F64) -> list[F64]:
    """Return the tables of views, changed as little as possible so that all agree on what they share and sum to one."""
    structure = structure_of(sizes, views)
    stacked = structure.average(structure.grouped(tables), weight).stacked()
    out: list[F64] = [np.zeros(0)] * len(views)
    for group, group_tables in zip(structure.groups, stacked, strict=True):
        for i, table in zip(group.members.tolist(), group_tables, strict=True):
            out[i] = table
    return out
