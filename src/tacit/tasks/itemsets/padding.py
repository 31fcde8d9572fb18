"""How to ask about sets: the oracle behind padding and sampling, the padding length, and privacy amplification.

Wang's dissertation, sections 5.2.1 to 5.2.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.absent import absent_tail
from tacit.core.estimate import Estimate
from tacit.core.members import against_everyone
from tacit.device.kinds.sets import Itemsets
from tacit.device.numbers.budget import Budget, as_budget
from tacit.errors import InvalidSpec
from tacit.oracles.blocks import CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import BLH, OLH
from tacit.oracles.sets import Padded, SetSize
from tacit.oracles.unary import OUE, RUE, SUE
from tacit.tasks.choose import OPTIONS, choose_oracle

_INNER = (GRR, SUE, OUE, RUE, BLH, OLH, SS, CBR)
_CHOICES = tuple(option for option in OPTIONS if option[0] in _INNER)
_COVERED = 0.9
"""The share of sets that the padding length must cover."""
_GAP = 4
"""Sizes beyond so many empty ones in a row are taken for noise."""
_LOSS = 10.0
"""The weight of squared loss against noise: frequent items have about three times the average share, and the loss is
squared. Chosen by trial (docs/maths/set_size.md)."""


def amplified_epsilon(epsilon: float, length: int) -> float:
    """Return ln(l (e^epsilon - 1) + 1): what randomised response may spend on one of l padded elements.

    >>> round(amplified_epsilon(1.0, 10), 2)
    2.9
    """
    return log(length * (exp(epsilon) - 1) + 1)


def printed_rule(size: int, length: int, epsilon: float) -> str:
    """Return the choice of section 5.2.4, "grr" or "olh", by the first term of the variances alone."""
    return "grr" if size < length * (4 * length - 1) * exp(epsilon) + 1 else "olh"


@dataclass(frozen=True)
class PaddedChoice:
    """The mechanism for candidates padded to a length, with its error and the choice of the printed rule."""

    mechanism: Padded
    average_error: float
    """n times the mean squared error of the inner oracle over candidates and dummies."""
    printed: str
    """The oracle that the printed rule would take."""


def choose_padded(
    *, size: int, length: int, epsilon: Budget | str, n: int, candidates: Itemsets = (), kinds: Sequence[str] = ()
) -> PaddedChoice:
    """Return the oracle of least exact error behind padding and sampling.

    It is randomised response at the amplified epsilon, or another oracle at the plain one.

    Everything that sampling adds is the same for all oracles, so comparing their average errors over candidates and
    dummies is exact. `kinds` restricts the choice, to ("grr", "olh") as printed for instance; the amplified epsilon is
    taken for randomised response wherever there is one, which is for budgets that are no shares.
    """
    # The inner domain holds the candidates (or all items) and `length` dummies.
    budget, values = as_budget(epsilon), (len(candidates) or size) + length
    options = [option for option in _CHOICES if option[0] is not GRR and (not kinds or option[0].kind in kinds)]
    inner = [choose_oracle(size=values, epsilon=budget, n=n, options=options).pick.mechanism] if options else []
    if not kinds or "grr" in kinds:
        amplified = Padded.amplified(epsilon=budget, size=size, length=length, candidates=candidates)
        inner.append(amplified.inner)
    if not inner:
        raise InvalidSpec(f"padded: kinds must name some of {', '.join(kind.kind for kind in _INNER)}")
    best = min(inner, key=lambda oracle: oracle.average_error())
    mechanism = Padded(epsilon=budget, size=size, candidates=candidates, length=length, inner=best)
    printed = printed_rule(len(candidates) or size, length, float(budget.declared))
    return PaddedChoice(mechanism, best.average_error(), printed)


def choose_set_size(*, size: int, epsilon: Budget | str, n: int, most: int, candidates: Itemsets = ()) -> SetSize:
    """Return the oracle of least exact error for the number of candidates in a set, from 0 to `most`."""
    budget = as_budget(epsilon)
    inner = choose_oracle(size=most + 1, epsilon=budget, n=n, options=_CHOICES).pick.mechanism
    return SetSize(epsilon=budget, size=size, candidates=candidates, most=most, inner=inner)


@dataclass(frozen=True)
class Lengths:
    """The distribution of the sizes of sets: shares of 0, 1, 2, ... candidates, with insignificant ones set to zero."""

    shares: F64
    mechanism: SetSize | None = None
    tally: Any = None
    """The reports behind the shares; None where nobody was asked, or where the sizes are known."""

    def raw(self, respondents: int) -> Estimate | None:
        """Return unbiased shares of all sizes among all respondents, none set to zero; None without reports."""
        if self.mechanism is None or not self.tally.n:
            return None
        return against_everyone(self.mechanism.estimate(self.tally), self.tally, respondents)

    @property
    def length(self) -> int:
        """The smallest length that covers 90 % of the sets that are not empty; 1 if nothing is known."""
        above: F64 = np.cumsum(self.shares[1:], dtype=np.float64)
        if not len(above) or above[-1] <= 0:
            return 1
        return int(np.count_nonzero(above <= _COVERED * above[-1])) + 1

    def balanced_length(self, candidates: int, epsilon: Budget | str, n: float) -> int:
        """Return the length of least error: noise grows with it, and what larger sets lose shrinks.

        The loss is made up for on average by `update_factor`; what single candidates lose differs from it by about as
        much. Counted is the square of that, for a candidate of average frequency, times `_LOSS`.
        """
        odds, sizes = exp(float(as_budget(epsilon).declared)), np.arange(len(self.shares))
        longest = int(np.max(np.flatnonzero(self.shares), initial=1))
        mean = float(sizes @ self.shares) / candidates

        def error(length: int) -> float:
            # Variances of amplified GRR and of OUE or OLH behind padding; the better one will be used.
            direct = (odds * length + candidates - 1) / (odds - 1) ** 2
            noise = min(direct, 4 * length**2 * odds / (odds - 1) ** 2) / n
            factor = self.update_factor(length)
            return noise * factor**2 + _LOSS * (mean * (factor - 1)) ** 2

        return min(range(1, longest + 1), key=error)

    def update_factor(self, length: int) -> float:
        """Return u'(L) = sum l f(l) / sum min(l, L) f(l): all items over the items that padding to L keeps."""
        sizes = np.arange(len(self.shares))
        after_padding = float(np.minimum(sizes, length) @ self.shares)
        return float(sizes @ self.shares) / after_padding if after_padding > 0 else 1.0

    def factor_variance(self, length: int, respondents: int) -> float:
        """Return the variance of u'(L) by the delta method, over all sizes, insignificant ones included."""
        raw, sizes = self.raw(respondents), np.arange(len(self.shares))
        after_padding = float(np.minimum(sizes, length) @ self.shares)
        if raw is None or after_padding <= 0:
            return 0.0
        weights = (sizes - self.update_factor(length) * np.minimum(sizes, length)) / after_padding
        return float(raw.variance_of(weights[None])[0])

    def cut_off(self, lengths: I64, respondents: int) -> tuple[F64, F64]:
        """Return D(M) = E[(1 - M/l)+] over sets of l candidates, for every length M, with its variance.

        Padding to M takes at most that share of the respondents away from any one count. Estimates are not below zero;
        without reports it is what sets of all candidates would lose, the most there can be.
        """
        raw, sizes = self.raw(respondents), np.maximum(1, np.arange(len(self.shares)))
        # weights[M, l]: the probability that padding to M drops a given element of a set of l.
        weights = np.maximum(0.0, 1 - lengths[:, None] / sizes)
        if raw is None:
            return weights.max(axis=1), np.zeros(len(lengths))
        return np.maximum(0.0, weights @ raw.value), raw.variance_of(weights)


def significant_lengths(mechanism: SetSize, tally: Any) -> Lengths:
    """Return estimated sizes of sets, insignificant ones (at 0.05 / most, Bonferroni) set to zero; biased by that.

    A lone size far above all others is taken for noise as well: it would count for as many items. Nobody in the group
    gives a distribution without any mass, whose length is 1.
    """
    value = mechanism.estimate(tally).value
    surely = absent_tail(mechanism.inner, mechanism.inner_tally(tally), value) <= 0.05 / mechanism.most
    return Lengths(without_outliers(np.where(surely & (value > 0), value, 0.0)), mechanism, tally)


def without_outliers(shares: F64) -> F64:
    """Zero the shares beyond the first gap of `_GAP` empty sizes above the most frequent nonzero size."""
    plausible, empty = shares.copy(), 0
    for size in range(int(np.argmax(shares[1:])) + 2, len(shares)):
        empty = 0 if shares[size] > 0 else empty + 1
        if empty == _GAP:
            plausible[size:] = 0
            break
    return plausible
