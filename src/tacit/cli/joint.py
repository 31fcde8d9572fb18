"""Printing for `tacit collection joint`: tables, tests of association, and synthetic records as CSV.

Answers arrive as the JSON of the collector's joint queries; one function prints each type of query (`_SHOWN`).
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from tacit.cli.output import percent, print_table

Answer = dict[str, Any]


_RESERVED = {
    "share": "share is no parameter of a query (in an address it holds the token of a link); "
    "set threshold for the least share, or shares for quantiles",
    "level": "level is no parameter of a query; write --level for the confidence level, or set threshold for a share",
}
"""Parameters with a meaning for every address: the server takes them out before the query sees them."""


def pairs_of(given: Sequence[str], example: str = "attributes=smoker,age_group") -> dict[str, str]:
    """Parse parameters written as NAME=VALUE; reserved names are refused with the right option to use."""
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


def _end(share: float) -> str:
    """An end of the interval of a share, cut to what a share can be; JSON has it as it was computed."""
    return percent(min(1.0, max(0.0, share)))


def _share(value: float | None) -> str:
    return "unknown" if value is None else percent(value)


def _interval(cell: Answer) -> str:
    return "unknown" if cell["low"] is None else f"{_end(cell['low'])} to {_end(cell['high'])}"


def _table(answer: Answer) -> None:
    names = [attribute["name"] for attribute in answer["attributes"]]
    rows = [
        [
            *map(_text, cell["values"]),
            _share(cell["raw"]["estimate"]),
            _interval(cell["raw"]),
            percent(cell["consistent"]),
            _interval({end: cell[f"consistent_{end}"] for end in ("low", "high")}),
        ]
        for cell in answer["cells"]
    ]
    wide = f"{100 * answer['level']:g} % interval"
    print_table([*names, "share", wide, "consistent", wide], rows)
    click.echo(f"\n{answer['words']}")


def _conditional(answer: Answer) -> None:
    target, condition = (attribute["name"] for attribute in answer["attributes"])
    rows = [
        [_text(cell["given"]), _text(cell["value"]), _share(cell["estimate"]), _interval(cell)]
        for cell in answer["cells"]
    ]
    print_table([condition, target, f"share of {target}", f"{100 * answer['level']:g} % interval"], rows)
    click.echo(f"\n{answer['words']}")


def _measured(value: Any) -> str:
    """Format a measure of association: an estimate with its interval, or a plain number such as a p-value."""
    if isinstance(value, dict):
        return f"{value['estimate']:.4f} ({value['low']:.4f} to {value['high']:.4f})"
    return f"{value:.4g}"


def _association(answer: Answer) -> None:
    shown = ("statistic", "degrees", "p_value", "mutual_information", "cramers_v", "correlation", "odds_ratio")
    rows = [[name.replace("_", " "), _measured(answer[name])] for name in shown if answer[name] is not None]
    if rows:
        print_table(["measure", "value"], rows)
        click.echo()
    click.echo(answer["words"])


def _number(value: float | None) -> str:
    return "not asked" if value is None else f"{value:.4g}"


_VERDICTS = {True: "yes", False: "no", None: "unknown"}


def _associations(answer: Answer) -> None:
    rows = [
        [" and ".join(pair["attributes"]), _VERDICTS[pair["dependent"]]]
        + [_number(pair[name]) for name in ("p_value", "mutual_information")]
        for pair in answer["pairs"]
    ]
    print_table(["pair", "go together", "p-value", "information"], rows)
    click.echo(f"\n{answer['words']}")


def _tree(answer: Answer) -> None:
    rows = [
        [edge["from"], edge["to"], _VERDICTS[edge["dependent"]], _number(edge["mutual_information"])]
        for edge in answer["edges"]
    ]
    print_table(["from", "to", "go together", "information"], rows)
    click.echo(f"\n{answer['words']}")


def _synthetic(answer: Answer) -> None:
    from tacit.collector.answers.ask import records_csv

    click.echo(records_csv(answer), nl=False)


_SHOWN: dict[str, Callable[[Answer], None]] = {
    "table": _table, "association": _association, "associations": _associations, "conditional": _conditional,
    "tree": _tree, "synthetic": _synthetic,
}  # fmt: skip


def show_joint(answer: Answer) -> None:
    """Print the answer to a joint query, or that there are too few reports for one."""
    if answer["status"] != "ok":
        click.echo(f"{answer['n']} reports are fewer than the smallest group the collection answers for")
        return
    _SHOWN[answer["query"]](answer)
