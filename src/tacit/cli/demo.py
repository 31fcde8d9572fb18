"""`tacit demo`: the whole of Tacit over real HTTP, on a made-up crowd, checked against the truth."""

import json
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, current_thread, main_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import percent, print_table, progress

if TYPE_CHECKING:
    from tacit.cli.collections import Remote
    from tacit.cli.demo_check import Outcome, Row
    from tacit.cli.demo_crowd import Crowd


@click.command()
@click.option("--n", type=click.IntRange(1000), default=100_000, show_default=True, help="Simulated respondents.")
@click.option("--once", is_flag=True, help="Exit after checking the answers; 1 if they are implausible.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON, and the rest to standard error.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; any free one unless given.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder to keep; else a temporary one.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Seed of the made-up answers; noise is never seeded.")  # fmt: skip
def demo(n: int, once: bool, as_json: bool, port: int, data: Path | None, seed: int) -> None:
    """Run a collector, ask a simulated crowd, compare the answers with the truth, and stay up until Ctrl-C."""
    from tacit.cli.collections import Remote
    from tacit.cli.demo_check import complaints

    with _stoppable(), _collector(data, port) as (url, token):
        place = Remote(url, token)
        crowds = _publish(place, url, n, seed)
        started = perf_counter()
        _send(url, crowds, n)
        seconds = perf_counter() - started
        outcomes = [_outcome(place, crowd) for crowd in crowds]
        wrong = complaints(outcomes)
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            _show(outcomes, n, seconds)
            if not once:
                _invite(outcomes, url, token)
        for text in wrong:
            click.echo(f"tacit: {text}", err=True)
        if as_json:
            click.echo(json.dumps(_summary(outcomes, seconds)))
        if not once:
            _wait()
    sys.exit(1 if wrong else 0)


@contextmanager
def _stoppable() -> Generator[None]:
    """SIGTERM ends the demo as Ctrl-C does, so that nothing is left behind."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _collector(data: Path | None, port: int) -> Generator[tuple[str, str]]:
    """A collector over a folder, or over a temporary one that is removed: its address, and an admin token."""
    from tacit.cli.demo_serve import collector

    with TemporaryDirectory(prefix="tacit-demo-", ignore_cleanup_errors=True) as temporary:
        with collector(data or Path(temporary), port) as served:
            yield served


def _publish(place: "Remote", url: str, n: int, seed: int) -> "list[Crowd]":
    """Publish the examples, and gather the crowd that will answer each."""
    import numpy as np

    from tacit.cli.collections import Refused
    from tacit.cli.demo_crowd import EXAMPLES, gather, portions
    from tacit.cli.demo_send import fetch_collection

    rng, crowds = np.random.default_rng(seed), list["Crowd"]()
    for example, count in zip(EXAMPLES, portions(n), strict=True):
        published = place.publish(place.create(example.draft | {"respondents": count})["id"])["id"]
        if place.show(published)["reports"]:
            raise Refused("the folder holds reports of an earlier demo; look at them with tacit serve")
        crowds.append(gather(fetch_collection(url, published), example, count, rng))
    return crowds


def _send(url: str, crowds: "list[Crowd]", n: int) -> None:
    from tacit.cli.demo_send import send_all

    with progress("sending noisy reports", n) as advance:
        send_all(url, crowds, advance)


def _outcome(place: "Remote", crowd: "Crowd") -> "Outcome":
    from tacit.cli.demo_check import compare

    identity = crowd.collection.id
    return compare(crowd, place.show(identity), json.loads(place.export(identity, "json", 0.95)))


def _summary(outcomes: "list[Outcome]", seconds: float) -> dict[str, Any]:
    rows = [row for outcome in outcomes for row in outcome.rows]
    reports = sum(outcome.answers["n"] for outcome in outcomes)
    return {
        "reports": reports,
        "collections": len(outcomes),
        "interval_coverage": sum(row.covered for row in rows) / max(1, len(rows)),
        "reports_per_second": round(reports / seconds),
    }


def _show(outcomes: "list[Outcome]", n: int, seconds: float) -> None:
    """Truth against estimate, collection by collection."""
    for outcome in outcomes:
        _show_one(outcome)
    rows = [row for outcome in outcomes for row in outcome.rows]
    covered = sum(row.covered for row in rows)
    click.echo(
        f"{covered} of {len(rows)} intervals contain the truth ({percent(covered / max(1, len(rows)))}); "
        "each does so with probability 95 %.",
    )
    click.echo(f"{n:,} reports perturbed, sent and stored in {seconds:.2f} s: {n / seconds:,.0f} per second.\n")


def _show_one(outcome: "Outcome") -> None:
    asked, answers = outcome.crowd.collection, outcome.answers
    kinds = " and ".join(dict.fromkeys(member.kind for member in asked.members))
    title = asked.title["en"]
    click.echo(f"{title}: {answers['n']:,} reports, epsilon {answers['epsilon']}, mechanism {kinds}")
    for question, told in zip(asked.questions, answers["questions"], strict=False):
        rows = [row for row in outcome.rows if row.question == question.name]
        cells = [_cells(row) for row in rows]
        group = f" ({told['n']:,} were asked)" if asked.policy == "one_of" else ""
        click.echo(f"{question.text['en']}{group}")
        print_table(["answer", "truth", "estimate", "95 % low", "high", "inside"], cells)
        click.echo()


def _cells(row: "Row") -> list[str]:
    shown = percent if row.unit == "share" else "{:.3f}".format
    numbers = map(shown, (row.truth, row.estimate, row.low, row.high))
    return [row.value, *numbers, "yes" if row.covered else "no"]


def _invite(outcomes: "list[Outcome]", url: str, token: str) -> None:
    """Where to look, and at what."""
    click.echo(f"Dashboard  {url}/dashboard\n    token  {token}\n")
    click.echo(
        "Sign in with the token, open a collection, and see its shares with error bars, its privacy page and its"
    )
    click.echo("survey page, where a report of your own moves the count. Straight to the surveys:")
    for outcome in outcomes:
        collection = outcome.crowd.collection
        click.echo(f"  {collection.title['en']:<18} {url}/c/{collection.id}")
    click.echo("\nCtrl-C stops the collector.")


def _wait() -> None:
    """Stay until stopped."""
    try:
        Event().wait()
    except KeyboardInterrupt:
        click.echo("\nstopped", err=True)
