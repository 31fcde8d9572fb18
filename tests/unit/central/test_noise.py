"""Exact integer noise of the central model: thresholds, ratios, law and refusals."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.central.noise import Geometric, Laplace, noise_of
from tacit.central.reals import UniformReal
from tacit.device.numbers.budget import as_epsilon
from tacit.device.numbers.coins import ReplayCoins, ScriptedCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_fits, assert_variance


def test_a_uniform_real_is_compared_exactly_at_the_edges_of_a_word() -> None:
    third = Fraction(1, 3)
    edge = WORD // 3  # 2^64/3 = edge + 1/3: the next word decides, and 2^64/3 is its edge again.
    assert UniformReal(edge - 1, ScriptedCoins([])).below(third)
    assert not UniformReal(edge + 1, ScriptedCoins([])).below(third)
    assert UniformReal(edge, ScriptedCoins([edge - 1])).below(third)
    assert not UniformReal(edge, ScriptedCoins([edge + 1])).below(third)
    assert not UniformReal(edge, ScriptedCoins([edge, edge + 1])).below(third)


def test_a_uniform_real_at_a_whole_number_of_words_needs_no_further_word() -> None:
    half = Fraction(1, 2)
    assert UniformReal(WORD // 2 - 1, ScriptedCoins([])).below(half)
    assert not UniformReal(WORD // 2, ScriptedCoins([])).below(half)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "4", "32"])
@pytest.mark.parametrize("sensitivity", [1, 2, 11, 23])
def test_all_changed_cells_together_stay_within_the_odds(epsilon: str, sensitivity: int) -> None:
    noise = Geometric(epsilon, sensitivity, ScriptedCoins([]))
    odds = Fraction(as_epsilon(epsilon).odds, WORD)
    assert noise.ratio**sensitivity <= odds
    assert (noise.ratio + Fraction(1, WORD)) ** sensitivity > odds  # tight: one unit more would exceed them


@pytest.mark.parametrize(("epsilon", "sensitivity"), [("1", 1), ("0.1", 3), ("8", 1)])
def test_words_around_every_threshold_give_the_exact_draw(epsilon: str, sensitivity: int) -> None:
    """Words next to floor(a^k 2^64), against exact fractions: G is how many powers of a the real lies below."""
    noise = Geometric(epsilon, sensitivity, ScriptedCoins([]))
    a = 1 / noise.ratio
    length = len(noise._edges)  # pyright: ignore[reportPrivateUsage]
    powers = [a**m * WORD for m in range(60)]
    edges = [int(power) for power in powers]
    for k in range(1, min(40, length)):  # below the last threshold a draw starts again, which has its own test
        for word in range(edges[k] - 2, edges[k] + 3):
            for tail in (0, WORD - 1):
                coins = ScriptedCoins([word, 1 << 63, tail, tail, tail, tail])  # the second draw is fixed
                got = Geometric(epsilon, sensitivity, coins).draw(1)[0]
                reference = sum(word < edge for edge in edges[1:])
                if word in edges[1:]:  # the next word decides, exactly
                    second = int((powers[edges.index(word)] - word) * WORD)
                    reference += tail < second
                assert got == reference - sum((1 << 63) < edge for edge in edges[1:])


def test_draws_beyond_the_table_start_again() -> None:
    """A word below every threshold adds the table's length to a fresh draw: geometric noise has no memory."""
    length = len(Geometric("1", 1, ScriptedCoins([]))._edges)  # pyright: ignore[reportPrivateUsage]
    words = [0, WORD - 1, 0, WORD // 2]  # below all, above all; fresh: below all again, then below none but a^0
    assert Geometric("1", 1, ScriptedCoins(words)).draw(1).tolist() == [2 * length]


@pytest.mark.parametrize(("epsilon", "sensitivity"), [("2", 1), ("1", 11), ("0.002", 1)])
def test_draws_follow_the_law(epsilon: str, sensitivity: int) -> None:
    """200,000 draws against Pr[z] = (1 - a)/(1 + a) a^|z|; false-alarm probability 1e-7 per case."""
    noise = Geometric(epsilon, sensitivity, SimulationCoins(5))
    a = float(1 / noise.ratio)
    drawn = noise.draw(200_000)
    reach = int(8 / -np.log(a)) + 1
    step = max(1, reach // 20)
    edges = np.arange(-reach, reach + 1, step)
    observed = np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=len(edges) + 1)
    cdf = np.array([_below(int(z), a) for z in edges])
    assert_fits(observed.astype(np.int64), np.diff(np.concatenate([[0.0], cdf, [1.0]])))


def _below(z: int, a: float) -> float:
    """Pr[noise < z]."""
    return a ** (1 - z) / (1 + a) if z <= 0 else 1 - a**z / (1 + a)


def test_variance_of_geometric_and_laplace_noise() -> None:
    """Sums of 400 draws are nearly normal; false-alarm probability 1e-7, 1.3 times the variance is rejected."""
    for noise in (Geometric("1", 5, SimulationCoins(1)), Laplace("1", 5, np.random.default_rng(1))):
        sums = noise.draw(400 * 950).reshape(950, 400).sum(axis=1)
        assert_variance(sums.astype(np.float64), np.full(950, 400 * noise.variance))
    assert Laplace("0.5", 3, np.random.default_rng(1)).variance == 2 * 6**2


def test_one_sided_geometric_variance_by_series() -> None:
    noise = Geometric("0.7", 1, ScriptedCoins([]))
    a = float(1 / noise.ratio)
    z = np.arange(-400, 401)
    assert np.isclose(noise.variance, np.sum(z**2 * (1 - a) / (1 + a) * a ** np.abs(z)), rtol=1e-12)


def test_the_same_coins_give_the_same_noise() -> None:
    assert (
        Geometric("1", 3, ReplayCoins(b"x")).draw(9).tolist() == Geometric("1", 3, ReplayCoins(b"x")).draw(9).tolist()
    )


def test_noise_needs_coins_or_a_generator() -> None:
    with pytest.raises(InvalidSpec, match="needs coins"):
        noise_of("1", 1, 42)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidSpec, match="epsilon"):
        assert noise_of("0", 1, ScriptedCoins([])).variance
