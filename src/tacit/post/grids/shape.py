"""The shape of a grid of hierarchies: sums over nodes, and the matrices of its least squares.

With complete trees, in which every node has all its children, the matrices of all members share their eigenvectors:
products of the contrasts between siblings, one attribute each. Ragged trees are solved as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from math import prod, sqrt

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.device.families.levels import node_count

Heights = tuple[int, ...]
"""One height per attribute: the member that asks for products of nodes of these heights."""

UNSEEN = 1e-10
"""Directions with a smaller share of the largest eigenvalue count as not observed at all."""


@dataclass(frozen=True)
class GridShape:
    """Trees of these fan-outs over attributes of these sizes; cells are combinations, the last attribute fastest."""

    sizes: tuple[int, ...]
    fanouts: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of combinations."""
        return prod(self.sizes)

    @cached_property
    def tops(self) -> Heights:
        """The height of every attribute's root."""
        return tuple(_top(size, fanout) for size, fanout in zip(self.sizes, self.fanouts, strict=True))

    @cached_property
    def complete(self) -> bool:
        """Whether every node of every tree has all its children."""
        return all(f**top == size for f, top, size in zip(self.fanouts, self.tops, self.sizes, strict=True))

    def every_height(self) -> list[Heights]:
        """Return the heights of all possible members, coarsest first, without all roots together, which are known."""
        ranges = [range(top, -1, -1) for top in self.tops]
        return [heights for heights in product(*ranges) if heights != self.tops]

    def nodes(self, heights: Heights) -> tuple[int, ...]:
        """Number of nodes of every attribute."""
        shape = zip(self.sizes, self.fanouts, heights, strict=True)
        return tuple(node_count(size, fanout, height) for size, fanout, height in shape)

    def _widths(self, heights: Heights) -> list[int]:
        """How many cells a node covers, per attribute."""
        pairs = zip(self.fanouts, heights, self.sizes, strict=True)
        return [min(fanout**height, size) for fanout, height, size in pairs]

    def sums(self, cells: F64, heights: Heights, known: dict[Heights, F64] | None = None) -> F64:
        """Return sums of cells over the nodes of a member, along the last axis; `known` is a cache between members.

        A member's sums come from those of a member one height lower along one attribute, never from the cells again.
        """
        if not any(heights):
            return cells
        cache: dict[Heights, F64] = {} if known is None else known
        if heights not in cache:
            axis = next(i for i, height in enumerate(heights) if height)
            finer = (*heights[:axis], heights[axis] - 1, *heights[axis + 1 :])
            cache[heights] = self._parents(self.sums(cells, finer, cache), finer, axis)
        return cache[heights]

    def _parents(self, values: F64, heights: Heights, axis: int) -> F64:
        """Sums over the children of every parent, along one attribute."""
        nodes, fanout = self.nodes(heights), self.fanouts[axis]
        # Axes: answers, attributes before, this attribute's nodes, attributes after; missing children are zeros.
        lead, inner = prod(nodes[:axis]), prod(nodes[axis + 1 :])
        table = values.reshape(-1, lead, nodes[axis], inner)
        if nodes[axis] % fanout:
            table = np.pad(table, ((0, 0), (0, 0), (0, -nodes[axis] % fanout), (0, 0)))
        by_parent = table.reshape(table.shape[0], lead, -1, fanout, inner)
        return by_parent.sum(axis=3).reshape(*values.shape[:-1], -1)

    def spread(self, nodes: F64, heights: Heights) -> F64:
        """Return every node's value at each of its cells, along the last axis: the transpose of `sums`."""
        lead = nodes.shape[:-1]
        table = nodes.reshape(*lead, *self.nodes(heights))
        for axis, (width, size) in enumerate(zip(self._widths(heights), self.sizes, strict=True), len(lead)):
            if width > 1:
                # The last node of a ragged tree is narrower than the others: what sticks out is cut off.
                table = np.repeat(table, width, axis=axis).take(np.arange(size), axis=axis)
        return table.reshape(*lead, -1)

    def corner(self, low: Sequence[int], high: Sequence[int]) -> F64:
        """Return 1 for every cell of a rectangle, both ends included, else 0."""
        sides = [((a <= np.arange(n)) & (np.arange(n) <= b)) for a, b, n in zip(low, high, self.sizes, strict=True)]
        return np.asarray(reduce(np.multiply.outer, sides), np.float64).reshape(-1)

    def inverse(self, precisions: dict[Heights, float]) -> "Inverse":
        """Return the inverse of the normal matrix M: the sum over members of precision times A'A."""
        # The total is known; its own precision is any, and only keeps the matrix from being singular.
        weights = precisions | {self.tops: max(precisions.values(), default=1.0)}
        return Spectral(self, weights) if self.complete else Dense(self, weights)


def _top(size: int, fanout: int) -> int:
    height = 0
    while node_count(size, fanout, height) > 1:
        height += 1
    return height


class Inverse:
    """The pseudo-inverse of the normal matrix of a grid."""

    def apply(self, rows: F64) -> F64:
        """The pseudo-inverse times every row; directions that were not observed are dropped."""
        raise NotImplementedError

    def known(self, rows: F64) -> npt.NDArray[np.bool_]:
        """Whether every row lies in the span of the observed nodes."""
        raise NotImplementedError


class Spectral(Inverse):
    """Complete trees: eigenvectors are products of sibling contrasts, eigenvalues depend on their depths alone."""

    def __init__(self, shape: GridShape, weights: dict[Heights, float]) -> None:
        """Find the eigenvalues."""
        self._shape = shape
        bases = [contrasts(*item) for item in zip(shape.sizes, shape.fanouts, shape.tops, strict=True)]
        self._bases = [basis for basis, _ in bases]
        # One eigenvalue per combination of depths, spread over all columns of those depths.
        values = eigenvalues(shape, weights)[np.ix_(*(depth for _, depth in bases))].reshape(-1)
        self._seen = values > UNSEEN * values.max()
        self._inverse = np.where(self._seen, 1 / np.where(self._seen, values, 1.0), 0.0)

    def _turned(self, rows: F64, *, back: bool = False) -> F64:
        """Rows in coordinates of the eigenvectors, or back: one small product per attribute (a Kronecker product)."""
        lead = rows.shape[:-1]
        table = rows.reshape(*lead, *self._shape.sizes)
        for axis, basis in enumerate(self._bases, len(lead)):
            table = np.moveaxis(np.moveaxis(table, axis, -1) @ (basis.T if back else basis), -1, axis)
        return table.reshape(*lead, -1)

    def apply(self, rows: F64) -> F64:
        """Divide by the eigenvalues in the coordinates of the eigenvectors."""
        return self._turned(self._turned(rows) * self._inverse, back=True)

    def known(self, rows: F64) -> npt.NDArray[np.bool_]:
        """Nothing in the directions of eigenvalue zero."""
        if self._seen.all():
            return np.ones(rows.shape[:-1], np.bool_)
        return np.all(np.abs(self._turned(rows)[..., ~self._seen]) < 1e-9, axis=-1)


class Dense(Inverse):
    """Ragged trees: the dense normal matrix, inverted."""

    def __init__(self, shape: GridShape, weights: dict[Heights, float]) -> None:
        """Invert the matrix; without a member that asks for single cells it is singular and needs eigenvectors."""
        matrix = normal_matrix(shape, weights)
        self._hidden = np.zeros((shape.cells, 0))
        # With a member for single cells the matrix has full rank, and a plain inverse is much faster.
        if weights.get((0,) * len(shape.sizes)):
            self._inverse = np.asarray(np.linalg.inv(matrix), np.float64)
            return
        values, vectors = np.linalg.eigh(matrix)
        seen = values > UNSEEN * values[-1]
        self._inverse = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
        self._hidden = vectors[:, ~seen]

    def apply(self, rows: F64) -> F64:
        """Multiply by the dense inverse."""
        return rows @ self._inverse

    def known(self, rows: F64) -> npt.NDArray[np.bool_]:
        """Nothing in the directions of eigenvalue zero."""
        return np.all(np.abs(rows @ self._hidden) < 1e-7, axis=-1)


def contrasts(size: int, fanout: int, top: int) -> tuple[F64, npt.NDArray[np.intp]]:
    """Return orthonormal columns of a complete tree and the depth of each.

    The constant first, then contrasts between siblings, depth by depth. For size 4 and fan-out 2, up to norms:

        depth   0   1   2   2
                1   1   1   0
                1   1  -1   0
                1  -1   0   1
                1  -1   0  -1        with fan-out 2 these are the Haar wavelets
    """
    parts, depths = [np.full((size, 1), 1 / sqrt(size))], [0]
    for depth in range(1, top + 1):
        # A contrast of depth d is constant on subtrees of f^(top - d) cells and zero outside one parent of depth d - 1.
        below = fanout ** (top - depth)
        part = np.kron(np.eye(fanout ** (depth - 1)), np.kron(_siblings(fanout), np.ones((below, 1)) / sqrt(below)))
        parts.append(part)
        depths += [depth] * part.shape[1]
    return np.concatenate(parts, axis=1), np.array(depths, np.intp)


def _siblings(fanout: int) -> F64:
    """Orthonormal columns that add up to zero (Helmert's): each child against the ones before it."""
    helmert = np.zeros((fanout, fanout - 1))
    for k in range(1, fanout):
        helmert[:k, k - 1], helmert[k, k - 1] = 1, -k
        helmert[:, k - 1] /= sqrt(k * (k + 1))
    return helmert


def eigenvalues(shape: GridShape, weights: dict[Heights, float]) -> F64:
    """Return the eigenvalue of every combination of depths, in complete trees."""
    # Per attribute, A'A of height t (nodes of fanout^t cells) keeps contrasts at least as coarse as its nodes, times
    # fanout^t, and sums finer ones to zero. Over several attributes the factors multiply.
    total = np.zeros([top + 1 for top in shape.tops])
    for heights, weight in weights.items():
        each = zip(shape.fanouts, shape.tops, heights, strict=True)
        sides = [np.where(np.arange(top + 1) <= top - t, float(fanout) ** t, 0.0) for fanout, top, t in each]
        total += weight * reduce(np.multiply.outer, sides)
    return total


def normal_matrix(shape: GridShape, weights: dict[Heights, float]) -> F64:
    """Return the sum over members of weight times A'A, whose entry (i, j) is 1 where i and j share a node.

    A'A of a member is a Kronecker product over attributes: members with the same first height share that factor, and
    the rest is the same problem with one attribute fewer.
    """
    first, rest = shape.sizes[0], GridShape(shape.sizes[1:], shape.fanouts[1:])
    matrix = np.zeros((shape.cells, shape.cells))
    for height in sorted({heights[0] for heights in weights}):
        node = np.arange(first) // shape.fanouts[0] ** height
        same = (node[:, None] == node[None, :]).astype(np.float64)
        below = {heights[1:]: weight for heights, weight in weights.items() if heights[0] == height}
        inner = normal_matrix(rest, below) if rest.sizes else np.full((1, 1), sum(below.values()))
        matrix += np.asarray(np.kron(same, inner), np.float64)
    return matrix
