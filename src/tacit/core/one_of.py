"""`OneOf`: every respondent answers one question of a family, drawn by public coins."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.core.mechanism import CodeCounting, Mechanism, Reports, indices_below, integer_array, words
from tacit.core.members import (
    Candidates,
    GivenCoins,
    Grid,
    Layout,
    PerMember,
    against_everyone,
    as_bytes,
    candidates_of,
    layout_of,
    per_member,
)
from tacit.core.simulated import split_counts
from tacit.core.tally import checked_weights, same_mechanism
from tacit.device.coins import Coins
from tacit.device.compose import OneOfDevice
from tacit.device.exact import WORD, ceil_div
from tacit.errors import InvalidSpec

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_SIMULATED_CELLS = 1 << 16


class OneOf(OneOfDevice, Mechanism):
    """Each respondent answers one member of a family, drawn by public coins; epsilon is not split.

    Reports: the member and its payload, padded to the widest. Cost: one coin word more than the member's.
    Privacy: the largest epsilon of the members, whichever is drawn.
    Variance: v(f)/n_g + f(1 - f)/n_g (n - n_g)/(n - 1) against all n respondents, n_g of whom were asked.
    Reference: Wang's dissertation, section 3.4.2; the second term is the sampling error it leaves out.

    `estimate` gives one Estimate per member. See docs/maths/one_of.md.

    >>> from tacit.device.compose import Questions
    >>> from tacit.oracles.grr import GRR
    >>> m = OneOf(family=Questions(mechanisms=(GRR(size=2, epsilon="1"), GRR(size=5, epsilon="1"))))
    >>> m.budget.to_spec(), m.report_bits
    ('1', 4)
    """

    @cached_property
    def layout(self) -> Layout:
        """Blocks of members with equal mechanisms."""
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
        """Member, then payload bytes."""
        return np.dtype([("member", "<u4"), ("payload", "u1", (self.payload_bytes,))])

    @property
    def report_bits(self) -> int:
        """The bits that name a member, and the widest member's."""
        return (len(self.family) - 1).bit_length() + max(block.report_bits for block in self.layout.blocks)

    @property
    def cell_count(self) -> int:
        """Those of all members."""
        pairs = zip(self.layout.blocks, self.layout.rows, strict=True)
        return sum(block.cell_count * rows for block, rows in pairs)

    def _payload(self, member: int, reports: Reports) -> Reports:
        """The members' own reports inside composed ones."""
        mechanism = self.member(member)
        return mechanism.decode(reports["payload"][:, : mechanism.report_dtype.itemsize].tobytes())

    def _wrapped(self, member: int, inner: Reports) -> Reports:
        """Composed reports around a member's own ones."""
        reports = np.zeros(len(inner), self.report_dtype)
        reports["member"] = member
        reports["payload"][:, : self.member(member).report_dtype.itemsize] = as_bytes(inner)
        return reports

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on a batch; in one sweep where all members use the same fixed number of coin words."""
        costs = {block.coin_words for block in self.layout.blocks}
        cost = costs.pop() if len(costs) == 1 else None
        array = integer_array(values)
        if cost is None or not len(array):
            return self.decode(b"".join(self.privatize_one(value, coins) for value in array))
        self._check_answers(array)
        drawn = words(coins, len(array), 1 + cost)
        chosen = np.searchsorted(self.bounds, kernels.uniform(drawn[:, 0], self.bounds[-1]), side="right")
        reports = np.empty(len(array), self.report_dtype)
        for member, places in _groups(chosen):
            answers = self.family.view(member)(array[places].T)
            inner = self.member(member).privatize(answers, GivenCoins(drawn[places, 1:]))
            reports[places] = self._wrapped(member, inner)
        return reports

    def _check_answers(self, array: npt.NDArray[Any]) -> None:
        """All answers are checked, not only the drawn ones; at once, where the family knows its values."""
        whole = getattr(self.family, "check_value", None)
        if whole is not None:
            return whole(array.T)
        for i in range(len(self.family)):
            member = self.member(i)
            if member.value_count < 1 << 64:
                indices_below(member.value_count, member.kind, self.family.view(i)(array.T))

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """A member of the family, a report it could have made, and zeros behind it."""
        valid = np.zeros(len(reports), np.bool_)
        for member, places in _groups(reports["member"]):
            if member < len(self.family):
                width = self.member(member).report_dtype.itemsize
                padding = reports["payload"][places][:, width:].any(axis=1)
                inner = self._payload(member, reports[places])
                valid[places] = self.member(member).valid(inner) & ~padding
        return valid

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> PerMember:
        """One tally per member."""
        checked = None if weights is None else checked_weights(weights, len(reports))
        if self._starts is not None:
            return self._tally_codes(self._check_layout(reports), checked, self._starts)
        array = self.check_reports(reports)
        tallies = {
            member: self.member(member).tally(
                self._payload(member, array[places]), None if checked is None else checked[places]
            )
            for member, places in _groups(array["member"])
        }
        return per_member(self, self.layout, len(array), tallies)

    @cached_property
    def _starts(self) -> U64 | None:
        """First cell of every member in one row of cells, where all members count codes; else None."""
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
        """Where the cells of every block are, a row per member."""
        assert self._starts is not None
        block, starts = np.array(self.layout.block), self._starts[:-1].astype(np.int64)
        widths = [cast("CodeCounting", mechanism).codes.stop for mechanism in self.layout.blocks]
        return [starts[block == i][:, None] + np.arange(width) for i, width in enumerate(widths)]

    @cached_property
    def _forbidden(self) -> list[I64]:
        """Cells of codes that no report may have, of the blocks whose codes do not start at zero."""
        firsts = [cast("CodeCounting", mechanism).codes.start for mechanism in self.layout.blocks]
        return [places[:, :first] for places, first in zip(self._places, firsts, strict=True) if first]

    def _grid(self, block: int, counts: I64, sums: I64, squares: I64) -> Grid:
        """The tallies of the members of a block."""
        places = self._places[block]
        n, cells = counts[places].sum(axis=1), sums[places]
        cells2 = cells if squares is sums else squares[places]
        return Grid(self.layout.blocks[block], n, cells, cells2, cells.sum(axis=1), cells2.sum(axis=1))

    def estimate(  # pyright: ignore[reportIncompatibleMethodOverride] - one estimate per member, not one
        self, tally: PerMember, candidates: Candidates | None = None, *, respondents: int | None = None
    ) -> list[Any]:
        """One estimate per member (a list of them for a composed one), with the error of having asked a group only.

        The estimates speak for all respondents of the tally, or for more of whom they are a random part.
        """
        same_mechanism(self, tally.mechanism, action="estimate this tally")
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
        """The member's own, and the draw of the member."""
        result = np.full(len(reports), -np.inf)
        for member, places in _groups(reports["member"]):
            inner = self._payload(member, reports[places])
            answer = self.family.view(member)(value)
            result[places] = self.member(member).log_prob(inner, answer) + np.log(self.probability(member))
        return result

    def all_reports(self) -> Reports:
        """Every report of every member, for small ones."""
        members = range(len(self.family))
        return np.concatenate([self._wrapped(i, self.member(i).all_reports()) for i in members])

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> PerMember:
        """Every respondent of joint counts (an axis per attribute) draws a member, then each member's own."""
        joint = np.asarray(counts, np.int64)
        held = [np.zeros(self.member(i).value_count, np.int64) for i in range(len(self.family))]
        shares = np.array([self.probability(i) for i in range(len(self.family))])
        for start in range(0, joint.size, _SIMULATED_CELLS):
            at = np.arange(start, min(start + _SIMULATED_CELLS, joint.size))
            values = at if joint.ndim == 1 else np.stack(np.unravel_index(at, joint.shape))
            groups = split_counts(joint.reshape(-1)[at], shares / shares.sum(), rng)
            for i, cells in enumerate(held):
                np.add.at(cells, self.family.view(i)(values), groups[:, i])
        tallies = {i: self.member(i).simulate_tally(cells, rng) for i, cells in enumerate(held)}
        return per_member(self, self.layout, int(joint.sum()), tallies)


def _groups(members: npt.NDArray[Any]) -> Iterator[tuple[int, I64]]:
    """The members that occur, each with the places of its reports."""
    order = np.argsort(members, kind="stable")
    found, starts = np.unique(members[order], return_index=True)
    # Splitting nothing still gives one empty piece, which no member claims.
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=False)
