"""The least and the most mutual information of the tables in a confidence region, by an interior-point method.

The region is an ellipsoid around the raw table, intersected with the probability simplex (non-negative shares that add
up to one). Mutual information is neither convex nor concave there, so these are local optima from several starts, not
proven global ones. Newton steps follow a logarithmic barrier

    sign * information(p)  -  barrier * (sum of log p_ij  +  log(limit - distance(p)))

with falling `barrier`, in the metric of the barrier's Hessian (Nesterov and Nemirovskii, 1994, chapter 2). Directions
of negative curvature are reflected (absolute eigenvalues), so that every step is a descent direction.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64

_STEPS = 60
_BARRIERS = (1e-2, 1e-3, 1e-4, 2e-5)
"""Barrier weights in turn. At the last, information is within 2e-5 times the number of cells of its local optimum."""
_ROUNDS = 12
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class TableRegion:
    """The tables p with (p - centre)' metric (p - centre) <= limit, as flat vectors of cells in row-major order."""

    shape: tuple[int, int]
    centre: F64
    metric: F64
    limit: float

    @cached_property
    def _free(self) -> F64:
        """An orthonormal basis, in columns, of the changes that keep the total: the null space of the row of ones."""
        cells = len(self.centre)
        return np.linalg.svd(np.ones((1, cells)))[2][1:].T

    def distance(self, p: F64) -> float:
        """Return the squared Mahalanobis distance of a table from the centre."""
        off = p - self.centre
        return float(off @ self.metric @ off)

    def inside(self, towards: F64, start: F64) -> F64:
        """Move from `start`, which is inside, towards a table: at most nine tenths of the way to the boundary."""
        return start + min(1.0, 0.9 * self._reach(start, towards - start)) * (towards - start)

    def best(self, start: F64, sign: float) -> F64:
        """Return a table inside with locally the least information (sign 1), or the most (sign -1)."""
        p = start
        for barrier in _BARRIERS:
            for _ in range(_STEPS):
                moved = self._step(p, sign, barrier)
                if moved is None:
                    break
                p = moved
        return p

    def _step(self, p: F64, sign: float, barrier: float) -> F64 | None:
        """Make one Newton step that lowers the objective; None at a stationary point, or where no step helps."""
        gradient, hessian = information_slopes(p, self.shape)
        wall, curved = self._wall(p)
        free = self._free
        # Whiten by the barrier's Hessian: in these coordinates the region looks round, so one step length fits all
        # directions, and an eigenvalue of plain `barrier` means that information itself is flat there.
        root = np.linalg.cholesky(free.T @ curved @ free)
        whole = free.T @ (sign * hessian + barrier * curved) @ free
        white = np.linalg.solve(root, np.linalg.solve(root, whole).T)
        values, vectors = np.linalg.eigh((white + white.T) / 2)
        slope = vectors.T @ np.linalg.solve(root, free.T @ (sign * gradient + barrier * wall))
        # |eigenvalue| reflects negative curvature; the floor keeps the step finite where the curvature vanishes.
        change = -slope / np.maximum(np.abs(values), barrier)
        # The Newton decrement: what the quadratic model still promises is below the accuracy of this barrier.
        if -float(slope @ change) < 0.05 * barrier:
            return None
        direction = free @ np.linalg.solve(root.T, vectors @ change)
        return self._lowered(p, min(1.0, 0.9 * self._reach(p, direction)) * direction, sign, barrier)

    def _reach(self, p: F64, direction: F64) -> float:
        """Return the largest t for which p + t * direction is still in the region."""
        # The ellipsoid's boundary is the positive root of a t^2 + 2 b t + (distance - limit) = 0; the simplex ends
        # where the first falling cell reaches zero.
        off = p - self.centre
        a, b = direction @ self.metric @ direction, off @ self.metric @ direction
        edge = (-b + np.sqrt(max(0.0, b * b - a * (self.distance(p) - self.limit)))) / a if a > 0 else np.inf
        falls = direction < 0
        return min(float(edge), float(np.min(-p[falls] / direction[falls], initial=np.inf)))

    def _lowered(self, p: F64, direction: F64, sign: float, barrier: float) -> F64 | None:
        """Backtracking line search: return the first of ever shorter steps that lowers the objective, or None."""
        now = self._sum(p, sign, barrier)
        for halving in range(20):
            moved = p + direction / 2**halving
            if self._sum(moved, sign, barrier) < now:
                return moved
        return None

    def _sum(self, p: F64, sign: float, barrier: float) -> float:
        gap = self.limit - self.distance(p)
        if gap <= 0 or p.min() <= 0:
            return np.inf
        return sign * information(p, self.shape) - barrier * (float(np.log(p).sum()) + np.log(gap))

    def _wall(self, p: F64) -> tuple[F64, F64]:
        """Return the gradient and the Hessian of the barrier -sum(log p) - log(limit - distance)."""
        gap, pull = self.limit - self.distance(p), 2 * self.metric @ (p - self.centre)
        curved = np.diag(1 / p**2) + 2 * self.metric / gap + np.outer(pull, pull) / gap**2
        return pull / gap - 1 / p, curved

    def steepest(self, p: F64) -> F64:
        """Return the direction of largest curvature of the information, in the metric of the ellipsoid."""
        root = np.linalg.cholesky(self._free.T @ self.metric @ self._free)
        hessian = self._free.T @ information_slopes(p, self.shape)[1] @ self._free
        white = np.linalg.solve(root, np.linalg.solve(root, hessian).T)
        return self._free @ np.linalg.solve(root.T, np.linalg.eigh((white + white.T) / 2)[1][:, -1])


def information(p: F64, shape: tuple[int, int]) -> float:
    """Return the mutual information of a flat table without empty cells, in nats."""
    table = p.reshape(shape)
    return float(np.sum(table * np.log(table / np.outer(table.sum(axis=1), table.sum(axis=0)))))


def information_slopes(p: F64, shape: tuple[int, int]) -> tuple[F64, F64]:
    """Return gradient and Hessian of the information of a flat table, up to constants along the all-ones direction.

    Callers project onto changes that add up to zero, so the gradient's constant -1 is left out.
    """
    table = p.reshape(shape)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    # 1/p_ij on the diagonal, less 1/p_i. between cells of a row and 1/p_.j between cells of a column.
    hessian = np.diag(1 / p).reshape(*shape, *shape)
    for i, row in enumerate(rows):
        hessian[i, :, i, :] -= 1 / row
    for j, column in enumerate(columns):
        hessian[:, j, :, j] -= 1 / column
    return np.log(table / np.outer(rows, columns)).ravel(), hessian.reshape(p.size, p.size)


def nearest_table(centre: F64, metric: F64) -> F64:
    """Project a raw table onto the simplex in the given metric: non-negative least squares by active sets.

    Cells that would be negative are held at zero, and released again where their Lagrange multiplier is negative, i.e.
    where raising them would bring the table nearer.
    """
    held, p = np.zeros(len(centre), bool), centre
    for _ in range(4 * len(centre)):
        p, pull = _constrained(centre, metric, held)
        if p.min() < -_TINY:
            held |= p < -_TINY
            continue
        # Optimal when no held cell has a negative multiplier; else release the worst one only.
        wrong = np.where(held, pull, 0.0)
        if wrong.min() >= -1e-9 * np.abs(pull).max(initial=1.0):
            break
        held[int(wrong.argmin())] = False
    p = np.maximum(p, 0)
    return p / p.sum()


def _constrained(centre: F64, metric: F64, held: npt.NDArray[np.bool_]) -> tuple[F64, F64]:
    """Return the nearest table with the held cells at zero, and the Lagrange multipliers of all cells."""
    free = np.flatnonzero(~held)
    inner, known = metric[np.ix_(free, free)], metric[np.ix_(free, np.flatnonzero(held))] @ centre[held]
    # Stationarity on the free cells: inner (p - centre) - known = shift * 1, with the shift that makes the total one.
    first, ones = centre[free] + np.linalg.solve(inner, known), np.linalg.solve(inner, np.ones(len(free)))
    shift = (1 - first.sum()) / ones.sum()
    p = np.zeros(len(centre))
    p[free] = first + shift * ones
    return p, metric @ (p - centre) - shift


def nearest_product(region: TableRegion, start: F64) -> float:
    """Return the distance of a nearby independent table: row and column margins are fitted in turn.

    Alternating least squares gives an upper bound of the least distance. It is used only to decide whether
    independence is inside the region, where a bound that is too large errs towards a positive lower end.
    """
    table = start.reshape(region.shape)
    rows, columns, least = table.sum(axis=1), table.sum(axis=0), np.inf
    # Given columns, the product is linear in the rows, and the other way round: each step is a least-squares fit.
    for _ in range(_ROUNDS):
        rows = _fitted(region, _spread(np.eye(len(rows)), columns[:, None]))
        columns = _fitted(region, _spread(rows[:, None], np.eye(len(columns))))
        least = min(least, region.distance(np.outer(rows, columns).ravel()))
    return least


def _spread(rows: F64, columns: F64) -> F64:
    return np.asarray(np.kron(rows, columns), np.float64)


def _fitted(region: TableRegion, spread: F64) -> F64:
    """Fit one margin by least squares, the other one held; the matrix `spread` makes a table of the margin."""
    inner: F64 = spread.T @ region.metric @ spread
    free = np.linalg.solve(inner, spread.T @ region.metric @ region.centre)
    return nearest_table(np.asarray(free, np.float64), inner)


def starts(region: TableRegion, nearest: F64) -> Iterator[F64]:
    """Yield starting points: the nearest table, two on the way to independence, two along the most curved direction."""
    cells = len(nearest)
    middle = region.inside(np.full(cells, 1 / cells), nearest)
    # The nearest table may have empty cells, where the barrier is infinite: start a little inside.
    p = 0.99 * nearest + 0.01 * middle
    table = p.reshape(region.shape)
    product = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel()
    yield p
    for share in (0.05, 0.3):
        yield region.inside(p + share * (product - p), p)
    direction = region.steepest(p)
    far = 1e6 * direction / np.linalg.norm(direction)
    yield region.inside(p + far, p)
    yield region.inside(p - far, p)


def least_and_most(region: TableRegion, nearest: F64) -> tuple[float, float]:
    """Return the range of the information over the region; its lower end is zero where independence is inside."""
    candidates = list(starts(region, nearest))
    high = max(information(region.best(start, -1.0), region.shape) for start in candidates)
    if nearest_product(region, nearest) <= region.limit:
        return 0.0, high
    return min(information(region.best(start, 1.0), region.shape) for start in candidates[:3]), high
