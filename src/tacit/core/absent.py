"""How high noise alone lifts a value that nobody holds: tails of its estimate, and the share that rules noise out.

A report on another value supports an absent one with probability q exactly, whatever that other value is. With n
reports that draw their own coins and hash functions the support is therefore binomial (n, q), however skewed the data
are (Wang's dissertation, section 3.2, the definition of a pure oracle).
"""

from math import sqrt

import numpy as np
import numpy.typing as npt

from tacit.core.binomial import least_significant, upper_tail
from tacit.core.mechanism import Oracle
from tacit.core.normal import normal_isf, normal_sf
from tacit.core.pure import PureOracle, support_of
from tacit.core.sharing import SharedHashes
from tacit.core.tally import Counts, Tally

F64 = npt.NDArray[np.float64]


def has_exact_tail(oracle: Oracle) -> bool:
    """Whether the law of an absent value's support is known: not where respondents share hash functions."""
    return isinstance(oracle, PureOracle) and not isinstance(oracle, SharedHashes)


def absent_tail(oracle: Oracle, tally: Tally, share: F64) -> F64:
    """Return the probability that a value nobody holds is estimated at `share` or higher.

    Exact where `has_exact_tail`; with weights an upper bound (Bennett's inequality, 1962). Otherwise a normal tail,
    which is too small for few reports.
    """
    if tally.n == 0:
        return np.ones_like(share)
    if not isinstance(oracle, PureOracle) or isinstance(oracle, SharedHashes):
        deviation = sqrt(oracle.variance_at_zero / tally.n)
        return np.array([normal_sf(float(x)) for x in share / deviation])
    if tally.is_weighted:
        return _weighted_tail(oracle, tally, share)
    counts, place = np.unique(support_of(oracle.p, oracle.q, tally.n, share * tally.n), return_inverse=True)
    return upper_tail(counts, tally.n, float(oracle.q))[place]


def absent_threshold(oracle: Oracle, n: int, alpha: float) -> float:
    """Return the least share, of n equal reports, that a value nobody holds reaches with probability `alpha` at most.

    Above 1 or so, not even a value that everybody holds is told from noise.
    """
    if not has_exact_tail(oracle):
        return normal_isf(min(0.5, alpha)) * sqrt(oracle.variance_at_zero / n)
    assert isinstance(oracle, PureOracle)
    count = least_significant(n, float(oracle.q), alpha)
    return (count / n - float(oracle.q)) / float(oracle.p - oracle.q)


def _weighted_tail(oracle: PureOracle, tally: Tally, share: F64) -> F64:
    """Bennett's bound of a sum of weighted supports: exp(-V/b^2 h(b t/V)), h(u) = (1 + u) log(1 + u) - u."""
    q, (total, squares, most) = float(oracle.q), _weights_of(tally)
    excess = np.maximum(0.0, share * total * float(oracle.p - oracle.q))
    variance, bound = q * (1 - q) * squares, most * max(q, 1 - q)
    u = bound * excess / variance
    return np.exp(-variance / bound**2 * ((1 + u) * np.log1p(u) - u))


def _weights_of(tally: Tally) -> tuple[float, float, float]:
    """Sum, sum of squares and largest size of the weights; counts only know the root of the squares as its bound."""
    if isinstance(tally, Counts):
        return float(tally.total), float(tally.total2), sqrt(tally.total2)
    assert tally.weights is not None
    weights = np.concatenate(tally.weights).astype(np.float64)
    return float(weights.sum()), float((weights**2).sum()), float(np.abs(weights).max())
