"""Maximum likelihood of a table from one report per attribute (INP-EM): the product channel, axis by axis.

Fanti, Pihur and Erlingsson (PoPETs 2016); Kulkarni's dissertation, section 4.3.4, with the uniform start 1/cells.
Stopping early is a regulariser here; stopping at once is a failure, and says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf, prod
from time import perf_counter

import numpy as np

from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.post.views.table import Attributes, along_axes, shape_of
from tacit.tasks.marginals.sources import F64, FromEach

OMEGA = 1e-5
"""The iteration stops when no cell changes by more than this."""
MOST_STEPS = 100_000
TIME_LIMIT = 60.0
"""Seconds that all tables of a request may take together."""
_USUAL_STEPS, _STEPS_BETWEEN = 10_000, 256
Step = Callable[[F64], F64]
_ONE_MATRIX = 256
"""Up to so many cells, one dense matrix product is faster than one product per axis."""


@dataclass(frozen=True, eq=False)
class MostLikely:
    """A fitted table. `moved` is false where the first step already stopped it: then it is just the uniform start."""

    table: F64
    steps: int
    moved: bool
    converged: bool = True
    """Whether it stopped by itself, and not because its steps or its time were used up."""


def expected_seconds(sizes: Sequence[int], tables: Sequence[Attributes], steps: int = _USUAL_STEPS) -> float:
    """Return how long it takes to fit tables: what a step was measured to cost on one core, times a usual number."""
    total = 0.0
    for attributes in tables:
        shape = shape_of(sizes, attributes)
        cells = prod(shape)
        total += steps * (2e-5 + 1.5e-9 * cells * (cells if cells <= _ONE_MATRIX else sum(shape)))
    return total


def fit_each(
    source: FromEach, tables: Sequence[Attributes], *, time_limit: float = TIME_LIMIT,
    advance: Callable[[int], None] | None = None,
) -> list[MostLikely]:  # fmt: skip
    """Fit several tables within a time limit in seconds; InvalidSpec names how many fit where these take longer.

    Every table has its share of the limit; one that uses it up has not converged. `advance` is told of every table.
    """
    seconds = expected_seconds(source.sizes, tables)
    if seconds > time_limit:
        fit = sum(expected_seconds(source.sizes, tables[: i + 1]) <= time_limit for i in range(len(tables)))
        fewer = f"ask for the first {fit} of them, raise" if fit else "raise"
        raise InvalidSpec(
            f"em: {len(tables)} tables take about {seconds:.3g} s, the limit is {time_limit:g} s; {fewer} the limit, "
            "or plan with another method"
        )
    found: list[MostLikely] = []
    for attributes in tables:
        found.append(most_likely(source, attributes, seconds=time_limit / len(tables)))
        if advance:
            advance(1)
    return found


def most_likely(
    source: FromEach, attributes: Attributes, *, omega: float = OMEGA, least_steps: int = 1, most: int = MOST_STEPS,
    seconds: float = inf,
) -> MostLikely:  # fmt: skip
    """Fit a table to the reported combinations by expectation-maximisation, until no cell changes by omega.

    It ends without having converged after `most` steps, or after about so many seconds.
    """
    start = perf_counter()
    shape = shape_of(source.sizes, attributes)
    seen, forward, back = source.seen(attributes), *_channel(source.matrices(attributes), prod(shape))
    table, seen = np.full(seen.size, 1 / seen.size), seen.ravel()
    for step in range(1, most + 1):
        check()
        # E and M step in one: p_j <- p_j * sum_i channel[i, j] * seen_i / (channel p)_i. It keeps the total at one.
        updated = table * back(seen / forward(table))
        change, table = float(np.abs(updated - table).max()), updated
        if change < omega and step >= least_steps:
            return MostLikely(table.reshape(shape), step, moved=step > 1)
        # Looking at the clock costs more than a step of a small table.
        if step % _STEPS_BETWEEN == 0 and perf_counter() - start > seconds:
            return MostLikely(table.reshape(shape), step, moved=True, converged=False)
    return MostLikely(table.reshape(shape), most, moved=True, converged=False)


def _channel(matrices: Sequence[F64], cells: int) -> tuple[Step, Step]:
    """Return the channel and its transpose as functions of flat tables: one matrix if small, else axis by axis."""
    if cells <= _ONE_MATRIX:
        whole = reduce(np.kron, matrices, np.ones((1, 1)))
        return whole.__matmul__, whole.T.__matmul__
    shape, back = [len(matrix) for matrix in matrices], [matrix.T for matrix in matrices]
    return (
        lambda table: along_axes(matrices, table.reshape(shape)).ravel(),
        lambda table: along_axes(back, table.reshape(shape)).ravel(),
    )
