"""Noisy reports that stay linked with their rows, grouped by what they answer and ready for the kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.core.compose import AllOf, OneOf
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.pure import PureOracle
from tacit.device.coins import Coins
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import LocalHashOracle
from tacit.post.grid_shape import Heights
from tacit.tasks.analytics.cover import Part
from tacit.tasks.analytics.levels import Design, Group

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """The reports of one member, and the rows they belong to."""

    oracle: PureOracle
    rows: I64
    supports: Callable[[Part], F64]
    """For every report, the sum of the coefficients of the nodes it supports."""

    def sums(self, part: Part) -> F64:
        """For every report, the sum over nodes of coefficient times (support - q)/(p - q)."""
        p, q = self.oracle.p, self.oracle.q
        return (self.supports(part) - float(q) * part.coefficients.sum()) / float(p - q)


def _hashed(oracle: LocalHashOracle, reports: Reports) -> Callable[[Part], F64]:
    seeds = np.ascontiguousarray(reports["seed"], np.uint32)
    buckets = np.ascontiguousarray(reports["bucket"], np.uint32)

    def supports(part: Part) -> F64:
        """One pass of the kernel for every different coefficient."""
        total = np.zeros(len(seeds))
        for value in np.unique(part.coefficients).tolist():
            nodes = part.nodes[part.coefficients == value]
            total += value * kernels.hash_matches(seeds, buckets, oracle.g, nodes)
        return total

    return supports


def _direct(oracle: GRR, reports: Reports) -> Callable[[Part], F64]:
    codes = reports.astype(np.intp)

    def supports(part: Part) -> F64:
        table = np.zeros(oracle.size)
        table[part.nodes.astype(np.intp)] = part.coefficients
        return table[codes]

    return supports


def answers_of(oracle: PureOracle, rows: I64, reports: Reports) -> Answers:
    """The reports of one member, checked."""
    good = oracle.check_reports(reports)
    if isinstance(oracle, LocalHashOracle):
        return Answers(oracle, rows, _hashed(oracle, good))
    if isinstance(oracle, GRR):
        return Answers(oracle, rows, _direct(oracle, good))
    raise InvalidSpec(f"analytics: levels are asked by {oracle.kind}, must be grr or olh")


@dataclass(frozen=True, eq=False)
class Linked:
    """All reports of a design, row by row: the reports of every combined level."""

    design: Design
    n: int
    answers: dict[Heights, Answers]


def _by_member(group: Group, members: npt.NDArray[Any], get: Callable[[int, I64], Reports]) -> dict[Heights, Answers]:
    order = np.argsort(members, kind="stable")
    ends = np.cumsum(np.bincount(members, minlength=len(group.heights)))
    pieces = np.split(order, ends[:-1])
    return {
        heights: answers_of(oracle, rows, get(i, rows))
        for i, (heights, oracle, rows) in enumerate(zip(group.heights, group.oracles, pieces, strict=True))
    }


def _unwrapped(group: Group, mechanism: Mechanism, reports: Reports) -> dict[Heights, Answers]:
    """The answers to one group, whose member is named in the report where there are several."""
    if not isinstance(mechanism, OneOf):
        rows = np.arange(len(reports))
        return {group.heights[0]: answers_of(group.oracles[0], rows, reports)}
    checked = mechanism.check_reports(reports)

    def payload(i: int, rows: I64) -> Reports:
        member = mechanism.member(i)
        return member.decode(checked["payload"][rows][:, : member.report_dtype.itemsize].tobytes())

    return _by_member(group, checked["member"].astype(np.int64), payload)


def link(design: Design, reports: Reports) -> Linked:
    """The reports of a design's mechanism, one per row."""
    mechanism = design.mechanism
    found: dict[Heights, Answers] = {}
    if isinstance(mechanism, AllOf):
        for i, group in enumerate(design.groups):
            found |= _unwrapped(group, mechanism.member(i), np.ascontiguousarray(reports[f"answer_{i}"]))
    else:
        found = _unwrapped(design.groups[0], mechanism, reports)
    return Linked(design, len(reports), found)


def collect(design: Design, values: I64, coins: Coins, rng: np.random.Generator) -> Linked:
    """Reports of simulated respondents, a row of private indices each: the same law as `privatize`, in batches.

    Members with different numbers of coin words keep `privatize` from working in one sweep; here every member's
    respondents are a batch.
    """
    found: dict[Heights, Answers] = {}
    for group in design.groups:
        shares = np.array(group.shares)
        bounds = np.cumsum(shares / shares.sum())[:-1]
        members = np.searchsorted(bounds, rng.random(len(values)), side="right")

        def reports(i: int, rows: I64, group: Group = group) -> Reports:
            return group.oracles[i].privatize(design.nodes_of(group.heights[i], values[rows]), coins)

        found |= _by_member(group, members, reports)
    return Linked(design, len(values), found)
