"""Compare the methods for the share of every answer: all post-processing on the same reports, and other oracles."""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, cast

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Oracle
from tacit.post.frequencies.methods import METHODS, Method, Processed, process
from tacit.post.frequencies.select import Replay, select_methods
from tacit.simulate.compare.draws import drawn_estimate, is_cheap
from tacit.simulate.compare.outcome import DEFAULT, UNIFORM, Advance, Contender, Trial, inside
from tacit.simulate.compare.peers import compare_peers, installed_peers
from tacit.tasks.choose import OracleOption, choose_oracle

RAW = "raw"
"""Base of the registry, under the name that answers give it."""

_OTHER = "as default, with the same draws scaled to the standard error of this oracle"


def compare_histogram(
    counts: I64, epsilon: str, seeds: Sequence[int], *, ordered: bool = False, advance: Advance | None = None
) -> list[Contender]:
    """Return every method on collections about these counts, one per seed; all see the same reports.

    The error of a method is the mean squared error over all answers, against the respondents themselves.
    """
    truth = counts / counts.sum()
    choice = choose_oracle(size=len(counts), epsilon=epsilon, n=int(counts.sum()))
    offered = [m for m in METHODS if m.least_cells <= len(counts) and (ordered or not m.ordered)]
    found = _contenders(choice.pick, offered)
    others = [option for option in choice.options if option is not choice.pick]
    found |= {f"oracle:{o.kind}": _contender(f"oracle:{o.kind}", _OTHER, o) for o in others}
    for seed in seeds:
        raw = drawn_estimate(choice.pick.mechanism, counts, np.random.default_rng([seed, 1]))
        picked = _selected(choice.pick.mechanism, counts, raw, ordered=ordered)
        found[DEFAULT].trials.append(picked)
        found[UNIFORM].trials.append(_uniform(truth))
        for method in offered:
            found[_name(method)].trials.append(_trial(partial(process, raw, method), truth))
        for option in others:
            other = _rescaled(raw, truth, choice.pick.mechanism, option.mechanism)
            # Choosing again for every oracle would take most of the time, and hardly choose anything else.
            found[f"oracle:{option.kind}"].trials.append(_trial(partial(process, other, picked.chosen), truth))
        if advance:
            advance(1)
    return [*found.values(), *compare_peers(counts, epsilon, seeds, installed_peers())]


def _rescaled(raw: Estimate, truth: F64, drawn: Oracle, other: Oracle) -> Estimate:
    """The estimate of another oracle with the same draws: every error, scaled to the standard error of that oracle."""
    mine, theirs = cast("Any", drawn).moments, cast("Any", other).moments
    ratio = np.sqrt(theirs.variance(truth) / mine.variance(truth))
    value = truth + (raw.value - truth) * ratio
    share = np.clip(value, 0, 1)
    return Estimate(
        value,
        theirs.variance(share) / raw.n,
        raw.n,
        covariance=lambda rows: theirs.combined(rows, share) / raw.n,
    )


def _name(method: Method) -> str:
    return RAW if method.name == "base" else method.name


def _contender(name: str, about: str, option: OracleOption) -> Contender:
    return Contender(name, about, option.kind, option.report_bits)


def _contenders(pick: OracleOption, offered: Sequence[Method]) -> dict[str, Contender]:
    """The pick first, what needs no reports, then the registry in its order."""
    found = {DEFAULT: _contender(DEFAULT, "the planned oracle, post-processed by estimated risk", pick)}
    found[UNIFORM] = Contender(UNIFORM, "all answers alike; needs no reports")
    return found | {_name(m): _contender(_name(m), f"{m.title}: {m.best_for}", pick) for m in offered}


def _selected(mechanism: Oracle, counts: I64, raw: Estimate, *, ordered: bool) -> Trial:
    """What a user gets: the method of least estimated risk for single shares."""
    n = int(counts.sum())

    def answer() -> Processed:
        return process(raw, select_methods(raw, _replay(mechanism, n), ordered=ordered)["cells"].pick)

    return _trial(answer, counts / n, choosing=True)


def _replay(mechanism: Oracle, n: int) -> Replay | None:
    """The exact simulation where collections have one; answers take noise as normal otherwise."""
    if not mechanism.exact_simulation or not is_cheap(mechanism, n):
        return None

    def again(counts: I64, rng: np.random.Generator) -> Estimate:
        return mechanism.estimate(mechanism.simulate_tally(counts, rng))

    return again


def _trial(answer: Callable[[], Processed], truth: F64, *, choosing: bool = False) -> Trial:
    start = perf_counter()
    made = answer()
    seconds = perf_counter() - start
    error = made.value - truth
    return Trial(
        float(np.mean(error**2)),
        inside(made.interval(0.95), truth),
        seconds,
        error,
        made.method.name if choosing else "",
    )


def _uniform(truth: F64) -> Trial:
    error = 1 / len(truth) - truth
    return Trial(float(np.mean(error**2)), None, 0.0, error)
