"""The options of a range planner: mechanisms for flat, hierarchical and Haar answers, and their expected error."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.moments import Moments
from tacit.device.budget import Budget
from tacit.device.levels import Tree
from tacit.errors import InvalidSpec
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.post.level_variance import Uncertainty
from tacit.post.levels import Level, Shape, fit_levels
from tacit.tasks.choose import OPTIONS
from tacit.tasks.range_plan_error import Workload, first_pass, mean_variance, signed_variances
from tacit.tasks.range_plan_levels import level_weights

F64 = npt.NDArray[np.float64]

MIXED_ORACLES = ("grr", "hrr", "hrr_subspace", "oue", "rue", "ss")
"""What a mixed tree takes a level's oracle from: kinds whose reports are counted without a pass over the domain."""

MIXED_TOLERANCE = 1.005
"""Oracles whose noise is within this factor of the best compete on report size for a level of a mixed tree."""

MIXED_BITS = 256
"""The longest report of a level of a mixed tree: beyond it bits cost more than they gain."""

EXACT_RAGGED = 512
"""Ragged trees up to this size are averaged answer by answer."""

KINDS = {kind.kind: (kind, work) for kind, work in OPTIONS}
"""The oracles that may be asked, with the server operations of n reports."""


@dataclass(frozen=True, eq=False)
class RangeOption:
    """One way to ask for ranges, and how well it would do."""

    method: str
    oracle: str
    shape: Shape
    members: tuple[Mechanism, ...]
    """One mechanism per height, leaves first."""
    weights: tuple[int, ...]
    error: float
    """n times the mean squared error of a range's share, averaged over the workload."""
    uniform_error: float
    """The same if all levels were asked alike."""
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
        """By which share the level weights lower the root mean squared error."""
        return 1 - sqrt(self.error / self.uniform_error)

    @property
    def name(self) -> str:
        """The method, the fan-out of a tree and the oracle."""
        return (
            f"{self.method}:{self.shape.fanout}:{self.oracle}"
            if self.method == "hh"
            else f"{self.method}:{self.oracle}"
        )

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism to publish: one oracle, or one of the levels of a tree."""
        if self.method == "flat":
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
    """Makes oracles of all sizes once, and options out of them."""

    def __init__(self, budget: Budget, n: int, workload: Workload, *, even: bool) -> None:
        """Plan for n respondents; `even` asks all levels alike."""
        self.budget, self.n, self.workload, self.even = budget, n, workload, even
        self._made: dict[tuple[str, int], Oracle | None] = {}

    def oracle(self, kind: str, size: int) -> Oracle | None:
        """An oracle of a kind, or None where the size is not for it."""
        if (kind, size) not in self._made:
            make: Any = KINDS[kind][0]
            try:
                self._made[kind, size] = make(size=size, epsilon=self.budget)
            except InvalidSpec:
                self._made[kind, size] = None
        return self._made[kind, size]

    def level(self, kind: str, size: int) -> Oracle | None:
        """An oracle for one level: of a kind, or the shortest among the most precise."""
        if kind != "mixed":
            return self.oracle(kind, size)
        made_of = (self.oracle(kind, size) for kind in MIXED_ORACLES)
        found = [made for made in made_of if made and made.report_bits <= MIXED_BITS]
        noise = {made.kind: contrast_noise(made, size) for made in found}
        limit = MIXED_TOLERANCE * min(noise.values(), default=inf)
        close = [made for made in found if noise[made.kind] <= limit]
        return min(close, key=lambda made: (made.report_bits, noise[made.kind]), default=None)

    def flat(self, kind: str, size: int) -> RangeOption | None:
        """One oracle over all leaves."""
        made = self.oracle(kind, size)
        return made and self._option("flat", kind, Shape(size, size), (made,))

    def tree(self, kind: str, size: int, fanout: int) -> RangeOption | None:
        """A tree whose levels are asked with one kind of oracle, or each with its own."""
        shape = Shape(size, fanout)
        members = [made for height in range(shape.top) if (made := self.level(kind, shape.nodes(height)))]
        if len(members) < shape.top or shape.top < 2:
            return None
        return self._option("hh", kind, shape, tuple(members))

    def haar(self, size: int) -> RangeOption:
        """Signed differences on every height."""
        shape = Shape(size, 2)
        members = (HRRSigned(size=shape.nodes(height), epsilon=self.budget) for height in range(shape.top))
        return self._option("haar", "hrr", shape, tuple(members))

    def _option(self, method: str, oracle: str, shape: Shape, members: tuple[Mechanism, ...]) -> RangeOption:
        alike = (1,) * len(members)
        uniform = expected_error(shape, self.workload, members, alike, self.n)
        weights, error = alike, uniform
        if not self.even and len(members) > 1:
            noise = [contrast_noise(made, shape.nodes(height)) for height, made in enumerate(members)]
            fitted = level_weights(shape, self.workload, noise, signed=method == "haar")
            better = expected_error(shape, self.workload, members, fitted, self.n)
            weights, error = (fitted, better) if better < uniform else (alike, uniform)
        work = sum(_work(made, self.n * weight / sum(weights)) for made, weight in zip(members, weights, strict=True))
        bits = (len(members) - 1).bit_length() + max(made.report_bits for made in members)
        return RangeOption(method, oracle, shape, members, weights, error, uniform, self.n, bits, work)


def _work(mechanism: Mechanism, n: float) -> float:
    work: Callable[[Any, int], float] = KINDS[mechanism.kind if mechanism.kind in KINDS else "hrr"][1]
    return work(mechanism, ceil(n))


def expected_error(
    shape: Shape, workload: Workload, members: Sequence[Mechanism], weights: Sequence[float], n: int
) -> float:
    """n times the mean squared error over a workload on uniform data; members and weights are by height."""
    shares = [weight / sum(weights) for weight in weights]
    signed = isinstance(members[0], HRRSigned)
    if not shape.complete and shape.size <= EXACT_RAGGED:
        asked, crowd = zip(range(shape.top), members, shares, strict=True), max(2, n)
        return crowd * averaged(
            expected_uncertainty(shape, asked, crowd, np.full(shape.size, 1 / shape.size)), workload
        )
    noise = [
        contrast_noise(made, shape.nodes(height)) / share
        for height, (made, share) in enumerate(zip(members, shares, strict=True))
    ]
    scales = [1 / share for share in shares]
    variances = signed_variances(shape, noise, scales) if signed else first_pass(shape, noise)
    return mean_variance(shape, workload, variances) - workload.spread(shape.size)


def expected_uncertainty(
    shape: Shape, asked: Iterable[tuple[int, Mechanism, float]], n: int, leaves: F64
) -> Uncertainty:
    """How uncertain a fit will be if the leaves are these: heights, their mechanisms and their shares of n respondents.

    Every level is taken to be asked as often as expected.
    """
    masses = {0: leaves}
    for height in range(1, shape.top + 1):
        masses[height] = shape.parents(masses[height - 1])
    levels: list[Level] = []
    for height, made, share in asked:
        value, signed = masses[height], isinstance(made, HRRSigned)
        if signed:
            halves = value if not value.size % 2 else np.append(value, 0.0)
            value = halves[0::2] - halves[1::2]
        moments: Moments = getattr(made, "moments")  # noqa: B009 - every oracle has them, and the signed kind
        levels.append(Level(height, value, moments, 1 / (n * share), signed=signed))
    return Uncertainty(fit_levels(shape.size, shape.fanout, levels), float(n))


def averaged(known: Uncertainty, workload: Workload) -> float:
    """The variance of an answer averaged over a workload, answer by answer.

    Over all ranges, from the prefixes P alone: the sum over x < y of Var(P_y - P_x) is (size + 1) times the sum of
    their variances less the variance of their sum.
    """
    size = known.fit.shape.size
    if workload.name in ("points", "length"):
        length = max(1, workload.length)
        low = np.arange(size - length + 1)
        return float(known.spans(low, low + length).mean())
    ends = np.arange(1, size + 1)
    prefixes = float(known.spans(np.zeros_like(ends), ends).sum())
    if workload.name == "prefixes":
        return prefixes / size
    sums = float(known.linear(np.arange(size, 0, -1.0)[None, :])[0])
    return ((size + 1) * prefixes - sums) / (size * (size + 1) / 2)
