"""Frequent items and itemsets of set-valued answers: SVIM and SVSM, and what they are made of.

Wang's dissertation, section 5.3. Every round goes to fresh respondents:

    round             question                                       SVIM    SVSM
    items             one random item of the set (prune)              50 %    25 %    2k candidates remain
    sizes             how many candidates the set holds               10 %     5 %    gives the padding length L
    counts            one candidate of the set, padded to L           40 %    20 %    the estimates
    itemsets_sizes    how many guessed itemsets the set contains               10 %
    itemsets_counts   one guessed itemset of the set, padded                   40 %

Padding and sampling: a set of l candidates is filled with dummies to L, and one element is drawn and reported.

    l <= L    [ a | b | c | # | # ]    each element has probability 1/L: estimates times L are unbiased
    l >  L    [ a | b | c | d | e | f | g ]    each has only 1/l: large sets lose, which `corrected` makes up on average
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.absent import absent_tail, absent_threshold
from tacit.core.estimate import Estimate
from tacit.core.members import against_everyone
from tacit.core.statistics.normal import normal_isf
from tacit.device.kinds.sets import MAX_ITEMS, Itemsets
from tacit.device.numbers.budget import Budget, as_budget
from tacit.errors import InvalidSpec
from tacit.oracles.sets import Padded
from tacit.tasks.itemsets.padding import Lengths, choose_padded, choose_set_size, significant_lengths
from tacit.tasks.itemsets.search import guess_itemsets, largest_itemset
from tacit.tasks.plans import Bounds, Diary, RankedItem, Received, Round, Steps

Asking = Generator[Round, Received, Any]
"""A part of a plan: yields rounds, receives their tallies, and returns what the part learnt."""

_NOTED_LOSS = 0.02
"""Losses by padding from this share on are mentioned in the notes of a result."""
_SURE = 0.05
"""Rows whose noise probability is at most this stand out from noise."""


@dataclass(frozen=True)
class Mining:
    """The request: the k most frequent of `size` items (and itemsets) at epsilon, with one report per respondent."""

    epsilon: Budget | str
    size: int
    k: int
    respondents: int = 100_000
    """The expected number of respondents; it only breaks ties between oracles of about equal error."""

    def __post_init__(self) -> None:
        """Raise InvalidSpec for values that no mechanism would refuse later."""
        object.__setattr__(self, "epsilon", as_budget(self.epsilon))
        if not 1 <= self.k <= 1 << 12:
            raise InvalidSpec(f"itemsets: k is {self.k}, must be from 1 to 4096")
        if not 2 <= self.size <= MAX_ITEMS:
            raise InvalidSpec(f"itemsets: there are {self.size} items, must be from 2 to {MAX_ITEMS}")
        if self.respondents < 1:
            raise InvalidSpec("itemsets: respondents must be at least 1")

    @property
    def wanted(self) -> int:
        """The number of candidates kept by a round: 2k, so that a frequent item that noise ranks low survives."""
        return 2 * self.k


@dataclass(frozen=True)
class CandidateEstimates:
    """Candidates with their tally, and the factor that makes up for sets larger than the padding length."""

    itemsets: Itemsets
    mechanism: Padded
    tally: Any
    lengths: Lengths
    """The distribution of the number of candidates per set, as far as it is known."""
    factor: float = 1.0

    def sampled(self, respondents: int) -> Estimate:
        """Return unbiased estimates of what padding leaves of the shares: each holder counts min(1, L/l)."""
        return against_everyone(self.mechanism.estimate(self.tally), self.tally, respondents)

    def tails(self) -> F64:
        """Return the p-value of every candidate: the probability that one nobody holds is estimated as high."""
        inner = self.mechanism.inner_tally(self.tally)
        return absent_tail(
            self.mechanism.inner, inner, self.mechanism.estimate(self.tally).value / self.mechanism.length
        )

    def errors(self, sampled: Estimate, respondents: int) -> F64:
        """Return root mean squared errors of the corrected shares: noise, the factor's variance, and its misfit.

        The factor has an error of its own, and it is an average: what single items lose differs from it by about half
        of what it makes up for. Itemsets may differ by more, which only the bounds contain.
        """
        length, k = self.mechanism.length, sampled.value
        factor = k**2 * self.lengths.factor_variance(length, respondents)
        return np.sqrt(self.factor**2 * sampled.variance + factor + (k * (self.factor - 1) / 2) ** 2)

    def bounds(self, sampled: Estimate, respondents: int) -> list[Bounds]:
        """Bounds: a true share lies between what padding leaves of it and M/L times that plus D(M), for any M >= L.

        Padding to M would leave at most M/L times as much, and take away at most D(M). The M of the lowest 95 % end.
        """
        length, z = self.mechanism.length, normal_isf(0.025)
        # Rows are candidates, columns lengths M. A longer M inflates the noise but leaves less to be lost.
        lengths = np.arange(length, max(length, len(self.lengths.shares) - 1) + 1)
        lost, variance = self.lengths.cut_off(lengths, respondents)
        most = np.outer(np.maximum(0.0, sampled.value), lengths / length) + lost
        errors = np.sqrt(np.outer(sampled.variance, (lengths / length) ** 2) + variance)
        best = np.argmin(most + z * errors, axis=1)
        rows = np.arange(len(best))
        columns = (sampled.value, sampled.standard_error, most[rows, best], errors[rows, best])
        return [Bounds(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def rows(self, respondents: int, examined: int) -> list[RankedItem]:
        """Return a row per candidate; `examined` is the number of all candidates, for the Bonferroni correction."""
        sampled = self.sampled(respondents)
        bounds = self.bounds(sampled, respondents)
        # The average correction must not lift a share above its own upper bound.
        value = np.minimum(self.factor * sampled.value, np.maximum(sampled.value, [each.most for each in bounds]))
        noise = np.minimum(1.0, examined * self.tails())
        errors = self.errors(sampled, respondents)
        columns = zip(self.itemsets, value.tolist(), errors.tolist(), bounds, noise.tolist(), strict=True)
        return [RankedItem(items, share, error, ends, chance) for items, share, error, ends, chance in columns]

    def detectable(self, examined: int) -> float:
        """Return the share above which a candidate stands out: any absent one gets there with probability 5 %."""
        least = absent_threshold(self.mechanism.inner, self.tally.n, 0.05 / examined)
        return least * self.mechanism.length * self.factor


def singles(items: Sequence[int]) -> Itemsets:
    """Return items as itemsets of one, in canonical order."""
    return tuple((int(item),) for item in sorted(items))


def prune(
    mining: Mining, diary: Diary, share: float, *, length: int = 1, kinds: Sequence[str] = (),
    budget: Budget | None = None, group: int | None = None,
) -> Asking:  # fmt: skip
    """Ask one round for single items and return the 2k with the highest estimates; None if nobody answered.

    With a length of 1 an item counts 1/|v| in a set v: lower, but in nearly the same order and with the least noise.
    """
    spent = as_budget(mining.epsilon) if budget is None else budget
    n = max(1, round(mining.respondents * share))
    mechanism = choose_padded(size=mining.size, length=length, epsilon=spent, n=n, kinds=kinds).mechanism
    about = "One item of the set, to find the most frequent items."
    tally = yield from diary.ask("items", share, mechanism, about, group=group)
    if tally is None:
        diary.notes.append("no item can be told from the others; ask again")
        return None
    # Sorted by falling estimate, ties by index, so that a replay of the plan asks for the same candidates.
    value = mechanism.estimate(tally).value
    # Ties go to the lower index, so that a plan that is replayed asks the same question again.
    return singles(np.lexsort((np.arange(len(value)), -value))[: mining.wanted].tolist())


def measure(
    mining: Mining, diary: Diary, share: float, candidates: Itemsets, what: str, *, most: int | None = None
) -> Asking:
    """Ask one round for the number of candidates in a set, and return its distribution."""
    n, most = max(1, round(mining.respondents * share)), most or len(candidates)
    mechanism = choose_set_size(size=mining.size, epsilon=mining.epsilon, n=n, most=most, candidates=candidates)
    name = "sizes" if what == "items" else f"{what}_sizes"
    tally = yield from diary.ask(name, share, mechanism, f"How many of the {what} in question a set holds.")
    # No mass at all stands for "not known": the padding length is then 1 and nothing is corrected.
    lengths = Lengths(np.zeros(most + 1)) if tally is None else significant_lengths(mechanism, tally)
    if not lengths.shares.any():
        diary.notes.append(f"sizes of sets of {what} are lost in noise; one candidate per set is assumed")
    return lengths


def count(
    mining: Mining, diary: Diary, share: float, candidates: Itemsets, length: int, what: str, *,
    lengths: Lengths | None = None, kinds: Sequence[str] = (), budget: Budget | None = None, group: int | None = None,
) -> Asking:  # fmt: skip
    """Ask one round for candidates padded to a length, and return their estimates; None if nobody answered."""
    spent = as_budget(mining.epsilon) if budget is None else budget
    n = max(1, round(mining.respondents * share))
    mechanism = choose_padded(
        size=mining.size, length=length, epsilon=spent, n=n, candidates=candidates, kinds=kinds
    ).mechanism
    name = "counts" if what == "items" else f"{what}_counts"
    about = f"One of the {what} in question that the set holds, to count them."
    tally = yield from diary.ask(name, share, mechanism, about, group=group)
    known = Lengths(np.zeros(len(candidates) + 1)) if lengths is None else lengths
    return None if tally is None else CandidateEstimates(candidates, mechanism, tally, known)


def best_rows(parts: Sequence[CandidateEstimates], k: int, diary: Diary) -> tuple[list[RankedItem], float | None]:
    """The k rows with the highest estimates of all parts, and the share that stands out from noise in every part."""
    examined = sum(len(part.itemsets) for part in parts)
    rows = [row for part in parts for row in part.rows(diary.respondents, examined)]
    best = sorted(rows, key=lambda row: (-row.frequency, row.items))[:k]
    if not parts:
        return [], None
    # False coverage rate: intervals of rows selected for being high must be wider (Benjamini and Yekutieli 2005).
    listed = len(best) / examined
    best = [replace(row, bounds=replace(row.bounds, listed=listed)) for row in best]
    detectable = max(part.detectable(examined) for part in parts)
    clear = sum(row.noise <= _SURE for row in best)
    if clear < len(best):
        diary.notes.append(
            f"{clear} of {len(best)} stand out from noise: shares above {100 * detectable:.2f} % can be told"
        )
    return best, detectable


def corrected(found: CandidateEstimates, diary: Diary, what: str) -> CandidateEstimates:
    """Return the estimates with the factor u'(L) for what sets larger than the padding length lost on average."""
    length = found.mechanism.length
    factor = found.lengths.update_factor(length)
    lost = float(found.lengths.cut_off(np.array([length]), diary.respondents)[0][0])
    diary.details |= {f"{what}_length": length, f"{what}_factor": factor, f"{what}_cut_off": lost}
    # Two cases for the reader: a correction that was made, or a loss that noise in the sizes leaves possible.
    if factor - 1 > _NOTED_LOSS:
        diary.notes.append(
            f"large sets lost {100 * (1 - 1 / factor):.0f} % of their {what}, made up for on average; intervals "
            f"contain what any one of the {what} may have lost, up to a share of {100 * lost:.2f} %"
        )
    elif lost > _NOTED_LOSS:
        diary.notes.append(
            f"set sizes are too noisy to tell whether large sets lost some of their {what}, so that nothing is made up "
            f"for; intervals contain what any one of the {what} may have lost, up to a share of {100 * lost:.2f} %"
        )
    return replace(found, factor=factor)


def measured_counts(
    mining: Mining, diary: Diary, shares: tuple[float, float], candidates: Itemsets, what: str
) -> Asking:
    """Ask two rounds: the number of candidates in a set, then the candidates padded to the length of least error."""
    lengths = yield from measure(mining, diary, shares[0], candidates, what)
    # Extrapolate the turnout so far to the share of respondents that the next round gets.
    n = max(1.0, diary.respondents * shares[1] / (diary.asked or 1.0))
    length = lengths.balanced_length(len(candidates), mining.epsilon, n)
    counted = yield from count(mining, diary, shares[1], candidates, length, what, lengths=lengths)
    return None if counted is None else corrected(counted, diary, what)


def find_items(mining: Mining, diary: Diary, scale: float = 1.0) -> Asking:
    """Ask the three rounds of SVIM, of 50, 10 and 40 % of a part `scale` of all respondents; None if it ended early."""
    shares = (0.5, 0.1, 0.4)
    if mining.size <= mining.wanted:
        items, shares = singles(range(mining.size)), (0.0, 0.2, 0.8)  # Nothing to prune.
    else:
        items = yield from prune(mining, diary, shares[0] * scale)
    if items is None:
        return None
    return (yield from measured_counts(mining, diary, (shares[1] * scale, shares[2] * scale), items, "items"))


def svim(mining: Mining) -> Steps:
    """Run SVIM: the k most frequent items, by three groups of respondents (50, 10 and 40 %)."""
    diary = Diary()
    items = yield from find_items(mining, diary)
    return diary.result(*best_rows([] if items is None else [items], mining.k, diary))


def svsm(mining: Mining) -> Steps:
    """Run SVSM: the k most frequent itemsets, single items included, by five groups (25, 5, 20, 10 and 40 %)."""
    diary = Diary()
    items = yield from find_items(mining, diary, 0.5)
    parts = [] if items is None else [items]
    candidates = () if items is None else guess(mining, items)
    if candidates:
        sets = yield from measured_counts(mining, diary, (0.1, 0.4), candidates, "itemsets")
        parts += [] if sets is None else [sets]
    return diary.result(*best_rows(parts, mining.k, diary))


def guess(mining: Mining, found: CandidateEstimates) -> Itemsets:
    """Return the itemsets to ask about, guessed from the k best items; none where k is too small for pairs."""
    value = found.mechanism.estimate(found.tally).value
    best: list[int] = np.lexsort((np.arange(len(value)), -value))[: mining.k].tolist()
    items = [(found.itemsets[place][0], float(value[place])) for place in best]
    return guess_itemsets(items, mining.wanted, largest_itemset(mining.k))
