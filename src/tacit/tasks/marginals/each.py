"""Maximum likelihood of a table from one report per attribute (INP-EM): the product channel, axis by axis.

Fanti, Pihur and Erlingsson (PoPETs 2016); Kulkarni's dissertation, section 4.3.4, with the uniform start 1/cells.
Stopping early is a regulariser here; stopping at once is a failure, and says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from tacit.core.patience import check
from tacit.post.views.table import Attributes, along_axes, shape_of
from tacit.tasks.marginals.sources import F64, FromEach

OMEGA = 1e-5
"""The iteration stops when no cell changes by more than this."""
MOST_STEPS = 100_000
Step = Callable[[F64], F64]
_ONE_MATRIX = 256
"""Up to so many cells, one dense matrix product is faster than one product per axis."""


@dataclass(frozen=True, eq=False)
class MostLikely:
    """A fitted table. `moved` is false where the first step already stopped it: then it is just the uniform start."""

    table: F64
    steps: int
    moved: bool


def most_likely(
    source: FromEach, attributes: Attributes, *, omega: float = OMEGA, least_steps: int = 1, most: int = MOST_STEPS
) -> MostLikely:
    """Fit a table to the reported combinations by expectation-maximisation, until no cell changes by omega."""
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
    return MostLikely(table.reshape(shape), most, moved=True)


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
