"""Noisy reports that stay linked with their rows, grouped by what they answer and ready for the kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
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
from tacit.tasks.analytics.patience import Check, patient

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Supports = Callable[[Part, Check], tuple[F64, F64]]
_STEP = 1 << 27
"""Hashes between two checks of whether anybody still waits: a fraction of a second."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The reports of one member, and the rows they belong to."""

    oracle: PureOracle
    rows: "I64 | slice"
    supports: Supports
    """For every report, the sums over the nodes it supports of their coefficients, and of the squares of these."""

    def sums(self, part: Part, check: Check = patient) -> tuple[F64, F64]:
        """For every report, sums over nodes of (support - q)/(p - q) times coefficients, and times their squares."""
        p, q = self.oracle.p, self.oracle.q
        same = part.constant
        sums, squares = self.supports(part, check)
        first = (sums - float(q) * part.coefficients.sum()) / float(p - q)
        if same is not None:
            return first, same * first
        return first, (squares - float(q) * np.sum(part.coefficients**2)) / float(p - q)


def _hashed(oracle: LocalHashOracle, reports: Reports) -> Supports:
    seeds = np.ascontiguousarray(reports["seed"], np.uint32)
    buckets = np.ascontiguousarray(reports["bucket"], np.uint32)

    def matches_of(nodes: npt.NDArray[np.uint64], check: Check) -> F64:
        """How many of some nodes every report supports."""
        found, step = np.zeros(len(seeds)), max(1, _STEP // max(1, len(seeds)))
        for start in range(0, len(nodes), step):
            check()
            found += kernels.hash_matches(seeds, buckets, oracle.g, nodes[start : start + step])
        return found

    def supports(part: Part, check: Check) -> tuple[F64, F64]:
        """One pass of the kernel for every different coefficient."""
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
    codes = reports.astype(np.intp)

    def supports(part: Part, check: Check) -> tuple[F64, F64]:
        check()
        table = np.zeros(oracle.size)
        table[part.nodes.astype(np.intp)] = part.coefficients
        found = table[codes]
        return found, found if part.constant is not None else found**2

    return supports


def answers_of(oracle: PureOracle, rows: "I64 | slice", reports: Reports) -> Answers:
    """The reports of one member, checked."""
    good = oracle.check_reports(reports)
    if isinstance(oracle, LocalHashOracle):
        return Answers(oracle, rows, _hashed(oracle, good))
    if isinstance(oracle, GRR):
        return Answers(oracle, rows, _direct(oracle, good))
    raise InvalidSpec(f"analytics: levels are asked by {oracle.kind}, must be grr or olh")


@dataclass(frozen=True, eq=False)
class Linked:
    """All reports of a design: those of every combined level, and which rows they belong to.

    Where every row has one report, rows are put into the order of the levels: `order[i]` is the row that was given
    at place i. What belongs to a level is then in one piece, of the reports as of the public columns.
    """

    design: Design
    n: int
    answers: dict[Heights, Answers]
    order: I64 | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the reports, 8 bytes each, and of the order or the rows of every group's answers."""
        return 16 * self.n * len(self.design.groups)


Found = tuple[dict[Heights, Answers], "I64 | None"]


def _by_member(group: Group, members: npt.NDArray[Any], get: Callable[[int, I64], Reports], *, alone: bool) -> Found:
    """The answers of every member, and the order of the rows; that of the levels where the group is alone."""
    # Few members are sorted by counting, which numpy does for short integers alone.
    short = members.astype(np.uint16) if len(group.heights) <= 1 << 16 else members
    order = np.argsort(short, kind="stable")
    ends = np.cumsum(np.bincount(members, minlength=len(group.heights))).tolist()
    found: dict[Heights, Answers] = {}
    for i, (start, stop) in enumerate(pairwise([0, *ends])):
        rows = order[start:stop]
        place = slice(start, stop) if alone else rows
        found[group.heights[i]] = answers_of(group.oracles[i], place, get(i, rows))
    return found, order if alone else None


def _unwrapped(group: Group, mechanism: Mechanism, reports: Reports, *, alone: bool) -> Found:
    """The answers to one group, whose member is named in the report where there are several."""
    if not isinstance(mechanism, OneOf):
        return {group.heights[0]: answers_of(group.oracles[0], slice(0, len(reports)), reports)}, None
    fits = reports.dtype == mechanism.report_dtype
    if not fits or (len(reports) and int(reports["member"].max()) >= len(group.heights)):
        reports = mechanism.check_reports(reports)  # Refuses them, and says what is wrong. Payloads are checked below.

    def payload(i: int, rows: I64) -> Reports:
        member = mechanism.member(i)
        return member.decode(reports["payload"][rows][:, : member.report_dtype.itemsize].tobytes())

    return _by_member(group, reports["member"].astype(np.int64), payload, alone=alone)


def link(design: Design, reports: Reports) -> Linked:
    """The reports of a design's mechanism, one per row."""
    mechanism = design.mechanism
    if not isinstance(mechanism, AllOf):
        found, order = _unwrapped(design.groups[0], mechanism, reports, alone=True)
        return Linked(design, len(reports), found, order)
    every: dict[Heights, Answers] = {}
    for i, group in enumerate(design.groups):
        inner = np.ascontiguousarray(reports[f"answer_{i}"])
        every |= _unwrapped(group, mechanism.member(i), inner, alone=False)[0]
    return Linked(design, len(reports), every)


def _drawn(group: Group, n: int, rng: np.random.Generator) -> I64:
    """Which member every respondent answers."""
    shares = np.array(group.shares)
    return np.searchsorted(np.cumsum(shares / shares.sum())[:-1], rng.random(n), side="right")


def collect(design: Design, values: I64, coins: Coins, rng: np.random.Generator) -> Linked:
    """Reports of simulated respondents, a row of private indices each: the same law as `privatize`, in batches.

    Members with different numbers of coin words keep `privatize` from working in one sweep; here every member's
    respondents are a batch.
    """
    found: dict[Heights, Answers] = {}
    order: I64 | None = None
    for group in design.groups:

        def reports(i: int, rows: I64, group: Group = group) -> Reports:
            return group.oracles[i].privatize(design.nodes_of(group.heights[i], values[rows]), coins)

        members = _drawn(group, len(values), rng)
        some, order = _by_member(group, members, reports, alone=len(design.groups) == 1)
        found |= some
    return Linked(design, len(values), found, order)


def collect_reports(design: Design, values: I64, coins: Coins, rng: np.random.Generator) -> Reports:
    """The same as reports on the wire, row by row."""
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
    """Reports on one group."""
    group = design.groups[g]
    if not isinstance(mechanism, OneOf):
        return group.oracles[0].privatize(design.nodes_of(group.heights[0], values), coins)
    found = np.zeros(len(values), mechanism.report_dtype)
    found["member"] = _drawn(group, len(values), rng)
    for i, heights in enumerate(group.heights):
        rows = np.flatnonzero(found["member"] == i)
        inner = group.oracles[i].privatize(design.nodes_of(heights, values[rows]), coins)
        raw = np.frombuffer(inner.tobytes(), np.uint8).reshape(len(rows), inner.dtype.itemsize)
        payload = np.zeros((len(rows), mechanism.payload_bytes), np.uint8)
        payload[:, : raw.shape[1]] = raw
        found["payload"][rows] = payload
    return found
