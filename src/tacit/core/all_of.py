"""`AllOf`: every respondent answers all questions, each at a share of epsilon."""

from collections.abc import Sequence
from functools import cached_property, reduce
from math import prod
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U64
from tacit.core.cell_rule import CellRule
from tacit.core.draws import GivenCoins
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Reports, integer_array, words
from tacit.core.members import (
    AnyTally,
    Candidates,
    Layout,
    PerMember,
    as_bytes,
    candidates_of,
    layout_of,
    per_member,
)
from tacit.core.tally import Counts, Log, checked_weights, count_reports, own_tally
from tacit.device.families.compose import AllOfDevice, answers_of
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec

MAX_JOINT_CELLS = 1 << 20
"""The largest contingency table of joint reports that is kept as counts."""

_DIGIT_BITS = 20


class AllOf(AllOfDevice, Mechanism):
    """Each respondent answers every member; the members' epsilons add up.

    Reports: the members' reports, one after the other. Cost: the sum of the members'.
    Privacy: the product of the members' odds; shares of epsilon keep it within e^epsilon.
    Variance: each member's own, at its smaller epsilon, from all respondents.
    Reference: sequential composition; Wang's dissertation, section 3.4.2, on when it is worth it.

    `estimate` gives one Estimate per member; the tally keeps the joint report. See docs/maths/all_of.md.

    >>> from tacit.oracles.grr import GRR
    >>> m = AllOf(epsilon="2", members=(GRR(size=2, epsilon="1"), GRR(size=5, epsilon="1")))
    >>> m.state, m.report_bits
    ('joint', 4)
    """

    @cached_property
    def layout(self) -> Layout:
        """Blocks of members with equal mechanisms."""
        return layout_of(self.members)

    def member(self, i: int) -> Mechanism:
        """The mechanism of member i."""
        return self.layout.mechanism(i)

    @property
    def member_count(self) -> int:
        """One per question."""
        return len(self.members)

    @cached_property
    def _mechanisms(self) -> tuple[Mechanism, ...]:
        return tuple(self.member(i) for i in range(len(self.members)))

    @cached_property
    def _spaces(self) -> tuple[U64, ...] | None:
        """All reports of every member as sorted keys, if the joint table is small enough to be kept."""
        spaces: list[U64] = []
        for member in self._mechanisms:
            keys = _report_keys(member)
            if keys is None or len(keys) * prod(map(len, spaces)) > MAX_JOINT_CELLS:
                return None
            spaces.append(keys)
        return tuple(spaces)

    def _planned_state(self) -> str:
        return "log" if self._spaces is None else "joint"

    def _check(self) -> None:
        super()._check()
        if self.state == "joint" and self._spaces is None:
            raise InvalidSpec(
                f'all_of: the joint table cannot be kept in {MAX_JOINT_CELLS} cells; state must be "log" or "members"'
            )

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """The members' layouts, one field each."""
        return np.dtype([(_field(i), member.report_dtype) for i, member in enumerate(self._mechanisms)])

    @property
    def report_bits(self) -> int:
        """The sum of the members'."""
        return sum(member.report_bits for member in self._mechanisms)

    @property
    def cell_count(self) -> int:
        """Those of the joint table, or of all members; a log has none."""
        if self.state == "members":
            return sum(member.cell_count for member in self._mechanisms)
        return prod(map(len, self._spaces or ())) if self.state == "joint" else 0

    @property
    def cell_rule(self) -> CellRule:
        """One cell of the joint table."""
        return CellRule(least=1, most=1)

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on rows of answers; in one sweep where every member uses a fixed number of coin words."""
        array = integer_array(values)
        costs = [member.coin_words for member in self.members]
        fixed = [cost for cost in costs if cost is not None]
        if len(fixed) < len(costs) or not len(array) or array.ndim != 2:  # Answers may be lists themselves.
            return self.decode(b"".join(self.privatize_one(row, coins) for row in array))
        answers = answers_of(self.kind, array.T, len(self.members))
        drawn = words(coins, len(array), sum(fixed))
        # Every row's words go to the members in their order, as in `privatize_one`, so that both draw the same reports.
        parts = np.split(drawn, np.cumsum(fixed)[:-1], axis=1)
        return self._joined([
            member.privatize(answers[i], GivenCoins(parts[i])) for i, member in enumerate(self._mechanisms)
        ])  # fmt: skip

    def _joined(self, parts: Sequence[Reports]) -> Reports:
        reports = np.empty(len(parts[0]), self.report_dtype)
        for i, part in enumerate(parts):
            reports[_field(i)] = part
        return reports

    def _split(self, reports: Reports) -> list[Reports]:
        return [self.payload(i, reports) for i in range(len(self.members))]

    def payload(self, member: int, reports: Reports) -> Reports:
        """The reports of one member's own mechanism."""
        return np.ascontiguousarray(reports[_field(member)])

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Every member's report is valid."""
        pairs = zip(self._mechanisms, self._split(reports), strict=True)
        return np.logical_and.reduce([member.valid(part) for member, part in pairs])

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Counts | Log | PerMember:
        """The contingency table of joint reports, their log, or one tally per member, as the state says."""
        array = self.check_reports(reports)
        checked = None if weights is None else checked_weights(weights, len(array))
        if self.state == "joint":
            return count_reports(self, array, checked, self._count_joint)
        if self.state == "log":
            return Log(self, (array,), None if checked is None else (checked,))
        parts = enumerate(self._split(array))
        tallies = {i: self.member(i).tally(part, checked) for i, part in parts}
        return per_member(self, self.layout, len(array), tallies)

    def _count_joint(self, reports: Reports, weights: I64 | None) -> I64:
        codes = np.zeros(len(reports), np.uint64)
        for space, part in zip(self._spaces or (), self._split(reports), strict=True):
            # Mixed radix, (i0 n1 + i1) n2 + i2: the order in which `_joint_marginal` reshapes the cells.
            codes = codes * np.uint64(len(space)) + np.searchsorted(space, _keys(part)).astype(np.uint64)
        return kernels.histogram(codes, prod(map(len, self._spaces or ())), weights)[0]

    def marginal(self, tally: Counts | Log | PerMember, i: int) -> AnyTally:
        """The tally of member i."""
        if isinstance(tally, PerMember):
            return tally.member(i)
        if isinstance(tally, Counts):
            return self._joint_marginal(tally, i)
        weights = tally.weights or (None,) * len(tally.chunks)
        pairs = zip(tally.chunks, weights, strict=True)
        return reduce(add, (self.member(i).tally(self._split(chunk)[i], w) for chunk, w in pairs))

    def _joint_marginal(self, tally: Counts, i: int) -> Counts:
        """Every possible report of the member, counted as often as the table says."""
        spaces = self._spaces or ()
        member, others = self.member(i), tuple(j for j in range(len(spaces)) if j != i)
        shape, reports = tuple(map(len, spaces)), _from_keys(member, spaces[i])
        cells = _count_times(member, reports, tally.cells.reshape(shape).sum(axis=others))
        cells2 = cells
        if tally.is_weighted:
            cells2 = _count_times(member, reports, tally.cells2.reshape(shape).sum(axis=others))
        return Counts(member, tally.n, cells, cells2, tally.total, tally.total2)

    def estimate(  # pyright: ignore[reportIncompatibleMethodOverride] - one estimate per member, not one
        self, tally: Counts | Log | PerMember, candidates: Candidates | None = None
    ) -> list[Estimate]:
        """One estimate per member, from all respondents."""
        own_tally(self, tally)
        asked = candidates_of(self.kind, candidates, len(self.members))
        return [self.member(i).estimate(self.marginal(tally, i), named) for i, named in enumerate(asked)]

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """The sum of the members'."""
        answers = answers_of(self.kind, value, len(self.members))
        triples = zip(self._mechanisms, self._split(reports), answers, strict=True)
        return np.sum([member.log_prob(part, answer) for member, part, answer in triples], axis=0)

    def all_reports(self) -> Reports:
        """Every combination, where the joint table is kept."""
        if self._spaces is None:
            return super().all_reports()
        places = np.indices(tuple(map(len, self._spaces))).reshape(len(self._spaces), -1)
        pairs = zip(self._mechanisms, self._spaces, places, strict=True)
        return self._joined([_from_keys(member, space[at]) for member, space, at in pairs])


def _field(i: int) -> str:
    return f"answer_{i}"


def _keys(reports: Reports) -> U64:
    """Reports of at most 8 bytes as integers."""
    data = as_bytes(reports)
    padded = np.zeros((len(data), 8), np.uint8)
    padded[:, : data.shape[1]] = data
    return padded.view("<u8").reshape(-1)


def _from_keys(member: Mechanism, keys: U64) -> Reports:
    data = np.ascontiguousarray(keys, "<u8").view(np.uint8).reshape(len(keys), 8)
    return member.decode(data[:, : member.report_dtype.itemsize].tobytes())


def _report_keys(member: Mechanism) -> U64 | None:
    """All reports of a member as sorted keys, or None where they are too many to list, or of several kinds."""
    if member.drawn_from is not None:
        return None  # It keeps a tally per question, which a joint table could not give back.
    if member.report_bits >= MAX_JOINT_CELLS.bit_length() or member.report_dtype.itemsize > 8:
        return None
    try:
        return np.sort(_keys(member.all_reports()))
    except InvalidSpec:
        return None


def _count_times(member: Mechanism, reports: Reports, times: I64) -> I64:
    """The cells of reports that occur many times each.

    Multiplicities are counted digit by digit, since their squares, which a weighted tally also sums, could
    overflow.
    """
    cells: Any = 0
    for shift in range(0, 64, _DIGIT_BITS):
        digit = times >> shift
        digit = digit & ((1 << _DIGIT_BITS) - 1) if shift + _DIGIT_BITS < 64 else digit
        if digit.any() or shift == 0:
            cells = cells + (member.tally(reports, digit).cells << shift)
    return cells
