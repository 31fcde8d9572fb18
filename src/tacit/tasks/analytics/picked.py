"""Terms of some rows, cut down to those that aggregates ask for; aggregates that ask for the same rows share them."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.tasks.analytics.terms import Terms

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Picked:
    """The terms of the rows that are asked for, their groups, and sums over these, each worked out once.

    Arrays are told apart by their identity; whoever asks holds on to them for as long.
    """

    def __init__(self, terms: Terms, rows: slice, kept: Mask | None, codes: I64 | None, groups: int) -> None:
        """Cut terms and groups of a block down to the rows that are kept; all are where it is None."""
        self._rows, self._kept, self._groups = rows, kept, groups
        self._terms = self._cut(terms.inside), self._cut(terms.variance)
        self._codes = None if codes is None else self._cut(codes[rows])
        self._sums: dict[tuple[int, int, float, int], F64] = {}
        self._powers: tuple[tuple[int, float], list[F64]] = (0, 0.0), []

    def _cut(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self._kept is None else values[self._kept]

    @cached_property
    def n(self) -> I64:
        """Rows of every group."""
        if self._codes is None:
            return np.array([len(self._terms[0])], np.int64)
        return np.bincount(self._codes, minlength=self._groups).astype(np.int64)

    @cached_property
    def _values(self) -> tuple[F64, F64, F64]:
        inside, variance = self._terms
        return inside, variance, inside**2

    def sums(self, which: int, measure: F64 | None, centre: float, k: int) -> F64:
        """Sums of terms (0), variances (1) or squared terms (2) times (measure - centre)^k, in every group."""
        key = (which, id(measure), centre, k) if k else (which, 0, 0.0, 0)
        if key not in self._sums:
            power = None if not k or measure is None else self._power(measure, centre, k)
            self._sums[key] = self._by_group(self._values[which], power)
        return self._sums[key]

    def _power(self, measure: F64, centre: float, k: int) -> F64:
        """A power of the measure; those of one measure are kept, since they are asked for one after the other."""
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
        # Not the product of BLAS: its threads wait for each other longer than such a short sum takes.
        return np.array([values.sum() if power is None else np.einsum("i,i->", values, power)])


class Picks:
    """The terms of a block of rows, cut down in every way that is asked for, once each."""

    def __init__(self, terms: Terms, rows: slice) -> None:
        """Nothing is cut yet."""
        self._terms, self._rows = terms, rows
        self._known: dict[tuple[int, int, int], Picked] = {}

    def of(self, masks: tuple[Mask | None, Mask | None], codes: I64 | None, groups: int) -> Picked:
        """Rows where both masks hold, by group."""
        key = id(masks[0]), id(masks[1]), id(codes)
        if key not in self._known:
            chosen = [mask[self._rows] for mask in masks if mask is not None]
            kept = np.logical_and.reduce(chosen) if chosen else None
            kept = None if kept is None or kept.all() else kept
            self._known[key] = Picked(self._terms, self._rows, kept, codes, groups)
        return self._known[key]
