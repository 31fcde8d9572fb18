"""Count mechanisms by linear program: the least objective under any set of properties. Not local.

Kulkarni, dissertation, sections 2.4.3, 6.3, 6.4 and 6.8. The solver (HiGHS) works in floating point and decides nothing
about privacy: its answer is made rational, mixed with just enough of the uniform mechanism that every ratio holds in
exact arithmetic, and checked again by `CountMechanism`.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.central.count import Alpha, CountMechanism, Neighbours, as_alpha, check_n
from tacit.central.objectives import Objective
from tacit.central.properties import RULES, as_properties, has_property, without_implied
from tacit.central.realise import realise
from tacit.core.extras import load
from tacit.errors import InvalidSpec

Rows = tuple[I64, I64, F64]
"""Rules (larger, smaller, factor): entry `larger` is at least factor times entry `smaller`."""

# The program has (n + 1)^2 variables; larger ones take the solver minutes.
MAX_N = 128


def design(
    n: int, alpha: Alpha, objective: Objective | str = "l0", properties: Iterable[str] = (), *, name: str = "lp"
) -> CountMechanism:
    """Return the mechanism of least objective among those with the properties. Optima need not be unique.

    No set of properties is infeasible: the uniform mechanism has them all.

    >>> best = design(8, "0.9", "l0", ["weak-honesty"])
    >>> best.holds(), round(Objective().scaled(best.matrix), 5)
    (True, 0.96169)
    """
    return _design(check_n(n), as_alpha(alpha), _objective(objective), as_properties(properties), "adjacent", name)


def design_local(items: int, alpha: Alpha, objective: Objective | str = "l0") -> CountMechanism:
    """Solve the same program with all columns as neighbours: a mechanism that IS local, for one of `items` values.

    Its L0 optimum is generalised randomised response, `grr`, which is what to use; L1 and L2 give degenerate ones
    (section 6.8). All pairs of entries of a row are kept within alpha through one variable for its least entry, so
    that the program has O(items^2) rules where the text has O(items^3).
    """
    return _design(check_n(items - 1), as_alpha(alpha), _objective(objective), as_properties([]), "all", "ldp-lp")


def _objective(objective: Objective | str) -> Objective:
    return Objective.parse(objective) if isinstance(objective, str) else objective


@lru_cache(maxsize=64)
def _design(
    n: int, alpha: Fraction, objective: Objective, properties: "frozenset[str]", neighbours: Neighbours, name: str
) -> CountMechanism:
    if n > MAX_N:
        raise InvalidSpec(
            f"design: n is {n}, must be at most {MAX_N} for a linear program; gm and em have closed forms"
        )
    solution = _Program(n, alpha, objective, properties, neighbours).solve()
    mechanism = realise(solution, alpha, name=name, neighbours=neighbours, symmetric="symmetry" in properties)
    # Rounding to fractions and mixing keep every property; what is lost here, the solver had violated.
    lost = sorted(p for p in properties if not has_property(mechanism.matrix, p))
    if lost:
        raise InvalidSpec(f"design: the solver did not keep {', '.join(lost)} at n = {n}, alpha = {float(alpha):g}")
    return mechanism


def _scipy(part: str) -> Any:
    """Import a part of scipy, an optional dependency, when a program is solved and not before."""
    return load(f"scipy.{part}")


def _sparse(entries: F64, rows: I64, columns: I64, shape: tuple[int, int]) -> Any:
    return _scipy("sparse").coo_array((entries, (rows, columns)), shape=shape).tocsr()


class _Program:
    """One linear program over the entries of a matrix; under symmetry, over one entry of each pair.

        variables   | entries of the matrix, row by row | least entry of every row | worst cost |
                    0                               extra                      extra + size

    The last two groups are used by local mechanisms and by worst-case objectives alone.
    """

    def __init__(
        self, n: int, alpha: Fraction, objective: Objective, properties: "frozenset[str]", neighbours: Neighbours
    ) -> None:
        self.size, self.alpha, self.objective, self.neighbours = n + 1, float(alpha), objective, neighbours
        self.properties = without_implied(properties)
        cells = np.arange(self.size**2)
        # Point reflection of the matrix reverses the flat index; both cells of a pair use the variable of the smaller.
        mirrored = np.minimum(cells, cells[::-1])
        self.variable = mirrored if "symmetry" in properties else cells
        self.extra = self.size**2  # Variables after the entries: least entries of rows, or the worst cost.

    def solve(self) -> F64:
        """Return the optimal matrix in floating point."""
        above = self._matrix(self._rules())
        result: Any = _scipy("optimize").linprog(
            self._costs(above.shape[1]),
            A_ub=above,
            b_ub=np.zeros(above.shape[0]),
            A_eq=self._column_sums(above.shape[1]),
            b_eq=np.ones(self.size),
            bounds=self._bounds(above.shape[1]),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.x is None:
            raise InvalidSpec(f"design: the solver found no mechanism: {result.message}")
        return result.x[self.variable].reshape(self.size, self.size)

    def _rules(self) -> list[Rows]:
        """Privacy first, then the properties that compare entries; symmetry is in the variables already."""
        privacy = self._adjacent() if self.neighbours == "adjacent" else self._all_pairs()
        named = [RULES[name](self.size - 1) for name in sorted(self.properties) if name in RULES and name != "symmetry"]
        return privacy + [(larger, smaller, np.ones(len(larger))) for larger, smaller in named]

    def _adjacent(self) -> list[Rows]:
        """Neighbouring columns are within a factor alpha of each other.

        Where rows are monotone, entries rise towards the diagonal, so that one direction of every pair is enough.
        """
        cells = np.arange(self.size**2).reshape(self.size, self.size)
        left, right = cells[:, :-1].ravel(), cells[:, 1:].ravel()
        rows, columns = np.divmod(left, self.size)
        factor = np.full(len(left), self.alpha)
        if "row-monotonicity" not in self.properties:
            return [(left, right, factor), (right, left, factor)]
        rising = columns < rows
        return [(np.where(rising, left, right), np.where(rising, right, left), factor)]

    def _all_pairs(self) -> list[Rows]:
        """Every entry lies between its row's least entry and that over alpha."""
        cells = np.arange(self.size**2)
        least = self.extra + cells // self.size
        return [(cells, least, np.ones(len(cells))), (least, cells, np.full(len(cells), self.alpha))]

    def _matrix(self, rules: list[Rows]) -> Any:
        """All rules as a sparse matrix: factor * smaller - larger <= 0, each once; then the worst cost, if wanted."""
        index = np.concatenate([self.variable, np.arange(self.extra, self.extra + self.size + 1)])
        larger, smaller, factor = (np.concatenate(parts) for parts in zip(*rules, strict=True))
        # Under symmetry two rules may become the same one; duplicates slow the solver down.
        distinct = np.unique(np.stack([index[larger], index[smaller], factor]), axis=1)
        larger, smaller, factor = distinct[0].astype(np.int64), distinct[1].astype(np.int64), distinct[2]
        row = np.arange(len(factor))
        entries = np.concatenate([factor, -np.ones(len(factor))])
        rows, columns = np.concatenate([row, row]), np.concatenate([smaller, larger])
        matrix = _sparse(entries, rows, columns, (len(row), len(index)))
        return _scipy("sparse").vstack([matrix, self._worst(len(index))]) if self.objective.worst else matrix

    def _worst(self, width: int) -> Any:
        """Rules for a worst-case objective: the cost of every true count is at most the last variable."""
        cells = np.arange(self.size**2)
        entries = np.concatenate([self.objective.costs(self.size - 1).ravel(), -np.ones(self.size)])
        rows = np.concatenate([cells % self.size, np.arange(self.size)])
        columns = np.concatenate([self.variable, np.full(self.size, width - 1)])
        return _sparse(entries, rows, columns, (self.size, width))

    def _costs(self, width: int) -> F64:
        """The objective; under symmetry a variable has the costs of both its entries, hence the add."""
        costs = np.zeros(width)
        if self.objective.worst:
            costs[-1] = 1.0
        else:
            np.add.at(costs, self.variable, self.objective.costs(self.size - 1).ravel())
        return costs

    def _column_sums(self, width: int) -> Any:
        cells = np.arange(self.size**2)
        return _sparse(np.ones(len(cells)), cells % self.size, self.variable, (self.size, width))

    def _bounds(self, width: int) -> F64:
        """Bounds of the variables: nothing is negative, and weak honesty bounds the diagonal from below."""
        low = np.zeros(width)
        if "weak-honesty" in self.properties:
            low[self.variable[:: self.size + 1]] = 1 / self.size
        return np.stack([low, np.full(width, np.inf)], axis=1)
