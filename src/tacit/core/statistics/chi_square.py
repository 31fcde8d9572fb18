"""Tails of the chi-square distribution, in the standard library alone."""

from math import erfc, exp, lgamma, log, sqrt


def chi_square_tail(statistic: float, degrees: int) -> float:
    """Return the probability that a chi-square of so many degrees of freedom exceeds a value.

    >>> round(chi_square_tail(3.841459, 1), 4), round(chi_square_tail(9.487729, 4), 4)
    (0.05, 0.05)
    """
    if statistic <= 0:
        return 1.0
    half = statistic / 2
    # Recurrence in steps of two degrees: Q(k + 2) = Q(k) + half^(k/2) e^-half / Gamma(k/2 + 1), from one degree (erfc)
    # or two (exp). Terms are taken through logarithms, since the power overflows for large statistics.
    tail = erfc(sqrt(half)) if degrees % 2 else exp(-half)
    start = degrees % 2 or 2
    for k in range(start, degrees, 2):
        tail += exp(k / 2 * log(half) - half - lgamma(k / 2 + 1))
    return min(1.0, tail)
