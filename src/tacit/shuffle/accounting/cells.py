"""A mechanism as the accountants see it: four numbers, derived from the exact probabilities that are sampled.

For two values v and v' every report falls into one of four classes: it supports v alone, v' alone, both, or neither.
A report on any other value is, with probability gamma, a draw from a law omega that does not depend on the value (its
privacy blanket); a, b and z are gamma times the probability of the classes under omega. A report on v falls into them
with probabilities a x, a, b x and z.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.device.base import Device
from tacit.device.kinds.blocks import ABRDevice, BlockDevice
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.hadamard import HadamardDevice, HRRDevice
from tacit.device.kinds.local_hash import LocalHashDevice, PooledDevice
from tacit.device.kinds.unary import UnaryDevice
from tacit.device.numbers.exact import WORD, as_probability
from tacit.errors import InvalidSpec


@dataclass(frozen=True)
class Cells:
    """Likelihood ratio x, and gamma times the share of omega that supports one value alone, both and neither.

    >>> Cells(Fraction(3), Fraction(1, 5), Fraction(0), Fraction(1, 5)).gamma
    Fraction(3, 5)
    """

    x: Fraction
    a: Fraction
    b: Fraction
    z: Fraction

    def __post_init__(self) -> None:
        """Refuse numbers that are no probabilities: the law of a report on v must sum to one."""
        if not (self.x > 1 and self.a > 0 and self.b >= 0 and self.z >= 0):
            raise InvalidSpec(f"cells: x is {float(self.x):.6g}, must be above 1, and classes must not be negative")
        if self.a * self.x + self.a + self.b * self.x + self.z != 1:
            raise InvalidSpec("cells: the classes of a report on one value do not sum to one; derive them again")

    @property
    def gamma(self) -> Fraction:
        """The probability that a report is a draw from omega."""
        return 2 * self.a + self.b + self.z

    @property
    def support(self) -> Fraction:
        """The probability, under omega, that a report supports a given value."""
        return (self.a + self.b) / self.gamma

    @cached_property
    def independent(self) -> bool:
        """Whether supporting v and supporting v' are independent under omega, as for an ideal hash and for bits."""
        return self.b * self.gamma == (self.a + self.b) ** 2

    def widened(self, shift: Fraction) -> "Cells":
        """Move `shift` out of both and neither into the two single classes, which can only raise every delta.

        The four likelihood terms keep their mean and spread: x - E >= 1 - E >= x (1 - E) >= 1 - E x.
        """
        return Cells(self.x, self.a + shift, self.b - shift, self.z - shift)

    @property
    def disjoint(self) -> "Cells | None":
        """The same with nothing supporting both values, an upper bound; None where there is too little to move."""
        return self.widened(self.b) if self.z >= self.b else None


def hashed_cells(low: Fraction, buckets: int, collide: Fraction) -> Cells:
    """Randomised response on a hash; `low` is the probability of an untrue bucket, `collide` that of two values."""
    odds = (1 - (buckets - 1) * low) / low
    return Cells(odds, low * (1 - collide), low * collide, low * (buckets - 2 + collide))


def unary_cells(p: Fraction, q: Fraction) -> Cells:
    """Whole vectors of independent bits, set with p for the own value and q for the others."""
    # Under omega all bits are drawn with q; a clear bit of the own value is the least likely report beside that.
    scale = (1 - p) / (1 - q)
    odds = p * (1 - q) / (q * (1 - p))
    return Cells(odds, scale * q * (1 - q), scale * q * q, scale * (1 - q) ** 2)


def block_cells(points: int, block: int, odds: Fraction) -> Cells:
    """Blocks of a 2-design (every pair of points in equally many), which hold the own point with these odds."""
    # Of the blocks with one point, (block - 1)/(points - 1) have any given other point too.
    unit = (points - 1) * (block * odds + points - block)
    rest = points - block
    return Cells(odds, block * rest / unit, block * (block - 1) / unit, rest * (rest - 1) / unit)


def _grr(mechanism: GRRDevice) -> Cells:
    # Every value is its own bucket, and two values never share one.
    return hashed_cells(as_probability(mechanism.low), mechanism.size, Fraction(0))


def _any_hash(mechanism: LocalHashDevice | PooledDevice) -> Cells:
    # Two values may collide under no function of a small pool, and there are values that never do under any of the
    # 2^32 seeds: never is the worst case, and it happens.
    return hashed_cells(as_probability(mechanism.low), mechanism.g, Fraction(0))


def _hadamard_row(mechanism: HRRDevice) -> Cells:
    # Two columns agree in half of all rows, the constant one included; each row has at least so many words.
    rows = mechanism.order - mechanism.first
    agree = as_probability((mechanism.order // 2 - mechanism.first) * (WORD // rows))
    return hashed_cells(as_probability(mechanism.low), 2, agree)


def _hadamard(mechanism: HadamardDevice) -> Cells:
    # Sign patterns of several rows are the buckets of a hash; patterns of two values may never be equal.
    return hashed_cells(as_probability(mechanism.low), mechanism.signs, Fraction(0))


def _unary(mechanism: UnaryDevice) -> Cells:
    one, zero = mechanism.thresholds
    return unary_cells(as_probability(one), as_probability(zero))


def _blocks(mechanism: BlockDevice) -> Cells:
    return block_cells(mechanism.m, mechanism.k, mechanism.realised_odds())


def _affine(mechanism: ABRDevice) -> Cells:
    # A pair of points is in equally many blocks when multipliers are even; theirs differ by one word at most.
    cells = _blocks(mechanism)
    uneven = Fraction(1, WORD // ((mechanism.m - 1) // 2))
    return cells.widened(min(cells.b, cells.z, cells.a * uneven))


_ROWS: tuple[tuple[type[Device], Callable[[Any], Cells]], ...] = (
    (GRRDevice, _grr),
    (LocalHashDevice, _any_hash),
    (PooledDevice, _any_hash),
    (HRRDevice, _hadamard_row),
    (HadamardDevice, _hadamard),
    (UnaryDevice, _unary),
    (ABRDevice, _affine),
    (BlockDevice, _blocks),
)
"""How the cells of a mechanism are derived; the first class that fits decides."""

ANY_HASH, PAIRWISE = "any", "pairwise"


def cells_of(mechanism: Device, *, hashing: str = ANY_HASH) -> Cells | None:
    """The cells of a mechanism, at its realised odds; None for a kind that has none and takes the clone bound.

    `hashing` is "any" if nothing is known of how often two values collide over the seeds of local hashing, or
    "pairwise" for an ideal hash, where it is 1/g: for comparisons, since the hash that devices use is none.
    """
    if hashing == PAIRWISE and isinstance(mechanism, LocalHashDevice):
        return hashed_cells(as_probability(mechanism.low), mechanism.g, Fraction(1, mechanism.g))
    return next((derive(mechanism) for kind, derive in _ROWS if isinstance(mechanism, kind)), None)
