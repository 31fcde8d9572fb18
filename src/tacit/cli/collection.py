"""`tacit collection`: write, publish, close and read collections."""

import sys
from pathlib import Path
from typing import Any

import click

from tacit.cli.draft_file import read_draft
from tacit.cli.options.post import POST
from tacit.cli.output import CommandRefused, print_json, print_table
from tacit.cli.place import open_place, place_options
from tacit.cli.time.series import series


@click.group()
def collection() -> None:
    """Create, publish, close and read collections."""


collection.add_command(series)

_TEAM = click.option("--team", default="", help="The team that gets it; else that of the token, if it has one.")


@collection.command()
@click.argument("file")
@_TEAM
@place_options
def create(file: str, team: str, server: str, token: str, data: Path | None) -> None:
    """Keep a draft from FILE (JSON or YAML, - for standard input) and print its id."""
    with open_place(server, token, data) as place:
        click.echo(place.create(read_draft(file), team)["id"])


@collection.command()
@click.argument("id")
@click.argument("team", default="")
@place_options
def assign(id: str, team: str, server: str, token: str, data: Path | None) -> None:
    """Give the collection ID to TEAM; without one, to none."""
    with open_place(server, token, data) as place:
        found = place.assign(id, team)
    click.echo(f"{found['id']} belongs to {found['team'] or 'no team'}")


@collection.command()
@click.argument("draft")
@click.option("--tokens", is_flag=True, help="Ask for an anonymous token with every report, as tokens: true does.")
@_TEAM
@place_options
def publish(draft: str, tokens: bool, team: str, server: str, token: str, data: Path | None) -> None:
    """Publish DRAFT (the id of a draft, or a file) and print the id of the collection."""
    if (team or tokens) and draft.startswith("draft-"):
        raise click.UsageError("--team and --tokens go with a file; a draft has its team, and says tokens: true itself")
    with open_place(server, token, data) as place:
        name = draft
        if not draft.startswith("draft-"):
            read = read_draft(draft)
            name = place.create({**read, "tokens": True} if tokens else read, team)["id"]
        click.echo(place.publish(name)["id"])


@collection.command()
@click.argument("id")
@click.option("--count", type=int, default=1, show_default=True, help="How many.")
@place_options
def invite(id: str, count: int, server: str, token: str, data: Path | None) -> None:
    """Make invitations to the collection ID, which work once each, and print them; they cannot be shown again."""
    with open_place(server, token, data) as place:
        for invitation in place.invite(id, count):
            click.echo(invitation)


@collection.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@place_options
def tokens(id: str, as_json: bool, server: str, token: str, data: Path | None) -> None:
    """Show how many anonymous tokens were signed for the collection ID, and how many came with reports."""
    with open_place(server, token, data) as place:
        found = place.tokens(id)
    if as_json:
        print_json(found)
        return
    click.echo(f"{found['issued']:,} tokens were signed, {found['used']:,} came with reports")


@collection.command()
@click.argument("id")
@place_options
def close(id: str, server: str, token: str, data: Path | None) -> None:
    """Take no more reports for the collection ID; its answers stay."""
    with open_place(server, token, data) as place:
        click.echo(f"{place.close(id)['id']} is closed")


@collection.command()
@click.argument("id")
@click.option("--add", multiple=True, metavar="ORIGIN", help="Allow a site such as https://example.org.")
@click.option("--remove", multiple=True, metavar="ORIGIN", help="Take a site back that was added.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@place_options
def origins(
    id: str, add: tuple[str, ...], remove: tuple[str, ...], as_json: bool, server: str, token: str, data: Path | None
) -> None:
    """Show or change which sites may embed the collection ID or send reports to it; its document stays as it is."""
    with open_place(server, token, data) as place:
        found = place.origins(id)
        if unknown := sorted(set(remove) - set(found["added"])):
            raise CommandRefused(f"{unknown[0]} is no site that was added; those of the document stay")
        if add or remove:
            found = place.allow(id, sorted((set(found["added"]) | set(add)) - set(remove)))
    if as_json:
        print_json(found)
        return
    rows = [[origin, where] for where in ("document", "added") for origin in found[where]]
    print_table(["origin", "stands in"], [[origin, _WHERE[where]] for origin, where in rows])


_WHERE = {"document": "the document", "added": "the operator's list"}


@collection.command(name="import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--into", "id", required=True, help="The id of the collection.")
@place_options
def import_tally(file: Path, id: str, server: str, token: str, data: Path | None) -> None:
    """Count the tally FILE, made elsewhere, in a collection; the same files count once."""
    with open_place(server, token, data) as place:
        found = place.import_tally(id, file.read_bytes())
    again = "; they were imported before, and count once" if found["duplicate"] else ""
    click.echo(f"tacit: {found['reports']} reports of {found['sources']} files{again}", err=True)


@collection.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@place_options
def list_all(as_json: bool, server: str, token: str, data: Path | None) -> None:
    """List all collections."""
    with open_place(server, token, data) as place:
        collections = place.list()
    if as_json:
        print_json(collections)
        return
    rows = [[row["id"], _state(row), f"{row['reports']:,}", _title(row["title"])] for row in collections]
    print_table(["id", "state", "reports", "title"], rows)


def _state(row: dict[str, Any]) -> str:
    # Collectors of earlier releases do not say whether a collection is damaged.
    return f"{row['state']}, damaged" if row.get("damaged") else row["state"]


def too_few(shown: dict[str, Any]) -> str:
    """Why an export holds no answers yet; empty where the minimum cohort is reached, or rounds say when."""
    reports, least = shown["reports"], shown["minimum_cohort"]
    if least is None or shown["plan"] is not None or reports >= least:
        return ""
    return f"tacit: {reports:,} of at least {least:,} reports; no answers yet"


def _title(texts: dict[str, str]) -> str:
    return texts.get("en") or next(iter(texts.values()), "")


@collection.command()
@click.argument("id")
@place_options
def show(id: str, server: str, token: str, data: Path | None) -> None:
    """Print the collection ID, its document and its counts as JSON."""
    with open_place(server, token, data) as place:
        print_json(place.show(id))


@collection.command()
@click.argument("id")
@click.option("--format", "form", type=click.Choice(["json", "csv", "parquet"]), default="json", show_default=True)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@POST
@click.option("-o", "--output", default="-", help="The file to write.")
@place_options
def export(
    id: str, form: str, level: float, post: str | None, output: str, server: str, token: str, data: Path | None
) -> None:
    """Write the answers of the collection ID with their intervals."""
    with open_place(server, token, data) as place:
        answers = place.export(id, form, level, post)
        few = "" if form == "json" else too_few(place.show(id))  # JSON says so itself, in its status.
    if few:
        click.echo(few, err=True)
    if output == "-":
        sys.stdout.buffer.write(answers if form == "parquet" or answers.endswith(b"\n") else answers + b"\n")
        sys.stdout.buffer.flush()
    else:
        Path(output).write_bytes(answers)


@collection.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@place_options
def integrity(id: str, as_json: bool, server: str, token: str, data: Path | None) -> None:
    """Say whether the reports of the collection ID look forged, and how far forged ones could push its answers."""
    from tacit.cli.audits.integrity import print_collection

    with open_place(server, token, data) as place:
        found = place.integrity(id)
    print_json(found) if as_json else print_collection(found)


@collection.command()
@click.argument("id")
@click.argument("question")
@click.argument("query")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A parameter of the query.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@place_options
def ask(
    id: str, question: str, query: str, given: tuple[str, ...], level: float, server: str, token: str, data: Path | None
) -> None:
    """Ask the task of QUESTION in the collection ID: a range, quantiles, the cdf, heavy intervals.

    For example: ask ID age range --set low=30 --set high=39, or: ask ID word above --set threshold=0.05
    """
    from tacit.cli.joint import pairs_of

    pairs = pairs_of(given, "low=30")
    with open_place(server, token, data) as place:
        print_json(place.ask(id, question, query, pairs, level))


@collection.command()
@click.argument("id")
@click.argument("query")
@click.argument("given", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@place_options
def joint(
    id: str, query: str, given: tuple[str, ...], level: float, as_json: bool, server: str, token: str, data: Path | None
) -> None:
    """Ask about several questions of the collection ID at once.

    QUERY is table, association, associations, conditional, tree or synthetic; for example:
    joint ID table attributes=smoker,age_group
    """
    from tacit.cli.joint import pairs_of, show_joint

    pairs = pairs_of(given)
    with open_place(server, token, data) as place:
        answer = place.joint(id, query, pairs, level)
    print_json(answer) if as_json else show_joint(answer)


@collection.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@place_options
def session(id: str, as_json: bool, server: str, token: str, data: Path | None) -> None:
    """Show how the session of the shuffled collection ID is: its state, uploads, respondents, and what it waits for."""
    from tacit.cli.shuffled.sessions import show_session

    with open_place(server, token, data) as place:
        status = place.session(id)
    print_json(status) if as_json else show_session(status)


@collection.command(name="open-session")
@click.argument("id")
@click.option("--days", type=int, default=30, show_default=True, help="Days until it closes by itself.")
@place_options
def open_session(id: str, days: int, server: str, token: str, data: Path | None) -> None:
    """Open another session of the shuffled collection ID, after one that has ended; publishing opens the first."""
    with open_place(server, token, data) as place:
        _tell(place.open_session(id, days), "waits for the signatures of its shufflers")


@collection.command(name="close-session")
@click.argument("id")
@place_options
def close_session(id: str, server: str, token: str, data: Path | None) -> None:
    """Take no more reports for the shuffled collection ID: its shufflers mix what they have."""
    with open_place(server, token, data) as place:
        _tell(place.close_session(id), f"is being closed; see: tacit collection session {id}")


@collection.command(name="abort-session")
@click.argument("id")
@place_options
def abort_session(id: str, server: str, token: str, data: Path | None) -> None:
    """Give the session of the shuffled collection ID up before it is shuffled; respondents can join the next one."""
    with open_place(server, token, data) as place:
        _tell(place.abort_session(id), "is aborted")


def _tell(status: dict[str, Any], what: str) -> None:
    click.echo(f"session {status['session']} {what}")


@collection.command()
@click.argument("id")
@place_options
def advance(id: str, server: str, token: str, data: Path | None) -> None:
    """Close the open round of the adaptive plan that the collection ID belongs to, and publish the next one."""
    with open_place(server, token, data) as place:
        state = place.advance(id)
    if state["finished"]:
        click.echo(f"the plan has found what it was looking for; see: tacit collection export {state['plan']}")
    else:
        click.echo(f"round {len(state['rounds'])} is {state['current']}")


@collection.command()
@click.argument("positives")
@click.argument("negatives", required=False)
@click.option("--question", required=True, help="The question that asks for the score.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the interval.")
@place_options
def auc(
    positives: str, negatives: str | None, question: str, level: float, server: str, token: str, data: Path | None
) -> None:
    """How often a respondent of POSITIVES scores higher than one of NEGATIVES: the area under the curve.

    One collection is enough if its question asks for a score and a label with two values.
    """
    parameters = {} if negatives is None else {"other": negatives}
    with open_place(server, token, data) as place:
        print_json(place.ask(positives, question, "auc", parameters, level))
