"""Pure oracles: a report supports some values, the true one with probability p, any other with probability q.

Wang's dissertation, section 3.2: the unbiased count is (support - n q) / (p - q), equation (3.1), and its exact
variance n q(1-q)/(p-q)^2 + n_i (1-p-q)/(p-q), equation (3.2).
"""

from fractions import Fraction
from functools import cached_property

import numpy as np

from tacit.arrays import F64, I64, U64
from tacit.core.mechanism import Oracle


def invert(p: Fraction, q: Fraction, total: int, support: I64) -> F64:
    """Return unbiased counts (support - total q) / (p - q).

    The two constants are computed as fractions and rounded once: at large epsilon, p - q in doubles would lose digits.
    """
    return (support.astype(np.float64) - float(q * total)) / float(p - q)


def support_of(p: Fraction, q: Fraction, total: int, counts: F64) -> I64:
    """Return the integer supports behind unbiased counts: the inverse of `invert`, its rounding errors removed."""
    return np.rint(counts * float(p - q) + float(q * total)).astype(np.int64)


class PureOracle(Oracle):
    """An oracle whose estimate is `invert` of how many reports support each value."""

    @cached_property
    def p(self) -> Fraction:
        """Probability that a report supports the respondent's own value."""
        raise NotImplementedError

    @cached_property
    def q(self) -> Fraction:
        """Probability that a report supports any other value."""
        raise NotImplementedError

    def _support(self, cells: I64, candidates: U64) -> I64:
        """How many reports support each candidate."""
        return self._take(cells, candidates)

    def _unbiased(self, cells: I64, total: int, candidates: U64) -> F64:
        return invert(self.p, self.q, total, self._support(cells, candidates))
