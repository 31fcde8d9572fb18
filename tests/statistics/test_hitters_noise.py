"""Searches certify no noise: over whole walks through real reports, for few respondents and for every epsilon."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from tacit.core.statistics.binomial import least_significant, lower_tail
from tacit.core.statistics.normal import normal_sf
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.hitters.hitters import Hitters, find_hitters
from tacit.tasks.hitters.plan import HittersPlan, plan_pem
from tacit.tasks.hitters.spelling import bit_strings

SPELLING, K, RUNS = bit_strings(20), 32, 40
ALPHA, FALSE_ALARM = 0.05, 1e-5
QUICK = [("4", 650), ("8", 300)]
SLOW = [("0.5", 300), ("0.5", 10_000), ("1", 3000), ("2", 1000), ("4", 300), ("4", 10_000), ("8", 3000)]
SETTINGS = [*QUICK, *(pytest.param(*setting, marks=pytest.mark.slow) for setting in SLOW)]
MOST_RUNS = least_significant(RUNS, ALPHA, FALSE_ALARM) - 1
"""Runs with a false value, of RUNS: more have a probability below FALSE_ALARM where each has ALPHA at most."""


@cache
def planned(epsilon: str, n: int) -> HittersPlan:
    return plan_pem(SPELLING, epsilon=epsilon, n=n, k=K, most_evaluations=3e7)


def walk(epsilon: str, n: int, seed: int, share: float) -> tuple[Hitters, Any, int]:
    """A walk that ranks by the last group alone, which finds the highest noise; who holds what; and the hitter."""
    rng, plan = np.random.default_rng([seed, n]), planned(epsilon, n)
    values = rng.integers(0, SPELLING.size, n, dtype=np.uint64)
    values[: round(share * n)] = values[0]
    hitter = int(values[0])
    rng.shuffle(values)
    tally = plan.mechanism.tally(plan.mechanism.privatize(values, SimulationCoins(seed)))
    return find_hitters(plan.mechanism, tally, SPELLING, k=K, keep=plan.keep, plain=True), values, hitter


@cache
def runs(epsilon: str, n: int) -> list[tuple[Hitters, Any, int]]:
    """With one hitter, of the share that should be certified nine times out of ten where there is one."""
    share = min(0.5, planned(epsilon, n).certified(0.9))
    return [walk(epsilon, n, seed, share) for seed in range(RUNS)]


def false_runs(epsilon: str, n: int, chances: Any) -> int:
    """In how many runs a value that nobody holds is certified."""
    walks = runs(epsilon, n)
    return sum(
        bool((~np.isin(found.values[chances(found) <= ALPHA], values)).any()) for found, values, _ in walks
    )  # fmt: skip


def normal_chances(found: Hitters) -> Any:
    """What noise probabilities would be by a normal tail."""
    oracle, n = planned("4", 650).oracle, found.estimate.n
    return found.examined * np.array(
        [normal_sf(x) for x in found.estimate.value / np.sqrt(oracle.variance_at_zero / n)]
    )


@pytest.mark.slow_cases("8-300")
@pytest.mark.parametrize(("epsilon", "n"), SETTINGS)
def test_a_value_that_nobody_holds_is_certified_in_at_most_alpha_of_all_runs(epsilon: str, n: int) -> None:
    """False alarm below 1e-5 for every setting."""
    assert false_runs(epsilon, n, Hitters.noise_probability) <= MOST_RUNS


def test_the_runs_can_tell_a_tail_that_is_too_small() -> None:
    """The same walks judged by normal tails fail by far: the power of the test above."""
    assert false_runs("4", 650, normal_chances) > MOST_RUNS


@pytest.mark.slow_cases("8-300")
@pytest.mark.parametrize(("epsilon", "n"), SETTINGS)
def test_a_true_hitter_is_certified_as_often_as_planned(epsilon: str, n: int) -> None:
    """Nine times out of ten; fewer than this have a probability below 1e-5. At 300 and epsilon 0.5 nothing can be."""
    if planned(epsilon, n).certified(0.9) > 0.5:
        assert all("too_few_respondents" in found.flags for found, _, _ in runs(epsilon, n))
        return
    least = int(np.argmax(lower_tail(np.arange(RUNS), RUNS, 0.9) > FALSE_ALARM))
    certified = sum(hitter in found.sure(ALPHA).values for found, _, hitter in runs(epsilon, n))
    assert certified >= least
