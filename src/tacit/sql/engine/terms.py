"""Per-respondent terms of a query: an unbiased estimate of "is inside the region", and one of its variance.

For a region and a respondent t, E z_t is 1 if t is inside and 0 if not, and E v_t = Var z_t. Then sum x_t z_t is an
unbiased estimate of the sum of a public measure x over the region, and sum x_t^2 v_t is one of its variance. Neither
depends on the measure, the public filter or the grouping, so terms are computed once per region and cached. See
docs/maths/analytics.md.

How z and v of one respondent come about, for a design of one group (each respondent drew one level l, with
probability pi_l):

    region --cover--> a = coefficients on nodes of some levels, and a constant c
    report of t at level l --(support - q)/(p - q)--> unbiased indicator W of "t is in node k", for every node k of l
    sums    = sum_k a_k   W_k / pi_l     0 for levels that t did not draw    E sums    = sum_l a(node of t at l)
    squares = sum_k a_k^2 W_k / pi_l                                         E squares = sum_l a(node of t at l)^2
    z = c + sums
    v = rest + linear * sums + square * squares                              (see `linear_terms`)

Two kinds of design differ in v alone, and the flag `alone` tells them apart:

    alone        all levels of the cover are in one group   the levels together have the mean 1[inside] - c
    not alone    one group per level, all answered (HI)     each level has a mean of its own, a(node of t)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.errors import InvalidQuery, InvalidSpec
from tacit.post.grids.shape import Heights
from tacit.sql.design.cover import FEW_BOXES, LevelCoefficients, NodeCoefficients, negated
from tacit.sql.design.levels import Design
from tacit.sql.engine.linked import Linked
from tacit.sql.patience import Check, patient
from tacit.sql.schema.regions import Region, slab


@dataclass(frozen=True, eq=False)
class Terms:
    """Parallel arrays over rows: `inside` is z, the unbiased indicator, and `variance` is v, unbiased for Var z."""

    inside: F64
    variance: F64


def constant_terms(n: int, value: float) -> Terms:
    """Terms of a region that needs no reports (all values or none): the same value for all rows, without variance."""
    return Terms(np.full(n, value), np.zeros(n))


@dataclass(frozen=True)
class Spread:
    """Second moment of one level's term as a polynomial: rest + linear a + square a^2.

    Here a is the coefficient of the node that the respondent is in, 0 if that node is not in the cover. `rest` is the
    noise of a respondent outside of the cover.
    """

    rest: float
    linear: float
    square: float


def spread_of(design: Design, heights: Heights, part: LevelCoefficients) -> Spread:
    """The second moment of a level's term, from the four moments of its oracle.

    They include the covariance of two cells, which is not zero for GRR and is for OLH.
    """
    oracle, _ = design.member(heights)
    total, squares = float(part.coefficients.sum()), float(np.sum(part.coefficients**2))
    # `of_sums` is affine in (a, a^2). Evaluated at (0, 0), (1, 0) and (0, 1) its differences are the coefficients; it
    # gives variances, so that the square of the mean, a^2, is added to make them second moments.
    rest, once, square = (oracle.moments.of_sums(total, squares, *at) for at in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)))
    return Spread(rest, once - rest, square - rest + 1)


Given = Callable[[Heights, LevelCoefficients], tuple[I64 | slice, F64, F64]]
"""Where `linear_terms` gets a level from: its rows, and for each of them `sums` and `squares` of the module docstring.

There are three: the reports, known values (exact variances), and the uniform distribution as one row (plans).
"""


def linear_terms(design: Design, n: int, coefficients: NodeCoefficients, given: Given) -> Terms:
    """Terms of n rows for one linear query.

    Within a group, Var = sum_l E2_l/pi_l - mean^2, with E2_l the second moment `Spread` of level l. If all levels are
    in one group (`alone`), the mean is 1[inside] - c. If every level is a group of its own, pi = 1, the mean of each
    is a, and the variances of the groups add up, as their reports are independent.
    """
    c = coefficients.constant
    # Levels of one group only? `places` maps a level to (group, member).
    alone = len({design.places[heights][0] for heights in coefficients.parts}) == 1
    spreads = {heights: spread_of(design, heights, part) for heights, part in coefficients.parts.items()}
    # Rows that drew a level outside of the cover keep these two values: their reports say nothing about the region.
    inside, variance = np.full(n, c), np.full(n, _rest(design, coefficients, spreads, alone=alone))
    for heights, part in coefficients.parts.items():
        rows, sums, squares = given(heights, part)
        inside[rows] += sums
        linear, square = _slopes(design, heights, spreads[heights], c, alone=alone)
        variance[rows] += linear * sums + square * squares
    return Terms(inside, variance)


def _rest(design: Design, coefficients: NodeCoefficients, spreads: dict[Heights, Spread], *, alone: bool) -> float:
    """The part of v that is the same for all rows."""
    # For an indicator, (1[in] - c)^2 = c^2 + (1 - 2c) 1[in], and 1[in] is estimated by z = c + sums. That splits into
    # c - c^2, which is subtracted here, and (1 - 2c) sums, which `_slopes` subtracts.
    c = coefficients.constant
    rest = sum(spread.rest / design.member(heights)[1] for heights, spread in spreads.items())
    return rest - (c - c * c if alone else 0.0)


def _slopes(design: Design, heights: Heights, spread: Spread, c: float, *, alone: bool) -> tuple[float, float]:
    """The factors of `sums` and `squares` in v, for one level."""
    # With one group per level the squared mean is a^2, which is estimated by `squares`: one is taken off its factor.
    share = design.member(heights)[1]
    return spread.linear / share - (1 - 2 * c if alone else 0.0), spread.square / share - (0.0 if alone else 1.0)


def level_terms(
    linked: Linked, regions: Sequence[Region], check: Check = patient
) -> Iterator[tuple[Region, slice, Terms]]:
    """Terms of many regions in one pass over the reports, for designs of one group.

    Rows are sorted by the level that they drew (see `Linked`), so a level is a contiguous slice. Levels that a cover
    does not use are filled with constants, without looking at their reports:

        rows      0 ........ a ......... b ........ c ........ n
        level     |  l0      |  l1       |  l2      |  l3      |
        cover          -         used         -         used
        yields    [constant ][ reports  ][constant ][ reports ]
    """
    design, given = linked.design, from_reports(linked, check)
    planned = [(region, *_planned(design, region, check)) for region in regions]
    # By region: all rows below this one were yielded.
    known = [0] * len(planned)
    for heights, answers in linked.answers.items():
        assert isinstance(answers.rows, slice)
        start, stop = int(answers.rows.start), int(answers.rows.stop)
        for i, (region, found, rest, slopes) in enumerate(planned):
            if heights not in found.parts:
                continue
            if known[i] < start:
                yield region, slice(known[i], start), _same_terms(start - known[i], found, rest)
            _, sums, squares = given(heights, found.parts[heights])
            linear, square = slopes[heights]
            yield region, answers.rows, Terms(found.constant + sums, rest + linear * sums + square * squares)
            known[i] = stop
    for i, (region, found, rest, _) in enumerate(planned):
        if known[i] < linked.n:
            yield region, slice(known[i], linked.n), _same_terms(linked.n - known[i], found, rest)


def _same_terms(n: int, found: NodeCoefficients, rest: float) -> Terms:
    """Terms of n respondents who drew levels that a cover does not use: they are the same for all of them."""
    return Terms(np.full(n, found.constant), np.full(n, rest))


_Planned = tuple[NodeCoefficients, float, dict[Heights, tuple[float, float]]]


def _planned(design: Design, region: Region, check: Check) -> _Planned:
    """The cover of a region, the constant part of v, and the factors of `sums` and `squares` by level (cached)."""

    def make() -> _Planned:
        check()
        found = pieces_of(design, region)[0][0]
        spreads = {heights: spread_of(design, heights, part) for heights, part in found.parts.items()}
        slopes = {h: _slopes(design, h, spread, found.constant, alone=True) for h, spread in spreads.items()}
        return found, _rest(design, found, spreads, alone=True), slopes

    return kept_for(design, "planned", region, make, lambda found: found[0].nodes)


def from_reports(linked: Linked, check: Check) -> Given:
    """`Given` of reports: unbiased estimates of the coefficients of respondents' nodes, for rows that drew a level."""

    def given(heights: Heights, part: LevelCoefficients) -> tuple[I64 | slice, F64, F64]:
        answers, share = linked.answers[heights], linked.design.member(heights)[1]
        sums, squares = answers.sums(part, check)
        return answers.rows, sums / share, squares / share

    return given


def _from_values(design: Design, values: I64) -> Given:
    """`Given` of known values: every respondent's true coefficient at every level, which makes v the exact variance."""

    def given(heights: Heights, part: LevelCoefficients) -> tuple[I64 | slice, F64, F64]:
        nodes = design.nodes_of(heights, values)
        # Binary search of every row's node among the sorted nodes of the cover; a miss has the coefficient 0.
        at = np.minimum(np.searchsorted(part.nodes, nodes), len(part.nodes) - 1)
        held = np.where(part.nodes[at] == nodes, part.coefficients[at], 0.0)
        return slice(None), held, held**2

    return given


def multiplied(factors: Sequence[Terms]) -> Terms:
    """Terms of a product of independent estimates, one per dimension (split-and-conjunction).

    Second moments of independent factors multiply. As the mean of z is 0 or 1, its square is the mean again, so that
    E z^2 = Var z + (E z)^2 is estimated by v + z.
    """
    if len(factors) == 1:
        return factors[0]
    inside = np.asarray(prod(factor.inside for factor in factors), np.float64)
    second = np.asarray(prod(factor.variance + factor.inside for factor in factors), np.float64)
    return Terms(inside, second - inside)


Pieces = list[list[NodeCoefficients]]
"""A region as a sum over boxes of products of factors; one box of one factor unless the design is a product design."""


_KEPT_REGIONS = 1 << 8
_KEPT_NODES = 1 << 14
"""Covers of more nodes are not cached: they take much memory, and less time to find again than to evaluate."""


def kept_for(design: Design, what: str, region: Any, make: Callable[[], Any], nodes: Callable[[Any], int]) -> Any:
    """Memoize `make()` in the design, by a kind of result and a region; `nodes` tells its size."""
    # Threads may compute the same value twice, which does no harm: results are equal and dict operations atomic.
    key = what, region
    found = design.kept.get(key)
    if found is None:
        found = make()
        # Simply emptied when full: covers are cheap compared with a scan, and most dashboards ask for fewer regions.
        if len(design.kept) >= _KEPT_REGIONS:
            design.kept.clear()
        if nodes(found) <= _KEPT_NODES:
            design.kept[key] = found
    return found


def pieces_of(design: Design, region: Region) -> Pieces:
    """The linear queries whose terms answer a region (cached)."""
    return kept_for(design, "pieces", region, lambda: _pieces_of(design, region), _node_count)


def _node_count(pieces: Pieces) -> int:
    return sum(factor.nodes for factors in pieces for factor in factors)


def _pieces_of(design: Design, region: Region) -> Pieces:
    if not design.product:
        return [[_linear(design, region)]]
    pieces: Pieces = []
    for box in region.boxes:
        factors = [design.covering.region(slab(region.sizes, i, box[i])) for i in region.constrained(box)]
        pieces.append([factor for factor in factors if factor is not None])
    return pieces


def _linear(design: Design, region: Region) -> NodeCoefficients:
    """The cover of a region; with a partition design, that of the complement if its expected variance is smaller.

    Ties go to whichever of the two has the smaller tuple of boxes. A condition and its negation then always use the
    same cover, and their counts add up to the total.
    """
    found = design.covering.region(region)
    if found is None:
        raise InvalidQuery(_unanswerable(design, region), code="0A000")
    rest = ~region if design.partition and len(region.boxes) <= FEW_BOXES else region
    other = design.covering.region(rest) if rest is not region and len(rest.boxes) <= FEW_BOXES else None
    if other is None:
        return found
    # Rounded, because equal variances that are added up in another order differ in their last bits.
    mine, theirs = ((round(_expected(design, c)[1], 12), r.boxes) for c, r in ((found, region), (other, rest)))
    return found if mine <= theirs else negated(other)


def _unanswerable(design: Design, region: Region) -> str:
    most = max(len(region.constrained(box)) for box in region.boxes)
    return (
        f"condition: {design.method} cannot answer conditions on {most} private columns at once; "
        "constrain fewer of them, or collect with hio, whose levels combine all"
    )


def _joined(pieces: Pieces, terms: Callable[[NodeCoefficients], Terms]) -> Terms:
    """Terms of a sum over boxes of products of factors."""
    boxes = [multiplied([terms(factor) for factor in factors]) for factors in pieces]
    if len(boxes) == 1:
        return boxes[0]
    inside = np.asarray(sum(box.inside for box in boxes), np.float64)
    # The boxes of one respondent come from the same reports and are correlated, so their variances do not add up.
    # But (E z)^2 = E z for an indicator, so that z^2 - z is unbiased for Var z whatever the correlation.
    return Terms(inside, inside**2 - inside)


def region_terms(linked: Linked, region: Region, check: Check = patient) -> Terms:
    """Terms of all rows for a region; constants, without a look at reports, for a full or an empty one."""
    if region.is_full or region.is_empty:
        return constant_terms(linked.n, float(region.is_full))
    given = from_reports(linked, check)
    return _joined(pieces_of(linked.design, region), lambda c: linear_terms(linked.design, linked.n, c, given))


def exact_terms(design: Design, values: I64, region: Region) -> Terms:
    """Terms of rows whose private values are known: true indicators and exact variances.

    A product design has exact variances for single boxes only; InvalidSpec for more.
    """
    if region.is_full or region.is_empty:
        return constant_terms(len(values), float(region.is_full))
    pieces = pieces_of(design, region)
    if len(pieces) > 1:
        raise InvalidSpec("exact variance: a product design has one for single boxes alone")
    given = _from_values(design, values)
    return _joined(pieces, lambda c: linear_terms(design, len(values), c, given))


def expected_variance(design: Design, region: Region) -> float:
    """The mean variance of a respondent's z if private values were uniform: the figure that plans compare (cached)."""
    if region.is_full or region.is_empty:
        return 0.0

    def make() -> float:
        # For product designs this sums variances over boxes as if they were independent, which is an approximation;
        # a region and its complement have the same variance, so the one of fewer boxes is taken.
        several = design.product and 1 < len(region.boxes) <= FEW_BOXES
        simpler = min(region, ~region, key=lambda item: len(item.boxes)) if several else region
        every = [[_expected(design, factor) for factor in factors] for factors in pieces_of(design, simpler)]
        return sum(prod(v + z for z, v in means) - prod(z for z, _ in means) for means in every)

    return kept_for(design, "expected", region, make, lambda _: 0)


def _expected(design: Design, coefficients: NodeCoefficients) -> tuple[float, float]:
    """Mean of z and mean of v over respondents with uniform values."""

    terms = linear_terms(design, 1, coefficients, even_values(design))
    return float(terms.inside[0]), float(terms.variance[0])


def even_values(design: Design) -> Given:
    """`Given` of the uniform distribution: the mean coefficients over all combinations of values, as a single row."""

    def given(heights: Heights, part: LevelCoefficients) -> tuple[I64 | slice, F64, F64]:
        # No BLAS dot product: for such short vectors its threads take longer to synchronise than to multiply.
        held = part.coefficients * _volumes(design, heights, part)
        return slice(None), np.array([held.sum()]), np.array([(part.coefficients * held).sum()])

    return given


def _volumes(design: Design, heights: Heights, part: LevelCoefficients) -> F64:
    """The fraction of all combinations of values that lie under every node of a part."""
    shape = design.shape
    share, rest, counts = np.ones(len(part.nodes)), part.nodes.astype(np.int64), shape.nodes(heights)
    # Take the flat index apart, last dimension first; the last node of a tree may be narrower than the others.
    for i in reversed(range(len(shape.sizes))):
        count, width = counts[i], shape.fanouts[i] ** heights[i]
        node = rest % count
        rest = rest // count
        share = share * (np.minimum((node + 1) * width, shape.sizes[i]) - node * width) / shape.sizes[i]
    return share
