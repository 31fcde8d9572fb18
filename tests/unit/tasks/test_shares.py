"""The share of every thing to tick: its plan, its estimate and its variance."""

from typing import Any

import numpy as np
import pytest

from tacit.core.compose import OneOf
from tacit.device.domains.domain import Categories, Domain
from tacit.device.domains.items import Items
from tacit.device.domains.optional import OptionalDomain
from tacit.device.families.ticks import Ticks
from tacit.device.numbers.budget import Epsilon
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.oracles.grr import GRR
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.shares import SHARES
from tacit.tasks.task import QuestionTally
from tacit.testing.statistics import assert_unbiased, assert_variance

PETS = Items("pets", ("cat", "dog", "fish"))


def answered(domain: Domain, values: Any, seed: int = 1) -> Any:
    mechanism = SHARES.plan(domain, Epsilon("1"), len(values))
    tally = mechanism.tally(mechanism.privatize(values, SimulationCoins(seed)))
    return SHARES.answer(domain, QuestionTally(mechanism, tally, tally.n))


def test_all_of_epsilon_is_spent_on_one_thing():
    mechanism = SHARES.plan(PETS, Epsilon("1"), 1000)
    assert mechanism.spec()["family"] == Ticks(size=3, mechanisms=(GRR(size=2, epsilon="1"),)).spec()
    assert mechanism.budget.to_spec() == "1" and mechanism.realised_epsilon() <= 1
    assert mechanism.domain_size == 3
    with pytest.raises(InvalidSpec, match="must be items"):
        SHARES.plan(Categories("pet", ("cat", "dog")), Epsilon("1"), 1000)


def test_sets_are_refused_without_being_shown():
    mechanism = SHARES.plan(PETS, Epsilon("1"), 1000)
    for wrong in [(3,), (-1,), (1, 1), 1, "01", None, (True,), {"cat": 1}]:
        with pytest.raises(InvalidValue) as raised:
            mechanism.privatize_one(wrong, ReplayCoins(b"x"))
        assert "3" not in str(raised.value)
    with pytest.raises(InvalidValue, match="outside"):
        mechanism.privatize([(7,)], ReplayCoins(b"x"))


@pytest.mark.parametrize(("seeds", "power"), [(103, 1.6), pytest.param(400, 1.3, marks=pytest.mark.slow)])
def test_shares_are_unbiased_and_have_the_variance_they_state(seeds: int, power: float):
    """False alarm 1e-7 each, the default; three errors a run, and `power` times the variance fails."""
    domain, n = PETS, 300
    values = [(0, 1)] * 150 + [(0,)] * 90 + [()] * 60
    truth = np.array([0.8, 0.5, 0.0])
    runs = [answered(domain, values, seed).raw for seed in range(seeds)]
    errors = np.array([run.value - truth for run in runs])
    stated = np.mean([run.variance for run in runs], axis=0)
    assert_unbiased(errors, stated)
    assert_variance(errors, stated, must_reject=power)
    assert runs[0].n == runs[0].total == n


def test_consistent_shares_are_within_zero_and_one_and_need_not_add_up():
    answer = answered(PETS, [(0, 1)] * 900)
    assert answer.consistent.value.min() >= 0 and answer.consistent.value.max() <= 1
    assert answer.consistent.value.sum() > 1.5
    low, high = answer.raw.interval(0.999999)
    assert low[0] <= 1 <= high[0] + 1e-12 and low[2] - 1e-12 <= 0 <= high[2]


def test_declining_is_one_more_thing():
    domain = OptionalDomain(PETS, "prefer not to say")
    values = [domain.encode(value) for value in [["cat"], None, "prefer not to say", []]] * 200
    assert values[1] == (3,)
    answer = answered(domain, values)
    assert list(answer.raw.labels) == ["cat", "dog", "fish", "prefer not to say"]
    # Six standard errors miss with probability 2e-9.
    assert abs(answer.raw.value[3] - 0.5) < 6 * answer.raw.standard_error[3]


def test_a_thing_that_nobody_was_asked_about_has_no_share():
    mechanism = SHARES.plan(PETS, Epsilon("1"), 1)
    tally = mechanism.tally(mechanism.privatize([(0,)], ReplayCoins(b"one")))
    assert not SHARES.answer(PETS, QuestionTally(mechanism, tally, 1)).raw.has_data


def test_the_forecast_is_the_error_and_says_what_dividing_epsilon_would_cost():
    mechanism = SHARES.plan(PETS, Epsilon("1"), 3000)
    forecast = SHARES.forecast(PETS, mechanism, 3000)
    # 1000 people per thing: e/(e - 1)^2 of randomised response, and 1/4 (1 - 1/3) for having asked a third.
    assert forecast.standard_error == pytest.approx(np.sqrt((0.92067359 + 1 / 6) / 1000), rel=1e-6)
    one, divided = forecast.options
    assert one["picked"] and divided["standard_error"] > 1.5 * one["standard_error"]


def test_mixed_with_other_questions_a_report_is_one_of_either():
    from tacit.core.compose import Questions

    inner = OneOf(family=Ticks(size=3, mechanisms=(GRR(size=2, epsilon="1"),)))
    mixed = OneOf(family=Questions(mechanisms=(GRR(size=4, epsilon="1"), inner)))
    values = [[3, [0, 2]], [0, []]] * 50
    batch, coins = mixed.privatize(values, ReplayCoins(b"mixed")), ReplayCoins(b"mixed")
    assert batch.tobytes() == b"".join(mixed.privatize_one(value, coins) for value in values)
    single, ticks = mixed.estimate(mixed.tally(batch))
    assert len(single) == 4 and [len(member) for member in ticks] == [2, 2, 2]
