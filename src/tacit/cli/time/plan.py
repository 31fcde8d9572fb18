"""`tacit plan --task time`: ways to ask again and again, compared inside one guarantee."""

from typing import Any

import click

from tacit.cli.output import print_json, print_table


def show_time_plan(size: int | None, n: int, epsilon: str | None, given: dict[str, Any], as_json: bool) -> None:
    """Print the plan; `given` has the options that only this task takes, None where they were left out."""
    from tacit.tasks.time.guarantees import stream_guarantee
    from tacit.tasks.time.plan import TimeGoal, plan_time

    told = {name: value for name, value in given.items() if value is not None}
    if size is not None and epsilon is not None and "unchanged" in told:
        _constant(size, n, epsilon, told, as_json)
        return
    if size is None or epsilon is None or given["run"] is None:
        raise click.UsageError(
            "task time needs --size, --epsilon and --run, the windows that epsilon is for; or --unchanged, for rounds "
            "of answers that hardly ever change"
        )
    if "first" in told:
        raise click.UsageError("--first is for answers that hardly ever change: say --unchanged, the share that stays")
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


def _constant(size: int, n: int, epsilon: str, told: dict[str, Any], as_json: bool) -> None:
    """Print the plan of rounds of answers that hardly ever change."""
    from tacit.tasks.time.constant import ConstantGoal, plan_constant

    others = sorted(told.keys() - {"unchanged", "first", "frequency"})
    if others:
        raise click.UsageError(f"--{others[0]} does not go with --unchanged: what memoised kinds keep is not per run")
    goal = ConstantGoal(size=size, n=n, epsilon=epsilon, **told)
    plan = plan_constant(goal)
    rows = [option.to_row() for option in plan.options]
    if as_json:
        shown = {"task": "time", "frequency": goal.frequency, "unchanged": goal.unchanged}
        shown |= {"guarantee": {"name": "pattern", "words": plan.guarantee}}
        pick = plan.pick.to_row() | {"spec": plan.pick.mechanism.spec()}
        print_json(shown | {"pick": pick, "reason": plan.reason, "options": rows})
        return
    table = [[row["option"], *(f"{row[name]:.6f}" for name in ("rmse", "rmse_difference"))] for row in rows]
    print_table(["option", "rmse", "difference"], table, f"{size} values, {n:,} devices; {plan.guarantee}")
    click.echo(f"\npick: {plan.reason}")


def _row(row: dict[str, Any]) -> list[str]:
    errors = (row[name] for name in ("rmse", "rmse_difference", "rmse_online", "rmse_smoothed"))
    return [row["method"], row["oracle"], *("-" if error is None else f"{error:.6f}" for error in errors)]
