"""One question at the full epsilon, or all at shares of it: the exact comparison and its crossover."""

import math

import pytest

from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.unary import OUE
from tacit.tasks.questions import split_users_or_budget

N = 1_000_000

# Noise alone (frequency 0): variance of splitting epsilon over that of asking one question.
RATIOS = [
    (2, {"0.5": 2.03, "1": 2.13, "2": 2.54, "4": 4.76}),
    (4, {"0.5": 4.08, "1": 4.32, "2": 5.41, "4": 12.1}),
    (8, {"0.5": 8.17, "1": 8.68, "2": 11.0, "4": 25.8}),
]
# The epsilon above which splitting wins, by number of questions, at frequency 0.5, 0.1 and 0.01.
CROSSOVERS = [(2, (3.5, 6.1, 10.6)), (4, (4.9, 8.7, 16.9)), (8, (6.8, 12.5, 27.4))]


@pytest.mark.parametrize(("questions", "ratios"), RATIOS)
def test_noise_ratios_of_the_dissertation(questions: int, ratios: dict[str, float]) -> None:
    for epsilon, expected in ratios.items():
        advice = split_users_or_budget(OUE, sizes=[16] * questions, epsilon=epsilon, n=N, frequency=0)
        assert advice.ratio == pytest.approx(expected, rel=0.005)
        # The closed form: 4 z/(z - 1)^2 with z = e^(epsilon/Q) over Q 4 E/(E - 1)^2.
        whole, part = math.exp(float(epsilon)), math.exp(float(epsilon) / questions)
        exact = part * (whole - 1) ** 2 / ((part - 1) ** 2 * whole * questions)
        assert advice.ratio == pytest.approx(exact, rel=1e-9)
        assert advice.better == "one_of"


@pytest.mark.parametrize(("questions", "expected"), CROSSOVERS)
def test_crossovers_with_the_sampling_error_counted(questions: int, expected: tuple[float, ...]) -> None:
    for frequency, crossover in zip((0.5, 0.1, 0.01), expected, strict=True):
        advice = split_users_or_budget(OUE, sizes=[16] * questions, epsilon="1", n=N, frequency=frequency)
        assert advice.crossover is not None
        assert round(advice.crossover, 1) == crossover


def test_both_sides_of_the_crossover() -> None:
    below = split_users_or_budget(OUE, sizes=[4, 4], epsilon="3.4", n=N, frequency=0.5)
    above = split_users_or_budget(OUE, sizes=[4, 4], epsilon="3.6", n=N, frequency=0.5)
    assert (below.better, above.better) == ("one_of", "all_of")
    assert below.crossover == above.crossover
    assert above.standard_error == math.sqrt(above.all_questions_variance)


def test_without_sampling_error_there_is_no_crossover() -> None:
    assert split_users_or_budget(OUE, sizes=[4, 4], epsilon="1", n=N, frequency=0).crossover is None


def test_one_question_is_the_same_either_way() -> None:
    advice = split_users_or_budget(GRR, sizes=[5], epsilon="2", n=1000, frequency=0.3)
    assert advice.ratio == 1


def test_sampling_error_is_that_of_groups_without_replacement() -> None:
    advice = split_users_or_budget(HRR, sizes=[8, 8, 8], epsilon="2", n=300, frequency=0.4)
    f, n, group = 0.4, 300, 100
    noise = HRR(size=8, epsilon="2").moments.variance(0.4)  # type: ignore[arg-type]
    assert advice.one_question_variance == pytest.approx(
        float(noise) / group + f * (1 - f) / group * (n - group) / (n - 1)
    )


def test_sizes_may_differ() -> None:
    small = split_users_or_budget(GRR, sizes=[2, 2], epsilon="1", n=N, frequency=0.1)
    large = split_users_or_budget(GRR, sizes=[64, 64], epsilon="1", n=N, frequency=0.1)
    mixed = split_users_or_budget(GRR, sizes=[2, 64], epsilon="1", n=N, frequency=0.1)
    half = (small.one_question_variance + large.one_question_variance) / 2
    assert mixed.one_question_variance == pytest.approx(half)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": []},  # no question
        {"n": 2},  # groups of one
        {"frequency": 1.5},
        {"frequency": float("nan")},
        {"epsilon": "0"},
    ],
)
def test_questions_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    asked: dict[str, object] = {"sizes": [4, 4], "epsilon": "1", "n": 100, "frequency": 0.1}
    with pytest.raises(InvalidSpec):
        split_users_or_budget(OUE, **(asked | wrong))  # type: ignore[arg-type]
