"""Groups of values that are supported together, each pair of them too little to stand out by itself.

Of k values a report supports K; what it adds to the pairs of these k depends on K alone, whose law is known exactly for
holders of one of them and of another value (`count_laws`). So the tail of the sum over n honest reports has Chernoff's
bound, which holds for any n. With the number of groups of k values among all that are looked at, and a part 2^-(k - 1)
of the error probability for every k, the bound holds for the best group of all, however it was found.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, lgamma, log

import numpy as np

from tacit.arrays import F64, Mask
from tacit.integrity.structure import PairLaw, Structured, count_laws, pair_law

MOST_TOGETHER = 48
"""The largest group that is looked for."""
_STARTS = 16
"""Pairs from which groups are grown: those with the largest z."""
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class ValueGroup:
    """Values that are supported together more often than any honest crowd would."""

    members: Mask
    p_value: float


@dataclass(frozen=True, eq=False)
class PairSums:
    """What is known of all pairs of the values that are looked at."""

    oracle: Structured
    n: int
    excess: F64
    z: F64
    shares: F64
    """Estimated shares of the values, within 0 and 1."""


def strongest_group(pairs: PairSums) -> ValueGroup | None:
    """Return the least likely group of three or more values; None where there are no three."""
    if len(pairs.z) < 3 or pairs.n == 0:
        return None
    rows, columns = np.triu_indices(len(pairs.z), 1)
    first = np.argsort(-pairs.z[rows, columns], kind="stable")[:_STARTS]
    found = (_grown_from(pairs, int(rows[i]), int(columns[i])) for i in first)
    said, members = min(found, key=lambda one: one[0])
    # The normal tail tells which group is the best; its bound, which is larger, is computed where it may be below 1.
    return ValueGroup(members, _bound(pairs, members) if said < 0 else 1.0)


def _grown_from(pairs: PairSums, first: int, second: int) -> tuple[float, Mask]:
    """Take in whichever value adds most; the least likely of the groups on the way, and the log of how likely it is."""
    members = np.zeros(len(pairs.z), np.bool_)
    members[[first, second]] = True
    sums, total = pairs.z[first] + pairs.z[second], float(pairs.excess[first, second])
    best, least = members.copy(), inf
    for k in range(3, min(len(members), MOST_TOGETHER) + 1):
        one = int(np.argmax(np.where(members, -inf, sums)))
        if sums[one] <= 0:
            break
        total += float(pairs.excess[one, members].sum())
        members[one] = True
        sums = sums + pairs.z[one]
        law = _GroupLaw.of(pairs.oracle, k)
        said = -(law.standardised(total, pairs.n, _held(pairs, members)) ** 2) / 2 + _choices(len(members), k)
        if said < least:
            best, least = members.copy(), said
    return least, best


def _bound(pairs: PairSums, members: Mask) -> float:
    """Chernoff's bound times the number of groups of this size, over the part of the error that is theirs."""
    k = int(members.sum())
    total = float(pairs.excess[np.ix_(members, members)][np.triu_indices(k, 1)].sum())
    tail = _GroupLaw.of(pairs.oracle, k).log_tail(total, pairs.n, _held(pairs, members))
    return float(np.exp(min(0.0, tail + _choices(len(members), k))))


def _held(pairs: PairSums, members: Mask) -> float:
    """The estimated share of respondents who hold a value of the group."""
    return float(min(1.0, pairs.shares[members].sum()))


def _choices(values: int, k: int) -> float:
    """The log of how many groups of k values there are, and of what part of the error each size has."""
    return lgamma(values + 1) - lgamma(k + 1) - lgamma(values - k + 1) + (k - 1) * log(2)


@dataclass(frozen=True, eq=False)
class _GroupLaw:
    """What an honest report adds to the pairs of k values: `adds[K]`, with `other[K]` and `own[K]` as probabilities."""

    adds: F64
    other: F64
    own: F64

    @classmethod
    def of(cls, oracle: Structured, k: int) -> "_GroupLaw":
        return _law(oracle, k)

    def standardised(self, total: float, n: int, held: float) -> float:
        """The sum in standard deviations, at least 0."""
        variance = n * float(self._mixed(held) @ self.adds**2)
        return max(0.0, total / variance**0.5) if variance > 0 else 0.0

    def log_tail(self, total: float, n: int, held: float) -> float:
        """The log of a bound of the probability that n honest reports add up to so much."""
        mean, law = total / n, self._mixed(held)
        adds, law = self.adds[law > 0], law[law > 0]
        if mean <= 0:
            return 0.0
        if mean > adds.max():
            return -inf
        low, high = 0.0, 1.0
        while _slope(adds, law, high) < mean and high < 1e6:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if _slope(adds, law, middle) < mean else (low, middle)
        # Any factor gives a bound; this one is nearly the best.
        return n * min(0.0, _log_moment(adds, law, low) - low * mean)

    def _mixed(self, held: float) -> F64:
        return (1 - held) * self.other + held * self.own


def _log_moment(adds: F64, law: F64, factor: float) -> float:
    """The log of the mean of e^(factor x)."""
    top = float(factor * adds.max())
    return top + log(float(law @ np.exp(factor * adds - top)))


def _slope(adds: F64, law: F64, factor: float) -> float:
    """The mean of x where probabilities are tilted by e^(factor x)."""
    weights = law * np.exp(factor * (adds - adds.max()))
    return float(weights @ adds / weights.sum())


@lru_cache(maxsize=256)
def _law(oracle: Structured, k: int) -> _GroupLaw:
    pair: PairLaw = pair_law(oracle)
    level = np.arange(k + 1, dtype=np.float64)
    adds = level * (level - 1) / 2 - k * (k - 1) / 2 * pair.both_other - pair.slope * (k - 1) * (level - k * pair.q)
    other, own = count_laws(oracle, k)
    return _GroupLaw(adds, other, own)
