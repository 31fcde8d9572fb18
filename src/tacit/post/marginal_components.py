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
import numpy.typing as npt

from tacit.errors import InvalidSpec
from tacit.post.marginal_table import Attributes, centred, margin, shape_of, spread_to, subsets

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

MAX_COMPONENT_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class Group:
    """Views of one shape: their numbers, and where each subset of their axes has its interaction."""

    shape: tuple[int, ...]
    members: I64
    places: dict[Attributes, I64]
    """Local axes -> the interaction of every member."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Which interactions a set of views contains, and which views contain each."""

    sizes: tuple[int, ...]
    views: tuple[Attributes, ...]
    index: dict[Attributes, int]
    groups: tuple[Group, ...]

    @cached_property
    def starts(self) -> I64:
        """The first cell of every interaction in one row of cells, and the end."""
        cells = [prod(shape_of(self.sizes, attributes)) for attributes in self.index]
        return np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)

    @cached_property
    def cells(self) -> F64:
        """Cells of every view."""
        return np.array([prod(shape_of(self.sizes, view)) for view in self.views], np.float64)

    def sums(self, per_view: F64) -> F64:
        """The sum of a number per view over the views that contain each interaction."""
        out = np.zeros(len(self.index))
        for group in self.groups:
            for places in group.places.values():
                out += np.bincount(places, per_view[group.members], len(out))
        return out

    def grouped(self, tables: Sequence[F64]) -> list[F64]:
        """Tables of the views, stacked by shape."""
        members: list[list[int]] = [group.members.tolist() for group in self.groups]
        pairs = zip(self.groups, members, strict=True)
        return [np.stack([tables[i].reshape(group.shape) for i in places]) for group, places in pairs]

    def average(self, stacked: Sequence[F64], weight: F64) -> "Components":
        """The weighted average of every interaction; the total is one."""
        total = self.sums(weight)
        share = 1 / np.where(total > 0, total, 1.0)
        values = np.zeros(int(self.starts[-1]))
        for group, tables in zip(self.groups, stacked, strict=True):
            for axes, places in group.places.items():
                pure = centred(margin(tables, range(len(group.shape)), axes), len(axes))
                pure = pure.reshape(len(places), -1) * (weight[group.members] * share[places])[:, None]
                at: I64 = self.starts[places][:, None] + np.arange(prod(pure.shape[1:]))
                values += np.bincount(at.ravel(), pure.ravel(), len(values))
        values[self.starts[self.index[()]]] = 1.0
        return Components(self, values, total)


def structure_of(sizes: Sequence[int], views: Sequence[Attributes]) -> Structure:
    """List the interactions of views."""
    index: dict[Attributes, int] = {(): 0}
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for i, view in enumerate(views):
        by_shape.setdefault(shape_of(sizes, view), []).append(i)
    groups = tuple(_group(shape, members, views, index) for shape, members in by_shape.items())
    found = Structure(tuple(sizes), tuple(views), index, groups)
    if found.starts[-1] > MAX_COMPONENT_CELLS:
        raise InvalidSpec(
            f"marginals: the views hold {found.starts[-1]} cells of interactions, must be at most "
            f"{MAX_COMPONENT_CELLS}; use smaller views"
        )
    return found


def _group(
    shape: tuple[int, ...], members: list[int], views: Sequence[Attributes], index: dict[Attributes, int]
) -> Group:
    places: dict[Attributes, I64] = {}
    for axes in subsets(range(len(shape))):
        named = [tuple(views[i][axis] for axis in axes) for i in members]
        places[axes] = np.array([index.setdefault(attributes, len(index)) for attributes in named], np.int64)
    return Group(shape, np.array(members, np.int64), places)


@dataclass(frozen=True, eq=False)
class Components:
    """The interactions of views that agree; `weight` is the sum of the weights behind each, zero if none is known."""

    structure: Structure
    values: F64
    weight: F64

    def component(self, attributes: Attributes) -> F64 | None:
        """The pure interaction of a set of attributes, or None where no view with data contains it."""
        place = self.structure.index.get(attributes)
        if place is None or (attributes and self.weight[place] <= 0):
            return None
        start, end = self.structure.starts[place], self.structure.starts[place + 1]
        return self.values[start:end].reshape(shape_of(self.structure.sizes, attributes))

    def table(self, attributes: Attributes) -> F64:
        """The table of some attributes; interactions that nobody knows are zero (the least-squares completion)."""
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
        """The agreeing tables of all views, stacked by shape."""
        return [self._stack(group) for group in self.structure.groups]

    def _stack(self, group: Group) -> F64:
        out: F64 = np.zeros((len(group.members), *group.shape))
        every = tuple(range(len(group.shape)))
        for axes, places in group.places.items():
            shape = tuple(group.shape[axis] for axis in axes)
            at = self.structure.starts[places][:, None] + np.arange(prod(shape))
            out = out + spread_to(self.values[at].reshape(len(places), *shape), axes, every, group.shape)
        return out


def make_consistent(sizes: Sequence[int], views: Sequence[Attributes], tables: Sequence[F64], weight: F64) -> list[F64]:
    """The tables of views, changed as little as possible until all agree on what they share and sum to one."""
    structure = structure_of(sizes, views)
    stacked = structure.average(structure.grouped(tables), weight).stacked()
    out: list[F64] = [np.zeros(0)] * len(views)
    for group, group_tables in zip(structure.groups, stacked, strict=True):
        for i, table in zip(group.members.tolist(), group_tables, strict=True):
            out[i] = table
    return out
