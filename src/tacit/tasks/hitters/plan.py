"""Planning a search for heavy hitters: groups, steps and kept prefixes by what share can then be detected.

A prefix extends one group after the other, so a hitter must stand out of the noise of every group's candidates. The
literature's sensitivity threshold (Wang's dissertation, section 4.3.2, corrected: upper tail, on the scale of shares)
says which share stands out in one group; here it is applied to all groups of a plan under a cap on hash evaluations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, log, sqrt

import numpy as np

from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.patience import check
from tacit.core.statistics.binomial import least_significant, upper_tail
from tacit.core.statistics.normal import normal_cdf, normal_isf, normal_sf
from tacit.device.families.levels import Tree, node_count
from tacit.device.numbers.budget import Budget, Declared, as_budget
from tacit.errors import InvalidSpec
from tacit.oracles.local_hash import OLH
from tacit.tasks.hitters.spelling import Spelling

MOST_EVALUATIONS = 50_000_000_000
"""Hash evaluations of one search: respondents of a group times its candidates, over all groups."""

MOST_CANDIDATES = 1 << 22
"""The most candidates of one group: bounds memory."""
MOST_GROUPS = 64
LEAST_LIST = 32
"""Searches for fewer values are planned and walked for this many, and their list is cut at the end."""
SLACK = 1.645
"""Standard deviations below the threshold at which prefixes still survive: 95 % of those at the threshold do."""
_KEPT = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
"""Kept prefixes, in multiples of k, that a plan compares: more survive noise, but make more candidates."""
_KEPT_OF_TEXT = (16, 8, 4)
_DETECTED = 0.5
"""The probability of being found at which a share counts as detectable."""
_ZIPF = 1.1
"""The exponent of Zipf's law that the expected recall supposes."""


def sensitivity_threshold(variance_at_zero: float, candidates: float, n: float, *, expected: float = 1.0) -> float:
    """Return the share that fewer than `expected` of the candidates exceed by noise alone (SENS-THR).

    >>> from math import exp
    >>> round(sensitivity_threshold(4 * exp(1) / (exp(1) - 1) ** 2, 2**32, 1e6), 6)
    0.011956
    """
    return sqrt(variance_at_zero / n) * max(0.0, normal_isf(min(0.5, expected / candidates)))


def prefix_lengths(digits: int, k: int, groups: int, *, fanout: int = 2) -> tuple[int, ...]:
    """Return the lengths s_i = s_0 + ceil(i (m - s_0)/g) of plain PEM, with s_0 = ceil(log k).

    >>> prefix_lengths(64, 16, 6)
    (14, 24, 34, 44, 54, 64)
    """
    start = min(digits - 1, ceil(log(max(1, k), fanout) - 1e-12)) if digits > 1 else 0
    groups = max(1, min(groups, digits - start))
    return tuple(start + -(-i * (digits - start) // groups) for i in range(1, groups + 1))


def smallest_groups(bits: int, k: int, *, most_queries: int = 1 << 20) -> int:
    """Return the fewest groups of plain PEM that have at most so many candidates in total (SEL-G).

    >>> [smallest_groups(64, k) for k in (16, 64, 256)]
    [5, 5, 6]
    """
    start = ceil(log(k, 2) - 1e-12)
    prefixes = 1 << start
    # Each group extends 2^start kept prefixes by its step; more groups mean smaller steps and fewer candidates.
    for groups in range(1, bits - start + 1):
        lengths = (start, *prefix_lengths(bits, k, groups))
        steps = np.diff(lengths)
        if sum(prefixes << int(step) for step in steps) <= most_queries:
            return groups
    return max(1, bits - start)


def branching(variance_at_zero: float, n: float, children: int, threshold: float, slack: float = SLACK) -> float:
    """Return how many children of a false prefix pass `threshold` less `slack` standard deviations; must be below 1.

    >>> round(branching(3.69165, 1e6 / 6, 1 << 10, 0.023), 2)
    0.61
    """
    return children * normal_sf(threshold / sqrt(variance_at_zero / n) - slack)


@dataclass(frozen=True)
class HittersPlan:
    """A search plan: the prefix length and the weight of every group, and how many prefixes are kept in between."""

    spelling: Spelling
    budget: Budget
    n: int
    k: int
    keep: int
    lengths: tuple[int, ...]
    weights: tuple[int, ...]

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism to publish: local hashing of whole values, or of one prefix length drawn by public coins."""
        oracles = tuple(self._oracle(length) for length in self.lengths)
        if len(oracles) == 1:
            return oracles[0]
        heights = tuple(self.spelling.digits - length for length in self.lengths)
        s = self.spelling
        return OneOf(
            family=Tree(size=s.size, fanout=s.fanout, heights=heights, mechanisms=oracles, weights=self.weights)
        )

    def _oracle(self, length: int) -> OLH:
        s = self.spelling
        nodes = node_count(s.size, s.fanout, s.digits - length)
        return OLH(size=nodes, epsilon=self.budget, state="log")

    @cached_property
    def oracle(self) -> Oracle:
        """The oracle of whole values. All groups have its error per report: that of OLH does not depend on the size."""
        return self._oracle(self.spelling.digits)

    @cached_property
    def group_sizes(self) -> tuple[float, ...]:
        """The expected number of respondents of every group."""
        return tuple(self.n * weight / sum(self.weights) for weight in self.weights)

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """The candidates of every group that are looked at: all of the first, then extensions of the kept ones."""
        s = self.spelling
        nodes = [node_count(s.size, s.fanout, s.digits - length) for length in self.lengths]
        extensions = [
            min(node, self.keep * self.branches(*ends))
            for node, ends in zip(nodes[1:], pairwise(self.lengths), strict=True)
        ]
        return (min(nodes[0], self.branches(0, self.lengths[0])), *extensions)

    def branches(self, length: int, to: int) -> int:
        """How many prefixes of `to` digits extend one of `length` digits, impossible ones left out."""
        return self.spelling.branches(length, to)

    @property
    def evaluations(self) -> float:
        """The most hash evaluations of the search: respondents times candidates, over all groups."""
        return sum(n * c for n, c in zip(self.group_sizes, self.candidates, strict=True))

    def _passing(self, group: int) -> float:
        """The share that a prefix must exceed to be kept: places that k hitters leave free go to the largest noise."""
        free = 1.0 if group == len(self.lengths) - 1 else max(0.5, self.keep - self.k)
        variance, n = self.oracle.variance_at_zero, max(1.0, self.group_sizes[group])
        return sensitivity_threshold(variance, self.candidates[group], n, expected=free)

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """The share that a prefix must exceed to be kept, by group."""
        return tuple(self._passing(group) for group in range(len(self.lengths)))

    def recall(self, share: float) -> float:
        """Return the probability of finding a value of this share that shares no prefix with another frequent one."""
        return self._passed(share, len(self.lengths))

    def _passed(self, share: float, groups: int) -> float:
        """Return the probability that the prefixes of a value of this share survive the first groups.

        Groups are disjoint respondents, so their errors are independent and probabilities multiply.
        """
        noise = float(self.oracle.moments.variance(np.array([share]))[0]) + share * (1 - share)
        passed = 1.0
        for n, threshold in zip(self.group_sizes[:groups], self.thresholds[:groups], strict=True):
            passed *= normal_cdf((share - threshold) / sqrt(noise / max(1.0, n)))
        return passed

    def detectable(self, probability: float = _DETECTED) -> float:
        """Return the smallest share that is found with this probability, by bisection; infinity if none is."""
        low, high = 0.0, 1.0
        if self.recall(high) < probability:
            return float("inf")
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.recall(middle) >= probability else (middle, high)
        return high

    def certified(self, probability: float = 0.5, *, alpha: float = 0.05) -> float:
        """The smallest share that is found and significant, at family-wise error `alpha`, with this probability."""
        n, (p, q) = max(1, round(self.group_sizes[-1])), self.support
        least = least_significant(n, q, alpha / self.candidates[-1])
        low, high, inner = 0.0, 1.0, len(self.lengths) - 1
        # A grid search with 33 points per round: recall is vectorised, so that beats bisection.
        for _ in range(8):
            shares = np.linspace(low, high, 34)[1:]
            # The support of a value is binomial (n, q + f (p - q)): exact, over who falls into the last group too.
            recall = upper_tail(least, n, q + shares * (p - q)) * [self._passed(float(f), inner) for f in shares]
            if recall[-1] < probability:
                return float("inf")
            high = float(shares[int(np.argmax(recall >= probability))])
            low = high - float(shares[1] - shares[0])
        return high

    @cached_property
    def support(self) -> tuple[float, float]:
        """The probabilities p and q that a report supports its own prefix, and any other."""
        oracle = self._oracle(self.spelling.digits)
        return float(oracle.p), float(oracle.q)

    def expected_recall(self, exponent: float = _ZIPF, values: int = 1 << 16) -> float:
        """Return the expected recall of the k most frequent values if shares follow Zipf's law, rank^-exponent."""
        shares = np.arange(1, min(values, self.spelling.size) + 1, dtype=np.float64) ** -exponent
        shares /= shares.sum()
        return float(np.mean([self.recall(float(share)) for share in shares[: self.k]]))

    def to_row(self) -> dict[str, object]:
        """The plan in plain numbers."""
        return {
            "groups": len(self.lengths),
            "lengths": list(self.lengths),
            "weights": list(self.weights),
            "keep": self.keep,
            "evaluations": self.evaluations,
            "detectable_share": self.detectable(0.5),
            "surely_detectable_share": self.detectable(0.9),
            "certified_share": self.certified(),
            "expected_recall": self.expected_recall(),
            "report_bits": self.mechanism.report_bits,
        }


def check_search(spelling: Spelling, n: int, k: int) -> None:
    """Raise InvalidSpec for parameters that no search can have."""
    if n < 1:
        raise InvalidSpec(f"heavy hitters: n is {n}, must be at least 1")
    if not 1 <= k <= 1 << 16:
        raise InvalidSpec(f"heavy hitters: k is {k}, must be from 1 to {1 << 16}")
    if spelling.size < 2:
        raise InvalidSpec("heavy hitters: the domain has one value; drop this question")


def plan_pem(
    spelling: Spelling, *, epsilon: Declared, n: int, k: int, groups: int | None = None,
    most_evaluations: float = MOST_EVALUATIONS,
) -> HittersPlan:  # fmt: skip
    """Return the plan with the smallest detectable share under the cap on evaluations; `groups` fixes their number."""
    check_search(spelling, n, k)
    if groups is not None and not 1 <= groups <= min(MOST_GROUPS, spelling.digits):
        most = min(MOST_GROUPS, spelling.digits)
        raise InvalidSpec(f"heavy hitters: groups is {groups}, must be from 1 to {most}")
    return _best_plan(spelling, as_budget(epsilon), n, max(k, LEAST_LIST), groups, float(most_evaluations))


@lru_cache(maxsize=16)
def _best_plan(
    spelling: Spelling, budget: Budget, n: int, k: int, groups: int | None, most_evaluations: float
) -> HittersPlan:
    """Return the cached best plan: numbers of groups upwards until the detectable share has worsened three times."""
    best: tuple[float, HittersPlan] | None = None
    worse = 0
    for count in range(1, min(MOST_GROUPS, spelling.digits) + 1) if groups is None else (groups,):
        check()
        affordable = [plan for plan in _layouts(spelling, budget, n, k, count) if _affordable(plan, most_evaluations)]
        if not affordable:
            continue
        least = _least(affordable, best)
        worse = 0 if least is not best else worse + 1
        best = least
        if worse == 3:  # More groups are smaller groups; the threshold has one minimum.
            break
    # No layout fits under the cap, e.g. with too many respondents: plain PEM keeps the search as small as it gets.
    if best is None:
        return plan_lengths(spelling, budget, n, k, prefix_lengths(spelling.digits, k, groups or MOST_GROUPS,
                                                                   fanout=spelling.fanout))  # fmt: skip
    return _with_more_kept(best[1], most_evaluations)


def _least(plans: list[HittersPlan], best: tuple[float, HittersPlan] | None) -> tuple[float, HittersPlan] | None:
    """Return the smallest detectable share with its plan: `best`, or that of the first plan that is better."""
    for plan in plans:
        # Recall grows with the share: a plan that misses what the best one detects need not be searched for its own.
        if best is not None and plan.recall(min(1.0, best[0])) < _DETECTED:
            continue
        share = plan.detectable()
        if best is None or share < best[0]:
            best = (share, plan)
    return best


def _with_more_kept(plan: HittersPlan, most_evaluations: float) -> HittersPlan:
    """Return a text plan with as many kept prefixes as the cap allows; other plans as they are.

    Texts branch: rare values together make a frequent beginning, and these compete with the beginnings of hitters.
    """
    for factor in _KEPT_OF_TEXT if plan.spelling.last_weight > 1 else ():
        more = replace(plan, keep=factor * plan.k)
        if more.keep > plan.keep and _affordable(more, most_evaluations):
            return more
    return plan


def _affordable(plan: HittersPlan, most_evaluations: float) -> bool:
    return plan.evaluations <= most_evaluations and max(plan.candidates) <= MOST_CANDIDATES


def _layouts(spelling: Spelling, budget: Budget, n: int, k: int, groups: int) -> list[HittersPlan]:
    """Return the plans of so many groups: any length of the first prefix, and the rest in steps as even as possible."""
    first = range(1, spelling.digits - groups + 2) if groups > 1 else (spelling.digits,)
    weights = (1,) * (groups - 1) + (spelling.last_weight if groups > 1 else 1,)
    plans: list[HittersPlan] = []
    for start in first:
        if spelling.fanout**start > MOST_CANDIDATES:
            break
        # -(-a // b) rounds up, so earlier steps are the longer ones by at most one digit.
        rest = spelling.digits - start
        lengths = (start, *(start + -(-i * rest // (groups - 1)) for i in range(1, groups)))
        for keep in sorted({ceil(k * factor) for factor in _KEPT}):
            plans.append(HittersPlan(spelling, budget, n, k, keep, lengths, weights))
    return plans


def plan_lengths(
    spelling: Spelling, epsilon: Declared, n: int, k: int, lengths: Sequence[int], *,
    keep: int | None = None, weights: Sequence[int] = (),
) -> HittersPlan:  # fmt: skip
    """Return a plan of these prefix lengths; by default k prefixes are kept and all groups have equal weight."""
    check_search(spelling, n, k)
    evenly = tuple(weights) or (1,) * len(lengths)
    return HittersPlan(spelling, as_budget(epsilon), n, k, keep or k, tuple(lengths), evenly)


def plan_pem1(spelling: Spelling, *, epsilon: Declared, n: int, k: int) -> HittersPlan:
    """PEM with one digit per group (Bassily et al., first method, with local hashing and the k best prefixes)."""
    lengths = prefix_lengths(spelling.digits, k, spelling.digits, fanout=spelling.fanout)
    return plan_lengths(spelling, epsilon, n, k, lengths[-MOST_GROUPS:])


def plan_naive(spelling: Spelling, *, epsilon: Declared, n: int, k: int) -> HittersPlan:
    """Return the plan that asks for whole values and examines all of them; only for small domains."""
    check_search(spelling, n, k)
    if spelling.size > MOST_CANDIDATES:
        raise InvalidSpec(
            f"naive: the domain has {spelling.size} values, at most {MOST_CANDIDATES} are looked at one by one; use pem"
        )
    return plan_lengths(spelling, epsilon, n, k, (spelling.digits,))
