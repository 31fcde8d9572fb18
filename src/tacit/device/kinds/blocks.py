"""Block responses on the device: a block of k among m points that more likely holds the value than not.

Subset selection draws any k-subset, cyclic block response a translate of one difference set, affine block
response an affine image of an interval. All three first decide, with one word, whether the block contains the
value, and then draw uniformly among the blocks that do or do not.
"""

from array import array
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import compress
from math import isqrt
from typing import Any, ClassVar, cast

from tacit.device.base import Device, width_bytes
from tacit.device.kinds.designs import (
    MAX_MODULUS,
    Cyclic,
    Design,
    Family,
    best_block_size,
    best_cyclic,
    design_error,
    paley,
    proper_designs,
    shape,
    singer,
)
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, ceil_div, tighten, uniform_spread
from tacit.device.numbers.fields import factor, is_prime, next_prime
from tacit.errors import InvalidSpec

MAX_SUBSET_SIZE = 1 << 12
MAX_CYCLIC_MODULUS = 1 << 22
MAX_AFFINE_MODULUS = (1 << 32) - 5
"""The largest prime below 2^32, so that a product of two residues fits into one word."""

_COUNTED_SIZE = 1 << 12
_FLAGS = bytes.maketrans(b"01", b"\0\1")


def include_threshold(m: int, k: int, odds: int) -> int:
    """Words that put the value into the block. Rounded down, so that such a block stays within the odds."""
    return WORD * k * odds // (k * odds + (m - k) * WORD)


def block_odds(m: int, k: int, include: int, spread: Fraction) -> Fraction:
    """An upper bound of every likelihood ratio, of a block with the value to one without and the reverse.

    A block with the value has probability include/2^64 over the number of such blocks, and for every
    k of them there are m - k without the value; `spread` bounds how unevenly blocks of one sort are drawn.
    """
    ratio = Fraction(include * (m - k), (WORD - include) * k)
    return max(ratio, 1 / ratio) * spread


@dataclass(frozen=True, kw_only=True)
class BlockDevice(Device):
    """What the block responses share: the decision whether the block contains the value."""

    size: int

    @property
    def m(self) -> int:
        """Number of points, of which the first `size` are values."""
        raise NotImplementedError

    @property
    def k(self) -> int:
        """Number of points in a block."""
        raise NotImplementedError

    @cached_property
    def spread(self) -> Fraction:
        """How unevenly a member and a non-member of the base block are drawn, at most."""
        return uniform_spread(self.k, self.m - self.k)

    @cached_property
    def include(self) -> int:
        """Words that put the value into the block."""
        return include_threshold(self.m, self.k, tighten(self.odds, self.spread))

    def realised_odds(self) -> Fraction:
        """The exact odds of the decision, times a bound of the unevenness of what is drawn after it."""
        return block_odds(self.m, self.k, self.include, self.spread)

    def _check_budget(self) -> None:
        if not self.holds():
            raise InvalidSpec(
                f"{self.kind}: epsilon is too small for {self.m} points, draws of one word are too uneven; "
                "use a larger epsilon or a smaller domain"
            )

    def _pick(self, coins: Coins) -> int:
        """A position in the base block (below k) or past it, from two words: where the value will be put."""
        inside = coins.below(self.include)
        return coins.uniform(self.k) if inside else self.k + coins.uniform(self.m - self.k)


@dataclass(frozen=True, kw_only=True)
class SSDevice(BlockDevice):
    """Subset selection: a set of k values that more likely holds the true one than not."""

    kind: ClassVar[str] = "ss"

    subset: int = 0

    def _check(self) -> None:
        self._size(MAX_SUBSET_SIZE, "one bit per value; use abr or cbr for larger domains")
        if self.subset == 0:
            self._set("subset", best_block_size(self.size, self.size, self.odds / WORD))
        self._integer("subset", 1, self.size - 1)
        self._check_budget()

    @property
    def m(self) -> int:
        """Every point is a value."""
        return self.size

    @property
    def k(self) -> int:
        """Size of the reported set."""
        return self.subset

    @cached_property
    def spread(self) -> Fraction:
        """Bound of the unevenness of 2k - 1 uniform draws below `size`, k - 1 with the value and k without.

        One draw is uneven by 1 + x at most, x = 1/floor(2^64/size), and (1 + x)^(2k) <= 1/(1 - 2k x).
        """
        cell = WORD // self.size
        return Fraction(cell, cell - 2 * self.k)

    @property
    def coin_words(self) -> int:
        """One word for the value and one for every drawn member."""
        return 1 + self.k

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """1 + k words: the decision, then Floyd's sampler on the other values; a bitmap packed from bit 0.

        Other values are numbered without the true one, so that index t stands for t + (t >= value).
        """
        index = self._index(value, self.size)
        inside = coins.below(self.include)
        chosen = 1 << index if inside else 0
        for top in range(self.size - 1 - self.k + inside, self.size - 1):
            t = coins.uniform(top + 1)
            at = t + (t >= index)
            if chosen >> at & 1:
                at = top + (top >= index)
            chosen |= 1 << at
        if inside:
            coins.word()  # The number of words must not tell whether the value was included.
        return chosen.to_bytes(ceil_div(self.size, 8), "little")


@lru_cache(maxsize=4)
def cyclic_design(family: str, q: int, t: int) -> Cyclic:
    """The cyclic design of a spec, built once."""
    return paley(q) if family == "paley" else singer(q, t)


@lru_cache(maxsize=4)
def cyclic_points(family: str, q: int, t: int) -> "array[int]":
    """All residues, those of the block first (k of them, increasing), then the others (increasing)."""
    design = cyclic_design(family, q, t)
    text = format(int.from_bytes(design.block, "little"), f"0{design.modulus}b").encode()
    # Binary text begins with the highest bit; turned round, flag i belongs to residue i.
    flags = text[::-1].translate(_FLAGS)
    points = array("I", compress(range(design.modulus), flags))
    points.extend(compress(range(design.modulus), map((1).__sub__, flags)))
    return points


@lru_cache(maxsize=256)
def plan_cyclic(size: int, odds: float) -> Design:
    """The (family, q, t) of `best_cyclic`, or of the best proper design where that prefers GRR."""
    choice = best_cyclic(size, odds)
    if choice[0] != "grr":
        return choice
    designs = proper_designs(size, isqrt(MAX_CYCLIC_MODULUS))
    return min(designs, key=lambda design: design_error(design, size, odds))


@dataclass(frozen=True, kw_only=True)
class CBRDevice(BlockDevice):
    """Cyclic block response: the shift of one difference set that more likely holds the value than not."""

    kind: ClassVar[str] = "cbr"

    family: str = ""
    order: int = 0
    dimension: int = 0

    def _check(self) -> None:
        self._size(MAX_CYCLIC_MODULUS, "use abr for larger domains")
        if (self.family, self.order, self.dimension) == ("", 0, 0):
            family, order, dimension = plan_cyclic(self.size, self.odds / WORD)
            self._set("family", family)
            self._set("order", order)
            self._set("dimension", dimension)
        self._check_design()
        if not self.size <= self.m <= MAX_CYCLIC_MODULUS:
            raise InvalidSpec(
                f"cbr: {self.family}({self.order}, {self.dimension}) has {self.m} points, must have from "
                f"{self.size} to {MAX_CYCLIC_MODULUS}; use another design or abr, or grr if epsilon is large"
            )
        self._check_budget()

    def _check_design(self) -> None:
        if self.family == "paley":
            q = self._integer("order", 3, MAX_MODULUS)
            self._integer("dimension", 1, 1, "a paley design has dimension 1")
            if q % 4 != 3 or not is_prime(q):
                raise InvalidSpec(f"cbr: order is {q}, must be a prime of the form 4i + 3 for a paley design")
        elif self.family == "singer":
            q = self._integer("order", 2, isqrt(MAX_MODULUS))
            if len(factor(q)) != 1:
                raise InvalidSpec(f"cbr: order is {q}, must be a prime power for a singer design")
            self._integer("dimension", 3, 26)
        else:
            raise InvalidSpec(
                'cbr: family must be "singer" or "paley"; leave out family, order and dimension to have them chosen'
            )

    @cached_property
    def _shape(self) -> tuple[int, int, int]:
        return shape(cast("Family", self.family), self.order, self.dimension)

    @property
    def m(self) -> int:
        """Points of the design."""
        return self._shape[0]

    @property
    def k(self) -> int:
        """Points of a block."""
        return self._shape[1]

    @property
    def coin_words(self) -> int:
        """Two coin words: whether the block holds the value, and which of its points the value is."""
        return 2

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Two words: the decision, and which residue i in or outside the block; reported is value - i."""
        index = self._index(value, self.size)
        point = cyclic_points(self.family, self.order, self.dimension)[self._pick(coins)]
        # The block B + c holds the value if value - c is in B, and c = value - point makes that difference the point.
        return ((index - point) % self.m).to_bytes(width_bytes(self.m), "little")


@dataclass(frozen=True, kw_only=True)
class ABRDevice(BlockDevice):
    """Affine block response: an affine image of an interval that more likely holds the value than not."""

    kind: ClassVar[str] = "abr"

    modulus: int = 0
    block: int = 0
    state: str = ""

    def _check(self) -> None:
        self._size(MAX_AFFINE_MODULUS, "use olh for larger domains")
        if self.modulus == 0:
            # Modulo a prime every multiplier has an inverse, so that an affine image of an interval never loses points.
            self._set("modulus", next_prime(max(self.size, 3)))
        self._integer("modulus", max(self.size, 3), MAX_AFFINE_MODULUS)
        if not is_prime(self.modulus):
            raise InvalidSpec(
                f"abr: modulus is {self.modulus}, must be a prime, {next_prime(self.modulus)} is the next"
            )
        if self.block == 0:
            self._set("block", best_block_size(self.modulus, self.size, self.odds / WORD))
        self._integer("block", 1, self.modulus - 1)
        self._state(largest_counts=_COUNTED_SIZE)
        self._check_budget()

    @property
    def m(self) -> int:
        """The prime modulus."""
        return self.modulus

    @property
    def k(self) -> int:
        """Length of the interval."""
        return self.block

    @property
    def coin_words(self) -> int:
        """Three coin words: the slope of the interval, whether it holds the value, and where in it."""
        return 3

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Three words: the multiplier w, the decision, the place s in or past the interval; c = w v - s."""
        index = self._index(value, self.size)
        # w and m - w give the same blocks, with the interval turned round, so that half of the multipliers suffices.
        w = 1 + coins.uniform((self.m - 1) // 2)
        c = (w * index - self._pick(coins)) % self.m
        width = width_bytes(self.m)
        return w.to_bytes(width, "little") + c.to_bytes(width, "little")
