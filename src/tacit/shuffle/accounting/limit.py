"""The Gaussian limit of large crowds: closed formulas to plan with. They are estimates, and never certificates.

A shuffled pair of neighbouring crowds looks like N(0, 1) against N(mu, 1) with mu^2 = 2 a (x - 1)^2/n, a and x as in
`cells`. Dong, Roth and Su, "Gaussian differential privacy", 2022, corollary 1, turns (epsilon, delta) into mu.
"""

from functools import lru_cache
from math import exp, sqrt

from tacit.core.statistics.normal import normal_cdf


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of N(0, 1) against N(mu, 1) at epsilon."""
    return normal_cdf(-epsilon / mu + mu / 2) - exp(epsilon) * normal_cdf(-epsilon / mu - mu / 2)


@lru_cache(maxsize=64)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the mu whose delta at epsilon is `delta`.

    >>> [round(gaussian_mu(epsilon, 1e-9), 5) for epsilon in (0.1, 0.5, 1.0)]
    [0.01992, 0.09369, 0.18197]
    """
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, epsilon) < delta else (low, middle)
    return low


def limit_odds(crowd: float, outputs: int) -> float:
    """The odds x at which 2 a (x - 1)^2 is `crowd` (n mu^2), where a is 1/(x + outputs - 1)."""
    return 1 + (crowd + sqrt(crowd * crowd + 8 * crowd * outputs)) / 4
