"""Simulate a collection about several ordered attributes: errors of random rectangles against the prediction."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod, sqrt
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism
from tacit.core.members import PerMember, per_member
from tacit.core.statistics.simulated import split_counts
from tacit.errors import InvalidSpec
from tacit.simulate.ranges import some_ranges
from tacit.tasks.ranges.grid_task import MOST_RECTANGLES
from tacit.tasks.ranges.pair_grids import PairRectangles
from tacit.tasks.ranges.rectangles import Rectangles, solve_rectangles


@dataclass(frozen=True, eq=False)
class GridCrowd:
    """Simulated respondents as a sparse table: the combinations of answers that occur, and their counts."""

    sizes: tuple[int, ...]
    places: I64
    """Indices of combinations, the first attribute the most significant digit."""
    counts: I64

    @classmethod
    def of_table(cls, table: I64) -> "GridCrowd":
        """The respondents of counts with an axis per attribute."""
        places = np.flatnonzero(table)
        return cls(table.shape, places, table.reshape(-1)[places])

    @classmethod
    def of_rows(cls, rows: I64, sizes: tuple[int, ...]) -> "GridCrowd":
        """The respondents of a table with a row of answers each."""
        places, counts = np.unique(np.ravel_multi_index(tuple(rows.T), sizes), return_counts=True)
        return cls(sizes, places, counts)

    @property
    def n(self) -> int:
        """The number of respondents."""
        return int(self.counts.sum())

    @property
    def table(self) -> I64:
        """The counts of all combinations, of which there must be few enough for memory."""
        table = np.zeros(int(np.prod(self.sizes)), np.int64)
        table[self.places] = self.counts
        return table.reshape(self.sizes)

    def shares(self, low: I64, high: I64) -> F64:
        """Return the true shares of rectangles, ends included."""
        if np.prod(self.sizes, dtype=np.float64) <= MOST_RECTANGLES:
            return box_shares(self.table / self.n, low, high)
        answers = np.stack(np.unravel_index(self.places, self.sizes), axis=1)
        inside = (np.all((answers >= a) & (answers <= b), axis=1) for a, b in zip(low, high, strict=True))
        return np.array([float(self.counts[chosen].sum()) for chosen in inside]) / self.n

    def tally(self, mechanism: Mechanism, rng: np.random.Generator) -> Any:
        """Return the tally of one simulated collection."""
        if np.prod(self.sizes, dtype=np.float64) <= MOST_RECTANGLES or not isinstance(mechanism, OneOf):
            return mechanism.simulate_tally(self.table.reshape(-1), rng)
        return self._members(mechanism, rng)

    def _members(self, mechanism: OneOf, rng: np.random.Generator) -> PerMember:
        """The same for a sparse table: only the combinations that occur are stored."""
        family = mechanism.family
        shares = np.array([mechanism.probability(i) for i in range(len(family))])
        groups = split_counts(self.counts, shares / shares.sum(), rng)
        tallies: dict[int, Any] = {}
        for i in range(len(family)):
            held = np.zeros(mechanism.member(i).value_count, np.int64)
            np.add.at(held, family.view(i)(self.places), groups[:, i])
            tallies[i] = mechanism.member(i).simulate_tally(held, rng)
        return per_member(mechanism, mechanism.layout, self.n, tallies)


@dataclass(frozen=True)
class RectangleOutcome:
    """How one or more simulated collections went."""

    runs: int
    rectangles: int
    """How many rectangles were drawn; all runs answer the same ones."""
    rmse: float
    """Root mean squared error over these rectangles and all runs."""
    stated_rmse: float
    """What the standard errors of the answers say about that."""
    coverage: float
    """The share of 95 % intervals that hold the truth."""
    seconds: float
    last: Rectangles | PairRectangles


def some_rectangles(sizes: tuple[int, ...], count: int, rng: np.random.Generator) -> tuple[I64, I64]:
    """Return the lowest and highest cells of random rectangles, all of them equally likely."""
    low, high = np.zeros((count, len(sizes)), np.int64), np.zeros((count, len(sizes)), np.int64)
    for i, size in enumerate(sizes):
        # Small attributes have so few ranges that all are listed, and drawn from.
        first, last = some_ranges(size, count, rng)
        picked = rng.integers(0, len(first), count) if len(first) != count else np.arange(count)
        low[:, i], high[:, i] = first[picked], last[picked] - 1
    if len(sizes) > 3:
        # Hardly anybody is in a rectangle of many attributes: two are bound, the others are free.
        for q in range(count):
            free = rng.permutation(len(sizes))[2:]
            low[q, free], high[q, free] = 0, np.array(sizes)[free] - 1
    return low, high


def simulate_rectangles(
    mechanism: Mechanism, crowd: GridCrowd, *, runs: int, seed: int, sample: int = 200,
    advance: Callable[[int], None] | None = None,
) -> RectangleOutcome:  # fmt: skip
    """Simulate collections of these respondents; random rectangles bind all attributes, or two of more than three."""
    n, size = crowd.n, mechanism.value_count
    if prod(crowd.sizes) != size or runs < 1 or n < 1:
        raise InvalidSpec(f"rectangles: needs at least one run and one respondent, and counts of {size} combinations")
    start, rng = perf_counter(), np.random.default_rng(seed)
    low, high = some_rectangles(crowd.sizes, sample, rng)
    truth = crowd.shares(low, high)
    scores: list[tuple[float, float, float]] = []
    last: Rectangles | PairRectangles | None = None  # Earlier fits are not kept: those of a large grid are large.
    for _ in range(runs):
        last = solve_rectangles(crowd.sizes, mechanism, crowd.tally(mechanism, rng))
        found = last.rectangles(low.tolist(), high.tolist())
        down, up = found.interval(0.95)
        # The whole domain has the interval [1, 1], which rounding must not miss.
        covered = (down <= truth + 1e-12) & (truth - 1e-12 <= up)
        squares = (found.value - truth) ** 2
        scores.append((float(squares.mean()), float(found.variance.mean()), float(covered.mean())))
        if advance:
            advance(n)
    assert last is not None
    error, stated, coverage = np.mean(scores, axis=0).tolist()
    return RectangleOutcome(runs, sample, sqrt(error), sqrt(stated), coverage, perf_counter() - start, last)


def box_shares(cells: F64, low: I64, high: I64) -> F64:
    """Return the sums of cells in rectangles, ends included, from sums below every corner."""
    sums = np.pad(cells, [(1, 0)] * cells.ndim)
    # Inclusion and exclusion: a box is the sum over its corners, with a sign for every lower end.
    for axis in range(cells.ndim):
        sums = np.cumsum(sums, axis=axis)
    total = np.zeros(len(low))
    for corner in np.ndindex(*(2,) * cells.ndim):
        upper = np.array(corner, np.bool_)
        at = np.where(upper, high + 1, low)
        total += (-1.0) ** int((~upper).sum()) * sums[tuple(at.T)]
    return total
