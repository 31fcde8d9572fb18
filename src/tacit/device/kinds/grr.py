"""Generalised randomised response on the device, and the one-word draw that most other kinds are built on."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.device.base import Device, width_bytes
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, ceil_div
from tacit.errors import InvalidSpec

MAX_SIZE = 1 << 24


def low_cell(odds: int, size: int) -> int:
    """Words of each value that is not the true one. Rounded up, so that the true value's odds stay below.

    A budget so small that rounding leaves the true value no more words than the others is refused.
    """
    low = ceil_div(WORD * WORD, odds + (size - 1) * WORD)
    if WORD - (size - 1) * low <= low:
        raise InvalidSpec(f"epsilon is too small to be told apart from 0 among {size} values; spend more, or ask less")
    return low


def grr_draw(value: int, size: int, low: int, coins: Coins) -> int:
    """Keep `value` or move to another of `size` values, each of which covers exactly `low` words of one coin."""
    word = coins.word()
    if word >= (size - 1) * low:
        return value
    other = word // low
    return other + (other >= value)


def grr_odds(size: int, low: int) -> Fraction:
    """The exact likelihood ratio of `grr_draw`: words of the true value over words of any other."""
    return Fraction(WORD - (size - 1) * low, low)


@dataclass(frozen=True, kw_only=True)
class GRRDevice(Device):
    """Generalised randomised response (direct encoding): the true value, or any other with equal probability."""

    kind: ClassVar[str] = "grr"
    fits_word: ClassVar[bool] = True

    size: int

    def _check(self) -> None:
        # Beyond this size the cells of single values have so few words that rounding wastes the budget.
        self._size(MAX_SIZE, "use olh for larger domains")
        _ = self.low

    @cached_property
    def low(self) -> int:
        """How many of the 2^64 coin words report any one other value."""
        return low_cell(self.odds, self.size)

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio."""
        return grr_odds(self.size, self.low)

    @property
    def coin_words(self) -> int:
        """One coin word decides both whether the value is kept and which other one is reported."""
        return 1

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word, one index."""
        index = self._index(value, self.size)
        return grr_draw(index, self.size, self.low, coins).to_bytes(width_bytes(self.size), "little")
