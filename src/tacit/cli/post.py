"""`tacit post`: list the methods of post-processing, or rank them for a collection by their estimated error."""

from collections.abc import Sequence
from typing import Any

import click

from tacit.cli.output import print_json, print_table


@click.group()
def post() -> None:
    """Post-processing: list the methods, or choose one by its estimated error."""


@post.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_methods(as_json: bool) -> None:
    """List the methods and the types of queries that one is picked for."""
    from tacit.post.frequencies.methods import METHODS, QUERIES

    if as_json:
        queries = [{"query": q.name, "about": q.about, "why": q.why} for q in QUERIES]
        print_json({"methods": [method.to_row() for method in METHODS], "queries": queries})
        return
    header = ["method", "non-negative", "sums to one", "biased", "best for"]
    words = {True: "yes", False: "no"}
    print_table(header, [[m.name, words[m.non_negative], m.sums_to_one, words[m.biased], m.best_for] for m in METHODS])
    click.echo()
    print_table(["query", "about"], [[q.name, q.about] for q in QUERIES])


@post.command()
@click.argument("file")
@click.option("--query", type=click.Choice(["cells", "sets", "largest"]), default="cells", show_default=True)
@click.option("--runs", type=int, help="Replays of the collection, from 32 values on.  [default: 8 or 4, by size]")
@click.option("--ordered", is_flag=True, help="The values have an order: numbers, scales.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def select(file: str, query: str, runs: int | None, ordered: bool, as_json: bool) -> None:
    """Rank the methods for the collection behind a tally FILE by their estimated error, as answers are picked."""
    from tacit.cli.reports import is_histogram, read_tally_file
    from tacit.post.frequencies.select import select_methods

    tally, _ = read_tally_file(file)
    mechanism = tally.mechanism
    estimate = mechanism.estimate(tally)
    if not is_histogram(mechanism, estimate):
        raise click.UsageError(f"{mechanism.kind} does not estimate the frequencies of a whole domain")
    selection = select_methods(estimate, _replay(mechanism), runs=runs, ordered=ordered)[query]
    if as_json:
        about = {"pick": selection.pick.name, "query": query, "rule": selection.rule, "runs": selection.runs}
        about |= {"seconds": selection.seconds, "caveat": selection.caveat}
        tables = {"scores": selection.scores, "halves": selection.halves}
        print_json(about | {name: [score.to_row() for score in scores] for name, scores in tables.items()})
        return
    _print_scores(selection.scores)
    if selection.halves:
        click.echo("\nagainst methods that use the order, on halves of the noise (twice the variance):")
        _print_scores(selection.halves)
    click.echo(f"\npick: {selection.pick.name}, by {selection.rule} in {selection.seconds:.2f} s ({selection.caveat})")


def _print_scores(scores: Sequence[Any]) -> None:
    rows = [[s.method.name, f"{s.mean_squared_error:.3e}", f"{s.standard_error:.1e}"] for s in scores]
    print_table(["method", "mean squared error", "±"], rows)


def _replay(mechanism: Any) -> Any:
    """Return the mechanism's exact simulation as a replay; None, where it has none, stands for normal noise."""

    def exactly(counts: Any, rng: Any) -> Any:
        return mechanism.estimate(mechanism.simulate_tally(counts, rng))

    return exactly if mechanism.exact_simulation else None
