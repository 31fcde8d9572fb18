"""Square wave on the device: a number is reported near itself more likely than far away.

value v            0 ....... v ....... d-1
report      0 ......... v ........ v+w-1 ......... d+w-2
             far, low    near, high words  far, low
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, expm1, log
from typing import Any, ClassVar

from tacit.device.base import Device, width_bytes
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, ceil_div
from tacit.errors import InvalidSpec

MAX_WAVE_SIZE = 1 << 16

_SERIES = 0.01
"""Below this epsilon the best width is taken from a series: its formula is a difference of nearly equal numbers."""


def best_width(size: int, odds: float) -> int:
    """Return 2 b + 1 with b = d (eps E - E + 1)/(2 E (E - 1 - eps)) rounded down: most mutual information."""
    epsilon = log(odds)
    if epsilon < _SERIES:
        above = epsilon * epsilon / 2 + epsilon**3 / 3 + epsilon**4 / 8
        below = epsilon * epsilon / 2 + epsilon**3 / 6 + epsilon**4 / 24
    else:
        above, below = epsilon * exp(epsilon) - expm1(epsilon), expm1(epsilon) - epsilon
    return 2 * int(size * above / (2 * exp(epsilon) * below)) + 1


@dataclass(frozen=True, kw_only=True)
class SquareWaveDevice(Device):
    """A number in 0 .. size - 1, reported as one of the `width` outputs around it or as any other one."""

    kind: ClassVar[str] = "sw"

    size: int
    width: int = 0

    def _check(self) -> None:
        self._size(MAX_WAVE_SIZE, "declare coarser buckets")
        if self.width == 0:
            self._set("width", best_width(self.size, self.odds / WORD))
        self._integer("width", 1, 2 * self.size + 1)
        if self.width % 2 == 0:
            raise InvalidSpec(f"sw: width is {self.width}, must be odd: as many outputs below the number as above")
        if min(self.high, self.last) <= self.low:
            raise InvalidSpec(
                f"sw: epsilon is too small to be told apart from 0 among {self.outputs} outputs; spend more"
            )

    @property
    def outputs(self) -> int:
        """Number of different reports: the far ones are as many as there are other numbers, whatever the number is."""
        return self.size + self.width - 1

    @cached_property
    def low(self) -> int:
        """Words of every far output. Rounded up, and by one more where the rounding of near ones would exceed the odds.

        One more word for far outputs leaves near ones less and allows them more, so that once is enough.
        """
        low = ceil_div(WORD * WORD, self.width * self.odds + (self.size - 1) * WORD)
        near = ceil_div(WORD - (self.size - 1) * low, self.width)
        return low if near * WORD <= self.odds * low else low + 1

    @property
    def near_words(self) -> int:
        """Words of all near outputs together."""
        return WORD - (self.size - 1) * self.low

    @cached_property
    def high(self) -> int:
        """Words of every near output but the last."""
        return ceil_div(self.near_words, self.width)

    @property
    def last(self) -> int:
        """Words of the last near output: what rounding up has left."""
        return self.near_words - (self.width - 1) * self.high

    def realised_odds(self) -> Fraction:
        """Words of a near output over those of a far one."""
        return Fraction(self.high, self.low)

    @property
    def coin_words(self) -> int:
        """One coin word decides whether the report is near or far, and which one."""
        return 1

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word; far outputs are numbered without the near ones, so those beyond them move up by the window."""
        index = self._index(value, self.size)
        word, far = coins.word(), (self.size - 1) * self.low
        if word >= far:
            code = index + (word - far) // self.high
        else:
            other = word // self.low
            code = other + self.width * (other >= index)
        return code.to_bytes(width_bytes(self.outputs), "little")
