"""Significance threshold: which values noise alone does not explain (Bonferroni over the domain), and the rest."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.core.absent import absent_threshold, has_exact_tail
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Oracle
from tacit.core.pure import PureOracle
from tacit.core.statistics.normal import normal_isf


@dataclass(frozen=True, eq=False)
class Significant:
    """Values above the threshold, and the estimate in which all others share the remaining mass."""

    threshold: float
    kept: npt.NDArray[np.bool_]
    estimate: Estimate


def cut_threshold(size: int, alpha: float, deviation: float) -> float:
    """Return isf(alpha/d) standard deviations of an absent value, never below zero: about `alpha` absent values pass.

    The inverse survival function keeps alpha/d exact for huge domains. The normal tail is too small for few reports at
    a large epsilon, where more pass: an oracle knows its own law, see `absent_threshold`.
    """
    return max(0.0, normal_isf(min(0.5, alpha / size)) * deviation)


def significance_threshold(estimate: Estimate, noise: float | Oracle, *, alpha: float = 0.05) -> Significant:
    """Keep estimates that noise alone reaches with a probability of alpha/d at most; spread the rest evenly. Biased.

    With the `Oracle` that made the estimate as `noise`, from unweighted reports, the tail is its exact one. A number is
    n times the variance of a value nobody holds (Var*) and stands for a normal tail, which lets more pass where reports
    are few and epsilon is large. When the kept values already exceed the whole, the rest get zero. Wang's dissertation,
    section 3.5.2.
    """
    d = len(estimate.value)
    threshold = _threshold(estimate, noise, alpha / max(1, d))
    kept = estimate.value > threshold
    rest = max(0.0, 1.0 - float(estimate.value[kept].sum()))
    absent = d - int(np.count_nonzero(kept))
    value = np.where(kept, estimate.value, rest / absent if absent else 0.0)
    # The covariance of the raw cells does not hold for cells that share the rest, so it is not handed on.
    return Significant(threshold, kept, replace(estimate, value=value, covariance=None))


def _threshold(estimate: Estimate, noise: float | Oracle, alpha: float) -> float:
    """The critical share of one value at level alpha, exact where the null distribution is known."""
    # Weights make the effective number of respondents smaller than n; a group that answers for all, larger.
    effective = max(1.0, min(float(estimate.n), estimate.effective))
    if isinstance(noise, PureOracle) and has_exact_tail(noise) and effective == estimate.n:
        # Halfway to the next smaller count, so that rounding does not decide.
        step = 1 / (estimate.n * float(noise.p - noise.q))
        return max(0.0, absent_threshold(noise, estimate.n, alpha) - step / 2)
    at_zero = noise.variance_at_zero if isinstance(noise, Oracle) else noise
    return cut_threshold(1, alpha, float(np.sqrt(at_zero / effective)))
