"""Plans for answers that hardly ever change: printed errors, the pick by size, and what is said of the guarantee."""

import json

import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.errors import InvalidSpec
from tacit.tasks.time.constant import ConstantGoal, plan_constant


def goal(**changes) -> ConstantGoal:
    return ConstantGoal(**{"size": 2, "n": 1_000_000, "epsilon": "1", "unchanged": 0.98} | changes)


# Epsilon of an answer and of a report, the share that stays, and errors of the level and of a difference, times 1000.
PRINTED = [
    ("1", None, 0.98, 0.96, 0.19),
    ("1", None, 0.8, 0.96, 0.61),
    ("2", "1", 0.98, 0.96, 1.22),
    ("2", "1", 0.8, 0.96, 1.25),
]


@pytest.mark.parametrize(("epsilon", "first", "unchanged", "level", "difference"), PRINTED)
def test_errors_are_the_derived_ones(epsilon, first, unchanged, level, difference) -> None:
    """Two values, a million devices, a share of .05; printed with two decimals."""
    pick = plan_constant(goal(epsilon=epsilon, first=first, unchanged=unchanged)).pick
    assert 1000 * pick.rmse == pytest.approx(level, abs=5e-3)
    assert 1000 * pick.rmse_difference == pytest.approx(difference, abs=5e-3)


def test_rows_are_picked_for_many_values_and_values_themselves_for_few() -> None:
    names = [plan_constant(goal(size=size, epsilon="2", first="1")).pick.name for size in (4, 256)]
    assert names == ["layered grr", "layered hrr"]
    many = plan_constant(goal(size=256, epsilon="2", first="1", unchanged=0.0)).pick
    # Nobody stays: both variances add, and what rows for life may add.
    assert many.rmse_difference**2 == pytest.approx(2 * many.rmse**2 + 2 / (256 * 1_000_000))
    assert plan_constant(goal(unchanged=1.0)).pick.rmse_difference == 0


def test_the_command_states_the_condition_and_refuses_what_it_cannot_keep() -> None:
    base = ("plan", "--task", "time", "--size", "64", "--n", "100000", "--epsilon", "2", "--unchanged", "0.95")
    row = json.loads(CliRunner().invoke(cli, [*base, "--first", "1", "--json"]).output)
    assert row["pick"]["option"] == "layered hrr" and row["pick"]["spec"]["first"] == "1"
    assert row["guarantee"]["name"] == "pattern" and "no number for life" in row["guarantee"]["words"]
    assert "is an assumption" in CliRunner().invoke(cli, base).output
    for wrong in (["--run", "7"], ["--first", "2"], ["--first", "3"]):
        assert CliRunner().invoke(cli, [*base, *wrong]).exit_code != 0
    alone = CliRunner().invoke(cli, [*base[:-2], "--run", "7", "--first", "1"])
    assert alone.exit_code == 2 and "say --unchanged" in alone.output
    with pytest.raises(InvalidSpec, match="must be shares"):
        goal(unchanged=2.0)
