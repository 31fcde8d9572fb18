"""Heavy hitters by prefix extension (PEM): the server walks down the prefixes that the groups reported.

Each respondent sends one report on one prefix of its value. The walk estimates all extensions of the kept prefixes
from the next group's reports and keeps the best. Wang's dissertation, section 4.2; the threshold version follows
section 4.4.2 with a guard against branching. See docs/maths/heavy-hitters.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tacit.core.absent import absent_tail, absent_threshold, has_exact_tail
from tacit.core.compose import OneOf, PerMember
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.members import AnyTally, against_everyone, variance_scale
from tacit.core.patience import check
from tacit.core.tally import Log, Tally
from tacit.device.levels import Tree
from tacit.errors import InvalidSpec
from tacit.tasks.hitters_plan import MOST_CANDIDATES, MOST_EVALUATIONS, SLACK, branching
from tacit.tasks.hitters_score import EVERYTHING, Beliefs, update
from tacit.tasks.spelling import Spelling

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

ALPHA = 0.05
"""Values whose noise probability is at most this count as surely no noise."""
FEW_CHILDREN = 0.1
"""So many children of a false prefix pass the threshold, on average, before a search is flagged for its `branching`."""

_BLOCK = 1 << 16
_SCORED = 4096


@dataclass(frozen=True, eq=False)
class Group:
    """The respondents who reported prefixes of one length."""

    length: int
    oracle: Oracle
    tally: Tally

    @property
    def noise(self) -> float:
        """Variance of the estimate of a prefix nobody has; that of one report where there is none."""
        return self.oracle.variance_at_zero * (variance_scale(self.tally) if self.tally.n else 1.0)


@dataclass(frozen=True)
class Hitter:
    """A value that was found."""

    index: int
    share: float
    low: float
    high: float
    standard_error: float
    score: float
    """The expected share by what all groups saw of its prefixes: biased, and what the values are chosen by."""
    noise_probability: float
    """That any of the candidates that were looked at gets here by noise alone, at most (Bonferroni)."""


@dataclass(frozen=True, eq=False)
class Hitters:
    """What a walk found: the values of the highest scores, those of the highest estimates first."""

    values: U64
    estimate: Estimate
    """The last group's, raw and unbiased for values named beforehand; its variance is against all respondents."""
    beliefs: Beliefs
    tails: F64
    """Of every value: the probability that the last group's noise alone lifts one given candidate as high."""
    examined: int
    """How many candidates the last group was asked about; the groups before it chose them, so all of them count."""
    evaluations: float
    flags: tuple[str, ...] = ()

    def noise_probability(self) -> F64:
        """Bonferroni over the candidates of the last group: noise alone lifts any of them as high, at most."""
        return np.minimum(1.0, self.examined * self.tails)

    def significant(self, alpha: float = 0.05) -> int:
        """How many of the values are surely no noise."""
        return int(np.count_nonzero(self.noise_probability() <= alpha))

    def sure(self, alpha: float = 0.05) -> "Hitters":
        """The values that are surely no noise; that any of them is held by nobody has probability `alpha` at most."""
        return self._at(np.flatnonzero(self.noise_probability() <= alpha))

    def take(self, k: int) -> "Hitters":
        """The first k."""
        return self._at(np.arange(min(k, len(self.values))))

    def by_estimate(self) -> "Hitters":
        """The same values, highest estimate first."""
        return self._at(np.argsort(-self.estimate.value, kind="stable"))

    def _at(self, places: I64) -> "Hitters":
        return replace(
            self,
            values=self.values[places],
            estimate=self.estimate.take(places),
            beliefs=self.beliefs.take(places),
            tails=self.tails[places],
        )

    def to_list(self, level: float = 0.95) -> list[Hitter]:
        """One record per value."""
        low, high = self.estimate.interval(level)
        e = self.estimate
        columns = (e.value, low, high, e.standard_error, self.beliefs.expected, self.noise_probability())
        rows = zip(self.values.tolist(), *(column.tolist() for column in columns), strict=True)
        return [Hitter(*row) for row in rows]


def groups_of(mechanism: Mechanism, tally: AnyTally, spelling: Spelling) -> list[Group]:
    """The groups of a mechanism that a plan of `tacit.tasks.hitters_plan` made."""
    if isinstance(mechanism, OneOf) and isinstance(mechanism.family, Tree) and isinstance(tally, PerMember):
        tree = mechanism.family
        if (tree.size, tree.fanout) == (spelling.size, spelling.fanout):
            lengths = [spelling.digits - height for height in tree.heights]
            return [_group(lengths[i], mechanism.member(i), tally.member(i)) for i in range(len(tree))]
    elif isinstance(mechanism, Oracle) and mechanism.size == spelling.size:
        return [_group(spelling.digits, mechanism, tally)]
    raise InvalidSpec(f"heavy hitters: {mechanism.kind} does not ask for prefixes of this domain; plan it as such")


def _group(length: int, member: Mechanism, tally: Any) -> Group:
    if isinstance(tally, Log) and len(tally.chunks) > 1:
        weights = None if tally.weights is None else (np.concatenate(tally.weights),)
        tally = Log(tally.mechanism, (np.concatenate(tally.chunks),), weights)
    return Group(length, cast("Oracle", member), tally)


def affordable_keep(groups: list[Group], spelling: Spelling, k: int, most_evaluations: float) -> int:
    """How many prefixes the cap allows to keep, from k up to 3 k, or 16 k where values share beginnings."""
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
    """The k most frequent values, or with a `threshold` all values above that share, at most k of them.

    `keep` prefixes survive every group (as many as the cap on hash evaluations allows unless told); `plain` ranks by
    the last group alone, as the literature does.
    """
    groups = groups_of(mechanism, tally, spelling)
    walk = _Walk(spelling, k, keep or affordable_keep(groups, spelling, k, most_evaluations), plain, advance)
    everybody = tally.n if respondents is None else respondents
    if not groups[-1].tally.n:
        return nothing_found("no_data")
    if threshold is not None:
        return walk.down(groups, everybody, _guarded(groups, spelling, threshold, slack))
    return walk.down(groups, everybody, None)


def nothing_found(*flags: str) -> Hitters:
    """The empty list."""
    none = np.zeros(0)
    beliefs = Beliefs(none, none, none)
    return Hitters(np.zeros(0, np.uint64), Estimate(none, none, 0), beliefs, none, 0, 0.0, flags)


@dataclass(frozen=True)
class _Cut:
    """Shares that prefixes must exceed, per group."""

    shares: tuple[float, ...]
    flags: tuple[str, ...] = ()


def _guarded(groups: list[Group], spelling: Spelling, threshold: float, slack: float) -> _Cut:
    """Cuts of the threshold version; slack, then the search itself, is given up where false prefixes would multiply."""
    if not 0 < threshold < 1:
        raise InvalidSpec(f"heavy hitters: threshold is {threshold}, must be between 0 and 1")
    worst = _branching(groups, spelling, threshold, slack)
    flags: list[str] = []
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


def _branching(groups: list[Group], spelling: Spelling, threshold: float, slack: float) -> float:
    """The largest number of children that a false prefix gets in any group."""
    found = [0.0]
    for before, group in pairwise(groups):
        children = spelling.fanout ** (group.length - before.length)
        mine = 0.0 if group is groups[-1] else slack
        found.append(branching(group.oracle.variance_at_zero, max(1, group.tally.n), children, threshold, mine))
    return max(found)


def searchable_threshold(mechanism: Mechanism, tally: AnyTally, spelling: Spelling) -> float:
    """The smallest share whose search needs no flag and is not expected to look at too many candidates."""
    groups = groups_of(mechanism, tally, spelling)

    def fits(threshold: float) -> bool:
        few = _branching(groups, spelling, threshold, SLACK) < FEW_CHILDREN
        return few and _most_candidates(groups, spelling, threshold) < MOST_CANDIDATES / 2

    return _least(fits)


def _most_candidates(groups: list[Group], spelling: Spelling, threshold: float) -> float:
    """The candidates of the largest group, if true prefixes above a share and false ones that noise lifts survive."""
    alive, length, most = 1.0, 0, 0.0
    for group in groups:
        candidates = alive * spelling.fanout ** (group.length - length)
        most, length = max(most, candidates), group.length
        noise = branching(group.oracle.variance_at_zero, max(1, group.tally.n), ceil(candidates), threshold, SLACK)
        alive = noise + 1 / threshold
    return most


def _safe_threshold(groups: list[Group], spelling: Spelling) -> float:
    return _least(lambda threshold: _branching(groups, spelling, threshold, 0.0) < 1)


def _least(fits: Callable[[float], bool]) -> float:
    """The smallest share from which on something fits, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class _Walk:
    spelling: Spelling
    k: int
    keep: int
    plain: bool
    advance: Callable[[float], None] | None

    def down(self, groups: list[Group], respondents: int, cut: _Cut | None) -> Hitters:
        """Group after group; one that nobody answered is skipped by extending twice."""
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
            parent = np.searchsorted(prefixes, candidates // np.uint64(extensions)).astype(np.int64)
            final = i == len(groups) - 1
            least = None if cut is None else cut.shares[i]
            chosen, beliefs = self._best(last, parent, beliefs, group.noise, extensions, least, final)
            prefixes, length = candidates[chosen], group.length
            last = last.take(chosen)
        tails = absent_tail(groups[-1].oracle, groups[-1].tally, last.value)
        last = against_everyone(last, groups[-1].tally, respondents)
        flags += _about_tails(groups[-1], examined)
        found = Hitters(prefixes, last, beliefs, tails, examined, evaluations, tuple(dict.fromkeys(flags)))
        return found.take(self.k).by_estimate()

    def _can_skip(self, prefixes: U64, length: int, to: int) -> bool:
        return len(prefixes) * self.spelling.fanout ** (to - length) <= MOST_CANDIDATES

    def _estimate(self, group: Group, candidates: U64) -> Estimate:
        """All candidates, block by block."""
        parts: list[Estimate] = []
        for block in _blocks(candidates):
            parts.append(group.oracle.estimate(group.tally, block))
            if self.advance:
                self.advance(float(group.tally.n * len(block)))
        value, variance = (np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "variance"))
        # All blocks come from one tally, so that everything but the cells is the same in each of them.
        return replace(parts[0], value=value, variance=variance, labels=None, covariance=None)

    def _best(
        self, found: Estimate, parent: I64, before: Beliefs, noise: float, extensions: int, least: float | None,
        final: bool,
    ) -> tuple[I64, Beliefs]:  # fmt: skip
        """The candidates that are kept: in order of their index on the way, most frequent first at the end."""
        largest = np.argsort(-found.value, kind="stable")
        if least is not None:
            largest = largest[found.value[largest] > least]
        scored = largest[: max(_SCORED, 8 * self.keep)]
        if self.plain or not found.n:
            beliefs = Beliefs(np.ones(len(scored)), found.value[scored], np.full(len(scored), noise))
        else:
            beliefs = update(before, parent[scored], found.value[scored], noise, extensions, self.k)
        ranked = scored if least is not None and not final else None
        order = np.argsort(-beliefs.expected, kind="stable") if ranked is None else np.arange(len(scored))
        kept = order[: self.keep]
        if not final:
            kept = kept[np.argsort(scored[kept], kind="stable")]
        return scored[kept], beliefs.take(kept)


def _about_tails(group: Group, examined: int) -> list[str]:
    """What to say of the last group's noise probabilities."""
    if not has_exact_tail(group.oracle):
        return ["approximate_noise"]
    if absent_threshold(group.oracle, group.tally.n, ALPHA / max(1, examined)) > 1 and not group.tally.is_weighted:
        return ["too_few_respondents"]
    return []


def _blocks(candidates: U64) -> Iterator[U64]:
    for start in range(0, max(1, len(candidates)), _BLOCK):
        check()
        yield candidates[start : start + _BLOCK]
