"""What the demo prints: truth against estimate, a line of JSON for programs, and addresses to look at."""

from collections.abc import Sequence
from typing import Any

import click

from tacit.cli.output import percent, print_table
from tacit.cli.query import shown_cell
from tacit.demo.check import CheckedRow, DemoOutcome, covered_of
from tacit.wire.document import Collection


def summary(outcomes: Sequence[DemoOutcome], seconds: float) -> dict[str, Any]:
    """Return the fields of the line of JSON."""
    covered, intervals = covered_of(row for outcome in outcomes for row in outcome.rows)
    reports = sum(outcome.answers["n"] for outcome in outcomes)
    fields: dict[str, Any] = {
        "reports": reports,
        "collections": len(outcomes),
        "interval_coverage": covered / max(1, intervals),
        "reports_per_second": round(reports / seconds),
    }
    for outcome in outcomes:
        fields |= outcome.summary
    return fields


def show(outcomes: Sequence[DemoOutcome], n: int, seconds: float) -> None:
    """Print truth against estimate, collection by collection, and the speed."""
    for outcome in outcomes:
        show_one(outcome)
    covered, intervals = covered_of(row for outcome in outcomes for row in outcome.rows)
    click.echo(
        f"{covered} of {intervals} intervals contain the truth ({percent(covered / max(1, intervals))}); "
        "each does so with probability 95 %.",
    )
    click.echo(f"{n:,} reports perturbed, sent and stored in {seconds:.2f} s: {n / seconds:,.0f} per second.\n")


def show_one(outcome: DemoOutcome) -> None:
    """Print one collection: its heading, its rows under their questions, and its sentences."""
    collection, answers = outcome.crowd.collection, outcome.answers
    about = f"{answers['n']:,} reports, epsilon {answers['epsilon']}, mechanism {_mechanism(collection)}"
    click.echo(f"{collection.title['en']}: {about}")
    if collection.rows is not None:
        private, public = ([item.name for item in items] for items in (collection.questions, collection.rows.columns))
        click.echo(f"A table of the private columns {' and '.join(private)}, and public {' and '.join(public)}\n")
    for question, heading in outcome.headings.items():
        click.echo(heading)
        _show_rows([row for row in outcome.rows if row.question == question])
        click.echo()
    for sentence in outcome.told:
        click.echo(sentence)
    if outcome.told:
        click.echo()


def _mechanism(asked: Collection) -> str:
    """Return the kinds of mechanisms that perturb; where questions are asked together, with their family."""
    mechanism: Any = asked.mechanism
    joint = asked.policy == "joint"
    kinds = " and ".join(dict.fromkeys(part.kind for part in (mechanism.layout.blocks if joint else asked.members)))
    return f"{mechanism.family.kind} of {kinds}" if joint else kinds


def _show_rows(rows: Sequence[CheckedRow]) -> None:
    # An SQL cell prints its own interval, as `tacit query` does.
    sql = any(row.unit == "sql" for row in rows)
    header = ["answer", "truth", "estimate", *([] if sql else ["95 % low", "high"]), "inside"]
    print_table(header, [_cells(row) for row in rows])


def _cells(row: CheckedRow) -> list[str]:
    """Return one row as printed: counts for SQL, per cent for shares, decimals for means."""
    inside = "yes" if row.covered else "no"
    if row.unit == "sql":
        truth = f"{row.truth:,.0f}" if row.truth == int(row.truth) else f"{row.truth:,.2f}"
        return [row.value, truth, shown_cell(vars(row) | {"status": "estimate"}), inside]
    shown = percent if row.unit == "share" else "{:.3f}".format
    return [row.value, *map(shown, (row.truth, row.estimate, row.low, row.high)), inside]


def invite(outcomes: Sequence[DemoOutcome], url: str, token: str) -> None:
    """Print the addresses of the dashboard and the surveys, and what to look at."""
    click.echo(f"Dashboard  {url}/dashboard\n    token  {token}\n")
    click.echo(
        "Sign in with the token, open a collection, and see its shares with error bars, its privacy page and its"
    )
    click.echo("survey page, where a report of your own moves the count. Straight to the surveys:")
    collections = [outcome.crowd.collection for outcome in outcomes]
    for collection in collections:
        click.echo(f"  {collection.title['en']:<18} {url}/c/{collection.id}")
    # Links of the pages that only some collections have.
    for collection in collections:
        if collection.rows is not None:
            click.echo(
                f"SQL of your own:\n  {collection.title['en']:<18} {url}/dashboard/query?collection={collection.id}"
            )
        elif collection.policy == "joint":
            click.echo("Tables of any questions, what goes together, and the tree:")
            click.echo(f"  {collection.title['en']:<18} {url}/dashboard/collections/{collection.id}")
