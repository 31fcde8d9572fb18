"""`tacit collection series`: the windows of a collection that asks again and again."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from tacit.cli.output import percent, print_table
from tacit.cli.place import open_place, place_options


@click.command()
@click.argument("id")
@click.option("--by", default="window", show_default=True, help="window, group (joined while too few), week or month.")
@click.option("--band", is_flag=True, help="Ends that hold for all windows and values together.")
@click.option("--smooth", type=click.Choice(["online", "afterwards"]), help="Filter the series, as a labelled step.")
@click.option("--changes", is_flag=True, help="Look for change points and jumps.")
@click.option("--against", help="Differences to another window: previous, or its number.")
@click.option("--mean", is_flag=True, help="Means over all windows as well.")
@click.option("--from", "first", type=click.IntRange(0), help="The first window.")
@click.option("--to", "last", type=click.IntRange(0), help="The last window.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", default="-", help="The file to write (json and csv).")
@place_options
def series(
    id: str, by: str, band: bool, smooth: str | None, changes: bool, against: str | None, mean: bool,
    first: int | None, last: int | None, level: float, form: str, as_json: bool, output: str,
    server: str, token: str, data: Path | None,
) -> None:  # fmt: skip
    """Print the windows of the collection ID: shares, intervals, and what is still provisional."""
    form = "json" if as_json else form
    optional = {"smooth": smooth, "against": against, "from": first, "to": last}
    given = {"by": by, "band": _flag(band), "changes": _flag(changes), "mean": _flag(mean)}
    given |= {name: str(value) for name, value in optional.items() if value is not None}
    with open_place(server, token, data) as place:
        found = place.series(id, given, level, "csv" if form == "csv" else "json")
    if form == "table":
        columns = ["low", "high", *(["band_low", "band_high"] if band else []), *(["smoothed"] if smooth else [])]
        _table(json.loads(found), [*columns, *(_DIFFERENCE if against else [])])
    elif output != "-":
        Path(output).write_bytes(found)
    else:
        shown = found if form == "csv" else json.dumps(json.loads(found), indent=2, ensure_ascii=False).encode() + b"\n"
        sys.stdout.buffer.write(shown)
        sys.stdout.buffer.flush()


def _flag(value: bool) -> str:
    return "true" if value else "false"


_DIFFERENCE = ["difference", "difference_low", "difference_high"]


def _table(answer: dict[str, Any], names: list[str]) -> None:
    header = ["days", "state", "reports", "value", "share", *(name.replace("_", " ") for name in names)]
    rows: list[list[str]] = []
    for row in answer["series"]:
        days = row["first_day"] if row["from"] == row["to"] else f"{row['first_day']} to {row['last_day']}"
        about = [days, row["state"], f"{row['n']:,}"]
        if not row["rows"]:
            rows.append([*about, "(too few)", *("-" for _ in range(len(names) + 1))])
        for cell in row["rows"]:
            numbers = (cell[name] for name in ("estimate", *names))
            shown = ("-" if number is None else percent(number) for number in numbers)
            rows.append([*about, str(cell["value"]), *shown])
    print_table(header, rows, f"by {answer['by']}, epsilon {answer['epsilon']}, guarantee: {answer['guarantee']}")
    for change in answer["changes"]:
        moved = f"{percent(change['before'])} to {percent(change['after'])}"
        click.echo(f"change: {change['value']} from {change['day']} on, {moved} (p = {change['p_value']:.2g})")
    if answer["mean"] is not None:
        for cell in answer["mean"]["each_once"]:
            ends = f"{percent(cell['low'])} to {percent(cell['high'])}"
            click.echo(f"mean: {cell['value']} {percent(cell['estimate'])} ({ends}), {answer['mean']['windows']} rows")
    for sentence in answer["words"]:
        click.echo(sentence)
