"""Simulate a collection about two or three ordered attributes: errors of random rectangles against the prediction."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from time import perf_counter

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Mechanism
from tacit.errors import InvalidSpec
from tacit.simulate.ranges import some_ranges
from tacit.tasks.ranges.rectangles import Rectangles, solve_rectangles


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
    last: Rectangles


def some_rectangles(sizes: tuple[int, ...], count: int, rng: np.random.Generator) -> tuple[I64, I64]:
    """Return the lowest and highest cells of random rectangles, all of them equally likely."""
    low, high = np.zeros((count, len(sizes)), np.int64), np.zeros((count, len(sizes)), np.int64)
    for i, size in enumerate(sizes):
        # Small attributes have so few ranges that all are listed, and drawn from.
        first, last = some_ranges(size, count, rng)
        picked = rng.integers(0, len(first), count) if len(first) != count else np.arange(count)
        low[:, i], high[:, i] = first[picked], last[picked] - 1
    return low, high


def simulate_rectangles(
    mechanism: Mechanism, counts: I64, *, runs: int, seed: int, sample: int = 200,
    advance: Callable[[int], None] | None = None,
) -> RectangleOutcome:  # fmt: skip
    """Simulate collections of `counts[i, j]` respondents with values i and j; three attributes have three axes."""
    n, size = int(counts.sum()), mechanism.value_count
    if counts.size != size or runs < 1 or n < 1:
        raise InvalidSpec(f"rectangles: needs at least one run and one respondent, and counts of {size} combinations")
    start, rng = perf_counter(), np.random.default_rng(seed)
    low, high = some_rectangles(counts.shape, sample, rng)
    truth = box_shares(counts / n, low, high)
    scores: list[tuple[float, float, float]] = []
    last: Rectangles | None = None  # Earlier fits are not kept: those of a large grid are large.
    for _ in range(runs):
        last = solve_rectangles(counts.shape, mechanism, mechanism.simulate_tally(counts.reshape(-1), rng))
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
