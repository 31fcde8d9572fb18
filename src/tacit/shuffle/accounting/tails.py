"""What the accountants need of binomial laws: windows, slices and the mean excess over a threshold, all rounded up.

Nothing here is simulated or approximated by a normal law. Where a law is cut, the mass that is cut off is returned and
counted in full; where it is sliced, every slice stands for its worst end.
"""

from dataclasses import dataclass
from math import ceil, floor, log, sqrt

import numpy as np

from tacit.arrays import F64
from tacit.core.statistics.binomial import mass, upper_tail

ROUNDING = 1e-12
"""Relative error of a tail or a mass, at most; theirs is near 1e-13."""

EXACT = 64
"""Laws of no more trials are not sliced but enumerated."""

_UNSTEADY = 120
"""One over the relative deviation up to which a law needs no more slices than it was given."""


def window(n: int, p: float, tail: float) -> tuple[int, int]:
    """The ends of a range that a binomial variable leaves with probability `tail` at most (Bernstein), one more each.

    One more: the law under which the victim's own report is one of the draws differs by that report.
    """
    level = log(2 / tail)
    half = level / 3 + sqrt(level * level / 9 + 2 * level * n * p * (1 - p))
    return max(0, floor(n * p - half) - 1), min(n, ceil(n * p + half) + 1)


@dataclass(frozen=True)
class Sliced:
    """A binomial law as lower ends with weights: whatever falls in the variable is at most what these give."""

    ends: F64
    weights: F64
    missing: float
    """Mass that the slices may not cover, at most."""


def sliced(n: int, p: float, tail: float, count: int, others: int = 0) -> Sliced:
    """Cut a binomial law into about `count` slices, dense around its mean; small laws value by value.

    More slices, where the variable (with `others` beside it) varies by more than a few per cent of itself.
    """
    if n <= EXACT:
        ends = np.arange(n + 1, dtype=np.float64)
        weights = mass(ends, n, p)
        return Sliced(ends[weights > 0], weights[weights > 0], 0.0)
    low, high = window(n, p, tail)
    deviation = sqrt(n * p * (1 - p))
    count = round(count * min(max(1.0, _UNSTEADY * deviation / (n * p + others)), 6.0))
    inner = n * p + np.linspace(-5, 3.5, count - 1) * deviation
    # Far below the mean there is little mass, but what is hidden there is hidden badly.
    sparse = np.linspace(low, max(low, inner[0]), 4 if count > 8 else 1)
    ends = np.unique(np.clip(np.floor([*sparse, *inner]), low, high))
    chances = mass(np.arange(low, high + 1), n, p)
    weights = np.add.reduceat(chances, (ends - low).astype(np.intp)) * (1 + ROUNDING)
    return Sliced(ends, weights, tail)


def half_excess(c: F64, threshold: F64) -> F64:
    """Upper bounds of E[(K - threshold)_+] for K binomial of c trials with probability one half.

    E[K; K >= k] is (c/2) Pr[K >= k] + (k/2) Pr[K = k], so that one tail is enough.

    >>> [round(float(v), 9) for v in half_excess(np.array([3.0, 3.0, 3.0]), np.array([-1.0, 1.5, 4.0]))]
    [2.5, 0.375, 0.0]
    """
    least = np.maximum(np.ceil(threshold), 0.0)
    above, at = np.zeros_like(threshold), np.zeros_like(threshold)
    some = least <= c
    above[some] = upper_tail(least[some], c[some], 0.5)
    at[some] = mass(least[some], c[some], 0.5)
    first, second = (c / 2 - threshold) * above, least / 2 * at
    return np.maximum(first + second, 0.0) + ROUNDING * (np.abs(first) + second)


def excess(counts: F64, chances: F64, thresholds: F64) -> tuple[F64, F64]:
    """E[(S - t)_+] and Pr[S >= t] for every threshold, of a variable with these counts (consecutive) and chances.

    Sums of positive terms from the far end, so that small values keep their digits.
    """
    above = np.cumsum(chances[::-1])[::-1]
    # The excess over a count is the sum of the tails behind it.
    beyond = np.append(np.cumsum(above[:0:-1])[::-1], 0.0)
    least = np.maximum(np.ceil(thresholds), counts[0])
    some = least <= counts[-1]
    at = (least[some] - counts[0]).astype(np.intp)
    value, tail = np.zeros_like(thresholds), np.zeros_like(thresholds)
    tail[some] = above[at]
    value[some] = beyond[at] + (least[some] - thresholds[some]) * tail[some]
    return value, tail
