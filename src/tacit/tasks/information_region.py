"""The least and the most mutual information of the tables in a confidence region, by interior points.

The region is an ellipsoid around the raw table, cut to tables: shares that are not negative and add up to one.
Information is neither convex nor concave there. Newton steps follow the barrier of the region from several starts,
in the metric of the barrier (Nesterov and Nemirovskii, 1994, chapter 2); directions of negative curvature are turned
round.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

_STEPS = 60
_BARRIERS = (1e-2, 1e-3, 1e-4, 2e-5)
"""At the last, information is within 2e-5 times the number of cells of its local end."""
_ROUNDS = 12
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Region:
    """Tables p of a shape with (p - centre)' metric (p - centre) at most `limit`; all flat."""

    shape: tuple[int, int]
    centre: F64
    metric: F64
    limit: float

    @cached_property
    def _free(self) -> F64:
        """A basis of the changes that leave the total alone."""
        cells = len(self.centre)
        return np.linalg.svd(np.ones((1, cells)))[2][1:].T

    def distance(self, p: F64) -> float:
        """How far a table is from the centre, squared."""
        off = p - self.centre
        return float(off @ self.metric @ off)

    def inside(self, towards: F64, start: F64) -> F64:
        """The table on the way from one inside to another, at most nine tenths of the way to the edge."""
        return start + min(1.0, 0.9 * self._reach(start, towards - start)) * (towards - start)

    def best(self, start: F64, sign: float) -> F64:
        """A table inside with locally the least information (sign 1), or the most (sign -1)."""
        p = start
        for barrier in _BARRIERS:
            for _ in range(_STEPS):
                moved = self._step(p, sign, barrier)
                if moved is None:
                    break
                p = moved
        return p

    def _step(self, p: F64, sign: float, barrier: float) -> F64 | None:
        """One Newton step on information and barrier that lowers their sum; None where none does."""
        gradient, hessian = information_slopes(p, self.shape)
        wall, curved = self._wall(p)
        free = self._free
        root = np.linalg.cholesky(free.T @ curved @ free)
        whole = free.T @ (sign * hessian + barrier * curved) @ free
        white = np.linalg.solve(root, np.linalg.solve(root, whole).T)
        values, vectors = np.linalg.eigh((white + white.T) / 2)
        slope = vectors.T @ np.linalg.solve(root, free.T @ (sign * gradient + barrier * wall))
        change = -slope / np.maximum(np.abs(values), barrier)
        if -float(slope @ change) < 0.05 * barrier:
            return None
        direction = free @ np.linalg.solve(root.T, vectors @ change)
        return self._lowered(p, min(1.0, 0.9 * self._reach(p, direction)) * direction, sign, barrier)

    def _reach(self, p: F64, direction: F64) -> float:
        """How many times one may go in a direction before the region ends."""
        off = p - self.centre
        a, b = direction @ self.metric @ direction, off @ self.metric @ direction
        edge = (-b + np.sqrt(max(0.0, b * b - a * (self.distance(p) - self.limit)))) / a if a > 0 else np.inf
        falls = direction < 0
        return min(float(edge), float(np.min(-p[falls] / direction[falls], initial=np.inf)))

    def _lowered(self, p: F64, direction: F64, sign: float, barrier: float) -> F64 | None:
        """The first of ever shorter steps that lowers the sum."""
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
        """Slope and curvature of the barrier."""
        gap, pull = self.limit - self.distance(p), 2 * self.metric @ (p - self.centre)
        curved = np.diag(1 / p**2) + 2 * self.metric / gap + np.outer(pull, pull) / gap**2
        return pull / gap - 1 / p, curved

    def steepest(self, p: F64) -> F64:
        """The direction in which information is most curved, in the metric of the region."""
        root = np.linalg.cholesky(self._free.T @ self.metric @ self._free)
        hessian = self._free.T @ information_slopes(p, self.shape)[1] @ self._free
        white = np.linalg.solve(root, np.linalg.solve(root, hessian).T)
        return self._free @ np.linalg.solve(root.T, np.linalg.eigh((white + white.T) / 2)[1][:, -1])


def information(p: F64, shape: tuple[int, int]) -> float:
    """The mutual information of a flat table without empty cells."""
    table = p.reshape(shape)
    return float(np.sum(table * np.log(table / np.outer(table.sum(axis=1), table.sum(axis=0)))))


def information_slopes(p: F64, shape: tuple[int, int]) -> tuple[F64, F64]:
    """First and second derivatives of the information of a flat table; changes that add up to zero are meant."""
    table = p.reshape(shape)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    hessian = np.diag(1 / p).reshape(*shape, *shape)
    for i, row in enumerate(rows):
        hessian[i, :, i, :] -= 1 / row
    for j, column in enumerate(columns):
        hessian[:, j, :, j] -= 1 / column
    return np.log(table / np.outer(rows, columns)).ravel(), hessian.reshape(p.size, p.size)


def nearest_table(centre: F64, metric: F64) -> F64:
    """The table that is nearest to a raw one: non-negative least squares on a total of one, by active sets.

    Cells that would be negative are held at zero, and let go again where that would bring the table nearer.
    """
    held, p = np.zeros(len(centre), bool), centre
    for _ in range(4 * len(centre)):
        p, pull = _constrained(centre, metric, held)
        if p.min() < -_TINY:
            held |= p < -_TINY
            continue
        wrong = np.where(held, pull, 0.0)
        if wrong.min() >= -1e-9 * np.abs(pull).max(initial=1.0):
            break
        held[int(wrong.argmin())] = False
    p = np.maximum(p, 0)
    return p / p.sum()


def _constrained(centre: F64, metric: F64, held: npt.NDArray[np.bool_]) -> tuple[F64, F64]:
    """The nearest table with some cells at zero, and how much it pays to raise each of them."""
    free = np.flatnonzero(~held)
    inner, known = metric[np.ix_(free, free)], metric[np.ix_(free, np.flatnonzero(held))] @ centre[held]
    first, ones = centre[free] + np.linalg.solve(inner, known), np.linalg.solve(inner, np.ones(len(free)))
    shift = (1 - first.sum()) / ones.sum()
    p = np.zeros(len(centre))
    p[free] = first + shift * ones
    return p, metric @ (p - centre) - shift


def nearest_product(region: Region, start: F64) -> float:
    """The distance of a product of two margins that is near: both are fitted in turn, from those of a table."""
    table = start.reshape(region.shape)
    rows, columns, least = table.sum(axis=1), table.sum(axis=0), np.inf
    for _ in range(_ROUNDS):
        rows = _fitted(region, _spread(np.eye(len(rows)), columns[:, None]))
        columns = _fitted(region, _spread(rows[:, None], np.eye(len(columns))))
        least = min(least, region.distance(np.outer(rows, columns).ravel()))
    return least


def _spread(rows: F64, columns: F64) -> F64:
    return np.asarray(np.kron(rows, columns), np.float64)


def _fitted(region: Region, spread: F64) -> F64:
    """The margin that brings its table nearest to the centre; `spread` makes a table of a margin."""
    inner: F64 = spread.T @ region.metric @ spread
    free = np.linalg.solve(inner, spread.T @ region.metric @ region.centre)
    return nearest_table(np.asarray(free, np.float64), inner)


def starts(region: Region, nearest: F64) -> Iterator[F64]:
    """Where to look from: the nearest table, two on the way to independence, two along the most curved direction."""
    cells = len(nearest)
    middle = region.inside(np.full(cells, 1 / cells), nearest)
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


def least_and_most(region: Region, nearest: F64) -> tuple[float, float]:
    """The ends of information in a region around its nearest table: zero at least where independence is in it."""
    found = list(starts(region, nearest))
    high = max(information(region.best(start, -1.0), region.shape) for start in found)
    if nearest_product(region, nearest) <= region.limit:
        return 0.0, high
    return min(information(region.best(start, 1.0), region.shape) for start in found[:3]), high
