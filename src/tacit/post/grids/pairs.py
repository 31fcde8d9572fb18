"""Grids of pairs of attributes made to agree, and rectangles of any attributes from them (TDG, HDG).

Each pair of attributes has a coarse grid, and (HDG) each attribute a finer one of its own. All of them see the same
respondents, so they are made consistent and non-negative in turns; the fine grids then shape the coarse ones by
weighted update (iterative proportional fitting), and a rectangle of more than two attributes is the table of
"inside or not" per attribute with the largest entropy among those that agree with every pair.

J. Yang, T. Wang, N. Li, X. Cheng and S. Su, "Answering multi-dimensional range queries under local differential
privacy", VLDB 2021, section 4. Biased: mass is spread evenly inside the blocks that no grid divides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.patience import check
from tacit.post.frequencies.simplex import project_to_simplex

Attributes = tuple[int, ...]
"""The attributes of a grid, in rising order."""

ROUNDS = 7
"""How often grids are made non-negative and consistent in turns; the paper says that a few times suffice."""

MOST_SWEEPS = 100


@dataclass(frozen=True, eq=False)
class CutGrid:
    """Estimated shares of the cells of one grid: `bounds` are where the intervals of each of its attributes begin."""

    attributes: Attributes
    bounds: tuple[I64, ...]
    """Per attribute: the first answer of every interval, and the number of answers."""
    value: F64
    """The shares, with an axis per attribute."""
    noise: float
    """The variance of a cell of share 0: what the grid's word is worth against the others'."""

    def cuts(self, attribute: int) -> I64:
        """The bounds of one of its attributes."""
        return self.bounds[self.attributes.index(attribute)]


def covered(bounds: I64, low: I64, high: I64) -> F64:
    """Return which part of every interval lies in ranges (both ends included): a row per range."""
    inside = np.minimum(high[:, None] + 1, bounds[1:]) - np.maximum(low[:, None], bounds[:-1])
    return np.clip(inside, 0, None) / np.diff(bounds)


def agree(grids: Sequence[CutGrid], rounds: int = ROUNDS) -> list[F64]:
    """Return the tables of grids over the same respondents, non-negative and in agreement about every attribute."""
    tables = [grid.value.copy() for grid in grids]
    attributes = sorted({a for grid in grids for a in grid.attributes})
    for _ in range(rounds):
        check()
        tables = [_projected(table) for table in tables]
        for attribute in attributes:
            _agree_on(attribute, grids, tables)
    return [_projected(table) for table in tables]


def _projected(table: F64) -> F64:
    return project_to_simplex(table.reshape(-1)).reshape(table.shape)


def _agree_on(attribute: int, grids: Sequence[CutGrid], tables: list[F64]) -> None:
    """Move the tables, in place, to the best common shares of the intervals that all of them know of an attribute."""
    about = [i for i, grid in enumerate(grids) if attribute in grid.attributes]
    common = reduce(np.intersect1d, [grids[i].cuts(attribute) for i in about])
    shares = [_Shares.of(grids[i], tables[i], attribute, common) for i in about]
    # The noise of a sum grows with the cells in it.
    weights = [1 / (one.cells * grids[i].noise) for i, one in zip(about, shares, strict=True)]
    target = np.average([one.value for one in shares], axis=0, weights=weights)
    for i, one in zip(about, shares, strict=True):
        shift = np.repeat((target - one.value) / one.cells, one.merged)
        tables[i] = tables[i] + np.expand_dims(shift, [axis for axis in range(tables[i].ndim) if axis != one.axis])


@dataclass(frozen=True, eq=False)
class _Shares:
    """What one table says of the intervals of an attribute that all tables know."""

    axis: int
    value: F64
    merged: I64
    """How many of its own intervals each of them is made of."""
    cells: F64
    """How many cells of the table each of them is a sum of."""

    @classmethod
    def of(cls, grid: CutGrid, table: F64, attribute: int, common: I64) -> "_Shares":
        axis = grid.attributes.index(attribute)
        starts = np.searchsorted(grid.cuts(attribute), common[:-1])
        along = table.sum(axis=tuple(i for i in range(table.ndim) if i != axis))
        merged = np.diff(np.append(starts, table.shape[axis]))
        return cls(axis, np.add.reduceat(along, starts), merged, merged * (table.size / table.shape[axis]))


def respond(
    rows: tuple[I64, F64], columns: tuple[I64, F64], blocks: tuple[I64, I64, F64], tolerance: float
) -> F64:  # fmt: skip
    """Return the shares of all combinations of the fine intervals of two attributes, by weighted update.

    `rows` and `columns` are bounds and shares of fine intervals, `blocks` those of the coarse grid of the pair, whose
    bounds are among the fine ones. From an even start, rows, columns and blocks are rescaled in turns until the table
    changes by less than the tolerance; what is empty stays so.
    """
    tops, lefts, shares = blocks
    table = np.multiply.outer(np.diff(rows[0]), np.diff(columns[0])).astype(np.float64)
    table /= table.sum()
    starts = np.searchsorted(rows[0], tops[:-1]), np.searchsorted(columns[0], lefts[:-1])
    counts = [np.diff(np.append(at, size)) for at, size in zip(starts, table.shape, strict=True)]
    for _ in range(MOST_SWEEPS):
        check()
        before = table
        table = table * _ratio(rows[1], table.sum(axis=1))[:, None]
        table = table * _ratio(columns[1], table.sum(axis=0))
        sums = np.add.reduceat(np.add.reduceat(table, starts[0], axis=0), starts[1], axis=1)
        table = table * np.repeat(np.repeat(_ratio(shares, sums), counts[0], axis=0), counts[1], axis=1)
        if np.abs(table - before).sum() < tolerance:
            break
    return table


def _ratio(wanted: F64, found: F64) -> F64:
    """What to multiply by; nothing is left of what is not wanted, and nothing can be made of what is not there."""
    return np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)


@dataclass(frozen=True, eq=False)
class AgreedGrids:
    """Grids in agreement: shares of fine intervals per attribute, and of their combinations per pair."""

    sizes: tuple[int, ...]
    bounds: tuple[I64, ...]
    """Per attribute, the bounds of its finest intervals."""
    singles: tuple[F64, ...]
    pairs: dict[Attributes, F64]
    tolerance: float

    def boxes(self, low: I64, high: I64) -> F64:
        """Return the shares of rectangles, ends included: one row of ends per rectangle, whole attributes are free."""
        inside = [covered(cut, low[:, a], high[:, a]) for a, cut in enumerate(self.bounds)]
        bound = (low > 0) | (high < np.array(self.sizes) - 1)
        value = np.ones(len(low))
        # Rectangles that bind the same attributes are answered together.
        for which in np.unique(bound, axis=0):
            places = np.flatnonzero((bound == which).all(axis=1))
            chosen = tuple(np.flatnonzero(which).tolist())
            value[places] = self._answered(chosen, [inside[a][places] for a in chosen])
        return value

    def _answered(self, chosen: Attributes, inside: list[F64]) -> F64:
        if not chosen:
            return np.ones(1)
        alone = [part @ self.singles[a] for a, part in zip(chosen, inside, strict=True)]
        if len(chosen) == 1:
            return np.clip(alone[0], 0, 1)
        found = {
            (i, j): np.clip(np.einsum("qi,ij,qj->q", inside[i], self.pairs[chosen[i], chosen[j]], inside[j]), 0, 1)
            for i, j in combinations(range(len(chosen)), 2)
        }
        return found[0, 1] if len(chosen) == 2 else all_inside(found, alone, self.tolerance)


def all_inside(pairs: dict[tuple[int, int], F64], alone: Sequence[F64], tolerance: float) -> F64:
    """Return the share inside all attributes' ranges, from the shares inside two and inside one of them.

    The table of "inside or not" per attribute is fitted to the four combinations of every pair, from an even start:
    of all tables that agree with the pairs it has the largest entropy.
    """
    count, queries = len(alone), len(alone[0])
    table = np.full((queries, *(2,) * count), 0.5**count)
    wanted = {pair: _four(both, alone[pair[0]], alone[pair[1]]) for pair, both in pairs.items()}
    for _ in range(MOST_SWEEPS):
        check()
        before = table
        for (i, j), four in wanted.items():
            others = tuple(axis for axis in range(1, count + 1) if axis not in (i + 1, j + 1))
            ratio = _ratio(four, table.sum(axis=others))
            table = table * np.expand_dims(ratio, others)
        if np.abs(table - before).sum(axis=tuple(range(1, count + 1))).max() < tolerance:
            break
    return table[(slice(None), *(1,) * count)]


def _four(both: F64, first: F64, second: F64) -> F64:
    """The table of two attributes by query: outside and inside of the first, then of the second; never negative."""
    inside = np.clip(both, 0, 1)
    one, two = np.clip(first - inside, 0, None), np.clip(second - inside, 0, None)
    rest = np.clip(1 - inside - one - two, 0, None)
    table = np.stack([np.stack([rest, two], axis=-1), np.stack([one, inside], axis=-1)], axis=-2)
    return table / table.sum(axis=(1, 2), keepdims=True)


@dataclass(frozen=True, eq=False)
class PairFit:
    """The grids as they were told, and what they agree on."""

    sizes: tuple[int, ...]
    grids: tuple[CutGrid, ...]
    tolerance: float

    @cached_property
    def tables(self) -> list[F64]:
        """The tables of all grids in agreement, in their order."""
        return agree(self.grids)

    @cached_property
    def agreed(self) -> AgreedGrids:
        """Fine intervals and their combinations, kept."""
        return self.combined()

    def combined(self) -> AgreedGrids:
        """Fine intervals and their combinations, computed anew: whoever has many fits has no room for those of all."""
        singles, bounds = list[F64](), list[I64]()
        for a in range(len(self.sizes)):
            place = self._finest(a)
            grid = self.grids[place]
            axis = grid.attributes.index(a)
            table = self.tables[place]
            singles.append(table.sum(axis=tuple(i for i in range(table.ndim) if i != axis)))
            bounds.append(grid.cuts(a))
        pairs = {
            grid.attributes: self._combined(grid, table, bounds, singles)
            for grid, table in zip(self.grids, self.tables, strict=True)
            if len(grid.attributes) == 2
        }
        return AgreedGrids(self.sizes, tuple(bounds), tuple(singles), pairs, self.tolerance)

    def _finest(self, attribute: int) -> int:
        """The grid with the most intervals of an attribute; of its own, where it has one."""
        about = [i for i, grid in enumerate(self.grids) if attribute in grid.attributes]
        return max(about, key=lambda i: (len(self.grids[i].attributes) == 1, len(self.grids[i].cuts(attribute))))

    def _combined(self, grid: CutGrid, table: F64, bounds: list[I64], singles: list[F64]) -> F64:
        first, second = grid.attributes
        sides = (bounds[first], singles[first]), (bounds[second], singles[second])
        return respond(*sides, (grid.bounds[0], grid.bounds[1], table), self.tolerance)
