"""Planning by outcome: the least epsilon for an error, and its risk in words."""

from math import exp, log

import pytest

from tacit.errors import InvalidSpec
from tacit.library.asking import ask, plan_epsilon
from tacit.tasks.outcome import least_epsilon, posterior, risk_words


def test_the_least_epsilon_is_found_among_numbers_of_three_digits():
    asked: list[str] = []

    def error(epsilon: str) -> float:
        asked.append(epsilon)
        return 1 / float(epsilon)

    for target, wanted in ((1 / 2.345, "2.35"), (1.0, "1"), (1 / 0.0123, "0.0123"), (1 / 31.95, "32")):
        choice = least_epsilon(error, target)
        assert choice.epsilon == wanted and choice.error == 1 / float(wanted) <= target
    assert len(asked) <= 4 * 14  # A bisection: a planner may take a second.
    with pytest.raises(InvalidSpec, match=r"no epsilon reaches an error of 0\.01; the largest, 32"):
        least_epsilon(error, 0.01)


def test_one_step_less_would_not_do():
    declared = {"domain": list("abcdefgh")}
    choice = plan_epsilon("histogram", target_error=0.02, n=5_000, **declared)
    assert ask("histogram", epsilon=choice.epsilon, n=5_000, **declared).expected_error == choice.error <= 0.02
    less = float(choice.epsilon) - 0.01
    assert ask("histogram", epsilon=round(less, 2), n=5_000, **declared).expected_error > 0.02


def test_a_suspicion_grows_by_the_odds():
    assert posterior(1.0) == pytest.approx(exp(1) / (1 + exp(1)))
    assert posterior(log(3), 0.25) == pytest.approx(0.5)
    assert "about 73 % sure" in risk_words("1") and "odds of 2.7 to 1" in risk_words("1")
    assert "100 %" not in risk_words("32") and "99.99 %" in risk_words("32")


TASKS = [
    ("mean", {"low": 0, "high": 100}, 2.0),
    pytest.param("ranges", {"low": 0, "high": 15}, 0.03, marks=pytest.mark.slow),
    ("heavy_hitters", {"alphabet": "ab", "length": 4, "k": 2}, 0.03),
    ("itemsets", {"domain": list("abcdef")}, 0.05),
    ("marginals", {"domain": {"a": bool, "b": bool}}, 0.03),
    pytest.param("table", {"private": {"age": (0, 9)}}, 0.05, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("task", "declared", "target"), TASKS)
@pytest.mark.slow_cases("heavy_hitters-declared2-0.03")
def test_every_task_with_a_forecast_is_planned(task: str, declared: dict, target: float):
    choice = plan_epsilon(task, target_error=target, n=5_000, **declared)
    assert 0.8 * target < choice.error <= target
