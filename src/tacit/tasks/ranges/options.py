"""The options of a range planner: flat oracles, hierarchical histograms and the Haar transform, with expected errors.

`Workshop` builds the mechanisms and caches oracles, since a planner tries hundreds of trees whose levels repeat. All
sequences by height start at the leaves; only a published `Tree` lists its levels from the root down.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, sqrt
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.statistics.moments import Moments
from tacit.device.families.levels import Tree
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.post.trees.levels import Level, TreeShape, fit_levels
from tacit.post.trees.variance import TreeVariance
from tacit.tasks.choose import OPTIONS
from tacit.tasks.ranges.error import Workload, first_pass, mean_variance, signed_variances
from tacit.tasks.ranges.levels import level_weights

MIXED_ORACLES = ("grr", "hrr", "hrr_subspace", "oue", "rue", "ss")
"""The oracles that a level of a mixed tree may use: kinds whose reports are counted without a pass over the domain."""

MIXED_TOLERANCE = 1.005
"""Oracles whose noise is within this factor of the best compete on report size for a level of a mixed tree."""

MIXED_BITS = 256
"""The longest report, in bits, of a level of a mixed tree: beyond it, longer reports hardly gain precision."""

EXACT_RAGGED = 512
"""Ragged trees up to this size get their exact error, answer by answer; larger ones the formula of `error`."""

KINDS = {kind.kind: (kind, work) for kind, work in OPTIONS}
"""The oracles that may be asked, with the server operations of n reports."""


@dataclass(frozen=True, eq=False)
class RangeOption:
    """One way to ask for ranges, and how well it would do."""

    method: str
    oracle: str
    shape: TreeShape
    members: tuple[Mechanism, ...]
    """One mechanism per height, leaves first."""
    weights: tuple[int, ...]
    error: float
    """n times the mean squared error of a range's share, averaged over the workload."""
    uniform_error: float
    """The same error if all levels were asked equally often."""
    n: int
    report_bits: int
    server_operations: float
    n_needed: int | None = None

    @property
    def rmse(self) -> float:
        """The root mean squared error over the workload."""
        return sqrt(self.error / self.n)

    @property
    def gain(self) -> float:
        """The relative reduction of the root mean squared error by the level weights."""
        return 1 - sqrt(self.error / self.uniform_error)

    @property
    def name(self) -> str:
        """The method, the fan-out of a tree and the oracle."""
        return (
            f"{self.method}:{self.shape.fanout}:{self.oracle}"
            if self.method == "hh"
            else f"{self.method}:{self.oracle}"
            if self.method != "sw"
            else self.method
        )

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism to publish: one oracle, or one of the levels of a tree."""
        if self.method in ("flat", "sw"):
            return self.members[0]
        family = Tree(
            size=self.shape.size,
            fanout=self.shape.fanout,
            heights=tuple(range(self.shape.top - 1, -1, -1)),
            mechanisms=self.members[::-1],
            weights=self.weights[::-1],
        )
        return OneOf(family=family)

    def to_row(self) -> dict[str, Any]:
        """Plain numbers for JSON and tables."""
        row: dict[str, Any] = {"method": self.method, "oracle": self.oracle}
        if self.method == "hh":
            row |= {"fanout": self.shape.fanout}
        row |= {
            "rmse": sqrt(self.uniform_error / self.n),
            "rmse_weighted": self.rmse,
            "report_bits": self.report_bits,
            "server_operations": self.server_operations,
            "levels": [member.kind for member in self.members[::-1]],
            "weights": list(self.weights[::-1]),
            "gain": self.gain,
        }
        return row if self.n_needed is None else row | {"n_needed": self.n_needed}


def contrast_noise(mechanism: Mechanism, nodes: int) -> float:
    """The variance of one report per squared coefficient of a contrast of nodes, the respondent's own included."""
    moments: Moments = getattr(mechanism, "moments")  # noqa: B009 - every oracle has them, and the signed kind
    return Level(0, np.zeros(0), moments, 1.0, signed=isinstance(mechanism, HRRSigned)).noise(nodes)


class Workshop:
    """Builds options, and caches the oracles of all kinds and sizes that they share."""

    def __init__(self, budget: Budget, n: int, workload: Workload, *, even: bool) -> None:
        """Plan for n respondents; `even` asks all levels equally often."""
        self.budget, self.n, self.workload, self.even = budget, n, workload, even
        self._made: dict[tuple[str, int], Oracle | None] = {}

    def oracle(self, kind: str, size: int) -> Oracle | None:
        """Return the oracle of a kind, cached; None where the kind does not support the size."""
        if (kind, size) not in self._made:
            make: Any = KINDS[kind][0]
            try:
                self._made[kind, size] = make(size=size, epsilon=self.budget)
            except InvalidSpec:
                self._made[kind, size] = None
        return self._made[kind, size]

    def level(self, kind: str, size: int) -> Oracle | None:
        """The oracle of a kind for one level; for `mixed`, the shortest report among the most precise; or None."""
        if kind != "mixed":
            return self.oracle(kind, size)
        made_of = (self.oracle(kind, size) for kind in MIXED_ORACLES)
        short_enough = [made for made in made_of if made and made.report_bits <= MIXED_BITS]
        noise = {made.kind: contrast_noise(made, size) for made in short_enough}
        limit = MIXED_TOLERANCE * min(noise.values(), default=inf)
        close = [made for made in short_enough if noise[made.kind] <= limit]
        return min(close, key=lambda made: (made.report_bits, noise[made.kind]), default=None)

    def flat(self, kind: str, size: int) -> RangeOption | None:
        """Return the option of one oracle over all leaves; None where the kind does not support the size."""
        oracle = self.oracle(kind, size)
        return oracle and self._option("flat", kind, TreeShape(size, size), (oracle,))

    def tree(self, kind: str, size: int, fanout: int) -> RangeOption | None:
        """The option of a tree whose levels use one kind of oracle, or (`mixed`) each its own; None if one lacks it."""
        shape = TreeShape(size, fanout)
        members = [oracle for height in range(shape.top) if (oracle := self.level(kind, shape.nodes(height)))]
        if len(members) < shape.top or shape.top < 2:
            return None
        return self._option("hh", kind, shape, tuple(members))

    def haar(self, size: int) -> RangeOption:
        """Return the option of the Haar transform: the signed difference of two siblings, at every height."""
        shape = TreeShape(size, 2)
        members = (HRRSigned(size=shape.nodes(height), epsilon=self.budget) for height in range(shape.top))
        return self._option("haar", "hrr", shape, tuple(members))

    def _option(self, method: str, oracle: str, shape: TreeShape, members: tuple[Mechanism, ...]) -> RangeOption:
        """Return the option of a tree with the level weights that do best on the workload."""
        alike = (1,) * len(members)
        uniform = expected_error(shape, self.workload, members, alike, self.n)
        weights, error = alike, uniform
        if not self.even and len(members) > 1:
            noise = [contrast_noise(member, shape.nodes(height)) for height, member in enumerate(members)]
            fitted = level_weights(shape, self.workload, noise, signed=method == "haar")
            better = expected_error(shape, self.workload, members, fitted, self.n)
            # The fit is for the complete tree around this one, so check that it does help here.
            weights, error = (fitted, better) if better < uniform else (alike, uniform)
        work = sum(
            _work(member, self.n * weight / sum(weights)) for member, weight in zip(members, weights, strict=True)
        )
        bits = (len(members) - 1).bit_length() + max(member.report_bits for member in members)
        return RangeOption(method, oracle, shape, members, weights, error, uniform, self.n, bits, work)


def _work(mechanism: Mechanism, n: float) -> float:
    work: Callable[[Any, int], float] = KINDS[mechanism.kind if mechanism.kind in KINDS else "hrr"][1]
    return work(mechanism, ceil(n))


def expected_error(
    shape: TreeShape, workload: Workload, members: Sequence[Mechanism], weights: Sequence[float], n: int
) -> float:
    """Return n times the mean squared error over a workload on uniform data; members and weights are by height."""
    shares = [weight / sum(weights) for weight in weights]
    signed = isinstance(members[0], HRRSigned)
    if not shape.complete and shape.size <= EXACT_RAGGED:
        levels, crowd = zip(range(shape.top), members, shares, strict=True), max(2, n)
        return crowd * averaged(
            expected_uncertainty(shape, levels, crowd, np.full(shape.size, 1 / shape.size)), workload
        )
    noise = [
        contrast_noise(member, shape.nodes(height)) / share
        for height, (member, share) in enumerate(zip(members, shares, strict=True))
    ]
    scales = [1 / share for share in shares]
    variances = signed_variances(shape, noise, scales) if signed else first_pass(shape, noise)
    # Noise includes the sampling of groups. All respondents together are no sample: their own spread is taken off once.
    return mean_variance(shape, workload, variances) - workload.spread(shape.size)


def expected_uncertainty(
    shape: TreeShape, asked: Iterable[tuple[int, Mechanism, float]], n: int, leaves: F64
) -> TreeVariance:
    """The variances of a fit if the truth were these leaves; `asked` is (height, mechanism, share of n) by level.

    Every level is taken to be asked as often as expected.
    """
    masses = {0: leaves}
    for height in range(1, shape.top + 1):
        masses[height] = shape.parents(masses[height - 1])
    levels: list[Level] = []
    for height, mechanism, share in asked:
        value, signed = masses[height], isinstance(mechanism, HRRSigned)
        if signed:
            # A signed level reports left sibling minus right sibling; a missing right sibling is an empty node.
            halves = value if not value.size % 2 else np.append(value, 0.0)
            value = halves[0::2] - halves[1::2]
        moments: Moments = getattr(mechanism, "moments")  # noqa: B009 - every oracle has them, and the signed kind
        levels.append(Level(height, value, moments, 1 / (n * share), signed=signed))
    return TreeVariance(fit_levels(shape.size, shape.fanout, levels), float(n))


def averaged(known: TreeVariance, workload: Workload) -> float:
    """Return the variance of an answer averaged over a workload, answer by answer.

    Over all ranges, from the prefixes P alone: the sum over x < y of Var(P_y - P_x) is (size + 1) times the sum of
    their variances less the variance of their sum.
    """
    size = known.fit.shape.size
    if workload.name in ("points", "length"):
        length = max(1, workload.length)
        low = np.arange(size - length + 1)
        return float(known.spans(low, low + length).mean())
    # Prefix P_x is the sum of the leaves before x; leaf i is in size - i prefixes, hence the falling row below.
    ends = np.arange(1, size + 1)
    prefixes = float(known.spans(np.zeros_like(ends), ends).sum())
    if workload.name == "prefixes":
        return prefixes / size
    sums = float(known.linear(np.arange(size, 0, -1.0)[None, :])[0])
    return ((size + 1) * prefixes - sums) / (size * (size + 1) / 2)
