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
from typing import TYPE_CHECKING

import click

from tacit.cli.output import progress

if TYPE_CHECKING:
    from tacit.client.operator import Operator
    from tacit.demo.check import DemoOutcome
    from tacit.demo.crowd import Crowd

_FEWEST = 1000
"""The fewest respondents of a demo with all examples, each of which gets a share."""


@click.command()
@click.option("--n", type=click.IntRange(200), help="Simulated respondents.  [default: 100000, or 20000 shuffled]")
@click.option("--shuffle", is_flag=True, help="One shuffled collection instead, with a relay and three shufflers.")
@click.option("--once", is_flag=True, help="Exit after checking the answers; 1 if they are implausible.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON, and the rest to standard error.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; any free one unless given.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder to keep; else a temporary one.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Seed of the made-up answers; noise is never seeded.")  # fmt: skip
def demo(
    n: int | None, shuffle: bool, once: bool, as_json: bool, port: int, data: Path | None, seed: int
) -> None:  # fmt: skip
    """Run a collector, ask a simulated crowd, compare the answers with the truth, and stay up until Ctrl-C."""
    with _stoppable():
        if shuffle:
            wrong = _run_shuffled(n or 20_000, once, as_json, port, data, seed)
        elif n is not None and n < _FEWEST:
            raise click.UsageError(f"--n is {n}, must be at least {_FEWEST}: the examples share the respondents")
        else:
            wrong = _run(n or 100_000, once, as_json, port, data, seed)
    sys.exit(1 if wrong else 0)


def _run_shuffled(n: int, once: bool, as_json: bool, port: int, data: Path | None, seed: int) -> list[str]:
    """Run the demo of a shuffled collection, and return what went wrong."""
    from tacit.core.extras import need

    need("collector", "shuffle")
    from tacit.demo.shuffled.run import run_shuffled

    return run_shuffled(data, port, n, seed, as_json=as_json, stay=None if once else lambda: _wait(as_json))


def _run(n: int, once: bool, as_json: bool, port: int, data: Path | None, seed: int) -> list[str]:
    """Run the demo of all sorts of collections, and return what went wrong."""
    from tacit.core.extras import need

    # Imports happen inside functions: `tacit --help` must not load numpy, the collector and the SQL engine.
    need("collector", "analytics")
    from tacit.client.operator import Operator
    from tacit.demo.check import complaints
    from tacit.demo.show import invite, show, summary

    with _collector(data, port) as (url, token):
        place = Operator(url, token)
        crowds = _publish(place, url, n, seed)
        started = perf_counter()
        _send(url, crowds, n)
        seconds = perf_counter() - started
        outcomes = [_outcome(place, crowd) for crowd in crowds]
        wrong = complaints(outcomes)
        # With --json, standard output is for the program that reads it; what people read goes to standard error.
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            show(outcomes, n, seconds)
            if not once:
                invite(outcomes, url, token)
        for text in wrong:
            click.echo(f"tacit: {text}", err=True)
        if as_json:
            click.echo(json.dumps(summary(outcomes, seconds)))
        if not once:
            _wait(as_json)
    return wrong


@contextmanager
def _stoppable() -> Generator[None]:
    """Make SIGTERM end the demo as Ctrl-C does, so that the collector and its folder are cleaned up."""
    # Only the main thread may set signal handlers, and a caller may run the command in another one.
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
    """Run a collector over a folder, or over a temporary one that is removed; yield its address and an admin token."""
    from tacit.demo.serve import collector

    with TemporaryDirectory(prefix="tacit-demo-", ignore_cleanup_errors=True) as temporary:
        with collector(data or Path(temporary), port) as served:
            yield served


def _publish(place: "Operator", url: str, n: int, seed: int) -> "list[Crowd]":
    """Publish the examples, and draw the crowd that will answer each."""
    import numpy as np

    from tacit.cli.output import CommandRefused
    from tacit.demo.crowd import gather, portions
    from tacit.demo.examples import examples
    from tacit.demo.send import fetch_collection

    rng, crowds, chosen = np.random.default_rng(seed), list["Crowd"](), examples()
    for example, count in zip(chosen, portions(n, chosen), strict=True):
        published = place.publish(place.create(example.draft_for(count))["id"])["id"]
        # Publishing the same draft again gives the same collection: the truth of an earlier crowd is not known any
        # more.
        if place.show(published)["reports"]:
            raise CommandRefused("the folder holds reports of an earlier demo; look at them with tacit serve")
        crowds.append(gather(fetch_collection(url, published), example, count, rng))
    return crowds


def _send(url: str, crowds: "list[Crowd]", n: int) -> None:
    from tacit.demo.send import send_all

    with progress("sending noisy reports", n) as advance:
        send_all(url, crowds, advance)


def _outcome(place: "Operator", crowd: "Crowd") -> "DemoOutcome":
    """Return what a collection answers, beside the truth."""
    from tacit.demo.check import compare
    from tacit.demo.joint import compare_joint
    from tacit.demo.table import compare_table

    collection = crowd.collection
    status, answers = place.show(collection.id), json.loads(place.export(collection.id, "json", 0.95))
    if collection.rows is not None:
        return compare_table(place, crowd, status, answers)
    if collection.policy == "joint":
        return compare_joint(place, crowd, status, answers)
    return compare(crowd, status, answers)


def _wait(as_json: bool) -> None:
    """Say how to stop the demo, and block until Ctrl-C or SIGTERM."""
    try:
        # Inside the block: whoever reads this may press the keys before the next line runs.
        click.echo("\nCtrl-C stops the collector.", err=as_json)
        Event().wait()
    except KeyboardInterrupt:
        click.echo("\nstopped", err=True)
