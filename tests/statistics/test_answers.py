"""What is picked for a histogram: rarely worse than the best single method, with intervals that cover.

The slow versions run over the twelve sets of `benchmarks/answers.py` that are in TACIT_DATA; seeds are fixed, so that a
failure is a change of the code. Regret is judged over settings (data, epsilon, n): a setting is good if the mean error
over its draws is within 5 % or two standard errors of the best listed method.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.core.statistics.level import selected_level
from tacit.oracles.unary import OUE
from tacit.post.frequencies.methods import QUERIES, process

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import answers

LEAST_GOOD, LEAST_COVERED = 0.9, 0.93
LISTED = 10


def zipf(size: int, exponent: float) -> Any:
    shares = np.arange(1.0, size + 1) ** -exponent
    return shares / shares.sum()


MADE_UP = {"flat": np.full(64, 1 / 64), "two": answers.two() / 1000, "zipf": zipf(128, 1.1)}


def judged(settings: list[dict[str, Any]]) -> dict[str, float]:
    """By type of query the share of good settings."""
    return {
        query.name: float(np.mean([answers.judged(found, i)[1] for found in settings]))
        for i, query in enumerate(QUERIES)
    }


@pytest.mark.slow
def test_made_up_histograms_are_answered_nearly_as_well_as_by_the_best_method() -> None:
    settings = [answers.setting(s, e, 100_000, 4) for s in MADE_UP.values() for e in ("0.5", "2")]
    # Six settings: one that is off makes 0.83, which is the tolerance here; the full grid asks for 0.9.
    assert min(judged(settings).values()) >= 5 / 6
    assert all(found["covered"].mean(axis=0)[0] >= LEAST_COVERED for found in settings)
    # The test has power: always the same method is not good enough.
    for name in ("base", "norm_sub"):
        place = answers.LISTED.index(name)
        always = [found | {"picks": found["table"][:, place, :]} for found in settings]
        assert min(judged(always).values()) < LEAST_GOOD


@pytest.mark.slow
def test_histograms_of_real_data_are_answered_nearly_as_well_as_by_the_best_method() -> None:
    settings = [
        answers.setting(shares, epsilon, n, 3, ordered=name in answers.ORDERED)
        for name, shares in answers.populations()
        for epsilon in answers.EPSILONS
        for n in answers.SIZES
    ]
    good = judged(settings)
    assert min(good.values()) >= LEAST_GOOD, good
    for found in settings:
        assert found["covered"].mean(axis=0)[0] >= LEAST_COVERED


def list_coverage(shares: Any, epsilon: str, n: int, runs: int) -> tuple[float, float]:
    """The share of intervals that hold: of all cells, and of the ten that were estimated largest, adjusted."""
    counts = np.random.default_rng(7).multinomial(n, shares)
    truth, mechanism, rng = counts / n, OUE(size=len(shares), epsilon=epsilon), np.random.default_rng(1)
    held: list[tuple[float, float]] = []
    for _ in range(runs):
        raw = mechanism.estimate(mechanism.simulate_tally(counts, rng))
        made = process(raw, "norm_sub")
        top = np.argsort(-raw.value, kind="stable")[:LISTED]
        every, wide = made.interval(), made.interval(selected_level(0.95, LISTED, len(truth)))
        inside = [(low <= truth + 1e-12) & (truth - 1e-12 <= high) for low, high in (every, wide)]
        held.append((float(inside[0].mean()), float(inside[1][top].mean())))
    return tuple(np.mean(held, axis=0).tolist())


@pytest.mark.parametrize("epsilon", ["0.5", "4"])
@pytest.mark.parametrize("name", list(MADE_UP))
def test_intervals_cover_in_lists_too(name: str, epsilon: str) -> None:
    """600 listed intervals: if 95 % hold, fewer than 93 % do with probability 0.015; and they are wider than that."""
    cells, listed = list_coverage(MADE_UP[name], epsilon, 10_000, 60)
    assert cells >= LEAST_COVERED and listed >= LEAST_COVERED


@pytest.mark.slow
def test_intervals_of_real_data_cover_in_lists_too() -> None:
    for name, shares in answers.populations():
        for epsilon in answers.EPSILONS:
            found = [list_coverage(shares, epsilon, n, 40) for n in answers.SIZES]
            assert np.min(found) >= LEAST_COVERED, (name, epsilon, found)
