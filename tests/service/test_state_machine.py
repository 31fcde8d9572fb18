"""Random histories of a real server: whatever is sent, dropped, killed and restarted, every report counts once.

Reports carry no noise and every value is sent in one batch only. So a count of 2 is a double count, an acknowledged
value with a count of 0 is a loss, and of a batch without an acknowledgement either all values are there or none.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.service.plain import wide_draft
from tests.service.served import Forgetful, Hasty, Served, hang_up
from tests.service.waiting import wait_until

from tacit.collector.store.sqlite.store import SqliteStore
from tacit.wire.batch import MEDIA_TYPE, Batch, Block, batch_to_json, encode_batch, new_batch_id

SIZE = 200
BINARY = (MEDIA_TYPE, "text/plain")
FORMS = (*BINARY, "application/json", "text/plain;charset=UTF-8")


@dataclass
class Known:
    """What must be true of a collection."""

    id: str
    last_day: int
    invitations: bool
    state: str = "published"
    is_dropped: bool = False
    sent: list[Sent] = field(default_factory=list)
    values: int = 0


@dataclass
class Sent:
    """A batch that was sent at least once."""

    known: Known
    batch: Batch
    headers: dict[str, str]
    is_stored: bool | None = None
    """None as long as nobody can tell."""

    @property
    def values(self) -> bytes:
        return self.batch.blocks[0].payload

    def body(self, form: str) -> bytes:
        if form in BINARY:
            return encode_batch(self.batch)
        return json.dumps(batch_to_json(self.batch, (1,))).encode()


class Machine(RuleBasedStateMachine):
    """A collector beside a model of it."""

    sqlite: type[SqliteStore] = SqliteStore
    workers = 1
    place: staticmethod[[Path], str] = staticmethod(lambda folder: str(folder / "data"))

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tacit-machine-"))
        self.server = Served(self.place(self.folder), self.folder, self.sqlite, self.workers)
        self.server.start()
        self.token, self.day = self.server.token, self.server.day
        self.known: list[Known] = []
        self.tokens: dict[str, int] = {}
        self.news = 0
        """Batches sent since the last start: a server that has nothing new need not be killed again."""

    collections: Bundle[Known] = Bundle("collections")
    batches: Bundle[Sent] = Bundle("batches")

    # What operators do.

    @initialize(target=collections)
    def begin(self) -> Known:
        return self.publish(30, False)

    @precondition(lambda self: len(self.known) < 3)
    @rule(target=collections, days=st.sampled_from([2, 30]), invitations=st.booleans())
    def publish(self, days: int, invitations: bool) -> Known:
        given = wide_draft(SIZE, minimum_cohort=1, retention_days=days, invitations=invitations)
        name = self.server.publish(given | {"title": f"Number {len(self.known)}"})
        self.known.append(Known(name, self.day + days, invitations))
        return self.known[-1]

    @rule(known=collections)
    def close(self, known: Known) -> None:
        self.server.post(f"/collections/{known.id}/close")
        known.state = "closed"

    @precondition(lambda self: len(self.tokens) < 3)
    @rule(days=st.integers(1, 40))
    def make_token(self, days: int) -> None:
        made = self.server.post("/tokens", {"scope": "analyst", "days": days})
        self.tokens[made["token"]] = self.day + days

    @rule(days=st.sampled_from([-400, -3, 2, 30]))
    def let_days_pass(self, days: int) -> None:
        """Forwards or, as clocks do, backwards; then wait until the server has looked at its calendar."""
        self.day += days
        self.server.day = self.day
        for known in self.known:
            if self.day >= known.last_day and not known.is_dropped:
                self.wait_until_dropped(known)

    def wait_until_dropped(self, known: Known) -> None:
        def is_dropped() -> bool:
            status = self.status(known)
            return status["state"] == "closed" and not status["reports"]

        wait_until(is_dropped, "nothing was dropped")
        known.state, known.is_dropped = "closed", True
        for sent in known.sent:
            sent.is_stored = False

    # What devices do.

    def compose(self, known: Known, count: int) -> Sent:
        count = 1 if known.invitations else count
        values = bytes(range(known.values, known.values + count))
        known.values += count
        self.news += 1
        headers: dict[str, str] = {}
        if known.invitations:
            made = self.server.post(f"/collections/{known.id}/invitations", {"count": 1})
            headers = {"Tacit_Invitation": made["invitations"][0]}
        known.sent.append(Sent(known, Batch(known.id, new_batch_id(), (Block(0, count, values),)), headers))
        return known.sent[-1]

    def send(self, sent: Sent, form: str) -> None:
        """Send a batch, for the first time or again, and believe the answer if it is one that may be."""
        status, reply = self.server.send(sent.known.id, sent.body(form), form, **sent.headers)
        fresh = 201 if sent.known.state == "published" else 410
        allowed = {200, fresh} if sent.is_stored is None else {200} if sent.is_stored else {fresh}
        assert status in allowed, (status, reply)
        if status != 410:
            taken = len(sent.values) if status == 201 else 0
            assert reply == {"accepted": taken, "rejected": [], "duplicate": status == 200}
        sent.is_stored = status != 410

    @rule(target=batches, known=collections, count=st.integers(1, 3), form=st.sampled_from(FORMS))
    def upload(self, known: Known, count: int, form: str) -> Sent:
        sent = self.compose(known, count)
        sent.is_stored = False
        self.send(sent, form)
        return sent

    @rule(sent=batches, form=st.sampled_from(FORMS))
    def replay(self, sent: Sent, form: str) -> None:
        self.send(sent, form)

    @rule(target=batches, known=collections, count=st.integers(1, 3), form=st.sampled_from(FORMS), abrupt=st.booleans())
    def upload_and_drop_the_response(self, known: Known, count: int, form: str, abrupt: bool) -> Sent:
        sent = self.compose(known, count)
        connection = self.server.begin(known.id, sent.body(form), form, **sent.headers)
        hang_up(connection) if abrupt else connection.close()
        return sent

    @rule(target=batches, known=collections, form=st.sampled_from(FORMS), missing=st.integers(1, 60))
    def upload_a_part(self, known: Known, form: str, missing: int) -> Sent:
        """The connection breaks before the last byte: nothing of it may count."""
        sent = self.compose(known, 3)
        sent.is_stored = False
        self.server.begin(known.id, sent.body(form), form, missing=missing, **sent.headers).close()
        return sent

    @rule(sent=batches)
    def spend_an_invitation_again(self, sent: Sent) -> None:
        known = sent.known
        if not known.invitations or sent.is_stored is not True or known.is_dropped:
            return
        other = self.compose(known, 1)
        other.headers, other.is_stored = sent.headers, False
        status, _ = self.server.send(known.id, other.body(MEDIA_TYPE), **other.headers)
        assert status == (403 if known.state == "published" else 410)

    @rule(known=collections, garbage=st.binary(max_size=80), form=st.sampled_from(FORMS))
    def upload_garbage(self, known: Known, garbage: bytes, form: str) -> None:
        status, reply = self.server.send(known.id, garbage, form)
        assert 400 <= status < 500 and reply["type"].startswith("urn:tacit:error:")

    # What happens to the server.

    def restart(self, kindly: bool) -> None:
        self.server.stop() if kindly else self.server.kill()
        self.server.start()
        self.news = 0

    @precondition(lambda self: self.news > 1)
    @rule()
    def kill_and_start(self) -> None:
        self.restart(kindly=False)

    @precondition(lambda self: self.news > 1)
    @rule()
    def stop_and_start(self) -> None:
        self.restart(kindly=True)

    @precondition(lambda self: self.news > 1)
    @rule(
        target=batches,
        known=collections,
        counts=st.lists(st.integers(1, 3), min_size=1, max_size=5),
        delay=st.floats(0, 0.01),
        kindly=st.booleans(),
    )
    def end_amid_uploads(self, known: Known, counts: list[int], delay: float, kindly: bool) -> Any:
        """Kill or stop the server while it has batches in its hands."""
        composed = [self.compose(known, count) for count in counts]
        connections = [self.server.begin(known.id, s.body(MEDIA_TYPE), **s.headers) for s in composed]
        time.sleep(delay)
        self.server.stop() if kindly else self.server.kill()
        for sent, connection in zip(composed, connections, strict=True):
            with connection, suppress(OSError):
                if connection.recv(100).startswith(b"HTTP/1.1 20"):
                    sent.is_stored = True
        self.server.start()
        self.news = 0
        return multiple(*composed)

    # What must hold after every step.

    def status(self, known: Known) -> Any:
        return self.server.get(f"/api/v1/collections/{known.id}/status", self.token)[1]

    def counts(self, known: Known) -> list[int]:
        answers = self.server.get(f"/api/v1/collections/{known.id}/answers", self.token)[1]
        if answers["status"] != "ok":
            assert answers["n"] == 0
            return [0] * SIZE
        return [round(row["raw"]["estimate"] * answers["n"]) for row in answers["questions"][0]["rows"]]

    @invariant()
    def every_report_counts_once(self) -> None:
        for known in self.known:
            counts = self.counts(known)
            assert not any(counts[known.values :])
            for sent in known.sent:
                found = {counts[value] for value in sent.values}
                expected = ({0}, {1}) if sent.is_stored is None else ({int(sent.is_stored)},)
                assert found in expected, (found, sent)
                # What was seen once has been committed: it may not go away again.
                sent.is_stored = True if found == {1} else sent.is_stored

    @invariant()
    def states_and_tokens_agree(self) -> None:
        for known in self.known:
            assert self.status(known)["state"] == known.state
        for token, last_day in self.tokens.items():
            status, _ = self.server.get("/api/v1/collections", token)
            assert status == (200 if self.day < last_day else 401)

    def teardown(self) -> None:
        """Devices send again what they heard nothing about; then everything that could be stored is, once."""
        try:
            if self.server.is_ready():
                for sent in [sent for known in self.known for sent in known.sent if sent.is_stored is None]:
                    self.send(sent, MEDIA_TYPE)
                self.every_report_counts_once()
        finally:
            self.server.kill()
            shutil.rmtree(self.folder)


def run(machine: type[Machine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],  # A history on a real server does not repeat to the instant, so none is shrunk.
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_history_of_a_server_counts_every_report_once():
    run(Machine, examples=2, steps=30)


@pytest.mark.slow
def test_many_histories_of_a_server_count_every_report_once():
    run(Machine, examples=150, steps=60)


@pytest.mark.parametrize("examples", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_any_history_over_postgres_counts_every_report_once(postgres: Any, examples: int):
    def empty(folder: Path) -> str:
        postgres.forget()
        return postgres.url

    run(type("Machine", (Machine,), {"place": staticmethod(empty)}), examples=examples, steps=40)


# `test_server_faults` tells one of both under load in the fast run.
@pytest.mark.slow
@pytest.mark.parametrize("sqlite", [Hasty, Forgetful])
def test_histories_tell_a_store_that_counts_twice_or_loses(sqlite: type[SqliteStore]):
    """The proof that the tests above can fail; a history that is run again may fail elsewhere, which is `Flaky`."""
    with pytest.raises((AssertionError, FlakyFailure)):
        run(type("Broken", (Machine,), {"sqlite": sqlite}), examples=100, steps=25)
