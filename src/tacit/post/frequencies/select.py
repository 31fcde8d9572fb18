"""Which method answers a query with the least error: by estimated risk, from the reports themselves.

Few cells: Stein's unbiased estimate of the risk. From 32 cells on: replays of the collection on populations that are
drawn from the posterior of the empirical Bayes fit; where the cells have an order, what was picked is then held against
the methods that use it, on halves of the noise. All cost no privacy, and a tally always gets the same choice, as its
own numbers are the seed. C. Stein, "Estimation of the mean of a multivariate normal distribution", 1981.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate
from tacit.core.patience import check
from tacit.errors import InvalidSpec, NoData
from tacit.post.frequencies.halves import risks_by_halves
from tacit.post.frequencies.methods import METHODS, QUERIES, Method, find_method
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.npmle import LEAST_CELLS, fit_prior, npmle
from tacit.post.frequencies.simplex import norm_mul, project_to_simplex

Replay = Callable[[I64, np.random.Generator], Estimate]
"""Collects once more from a made-up population, given how many respondents hold each value."""

RUNS, LEAST_RUNS = 8, 4
MOST_FULL, MOST_REPLAYED = 1 << 11, 1 << 14
"""Up to so many cells there are all replays, or the least number of them; beyond, none: `npmle` is taken."""

LARGEST = 10
"""How many of the largest values the query type `largest` is about."""
SET_SHARE, SETS = 0.1, 50
"""The query type `sets` is about random sets of this share of the cells."""

_REPLAYED: tuple[str, ...] = ("norm_sub", "norm_mul", "power_ns", "npmle", "norm")
_FIT_STEPS = 100
"""Steps of the fit inside a replay: the risk is settled by then, and replays are many."""

CAVEAT = (
    "estimated from the reports themselves: the made-up populations have the tail of the fitted prior, which is not "
    "the true one, so the choice is least certain for rare values"
)


@dataclass(frozen=True)
class ScoredMethod:
    """A method and its estimated mean squared error over queries, with the standard error of that mean over replays."""

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


@dataclass(frozen=True)
class Selection:
    """The method for one type of query, and all that it was compared with, least estimated error first."""

    query: str
    pick: Method
    scores: tuple[ScoredMethod, ...]
    rule: str
    """How it was chosen: "sure" (Stein), "replay", "halves" where a method won that uses the order of the cells, or
    "size" where there are too many cells to replay."""
    runs: int
    seconds: float
    """How long the choice took, for all types of queries together."""
    caveat: str = CAVEAT
    halves: tuple[ScoredMethod, ...] = ()
    """Of ordered cells: the best method that ignores the order and those that use it, by their errors on cells (of the
    largest: on those) at twice the variance, without bias and least first."""


def normal_replay(noise: Noise) -> Replay:
    """Return a replay with independent normal noise, for mechanisms without an exact simulation of the tally."""

    def collect(counts: I64, rng: np.random.Generator) -> Estimate:
        truth = counts / counts.sum()
        at_zero = noise.at_zero if noise.cells is None else noise.cells
        variance = np.maximum(0, at_zero + noise.slope * truth)
        value = truth + rng.normal(size=len(truth)) * np.sqrt(variance)
        seen = np.maximum(0, at_zero + noise.slope * np.clip(value, 0, 1))
        return Estimate(value, seen, max(1, round(noise.n)), effective=noise.n)

    return collect


def select_methods(
    estimate: Estimate, replay: Replay | None = None, *, runs: int | None = None, ordered: bool = False
) -> dict[str, Selection]:
    """Return the method with the least estimated risk for every type of query: cells, sets, largest.

    `replay` simulates the mechanism exactly; without it, noise is normal with the variances of the estimate. Where the
    cells are `ordered`, methods that use their order are candidates too.
    """
    _check(estimate, runs)
    start = perf_counter()
    if len(estimate) < LEAST_CELLS:
        pick, scores = _by_sure(estimate)
        found, rule, runs = {query.name: (pick, scores) for query in QUERIES}, "sure", 0
    elif len(estimate) > MOST_REPLAYED or Noise.of(estimate).at_zero == 0:
        found, rule, runs = {query.name: (find_method("npmle"), ()) for query in QUERIES}, "size", 0
    else:
        runs = runs or (RUNS if len(estimate) <= MOST_FULL else LEAST_RUNS)
        found, rule = _by_replay(estimate, replay or normal_replay(Noise.of(estimate)), runs), "replay"
    made = {query: Selection(query, pick, scores, rule, runs, 0.0) for query, (pick, scores) in found.items()}
    if ordered and rule == "replay":
        made = _by_halves(estimate, made)
    seconds = perf_counter() - start
    return {query: replace(selection, seconds=seconds) for query, selection in made.items()}


def _check(estimate: Estimate, runs: int | None) -> None:
    if not estimate.has_data or not np.isfinite(estimate.variance).all():
        raise NoData("post: there are no reports to choose a method by")
    if runs is not None and runs < 2:
        raise InvalidSpec(f"post: runs is {runs}, must be at least 2; {RUNS} are usual")


Scored = tuple[Method, tuple[ScoredMethod, ...]]


def _by_sure(estimate: Estimate) -> Scored:
    """The projection, or division by the sum, by Stein's estimate of the summed squared error over the cells.

    Norm is not compared: Norm-Sub is its projection onto a convex set that holds the truth, thus never farther from it.
    """
    risks = {"norm_sub": sure_norm_sub(estimate), "norm_mul": sure_norm_mul(estimate)}
    scores = [ScoredMethod(find_method(name), risk / len(estimate), 0.0) for name, risk in risks.items()]
    # A stable sort: the projection wins ties, as where all estimates are positive and sum to one.
    ranked = sorted(scores, key=lambda score: score.mean_squared_error)
    return ranked[0].method, tuple(ranked)


def sure_norm_sub(estimate: Estimate) -> float:
    """Stein's estimate of the summed squared error of Norm-Sub; correlated cells are allowed for.

    Its derivatives on the support A are those of taking the mean off, so that the divergence is the sum of the
    variances over A, less the variance of their sum divided by their number.
    """
    made = project_to_simplex(estimate.value)
    on = (made > 0).astype(np.float64)
    own = float(on @ estimate.variance) - float(estimate.variance_of(on[None, :])[0]) / float(on.sum())
    return _sure(estimate, made, own)


def sure_norm_mul(estimate: Estimate) -> float:
    """Stein's estimate of the summed squared error of Norm-Mul, x/T on the positive cells, T their sum."""
    made = norm_mul(estimate.value)
    on = (estimate.value > 0).astype(np.float64)
    total = float(estimate.value @ on)
    if total <= 0:
        return _sure(estimate, made, 0.0)
    # Cov(x_v, T) from three variances, for every cell.
    whole = estimate.variance_of(on[None, :])
    with_sum = (estimate.variance_of(on + np.eye(len(on))) - whole - estimate.variance) / 2
    return _sure(estimate, made, float(on @ (estimate.variance - made * with_sum)) / total)


def _sure(estimate: Estimate, made: F64, divergence: float) -> float:
    return float(((made - estimate.value) ** 2).sum() - estimate.variance.sum() + 2 * divergence)


def _by_replay(estimate: Estimate, replay: Replay, runs: int) -> dict[str, Scored]:
    """Draw a population from the posterior, collect from it again, and compare all methods on it; `runs` times."""
    rng = np.random.default_rng(_seed(estimate))
    prior = fit_prior(estimate.value, Noise.of(estimate))
    n, sets = max(1, round(estimate.effective)), _random_sets(len(estimate), rng)
    losses: list[F64] = []
    for _ in range(runs):
        check()
        drawn = np.clip(prior.draw(estimate.value, rng), 0, None)
        shares = drawn / drawn.sum() if drawn.sum() > 0 else np.full(len(drawn), 1 / len(drawn))
        counts = rng.multinomial(n, shares).astype(np.int64)
        losses.append(_losses(replay(counts, rng), counts / n, sets))
    by_query = np.array(losses).transpose(1, 2, 0)
    return {query.name: _scored(query.name, loss) for query, loss in zip(QUERIES, by_query, strict=True)}


def _by_halves(estimate: Estimate, chosen: dict[str, Selection]) -> dict[str, Selection]:
    """Compare the pick of the unordered methods with the methods that use the order, on split noise.

    All of them have a sum of one, so that the expected error of a random set is a fixed multiple of that of the cells,
    which is known far better; sets are therefore judged by cells. A few largest cells say little: there a method must
    win on the cells as well.
    """
    ordered = [method.name for method in METHODS if method.ordered]
    names = dict.fromkeys([*(selection.pick.name for selection in chosen.values()), *ordered])
    steps = {name: partial(_apply, name) for name in names}
    rng = np.random.default_rng([_seed(estimate), 1])
    risks = risks_by_halves(estimate, steps, largest=LARGEST, runs=RUNS, rng=rng)
    return {query: _challenged(selection, risks, ordered) for query, selection in chosen.items()}


def _challenged(selection: Selection, risks: dict[str, F64], ordered: list[str]) -> Selection:
    """The selection of one type of query after methods that use the order have been tried."""
    row, pick = int(selection.query == "largest"), selection.pick.name
    winners = [o for o in ordered if (risks[o][: row + 1].mean(axis=1) < risks[pick][: row + 1].mean(axis=1)).all()]
    scores = [_score(name, risks[name][row]) for name in (pick, *ordered)]
    ranked = tuple(sorted(scores, key=lambda score: score.mean_squared_error))
    if not winners:
        return replace(selection, halves=ranked)
    best = next(score.method for score in ranked if score.method.name in winners)
    return replace(selection, pick=best, rule="halves", halves=ranked)


def _score(name: str, losses: F64) -> ScoredMethod:
    """A method with the mean of its losses over the runs."""
    return ScoredMethod(find_method(name), float(losses.mean()), float(losses.std(ddof=1) / np.sqrt(len(losses))))


def _seed(estimate: Estimate) -> int:
    """A number that the estimate decides, so that the same tally is always answered alike."""
    return int.from_bytes(sha256(np.ascontiguousarray(estimate.value).tobytes()).digest()[:8], "little")


def _random_sets(size: int, rng: np.random.Generator) -> I64:
    members = max(1, round(SET_SHARE * size))
    return np.array([rng.choice(size, members, replace=False) for _ in range(SETS)])


def _losses(again: Estimate, truth: F64, sets: I64) -> F64:
    """Mean squared errors of every method (columns) on every type of query (rows), in one replay."""
    noise = Noise.of(again)
    # What is listed as largest is what was estimated so; no method changes the order.
    top = np.argsort(-again.value, kind="stable")[:LARGEST]
    columns: list[list[float]] = []
    for name in _REPLAYED:
        error = _apply(name, again.value, noise) - truth
        columns.append([float((part**2).mean()) for part in (error, error[sets].sum(axis=1), error[top])])
    return np.array(columns).T


def _apply(name: str, value: F64, noise: Noise) -> F64:
    if name == "npmle":
        return npmle(value, noise, steps=_FIT_STEPS, most_steps=_FIT_STEPS)
    return find_method(name).apply(value, noise)


def _scored(query: str, losses: F64) -> Scored:
    """Rank the methods by their mean loss over the replays, all of which every method has seen."""
    # Of single cells Norm is never better than its projection, and must not be picked by chance.
    names = [name for name in _REPLAYED if query != "cells" or name != "norm"]
    rows = dict(zip(_REPLAYED, losses, strict=True))
    scores = [_score(name, rows[name]) for name in names]
    ranked = sorted(scores, key=lambda score: score.mean_squared_error)
    return ranked[0].method, tuple(ranked)
