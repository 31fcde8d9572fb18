"""Constrained inference on the levels of a tree: unbiased level estimates in, consistent leaves out.

Every level of a tree (see `device.families.levels`) estimates the same population, each by its own respondents.
Weighted least squares under "children add up to their parent" and "the root is everybody" is two passes over the nodes:
Hay et al., VLDB 2010, section 4.1; Kulkarni's dissertation, section 5.4.2, with the root fixed at 1, siblings in the
second pass, and weights by the levels' own precision (constrained generalised least squares on ragged trees, with
levels of unequal size or none at all). Signed levels (the Haar transform, section 5.4.3) are the same second pass with
nothing to do in the first.

Weights depend on the numbers of reports and on the mechanisms, never on the estimates: the leaves stay unbiased and
linear, so that the variance of any linear answer follows from the coefficients it puts on every level.

Node numbers, here for 7 leaves and fan-out 2; node j of height t covers the leaves j f^t .. (j + 1) f^t - 1:

    height 3    0 . . . . . .      the root, whose share is known to be 1
    height 2    0 . . . 1 . .
    height 1    0 . 1 . 2 . 3      ragged: the last node of a height may have fewer children, and weights of its own
    height 0    0 1 2 3 4 5 6
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tacit.arrays import F64
from tacit.core.statistics.moments import Moments
from tacit.device.families.levels import node_count
from tacit.errors import InvalidSpec


class LevelSums(NamedTuple):
    """Sums over the nodes of a level: an answer's coefficients, their squares, and both times the nodes' masses."""

    weights: F64
    squares: F64
    mass: F64
    square_mass: F64


@dataclass(frozen=True, eq=False)
class Level:
    """What was learnt about one level: unbiased values of its nodes and how precise they are.

    `value` holds the share of every node, or for a signed level the difference of the two halves of every node one
    level up. `scale` is 1/n of the level's reports; infinite where nobody answered.
    """

    height: int
    value: F64
    moments: Moments
    scale: float
    signed: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is no report at all."""
        return not np.isfinite(self.scale)

    def noise(self, nodes: int) -> float:
        """Return the variance per squared coefficient of a contrast of nodes, with evenly spread respondents."""
        if self.is_empty:
            return np.inf
        if self.signed:
            return self.moments.other * self.scale
        return self.moments.contrast(nodes) * self.scale

    def variance(self, sums: LevelSums, respondents: float) -> F64:
        """Return what this level adds to the variance of an answer: the noise, and the sampling of its respondents."""
        # N/(N - 1), the finite-population correction of drawing the level's respondents without replacement.
        everybody = respondents / max(1.0, respondents - 1)
        return self.scale * (self.moments.of_sums(*sums) + everybody * (sums.square_mass - sums.mass**2))


@dataclass(frozen=True, eq=False)
class HeightStep:
    """The weights between the nodes of one height and their parents; the last node of a ragged level has its own."""

    own: tuple[float, float]
    """Weight of a node's own estimate in the first pass (ordinary nodes, last node)."""
    below: tuple[float, float]
    """Weight of the sum of its children in the first pass."""
    variance: tuple[float, float]
    """Variance of the first pass's value."""


@dataclass(frozen=True, eq=False)
class TreeShape:
    """A tree of a fan-out over `size` leaves; the nodes of height t are 0 .. nodes(t) - 1."""

    size: int
    fanout: int

    @cached_property
    def top(self) -> int:
        """The height of the root: the first one with a single node."""
        height = 0
        while self.nodes(height) > 1:
            height += 1
        return height

    def nodes(self, height: int) -> int:
        """Number of nodes of a height."""
        return node_count(self.size, self.fanout, height)

    def last_children(self, height: int) -> int:
        """Children of the last node of a height."""
        return self.nodes(height - 1) - self.fanout * (self.nodes(height) - 1)

    @cached_property
    def complete(self) -> bool:
        """Whether every node has all its children."""
        return self.fanout**self.top == self.size

    def parents(self, values: F64) -> F64:
        """Return sums over the children of every parent, along the last axis."""
        return _grouped(values, self.fanout).sum(axis=-1)

    def spread(self, values: F64, children: int) -> F64:
        """Return every parent's value at each of its children, along the last axis."""
        return np.repeat(values, self.fanout, axis=-1)[..., :children]


def _grouped(values: F64, fanout: int) -> F64:
    """Children as rows, one row per parent; missing children are 0."""
    short = -values.shape[-1] % fanout
    if short:
        values = np.concatenate([values, np.zeros((*values.shape[:-1], short))], axis=-1)
    return values.reshape(*values.shape[:-1], -1, fanout)


def scaled(values: F64, factor: tuple[float, float]) -> F64:
    """Return all values times the first factor, the last value times the second (it may be of a ragged node)."""
    out = values * factor[0]
    out[..., -1] = values[..., -1] * factor[1]
    return out


def _blend(noise: float, children: float) -> tuple[float, float, float]:
    """Inverse-variance weights of a node's own estimate and of its children's sum, and the variance of the result."""
    if np.isinf(noise):
        return 0.0, 1.0, children
    if np.isinf(children):
        return 1.0, 0.0, noise
    total = noise + children
    return children / total, noise / total, noise * children / total


@dataclass(frozen=True, eq=False)
class TreeFit:
    """The consistent leaves of a tree, and how they depend on every level."""

    shape: TreeShape
    levels: Sequence[Level]
    leaves: F64
    steps: Sequence[HeightStep]
    """Per height, leaves first; of plain levels only."""
    floor: int
    """The lowest height that anybody answered; below it mass is spread evenly, with infinite variance."""

    @property
    def signed(self) -> bool:
        """Whether the levels are signed."""
        return self.levels[0].signed

    @cached_property
    def at(self) -> dict[int, Level]:
        """The answered levels by height."""
        return {level.height: level for level in self.levels if not level.is_empty}

    @cached_property
    def cumulative(self) -> F64:
        """Mass below every boundary 0 .. size; the ends are exact."""
        sums = np.concatenate([[0.0], np.cumsum(self.leaves)])
        sums[-1] = 1.0
        return sums

    def shares(self, height: int) -> tuple[float, float, float]:
        """Return the shares of a parent's surplus, in proportion to the children's variances.

        Of any child of an ordinary parent, of the ordinary children of the last parent, and of the very last child.
        """
        if self.signed:
            last = 1.0 / self.shape.last_children(height + 1)
            return 0.5, last, last
        # Ordinary parents have children of one variance, so each gets 1/fan-out; the last child may differ.
        full, edge = self.steps[height].variance
        children = self.shape.last_children(height + 1)
        whole = (children - 1) * full + edge
        return 1 / self.shape.fanout, full / whole, edge / whole


def fit_levels(size: int, fanout: int, levels: Sequence[Level]) -> TreeFit:
    """Return the least-squares leaves from the levels of a tree; levels that nobody answered carry no weight."""
    shape = TreeShape(size, fanout)
    signed = {level.signed for level in levels}
    if len(signed) != 1 or (signed == {True} and fanout != 2):
        raise InvalidSpec("levels: all must be plain, or all signed with a fan-out of 2")
    answered = {level.height: level for level in levels if not level.is_empty}
    floor = min(answered, default=shape.top)
    if signed == {True}:
        # Haar: differences are independent of sums, so there is nothing to combine on the way up.
        empty = TreeFit(shape, levels, np.zeros(0), (), 0)
        return TreeFit(shape, levels, _second_pass(empty, _halves(shape, answered)), (), 0)
    steps, values = _first_pass(shape, answered, floor)
    draft = TreeFit(shape, levels, np.zeros(0), steps, floor)
    return TreeFit(shape, levels, _second_pass(draft, values), steps, floor)


def _first_pass(shape: TreeShape, answered: dict[int, Level], floor: int) -> tuple[list[HeightStep], list[F64]]:
    """From the leaves up: every node's best value from its own subtree."""
    steps: list[HeightStep] = []
    values: list[F64] = []
    for height in range(shape.top):
        nodes, level = shape.nodes(height), answered.get(height)
        noise = np.inf if level is None else level.noise(nodes)
        if height <= floor:
            # Nobody was asked for anything finer: these are the leaves of what is known. Below the floor, variances in
            # proportion to the number of leaves make the second pass spread mass evenly.
            width = float(shape.fanout**height)
            rest = shape.size - (nodes - 1) * shape.fanout**height
            known = (noise, noise) if height == floor else (width, float(rest))
            steps.append(HeightStep((1.0, 1.0), (0.0, 0.0), known))
            values.append(np.zeros(nodes) if level is None else level.value)
            continue
        # A parent blends its own estimate with its children's sum; the last parent may have fewer, its last child
        # another variance.
        full, edge = steps[-1].variance
        ordinary = _blend(noise, shape.fanout * full)
        last = _blend(noise, (shape.last_children(height) - 1) * full + edge)
        step = HeightStep((ordinary[0], last[0]), (ordinary[1], last[1]), (ordinary[2], last[2]))
        below = scaled(shape.parents(values[-1]), step.below)
        values.append(below if level is None else below + scaled(level.value, step.own))
        steps.append(step)
    return steps, values


def _halves(shape: TreeShape, answered: dict[int, Level]) -> list[F64]:
    """Signed differences as values of the two halves; a level that nobody answered splits evenly."""
    values: list[F64] = []
    for height in range(shape.top):
        nodes, level = shape.nodes(height), answered.get(height)
        # Halves of a node with share s are (s + d)/2 and (s - d)/2; the second pass adds s/2 to each.
        difference = np.zeros(shape.nodes(height + 1)) if level is None else level.value
        halves = np.stack([difference / 2, difference / -2], axis=-1).reshape(-1)[:nodes]
        if shape.last_children(height + 1) == 1:
            halves[-1] = 0.0  # The other half is empty: there is nothing to split.
        values.append(halves)
    return values


def _second_pass(fit: TreeFit, values: list[F64]) -> F64:
    """Top-down pass: divide the difference between a parent and the sum of its children among the children."""
    shape = fit.shape
    parent = np.ones(1)
    for height in range(shape.top - 1, -1, -1):
        value, (ordinary, last_full, last_edge) = values[height], fit.shares(height)
        surplus = parent - shape.parents(value)
        # All parents alike first, then the last parent, whose children may be fewer and of other variances.
        share = surplus * ordinary
        share[-1] = surplus[-1] * last_full
        parent = value + shape.spread(share, shape.nodes(height))
        parent[-1] = value[-1] + surplus[-1] * last_edge
    return parent
