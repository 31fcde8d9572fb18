"""Frequent items and itemsets of set-valued answers: SVIM and SVSM, and what they are made of.

Wang's dissertation, section 5.3: a first group finds candidates, a second one says how many of them a set holds, a
third one counts them; SVSM then guesses itemsets from the items and asks two further groups about those.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.absent import absent_tail, absent_threshold
from tacit.core.estimate import Estimate
from tacit.core.members import against_everyone
from tacit.core.normal import normal_isf
from tacit.device.budget import Budget, as_budget
from tacit.device.sets import MAX_ITEMS, Itemsets
from tacit.errors import InvalidSpec
from tacit.oracles.sets import Padded
from tacit.tasks.itemset_search import guess_itemsets, largest_itemset
from tacit.tasks.padding import Lengths, choose_padded, choose_set_size, significant_lengths
from tacit.tasks.plans import Bounds, Diary, Received, Round, Row, Steps

Asking = Generator[Round, Received, Any]

F64 = npt.NDArray[np.float64]

_NOTED_LOSS = 0.02
_SURE = 0.05


@dataclass(frozen=True)
class Mining:
    """What is looked for: the k most frequent of the items (and itemsets), at epsilon, one report per respondent."""

    epsilon: Budget | str
    size: int
    k: int
    respondents: int = 100_000
    """About how many are expected; only breaks ties between oracles of equal error."""

    def __post_init__(self) -> None:
        """Check what no mechanism checks later."""
        object.__setattr__(self, "epsilon", as_budget(self.epsilon))
        if not 1 <= self.k <= 1 << 12:
            raise InvalidSpec(f"itemsets: k is {self.k}, must be from 1 to 4096")
        if not 2 <= self.size <= MAX_ITEMS:
            raise InvalidSpec(f"itemsets: there are {self.size} items, must be from 2 to {MAX_ITEMS}")
        if self.respondents < 1:
            raise InvalidSpec("itemsets: respondents must be at least 1")

    @property
    def wanted(self) -> int:
        """How many candidates are kept: twice as many as are looked for."""
        return 2 * self.k


@dataclass(frozen=True)
class Found:
    """Candidates with their estimate: raw, times the factor that makes up for sets beyond the padding length."""

    itemsets: Itemsets
    mechanism: Padded
    tally: Any
    lengths: Lengths
    """How many of the candidates sets hold, as far as that is known."""
    factor: float = 1.0

    def sampled(self, respondents: int) -> Estimate:
        """What padding leaves of the shares, E[min(1, L/l)] over the holders: unbiased, among all respondents."""
        return against_everyone(self.mechanism.estimate(self.tally), self.tally, respondents)

    def tails(self) -> F64:
        """Of every candidate: the probability that one nobody holds is estimated as high."""
        inner = self.mechanism.inner_tally(self.tally)
        return absent_tail(
            self.mechanism.inner, inner, self.mechanism.estimate(self.tally).value / self.mechanism.length
        )

    def errors(self, sampled: Estimate, respondents: int) -> F64:
        """Root mean squared errors of the corrected shares.

        The factor has an error of its own, and it is an average: what single items lose differs from it by about half
        of what it makes up for. Itemsets may differ by more, which only the bounds contain.
        """
        length, k = self.mechanism.length, sampled.value
        factor = k**2 * self.lengths.factor_variance(length, respondents)
        return np.sqrt(self.factor**2 * sampled.variance + factor + (k * (self.factor - 1) / 2) ** 2)

    def bounds(self, sampled: Estimate, respondents: int) -> list[Bounds]:
        """Every true share lies between what padding leaves of it and (M/L) times that plus D(M), for every M >= L.

        Padding to M would leave at most M/L times as much, and take away at most D(M). The M of the lowest 95 % end.
        """
        length, z = self.mechanism.length, normal_isf(0.025)
        lengths = np.arange(length, max(length, len(self.lengths.shares) - 1) + 1)
        lost, variance = self.lengths.cut_off(lengths, respondents)
        most = np.outer(np.maximum(0.0, sampled.value), lengths / length) + lost
        errors = np.sqrt(np.outer(sampled.variance, (lengths / length) ** 2) + variance)
        best = np.argmin(most + z * errors, axis=1)
        rows = np.arange(len(best))
        columns = (sampled.value, sampled.standard_error, most[rows, best], errors[rows, best])
        return [Bounds(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def rows(self, respondents: int, examined: int) -> list[Row]:
        """Every candidate, of so many that the plan counted."""
        sampled = self.sampled(respondents)
        bounds = self.bounds(sampled, respondents)
        value = np.minimum(self.factor * sampled.value, np.maximum(sampled.value, [each.most for each in bounds]))
        noise = np.minimum(1.0, examined * self.tails())
        errors = self.errors(sampled, respondents)
        columns = zip(self.itemsets, value.tolist(), errors.tolist(), bounds, noise.tolist(), strict=True)
        return [Row(items, share, error, ends, chance) for items, share, error, ends, chance in columns]

    def detectable(self, examined: int) -> float:
        """The share above which a candidate is hardly noise: 5 % that any absent one gets there."""
        least = absent_threshold(self.mechanism.inner, self.tally.n, 0.05 / examined)
        return least * self.mechanism.length * self.factor


def singles(items: Sequence[int]) -> Itemsets:
    """Items as itemsets of one."""
    return tuple((int(item),) for item in sorted(items))


def prune(
    mining: Mining, diary: Diary, share: float, *, length: int = 1, kinds: Sequence[str] = (),
    budget: Budget | None = None, group: int | None = None,
) -> Asking:  # fmt: skip
    """The items with the highest estimates, twice as many as are looked for; None if nobody answered.

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
    value = mechanism.estimate(tally).value
    return singles(np.lexsort((np.arange(len(value)), -value))[: mining.wanted].tolist())


def measure(
    mining: Mining, diary: Diary, share: float, candidates: Itemsets, what: str, *, most: int | None = None
) -> Asking:
    """How many of the candidates a set holds, 90 % covered by the padding length."""
    n, most = max(1, round(mining.respondents * share)), most or len(candidates)
    mechanism = choose_set_size(size=mining.size, epsilon=mining.epsilon, n=n, most=most, candidates=candidates)
    name = "sizes" if what == "items" else f"{what}_sizes"
    tally = yield from diary.ask(name, share, mechanism, f"How many of the {what} in question a set holds.")
    lengths = Lengths(np.zeros(most + 1)) if tally is None else significant_lengths(mechanism, tally)
    if not lengths.shares.any():
        diary.notes.append(f"sizes of sets of {what} are lost in noise; one candidate per set is assumed")
    return lengths


def count(
    mining: Mining, diary: Diary, share: float, candidates: Itemsets, length: int, what: str, *,
    lengths: Lengths | None = None, kinds: Sequence[str] = (), budget: Budget | None = None, group: int | None = None,
) -> Asking:  # fmt: skip
    """Estimates of the candidates, padded to a length; None if nobody answered."""
    spent = as_budget(mining.epsilon) if budget is None else budget
    n = max(1, round(mining.respondents * share))
    mechanism = choose_padded(
        size=mining.size, length=length, epsilon=spent, n=n, candidates=candidates, kinds=kinds
    ).mechanism
    name = "counts" if what == "items" else f"{what}_counts"
    about = f"One of the {what} in question that the set holds, to count them."
    tally = yield from diary.ask(name, share, mechanism, about, group=group)
    known = Lengths(np.zeros(len(candidates) + 1)) if lengths is None else lengths
    return None if tally is None else Found(candidates, mechanism, tally, known)


def best_rows(parts: Sequence[Found], k: int, diary: Diary) -> tuple[list[Row], float | None]:
    """The k highest estimates of all parts, and the share that stands out from noise in every part."""
    examined = sum(len(part.itemsets) for part in parts)
    rows = [row for part in parts for row in part.rows(diary.respondents, examined)]
    best = sorted(rows, key=lambda row: (-row.frequency, row.items))[:k]
    if not parts:
        return [], None
    listed = len(best) / examined
    best = [replace(row, bounds=replace(row.bounds, listed=listed)) for row in best]
    detectable = max(part.detectable(examined) for part in parts)
    clear = sum(row.noise <= _SURE for row in best)
    if clear < len(best):
        diary.notes.append(f"{clear} of {len(best)} stand out from noise: shares above {detectable:.2%} can be told")
    return best, detectable


def corrected(found: Found, diary: Diary, what: str) -> Found:
    """Estimates times u'(L), what sets beyond the padding length lost on average."""
    length = found.mechanism.length
    factor = found.lengths.update_factor(length)
    lost = float(found.lengths.cut_off(np.array([length]), diary.respondents)[0][0])
    diary.details |= {f"{what}_length": length, f"{what}_factor": factor, f"{what}_cut_off": lost}
    if factor - 1 > _NOTED_LOSS:
        diary.notes.append(
            f"large sets lost {1 - 1 / factor:.0%} of their {what}, made up for on average; intervals contain what any "
            f"one of the {what} may have lost, up to a share of {lost:.2%}"
        )
    elif lost > _NOTED_LOSS:
        diary.notes.append(
            f"set sizes are too noisy to tell whether large sets lost some of their {what}, so that nothing is made up "
            f"for; intervals contain what any one of the {what} may have lost, up to a share of {lost:.2%}"
        )
    return replace(found, factor=factor)


def measured_counts(
    mining: Mining, diary: Diary, shares: tuple[float, float], candidates: Itemsets, what: str
) -> Asking:
    """Two groups: how many of the candidates a set holds, and the candidates padded to the length of least error."""
    lengths = yield from measure(mining, diary, shares[0], candidates, what)
    n = max(1.0, diary.respondents * shares[1] / (diary.asked or 1.0))
    length = lengths.balanced_length(len(candidates), mining.epsilon, n)
    found = yield from count(mining, diary, shares[1], candidates, length, what, lengths=lengths)
    return None if found is None else corrected(found, diary, what)


def find_items(mining: Mining, diary: Diary, scale: float = 1.0) -> Asking:
    """The three groups of SVIM, 50, 10 and 40 % of this part of all respondents; None if the search ended early."""
    shares = (0.5, 0.1, 0.4)
    if mining.size <= mining.wanted:
        items, shares = singles(range(mining.size)), (0.0, 0.2, 0.8)  # Nothing to prune.
    else:
        items = yield from prune(mining, diary, shares[0] * scale)
    if items is None:
        return None
    return (yield from measured_counts(mining, diary, (shares[1] * scale, shares[2] * scale), items, "items"))


def svim(mining: Mining) -> Steps:
    """SVIM: the k most frequent items, by three groups of respondents (50, 10 and 40 %)."""
    diary = Diary()
    found = yield from find_items(mining, diary)
    return diary.result(*best_rows([] if found is None else [found], mining.k, diary))


def svsm(mining: Mining) -> Steps:
    """SVSM: the k most frequent itemsets, single items included, by five groups (25, 5, 20, 10 and 40 %)."""
    diary = Diary()
    found = yield from find_items(mining, diary, 0.5)
    parts = [] if found is None else [found]
    candidates = () if found is None else guess(mining, found)
    if candidates:
        sets = yield from measured_counts(mining, diary, (0.1, 0.4), candidates, "itemsets")
        parts += [] if sets is None else [sets]
    return diary.result(*best_rows(parts, mining.k, diary))


def guess(mining: Mining, found: Found) -> Itemsets:
    """The itemsets to ask about, from the k best items; none where sets of two are too large for k."""
    value = found.mechanism.estimate(found.tally).value
    best: list[int] = np.lexsort((np.arange(len(value)), -value))[: mining.k].tolist()
    items = [(found.itemsets[place][0], float(value[place])) for place in best]
    return guess_itemsets(items, mining.wanted, largest_itemset(mining.k))
