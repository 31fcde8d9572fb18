"""Consistency of frequencies: clipping, normalising and cutting vectors until they look like a histogram.

All keep the order of the values (clipping makes ties) and none changes its input. Wang's dissertation, section 8.1;
also T. Wang et al., "Locally differentially private frequency estimation with consistency", NDSS 2020.
"""

from dataclasses import replace

import numpy as np

from tacit.arrays import F64
from tacit.core.estimate import Estimate
from tacit.errors import InvalidSpec
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.significance import cut_threshold


def finite(value: F64) -> F64:
    """Return the vector as it is; refuse an empty one, NaN and infinity, which no step could make consistent."""
    if value.ndim != 1 or not len(value):
        raise InvalidSpec(f"post: the values have shape {value.shape}, must be a vector of at least one value")
    if not np.isfinite(value).all():
        raise InvalidSpec("post: a value is not finite; estimate from a tally that has data")
    return value


def base_pos(value: F64) -> F64:
    """Set negative values to zero (Base-Pos). Biased: no single error grows, and the sum does."""
    return np.clip(finite(value), 0, None)


def base_cut(
    value: F64, noise: Noise, *, alpha: float = 2.0, keep: int | None = None, spread_rest: bool = False
) -> F64:
    """Set everything below the significance threshold to zero (Base-Cut), equation (8.1).

    About `alpha` values that nobody holds pass; or the `keep` largest values do, if that many are wanted. With
    `spread_rest` the values that were cut share what is missing to one.
    """
    threshold = cut_threshold(len(finite(value)), alpha, noise.deviation)
    if keep is not None:
        # The threshold is then the value of that rank itself; ties with it pass as well.
        threshold = float(np.sort(value)[-min(max(keep, 1), len(value))])
    passes = value >= threshold
    rest = max(0.0, 1.0 - float(value[passes].sum())) if spread_rest else 0.0
    return np.where(passes, value, rest / max(1, len(value) - int(np.count_nonzero(passes))))


def norm(value: F64) -> F64:
    """Add one constant so that the sum is one (Norm). Unbiased; values may stay negative."""
    return value + (1.0 - finite(value).sum()) / len(value)


def norm_mul(value: F64) -> F64:
    """Clip at zero and divide by the sum (Norm-Mul); uniform where nothing is positive."""
    positive = base_pos(value)
    # The largest value goes first, so that no sum overflows or vanishes.
    top = float(positive.max())
    if top == 0:
        return np.full(len(value), 1 / len(value))
    positive /= top
    return positive / positive.sum()


def norm_cut(value: F64, *, rescale: bool = False) -> F64:
    """Keep the largest values as they are, as many as sum to at most one (Norm-Cut); the others are zero.

    Equal values are kept or cut together; if already the largest do not fit, they share the whole. `rescale` keeps
    the value that crosses one as well, and divides by the sum.
    """
    positive = base_pos(value)
    ordered = np.sort(positive)[::-1]
    sums = np.cumsum(ordered)
    if sums[-1] <= 1:
        return positive
    fitting = int(np.searchsorted(sums, 1.0, side="right"))  # This many fit; the next one crosses.
    if rescale:
        kept = np.where(positive >= ordered[fitting], positive, 0.0)
        return kept / kept.sum()
    # Strictly above the value that crosses one, so that equal values are cut together.
    kept = np.where(positive > ordered[fitting], positive, 0.0)
    top = positive == ordered[0]
    return kept if kept.any() else np.where(top, min(1.0, float(ordered[0])) / np.count_nonzero(top), 0.0)


def project_to_simplex(value: F64, total: float = 1.0, *, variance: F64 | None = None) -> F64:
    """Return the nearest non-negative vector with this total: subtract one offset and clip at zero, in O(d log d).

    With variances, nearest is meant in squares divided by them, and the offset of a value is in proportion.
    """
    if variance is not None:
        return _project_weighted(finite(value), total, variance)
    # Counting from the largest value keeps the offsets small, however large the values are.
    shifted = value - finite(value).max()
    # With the k largest values positive, the offset is (their sum - total)/k; k is the largest that stays positive.
    ordered = np.sort(shifted)[::-1]
    offsets = (np.cumsum(ordered) - total) / np.arange(1, len(value) + 1)
    offset = offsets[np.flatnonzero(ordered > offsets)[-1]]
    return np.clip(shifted - offset, 0, None)


def _project_weighted(value: F64, total: float, variance: F64) -> F64:
    if variance.shape != value.shape or not (np.isfinite(variance).all() and (variance > 0).all()):
        raise InvalidSpec("post: variances must be positive and finite, one per value; leave out what was not measured")
    # g = e + t s^2 is positive where e/s^2 > -t, so values leave in the order of e/s^2.
    ratio = value / variance
    order = np.argsort(-ratio, kind="stable")
    shifts = (total - np.cumsum(value[order])) / np.cumsum(variance[order])
    shift = shifts[np.flatnonzero(ratio[order] + shifts > 0)[-1]]
    return np.clip(value + shift * variance, 0, None)


def norm_sub(estimate: Estimate) -> Estimate:
    """Project onto the simplex by subtracting one shared offset (Norm-Sub). Biased.

    The variance stays that of the raw estimate: an upper bound in practice, not a formula. An estimate without data
    is returned as it is. Wang's dissertation, section 8.1.2.
    """
    if not estimate.has_data or len(estimate.value) == 0:
        return estimate
    return replace(estimate, value=project_to_simplex(estimate.value), covariance=None)


def mle_apx(value: F64, noise: Noise) -> F64:
    """Return the most likely histogram if the noise were normal with variance a + b f (MLE-Apx), in O(d log d).

    Minimises the sum of (g - e)^2/(a + b g) over the simplex. On the support, g = (e + a u)/(1 - b u) with
    u = (1 - S)/(k a + b) over its k values with sum S. An estimate beyond the pole -a/b counts as its mirror
    image, which has the same objective up to a constant. Wang's dissertation, section 8.1.4, with the sign that is
    lost after equation (8.4) restored.
    """
    a, b = noise.at_zero, noise.slope
    if a <= 0 or b == 0:
        return project_to_simplex(value)
    pole = -a / b
    mirrored = np.where((finite(value) - pole) * np.sign(b) < 0, 2 * pole - value, value)
    # Values leave the support in increasing order: u of the k largest is computed for every k, as in Norm-Sub.
    ordered = np.sort(mirrored)[::-1]
    k = np.arange(1, len(value) + 1)
    u = (1 - np.cumsum(ordered)) / (k * a + b)
    support = np.flatnonzero(ordered + a * u > 0)
    if not len(support):
        # Every value lies exactly on the pole, where the likelihood tells none of them from another.
        return np.full(len(value), 1 / len(value))
    last = int(support[-1])
    likely = np.clip((mirrored + a * u[last]) / (1 - b * u[last]), 0, None)
    # The support is chosen in floating point; dividing takes out what its rounding leaves.
    return likely / likely.sum()
