"""Mix fakes into honest reports, and measure what they gain, whether it shows, and what a repair leaves of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Oracle
from tacit.errors import InvalidSpec
from tacit.integrity.influence import influence_cap
from tacit.integrity.inspection import inspect_reports, repaired_estimate
from tacit.integrity.repair import Method
from tacit.numeric.bit_flip import DBitFlip
from tacit.post.frequencies.methods import process
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.poisoning.attacks import SEARCH, Attack, AttackName, fake_reports, predicted_target_sum, target_sum
from tacit.simulate.population import respondents


@dataclass(frozen=True)
class PoisoningPlan:
    """What is simulated: an attack of so many fakes per genuine report on random targets, several times."""

    attack: AttackName
    targets: int
    share: float
    """Fake over genuine reports."""
    seeds: int = 1
    padded: bool = True
    support: float = 1.0
    search: int = SEARCH
    method: Method = "rec_hist"

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be."""
        if not 0 <= self.share <= 1:
            raise InvalidSpec(f"poisoning: share is {self.share:g}, must be from 0 to 1 fakes per genuine report")
        if self.seeds < 1 or self.targets < 1:
            raise InvalidSpec("poisoning: seeds and targets must be at least 1")


@dataclass(frozen=True)
class PoisonedRun:
    """One simulated collection under attack."""

    gain: float
    predicted_gain: float | None
    repaired_gain: float
    normalised_gain: float
    detected: bool
    found_targets: int
    false_targets: int
    z: float
    """The largest z of any pair of values, 0 where pairs say nothing."""


def simulate_poisoning(
    oracle: Oracle, counts: I64, plan: PoisoningPlan, *, seed: int = 1, advance: Callable[[int], None] = lambda _: None
) -> list[PoisonedRun]:
    """Run the plan on a population, `counts[v]` respondents with value v, with targets drawn anew every time."""
    if plan.targets > oracle.size:
        raise InvalidSpec(f"poisoning: there are {plan.targets} targets among {oracle.size} values; take fewer")
    runs: list[PoisonedRun] = []
    for i in range(plan.seeds):
        runs.append(_one_run(oracle, counts, plan, seed + i))
        advance(int(counts.sum()))
    return runs


def _one_run(oracle: Oracle, counts: I64, plan: PoisoningPlan, seed: int) -> PoisonedRun:
    rng = np.random.default_rng([0x706F6973, seed])
    targets = np.sort(rng.choice(oracle.size, plan.targets, replace=False))
    attack = Attack(plan.attack, targets, plan.padded, plan.support, plan.search)
    genuine = oracle.privatize(respondents(counts, rng), SimulationCoins(seed))
    fakes = fake_reports(oracle, attack, round(plan.share * len(genuine)), seed)
    reports = np.concatenate([genuine, fakes])
    clean, poisoned = (oracle.estimate(oracle.tally(part)) for part in (genuine, reports))
    found = inspect_reports(oracle, reports)
    repaired = repaired_estimate(oracle, reports, found, method=plan.method)
    value = poisoned.value if repaired is None else repaired.value
    hot = set(found.hot)
    return PoisonedRun(
        gain=_gain(poisoned.value, clean.value, targets),
        predicted_gain=_predicted(oracle, attack, fakes, counts),
        repaired_gain=_gain(value, clean.value, targets),
        normalised_gain=_gain(process(poisoned, "norm_sub").value, process(clean, "norm_sub").value, targets),
        detected=found.state == "alarm",
        found_targets=len(hot & set(targets.tolist())),
        false_targets=len(hot - set(targets.tolist())),
        z=0.0 if found.pairs is None else found.pairs.largest,
    )


def _gain(after: F64, before: F64, targets: I64) -> float:
    return float((after - before)[targets].sum())


def _predicted(oracle: Oracle, attack: Attack, fakes: Any, counts: I64) -> float | None:
    """bt ((E[s] - r q)/(p - q) - f_T), bt being the share of fakes among all reports."""
    if len(fakes) == 0:
        return 0.0
    said = predicted_target_sum(oracle, attack, fakes)
    # An estimate that divides by observed holders is not linear in the reports.
    if said is None and attack.name == "mga" and not isinstance(oracle, DBitFlip):
        # Without a formula the fakes are asked themselves: an estimate is linear in the reports.
        said = target_sum(oracle, fakes, attack.targets)
    n = int(counts.sum())
    true = float(counts[attack.targets].sum()) / n
    return None if said is None else len(fakes) / (n + len(fakes)) * (said - true)


def summary(runs: list[PoisonedRun], oracle: Oracle, n: int) -> dict[str, Any]:
    """Return means over the runs, and whether every one of them raised the alarm."""
    predicted = [run.predicted_gain for run in runs if run.predicted_gain is not None]
    cap = influence_cap(oracle)
    return {
        "gain": float(np.mean([run.gain for run in runs])),
        "predicted_gain": float(np.mean(predicted)) if predicted else None,
        "repaired_gain": float(np.mean([run.repaired_gain for run in runs])),
        "normalised_gain": float(np.mean([run.normalised_gain for run in runs])),
        "detected": all(run.detected for run in runs),
        "found_targets": float(np.mean([run.found_targets for run in runs])),
        "false_targets": float(np.mean([run.false_targets for run in runs])),
        "z": float(np.mean([run.z for run in runs])),
        "influence": None if cap is None else cap.to_json(n),
        "gains": [run.gain for run in runs],
    }
