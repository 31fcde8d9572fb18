"""A collector of several processes: the same guarantees, whichever of them is killed, and whichever hears a batch."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import precondition, rule
from tests.service.crowd import counts_of, start_crowd
from tests.service.plain import binary, wide_draft
from tests.service.served import Forgetful, Served, served
from tests.service.test_state_machine import BINARY, Machine, Sent, run
from tests.service.waiting import wait_until

from tacit.collector.ports import Store
from tacit.collector.store.sqlite.store import FILE

WORKERS = 2


class SeveralWorkers(Machine):
    """The histories of one process, and what can happen to one of several."""

    workers = WORKERS

    @rule(sent=Machine.batches, copies=st.integers(2, 6), form=st.sampled_from(BINARY))
    def send_copies_at_once(self, sent: Sent, copies: int, form: str) -> None:
        """On connections of their own, so that different workers hear of the same batch at the same moment."""
        send = (sent.known.id, sent.body(form), form)
        with ThreadPoolExecutor(copies) as pool:
            heard = list(pool.map(lambda _: self.server.send(*send, **sent.headers)[0], range(copies)))
        expected = {200} if sent.is_stored else {410} if sent.known.state != "published" else {200, 201}
        if sent.is_stored is None:
            expected = expected | {200}
        assert set(heard) <= expected and heard.count(201) <= 1, heard
        sent.is_stored = 410 not in heard

    @precondition(lambda self: self.news > 1)
    @rule(place=st.integers(0, WORKERS))
    def kill_one(self, place: int) -> None:
        """On a folder the first is the one that writes, without which all are started again."""
        self.server.kill_child(min(place, len(self.server.children()) - 1))
        self.news = 0


@pytest.mark.parametrize("examples", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_any_history_of_several_workers_counts_every_report_once(examples: int):
    run(SeveralWorkers, examples=examples, steps=25)


@pytest.mark.slow
@pytest.mark.parametrize("examples", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_any_history_of_several_workers_over_postgres_counts_every_report_once(postgres: Any, examples: int):
    def empty(folder: Path) -> str:
        postgres.forget()
        return postgres.url

    run(type("Machine", (SeveralWorkers,), {"place": staticmethod(empty)}), examples=examples, steps=25)


@pytest.fixture(params=["sqlite", "postgres"])
def workers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    place = str(tmp_path / "data") if request.param == "sqlite" else request.getfixturevalue("postgres").url
    with served(place, tmp_path, workers=WORKERS) as server:
        yield server


def finish(server: Served, crowd: Any, make_store: Callable[[str], Store]) -> None:
    crowd.send_the_rest()
    server.stop()
    counts = counts_of(make_store(server.place), crowd.collection)
    crowd.check(counts)
    assert counts.sum() == sum(len(sent.values) for sent in crowd.sent)


@pytest.mark.slow
@pytest.mark.slow_cases("postgres")
@pytest.mark.parametrize("cycles", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_kills_under_load(workers: Served, make_store: Any, cycles: int):
    """Every process in turn, then the parent with all of them."""
    crowd = start_crowd(workers)
    with crowd.sending():
        for _ in range(cycles):
            for place in range(len(workers.children())):
                crowd.wait_for_more(15)
                workers.kill_child(place)
            crowd.wait_for_more(15)
            orphans = workers.children()
            workers.kill()
            wait_until(lambda gone=orphans: not any(Path(f"/proc/{pid}").exists() for pid in gone))
            workers.start()
        crowd.wait_for_more(15)
    assert crowd.statuses[200] > 0, "no duplicate was ever answered"
    finish(workers, crowd, make_store)


@pytest.mark.slow
def test_a_store_that_forgets_batches_is_noticed(tmp_path: Path, make_store: Any):
    """The proof that the test above can fail: copies that go to different workers count twice."""
    with served(str(tmp_path / "data"), tmp_path, Forgetful, WORKERS) as server:
        crowd = start_crowd(server)
        with crowd.sending():
            crowd.wait_for_more(40)
        with pytest.raises(AssertionError, match="counted twice"):
            finish(server, crowd, make_store)


@pytest.mark.slow_cases("postgres")
def test_a_stop_finishes_what_was_acknowledged_and_leaves_nothing_behind(workers: Served, make_store: Any):
    crowd = start_crowd(workers)
    with crowd.sending():
        crowd.wait_for_more(30)
        children = workers.children()
        workers.stop()
        assert not any(Path(f"/proc/{pid}").exists() for pid in children)
        if "host=" not in workers.place:
            assert [path.name for path in Path(workers.place).iterdir()] == [FILE]
        workers.start()
        crowd.wait_for_more(10)
    assert set(crowd.statuses) <= {200, 201, 503}
    assert '"level": "error"' not in workers.log.read_text()
    finish(workers, crowd, make_store)


@pytest.mark.slow_cases("postgres")
def test_what_one_worker_does_all_know_of(workers: Served):
    """Tokens, publishing, answers and closing; requests go to either worker, as connections fall."""
    mine = workers.publish(wide_draft(200, minimum_cohort=1))
    assert workers.log.read_text().count("shown this once") == 1
    bodies = [binary(mine, bytes([value])) for value in range(12)]
    for body in bodies:
        assert workers.send(mine, body, "text/plain")[0] == 201
        answers = workers.get(f"/api/v1/collections/{mine}/answers", workers.token)[1]
        assert answers["n"] == bodies.index(body) + 1, "what was acknowledged is in the next answer"
    metrics = samples(workers)
    assert sum(value for name, value in metrics.items() if name.startswith("tacit_reports_total{")) == 12
    assert {name.split('"')[1] for name in metrics} >= {"1", "2"}
    workers.post(f"/collections/{mine}/close")
    assert {workers.send(mine, binary(mine, bytes([77])))[0] for _ in range(6)} == {410}


def samples(server: Served) -> dict[str, float]:
    """The metrics of all workers, each of which has posted its own."""
    found: dict[str, float] = {}

    def has_all() -> bool:
        lines = [line for line in text_of(server, "/metrics").splitlines() if not line.startswith("#")]
        found.update((name, float(value)) for name, value in (line.rsplit(" ", 1) for line in lines))
        return sum(value for name, value in found.items() if name.startswith("tacit_reports_total{")) >= 12

    wait_until(has_all, lambda: found)
    return found


def text_of(server: Served, path: str) -> str:
    with socket.create_connection(("127.0.0.1", server.port)) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: link.recv(65_536), b"")).decode().split("\r\n\r\n", 1)[1]
