"""`tacit plan` without an epsilon: the least one that reaches the error, with its risk in words."""

import json

import pytest
from click.testing import CliRunner

from tacit.cli.plan import plan

TASKS = [
    ("--task mean --low 0 --high 1", "rmse"),
    ("--task histogram --size 4", "rmse"),
    pytest.param("--task ranges --size 8", "rmse_weighted", marks=pytest.mark.slow),
    ("--task marginals --binary 4 --k 2", "rmse"),
    pytest.param("--task heavy-hitters --bits 6 --k 2", "rmse", marks=pytest.mark.slow),
    pytest.param("--task shuffle --size 8 --cap 4", "rmse", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("options", "error"), TASKS)
@pytest.mark.slow
def test_the_epsilon_for_an_error_is_found(options: str, error: str):
    done = CliRunner().invoke(plan, [*options.split(), "--n", "20000", "--target-error", "0.03", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    pick = found["pick"]
    assert pick.get(error, pick["rmse"]) == pytest.approx(found["error"]) and found["error"] <= 0.03
    assert 0.001 <= float(found["epsilon"]) < 32 and "Who suspects an answer" in found["risk"]


def test_a_mean_is_planned_in_its_own_units():
    done = CliRunner().invoke(
        plan, "--task mean --low 0 --high 100 --n 10000 --epsilon 1 --target-error 0.5 --json".split()
    )
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and found["pick"]["oracle"] == "onebit" and found["pick"]["report_bits"] == 1
    # The largest variance of one bit: (range/2)^2 ((e+1)/(e-1))^2 per report, 108.198^2 at epsilon 1.
    assert found["pick"]["rmse"] == pytest.approx(1.08198, rel=1e-4)
    assert found["pick"]["n_needed"] == pytest.approx(10_000 * (1.08198 / 0.5) ** 2, rel=1e-3)
    assert [option["oracle"] for option in found["options"]] == ["onebit", "dlap"]


def test_a_mean_is_planned_without_an_epsilon_and_asks_for_its_range():
    done = CliRunner().invoke(plan, "--task mean --low 0 --high 100 --n 10000 --target-error 1".split())
    assert done.exit_code == 0 and "is the least that reaches an error of 1." in done.output
    assert "numbers from 0 to 100" in done.output and "one noisy bit" in done.output
    refused = CliRunner().invoke(plan, "--task mean --size 4 --n 10000 --epsilon 1".split())
    assert refused.exit_code == 2 and "--low and --high are needed for task mean" in refused.output
    refused = CliRunner().invoke(plan, "--task histogram --size 4 --low 0 --n 10000 --epsilon 1".split())
    assert refused.exit_code == 2 and "--low and --high are for task mean" in refused.output
    nothing = CliRunner().invoke(plan, "--task mean --low 9 --high 1 --n 10000 --epsilon 1".split())
    assert nothing.exit_code != 0 and "low must be below high" in str(nothing.exception)


def test_one_of_both_is_needed_and_words_are_printed():
    done = CliRunner().invoke(plan, "--task histogram --size 4 --n 100".split())
    assert done.exit_code == 2 and "--epsilon is needed; or --target-error" in done.output
    done = CliRunner().invoke(plan, "--task histogram --size 4 --n 10000 --target-error 0.01".split())
    assert "epsilon: 1.3 is the least that reaches an error of 0.01." in done.output
    done = CliRunner().invoke(plan, "--task heavy-hitters --bits 6 --n 10000 --epsilon 2 --target-error 0.01".split())
    assert done.exit_code == 0
