"""AMP-VR: the variation-ratio reduction, also called stronger clones. A diagnostic, and *not* a guarantee.

With a part of the victim's report that tells nothing (the neutral part) the published reduction is false: for three
values, epsilon_l = 1.5 and four respondents the true delta at epsilon 1.2 is twice as large as it says. It is kept
because in large crowds it is just below the certified accountant, which makes it a check of both.
Nothing here returns a type that a certificate takes. Wang et al., VLDB 2024; Feldman, McMillan and Talwar, SODA 2023.
"""

from dataclasses import dataclass
from math import exp, expm1, inf, log, sqrt

import numpy as np

from tacit.core.statistics.binomial import mass
from tacit.shuffle.accounting.cells import Cells
from tacit.shuffle.accounting.solve import crossing
from tacit.shuffle.accounting.tails import half_excess, window


@dataclass(frozen=True)
class Diagnostic:
    """A number that looks like a privacy parameter and guarantees nothing."""

    value: float
    what: str


def variation_delta(cells: Cells, epsilon: float, *, n: int) -> Diagnostic:
    """Return what the variation-ratio reduction says of delta at epsilon."""
    return Diagnostic(_delta(cells, epsilon, n), "delta by variation ratios, not a guarantee")


def variation_epsilon(cells: Cells, delta: float, *, n: int) -> Diagnostic:
    """Return what the variation-ratio reduction says of epsilon at delta."""
    x, a = float(cells.x), float(cells.a)
    start = a * (x - 1) * sqrt(2 / (n * a)) * sqrt(2 * log(1 / delta))
    found, _ = crossing(lambda epsilon: _delta(cells, epsilon, n), delta, 0.0, log(x), start)
    return Diagnostic(found, "epsilon by variation ratios, not a guarantee")


def _delta(cells: Cells, epsilon: float, n: int) -> float:
    x, a, ratio = float(cells.x), float(cells.a), exp(epsilon)
    if ratio >= x:
        return 0.0
    low, high = window(n - 1, 2 * a, 1e-24)
    # t reports tell: those of t - 1 others and the victim's, or those of t others and a victim who is neutral.
    t = np.arange(low, high + 2, dtype=np.float64)
    active, neutral = mass(t - 1, n - 1, 2 * a), mass(t, n - 1, 2 * a)
    slope = 2 * a * (x - 1) * (1 + ratio) * active / np.maximum(t, 1)
    floor = 2 * a * (ratio * x - 1) * active + expm1(epsilon) * (1 - a - a * x) * neutral
    # Where no others are active the victim's own report does not show, whatever it is.
    threshold = np.full_like(t, inf)
    np.divide(floor, slope, out=threshold, where=slope > 0)
    some = threshold <= t
    return float(slope[some] @ half_excess(t[some], threshold[some]))
