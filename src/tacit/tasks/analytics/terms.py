"""Per-respondent terms of a query: an unbiased 0-or-1, and an unbiased estimate of its variance.

For a region and a respondent t, z_t has expectation 1 if t is inside and 0 if not, and v_t has the variance of z_t as
its expectation. Then sum x_t z_t estimates the sum of a public measure x over the region, without bias, and
sum x_t^2 v_t its variance, exactly in expectation; neither needs to be computed again for another measure, another
public filter or another grouping. See docs/maths/analytics.md.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery, InvalidSpec
from tacit.post.grid_shape import Heights
from tacit.tasks.analytics.cover import FEW_BOXES, Coefficients, Part, negated
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.linked import Linked
from tacit.tasks.analytics.patience import Check, patient
from tacit.tasks.analytics.regions import Region, slab

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Terms:
    """For every row an unbiased indicator, and an unbiased estimate of that indicator's variance."""

    inside: F64
    variance: F64


def constant_terms(n: int, value: float) -> Terms:
    """What is known: no variance."""
    return Terms(np.full(n, value), np.zeros(n))


@dataclass(frozen=True)
class Spread:
    """The second moment of one member's term is `rest + linear a + square a^2`, a the respondent's coefficient."""

    rest: float
    linear: float
    square: float


def spread_of(design: Design, heights: Heights, part: Part) -> Spread:
    """From the four moments of the oracle, which know GRR's correlated cells as well as OLH's independent ones."""
    oracle, _ = design.member(heights)
    total, squares = np.full(3, part.coefficients.sum()), np.full(3, np.sum(part.coefficients**2))
    mass, square_mass = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    found = [float(x) for x in oracle.moments.of_sums(total, squares, mass, square_mass)]
    return Spread(found[0], found[1] - found[0], found[2] - found[0] + 1)


Given = Callable[[Heights, Part], tuple[I64 | slice, F64, F64]]
"""Rows of a member, and for each the sums over nodes of a W and of a^2 W, over the member's probability."""


def linear_terms(design: Design, n: int, coefficients: Coefficients, given: Given) -> Terms:
    """Terms of a sum over nodes.

    A respondent's variance is sum_l E2_l/pi_l - (mean)^2 in every group; the mean of a lone group is the indicator
    less the known constant, and that of a group with one member is the coefficient of the respondent's node.
    """
    c = coefficients.constant
    alone = len({design.places[heights][0] for heights in coefficients.parts}) == 1
    spreads = {heights: spread_of(design, heights, part) for heights, part in coefficients.parts.items()}
    inside, variance = np.full(n, c), np.full(n, _rest(design, coefficients, spreads, alone=alone))
    for heights, part in coefficients.parts.items():
        rows, sums, squares = given(heights, part)
        inside[rows] += sums
        linear, square = _slopes(design, heights, spreads[heights], c, alone=alone)
        variance[rows] += linear * sums + square * squares
    return Terms(inside, variance)


def _rest(design: Design, coefficients: Coefficients, spreads: dict[Heights, Spread], *, alone: bool) -> float:
    """The part of a respondent's variance that does not depend on what it holds."""
    c = coefficients.constant
    rest = sum(spread.rest / design.member(heights)[1] for heights, spread in spreads.items())
    return rest - (c - c * c if alone else 0.0)


def _slopes(design: Design, heights: Heights, spread: Spread, c: float, *, alone: bool) -> tuple[float, float]:
    """How the variance goes up with a respondent's coefficient, and with its square."""
    share = design.member(heights)[1]
    return spread.linear / share - (1 - 2 * c if alone else 0.0), spread.square / share - (0.0 if alone else 1.0)


def level_terms(
    linked: Linked, regions: Sequence[Region], check: Check = patient
) -> Iterator[tuple[Region, slice, Terms]]:
    """Terms of many regions in one pass over the reports of a design with one group, a level at a time."""
    design, given = linked.design, from_reports(linked, check)
    planned = [(region, *_planned(design, region, check)) for region in regions]
    known = [0] * len(planned)  # Up to which row the terms of every region were given.
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


def _same_terms(n: int, found: Coefficients, rest: float) -> Terms:
    """Terms of respondents who answered levels that a region does not use."""
    return Terms(np.full(n, found.constant), np.full(n, rest))


_Planned = tuple[Coefficients, float, dict[Heights, tuple[float, float]]]


def _planned(design: Design, region: Region, check: Check) -> _Planned:
    """Coefficients of a region, and how variances of single respondents follow from their terms."""

    def make() -> _Planned:
        check()
        found = pieces_of(design, region)[0][0]
        spreads = {heights: spread_of(design, heights, part) for heights, part in found.parts.items()}
        slopes = {h: _slopes(design, h, spread, found.constant, alone=True) for h, spread in spreads.items()}
        return found, _rest(design, found, spreads, alone=True), slopes

    return kept_for(design, "planned", region, make, lambda found: found[0].nodes)


def from_reports(linked: Linked, check: Check) -> Given:
    """The coefficients that reports speak for, without bias."""

    def given(heights: Heights, part: Part) -> tuple[I64 | slice, F64, F64]:
        answers, share = linked.answers[heights], linked.design.member(heights)[1]
        sums, squares = answers.sums(part, check)
        return answers.rows, sums / share, squares / share

    return given


def _from_values(design: Design, values: I64) -> Given:
    """The true coefficients of respondents whose values are known, for exact variances."""

    def given(heights: Heights, part: Part) -> tuple[I64 | slice, F64, F64]:
        nodes = design.nodes_of(heights, values)
        at = np.minimum(np.searchsorted(part.nodes, nodes), len(part.nodes) - 1)
        held = np.where(part.nodes[at] == nodes, part.coefficients[at], 0.0)
        return slice(None), held, held**2

    return given


def multiplied(factors: Sequence[Terms]) -> Terms:
    """The product of independent terms: E z^2 = v + E z for an indicator, and second moments multiply."""
    if len(factors) == 1:
        return factors[0]
    inside = np.asarray(prod(factor.inside for factor in factors), np.float64)
    second = np.asarray(prod(factor.variance + factor.inside for factor in factors), np.float64)
    return Terms(inside, second - inside)


Pieces = list[list[Coefficients]]
"""Boxes, and the factors of each; one box of one factor where a region is a sum over nodes."""


_KEPT_REGIONS = 1 << 8
_KEPT_NODES = 1 << 14
"""Regions of more nodes take longer to answer than to work out again, and much room to keep."""


def kept_for(design: Design, what: str, region: Any, make: Callable[[], Any], nodes: Callable[[Any], int]) -> Any:
    """What was worked out about a region before, or is now."""
    key = what, region
    found = design.kept.get(key)
    if found is None:
        found = make()
        if len(design.kept) >= _KEPT_REGIONS:
            design.kept.clear()
        if nodes(found) <= _KEPT_NODES:
            design.kept[key] = found
    return found


def pieces_of(design: Design, region: Region) -> Pieces:
    """What to compute for a region."""
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


def _linear(design: Design, region: Region) -> Coefficients:
    """The nodes of a region; of partitions, or of the rest, whichever has the smaller variance.

    Ties go to the region whose boxes come first, so that a condition and its negation always add up to everybody.
    """
    found = design.covering.region(region)
    if found is None:
        raise InvalidQuery(_unanswerable(design, region))
    rest = ~region if design.partition and len(region.boxes) <= FEW_BOXES else region
    other = design.covering.region(rest) if rest is not region and len(rest.boxes) <= FEW_BOXES else None
    if other is None:
        return found
    mine, theirs = ((round(_expected(design, c)[1], 12), r.boxes) for c, r in ((found, region), (other, rest)))
    return found if mine <= theirs else negated(other)


def _unanswerable(design: Design, region: Region) -> str:
    most = max(len(region.constrained(box)) for box in region.boxes)
    return (
        f"condition: {design.method} cannot answer conditions on {most} private columns at once; "
        "constrain fewer of them, or collect with hio, whose levels combine all"
    )


def _joined(pieces: Pieces, terms: Callable[[Coefficients], Terms]) -> Terms:
    boxes = [multiplied([terms(factor) for factor in factors]) for factors in pieces]
    if len(boxes) == 1:
        return boxes[0]
    inside = np.asarray(sum(box.inside for box in boxes), np.float64)
    # Boxes of one respondent share reports; for an indicator, z^2 - z has the variance as its expectation.
    return Terms(inside, inside**2 - inside)


def region_terms(linked: Linked, region: Region, check: Check = patient) -> Terms:
    """Terms of all rows for a region; what is known is not estimated."""
    if region.is_full or region.is_empty:
        return constant_terms(linked.n, float(region.is_full))
    given = from_reports(linked, check)
    return _joined(pieces_of(linked.design, region), lambda c: linear_terms(linked.design, linked.n, c, given))


def exact_terms(design: Design, values: I64, region: Region) -> Terms:
    """The same for known values: true indicators and true variances (of one box, where boxes are products)."""
    if region.is_full or region.is_empty:
        return constant_terms(len(values), float(region.is_full))
    pieces = pieces_of(design, region)
    if len(pieces) > 1:
        raise InvalidSpec("exact variance: a product design has one for single boxes alone")
    given = _from_values(design, values)
    return _joined(pieces, lambda c: linear_terms(design, len(values), c, given))


def expected_variance(design: Design, region: Region) -> float:
    """The mean of a respondent's variance when private values are spread evenly; known before any report."""
    if region.is_full or region.is_empty:
        return 0.0

    def make() -> float:
        # Boxes that are products count as independent of each other, so the fewer the better.
        several = design.product and 1 < len(region.boxes) <= FEW_BOXES
        simpler = min(region, ~region, key=lambda item: len(item.boxes)) if several else region
        every = [[_expected(design, factor) for factor in factors] for factors in pieces_of(design, simpler)]
        return sum(prod(v + z for z, v in means) - prod(z for z, _ in means) for means in every)

    return kept_for(design, "expected", region, make, lambda _: 0)


def _expected(design: Design, coefficients: Coefficients) -> tuple[float, float]:
    """Mean indicator and mean variance."""

    terms = linear_terms(design, 1, coefficients, even_values(design))
    return float(terms.inside[0]), float(terms.variance[0])


def even_values(design: Design) -> Given:
    """The mean coefficients of respondents whose values are spread evenly, as if they were one row."""

    def given(heights: Heights, part: Part) -> tuple[I64 | slice, F64, F64]:
        # Not the product of BLAS: its threads wait for each other longer than such short sums take.
        held = part.coefficients * _volumes(design, heights, part)
        return slice(None), np.array([held.sum()]), np.array([(part.coefficients * held).sum()])

    return given


def _volumes(design: Design, heights: Heights, part: Part) -> F64:
    """The share of all combinations under every node of a part."""
    shape = design.shape
    share, rest = np.ones(len(part.nodes)), part.nodes.astype(np.int64)
    for i in reversed(range(len(shape.sizes))):
        count, width = shape.nodes(heights)[i], shape.fanouts[i] ** heights[i]
        node = rest % count
        rest = rest // count
        share = share * (np.minimum((node + 1) * width, shape.sizes[i]) - node * width) / shape.sizes[i]
    return share
