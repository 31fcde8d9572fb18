"""What composed mechanisms share: members grouped by equal mechanism, their tallies, and reports as bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self, Union, cast

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64, U8
from tacit.core.cell_rule import largest
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism
from tacit.core.tally import Counts, Log, Tally, check_sums, same_mechanism, same_weighting
from tacit.device.base import Device
from tacit.errors import InvalidSpec, SpecMismatch

Candidates = Sequence[npt.ArrayLike | None]


def as_bytes(reports: npt.NDArray[Any]) -> U8:
    """Reports as rows of bytes."""
    whole = np.ascontiguousarray(reports)
    width = whole.dtype.itemsize * prod(whole.shape[1:])
    return whole.view(np.uint8).reshape(len(whole), width) if whole.size else np.zeros((len(whole), width), np.uint8)


@dataclass(frozen=True, eq=False)
class Layout:
    """Members with equal mechanisms form one block, whose tallies are kept as one array with a row per member.

    For members with mechanisms a, b, a: `blocks` is (a, b), `block` (0, 1, 0), `row` (0, 0, 1) and `rows` (2, 1).
    """

    blocks: tuple[Mechanism, ...]
    """The different mechanisms, in order of their first member."""
    block: tuple[int, ...]
    """For every member, the place of its mechanism in `blocks`."""
    row: tuple[int, ...]
    """For every member, its row within the block."""
    rows: tuple[int, ...]
    """For every block, how many members it has."""

    def mechanism(self, member: int) -> Mechanism:
        """The mechanism of a member."""
        return self.blocks[self.block[member]]


def layout_of(mechanisms: Sequence[Device]) -> Layout:
    """Group members by equal mechanism, in order of their first member."""
    places: dict[Device, int] = {}
    sizes: list[int] = []
    block: list[int] = []
    row: list[int] = []
    for mechanism in mechanisms:
        if not isinstance(mechanism, Mechanism):
            raise InvalidSpec(f"{mechanism.kind}: a member has no server half; parse the spec with the catalogue")
        place = places.setdefault(mechanism, len(places))
        sizes.extend([0] * (place + 1 - len(sizes)))
        block.append(place)
        row.append(sizes[place])
        sizes[place] += 1
    blocks = tuple(m for m in places if isinstance(m, Mechanism))
    return Layout(blocks, tuple(block), tuple(row), tuple(sizes))


@dataclass(frozen=True, eq=False)
class MemberCounts:
    """Counts of all members that share one mechanism: the fields of `Counts`, with one row per member."""

    mechanism: Mechanism
    n: I64
    cells: I64
    cells2: I64
    total: I64
    total2: I64

    @classmethod
    def stack(cls, mechanism: Mechanism, rows: int, counts: Mapping[int, Counts], empty: Counts) -> Self:
        """Put the tallies of a block's members into arrays; members nobody answered get zeros."""
        shape = (rows, *empty.cells.shape)
        weighted = any(row.is_weighted for row in counts.values())
        n, total, total2 = (np.zeros(rows, np.int64) for _ in range(3))
        cells = np.zeros(shape, np.int64)
        cells2 = np.zeros(shape, np.int64) if weighted else cells
        for i, row in counts.items():
            n[i], total[i], total2[i], cells[i] = row.n, row.total, row.total2, row.cells
            if weighted:
                cells2[i] = row.cells2
        return cls(mechanism, n, cells, cells2, total, total2)

    @property
    def is_weighted(self) -> bool:
        """Whether reports carried weights."""
        return self.cells2 is not self.cells

    def row(self, i: int) -> Counts:
        """The tally of one member."""
        cells = self.cells[i]
        cells2 = self.cells2[i] if self.is_weighted else cells
        return Counts(self.mechanism, int(self.n[i]), cells, cells2, int(self.total[i]), int(self.total2[i]))

    def __add__(self, other: Self) -> "MemberCounts":
        """The counts of both groups of reports."""
        # The sums are checked before they are formed: an array of int64 wraps without a word.
        check_sums(*(largest(a) + largest(b) for a, b in self._pairs(other)))
        cells = self.cells + other.cells
        weighted = self.is_weighted or other.is_weighted
        cells2 = self.cells2 + other.cells2 if weighted else cells
        totals = self.total + other.total, self.total2 + other.total2
        return MemberCounts(self.mechanism, self.n + other.n, cells, cells2, *totals)

    def _pairs(self, other: "MemberCounts") -> "list[tuple[I64, I64]]":
        """The arrays that are added: the squares too, where there are any."""
        plain = [(self.n, other.n), (self.total, other.total), (self.total2, other.total2), (self.cells, other.cells)]
        return [*plain, (self.cells2, other.cells2)] if self.is_weighted or other.is_weighted else plain


AnyTally = Union[Counts, Log, "PerMember"]
Part = MemberCounts | tuple[Union[Log, "PerMember"], ...]
"""The tallies of one block: a grid of counts, or one tally each where they are logs or composed themselves."""


@dataclass(frozen=True, eq=False)
class PerMember:
    """One tally per member of a composed mechanism: a grid of counts, or a list of other tallies, for every block."""

    mechanism: Device
    n: int
    layout: Layout
    parts: tuple[Part, ...]

    @property
    def is_empty(self) -> bool:
        """Whether no report was counted."""
        return self.n == 0

    @property
    def is_weighted(self) -> bool:
        """Whether reports carried weights."""
        return any(tally.is_weighted for part in self.parts for tally in _tallies(part))

    def member(self, i: int) -> "AnyTally":
        """The tally of member i."""
        part, row = self.parts[self.layout.block[i]], self.layout.row[i]
        return part.row(row) if isinstance(part, MemberCounts) else part[row]

    def __add__(self, other: Self) -> "PerMember":
        """The tallies of both groups of respondents."""
        same_mechanism(self.mechanism, other.mechanism)
        same_weighting(self, other)
        parts = tuple(_add(a, b) for a, b in zip(self.parts, other.parts, strict=True))
        return PerMember(self.mechanism, self.n + other.n, self.layout, parts)


def keeps_reports(tally: AnyTally) -> bool:
    """Whether a tally holds reports, so that its size grows with their number; one of counts does not."""
    if not isinstance(tally, PerMember):
        return isinstance(tally, Log)
    return any(isinstance(part, tuple) and any(map(keeps_reports, part)) for part in tally.parts)


def _tallies(part: Part) -> "tuple[MemberCounts | Log | PerMember, ...]":
    return (part,) if isinstance(part, MemberCounts) else part


def _add(a: Any, b: Any) -> Part:
    if isinstance(a, MemberCounts) and isinstance(b, MemberCounts):
        return a + b
    if isinstance(a, tuple) and isinstance(b, tuple):
        pairs = zip(cast("tuple[Any, ...]", a), cast("tuple[Any, ...]", b), strict=True)
        return tuple(x + y for x, y in pairs)
    raise SpecMismatch("cannot merge tallies: one keeps counts and the other a log of reports")


def per_member(mechanism: Device, layout: Layout, n: int, tallies: Mapping[int, AnyTally]) -> PerMember:
    """Put the tallies of the members that were answered into their blocks."""
    found: list[dict[int, AnyTally]] = [{} for _ in layout.blocks]
    for member, tally in tallies.items():
        found[layout.block[member]][layout.row[member]] = tally
    blocks = enumerate(zip(layout.blocks, found, strict=True))
    parts = tuple(_part(block, layout.rows[i], rows) for i, (block, rows) in blocks)
    return PerMember(mechanism, n, layout, parts)


def _part(mechanism: Mechanism, rows: int, tallies: Mapping[int, AnyTally]) -> Part:
    empty: AnyTally = mechanism.tally(np.empty(0, mechanism.report_dtype))
    if isinstance(empty, Counts):
        counts = {row: tally for row, tally in tallies.items() if isinstance(tally, Counts)}
        return MemberCounts.stack(mechanism, rows, counts, empty)
    others = {row: tally for row, tally in tallies.items() if not isinstance(tally, Counts)}
    return tuple(others.get(row, empty) for row in range(rows))


def candidates_of(kind: str, candidates: Candidates | None, members: int) -> Candidates:
    """What each member is asked for; None is its whole domain."""
    asked = [None] * members if candidates is None else candidates
    if len(asked) != members:
        raise InvalidSpec(
            f"{kind}: {len(asked)} lists of candidates for {members} members; give one, or None, for each"
        )
    return asked


def variance_scale(tally: Tally) -> float:
    """Sum of squared weights over the squared sum of weights: 1/n without weights."""
    if isinstance(tally, Counts):
        return tally.variance_scale
    if not tally.is_weighted:
        return 1 / tally.n
    total, total2, _ = tally.weight_sums
    return total2 / total**2


def against_everyone(estimate: Estimate, tally: Tally, respondents: int) -> Estimate:
    """An estimate of a random group as one of all respondents: adds f(1-f)/n_g (n-n_g)/(n-1) to the variance.

    The group is a sample without replacement, drawn independently of the values. The estimate keeps the
    number of reports behind it; a value of 1 stands for all respondents.
    """
    if not estimate.has_data:
        return estimate
    scale, law = variance_scale(tally), estimate.law
    factor = scale * (respondents - estimate.n) / max(1, respondents - 1)

    def combined(rows: F64) -> F64:
        return estimate.variance_of(rows) + factor * estimate.spread_of(rows)

    return replace(
        estimate,
        variance=estimate.variance + factor * estimate.cell_spread,
        total=estimate.total * respondents / estimate.n,
        covariance=combined,
        effective=respondents / (estimate.n * scale),
        law=law if law is None or estimate.spread is not None else law.sampled(factor),
    )
