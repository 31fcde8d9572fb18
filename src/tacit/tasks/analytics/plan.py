"""Plans: which mechanism a workload should be collected with, and how a query will be answered.

The dissertation picks by orders of magnitude (section 7.4.4); here every candidate's exact variance decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidSpec
from tacit.post.grid_shape import GridShape
from tacit.tasks.analytics.levels import METHODS, Design, make_design, whole_weights
from tacit.tasks.analytics.levels import one_of as one_of_levels
from tacit.tasks.analytics.predicate import Part
from tacit.tasks.analytics.regions import Region
from tacit.tasks.analytics.terms import expected_variance, pieces_of

F64 = npt.NDArray[np.float64]
MAX_WORK = 1 << 38
"""Hashes of one query beyond which a design is not considered: minutes of work."""
FANOUTS = (3, 4, 5, 8, 16)
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


def plan_step(
    design: Design, n: int, name: str, function: str, parts: Sequence[Part], measure: F64 | None, present: Any
) -> Step:
    """Count what will be used, and expect errors from public numbers and evenly spread private values."""
    boxes = nodes = rows = 0
    levels: set[Any] = set()
    moments, volume = np.zeros(5), 0.0
    counts = np.zeros(5)
    for part in parts:
        weights = _powers(part, measure, present, n)
        counts += weights * part.region.volume
        rows += int(weights[0])
        volume += weights[0] * part.region.volume
        if part.region.is_full or part.region.is_empty:
            continue
        pieces = pieces_of(design, part.region)
        boxes += len(part.region.boxes)
        nodes += sum(factor.nodes for factors in pieces for factor in factors)
        levels |= {heights for factors in pieces for factor in factors for heights in factor.parts}
        moments += weights * expected_variance(design, part.region)
    exact = not levels
    error = 0.0 if exact else _expected_error(function, counts, moments)
    return Step(name, exact, boxes, nodes, len(levels), rows, volume / rows if rows else 0.0, error)


def _powers(part: Part, measure: F64 | None, present: Any, n: int) -> F64:
    """Sums of powers of the measure over a part's rows."""
    x = np.ones(n) if measure is None else measure
    chosen = np.ones(n, np.bool_) if part.mask is None else part.mask
    chosen = chosen if present is None else chosen & present
    x = x[chosen]
    return np.array([float(np.sum(x**k)) for k in range(5)])


def _expected_error(function: str, counts: F64, moments: F64) -> float | None:
    """The delta method at the expected sums: `counts` of x^k inside, `moments` of x^k times the variance."""
    count = counts[0]
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
PLANNED = (*METHODS, "hio" + WEIGHTED, "hiocap2" + WEIGHTED)
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
        if method == "hio_consistent" and len(shapes) > 1 and fanout != _CONSISTENT_FANOUT:
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
            noise[level] += design.noise(level, len(part.nodes)) * design.member(level)[1]
    roots = np.sqrt(np.array([noise[item] for item in heights]))
    shares = (1 - floor) * roots / max(roots.sum(), 1e-300) + floor / len(heights)
    epsilon = design.mechanism.spec()["epsilon"]
    return one_of_levels(design.method + WEIGHTED, design.shape, heights, epsilon, whole_weights(shares))
