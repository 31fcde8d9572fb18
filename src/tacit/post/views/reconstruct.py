"""Tables that no view covers, from margins that views do cover: maximum entropy, least squares, linear programming.

Maximum entropy is iterative proportional fitting from the uniform table: T *= target / margin, margin by margin, for
many tables of one shape at once; one sweep where the targets have a junction tree. Targets that contradict each other
(clipping makes them) would make it go round in circles; those are fitted by damped parallel steps, which settle between
them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.extras import load
from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.post.views.junction import tree_order
from tacit.post.views.nonneg import norm_sub_rows
from tacit.post.views.table import MAX_TABLE, Attributes, margin, spread_to, subsets

# Most sweeps of proportional fitting, and most damped steps.
SWEEPS = 200
DAMPED = 500
# A margin is met where no cell is further off than this.
VIOLATION = 1e-7
# The least share of a target's cell, instead of zero.
_FLOOR = 1e-9
# Tables whose margins are further off than this after fitting have targets that contradict each other.
_AGREE = 1e-6
# Up to these sizes damped steps are products with one dense matrix.
_MATRIX_CELLS = 1 << 11
_MATRIX_SIZE = 1 << 20


@dataclass(frozen=True, eq=False)
class Fitted:
    """Tables with the largest difference between their margins and the targets; one row per table."""

    tables: F64
    violation: F64

    @property
    def converged(self) -> npt.NDArray[np.bool_]:
        """Which tables meet their targets; the others' targets contradict each other."""
        return self.violation <= 1e-5


Targets = Sequence[tuple[Attributes, F64]]
"""Axes and the margins wanted on them, one row per table."""


def fit_entropy(shape: Sequence[int], targets: Targets, count: int = 1) -> Fitted:
    """Return the tables of maximum entropy with these margins; axes without a target stay uniform.

    >>> pair = np.array([[[.5, .1], [.1, .3]]])
    >>> fit_entropy((2, 2), [((0, 1), pair)]).tables[0].round(6).tolist()
    [[0.5, 0.1], [0.1, 0.3]]
    """
    if prod(shape) > MAX_TABLE:
        raise InvalidSpec(f"marginals: a table of {prod(shape)} cells is too large to be fitted, at most {MAX_TABLE}")
    floored = [(axes, _floored(target, len(axes))) for axes, target in targets]
    tables = np.full((count, *shape), 1 / prod(shape))
    if not floored:
        return Fitted(tables, np.zeros(count))
    order = tree_order([axes for axes, _ in floored])
    if order is not None:
        tables = _sweep(tables, [floored[i] for i in order])
    else:
        tables = _cyclic(tables, floored)
    worst = _violation(tables, floored)
    # Only tables that do not meet their targets are fitted again, from the uniform table.
    open_ = worst > _AGREE
    if open_.any():
        some = [(axes, target[open_]) for axes, target in floored]
        tables[open_] = _damped(np.full((int(open_.sum()), *shape), 1 / prod(shape)), some)
        worst = _violation(tables, floored)
    return Fitted(tables, worst)


def rake(tables: F64, targets: Targets, *, sweeps: int = 20) -> Fitted:
    """Return a stack of tables scaled to these margins, as close to the given ones as proportional fitting keeps them.

    It ends where no margin is further off than VIOLATION.

    >>> found = rake(np.array([[[.4, .1], [.1, .4]]]), [((0,), np.array([[.5, .5]])), ((1,), np.array([[.2, .8]]))])
    >>> bool(found.violation[0] < VIOLATION), found.tables.sum(axis=1).round(6).tolist()
    (True, [[0.2, 0.8]])
    """
    floored = [(axes, _floored(target, len(axes))) for axes, target in targets]
    out = _floored(tables, tables.ndim - 1)
    for _ in range(sweeps):
        out = _sweep(out, floored)
        # Most tables are there after a few sweeps.
        if float(_violation(out, floored).max(initial=0.0)) < VIOLATION:
            break
    return Fitted(out, _violation(out, floored))


def _floored(target: F64, axes: int) -> F64:
    """Targets with a tiny share instead of zeros, which multiplication could never leave where another target must."""
    lifted = np.maximum(target, _FLOOR)
    return lifted / lifted.sum(axis=tuple(range(-axes, 0)), keepdims=True)


def _margin(tables: F64, axes: Attributes) -> F64:
    return margin(tables, range(tables.ndim - 1), axes)


def _wide(values: F64, axes: Attributes, shape: Sequence[int]) -> F64:
    """Values on some axes with an axis of length 1 for every other, so that they broadcast against a table."""
    return values.reshape(len(values), *(size if axis in axes else 1 for axis, size in enumerate(shape)))


def _sweep(tables: F64, targets: Targets) -> F64:
    """One sweep of iterative proportional fitting: scale the tables to every margin in turn."""
    for axes, target in targets:
        tables = tables * _wide(target / _margin(tables, axes), axes, tables.shape[1:])
    return tables


def _cyclic(tables: F64, targets: Targets) -> F64:
    """Sweeps until all margins are met, or no table gets closer any more."""
    worst = np.full(len(tables), np.inf)
    for sweep in range(SWEEPS):
        check()
        tables = _sweep(tables, targets)
        if sweep % 4 == 0:
            before, worst = worst, _violation(tables, targets)
            # Where a few sweeps no longer halve what is violated, the targets contradict each other.
            if np.all((worst < VIOLATION) | (worst > 0.9 * before)):
                break
    return tables


def _damped(tables: F64, targets: Targets) -> F64:
    """Multiplicative steps towards all margins at once, each by its share of the way; they settle between them."""
    shape, share = tables.shape[1:], 1 / len(targets)
    step = _by_matrix(shape, targets) or partial(_by_margin, targets=targets)
    flat = tables.reshape(len(tables), -1)
    for _ in range(DAMPED):
        check()
        after = flat * np.exp(share * step(flat.reshape(-1, *shape)).reshape(flat.shape))
        after /= after.sum(axis=1, keepdims=True)
        moved, flat = float(np.abs(after - flat).max()), after
        if moved < 1e-8:
            break
    return flat.reshape(tables.shape)


def _by_margin(tables: F64, targets: Targets) -> F64:
    """The sum of log(target / margin) over the targets, margin by margin."""
    step = np.zeros_like(tables)
    for axes, target in targets:
        step += _wide(np.log(target / np.maximum(_margin(tables, axes), 1e-300)), axes, tables.shape[1:])
    return step


def _by_matrix(shape: Sequence[int], targets: Targets) -> Callable[[F64], F64] | None:
    """The same as two products with one matrix of zeros and ones, where that is small; many times faster."""
    cells, rows = prod(shape), sum(prod(target.shape[1:]) for _, target in targets)
    if cells > _MATRIX_CELLS or rows * cells > _MATRIX_SIZE:
        return None
    # Column (target, cell of its margin), row cell of the table: 1 where the table's cell counts for the margin's.
    design, start, places = np.zeros((cells, rows)), 0, np.indices(shape).reshape(len(shape), -1)
    for axes, target in targets:
        inner = np.ravel_multi_index(tuple(places[axis] for axis in axes), target.shape[1:])
        design[np.arange(cells), start + inner] = 1.0
        start += prod(target.shape[1:])
    wanted = np.log(np.concatenate([target.reshape(len(target), -1) for _, target in targets], axis=1))

    def step(tables: F64) -> F64:
        margins = tables.reshape(-1, cells) @ design
        return (wanted - np.log(np.maximum(margins, 1e-300))) @ design.T

    return step


def _violation(tables: F64, targets: Targets) -> F64:
    """Per table, the largest difference between a margin and its target."""
    worst = [np.abs(_margin(tables, axes) - target).reshape(len(tables), -1).max(axis=1) for axes, target in targets]
    return np.max(worst, axis=0)


def fit_least_squares(shape: Sequence[int], targets: Targets, count: int = 1) -> Fitted:
    """Return the tables of least norm with these margins, then Norm-Sub: interactions without a target are zero."""
    every = tuple(range(len(shape)))
    tables = np.full((count, *shape), 1 / prod(shape))
    done: set[Attributes] = {()}
    for axes, target in targets:
        for inner in subsets(axes):
            if inner not in done:
                done.add(inner)
                # The pure interaction of `inner`; axis 0 is the stack of tables.
                part = margin(target, axes, inner)
                for axis in range(1, part.ndim):
                    part = part - part.mean(axis=axis, keepdims=True)
                tables = tables + spread_to(part, inner, every, shape)
    tables = norm_sub_rows(tables.reshape(count, -1)).reshape(count, *shape)
    return Fitted(tables, _violation(tables, targets) if targets else np.zeros(count))


def fit_linear_program(shape: Sequence[int], targets: Targets, count: int = 1) -> Fitted:
    """Return non-negative tables whose margins are closest to the targets in the maximum norm. Needs scipy.

    Variables are the cells and t; minimise t subject to -t <= margin - target <= t and a total of one.
    """
    optimize = load("scipy.optimize")
    cells, every = prod(shape), tuple(range(len(shape)))
    eye = np.eye(cells).reshape(cells, *shape)
    design = [margin(eye, every, axes).reshape(cells, -1).T for axes, _ in targets]
    matrix = np.concatenate([np.zeros((0, cells)), *design])
    tables = np.zeros((count, cells))
    for row in range(count):
        wanted = np.concatenate([np.zeros(0), *(target[row].ravel() for _, target in targets)])
        off = np.ones((len(wanted), 1))
        bounds = np.block([[matrix, -off], [-matrix, -off]])
        cost = np.append(np.zeros(cells), 1.0)
        whole = np.append(np.ones(cells), 0.0)[None]
        solution = optimize.linprog(
            cost, A_ub=bounds, b_ub=np.concatenate([wanted, -wanted]), A_eq=whole, b_eq=[1.0], method="highs"
        )
        tables[row] = solution.x[:cells]  # pyright: ignore
    shaped = tables.reshape(count, *shape)
    return Fitted(shaped, _violation(shaped, targets) if targets else np.zeros(count))
