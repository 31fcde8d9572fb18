"""Run a mechanism over a simulated population and compare its error with what its formulas predict."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from tacit.arrays import I64
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Oracle
from tacit.post.frequencies.methods import process
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.population import respondents

# Respondents that are privatized at a time.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class SimulationOutcome:
    """How one or more simulated collections went."""

    runs: int
    rmse: float
    predicted_rmse: float
    coverage: float
    seconds: float
    last: Estimate
    post_rmse: float | None = None
    """The error after post-processing, where a method was named."""


def collect(mechanism: Oracle, values: I64, seed: int, *, advance: Callable[[int], None] | None = None) -> Estimate:
    """Privatize, tally and estimate a population chunk by chunk, as a collector would."""
    coins, tally = SimulationCoins(seed), None
    for chunk in _chunks(values):
        part = mechanism.tally(mechanism.privatize(chunk, coins))
        tally = part if tally is None else tally + part
        if advance:
            advance(len(chunk))
    # Nobody answered: the empty tally gives an estimate without data.
    tally = mechanism.tally(np.empty(0, mechanism.report_dtype)) if tally is None else tally
    return mechanism.estimate(tally)


def _chunks(values: I64) -> Iterator[I64]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]


def simulate_oracle(
    mechanism: Oracle, counts: I64, *, runs: int, seed: int, advance: Callable[[int], None] | None = None,
    post: str | None = None,
) -> SimulationOutcome:  # fmt: skip
    """Run collections and return the error over all values against the prediction, and the intervals' coverage."""
    n = int(counts.sum())
    truth = counts.astype(np.float64) / n
    errors: list[float] = []
    covered: list[float] = []
    processed: list[float] = []
    start, estimate = perf_counter(), no_data(mechanism.size)
    values = respondents(counts, np.random.default_rng(seed))
    for run in range(runs):
        # Every run gets coins of its own; the factor keeps runs of neighbouring seeds apart.
        estimate = collect(mechanism, values, seed * 1_000_003 + run, advance=advance)
        low, high = estimate.interval(0.95)
        errors.append(float(np.mean((estimate.value - truth) ** 2)))
        if post is not None:
            processed.append(float(np.mean((process(estimate, post).value - truth) ** 2)))
        covered.append(float(np.mean((low <= truth) & (truth <= high))))
    return SimulationOutcome(
        runs=runs,
        rmse=float(np.sqrt(np.mean(errors))),
        predicted_rmse=mechanism.standard_error(n),
        coverage=float(np.mean(covered)),
        seconds=perf_counter() - start,
        last=estimate,
        post_rmse=float(np.sqrt(np.mean(processed))) if processed else None,
    )
