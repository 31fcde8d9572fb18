"""dBitFlip on the device: noisy bits of a few buckets that were drawn without looking at the value."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.device.base import Device, width_bytes
from tacit.device.kinds.grr import low_cell
from tacit.device.kinds.hadamard import distinct
from tacit.device.kinds.unary import symmetric_thresholds, unary_odds
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, ceil_div, root_floor

MAX_BUCKETS = 1 << 24
MAX_SAMPLED = 64


@dataclass(frozen=True, kw_only=True)
class DBitFlipDevice(Device):
    """`sampled` of `size` buckets, drawn at random, and a noisy bit for each: is it the true one?"""

    kind: ClassVar[str] = "dbitflip"

    size: int
    sampled: int

    def _check(self) -> None:
        self._size(MAX_BUCKETS)
        self._integer("sampled", 1, min(self.size, MAX_SAMPLED), "use oue to report on every bucket")

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """(t1, t0): words that set the bit of the true bucket, and of any other.

        Two values differ in the bits of two sampled buckets, half of the budget each; when one bucket is
        sampled, its single bit may spend all of it.
        """
        if self.sampled == 1:
            low = low_cell(self.odds, 2)
            return WORD - low, low
        return symmetric_thresholds(root_floor(self.odds, 2), self.odds)

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio; which buckets are sampled does not depend on the value."""
        t1, t0 = self.thresholds
        if self.sampled == 1:
            return max(Fraction(t1, t0), Fraction(WORD - t0, WORD - t1))
        return unary_odds(t1, t0)

    def draw_buckets(self, coins: Coins) -> "list[int]":
        """The sampled buckets in increasing order, one word each."""
        return distinct(self.sampled, self.size, coins)

    def answer(self, buckets: "list[int]", value: Any, coins: Coins) -> bytes:
        """The report on these buckets, one word per bit: bucket numbers, then bits packed from bit 0."""
        index = self._index(value, self.size)
        t1, t0 = self.thresholds
        bits = sum(coins.below(t1 if j == index else t0) << i for i, j in enumerate(buckets))
        width = width_bytes(self.size)
        numbers = b"".join(j.to_bytes(width, "little") for j in buckets)
        return numbers + bits.to_bytes(ceil_div(self.sampled, 8), "little")

    @property
    def coin_words(self) -> int:
        """Two coin words per sampled bucket: one draws the bucket, one its bit."""
        return 2 * self.sampled

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Two words per sampled bucket: first all buckets, then all bits."""
        return self.answer(self.draw_buckets(coins), value, coins)

    def memo_key(self, buckets: "list[int]", value: Any) -> bytes:
        """What a repeated answer is memoised under: a sampled bucket itself, or one class for all others.

        Keying each bit on "is it my bucket" instead would show whether a sampled bucket was ever visited.
        """
        index = self._index(value, self.size)
        return str(index).encode() if index in buckets else b"none"
