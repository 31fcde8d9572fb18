"""Hadamard randomised response on the device: a few noisy entries of one column of a Hadamard matrix.

Column v has the entry (-1)^popcount(j AND v) in row j; the size is padded to a power of two, the order K.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.device.base import Device, width_bytes
from tacit.device.kinds.grr import grr_draw, grr_odds, low_cell
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec

MAX_ORDER = 1 << 30
MAX_COEFFICIENTS = 6


def parity(x: int) -> int:
    """popcount(x) modulo 2: the sign bit of a Hadamard entry."""
    return x.bit_count() & 1


def distinct(count: int, below: int, coins: Coins) -> "list[int]":
    """A uniform set of `count` integers in [0, below), ascending, one word each (Floyd's sampler)."""
    drawn: list[int] = []
    for top in range(below - count, below):
        t = coins.uniform(top + 1)
        # No earlier draw could reach `top`, so that taking it for a repeated one keeps all subsets equally likely.
        drawn.append(top if t in drawn else t)
    return sorted(drawn)


def independent(count: int, order: int, coins: Coins) -> "list[int]":
    """`count` linearly independent rows (as bit vectors), one word each, uniform over ordered tuples.

    The r-th draw picks among the vectors outside the span of the earlier ones. The span is kept reduced, so
    that those vectors are exactly the ones with a non-zero part off the pivot bits: draw that part and the
    pivot bits together.
    """
    rows: list[int] = []
    basis: list[int] = []
    for r in range(count):
        spread = order >> r
        # 2^r vectors lie in the span of the r rows so far; `code` numbers all others, so no draw is ever rejected.
        code = coins.uniform(order - (1 << r))
        quotient, inside = 1 + code % (spread - 1), code // (spread - 1)
        row = _scatter(quotient, basis, order)
        for i, vector in enumerate(basis):
            if inside >> i & 1:
                row ^= vector
        rows.append(row)
        basis = _reduced(basis, row)
    return rows


def _scatter(code: int, basis: "list[int]", order: int) -> int:
    """Put the bits of `code` onto the positions that are not pivots of the basis."""
    pivots = sum(1 << vector.bit_length() - 1 for vector in basis)
    row, position = 0, 1
    while position < order:
        if not pivots & position:
            row |= position if code & 1 else 0
            code >>= 1
        position <<= 1
    return row


def _reduced(basis: "list[int]", row: int) -> "list[int]":
    """The reduced basis of the span of `basis` and `row`, highest pivot first."""
    for vector in basis:
        if row >> vector.bit_length() - 1 & 1:
            row ^= vector
    pivot = row.bit_length() - 1
    cleared = [vector ^ row if vector >> pivot & 1 else vector for vector in basis]
    return sorted([*cleared, row], reverse=True)


@dataclass(frozen=True, kw_only=True)
class HadamardDevice(Device):
    """What the Hadamard kinds share: the padded order and randomised response on sign patterns."""

    size: int

    def _check(self) -> None:
        self._size(MAX_ORDER)

    @property
    def order(self) -> int:
        """The order K of the Hadamard matrix, the size padded to a power of two."""
        return 1 << (self.size - 1).bit_length()

    @property
    def signs(self) -> int:
        """Number of sign patterns that randomised response runs over."""
        return 2

    @cached_property
    def low(self) -> int:
        """How many of the 2^64 coin words report any one untrue sign pattern."""
        return low_cell(self.odds, self.signs)

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio; which rows are drawn does not depend on the value."""
        return grr_odds(self.signs, self.low)

    def _code(self, rows: "list[int]", index: int, coins: Coins) -> int:
        true = sum(parity(row & index) << i for i, row in enumerate(rows))
        return grr_draw(true, self.signs, self.low, coins)


@dataclass(frozen=True, kw_only=True)
class HRRDevice(HadamardDevice):
    """Hadamard randomised response: the noisy sign of one row; row 0 is constant and skipped unless told."""

    kind: ClassVar[str] = "hrr"

    skip_zero: bool = True

    def _check(self) -> None:
        super()._check()
        if type(self.skip_zero) is not bool:
            raise InvalidSpec(f"{self.kind}: skip_zero must be true or false")
        # Computing it refuses an epsilon that is too small when the spec is made, and not at the first report.
        _ = self.low

    @property
    def first(self) -> int:
        """The first row that may be drawn."""
        return 1 if self.skip_zero else 0

    @property
    def coin_words(self) -> int:
        """Two coin words: the row, then its sign."""
        return 2

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Two words: the row and its sign, sent as one code 2 * row + sign."""
        index = self._index(value, self.size)
        return self.row_report(self.first + coins.uniform(self.order - self.first), index, coins)

    def row_report(self, row: int, index: int, coins: Coins) -> bytes:
        """One word: the noisy sign of a value in a row that was drawn before."""
        code = 2 * row + self._code([row], index, coins)
        return code.to_bytes(width_bytes(2 * self.order), "little")


@dataclass(frozen=True, kw_only=True)
class HRRSignedDevice(HadamardDevice):
    """Signed Hadamard randomised response: the value is one of two halves of a node; halves count +1 and -1.

    The value is 2 * node + half. Every row is drawn, the constant one too: it carries the sum of the signs.
    """

    kind: ClassVar[str] = "hrr_signed"

    def _check(self) -> None:
        super()._check()
        _ = self.low

    @property
    def nodes(self) -> int:
        """Number of nodes; the last one may have a first half alone."""
        return -(-self.size // 2)

    @property
    def order(self) -> int:
        """The order of the Hadamard matrix over the nodes."""
        return 1 << (self.nodes - 1).bit_length()

    @property
    def coin_words(self) -> int:
        """Two coin words: the row, then its sign."""
        return 2

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Two words: the row and its signed entry, sent as one code 2 * row + sign."""
        index = self._index(value, self.size)
        row = coins.uniform(self.order)
        # `>>` binds more tightly than `&`: the entry at the node, its sign turned round for the second half.
        true = parity(row & index >> 1) ^ (index & 1)
        code = 2 * row + grr_draw(true, 2, self.low, coins)
        return code.to_bytes(width_bytes(2 * self.order), "little")


@dataclass(frozen=True, kw_only=True)
class ManyRowsDevice(HadamardDevice):
    """Several rows per respondent, their sign pattern perturbed as one symbol."""

    coefficients: int = 0

    def _check(self) -> None:
        super()._check()
        if self.coefficients == 0:
            self._set("coefficients", self._best())
        self._integer("coefficients", 1, MAX_COEFFICIENTS)
        if self.coefficients >= self.order.bit_length():
            self._integer("coefficients", 1, self.order.bit_length() - 1, "the order has no more independent rows")
        _ = self.low

    def _best(self) -> int:
        raise NotImplementedError

    @property
    def signs(self) -> int:
        """Sign patterns of all rows together."""
        return 1 << self.coefficients

    def _rows(self, coins: Coins) -> "list[int]":
        raise NotImplementedError

    @property
    def coin_words(self) -> int:
        """One coin word per row, then one for the sign pattern."""
        return self.coefficients + 1

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """One word per row and one for the pattern; rows first, the pattern in one byte."""
        index = self._index(value, self.size)
        rows = self._rows(coins)
        width = width_bytes(self.order)
        pattern = self._code(rows, index, coins)
        return b"".join(row.to_bytes(width, "little") for row in rows) + bytes([pattern])


def _fewest_noise(odds: int, order: int, share: "list[int]") -> int:
    """The t that minimises (E + 2^t - 1)^2 / share(t), compared in integers; share(t) counts rows learnt."""
    best = 1
    for t in range(2, min(MAX_COEFFICIENTS, order.bit_length() - 1) + 1):
        # E is odds/2^64, so that both sides are compared as whole numbers, scaled alike.
        here, there = odds + ((1 << t) - 1 << 64), odds + ((1 << best) - 1 << 64)
        if here * here * share[best] < there * there * share[t]:
            best = t
    return best


@dataclass(frozen=True, kw_only=True)
class HRRTDevice(ManyRowsDevice):
    """HRR-T: t distinct rows, each learnt on its own."""

    kind: ClassVar[str] = "hrr_t"

    def _best(self) -> int:
        return _fewest_noise(self.odds, self.order, list(range(MAX_COEFFICIENTS + 1)))

    def _rows(self, coins: Coins) -> "list[int]":
        return [1 + row for row in distinct(self.coefficients, self.order - 1, coins)]


@dataclass(frozen=True, kw_only=True)
class HRRSubspaceDevice(ManyRowsDevice):
    """HRR-SUBSPACE: t independent rows, from which all 2^t - 1 combinations are learnt."""

    kind: ClassVar[str] = "hrr_subspace"

    def _best(self) -> int:
        return _fewest_noise(self.odds, self.order, [(1 << t) - 1 for t in range(MAX_COEFFICIENTS + 1)])

    def _rows(self, coins: Coins) -> "list[int]":
        return independent(self.coefficients, self.order, coins)
