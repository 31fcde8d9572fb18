"""Choose the method for given queries by replaying the collection on synthetic data (PP-AUTOSELECT).

Post-processed answers of the same method on a similar population with the same noise show which method errs least.
The result is advice: see `CAVEAT`. Wang's dissertation, section 8.2.4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate
from tacit.errors import InvalidSpec, NoData
from tacit.post.frequencies.methods import METHODS, Method, Processed
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.simplex import project_to_simplex

Replay = Callable[[I64], Estimate]
"""Collects once more from a synthetic population, given how many respondents hold each value."""

RUNS = 30
CAVEAT = (
    "advice, not a guarantee: the synthetic population is the Norm-Sub histogram, whose tail is not the true one, so "
    "the choice is unreliable for queries that cover rare values only"
)


@dataclass(frozen=True)
class ScoredMethod:
    """A method and its mean squared error over queries and replays, with the standard error of that mean."""

    method: Method
    mean_squared_error: float
    standard_error: float

    def to_row(self) -> dict[str, Any]:
        """Plain numbers for JSON and tables."""
        return {
            "method": self.method.name,
            "mean_squared_error": self.mean_squared_error,
            "standard_error": self.standard_error,
        }


@dataclass(frozen=True, eq=False)
class Selection:
    """The method with the least predicted error, and all that it was compared with, best first."""

    pick: Method
    scores: tuple[ScoredMethod, ...]
    synthetic: F64
    runs: int
    caveat: str = CAVEAT


def normal_replay(noise: Noise, rng: np.random.Generator) -> Replay:
    """Return a replay with independent normal noise, for mechanisms without an exact simulation of the tally."""

    def collect(counts: I64) -> Estimate:
        truth = counts / counts.sum()
        variance = noise.at_zero + noise.slope * truth
        value = truth + rng.normal(size=len(truth)) * np.sqrt(variance)
        seen = noise.at_zero + noise.slope * np.clip(value, 0, 1)
        return Estimate(value, seen, max(1, round(noise.n)), effective=noise.n)

    return collect


def select_method(
    estimate: Estimate,
    replay: Replay,
    rng: np.random.Generator,
    *,
    queries: F64 | None = None,
    methods: Sequence[Method] = METHODS,
    runs: int = RUNS,
) -> Selection:
    """Return the method with the least mean squared error on the queries, over replays of a synthetic population.

    Rows of `queries` are linear answers over the whole domain, such as sets; None asks for every single value. The
    synthetic population is drawn from the projection of the estimate onto the simplex: a histogram shrunk by a
    prior would favour that prior. It costs no privacy, and the generator's seed makes it repeatable.
    """
    _check(estimate, queries, runs)
    # One population, replayed often: the noise varies between runs, the truth does not.
    synthetic = project_to_simplex(estimate.value)
    n = max(1, round(estimate.effective))
    counts = rng.multinomial(n, synthetic / synthetic.sum()).astype(np.int64)
    errors = [_errors(replay(counts), counts / n, queries, methods) for _ in range(runs)]
    means, deviations = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1)
    scored = zip(methods, means.tolist(), (deviations / np.sqrt(runs)).tolist(), strict=True)
    ranked = sorted((ScoredMethod(*row) for row in scored), key=lambda score: score.mean_squared_error)
    return Selection(ranked[0].method, tuple(ranked), counts / n, runs)


def _check(estimate: Estimate, queries: F64 | None, runs: int) -> None:
    if not estimate.has_data:
        raise NoData("post: there are no reports to choose a method by")
    if queries is not None and (queries.ndim != 2 or queries.shape[1] != len(estimate) or not len(queries)):
        raise InvalidSpec(f"post: queries have shape {queries.shape}, must be rows of {len(estimate)} weights")
    if runs < 2:
        raise InvalidSpec(f"post: runs is {runs}, must be at least 2; 30 or more tell methods apart")


def _errors(again: Estimate, truth: F64, queries: F64 | None, methods: Sequence[Method]) -> list[float]:
    """Mean squared error of every method on one replay."""
    noise = Noise.of(again)
    expected = truth if queries is None else queries @ truth
    # Only values are compared, so the variances that `process` works out are left alone.
    processed = [Processed(m, again, replace(again, value=m.apply(again.value, noise))) for m in methods]
    answers = [one.value if queries is None else one.combine(queries) for one in processed]
    return [float(np.mean((answer - expected) ** 2)) for answer in answers]


def random_subsets(size: int, share: float, rng: np.random.Generator, *, count: int = 100) -> F64:
    """Return queries for random sets of a share of the domain, as rows of zeros and ones."""
    if not 0 < share <= 1:
        raise InvalidSpec(f"post: share is {share}, must be above 0 and at most 1")
    members = max(1, round(share * size))
    rows = np.zeros((count, size))
    for row in rows:
        row[rng.choice(size, members, replace=False)] = 1
    return rows


def top_values(estimate: Estimate, k: int) -> F64:
    """Return queries for the k largest values of an estimate, one row each."""
    if not 1 <= k <= len(estimate):
        raise InvalidSpec(f"post: k is {k}, must be from 1 to {len(estimate)}")
    rows = np.zeros((k, len(estimate)))
    rows[np.arange(k), np.argsort(-estimate.value, kind="stable")[:k]] = 1
    return rows
