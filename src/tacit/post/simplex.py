"""Consistency with the simplex: non-negative frequencies that sum to one."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.core.estimate import Estimate

F64 = npt.NDArray[np.float64]


def project_to_simplex(value: F64, total: float = 1.0) -> F64:
    """The nearest non-negative vector with this total: subtract one offset and clip at zero, in O(d log d)."""
    ordered = np.sort(value)[::-1]
    offsets = (np.cumsum(ordered) - total) / np.arange(1, len(value) + 1)
    offset = offsets[np.flatnonzero(ordered > offsets)[-1]]
    return np.clip(value - offset, 0, None)


def norm_sub(estimate: Estimate) -> Estimate:
    """Project onto the simplex by subtracting one shared offset (Norm-Sub). Biased.

    The variance stays that of the raw estimate: an upper bound in practice, not a formula. An estimate without data
    is returned as it is. Wang's dissertation, section 8.3.
    """
    if not estimate.has_data or len(estimate.value) == 0:
        return estimate
    return replace(estimate, value=project_to_simplex(estimate.value), covariance=None)
