"""Noisy reports beside their public rows, sorted by the level they answer, in the layout that the C kernels read.

`link` takes reports from the wire apart, `collect` simulates respondents; both give `Linked`, the input of `terms`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64
from tacit.core.compose import AllOf, OneOf
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.pure import PureOracle
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import LocalHashOracle
from tacit.post.grids.shape import Heights
from tacit.sql.design.cover import LevelCoefficients
from tacit.sql.design.levels import Design, MemberGroup
from tacit.sql.patience import Check, patient

Supports = Callable[[LevelCoefficients, Check], tuple[F64, F64]]
_STEP = 1 << 27
"""Hashes between two checks of the deadline and of whether the client is still there: a fraction of a second."""


@dataclass(frozen=True, eq=False)
class MemberReports:
    """The reports on one level (member), and the rows they belong to."""

    oracle: PureOracle
    rows: "I64 | slice"
    supports: Supports
    """For every report, sums of the coefficients of the nodes that it supports, and of their squares (not debiased)."""

    def sums(self, part: LevelCoefficients, check: Check = patient) -> tuple[F64, F64]:
        """Debiased sums per report: of (support - q)/(p - q) times the coefficients, and times their squares."""
        p, q = self.oracle.p, self.oracle.q
        same = part.constant
        sums, squares = self.supports(part, check)
        first = (sums - float(q) * part.coefficients.sum()) / float(p - q)
        # Fast path: with one coefficient a, the sum of squares is a times the sum, and needs no second pass.
        if same is not None:
            return first, same * first
        return first, (squares - float(q) * np.sum(part.coefficients**2)) / float(p - q)


def _hashed(oracle: LocalHashOracle, reports: Reports) -> Supports:
    """Support of local hashing: a report (seed, bucket) supports every node whose hash is its bucket."""
    seeds = np.ascontiguousarray(reports["seed"], np.uint32)
    buckets = np.ascontiguousarray(reports["bucket"], np.uint32)

    def matches_of(nodes: npt.NDArray[np.uint64], check: Check) -> F64:
        """For every report the number of these nodes that it supports; `check` runs every `_STEP` hashes."""
        found, step = np.zeros(len(seeds)), max(1, _STEP // max(1, len(seeds)))
        for start in range(0, len(nodes), step):
            check()
            found += kernels.hash_matches(seeds, buckets, oracle.g, nodes[start : start + step])
        return found

    def supports(part: LevelCoefficients, check: Check) -> tuple[F64, F64]:
        """One pass of the kernel per distinct coefficient, as it counts matches and does not weigh them."""
        values = np.unique(part.coefficients).tolist()
        if len(values) == 1:
            found = values[0] * matches_of(part.nodes, check)
            return found, found
        sums, squares = np.zeros(len(seeds)), np.zeros(len(seeds))
        for value in values:
            nodes = part.nodes[part.coefficients == value]
            matches = value * matches_of(nodes, check)
            sums += matches
            squares += value * matches
        return sums, squares

    return supports


def _direct(oracle: GRR, reports: Reports) -> Supports:
    """Support of randomised response: a report supports the one node that it names, so a table lookup is enough."""
    codes = reports.astype(np.intp)

    def supports(part: LevelCoefficients, check: Check) -> tuple[F64, F64]:
        check()
        table = np.zeros(oracle.size)
        table[part.nodes.astype(np.intp)] = part.coefficients
        found = table[codes]
        return found, found if part.constant is not None else found**2

    return supports


def answers_of(oracle: PureOracle, rows: "I64 | slice", reports: Reports) -> MemberReports:
    """The reports on one level, validated, with the kernel that fits its oracle."""
    good = oracle.check_reports(reports)
    if isinstance(oracle, LocalHashOracle):
        return MemberReports(oracle, rows, _hashed(oracle, good))
    if isinstance(oracle, GRR):
        return MemberReports(oracle, rows, _direct(oracle, good))
    raise InvalidSpec(f"analytics: levels are asked by {oracle.kind}, must be grr or olh")


@dataclass(frozen=True, eq=False)
class Linked:
    """All reports of a design by combined level.

    With one group every row has one report, and rows are sorted by level: `order[i]` is the original number of the row
    that is now at place i. The rows of a level are then one slice, of the reports as of the public columns, which
    `OrderedRows` permutes alike:

        original rows    0    1    2    3    4
        level drawn      l1   l0   l1   l0   l1         order = [1, 3, 0, 2, 4]
        sorted           l0   l0 | l1   l1   l1         answers[l0].rows = slice(0, 2), answers[l1].rows = slice(2, 5)

    With several groups every row has several reports, so rows stay where they are, `order` is None, and `rows` of a
    level is an array of indices.
    """

    design: Design
    n: int
    answers: dict[Heights, MemberReports]
    order: I64 | None = None

    @property
    def nbytes(self) -> int:
        """Bytes per row and group: 8 for the report, and 8 for its index in `order` or in the rows of a level."""
        return 16 * self.n * len(self.design.groups)


Found = tuple[dict[Heights, MemberReports], "I64 | None"]


def _by_member(
    group: MemberGroup, members: npt.NDArray[Any], get: Callable[[int, I64], Reports], *, alone: bool
) -> Found:
    """Split the reports of a group by level; for the only group of a design (`alone`) also the new order of rows."""
    # numpy's stable sort is a radix sort, O(n), for 16-bit integers alone; for wider ones it is a merge sort.
    short = members.astype(np.uint16) if len(group.heights) <= 1 << 16 else members
    order = np.argsort(short, kind="stable")
    ends = np.cumsum(np.bincount(members, minlength=len(group.heights))).tolist()
    found: dict[Heights, MemberReports] = {}
    for i, (start, stop) in enumerate(pairwise([0, *ends])):
        rows = order[start:stop]
        place = slice(start, stop) if alone else rows
        found[group.heights[i]] = answers_of(group.oracles[i], place, get(i, rows))
    return found, order if alone else None


def _unwrapped(group: MemberGroup, mechanism: Mechanism, reports: Reports, *, alone: bool) -> Found:
    """The reports on one group, by level; where it has several levels, the report names the one that was drawn."""
    if not isinstance(mechanism, OneOf):
        return {group.heights[0]: answers_of(group.oracles[0], slice(0, len(reports)), reports)}, None
    fits = reports.dtype == mechanism.report_dtype
    if not fits or (len(reports) and int(reports["member"].max()) >= len(group.heights)):
        # The quick look above failed; the full check raises an error that says what is wrong. Payloads are checked
        # once they are decoded, level by level.
        reports = mechanism.check_reports(reports)

    def payload(i: int, rows: I64) -> Reports:
        return mechanism.payload(i, reports[rows])

    return _by_member(group, reports["member"].astype(np.int64), payload, alone=alone)


def link(design: Design, reports: Reports) -> Linked:
    """Link the reports of a design's mechanism, as decoded from the wire, one per row."""
    mechanism = design.mechanism
    if not isinstance(mechanism, AllOf):
        found, order = _unwrapped(design.groups[0], mechanism, reports, alone=True)
        return Linked(design, len(reports), found, order)
    every: dict[Heights, MemberReports] = {}
    for i, group in enumerate(design.groups):
        inner = np.ascontiguousarray(reports[f"answer_{i}"])
        every |= _unwrapped(group, mechanism.member(i), inner, alone=False)[0]
    return Linked(design, len(reports), every)


def _drawn(group: MemberGroup, n: int, rng: np.random.Generator) -> I64:
    """Simulate which level of a group every respondent draws."""
    shares = np.array(group.shares)
    return np.searchsorted(np.cumsum(shares / shares.sum())[:-1], rng.random(n), side="right")


def collect(design: Design, values: I64, coins: Coins, rng: np.random.Generator) -> Linked:
    """Simulate the reports of respondents, a row of private indices each, and link them.

    The distribution is that of the mechanism's own `privatize`. That one is slow here: levels consume different
    numbers of random words, so it cannot be vectorised over respondents. Here the respondents of every level are one
    batch.
    """
    found: dict[Heights, MemberReports] = {}
    order: I64 | None = None
    for group in design.groups:
        # `group` is bound as a default value, because a closure would see the loop's last group.
        def reports(i: int, rows: I64, group: MemberGroup = group) -> Reports:
            return group.oracles[i].privatize(design.nodes_of(group.heights[i], values[rows]), coins)

        members = _drawn(group, len(values), rng)
        some, order = _by_member(group, members, reports, alone=len(design.groups) == 1)
        found |= some
    return Linked(design, len(values), found, order)


def collect_reports(design: Design, values: I64, coins: Coins, rng: np.random.Generator) -> Reports:
    """Simulate reports in the layout of the wire, in the order of the rows."""
    mechanism = design.mechanism
    if not isinstance(mechanism, AllOf):
        return _answered(design, 0, mechanism, values, coins, rng)
    found = np.zeros(len(values), mechanism.report_dtype)
    for i in range(len(design.groups)):
        found[f"answer_{i}"] = _answered(design, i, mechanism.member(i), values, coins, rng)
    return found


def _answered(
    design: Design, g: int, mechanism: Mechanism, values: I64, coins: Coins, rng: np.random.Generator
) -> Reports:
    """Simulated reports on group g, in the layout of its mechanism."""
    group = design.groups[g]
    if not isinstance(mechanism, OneOf):
        return group.oracles[0].privatize(design.nodes_of(group.heights[0], values), coins)
    found = np.zeros(len(values), mechanism.report_dtype)
    found["member"] = _drawn(group, len(values), rng)
    for i, heights in enumerate(group.heights):
        rows = np.flatnonzero(found["member"] == i)
        inner = group.oracles[i].privatize(design.nodes_of(heights, values[rows]), coins)
        found[rows] = mechanism.wrapped(i, inner)
    return found
