"""The standard normal distribution: tails, cumulative probabilities and quantiles of scalars (standard library only).

Thresholds of simultaneous tests ask for tails such as 0.05 / 10**9, where ``1 - cdf`` has few
correct digits left. Everything here therefore works on the small tail itself.
"""

from math import erfc, inf, sqrt
from statistics import NormalDist

from tacit.errors import InvalidSpec

_STANDARD = NormalDist()


def normal_sf(x: float) -> float:
    """Return Pr[Z > x], good to 1e-12 relative down to tails of 1e-300.

    >>> f"{normal_sf(10.0):.6e}"
    '7.619853e-24'
    """
    return 0.5 * erfc(x / sqrt(2.0))


def normal_cdf(x: float) -> float:
    """Return Pr[Z <= x], good to 1e-12 relative down to tails of 1e-300.

    >>> normal_cdf(0.0)
    0.5
    """
    return normal_sf(-x)


def normal_isf(tail: float) -> float:
    """Return the x with Pr[Z > x] = tail; the ends 0 and 1 give plus and minus infinity.

    >>> f"{normal_isf(0.025):.12f}"
    '1.959963984540'
    """
    return -normal_quantile(tail)


def normal_quantile(probability: float) -> float:
    """Return the x with Pr[Z <= x] = probability; the ends give minus and plus infinity.

    For a probability close to 1 pass its complement to ``normal_isf`` instead: the double
    nearest to 1 - 1e-20 is 1.

    >>> normal_quantile(0.5)
    0.0
    """
    if not 0.0 <= probability <= 1.0:
        raise InvalidSpec(f"normal quantile: probability is {probability!r}, must be between 0 and 1")
    if probability == 0.0:
        return -inf
    if probability == 1.0:
        return inf
    # The standard library evaluates Wichura's AS 241 on the smaller tail: below 1e-15 relative
    # error even for the smallest double. A Newton step on erfc would only lose digits near 1/2.
    return _STANDARD.inv_cdf(probability)
