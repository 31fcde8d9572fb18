"""Unary encodings on the device: one independent noisy bit per value of the domain.

A bit is set with probability t1/2^64 at the true value and t0/2^64 elsewhere; 64 bits are drawn together,
comparing random words with the thresholds bit by bit from the top, until every lane is decided.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, isqrt, sqrt
from typing import Any, ClassVar

from tacit.device.base import Device
from tacit.device.numbers.canonical import shortest_decimal
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability, ceil_div, exp_floor, root_floor
from tacit.errors import InvalidSpec

MAX_BITS = 1 << 16
_FULL = WORD - 1
_THETA = re.compile(r"[01](\.[0-9]{1,9})?")


def zero_threshold(t1: int, odds: int) -> int:
    """The smallest t0 that keeps t1 (W - t0) / (t0 (W - t1)) within the odds."""
    return ceil_div(WORD * t1 * WORD, odds * (WORD - t1) + t1 * WORD)


def symmetric_thresholds(bit_odds: int, pair_odds: int) -> tuple[int, int]:
    """(t1, t0): ones and zeros flip alike, each at `bit_odds`, and a pair of them is within `pair_odds`."""
    t1 = WORD - ceil_div(WORD * WORD, bit_odds + WORD)
    return t1, zero_threshold(t1, pair_odds)


def odds_of_rates(one: Fraction, zero: Fraction) -> Fraction:
    """The likelihood ratio of one set and one clear bit, for the rates of a true one and of a true zero."""
    return one * (1 - zero) / (zero * (1 - one))


def unary_odds(t1: int, t0: int) -> Fraction:
    """The exact likelihood ratio between two one-hot inputs: one bit favours each of them."""
    return odds_of_rates(as_probability(t1), as_probability(t0))


def draw_lanes(live: int, planes: "list[tuple[int, int]]", lane: int, coins: Coins) -> int:
    """64 independent bits, lane by lane below its threshold; `planes` are threshold bits (t1, t0) from the top.

    `live` masks the lanes that exist, `lane` those whose true bit is set.
    """
    # A lane compares a random 64-bit number with its threshold from the top bit down: bit j of the number is its
    # column of word j. At the first bit where the two differ the lane is decided, and set if the threshold has the 1:
    #
    #     threshold   1 0 1 ...      lane a draws 0: differs at once, below the threshold, set
    #     lane a      0              lane b draws 1 0 0: differs at the third bit, below, set
    #     lane b      1 0 0          lane c draws 1 1: differs at the second bit, above, clear
    #     lane c      1 1
    #
    # All 64 lanes share every word, so a few words decide them all.
    result, undecided = 0, live
    for one, zero in planes:
        threshold = (_FULL if zero else 0) & ~lane | (lane if one else 0)
        word = coins.word()
        result |= undecided & threshold & ~word
        undecided &= ~(threshold ^ word)
        if not undecided:
            break
    return result


def draw_layers(size: int, ones: int, layers: "list[list[tuple[int, int]]]", coins: Coins) -> bytes:
    """Noisy bits perturbed again and again: every layer (its planes) takes the bits of the one before."""
    packed = b""
    for planes in layers:
        packed = draw_bits(size, ones, planes, coins)
        ones = int.from_bytes(packed, "little")
    return packed


def bit_planes(t1: int, t0: int) -> "list[tuple[int, int]]":
    """The bits of both thresholds, most significant first."""
    return [(t1 >> j & 1, t0 >> j & 1) for j in range(63, -1, -1)]


def draw_bits(size: int, ones: int, planes: "list[tuple[int, int]]", coins: Coins) -> bytes:
    """`size` noisy bits of the vector whose set bits are those of the integer `ones`, packed from bit 0."""
    packed = bytearray()
    for start in range(0, size, 64):
        live = (1 << min(64, size - start)) - 1
        packed += draw_lanes(live, planes, ones >> start & live, coins).to_bytes(8, "little")
    return bytes(packed[: ceil_div(size, 8)])


@dataclass(frozen=True, kw_only=True)
class UnaryDevice(Device):
    """A one-hot vector of `size` bits, every bit perturbed on its own."""

    size: int

    def _check(self) -> None:
        self._size(MAX_BITS, "one bit per value; use hrr, abr or olh for larger domains")

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """(t1, t0): words that set the bit of the true value, and of any other."""
        raise NotImplementedError

    @cached_property
    def planes(self) -> "list[tuple[int, int]]":
        """The bits of both thresholds, most significant first."""
        return bit_planes(*self.thresholds)

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio."""
        return unary_odds(*self.thresholds)

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """`size` bits, packed from bit 0."""
        ones = 1 << self._index(value, self.size)
        return draw_bits(self.size, ones, self.planes, coins)


@dataclass(frozen=True, kw_only=True)
class SUEDevice(UnaryDevice):
    """Symmetric unary encoding: both kinds of bits flip with probability 1/(e^(epsilon/2) + 1)."""

    kind: ClassVar[str] = "sue"

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Half of the budget on ones, half on zeros."""
        return symmetric_thresholds(root_floor(self.odds, 2), self.odds)


@dataclass(frozen=True, kw_only=True)
class OUEDevice(UnaryDevice):
    """Optimised unary encoding: the true bit is a fair coin, the whole budget protects the zeros."""

    kind: ClassVar[str] = "oue"

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """A fair coin and 1/(e^epsilon + 1)."""
        return WORD // 2, zero_threshold(WORD // 2, self.odds)


@dataclass(frozen=True, kw_only=True)
class RUEDevice(UnaryDevice):
    """Re-optimised unary encoding: the split of the budget that is best for this domain size."""

    kind: ClassVar[str] = "rue"

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """p = 1/(1 + h), h = sqrt((d - 1 + 1/E) / (d - 1 + E)), in integers."""
        others = (self.size - 1) * WORD
        h = isqrt(((others + WORD * WORD // self.odds) << 128) // (others + self.odds))
        t1 = WORD * WORD // (WORD + h)
        return t1, zero_threshold(t1, self.odds)


@dataclass(frozen=True, kw_only=True)
class THEDevice(UnaryDevice):
    """Thresholding with histogram encoding: Laplace noise of scale 2/epsilon, then one bit above theta."""

    kind: ClassVar[str] = "the"

    theta: str = ""

    def _check(self) -> None:
        super()._check()
        self._set("theta", _theta(self.theta or best_theta(float(self.budget.declared))))

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """1 - exp(epsilon (theta - 1)/2)/2 and exp(-epsilon theta/2)/2, for theta in [1/2, 1]."""
        half, theta = self.budget.declared / 2, Fraction(self.theta)
        t0 = ceil_div(WORD * WORD, 2 * exp_floor(half * theta))
        t1 = WORD - ceil_div(WORD * WORD, 2 * exp_floor(half * (1 - theta)))
        return t1, max(t0, zero_threshold(t1, self.odds))


def _theta(text: Any) -> str:
    if not isinstance(text, str) or not _THETA.fullmatch(text) or not Fraction(1, 2) <= Fraction(text) <= 1:
        raise InvalidSpec('the: theta must be decimal text from "0.5" to "1" with at most 9 decimals')
    return shortest_decimal(text)


def best_theta(epsilon: float) -> str:
    """The theta of least variance q(1-q)/(p-q)^2, by golden section, to four decimals; used when a spec is planned."""

    def variance(theta: float) -> float:
        p, q = 1 - exp(epsilon * (theta - 1) / 2) / 2, exp(-epsilon * theta / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    low, high, ratio = 0.5, 1.0, (sqrt(5) - 1) / 2
    while high - low > 1e-7:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if variance(left) < variance(right) else (left, high)
    return f"{(low + high) / 2:.4f}"
