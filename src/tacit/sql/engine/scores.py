"""Scores: terms of a function f of one private column inside a region, for SUM, AVG and quantiles of private numbers.

A region counts 1 inside; scores count f(x) inside and 0 outside. f is written as coefficients on nodes either by
`design.telescoped`, or, where a design does not have those levels, as steps: f = f(0) + sum_k (f(k) - f(k - 1))
1[x >= k], each of which is a region. Both are linear in f. A respondent's term z has E z = f, and

    Var z = sum_l E2_l/pi_l - (f - c)^2,

where E2 is linear in a and a^2 as for regions (see `terms`). f^2 is no longer f, as it was for an indicator, so that
it is estimated as another function with the same steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from tacit.arrays import F64, I64, U64
from tacit.errors import InvalidQuery
from tacit.post.grids.shape import Heights
from tacit.sql.design.cover import Covering, NodeCoefficients
from tacit.sql.design.levels import Design
from tacit.sql.design.partitions import added
from tacit.sql.design.telescoped import telescoped
from tacit.sql.engine.linked import Linked
from tacit.sql.engine.terms import (
    Given,
    Terms,
    constant_terms,
    even_values,
    from_reports,
    kept_for,
    linear_terms,
    pieces_of,
    spread_of,
)
from tacit.sql.patience import Check, patient
from tacit.sql.schema.regions import Box, Region, slab

MAX_STEPS = 1 << 12
"""Limit of the distinct steps of a function; each may be a region that has to be covered."""


Steps = tuple[tuple[int, float], ...]
"""A step function of an index: (first index, value from there on), the first of them at index 0."""


def steps_of(values: F64) -> Steps:
    """The steps of a function that is given value by value (run-length encoding).

    >>> steps_of(np.array([3.0, 3.0, 5.0]))
    ((0, 3.0), (2, 5.0))
    """
    starts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist()]
    return tuple((start, float(values[start])) for start in starts)


@dataclass(frozen=True)
class Scores:
    """f(x) for rows inside the region, x their index in dimension `place`, and 0 for rows outside."""

    region: Region
    place: int
    steps: Steps

    def __post_init__(self) -> None:
        """InvalidQuery for functions of so many steps that covering them would take too long."""
        if len(self.steps) > MAX_STEPS:
            raise InvalidQuery(
                f"sql: a private number of {len(self.steps)} values is too fine to be summed, must have at most "
                f"{MAX_STEPS}; ask for its MEDIAN, or COUNT(*) of its ranges",
                code="54001",
            )

    def __hash__(self) -> int:
        """The hash, computed once: scores are keys of caches, and their steps may be thousands."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.region, self.place, self.steps))

    @cached_property
    def is_full(self) -> bool:
        """Whether every row counts 1 whatever its private values, so that no report is needed."""
        return self.region.is_full and all(value == 1 for _, value in self.steps)

    @cached_property
    def is_empty(self) -> bool:
        """Whether every row counts 0."""
        return self.region.is_empty or not any(value for _, value in self.steps)

    @property
    def values(self) -> F64:
        """f by index, for all values of the column."""
        starts, heights = zip(*self.steps, strict=True)
        return np.repeat(np.array(heights), np.diff([*starts, self.region.sizes[self.place]]))

    @property
    def squared(self) -> "Scores":
        """The scores of f^2, which the variance needs."""
        return replace(self, steps=tuple((start, value * value) for start, value in self.steps))

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The boxes of the region."""
        return self.region.boxes

    @property
    def volume(self) -> float:
        """The fraction of all combinations that lie in the region."""
        return self.region.volume

    def __and__(self, other: Region) -> "Scores":
        """The same function, restricted to another region too."""
        return replace(self, region=self.region & other)

    def of(self, values: I64) -> F64:
        """The true scores of rows whose private indices are known."""
        starts, heights = zip(*self.steps, strict=True)
        at = np.searchsorted(np.array(starts), values[:, self.place], side="right") - 1
        return np.where(self.region.holds(values), np.array(heights)[at], 0.0)


class RowScores(NamedTuple):
    """Parallel arrays over rows: z, unbiased for f; v, unbiased for Var z; and an unbiased estimate of f^2."""

    inside: F64
    variance: F64
    square: F64


def _steps(scores: Scores) -> list[tuple[float, Region]]:
    """The function as a sum of multiples of regions: f(0) everywhere, and every jump from its index on."""
    sizes, last = scores.region.sizes, scores.region.sizes[scores.place] - 1
    found = [(scores.steps[0][1], scores.region)] if scores.steps[0][1] else []
    for (_, before), (start, value) in pairwise(scores.steps):
        beyond = scores.region & slab(sizes, scores.place, ((start, last),))
        if value != before and not beyond.is_empty:
            found.append((value - before, beyond))
    return found


def coefficients_of(design: Design, scores: Scores, check: Check = patient) -> NodeCoefficients:
    """The coefficients on nodes of a function, for designs that answer regions by sums over nodes (cached)."""

    def make() -> NodeCoefficients:
        if isinstance(design.covering, Covering):
            whole = telescoped(design.covering, scores.region, scores.place, scores.values)
            if whole is not None:
                return whole
        constant = 0.0
        parts: list[tuple[Heights, U64, F64]] = []
        for height, region in _steps(scores):
            check()
            if region.is_full:
                constant += height
                continue
            step = _covered(design, region)
            constant += height * step.constant
            parts += [(heights, part.nodes, height * part.coefficients) for heights, part in step.parts.items()]
        return added(parts, constant)

    return kept_for(design, "scores", scores, make, lambda found: found.nodes)


def _covered(design: Design, region: Region) -> NodeCoefficients:
    """The cover of a region that is one box of one factor."""
    return pieces_of(design, region)[0][0]


def _linear(design: Design, n: int, scores: Scores, given: Given, check: Check) -> RowScores:
    """Terms of a function that is a sum over nodes: the equation of the module docstring."""
    found, square = (coefficients_of(design, item, check) for item in (scores, scores.squared))
    inside, rest = np.full(n, found.constant), np.zeros(n)
    alone = len({design.places[heights][0] for heights in found.parts}) == 1
    for heights, part in found.parts.items():
        spread, share = spread_of(design, heights, part), design.member(heights)[1]
        rows, sums, squares = given(heights, part)
        inside[rows] += sums
        rest += spread.rest / share
        # With one group per level (not `alone`) the squared mean of each is a^2, estimated by `squares`.
        rest[rows] += spread.linear / share * sums + (spread.square / share - (0 if alone else 1)) * squares
    second = linear_terms(design, n, square, given).inside
    c = found.constant
    return RowScores(inside, rest - (second - 2 * c * inside + c * c) if alone else rest, second)


def _product(design: Design, n: int, scores: Scores, given: Given, check: Check) -> RowScores:
    """Terms of a function in product designs: the function along its own dimension times indicators along others."""
    sizes = scores.region.sizes
    every: list[RowScores] = []
    for box in scores.region.boxes:
        side = Scores(slab(sizes, scores.place, box[scores.place]), scores.place, scores.steps)
        others = [i for i in scores.region.constrained(box) if i != scores.place]
        covers = [pieces_of(design, slab(sizes, i, box[i]))[0][0] for i in others]
        factors = [linear_terms(design, n, cover, given) for cover in covers]
        held = [RowScores(item.inside, item.variance, item.inside) for item in factors]
        every.append(_multiplied([*held, _linear(design, n, side, given, check)]))
    if len(every) == 1:
        return every[0]
    # Boxes of one respondent come from the same reports and are correlated, so variances do not add up; but z^2 minus
    # an unbiased estimate of f^2 is unbiased for Var z in any case. Boxes are disjoint, so their f^2 do add up.
    inside = np.asarray(sum(item.inside for item in every), np.float64)
    square = np.asarray(sum(item.square for item in every), np.float64)
    return RowScores(inside, inside**2 - square, square)


def _multiplied(factors: Sequence[RowScores]) -> RowScores:
    """Terms of a product of independent factors: second moments v + f^2 multiply, and so do the squares f^2."""
    inside = np.asarray(prod(item.inside for item in factors), np.float64)
    second = np.asarray(prod(item.variance + item.square for item in factors), np.float64)
    square = np.asarray(prod(item.square for item in factors), np.float64)
    return RowScores(inside, second - square, square)


def _scored(design: Design, n: int, scores: Scores, given: Given, check: Check = patient) -> RowScores:
    make = _product if design.product else _linear
    return make(design, n, scores, given, check)


def score_factors(design: Design, scores: Scores) -> list[NodeCoefficients]:
    """All linear queries that a function is answered from, for EXPLAIN."""
    if not design.product:
        return [coefficients_of(design, scores)]
    sizes, place = scores.region.sizes, scores.place
    sides = [Scores(slab(sizes, place, box[place]), place, scores.steps) for box in scores.region.boxes]
    others = [
        slab(sizes, i, box[i]) for box in scores.region.boxes for i in scores.region.constrained(box) if i != place
    ]
    return [coefficients_of(design, side) for side in sides] + [_covered(design, region) for region in others]


def score_terms(linked: Linked, scores: Scores, check: Check = patient) -> Terms:
    """Terms of all rows for a function; constants, without a look at reports, where it is 0 or 1 everywhere."""
    if scores.is_full or scores.is_empty:
        return constant_terms(linked.n, float(scores.is_full))
    found = _scored(linked.design, linked.n, scores, from_reports(linked, check), check)
    return Terms(found.inside, found.variance)


def expected_score_variance(design: Design, scores: Scores) -> float:
    """The mean variance of a respondent's z if private values were uniform."""
    if scores.is_full or scores.is_empty:
        return 0.0
    return float(_scored(design, 1, scores, even_values(design)).variance[0])
