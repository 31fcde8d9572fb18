"""DET-COSUP: two values that are supported together more often than any honest crowd would support them.

For a pair of values the sum over reports of (s - q)(s' - q) has mean zero for honest data of every shape, because one
person holds one value. Reports that are made to support several targets at once add (1 - q)^2 each.
"""

from dataclasses import dataclass

import numpy as np

from tacit import kernels
from tacit.arrays import F64, I64, Mask
from tacit.core.mechanism import Reports
from tacit.core.statistics.normal import normal_isf
from tacit.integrity.groups import PairSums, strongest_group
from tacit.integrity.structure import PairLaw, Structured, listed_values, pair_law, support_planes
from tacit.integrity.tails import upper_tail_of_sum

MOST_VALUES = 512
"""Values that are looked at in pairs: 130,816 pairs."""


@dataclass(frozen=True, eq=False)
class CoSupport:
    """Standardised excess of common supports, for every pair of the values that were looked at."""

    values: I64
    z: F64
    excess: F64
    """The sums themselves: how many more reports support both than honest ones would."""
    threshold: float
    flagged: Mask
    p_value: float
    together: Mask
    """Which values are in a flagged pair or group, or supported with all of those far too often."""

    @property
    def hot(self) -> I64:
        """Values that seem to be pushed together; none where no pair is flagged."""
        return self.values[self.together]

    @property
    def largest(self) -> float:
        """The largest z of any pair."""
        return float(self.z.max(initial=0.0))


def co_support(
    oracle: Structured, reports: Reports, shares: F64, alpha: float, *, most: int = MOST_VALUES
) -> CoSupport:
    """Test all pairs of up to `most` values; `shares` are the raw estimates of all values from these reports."""
    values = listed_values(oracle, most, shares)
    both = kernels.co_support(support_planes(oracle, reports, values))
    return judged(oracle, len(reports), both, values, shares[values], alpha)


def judged(oracle: Structured, n: int, both: I64, values: I64, shares: F64, alpha: float) -> CoSupport:
    """Compare counts of common supports with those of honest reports."""
    law = pair_law(oracle)
    sums = shares[:, None] + shares[None, :]
    excess = both - n * (law.both_other + (law.both_own - law.both_other) * sums)
    sd, skewness = _spread(law, n, shares)
    # The diagonal holds the supports of single values, which are no pairs.
    z = np.where(np.eye(len(values), dtype=np.bool_), 0.0, excess / np.maximum(sd, 1e-12))
    # Bonferroni: half of alpha is for pairs, of which each gets an equal part, and half for larger groups.
    pairs = 2 * max(1, len(values) * (len(values) - 1) // 2)
    top = 1 - law.both_other - 2 * law.slope * (1 - law.q)
    deviations = _Deviations(z, skewness, top / np.maximum(sd, 1e-12))
    flagged, p_value = _flagged(deviations, alpha / pairs)
    group = strongest_group(PairSums(oracle, n, excess, z, _held(shares)))
    core: Mask = np.logical_or.reduce(flagged, axis=1)
    if group is not None and group.p_value < alpha:
        core = core | group.members
    least = min(1.0, p_value * pairs, 1.0 if group is None else group.p_value)
    return CoSupport(values, z, excess, normal_isf(alpha / pairs), flagged, least, _grown(deviations, core, alpha))


@dataclass(frozen=True, eq=False)
class _Deviations:
    """Of every pair: its excess in standard deviations, the skewness of that, and the most that one report adds."""

    z: F64
    skewness: F64
    largest: F64


def _spread(law: PairLaw, n: int, shares: F64) -> tuple[F64, F64]:
    """Standard deviation and skewness of the excess, with the estimated shares plugged in.

    Holders of one of the two values have another variance than all others, which shows where a value is very frequent.
    """
    held = _held(shares)
    own = held[:, None] + held[None, :]
    (other2, other3), (own2, own3) = law.moments(own=False), law.moments(own=True)
    variance = n * ((1 - own) * other2 + own * own2)
    third = n * ((1 - own) * other3 + own * own3)
    return np.sqrt(variance), third / np.maximum(variance, 1e-100) ** 1.5


def _held(shares: F64) -> F64:
    """Estimated shares as a crowd could have them."""
    held = np.clip(shares, 0, 1)
    # Raw estimates may add up to more than one, which no crowd can hold.
    return held / max(1.0, float(held.sum()))


def _flagged(pairs: _Deviations, alpha: float) -> tuple[Mask, float]:
    """Which pairs have a tail below alpha, and the least tail of any pair."""
    flagged, least = np.zeros(pairs.z.shape, np.bool_), 1.0
    # No tail is below the normal one, so that only pairs beyond its quantile are looked at one by one.
    rows, columns = np.nonzero(np.triu(pairs.z, 1) > min(3.0, normal_isf(alpha)))
    for at in zip(rows.tolist(), columns.tolist(), strict=True):
        tail = upper_tail_of_sum(*(float(one[at]) for one in (pairs.z, pairs.skewness, pairs.largest)))
        least = min(least, tail)
        if tail < alpha:
            flagged[at] = flagged[at[::-1]] = True
    return flagged, least


def _grown(pairs: _Deviations, core: Mask, alpha: float) -> Mask:
    """The values of flagged pairs, and those whose pairs with all of them together stand out.

    A pair alone must stand out among all pairs. Once some are known to be pushed, another value has but to stand out
    among all values, and the z of its pairs with the known ones add: for a value that nobody pushes these are
    uncorrelated, so that their sum over sqrt(k) has variance 1. Each value that is taken in is a wrong one with
    probability alpha at most.
    """
    found = core.copy()
    while 2 <= (k := int(found.sum())) < len(found):
        sums = np.where(found, -np.inf, pairs.z[:, found].sum(axis=1) / k**0.5)
        best = int(np.argmax(sums))
        # The third moments of k uncorrelated parts add up like their variances; one report may be in all of them.
        skewness = float(pairs.skewness[best, found].mean()) / k**0.5
        largest = float(pairs.largest[best, found].max()) * k**0.5
        if upper_tail_of_sum(float(sums[best]), skewness, largest) * (len(found) - k) >= alpha:
            break
        found[best] = True
    return found
