"""`OneOf`: every respondent answers one question of a family, drawn by public coins."""

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U64
from tacit.core.draws import VARIES, Sweep, UnaryMembers, sweep
from tacit.core.mechanism import CodeCounting, Mechanism, Oracle, Reports, indices_below, integer_array
from tacit.core.members import (
    AnyTally,
    Candidates,
    Layout,
    MemberCounts,
    PerMember,
    against_everyone,
    as_bytes,
    candidates_of,
    layout_of,
    per_member,
)
from tacit.core.sets import memberships
from tacit.core.statistics.simulated import split_counts
from tacit.core.tally import checked_weights, own_tally
from tacit.device.families.compose import OneOfDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, ceil_div
from tacit.errors import InvalidSpec

_SIMULATED_CELLS = 1 << 16


class OneOf(OneOfDevice, Mechanism):
    """Each respondent answers one member of a family, drawn by public coins; epsilon is not split.

    Reports: the member and its payload, padded to the widest. Cost: one coin word more than the member's.
    Privacy: the largest epsilon of the members, whichever is drawn.
    Variance: v(f)/n_g + f(1 - f)/n_g (n - n_g)/(n - 1) against all n respondents, n_g of whom were asked.
    Reference: Wang's dissertation, section 3.4.2; the second term is the sampling error it leaves out.

    `estimate` gives one Estimate per member. See docs/maths/one_of.md.

    >>> from tacit.device.families.compose import Questions
    >>> from tacit.oracles.grr import GRR
    >>> m = OneOf(family=Questions(mechanisms=(GRR(size=2, epsilon="1"), GRR(size=5, epsilon="1"))))
    >>> m.budget.to_spec(), m.report_bits
    ('1', 4)
    """

    @cached_property
    def layout(self) -> Layout:
        """Members grouped by equal mechanism; their tallies are kept as one array per group."""
        return layout_of([self.family.mechanism(i) for i in range(len(self.family))])

    def _widest(self) -> int:
        return max(block.report_dtype.itemsize for block in self.layout.blocks)

    def _check(self) -> None:
        super()._check()
        if self.payload_bytes != self._widest():
            raise InvalidSpec(f"one_of: payload_bytes is {self.payload_bytes}, must be {self._widest()}")

    def member(self, i: int) -> Mechanism:
        """The mechanism of member i."""
        return self.layout.mechanism(i)

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """The member, then its report padded with zeros."""
        return np.dtype([("member", "<u4"), ("payload", "u1", (self.payload_bytes,))])

    @property
    def report_bits(self) -> int:
        """The bits that name a member, and the widest member's."""
        return (len(self.family) - 1).bit_length() + max(block.report_bits for block in self.layout.blocks)

    @property
    def cell_count(self) -> int:
        """The cells of all members."""
        pairs = zip(self.layout.blocks, self.layout.rows, strict=True)
        return sum(block.cell_count * rows for block, rows in pairs)

    @property
    def payload_widths(self) -> tuple[int, ...]:
        """Blocks of a batch are by member, all padded to the same width."""
        return (self.payload_bytes,) * len(self.family)

    def join_batch(self, members: npt.ArrayLike, payload: bytes | memoryview) -> Reports:
        """Reports from the member of each (or of all) and their padded payloads end to end."""
        rows = np.frombuffer(payload, np.uint8).reshape(-1, self.payload_bytes)
        reports = np.empty(len(rows), self.report_dtype)
        reports["member"], reports["payload"] = members, rows
        return reports

    def split_batch(self, reports: Reports) -> tuple[npt.NDArray[np.uint32], Reports]:
        """The member of every report, and the padded payloads."""
        return reports["member"], reports["payload"]

    @property
    def member_count(self) -> int:
        """Members of the family."""
        return len(self.family)

    def marginal(self, tally: PerMember, i: int) -> AnyTally:
        """The tally of those who answered member i."""
        return tally.member(i)

    def payload(self, member: int, reports: Reports) -> Reports:
        """The reports of a member's own mechanism, out of composed reports that are all about it."""
        mechanism = self.member(member)
        return mechanism.decode(reports["payload"][:, : mechanism.report_dtype.itemsize].tobytes())

    def wrapped(self, member: int, inner: Reports) -> Reports:
        """Composed reports around those of a member's own mechanism, padded with zeros."""
        reports = np.zeros(len(inner), self.report_dtype)
        reports["member"] = member
        reports["payload"][:, : self.member(member).report_dtype.itemsize] = as_bytes(inner)
        return reports

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on a batch: one value per row, or one row of answers where the family has several attributes."""
        array = self._batch(values)
        if not len(array) or array.ndim != self._axes:
            # Answers that are lists themselves, and rows that no device would accept: those are refused one by one.
            return self.decode(b"".join(self.privatize_one(value, coins) for value in array.tolist()))
        self._check_answers(array)
        reports = np.empty(len(array), self.report_dtype)
        draws = self._chosen, self._payload_of(array), self._unary(array)
        for part in sweep(coins, len(array), self._costs, *draws):
            for member, places in _groups(part.members):
                at = part.first + places
                reports[at] = self.wrapped(member, self._members_reports(member, array, at, part, places))
        return reports

    @property
    def _axes(self) -> int:
        """Dimensions of a batch: two where a row holds a respondent's answers, or the indicators of a set."""
        return 1 if self.family.domain_size and not self.family.holds_sets else 2

    def _batch(self, values: Any) -> npt.NDArray[Any]:
        """Values as an array; answers among which there are sets as a column of objects, a row of answers each."""
        if self.family.holds_sets:
            return memberships(values, self.kind, len(self.family))
        if not any(isinstance(first, tuple) for first in _answers(self.family.first_value)):
            return integer_array(values)
        column = np.empty(len(values), object)
        column[:] = list(values)
        return column

    @cached_property
    def _costs(self) -> I64:
        """Coin words of every member's reports, without the one that draws the member."""
        costs = [block.coin_words for block in self.layout.blocks]
        return np.array([VARIES if cost is None else cost for cost in costs], np.int64)[list(self.layout.block)]

    def _chosen(self, drawn: U64) -> I64:
        """The members that words draw, by the same bounds as `privatize_one`."""
        return np.searchsorted(self.bounds, kernels.uniform(drawn, self.bounds[-1]), side="right")

    def _payload_of(self, array: npt.NDArray[Any]) -> "Callable[[int, int, Coins], bytes]":
        """Draws one report on a row of the batch, for members whose cost in words is known only afterwards."""
        view = lru_cache(maxsize=None)(self.family.view)
        return lambda i, member, coins: self.member(member).privatize_one(view(member)(array[i]), coins)

    def _unary(self, array: npt.NDArray[Any]) -> UnaryMembers | None:
        """How the kernel draws the members whose cost varies, if all of them are unary kinds; else None."""
        varying = np.flatnonzero(self._costs == VARIES).tolist()
        lanes = [self.member(i).lanes for i in varying]
        known = [bits for bits in lanes if bits is not None]
        if not known or len(known) < len(varying):
            return None
        table = np.zeros((len(self.family), 4), np.uint64)
        table[varying] = np.array([(column, *bits) for column, bits in enumerate(known)], np.uint64)

        def ones(start: int, stop: int) -> npt.NDArray[np.int32]:
            rows = array[start:stop].T
            values = [cast("Oracle", self.member(i)).indices(self.family.view(i)(rows)) for i in varying]
            return np.stack(values, axis=1).astype(np.int32)

        return UnaryMembers(table, ones, len(varying), self.payload_bytes)

    def _members_reports(self, member: int, array: npt.NDArray[Any], at: I64, part: Sweep, places: I64) -> Reports:
        """The reports of one member of a sweep: those at `at` in the batch, at `places` in the sweep."""
        cost, mechanism = int(self._costs[member]), self.member(member)
        if cost == VARIES and part.payloads is not None:
            return mechanism.decode(part.payloads[places, : mechanism.report_dtype.itemsize].tobytes())
        if cost == VARIES:
            return mechanism.decode(b"".join(part.drawn[i] for i in at.tolist()))
        return mechanism.privatize(self.family.view(member)(array[at].T), part.coins(places, cost))

    def _check_answers(self, array: npt.NDArray[Any]) -> None:
        """Refuse a batch with a wrong answer to any question, whether or not that question would be drawn."""
        if self.family.checks_batches:
            return self.family.check_value(array.T)
        for i in range(len(self.family)):
            member = self.member(i)
            if member.value_count < 1 << 64:  # A kind that hashes takes any 64-bit integer.
                indices_below(member.value_count, member.kind, self.family.view(i)(array.T))

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Which reports name a member of the family, hold a report it could have made, and are padded with zeros."""
        # By block and not by member: members with equal mechanisms are judged together.
        known = np.flatnonzero(reports["member"] < len(self.family))
        valid = np.zeros(len(reports), np.bool_)
        for block, among in _groups(self._blocks[reports["member"][known]]):
            mechanism, places = self.layout.blocks[block], known[among]
            payload = reports["payload"][places]
            width = mechanism.report_dtype.itemsize
            inner = mechanism.decode(payload[:, :width].tobytes())
            valid[places] = mechanism.valid(inner) & ~payload[:, width:].any(axis=1)
        return valid

    @cached_property
    def _blocks(self) -> I64:
        """For every member, the place of its mechanism among the different ones."""
        return np.array(self.layout.block, np.int64)

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> PerMember:
        """One tally per member."""
        checked = None if weights is None else checked_weights(weights, len(reports))
        if self._starts is not None:
            return self._tally_codes(self._check_layout(reports), checked, self._starts)
        array = self.check_reports(reports)
        tallies = {
            member: self.member(member).tally(
                self.payload(member, array[places]), None if checked is None else checked[places]
            )
            for member, places in _groups(array["member"])
        }
        return per_member(self, self.layout, len(array), tallies)

    # Members that count codes are tallied in one pass: the cells of all members stand in one row, member after
    # member. Here members 0 and 2 share a mechanism of 3 codes (block A), and member 1 has codes 2 to 5, so that its
    # first two cells must stay empty (block B):
    #
    #     member          0         1             2
    #     code          0 1 2   0 1 2 3 4 5     0 1 2
    #     cell          0 1 2   3 4 5 6 7 8     9 10 11
    #     _starts       0       3               9         12     (one more than members: the end of the row)
    #     _places       A: [[0, 1, 2], [9, 10, 11]]     B: [[3, 4, 5, 6, 7, 8]]
    #     _forbidden    B: [[3, 4]]

    @cached_property
    def _starts(self) -> U64 | None:
        """Where the cells of every member start in the common row, and its end; None where members cannot share one.

        They can if every report is one code, of at most 8 bytes.
        """
        if self.payload_bytes > 8 or not all(isinstance(block, CodeCounting) for block in self.layout.blocks):
            return None
        sizes = [cast("CodeCounting", self.member(i)).codes.stop for i in range(len(self.family))]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)

    def _tally_codes(self, reports: Reports, weights: I64 | None, starts: U64) -> PerMember:
        """All members in one pass over the reports, without sorting them by member."""
        rows = as_bytes(reports)

        def counted(w: I64 | None) -> I64:
            cells, bad = kernels.count_members(rows, starts, w)
            if bad or any(cells[places].any() for places in self._forbidden):
                self._refuse_invalid(reports)
            return cells

        counts = counted(None)
        sums, squares = (counts, counts) if weights is None else (counted(weights), counted(weights**2))
        blocks = range(len(self.layout.blocks))
        parts = tuple(self._grid(block, counts, sums, squares) for block in blocks)
        return PerMember(self, len(reports), self.layout, parts)

    @cached_property
    def _places(self) -> list[I64]:
        """For every block of equal mechanisms, the cells of its members in the common row: one line per member."""
        assert self._starts is not None
        block, starts = np.array(self.layout.block), self._starts[:-1].astype(np.int64)
        widths = [cast("CodeCounting", mechanism).codes.stop for mechanism in self.layout.blocks]
        return [starts[block == i][:, None] + np.arange(width) for i, width in enumerate(widths)]

    @cached_property
    def _forbidden(self) -> list[I64]:
        """Cells below a mechanism's first code, for blocks whose codes do not start at zero.

        The kernel counts every code below the last one; a count in one of these cells shows a report that no device
        could have made.
        """
        firsts = [cast("CodeCounting", mechanism).codes.start for mechanism in self.layout.blocks]
        return [places[:, :first] for places, first in zip(self._places, firsts, strict=True) if first]

    def _grid(self, block: int, counts: I64, sums: I64, squares: I64) -> MemberCounts:
        """The tallies of a block's members, cut out of the common row."""
        places = self._places[block]
        n, cells = counts[places].sum(axis=1), sums[places]
        cells2 = cells if squares is sums else squares[places]
        return MemberCounts(self.layout.blocks[block], n, cells, cells2, cells.sum(axis=1), cells2.sum(axis=1))

    def estimate(  # pyright: ignore[reportIncompatibleMethodOverride] - one estimate per member, not one
        self, tally: PerMember, candidates: Candidates | None = None, *, respondents: int | None = None
    ) -> list[Any]:
        """One estimate per member (a list of them for a composed one), with the error of having asked a group only.

        The estimates speak for all respondents of the tally, or for more of whom they are a random part.
        """
        own_tally(self, tally)
        asked = candidates_of(self.kind, candidates, len(self.family))
        everybody = tally.n if respondents is None else respondents
        estimates: list[Any] = []
        for i, named in enumerate(asked):
            member, part = self.member(i), tally.member(i)
            if isinstance(part, PerMember):
                estimates.append(cast("OneOf", member).estimate(part, respondents=everybody))
            else:
                estimates.append(against_everyone(member.estimate(part, named), part, everybody))
        return estimates

    def probability(self, member: int) -> float:
        """The exact share of coin words that draw a member."""
        total, end = self.bounds[-1], self.bounds[member]
        start = end - self.family.weights[member]
        return (ceil_div(end * WORD, total) - ceil_div(start * WORD, total)) / WORD

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """The probability of drawing the member, times that of the member's own report."""
        result = np.full(len(reports), -np.inf)
        for member, places in _groups(reports["member"]):
            inner = self.payload(member, reports[places])
            answer = self.family.view(member)(value)
            result[places] = self.member(member).log_prob(inner, answer) + np.log(self.probability(member))
        return result

    def all_reports(self) -> Reports:
        """Every report of every member, for small ones."""
        members = range(len(self.family))
        return np.concatenate([self.wrapped(i, self.member(i).all_reports()) for i in members])

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> PerMember:
        """Every respondent of joint counts (an axis per attribute) draws a member, then each member's own."""
        joint = np.asarray(counts, np.int64)
        held = [np.zeros(self.member(i).value_count, np.int64) for i in range(len(self.family))]
        shares = np.array([self.probability(i) for i in range(len(self.family))])
        for start in range(0, joint.size, _SIMULATED_CELLS):
            counted = joint.reshape(-1)[start : start + _SIMULATED_CELLS]
            groups = split_counts(counted, shares / shares.sum(), rng)
            # Most combinations of several attributes are nobody's, and what they are for a member need not be known.
            places = np.flatnonzero(counted)
            at = start + places
            values = at if joint.ndim == 1 else np.stack(np.unravel_index(at, joint.shape))
            for i, cells in enumerate(held):
                np.add.at(cells, self.family.view(i)(values), groups[places, i])
        tallies = {i: self.member(i).simulate_tally(cells, rng) for i, cells in enumerate(held)}
        return per_member(self, self.layout, int(joint.sum()), tallies)


def _answers(value: Any) -> list[Any]:
    """The answers to several questions; none where a value is a single one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _groups(members: npt.NDArray[Any]) -> Iterator[tuple[int, I64]]:
    """The members that occur, each with the places of its reports."""
    order = np.argsort(members, kind="stable")
    found, starts = np.unique(members[order], return_index=True)
    # Splitting nothing still gives one empty piece, which no member claims.
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=False)
