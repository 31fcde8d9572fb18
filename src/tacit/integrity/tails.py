"""Tails of sums of many small independent parts, safe where they are skewed: few reports, or rare supports."""

from math import exp, log1p, log2, pi

from tacit.core.statistics.normal import normal_sf

ALPHA = 0.01
"""The probability of any false alarm over the whole life of a collection."""
_NEARLY_NORMAL = 0.5
"""Where skewness times z is below this, the normal tail with one correction term is accurate."""


def upper_tail_of_sum(z: float, skewness: float, largest: float) -> float:
    """Return the probability that a standardised sum exceeds z, or a bound of it.

    `skewness` is that of the sum, `largest` the most that one part adds in units of the sum's standard deviation.
    Nearly normal sums get the normal tail times exp(skewness z^3/6) (Cramer's correction); others Bennett's inequality,
    which always holds.

    >>> round(upper_tail_of_sum(3.0, 0.0, 0.001), 6)
    0.00135
    >>> upper_tail_of_sum(3.0, 5.0, 2.0) > 0.1
    True
    """
    if z <= 0:
        return 1.0
    if skewness * z <= _NEARLY_NORMAL:
        # Negative skewness would make the tail smaller; taking the normal one instead errs towards fewer alarms.
        return min(1.0, normal_sf(z) * exp(max(0.0, skewness) * z**3 / 6))
    # Bennett: exp(-h(u)/largest^2) with h(u) = (1 + u) log(1 + u) - u, as the sum has variance 1.
    u = z * largest
    return min(1.0, exp(-((1 + u) * log1p(u) - u) / largest**2))


FIRST_LOOK = 100
"""Looks are numbered by doublings of the number of reports from here on."""


def look_number(n: int) -> int:
    """The number of the look that is due at so many reports, from 1 on."""
    return 1 + int(log2(max(1.0, n / FIRST_LOOK)))


def spent_on_batch(number: int, alpha: float = ALPHA) -> float:
    """Return the false-alarm probability that batch `number` (from 1 on) may spend; all batches together spend alpha.

    >>> sum(spent_on_batch(j) for j in range(1, 100_000)) < 0.01
    True
    """
    return alpha * 6 / (pi**2 * number**2)
