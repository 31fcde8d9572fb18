"""Designs: what every respondent is asked about the private dimensions, and with how much of epsilon.

Every dimension has a tree over its values. A *combined level* (`Heights`) picks one height per dimension; its nodes
are products of tree nodes. Two dimensions with roots at height 2 have these combined levels (t1, t2):

            t2 = 2 (root)    t2 = 1         t2 = 0 (values)
    t1 = 2    the total      marginal of dimension 2 ...
    t1 = 1    marginal of    coarse cells   ...
    t1 = 0    dimension 1    ...            the cells themselves

A design is a tuple of *groups* of combined levels; every respondent answers one *member* of every group, drawn by
public coins. HIO is one group of all combined levels but the total. HI is a group per combined level, each at a share
of epsilon. The marginal baseline MG is one group of one member, the cells. Split-and-conjunction SC asks every level
of every dimension as a group of its own, and SCO one level of every dimension; both answer a box by the product over
its dimensions (Wang's dissertation, chapter 7).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64, flat_index
from tacit.core.compose import AllOf, OneOf
from tacit.core.mechanism import Mechanism
from tacit.core.pure import PureOracle
from tacit.device.families.compose import MAX_ANSWERS
from tacit.device.families.grid import MAX_ATTRIBUTES, MAX_SIZE, Grid
from tacit.device.families.levels import node_count
from tacit.device.families.views import Views
from tacit.device.numbers.budget import Budget, Share, as_epsilon
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.post.grids.shape import GridShape, Heights
from tacit.sql.design.consistency import Consistent
from tacit.sql.design.cover import Covering
from tacit.sql.design.partitions import Cubes, Haar, cube_heights

METHODS = (
    "hio", "hio_consistent", "hiocap1", "hiocap2", "mg", "mg2", "hi", "sc", "sco", "quadtree", "wavelet", "wavelet2"
)  # fmt: skip
# GRR has less variance than OLH below about 3 e^epsilon + 2 values (Wang et al., USENIX Security 2017): for more than
# 4096 values that takes an epsilon above 7, where either will do.
_GRR_VALUES = 1 << 12
# A level is a member of the collection document, which every device has to read.
MAX_LEVELS = 1 << 12
_WEIGHT_SCALE = 1 << 16


@lru_cache(maxsize=4096)  # Plans compare hundreds of designs that share most of their levels.
def level_oracle(values: int, epsilon: "Budget | str") -> PureOracle:
    """The frequency oracle of a level with so many nodes: GRR on few, OLH on many, whichever has less variance."""
    hashed = OLH(size=values, epsilon=epsilon)
    if values > _GRR_VALUES:
        return hashed
    direct = GRR(size=values, epsilon=epsilon)
    return direct if direct.moments.other <= hashed.moments.other else hashed


@dataclass(frozen=True, eq=False)
class MemberGroup:
    """Levels of which every respondent answers one: parallel tuples of heights, oracles and probabilities."""

    heights: tuple[Heights, ...]
    oracles: tuple[PureOracle, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Design:
    """How respondents are asked: the groups, and the mechanism that goes into a collection document."""

    method: str
    shape: GridShape
    groups: tuple[MemberGroup, ...]
    mechanism: Mechanism
    product: bool = False
    """Whether a box is answered by the product of independent estimates per dimension (split-and-conjunction)."""
    consistent: bool = False
    """Whether a region is answered from all levels at once, combined by least squares."""
    partition: str = ""
    """How a region is written as nodes: "" dimension by dimension, "quadtree" as cubes, "haar" as wavelets."""

    @cached_property
    def places(self) -> dict[Heights, tuple[int, int]]:
        """For every combined level the index of its group, and its index inside the group."""
        return {
            heights: (g, i) for g, group in enumerate(self.groups) for i, heights in enumerate(group.heights)
        }  # fmt: skip

    def member(self, heights: Heights) -> tuple[PureOracle, float]:
        """The oracle of a combined level, and the probability pi with which a respondent draws it."""
        g, i = self.places[heights]
        return self.groups[g].oracles[i], self.groups[g].shares[i]

    def noise(self, heights: Heights, nodes: int) -> float:
        """Second moment, over pi, of the term of a respondent who is in none of so many nodes of a level."""
        oracle, share = self.member(heights)
        moments = oracle.moments
        return (nodes * moments.other + nodes * (nodes - 1) * moments.other_other) / share

    def _score(self, heights: Heights, nodes: int) -> float:
        """What so many nodes of a level add to the variance if values are uniform (see `Covering.score`).

        The noise of those outside of the nodes is not enough: at a large epsilon the oracle has hardly any noise, and
        what remains is the sampling of levels, which concerns those inside.
        """
        oracle, share = self.member(heights)
        held = nodes / prod(self.shape.nodes(heights))
        total = float(nodes)
        outside, inside = (oracle.moments.of_sums(total, total, mass, mass) for mass in (0.0, 1.0))
        # `of_sums` gives variances; + 1 makes the second moment of those inside, whose mean is 1, where it is wanted.
        return (outside + held * (inside + self._drawn - outside)) / share

    @property
    def _drawn(self) -> bool:
        """Whether respondents draw a level, rather than answering all of them."""
        return len(self.groups) == 1 or any(len(group.heights) > 1 for group in self.groups)

    @cached_property
    def covering(self) -> "Covering | Consistent | Cubes | Haar":
        """The strategy that writes regions as nodes; all of them have a method `region`."""
        if self.partition:
            return Cubes(self.shape) if self.partition == "quadtree" else Haar(self.shape, frozenset(self.places))
        if self.consistent:
            return Consistent(self.shape, {heights: 1 / self.noise(heights, 1) for heights in self.places})
        return Covering(self.shape, frozenset(self.places), self._score, self._drawn)

    @cached_property
    def kept(self) -> "dict[Any, Any]":
        """A cache of covers and expected variances by region, shared by all segments and queries of a collection."""
        return {}

    def nodes_of(self, heights: Heights, values: I64) -> npt.NDArray[np.uint64]:
        """The flat index of the node of a combined level that every row of values lies under."""
        pairs = zip(values.T, self.shape.fanouts, heights, strict=True)
        nodes = (column // fanout**height for column, fanout, height in pairs)
        return flat_index(nodes, self.shape.nodes(heights)).astype(np.uint64)


def answers_of(design: Design, values: I64) -> npt.NDArray[Any]:
    """The input of `privatize` for every respondent, from rows of private indices.

    A grid takes the flat index of the cell; views take the nodes of all levels of all dimensions; a mechanism of
    several groups takes one answer per group.
    """
    shape, mechanism = design.shape, design.mechanism
    if isinstance(mechanism, AllOf):
        single = all(len(group.heights) == 1 for group in design.groups)
        nodes = [design.nodes_of(group.heights[0], values) for group in design.groups]
        return np.stack(nodes, axis=1).astype(np.int64) if single else values
    if fits_grid(shape):
        return np.asarray(np.ravel_multi_index(tuple(values.T), shape.sizes))
    sides = [values[:, i] // shape.fanouts[i] ** height for i, top in enumerate(shape.tops) for height in range(top)]
    return np.stack(sides, axis=1)


def fits_grid(shape: GridShape) -> bool:
    """Whether a domain is small enough for the grid family, the only one that collection documents may use."""
    return len(shape.sizes) <= MAX_ATTRIBUTES and shape.cells <= MAX_SIZE


def _one_of(shape: GridShape, heights: Sequence[Heights], epsilon: "Budget | str", weights: Sequence[int]) -> OneOf:
    if not fits_grid(shape):
        return OneOf(family=_views(shape, heights, epsilon, weights))
    oracles = tuple(level_oracle(prod(shape.nodes(item)), epsilon) for item in heights)
    family = Grid(
        sizes=shape.sizes, fanouts=shape.fanouts, heights=tuple(heights), mechanisms=oracles, weights=tuple(weights)
    )
    return OneOf(family=family)


def _views(shape: GridShape, heights: Sequence[Heights], epsilon: "Budget | str", weights: Sequence[int]) -> Views:
    """Combined levels over domains that are too large for a grid; for simulations only.

    Every level of every dimension becomes an attribute of its own, and a member is a view of one attribute for every
    dimension that is not at its root.
    """
    tops = shape.tops
    # Roots are no attributes: a dimension at its root is simply absent from a view.
    attributes = [(i, height) for i, top in enumerate(tops) for height in range(top)]
    place = {attribute: k for k, attribute in enumerate(attributes)}
    sizes = tuple(node_count(shape.sizes[i], shape.fanouts[i], height) for i, height in attributes)
    views = tuple(tuple(place[i, t] for i, t in enumerate(item) if t != tops[i]) for item in heights)
    cells = sorted({prod(sizes[attribute] for attribute in view) for view in views})
    oracles = tuple(level_oracle(count, epsilon) for count in cells)
    return Views(sizes=sizes, views=views, mechanisms=oracles, weights=tuple(weights))


def group_of(one: OneOf, heights: Sequence[Heights]) -> MemberGroup:
    """The group of a mechanism that asks one of several levels; `heights` are in the order of its members."""
    members = range(len(heights))
    oracles = tuple(_pure(one.member(i)) for i in members)
    return MemberGroup(tuple(heights), oracles, tuple(one.probability(i) for i in members))


def _pure(mechanism: Mechanism) -> PureOracle:
    if not isinstance(mechanism, PureOracle):
        raise InvalidSpec(f"analytics: levels are asked by {mechanism.kind}, must be a pure oracle such as olh")
    return mechanism


def one_of(
    method: str, shape: GridShape, heights: Sequence[Heights], epsilon: str, weights: Sequence[int] = ()
) -> Design:
    """A design in which every respondent answers one of some levels (coarsest first) with the whole of epsilon."""
    mechanism = _one_of(shape, heights, epsilon, weights or (1,) * len(heights))
    return Design(method, shape, (group_of(mechanism, heights),), mechanism)


def capped(shape: GridShape, most: int) -> list[Heights]:
    """The combined levels with at most so many dimensions below their root: what queries on `most` columns use."""
    found: list[Heights] = []
    for count in range(1, most + 1):
        for chosen in combinations(range(len(shape.sizes)), count):
            sides = [range(top) if i in chosen else (top,) for i, top in enumerate(shape.tops)]
            found += product(*sides)
    return sorted(found, reverse=True)


def _every_height(shape: GridShape) -> list[Heights]:
    count = prod(top + 1 for top in shape.tops) - 1
    if count > MAX_LEVELS:
        raise InvalidSpec(
            f"analytics: {count} combined levels are too many, must be at most {MAX_LEVELS}; "
            "use hiocap2, which combines at most two private columns"
        )
    return shape.every_height()


def hio(shape: GridShape, epsilon: str, *, weights: Sequence[int] = ()) -> Design:
    """HIO: all combined levels but the known total (sections 7.3.2 and 7.4.1)."""
    return one_of("hio", shape, _every_height(shape), epsilon, weights)


def hiocap(shape: GridShape, epsilon: str, most: int, *, weights: Sequence[int] = ()) -> Design:
    """HIO restricted to levels that constrain at most `most` dimensions, so that each of them is drawn more often."""
    return one_of(f"hiocap{most}", shape, capped(shape, most), epsilon, weights)


def hio_consistent(shape: GridShape, epsilon: str) -> Design:
    """HIO whose levels are combined by least squares (see `consistency`); for small domains."""
    found = replace(hio(shape, epsilon), method="hio_consistent", consistent=True)
    assert found.covering  # Refuses at once what is too large to solve.
    return found


def mg(shape: GridShape, epsilon: str) -> Design:
    """The marginal baseline: everybody reports the cell (section 7.2.3)."""
    return one_of("mg", shape, [(0,) * len(shape.sizes)], epsilon)


def mg2(shape: GridShape, epsilon: str) -> Design:
    """The marginal baseline by views: everybody reports one value, or the cell of two dimensions (section 7.2.3)."""
    return replace(hiocap(GridShape(shape.sizes, shape.sizes), epsilon, 2), method="mg2")


def _all_of(method: str, shape: GridShape, heights: Sequence[Heights], epsilon: str, *, conjunction: bool) -> Design:
    if len(heights) > MAX_ANSWERS:
        raise InvalidSpec(f"analytics: {method} would ask {len(heights)} questions at once, at most {MAX_ANSWERS}")
    share = Share(epsilon, f"1/{len(heights)}")
    oracles = tuple(level_oracle(prod(shape.nodes(item)), share) for item in heights)
    groups = tuple(MemberGroup((item,), (oracle,), (1.0,)) for item, oracle in zip(heights, oracles, strict=True))
    return Design(method, shape, groups, AllOf(epsilon=epsilon, members=oracles, state="log"), product=conjunction)


def hi(shape: GridShape, epsilon: str) -> Design:
    """HI: every combined level at an equal share of epsilon (sections 7.3.1 and 7.4.1)."""
    return _all_of("hi", shape, _every_height(shape), epsilon, conjunction=False)


def sc(shape: GridShape, epsilon: str) -> Design:
    """Split-and-conjunction: every level of every dimension at an equal share (section 7.4.3)."""
    return _all_of("sc", shape, capped(shape, 1), epsilon, conjunction=True)


def sco(shape: GridShape, epsilon: str) -> Design:
    """Split-and-conjunction with one random level per dimension."""
    share = Share(epsilon, f"1/{len(shape.sizes)}")
    groups: list[MemberGroup] = []
    members: list[OneOf] = []
    for i, (size, fanout) in enumerate(zip(shape.sizes, shape.fanouts, strict=True)):
        side = GridShape((size,), (fanout,))
        one = _one_of(side, side.every_height(), share, (1,) * len(side.every_height()))
        # The group asks one dimension alone, so its members are levels of the grid with all other dimensions at roots.
        whole = [(*shape.tops[:i], *item, *shape.tops[i + 1 :]) for item in side.every_height()]
        groups.append(group_of(one, whole))
        members.append(one)
    return Design(
        "sco", shape, tuple(groups), AllOf(epsilon=epsilon, members=tuple(members), state="log"), product=True
    )


def quadtree(shape: GridShape, epsilon: str) -> Design:
    """One tree over all dimensions, whose nodes are halved (or split by the fan-out) in all of them (section 7.6)."""
    return replace(one_of("quadtree", shape, cube_heights(shape), epsilon), partition="quadtree")


def binary(shape: GridShape) -> GridShape:
    """The same domains with binary trees, which Haar wavelets need; label columns stay flat under one root."""
    pairs = zip(shape.sizes, shape.fanouts, strict=True)
    return GridShape(shape.sizes, tuple(2 if fanout < size else size for size, fanout in pairs))


def wavelet(shape: GridShape, epsilon: str) -> Design:
    """Levels of the Haar wavelet: the reports of HIO on binary trees, read as differences of siblings (section 7.6)."""
    return replace(hio(binary(shape), epsilon), method="wavelet", partition="haar")


def wavelet2(shape: GridShape, epsilon: str) -> Design:
    """The same for queries that constrain at most two dimensions."""
    return replace(hiocap(binary(shape), epsilon, 2), method="wavelet2", partition="haar")


_BUILDERS: dict[str, Callable[[GridShape, str], Design]] = {
    "hio": lambda shape, epsilon: hio(shape, epsilon),
    "hio_consistent": hio_consistent,
    "hiocap1": lambda shape, epsilon: hiocap(shape, epsilon, 1),
    "hiocap2": lambda shape, epsilon: hiocap(shape, epsilon, 2),
    "mg": mg,
    "mg2": mg2,
    "hi": hi,
    "sc": sc,
    "sco": sco,
    "quadtree": quadtree,
    "wavelet": wavelet,
    "wavelet2": wavelet2,
}


def make_design(method: str, shape: GridShape, epsilon: str) -> Design:
    """The design of one of `METHODS`; InvalidSpec for other names."""
    # Refuses a bad epsilon before the name is looked at.
    as_epsilon(epsilon)
    if method not in _BUILDERS:
        raise InvalidSpec(f"analytics: method is {method[:40]!r}, must be one of auto, {', '.join(METHODS)}")
    return _BUILDERS[method](shape, epsilon)


def whole_weights(shares: npt.NDArray[np.float64]) -> tuple[int, ...]:
    """Probabilities as small integer weights, as documents state them; none is zero, so every level stays in use."""
    whole = [max(1, round(share * _WEIGHT_SCALE / shares.max())) for share in shares.tolist()]
    return tuple(weight // gcd(*whole) for weight in whole)
