"""`tacit simulate`: rehearse a collection on a simulated population."""

from typing import Any

import click

from tacit.cli.options.post import POST
from tacit.cli.output import print_json, progress
from tacit.cli.simulate.analytics import analytics
from tacit.cli.simulate.hitters import heavy_hitters
from tacit.cli.simulate.itemsets import itemsets
from tacit.cli.simulate.marginals import marginals
from tacit.cli.simulate.poisoning import poisoning
from tacit.cli.simulate.population import population_counts
from tacit.cli.simulate.ranges import ranges
from tacit.cli.simulate.rectangles import rectangles
from tacit.cli.simulate.shuffle import shuffle
from tacit.cli.simulate.time import time


@click.group()
def simulate() -> None:
    """Simulate a collection and compare its error with the prediction."""


simulate.add_command(analytics)
simulate.add_command(heavy_hitters)
simulate.add_command(itemsets)
simulate.add_command(ranges)
simulate.add_command(rectangles)
simulate.add_command(marginals)
simulate.add_command(poisoning)
simulate.add_command(shuffle)
simulate.add_command(time)


# The plain histogram is the only task whose command is in this module.
@simulate.command()
@click.option("--kind", default="auto", show_default=True, help="Mechanism, or auto to choose one.")
@click.option("--size", type=int, help="Number of values; implied by a data file.")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--n", type=int, default=100_000, show_default=True, help="Respondents (simulated data only).")
@click.option("--data", default="zipf", show_default=True, help="zipf, uniform, or a CSV column of integer values.")
@click.option("--column", help="Column of the data file.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other field of the spec.")
@click.option("--runs", type=int, default=1, show_default=True, help="Repeat with fresh noise.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the (insecure) simulation coins.")
@POST
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def oracle(
    kind: str, size: int | None, epsilon: str, n: int, data: str, column: str | None, settings: tuple[str, ...],
    runs: int, seed: int, post: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Frequencies of one categorical question."""
    from tacit.simulate.run import simulate_oracle

    counts = population_counts(data, size, n, column)
    mechanism = _mechanism(kind, len(counts), epsilon, int(counts.sum()), settings)
    with progress("simulating", runs * int(counts.sum())) as advance:
        outcome = simulate_oracle(mechanism, counts, runs=runs, seed=seed, advance=advance, post=post)
    result = {
        "kind": mechanism.kind,
        "size": mechanism.size,
        "epsilon": mechanism.spec()["epsilon"],
        "n": int(counts.sum()),
        "runs": runs,
        "rmse": outcome.rmse,
        "predicted_rmse": outcome.predicted_rmse,
        "coverage": outcome.coverage,
        "seconds": outcome.seconds,
    }
    if post is not None:
        result |= {"post": post, "post_rmse": outcome.post_rmse}
    if as_json:
        print_json(result)
    else:
        click.echo("\n".join(f"{name:>15}  {value}" for name, value in result.items()))


def _mechanism(kind: str, size: int, epsilon: str, n: int, settings: tuple[str, ...]) -> Any:
    from tacit.cli.reports import make_mechanism
    from tacit.tasks.choose import choose_oracle

    if kind == "auto":
        return choose_oracle(size=size, epsilon=epsilon, n=max(1, n)).pick.mechanism
    return make_mechanism(kind, size, epsilon, settings)
