"""Planning grids of pairs (TDG, HDG): how many intervals per attribute, and the error to expect.

Fewer intervals have less noise and leave more unevenness inside. The numbers of intervals are those of J. Yang et al.,
"Answering multi-dimensional range queries under local differential privacy", VLDB 2021, section 4.6, with the noise of
the oracle that is used. The expected error, which depends on the data, is simulated on reference shapes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import ceil, log2, prod, sqrt

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.asked import AskedLevels, asked_levels
from tacit.core.compose import OneOf
from tacit.core.mechanism import Oracle
from tacit.core.patience import check
from tacit.device.families.grid import MAX_SIZE
from tacit.device.numbers.budget import Budget
from tacit.post.grids.shape import GridShape, Heights
from tacit.tasks.ranges.error import Workload
from tacit.tasks.ranges.grid_plan import grid_of
from tacit.tasks.ranges.options import Workshop, contrast_noise
from tacit.tasks.ranges.pair_grids import are_pairs, bound_attributes, cuts_of, drawn_fit

MAX_PAIRED = 8
"""The most attributes that a family of grids has."""

SINGLE_UNEVEN, PAIR_UNEVEN = 0.7, 0.03
"""How uneven data are taken to be inside intervals and inside cells: alpha_1 and alpha_2 of the paper."""

MOST_SINGLE, MOST_PAIR = 1 << 10, 1 << 8
"""The most intervals of an attribute in its own grid, and in that of a pair. All combinations of the intervals of two
attributes are a table that answers pass over hundreds of times."""

SHAPES = ("normal", "exponential", "uniform", "clusters")
"""Reference shapes: correlated normal (rho = 0.8), independent exponential and uniform, and ten points with half of
everybody on them."""

_RECORDS, _RECTANGLES, _DRAWS, _SEED = 1 << 15, 64, 4, 20210816


def single_intervals(noise: float) -> float:
    """Return the number of intervals g of one attribute that minimises g noise + (alpha_1/g)²."""
    return (2 * SINGLE_UNEVEN**2 / noise) ** (1 / 3)


def pair_intervals(noise: float) -> float:
    """Return the number of intervals g of either attribute of a pair that minimises g² noise/4 + (2 alpha_2/g)²."""
    return 2 * sqrt(PAIR_UNEVEN) / noise**0.25


@dataclass(frozen=True, eq=False)
class PairOption:
    """Grids of pairs as a way to ask for rectangles, and the error to expect."""

    method: str
    """`hdg` with grids of single attributes, `tdg` without."""
    mechanism: OneOf
    heights: tuple[Heights, ...]
    intervals: tuple[int, int]
    """The most intervals of an attribute in its own grid, and in that of a pair."""
    n: int
    errors: tuple[float, ...]
    """The root mean squared error of a rectangle on every shape of SHAPES."""

    @property
    def name(self) -> str:
        """The method and the numbers of intervals: `hdg:16x4`, or `tdg:4`."""
        single, pair = self.intervals
        return f"hdg:{single}x{pair}" if self.method == "hdg" else f"tdg:{pair}"

    @property
    def between(self) -> tuple[float, float]:
        """The least and the largest error over the shapes."""
        return min(self.errors), max(self.errors)

    @property
    def error(self) -> float:
        """The number of respondents times the largest mean squared error over the shapes."""
        return self.n * self.between[1] ** 2

    def rmse(self, n: int) -> float:
        """The largest error over the shapes; it was simulated for the number of respondents that was planned for."""
        del n
        return self.between[1]

    @property
    def report_bits(self) -> int:
        """The bits of the longest report."""
        return self.mechanism.report_bits


def pair_options(sizes: tuple[int, ...], epsilon: Budget, n: int) -> list[PairOption]:
    """Return the grids of pairs for attributes of these sizes, the best on its worst shape first."""
    if not 2 <= len(sizes) <= MAX_PAIRED or prod(sizes) > MAX_SIZE:
        return []
    workshop = Workshop(epsilon, n, Workload("ranges"), even=True)
    made = [_option(method, sizes, workshop) for method in ("hdg", "tdg")]
    return sorted((option for option in made if option is not None), key=lambda option: option.error)


def _option(method: str, sizes: tuple[int, ...], workshop: Workshop) -> PairOption | None:
    pairs = list(combinations(range(len(sizes)), 2))
    groups = len(pairs) + (len(sizes) if method == "hdg" else 0)
    each = max(1.0, workshop.n / groups)
    pair = rounded_intervals(2, workshop, each, max(sizes))
    single = max(pair, rounded_intervals(1, workshop, each, max(sizes)))
    shape = GridShape(sizes, (2,) * len(sizes))
    members = {_heights(shape, item, pair) for item in pairs}
    if method == "hdg":
        members |= {_heights(shape, (a,), single) for a in range(len(sizes))}
    heights = tuple(sorted(members, reverse=True))
    made = [workshop.level("mixed", prod(shape.nodes(item))) for item in heights]
    oracles = [oracle for oracle in made if oracle is not None]
    if len(oracles) < len(heights):
        return None
    mechanism = grid_of(shape, heights, oracles, (1,) * len(heights))
    asked = asked_levels(mechanism)
    # Where grids of pairs are as fine as the answers, the planner of unbiased grids has them.
    return published_pairs(mechanism, workshop.n) if asked is not None and are_pairs(asked) else None


def published_pairs(mechanism: OneOf, n: int) -> PairOption:
    """Return grids of pairs that are given as they are, with the error to expect."""
    asked = asked_levels(mechanism)
    assert asked is not None
    nodes = [GridShape(asked.sizes, asked.fanouts).nodes(heights) for heights in asked.heights]
    bound = bound_attributes(asked)
    single, pair = (
        max((max(item) for item, about in zip(nodes, bound, strict=True) if len(about) == count), default=0)
        for count in (1, 2)
    )
    method = "hdg" if single else "tdg"
    return PairOption(method, mechanism, asked.heights, (single, pair), n, forecast_pairs(mechanism, n))


def _heights(shape: GridShape, attributes: Sequence[int], intervals: int) -> Heights:
    """The heights of a member that divides some attributes into so many intervals at most, and leaves out others."""
    return tuple(
        max(0, ceil(log2(size / intervals))) if a in attributes else top
        for a, (size, top) in enumerate(zip(shape.sizes, shape.tops, strict=True))
    )


def rounded_intervals(axes: int, workshop: Workshop, respondents: float, most: int) -> int:
    """The nearest power of two to the best number of intervals, with the noise of the oracle for so many cells."""
    intervals = 4
    for _ in range(3):
        oracle = workshop.level("mixed", intervals**axes)
        noise = _noise(oracle, intervals**axes) / respondents
        wanted = single_intervals(noise) if axes == 1 else pair_intervals(noise)
        intervals = 2 ** min(max(1, round(log2(wanted))), max(1, ceil(log2(most))))
        intervals = min(intervals, MOST_SINGLE if axes == 1 else MOST_PAIR)
    return intervals


def _noise(oracle: Oracle | None, cells: int) -> float:
    return 1.0 if oracle is None else contrast_noise(oracle, cells)


@lru_cache(maxsize=32)
def forecast_pairs(mechanism: OneOf, n: int) -> tuple[float, ...]:
    """Return the root mean squared errors of rectangles on all SHAPES: noise, unevenness and the fit itself.

    Rectangles bind all attributes, up to three of them, and two of more; all ranges are equally likely. The draws are
    seeded, so that the same plan always has the same forecast.
    """
    asked = asked_levels(mechanism)
    assert asked is not None
    return tuple(_error(asked, reference_records(shape, asked.sizes), n) for shape in SHAPES)


def _error(asked: AskedLevels, records: I64, n: int) -> float:
    rng = np.random.default_rng(_SEED)
    low, high = some_boxes(asked.sizes, _RECTANGLES, rng)
    truth = shares_inside(records, low, high)
    tables = [_table(asked, i, records) for i in range(len(asked.heights))]
    counts = [max(1.0, n * share) for share in asked.shares]
    squares: list[float] = []
    for _ in range(_DRAWS):
        check()
        fit = drawn_fit(asked, tables, counts, float(max(2, n)), rng)
        squares.append(float(np.mean((fit.agreed.boxes(low, high) - truth) ** 2)))
    return sqrt(float(np.mean(squares)))


def _table(asked: AskedLevels, member: int, records: I64) -> F64:
    """The shares of records in the cells of a member."""
    bound = bound_attributes(asked)[member]
    cuts = [cuts_of(asked, member, a) for a in bound]
    at = tuple(np.searchsorted(cut, records[:, a], side="right") - 1 for a, cut in zip(bound, cuts, strict=True))
    shape = tuple(len(cut) - 1 for cut in cuts)
    return (np.bincount(np.ravel_multi_index(at, shape), minlength=prod(shape)) / len(records)).reshape(shape)


def shares_inside(records: I64, low: I64, high: I64) -> F64:
    """Return the shares of records inside rectangles, ends included."""
    ends = zip(low, high, strict=True)
    inside = (np.all((records >= a) & (records <= b), axis=1) for a, b in ends)
    return np.array([np.count_nonzero(one) for one in inside]) / len(records)


def some_boxes(sizes: tuple[int, ...], count: int, rng: np.random.Generator) -> tuple[I64, I64]:
    """Return random rectangles that bind all attributes, or two of more than three; ranges are equally likely."""
    low, high = np.zeros((count, len(sizes)), np.int64), np.tile(np.array(sizes) - 1, (count, 1))
    for q in range(count):
        bound = range(len(sizes)) if len(sizes) <= 3 else rng.choice(len(sizes), 2, replace=False).tolist()
        for a in bound:
            # Two different boundaries of 0 .. size, in order, are one of all ranges.
            ends = np.sort(rng.choice(sizes[a] + 1, 2, replace=False))
            low[q, a], high[q, a] = ends[0], ends[1] - 1
    return low, high


def reference_records(shape: str, sizes: tuple[int, ...]) -> I64:
    """Return made-up respondents of a shape, as indices of their answers."""
    rng = np.random.default_rng(_SEED)
    size = (_RECORDS, len(sizes))
    if shape == "normal":
        common = rng.normal(size=(_RECORDS, 1))
        unit = 0.5 + (sqrt(0.8) * common + sqrt(0.2) * rng.normal(size=size)) / 8
    elif shape == "exponential":
        unit = rng.exponential(1 / 16, size)
    else:
        unit = rng.random(size)
    if shape == "clusters":
        points = rng.random((10, len(sizes)))
        unit[: _RECORDS // 2] = points[rng.integers(0, 10, _RECORDS // 2)]
    return (np.clip(unit, 0, 1 - 1e-9) * np.array(sizes)).astype(np.int64)
