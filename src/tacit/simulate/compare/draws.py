"""Simulated tallies of very many respondents, in a time that does not grow with their number.

Kinds that know the law of a whole tally draw it exactly, and so do all up to `MOST_DRAWN` respondents, one by one.
Beyond, the estimate itself is drawn: normal, with the exact variances and covariances of the mechanism.
"""

from math import sqrt
from typing import Any, cast

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.asked import asked_tree
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Oracle
from tacit.tasks.ranges.forecast import drawn_levels
from tacit.tasks.ranges.ranges import Ranges, fit_ranges, solve_ranges

MOST_DRAWN = 1 << 19
"""The most respondents that draw a report each, of kinds without a law of the tally."""


def is_cheap(mechanism: Mechanism, n: int) -> bool:
    """Whether a tally of n respondents is simulated as a tally and not as an estimate."""
    members = [mechanism.member(i) for i in range(mechanism.member_count)]
    return n <= MOST_DRAWN or all(member.exact_simulation for member in members)


def drawn_estimate(mechanism: Oracle, counts: I64, rng: np.random.Generator) -> Estimate:
    """Return the estimate of a simulated collection, `counts[i]` respondents with value i."""
    n = int(counts.sum())
    if is_cheap(mechanism, n):
        return mechanism.estimate(mechanism.simulate_tally(counts, rng))
    moments, truth = cast("Any", mechanism).moments, counts / n
    value = truth + _noise(moments.variance(truth) / n, moments.other_other / n, rng)
    # Variances are plugged in at the estimate, as a collector has to do who does not know the truth.
    return Estimate(
        value,
        moments.variance(np.clip(value, 0, 1)) / n,
        n,
        covariance=lambda rows: moments.combined(rows, np.clip(value, 0, 1)) / n,
    )


def _noise(variance: F64, shared: float, rng: np.random.Generator) -> F64:
    """Normal noise with a covariance that all pairs of cells share, which is negative if reports have a fixed size."""
    own = np.sqrt(np.clip(variance - shared, 0, None)) * rng.normal(size=len(variance))
    # Taking a part of the mean off leaves the sum the variance that the covariances imply, and no cell loses much.
    total = float(variance.sum()) + len(variance) * (len(variance) - 1) * shared
    alone = float(variance.sum()) - len(variance) * shared
    kept = sqrt(max(0.0, total / alone)) if alone > 0 else 1.0
    return own - (1 - kept) * own.mean()


def drawn_ranges(mechanism: Mechanism, counts: I64, rng: np.random.Generator) -> Ranges:
    """Return the fitted ranges of a simulated collection."""
    n, asked = int(counts.sum()), asked_tree(mechanism)
    if asked is None or is_cheap(mechanism, n):
        return solve_ranges(mechanism, mechanism.simulate_tally(counts, rng))
    return fit_ranges(asked, drawn_levels(asked, counts / n, n, rng), n, float(n))
