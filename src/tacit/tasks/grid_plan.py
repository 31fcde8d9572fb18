"""Planning a grid: fan-outs, the oracle of every member and how often it is asked, by exact expected error.

In complete trees the expected error of a rectangle, averaged over all of them, is a sum over the depths of sibling
contrasts (see `tacit.post.grid_shape`): each adds what rectangles hold of it over its eigenvalue. Ragged trees are
compared by the complete ones around them, and small ones then solved as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.patience import check
from tacit.device.base import Device
from tacit.device.budget import Budget
from tacit.device.grid import Grid
from tacit.errors import InvalidSpec
from tacit.post.grid import MOST_CELLS, MOST_RAGGED, fit_grid
from tacit.post.grid_shape import GridShape, Heights, eigenvalues
from tacit.post.levels import Level
from tacit.tasks.range_plan_error import Workload
from tacit.tasks.range_plan_options import Workshop, contrast_noise

F64 = npt.NDArray[np.float64]

FANOUTS = (2, 4)
"""The fan-outs that are compared, besides asking for single answers at once."""

_SOLVED_CELLS = 256
_LEAST_SHARE = 0.01
_ROUNDS = 40


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
        """Integers in about the proportions of the shares."""
        whole = [max(1, round(1000 * share)) for share in self.shares]
        return tuple(weight // gcd(*whole) for weight in whole)

    @property
    def name(self) -> str:
        """The fan-outs, or flat."""
        flat = not any(any(heights) for heights in self.heights)
        return "flat" if flat else "grid:" + "x".join(map(str, self.shape.fanouts))

    @property
    def report_bits(self) -> int:
        """The member, and the widest oracle's report."""
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
    """One of the members of a grid."""
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
    """What decides the expected error of members in complete trees, by the depths of contrasts."""

    held: F64
    """How much of the contrasts the answers hold, squared and averaged; nothing of the total, which is known."""
    members: F64
    """The eigenvalues of every member, along the first axis."""
    noise: F64
    cells: int

    def error(self, shares: F64) -> tuple[float, F64]:
        """The expected error, and the mean squared coefficients of every member."""
        weights = np.maximum(shares, 1e-12) / self.noise
        values = np.tensordot(weights, self.members, 1)
        over = np.divide(self.held, values, out=np.zeros_like(values), where=values > 0)
        twice = np.divide(over, values, out=np.zeros_like(values), where=values > 0)
        squares = weights**2 * np.tensordot(self.members, twice, twice.ndim)
        return float(over.sum() - self.held.sum() / self.cells), squares

    def shares(self) -> F64:
        """How often to ask each member for the least error.

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
        """Some of the members."""
        return replace(self, members=self.members[kept], noise=self.noise[kept])


@dataclass(frozen=True)
class GridPlanner:
    """Plans for attributes of these sizes; the first `ordered` of them are asked for ranges, others for points."""

    sizes: tuple[int, ...]
    ordered: int

    def options(self, epsilon: Budget, n: int) -> list[GridOption]:
        """Every way to ask, best first."""
        if prod(self.sizes) > MOST_CELLS:
            raise InvalidSpec(
                f"ranges: {prod(self.sizes)} combinations of answers are too many, must be at most {MOST_CELLS}; "
                "make the attributes coarser or ask for each by itself"
            )
        workshop = Workshop(epsilon, n, Workload("ranges"), even=True)
        shapes = [GridShape(self.sizes, fanouts) for fanouts in product(*map(self._fanouts, range(len(self.sizes))))]
        fitting = [shape for shape in shapes if shape.complete or shape.cells <= MOST_RAGGED]
        found = [option for shape in fitting if (option := self._option(shape, workshop)) is not None]
        if prod(self.sizes) <= _SOLVED_CELLS:
            found = [self._solved(option, n) for option in found]
        return sorted(found, key=lambda option: option.error)

    def _fanouts(self, i: int) -> list[int]:
        if i >= self.ordered:
            return [self.sizes[i]]
        return [*(fanout for fanout in FANOUTS if fanout < self.sizes[i]), self.sizes[i]]

    def _heights(self, shape: GridShape) -> list[Heights]:
        """All members; attributes that are asked for points are never summed over."""
        return [item for item in shape.every_height() if not any(item[self.ordered :])]

    def _option(self, shape: GridShape, workshop: Workshop) -> GridOption | None:
        heights = self._heights(shape)
        made = [workshop.level("mixed", prod(shape.nodes(item))) for item in heights]
        oracles = [oracle for oracle in made if oracle is not None]
        if len(oracles) < len(heights):
            return None
        spectrum = self._spectrum(shape, heights, oracles)
        shares = spectrum.shares().tolist()
        kept = [i for i, share in enumerate(shares) if share >= _LEAST_SHARE or not any(heights[i])]
        spectrum = spectrum.only(kept)
        shares = spectrum.shares()
        asked = tuple(heights[i] for i in kept), tuple(oracles[i] for i in kept)
        return GridOption(shape, *asked, tuple(shares.tolist()), spectrum.error(shares)[0])

    def _spectrum(self, shape: GridShape, heights: Sequence[Heights], oracles: Sequence[Oracle]) -> Spectrum:
        around = GridShape(tuple(f**top for f, top in zip(shape.fanouts, shape.tops, strict=True)), shape.fanouts)
        held = np.asarray(
            reduce(np.multiply.outer, [self._held(around, i) for i in range(len(self.sizes))]), np.float64
        )
        held.flat[0] = 0.0
        noise = [contrast_noise(oracle, prod(shape.nodes(item))) for item, oracle in zip(heights, oracles, strict=True)]
        members = np.array([eigenvalues(around, {item: 1.0}) for item in heights])
        return Spectrum(held, members, np.array(noise), around.cells)

    def _held(self, shape: GridShape, i: int) -> F64:
        """How much of the contrasts of every depth an attribute's answers hold, squared and averaged."""
        matrix = self._answers(shape.sizes[i], i)
        fanout, top = shape.fanouts[i], shape.tops[i]
        sums: list[float] = []
        for depth in range(top + 1):
            width, count = int(fanout ** (top - depth)), int(fanout**depth)
            blocks = matrix.reshape(count, width, count, width)[np.arange(count), :, np.arange(count)]
            sums.append(float(blocks.sum()) / width)
        return np.diff(np.array(sums), prepend=0.0)

    def _answers(self, size: int, i: int) -> F64:
        """The mean of row times row over the answers of an attribute: all its ranges, or sums and differences."""
        if i >= self.ordered:
            return np.eye(size)
        at = np.arange(size)
        first, last = np.minimum(at[:, None], at), np.maximum(at[:, None], at)
        return (first + 1.0) * (size - last) * 2 / (size * (size + 1))

    def _solved(self, option: GridOption, n: int) -> GridOption:
        """The same with its exact error on evenly spread answers, nodes that lack children included."""
        shape, crowd = option.shape, max(2, n)
        even = np.full(shape.cells, 1 / shape.cells)
        levels: dict[Heights, Level] = {}
        for heights, oracle, share in zip(option.heights, option.oracles, option.shares, strict=True):
            levels[heights] = Level(0, shape.sums(even, heights), oracle.moments, 1 / (crowd * share))
        fit = fit_grid(shape.sizes, shape.fanouts, levels, respondents=float(crowd))
        roots = [_root(self._answers(size, i)) for i, size in enumerate(shape.sizes)]
        rows = np.asarray(reduce(np.kron, roots), np.float64)
        return replace(option, error=crowd * float(fit.linear(rows).sum()))


def _root(matrix: F64) -> F64:
    """Rows whose products add up to the matrix."""
    return np.asarray(np.linalg.cholesky(matrix), np.float64).T
