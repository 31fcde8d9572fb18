"""How respondents are asked about their private dimensions: groups of combined levels, each at a part of epsilon.

Every respondent answers one member of every group, drawn by public coins. HIO is one group of all combined levels;
HI is a group per combined level at a share of epsilon each; the marginal baseline MG is one group of one member, the
cells themselves. Split-and-conjunction SC asks every level of every dimension, each a group of its own, and SCO one
level of every dimension; they answer a box by the product of its dimensions (Wang's dissertation, chapter 7).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.compose import AllOf, OneOf
from tacit.core.mechanism import Mechanism
from tacit.core.pure import PureOracle
from tacit.device.budget import Budget, Share, as_epsilon
from tacit.device.compose import MAX_ANSWERS
from tacit.device.grid import MAX_ATTRIBUTES, MAX_SIZE, Grid
from tacit.device.levels import node_count
from tacit.device.views import Views
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.post.grid_shape import GridShape, Heights
from tacit.tasks.analytics.consistency import Consistent
from tacit.tasks.analytics.cover import Covering
from tacit.tasks.analytics.partitions import Cubes, Haar, cube_heights

I64 = npt.NDArray[np.int64]
METHODS = (
    "hio", "hio_consistent", "hiocap1", "hiocap2", "mg", "mg2", "hi", "sc", "sco", "quadtree", "wavelet", "wavelet2"
)  # fmt: skip
_GRR_VALUES = 1 << 12
MAX_LEVELS = 1 << 12
_WEIGHT_SCALE = 1 << 16


def level_oracle(values: int, epsilon: "Budget | str") -> PureOracle:
    """Randomised response on few values, local hashing on many: whichever has the smaller variance."""
    hashed = OLH(size=values, epsilon=epsilon)
    if values > _GRR_VALUES:
        return hashed
    direct = GRR(size=values, epsilon=epsilon)
    return direct if direct.moments.other <= hashed.moments.other else hashed


@dataclass(frozen=True, eq=False)
class Group:
    """Members of which every respondent answers one: their heights, oracles and probabilities."""

    heights: tuple[Heights, ...]
    oracles: tuple[PureOracle, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Design:
    """How respondents are asked: the groups, and the mechanism that goes into a collection document."""

    method: str
    shape: GridShape
    groups: tuple[Group, ...]
    mechanism: Mechanism
    product: bool = False
    """Whether a box is answered by the product over its dimensions, as in split-and-conjunction."""
    consistent: bool = False
    """Whether all levels together answer a region, as least squares combine them."""
    partition: str = ""
    """How regions fall into nodes: "" by dimension, "quadtree" into cubes, "haar" into differences of siblings."""

    @cached_property
    def places(self) -> dict[Heights, tuple[int, int]]:
        """Group and member of every combined level."""
        return {
            heights: (g, i) for g, group in enumerate(self.groups) for i, heights in enumerate(group.heights)
        }  # fmt: skip

    def member(self, heights: Heights) -> tuple[PureOracle, float]:
        """The oracle of a combined level, and how often it is drawn."""
        g, i = self.places[heights]
        return self.groups[g].oracles[i], self.groups[g].shares[i]

    def noise(self, heights: Heights, nodes: int) -> float:
        """Second moment of a respondent's term outside of so many nodes, over the probability of their level."""
        oracle, share = self.member(heights)
        moments = oracle.moments
        return (nodes * moments.other + nodes * (nodes - 1) * moments.other_other) / share

    def _score(self, heights: Heights, nodes: int) -> float:
        """What nodes add to a variance with values spread evenly: at a large epsilon, most is in who holds them."""
        oracle, share = self.member(heights)
        held = nodes / prod(self.shape.nodes(heights))
        total, mass = np.full(2, float(nodes)), np.array([0.0, 1.0])
        outside, inside = (float(x) for x in oracle.moments.of_sums(total, total, mass, mass))
        return (outside + held * (inside + self._drawn - outside)) / share

    @property
    def _drawn(self) -> bool:
        """Whether respondents draw one of several levels, or answer all of them."""
        return len(self.groups) == 1 or any(len(group.heights) > 1 for group in self.groups)

    @cached_property
    def covering(self) -> "Covering | Consistent | Cubes | Haar":
        """How regions are written as nodes."""
        if self.partition:
            return Cubes(self.shape) if self.partition == "quadtree" else Haar(self.shape, frozenset(self.places))
        if self.consistent:
            return Consistent(self.shape, {heights: 1 / self.noise(heights, 1) for heights in self.places})
        return Covering(self.shape, frozenset(self.places), self._score, self._drawn)

    @cached_property
    def kept(self) -> "dict[Any, Any]":
        """What was worked out about regions, which segments and queries ask for again."""
        return {}

    def nodes_of(self, heights: Heights, values: I64) -> npt.NDArray[np.uint64]:
        """The node of a combined level above every row of values."""
        index = np.zeros(len(values), np.int64)
        for i, count in enumerate(self.shape.nodes(heights)):
            index = index * count + values[:, i] // self.shape.fanouts[i] ** heights[i]
        return index.astype(np.uint64)


def answers_of(design: Design, values: I64) -> npt.NDArray[Any]:
    """What every respondent's device is given, from rows of private indices.

    A grid takes the index of the combination, views the nodes of all levels of all dimensions, and several groups an
    answer each.
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
    """Whether combinations are few enough for a grid, as a collection document needs it."""
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
    """Combined levels of more than a grid takes, for simulations.

    Every level of every dimension is an attribute, and a member is a view of some of them.
    """
    tops = shape.tops
    attributes = [(i, height) for i, top in enumerate(tops) for height in range(top)]
    place = {attribute: k for k, attribute in enumerate(attributes)}
    sizes = tuple(node_count(shape.sizes[i], shape.fanouts[i], height) for i, height in attributes)
    views = tuple(tuple(place[i, t] for i, t in enumerate(item) if t != tops[i]) for item in heights)
    cells = sorted({prod(sizes[attribute] for attribute in view) for view in views})
    oracles = tuple(level_oracle(count, epsilon) for count in cells)
    return Views(sizes=sizes, views=views, mechanisms=oracles, weights=tuple(weights))


def group_of(one: OneOf, heights: Sequence[Heights]) -> Group:
    """The members of a mechanism that asks one of them, at these heights."""
    members = range(len(heights))
    oracles = tuple(_pure(one.member(i)) for i in members)
    return Group(tuple(heights), oracles, tuple(one.probability(i) for i in members))


def _pure(mechanism: Mechanism) -> PureOracle:
    if not isinstance(mechanism, PureOracle):
        raise InvalidSpec(f"analytics: levels are asked by {mechanism.kind}, must be a pure oracle such as olh")
    return mechanism


def one_of(
    method: str, shape: GridShape, heights: Sequence[Heights], epsilon: str, weights: Sequence[int] = ()
) -> Design:
    """Every respondent answers one of some combined levels (coarsest first) at the whole epsilon."""
    mechanism = _one_of(shape, heights, epsilon, weights or (1,) * len(heights))
    return Design(method, shape, (group_of(mechanism, heights),), mechanism)


def capped(shape: GridShape, most: int) -> list[Heights]:
    """Combined levels that leave out all but `most` dimensions: what queries on so many dimensions need."""
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
    """HIO for queries that constrain at most so many dimensions."""
    return one_of(f"hiocap{most}", shape, capped(shape, most), epsilon, weights)


def hio_consistent(shape: GridShape, epsilon: str) -> Design:
    """HIO whose levels are combined by constrained inference; for domains of few combinations."""
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
    groups = tuple(Group((item,), (oracle,), (1.0,)) for item, oracle in zip(heights, oracles, strict=True))
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
    groups: list[Group] = []
    members: list[OneOf] = []
    for i, (size, fanout) in enumerate(zip(shape.sizes, shape.fanouts, strict=True)):
        side = GridShape((size,), (fanout,))
        one = _one_of(side, side.every_height(), share, (1,) * len(side.every_height()))
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
    """The same sizes with binary trees, where there are trees."""
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
    """A design by the name of its method."""
    as_epsilon(epsilon)
    if method not in _BUILDERS:
        raise InvalidSpec(f"analytics: method is {method[:40]!r}, must be one of auto, {', '.join(METHODS)}")
    return _BUILDERS[method](shape, epsilon)


def whole_weights(shares: npt.NDArray[np.float64]) -> tuple[int, ...]:
    """Shares as integer weights, none of them zero."""
    whole = [max(1, round(share * _WEIGHT_SCALE / shares.max())) for share in shares.tolist()]
    return tuple(weight // gcd(*whole) for weight in whole)
