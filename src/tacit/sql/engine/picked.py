"""Sums over a block of terms, memoized: aggregates that filter, group and measure alike share the work.

A block is a few ten thousand rows that fit into the CPU cache (see `source`). A SELECT of AVG, STDDEV and SUM of one
column uses the same masked terms and the same powers of the measure, each computed once here.
"""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64, Mask
from tacit.sql.engine.terms import Terms


class Picked:
    """The terms of a block after a mask, and lazily computed sums of them by group.

    Measures are recognised by `id`, as comparing arrays would cost as much as summing them. That is safe only while
    the caller keeps them alive, as `Run` does: the id of a freed array may be given to another one.
    """

    def __init__(self, terms: Terms, rows: slice, kept: Mask | None, codes: I64 | None, groups: int) -> None:
        """Apply a mask of the block's rows (None: all rows) to its terms and group codes."""
        self._rows, self._kept, self._groups = rows, kept, groups
        self._terms = self._cut(terms.inside), self._cut(terms.variance)
        self._codes = None if codes is None else self._cut(codes[rows])
        self._sums: dict[tuple[int, int, float, int], F64] = {}
        self._powers: tuple[tuple[int, float], list[F64]] = (0, 0.0), []

    def _cut(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self._kept is None else values[self._kept]

    @cached_property
    def n(self) -> I64:
        """Number of rows in every group."""
        if self._codes is None:
            return np.array([len(self._terms[0])], np.int64)
        return np.bincount(self._codes, minlength=self._groups).astype(np.int64)

    @cached_property
    def _values(self) -> tuple[F64, F64, F64]:
        inside, variance = self._terms
        return inside, variance, inside**2

    def sums(self, which: int, measure: F64 | None, centre: float, k: int) -> F64:
        """By group, the sum of z (`which` = 0), v (1) or z^2 (2) times (measure - centre)^k."""
        key = (which, id(measure), centre, k) if k else (which, 0, 0.0, 0)
        if key not in self._sums:
            power = None if not k or measure is None else self._power(measure, centre, k)
            self._sums[key] = self._by_group(self._values[which], power)
        return self._sums[key]

    def _power(self, measure: F64, centre: float, k: int) -> F64:
        """The k-th power of (measure - centre), k >= 1.

        Only the powers of the latest measure are cached, as callers go through all powers of one before the next.
        """
        if self._powers[0] != (id(measure), centre):
            cut = self._cut(measure[self._rows])
            self._powers = (id(measure), centre), [cut - centre if centre else cut]
        found = self._powers[1]
        while len(found) < k:
            found.append(found[-1] * found[0])
        return found[k - 1]

    def _by_group(self, values: F64, power: F64 | None) -> F64:
        if self._codes is not None:
            weights = values if power is None else values * power
            return np.asarray(np.bincount(self._codes, weights, self._groups), np.float64)
        # No BLAS dot product: for such short vectors its threads take longer to synchronise than to multiply.
        return np.array([values.sum() if power is None else np.einsum("i,i->", values, power)])


class Picks:
    """A block of terms, and a cache of its masked and grouped forms."""

    def __init__(self, terms: Terms, rows: slice) -> None:
        """Hold a block; masks are applied when `of` asks for them."""
        self._terms, self._rows = terms, rows
        self._known: dict[tuple[int, int, int], Picked] = {}

    def of(self, masks: tuple[Mask | None, Mask | None], codes: I64 | None, groups: int) -> Picked:
        """The rows of the block where both masks (of all rows) hold, with their groups."""
        key = id(masks[0]), id(masks[1]), id(codes)
        if key not in self._known:
            chosen = [mask[self._rows] for mask in masks if mask is not None]
            kept = np.logical_and.reduce(chosen) if chosen else None
            kept = None if kept is None or kept.all() else kept
            self._known[key] = Picked(self._terms, self._rows, kept, codes, groups)
        return self._known[key]
