"""Views without negative cells: Norm-Sub or rippling, in alternating rounds with the agreement of the views.

Wang's dissertation, section 6.2.4, borrows the step from PriView without writing it out. Biased; the raw tables stay.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.estimate import check_choice
from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.post.views.components import Components, Structure

NonNegative = Literal["norm_sub", "ripple"]

TAU = 1e-4
"""Cells above minus this are left alone by rippling."""

# Rippling ends in theory, but may take very long where the total is close to zero.
_TOPPLES_PER_CELL = 1000
# Rounds stop where no cell moves by more than this.
_STILL = 1e-5


def norm_sub_rows(rows: F64, total: float = 1.0) -> F64:
    """Return every row projected onto the simplex (Norm-Sub), all at once; see `project_to_simplex` for one."""
    falling = -np.sort(-rows, axis=-1)
    excess: F64 = (np.cumsum(falling, axis=-1) - total) / np.arange(1.0, falling.shape[-1] + 1)
    positive: npt.NDArray[np.int64] = (falling > excess).sum(axis=-1, keepdims=True)
    return np.clip(rows - np.take_along_axis(excess, positive - 1, axis=-1), 0, None)


@dataclass(frozen=True, eq=False)
class Rippled:
    """A table after rippling; `capped` says that Norm-Sub finished what took too many steps."""

    table: F64
    topples: int
    capped: bool = False


def ripple(table: F64, *, tau: float = TAU) -> Rippled:
    """Set cells below -tau to zero and take what that adds from their neighbours, until none is left.

    Neighbours differ in one attribute. The total stays; it ends if the total is at least -tau times the cells, which
    is checked first. The order of the cells does not matter up to tau (Qardaji, Yang and Li, SIGMOD 2014).

    >>> ripple(np.array([[-.2, .5], [.3, .4]])).table.round(6).tolist()
    [[0.0, 0.4], [0.2, 0.4]]
    """
    if not tau > 0:
        raise InvalidSpec(f"ripple: tau is {tau}, must be above 0; with 0 it need not end")
    if table.sum() < -tau * table.size:
        raise InvalidSpec("ripple: the table sums to less than nothing, so that no step could make it non-negative")
    out = table.astype(np.float64)
    degree = sum(size - 1 for size in table.shape)
    # First in, first out: a cell that is pushed below zero again waits until all others have had their turn.
    waiting = deque(map(tuple, np.argwhere(out < -tau).tolist()))
    topples = 0
    while waiting and degree:
        if topples >= _TOPPLES_PER_CELL * out.size:
            return Rippled(norm_sub_rows(out.ravel(), float(out.sum())).reshape(out.shape), topples, capped=True)
        cell = waiting.popleft()
        if out[cell] < -tau:
            topples += 1
            waiting.extend(_topple(out, cell, degree, tau))
    return Rippled(out, topples)


def _topple(out: F64, cell: tuple[int, ...], degree: int, tau: float) -> list[tuple[int, ...]]:
    """Set a cell to zero and spread its (negative) value over its neighbours; return those that are now too low."""
    share, out[cell] = out[cell] / degree, 0.0
    low: list[tuple[int, ...]] = []
    for axis, at in enumerate(cell):
        for other in range(out.shape[axis]):
            if other != at:
                neighbour = (*cell[:axis], other, *cell[axis + 1 :])
                out[neighbour] += share
                if out[neighbour] < -tau:
                    low.append(neighbour)
    return low


def _rows(tables: F64) -> F64:
    return norm_sub_rows(tables.reshape(len(tables), -1)).reshape(tables.shape)


def _rippled(tables: F64) -> F64:
    return np.stack([ripple(table).table for table in tables])


_STEPS: dict[NonNegative, Callable[[F64], F64]] = {"norm_sub": _rows, "ripple": _rippled}


def settle(
    structure: Structure, agreed: Components, weight: F64, *, method: NonNegative = "norm_sub", rounds: int = 3
) -> Components:
    """Alternate non-negativity and agreement, ending with agreement; stops early where nothing moves. Biased."""
    check_choice("marginals", "non_negative", method, get_args(NonNegative))
    for _ in range(rounds):
        check()
        before = agreed.stacked()
        after = [_STEPS[method](tables) for tables in before]
        if max(_moved(before, after), default=0.0) < _STILL:
            break
        agreed = structure.average(after, weight)
    return agreed


def _moved(before: Sequence[F64], after: Sequence[F64]) -> list[float]:
    return [float(np.abs(a - b).max(initial=0.0)) for a, b in zip(before, after, strict=True)]
