"""What the demo prints: truth against estimate, and where to look."""

from collections.abc import Sequence
from typing import Any

import click

from tacit.cli.demo_check import Outcome, Row, covered_of
from tacit.cli.output import percent, print_table
from tacit.cli.query import shown_cell
from tacit.wire.document import Collection


def summary(outcomes: Sequence[Outcome], seconds: float) -> dict[str, Any]:
    """The line of JSON."""
    covered, intervals = covered_of(row for outcome in outcomes for row in outcome.rows)
    reports = sum(outcome.answers["n"] for outcome in outcomes)
    found: dict[str, Any] = {
        "reports": reports,
        "collections": len(outcomes),
        "interval_coverage": covered / max(1, intervals),
        "reports_per_second": round(reports / seconds),
    }
    for outcome in outcomes:
        found |= outcome.summary
    return found


def show(outcomes: Sequence[Outcome], n: int, seconds: float) -> None:
    """Truth against estimate, collection by collection."""
    for outcome in outcomes:
        _show_one(outcome)
    covered, intervals = covered_of(row for outcome in outcomes for row in outcome.rows)
    click.echo(
        f"{covered} of {intervals} intervals contain the truth ({percent(covered / max(1, intervals))}); "
        "each does so with probability 95 %.",
    )
    click.echo(f"{n:,} reports perturbed, sent and stored in {seconds:.2f} s: {n / seconds:,.0f} per second.\n")


def _show_one(outcome: Outcome) -> None:
    asked, answers = outcome.crowd.collection, outcome.answers
    about = f"{answers['n']:,} reports, epsilon {answers['epsilon']}, mechanism {_mechanism(asked)}"
    click.echo(f"{asked.title['en']}: {about}")
    if asked.rows is not None:
        private, public = ([item.name for item in items] for items in (asked.questions, asked.rows.columns))
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
    """The kinds that perturb, and of which family they are where questions are asked together."""
    mechanism: Any = asked.mechanism
    joint = asked.policy == "joint"
    kinds = " and ".join(dict.fromkeys(part.kind for part in (mechanism.layout.blocks if joint else asked.members)))
    return f"{mechanism.family.kind} of {kinds}" if joint else kinds


def _show_rows(rows: Sequence[Row]) -> None:
    sql = any(row.unit == "sql" for row in rows)
    header = ["answer", "truth", "estimate", *([] if sql else ["95 % low", "high"]), "inside"]
    print_table(header, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    inside = "yes" if row.covered else "no"
    if row.unit == "sql":
        truth = f"{row.truth:,.0f}" if row.truth == int(row.truth) else f"{row.truth:,.2f}"
        return [row.value, truth, shown_cell(vars(row) | {"status": "estimate"}), inside]
    shown = percent if row.unit == "share" else "{:.3f}".format
    return [row.value, *map(shown, (row.truth, row.estimate, row.low, row.high)), inside]


def invite(outcomes: Sequence[Outcome], url: str, token: str) -> None:
    """Where to look, and at what."""
    click.echo(f"Dashboard  {url}/dashboard\n    token  {token}\n")
    click.echo(
        "Sign in with the token, open a collection, and see its shares with error bars, its privacy page and its"
    )
    click.echo("survey page, where a report of your own moves the count. Straight to the surveys:")
    collections = [outcome.crowd.collection for outcome in outcomes]
    for collection in collections:
        click.echo(f"  {collection.title['en']:<18} {url}/c/{collection.id}")
    for collection in collections:
        if collection.rows is not None:
            click.echo(
                f"SQL of your own:\n  {collection.title['en']:<18} {url}/dashboard/query?collection={collection.id}"
            )
        elif collection.policy == "joint":
            click.echo("Tables of any questions, what goes together, and the tree:")
            click.echo(f"  {collection.title['en']:<18} {url}/dashboard/collections/{collection.id}")
    click.echo("\nCtrl-C stops the collector.")
