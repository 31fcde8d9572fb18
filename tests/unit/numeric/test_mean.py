"""OneBit and alpha-point rounding: exact laws, worked numbers, the stated variance, batches, edges."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.device.kinds.mean import OneBitDevice, alpha_round, checked_step
from tacit.device.numbers.coins import ReplayCoins, ScriptedCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.numeric.mean import OneBit
from tacit.testing.statistics import assert_variance

LN3 = "1.098612288668109691"


@pytest.mark.parametrize("epsilon", ["0.001", "1", "8", "32"])
@pytest.mark.parametrize("top", [1, 7, 1000, (1 << 32) - 1])
def test_privacy_and_unbiasedness_hold_exactly(epsilon, top):
    m = OneBitDevice(top=top, epsilon=epsilon)
    assert m.holds()
    if top <= 1000:
        assert float(m.realised_odds()) == pytest.approx(m.odds / WORD, rel=1e-4)
    for x in {0, 1, top // 2, top}:
        t = m.threshold(x)
        assert 0 < t < WORD
        # The estimator of one bit is (b 2^64 - low)/slope.
        mean = Fraction(t, WORD) * Fraction(WORD - m.low, m.slope) - Fraction(WORD - t, WORD) * Fraction(m.low, m.slope)
        assert mean == x


def test_enumeration_agrees_with_the_realised_odds():
    m = OneBit(top=5, epsilon="1")
    laws = np.exp([m.log_prob(m.all_reports(), x) for x in range(6)])
    np.testing.assert_allclose(laws.sum(axis=1), 1)
    assert (laws.max(axis=0) / laws.min(axis=0)).max() == pytest.approx(float(m.realised_odds()), rel=1e-12)


def test_worked_numbers():
    m = OneBit(top=10, epsilon=LN3)
    estimate = m.estimate(m.tally(np.array([1, 1, 0, 1], np.uint8)))
    assert estimate.value == pytest.approx([10])
    four = OneBit(top=4, epsilon=LN3)
    assert [four.threshold(x) / WORD for x in range(5)] == pytest.approx([0.25, 0.375, 0.5, 0.625, 0.75])
    assert [four.variance_at(x) for x in range(5)] == pytest.approx([12, 15, 16, 15, 12])
    assert four.worst_variance == pytest.approx(16)


def test_batch_equals_loop():
    m = OneBit(top=1000, epsilon="1")
    values = np.arange(500) * 2
    coins = ReplayCoins(b"onebit")
    loop = b"".join(m.privatize_one(int(v), coins) for v in values)
    assert m.privatize(values, ReplayCoins(b"onebit")).tobytes() == loop
    edge = m.threshold(3)
    assert m.privatize_one(3, ScriptedCoins([edge - 1])) == b"\1"
    assert m.privatize_one(3, ScriptedCoins([edge])) == b"\0"


def test_stated_variance_is_exact_for_equal_numbers_and_never_too_small():
    """Two-sided chi-square over 950 runs; false alarm 1e-6 each, power against a factor 1.3 checked."""
    m, rng, runs = OneBit(top=8, epsilon="3"), np.random.default_rng(11), 950
    for counts in (np.array([0, 0, 0, 500]), np.array([250] + [0] * 7 + [250])):
        mean = counts @ np.arange(len(counts)) / counts.sum()
        estimates = [m.estimate(m.simulate_tally(counts, rng)) for _ in range(runs)]
        errors = np.array([e.value[0] - mean for e in estimates])
        exact = sum(c * m.variance_at(x) for x, c in enumerate(counts)) / counts.sum() ** 2
        assert_variance(errors, exact, alpha=1e-6)
        stated = np.mean([e.variance[0] for e in estimates])
        assert stated >= 0.99 * exact
        if counts.max() == 500:
            assert stated == pytest.approx(exact, rel=0.01)


def test_population_interval_adds_nothing_because_the_spread_is_inside():
    m = OneBit(top=8, epsilon="1")
    e = m.estimate(m.simulate_tally(np.full(9, 100), np.random.default_rng(1)))
    np.testing.assert_array_equal(e.interval(target="population"), e.interval())


def test_weights_agree_with_repetition_and_tallies_add():
    m = OneBit(top=9, epsilon="1")
    reports = m.privatize(np.arange(60) % 10, ReplayCoins(b"x"))
    weights = np.arange(60) % 4
    weighted = m.estimate(m.tally(reports, weights))
    assert weighted.value == pytest.approx(m.estimate(m.tally(np.repeat(reports, weights))).value)
    expected = (weights**2).sum() / weights.sum() ** 2
    share = (weights**2 @ reports) / (weights**2).sum()
    low, high = m.low / WORD, m.threshold(9) / WORD
    share = min(max(share, low), high)
    assert weighted.variance == pytest.approx([share * (1 - share) * (WORD / m.slope) ** 2 * expected])
    parts = m.tally(reports[:7]) + m.tally(reports[7:])
    assert (parts.cells == m.tally(reports).cells).all()


def test_refusals():
    for wrong in ({"top": 0}, {"top": 1 << 32}, {"top": 1.5}, {"epsilon": "0"}):
        with pytest.raises(InvalidSpec):
            OneBitDevice(**({"top": 4, "epsilon": "1"} | wrong))
    m = OneBit(top=4, epsilon="1")
    for value in (-1, 5, True, "3"):
        with pytest.raises(InvalidValue):
            m.privatize_one(value, ReplayCoins(b""))
    with pytest.raises(InvalidValue):
        m.privatize([0.5], ReplayCoins(b""))
    with pytest.raises(ReportRejected):
        m.tally(np.array([2], np.uint8))
    assert not m.estimate(m.tally(np.empty(0, np.uint8))).has_data
    assert OneBit.from_spec(m.spec()) == m


@pytest.mark.parametrize("step", [1, 2, 3, 4, 6, 12])
def test_alpha_rounding_is_exactly_unbiased_and_free(step):
    top = checked_step(step, 12) and 12
    m = OneBit(top=top, epsilon="1")
    for x in range(top + 1):
        rounded = [alpha_round(x, alpha, step) for alpha in range(step)]
        assert Fraction(sum(rounded), step) == x
        assert all(y % step == 0 and 0 <= y <= top and abs(y - x) < step for y in rounded)
        # Mean noise of the bit plus variance of the rounding is the variance without rounding.
        noise = np.mean([m.variance_at(y) for y in rounded]) + np.var(rounded)
        assert noise == pytest.approx(m.variance_at(x))


def test_alpha_rounding_refuses_a_step_that_leaves_the_grid():
    for step in (0, 5, 24):
        with pytest.raises(InvalidSpec, match="divisor"):
            checked_step(step, 12)
