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

    @property
    def hot(self) -> I64:
        """Values in at least two flagged pairs."""
        return self.values[self.flagged.sum(axis=1) >= 2]

    @property
    def largest(self) -> float:
        """The largest z of any pair."""
        return float(self.z.max(initial=0.0))


def co_support(
    oracle: Structured, reports: Reports, shares: F64, alpha: float, *, most: int = MOST_VALUES
) -> CoSupport:
    """Test all pairs of up to `most` values; `shares` are the raw estimates of all values from these reports."""
    values = listed_values(oracle, most, shares)
    law, n = pair_law(oracle), len(reports)
    both = kernels.co_support(support_planes(oracle, reports, values))
    return judged(law, n, both, values, shares[values], alpha)


def judged(law: PairLaw, n: int, both: I64, values: I64, shares: F64, alpha: float) -> CoSupport:
    """Compare counts of common supports with those of honest reports."""
    sums = shares[:, None] + shares[None, :]
    excess = both - n * (law.both_other + (law.both_own - law.both_other) * sums)
    sd, skewness = _spread(law, n, shares)
    # The diagonal holds the supports of single values, which are no pairs.
    z = np.where(np.eye(len(values), dtype=np.bool_), 0.0, excess / np.maximum(sd, 1e-12))
    # Bonferroni: every pair gets an equal part of alpha, however pairs depend on each other.
    pairs = max(1, len(values) * (len(values) - 1) // 2)
    flagged, p_value = _flagged(law, z, sd, skewness, alpha / pairs)
    return CoSupport(values, z, excess, normal_isf(alpha / pairs), flagged, min(1.0, p_value * pairs))


def _spread(law: PairLaw, n: int, shares: F64) -> tuple[F64, F64]:
    """Standard deviation and skewness of the excess, with the estimated shares plugged in.

    Holders of one of the two values have another variance than all others, which shows where a value is very frequent.
    """
    held = np.clip(shares, 0, 1)
    # Raw estimates may add up to more than one, which no crowd can hold.
    held = held / max(1.0, float(held.sum()))
    own = held[:, None] + held[None, :]
    (other2, other3), (own2, own3) = law.moments(own=False), law.moments(own=True)
    variance = n * ((1 - own) * other2 + own * own2)
    third = n * ((1 - own) * other3 + own * own3)
    return np.sqrt(variance), third / np.maximum(variance, 1e-100) ** 1.5


def _flagged(law: PairLaw, z: F64, sd: F64, skewness: F64, alpha: float) -> tuple[Mask, float]:
    """Which pairs have a tail below alpha, and the least tail of any pair."""
    flagged, least = np.zeros(z.shape, np.bool_), 1.0
    top = 1 - law.both_other - 2 * law.slope * (1 - law.q)
    # No tail is below the normal one, so that only pairs beyond its quantile are looked at one by one.
    rows, columns = np.nonzero(np.triu(z, 1) > min(3.0, normal_isf(alpha)))
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        tail = upper_tail_of_sum(float(z[i, j]), float(skewness[i, j]), float(top / sd[i, j]))
        least = min(least, tail)
        if tail < alpha:
            flagged[i, j] = flagged[j, i] = True
    return flagged, least
