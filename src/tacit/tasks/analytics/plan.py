"""Plans: which mechanism a workload should be collected with, and how a query will be answered.

The dissertation picks by orders of magnitude (section 7.4.4); here every candidate's exact variance decides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.post.grid_shape import GridShape
from tacit.tasks.analytics.consistency import affordable
from tacit.tasks.analytics.cover import Coefficients
from tacit.tasks.analytics.levels import METHODS, Design, make_design, whole_weights
from tacit.tasks.analytics.levels import one_of as one_of_levels
from tacit.tasks.analytics.regions import Region
from tacit.tasks.analytics.scores import Scores, expected_score_variance, score_factors
from tacit.tasks.analytics.terms import expected_variance, pieces_of, spread_of

F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_POWERS = 5
MAX_WORK = 1 << 38
"""Hashes of one query beyond which a design is not considered: minutes of work."""
FANOUTS = (3, 4, 5, 8, 16)
_OWN_TREES = ("wavelet", "mg")
"""Methods on binary trees or on none, whatever the fan-out of the others."""
_CONSISTENT_FANOUT = 4
"""With consistency the error hardly depends on the fan-out, and solving takes time."""


@dataclass(frozen=True)
class Step:
    """How one aggregate is answered."""

    aggregate: str
    exact: bool
    boxes: int
    nodes: int
    levels: int
    rows: int
    volume: float
    """Share of all private combinations that are asked for."""
    expected_standard_error: float | None
    """If private values were spread evenly; None for a ratio of nothing."""


@dataclass(frozen=True)
class Plan:
    """How a query is answered."""

    method: str
    steps: tuple[Step, ...]

    def to_rows(self) -> list[dict[str, Any]]:
        """Plain values for JSON."""
        return [{"mechanism": self.method} | step.__dict__ for step in self.steps]

    def to_answer(self, answer: Callable[..., Any]) -> Any:
        """The plan as the rows of an answer."""
        rows = self.to_rows()
        return answer(tuple(rows[0]) if rows else (), tuple(tuple(row.values()) for row in rows), ())


def plan_step(design: Design, name: str, function: str, weights: Mapping[Region | Scores, F64]) -> Step:
    """Count what will be used, and expect errors from public numbers and evenly spread private values.

    `weights` are sums of powers of the measure over the rows that are asked for every region; for all but counts and
    sums, of the measure less any constant.
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
    # What a private number differs from its mean by is in the function itself.
    ratio = function == "avg" and any(isinstance(item, Scores) for item in weights)
    error = 0.0 if exact else _expected_error("private avg" if ratio else function, counts, moments)
    return Step(name, exact, boxes, nodes, len(levels), rows, float(counts[0]) / rows if rows else 0.0, error)


def _factors(design: Design, item: Region | Scores) -> list[Coefficients]:
    """All nodes that a region, or a function of private values, is answered from."""
    if isinstance(item, Region):
        return [factor for factors in pieces_of(design, item) for factor in factors]
    return score_factors(design, item)


def _variance(design: Design, item: Region | Scores) -> float:
    return expected_variance(design, item) if isinstance(item, Region) else expected_score_variance(design, item)


def powers_of(mask: Mask | None, measure: F64 | None, present: Mask | None, n: int) -> F64:
    """Sums of powers of the measure over the rows of a mask that have one."""
    chosen = [item for item in (mask, present) if item is not None]
    kept = np.logical_and.reduce(chosen) if chosen else None
    if measure is None:
        return np.full(_POWERS, float(n if kept is None else np.count_nonzero(kept)))
    x = measure if kept is None else measure[kept]
    return np.array([float(np.sum(x**k)) for k in range(_POWERS)])


def _expected_error(function: str, counts: F64, moments: F64) -> float | None:
    """The delta method at the expected sums: `counts` of x^k inside, `moments` of x^k times the variance."""
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
    square = np.convolve([mean**2 - spread, -2 * mean, 1.0], [mean**2 - spread, -2 * mean, 1.0])
    error = sqrt(max(0.0, float(square @ moments))) / count
    if function.startswith("var"):
        return error
    return error / (2 * sqrt(spread)) if spread > 0 else None


@dataclass(frozen=True, eq=False)
class Option:
    """A way to collect, and its expected variance per row, averaged over a workload of regions."""

    design: Design
    fanout: int
    variance: float


def _work(design: Design, region: Region, n: int) -> float:
    """Hashes to answer a region."""
    check()
    pieces = pieces_of(design, region)
    parts = [(h, part) for factors in pieces for factor in factors for h, part in factor.parts.items()]
    return sum(n * design.member(heights)[1] * len(part.nodes) for heights, part in parts)


def _option(design: Design, fanout: int, workload: Sequence[Region], n: int) -> Option | None:
    try:
        if any(_work(design, region, n) > MAX_WORK for region in workload):
            return None
        variances = [expected_variance(design, region) for region in workload]
    except InvalidSpec:
        return None
    return Option(design, fanout, float(np.mean(variances)))


WEIGHTED = "_weighted"
PLANNED = (*METHODS, *(name + WEIGHTED for name in ("hio", "hiocap2", "quadtree", "wavelet", "wavelet2")))
"""What a plan compares: the methods, and those whose levels are drawn as a workload needs them."""


def planned_design(method: str, shape: GridShape, epsilon: str, workload: Sequence[Region]) -> Design:
    """A design by the name of its method, for a workload."""
    if method in METHODS or not method.endswith(WEIGHTED):
        return make_design(method, shape, epsilon)
    even = make_design(method.removesuffix(WEIGHTED), shape, epsilon)
    return weighted(even, workload) if workload else even


def options(
    shapes: Sequence[tuple[int, GridShape]], epsilon: str, workload: Sequence[Region], n: int,
    methods: Sequence[str] = PLANNED,
) -> list[Option]:  # fmt: skip
    """Every design that answers the whole workload, best first."""
    asked = [region for region in workload if not (region.is_full or region.is_empty)]
    found: list[Option] = []
    for (fanout, shape), method in product(shapes, methods):
        check()
        if _left_out(method, fanout, shape, shapes, len(methods)):
            continue
        try:
            design = planned_design(method, shape, epsilon, asked)
        except InvalidSpec:
            if len(methods) == 1:
                raise
            continue
        option = _option(design, fanout, asked, n) if asked else Option(design, fanout, 0.0)
        if option is not None:
            found.append(option)
    if not found:
        raise InvalidSpec("analytics: no method answers the whole workload; constrain fewer private columns at once")
    return sorted(found, key=lambda option: option.variance)


def _left_out(
    method: str, fanout: int, shape: GridShape, shapes: Sequence[tuple[int, GridShape]], methods: int
) -> bool:
    """Whether a method is not tried: it has its own fan-out, or takes longer to compare than others do."""
    if method.startswith(_OWN_TREES):
        return fanout != shapes[0][0]
    other = len(shapes) > 1 and fanout != _CONSISTENT_FANOUT
    return method == "hio_consistent" and (other or (methods > 1 and not affordable(shape)))


def weighted(design: Design, workload: Sequence[Region], *, floor: float = 0.1) -> Design:
    """The same levels, drawn in proportion to the root of their mean noise over a workload.

    That minimises the noise of the workload; `floor` of all draws stay even, so that other queries can be answered.
    """
    if len(design.groups) != 1 or design.product:
        raise InvalidSpec(f"analytics: {design.method} does not draw one of several levels, it has no weights")
    heights = design.groups[0].heights
    noise = dict.fromkeys(heights, 0.0)
    for region in workload:
        for level, part in pieces_of(design, region)[0][0].parts.items():
            noise[level] += spread_of(design, level, part).rest
    roots = np.sqrt(np.array([noise[item] for item in heights]))
    shares = (1 - floor) * roots / max(roots.sum(), 1e-300) + floor / len(heights)
    epsilon = design.mechanism.spec()["epsilon"]
    drawn = one_of_levels(design.method + WEIGHTED, design.shape, heights, epsilon, whole_weights(shares))
    return replace(drawn, consistent=design.consistent, partition=design.partition)
