"""Square wave: exact odds, an unbiased mean with the variance it states, and a simulation with the law of reports."""

import numpy as np
import pytest

from tacit.device.kinds.square_wave import best_width
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec
from tacit.numeric.square_wave import SquareWave
from tacit.simulate.coins import SimulationCoins


def law(mechanism: SquareWave) -> np.ndarray:
    """Probabilities of all codes (columns) for all numbers (rows)."""
    codes = mechanism.all_reports()
    return np.exp([mechanism.log_prob(codes, value) for value in range(mechanism.size)])


@pytest.mark.parametrize(
    ("epsilon", "share"), [("0.2", 0.4376), ("0.5", 0.3582), ("1", 0.2561), ("2", 0.1293), ("4", 0.0304)]
)
def test_the_window_is_the_published_one(epsilon: str, share: float) -> None:
    mechanism = SquareWave(size=10_000, epsilon=epsilon)
    assert (mechanism.width - 1) / 20_000 == pytest.approx(share, abs=1.5e-4)


def test_the_series_of_small_budgets_meets_the_formula() -> None:
    below, above = (best_width(1 << 16, float(np.exp(epsilon))) for epsilon in (0.00999, 0.01001))
    assert abs(below - above) <= 4
    assert best_width(1000, 1.0 + 1e-9) in (999, 1001)


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "1", "4", "32"])
@pytest.mark.parametrize("size", [2, 16, 1000, 1 << 16])
def test_odds_are_within_the_declared_ones_and_hardly_below(size: int, epsilon: str) -> None:
    mechanism = SquareWave(size=size, epsilon=epsilon)
    assert mechanism.holds()
    assert mechanism.realised_epsilon() > 0.999 * float(epsilon)
    assert mechanism.last > mechanism.low and mechanism.high >= mechanism.last
    assert (size - 1) * mechanism.low + (mechanism.width - 1) * mechanism.high + mechanism.last == WORD


@pytest.mark.parametrize("width", [1, 5, 33])
def test_the_mean_is_unbiased_and_its_variance_exact(width: int) -> None:
    """By enumeration over all numbers and codes, in expectation."""
    mechanism = SquareWave(size=16, width=width, epsilon="1.5")
    probabilities, codes = law(mechanism), np.arange(mechanism.outputs)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    first, _ = mechanism._code_moments
    numbers = np.arange(16.0)
    means = probabilities @ codes
    assert np.allclose((means - first[0]) / first[1], numbers, atol=1e-9)
    variance = (probabilities @ codes**2 - means**2) / first[1] ** 2
    stated = [mechanism._variance_of(v, v * v) for v in numbers]
    assert np.allclose(variance, stated, rtol=1e-9)
    assert mechanism.worst_variance == pytest.approx(variance.max())


def test_batches_and_simulated_tallies_have_the_law_of_single_reports() -> None:
    """Chi-square of 200,000 draws each over 24 codes: a false alarm has probability below 1e-6 at 75."""
    mechanism, n = SquareWave(size=16, epsilon="1"), 200_000
    counts = np.zeros(16, np.int64)
    counts[[0, 5, 15]] = n // 2, n // 4, n // 4
    expected = (counts @ law(mechanism)).clip(1e-9)
    drawn = mechanism.tally(mechanism.privatize(np.repeat(np.arange(16), counts), SimulationCoins(3))).cells
    simulated = mechanism.simulate_tally(counts, np.random.default_rng(3)).cells
    for cells in (drawn, simulated):
        assert ((cells - expected) ** 2 / expected).sum() < 75
    # The test has power: those of another number would be seen.
    moved = (np.roll(counts, 1) @ law(mechanism)).clip(1e-9)
    assert ((drawn - moved) ** 2 / moved).sum() > 500


def test_wrong_windows_are_refused() -> None:
    for width in (2, -1, 99):
        with pytest.raises(InvalidSpec, match="width"):
            SquareWave(size=16, width=width, epsilon="1")
