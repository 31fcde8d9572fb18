"""Simulated collections of shuffled reports: the error of every method at one central epsilon, and the prefix tree.

Wang's dissertation, section 9.6. Reports of local hashing are simulated value by value: the support of every value has
its exact law, only the weak dependence between values is left out; `reports=True` hashes every report instead.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.baselines.hitters import TrueCounts
from tacit.central.noise import Laplace
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Oracle
from tacit.core.pure import PureOracle, invert
from tacit.core.tally import Counts
from tacit.errors import InvalidSpec
from tacit.shuffle.mechanisms.closed_forms import CentralTarget
from tacit.shuffle.mechanisms.fakes import supporting, with_fakes
from tacit.shuffle.mechanisms.tree import ORACLES, RoundShares, TreeFound, TreePlan, TreeRound, run_tree
from tacit.simulate.metrics import true_top

Advance = Callable[[int], None]

_LARGEST = 1024
"""Shares that a prediction looks at; rarer values are lost in noise."""

ABOUT = {
    "sh_grr": "randomised response, amplified by shuffling (SH)",
    "solh": "local hashing with buckets for shuffling, or randomised response where that is better",
    "aue": "appended unary encoding, not local",
    "rap": "unary encoding by location (SH-RAP)",
    "rap_r": "unary encoding by location, epsilon for removal (SH-RAP_R)",
    "olh": "local hashing at the central epsilon, without shuffling",
    "hadamard": "Hadamard response at the central epsilon, without shuffling",
    "laplace": "Laplace noise of a trusted curator",
    "uniform": "the same share for every value",
}
"""Every method, with a few words about it."""


@dataclass(frozen=True)
class ShuffleOutcome:
    """How one method did over some runs."""

    method: str
    mse: float | None = None
    """Mean squared error over all values and runs; None where the method was refused."""
    predicted_mse: float | None = None
    """What the exact formulas say; None where there is no formula."""
    epsilon_local: float | None = None
    kind: str = ""
    buckets: int | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_row(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return vars(self) | {"notes": list(self.notes)}


def draw_estimate(
    oracle: Oracle, counts: I64, rng: np.random.Generator, *, fakes: int = 0, reports: bool = False
) -> Estimate:
    """Return the estimate of one simulated crowd, with fakes among its reports."""
    mechanism = with_fakes(oracle, fakes) if fakes else oracle
    if reports or not isinstance(oracle, PureOracle) or (oracle.exact_simulation and not fakes):
        return mechanism.estimate(mechanism.simulate_tally(counts, rng))
    n = int(counts.sum())
    cells = rng.binomial(counts, float(oracle.p)) + rng.binomial(n - counts, float(oracle.q))
    if fakes:
        # A fake supports every value with the same probability, whatever anybody holds.
        cells += rng.binomial(fakes, float(supporting(oracle)[0]), len(counts))
    return mechanism.estimate(Counts(oracle, n + fakes, cells, cells, n + fakes, n + fakes))


def draw_tested(oracle: Oracle, held: I64, n: int, rng: np.random.Generator) -> Estimate:
    """Return the estimate of some candidates, each held by so many of n, from reports on a larger domain.

    Supports of candidates have their exact laws; only their weak dependence is left out.
    """
    assert isinstance(oracle, PureOracle)
    support = rng.binomial(held, float(oracle.p)) + rng.binomial(n - held, float(oracle.q))
    share = invert(oracle.p, oracle.q, n, support) / n
    return Estimate(share, oracle.moments.variance(np.clip(share, 0, 1)) / n, n)


def simulate_shuffle(
    method: str, counts: I64, target: CentralTarget, *, runs: int, seed: int, fakes: int = 0, reports: bool = False,
    advance: Advance | None = None,
) -> ShuffleOutcome:  # fmt: skip
    """Run one method over a population; a method that cannot be planned for the target says why in its notes."""
    if method not in ABOUT:
        raise InvalidSpec(f"method is {method[:40]!r}, must be one of {', '.join(ABOUT)}")
    # Methods draw from streams of their own, so that leaving one out does not change the others.
    rng, start = np.random.default_rng([0x5F1E, list(ABOUT).index(method), seed]), perf_counter()
    if method not in ORACLES:
        outcome = _curator(method, counts, target, runs, rng)
    else:
        try:
            outcome = _shuffled(method, counts, target, runs, rng, fakes, reports, advance)
        except InvalidSpec as error:
            outcome = ShuffleOutcome(method, notes=(str(error),))
    return replace(outcome, seconds=perf_counter() - start)


def _shares(counts: I64) -> F64:
    return counts.astype(np.float64) / int(counts.sum())


def _shuffled(
    method: str, counts: I64, target: CentralTarget, runs: int, rng: np.random.Generator, fakes: int, reports: bool,
    advance: Advance | None,
) -> ShuffleOutcome:  # fmt: skip
    planned = ORACLES[method](target, len(counts))
    oracle, truth = planned.mechanism, _shares(counts)
    errors: list[float] = []
    for _ in range(runs):
        estimate = draw_estimate(oracle, counts, rng, fakes=fakes, reports=reports)
        errors.append(float(np.mean((estimate.value - truth) ** 2)))
        if advance:
            advance(1)
    predicted = planned.mse if not fakes else with_fakes(oracle, fakes).standard_error(target.n) ** 2
    return ShuffleOutcome(
        method,
        mse=float(np.mean(errors)),
        predicted_mse=predicted,
        epsilon_local=planned.epsilon_local,
        kind=oracle.kind,
        buckets=oracle.spec().get("buckets"),
        notes=planned.cautions,
    )


def _curator(method: str, counts: I64, target: CentralTarget, runs: int, rng: np.random.Generator) -> ShuffleOutcome:
    """A trusted curator's Laplace noise, or no data at all."""
    truth, n = _shares(counts), int(counts.sum())
    if method == "uniform":
        return ShuffleOutcome(method, mse=float(np.mean((truth - 1 / len(truth)) ** 2)))
    # Replacing a value changes two counts by one each, so that the sensitivity is 2.
    noise = Laplace(target.epsilon, 2, rng)
    errors = [float(np.mean((noise.draw(len(counts)) / n) ** 2)) for _ in range(runs)]
    notes = ("not local: a trusted curator holds the true counts",)
    return ShuffleOutcome(method, mse=float(np.mean(errors)), predicted_mse=noise.variance / n**2, notes=notes)


@dataclass(frozen=True, eq=False)
class TreeOutcome:
    """How searches with one prefix tree went."""

    plan: TreePlan
    hits: tuple[int, ...]
    """How many of the `keep` most frequent values every run found."""
    expected: float
    """The prediction, from the true shares."""
    last: TreeFound = field(repr=False)
    seconds: float = 0.0

    def to_row(self) -> dict[str, Any]:
        """Plain data for JSON."""
        hits = {"hits": float(np.mean(self.hits)), "hits_runs": list(self.hits), "expected_hits": self.expected}
        return self.plan.to_row() | hits | {"seconds": self.seconds}


def true_shares(truth: TrueCounts, plan: TreePlan) -> list[RoundShares]:
    """What holds in every round of a search over this population, for a prediction that knows it."""
    # Ties are broken by the value, as in the list that a search is scored against.
    order = np.lexsort((truth.values, -truth.counts))[: plan.keep]
    rounds: list[RoundShares] = []
    for length in plan.lengths:
        prefixes = truth.piece(0, length)
        known, places = np.unique(prefixes, return_inverse=True)
        shares = np.bincount(places, truth.counts, len(known)) / truth.n
        rounds.append(RoundShares(shares[places[order]], np.sort(shares)[::-1][:_LARGEST]))
    return rounds


def simulate_tree(
    truth: TrueCounts, plan: TreePlan, *, runs: int, seed: int, advance: Advance | None = None
) -> TreeOutcome:
    """Run searches over a population and count how many of its most frequent values they find."""
    counted = dict(zip(truth.values.tolist(), truth.counts.tolist(), strict=True))
    top, start = set(true_top(counted, plan.keep)), perf_counter()
    hits: list[int] = []
    found = None
    for run in range(runs):
        found = run_tree(plan, _Crowd(truth, plan, np.random.default_rng([0x7EE, seed, run])).ask)
        hits.append(len(top & set(found.values.tolist())))
        if advance:
            advance(1)
    if found is None:
        raise InvalidSpec(f"tree: runs is {runs}, must be at least 1")
    expected = plan.expected_found(true_shares(truth, plan))
    return TreeOutcome(plan, tuple(hits), expected, found, perf_counter() - start)


class _Crowd:
    """Respondents of a tree: all of them in every round, or a group for each."""

    def __init__(self, truth: TrueCounts, plan: TreePlan, rng: np.random.Generator) -> None:
        self._rng, self._at_once = rng, plan.at_once
        grouped = plan.policy == "groups"
        self._parts = truth.split([1.0] * plan.groups, rng) if grouped else [truth] * len(plan.lengths)

    def ask(self, asked: TreeRound) -> Estimate:
        """The estimate of a round, from fresh noise."""
        part = self._parts[asked.number]
        held = part.among(part.piece(0, asked.length), asked.candidates)
        if self._at_once:
            return draw_tested(asked.oracle.mechanism, held, part.n, self._rng)
        counts = np.append(held, part.n - int(held.sum()))
        return draw_estimate(asked.oracle.mechanism, counts, self._rng)
