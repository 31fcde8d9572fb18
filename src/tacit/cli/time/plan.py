"""`tacit plan --task time`: ways to ask again and again, compared inside one guarantee."""

from typing import Any

import click

from tacit.cli.output import print_json, print_table


def show_time_plan(size: int | None, n: int, epsilon: str | None, given: dict[str, Any], as_json: bool) -> None:
    """Print the plan; `given` has the options that only this task takes, None where they were left out."""
    from tacit.tasks.time.guarantees import stream_guarantee
    from tacit.tasks.time.plan import TimeGoal, plan_time

    if size is None or epsilon is None or given["run"] is None:
        raise click.UsageError("task time needs --size, --epsilon and --run, the windows that epsilon is for")
    told = {name: value for name, value in given.items() if value is not None}
    plan = plan_time(TimeGoal(size=size, n=n, epsilon=epsilon, **told))
    goal, pick = plan.goal, plan.pick
    realised = stream_guarantee("lpu", epsilon=float(epsilon), run=goal.run, windows=goal.windows)
    guarantee = {"name": goal.guarantee} | realised.to_row()
    if as_json:
        row = pick.to_row() | {"spec": pick.mechanism.spec()}
        shown = {"task": "time", "every": goal.every, "frequency": goal.frequency, "drift": goal.drift}
        options = [option.to_row() for option in plan.options]
        print_json(shown | {"guarantee": guarantee, "pick": row, "reason": plan.reason, "options": options})
        return
    header = ["option", "oracle", "rmse", "difference", "online", "smoothed"]
    rows = [_row(option.to_row()) for option in plan.options]
    title = f"{size} values, {n:,} devices, every {goal.every}; {realised.to_words()}"
    print_table(header, rows, title)
    click.echo(f"\npick: {plan.reason}")


def _row(row: dict[str, Any]) -> list[str]:
    errors = (row[name] for name in ("rmse", "rmse_difference", "rmse_online", "rmse_smoothed"))
    return [row["method"], row["oracle"], *("-" if error is None else f"{error:.6f}" for error in errors)]
