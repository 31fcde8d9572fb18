"""What `tacit collection joint` prints: tables, verdicts, and synthetic records as CSV."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from tacit.cli.output import percent, print_table

Found = dict[str, Any]


_RESERVED = {
    "share": "share is no parameter of a query (in an address it holds the token of a link); "
    "set threshold for the least share, or shares for quantiles",
    "level": "level is no parameter of a query; write --level for the confidence level, or set threshold for a share",
}
"""What an address means for every query: a server would take them out before the query sees them."""


def pairs_of(given: Sequence[str], example: str = "attributes=smoker,age_group") -> dict[str, str]:
    """Parameters that are written as NAME=VALUE; those that every address has are refused."""
    pairs: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not name or not equals:
            raise click.UsageError(f"{item!r} must be NAME=VALUE, such as {example}")
        if name in _RESERVED:
            raise click.UsageError(_RESERVED[name])
        pairs[name] = value
    return pairs


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _share(value: float | None) -> str:
    return "unknown" if value is None else percent(value)


def _interval(cell: Found) -> str:
    return "unknown" if cell["low"] is None else f"{percent(cell['low'])} to {percent(cell['high'])}"


def _table(found: Found) -> None:
    names = [attribute["name"] for attribute in found["attributes"]]
    rows = [
        [
            *map(_text, cell["values"]),
            _share(cell["raw"]["estimate"]),
            _interval(cell["raw"]),
            percent(cell["consistent"]),
            _interval({end: cell[f"consistent_{end}"] for end in ("low", "high")}),
        ]
        for cell in found["cells"]
    ]
    wide = f"{100 * found['level']:g} % interval"
    print_table([*names, "share", wide, "consistent", wide], rows)
    click.echo(f"\n{found['words']}")


def _conditional(found: Found) -> None:
    asked, given = (attribute["name"] for attribute in found["attributes"])
    rows = [
        [_text(cell["given"]), _text(cell["value"]), _share(cell["estimate"]), _interval(cell)]
        for cell in found["cells"]
    ]
    print_table([given, asked, f"share of {asked}", f"{100 * found['level']:g} % interval"], rows)
    click.echo(f"\n{found['words']}")


def _measured(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['estimate']:.4f} ({value['low']:.4f} to {value['high']:.4f})"
    return f"{value:.4g}"


def _association(found: Found) -> None:
    shown = ("statistic", "degrees", "p_value", "mutual_information", "cramers_v", "correlation", "odds_ratio")
    rows = [[name.replace("_", " "), _measured(found[name])] for name in shown if found[name] is not None]
    if rows:
        print_table(["measure", "value"], rows)
        click.echo()
    click.echo(found["words"])


def _number(value: float | None) -> str:
    return "not asked" if value is None else f"{value:.4g}"


_VERDICTS = {True: "yes", False: "no", None: "unknown"}


def _associations(found: Found) -> None:
    rows = [
        [" and ".join(pair["attributes"]), _VERDICTS[pair["dependent"]]]
        + [_number(pair[name]) for name in ("p_value", "mutual_information")]
        for pair in found["pairs"]
    ]
    print_table(["pair", "go together", "p-value", "information"], rows)
    click.echo(f"\n{found['words']}")


def _tree(found: Found) -> None:
    rows = [
        [edge["from"], edge["to"], _VERDICTS[edge["dependent"]], _number(edge["mutual_information"])]
        for edge in found["edges"]
    ]
    print_table(["from", "to", "go together", "information"], rows)
    click.echo(f"\n{found['words']}")


def _synthetic(found: Found) -> None:
    from tacit.collector.ask import records_csv

    click.echo(records_csv(found), nl=False)


_SHOWN: dict[str, Callable[[Found], None]] = {
    "table": _table, "association": _association, "associations": _associations, "conditional": _conditional,
    "tree": _tree, "synthetic": _synthetic,
}  # fmt: skip


def show_joint(found: Found) -> None:
    """Print what a query found, or that there are too few reports."""
    if found["status"] != "ok":
        click.echo(f"{found['n']} reports are fewer than the smallest group the collection answers for")
        return
    _SHOWN[found["query"]](found)
