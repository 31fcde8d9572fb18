"""RAPPOR on the device: a permanent noisy answer that is drawn once, and a fresh noisy copy of it per report.

The permanent bits come from coins that the device remembers for each value, so that any number of reports on
one unchanged value tells no more than those bits do; the instantaneous layer only delays how fast they show.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log
from typing import Any, ClassVar

from tacit.device.base import Device, width_bytes
from tacit.device.kinds.unary import (
    MAX_BITS,
    SUEDevice,
    bit_planes,
    draw_bits,
    odds_of_rates,
    symmetric_thresholds,
    unary_odds,
)
from tacit.device.numbers.canonical import shortest_decimal
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability, root_floor
from tacit.device.numbers.hashing import bucket, row_seed
from tacit.errors import InvalidSpec

MAX_COHORTS = 1 << 16
MAX_HASHES = 16
_PROBABILITY = re.compile(r"0(\.[0-9]{1,9})?|1(\.0{1,9})?")


def canonical_probability(kind: str, name: str, text: Any) -> str:
    """The shortest decimal text of a probability with at most nine decimals: "0.750" -> "0.75"."""
    if not isinstance(text, str) or not _PROBABILITY.fullmatch(text):
        raise InvalidSpec(f'{kind}: {name} must be decimal text from "0" to "1" with at most 9 decimals, or ""')
    return shortest_decimal(text)


@dataclass(frozen=True, kw_only=True)
class LayeredDevice(Device):
    """Permanent bits at `thresholds`, then instantaneous bits, fresh for every report.

    `zero` and `one` are the chances of reporting 1 on a permanent zero and one. Both empty means one-shot:
    the permanent bits themselves are the report.
    """

    zero: str = ""
    one: str = ""

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """(t1, t0) of the permanent bits."""
        raise NotImplementedError

    @property
    def protected_bits(self) -> int:
        """Bits of one value: two values differ in at most twice as many."""
        return 1

    def _check_layers(self) -> None:
        if self.zero == "" and self.one == "":
            return
        for name in ("zero", "one"):
            self._set(name, canonical_probability(self.kind, name, getattr(self, name)))
        if Fraction(self.zero) >= Fraction(self.one):
            raise InvalidSpec(
                f"{self.kind}: zero is {self.zero} and one is {self.one}, zero must be below one; "
                "otherwise a report does not depend on the permanent bit"
            )

    @property
    def is_one_shot(self) -> bool:
        """Whether there is no instantaneous layer."""
        return self.one == ""

    @cached_property
    def instant(self) -> tuple[int, int]:
        """(s1, s0): words that report 1 on a permanent one and zero.

        Rounded towards each other: the rounded layer is the exact one followed by further noise.
        """
        # A chance of 1 would be 2^64 words, which is more than a word can say.
        s1 = min(WORD - 1, Fraction(self.one) * WORD // 1)
        return s1, -(-Fraction(self.zero) * WORD // 1)

    @property
    def layers(self) -> "list[tuple[int, int]]":
        """Thresholds (t1, t0) of every layer of noise, the permanent one first."""
        return [self.thresholds] if self.is_one_shot else [self.thresholds, self.instant]

    def _rates(self, a1: Fraction, a0: Fraction) -> tuple[Fraction, Fraction]:
        one, zero = (w * a1 + (1 - w) * a0 for w in map(as_probability, self.thresholds))
        return one, zero

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        """(r1, r0): exact chances that one report has a bit set, for a true one and a true zero."""
        if self.is_one_shot:
            return as_probability(self.thresholds[0]), as_probability(self.thresholds[1])
        s1, s0 = self.instant
        return self._rates(as_probability(s1), as_probability(s0))

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio of the permanent bits: what any number of reports can reach."""
        return unary_odds(*self.thresholds) ** self.protected_bits

    def one_report_odds(self) -> Fraction:
        """The exact likelihood ratio of a single report."""
        return odds_of_rates(*self.rates) ** self.protected_bits

    def guarantees(self) -> "list[tuple[str, Fraction, Fraction]]":
        """One report, bounded by the declared layers; all reports on an unchanged value, bounded by epsilon.

        The second is about devices that keep their permanent bits (`permanent` of `privatize_one`), which no client
        here does. Neither covers a value that changes.
        """
        forever = Fraction(self.odds, WORD)
        declared = forever
        if not self.is_one_shot:
            declared = odds_of_rates(*self._rates(Fraction(self.one), Fraction(self.zero))) ** self.protected_bits
        return [
            ("one report", self.one_report_odds(), declared),
            (
                "one value, any number of reports, if permanent bits are kept (no client here does)",
                self.realised_odds(),
                forever,
            ),
        ]

    def n_report_epsilon(self, reports: int) -> float:
        """The epsilon of this many reports on one unchanged value.

        It rises from that of one report to the permanent one. The worst sequence has every report set on one
        value's bits and clear on the other's.
        """
        if reports < 1:
            raise InvalidSpec(f"{self.kind}: reports is {reports}, must be at least 1")
        if self.is_one_shot:
            return self.realised_epsilon()
        (w1, w0), (a1, a0) = map(_floats, (self.thresholds, self.instant))
        # How much less likely the other permanent bit makes so many set, or clear, reports; both fade to 0.
        fades_set, fades_clear = (a0 / a1) ** reports, ((1 - a1) / (1 - a0)) ** reports
        set_ratio = (w1 + (1 - w1) * fades_set) / (w0 + (1 - w0) * fades_set)
        clear_ratio = (1 - w0 + w0 * fades_clear) / (1 - w1 + w1 * fades_clear)
        return self.protected_bits * (log(set_ratio) + log(clear_ratio))

    @cached_property
    def _permanent_planes(self) -> "list[tuple[int, int]]":
        return bit_planes(*self.thresholds)

    @cached_property
    def _instant_planes(self) -> "list[tuple[int, int]]":
        return bit_planes(*self.instant)

    def _draw(self, size: int, ones: int, coins: Coins, permanent: Coins | None) -> bytes:
        """Permanent bits from the remembered coins (or the same coins), then fresh bits on top of them."""
        bits = draw_bits(size, ones, self._permanent_planes, permanent or coins)
        if self.is_one_shot:
            return bits
        return draw_bits(size, int.from_bytes(bits, "little"), self._instant_planes, coins)


def _floats(words: "tuple[int, int]") -> "tuple[float, float]":
    return words[0] / WORD, words[1] / WORD


@dataclass(frozen=True, kw_only=True)
class BasicRAPPORDevice(SUEDevice, LayeredDevice):
    """Basic RAPPOR: permanent bits of symmetric unary encoding, reported through an instantaneous layer."""

    kind: ClassVar[str] = "brappor"

    def _check(self) -> None:
        super()._check()
        self._check_layers()

    def privatize_one(self, value: Any, coins: Coins, *, permanent: Coins | None = None) -> bytes:
        """`size` bits, packed from bit 0; `permanent` are the coins the device remembers for this value."""
        ones = 1 << self._index(value, self.size)
        return self._draw(self.size, ones, coins, permanent)


@dataclass(frozen=True, kw_only=True)
class RAPPORDevice(LayeredDevice):
    """RAPPOR: `hashes` bits of a Bloom filter of `bits`, under the hash functions of one of `cohorts`."""

    kind: ClassVar[str] = "rappor"

    bits: int
    cohorts: int
    key: int
    hashes: int = 1

    def _check(self) -> None:
        self._integer("hashes", 1, MAX_HASHES)
        self._integer("bits", 2 * self.hashes, MAX_BITS, "two values need room for disjoint bits")
        self._integer("cohorts", 1, MAX_COHORTS)
        self._integer("key", 0, (1 << 32) - 1)
        self._check_layers()

    @property
    def protected_bits(self) -> int:
        """One bit per hash function."""
        return self.hashes

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """The budget is shared by 2 x hashes bits, equally."""
        return symmetric_thresholds(root_floor(self.odds, 2 * self.hashes), root_floor(self.odds, self.hashes))

    def positions(self, cohort: int, value: int) -> "list[int]":
        """The Bloom bits of a value in a cohort; two hash functions may agree."""
        rows = range(cohort * self.hashes, (cohort + 1) * self.hashes)
        return [bucket(row_seed(self.key, row), value, self.bits) for row in rows]

    def draw_cohort(self, coins: Coins) -> int:
        """The cohort of a device: drawn once, remembered, and independent of every value."""
        return coins.uniform(self.cohorts)

    def privatize_one(
        self, value: Any, coins: Coins, *, permanent: Coins | None = None, cohort: int | None = None
    ) -> bytes:
        """The cohort (remembered, or drawn first), then `bits` bits packed from bit 0."""
        index = self._index(value, 1 << 64)
        mine = self.draw_cohort(coins) if cohort is None else cohort
        if not 0 <= mine < self.cohorts:
            raise InvalidSpec(f"{self.kind}: cohort is {mine}, must be from 0 to {self.cohorts - 1}")
        ones = 0
        for position in self.positions(mine, index):
            ones |= 1 << position
        return mine.to_bytes(width_bytes(self.cohorts), "little") + self._draw(self.bits, ones, coins, permanent)
