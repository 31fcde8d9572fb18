"""Plans of repeated collections: the published table, and one guarantee per table."""

from math import exp, sinh
from typing import Any

import pytest

from tacit.errors import InvalidSpec
from tacit.tasks.time.guarantees import stream_guarantee
from tacit.tasks.time.plan import TimeGoal, plan_time
from tacit.tasks.time.trees import choose_tree

# sd x 1000 at n = 10^6, epsilon 1, f = .05, drift .0005: size, run, lpu, lbu, lsp, online, smoothed, lpu difference.
TABLE = [
    (2, 7, 2.59, 6.99, 1.29, 1.09, 0.80, 3.67),
    (2, 30, 5.38, 30.0, 2.13, 1.60, 1.16, 7.62),
    (16, 30, 9.82, 56.3, 2.61, 2.19, 1.57, 13.9),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"size {row[0]}, run {row[1]}")
def test_errors_of_all_options_are_the_derived_ones(row) -> None:
    size, run, *printed = row
    plan = plan_time(TimeGoal(size=size, n=1_000_000, epsilon="1", run=run))
    lpu, lbu, lsp = (next(o for o in plan.options if o.method == name) for name in ("lpu", "lbu", "lsp"))
    assert lpu.rmse_online is not None and lpu.rmse_smoothed is not None and lpu.rmse_difference is not None
    found = [lpu.rmse, lbu.rmse, lsp.rmse, lpu.rmse_online, lpu.rmse_smoothed, lpu.rmse_difference]
    # Printed with three digits, so half a unit of the last one is allowed.
    assert [1000 * error for error in found] == [pytest.approx(value, rel=5e-3) for value in printed]


@pytest.mark.parametrize(("run", "ratio"), [(2, 2.13), (7, 7.59), (20, 21.7), (30, 32.6)])
def test_dividing_the_population_beats_dividing_epsilon(run: int, ratio: float) -> None:
    assert sinh(0.5) ** 2 / (run * sinh(0.5 / run) ** 2) == pytest.approx(ratio, rel=5e-3)
    plan = plan_time(TimeGoal(size=2, n=1_000_000, epsilon="1", run=run, frequency=0.0))
    errors = {option.method: option.rmse**2 for option in plan.options}
    assert errors["lbu"] / errors["lpu"] == pytest.approx(ratio, rel=5e-3)


def test_the_pick_answers_every_window_and_says_what_all_options_keep() -> None:
    plan = plan_time(TimeGoal(size=16, n=10**6, epsilon="1", run=30))
    assert plan.pick.method == "lpu"
    assert "epsilon 1 for any 30 days in a row" in plan.reason
    assert plan_time(TimeGoal(size=2, n=10**6, epsilon="1", run=1)).goal.guarantee == "event"
    assert plan_time(TimeGoal(size=2, n=10**6, epsilon="1", run=12, windows=12)).goal.guarantee == "lifetime"


def test_splitting_wins_where_sampling_is_the_larger_error() -> None:
    """Binary, f = .25, two windows: from epsilon 3.55 on everybody should report in every window."""
    picks = [
        plan_time(TimeGoal(size=2, n=10**6, epsilon=epsilon, run=2, frequency=0.25)).pick.method
        for epsilon in ("3.5", "3.6")
    ]
    assert picks == ["lpu", "lbu"]


def test_goals_that_make_no_sense() -> None:
    with pytest.raises(InvalidSpec, match="run is 400"):
        TimeGoal(size=2, n=10, epsilon="1", run=400)
    with pytest.raises(InvalidSpec, match="shares"):
        TimeGoal(size=2, n=10, epsilon="1", run=4, frequency=2)
    with pytest.raises(InvalidSpec, match="must be one of"):
        stream_guarantee("lxx", epsilon=1.0, run=2, windows=4)


def test_trees_stand_beside_one_report_for_life_and_are_picked_if_somebody_counts_changes() -> None:
    goal: dict[str, Any] = {"size": 2, "n": 10**6, "epsilon": "1", "run": 365, "windows": 365, "frequency": 0.25}
    plan = plan_time(TimeGoal(**goal))
    errors = {option.method: option.rmse**2 * 10**6 for option in plan.options}
    # N Var over a year at epsilon 1, printed with three figures.
    printed = {"lpu": 404, "tree_step": 102, "tree_2": 281, "tree_3": 456, "tree_5": 763}
    assert {name: errors[name] for name in printed} == pytest.approx(printed, rel=0.015)
    assert plan.pick.method == "lpu" and "say --changes" in plan.reason
    told = plan_time(TimeGoal(**goal, changes=2))
    assert told.pick.method == "tree_2" and "biases the share" in told.reason
    assert "epsilon 1 for all 365 days together" in told.reason
    # Of 16 answers each device follows one, which costs more than a tree gains.
    assert plan_time(TimeGoal(**{**goal, "size": 16, "changes": 2})).pick.method == "lpu"
    assert plan_time(TimeGoal(**goal, changes=5)).pick.method == "lpu"


def test_trees_are_compared_for_life_alone() -> None:
    with pytest.raises(InvalidSpec, match="for a guarantee for life"):
        TimeGoal(size=2, n=10, epsilon="1", run=4, changes=2)
    methods = {option.method for option in plan_time(TimeGoal(size=2, n=10**6, epsilon="1", run=30)).options}
    assert methods == {"lpu", "lbu", "lsp"}


# Epsilon, changes, and the first number of windows at which a tree has less error than one report for life.
FIRST = [("1", 2, 205), ("2", 2, 133), ("4", 2, 87)]


@pytest.mark.parametrize(("epsilon", "changes", "first"), FIRST)
def test_trees_pay_off_from_some_number_of_windows_on(epsilon: str, changes: int, first: int) -> None:
    e = exp(float(epsilon))
    gain = [
        choose_tree(epsilon, t, changes, 0.25).noise < t * e / (e - 1) ** 2 + 0.1875 * (t - 1)
        for t in (first - 1, first)
    ]
    assert gain == [False, True]
