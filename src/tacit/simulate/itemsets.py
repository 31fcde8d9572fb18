"""Run an adaptive plan for frequent items or itemsets over simulated respondents, and score its result."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import I64
from tacit.baselines.itemsets import ITEMSETS, plan_steps
from tacit.core.sets import Sets
from tacit.oracles.sets import SetMechanism
from tacit.simulate.baskets import percentile_length, top_itemsets
from tacit.simulate.metrics import f1_score, hit_variance, ncr_score
from tacit.tasks.itemsets.itemsets import Mining
from tacit.tasks.plans import PlanResult, Round, drive

Truth = list[tuple[tuple[int, ...], int]]


@dataclass(frozen=True)
class ItemsetOutcome:
    """How one simulated plan went."""

    result: PlanResult
    f1: float
    ncr: float
    hits: int
    variance: float | None
    """Mean squared error of the counts of what was rightly found; None if nothing was."""
    seconds: float


class _Crowd:
    """Respondents in random order; each group takes the next ones, so that groups are disjoint."""

    def __init__(self, sets: Sets, rng: np.random.Generator, advance: Callable[[int], None] | None) -> None:
        self._sets, self._rng, self._advance = sets, rng, advance
        self._order, self._taken = rng.permutation(len(sets)), 0.0
        self._groups: dict[int, I64] = {}

    def ask(self, question: Round) -> Any:
        """Return the tally of a round; rounds of the same group ask the same respondents again."""
        mechanism = question.mechanism
        assert isinstance(mechanism, SetMechanism)
        if question.group not in self._groups:
            self._groups[question.group] = self._next(question.share)
        chosen = self._groups[question.group]
        tally = mechanism.simulate_sets(self._sets.take(chosen), self._rng)
        if self._advance:
            self._advance(len(chosen))
        return tally

    def _next(self, share: float) -> I64:
        # Rounded running sums instead of rounded shares: groups neither overlap nor leave a gap.
        n, start = len(self._order), self._taken
        self._taken += share
        return self._order[round(start * n) : min(n, round(self._taken * n))]


def true_itemsets(sets: Sets, size: int, k: int, method: str) -> Truth:
    """Return what a method should find: the k most frequent itemsets, or items for methods that find items only."""
    return top_itemsets(sets, size, k, largest=None if method in ITEMSETS else 1)


def simulate_itemsets(
    sets: Sets, mining: Mining, method: str, *, seed: int, truth: Truth | None = None,
    advance: Callable[[int], None] | None = None,
) -> ItemsetOutcome:  # fmt: skip
    """Run a plan once over these respondents, each of whom answers one round (two of LDPMiner's)."""
    known = true_itemsets(sets, mining.size, mining.k, method) if truth is None else truth
    start = perf_counter()
    crowd = _Crowd(sets, np.random.default_rng([seed, 0x17E3]), advance)
    result = drive(plan_steps(method, mining, length=percentile_length(sets)), crowd.ask)
    seconds = perf_counter() - start
    best, found = [items for items, _ in known], [row.items for row in result.rows]
    counts = {row.items: row.frequency * len(sets) for row in result.rows}
    return ItemsetOutcome(
        result=result,
        f1=f1_score(best, found),
        ncr=ncr_score(best, found),
        hits=len(set(best) & set(found)),
        variance=hit_variance(dict(known), counts),
        seconds=seconds,
    )
