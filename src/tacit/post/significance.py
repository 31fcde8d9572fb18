"""Significance threshold: which values are surely present, and what to do with the rest."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tacit.core.estimate import Estimate
from tacit.core.normal import normal_isf


@dataclass(frozen=True, eq=False)
class Significant:
    """Values above the threshold, and the estimate in which all others share the remaining mass."""

    threshold: float
    kept: npt.NDArray[np.bool_]
    estimate: Estimate


def cut_threshold(size: int, alpha: float, deviation: float) -> float:
    """isf(alpha/d) standard deviations of an absent value, never below zero: about `alpha` absent values pass.

    The inverse survival function keeps alpha/d exact for huge domains.
    """
    return max(0.0, normal_isf(min(0.5, alpha / size)) * deviation)


def significance_threshold(estimate: Estimate, variance_at_zero: float, *, alpha: float = 0.05) -> Significant:
    """Keep estimates above isf(alpha/d) standard errors of an absent value; spread the rest evenly. Biased.

    `variance_at_zero` is n times the variance of a value nobody holds (Var*). When the kept values already exceed
    the whole, the rest get zero. Wang's dissertation, section 3.5.2.
    """
    d = len(estimate.value)
    threshold = cut_threshold(d, alpha, float(np.sqrt(variance_at_zero / max(1, estimate.n))))
    kept = estimate.value > threshold
    rest = max(0.0, 1.0 - float(estimate.value[kept].sum()))
    absent = d - int(np.count_nonzero(kept))
    value = np.where(kept, estimate.value, rest / absent if absent else 0.0)
    # The covariance of the raw cells does not hold for cells that share the rest, so it is not handed on.
    return Significant(threshold, kept, replace(estimate, value=value, covariance=None))
