"""Exact tails of the binomial distribution, and the interval and the critical count that they imply.

A support count of a pure oracle is binomial, and at small n or small q far too skewed for a normal tail. The tails
here are the regularised incomplete beta function by a continued fraction (Lentz's method), times a binomial
probability in Loader's form: that one subtracts no large logarithms of factorials, so that the relative error stays
near 1e-13 for 10^9 reports as well. C. Loader, "Fast and accurate computation of binomial probabilities", 2000.
"""

from functools import lru_cache
from math import lgamma, log, pi

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec

# Coefficients of the Stirling series of log n!, in powers 1/n, 1/n^3, ...; below 16 a table of exact values is better.
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_TABLE = np.array([0.0] + [lgamma(k + 1.0) - (k + 0.5) * log(k) + k - 0.5 * log(2 * pi) for k in range(1, 16)])
# Keeps logarithms and divisions finite where a tail underflows.
_TINY = 1e-300
_NEVER = -709.0
"""The log odds that stand for a probability of zero: e^709 is the largest power that a double holds."""
_CLOSE = 4e-15
"""A few roundings: further steps of a continued fraction would only add errors."""
_MOST_STEPS = 100_000
_SECTIONS = 64
"""Counts that are tried at once: an array of them costs hardly more than one."""


def upper_tail(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> F64:
    """Return Pr[X >= k] for X binomial of n trials with probability p; arguments are broadcast.

    >>> [round(float(upper_tail(k, 3, 0.5)), 12) for k in (0, 1, 3, 4)]
    [1.0, 0.875, 0.125, 0.0]
    """
    count, trials, chance = _checked(k, n, p)
    tail = np.where(count <= 0, 1.0, 0.0)
    inside = (count > 0) & (count <= trials)
    tail[inside] = _beta(count[inside], trials[inside] - count[inside] + 1, chance[inside])
    return tail


def lower_tail(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> F64:
    """Return Pr[X <= k] for X binomial of n trials with probability p; arguments are broadcast.

    >>> [round(float(lower_tail(k, 3, 0.5)), 12) for k in (-1, 0, 2, 3)]
    [0.0, 0.125, 0.875, 1.0]
    """
    count, trials, chance = _checked(k, n, p)
    tail = np.where(count >= trials, 1.0, 0.0)
    inside = (count >= 0) & (count < trials)
    # Failures are binomial as well; exchanging them keeps p itself, which 1 - p would round where p is small.
    tail[inside] = _beta(count[inside] + 1, trials[inside] - count[inside], chance[inside], complement=True)
    return tail


def mass(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> F64:
    """Return Pr[X = k] for X binomial of n trials with probability p; arguments are broadcast.

    >>> [round(float(mass(k, 3, 0.5)), 12) for k in (-1, 0, 1, 4)]
    [0.0, 0.125, 0.375, 0.0]
    """
    count, trials, chance = _checked(k, n, p)
    value = np.zeros_like(count)
    inside = (count >= 0) & (count <= trials)
    value[inside] = np.exp(_log_mass(count[inside], trials[inside] - count[inside], chance[inside]))
    return value


@lru_cache(maxsize=1024)
def least_significant(n: int, p: float, alpha: float) -> int:
    """Return the smallest count k with Pr[X >= k] <= alpha; n + 1 if there is none.

    >>> least_significant(10, 0.5, 0.05), least_significant(3, 0.5, 0.01)
    (9, 4)
    """
    if alpha >= 1:
        return 0
    # A search by sections instead of halves. Invariant: Pr[X >= low] > alpha and Pr[X >= high] <= alpha.
    low, high = 0, n + 1
    while high - low > 1:
        # The tail falls with k, so those that pass are the last ones of `inner`.
        inner = np.unique(np.linspace(low, high, _SECTIONS + 2).astype(np.int64)[1:-1])
        passed = inner[upper_tail(inner, n, p) <= alpha]
        failed = inner[: len(inner) - len(passed)]
        low, high = max([low, *failed[-1:].tolist()]), min([high, *passed[:1].tolist()])
    return high


def clopper_pearson(k: npt.ArrayLike, n: npt.ArrayLike, confidence: float = 0.95) -> tuple[F64, F64]:
    """Return the exact interval of p after k successes in n trials: it covers at least `confidence` for every p, n.

    No trials say nothing: the interval is 0 to 1.

    >>> [round(float(end), 4) for end in clopper_pearson(0, 10)]
    [0.0, 0.3085]
    """
    if not 0 < confidence < 1:
        raise InvalidSpec(f"clopper_pearson: confidence is {confidence}, must be between 0 and 1, such as 0.95")
    count, trials, _ = _checked(k, n, 0.5)
    if np.any((count < 0) | (count > trials)):
        raise InvalidSpec("clopper_pearson: k must be from 0 to n; successes are counted among the trials")
    alpha = (1 - confidence) / 2
    # The upper limit of p is one minus the lower limit for failures; in log odds that is a change of sign.
    low, high = _lower_limit(count, trials, alpha), _lower_limit(trials - count, trials, alpha)
    return np.where(count > 0, 1 / (1 + np.exp(-low)), 0.0), np.where(count < trials, 1 / (1 + np.exp(high)), 1.0)


def _checked(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> tuple[F64, F64, F64]:
    wide = [np.array(a, np.float64) for a in np.broadcast_arrays(k, n, p)]
    count, trials, chance = wide[0], wide[1], wide[2]
    if not (np.all(count == np.floor(count)) and np.all(trials == np.floor(trials)) and np.all(trials >= 0)):
        raise InvalidSpec("binomial: k and n must be whole numbers, n at least 0")
    if not np.all((chance >= 0) & (chance <= 1)):
        raise InvalidSpec("binomial: p must be between 0 and 1")
    return count, trials, chance


def _lower_limit(k: F64, n: F64, alpha: float) -> F64:
    """Log odds of the p with Pr[X >= k] = alpha; for k = 0, odds that round to zero.

    Newton's method on the log of the tail as a function of the log odds, where it is nearly linear for small p. A step
    that leaves the bracket is replaced by a bisection, so that it always converges.
    """
    limit = np.full_like(k, _NEVER)
    inside = k > 0
    if not inside.any():
        return limit
    count, trials = k[inside], n[inside]
    theta = _score_limit(count, trials, normal_isf(alpha))
    # Log odds of 35 are a probability of 1 - 6e-16, the last double below 1.
    low, high = np.full_like(theta, _NEVER), np.full_like(theta, 35.0)
    for _ in range(100):
        p = 1 / (1 + np.exp(-theta))
        tail, slope = _log_tail_and_slope(count, trials, p)
        excess = tail - log(alpha)
        low, high = np.where(excess <= 0, theta, low), np.where(excess > 0, theta, high)
        step = theta - excess / np.maximum(slope, _TINY)
        new = np.where((step > low) & (step < high), step, (low + high) / 2)
        done = np.abs(new - theta) <= 1e-13 * np.maximum(1, np.abs(theta))
        theta = new
        if done.all():
            break
    limit[inside] = theta
    return limit


def _score_limit(k: F64, n: F64, z: float) -> F64:
    """Log odds of Wilson's lower limit with continuity correction: the start of Newton's method."""
    share = np.maximum(k - 0.5, 0.25) / n
    centre = share + z * z / (2 * n)
    half = z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    p = np.clip((centre - half) / (1 + z * z / n), 1e-300, 1 - 1e-12)
    return np.log(p) - np.log1p(-p)


def _log_tail_and_slope(k: F64, n: F64, p: F64) -> tuple[F64, F64]:
    """The log of Pr[X >= k] and its derivative by the log odds, k (1 - p) Pr[X = k] / Pr[X >= k]."""
    mass = _log_mass(k, n - k, p)
    # Small tails are computed in logarithms throughout, so that 1e-400 does not underflow; large ones need not be.
    small = p < (k + 1) / (n + 3)
    tail = np.empty_like(p)
    tail[small] = mass[small] + np.log1p(-p[small]) + np.log(_fraction(k[small], (n - k + 1)[small], p[small]))
    large = ~small
    tail[large] = np.log(np.maximum(_beta(k[large], (n - k + 1)[large], p[large]), _TINY))
    return tail, np.exp(np.log(k) + np.log1p(-p) + mass - tail)


def _beta(a: F64, b: F64, x: F64, *, complement: bool = False) -> F64:
    """The regularised incomplete beta function I_x(a, b), or its complement; a and b are whole and at least 1."""
    value = np.empty_like(x)
    # The continued fraction converges quickly left of the mean only; right of it, I_x(a, b) = 1 - I_(1-x)(b, a).
    small = x < (a + 1) / (a + b + 2)
    value[small] = _left_of_mean(a[small], b[small], x[small])
    large = ~small
    value[large] = _right_of_mean(a[large], b[large], x[large])
    # Where the wanted side is the one that was computed, nothing is subtracted and a small tail keeps its digits.
    flipped = large != complement
    value[flipped] = 1 - value[flipped]
    return np.clip(value, 0.0, 1.0)


def _left_of_mean(a: F64, b: F64, x: F64) -> F64:
    front = np.exp(_log_mass(a, b - 1, x) + np.log1p(-np.minimum(x, 1 - 2.0**-53)))
    return np.where(x < 1, front, 0.0) * _fraction(a, b, x)


def _right_of_mean(a: F64, b: F64, x: F64) -> F64:
    """One minus I_x(a, b)."""
    return np.exp(_log_mass(a - 1, b, x)) * x * _fraction(b, a, 1 - x)


def _fraction(a: F64, b: F64, x: F64) -> F64:
    """I_x(a, b) over x^a (1 - x)^b/(a B(a, b)), by a continued fraction of positive terms; x < (a + 1)/(a + b + 2).

    DiDonato and Morris, "Significant digit computation of the incomplete beta function ratios", 1992, equation (9).
    Terms that alternate would lose digits where a is small beside b.
    """
    # Lentz's recurrence on all elements at once; those that converged are taken out of the arrays.
    value, todo = np.empty_like(x), np.arange(len(x))
    gap = a - (a + b) * x + 1
    c = gap * a / (a + 1)
    d, divisor = np.zeros_like(x), c
    for m in range(1, _MOST_STEPS):
        over = m * (b - m) * x / (a + 2 * m - 1)
        alpha = (a + m - 1) * (a + b + m - 1) * x / (a + 2 * m - 1) * over
        beta = m + over + (a + m) / (a + 2 * m + 1) * (gap + m * (2 - x))
        d, c = 1 / (beta + alpha * d), beta + alpha / c
        divisor = divisor * d * c
        going = np.abs(d * c - 1) > _CLOSE
        if not going.all():
            value[todo[~going]] = (a / divisor)[~going]
            todo = todo[going]
            a, b, x, gap, c, d, divisor = (v[going] for v in (a, b, x, gap, c, d, divisor))
        if not len(todo):
            return value
    value[todo] = a / divisor
    return value


def _log_mass(k: F64, rest: F64, p: F64) -> F64:
    """The log of the binomial probability C(k + rest, k) p^k (1 - p)^rest, in Loader's saddle-point form."""
    n = k + rest
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(k > 0, k * np.log(p), 0.0) + np.where(rest > 0, rest * np.log1p(-p), 0.0)
        deviance = _deviance(k, n * p) + _deviance(rest, n * (1 - p))
        inner = _stirling(n) - _stirling(k) - _stirling(rest) - deviance + 0.5 * np.log(n / (2 * pi * k * rest))
    return np.where((k == 0) | (rest == 0), ends, inner)


def _stirling(n: F64) -> F64:
    """The log of n! less Stirling's formula."""
    large = np.maximum(n, 16.0)
    inverse, series = 1 / (large * large), np.zeros_like(large)
    for factor in reversed(_SERIES):
        series = series * inverse + factor
    return np.where(n < 16, _TABLE[np.minimum(n, 15).astype(np.int64)], series / large)


def _deviance(x: F64, mean: F64) -> F64:
    """Return x log(x/mean) + mean - x without cancellation: near x = mean by a series in v = (x - mean)/(x + mean)."""
    v = (x - mean) / (x + mean)
    square, series = v * v, np.zeros_like(v)
    for j in range(11, 0, -1):
        series = (series + 1 / (2 * j + 1)) * square
    near = (x - mean) * v + 2 * x * v * series
    return np.where(np.abs(v) < 0.1, near, x * np.log(x / mean) + mean - x)
