"""AMP-CLONE21: hiding among clones. It holds for every mechanism that keeps a local epsilon, and knows nothing else.

C ~ Bin(n - 1, 1/x) others send a report that looks like the victim's under either value; A ~ Bin(C, 1/2) of them like
one under v. With D ~ Bernoulli(x/(x + 1)) for the victim, (A + D, C - A + 1 - D) against its mirror image dominates.
Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, theorem 3.2.
"""

from fractions import Fraction
from math import exp

import numpy as np

from tacit.core.statistics.binomial import mass
from tacit.shuffle.accounting.blanket import TAIL
from tacit.shuffle.accounting.tails import half_excess, window


class Clones:
    """The clones of a victim among n respondents.

    A fake counts here if it is a report of the same mechanism, on a value that somebody made up: as a respondent does.
    """

    def __init__(self, odds: Fraction, n: int, fakes: int = 0, *, tail: float = TAIL) -> None:
        """Lay out how many of the others are clones; `odds` bound every likelihood ratio of a report."""
        self._x, self._tail = float(odds), tail
        others = max(n - 1, 0) + fakes
        low, high = window(others, 1 / self._x, tail)
        clones = np.arange(low, high + 1, dtype=np.float64)
        # The victim is one of the c that are alike.
        self._c, self._chances = clones + 1, mass(clones, others, 1 / self._x)

    def delta(self, epsilon: float) -> float:
        """Return the delta that holds at epsilon against whoever sees the shuffled reports, rounded up."""
        ratio, odds = exp(epsilon), self._x
        if ratio >= odds:
            return 0.0
        # Of c, k look like v: the likelihood term is a positive factor times k less this threshold.
        slope = (odds - 1) * (1 + ratio) / (odds + 1)
        threshold = self._c * ((ratio * odds - 1) / ((odds - 1) * (1 + ratio)))
        terms = 2 * slope / self._c * half_excess(self._c, threshold)
        return min(1.0, float(self._chances @ terms) + self._tail)
