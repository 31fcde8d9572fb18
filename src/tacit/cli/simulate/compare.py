"""`tacit compare`: every method of a task on one's own data."""

from pathlib import Path
from typing import Any

import click

from tacit.cli.output import print_json, print_table, progress

_TASKS = ("histogram", "ranges", "marginals")


@click.command()
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="CSV with a value per line, or several attributes below a header; or counts as .npy.",
)
@click.option("--task", required=True, type=click.Choice(_TASKS), help="What is asked for.")
@click.option("--epsilon", default="0.5,1,2,4", show_default=True, help="Privacy budgets, with commas.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Simulated collections each.")
@click.option("--column", help="Column of a CSV file; for marginals several, with commas.  [default: all]")
@click.option("--k", type=click.IntRange(1, 6), default=2, show_default=True, help="Attributes of a table (marginals).")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write a page (.html) or the rows (.json) here.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    data: str, task: str, epsilon: str, seeds: int, column: str | None, k: int, output: str | None, as_json: bool
) -> None:  # fmt: skip
    """Run every method of a task on the same draws of your own data: error, bias, coverage, bits and time."""
    from tacit.simulate.compare.run import ERRORS, read_data
    from tacit.simulate.compare.run import compare as run

    epsilons = [item.strip() for item in epsilon.split(",") if item.strip()]
    if not epsilons:
        raise click.UsageError("--epsilon must be numbers with commas, such as 0.5,1,2")
    columns = [name.strip() for name in (column or "").split(",") if name.strip()]
    read = read_data(data, task, columns)
    with progress("comparing", seeds * len(epsilons)) as advance:
        rows = run(read, task, epsilons, seeds=seeds, k=k, advance=advance)
    if output:
        _write(Path(output), rows, f"{task} on {Path(data).name}", ERRORS[task])
    if as_json:
        print_json(rows)
    elif not output:
        _print(rows, ERRORS[task])


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
        + [_number(row[name]) for name in ("error", "error_se", "relative", "coverage", "seconds")]
        for row in rows
    ]
    print_table(["method", "epsilon", "error", "±", "of the pick", "coverage", "seconds"], lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
