"""`tacit post`: list the methods of post-processing, or rank them for a collection by replaying it."""

from collections.abc import Sequence
from typing import Any

import click

from tacit.cli.output import print_json, print_table


@click.group()
def post() -> None:
    """Post-processing: list the methods, or choose one by replaying a collection."""


@post.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_methods(as_json: bool) -> None:
    """List the methods and the default for every type of query."""
    from tacit.post.frequencies.methods import METHODS, QUERIES

    if as_json:
        queries = [{"query": q.name, "method": q.method, "if_power_law": q.if_power_law, "why": q.why} for q in QUERIES]
        print_json({"methods": [method.to_row() for method in METHODS], "queries": queries})
        return
    header = ["method", "non-negative", "sums to one", "biased", "best for"]
    words = {True: "yes", False: "no"}
    print_table(header, [[m.name, words[m.non_negative], m.sums_to_one, words[m.biased], m.best_for] for m in METHODS])
    click.echo()
    print_table(["query", "default", "power-law data"], [[q.name, q.method, q.if_power_law] for q in QUERIES])


@post.command()
@click.argument("file")
@click.option(
    "--query", type=click.Choice(["full_domain", "subsets", "top_k"]), default="full_domain", show_default=True
)
@click.option("--share", type=float, default=0.5, show_default=True, help="Size of the random sets, for subsets.")
@click.option("--k", type=int, default=10, show_default=True, help="How many of the largest values, for top_k.")
@click.option("--runs", type=int, default=30, show_default=True, help="Replays of the synthetic collection.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the replays.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def select(file: str, query: str, share: float, k: int, runs: int, seed: int, as_json: bool) -> None:
    """Replay the collection behind a tally FILE on synthetic data and rank the methods by their error."""
    import numpy as np

    from tacit.cli.reports import is_histogram, read_tally_file
    from tacit.post.frequencies.select import random_subsets, select_method, top_values

    tally, _ = read_tally_file(file)
    mechanism, rng = tally.mechanism, np.random.default_rng(seed)
    estimate = mechanism.estimate(tally)
    if not is_histogram(mechanism, estimate):
        raise click.UsageError(f"{mechanism.kind} does not estimate the frequencies of a whole domain")
    # Lambdas, since random sets must not draw from the generator where they are not wanted.
    queries = {
        "full_domain": lambda: None,
        "subsets": lambda: random_subsets(len(estimate), share, rng),
        "top_k": lambda: top_values(estimate, k),
    }[query]()
    selection = select_method(estimate, _replay(mechanism, estimate, rng), rng, queries=queries, runs=runs)
    if as_json:
        about = {"pick": selection.pick.name, "query": query, "runs": runs, "seed": seed, "caveat": selection.caveat}
        print_json(about | {"scores": [score.to_row() for score in selection.scores]})
        return
    _print_scores(selection.scores)
    click.echo(f"\npick: {selection.pick.name} ({selection.caveat})")


def _print_scores(scores: Sequence[Any]) -> None:
    rows = [[s.method.name, f"{s.mean_squared_error:.3e}", f"{s.standard_error:.1e}"] for s in scores]
    print_table(["method", "mean squared error", "±"], rows)


def _replay(mechanism: Any, estimate: Any, rng: Any) -> Any:
    """Return a function that replays the collection: the mechanism's exact simulation, or normal noise."""
    from tacit.post.frequencies.noise import Noise
    from tacit.post.frequencies.select import normal_replay

    def exactly(counts: Any) -> Any:
        return mechanism.estimate(mechanism.simulate_tally(counts, rng))

    return exactly if mechanism.exact_simulation else normal_replay(Noise.of(estimate), rng)
