"""Which values a report supports, as planes of bits, and how often honest reports support two values at once."""

from dataclasses import dataclass
from math import comb

import numpy as np

from tacit import kernels
from tacit.arrays import F64, I64, U64
from tacit.core.mechanism import Mechanism, Oracle, Reports
from tacit.core.wrapper import Wrapper
from tacit.oracles.blocks import SS
from tacit.oracles.local_hash import LocalHashOracle, as_u32
from tacit.oracles.unary import UnaryOracle

Structured = UnaryOracle | LocalHashOracle | SS
"""Oracles whose reports support many values each, so that fakes give themselves away by what they support together."""

# Beyond, values would need the upper half of the hash, and nobody lists so many candidates.
_MOST_VALUE = 1 << 32


@dataclass(frozen=True)
class PairLaw:
    """Probabilities of supports, single and of two values at once.

    The contribution of a report to a pair is c = s s' - both_other - slope (s + s' - 2 q), whose mean is zero for
    every honest respondent, whatever the value: one person holds one value.
    """

    p: float
    q: float
    both_own: float
    """Both values are supported, one of them being the respondent's."""
    both_other: float
    """Both values are supported, none of them being the respondent's."""

    @property
    def slope(self) -> float:
        """How much more often both are supported, per unit of the estimated counts."""
        return (self.both_own - self.both_other) / (self.p - self.q)

    def moments(self, *, own: bool) -> tuple[float, float]:
        """The second and third moment of the contribution to a pair, for holders of one of the two or of another."""
        first, both = (self.p, self.both_own) if own else (self.q, self.both_other)
        # In the order of `values` below; for holders, s is the support of their own value and t that of the other.
        chances = (both, first - both, self.q - both, 1 - first - self.q + both)
        values = [
            s * t - self.both_other - self.slope * (s + t - 2 * self.q) for s, t in ((1, 1), (1, 0), (0, 1), (0, 0))
        ]
        return (
            sum(chance * value**2 for chance, value in zip(chances, values, strict=True)),
            sum(chance * value**3 for chance, value in zip(chances, values, strict=True)),
        )


def unwrapped(mechanism: Mechanism) -> Mechanism:
    """The oracle whose reports these are: memoised, padded and other wrappers send those of the one inside."""
    while isinstance(mechanism, Wrapper):
        mechanism = mechanism.sends
    return mechanism


def structured(mechanism: Mechanism) -> "Structured | None":
    """The oracle behind a mechanism if its reports support many values each; else None."""
    oracle = unwrapped(mechanism)
    return oracle if isinstance(oracle, (UnaryOracle, LocalHashOracle, SS)) and oracle.size > 2 else None


def pair_law(oracle: Structured) -> PairLaw:
    """Return how often an honest report supports two values at once."""
    p, q = float(oracle.p), float(oracle.q)
    if not isinstance(oracle, SS):
        return PairLaw(p, q, p * q, q * q)
    # A subset of k values with or without one's own: the others are a uniform subset of the rest.
    k, d = oracle.k, oracle.size
    other = (p * (k - 1) * (k - 2) + (1 - p) * k * (k - 1)) / ((d - 1) * (d - 2))
    return PairLaw(p, q, p * (k - 1) / (d - 1), other)


def support_planes(oracle: Structured, reports: Reports, values: I64) -> U64:
    """Return a row of bits per value, one bit per report: whether the report supports the value."""
    chosen = values.astype(np.uint32)
    if isinstance(oracle, LocalHashOracle):
        return kernels.hash_planes(as_u32(reports["seed"]), as_u32(reports["bucket"]), oracle.g, chosen)
    return kernels.report_planes(reports, chosen)


def supported_counts(oracle: Structured, reports: Reports, values: I64) -> I64:
    """Return for every report how many of these values it supports."""
    planes = support_planes(oracle, reports, values)
    counts = np.zeros(len(reports), np.int64)
    # Bit i of a plane belongs to report i; little-endian words and bits keep that order on every platform.
    for plane in planes:
        counts += np.unpackbits(plane.astype("<u8").view(np.uint8), count=len(reports), bitorder="little")
    return counts


def count_laws(oracle: Structured, k: int) -> tuple[F64, F64]:
    """Return the law of how many of k values an honest report supports: for holders of another value, and of one."""
    p, q, d = float(oracle.p), float(oracle.q), oracle.size
    if isinstance(oracle, SS):
        with_own, without = oracle.k - 1, oracle.k
        other = p * _hypergeometric(d - 1, k, with_own, k) + (1 - p) * _hypergeometric(d - 1, k, without, k)
        # One's own value moves the law up by one; what `roll` brings round from the end is zero.
        inside = p * np.roll(_hypergeometric(d - 1, k - 1, with_own, k), 1)
        return other, inside + (1 - p) * _hypergeometric(d - 1, k - 1, without, k)
    fewer = _binomial(k - 1, q, k)
    return _binomial(k, q, k), p * np.roll(fewer, 1) + (1 - p) * fewer


def _binomial(n: int, q: float, top: int) -> F64:
    """Probabilities of 0 .. top successes in n trials."""
    return np.array([comb(n, j) * q**j * (1 - q) ** (n - j) if j <= n else 0.0 for j in range(top + 1)])


def _hypergeometric(total: int, marked: int, drawn: int, top: int) -> F64:
    """Probabilities of 0 .. top marked ones among those drawn out of a total."""
    ways = [comb(marked, j) * comb(total - marked, drawn - j) if j <= min(marked, drawn) else 0 for j in range(top + 1)]
    return np.array([way / comb(total, drawn) for way in ways])


def listed_values(oracle: Oracle, most: int, estimates: F64) -> I64:
    """Return the values that are looked at in pairs: all, or those with the largest estimates."""
    if oracle.size > _MOST_VALUE or oracle.size != len(estimates):
        return np.zeros(0, np.int64)
    if oracle.size <= most:
        return np.arange(oracle.size)
    return np.sort(np.argsort(-estimates, kind="stable")[:most])
