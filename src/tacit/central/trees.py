"""Histograms as a tree of counts, made consistent by least squares (HAY-H, CDP-HH). Not local.

Levels are listed from the leaves up. Node i of a level covers nodes i*fanout .. i*fanout + fanout - 1 of the level
below, as many of them as there are: the last node of a level may have fewer children.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.central.histograms import MAX_CELLS, Noisy, true_counts
from tacit.central.noise import Randomness, geometric_variance, noise_of
from tacit.device.numbers.budget import as_epsilon
from tacit.device.numbers.exact import root_floor
from tacit.errors import InvalidSpec, InvalidValue
from tacit.post.trees.levels import TreeShape

_ABSENT = -1e30
"""Stands for a child that does not exist: no projection gives it a share."""


def _project_families(children: F64, totals: F64) -> F64:
    """Project every row onto the non-negative numbers with its total; all zero where the total is not positive."""
    # Norm-Sub of every row at once: see `tacit.post.frequencies.simplex.project_to_simplex`.
    ordered = -np.sort(-children, axis=-1)
    sums: F64 = np.cumsum(ordered, axis=-1, dtype=np.float64)
    offsets: F64 = (sums - totals[:, None]) / np.arange(1.0, children.shape[-1] + 1)
    positive = np.maximum((ordered > offsets).sum(axis=-1, keepdims=True), 1)
    offset = np.take_along_axis(offsets, positive - 1, axis=-1)
    return np.where(totals[:, None] > 0, np.clip(children - offset, 0, None), 0.0)


@dataclass(frozen=True, kw_only=True)
class HayH:
    """HAY-H: counts of all nodes of a tree with equal noise, then the nearest consistent tree. Not local.

    Privacy: epsilon for one tuple, which changes one node per level: sensitivity = number of levels.
    Variance: `variance_of`, exact; no linear unbiased estimate of the same release has less.
    Reference: Hay et al., section 4 (alpha there is fanout^(l-1)); ragged trees by precision weights.

    >>> HayH(size=4, epsilon="1").infer([np.array([3., 4, 6, 5]), np.array([8., 10]), np.array([17.])])
    array([3.19047619, 4.19047619, 5.52380952, 4.52380952])
    """

    size: int
    epsilon: str
    fanout: int = 2

    def __post_init__(self) -> None:
        """Check epsilon, size and fan-out."""
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon).text)
        if not 2 <= self.size <= MAX_CELLS:
            raise InvalidSpec(f"tree: size is {self.size}, must be from 2 to {MAX_CELLS}")
        if not 2 <= self.fanout <= self.size:
            raise InvalidSpec(f"tree: fanout is {self.fanout}, must be from 2 to the size, {self.size}")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of every level, from the leaves to the root."""
        return tuple(self._shape.nodes(height) for height in range(self._shape.top + 1))

    @cached_property
    def _shape(self) -> TreeShape:
        return TreeShape(self.size, self.fanout)

    @property
    def levels(self) -> int:
        """Number of levels that are noised, which is the sensitivity."""
        return len(self.sizes)

    @property
    def node_variance(self) -> float:
        """Variance of one noisy node, of integer noise; Laplace noise has 2 levels^2/epsilon^2."""
        return geometric_variance(root_floor(as_epsilon(self.epsilon).odds, self.levels))

    def nodes(self, counts: npt.ArrayLike) -> list[I64]:
        """Return the true counts of all nodes, level by level."""
        levels = [true_counts(counts, self.size)]
        while len(levels) < self.levels:
            levels.append(self._shape.parents(levels[-1].astype(np.float64)).astype(np.int64))  # exact below 2^53
        return levels

    def release(self, counts: npt.ArrayLike, randomness: Randomness) -> list[Noisy]:
        """Return noisy counts of all nodes, unbiased and inconsistent (H~)."""
        noise = noise_of(self.epsilon, self.levels, randomness)
        return [level + noise.draw(len(level)) for level in self.nodes(counts)]

    def infer(self, released: "list[Noisy]") -> F64:
        """Return the leaves of the nearest consistent tree; a range is the sum of its leaves."""
        return self.infer_nodes(released)[0]

    def infer_nodes(self, released: "list[Noisy]") -> list[F64]:
        """Return the nearest tree in which every parent is the sum of its children: two passes, unbiased."""
        self._check(released)
        # Up: blend every node with the sum of its children, by inverse variance; `spread` is that sum's variance.
        fitted = [np.asarray(released[0], np.float64)]
        for level, below in zip(released[1:], self._weights, strict=False):
            spread = self._shape.parents(below)
            children = self._shape.parents(fitted[-1])
            fitted.append((spread * level + children) / (1 + spread))
        # Down: what a parent has beyond its children's sum is shared in proportion to their variances.
        for k in range(self.levels - 2, -1, -1):
            gap = fitted[k + 1] - self._shape.parents(fitted[k])
            fitted[k] = fitted[k] + self._share(k) * self._shape.spread(gap, self.sizes[k])
        return fitted

    @cached_property
    def _weights(self) -> list[F64]:
        """Variance of every node's estimate from its own subtree, in units of one node's noise."""
        weights = [np.ones(self.size)]
        while len(weights) < self.levels:
            spread = self._shape.parents(weights[-1])
            weights.append(spread / (1 + spread))
        return weights

    def _share(self, k: int) -> F64:
        """The part of its parent's gap that every node of level k takes."""
        families = self._shape.parents(self._weights[k])
        return self._weights[k] / self._shape.spread(families, self.sizes[k])

    def variance_of(self, queries: F64, *, node_variance: float | None = None) -> F64:
        """Return the exact variance of linear queries of the inferred leaves, one query a row.

        Given the total t of its family, an answer is slope t plus an independent rest. Slopes and rests are
        combined from the leaves up: the slope of a family is the weighted mean of its children's, and the rest grows
        by their weighted spread (docs/maths/central-histograms.md).
        """
        slope = np.atleast_2d(np.asarray(queries, np.float64))
        rest = np.zeros(len(slope))
        for k in range(self.levels - 1):
            weights, share = self._weights[k], self._share(k)
            # Children take their parent's gap in these shares, so the family's answer moves with its total by the
            # weighted mean of their slopes; what is left varies independently of the total.
            mean = self._shape.parents(slope * share)
            rest += ((slope - self._shape.spread(mean, self.sizes[k])) ** 2) @ weights
            slope = mean
        rest += slope**2 @ self._weights[-1]
        return rest * (self.node_variance if node_variance is None else node_variance)

    def tile(self, released: "list[Noisy]", ranges: npt.ArrayLike) -> F64:
        """Return answers to half-open ranges from the fewest nodes that tile them, without inference (H~).

        level k     low                                    high
                     |  nodes  |  whole families  |  nodes  |       nodes outside of families are added here,
                             inner              outer               families go on as nodes of level k + 1
        """
        self._check(released)
        low, high = self._ranges(ranges)
        answers = np.zeros(len(low))
        for k, level in enumerate(released):
            sums = np.concatenate([[0.0], np.cumsum(level, dtype=np.float64)])
            if k == self.levels - 1:
                return answers + sums[high] - sums[low]
            inner = np.minimum(-(-low // self.fanout) * self.fanout, high)
            # The last parent covers what there is, so that the end of a level counts as the end of a family.
            whole = np.where(high == self.sizes[k], high, high // self.fanout * self.fanout)
            outer = np.maximum(whole, inner)
            answers += sums[inner] - sums[low] + sums[high] - sums[outer]
            low, high = -(-inner // self.fanout), -(-outer // self.fanout)
        raise AssertionError("a tree has at least one level")

    def tiles(self, ranges: npt.ArrayLike) -> F64:
        """Return how many nodes `tile` adds up for each range; its variance is that many node variances."""
        return self.tile([np.ones(size) for size in self.sizes[: self.levels]], ranges)

    def zero_empty_subtrees(self, nodes: "list[F64]") -> list[F64]:
        """Return nodes with every subtree zeroed whose estimate is not positive, for `tile`. Biased; post-processing.

        The step of Hay et al., section 5.2. Parents are no longer the sums of their children, and sums of leaves drift
        upwards: answer ranges by `tile`, or take `nonnegative` instead.
        """
        self._check(nodes)
        zeroed = [np.clip(nodes[-1], 0, None)]
        for k in range(self.levels - 2, -1, -1):
            # From the root down: a node stays if it and all its ancestors are positive.
            above = self._shape.spread(zeroed[0], self.sizes[k])
            zeroed.insert(0, np.where((above > 0) & (nodes[k] > 0), nodes[k], 0.0))
        return zeroed

    def nonnegative(self, nodes: "list[F64]") -> list[F64]:
        """Return the tree made non-negative from the top down, still consistent. Biased; post-processing.

        Children are moved to the nearest non-negative numbers that sum to their parent: one shared offset, as Norm-Sub.
        """
        self._check(nodes)
        fitted = [np.clip(nodes[-1], 0, None)]
        for k in range(self.levels - 2, -1, -1):
            missing = np.full(-self.sizes[k] % self.fanout, _ABSENT)
            families = np.concatenate([nodes[k], missing]).reshape(-1, self.fanout)
            projected = _project_families(families, fitted[0])
            fitted.insert(0, projected.reshape(-1)[: self.sizes[k]])
        return fitted

    def _check(self, released: "list[Noisy]") -> None:
        if tuple(len(level) for level in released) != self.sizes[: self.levels]:
            raise InvalidSpec(f"tree: levels must have {self.sizes[: self.levels]} nodes, from the leaves up")

    def _ranges(self, ranges: npt.ArrayLike) -> tuple[I64, I64]:
        low, high = np.asarray(ranges, np.int64).reshape(-1, 2).T
        if np.any((low < 0) | (high > self.size) | (low > high)):
            raise InvalidValue(f"a range [low, high) must have 0 <= low <= high <= {self.size}")
        return low, high


class CDPHH(HayH):
    """CDP-HH: as HAY-H without the root, as Qardaji et al. compare it (VLDB 2013). Not local.

    One level less to noise, and the total is estimated like any other range.
    """

    @property
    def levels(self) -> int:
        """All levels but the root's."""
        return len(self.sizes) - 1
