"""Discrete Laplace noise on the device: one coin word looked up in an exact table. No floats, no rejection.

The noise Z has Pr[Z = z] proportional to a^|z|, so everything beyond a clamp again is a power of a: the table
of a clamped output is finite and its end cells are geometric like the others. Cells are rounded so that no
likelihood ratio exceeds the declared one.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from tacit.device.base import Device, width_bytes
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, ceil_div, exp_floor, root_floor
from tacit.errors import InvalidSpec

MAX_VALUES = 1 << 14
MAX_OUTPUTS = 1 << 16
_ONE = 1 << 192


def powers(rate: int, count: int) -> "list[int]":
    """(2^64/rate)^k over 2^192 for k = 0 .. count, every step rounded down."""
    return list(accumulate(range(count), lambda power, _: (power << 64) // rate, initial=_ONE))


def words_of(weight: int, power: "list[int]") -> int:
    """Coin words of a weight over 1 + a, rounded down."""
    return (weight << 64) // (_ONE + power[1])


def look_up(cumulative: "list[int]", word: int) -> int:
    """The cell a coin word falls into; `cumulative` leaves out the last sum, 2^64.

    Not hardened against timing: the search touches cells that depend on the noise, never on the value.
    """
    return bisect_right(cumulative, word)


@dataclass(frozen=True, kw_only=True)
class SHEDevice(Device):
    """Summation with histogram encoding: a one-hot vector, discrete Laplace noise on every entry, clamped."""

    kind: ClassVar[str] = "she"

    size: int
    grid: int = 8
    bound: int = 0

    def _check(self) -> None:
        self._size(MAX_VALUES, "one number per value; use oue, hrr or olh for larger domains")
        self._integer("grid", 2, 256)
        if self.grid % 2:
            raise InvalidSpec(f"she: grid is {self.grid}, must be even, so that one output favours neither side")
        widest = (MAX_OUTPUTS - 1 - self.grid) // 2
        if self.bound == 0:
            # 2^64/(rate - 2^64) is about the scale of the noise, of which about e^-6 lies beyond six scales.
            self._set("bound", min(6 * ceil_div(WORD, self.rate - WORD), widest))
        self._integer("bound", 1, widest, "an output takes at most two bytes")

    @cached_property
    def rate(self) -> int:
        """1/a = e^(epsilon/(2 grid)) over 2^64, rounded down: sensitivity 2, `grid` steps per unit."""
        return exp_floor(self.budget.declared / (2 * self.grid))

    @property
    def outputs(self) -> int:
        """Number of different outputs of one entry: -bound .. grid + bound."""
        return self.grid + 2 * self.bound + 1

    @cached_property
    def cells(self) -> "list[int]":
        """Words of every output of an entry 0; those of an entry `grid` are the mirror image.

        An output and its mirror image are what tells 0 from `grid`. The larger of the two is reduced to the
        half odds times the smaller; the middle output, alike for both, takes the words that are left.
        """
        power = powers(self.rate, self.grid + self.bound)
        cells = [max(1, words_of(weight, power)) for weight in self._weights(power)]
        half, middle = root_floor(self.odds, 2), self.outputs // 2
        for j in range(middle):
            cells[j] = min(cells[j], cells[-1 - j] * half >> 64)
        cells[middle] += WORD - sum(cells)
        if cells[middle] < 1:
            raise InvalidSpec(f"she: bound is {self.bound}, too wide for this epsilon; leave it out")
        return cells

    def _weights(self, power: "list[int]") -> "Iterator[int]":
        """Weights over 1 + a: (1 - a) a^|z| inside, a^|z| at the ends, which stand for all beyond them."""
        yield power[self.bound]
        for z in range(1 - self.bound, self.grid + self.bound):
            yield power[abs(z)] - power[abs(z) + 1]
        yield power[self.grid + self.bound]

    @cached_property
    def cumulative(self) -> "list[int]":
        """Running sums of the cells without the last."""
        return list(accumulate(self.cells[:-1]))

    def realised_odds(self) -> Fraction:
        """Two entries differ between two values, and both may show the output that says most."""
        cells = self.cells
        return max(Fraction(cells[j], cells[-1 - j]) for j in range(self.outputs)) ** 2

    @property
    def coin_words(self) -> int:
        """One coin word for every entry of the histogram."""
        return self.size

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word per entry: `size` outputs, each sent as output + bound."""
        index = self._index(value, self.size)
        codes = [look_up(self.cumulative, coins.word()) for _ in range(self.size)]
        # Mirrored about grid/2, the law of an entry 0 is that of an entry `grid`.
        codes[index] = self.outputs - 1 - codes[index]
        width = width_bytes(self.outputs)
        return b"".join(code.to_bytes(width, "little") for code in codes)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceDevice(Device):
    """A number on the grid 0 .. top plus discrete Laplace noise, clamped to -bound .. top + bound."""

    kind: ClassVar[str] = "dlap"

    top: int
    bound: int = 0

    def _check(self) -> None:
        self._integer("top", 1, MAX_OUTPUTS - 1, "declare a coarser grid")
        self._integer("bound", 0, MAX_OUTPUTS - 1)
        if not self.tails:
            raise InvalidSpec(
                f"dlap: top is {self.top} and bound {self.bound}, too large for this epsilon: an output "
                "would be rarer than one word in 2^64; declare a coarser grid or a smaller bound"
            )

    @property
    def size(self) -> int:
        """Number of values of the grid."""
        return self.top + 1

    @property
    def reach(self) -> int:
        """The largest noise that a clamped output can tell apart."""
        return self.top + self.bound

    @property
    def outputs(self) -> int:
        """Number of different outputs."""
        return self.top + 2 * self.bound + 1

    @cached_property
    def _fitted(self) -> "tuple[int, list[int]]":
        """The rate nearest to e^(epsilon/top) whose rounded table keeps within the odds, and its tails."""
        # Rounding may push a ratio beyond the odds; an epsilon smaller by 2^-48 of itself, or more, makes room for it.
        for slack in (None, *range(48, 0, -4)):
            share = 1 - (Fraction(0) if slack is None else Fraction(1, 1 << slack))
            rate = exp_floor(self.budget.declared * share / self.top)
            tails = _tails(rate, self.reach)
            if all(0 < a * WORD <= self.odds * b for a, b in self._pairs(tails)):
                return rate, tails
        return WORD, []

    @property
    def rate(self) -> int:
        """1/a times 2^64, where noise of z has a probability proportional to a^|z|."""
        return self._fitted[0]

    @property
    def tails(self) -> "list[int]":
        """Words of noise of at least k, for k = 0 .. reach; noise of at most -k has as many."""
        return self._fitted[1]

    def _pairs(self, tails: "list[int]") -> "Iterator[tuple[int, int]]":
        """(largest, smallest) words of each output between all values, symmetric outputs once.

        Cells shrink with distance, so the extremes are the nearest and the farthest value. Outputs strictly
        between the grid's ends say less than its ends do, except when those are lumped with all beyond them.
        """
        yield tails[self.bound], tails[self.reach]
        cells = _cells(tails)
        for beyond in range(self.bound):
            yield cells[beyond], cells[beyond + self.top]
        if self.top > 1:
            yield cells[0], cells[self.top - 1]

    @cached_property
    def cumulative(self) -> "list[int]":
        """Words of noise of at most z, for z = -reach .. reach - 1."""
        beyond = self.tails[1:]
        return [*reversed(beyond), *(WORD - words for words in beyond)]

    def realised_odds(self) -> Fraction:
        """The largest ratio of any output, ends included."""
        return max(Fraction(a, b) for a, b in self._pairs(self.tails))

    @property
    def coin_words(self) -> int:
        """One coin word for the noise."""
        return 1

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word: value plus noise, clamped, sent as output + bound."""
        index = self._index(value, self.size)
        # Cell 0 of the table is noise of -reach, and the last one noise of +reach.
        noisy = index + look_up(self.cumulative, coins.word()) - self.reach
        code = min(max(noisy + self.bound, 0), self.outputs - 1)
        return code.to_bytes(width_bytes(self.outputs), "little")


def _tails(rate: int, reach: int) -> "list[int]":
    """Words of noise of at least k for k = 0 .. reach: all cells rounded down but the one of no noise."""
    power = powers(rate, reach)
    inner = (words_of(power[k] - power[k + 1], power) for k in range(reach - 1, 0, -1))
    tails = list(accumulate(inner, initial=words_of(power[reach], power)))
    # Noise of at least 0 is all but noise of at most -1, which has as many words as noise of at least 1.
    return [WORD - tails[-1], *reversed(tails)]


def _cells(tails: "list[int]") -> "list[int]":
    """Words of noise of exactly k, for k = 0 .. reach - 1."""
    return [tails[0] - tails[1], *(a - b for a, b in pairwise(tails[1:]))]
