"""Sums whose levels are scaled by what their respondents hold, not by how often a level is drawn.

Where every respondent answers one of several levels, a level's sum is scaled by 1/probability, without bias. Scaled
by (total of the measure)/(that of the level's respondents) instead, a level that happened to be drawn by those with
large measures counts no more for it: a tiny bias, and less variance for regions that hold much of the total.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidSpec
from tacit.tasks.analytics.linked import Linked
from tacit.tasks.analytics.regions import Region
from tacit.tasks.analytics.terms import pieces_of, region_terms

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Normalized:
    """A sum over a region, and the variance of its linear approximation."""

    estimate: float
    variance: float


def self_normalized(linked: Linked, region: Region, measure: F64) -> Normalized:
    """The sum of a positive measure, row by row as reports were given; of ones, the count.

    With W the respondents' unscaled terms at level l, X the total and X_l that of its respondents, the estimate is
    c X + sum_l X/X_l sum x W. Its error is that of sums of x (W - R_l), R_l the mean of W, whose expectations add up
    to x (1[inside] - F), F the share inside.
    """
    if linked.order is None or len(linked.design.groups) != 1:
        raise InvalidSpec("analytics: only designs that ask one of several levels can be normalized by their draws")
    x = measure[linked.order]
    total = float(x.sum())
    if region.is_full or region.is_empty or not total:
        return Normalized(total if region.is_full else 0.0, 0.0)
    found = pieces_of(linked.design, region)[0][0]
    estimate, variance = found.constant * total, 0.0
    for heights, part in found.parts.items():
        answers = linked.answers[heights]
        weights, terms = x[answers.rows], answers.sums(part)[0]
        held = float(weights.sum())
        if not held:
            continue
        mean = float(weights @ terms) / held
        estimate += total * mean
        variance += (total / held) ** 2 * float(weights**2 @ (terms - mean) ** 2)
    share = estimate / total
    inside = float(x**2 @ region_terms(linked, region).inside)
    return Normalized(estimate, variance - (1 - 2 * share) * inside - share**2 * float(x @ x))
