"""Numbers beside keys: rounding, privacy, means within ranges of private keys."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.catalog import parse
from tacit.device.kinds.rounded import RoundedDevice
from tacit.device.numbers.budget import as_budget
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue
from tacit.numeric.mean import OneBit
from tacit.numeric.rounded import Rounded
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.ranges.means import plan_range_means, solve_range_means
from tacit.testing.laws import check_laws
from tacit.testing.statistics import assert_unbiased, assert_variance


def test_rounding_keeps_the_mean_exactly_at_the_ends_and_within_a_word_between() -> None:
    m = RoundedDevice(top=10, inner=GRR(size=6, epsilon="1"))
    assert m.threshold(0) == 0 and m.threshold(10) == WORD and m.threshold(5) == WORD // 2
    assert all(abs(Fraction(m.threshold(x), WORD) - Fraction(x, 10)) < Fraction(1, WORD) for x in range(11))
    assert (m.keys, m.size, m.value_count) == (3, 33, 33)


@pytest.mark.parametrize(
    "m", [Rounded(top=3, inner=GRR(size=4, epsilon="1")), Rounded(top=2, inner=OUE(size=4, epsilon="1"))]
)
def test_privacy_is_that_of_the_inner_oracle_and_tight(m: Rounded) -> None:
    reports = m.all_reports()
    logs = np.array([m.log_prob(reports, value) for value in range(m.size)])
    assert np.allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)
    assert np.max(np.ptp(logs, axis=0)) == pytest.approx(m.realised_epsilon(), abs=1e-12)
    assert m.realised_odds() == m.inner.realised_odds() <= Fraction(m.odds, WORD)
    assert len(check_laws(m)) == 9


def test_cells_are_unbiased_by_enumeration() -> None:
    m = Rounded(top=4, inner=GRR(size=6, epsilon="1"))
    reports = m.all_reports()
    estimates = np.array([m.estimate(m.tally(reports[i : i + 1])).value for i in range(len(reports))])
    for key in range(3):
        for number in range(5):
            mean = np.exp(m.log_prob(reports, key * 5 + number)) @ estimates
            truth = np.zeros(6)
            truth[2 * key : 2 * key + 2] = 1 - number / 4, number / 4
            assert np.allclose(mean, truth, atol=1e-12)


def test_bits_take_no_fixed_words_and_are_batched_all_the_same() -> None:
    for inner in (OUE(size=8, epsilon="1"), GRR(size=8, epsilon="1")):
        m, coins = Rounded(top=7, inner=inner), ReplayCoins(b"r")
        values = np.arange(32)
        batch = m.privatize(values, ReplayCoins(b"r"))
        assert batch.tobytes() == b"".join(m.privatize_one(value, coins) for value in values.tolist())


@pytest.mark.parametrize(
    "fields",
    [
        {"top": 0},
        {"top": 1 << 32},
        {"inner": GRR(size=5, epsilon="1")},
        {"inner": "grr"},
        {"inner": OneBit(top=3, epsilon="1")},
        {"epsilon": "0.5"},
    ],
)
def test_bad_specs_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match="rounded"):
        Rounded(**({"top": 3, "inner": GRR(size=4, epsilon="1")} | fields))


def test_bad_values_are_refused_without_being_shown() -> None:
    m = Rounded(top=3, inner=GRR(size=4, epsilon="1"))
    for value in (8, -1, True, "1", 1.5, None, 918273645):
        with pytest.raises(InvalidValue) as raised:
            m.privatize_one(value, ReplayCoins(b""))
        assert "918273645" not in str(raised.value)


def crowd(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    keys = rng.binomial(9, 0.4, n)
    return keys, np.minimum(8, rng.poisson(keys * 0.7))


@pytest.mark.parametrize(("runs", "power"), [(205, 1.8), pytest.param(580, 1.4, marks=pytest.mark.slow)])
def test_means_within_ranges_are_unbiased_with_the_stated_variance(runs: int, power: float) -> None:
    """Collections of 8,000; false-alarm probability 1e-7 each, and `power` times the variance fails.

    The bias of a ratio is second-order: well below the resolution of the test at this size.
    """
    m, rng = plan_range_means(10, 8, as_budget("2"), 8000), np.random.default_rng(2)
    assert parse(m.spec()) == m and m.value_count == 90
    keys, numbers = crowd(8000, 1)
    counts = np.bincount(keys * 9 + numbers, minlength=90)
    inside = (keys >= 2) & (keys <= 5)
    found = [solve_range_means(m, m.simulate_tally(counts, rng)).mean(2, 5) for _ in range(runs)]
    errors = np.array([row.mean for row in found]) - numbers[inside].mean() / 8
    stated = np.mean([row.variance for row in found])
    assert_unbiased(errors[:, None], np.array([stated]))
    assert_variance(errors, stated, must_reject=power)
    shares = np.array([row.share for row in found]) - inside.mean()
    assert_unbiased(shares[:, None], np.array([np.mean([row.share_variance for row in found])]))
    low, high = found[0].interval(0.95, 0.0, 1.0)
    assert 0 <= low < found[0].mean < high <= 1


def test_a_range_that_may_be_empty_has_no_mean() -> None:
    m = plan_range_means(10, 8, as_budget("1"), 500)
    counts = np.zeros(90, np.int64)
    counts[3 * 9 + 4] = 500
    found = solve_range_means(m, m.simulate_tally(counts, np.random.default_rng(3)))
    assert found.mean(8, 9).mean is None and found.mean(8, 9).interval(0.95, 0.0, 1.0) == (0.0, 1.0)
    nobody = solve_range_means(m, m.simulate_tally(np.zeros(90, np.int64), np.random.default_rng(3)))
    assert nobody.mean(0, 9).mean is None
    for ends in ((-1, 3), (3, 2), (0, 10)):
        with pytest.raises(InvalidSpec, match="from 0 to 9"):
            found.mean(*ends)
    with pytest.raises(InvalidSpec, match="grr"):
        g = GRR(size=4, epsilon="1")
        solve_range_means(g, g.tally(g.privatize([1], SimulationCoins(1))))
