"""How sessions and transcripts of shuffled collections are shown in a terminal."""

from collections.abc import Mapping
from typing import Any

import click

from tacit.cli.output import print_table


def claims(epsilon: Mapping[str, str], delta: str) -> list[list[str]]:
    """The three claims of a shuffled collection, as rows of a table."""
    return [
        ["the collector", epsilon["collector"], delta],
        ["the collector and all other respondents", epsilon["others"], delta],
        ["the collector and the shufflers", epsilon["local"], "0"],
    ]


def show_session(status: Mapping[str, Any]) -> None:
    """Print the status of a session for people."""
    state = status["state"].lower()
    click.echo(f"session: {status['session'] or 'none yet'}")
    click.echo(f"state: {state}" + (", closing" if status.get("closing") and state == "collecting" else ""))
    uploads: dict[str, int | None] = status.get("uploads") or {}
    for name, count in uploads.items():
        click.echo(f"uploads at {name}: {'unknown' if count is None else count}")
    if status.get("rows"):
        click.echo(f"rows opened: {status['opened_rows']:,} of {status['rows']:,}")
    if "respondents" in status:
        click.echo(f"respondents: {status['respondents']:,}, fakes beside them: {status['fakes']:,}")
    for name in ("awaited", "alarms"):
        for item in status.get(name) or ():
            click.echo(f"{'waits for' if name == 'awaited' else 'alarm'}: {item}")
    if status.get("note"):
        click.echo(f"note: {status['note']}")
    print_table(["against", "epsilon", "delta"], claims(status["epsilon"], status["delta"]))
