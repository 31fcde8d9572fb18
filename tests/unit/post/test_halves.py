"""Risks on halves of the noise: the halves are independent, the estimate of the risk is unbiased, order is seen."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE
from tacit.post.frequencies.halves import doubled, risks_by_halves, split_noise
from tacit.post.frequencies.methods import find_method
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.select import select_methods

# Two runs of equal shares among empty cells: neighbours are alike, which only methods that use the order can know.
CLUSTERED = np.repeat([0, 1 / 64, 0, 1 / 64], [96, 32, 96, 32])


def collected(mechanism: Any, counts: Any, rng: np.random.Generator) -> Any:
    return mechanism.estimate(mechanism.simulate_tally(counts, rng))


@pytest.mark.slow_cases("grr")
@pytest.mark.parametrize("mechanism", [OUE(size=6, epsilon="1"), GRR(size=6, epsilon="1")], ids=["oue", "grr"])
def test_halves_are_uncorrelated(mechanism: Any) -> None:
    """Every covariance of the two noises over 1,500 draws within 5.5 standard errors of zero.

    36 cells: false alarm 1.4e-6. Power: noise that is not split, both halves x, has covariances 35 of them away.
    """
    rng, counts, runs = np.random.default_rng(3), np.array([500, 300, 100, 60, 40, 0]), 1_500
    truth = counts / counts.sum()
    halves = np.zeros((runs, 2, 6))
    for run in range(runs):
        halves[run] = split_noise(collected(mechanism, counts, rng), rng)
    seen, judge = halves[:, 0] - truth, halves[:, 1] - truth
    error = np.sqrt((seen**2).mean(axis=0)[:, None] * (judge**2).mean(axis=0) / runs)
    assert np.abs(seen.T @ judge / runs / error).max() < 5.5
    assert np.diag(seen.T @ seen / runs / error).min() > 30


@pytest.mark.parametrize("name", ["monotone", "norm_sub", "npmle"])
def test_risks_are_unbiased_at_twice_the_variance(name: str) -> None:
    """Mean of (estimated - true loss) over 120 draws within 5 standard errors (chance 6e-7).

    The true loss is that of the same half. Power: without the noise of the judge taken off, the gap is far larger.
    """
    mechanism, rng = OUE(size=len(CLUSTERED), epsilon="1"), np.random.default_rng(5)
    counts = rng.multinomial(20_000, CLUSTERED)
    truth, step, gaps, blunt = counts / counts.sum(), find_method(name).apply, np.zeros(120), np.zeros(120)
    for run in range(len(gaps)):
        raw = collected(mechanism, counts, rng)
        losses: list[float] = []

        def watched(value: Any, noise: Noise, losses: list[float] = losses) -> Any:
            made = step(value, noise)
            losses.append(float(((made - truth) ** 2).mean()))
            return made

        found = risks_by_halves(raw, {name: watched}, largest=10, runs=1, rng=rng)[name]
        gaps[run] = found[0, 0] - losses[0]
        blunt[run] = gaps[run] + 2 * float(raw.variance.mean())
    error = gaps.std() / np.sqrt(len(gaps))
    assert abs(gaps.mean()) < 5 * error < blunt.mean()


def test_the_order_is_used_where_there_is_one() -> None:
    mechanism, rng = OUE(size=len(CLUSTERED), epsilon="1"), np.random.default_rng(7)
    counts = rng.multinomial(100_000, CLUSTERED)
    raw = collected(mechanism, counts, rng)
    replay = partial(collected, mechanism)
    plain, ordered = select_methods(raw, replay), select_methods(raw, replay, ordered=True)
    assert ordered["cells"].pick.name == "monotone" and ordered["cells"].rule == "halves"
    assert ordered["cells"].scores == plain["cells"].scores and plain["cells"].halves == ()
    assert plain["cells"].pick.name != "monotone"
    truth, noise = counts / counts.sum(), Noise.of(raw)
    losses = [float(((s["cells"].pick.apply(raw.value, noise) - truth) ** 2).mean()) for s in (plain, ordered)]
    assert losses[1] < 0.8 * losses[0]
    again = select_methods(raw, replay, ordered=True)
    assert {query: s.halves for query, s in again.items()} == {query: s.halves for query, s in ordered.items()}


def test_an_order_without_meaning_changes_nothing() -> None:
    """The same shares, scattered: what ignores the order stays the pick."""
    mechanism, rng = OUE(size=len(CLUSTERED), epsilon="1"), np.random.default_rng(8)
    shares = np.random.default_rng(1).permutation(CLUSTERED)
    raw = collected(mechanism, rng.multinomial(100_000, shares), rng)
    replay = partial(collected, mechanism)
    plain, ordered = select_methods(raw, replay), select_methods(raw, replay, ordered=True)
    assert {query: s.pick for query, s in ordered.items()} == {query: s.pick for query, s in plain.items()}
    assert {score.method.name for score in ordered["cells"].halves} == {plain["cells"].pick.name, "monotone"}


def test_noise_that_differs_is_doubled_cell_by_cell() -> None:
    cells = np.array([1.0, 4.0])
    found = doubled(Noise(10, 2.0, 0.5, cells))
    assert (found.at_zero, found.slope) == (4.0, 1.0) and found.cells is not None
    assert found.cells.tolist() == [2.0, 8.0]
