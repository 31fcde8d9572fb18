"""The order of a shuffled demo: publish, let the crowd answer, close, wait for the release, compare, verify."""

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, sleep
from typing import Any
from urllib.request import urlopen

import click
import numpy as np

from tacit.cli.output import progress
from tacit.cli.shuffled.transcripts import checked_transcript
from tacit.demo.check import compare
from tacit.demo.crowd import Crowd, Example, gather
from tacit.demo.examples import LANGUAGES
from tacit.demo.send import fetch_collection
from tacit.demo.shuffled.parties import SHUFFLERS, DemoParties, processes
from tacit.demo.shuffled.respondents import send_sealed
from tacit.demo.shuffled.told import ShuffledDemo, invite, show, summary
from tacit.errors import TacitError

LOCAL_EPSILON = "4"
"""What one report spends: beside it the document states what shuffled ones keep."""
_PAUSE_SECONDS = 0.05
_BEFORE = ("none", "DRAFT", "PUBLISHED")
"""States of a session that is going to take reports."""
_STUCK_SECONDS = 1200
"""Parties give a session up after ten minutes in which nothing arrives; a collector that does not is stuck itself."""
_ERASURE_SECONDS = 120
"""How long signed notes of erasure are waited for; they come within a second of the release."""


def run_shuffled(
    data: Path | None, port: int, n: int, seed: int, *, as_json: bool, stay: Callable[[], None] | None
) -> list[str]:
    """Run the demo over a folder, or a temporary one; `stay` is called in the end. Returns what went wrong."""
    with TemporaryDirectory(prefix="tacit-demo-", ignore_cleanup_errors=True) as temporary:
        with processes(data or Path(temporary), port) as parties:
            run = ShuffledDemo(n)
            collection = _run(run, parties, seed)
            # With --json, standard output is for the program that reads it; what people read goes to standard error.
            with redirect_stdout(sys.stderr if as_json else sys.stdout):
                show(run)
                if stay is not None:
                    invite(parties.url, parties.token, collection)
            for text in run.failures:
                click.echo(f"tacit: {text}", err=True)
            if as_json:
                click.echo(json.dumps(summary(run)))
            if stay is not None:
                stay()
    return run.failures


def example() -> Example:
    """What is asked: one question of the other demo, at a larger epsilon of its own, for shuffled reports."""
    return replace(LANGUAGES, draft=LANGUAGES.draft | {"epsilon": LOCAL_EPSILON})


def _run(run: ShuffledDemo, parties: DemoParties, seed: int) -> str:
    """Go through all phases, or as many as the session comes through; returns the id of the collection."""
    with _phase(run, "publish"):
        crowd = _publish(parties, run.n, np.random.default_rng(seed))
    collection = crowd.collection.id
    with _phase(run, "upload"), progress("sealing and sending", run.n) as advance:
        faults = send_sealed(parties.url, collection, crowd.values, advance)
        run.wrong += [f"{len(faults)} respondents could not send, the first for: {faults[0]}"] if faults else []
    with _phase(run, "release"):
        parties.place.close_session(collection)
        run.status = _watch(parties, collection)
    if run.status["state"] != "RELEASED":
        run.wrong.append(f"the session was aborted: {run.status['note']}")
        return collection
    run.wrong += [f"alarm: {alarm}" for alarm in run.status["alarms"]]
    with _phase(run, "answers"):
        place = parties.place
        status, answers = place.show(collection), json.loads(place.export(collection, "json", 0.95))
        run.outcome = compare(crowd, status, answers)
    with _phase(run, "verify"):
        _verify(run, parties.url, collection)
    return collection


@contextmanager
def _phase(run: ShuffledDemo, name: str) -> Generator[None]:
    began = perf_counter()
    try:
        yield
    finally:
        run.seconds[name] = perf_counter() - began


def _publish(parties: DemoParties, n: int, rng: np.random.Generator) -> Crowd:
    """Publish the collection, wait until all parties have signed its session, and draw the crowd."""
    asked, place, terms = example(), parties.place, parties.terms(n)
    # From the same number on there are answers and a release.
    draft = asked.draft_for(n) | {"shuffle": terms, "minimum_cohort": terms["minimum"]}
    collection = place.publish(place.create(draft)["id"])["id"]
    while (status := place.session(collection))["state"] != "COLLECTING":
        # A shuffler that refuses to sign leaves a note, and nothing would ever come.
        if status["state"] not in _BEFORE or status.get("note"):
            why = status.get("note") or f"it is {status['state'].lower()}"
            raise TacitError(f"demo: the session could not be opened: {why}")
        sleep(_PAUSE_SECONDS)
    return gather(fetch_collection(parties.url, collection), asked, n, rng)


def _watch(parties: DemoParties, collection: str) -> dict[str, Any]:
    """Wait until a session has ended; parties that do not answer make the others give it up."""
    shown, last, since = 0, "", monotonic()
    with progress("shuffling, then opening", None) as advance:
        while (status := parties.place.session(collection))["state"] not in ("RELEASED", "ABORTED"):
            advance(status["opened_rows"] - shown)
            shown, now = status["opened_rows"], json.dumps(status)
            last, since = now, since if now == last else monotonic()
            if monotonic() - since > _STUCK_SECONDS:
                raise TacitError(f"demo: the session is {status['state'].lower()} and does not go on: {status['note']}")
            sleep(_PAUSE_SECONDS)
    return status


def _verify(run: ShuffledDemo, url: str, collection: str) -> None:
    """Check the transcript as anybody can, when all shufflers have signed that they erased what they held."""
    deadline = monotonic() + _ERASURE_SECONDS
    while True:
        with urlopen(f"{url}/c/{collection}/transcript.json", timeout=_ERASURE_SECONDS) as reply:
            content = reply.read()
        noted = len(json.loads(content)["transcript"]["erasures"])
        if noted == SHUFFLERS or monotonic() > deadline:
            break
        sleep(_PAUSE_SECONDS)
    if noted < SHUFFLERS:
        run.wrong.append(f"only {noted} of {SHUFFLERS} shufflers have signed that they erased")
    try:
        run.transcript = checked_transcript(content)
    except TacitError as error:
        run.wrong.append(f"the transcript is not valid: {error}")
