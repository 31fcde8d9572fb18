"""Count sketches on the device: one of `rows` public hash functions, and a noisy cell of `width` under it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.device.base import Device, width_bytes
from tacit.device.kinds.grr import grr_draw, grr_odds, low_cell
from tacit.device.kinds.hadamard import parity
from tacit.device.kinds.unary import MAX_BITS, bit_planes, draw_bits, symmetric_thresholds, unary_odds
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import root_floor
from tacit.device.numbers.hashing import bucket, row_seed
from tacit.errors import InvalidSpec

MAX_SIZE = 1 << 64
MAX_ROWS = 1 << 20
MAX_CELLS = 1 << 26


@dataclass(frozen=True, kw_only=True)
class SketchDevice(Device):
    """A table of `rows` hash functions with `width` cells each; every report speaks of one row."""

    widest: ClassVar[int]

    size: int
    rows: int
    width: int
    key: int

    def _check(self) -> None:
        self._size(MAX_SIZE)
        self._integer("rows", 1, MAX_ROWS)
        self._integer("width", 2, self.widest)
        self._integer("key", 0, (1 << 32) - 1)
        if self.width & (self.width - 1):
            raise InvalidSpec(f"{self.kind}: width is {self.width}, must be a power of two, such as 1024")
        if self.rows * self.width > MAX_CELLS:
            cells = self.rows * self.width
            raise InvalidSpec(f"{self.kind}: rows x width is {cells}, must be at most {MAX_CELLS}; use fewer rows")

    def cell(self, row: int, index: int) -> int:
        """The cell of a value in a row."""
        return bucket(row_seed(self.key, row), index, self.width)


@dataclass(frozen=True, kw_only=True)
class CMSDevice(SketchDevice):
    """Private count mean sketch: the one-hot cell of one row, every bit perturbed on its own."""

    kind: ClassVar[str] = "cms"
    widest: ClassVar[int] = MAX_BITS

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """(t1, t0) of symmetric unary encoding: half of the budget on the one, half on the zeros."""
        return symmetric_thresholds(root_floor(self.odds, 2), self.odds)

    @cached_property
    def _planes(self) -> "list[tuple[int, int]]":
        return bit_planes(*self.thresholds)

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio, for every row; the row does not depend on the value."""
        return unary_odds(*self.thresholds)

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word for the row, then `width` noisy bits of its one-hot cell, packed from bit 0."""
        index = self._index(value, self.size)
        row = coins.uniform(self.rows)
        bits = draw_bits(self.width, 1 << self.cell(row, index), self._planes, coins)
        return row.to_bytes(width_bytes(self.rows), "little") + bits


@dataclass(frozen=True, kw_only=True)
class HCMSDevice(SketchDevice):
    """Private Hadamard count mean sketch: the noisy sign of one Hadamard coefficient of the one-hot cell."""

    kind: ClassVar[str] = "hcms"
    widest: ClassVar[int] = 1 << 20

    skip_zero: bool = True

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.skip_zero, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec(f"{self.kind}: skip_zero must be true or false")

    @property
    def first(self) -> int:
        """The first coefficient that may be drawn; coefficient 0 is the same for every value."""
        return 1 if self.skip_zero else 0

    @cached_property
    def low(self) -> int:
        """How many of the 2^64 coin words report the untrue sign."""
        return low_cell(self.odds, 2)

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio, for every row and coefficient."""
        return grr_odds(2, self.low)

    @property
    def coin_words(self) -> int:
        """Three coin words: the row of the sketch, the row of the Hadamard matrix, and the sign."""
        return 3

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Three words: row, coefficient and sign, sent as one code 2 * (row * width + coefficient) + sign."""
        index = self._index(value, self.size)
        row = coins.uniform(self.rows)
        coefficient = self.first + coins.uniform(self.width - self.first)
        sign = grr_draw(parity(coefficient & self.cell(row, index)), 2, self.low, coins)
        code = 2 * (row * self.width + coefficient) + sign
        return code.to_bytes(width_bytes(2 * self.rows * self.width), "little")
