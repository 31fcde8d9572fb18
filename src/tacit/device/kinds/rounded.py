"""A number beside a key, rounded to an end of its grid by one coin, so that a frequency oracle can report it.

Rounding only mixes values of the inner mechanism: privacy is that of the inner mechanism alone.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tacit.device.base import Device
from tacit.device.numbers.budget import Budget
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec

MAX_TOP = (1 << 32) - 1


@dataclass(frozen=True, kw_only=True)
class RoundedDevice(Device):
    """A key and a number on the grid 0 .. top: the number becomes 1 with probability number/top, else 0.

    The value is key * (top + 1) + number; what the inner mechanism reports on is 2 * key + rounded number.
    """

    kind: ClassVar[str] = "rounded"

    epsilon: Budget | str = ""
    top: int
    inner: Device

    def __post_init__(self) -> None:
        """Without an epsilon, it is that of the inner mechanism."""
        if not isinstance(self.inner, Device):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec("rounded: inner must be a mechanism")
        if self.epsilon == "":
            self._set("epsilon", self.inner.budget)
        super().__post_init__()

    def _check(self) -> None:
        self._integer("top", 1, MAX_TOP, "declare a coarser grid")
        held = self.inner.stated_size
        if held is None or held % 2 or held > 1 << 53:
            raise InvalidSpec("rounded: the inner mechanism must have an even size, two values for every key")
        if self.inner.odds > self.odds:
            raise InvalidSpec("rounded: epsilon is below that of the inner mechanism")
        if self.size > 1 << 53:
            raise InvalidSpec("rounded: keys times numbers must be at most 2^53; declare a coarser grid")

    @property
    def keys(self) -> int:
        """Number of keys."""
        return self.inner.value_count // 2

    @property
    def size(self) -> int:
        """Number of pairs of a key and a number."""
        return self.keys * (self.top + 1)

    def threshold(self, number: int) -> int:
        """Words that round a number up: none at 0, all of them at the top, and its share of them in between."""
        return number * WORD // self.top

    def realised_odds(self) -> Fraction:
        """The inner mechanism's: the ends of the grid are its values, and other numbers are mixtures of those."""
        return self.inner.realised_odds()

    @property
    def coin_words(self) -> int | None:
        """One more than the inner mechanism, where that always takes the same number."""
        return None if self.inner.coin_words is None else 1 + self.inner.coin_words

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word to round with, then the words of the inner mechanism."""
        key, number = divmod(self._index(value, self.size), self.top + 1)
        return self.inner.privatize_one(2 * key + coins.below(self.threshold(number)), coins)
