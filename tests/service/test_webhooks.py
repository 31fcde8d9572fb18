"""Webhooks: events that are told once, to a real server, signed, retried and logged, and to no private address."""

import hmac
import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.service.memory import MemoryStore
from tests.service.plain import serving
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.cli import cli
from tacit.collector.collections.access import Bearer
from tacit.collector.collections.publish import publish_document
from tacit.collector.notices.lookout import LastInspection, Lookout, Sight, events_of
from tacit.collector.notices.outgoing import NotDelivered, checked_url, is_public, post
from tacit.collector.notices.webhooks import MOST_OF_TEAM, PAUSES, Webhooks, shown
from tacit.collector.ports import DeliveryRecord, NewBatch, NoticeStore, WebhookRecord
from tacit.collector.server import make_app
from tacit.collector.service import Collector
from tacit.collector.store.notices import MOST_DELIVERIES, MOST_OF_ONE
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.errors import InvalidSpec
from tacit.hosting.clock import Clock
from tacit.hosting.problems import Problem
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.poisoning.attacks import Attack, fake_reports

LABELS = [f"answer {i}" for i in range(24)]
DRAFT: dict[str, Any] = {
    "title": "Habits",
    "epsilon": "1",
    "minimum_cohort": 100,
    "questions": [{"name": "habit", "text": "Which?", "domain": {"kind": "categories", "labels": LABELS}}],
}


@dataclass
class Receiver:
    """A server that keeps what it was sent and answers with a status."""

    url: str
    status: int = 200
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])

    @property
    def events(self) -> list[str]:
        return [json.loads(body)["event"] for _, body in self.heard]


@contextmanager
def receiving() -> Generator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.heard.append((dict(self.headers), body))
            self.send_response(receiver.status)
            if receiver.status == 302:
                self.send_header("Location", receiver.url + "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class StoppedClock(Clock):
    """A calendar that a test moves."""

    at: list[float] = field(default_factory=lambda: [1_800_000_000.0])

    def __post_init__(self) -> None:
        object.__setattr__(self, "now", lambda: self.at[0])


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def notices(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[NoticeStore]:
    make = {
        "sqlite": lambda: SqliteStore(tmp_path / "data"),
        "postgres": lambda: PostgresStore(request.getfixturevalue("postgres").url),
        "memory": MemoryStore,
    }
    store: Any = make[request.param]()
    yield store.notices
    store.close()


def waiting(webhook: str = "w", due: int = 10) -> DeliveryRecord:
    return DeliveryRecord(0, webhook, "closed", "c", "{}", "waiting", 0, due, 1, "")


def test_every_store_queues_once_leases_and_keeps_a_bounded_log(notices: NoticeStore) -> None:
    hook = WebhookRecord("w", "https://example.org/", "closed", "s", "", 1)
    notices.add_webhook(hook)
    assert notices.webhooks() == [hook]
    assert notices.announce("mark", [waiting(due=20), waiting()])
    assert not notices.announce("mark", [waiting()])
    assert notices.claim("w", 9, 5) is None and notices.due(9) == [] and notices.due(10) == ["w"]
    first = notices.claim("w", 30, 5)
    assert first is not None and (first.due, first.attempts) == (35, 1) and notices.claim("v", 30, 5) is None
    second = notices.claim("w", 31, 5)
    assert second is not None and second.number != first.number and notices.claim("w", 31, 5) is None
    # A sender that died gives its message back when the lease is over.
    again = notices.claim("w", 35, 5)
    assert again is not None and again.number == first.number and again.attempts == 2
    notices.settle(replace(again, state="delivered", due=0, note="answered 200"))
    assert {one.state for one in notices.deliveries(10)} == {"delivered", "waiting"}
    # A later time of its own stays.
    assert notices.announce("late", [waiting(due=99)])
    notices.put_off("w", 50)
    assert [(one.state, one.due) for one in notices.deliveries(10)] == [
        ("waiting", 99), ("delivered", 0), ("waiting", 50)
    ]  # fmt: skip
    # Whoever is told much loses its own messages, and nobody else's.
    assert notices.announce("", [waiting("v") for _ in range(MOST_OF_ONE + 5)]) and notices.announce("", [])
    kept = notices.deliveries(2 * MOST_DELIVERIES)
    assert [one.webhook for one in kept] == ["v"] * MOST_OF_ONE + ["w"] * 3
    done = [replace(waiting(f"gone {i}"), state="failed") for i in range(MOST_DELIVERIES + 1)]
    assert notices.announce("done", done)
    kept = notices.deliveries(2 * MOST_DELIVERIES)
    assert len(kept) == MOST_DELIVERIES + MOST_OF_ONE + 2 and [one.state for one in kept].count("waiting") == 202
    assert notices.remove_webhook("w") and not notices.remove_webhook("w") and notices.webhooks() == []


def test_webhooks_and_their_queue_survive_a_backup_into_the_other_database(tmp_path: Path, postgres: Any) -> None:
    store = SqliteStore(tmp_path / "data")
    store.notices.add_webhook(WebhookRecord("w", "https://example.org/", "closed", "s", "", 1))
    store.notices.announce("mark", [waiting()])
    store.backup(str(tmp_path / "copy"))
    store.close()
    other = PostgresStore(postgres.url)
    try:
        other.restore(str(tmp_path / "copy"))
        assert [one.id for one in other.notices.webhooks()] == ["w"] and not other.notices.announce("mark", [])
        assert other.notices.announce("next", [waiting()]) and len(other.notices.deliveries(10)) == 2
    finally:
        other.close()


def collecting(clock: Clock) -> tuple[Collector, str, Any]:
    collector = Collector(MemoryStore(), clock=clock, webhook_private=True)
    mechanism = OUE(size=len(LABELS), epsilon="1")
    planned = replace(collector.planner.plan(DRAFT)[0], mechanism=mechanism)
    return collector, publish_document(collector.store, planned).id, mechanism


def send(collector: Collector, collection: str, reports: Any, number: int, **rejected: int) -> None:
    batch = NewBatch(collection, number.to_bytes(16, "little"), reports.tobytes(), len(reports), rejected)
    assert collector.store.add_batches([batch]) == ["stored"]


def told(collector: Collector) -> None:
    collector.notices.lookout.look()
    collector.notices.webhooks.deliver_due()


def test_a_real_server_is_told_of_every_event_once_and_can_verify_it() -> None:
    """A false alarm in the first two looks has probability below 0.003 by the budget; seeds are fixed."""
    clock = StoppedClock()
    collector, collection, mechanism = collecting(clock)
    with receiving() as receiver:
        webhooks = collector.notices.webhooks
        secret, record = webhooks.add(receiver.url + "/hook?x=1", ["closed", "alarm", "rejects", "cohort"])
        assert "secret" not in shown(record) and secret not in repr(record)
        told(collector)
        assert receiver.heard == []
        send(collector, collection, mechanism.privatize(np.arange(16_000) % 24, SimulationCoins(4)), 1, range=99)
        told(collector)
        assert receiver.events == ["cohort"]
        fakes = fake_reports(mechanism, Attack("mga", np.array([2, 7, 11, 19]), search=20_000), 800, 4)
        send(collector, collection, fakes, 2, range=901, duplicate=5_000)
        told(collector)
        told(collector)
        assert receiver.events == ["cohort", "alarm", "rejects"]
        collector.close(collection)
        told(collector)
        assert receiver.events[3:] == ["closed"]
        for headers, body in receiver.heard:
            signed = hmac.new(secret.encode(), headers["Tacit-Timestamp"].encode() + b"." + body, sha256)
            assert headers["Tacit-Signature"] == f"v1={signed.hexdigest()}"
            # Nothing but counts and states, and no label of any answer.
            found = json.loads(body)
            assert found.keys() <= {"id", "event", "collection", "time", "reports", "refused", "state", "integrity"}
            assert b"answer" not in body and found["collection"] == collection
        text = collector.exposition()
        label = f'{{collection="{collection[:12]}"}}'
        assert f"tacit_integrity_state{label} 2" in text and f"tacit_collection_refused{label} 1000" in text
        assert collection not in text and "tacit_integrity_least_p_value" in text
        assert [one["state"] for one in webhooks.log()] == ["delivered"] * 4
    collector.stop()


def test_failed_attempts_come_later_each_time_and_end() -> None:
    clock = StoppedClock()
    collector, collection, _ = collecting(clock)
    with receiving() as receiver:
        receiver.status = 302
        webhooks = collector.notices.webhooks
        webhooks.add(receiver.url, ["closed"])
        collector.close(collection)
        told(collector)
        for number, pause in enumerate(PAUSES, 1):
            clock.at[0] += pause - 1
            told(collector)
            # A redirect is not followed: one request for every attempt.
            assert len(receiver.heard) == number
            clock.at[0] += 1
            told(collector)
        assert len(receiver.heard) == len(PAUSES) + 1
        (entry,) = webhooks.log()
        assert (entry["state"], entry["note"]) == ("failed", "answered 302")
        # The body stays the same, so that a receiver can tell a repetition by its id; the signature is fresh.
        assert len({body for _, body in receiver.heard}) == 1
        assert len({headers["Tacit-Signature"] for headers, _ in receiver.heard}) == len(receiver.heard)
    collector.stop()


def test_a_server_that_is_gone_or_never_answers_is_no_answer() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(NotDelivered, match="no answer"):
        post(f"http://127.0.0.1:{port}/", b"{}", {}, private=True)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NotDelivered, match="no answer"):
        post(f"http://127.0.0.1:{silent.getsockname()[1]}/", b"{}", {}, private=True, seconds=0.2)


def test_a_host_that_speaks_byte_by_byte_is_given_up_in_tls_as_well() -> None:
    """A timeout begins anew with every byte; the record that is announced here would take its time."""
    sent = list[int]()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            with server.accept()[0] as client:
                client.sendall(b"\x16\x03\x03\x40\x00")
                try:
                    for number in range(500):
                        sent.append(number)
                        sleep(0.01)
                        client.sendall(b"\0")
                except OSError:
                    return

        thread = Thread(target=drip, daemon=True)
        thread.start()
        with pytest.raises(NotDelivered, match="no answer"):
            post(f"https://127.0.0.1:{server.getsockname()[1]}/", b"{}", {}, private=True, seconds=0.1)
        thread.join()
    assert len(sent) < 500


def test_no_private_address_is_reached_unless_it_is_allowed() -> None:
    with receiving() as receiver:
        port = receiver.url.rpartition(":")[2]
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"):
            with pytest.raises(NotDelivered, match=r"private|not known"):
                post(f"http://{host}:{port}/", b"{}", {}, private=False)
        assert receiver.heard == []
    private = (
        "10.1.2.3",
        "169.254.169.254",
        "192.168.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "2002:7f00:1::",
        "224.0.0.1",
        "fec0::2",  # Site-local: networks of before, and the host as its virtual machines see it.
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "4000::1",  # What nobody has been given is routed where a network likes.
        "192.0.0.192",  # Where a cloud has its metadata.
    )
    assert not any(is_public(address) for address in private)
    assert is_public("2606:4700::1111") and is_public("1.1.1.1")
    for wrong in ("http://example.org", "ftp://example.org", "https://", "https://u:p@example.org", 5,
                  "https://example.org/#x", "https://ex ample.org", "https://example.org:99999"):  # fmt: skip
        with pytest.raises(InvalidSpec, match="webhook: url"):
            checked_url(wrong, private=False)
    assert checked_url("https://example.org/a?b", private=False) == "https://example.org/a?b"


def test_teams_see_and_are_told_of_their_own_collections_alone() -> None:
    store, heard = MemoryStore(), list[str]()

    def record(url: str, body: bytes, headers: Any, *, private: bool) -> int:
        del body, headers, private
        heard.append(url)
        return 204

    webhooks = Webhooks(store.notices, Clock(), post=record)
    red = Bearer("admin", "", "red", team="red")
    with pytest.raises(Problem, match="red"):
        webhooks.add("https://b.example/", ["closed"], team="blue", by=red)
    _, mine = webhooks.add("https://red.example/", ["closed"], by=red)
    _, theirs = webhooks.add("https://blue.example/", ["closed"], team="blue")
    webhooks.add("https://all.example/", ["closed", "cohort"])
    assert webhooks.all(red) == [mine] and len(webhooks.all()) == 3
    for act in (webhooks.remove, webhooks.test):
        with pytest.raises(Problem, match="no such webhook"):
            act(theirs.id, red)
    (event,) = events_of(Sight("c", "closed", "red", 5, 100, {}), None)
    assert webhooks.announce(event) and not webhooks.announce(event)
    webhooks.deliver_due()
    assert sorted(heard) == ["https://all.example/", "https://red.example/"]
    assert [one["webhook"] for one in webhooks.log(red)] == [mine.id]
    for events in ([], ["typo"], "closed", None):
        with pytest.raises(InvalidSpec, match="webhook: events"):
            webhooks.add("https://a.example/", events)


def test_a_team_takes_neither_all_webhooks_nor_the_queue_from_others() -> None:
    store = MemoryStore().notices
    webhooks, red = Webhooks(store, Clock()), Bearer("admin", "", "red", team="red")
    _, all_of_them = webhooks.add("https://all.example/", ["closed"])
    mine = [webhooks.add("https://red.example/", ["closed"], by=red)[1] for _ in range(MOST_OF_TEAM)]
    with pytest.raises(Problem, match="most for the team 'red'"):
        webhooks.add("https://red.example/", ["closed"], by=red)
    _, blue = webhooks.add("https://blue.example/", ["closed"], team="blue")
    assert webhooks.announce(events_of(Sight("c", "closed", "blue", 5, 100, {}), None)[0])
    for _ in range(1_000):
        webhooks.test(mine[0].id, red)
    closed = [one for one in store.deliveries(2_000) if one.event == "closed"]
    assert {(one.webhook, one.state) for one in closed} == {(all_of_them.id, "waiting"), (blue.id, "waiting")}
    assert [one["event"] for one in webhooks.log(replace(red, team="blue"))] == ["closed"]


def test_slow_receivers_hold_up_neither_others_nor_the_end_of_the_collector() -> None:
    """Everything waits for events that a test sets: the slow receiver answers when all others were told."""
    heard, begun, released = list[str](), Event(), Event()

    def slow(url: str, body: bytes, headers: Any, *, private: bool) -> int:
        del body, headers, private
        heard.append(url)
        if "slow" in url:
            begun.set()
            assert released.wait(PATIENT_SECONDS)
            raise NotDelivered("no answer (TimeoutError)")
        return 204

    store, clock = MemoryStore().notices, StoppedClock()
    webhooks = Webhooks(store, clock, post=slow)
    _, first = webhooks.add("https://slow.example/", ["closed"])
    _, other = webhooks.add("https://quick.example/", ["closed"])
    for _ in range(3):
        webhooks.test(first.id)
    for _ in range(3):
        webhooks.test(other.id)
    assert len(webhooks.begin_due()) == 2
    assert begun.wait(PATIENT_SECONDS)
    wait_until(lambda: heard.count("https://quick.example/") == 3)
    # What comes while it still waits does not wait with it, and it has no second thread.
    webhooks.test(other.id)
    wait_until(lambda: bool(webhooks.begin_due()) or heard.count("https://quick.example/") == 4)
    wait_until(lambda: heard.count("https://quick.example/") == 4)
    webhooks.stop(seconds=0.01)
    assert not webhooks.begin_due()
    released.set()
    # One failure speaks for the messages behind it: none of them took its ten seconds, and all come later.
    later = int(clock.at[0]) + PAUSES[0]
    wait_until(lambda: [one.due for one in store.deliveries(10) if one.webhook == first.id] == [later] * 3)
    assert heard.count("https://slow.example/") == 1


def test_what_is_new_does_not_wait_as_long_as_what_has_failed_for_hours() -> None:
    def silent(*_: Any, private: bool) -> int:
        del private
        raise NotDelivered("no answer (TimeoutError)")

    store, clock = MemoryStore().notices, StoppedClock()
    webhooks = Webhooks(store, clock, post=silent)
    _, hook = webhooks.add("https://away.example/", ["closed"])
    webhooks.test(hook.id)
    for pause in PAUSES[:-1]:
        webhooks.deliver_due()
        clock.at[0] += pause
    webhooks.test(hook.id)
    webhooks.deliver_due()
    assert [one.due - clock.at[0] for one in store.deliveries(2)] == [PAUSES[0], PAUSES[-1]]


def test_a_collection_that_cannot_be_inspected_silences_no_other() -> None:
    store, asked = MemoryStore().notices, list[str]()

    def inspect(collection: str) -> dict[str, Any]:
        asked.append(collection)
        if collection == "a":
            raise ArithmeticError("what is in here is not logged")
        return {"status": "ok", "state": "alarm", "inspections": []}

    sights = [Sight(name, "published", "", 200, 100, {}) for name in "ab"]
    webhooks = Webhooks(store, Clock())
    webhooks.add("https://all.example/", ["alarm", "cohort"])
    lookout = Lookout(webhooks, lambda: sights, inspect)
    lookout.look()
    lookout.look()
    told = [(one.collection, one.event) for one in reversed(store.deliveries(10))]
    assert told == [("a", "cohort"), ("b", "alarm"), ("b", "cohort")]
    # It is looked at again, as what was wrong may be over.
    assert asked == ["a", "b", "a"]


def test_the_rule_for_refusals_needs_a_hundred_and_a_share() -> None:
    def names(refused: int, reports: int, **more: int) -> list[str]:
        return [
            one.mark for one in events_of(Sight("c", "published", "", reports, 10**9, {"range": refused, **more}), None)
        ]

    assert names(99, 0) == [] and names(100, 1_900) == [] and names(100, 1_899) == ["c rejects 0"]
    assert names(0, 10, duplicate=5_000, closed=900) == [] and names(400, 10) == ["c rejects 2"]
    alarm = events_of(Sight("c", "published", "", 500, 10**9, {}), LastInspection("alarm", 1e-9, 400))
    assert [one.mark for one in alarm] == ["c alarm 2"]


def test_operators_use_the_command_line_and_others_may_not() -> None:
    app = make_app(MemoryStore(), webhook_private=True)
    with receiving() as receiver, serving(app) as client:
        place = ["--server", str(client.http.base_url), "--token", client.token]

        def run(*words: str) -> Any:
            result = CliRunner().invoke(cli, ["webhook", *words, *place], catch_exceptions=False)
            assert result.exit_code == 0, result.output
            return result.output

        added = run("add", receiver.url, "--on", "alarm,closed").split()
        name, secret = added[0], added[-1]
        assert secret.startswith("whs_") and secret not in run("list") and receiver.url in run("list")
        run("test", name)
        app.collector.notices.webhooks.deliver_due()
        assert receiver.events == ["test"] and "delivered" in run("log")
        assert "removed" in run("remove", name) and name not in run("list")
        bad = CliRunner().invoke(cli, ["webhook", "add", "ftp://x", "--on", "alarm", *place])
        assert bad.exit_code == 2 and "webhook: url" in bad.output
        analyst = client.api("POST", "/tokens", {"scope": "analyst"}).json()["token"]
        for path in ("/webhooks", "/webhooks/log"):
            assert client.api("GET", path, token=analyst).status_code == 403
