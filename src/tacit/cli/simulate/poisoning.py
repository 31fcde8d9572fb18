"""`tacit simulate poisoning`: attackers who send made-up reports, what they gain, and whether it shows."""

from typing import Any

import click

from tacit.cli.output import print_json, progress
from tacit.cli.simulate.population import population_counts


@click.command()
@click.option(
    "--task",
    type=click.Choice(["histogram", "ranges", "heavy-hitters", "marginals", "sql"]),
    default="histogram",
    show_default=True,
    help="What is attacked; all but histogram plan their own mechanism on simulated data.",
)
@click.option("--kind", default="oue", show_default=True, help="Mechanism, such as oue.")
@click.option("--size", type=int, help="Number of values; implied by a data file.")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other field of the spec.")
@click.option("--n", type=int, default=100_000, show_default=True, help="Genuine reports (simulated data only).")
@click.option("--data", default="zipf", show_default=True, help="zipf, uniform, or a CSV column of integer values.")
@click.option("--column", help="Column of the data file.")
@click.option("--attack", type=click.Choice(["rpa", "ria", "mga"]), default="mga", show_default=True)
@click.option("--targets", type=click.IntRange(1), default=10, show_default=True, help="Random values to push.")
@click.option("--share", type=float, default=0.01, show_default=True, help="Fake over genuine reports.")
@click.option("--unpadded", is_flag=True, help="Unary fakes set the targets' bits alone.")
@click.option("--support", type=float, default=1.0, show_default=True, help="Share of the targets each fake pushes.")
@click.option("--search", type=click.IntRange(1), default=1 << 20, show_default=True, help="Hash seeds that are tried.")
@click.option(
    "--repair", type=click.Choice(["rec_hist", "rec_drop", "rec_model"]), default="rec_hist", show_default=True
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the (insecure) simulation.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Repeat, and print means.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def poisoning(**options: Any) -> None:
    """Fake reports among genuine ones: the gain found and predicted, what shows, and what a repair leaves of it."""
    from tacit.simulate.poisoning.run import PoisoningPlan

    plan = PoisoningPlan(
        options["attack"], options["targets"], options["share"], options["seeds"], not options["unpadded"],
        options["support"], options["search"], options["repair"],
    )  # fmt: skip
    result = (_oracle if options["task"] == "histogram" else _task)(plan, options)
    if options["as_json"]:
        print_json(result)
    else:
        click.echo("\n".join(f"{name:>16}  {value}" for name, value in result.items() if name != "gains"))


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("attack", "targets", "share", "seeds")}


def _task(plan: Any, options: dict[str, Any]) -> dict[str, Any]:
    from statistics import mean

    from tacit.simulate.poisoning.tasks import simulate_task_poisoning

    shared: dict[str, Any] = {"size": options["size"] or 64, "epsilon": options["epsilon"], "n": options["n"]}
    runs = simulate_task_poisoning(options["task"], plan, seed=options["seed"], **shared)
    predicted = [run.predicted_gain for run in runs if run.predicted_gain is not None]
    return (
        {"task": options["task"]}
        | shared
        | _asked(options)
        | {
            "gain": mean(run.gain for run in runs),
            "predicted_gain": mean(predicted) if predicted else None,
            "gains": [run.gain for run in runs],
        }
    )


def _oracle(plan: Any, options: dict[str, Any]) -> dict[str, Any]:
    from tacit.cli.reports import make_mechanism
    from tacit.core.mechanism import Oracle
    from tacit.simulate.poisoning.run import simulate_poisoning, summary

    counts = population_counts(options["data"], options["size"], options["n"], options["column"])
    oracle = make_mechanism(options["kind"], len(counts), options["epsilon"], options["settings"])
    if not isinstance(oracle, Oracle):
        raise click.UsageError(f"--kind {options['kind']} estimates no frequencies; name an oracle such as oue")
    n = int(counts.sum())
    with progress("simulating", plan.seeds * n) as advance:
        runs = simulate_poisoning(oracle, counts, plan, seed=options["seed"], advance=advance)
    about = {"kind": oracle.kind, "size": oracle.size, "epsilon": oracle.spec()["epsilon"], "n": n}
    return about | _asked(options) | {"repair": options["repair"]} | summary(runs, oracle, n)
