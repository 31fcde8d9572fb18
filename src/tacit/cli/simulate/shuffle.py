"""`tacit simulate shuffle`: rehearse shuffled collections at one central epsilon, method beside method."""

from typing import Any

import click

from tacit.cli.output import print_json, print_table, progress
from tacit.cli.simulate.population import population_counts


@click.command()
@click.option("--epsilon", required=True, help="Central budget of the shuffled reports, as decimal text up to 1.")
@click.option("--delta", type=float, default=1e-9, show_default=True, help="Delta of the central guarantee.")
@click.option(
    "--data", help="zipf (default), uniform, or a CSV column of integers; with --tree: syn (default), or a file."
)
@click.option("--size", type=click.IntRange(2), help="Number of values; implied by a data file.")
@click.option(
    "--n", type=click.IntRange(1), default=100_000, show_default=True, help="Respondents (made-up data only)."
)
@click.option("--column", help="Column of the data file.")
@click.option("--method", "methods", multiple=True, help="A method; may be repeated.  [default: all of them]")
@click.option("--fakes", type=click.IntRange(0), default=0, show_default=True, help="Fake reports among the others.")
@click.option("--reports", is_flag=True, help="Hash every report instead of drawing the support of every value.")
@click.option("--tree", is_flag=True, help="Look for frequent bit strings with a prefix tree instead.")
@click.option("--bits", type=click.IntRange(8, 64), default=48, show_default=True, help="Length of the strings (tree).")
@click.option("--step", type=click.IntRange(1, 16), default=8, show_default=True, help="Bits of a round (tree).")
@click.option("--keep", type=click.IntRange(1), default=32, show_default=True, help="Prefixes that survive (tree).")
@click.option(
    "--policy",
    type=click.Choice(["auto", "budget", "groups"]),
    default="auto",
    show_default=True,
    help="Split the budget or the respondents over the rounds (tree).",
)
@click.option("--at-once", is_flag=True, help="All rounds are reported together; solh and olh alone (tree).")
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="Repeat with fresh noise.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the (insecure) simulation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def shuffle(**options: Any) -> None:
    """Shuffled reports: mean squared error found and predicted per method, or hits of a prefix tree."""
    _tree(options) if options["tree"] else _frequencies(options)


def _chosen(options: dict[str, Any], known: tuple[str, ...]) -> tuple[str, ...]:
    """The methods that were named, or all; an unknown one is refused before any work."""
    for name in options["methods"]:
        if name not in known:
            raise click.UsageError(f"--method is {name[:40]!r}, must be one of {', '.join(known)}")
    return options["methods"] or known


def _frequencies(options: dict[str, Any]) -> None:
    from tacit.shuffle.mechanisms.closed_forms import CentralTarget
    from tacit.simulate.shuffle import ABOUT, simulate_shuffle

    methods = _chosen(options, tuple(ABOUT))
    counts = population_counts(options["data"] or "zipf", options["size"], options["n"], options["column"])
    target = CentralTarget(options["epsilon"], options["delta"], int(counts.sum()))
    shared = {name: options[name] for name in ("runs", "seed", "fakes", "reports")}
    with progress("simulating", options["runs"] * len(methods)) as advance:
        outcomes = [simulate_shuffle(method, counts, target, advance=advance, **shared) for method in methods]
    result: dict[str, Any] = {
        "epsilon": target.epsilon,
        "delta": target.delta,
        "n": target.n,
        "size": len(counts),
        "runs": options["runs"],
        "fakes": options["fakes"],
        "methods": [outcome.to_row() for outcome in outcomes],
    }
    if options["as_json"]:
        print_json(result)
        return
    click.echo(f"central epsilon {target.epsilon}, delta {target.delta:g}, n {target.n}, {len(counts)} values")
    rows = [[o.method, _number(o.mse), _number(o.predicted_mse), _plain(o.epsilon_local), _kind(o)] for o in outcomes]
    print_table(["method", "mse", "predicted", "local epsilon", "mechanism"], rows)
    for outcome in outcomes:
        for note in outcome.notes:
            click.echo(f"{outcome.method}: {note}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _kind(outcome: Any) -> str:
    return f"{outcome.kind} g={outcome.buckets}" if outcome.buckets else outcome.kind


def _tree(options: dict[str, Any]) -> None:
    from tacit.errors import InvalidSpec
    from tacit.shuffle.mechanisms.closed_forms import CentralTarget
    from tacit.shuffle.mechanisms.tree import AT_ONCE, ORACLES, TreePlan, choose_policy
    from tacit.simulate.shuffle import simulate_tree

    at_once: bool = options["at_once"]
    methods = _chosen(options, AT_ONCE if at_once else tuple(ORACLES))
    truth = _strings(options)
    target = CentralTarget(options["epsilon"], options["delta"], truth.n)
    rows: list[dict[str, Any]] = []
    with progress("simulating", options["runs"] * len(methods)) as advance:
        for method in methods:
            policy = "groups" if options["policy"] == "auto" else options["policy"]
            plan = TreePlan(method, target, policy, options["bits"], options["step"], options["keep"], at_once)
            try:
                plan = choose_policy(plan) if options["policy"] == "auto" else plan
                rows.append(
                    simulate_tree(truth, plan, runs=options["runs"], seed=options["seed"], advance=advance).to_row()
                )
            except InvalidSpec as error:
                rows.append({"oracle": method, "note": str(error)})
    shown = {"epsilon": target.epsilon, "delta": target.delta, "n": target.n, "keep": options["keep"]}
    print_json(shown | {"trees": rows}) if options["as_json"] else _print_trees(rows)


def _strings(options: dict[str, Any]) -> Any:
    """The population of bit strings."""
    from tacit.baselines.hitters import TrueCounts
    from tacit.simulate.hitters import syn
    from tacit.simulate.hitters_data import Columns, read_population, value_domain

    if options["data"] in (None, "syn"):
        population = syn(options["n"], options["bits"], options["seed"])
    else:
        domain = value_domain("text", options["bits"])
        read = read_population(options["data"], domain, columns=Columns(options["column"]))
        if read.skipped:
            click.echo(f"tacit: {read.skipped} rows skipped, whose values are not in the domain", err=True)
        population = read.population
    if not population.n:
        raise click.UsageError("--data holds no respondents")
    return TrueCounts(population.values, population.counts, options["bits"])


def _print_trees(rows: list[dict[str, Any]]) -> None:
    table = [
        [
            row["oracle"],
            row["policy"],
            f"{row['hits']:.1f}",
            f"{row['expected_hits']:.1f}",
            _plain(row["epsilon_local"]),
        ]
        for row in rows
        if "hits" in row
    ]
    print_table(["oracle", "policy", "hits", "expected", "local epsilon"], table)
    for row in rows:
        if "note" in row:
            click.echo(f"{row['oracle']}: {row['note']}")
