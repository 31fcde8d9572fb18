"""`tacit simulate heavy-hitters`: rehearse the search for frequent values of a domain nobody enumerates."""

from collections.abc import Callable
from statistics import mean, stdev
from typing import Any

import click

from tacit.cli.output import percent, print_json, print_table, progress


@click.command("heavy-hitters")
@click.option("--data", required=True, help="syn, or a file: a value per line, value and count by tab, or a CSV.")
@click.option("--n", type=click.IntRange(1), default=1_000_000, show_default=True, help="Respondents (syn only).")
@click.option("--bits", type=click.IntRange(1, 64), default=64, show_default=True, help="Length of the values.")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--k", type=click.IntRange(1), default=16, show_default=True, help="How many values to look for.")
@click.option("--method", default="pem", show_default=True, help="pem, pem-plain, pem1, naive, hash, spm, sfp, ...")
@click.option("--threshold", type=float, help="Look for all values above this share instead.")
@click.option("--groups", type=click.IntRange(1), help="Number of groups (pem, pem-plain).")
@click.option("--cap", type=float, default=5e10, show_default=True, help="Most hash evaluations of a search.")
@click.option(
    "--values",
    type=click.Choice(["text", "bits", "integers"]),
    default="text",
    show_default=True,
    help="What the file holds.",
)
@click.option("--alphabet", help="Text over lower, printable, or given characters, instead of bytes.")
@click.option("--length", type=click.IntRange(1), help="Length of text over an alphabet.")
@click.option("--lower-case", is_flag=True, help="Take text in lower case.")
@click.option("--column", help="Column of a CSV file that holds the values.")
@click.option("--count-column", help="Column of a CSV file that holds their counts.")
@click.option("--columns", help="Names of all columns, with commas, where a CSV file has no header.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of data and (insecure) coins.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Repeat: mean and spread.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def heavy_hitters(**options: Any) -> None:
    """Frequent texts, bit strings or integers out of up to 2^64."""
    from tacit.simulate.hitters import Search, find_hitters_method, simulate_hitters, work_of

    # An unknown method is refused before a large file is read.
    find_hitters_method(options["method"])
    search = Search(options["epsilon"], options["k"], options["threshold"], options["groups"], options["cap"])
    populations = _populations(options)
    with progress("simulating", int(sum(work_of(each) for each in populations))) as advance:
        outcomes = [
            simulate_hitters(each, search, options["method"], seed=options["seed"] + i, advance=_whole(advance))
            for i, each in enumerate(populations)
        ]
    _show(outcomes, populations[-1], options)


def _whole(advance: Callable[[int], None]) -> Callable[[float], None]:
    """Adapt the progress bar, which counts whole steps, to a walk, which reports fractions."""

    def move(done: float) -> None:
        advance(int(done))

    return move


def _populations(options: dict[str, Any]) -> list[Any]:
    """Return one population per run: fresh synthetic data, or the same file for every run."""
    from tacit.simulate.hitters import syn
    from tacit.simulate.hitters_data import Columns, read_population, value_domain

    seeds = range(options["seed"], options["seed"] + options["seeds"])
    if options["data"] == "syn":
        return [syn(options["n"], options["bits"], seed) for seed in seeds]
    names = tuple(name.strip() for name in (options["columns"] or "").split(",") if name.strip())
    columns = Columns(options["column"], options["count_column"], names)
    domain = value_domain(options["values"], options["bits"], options["alphabet"], options["length"])
    integers, lower = options["values"] == "integers", options["lower_case"]
    read = read_population(options["data"], domain, columns=columns, integers=integers, lower=lower)
    if read.skipped:
        click.echo(f"tacit: {read.skipped} rows skipped, whose values are not in the domain", err=True)
    if read.cut:
        click.echo(f"tacit: {read.cut} values were cut to the length of the domain", err=True)
    if not read.population.n:
        raise click.UsageError("--data holds no respondents")
    return [read.population for _ in seeds]


def _show(outcomes: list[Any], population: Any, options: dict[str, Any]) -> None:
    last, f1, ncr = outcomes[-1], [o.f1 for o in outcomes], [o.ncr for o in outcomes]
    request = {name: options[name] for name in ("method", "epsilon", "k", "threshold")}
    result: dict[str, Any] = request | {"n": population.n, "runs": len(outcomes), "f1": mean(f1), "ncr": mean(ncr)}
    if len(outcomes) > 1:
        result |= {"f1_sd": stdev(f1), "ncr_sd": stdev(ncr), "f1_runs": f1}
    errors = [outcome.variance for outcome in outcomes if outcome.variance is not None]
    result |= {
        "count_variance": mean(errors) if errors else None,
        "seconds": mean(outcome.seconds for outcome in outcomes),
        "walk_seconds": mean(outcome.walk_seconds for outcome in outcomes),
        "evaluations": last.evaluations,
        "plan": dict(last.plan),
        "notes": _notes(last, options["k"]),
        "found": last.found,
    }
    print_json(result) if options["as_json"] else _print(result)


def _notes(outcome: Any, k: int) -> list[str]:
    """Return notes for the reader: how many of the values noise alone could explain, and what would help."""
    notes = list(outcome.flags)
    sure = sum(row.get("noise_probability", 0.0) <= 0.05 for row in outcome.found)
    if sure < len(outcome.found):
        share, certified = (outcome.plan.get(name) for name in ("detectable_share", "certified_share"))
        notes.append(f"{sure} of {len(outcome.found)} are surely no noise")
        notes.append(f"shares from about {share:.3g} on are detected; look for fewer values than {k}, or ask more")
        notes.append(
            f"shares from about {certified:.3g} on are told from noise"
            if certified <= 1
            else "with so few respondents no value can be told from noise"
        )
    return notes


def _print(result: dict[str, Any]) -> None:
    shown = ("method", "epsilon", "k", "n", "runs", "f1", "f1_sd", "ncr", "ncr_sd", "seconds", "walk_seconds")
    click.echo("\n".join(f"{name:>15}  {result[name]}" for name in shown if name in result))
    for note in result["notes"]:
        click.echo(f"{'note':>15}  {note}")
    rows = [
        [
            repr(row["value"]),
            percent(row["frequency"]),
            percent(row["low"]),
            percent(row["high"]),
            f"{row['noise_probability']:.2g}" if "noise_probability" in row else "",
        ]
        for row in result["found"]
    ]
    print_table(["value", "share", "from", "to", "noise"], rows)
