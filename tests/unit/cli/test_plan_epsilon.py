"""`tacit plan` without an epsilon: the least one that reaches the error, with its risk in words."""

import json

import pytest
from click.testing import CliRunner

from tacit.cli.plan import plan

TASKS = [
    ("--task histogram --size 4", "rmse"),
    pytest.param("--task ranges --size 8", "rmse_weighted", marks=pytest.mark.slow),
    ("--task marginals --binary 4 --k 2", "rmse"),
    pytest.param("--task heavy-hitters --bits 6 --k 2", "rmse", marks=pytest.mark.slow),
    pytest.param("--task shuffle --size 8 --cap 4", "rmse", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("options", "error"), TASKS)
def test_the_epsilon_for_an_error_is_found(options: str, error: str):
    done = CliRunner().invoke(plan, [*options.split(), "--n", "20000", "--target-error", "0.03", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    pick = found["pick"]
    assert pick.get(error, pick["rmse"]) == pytest.approx(found["error"]) and found["error"] <= 0.03
    assert 0.001 <= float(found["epsilon"]) < 32 and "Who suspects an answer" in found["risk"]


def test_one_of_both_is_needed_and_words_are_printed():
    done = CliRunner().invoke(plan, "--task histogram --size 4 --n 100".split())
    assert done.exit_code == 2 and "--epsilon is needed; or --target-error" in done.output
    done = CliRunner().invoke(plan, "--task histogram --size 4 --n 10000 --target-error 0.01".split())
    assert "epsilon: 1.3 is the least that reaches an error of 0.01." in done.output
    done = CliRunner().invoke(plan, "--task heavy-hitters --bits 6 --n 10000 --epsilon 2 --target-error 0.01".split())
    assert done.exit_code == 0
