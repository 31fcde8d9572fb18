"""How to ask about sets: the oracle behind padding and sampling, the length to pad to, and what amplification gives.

Wang's dissertation, sections 5.2.1 to 5.2.5 and 5.5.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, comb, exp, log
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.absent import absent_tail
from tacit.core.estimate import Estimate
from tacit.core.members import against_everyone
from tacit.device.budget import Budget, as_budget
from tacit.device.sets import Itemsets
from tacit.errors import InvalidSpec
from tacit.oracles.blocks import CBR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import BLH, OLH
from tacit.oracles.sets import Padded, SetSize
from tacit.oracles.unary import OUE, RUE, SUE
from tacit.tasks.choose import OPTIONS, choose_oracle

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_INNER = (GRR, SUE, OUE, RUE, BLH, OLH, SS, CBR)
_CHOICES = tuple(option for option in OPTIONS if option[0] in _INNER)
_COVERED = 0.9
"""The share of sets that the padding length must cover."""
_GAP = 4
_LOSS = 10.0
"""Those looked for are frequent ones, about three times the average; chosen by trial (docs/maths/set_size.md)."""


def amplified_epsilon(epsilon: float, length: int) -> float:
    """ln(l (e^epsilon - 1) + 1): what randomised response may spend on one of l padded elements.

    >>> round(amplified_epsilon(1.0, 10), 2)
    2.9
    """
    return log(length * (exp(epsilon) - 1) + 1)


def printed_rule(size: int, length: int, epsilon: float) -> str:
    """The rule of section 5.2.4, by the first term of the variances alone: "grr" or "olh"."""
    return "grr" if size < length * (4 * length - 1) * exp(epsilon) + 1 else "olh"


@dataclass(frozen=True)
class PaddedChoice:
    """The mechanism for candidates padded to a length, and how it compares."""

    mechanism: Padded
    average_error: float
    """n times the mean squared error of the inner oracle over candidates and dummies."""
    printed: str
    """What the printed rule would take."""


def choose_padded(
    *, size: int, length: int, epsilon: Budget | str, n: int, candidates: Itemsets = (), kinds: Sequence[str] = ()
) -> PaddedChoice:
    """The oracle of least exact error behind padding and sampling: randomised response at the amplified epsilon, or
    another oracle at the plain one.

    Everything that sampling adds is the same for all oracles, so comparing their average errors over candidates and
    dummies is exact. `kinds` restricts the choice, to ("grr", "olh") as printed for instance; the amplified epsilon is
    taken for randomised response wherever there is one, which is for budgets that are no shares.
    """
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
    """The oracle of least exact error for the number of candidates in a set, from 0 to `most`."""
    budget = as_budget(epsilon)
    inner = choose_oracle(size=most + 1, epsilon=budget, n=n, options=_CHOICES).pick.mechanism
    return SetSize(epsilon=budget, size=size, candidates=candidates, most=most, inner=inner)


@dataclass(frozen=True)
class Lengths:
    """What is known of the sizes of sets: shares of 0, 1, 2, ... candidates, insignificant ones zero."""

    shares: F64
    mechanism: SetSize | None = None
    tally: Any = None
    """The reports behind the shares; None where nobody was asked, or where the sizes are known."""

    def raw(self, respondents: int) -> Estimate | None:
        """Unbiased shares of all sizes among all respondents, none set to zero; None without reports."""
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
        """The length of least error: noise grows with it, and what larger sets lose shrinks. Biased where sizes are.

        The loss is made up for on average by `update_factor`; what single candidates lose differs from it by about as
        much. Counted is the square of that, for a candidate of average frequency, times `_LOSS`.
        """
        odds, sizes = exp(float(as_budget(epsilon).declared)), np.arange(len(self.shares))
        longest = int(np.max(np.flatnonzero(self.shares), initial=1))
        mean = float(sizes @ self.shares) / candidates

        def error(length: int) -> float:
            direct = (odds * length + candidates - 1) / (odds - 1) ** 2
            noise = min(direct, 4 * length**2 * odds / (odds - 1) ** 2) / n
            factor = self.update_factor(length)
            return noise * factor**2 + _LOSS * (mean * (factor - 1)) ** 2

        return min(range(1, longest + 1), key=error)

    def update_factor(self, length: int) -> float:
        """u'(L): all items over the items that padding to L keeps, sum l f(l) / sum min(l, L) f(l)."""
        sizes = np.arange(len(self.shares))
        kept = float(np.minimum(sizes, length) @ self.shares)
        return float(sizes @ self.shares) / kept if kept > 0 else 1.0

    def factor_variance(self, length: int, respondents: int) -> float:
        """The variance of u'(L), to first order, over all sizes: also of those that are not significant."""
        raw, sizes = self.raw(respondents), np.arange(len(self.shares))
        kept = float(np.minimum(sizes, length) @ self.shares)
        if raw is None or kept <= 0:
            return 0.0
        weights = (sizes - self.update_factor(length) * np.minimum(sizes, length)) / kept
        return float(raw.variance_of(weights[None])[0])

    def cut_off(self, lengths: I64, respondents: int) -> tuple[F64, F64]:
        """D(M) = E[(1 - M/l)+] of sets of l candidates, for every length M, with its variance.

        Padding to M takes at most that share of the respondents away from any one count. Estimates are not below zero;
        without reports it is what sets of all candidates would lose, the most there can be.
        """
        raw, sizes = self.raw(respondents), np.maximum(1, np.arange(len(self.shares)))
        weights = np.maximum(0.0, 1 - lengths[:, None] / sizes)
        if raw is None:
            return weights.max(axis=1), np.zeros(len(lengths))
        return np.maximum(0.0, weights @ raw.value), raw.variance_of(weights)


def significant_lengths(mechanism: SetSize, tally: Any) -> Lengths:
    """Estimated sizes of sets, those zero that an absent size reaches with a probability above 0.05 / most. Biased.

    A lone size far above all others is taken for noise as well: it would count for as many items. Nobody in the group
    gives a distribution without any mass, whose length is 1.
    """
    value = mechanism.estimate(tally).value
    surely = absent_tail(mechanism.inner, mechanism.inner_tally(tally), value) <= 0.05 / mechanism.most
    return Lengths(without_outliers(np.where(surely & (value > 0), value, 0.0)), mechanism, tally)


def without_outliers(shares: F64) -> F64:
    """Shares of sizes, zero beyond the first gap of `_GAP` empty sizes above the most frequent size that is not 0."""
    kept, empty = shares.copy(), 0
    for size in range(int(np.argmax(shares[1:])) + 2, len(shares)):
        empty = 0 if shares[size] > 0 else empty + 1
        if empty == _GAP:
            kept[size:] = 0
            break
    return kept


def true_lengths(lengths: npt.NDArray[np.int64]) -> Lengths:
    """The sizes of sets that are known, such as those of simulated respondents."""
    return Lengths(np.bincount(lengths) / max(1, len(lengths)))


@dataclass(frozen=True)
class ApproximateHashing:
    """Local hashing on a padded set under (epsilon, delta): experimental, never mixed with pure epsilon.

    `within` is l', how many of the l elements may fall into one bucket but with probability delta.
    """

    epsilon: float
    delta: float
    length: int
    within: int
    inner_epsilon: float
    buckets: int


def _hashing(epsilon: float, delta: float, length: int, within: int) -> ApproximateHashing:
    inner = log(length / within * (exp(epsilon) - 1) + 1)
    # A hair below, so that an integer e^epsilon' + 1 is not rounded up to the next one.
    return ApproximateHashing(epsilon, delta, length, within, inner, ceil(exp(inner) + 1 - 1e-9))


def olh_approximate(epsilon: float, delta: float, length: int) -> ApproximateHashing:
    """Theorem 5.5.1 with the best l': C(l, l'+1) / g^l' <= delta, over all l' because g is rounded. Experimental.

    The hash function must be drawn by the device, fresh and fully random. With l' = l nothing is gained and delta is 0.

    >>> round(olh_approximate(1.0, 1e-3, 10).inner_epsilon, 2)
    1.24
    """
    if not 0 < delta < 1 or epsilon <= 0 or length < 1:
        raise InvalidSpec("olh_approximate: needs epsilon above 0, delta between 0 and 1 and a length of at least 1")
    options = (_hashing(epsilon, delta, length, within) for within in range(1, length + 1))
    return next(o for o in options if comb(length, o.within + 1) <= delta * o.buckets**o.within)


def olh_approximate_printed(epsilon: float, delta: float, length: int) -> ApproximateHashing:
    """How Table 5.2 was made: g is taken one step too early and the search stops at the first failure. Conservative."""
    within = length
    while within > 1:
        buckets = ceil(length / within * (exp(epsilon) - 1) + 2 - 1e-9)
        if comb(length, within) > delta * buckets ** (within - 1):
            break
        within -= 1
    return _hashing(epsilon, delta, length, within)


def disjoint_delta(epsilon: float, inner_epsilon: float, buckets: int, length: int) -> float:
    """The exact delta between two disjoint sets of `length` elements under an ideal hash. Experimental.

    That such sets are the worst case is not proven: an indication of how loose the theorem is, no guarantee.
    """
    p = exp(inner_epsilon) / (exp(inner_epsilon) + buckets - 1)
    q = 1 / (exp(inner_epsilon) + buckets - 1)
    held = np.arange(length + 1)
    mass = np.array([comb(length, int(a)) * buckets ** -float(a) * (1 - 1 / buckets) ** (length - a) for a in held])
    report = q + (p - q) * held / length
    excess = np.clip(report[:, None] - exp(epsilon) * report[None, :], 0, None)
    return float(buckets * mass @ excess @ mass)
