"""Functions of private values: what a row counts where its private values lie in a region, and nothing elsewhere.

A condition counts 1 inside. A private number counts itself, so that its sum is a sum of such terms as well. Its
coefficients are those of `telescoped`, or, where levels are read otherwise, of its steps: f = f(0) + sum_k (f(k) -
f(k - 1)) 1[x >= k], each of which is a region that the levels answer. Both are linear in f. A respondent's term z then
has the expectation f, and

    Var z = sum_l E2_l/pi_l - (f - c)^2,

in which E2 is linear in a and a^2 as for regions (see `terms`), and f^2 is another function of the same steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery
from tacit.post.grid_shape import Heights
from tacit.tasks.analytics.cover import Coefficients, Covering
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.linked import Linked
from tacit.tasks.analytics.partitions import added
from tacit.tasks.analytics.patience import Check, patient
from tacit.tasks.analytics.regions import Box, Region, slab
from tacit.tasks.analytics.telescoped import telescoped
from tacit.tasks.analytics.terms import (
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

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
MAX_STEPS = 1 << 12
"""Values of a function; each may be a region to cover."""


Steps = tuple[tuple[int, float], ...]
"""A function of an index as the places where it changes, from 0 on, and its values from there on."""


def steps_of(values: F64) -> Steps:
    """A function that is given value by value.

    >>> steps_of(np.array([3.0, 3.0, 5.0]))
    ((0, 3.0), (2, 5.0))
    """
    starts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist()]
    return tuple((start, float(values[start])) for start in starts)


@dataclass(frozen=True)
class Scores:
    """f(x) for rows inside the region, x their value in one dimension, and 0 outside."""

    region: Region
    place: int
    steps: Steps

    def __post_init__(self) -> None:
        """Refuse what would take too long to cover."""
        if len(self.steps) > MAX_STEPS:
            raise InvalidQuery(
                f"sql: a private number of {len(self.steps)} values is too fine to be summed, must have at most "
                f"{MAX_STEPS}; ask for its MEDIAN, or COUNT(*) of its ranges"
            )

    def __hash__(self) -> int:
        """Long tuples are hashed once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.region, self.place, self.steps))

    @cached_property
    def is_full(self) -> bool:
        """Whether every row counts 1, whatever it holds."""
        return self.region.is_full and all(value == 1 for _, value in self.steps)

    @cached_property
    def is_empty(self) -> bool:
        """Whether no row counts."""
        return self.region.is_empty or not any(value for _, value in self.steps)

    @property
    def values(self) -> F64:
        """The function, value by value."""
        starts, heights = zip(*self.steps, strict=True)
        return np.repeat(np.array(heights), np.diff([*starts, self.region.sizes[self.place]]))

    @property
    def squared(self) -> "Scores":
        """The square of the function."""
        return replace(self, steps=tuple((start, value * value) for start, value in self.steps))

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The boxes of the region."""
        return self.region.boxes

    @property
    def volume(self) -> float:
        """The share of all combinations in the region."""
        return self.region.volume

    def __and__(self, other: Region) -> "Scores":
        """The same inside another region too."""
        return replace(self, region=self.region & other)

    def of(self, values: I64) -> F64:
        """What rows of known indices count."""
        starts, heights = zip(*self.steps, strict=True)
        at = np.searchsorted(np.array(starts), values[:, self.place], side="right") - 1
        return np.where(self.region.holds(values), np.array(heights)[at], 0.0)


class Scored(NamedTuple):
    """Per row: an unbiased value of the function, its variance without bias, and the squared function without bias."""

    inside: F64
    variance: F64
    square: F64


def _steps(scores: Scores) -> list[tuple[float, Region]]:
    """The function as multiples of regions."""
    sizes, last = scores.region.sizes, scores.region.sizes[scores.place] - 1
    found = [(scores.steps[0][1], scores.region)] if scores.steps[0][1] else []
    for (_, before), (start, value) in pairwise(scores.steps):
        beyond = scores.region & slab(sizes, scores.place, ((start, last),))
        if value != before and not beyond.is_empty:
            found.append((value - before, beyond))
    return found


def coefficients_of(design: Design, scores: Scores, check: Check = patient) -> Coefficients:
    """Coefficients of a design whose regions are sums over nodes."""

    def make() -> Coefficients:
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


def _covered(design: Design, region: Region) -> Coefficients:
    """One region of one factor: a side of a box where boxes are products."""
    return pieces_of(design, region)[0][0]


def _linear(design: Design, n: int, scores: Scores, given: Given, check: Check) -> Scored:
    """Terms of a function that is a sum over nodes."""
    found, square = (coefficients_of(design, item, check) for item in (scores, scores.squared))
    inside, rest = np.full(n, found.constant), np.zeros(n)
    alone = len({design.places[heights][0] for heights in found.parts}) == 1
    for heights, part in found.parts.items():
        spread, share = spread_of(design, heights, part), design.member(heights)[1]
        rows, sums, squares = given(heights, part)
        inside[rows] += sums
        rest += spread.rest / share
        # The mean of a group of one member is the coefficient of the respondent's node.
        rest[rows] += spread.linear / share * sums + (spread.square / share - (0 if alone else 1)) * squares
    second = linear_terms(design, n, square, given).inside
    c = found.constant
    return Scored(inside, rest - (second - 2 * c * inside + c * c) if alone else rest, second)


def _product(design: Design, n: int, scores: Scores, given: Given, check: Check) -> Scored:
    """Terms of a function where a box is the product of its dimensions."""
    sizes = scores.region.sizes
    every: list[Scored] = []
    for box in scores.region.boxes:
        side = Scores(slab(sizes, scores.place, box[scores.place]), scores.place, scores.steps)
        others = [i for i in scores.region.constrained(box) if i != scores.place]
        covers = [pieces_of(design, slab(sizes, i, box[i]))[0][0] for i in others]
        factors = [linear_terms(design, n, cover, given) for cover in covers]
        held = [Scored(item.inside, item.variance, item.inside) for item in factors]
        every.append(_multiplied([*held, _linear(design, n, side, given, check)]))
    if len(every) == 1:
        return every[0]
    # Boxes of one respondent share reports; z^2 less an unbiased f^2 has the variance as its expectation.
    inside = np.asarray(sum(item.inside for item in every), np.float64)
    square = np.asarray(sum(item.square for item in every), np.float64)
    return Scored(inside, inside**2 - square, square)


def _multiplied(factors: Sequence[Scored]) -> Scored:
    """The product of independent terms; second moments multiply."""
    inside = np.asarray(prod(item.inside for item in factors), np.float64)
    second = np.asarray(prod(item.variance + item.square for item in factors), np.float64)
    square = np.asarray(prod(item.square for item in factors), np.float64)
    return Scored(inside, second - square, square)


def _scored(design: Design, n: int, scores: Scores, given: Given, check: Check = patient) -> Scored:
    make = _product if design.product else _linear
    return make(design, n, scores, given, check)


def score_factors(design: Design, scores: Scores) -> list[Coefficients]:
    """The coefficients that a function is answered from."""
    if not design.product:
        return [coefficients_of(design, scores)]
    sizes, place = scores.region.sizes, scores.place
    sides = [Scores(slab(sizes, place, box[place]), place, scores.steps) for box in scores.region.boxes]
    others = [
        slab(sizes, i, box[i]) for box in scores.region.boxes for i in scores.region.constrained(box) if i != place
    ]
    return [coefficients_of(design, side) for side in sides] + [_covered(design, region) for region in others]


def score_terms(linked: Linked, scores: Scores, check: Check = patient) -> Terms:
    """Terms of all rows for a function; what is known is not estimated."""
    if scores.is_full or scores.is_empty:
        return constant_terms(linked.n, float(scores.is_full))
    found = _scored(linked.design, linked.n, scores, from_reports(linked, check), check)
    return Terms(found.inside, found.variance)


def expected_score_variance(design: Design, scores: Scores) -> float:
    """The mean of a respondent's variance when private values are spread evenly."""
    if scores.is_full or scores.is_empty:
        return 0.0
    return float(_scored(design, 1, scores, even_values(design)).variance[0])
