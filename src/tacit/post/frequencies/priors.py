"""Posterior means under a prior on the frequency of one value: Power, PowerNS and the Gaussian prior.

Wang's dissertation, section 8.1.5; J. Jia and N. Z. Gong, "Calibrate: frequency estimation and heavy hitter
identification with local differential privacy via incorporating prior knowledge", INFOCOM 2019.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from tacit.arrays import F64
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.simplex import finite, project_to_simplex

_SINGLE = 64
"""Counts up to here are summed one by one; beyond, buckets grow with the count."""

# Both are fine enough that the interpolated posterior mean is off by far less than the noise.
_BUCKETS_PER_DEVIATION = 16
_POINTS_PER_DEVIATION = 20
_LOWEST, _HIGHEST = -9.0, 40.0
"""The table of posterior means covers these many standard deviations; above, its tangent expansion is exact enough."""

# The largest exponent of the bisection: beyond it practically all mass is at a count of 1.
_STEEPEST = 64.0
_TOO_FEW = 1.01
"""The exponent where values hold less than one respondent on average, which no power law over counts does."""


class Prior(Protocol):
    """A distribution of the number of respondents that hold one value; a frozen, hashable value."""

    def masses(self, low: F64, high: F64) -> tuple[F64, F64]:
        """Unnormalised mass, and mean, of every bucket of counts from low to high, both included."""
        ...

    def slope(self, count: F64) -> F64:
        """Derivative of the logarithm of the mass at large counts."""
        ...


def _power_sum(exponent: float, low: F64, high: F64) -> F64:
    """Sum of k^-exponent over k from low to high: exact for single counts, else by the Euler-Maclaurin formula.

    Integral, trapezoidal ends, and the corrections by the first and third derivative.
    """
    slope = 1.0 - exponent
    span = np.log(high / low)
    area = low**slope * (span if slope == 0 else np.expm1(slope * span) / slope)
    ends = (low**-exponent + high**-exponent) / 2
    first = -exponent * (high ** (-exponent - 1) - low ** (-exponent - 1)) / 12
    third = exponent * (exponent + 1) * (exponent + 2) * (high ** (-exponent - 3) - low ** (-exponent - 3)) / 720
    return np.where(low == high, low**-exponent, area + ends + first + third)


@dataclass(frozen=True)
class PowerLaw:
    """Counts k with mass proportional to k^-exponent."""

    exponent: float

    def masses(self, low: F64, high: F64) -> tuple[F64, F64]:
        """Mass and mean of buckets; those of more than one count must lie beyond 64."""
        mass = _power_sum(self.exponent, low, high)
        mean = (low + high) / 2
        np.divide(_power_sum(self.exponent - 1, low, high), mass, out=mean, where=mass > 0)
        return mass, mean

    def slope(self, count: F64) -> F64:
        """-exponent/k."""
        return -self.exponent / count

    def mean(self, n: int) -> float:
        """Mean of the counts from 1 to n."""
        low = np.arange(1.0, min(n, _SINGLE) + 1)
        high = low.copy()
        high[-1] = n
        mass, mean = self.masses(low, high)
        return float(mass @ mean / mass.sum())

    @classmethod
    def fit(cls, mean: float, n: int) -> "PowerLaw":
        """Return the law over 1 to n with this mean, by bisection; exponents below one serve small domains."""
        if mean < 1:
            return cls(_TOO_FEW)
        # The mean falls with the exponent; 60 halvings reach the precision of a double.
        low, high = 0.0, _STEEPEST
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if cls(middle).mean(n) > mean else (low, middle)
        return cls((low + high) / 2)


def power(value: F64, noise: Noise, *, prior: Prior | None = None) -> F64:
    """Return posterior means under a power law whose mean is that of the estimates (Power), equation (8.7). Biased.

    The posterior mean depends on the estimate alone, so it is tabulated over buckets of counts narrow against the
    noise and interpolated: O(d) after a table of fixed size, for any n.
    """
    n, deviation = max(1, round(noise.n)), noise.n * noise.deviation
    if len(finite(value)) == 1 or deviation == 0:
        return np.clip(value, 0, 1)
    counts = value * n
    law = PowerLaw.fit(float(counts.mean()), n) if prior is None else prior
    top = min(max(0.0, float(counts.max())), _HIGHEST * deviation)
    posterior = _between(counts, top, law, n, deviation)
    # Tweedie's formula with the prior's slope in place of the marginal's: far above the noise both are the same.
    far = counts > _HIGHEST * deviation
    posterior[far] = np.minimum(n, counts[far] + deviation**2 * law.slope(counts[far]))
    return posterior / n


def _between(counts: F64, top: float, law: Prior, n: int, deviation: float) -> F64:
    """Posterior means of counts up to `top`: directly if there are few, else from the table."""
    length = int((top / deviation - _LOWEST) * _POINTS_PER_DEVIATION) + 2
    # A table pays only if it has fewer points than there are values; both ways give the same function.
    if length <= len(counts):
        points, means = _table(law, n, deviation, length)
    else:
        points = np.unique(np.clip(counts, _LOWEST * deviation, top))
        means = _posterior_means(points, law, n, deviation)
    return np.interp(counts, points, means)


@lru_cache(maxsize=4)
def _table(law: Prior, n: int, deviation: float, length: int) -> tuple[F64, F64]:
    """Noisy counts in even steps, and their posterior means; cached, because PowerNS follows Power on the same data."""
    points = (_LOWEST + np.arange(length) / _POINTS_PER_DEVIATION) * deviation
    return points, _posterior_means(points, law, n, deviation)


def _posterior_means(points: F64, law: Prior, n: int, deviation: float) -> F64:
    """Posterior means of the count given noisy counts, with normal noise.

    Counts more than nine standard deviations above the largest noisy count have no weight and are left out.
    """
    low, high = _buckets(min(n, int(max(points[-1], 0) + (1 - _LOWEST) * deviation) + 1), deviation)
    mass, centre = law.masses(low, high)
    possible = mass > 0
    mass, centre = mass[possible], centre[possible]
    weight = np.log(mass) - ((points[:, None] - centre) / deviation) ** 2 / 2
    # Log-sum-exp: the largest weight of a row becomes 1, so that not all of them underflow.
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    return (weight @ centre) / weight.sum(axis=1)


def _buckets(last: int, deviation: float) -> tuple[F64, F64]:
    """Consecutive buckets of counts from 1 to `last`: single at first, then growing up to a part of a deviation."""
    widest = max(1, int(deviation / _BUCKETS_PER_DEVIATION))
    # A bucket is at most 1/32 of its count wide, so that the Euler-Maclaurin formula of its mass is accurate.
    starts = list(range(1, min(last, _SINGLE) + 1))
    at = starts[-1] + 1
    while at <= last:
        starts.append(at)
        at += max(1, min(widest, at // 32))
    low = np.array(starts, np.float64)
    return low, np.append(low[1:] - 1, float(last))


def power_ns(value: F64, noise: Noise, *, prior: Prior | None = None) -> F64:
    """Apply Power, then the projection onto the simplex (PowerNS). Biased."""
    return project_to_simplex(power(value, noise, prior=prior))


def gauss_prior(value: F64, noise: Noise) -> F64:
    """Shrink towards the mean: posterior means if frequencies were normal around it. Keeps the sum. Biased."""
    mean = float(finite(value).mean())
    # The variance between estimates is that of the frequencies plus the noise; the ratio is the shrinkage factor.
    spread = max(0.0, float(value.var()) - noise.at_zero)
    total = spread + noise.at_zero
    return mean + (value - mean) * (spread / total if total > 0 else 1.0)
