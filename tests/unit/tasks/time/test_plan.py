"""Plans of repeated collections: the published table, and one guarantee per table."""

from math import sinh

import pytest

from tacit.errors import InvalidSpec
from tacit.tasks.time.guarantees import stream_guarantee
from tacit.tasks.time.plan import TimeGoal, plan_time

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
