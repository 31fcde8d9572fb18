"""The null distribution of an estimate: how high noise alone lifts a value that nobody holds.

Heavy-hitter searches use it in both directions: the p-value of an estimated share (`absent_tail`), and the critical
share for a significance level (`absent_threshold`).

A report on another value supports an absent one with probability q exactly, whatever that other value is. With n
reports that draw their own coins and hash functions the support is therefore binomial (n, q), however skewed the data
are (Wang's dissertation, section 3.2, the definition of a pure oracle).
"""

from math import sqrt

import numpy as np

from tacit.arrays import F64
from tacit.core.mechanism import Oracle
from tacit.core.pure import PureOracle, support_of
from tacit.core.sharing import SharedHashes
from tacit.core.statistics.binomial import least_significant, upper_tail
from tacit.core.statistics.normal import normal_isf, normal_sf
from tacit.core.tally import Counts, Tally


def has_exact_tail(oracle: Oracle) -> bool:
    """Whether an absent value's support is exactly binomial.

    Respondents who share hash functions collide together, so their supports are not independent.
    """
    return isinstance(oracle, PureOracle) and not isinstance(oracle, SharedHashes)


def absent_tail(oracle: Oracle, tally: Tally, share: F64) -> F64:
    """Return the p-values of estimated shares: the probability that a value nobody holds is estimated so high.

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
    # Many candidates have the same support count; a tail is computed once per different count.
    counts, place = np.unique(support_of(oracle.p, oracle.q, tally.n, share * tally.n), return_inverse=True)
    return upper_tail(counts, tally.n, float(oracle.q))[place]


def absent_threshold(oracle: Oracle, n: int, alpha: float) -> float:
    """Return the least share, of n equal reports, that a value nobody holds reaches with probability `alpha` at most.

    Above 1 or so, not even a value that everybody holds is told from noise.
    """
    if not has_exact_tail(oracle):
        return normal_isf(min(0.5, alpha)) * sqrt(oracle.variance_at_zero / n)
    assert isinstance(oracle, PureOracle)
    # The critical support count, turned into a share by the estimator of pure oracles, equation (3.1).
    count = least_significant(n, float(oracle.q), alpha)
    return (count / n - float(oracle.q)) / float(oracle.p - oracle.q)


def _weighted_tail(oracle: PureOracle, tally: Tally, share: F64) -> F64:
    """Bennett's bound on the upper tail of a sum of weighted supports.

    Pr[sum exceeds its mean by t] <= exp(-V/b^2 h(b t/V)) with h(u) = (1 + u) log(1 + u) - u, where V is the variance of
    the sum and b bounds how far one term is from its mean.
    """
    q, (total, squares, most) = float(oracle.q), _weights_of(tally)
    # How far the weighted support is above its mean q sum(w) under the null hypothesis. One report's term deviates from
    # its own mean by at most w max(q, 1 - q).
    excess = np.maximum(0.0, share * total * float(oracle.p - oracle.q))
    variance, bound = q * (1 - q) * squares, most * max(q, 1 - q)
    u = bound * excess / variance
    return np.exp(-variance / bound**2 * ((1 + u) * np.log1p(u) - u))


def _weights_of(tally: Tally) -> tuple[float, float, float]:
    """Sum, sum of squares and largest absolute value of the weights.

    Counts do not keep single weights; the root of the sum of squares bounds the largest of them.
    """
    if isinstance(tally, Counts):
        return float(tally.total), float(tally.total2), sqrt(tally.total2)
    total, total2, most = tally.weight_sums
    return float(total), float(total2), float(most)
