"""Planning a grid: fan-outs, the oracle of every member and how often it is asked, by exact expected error.

A grid is the product of one tree per attribute. A member asks for the node at one height of every tree: heights
(0, 0) are single cells, (1, 0) merges siblings of the first attribute, and so on.

In complete trees, sibling contrasts (differences between the children of a node) are the eigenvectors of the normal
equations of least squares, and all contrasts of the same depths share an eigenvalue (see `tacit.post.grids.shape`). The
expected error of a rectangle is thus a short sum over depths: its squared components in the contrasts over the
eigenvalue. Ragged trees are compared by the complete ones around them, and small ones then solved as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import gcd, prod, sqrt

import numpy as np

from tacit.arrays import F64
from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.patience import check
from tacit.device.base import Device
from tacit.device.families.grid import Grid
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec
from tacit.post.grids.grid import MOST_CELLS, MOST_RAGGED, fit_grid
from tacit.post.grids.shape import GridShape, Heights, eigenvalues
from tacit.post.grids.wide import MOST_WIDE, completed
from tacit.post.trees.levels import Level
from tacit.tasks.ranges.error import Workload
from tacit.tasks.ranges.options import Workshop, contrast_noise

FANOUTS = (2, 4)
"""The fan-outs that are compared, besides asking for single answers at once."""

_SOLVED_CELLS = 256
"""Up to so many cells the least-squares problem itself is solved for the error, ragged edges included."""
_LEAST_SHARE = 0.01
"""Members that would be asked less often than this are dropped; single cells always stay, so that all is answered."""
_RARE = 0.25
"""On large grids: members asked less often than this share of what would be even."""
_ROUNDS = 40
"""Alternating steps for the shares; the error has converged to far below 1 % after these."""


@dataclass(frozen=True, eq=False)
class GridOption:
    """One way to ask for rectangles, and how well it would do."""

    shape: GridShape
    heights: tuple[Heights, ...]
    oracles: tuple[Oracle, ...]
    shares: tuple[float, ...]
    error: float
    """n times the mean squared error of a rectangle's share, averaged over all rectangles."""

    @property
    def weights(self) -> tuple[int, ...]:
        """The shares as small integers, which are what a device draws by."""
        whole = [max(1, round(1000 * share)) for share in self.shares]
        return tuple(weight // gcd(*whole) for weight in whole)

    @property
    def name(self) -> str:
        """`flat`, or `grid:` with the fan-outs."""
        flat = not any(any(heights) for heights in self.heights)
        return "flat" if flat else "grid:" + "x".join(map(str, self.shape.fanouts))

    def rmse(self, n: int) -> float:
        """The root mean squared error of a rectangle's share with n respondents, over all rectangles."""
        return sqrt(self.error / n)

    @property
    def report_bits(self) -> int:
        """The bits that name the member, plus the longest report of any oracle."""
        return (len(self.heights) - 1).bit_length() + max(oracle.report_bits for oracle in self.oracles)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism to publish: one oracle, or one of the members of a grid."""
        if self.name == "flat":
            return self.oracles[0]
        return grid_of(self.shape, self.heights, self.oracles, self.weights)


def grid_of(
    shape: GridShape, heights: Sequence[Heights], mechanisms: Sequence[Device], weights: Sequence[int]
) -> OneOf:
    """Return the mechanism that asks each respondent for one member of a grid."""
    family = Grid(
        sizes=shape.sizes,
        fanouts=shape.fanouts,
        heights=tuple(heights),
        mechanisms=tuple(mechanisms),
        weights=tuple(weights),
    )
    return OneOf(family=family)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues of least squares in complete trees; arrays are indexed by the depths of sibling contrasts."""

    held: F64
    """The squared components of the answers in the contrasts, averaged over rectangles; zero for the known total."""
    members: F64
    """The eigenvalues of every member, along the first axis."""
    noise: F64
    cells: int

    def error(self, shares: F64) -> tuple[float, F64]:
        """Return n times the expected error, and the mean squared coefficients that each member's reports get."""
        weights = np.maximum(shares, 1e-12) / self.noise
        values = np.tensordot(weights, self.members, 1)
        # held / eigenvalue sums to the variance; held / eigenvalue^2 is its derivative. Contrasts that no member
        # reports have eigenvalue 0; single cells report all of them, so the guard only matters without that member.
        over = np.divide(self.held, values, out=np.zeros_like(values), where=values > 0)
        twice = np.divide(over, values, out=np.zeros_like(values), where=values > 0)
        squares = weights**2 * np.tensordot(self.members, twice, twice.ndim)
        return float(over.sum() - self.held.sum() / self.cells), squares

    def shares(self) -> F64:
        """Return the share of respondents for each member that gives the least error.

        The error is the sum of squared coefficients times noise over shares: for fixed coefficients it is least at
        shares proportional to the root, and the coefficients follow from the shares. Repeating both steps never
        increases the error.
        """
        shares = np.full(len(self.noise), 1 / len(self.noise))
        for _ in range(_ROUNDS):
            check()
            roots = np.sqrt(self.error(shares)[1] * self.noise)
            shares = roots / roots.sum()
        return shares

    def only(self, kept: list[int]) -> "Spectrum":
        """Return the same for some of the members."""
        return replace(self, members=self.members[kept], noise=self.noise[kept])


@dataclass(frozen=True)
class GridPlanner:
    """Plans for attributes of these sizes; the first `ordered` of them are asked for ranges, others for points."""

    sizes: tuple[int, ...]
    ordered: int
    most: int = MOST_CELLS
    """The largest number of combinations; above that of `fit_grid`, answers come from `fit_wide`."""

    def _fits(self, shape: GridShape) -> bool:
        """Whether a fit takes the shape: `fit_wide` needs memory for the complete trees around it as well."""
        small = shape.complete or shape.cells <= MOST_RAGGED
        # The area under the curve of scores with a label takes many linear answers, for which `fit_wide` is slow.
        labelled = shape.cells <= MOST_CELLS and len(self.sizes) == 2 and self.sizes[1] == 2
        return small if labelled or self.most <= MOST_CELLS else completed(shape).cells <= MOST_WIDE

    def options(self, epsilon: Budget, n: int) -> list[GridOption]:
        """Return every way to ask, with its expected error, best first."""
        if prod(self.sizes) > self.most:
            raise InvalidSpec(
                f"ranges: {prod(self.sizes)} combinations of answers are too many, must be at most {self.most}; "
                "make the attributes coarser or ask for each by itself"
            )
        workshop = Workshop(epsilon, n, Workload("ranges"), even=True)
        shapes = [GridShape(self.sizes, fanouts) for fanouts in product(*map(self._fanouts, range(len(self.sizes))))]
        fitting = [shape for shape in shapes if self._fits(shape)]
        planned = [option for shape in fitting if (option := self._option(shape, workshop)) is not None]
        if prod(self.sizes) <= _SOLVED_CELLS:
            planned = [self._solved(option, n) for option in planned]
        return sorted(planned, key=lambda option: option.error)

    def priced(
        self, shape: GridShape, heights: Sequence[Heights], oracles: Sequence[Oracle], shares: Sequence[float], n: int
    ) -> GridOption:
        """Return a way to ask that is given as it is, with its expected error by the rule of `options`."""
        error = self._spectrum(shape, heights, oracles).error(np.array(shares))[0]
        option = GridOption(shape, tuple(heights), tuple(oracles), tuple(shares), error)
        return self._solved(option, n) if prod(self.sizes) <= _SOLVED_CELLS else option

    def _fanouts(self, i: int) -> list[int]:
        if i >= self.ordered:
            return [self.sizes[i]]
        return [*(fanout for fanout in FANOUTS if fanout < self.sizes[i]), self.sizes[i]]

    def _heights(self, shape: GridShape) -> list[Heights]:
        """Return all members; attributes that are asked for points are never merged."""
        return [item for item in shape.every_height() if not any(item[self.ordered :])]

    def _option(self, shape: GridShape, workshop: Workshop) -> GridOption | None:
        """Return the best way to ask on this shape: optimal shares, without members that hardly count; None if none."""
        heights = self._heights(shape)
        possible = [workshop.level("mixed", prod(shape.nodes(item))) for item in heights]
        oracles = [oracle for oracle in possible if oracle is not None]
        if len(oracles) < len(heights):
            return None
        spectrum = self._spectrum(shape, heights, oracles)
        shares = spectrum.shares().tolist()
        # Large grids have so many members that all are rare: there those go that are rare among them.
        least = _LEAST_SHARE if shape.cells <= MOST_CELLS else min(_LEAST_SHARE, _RARE / len(heights))
        frequent = [i for i, share in enumerate(shares) if share >= least or not any(heights[i])]
        # Fewer members make larger groups; the shares of those that stay are optimised again.
        spectrum = spectrum.only(frequent)
        shares = spectrum.shares()
        members = tuple(heights[i] for i in frequent), tuple(oracles[i] for i in frequent)
        return GridOption(shape, *members, tuple(shares.tolist()), spectrum.error(shares)[0])

    def _spectrum(self, shape: GridShape, heights: Sequence[Heights], oracles: Sequence[Oracle]) -> Spectrum:
        """Return the eigenvalues and answer components of these members, in the complete trees around the shape."""
        around = GridShape(tuple(f**top for f, top in zip(shape.fanouts, shape.tops, strict=True)), shape.fanouts)
        held = np.asarray(
            reduce(np.multiply.outer, [self._held(around, i) for i in range(len(self.sizes))]), np.float64
        )
        # Entry (0, 0, ...) is the total. The Kronecker structure lets every attribute's components simply multiply.
        held.flat[0] = 0.0
        noise = [contrast_noise(oracle, prod(shape.nodes(item))) for item, oracle in zip(heights, oracles, strict=True)]
        members = np.array([eigenvalues(around, {item: 1.0}) for item in heights])
        return Spectrum(held, members, np.array(noise), around.cells)

    def _held(self, shape: GridShape, i: int) -> F64:
        """Return the mean squared components of an attribute's answers in the contrasts of every depth.

        The projection onto nodes of depth d is the block average with blocks of `width`; contrasts of depth d are the
        difference between two such projections, hence `diff` of the traces.
        """
        size, fanout, top = shape.sizes[i], shape.fanouts[i], shape.tops[i]
        widths = [fanout ** (top - depth) for depth in range(top + 1)]
        sums = [float(size if i >= self.ordered else squares_within(size, width)) / width for width in widths]
        return np.diff(np.array(sums), prepend=0.0)

    def _answers(self, size: int, i: int) -> F64:
        """The mean of row' row over the answers of an attribute: over all its ranges, or the identity for points."""
        if i >= self.ordered:
            return np.eye(size)
        # Entry (i, j) is the share of ranges that contain both: starts up to min(i, j), ends from max(i, j) on.
        at = np.arange(size)
        first, last = np.minimum(at[:, None], at), np.maximum(at[:, None], at)
        return (first + 1.0) * (size - last) * 2 / (size * (size + 1))

    def _solved(self, option: GridOption, n: int) -> GridOption:
        """Return the option with its exact error on uniform data, ragged edges of the trees included."""
        shape, crowd = option.shape, max(2, n)
        even = np.full(shape.cells, 1 / shape.cells)
        levels: dict[Heights, Level] = {}
        for heights, oracle, share in zip(option.heights, option.oracles, option.shares, strict=True):
            levels[heights] = Level(0, shape.sums(even, heights), oracle.moments, 1 / (crowd * share))
        fit = fit_grid(shape.sizes, shape.fanouts, levels, respondents=float(crowd))
        # The mean over all rectangles of row' C row is a trace, so a root of the mean of row' row has the same
        # variance.
        roots = [_root(self._answers(size, i)) for i, size in enumerate(shape.sizes)]
        rows = np.asarray(reduce(np.kron, roots), np.float64)
        return replace(option, error=crowd * float(fit.linear(rows).sum()))


def squares_within(size: int, width: int) -> float:
    """Return the mean over all ranges of the squared numbers of their answers in every block of `width`, summed.

    It is the sum of `_answers` over pairs in one block, without the matrix of all pairs, which a long attribute has no
    memory for: what starts up to i times what ends from j on, over i < j twice, and over i = j.
    """
    at = np.arange(size, dtype=np.float64).reshape(-1, width)
    starts, ends = at + 1, size - at
    before = np.cumsum(starts, axis=1) - starts
    return float(((2 * before + starts) * ends).sum()) * 2 / (size * (size + 1))


def _root(matrix: F64) -> F64:
    """Return rows with rows.T @ rows = matrix (Cholesky)."""
    return np.asarray(np.linalg.cholesky(matrix), np.float64).T
