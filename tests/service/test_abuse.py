"""An abusive reader: whatever a token asks for, reports are taken and the collector says that it is ready."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import Client, binary, draft, plain_app, serving
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.collector.http.app import App
from tacit.collector.server import make_app
from tacit.collector.work import PUBLIC, Work, WorkLimits
from tacit.core.patience import check, checked_by
from tacit.hosting.limits import Limits
from tacit.hosting.problems import Problem
from tacit.hosting.reading import Reading
from tacit.wire.batch import MEDIA_TYPE

SLOW_PLAN = {
    "title": "Slow",
    "epsilon": "1",
    "policy": "joint",
    "k": 4,
    "respondents": 100_000_000,
    "questions": [
        {"name": f"q{i}", "text": "?", "domain": {"kind": "integers", "low": 0, "high": 1}} for i in range(50)
    ],
}
"""More than a minute of planning, most of it a search over the 230,300 sets of four questions."""


def reader(client: Client, collection: str) -> str:
    made = client.api("POST", "/tokens", {"scope": "reader", "collection": collection})
    return made.json()["token"]


@contextmanager
def held(client: Client, requests: int, data: bytes) -> Iterator[list[socket.socket]]:
    """Connections on each of which a request was sent whose answer nobody reads."""
    links = [
        socket.create_connection((client.http.base_url.host, client.http.base_url.port), timeout=PATIENT_SECONDS)
        for _ in range(requests)
    ]
    try:
        for link in links:
            link.sendall(data)
        yield links
    finally:
        for link in links:
            link.close()


def post(path: str, body: bytes, *more: str, length: int | None = None) -> bytes:
    stated = len(body) if length is None else length
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {stated}", *more, "", ""]).encode() + body


def plan(token: str) -> bytes:
    import json

    body = json.dumps(SLOW_PLAN).encode()
    return post("/api/v1/plan", body, f"Authorization: Bearer {token}", "Content-Type: application/json")


@pytest.fixture
def app() -> App:
    return make_app(MemoryStore(), Limits(requests_per_second=0))


@pytest.mark.slow
def test_reports_and_readiness_go_on_while_a_reader_plans_without_end(app: App):
    """All the while the plans run: hundreds of reports, dozens of health checks, and an administrator's own plan."""
    with serving(app) as client:
        mine, work = client.publish(draft()), app.collector.work
        work.limits = replace(work.limits, seconds=PATIENT_SECONDS)
        width = app.collector.find(mine).widths[0]
        with held(client, 60, plan(reader(client, mine))):
            wait_until(lambda: work.running + work.waiting == work.limits.jobs_each)
            for _ in range(30):
                assert client.http.get("/readyz").status_code == 200
                assert client.http.get("/healthz").status_code == 200
                body = binary(mine, bytes(width), width=width)
                assert client.send(mine, body).status_code == 201
                assert client.api("GET", f"/collections/{mine}/status").status_code == 200
            quick = client.api("POST", "/plan", draft())
            assert quick.status_code == 200
            # Nothing of what the reader asked for was done before, so all this happened meanwhile.
            assert work.running == work.limits.threads_each
            assert work.running + work.waiting == work.limits.jobs_each
        # The reader has left: what waited is gone at once, what ran ends at its next step.
        wait_until(lambda: work.running + work.waiting == 0)
        assert client.status(mine)["reports"] == 30


def test_beyond_its_limit_a_token_is_told_to_wait_and_others_are_not(app: App):
    app.collector.work.limits = WorkLimits(jobs_each=3, jobs=5)
    with serving(app) as client:
        mine = client.publish(draft())
        token = reader(client, mine)
        with held(client, 3, plan(token)):
            wait_until(lambda: app.collector.work.running + app.collector.work.waiting == 3)
            refused = client.api("POST", "/plan", draft(), token=token)
            assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
            assert refused.json()["type"] == "urn:tacit:error:rate_limited"
            assert client.api("POST", "/plan", draft()).status_code == 200
            with held(client, 2, plan(reader(client, mine))):
                wait_until(lambda: app.collector.work.running + app.collector.work.waiting == 5)
                crowded = client.api("POST", "/plan", draft())
                assert crowded.status_code == 503 and int(crowded.headers["retry-after"]) > 0


def test_a_plan_that_takes_too_long_ends_and_frees_its_thread(app: App):
    work = app.collector.work
    work.limits = replace(work.limits, seconds=0.5)
    with serving(app) as client:
        late = client.api("POST", "/plan", SLOW_PLAN)
        assert late.status_code == 503 and late.json()["type"] == "urn:tacit:error:query_timeout"
        wait_until(lambda: work.running == 0)


def test_work_is_shared_among_tokens():
    """One token's jobs use two of three threads, so the job of another starts at once, ahead of all that wait."""
    work, go, order = Work(WorkLimits(threads=3, threads_each=2)), threading.Event(), list[str]()

    def job(name: str) -> Callable[[], None]:
        def run() -> None:
            order.append(name)
            assert go.wait(PATIENT_SECONDS)

        return run

    jobs = [work.submit("press", job("press")) for _ in range(5)]
    jobs.append(work.submit("admin", job("admin")))
    wait_until(lambda: len(order) == 3)
    assert sorted(order) == ["admin", "press", "press"] and work.waiting == 3
    go.set()
    for one in jobs:
        one.future.result(PATIENT_SECONDS)
    work.stop()


def test_visitors_without_a_token_have_a_thread_that_no_token_can_use():
    work, go = Work(WorkLimits(threads=3, threads_each=2)), threading.Event()
    try:
        taken = [work.submit(owner, lambda: go.wait(PATIENT_SECONDS)) for owner in "aabbc"]
        assert work.running == 3
        assert work.submit(PUBLIC, lambda: "a page").future.result(PATIENT_SECONDS) == "a page"
        assert work.running == 3 and not any(job.future.done() for job in taken)
    finally:
        go.set()
        work.stop()


def test_one_slow_look_is_forgiven_and_two_in_a_row_are_not():
    upload = Reading(Limits(body_seconds=1e9, body_rate=100)).upload(no_message, [(b"content-length", b"5000")])
    upload._end = 1e9
    for size, is_cut_off in [(0, False), (1000, False), (1000, False), (2000, False), (2000, False), (2000, True)]:
        upload._size = size
        upload.look(0.0, 3.0)
        assert (upload._refused is not None) == is_cut_off, size


async def no_message() -> Any:
    raise AssertionError


def test_jobs_that_are_given_up_end_at_their_next_step():
    work, begun, ended = Work(WorkLimits(threads=1, threads_each=1)), threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                check()
                time.sleep(0.001)
        finally:
            ended.set()

    running, waiting = work.submit("a", endless), work.submit("a", endless)
    assert begun.wait(PATIENT_SECONDS)
    waiting.give_up()
    running.give_up()
    assert ended.wait(PATIENT_SECONDS)
    for job in (running, waiting):
        with pytest.raises(Problem):
            job.future.result(PATIENT_SECONDS)
    work.stop()
    with pytest.raises(Problem, match="wait to be answered"):
        work.submit("a", endless)


def test_without_somebody_who_sets_a_limit_a_check_does_nothing():
    check()

    def stop() -> None:
        raise Problem("query_timeout", "enough")

    with checked_by(stop):
        with pytest.raises(Problem):
            check()
        with ThreadPoolExecutor(1) as other:
            other.submit(check).result()
    check()


def stalled(path: str, sent: int, *more: str) -> bytes:
    """The beginning of an upload of four megabytes whose rest never comes."""
    return post(path, b"x" * sent, f"Content-Type: {MEDIA_TYPE}", *more, length=4_000_000)


def test_stalled_uploads_hold_little_together_and_small_reports_pass_them():
    limits = Limits(requests_per_second=0, body_bytes=4_000_000, reading_bytes=8_000_000)
    app = plain_app(limits=limits)
    with serving(app) as client:
        mine = client.publish(draft())
        with held(client, 60, stalled(f"/c/{mine}/reports", 900_000)):
            wait_until(lambda: app.reading.held_bytes > 7_000_000)
            assert app.reading.held_bytes <= app.reading.most_bytes == 8_000_000
            assert client.send(mine, binary(mine, bytes([1]))).status_code == 201
            # Whoever is silent gives way to an upload that goes on.
            large = binary(mine, bytes([1]) * 3_000_000)
            time.sleep(1.1)
            assert client.send(mine, large).status_code == 201
        wait_until(lambda: app.reading.held_bytes == 0)


def test_too_many_bytes_at_once_are_told_to_come_back():
    app = plain_app(limits=Limits(requests_per_second=0, body_bytes=400_000, reading_bytes=0, body_seconds=8))
    with serving(app) as client:
        mine = client.publish(draft())
        data = stalled(f"/c/{mine}/reports", 390_000).replace(b"4000000", b"400000")
        with held(client, 3, data) as links:
            # Who is refused is answered when the rest of the body is not waited for any more, like those who stall.
            answers = [answer_of(link) for link in links]
            refused = [answer for answer in answers if b" 503 " in answer.partition(b"\r\n")[0]]
            assert refused and b"retry-after: 2" in refused[0].lower()


def answer_of(link: socket.socket) -> bytes:
    link.settimeout(PATIENT_SECONDS)
    try:
        return link.recv(4096)
    except OSError:
        return b""


@pytest.mark.slow_cases("/api/v1/plan", "/nowhere")
@pytest.mark.parametrize("path", ["/c/{id}/reports", "/dashboard/login", "/api/v1/plan", "/nowhere"])
def test_a_body_that_comes_too_slowly_is_not_waited_for(path: str):
    from tacit.dashboard import routes

    app = make_app(MemoryStore(), Limits(body_seconds=1.0, body_rate=1000), pages=routes)
    with serving(app) as client:
        mine = client.publish(draft())
        data = stalled(path.replace("{id}", mine), 100, f"Authorization: Bearer {client.token}")
        with held(client, 1, data) as links:
            answer = answer_of(links[0])
            status = int(answer[9:12])
            assert status == (404 if path == "/nowhere" else 408)
            assert b"connection: close" in answer.lower()


def test_stalled_bodies_of_the_sign_in_form_are_bounded_like_uploads():
    from tacit.dashboard import routes

    app = make_app(MemoryStore(), Limits(body_bytes=1000), pages=routes)
    with serving(app) as client:
        assert client.http.post("/dashboard/login", content=b"token=" + b"x" * 2000).status_code == 413
