"""Local hashing on padded sets under (epsilon, delta): what amplification would give if delta were allowed.

Wang's dissertation, section 5.5.1. Every mechanism of Tacit is pure epsilon; this reproduces Table 5.2 and no more.
"""

from dataclasses import dataclass
from math import ceil, comb, exp, log

import numpy as np

from tacit.errors import InvalidSpec


@dataclass(frozen=True)
class ApproximateHashing:
    """Local hashing on a padded set under (epsilon, delta): experimental, never mixed with pure epsilon.

    `within` is l', how many of the l elements may fall into one bucket but with probability delta.
    """

    epsilon: float
    delta: float
    length: int
    within: int
    inner_epsilon: float
    buckets: int


def _hashing(epsilon: float, delta: float, length: int, within: int) -> ApproximateHashing:
    inner = log(length / within * (exp(epsilon) - 1) + 1)
    # A hair below, so that an integer e^epsilon' + 1 is not rounded up to the next one.
    return ApproximateHashing(epsilon, delta, length, within, inner, ceil(exp(inner) + 1 - 1e-9))


def olh_approximate(epsilon: float, delta: float, length: int) -> ApproximateHashing:
    """Theorem 5.5.1 with the best l': C(l, l'+1) / g^l' <= delta, over all l' because g is rounded. Experimental.

    The hash function must be drawn by the device, fresh and fully random. With l' = l nothing is gained and delta is 0.

    >>> round(olh_approximate(1.0, 1e-3, 10).inner_epsilon, 2)
    1.24
    """
    if not 0 < delta < 1 or epsilon <= 0 or length < 1:
        raise InvalidSpec("olh_approximate: needs epsilon above 0, delta between 0 and 1 and a length of at least 1")
    options = (_hashing(epsilon, delta, length, within) for within in range(1, length + 1))
    return next(o for o in options if comb(length, o.within + 1) <= delta * o.buckets**o.within)


def olh_approximate_printed(epsilon: float, delta: float, length: int) -> ApproximateHashing:
    """How Table 5.2 was made: g is taken one step too early and the search stops at the first failure. Conservative."""
    within = length
    while within > 1:
        buckets = ceil(length / within * (exp(epsilon) - 1) + 2 - 1e-9)
        if comb(length, within) > delta * buckets ** (within - 1):
            break
        within -= 1
    return _hashing(epsilon, delta, length, within)


def disjoint_delta(epsilon: float, inner_epsilon: float, buckets: int, length: int) -> float:
    """The exact delta between two disjoint sets of `length` elements under an ideal hash. Experimental.

    That such sets are the worst case is not proven: an indication of how loose the theorem is, no guarantee.
    """
    p = exp(inner_epsilon) / (exp(inner_epsilon) + buckets - 1)
    q = 1 / (exp(inner_epsilon) + buckets - 1)
    held = np.arange(length + 1)
    mass = np.array([comb(length, int(a)) * buckets ** -float(a) * (1 - 1 / buckets) ** (length - a) for a in held])
    report = q + (p - q) * held / length
    excess = np.clip(report[:, None] - exp(epsilon) * report[None, :], 0, None)
    return float(buckets * mass @ excess @ mass)
