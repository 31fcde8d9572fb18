"""The mean of numbers by one bit each, and the rounding that lets a repeated answer take few values."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.device.base import Device
from tacit.device.kinds.grr import low_cell
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec


@dataclass(frozen=True, kw_only=True)
class OneBitDevice(Device):
    """One bit about a number on the grid 0 .. top, set with a probability that is linear in the number."""

    kind: ClassVar[str] = "onebit"

    top: int

    def _check(self) -> None:
        self._integer("top", 1, (1 << 32) - 1, "declare a coarser grid")
        if self.slope == 0:
            raise InvalidSpec(f"onebit: epsilon is too small to tell {self.top} steps apart; declare a coarser grid")

    @property
    def size(self) -> int:
        """Number of values of the grid."""
        return self.top + 1

    @cached_property
    def low(self) -> int:
        """Words that set the bit at 0. Rounded up, so that the odds stay below the declared ones."""
        return low_cell(self.odds, 2)

    @cached_property
    def slope(self) -> int:
        """Words that each step of the grid adds. Rounded down, for the same reason."""
        return (WORD - 2 * self.low) // self.top

    def threshold(self, index: int) -> int:
        """How many of the 2^64 coin words set the bit, for a number on the grid."""
        return self.low + index * self.slope

    def realised_odds(self) -> Fraction:
        """The ends of the grid, told apart by a set bit or by a cleared one."""
        high = self.threshold(self.top)
        return max(Fraction(high, self.low), Fraction(WORD - self.low, WORD - high))

    @property
    def coin_words(self) -> int:
        """One coin word for the bit."""
        return 1

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word, one bit in a byte."""
        index = self._index(value, self.size)
        return bytes([coins.below(self.threshold(index))])


def alpha_round(value: int, alpha: int, step: int) -> int:
    """Round down to a multiple of `step`, or up if value + alpha reaches the next one.

    With alpha uniform on 0 .. step - 1, drawn once and kept, the result has mean `value` exactly (Ding,
    Kulkarni and Yekhanin, NeurIPS 2017, section 4), and a respondent shows at most two results while the
    value stays within one step.

    >>> [alpha_round(5, alpha, 4) for alpha in range(4)]
    [4, 4, 4, 8]
    """
    down = value // step * step
    return down if value + alpha < down + step else down + step


def checked_step(step: int, top: int) -> int:
    """A step that divides the grid, so that rounding up never leaves it."""
    if step < 1 or top % step:
        raise InvalidSpec(f"alpha rounding: step is {step}, must be a divisor of top, which is {top}")
    return step
