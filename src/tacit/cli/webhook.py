"""`tacit webhook`: addresses that a collector tells about events, and what became of its messages."""

from pathlib import Path
from typing import Any

import click

from tacit.cli.output import print_json, print_table
from tacit.cli.place import open_place, place_options


@click.group()
def webhook() -> None:
    """Have a program told about alarms, refusals, cohorts and closings."""


_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@webhook.command()
@click.argument("url")
@click.option("--on", "events", required=True, help="Events, comma-separated: alarm, rejects, cohort, closed.")
@click.option("--team", default="", help="Tell about the collections of this team alone.")
@_AS_JSON
@place_options
def add(url: str, events: str, team: str, as_json: bool, server: str, token: str, data: Path | None) -> None:
    """Tell URL about events, and print the secret that bodies are signed with; it is shown this once."""
    names = [name.strip() for name in events.split(",") if name.strip()]
    with open_place(server, token, data) as place:
        made = place.add_webhook(url, names, team)
    if as_json:
        print_json(made)
        return
    click.echo(made["id"])
    click.echo(f"secret, shown this once: {made['secret']}")


@webhook.command(name="list")
@_AS_JSON
@place_options
def list_all(as_json: bool, server: str, token: str, data: Path | None) -> None:
    """List all webhooks."""
    with open_place(server, token, data) as place:
        found = place.webhooks()
    if as_json:
        print_json(found)
        return
    print_table(["id", "events", "team", "url"], [_row(one) for one in found])


def _row(one: dict[str, Any]) -> list[str]:
    return [one["id"], ", ".join(one["events"]), one["team"], one["url"]]


@webhook.command()
@click.argument("id")
@place_options
def remove(id: str, server: str, token: str, data: Path | None) -> None:
    """Tell the webhook ID nothing any more; what is queued for it is dropped."""
    with open_place(server, token, data) as place:
        place.remove_webhook(id)
    click.echo(f"{id} is removed")


@webhook.command()
@click.argument("id")
@place_options
def test(id: str, server: str, token: str, data: Path | None) -> None:
    """Queue a test message for the webhook ID; a collector that runs sends it within seconds, and `log` says how."""
    with open_place(server, token, data) as place:
        place.test_webhook(id)
    click.echo("a test message is queued; see: tacit webhook log")


@webhook.command()
@_AS_JSON
@place_options
def log(as_json: bool, server: str, token: str, data: Path | None) -> None:
    """Print the latest messages and what became of them, newest first."""
    with open_place(server, token, data) as place:
        found = place.webhook_log()
    if as_json:
        print_json(found)
        return
    rows = [
        [str(one["number"]), one["webhook"], one["event"], one["state"], str(one["attempts"]), one["note"]]
        for one in found
    ]
    print_table(["number", "webhook", "event", "state", "attempts", "note"], rows)
