"""Memoised answers under fresh noise: a permanent noisy answer per value, and a fresh noisy copy of it per report.

The permanent layer keeps what any number of reports on one unchanged value reveal within epsilon; the fresh one keeps
a single report within `first`, and hides for a while that an answer changed. It is no cheaper composition: between
answers that change at different times the loss grows with every report (docs/maths/layered.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, cast

from tacit.device.base import Device, width_bytes
from tacit.device.kinds.grr import GRRDevice, grr_draw
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


@dataclass(frozen=True, kw_only=True)
class LayeredMemoDevice(MemoizedDevice):
    """A permanent answer of `inner` per value, reported with fresh randomised response on top (L-GRR).

    `epsilon` is what any number of reports on one value cost, `first` what a single report costs.
    """

    kind: ClassVar[str] = "layered"
    inner_kinds: ClassVar[tuple[type[Device], ...]] = (GRRDevice,)

    first: Budget | str

    def _check(self) -> None:
        super()._check()
        self._set("first", as_budget(self.first))
        if isinstance(self.first, Amplified):
            raise InvalidSpec("layered: first must not be amplified; that epsilon holds inside padding alone")
        if self.first_budget.odds >= self.inner.odds:
            raise InvalidSpec("layered: first is not below the epsilon of the inner mechanism; use memo, of one layer")
        # A first so close to 0 that rounding leaves the answer no more words than any other tells nothing.
        if self.fresh_low * self.size >= WORD:
            raise InvalidSpec("layered: first is too small to be told apart from 0; spend more on a report")

    @property
    def first_budget(self) -> Budget:
        """What a single report may cost."""
        return as_budget(self.first)

    @property
    def _permanent(self) -> GRRDevice:
        return cast("GRRDevice", self.inner)

    @cached_property
    def fresh_low(self) -> int:
        """How many of the 2^64 words of the fresh coin report any one value other than the permanent answer."""
        return fresh_cell(self.first_budget.odds, self._permanent.low, self.size)

    @property
    def kept(self) -> Fraction:
        """The share of what both layers keep together: a report is the value with this, and uniform otherwise."""
        size = self.size
        return Fraction(WORD - size * self._permanent.low, WORD) * Fraction(WORD - size * self.fresh_low, WORD)

    def one_report_odds(self) -> Fraction:
        """The exact likelihood ratio of a single report."""
        other = (1 - self.kept) / self.size
        return (self.kept + other) / other

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
        permanent = int.from_bytes(super().report(value, memory), "little")
        drawn = grr_draw(permanent, self.size, self.fresh_low, coins)
        return drawn.to_bytes(width_bytes(self.size), "little")
