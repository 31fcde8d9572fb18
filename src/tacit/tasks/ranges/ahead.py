"""An adaptive tree for ranges (AHEAD): every group is asked about the partition that the last one led to.

    round 1   [ 0 .................... 15 ][ 16 .................. 31 ]      both halves; the left one is large: split
    round 2   [ 0 ........ 7 ][ 8 .... 15 ][ 16 .................. 31 ]      the right one is asked again
    round 3   ...

A part is split after its first measurement, if its share exceeds what splitting costs in noise. Parts that stay are
measured again and again. L. Du, Z. Zhang, S. Bai, C. Liu, S. Ji, P. Cheng and J. Chen, "AHEAD: adaptive hierarchical
decomposition for range query under local differential privacy", CCS 2021; the threshold and the least-squares fit are
derived in docs/maths/ranges.md, "Adaptive trees". Each respondent answers once, at the full epsilon, and the partition
depends on other respondents alone.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from math import ceil, log2, sqrt
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Oracle
from tacit.device.numbers.budget import Declared, as_budget
from tacit.errors import InvalidSpec
from tacit.tasks.choose import choose_oracle
from tacit.tasks.ranges.ranges import Ranges

MAX_PARTS = 2048
"""No part is split once there are so many: the fit solves a system of this size."""

_SPLIT = 3.0
"""Splitting in two pays where the squared share exceeds this many variances: keeping a part costs half a variance and
up to half of its squared share, splitting it two variances."""

NOTE = "intervals allow for noise and for uneven parts of the adaptive tree, and are approximate"


@dataclass(frozen=True)
class PartitionRound:
    """What a round asks of fresh respondents: in which part of the domain their value lies."""

    bounds: tuple[int, ...]
    """Where the parts begin, and the size of the domain: part i are the values from bounds[i] to bounds[i + 1] - 1."""
    mechanism: Oracle
    share: float
    """The share of all respondents that this round is put to."""

    def parts_of(self, values: I64) -> I64:
        """Return the part of every value: what a device reports on."""
        return np.searchsorted(self.bounds, values, side="right") - 1


AheadSteps = Generator[PartitionRound, Any, Ranges]
"""A running plan: it yields rounds, receives their tallies and returns the fitted ranges."""


@dataclass
class _Measured:
    """All that rounds said of a part: its estimates weighted by their precision."""

    precision: float = 0.0
    weighted: float = 0.0


@dataclass
class _Tree:
    """The parts that were asked, by their ends, and the current partition."""

    size: int
    bounds: list[int] = field(default_factory=list[int])
    measured: dict[tuple[int, int], _Measured] = field(default_factory=dict[tuple[int, int], _Measured])

    def add(self, value: F64, variance: F64) -> None:
        """Note a round and split what is large and new."""
        new = [0]
        room = MAX_PARTS - len(value)
        for i, (low, high) in enumerate(zip(self.bounds, self.bounds[1:], strict=False)):
            first = (low, high) not in self.measured
            known = self.measured.setdefault((low, high), _Measured())
            known.precision += 1 / variance[i]
            known.weighted += value[i] / variance[i]
            if first and room > 0 and high - low > 1 and value[i] > sqrt(_SPLIT * variance[i]):
                new.append((low + high) // 2)
                room -= 1
            new.append(high)
        self.bounds = new


def plan_ahead(*, size: int, epsilon: Declared, n: int) -> AheadSteps:
    """Ask about 2^16 values at most in log2(size) rounds of about n respondents in all; resume by replaying tallies."""
    if not 4 <= size <= 1 << 16 or n < 1:
        raise InvalidSpec(f"ahead: size is {size} and n {n}, must be from 4 to 65536 and at least 1; bucket the domain")
    budget, rounds = as_budget(epsilon), max(2, ceil(log2(size)))
    tree = _Tree(size, [0, size // 2, size])
    answered = 0
    for _ in range(rounds):
        parts = len(tree.bounds) - 1
        oracle = choose_oracle(size=parts, epsilon=budget, n=max(1, n // rounds)).pick.mechanism
        tally = yield PartitionRound(tuple(tree.bounds), oracle, 1 / rounds)
        if not tally.n:
            continue
        found = oracle.estimate(tally)
        answered += tally.n
        # Respondents of a round stand for all: sampling them adds f (1 - f)/n.
        variance = found.variance + found.cell_spread / found.effective
        tree.add(found.value, np.maximum(variance, 1e-300))
    return _fitted(tree, answered)


def _fitted(tree: _Tree, n: int) -> Ranges:
    """Least squares over all measured parts, the total being one; mass is spread evenly within the last parts."""
    size = tree.size
    ends = np.unique([0, size, *(end for part in tree.measured for end in part)])
    widths = np.diff(ends).astype(np.float64)
    if not tree.measured:
        even = np.full(size, 1 / size)
        return Ranges(
            even, 0, 0.0, lambda low, high: np.full(len(low), np.inf), lambda rows: np.full(len(rows), np.inf)
        )
    rows = np.array([[low <= at < high for at in ends[:-1]] for low, high in tree.measured], np.float64)
    precision = np.array([known.precision for known in tree.measured.values()])
    target = np.array([known.weighted for known in tree.measured.values()]) / precision
    inverse = np.linalg.pinv(rows.T @ (precision[:, None] * rows), hermitian=True)
    # The total is known: project the solution, and its covariance, onto sum one.
    ones = inverse @ np.ones(len(widths))
    covariance = inverse - np.outer(ones, ones) / ones.sum()
    free = inverse @ (rows.T @ (precision * target))
    mass = free + ones * (1 - free.sum()) / ones.sum()
    leaves = np.repeat(mass / widths, widths.astype(np.int64))
    noise = _Uneven(ends, widths, mass, covariance)
    return Ranges(leaves, n, float(n), noise.spans, noise.linear, note=NOTE)


@dataclass(frozen=True, eq=False)
class _Uneven:
    """Errors of answers that cut parts: the noise of the fit, and how uneven a part may be inside."""

    ends: I64
    widths: F64
    mass: F64
    covariance: F64

    def linear(self, rows: F64) -> F64:
        """Variances of linear answers over the values, as far as noise goes."""
        sums = np.add.reduceat(np.atleast_2d(rows), self.ends[:-1], axis=1) / self.widths
        return np.einsum("ij,jk,ik->i", sums, self.covariance, sums)

    def spans(self, low: I64, high: I64) -> F64:
        """Variances of ranges: noise, and as one deviation the largest error of the parts that it cuts."""
        inside = (
            np.clip(np.minimum(high[:, None], self.ends[1:]) - np.maximum(low[:, None], self.ends[:-1]), 0, None)
            / self.widths
        )
        noise = np.einsum("ij,jk,ik->i", inside, self.covariance, inside)
        cut = np.where((inside > 0) & (inside < 1), np.maximum(inside, 1 - inside), 0.0)
        most = cut * np.maximum(self.mass, np.sqrt(np.diag(self.covariance)))
        return noise + (most**2).sum(axis=1)


def drive_ahead(steps: AheadSteps, ask: Callable[[PartitionRound], Any]) -> Ranges:
    """Run a plan to its end; `ask` puts a round to fresh respondents and returns the tally of their reports."""
    try:
        asked = next(steps)
        while True:
            asked = steps.send(ask(asked))
    except StopIteration as stop:
        return stop.value
