"""`tacit compare`: every method of a task on one's own data."""

from pathlib import Path
from typing import Any

import click

from tacit.cli.output import print_json, print_table, progress

_TASKS = ("histogram", "ranges", "marginals", "heavy-hitters", "itemsets", "sql")


@click.command()
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="CSV with a value per line, or several attributes below a header; counts as .npy; for itemsets a basket per "
    "line; for sql a CSV or Parquet table.",
)
@click.option("--task", required=True, type=click.Choice(_TASKS), help="What is asked for.")
@click.option("--epsilon", default="0.5,1,2,4", show_default=True, help="Privacy budgets, with commas.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Simulated collections each.")
@click.option("--column", help="Column of a CSV file; for marginals several, with commas.  [default: all]")
@click.option(
    "--k", type=click.IntRange(1), help="Attributes of a table (1 to 6), or what to find.  [default: 2, 16 or 32]"
)
@click.option(
    "--values",
    type=click.Choice(["text", "bits", "integers"]),
    default="text",
    show_default=True,
    help="What the file of heavy hitters holds.",
)
@click.option("--bits", type=click.IntRange(1, 64), default=64, show_default=True, help="Their length.")
@click.option("--private", help='Private columns of sql, such as "age:0-99,state"; all others are public.')
@click.option("--sql", help="The query over the table t.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write a page (.html) or the rows (.json) here.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(data: str, task: str, epsilon: str, seeds: int, k: int | None, **options: Any) -> None:  # fmt: skip
    """Run every method of a task on the same draws of your own data: error, bias, coverage, bits and time."""
    from tacit.simulate.compare.run import ERRORS
    from tacit.simulate.compare.run import compare as run

    epsilons = [item.strip() for item in epsilon.split(",") if item.strip()]
    if not epsilons:
        raise click.UsageError("--epsilon must be numbers with commas, such as 0.5,1,2")
    if task == "marginals" and k is not None and k > _MOST_ATTRIBUTES:
        raise click.UsageError(f"--k is {k}, must be at most {_MOST_ATTRIBUTES} for marginals")
    read = _read(data, task, options)
    with progress("comparing", seeds * len(epsilons)) as advance:
        rows = run(read, task, epsilons, seeds=seeds, k=k, advance=advance)
    output: str | None = options["output"]
    if output:
        _write(Path(output), rows, f"{task} on {Path(data).name}", ERRORS[task])
    if options["as_json"]:
        print_json(rows)
    elif not output:
        _print(rows, ERRORS[task])


_MOST_ATTRIBUTES = 6
"""Attributes of the largest tables that are compared."""


def _read(data: str, task: str, options: dict[str, Any]) -> Any:
    """Read the file as the task and the options say."""
    from tacit.simulate.compare.run import DataOptions, read_data

    columns = tuple(name.strip() for name in (options["column"] or "").split(",") if name.strip())
    given = DataOptions(columns, options["values"], options["bits"], options["private"], options["sql"])
    return read_data(data, task, options=given)


def _write(path: Path, rows: list[dict[str, Any]], title: str, error: str) -> None:
    """Write the page, or the rows alone where the name says so."""
    import json

    from tacit.simulate.compare.page import render_page

    text = json.dumps(rows, indent=1, allow_nan=False) if path.suffix == ".json" else render_page(rows, title, error)
    path.write_text(text, encoding="utf-8")


def _print(rows: list[dict[str, Any]], error: str) -> None:
    click.echo(f"error: {error}; * is what is answered by default")
    lines = [
        [("* " if row["pick"] else "  ") + row["method"], f"{row['epsilon']:g}"]
        + [_number(row[name]) for name in ("error", "error_se", "relative", "forecast", "coverage", "seconds")]
        for row in rows
    ]
    print_table(["method", "epsilon", "error", "±", "of the pick", "forecast", "coverage", "seconds"], lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
