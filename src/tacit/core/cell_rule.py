"""Plausibility checks of stored tallies: bounds that the cells of n reports cannot leave.

Every kind states what *one* report adds to its cells. Sums over n reports then have bounds that follow without knowing
the reports, with and without weights; numbers outside of them were damaged or forged. `tally_check` applies the rules.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64

Exact = npt.NDArray[Any]
"""Integers that cannot overflow: int64 where that is certain, Python integers elsewhere."""

LIMIT = 1 << 62
"""Sums stay below this, so that two of them can still be added in 64 bits."""

# Slack of comparisons in doubles, far above their rounding errors and far below what one report changes.
_ROUNDING = 1 + 1e-9
_HALF = 32


def largest(cells: npt.NDArray[Any]) -> int:
    """Return the largest absolute value of any cell as a Python integer, which exists for the least int64 as well."""
    return max(abs(int(cells.max())), abs(int(cells.min()))) if cells.size else 0


def exact_sums(cells: I64) -> Exact:
    """Return sums along the last axis without overflow."""
    if largest(cells) * max(1, cells.shape[-1]) < LIMIT:
        return cells.sum(axis=-1)
    # Sums of the 32-bit halves cannot overflow; they are put together in Python integers.
    high, low = cells >> _HALF, cells & ((1 << _HALF) - 1)
    return high.sum(axis=-1).astype(object) * (1 << _HALF) + low.sum(axis=-1).astype(object)


def exact_times(factor: int, numbers: I64) -> Exact:
    """Return `factor * numbers` without overflow."""
    return numbers * factor if factor * largest(numbers) < LIMIT else numbers.astype(object) * factor


@dataclass(frozen=True)
class CellRule:
    """What one report may add to the cells of a tally: never less than 0, and at most `high` to any of them.

    Cells come as a table with one line per tally, so that the members of a family are checked at once; the numbers of
    reports and totals have one entry per line. Weights are integers of either sign, so that |w| <= w^2.
    """

    least: int = 0
    """The least that one report adds to all cells together."""
    most: int | None = None
    """The most that one report adds to all cells together; None where `high` alone bounds it."""
    high: int = 1
    """The most that one report adds to one cell."""
    groups: int = 0
    """Cells come in this many groups (reports, then their bits), of which a report adds to one; 0: no groups."""
    pairs: bool = False
    """Whether a report adds to at most one of the cells 2 i and 2 i + 1."""
    unused: tuple[slice, ...] = ()
    """Cells that no report adds to."""

    def fault(self, n: I64, cells: I64) -> str:
        """Return in words why n unweighted reports cannot have these cells; "" if they can."""
        # The order matters: n and the cells are known to be in range before anything is multiplied or added.
        if n.size and (int(n.min()) < 0 or int(n.max()) >= LIMIT):
            return "the number of reports is negative or beyond 62 bits"
        if cells.size and int(cells.min()) < 0:
            return "a cell is negative"
        if np.any(cells > exact_times(self.high, n)[:, None]):
            return "a cell is larger than its reports allow"
        if any(cells[:, part].any() for part in self.unused):
            return "a cell that no report can reach is not zero"
        if self.pairs and np.any(cells[:, 0::2] + cells[:, 1::2] > n[:, None]):
            return "two cells of which a report reaches one are together larger than its reports allow"
        return self._fault_of_groups(n, cells) if self.groups else self._fault_of_sums(n, cells)

    def _fault_of_sums(self, n: I64, cells: I64) -> str:
        sums = exact_sums(cells)
        above = self.most is not None and np.any(sums > exact_times(self.most, n))
        if above or np.any(sums < exact_times(self.least, n)):
            return "the cells do not add up to what their reports give"
        return ""

    def _fault_of_groups(self, n: I64, cells: I64) -> str:
        # cells:  | reports, bit 0, bit 1, ... | reports, bit 0, ... |   one such run per group (cohort, hash function)
        table = cells.reshape(len(cells), self.groups, -1)
        if np.any(exact_sums(table[:, :, 0]) != n):
            return "the cells do not add up to what their reports give"
        return "a cell is larger than its reports allow" if np.any(table[:, :, 1:] > table[:, :, :1]) else ""

    def weighted_fault(self, n: I64, totals: tuple[I64, I64], cells: I64, cells2: I64) -> str:
        """Return why weighted cells (sums of w in `cells`, of w^2 in `cells2`) are impossible; "" if they are not.

        Squares are positive integers, so a report of weight w is checked as w^2 unweighted reports.
        """
        total, total2 = totals
        fault = self.fault(total2, cells2)
        if fault:
            return f"of the squared weights, {fault}"
        if n.size and (int(n.min()) < 0 or int(n.max()) >= LIMIT):
            return "the number of reports is negative or beyond 62 bits"
        if _beyond_squares(n, total, total2, 1) or _beyond_squares(n[:, None], cells, cells2, self.high):
            return "a sum of weights does not fit the sum of their squares"
        # Where every report adds the same to all cells together (or one to the heads of its group), so do the weights.
        heads = cells.reshape(len(cells), self.groups, -1)[:, :, 0] if self.groups else cells
        each = 1 if self.groups else self.least
        if (self.groups or self.least == self.most) and np.any(exact_sums(heads) != exact_times(each, total)):
            return "the weights of the cells do not add up to their total"
        return ""


def _beyond_squares(n: I64, sums: I64, squares: I64, high: int) -> bool:
    """Whether sums of integers w are impossible beside the sums of w^2 over at most n of them.

    |w| <= w^2 and w = w^2 modulo 2 for integers, and the square of a sum is at most n times the sum of squares.
    """
    if sums.size and int(sums.min()) == np.iinfo(np.int64).min:  # It has no absolute value.
        return True
    if np.any(np.abs(sums) > squares) or np.any((sums ^ squares) & 1):
        return True
    # Cauchy and Schwarz, in doubles with slack: both sides may exceed 64 bits.
    most = n.astype(np.float64) * squares.astype(np.float64) * (high * _ROUNDING)
    return bool(np.any(np.square(sums.astype(np.float64)) > most))
