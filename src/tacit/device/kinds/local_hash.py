"""Local hashing on the device: hash the value to a few buckets, then randomised response on the bucket."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from tacit.device.base import Device, width_bytes
from tacit.device.kinds.grr import grr_draw, grr_odds, low_cell
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.device.numbers.hashing import bucket, row_seed

MAX_BUCKETS = 1 << 16
MAX_SIZE = 1 << 64


def best_buckets(odds: int) -> int:
    """The integer g of least variance, near E + 1: x = g - 1 is floor(E) iff floor(E) * ceil(E) >= E^2."""
    floor = odds // WORD
    # In integers, both sides times 2^128, so that all implementations choose the same g.
    best = floor if floor * (floor + 1) * WORD * WORD >= odds * odds else floor + 1
    return min(max(2, best + 1), MAX_BUCKETS)


@dataclass(frozen=True, kw_only=True)
class BucketsDevice(Device):
    """What all local hashing shares: randomised response on the g buckets of a hash."""

    size: int

    def _check(self) -> None:
        self._size(MAX_SIZE)

    @property
    def g(self) -> int:
        """Number of buckets."""
        raise NotImplementedError

    @cached_property
    def low(self) -> int:
        """How many of the 2^64 coin words report any one untrue bucket."""
        return low_cell(self.odds, self.g)

    def realised_odds(self) -> Fraction:
        """The exact likelihood ratio, for every fixed hash function."""
        return grr_odds(self.g, self.low)

    def _planned_buckets(self) -> None:
        """Fill in the best number of buckets where none is given, and check it."""
        if getattr(self, "buckets") == 0:  # noqa: B009 - declared by the kinds that choose their buckets
            self._set("buckets", best_buckets(self.odds))
        self._integer("buckets", 2, MAX_BUCKETS)
        _ = self.low


@dataclass(frozen=True, kw_only=True)
class LocalHashDevice(BucketsDevice):
    """A fresh 32-bit seed per report and the noisy bucket of the value under it."""

    @property
    def coin_words(self) -> int:
        """Two coin words: the hash function, then the bucket."""
        return 2

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Two words: the seed (upper half of the first) and the bucket."""
        index = self._index(value, self.size)
        seed = coins.word() >> 32
        noisy = grr_draw(bucket(seed, index, self.g), self.g, self.low, coins)
        return seed.to_bytes(4, "little") + noisy.to_bytes(width_bytes(self.g), "little")


@dataclass(frozen=True, kw_only=True)
class BLHDevice(LocalHashDevice):
    """Binary local hashing: two buckets."""

    kind: ClassVar[str] = "blh"

    @property
    def g(self) -> int:
        """Always two buckets."""
        return 2


@dataclass(frozen=True, kw_only=True)
class OLHDevice(LocalHashDevice):
    """Optimised local hashing: the number of buckets of least variance, near e^epsilon + 1."""

    kind: ClassVar[str] = "olh"
    fits_word: ClassVar[bool] = True

    buckets: int = 0
    state: str = ""

    def _check(self) -> None:
        super()._check()
        self._planned_buckets()
        self._state(largest_counts=1 << 14)

    @property
    def g(self) -> int:
        """Number of buckets."""
        return self.buckets


@dataclass(frozen=True, kw_only=True)
class PooledDevice(BucketsDevice):
    """Local hashing with a public pool of `pool` hash functions, so that the server keeps a small table."""

    pool: int
    key: int

    def _check(self) -> None:
        super()._check()
        self._integer("pool", 1, 1 << 24)
        self._integer("key", 0, (1 << 32) - 1)

    @property
    def coin_words(self) -> int:
        """Two coin words: the hash function, then the bucket."""
        return 2

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Two words: the hash function and the bucket, sent as one code row * g + bucket."""
        index = self._index(value, self.size)
        row = coins.uniform(self.pool)
        noisy = grr_draw(bucket(row_seed(self.key, row), index, self.g), self.g, self.low, coins)
        return (row * self.g + noisy).to_bytes(width_bytes(self.pool * self.g), "little")


@dataclass(frozen=True, kw_only=True)
class FLHDevice(PooledDevice):
    """Fast local hashing: OLH over a pool of hash functions."""

    kind: ClassVar[str] = "flh"

    buckets: int = 0

    def _check(self) -> None:
        super()._check()
        self._planned_buckets()

    @property
    def g(self) -> int:
        """Number of buckets."""
        return self.buckets


@dataclass(frozen=True, kw_only=True)
class RMPDevice(PooledDevice):
    """Random matrix projection: the noisy sign of one row of a public random +-1 matrix (`pool` rows)."""

    kind: ClassVar[str] = "rmp"

    @property
    def g(self) -> int:
        """Two signs."""
        return 2
