"""Heavy hitters by the prefix extending method (PEM): the server walks down the prefixes that the groups reported.

    group 1 (2 digits)     00      01      10      11          all prefixes are candidates; the best are kept
                           |               |
    group 2 (4 digits)  0000 .. 0011    1000 .. 1011           only extensions of kept prefixes are candidates
                              |           |
    group 3 (6 digits)     001100 ..   100000 ..               whole values: the estimates that are returned

Each respondent is in one group and sends one report on the prefix of that group's length. The walk estimates all
extensions of the kept prefixes from the next group's reports and keeps the best. Wang's dissertation, section 4.2; the
threshold version follows section 4.4.2 with a guard against branching. See docs/maths/heavy-hitters.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any, cast

import numpy as np

from tacit.arrays import F64, I64, U64
from tacit.core.absent import absent_tail, absent_threshold, has_exact_tail
from tacit.core.asked import asked_tree
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.members import AnyTally, against_everyone, variance_scale
from tacit.core.patience import check
from tacit.core.statistics.level import selected_level
from tacit.core.tally import Log, Tally
from tacit.errors import InvalidSpec
from tacit.tasks.hitters.plan import LEAST_LIST, MOST_CANDIDATES, MOST_EVALUATIONS, SLACK, branching
from tacit.tasks.hitters.score import EVERYTHING, Beliefs, update
from tacit.tasks.hitters.spelling import Spelling

ALPHA = 0.05
"""The family-wise error at which values count as significantly more than noise."""
FEW_CHILDREN = 0.1
"""A search is flagged `branching` when a false prefix has more children than this, on average, that pass by noise."""

_BLOCK = 1 << 16
"""Candidates per call of an oracle: bounds memory, and how long a deadline can be overrun."""
SCORED = 4096
"""The candidates with the highest estimates that are scored; lower ones are noise almost surely."""


@dataclass(frozen=True, eq=False)
class PrefixGroup:
    """The respondents who reported prefixes of one length."""

    length: int
    oracle: Oracle
    tally: Tally

    @property
    def noise(self) -> float:
        """The variance of the estimate of a prefix nobody has; that of one report where there are none."""
        return self.oracle.variance_at_zero * (variance_scale(self.tally) if self.tally.n else 1.0)


@dataclass(frozen=True)
class Hitter:
    """One heavy hitter, with its interval and the evidence for it."""

    index: int
    share: float
    low: float
    high: float
    standard_error: float
    score: float
    """The posterior expected share from all groups: biased, and what the values are selected by."""
    noise_probability: float
    """An upper bound on the probability that noise alone lifts any candidate as high (Bonferroni)."""


@dataclass(frozen=True, eq=False)
class Hitters:
    """The result of a walk: the values with the highest scores, in order of falling estimates."""

    values: U64
    estimate: Estimate
    """The last group's raw estimate, unbiased for values named beforehand; its variance is against all respondents.

    Of values selected by the search it is too high on average (winner's curse).
    """
    beliefs: Beliefs
    tails: F64
    """The p-value of every value: the probability that the last group's noise lifts one absent candidate as high."""
    examined: int
    """The number of candidates in the last group, which is the number of tests for the Bonferroni correction.

    Candidates were chosen from other respondents' reports, so only those of the last group count.
    """
    evaluations: float
    flags: tuple[str, ...] = ()

    def noise_probability(self) -> F64:
        """Return the Bonferroni-adjusted p-values, over all candidates of the last group."""
        return np.minimum(1.0, self.examined * self.tails)

    def significant(self, alpha: float = 0.05) -> int:
        """Count the values that are more than noise at family-wise error `alpha`."""
        return int(np.count_nonzero(self.noise_probability() <= alpha))

    def sure(self, alpha: float = 0.05) -> "Hitters":
        """Return the values that are more than noise: with probability 1 - alpha, somebody holds each of them."""
        return self._at(np.flatnonzero(self.noise_probability() <= alpha))

    def take(self, k: int) -> "Hitters":
        """Return the first k values."""
        return self._at(np.arange(min(k, len(self.values))))

    def by_estimate(self) -> "Hitters":
        """Return the same values, highest estimate first."""
        return self._at(np.argsort(-self.estimate.value, kind="stable"))

    def _at(self, places: I64) -> "Hitters":
        """Return the values at these places, with everything that belongs to them."""
        return replace(
            self,
            values=self.values[places],
            estimate=self.estimate.take(places),
            beliefs=self.beliefs.take(places),
            tails=self.tails[places],
        )

    def to_list(self, level: float = 0.95) -> list[Hitter]:
        """Return one record per value, with intervals adjusted for having listed the highest of all candidates."""
        low, high = self.estimate.interval(selected_level(level, len(self.values), self.examined))
        e = self.estimate
        columns = (e.value, low, high, e.standard_error, self.beliefs.expected, self.noise_probability())
        rows = zip(self.values.tolist(), *(column.tolist() for column in columns), strict=True)
        return [Hitter(*row) for row in rows]


def groups_of(mechanism: Mechanism, tally: AnyTally, spelling: Spelling) -> list[PrefixGroup]:
    """The groups of a mechanism that a plan of `tacit.tasks.hitters.plan` made."""
    asked = asked_tree(mechanism)
    if asked is not None and asked.sizes == (spelling.size,):
        # The answers themselves are the longest prefixes, whatever the fan-out of a tree that has no other level.
        if asked.fanouts == (spelling.fanout,) or asked.heights == ((0,),):
            members = zip(asked.heights, asked.members, asked.tallies(tally), strict=True)
            return [_group(spelling.digits - height, *member) for (height,), *member in members]
    raise InvalidSpec(f"heavy hitters: {mechanism.kind} does not ask for prefixes of this domain; plan it as such")


def _group(length: int, member: Mechanism, tally: Any) -> PrefixGroup:
    """Return the group of one prefix length, with its log of reports in one piece."""
    # The log is read once per block of candidates: one contiguous array is faster than many chunks.
    if isinstance(tally, Log) and len(tally.chunks) > 1:
        weights = None if tally.weights is None else (np.concatenate(tally.weights),)
        tally = Log(tally.mechanism, (np.concatenate(tally.chunks),), weights)
    return PrefixGroup(length, cast("Oracle", member), tally)


def affordable_keep(groups: list[PrefixGroup], spelling: Spelling, k: int, most_evaluations: float) -> int:
    """How many prefixes the cap on hash evaluations allows to keep: k to 3 k, or 16 k where values share beginnings."""
    first = groups[0]
    spent = first.tally.n * float(spelling.fanout) ** first.length
    steps = [spelling.fanout ** (group.length - before.length) for before, group in pairwise(groups)]
    each = sum(float(group.tally.n * step) for group, step in zip(groups[1:], steps, strict=True))
    most = min((16 if spelling.last_weight > 1 else 3) * k, max(k, MOST_CANDIDATES // max([1, *steps])))
    return k if not each else int(min(most, max(k, (most_evaluations - spent) // each)))


def find_hitters(
    mechanism: Mechanism, tally: AnyTally, spelling: Spelling, *, k: int, keep: int | None = None,
    threshold: float | None = None, respondents: int | None = None, plain: bool = False, slack: float = SLACK,
    most_evaluations: float = MOST_EVALUATIONS, advance: Callable[[float], None] | None = None,
) -> Hitters:  # fmt: skip
    """Return the k most frequent values, or with a `threshold` all values above that share, at most k of them.

    `keep` prefixes survive every group (as many as the cap on hash evaluations allows unless told); `plain` ranks by
    the last group alone, as the literature does.
    """
    groups = groups_of(mechanism, tally, spelling)
    # A short list is the beginning of a longer one, so that asking for fewer values never finds fewer of them.
    wanted = k if plain else max(k, LEAST_LIST)
    walk = Walk(spelling, wanted, keep or affordable_keep(groups, spelling, wanted, most_evaluations), plain, advance)
    everybody = tally.n if respondents is None else respondents
    # Only the last group reports whole values; groups before it may be empty, but not this one.
    if not groups[-1].tally.n:
        return nothing_found("no_data")
    if threshold is not None:
        return walk.down(groups, everybody, _guarded(groups, spelling, threshold, slack)).take(k).by_estimate()
    return walk.down(groups, everybody, None).take(k).by_estimate()


def nothing_found(*flags: str) -> Hitters:
    """Return an empty result with these flags."""
    none = np.zeros(0)
    beliefs = Beliefs(none, none, none)
    return Hitters(np.zeros(0, np.uint64), Estimate(none, none, 0), beliefs, none, 0, 0.0, flags)


@dataclass(frozen=True)
class _Cut:
    """The shares that prefixes must exceed to be kept, one per group."""

    shares: tuple[float, ...]
    flags: tuple[str, ...] = ()


def _guarded(groups: list[PrefixGroup], spelling: Spelling, threshold: float, slack: float) -> _Cut:
    """Return the cuts of the threshold version, or refuse a threshold at which false prefixes would multiply.

    A prefix survives with `slack` standard deviations less than the threshold, so that noise rarely loses a true one.
    False prefixes are a branching process: with one surviving child or more on average it explodes (supercritical), so
    the slack is lowered first, with a flag, and then the search is refused.
    """
    if not 0 < threshold < 1:
        raise InvalidSpec(f"heavy hitters: threshold is {threshold}, must be between 0 and 1")
    # A false prefix that gets more than one child past the cut, on average, starts a tree that never dies out.
    worst = _branching(groups, spelling, threshold, slack)
    flags: list[str] = []
    # Less slack loses some true prefixes but thins out false ones; the flag tells the analyst.
    while worst >= 1 and slack > 0:
        slack = max(0.0, slack - 0.25)
        worst, flags = _branching(groups, spelling, threshold, slack), ["slack_lowered"]
    if worst >= 1:
        raise InvalidSpec(
            f"heavy hitters: below a share of {threshold:g} false prefixes multiply faster than they die out; "
            f"shares from {_safe_threshold(groups, spelling):.3g} on can be searched for"
        )
    if worst > FEW_CHILDREN:
        flags.append("branching")
    inner = [threshold - slack * np.sqrt(group.noise) for group in groups[:-1]]
    return _Cut((*inner, threshold), tuple(flags))


def _branching(groups: list[PrefixGroup], spelling: Spelling, threshold: float, slack: float) -> float:
    """Return the largest expected number of surviving children of a false prefix, over the groups."""
    children_per_group = [0.0]
    for before, group in pairwise(groups):
        children = spelling.fanout ** (group.length - before.length)
        mine = 0.0 if group is groups[-1] else slack
        children_per_group.append(
            branching(group.oracle.variance_at_zero, max(1, group.tally.n), children, threshold, mine)
        )
    return max(children_per_group)


def searchable_threshold(mechanism: Mechanism, tally: AnyTally, spelling: Spelling) -> float:
    """Return the smallest share whose search needs no flag and is not expected to examine too many candidates."""
    groups = groups_of(mechanism, tally, spelling)

    def fits(threshold: float) -> bool:
        few = _branching(groups, spelling, threshold, SLACK) < FEW_CHILDREN
        return few and _most_candidates(groups, spelling, threshold) < MOST_CANDIDATES / 2

    return _least(fits)


def _most_candidates(groups: list[PrefixGroup], spelling: Spelling, threshold: float) -> float:
    """Return the expected number of candidates of the largest group: extensions of true and of false survivors."""
    alive, length, most = 1.0, 0, 0.0
    for group in groups:
        candidates = alive * spelling.fanout ** (group.length - length)
        most, length = max(most, candidates), group.length
        noise = branching(group.oracle.variance_at_zero, max(1, group.tally.n), ceil(candidates), threshold, SLACK)
        # At most 1/threshold prefixes can truly have a share above it.
        alive = noise + 1 / threshold
    return most


def _safe_threshold(groups: list[PrefixGroup], spelling: Spelling) -> float:
    return _least(lambda threshold: _branching(groups, spelling, threshold, 0.0) < 1)


def _least(fits: Callable[[float], bool]) -> float:
    """Return the smallest share from which on a condition holds, by bisection; the condition must be monotone."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class Walk:
    """One walk down the prefix tree; see the module for a sketch."""

    spelling: Spelling
    k: int
    keep: int
    plain: bool
    advance: Callable[[float], None] | None

    def down(self, groups: list[PrefixGroup], respondents: int, cut: _Cut | None) -> Hitters:
        """Walk from group to group; one without reports is skipped by extending two steps at once, if affordable."""
        prefixes, length, beliefs = np.zeros(1, np.uint64), 0, EVERYTHING
        flags, evaluations = list(cut.flags if cut else ()), 0.0
        last: Estimate = no_data(0)
        examined = 0
        for i, group in enumerate(groups):
            if not group.tally.n and i < len(groups) - 1 and self._can_skip(prefixes, length, groups[i + 1].length):
                flags.append("empty_group")
                continue
            candidates = self.spelling.extend(prefixes, length, group.length)
            if len(candidates) > MOST_CANDIDATES:
                raise InvalidSpec("heavy hitters: too many candidates, at most 2^22 are looked at; keep fewer prefixes")
            last = self._estimate(group, candidates)
            evaluations += group.tally.n * len(candidates)
            examined, extensions = len(candidates), self.spelling.fanout ** (group.length - length)
            # Prefixes are sorted, so the parent of a candidate is found by dropping its last digits.
            parent = np.searchsorted(prefixes, candidates // np.uint64(extensions)).astype(np.int64)
            final = i == len(groups) - 1
            least = None if cut is None else cut.shares[i]
            chosen, beliefs = self.best(last, parent, beliefs, group.noise, extensions, least, final)
            prefixes, length = candidates[chosen], group.length
            last = last.take(chosen)
        # p-values against the group itself, before the variance is widened to speak for all respondents.
        tails = absent_tail(groups[-1].oracle, groups[-1].tally, last.value)
        last = against_everyone(last, groups[-1].tally, respondents)
        flags += _about_tails(groups[-1], examined)
        return Hitters(prefixes, last, beliefs, tails, examined, evaluations, tuple(dict.fromkeys(flags)))

    def _can_skip(self, prefixes: U64, length: int, to: int) -> bool:
        return len(prefixes) * self.spelling.fanout ** (to - length) <= MOST_CANDIDATES

    def _estimate(self, group: PrefixGroup, candidates: U64) -> Estimate:
        """Estimate all candidates, block by block."""
        parts: list[Estimate] = []
        for block in _blocks(candidates):
            parts.append(group.oracle.estimate(group.tally, block))
            if self.advance:
                self.advance(float(group.tally.n * len(block)))
        value, variance = (np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "variance"))
        # All blocks come from one tally, so that everything but the cells is the same in each of them.
        return replace(parts[0], value=value, variance=variance, labels=None, covariance=None)

    def best(
        self, found: Estimate, parent: I64, before: Beliefs, noise: float, extensions: int, least: float | None,
        final: bool,
    ) -> tuple[I64, Beliefs]:  # fmt: skip
        """The kept candidates: sorted by index on the way (for `searchsorted`), most frequent first at the end."""
        largest = np.argsort(-found.value, kind="stable")
        if least is not None:
            largest = largest[found.value[largest] > least]
        scored = largest[: max(SCORED, 8 * self.keep)]
        if self.plain or not found.n:
            beliefs = Beliefs(np.ones(len(scored)), found.value[scored], np.full(len(scored), noise))
        else:
            beliefs = update(before, parent[scored], found.value[scored], noise, extensions, self.k)
        # A threshold is one on estimates, so on the way such a search keeps by estimate; everything else by belief.
        by_belief = least is None or final
        order = np.argsort(-beliefs.expected, kind="stable") if by_belief else np.arange(len(scored))
        survivors = order[: self.keep]
        if not final:
            survivors = survivors[np.argsort(scored[survivors], kind="stable")]
        return scored[survivors], beliefs.take(survivors)


def _about_tails(group: PrefixGroup, examined: int) -> list[str]:
    """Return the flags about the last group's p-values: approximate, or too few reports for any to be significant."""
    if not has_exact_tail(group.oracle):
        return ["approximate_noise"]
    if absent_threshold(group.oracle, group.tally.n, ALPHA / max(1, examined)) > 1 and not group.tally.is_weighted:
        return ["too_few_respondents"]
    return []


def _blocks(candidates: U64) -> Iterator[U64]:
    for start in range(0, max(1, len(candidates)), _BLOCK):
        check()
        yield candidates[start : start + _BLOCK]
