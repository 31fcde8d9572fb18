"""`tacit query`: SQL over the rows of a collection, with error bars."""

import re
import sys
from math import floor, log10
from pathlib import Path
from typing import Any, cast

import click

from tacit.cli.output import CommandRefused, print_json, print_table
from tacit.cli.place import Place, open_place, place_options

_FROM = re.compile(r"\bfrom\s+\"?(\w+)", re.IGNORECASE)
_WORDS = {"insufficient_data": "lost in noise", "no_data": "no data", "below_minimum_cohort": "too few rows"}
"""The words printed in place of an estimate, by status."""

_LOPSIDED = 0.1
"""How far the middle of an interval may be off the estimate, in half widths, before both ends are printed."""


@click.command()
@click.argument("sql")
@click.option("--collection", "chosen", default="", help="The id of the collection, or its beginning.")
@click.option("--table", default="", help="The table.  [default: the one in FROM]")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
@place_options
def query(
    sql: str, chosen: str, table: str, level: float, form: str | None, server: str, token: str, data: Path | None
) -> None:
    """Answer SQL, a SELECT of aggregates or EXPLAIN of one, over the rows of a collection.

    For example: query "SELECT os, AVG(hours) FROM people WHERE age BETWEEN 30 AND 39 GROUP BY os"
    """
    with open_place(server, token, data) as place:
        collection = _collection(place, sql, chosen, table)
        if form == "csv":
            sys.stdout.write(place.query_csv(collection, sql, level))
            return
        answer = place.query(collection, sql, level)
    if form == "json":
        print_json(answer)
    elif "plan" in answer:
        _print_plan(answer)
    else:
        print_answer(answer)


def _collection(place: Place, sql: str, chosen: str, table: str) -> str:
    """Return the id of the collection that a query is about: the one named, or the one whose table stands in FROM."""
    tables = place.tables()
    if not tables:
        raise CommandRefused(
            "there is no table: no collection with rows is published here, or the token may not read it"
        )
    if chosen:
        matching = [item for item in tables if item["collection"].startswith(chosen)]
        if len(matching) != 1:
            raise CommandRefused(
                f"--collection: {len(matching)} collections with rows have an id that begins with {chosen[:64]}"
            )
        return matching[0]["collection"]
    # Only a lookup by name. The collector parses the SQL properly, and says what is wrong with it.
    named = _FROM.search(sql)
    name = (table or (named[1] if named else tables[0]["name"])).lower()
    known = {item["name"]: item["collection"] for item in tables}
    if name not in known:
        raise CommandRefused(f"there is no table {name[:60]!r}; there are {', '.join(list(known)[:12])}")
    older = [item for item in tables if _is_older(item, name)]
    if older:
        listed = [f"{known[name]} (the newest)", *(f"{item['collection']} ({item['name']})" for item in older[-4:])]
        raise CommandRefused(
            f"{len(older) + 1} collections have a table {name[:60]!r}: {', '.join(listed)}; "
            "say which one is meant with --collection and the beginning of its id"
        )
    return known[name]


def _is_older(item: dict[str, Any], name: str) -> bool:
    """Whether a table has the same name as a newer one: the collector then calls it by its id as well."""
    begin, _, short = item["name"].rpartition("_")
    return begin == name and bool(short) and item["collection"].startswith(short)


def print_answer(found: dict[str, Any]) -> None:
    """Print the JSON of an answer as a table."""
    columns = found["columns"]
    rows = [[shown_cell(item) for item in row] for row in found["rows"]]
    # A table that begins with a number is aligned by an empty first column.
    margin = bool(columns) and columns[0]["kind"] == "aggregate"
    header = [column["name"] for column in columns]
    print_table([""] * margin + header, [[""] * margin + row for row in rows])
    click.echo(_footer(found))


def _footer(found: dict[str, Any]) -> str:
    cells = [_cell(item) for row in found["rows"] for item in row]
    statuses = {cell["status"] for cell in cells if cell}
    words = [f"{found['n']:,} rows of {found['table']}"]
    if "estimate" in statuses:
        shown = "± or the range" if any(cell and _is_lopsided(cell) for cell in cells) else "±"
        words.append(f"{shown} holds the true number in {100 * found['level']:g} of 100 cases")
    if any(cell and "better" in cell and ", better" in shown_cell(cell) for cell in cells):
        words.append("better: biased, and nearer to the truth on average, as no count is negative and all make up one")
    if "exact" in statuses:
        words.append("numbers without ± are exact")
    if "insufficient_data" in statuses:
        words.append("lost in noise: the count is not larger than its own noise")
    if "below_minimum_cohort" in statuses:
        words.append(
            "too few rows: fewer than the minimum cohort meet the public conditions, or a few of them carry the measure"
        )
    return "\n" + "; ".join(words) + "."


def _cell(item: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", item) if isinstance(item, dict) else None


def _is_lopsided(cell: dict[str, Any]) -> bool:
    """Whether an interval reaches further to one side of its estimate than to the other."""
    if cell["estimate"] is None or cell["status"] != "estimate":
        return False
    half, middle = (cell["high"] - cell["low"]) / 2, (cell["high"] + cell["low"]) / 2
    return abs(middle - cell["estimate"]) > _LOPSIDED * half


def shown_cell(item: Any) -> str:
    """A value of a group, or an estimate with half its interval, or both ends of a lopsided one, to two digits."""
    cell = _cell(item)
    if cell is None:
        return "(missing)" if item is None else str(item)
    if cell["estimate"] is None:
        return _WORDS.get(cell["status"], str(cell["status"]))
    if cell["status"] == "exact":
        return f"{cell['estimate']:,.10g}"
    half = (cell["high"] - cell["low"]) / 2
    # Two significant digits of the error; the estimate gets the same number of decimals.
    digits = min(12, max(0, 1 - floor(log10(half)))) if half > 0 else 0
    shown = f"{cell['estimate']:,.{digits}f}"
    better = f"{cell['better']['estimate']:,.{digits}f}" if "better" in cell else shown
    beside = "" if better == shown else f", better {better}"
    if _is_lopsided(cell):
        return f"{shown} ({cell['low']:,.{digits}f} to {cell['high']:,.{digits}f}){beside}"
    return f"{shown} ± {half:,.{digits}f}{beside}"


def _print_plan(found: dict[str, Any]) -> None:
    plan = found["plan"]
    header = ["aggregate", "answer", "expected standard error", "rows", "share of private", "boxes", "nodes", "levels"]
    title = f"mechanism: {plan[0]['mechanism']}" if plan else "nothing is asked"
    print_table(header, [_step(step) for step in plan], title)


def _step(step: dict[str, Any]) -> list[str]:
    error = step["expected_standard_error"]
    return [
        step["aggregate"],
        "exact" if step["exact"] else "estimated",
        "not known" if error is None else f"{error:,.4g}",
        f"{step['rows']:,}",
        f"{100 * step['volume']:.3g} %",
        *(f"{step[name]:,}" for name in ("boxes", "nodes", "levels")),
    ]
