"""Windows of memoised reports, whose noise repeats: what may be concluded from several of them, and what may not.

Of a device whose answer did not change, the permanent answer is the same in both windows, and a fresh layer, inverted,
has it as its mean. So the errors of both windows have a covariance: that of the permanent layer alone, asked once. How
many answers changed cannot be seen in tallies (docs/maths/layered.md).
"""

from collections.abc import Sequence

import numpy as np

from tacit.arrays import F64
from tacit.core.estimate import Estimate
from tacit.errors import InvalidSpec
from tacit.oracles.layered import LayeredMemo
from tacit.post.series.differences import difference


def least_covariance(mechanism: LayeredMemo, frequency: F64, n: int, unchanged: float) -> F64:
    """Return the least covariance of two windows, per cell, if this share of n answers did not change.

    An unchanged answer adds the variance of the inner kind, which is another for those who have the value of the cell.
    Nobody knows which of them changed, and the variance is linear in how many did: one of both ends is least.
    """
    own, other = (mechanism.permanent.moments.variance(np.full_like(frequency, share)) for share in (1.0, 0.0))
    held = np.clip(frequency + unchanged - 1, 0, None), np.minimum(frequency, unchanged)
    few, many = (own * part + other * (unchanged - part) for part in held)
    return np.minimum(few, many) / n


def memoised_difference(
    later: Estimate, earlier: Estimate, *, mechanism: LayeredMemo | None = None, unchanged: float | None = None
) -> Estimate:
    """Return later minus earlier of windows with memoised reports, about the same respondents.

    The sum of both variances holds whoever changed: independent memos add nothing, equal ones make it smaller. A
    declared share `unchanged` makes use of that; it is an assumption about people, to be printed with the answer.
    """
    plain = difference(later, earlier)
    if unchanged is None or not plain.has_data:
        return plain
    if mechanism is None or later.n != earlier.n:
        raise InvalidSpec(
            "memoised difference: a share of unchanged answers needs the mechanism, and two windows of the same devices"
        )
    if not 0 <= unchanged <= 1:
        raise InvalidSpec(f"memoised difference: unchanged is {unchanged}, must be a share, from 0 to 1")
    # At the lower of both plug-ins, so that what is taken off is not overstated.
    shared = np.minimum(*(
        least_covariance(mechanism, np.clip(one.value, 0, 1), one.n, unchanged) for one in (later, earlier)
    ))  # fmt: skip
    variance = np.maximum(plain.variance - 2 * shared, 0)
    return Estimate(plain.value, variance, plain.n, labels=plain.labels)


def memoised_mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of windows with memoised reports, with the mean of their standard errors.

    That is the error if all were fully correlated: a bound that needs to know nothing about who changed. Weights by
    inverse variance, and smoothing, would take repeated noise for news.
    """
    told = [estimate for estimate in estimates if estimate.has_data]
    if not told:
        raise InvalidSpec("memoised mean: no window has reports")
    value = np.mean([estimate.value for estimate in told], axis=0)
    error = np.mean([estimate.standard_error for estimate in told], axis=0)
    return Estimate(value, error**2, min(estimate.n for estimate in told), labels=told[0].labels)
