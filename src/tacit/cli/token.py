"""`tacit token`: make, list and revoke tokens directly in the collector's database, while it runs or not."""

import shlex
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options.settings import setting
from tacit.cli.output import print_json, print_table

if TYPE_CHECKING:
    from tacit.collector.collections.access import Access

DATABASE_FILE = "tacit.sqlite"
_PLACE: tuple[Callable[[Any], Any], ...] = (
    setting("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the database."),
    setting("--database", default="", help="PostgreSQL address, instead."),
)


def _place_options(command: Any) -> Any:
    """Add the options that say where the database is; reversed, as the decorator applied last is listed first."""
    for option in reversed(_PLACE):
        command = option(command)
    return command


@contextmanager
def _access(data: Path | None, database: str) -> "Generator[Access]":
    """Open the tokens of an existing folder or database; whoever can write to it needs no token."""
    if (data is None) == (not database):
        raise click.UsageError("give either a folder with --data or a PostgreSQL address with --database")
    if data is not None and not (data / DATABASE_FILE).is_file():
        raise click.UsageError(
            f"{data} is not the folder of a collector; name the folder that tacit serve was given, or begin a "
            f"collector there: tacit serve --data {shlex.quote(str(data))}"
        )
    # Imported after the options are checked: the collector is an optional extra.
    from tacit.collector.collections.access import Access
    from tacit.collector.server import open_store
    from tacit.hosting.problems import Problem

    store = open_store(data, database)
    try:
        yield Access(store)
    except Problem as problem:
        raise click.ClickException(problem.detail) from None
    finally:
        store.close()


@click.group()
def token() -> None:
    """Make, list and revoke tokens on the machine of the collector, while it runs or not."""


@token.command()
@click.option("--scope", type=click.Choice(["admin", "analyst", "reader", "reporter"]), required=True,
              help="What the token allows.")  # fmt: skip
@click.option("--collection", default="", help="The id of the only collection it is for.")
@click.option("--team", default="", help="The team whose collections it is limited to.")
@click.option("--label", default="", help="A name to know it by.")
@click.option("--days", type=int, default=0, show_default=True, help="Days until it ends; 0 for never.")
@_place_options
def create(
    scope: str, collection: str, team: str, label: str, days: int, data: Path | None, database: str
) -> None:  # fmt: skip
    """Make a token and print it, this once; only its hash is kept."""
    from tacit.collector.collections.access import OWNER, token_id

    with _access(data, database) as access:
        secret, record = access.create(scope, collection=collection, team=team, label=label, days=days)
        access.note(OWNER, f"create token {scope}", token_id(record))
    click.echo(secret)


@token.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_place_options
def list_tokens(as_json: bool, data: Path | None, database: str) -> None:
    """List tokens by their public names, which reveal nothing of the tokens."""
    from tacit.collector.collections.access import token_id

    with _access(data, database) as access:
        rows = [
            {"id": token_id(record), "scope": record.scope, "collection": record.collection, "team": record.team,
             "label": record.label, "expires": record.expires}
            for record in access.tokens()
        ]  # fmt: skip
    if as_json:
        print_json({"tokens": rows})
    else:
        print_table(["id", "scope", "collection", "team", "label", "ends"], [_line(row) for row in rows])


def _line(row: dict[str, Any]) -> list[str]:
    # `expires` counts days since 1970; 0 is never.
    ends = (date(1970, 1, 1) + timedelta(row["expires"])).isoformat() if row["expires"] else "never"
    return [row["id"], row["scope"], row["collection"][:12] or "all", row["team"] or "all", row["label"], ends]


@token.command()
@click.argument("id")
@_place_options
def revoke(id: str, data: Path | None, database: str) -> None:
    """End the token of a public name (see `tacit token list`) at once, also on a collector that runs."""
    from tacit.collector.collections.access import OWNER

    with _access(data, database) as access:
        access.revoke(id)
        access.note(OWNER, "revoke token", id)
    click.echo(f"tacit: revoked {id}", err=True)
