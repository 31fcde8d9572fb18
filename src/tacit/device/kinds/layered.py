"""Memoised answers under fresh noise: a permanent noisy answer per value, and a fresh noisy copy of it per report.

The permanent layer keeps what any number of reports on one unchanged value reveal within epsilon; the fresh one keeps
a single report within `first`, and hides for a while that an answer changed. It is no cheaper composition: between
answers that change at different times the loss grows with every report (docs/maths/layered.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.device.base import Device
from tacit.device.kinds.grr import GRRDevice, grr_draw
from tacit.device.kinds.hadamard import HRRDevice, parity
from tacit.device.kinds.mean import OneBitDevice
from tacit.device.kinds.memo import KEY_BYTES, MemoizedDevice, Memory
from tacit.device.numbers.budget import Amplified, Budget, as_budget
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, ceil_div
from tacit.errors import InvalidSpec


def fresh_cell(first: int, low: int, size: int) -> int:
    """Words of each other value in the fresh layer, so that both layers together have odds of at most first/2^64.

    Two layers of randomised response are one, with the product of what both keep. Rounded up, so that less is kept.
    """
    kept, needed = WORD - size * low, first + (size - 1) * WORD
    return ceil_div(WORD * (needed * kept - (first - WORD) * WORD), size * needed * kept)


def fresh_bit(first: int, low: int, high: int) -> int:
    """Words of the flip of a permanent bit, set by `low` words at one end and by `high` at the other, low + high <= W.

    With F the share of flips, both bounds are (1 - 2F)(h - o l) <= F (o - 1) or weaker, for the odds o and the ends'
    chances l and h. Where low + high = W it is `fresh_cell` over two values.
    """
    excess = high * WORD - first * low
    return ceil_div(WORD * excess, (first - WORD) * WORD + 2 * excess)


@dataclass(frozen=True, kw_only=True)
class LayeredMemoDevice(MemoizedDevice):
    """A permanent answer of `inner` per key, reported with fresh randomised response on top.

    `grr` has a key per value (L-GRR); `hrr` the sign of the value in a row that the device draws once (L-HRR);
    `onebit` the number rounded to a multiple of `step` (L-1BM). `epsilon` is what any number of reports on one value
    cost, `first` what a single report costs.
    """

    kind: ClassVar[str] = "layered"
    inner_kinds: ClassVar[tuple[type[Device], ...]] = (GRRDevice, HRRDevice, OneBitDevice)

    first: Budget | str

    def _check(self) -> None:
        super()._check()
        self._set("first", as_budget(self.first))
        if isinstance(self.first, Amplified):
            raise InvalidSpec("layered: first must not be amplified; that epsilon holds inside padding alone")
        if self.first_budget.odds >= self.inner.odds:
            raise InvalidSpec("layered: first is not below the epsilon of the inner mechanism; use memo, of one layer")
        # A first so close to 0 that rounding leaves the answer no more words than any other tells nothing.
        if self.fresh_low * self.answers >= WORD:
            raise InvalidSpec("layered: first is too small to be told apart from 0; spend more on a report")

    @property
    def first_budget(self) -> Budget:
        """What a single report may cost."""
        return as_budget(self.first)

    @property
    def answers(self) -> int:
        """How many permanent answers there are: every value of `grr`, a sign or a bit of the others."""
        return self.inner.size if isinstance(self.inner, GRRDevice) else 2

    @property
    def _ends(self) -> tuple[int, int]:
        """Words of one permanent answer: from the key that it speaks against, and from the one that it speaks for."""
        inner = self.inner
        if isinstance(inner, OneBitDevice):
            return inner.low, inner.threshold(inner.top)
        assert isinstance(inner, GRRDevice | HRRDevice)
        return inner.low, WORD - (self.answers - 1) * inner.low

    @cached_property
    def fresh_low(self) -> int:
        """How many of the 2^64 words of the fresh coin report any one answer other than the permanent one."""
        low, high = self._ends
        if isinstance(self.inner, OneBitDevice):
            return fresh_bit(self.first_budget.odds, low, high)
        return fresh_cell(self.first_budget.odds, low, self.answers)

    @property
    def survives(self) -> Fraction:
        """The share of permanent answers that the fresh layer keeps; it draws all others uniformly."""
        return Fraction(WORD - self.answers * self.fresh_low, WORD)

    @property
    def kept(self) -> Fraction:
        """The share of what both layers keep together, where keys are treated alike: a report is uniform otherwise."""
        low, high = self._ends
        return Fraction(high - low, WORD) * self.survives

    def one_report_odds(self) -> Fraction:
        """The exact likelihood ratio of a single report."""
        low, high = (Fraction(self.fresh_low + self.survives * words, WORD) for words in self._ends)
        # Of a bit about numbers a cleared one may tell as much as a set one; of the other kinds it tells the same.
        return high / low if self.answers > 2 else max(high / low, (1 - low) / (1 - high))

    @property
    def keyed_by_value(self) -> bool:
        """Not for `hrr`: which values share a sign depends on the row of the device."""
        return super().keyed_by_value and not isinstance(self.inner, HRRDevice)

    def guarantees(self) -> "list[tuple[str, Fraction, Fraction]]":
        """A single report, then those of memoised answers. There is no number for life."""
        single = ("one report", self.one_report_odds(), Fraction(self.first_budget.odds, WORD))
        return [single, *super().guarantees()]

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """The first report of a new device, whose secret is the next four coin words; the fifth is the fresh layer."""
        return self.report(value, Memory(coins.words(KEY_BYTES // 8), ""), coins)

    def report(self, value: Any, memory: Memory, coins: Coins | None = None) -> bytes:
        """A fresh noisy copy of the permanent answer, which the memory keeps and which is never sent."""
        if coins is None:
            raise InvalidSpec("layered: a report needs coins for its fresh layer; pass them, as to privatize_one")
        permanent = super().report(value, memory)
        # The row of `hrr` stands before the answer, 2 * row + sign, and is sent as it is.
        row, answer = divmod(int.from_bytes(permanent, "little"), self.answers)
        drawn = row * self.answers + grr_draw(answer, self.answers, self.fresh_low, coins)
        return drawn.to_bytes(len(permanent), "little")

    def draw_once(self, coins: Coins) -> "tuple[int, ...]":
        """The row of `hrr`, or what memoised mechanisms draw once."""
        if isinstance(self.inner, HRRDevice):
            return (self.inner.first + coins.uniform(self.inner.order - self.inner.first),)
        return super().draw_once(coins)

    def value_key(self, once: "tuple[int, ...]", value: Any) -> bytes:
        """The sign bit of the value in the row of `hrr`, or the key of memoised mechanisms."""
        if isinstance(self.inner, HRRDevice):
            return str(parity(once[0] & self._index(value, self.size))).encode()
        return super().value_key(once, value)

    def _answer(self, once: "tuple[int, ...]", value: Any, coins: Coins) -> bytes:
        if not isinstance(self.inner, HRRDevice):
            return super()._answer(once, value, coins)
        return self.inner.row_report(once[0], self._index(value, self.size), coins)
