"""Plans: EXPLAIN of one query, and the choice of a design for a workload before anything is collected.

Wang's dissertation chooses by asymptotic bounds (section 7.4.4); here the exact variance of every candidate decides,
under uniform private values, which is the best that can be said before there are reports.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt
from typing import Any

import numpy as np

from tacit.arrays import F64, Mask
from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.post.grids.shape import GridShape
from tacit.sql.design.consistency import affordable
from tacit.sql.design.cover import NodeCoefficients
from tacit.sql.design.levels import METHODS, Design, make_design, whole_weights
from tacit.sql.design.levels import one_of as one_of_levels
from tacit.sql.engine.scores import Scores, expected_score_variance, score_factors
from tacit.sql.engine.terms import expected_variance, pieces_of, spread_of
from tacit.sql.schema.regions import Region

# Sums of x^0 .. x^4: the variance of a STDDEV is made of fourth powers.
_POWERS = 5
MAX_WORK = 1 << 38
"""Hashes of one query beyond which a design is not considered; that many take minutes."""
FANOUTS = (3, 4, 5, 8, 16)
_OWN_TREES = ("wavelet", "mg")
"""Methods that ignore the fan-out (wavelets are binary, MG has no tree), so that they are tried once only."""
_CONSISTENT_FANOUT = 4
"""The one fan-out at which consistency is tried: with it, errors hardly depend on the fan-out, and solving is slow."""


@dataclass(frozen=True)
class PlanStep:
    """A line of EXPLAIN: how one aggregate of one private group is answered."""

    aggregate: str
    exact: bool
    boxes: int
    nodes: int
    levels: int
    rows: int
    volume: float
    """Fraction of the combinations of private values that is asked for, averaged over rows."""
    expected_standard_error: float | None
    """Under uniform private values; None for quantiles, and for ratios whose count would be zero."""


@dataclass(frozen=True)
class QueryPlan:
    """EXPLAIN: the design that reports were collected with, and a step per aggregate."""

    method: str
    steps: tuple[PlanStep, ...]

    def to_rows(self) -> list[dict[str, Any]]:
        """Plain values for JSON."""
        return [{"mechanism": self.method} | step.__dict__ for step in self.steps]

    def to_answer(self, answer: Callable[..., Any]) -> Any:
        """The plan as a table; `answer` builds it from column names, rows and group names."""
        rows = self.to_rows()
        return answer(tuple(rows[0]) if rows else (), tuple(tuple(row.values()) for row in rows), ())


def plan_step(design: Design, name: str, function: str, weights: Mapping[Region | Scores, F64]) -> PlanStep:
    """One line of EXPLAIN: nodes and levels that are used, and the standard error expected under uniform values.

    `weights` maps every region to the sums of powers 0..4 of the measure over the rows that ask for it. For all
    functions but COUNT and SUM the measure may be shifted by any constant, which does not change their errors.
    """
    boxes = nodes = 0
    levels: set[Any] = set()
    moments, counts, rows = np.zeros(_POWERS), np.zeros(_POWERS), 0
    for region, powers in weights.items():
        counts += powers * region.volume
        rows += int(powers[0])
        if region.is_full or region.is_empty:
            continue
        boxes += len(region.boxes)
        factors = _factors(design, region)
        nodes += sum(factor.nodes for factor in factors)
        levels |= {heights for factor in factors for heights in factor.parts}
        moments += powers * _variance(design, region)
    exact = not levels
    # For AVG of a private column the scores are x - mean already, so the error is that of their sum over the count.
    ratio = function == "avg" and any(isinstance(item, Scores) for item in weights)
    error = 0.0 if exact else _expected_error("private avg" if ratio else function, counts, moments)
    return PlanStep(name, exact, boxes, nodes, len(levels), rows, float(counts[0]) / rows if rows else 0.0, error)


def _factors(design: Design, item: Region | Scores) -> list[NodeCoefficients]:
    """All linear queries (covers) that a region, or a function of private values, is answered from."""
    if isinstance(item, Region):
        return [factor for factors in pieces_of(design, item) for factor in factors]
    return score_factors(design, item)


def _variance(design: Design, item: Region | Scores) -> float:
    return expected_variance(design, item) if isinstance(item, Region) else expected_score_variance(design, item)


def powers_of(mask: Mask | None, measure: F64 | None, present: Mask | None, n: int) -> F64:
    """Sums of powers 0..4 of the measure over the rows of a mask in which it is not NULL; counts if it is None."""
    chosen = [item for item in (mask, present) if item is not None]
    kept = np.logical_and.reduce(chosen) if chosen else None
    if measure is None:
        return np.full(_POWERS, float(n if kept is None else np.count_nonzero(kept)))
    x = measure if kept is None else measure[kept]
    return np.array([float(np.sum(x**k)) for k in range(_POWERS)])


def _expected_error(function: str, counts: F64, moments: F64) -> float | None:
    """Standard error by the delta method at the expected sums; None where it cannot be told.

    `counts[k]` is the expected sum of x^k over rows inside, and `moments[k]` that of x^k v over all rows asked.
    """
    count = counts[0]
    if function == "quantile":
        return None
    if function == "private avg":
        return sqrt(max(0.0, moments[0])) / count if count > 0 else None
    if function == "count":
        return sqrt(moments[0])
    if function == "sum":
        return sqrt(moments[2])
    if count <= 0:
        return None
    mean = counts[1] / count
    if function == "avg":
        return sqrt(max(0.0, moments[2] - 2 * mean * moments[1] + mean**2 * moments[0])) / count
    spread = counts[2] / count - mean**2
    # The influence of a variance is w(x) = ((x - mean)^2 - variance)/count; convolving its coefficients squares it.
    square = np.convolve([mean**2 - spread, -2 * mean, 1.0], [mean**2 - spread, -2 * mean, 1.0])
    error = sqrt(max(0.0, float(square @ moments))) / count
    if function.startswith("var"):
        return error
    return error / (2 * sqrt(spread)) if spread > 0 else None


@dataclass(frozen=True, eq=False)
class DesignOption:
    """A candidate design, and its expected variance per row averaged over the workload."""

    design: Design
    fanout: int
    variance: float


def _work(design: Design, region: Region, n: int) -> float:
    """Expected number of hashes to answer a region: reports at every level times nodes of the cover there."""
    check()
    pieces = pieces_of(design, region)
    parts = [(h, part) for factors in pieces for factor in factors for h, part in factor.parts.items()]
    return sum(n * design.member(heights)[1] * len(part.nodes) for heights, part in parts)


def _option(design: Design, fanout: int, workload: Sequence[Region], n: int) -> DesignOption | None:
    """The candidate, or None if it cannot answer the whole workload, or not within `MAX_WORK`."""
    try:
        if any(_work(design, region, n) > MAX_WORK for region in workload):
            return None
        variances = [expected_variance(design, region) for region in workload]
    except InvalidSpec:
        return None
    return DesignOption(design, fanout, float(np.mean(variances)))


WEIGHTED = "_weighted"
PLANNED = (*METHODS, *(name + WEIGHTED for name in ("hio", "hiocap2", "quadtree", "wavelet", "wavelet2")))
"""Names of all candidates: the methods, and variants whose levels are drawn with probabilities fitted to a workload."""


def planned_design(method: str, shape: GridShape, epsilon: str, workload: Sequence[Region]) -> Design:
    """The design of a candidate's name; a name with the suffix `_weighted` is fitted to the workload."""
    if method in METHODS or not method.endswith(WEIGHTED):
        return make_design(method, shape, epsilon)
    even = make_design(method.removesuffix(WEIGHTED), shape, epsilon)
    return weighted(even, workload) if workload else even


def options(
    shapes: Sequence[tuple[int, GridShape]], epsilon: str, workload: Sequence[Region], n: int,
    methods: Sequence[str] = PLANNED,
) -> list[DesignOption]:  # fmt: skip
    """All candidates that answer the whole workload, of least variance first; InvalidSpec if there is none."""
    asked = [region for region in workload if not (region.is_full or region.is_empty)]
    found: list[DesignOption] = []
    for (fanout, shape), method in product(shapes, methods):
        check()
        if _left_out(method, fanout, shape, shapes, len(methods)):
            continue
        try:
            design = planned_design(method, shape, epsilon, asked)
        except InvalidSpec:
            # A method that was asked for by name says why it is impossible; one of many is just skipped.
            if len(methods) == 1:
                raise
            continue
        option = _option(design, fanout, asked, n) if asked else DesignOption(design, fanout, 0.0)
        if option is not None:
            found.append(option)
    if not found:
        raise InvalidSpec("analytics: no method answers the whole workload; constrain fewer private columns at once")
    return sorted(found, key=lambda option: option.variance)


def _left_out(
    method: str, fanout: int, shape: GridShape, shapes: Sequence[tuple[int, GridShape]], methods: int
) -> bool:
    """Whether to skip a method at this fan-out: it ignores fan-outs, or its least squares would take too long."""
    if method.startswith(_OWN_TREES):
        return fanout != shapes[0][0]
    other = len(shapes) > 1 and fanout != _CONSISTENT_FANOUT
    return method == "hio_consistent" and (other or (methods > 1 and not affordable(shape)))


def weighted(design: Design, workload: Sequence[Region], *, floor: float = 0.1) -> Design:
    """The same levels, drawn with probabilities that minimise the variance of a workload.

    The variance is sum_l noise_l/pi_l; under sum pi_l = 1 it is least for pi_l proportional to sqrt(noise_l). A share
    `floor` of the probability stays uniform, so that queries outside of the workload can be answered too.
    """
    if len(design.groups) != 1 or design.product:
        raise InvalidSpec(f"analytics: {design.method} does not draw one of several levels, it has no weights")
    heights = design.groups[0].heights
    noise = dict.fromkeys(heights, 0.0)
    for region in workload:
        for level, part in pieces_of(design, region)[0][0].parts.items():
            noise[level] += spread_of(design, level, part).rest
    # `rest` is the noise of respondents outside of the cover, who are most of them.
    roots = np.sqrt(np.array([noise[item] for item in heights]))
    shares = (1 - floor) * roots / max(roots.sum(), 1e-300) + floor / len(heights)
    epsilon = design.mechanism.spec()["epsilon"]
    drawn = one_of_levels(design.method + WEIGHTED, design.shape, heights, epsilon, whole_weights(shares))
    return replace(drawn, consistent=design.consistent, partition=design.partition)
