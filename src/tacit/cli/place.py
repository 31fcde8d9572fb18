"""Where the collections of a command are: on a server, or in the folder of an embedded database.

Commands are written against the protocol `Place` and do not know which of the two they work on.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import click

from tacit.cli.local import LocalOperator
from tacit.cli.options.settings import read_variable, setting
from tacit.cli.output import CommandRefused
from tacit.client.operator import Operator, Refused
from tacit.client.transport import Unreachable
from tacit.errors import InvalidQuery


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --server, --token and --data to a command."""
    # Decorators apply from the inside out, so the last one here comes first in the help text.
    for option in (
        click.option("--data", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Work on a folder."),
        setting("--token", default="", help="Token for the server."),
        setting("--server", default="", help="Address of a server."),
    ):
        command = option(command)
    return command


class Place(Protocol):
    """The operations of the commands, wherever the collections are: an `Operator`, or a `LocalOperator`."""

    def create(self, draft: Any, team: str = "") -> dict[str, Any]:
        """Store a draft, for a team if one is named, and return it with its id."""
        ...

    def publish(self, collection: str) -> dict[str, Any]:
        """Publish a draft as a collection."""
        ...

    def close(self, collection: str) -> dict[str, Any]:
        """Close a collection: it takes no more reports."""
        ...

    def assign(self, collection: str, team: str) -> dict[str, Any]:
        """Give a collection to a team, or to none."""
        ...

    def shuffle_identity(self) -> str:
        """Return the key that drafts of shuffled collections name as the collector's."""
        ...

    def session(self, collection: str) -> dict[str, Any]:
        """Return how the latest session of a shuffled collection is."""
        ...

    def open_session(self, collection: str, days: int) -> dict[str, Any]:
        """Open another session of a shuffled collection."""
        ...

    def close_session(self, collection: str) -> dict[str, Any]:
        """Close the session of a shuffled collection: its shufflers begin."""
        ...

    def abort_session(self, collection: str) -> dict[str, Any]:
        """Give the session of a shuffled collection up."""
        ...

    def advance(self, collection: str) -> dict[str, Any]:
        """Close the current round of an adaptive plan and publish the next one."""
        ...

    def invite(self, collection: str, count: int) -> "list[str]":
        """Make single-use invitations."""
        ...

    def tokens(self, collection: str) -> "dict[str, int]":
        """How many anonymous tokens were signed, and how many came with reports."""
        ...

    def origins(self, collection: str) -> "dict[str, list[str]]":
        """Return the sites that may show a collection."""
        ...

    def allow(self, collection: str, origins: "list[str]") -> "dict[str, list[str]]":
        """Allow these sites beside those of the document, and no others."""
        ...

    def import_tally(self, collection: str, data: bytes) -> dict[str, Any]:
        """Count the tally of a `.tally` file in a collection, once, and return what became of it."""
        ...

    def list(self) -> list[dict[str, Any]]:
        """Return all collections."""
        ...

    def show(self, collection: str) -> dict[str, Any]:
        """Return one collection with its counts of reports."""
        ...

    def export(self, collection: str, form: str, level: float, post: str | None = None) -> bytes:
        """Return the answers as JSON, CSV or Parquet."""
        ...

    def series(self, collection: str, given: dict[str, str], level: float, form: str = "json") -> bytes:
        """Return the series of a collection with windows, as JSON or CSV."""
        ...

    def integrity(self, collection: str) -> dict[str, Any]:
        """Return whether the reports of a collection look forged."""
        ...

    def ask(self, collection: str, question: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """Return the answer to a query about one question."""
        ...

    def joint(self, collection: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """Return the answer to a query about questions that were asked together."""
        ...

    def tables(self) -> "list[dict[str, Any]]":
        """Return the collections with rows, as tables."""
        ...

    def query(self, collection: str, sql: str, level: float) -> dict[str, Any]:
        """Return the answer to SQL as JSON."""
        ...

    def query_csv(self, collection: str, sql: str, level: float) -> str:
        """Return the answer to SQL as the text of a CSV file."""
        ...

    def add_webhook(self, url: str, events: "list[str]", team: str = "") -> dict[str, Any]:
        """Add a webhook and return it with its secret."""
        ...

    def webhooks(self) -> "list[dict[str, Any]]":
        """Return all webhooks."""
        ...

    def remove_webhook(self, webhook: str) -> None:
        """Remove a webhook."""
        ...

    def test_webhook(self, webhook: str) -> None:
        """Queue a test message."""
        ...

    def webhook_log(self) -> "list[dict[str, Any]]":
        """Return the latest messages to webhooks."""
        ...


_NEXT = {"not_found": "; tacit collection list (with the same options) shows the ids there are"}
"""What to do next about kinds of refusals, as an end of a sentence."""


def _explained(error: Exception, token: str) -> str:
    """The error message of a command for a server's problem document."""
    if isinstance(error, Unreachable):
        return (
            f"{error}; is it running, and is the address right? --server or TACIT_SERVER names it, and "
            "tacit serve --data FOLDER starts one on http://127.0.0.1:8000"
        )
    kind = error.kind if isinstance(error, Refused) else ""
    if kind != "unauthorized":
        return f"{error}{_NEXT.get(kind, '')}"
    fault = "the server does not know this token, or it has ended" if token else "the server needs a token"
    return (
        f"{fault} (401); give one with --token or as TACIT_TOKEN. If it is lost, make another on the machine of the "
        "collector: tacit token create --scope admin --data FOLDER"
    )


@contextmanager
def open_place(server: str, token: str, data: Path | None) -> Generator[Place]:
    """Yield the place that the options name; a refusal by it ends the command with one line and exit code 2."""
    if data is None:
        if not server:
            raise click.UsageError("name a server with --server (and --token), or a folder with --data")
        try:
            yield Operator(server, token)
        except (Refused, Unreachable, InvalidQuery) as error:
            raise CommandRefused(_explained(error, token)) from None
        return
    from tacit.collector.server import open_store
    from tacit.collector.service import Collector
    from tacit.hosting.problems import Problem, as_problem

    private = read_variable("TACIT_WEBHOOK_PRIVATE") == "true"
    collector = Collector(open_store(data), lake=read_variable("TACIT_LAKE"), webhook_private=private)
    try:
        yield LocalOperator(collector)
    except (Problem, InvalidQuery) as error:
        problem = as_problem(error)
        place = f" (at character {problem.position})" if problem.position else ""
        raise CommandRefused(problem.detail + place + _NEXT.get(problem.kind, "")) from None
    finally:
        collector.stop()
