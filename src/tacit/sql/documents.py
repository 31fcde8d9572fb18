"""Tables of collection documents: their private columns, how to collect them, and how collected reports are read.

A document asks one question by its own mechanism (policy single), several together as combined levels of a grid
(joint), or each at a share of epsilon (all_of, split-and-conjunction). The mechanism is all that is stored; how
levels are put together is decided when a table is opened.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import inf
from typing import Any

import numpy as np

from tacit.core.compose import AllOf, OneOf
from tacit.core.mechanism import Mechanism
from tacit.core.pure import PureOracle
from tacit.device.domains.domain import Booleans, Categories, Domain, Ordered
from tacit.device.domains.reals import Buckets, Integers
from tacit.errors import InvalidSpec
from tacit.post.grids.shape import GridShape
from tacit.sql.design.consistency import affordable
from tacit.sql.design.levels import Design, MemberGroup, capped, fits_grid, group_of
from tacit.sql.design.partitions import cube_heights
from tacit.sql.engine.plan import PLANNED, WEIGHTED, DesignOption
from tacit.sql.engine.public import ArrowRows, empty_rows
from tacit.sql.engine.terms import expected_variance
from tacit.sql.open import choose_design, regions_of
from tacit.sql.schema.regions import Region, corners
from tacit.sql.schema.scales import Edges, Labels, Numbers, Scale, Truths
from tacit.sql.schema.schema import Dimension, Schema

DOCUMENTED = tuple(method for method in PLANNED if method not in ("hi", "sc"))
"""Methods whose mechanism fits a document; HI and SC ask every level as a question of its own."""

_SEVERAL = ("sco", "mg2", "hiocap", "quadtree", "wavelet2")
"""Methods that are about several columns; for one they are the same as others."""
_RANGES = 4
"""Random ranges per column, and per pair of columns where there are few pairs."""
_PAIRS = 24
"""Pairs of columns at most; with many columns, a random choice stands for all."""
_SEED = 7
"""Fixed, so that the same document is always planned and read in the same way."""


def _of_labels(domain: Ordered) -> Scale:
    other = domain.other if isinstance(domain, Categories) else None
    return Labels(tuple(domain.all_labels()), is_ordinal=not isinstance(domain, Categories), other=other)


def _of_buckets(domain: Buckets) -> Scale:
    return Edges(domain.edges, tuple(domain.all_labels()), domain.open_below, domain.open_above)


_SCALES: dict[type[Domain], Callable[[Any], Scale]] = {
    Integers: lambda domain: Numbers(domain.low, domain.size, domain.step),
    Categories: _of_labels,
    Ordered: _of_labels,
    Buckets: _of_buckets,
    Booleans: lambda domain: Truths(),
}


def table_schema(names: Sequence[str], domains: Sequence[Domain], table: str) -> Schema:
    """The private columns of a document: its questions, each with a domain of known values.

    >>> table_schema(["age"], [Integers("age", 0, 99)], "visits").sizes
    (100,)
    """
    found: list[Dimension] = []
    for name, domain in zip(names, domains, strict=True):
        make = _SCALES.get(type(domain))
        if make is None:
            kinds = ", ".join(kind.kind for kind in _SCALES)
            raise InvalidSpec(f"{name}: the domain is {domain.kind}; SQL is answered over {kinds}")
        if domain.size < 2:
            raise InvalidSpec(f"{name}: the domain has one value; a constant needs no protection, drop this question")
        found.append(Dimension(name, scale=make(domain)))
    return Schema(tuple(found), table)


def _levels(mechanism: Mechanism) -> tuple[GridShape, MemberGroup]:
    """What a mechanism asks, as combined levels of trees."""
    if isinstance(mechanism, PureOracle):
        shape = GridShape((mechanism.value_count,), (mechanism.value_count,))
        return shape, MemberGroup(((0,),), (mechanism,), (1.0,))
    if not isinstance(mechanism, OneOf):
        raise InvalidSpec(f"analytics: a question is asked by {mechanism.kind}, must be one_of, grr or olh")
    levels = mechanism.family.levels()
    if levels is None:
        raise InvalidSpec(
            f"analytics: levels of family {mechanism.family.kind} are not read; must be grid, tree or views"
        )
    return GridShape(levels.sizes, levels.fanouts), group_of(mechanism, levels.heights)


def _name(shape: GridShape, group: MemberGroup) -> str:
    """The method that asks these levels."""
    asked = set(group.heights)
    leaves = (0,) * len(shape.sizes)
    if asked == {leaves}:
        return "mg"
    sides = range(1, len(shape.sizes) + 1)
    most = next((k for k in sides if len(asked) <= 1 << 12 and asked == set(capped(shape, k))), None)
    name = "levels" if most is None else "hio" if most == len(shape.sizes) else f"hiocap{most}"
    name = "quadtree" if most is None and asked == set(cube_heights(shape)) else name
    return name if len(set(group.shares)) == 1 else name + WEIGHTED


def design_of(mechanism: Mechanism, schema: Schema) -> Design:
    """The design of a document's mechanism; its levels are put together in the way that has the least variance."""
    if isinstance(mechanism, AllOf):
        found = _conjunction(mechanism)
    else:
        shape, group = _levels(mechanism)
        name = _name(shape, group)
        partition = "quadtree" if name.startswith("quadtree") else ""
        found = Design(name, shape, (group,), mechanism, partition=partition)
    if found.shape.sizes != schema.sizes:
        raise InvalidSpec(
            f"analytics: the mechanism is for columns of {list(found.shape.sizes)[:8]} values, "
            f"the private columns have {list(schema.sizes)[:8]}"
        )
    return best_reading(found, default_workload(schema))


def _conjunction(mechanism: AllOf) -> Design:
    """One level of every column, each at a share of epsilon."""
    sides = [_levels(mechanism.member(i)) for i in range(len(mechanism.members))]
    if any(len(side.sizes) != 1 for side, _ in sides):
        raise InvalidSpec("analytics: every member of all_of must be about one private column")
    shape = GridShape(tuple(side.sizes[0] for side, _ in sides), tuple(side.fanouts[0] for side, _ in sides))
    groups: list[MemberGroup] = []
    for i, (_, group) in enumerate(sides):
        whole = tuple((*shape.tops[:i], *heights, *shape.tops[i + 1 :]) for heights in group.heights)
        groups.append(MemberGroup(whole, group.oracles, group.shares))
    return Design("sco", shape, tuple(groups), mechanism, product=True)


def best_reading(design: Design, workload: Sequence[Region]) -> Design:
    """The same reports, levels put together in the way that has the smallest mean variance.

    Node by node; on binary trees by differences of siblings; in small domains by least squares over all levels.
    """
    best, least = design, _mean_variance(design, workload)
    for solved in _readings(design):
        variance = _mean_variance(solved, workload)
        if variance < least:
            best, least = solved, variance
    return best


def _readings(design: Design) -> list[Design]:
    if design.product or design.partition or len(design.places) < 2:
        return []
    trees = zip(design.shape.sizes, design.shape.fanouts, strict=True)
    found: list[Design] = []
    if all(fanout in (2, size) for size, fanout in trees):
        found.append(replace(design, method=design.method + "_haar", partition="haar"))
    if affordable(design.shape):
        found.append(replace(design, method=design.method + "_consistent", consistent=True))
    return found


def _mean_variance(design: Design, workload: Sequence[Region]) -> float:
    """The mean over the workload; infinite where a region needs levels that nobody was asked."""
    try:
        return float(np.mean([expected_variance(design, region) for region in workload]))
    except InvalidSpec:
        return inf


def default_workload(schema: Schema, most: int = 2) -> list[Region]:
    """What is planned for where no queries are given: random ranges on one private column and, if `most` is 2, two."""
    rng = np.random.default_rng(_SEED)
    sizes = schema.sizes
    places = range(len(sizes))
    pairs = list(combinations(places, 2)) if most > 1 else []
    chosen: list[tuple[int, ...]] = [pairs[i] for i in rng.permutation(len(pairs))[:_PAIRS].tolist()]
    asked: list[tuple[int, ...]] = [(i,) for i in places for _ in range(_RANGES)] + chosen * max(
        1, min(_RANGES, _PAIRS // max(1, len(pairs)))
    )
    return [corners(sizes, _ranges(schema, item, rng)) for item in asked]


def _ranges(schema: Schema, asked: Sequence[int], rng: np.random.Generator) -> list[tuple[int, int]]:
    """A random range of every asked column that has an order, a random value of the others."""
    found = [(0, size - 1) for size in schema.sizes]
    for i in asked:
        low, high = sorted(rng.integers(0, schema.sizes[i], 2).tolist())
        ordered = schema.dimensions[i].is_ordinal and (low, high) != found[i]
        found[i] = (low, high) if ordered else (low, low)
    return found


def plan_table(
    schema: Schema, columns: Sequence[tuple[str, str]], epsilon: str, n: int, queries: Sequence[str] = (),
    method: str = "auto",
) -> tuple[str, Mechanism]:  # fmt: skip
    """Policy and mechanism of a document: of the methods that fit one, that of least exact variance over queries.

    Without queries, the workload is `default_workload`.
    """
    option = plan_option(schema, columns, epsilon, n, queries, method)
    mechanism = option.design.mechanism
    single = len(schema.dimensions) == 1
    return "single" if single else "all_of" if isinstance(mechanism, AllOf) else "joint", mechanism


def plan_option(
    schema: Schema, columns: Sequence[tuple[str, str]], epsilon: str, n: int, queries: Sequence[str] = (),
    method: str = "auto",
) -> DesignOption:  # fmt: skip
    """The same with its design, fan-out and expected variance per row."""
    workload = regions_of(schema, ArrowRows(empty_rows(columns)), queries)
    workload = workload or default_workload(schema, 1 if method == "hiocap1" else 2)
    among = _possible(schema)
    if method not in ("auto", *among):
        raise InvalidSpec(f"analytics: method is {method[:40]!r}, must be one of auto, {', '.join(among)}")
    return choose_design(schema, epsilon, workload, n, method=method, among=among)


def _possible(schema: Schema) -> tuple[str, ...]:
    """Methods whose mechanism can be written into a document of these columns."""
    if len(schema.dimensions) == 1:
        return tuple(name for name in DOCUMENTED if not name.startswith(_SEVERAL))
    # Beyond what a grid takes, every column is asked for itself.
    return DOCUMENTED if fits_grid(schema.shape(2)) else ("sco",)
