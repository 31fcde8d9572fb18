"""SHE and DiscreteLaplace: exact tables, privacy and bias by enumeration, variances, batches, edges."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.device.kinds.laplace import DiscreteLaplaceDevice, SHEDevice
from tacit.device.numbers.coins import ReplayCoins, ScriptedCoins
from tacit.device.numbers.exact import WORD, root_floor
from tacit.errors import InvalidSpec, InvalidValue, Overflow, ReportRejected
from tacit.numeric.laplace import DiscreteLaplace
from tacit.oracles.histogram_encoding import SHE
from tacit.testing.statistics import assert_unbiased, assert_variance

EPSILONS = ["0.01", "0.5", "1", "4", "16", "32"]


def chance(mechanism, value):
    return np.exp(mechanism.log_prob(mechanism.all_reports(), value))


def exact_words(mechanism: DiscreteLaplace, value: int) -> list[int]:
    """Words of every output by walking through the noise, an independent route to the table."""
    sums = [0, *mechanism.cumulative, WORD]
    words = [0] * mechanism.outputs
    for z in range(-mechanism.reach, mechanism.reach + 1):
        code = min(max(value + z + mechanism.bound, 0), mechanism.outputs - 1)
        words[code] += sums[z + mechanism.reach + 1] - sums[z + mechanism.reach]
    return words


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("grid", [2, 8, 30])
@pytest.mark.slow_cases("30-0.01")
def test_she_table_is_complete_and_within_the_half_odds(epsilon, grid):
    m = SHEDevice(size=3, epsilon=epsilon, grid=grid)
    half = root_floor(m.odds, 2)
    assert sum(m.cells) == WORD and min(m.cells) >= 1
    assert all(a * WORD <= b * half for a, b in zip(m.cells, reversed(m.cells), strict=True))
    assert m.holds()
    # Nothing but rounding is given away.
    assert float(m.realised_odds()) == pytest.approx(m.odds / WORD, rel=1e-5)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_she_cells_follow_the_clamped_discrete_laplace(epsilon):
    m = SHEDevice(size=3, epsilon=epsilon, grid=4, bound=5)
    a = np.exp(-float(epsilon) / 8)
    expected = (1 - a) / (1 + a) * a ** np.abs(np.arange(-5, 10))
    expected[0], expected[-1] = a**5 / (1 + a), a**9 / (1 + a)
    np.testing.assert_allclose(np.array(m.cells, float) / WORD, expected, rtol=1e-12)


def test_she_privacy_and_unbiasedness_by_enumeration():
    m = SHE(size=3, epsilon="1.2", grid=2, bound=2)
    reports = m.all_reports()
    laws = np.array([chance(m, value) for value in range(3)])
    np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-12)
    worst = max(float((laws[i] / laws[j]).max()) for i in range(3) for j in range(3))
    assert worst == pytest.approx(float(m.realised_odds()), rel=1e-12)
    every = np.arange(3, dtype=np.uint64)
    single = np.array([m._unbiased(report.astype(np.int64), 1, every) for report in reports])
    np.testing.assert_allclose(laws @ single, np.eye(3), atol=1e-12)
    for value in range(3):
        centred = single - np.eye(3)[value]
        covariance = (centred * laws[value][:, None]).T @ centred
        np.testing.assert_allclose(covariance, m.variance_at_zero * np.eye(3), atol=1e-10)


def test_she_is_exactly_unbiased_in_rationals():
    m = SHE(size=2, epsilon="0.7", grid=6, bound=9)
    own = Fraction(sum(j * words for j, words in enumerate(reversed(m.cells))), WORD)
    assert own == m.mean_own and m.mean_own > m.mean_other


@pytest.mark.parametrize(("epsilon", "least"), [("0.5", 0.98), ("1", 0.98), ("2", 0.98)])
def test_she_variance_is_close_to_and_below_that_of_laplace(epsilon, least):
    ratio = SHE(size=4, epsilon=epsilon).variance_at_zero * float(epsilon) ** 2 / 8
    assert least < ratio < 1


@pytest.mark.parametrize("grid_bound", [(8, 0), (2, 3), (16, 400)])
def test_she_batch_equals_loop(grid_bound):
    grid, bound = grid_bound
    m = SHE(size=5, epsilon="1", grid=grid, bound=bound)
    values = np.arange(40) % 5
    batch = m.privatize(values, ReplayCoins(b"she"))
    coins = ReplayCoins(b"she")
    assert batch.tobytes() == b"".join(m.privatize_one(int(v), coins) for v in values)
    assert m.valid(m.decode(batch.tobytes())).all()


def test_she_walks_along_the_edges_of_its_table():
    m = SHEDevice(size=2, epsilon="1", grid=2, bound=2)
    first = m.cumulative[0]
    assert m.privatize_one(1, ScriptedCoins([first - 1, first - 1])) == bytes([0, 6])
    assert m.privatize_one(1, ScriptedCoins([first, WORD - 1])) == bytes([1, 0])


def test_she_tallies_add_and_weights_agree_with_repetition():
    m = SHE(size=4, epsilon="1")
    reports = m.privatize(np.arange(60) % 4, ReplayCoins(b"w"))
    weights = np.arange(60) % 3
    whole, parts = m.tally(reports), m.tally(reports[:25]) + m.tally(reports[25:])
    assert (whole.cells == parts.cells).all() and whole.n == parts.n == 60
    repeated = m.tally(np.repeat(reports, weights, axis=0))
    np.testing.assert_array_equal(m.tally(reports, weights).cells, repeated.cells)
    with pytest.raises(Overflow):
        m.tally(reports, np.full(60, 1 << 27))


def test_she_simulation_has_the_stated_mean_and_variance():
    """Two-sided chi-square over 4 cells of 300 runs; false alarm 1e-6, power against 1.3 checked."""
    m, counts, runs = SHE(size=4, epsilon="2"), np.array([400, 100, 0, 20]), 300
    rng = np.random.default_rng(3)
    n = int(counts.sum())
    errors = np.array([m.estimate(m.simulate_tally(counts, rng)).value - counts / n for _ in range(runs)])
    variance = np.full(4, m.variance_at_zero / n)
    assert_variance(errors, variance, alpha=1e-6)
    assert_unbiased(errors, variance, alpha=1e-6)


def test_she_refuses():
    for wrong in ({"grid": 3}, {"grid": 0}, {"bound": 40_000}, {"size": 1}, {"size": 1 << 15}):
        with pytest.raises(InvalidSpec):
            SHEDevice(**({"size": 4, "epsilon": "1"} | wrong))
    m = SHE(size=4, epsilon="1")
    with pytest.raises(InvalidValue):
        m.privatize_one(4, ReplayCoins(b""))
    bad = np.full((1, 4), m.outputs, np.uint8)
    with pytest.raises(ReportRejected):
        m.tally(bad)
    assert SHE.from_spec(m.spec()) == m


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("top", "bound"), [(1, 0), (2, 0), (7, 0), (7, 3), (20, 1), (5, 12)])
def test_dlap_privacy_by_enumeration(epsilon, top, bound):
    if float(epsilon) * (top + bound) / top > 40:
        return  # No table of 64-bit words is that wide; refused, see below.
    m = DiscreteLaplace(top=top, bound=bound, epsilon=epsilon)
    laws = [exact_words(m, value) for value in range(top + 1)]
    assert all(sum(law) == WORD for law in laws)
    worst = max(Fraction(max(column), min(column)) for column in zip(*laws, strict=True))
    assert worst == m.realised_odds() and m.holds()
    assert float(worst) == pytest.approx(m.odds / WORD, rel=1e-3)
    for value in range(top + 1):
        np.testing.assert_allclose(chance(m, value), np.array(laws[value], float) / WORD, rtol=1e-12)


@pytest.mark.parametrize(("epsilon", "top", "bound"), [("1", 10, 0), ("1", 10, 40), ("0.1", 100, 0), ("8", 50, 3)])
def test_dlap_decodes_numbers_and_squares_without_bias(epsilon, top, bound):
    m = DiscreteLaplace(top=top, bound=bound, epsilon=epsilon)
    over = Fraction(WORD, m.rate - WORD)
    exact = [Fraction(y) for y in range(-bound, top + bound + 1)]
    exact[0], exact[-1] = exact[0] - over, exact[-1] + over
    for value in range(top + 1):
        law = exact_words(m, value)
        bias = sum(w * y for w, y in zip(law, exact, strict=True)) / WORD - value
        assert abs(bias) < Fraction(top, 1 << 40)
        chances = np.array(law, float) / WORD
        assert chances @ m.decoded_square == pytest.approx(value**2, abs=1e-6 * m.noise_variance)
        spread = float(chances @ m.decoded**2) - value**2
        assert spread == pytest.approx(m.variance_at(value), rel=1e-9)
        assert spread < m.noise_variance


def test_dlap_worked_numbers():
    # Before clamping: the variance of the discrete Laplace, 7.9933 in units of half the range.
    ten, a = DiscreteLaplace(top=10, epsilon="1"), np.exp(-0.1)
    assert ten.noise_variance * 4 / 100 == pytest.approx(7.9933, abs=1e-4)
    assert ten.tails[8] / WORD == pytest.approx(a**8 / (1 + a), rel=1e-12)
    assert ten.variance_at(5) == pytest.approx(2 * a / (1 - a) ** 2 * (1 - a**5 / (1 + a)))
    # One step is randomised response.
    assert DiscreteLaplace(top=1, epsilon="1").tails[1] / WORD == pytest.approx(1 / (np.e + 1), rel=1e-12)
    # The narrower the clamp, the smaller the variance, for every number.
    for value in range(11):
        by_bound = [DiscreteLaplace(top=10, bound=b, epsilon="1").variance_at(value) for b in (0, 1, 5, 30)]
        assert by_bound == sorted(by_bound)


@pytest.mark.parametrize(("top", "bound"), [(10, 0), (10, 7), (1000, 0)])
def test_dlap_batch_equals_loop(top, bound):
    m = DiscreteLaplace(top=top, bound=bound, epsilon="2")
    values = np.arange(200) * 7 % (top + 1)
    coins = ReplayCoins(b"dlap")
    loop = b"".join(m.privatize_one(int(v), coins) for v in values)
    assert m.privatize(values, ReplayCoins(b"dlap")).tobytes() == loop


def test_dlap_estimate_states_its_error():
    """Chi-square over 950 runs, plug-in variance; false alarm 1e-6, and a variance off by 1.3 is noticed."""
    m, rng, runs = DiscreteLaplace(top=6, epsilon="2"), np.random.default_rng(5), 950
    counts = np.array([300, 100, 0, 50, 0, 0, 150])
    mean = counts @ np.arange(7) / counts.sum()
    estimates = [m.estimate(m.simulate_tally(counts, rng)) for _ in range(runs)]
    errors, stated = (
        np.array(column) for column in zip(*((e.value[0] - mean, e.variance[0]) for e in estimates), strict=True)
    )
    assert_variance(errors, stated, alpha=1e-6)
    truth = sum(c * m.variance_at(x) for x, c in enumerate(counts)) / counts.sum() ** 2
    assert stated.mean() == pytest.approx(truth, rel=0.01)
    spread = counts @ np.arange(7) ** 2 / counts.sum() - mean**2
    assert np.mean([e.spread[0] for e in estimates]) == pytest.approx(spread, rel=0.05)


def test_dlap_weights_agree_with_repetition():
    m = DiscreteLaplace(top=9, epsilon="1")
    reports = m.privatize(np.arange(50) % 10, ReplayCoins(b"x"))
    weights = np.arange(50) % 4
    weighted = m.estimate(m.tally(reports, weights))
    repeated = m.estimate(m.tally(np.repeat(reports, weights)))
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.variance > repeated.variance


def test_dlap_refuses():
    with pytest.raises(InvalidSpec, match="coarser grid"):
        DiscreteLaplaceDevice(top=1, bound=5, epsilon="32")
    with pytest.raises(InvalidSpec):
        DiscreteLaplaceDevice(top=0, epsilon="1")
    m = DiscreteLaplace(top=3, epsilon="1")
    with pytest.raises(InvalidValue):
        m.privatize([4], ReplayCoins(b""))
    with pytest.raises(ReportRejected):
        m.tally(np.array([4], np.uint8))
    with pytest.raises(InvalidSpec):
        m.estimate(m.tally(np.array([3], np.uint8)), [0])
    assert not m.estimate(m.tally(np.empty(0, np.uint8))).has_data
    assert DiscreteLaplace.from_spec(m.spec()) == m
