"""Numbers beside keys: rounding, privacy, means within ranges of private and of public numbers."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.catalog import parse
from tacit.core.compose import OneOf
from tacit.device.budget import as_budget
from tacit.device.coins import ReplayCoins
from tacit.device.exact import WORD
from tacit.device.levels import Tree, node_count
from tacit.device.rounded import RoundedDevice
from tacit.errors import InvalidSpec, InvalidValue
from tacit.numeric.mean import OneBit
from tacit.numeric.rounded import Rounded
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.public_means import public_mean
from tacit.tasks.range_means import plan_range_means, solve_range_means
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


def test_means_within_ranges_are_unbiased_with_the_stated_variance() -> None:
    """800 collections of 20,000; false-alarm probability 1e-7 each, and 1.4 times the variance fails.

    The bias of a ratio is second-order: well below the resolution of the test at this size.
    """
    m, rng = plan_range_means(10, 8, as_budget("2"), 20_000), np.random.default_rng(2)
    assert parse(m.spec()) == m and m.value_count == 90
    keys, numbers = crowd(20_000, 1)
    counts = np.bincount(keys * 9 + numbers, minlength=90)
    inside = (keys >= 2) & (keys <= 5)
    found = [solve_range_means(m, m.simulate_tally(counts, rng)).mean(2, 5) for _ in range(800)]
    errors = np.array([row.mean for row in found]) - numbers[inside].mean() / 8
    stated = np.mean([row.variance for row in found])
    assert_unbiased(errors[:, None], np.array([stated]))
    assert_variance(errors, stated, must_reject=1.4)
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


def tree(size: int, fanout: int, kind: type[Any]) -> OneOf:
    heights = [t for t in range(9) if node_count(size, fanout, t) > 1][::-1]
    members = tuple(kind(size=node_count(size, fanout, t), epsilon="2") for t in heights)
    return OneOf(family=Tree(size=size, fanout=fanout, heights=tuple(heights), mechanisms=members))


@pytest.mark.parametrize("mechanism", [tree(10, 3, GRR), GRR(size=10, epsilon="2")], ids=["tree", "flat"])
def test_means_of_public_numbers_are_unbiased_with_the_stated_variance(mechanism: Any) -> None:
    """700 collections of 5,000, negative numbers included; false-alarm probability 1e-7 each; 1.4 times fails."""
    keys, numbers = crowd(5000, 4)
    public, inside, coins = 3 * numbers - 5, (keys >= 2) & (keys <= 5), SimulationCoins(5)
    found = [public_mean(mechanism, mechanism.privatize(keys, coins), public, 2, 5) for _ in range(700)]
    errors, stated = np.array([row.mean for row in found]) - public[inside].mean(), np.mean([r.variance for r in found])
    assert_unbiased(errors[:, None], np.array([stated]))
    assert_variance(errors, stated, must_reject=1.4)


def test_the_stated_variance_holds_in_domains_of_many_keys() -> None:
    """64 keys, of which single ones are mostly noise; false-alarm probability 1e-7, and 1.5 times as much fails."""
    rng, coins, m = np.random.default_rng(1), SimulationCoins(5), tree(64, 4, GRR)
    keys = np.minimum(rng.geometric(0.05, 3000) - 1, 63)
    public = np.round(rng.gamma(2, 3, 3000) * (1 + keys / 64)).astype(int)
    found = [public_mean(m, m.privatize(keys, coins), public, 10, 40) for _ in range(400)]
    errors = np.array([row.mean for row in found]) - public[(keys >= 10) & (keys <= 40)].mean()
    assert_variance(errors, np.mean([row.variance for row in found]), must_reject=1.5)


def test_a_public_number_that_is_the_same_for_all_is_known_exactly() -> None:
    m = tree(10, 3, GRR)
    keys = crowd(2000, 6)[0]
    row = public_mean(m, m.privatize(keys, SimulationCoins(7)), np.full(2000, -7), 2, 5)
    assert row.mean == pytest.approx(-7) and row.variance == pytest.approx(0, abs=1e-9)


def test_bad_public_numbers_are_refused() -> None:
    m = tree(10, 3, GRR)
    reports = m.privatize(np.arange(10), SimulationCoins(7))
    for numbers in (np.ones(9, int), np.ones(10), ["1"] * 10):
        with pytest.raises(InvalidSpec, match="integers"):
            public_mean(m, reports, numbers, 0, 3)
    with pytest.raises(InvalidSpec, match="from 0 to 9"):
        public_mean(m, reports, np.ones(10, int), 3, 12)
    haar = tree(8, 2, HRRSigned)
    with pytest.raises(InvalidSpec, match="signed"):
        public_mean(haar, haar.privatize(np.arange(8), SimulationCoins(7)), np.ones(8, int), 0, 3)
    assert public_mean(m, reports[:0], np.zeros(0, int), 0, 3).mean is None
