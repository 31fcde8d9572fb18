"""Kills, full disks, I/O errors, a database that restarts and clocks that jump, under load and over real HTTP."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import psycopg
import pytest
from tests.service.crowd import SIZE, WIDTH, Crowd, counts_of, start_crowd
from tests.service.plain import binary, plain_app, serving, wide_draft
from tests.service.served import Forgetful, Hasty, Served, served
from tests.service.test_sqlite_faults import Disk, disk
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.collector.ports import Store
from tacit.collector.store.sqlite.store import FILE, SqliteStore
from tacit.hosting.clock import Clock
from tacit.hosting.limits import Limits

__all__ = ["disk"]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On the disk: where a commit takes its time, a kill comes before its acknowledgement more often."""
    return tmp_path_factory.mktemp("killed")


# kill -9 and SIGTERM.


def kill_again_and_again(folder: Path, cycles: int, sqlite: type[SqliteStore] = SqliteStore) -> tuple[Crowd, Any]:
    rng = np.random.default_rng(9)
    with served(str(folder / "data"), folder, sqlite) as server:
        crowd = start_crowd(server)
        with crowd.sending():
            for _ in range(cycles):
                crowd.wait_for_more(25)
                time.sleep(rng.uniform(0, 0.2))
                server.kill()
                server.start()
        # Nobody else sends any more: a server that knows no batch again counts the first one twice, and one that
        # acknowledges too early loses the last one, whatever came to be in time before.
        crowd.send_now(crowd.send_now())
        crowd.send_now()
        server.kill()
    return crowd, counts_of(SqliteStore(folder / "data"), crowd.collection)


@pytest.mark.parametrize("cycles", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_a_server_killed_under_load_counts_every_acknowledged_report_once(tmp_path: Path, cycles: int):
    crowd, counts = kill_again_and_again(tmp_path, cycles)
    crowd.check(counts)
    assert crowd.acknowledged >= 25 * cycles
    assert crowd.statuses[200] > 0, "no duplicate was ever answered"
    assert crowd.acknowledged < len(crowd.sent), "no response was ever dropped"


@pytest.mark.slow_cases("Hasty")
@pytest.mark.parametrize(("sqlite", "fault"), [(Forgetful, "counted twice"), (Hasty, "is lost")])
def test_the_check_tells_a_server_that_counts_twice_or_loses(tmp_path: Path, sqlite: type[SqliteStore], fault: str):
    """The proof that the test above can fail."""
    crowd, counts = kill_again_and_again(tmp_path, 1, sqlite)
    with pytest.raises(AssertionError, match=fault):
        crowd.check(counts)


@pytest.mark.slow
def test_after_kills_clients_send_again_and_everything_is_there(tmp_path: Path):
    with served(str(tmp_path / "data"), tmp_path) as server:
        crowd = start_crowd(server)
        with crowd.sending():
            crowd.wait_for_more(30)
            server.kill()
            server.start()
            crowd.wait_for_more(30)
        crowd.send_the_rest()
        server.stop()
    counts = counts_of(SqliteStore(tmp_path / "data"), crowd.collection)
    crowd.check(counts)
    assert counts.sum() == sum(len(sent.values) for sent in crowd.sent)


def test_sigterm_finishes_what_was_acknowledged(tmp_path: Path):
    with served(str(tmp_path / "data"), tmp_path) as server:
        crowd = start_crowd(server)
        with crowd.sending():
            for _ in range(2):
                crowd.wait_for_more(30)
                server.stop()
                left = sorted(path.name for path in (tmp_path / "data").iterdir())
                assert left == [FILE], "a server that stops in order leaves no log behind"
                server.start()
        server.stop()
        log = server.log.read_text()
    crowd.check(counts_of(SqliteStore(tmp_path / "data"), crowd.collection))
    assert set(crowd.statuses) <= {200, 201, 503}
    assert '"level": "error"' not in log


@pytest.mark.slow
def test_two_collectors_on_one_folder_do_no_harm(tmp_path: Path):
    """It is not meant to be, but it happens: one is started before the other has ended."""
    place = str(tmp_path / "data")
    with served(place, tmp_path) as one, served(place, tmp_path) as two:
        crowd = start_crowd(one, two)
        with crowd.sending():
            crowd.wait_for_more(30)
            two.kill()
            two.start()
            crowd.wait_for_more(30)
        crowd.send_the_rest()
        one.stop()
        two.stop()
    counts = counts_of(SqliteStore(place), crowd.collection)
    crowd.check(counts)
    assert counts.sum() == sum(len(sent.values) for sent in crowd.sent)


@pytest.mark.slow
def test_more_connections_than_files_are_survived(tmp_path: Path):
    with served(str(tmp_path / "data"), tmp_path) as server:
        crowd = start_crowd(server)
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        room = len(list(Path(f"/proc/{server.pid}/fd").iterdir())) + 8
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (room, before[1]))
        idle = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENT_SECONDS) for _ in range(50)]
        with crowd.sending():
            time.sleep(0.3)
            for connection in idle:
                connection.close()
            crowd.wait_for_more(30)
        crowd.send_the_rest()
        server.stop()
    crowd.check(counts_of(SqliteStore(tmp_path / "data"), crowd.collection))


# Disks.


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own that is soon full; only root can have one."""
    place = folder / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk; the failing disk below stands in for it")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, ballast: Path) -> None:
    """Leave about 200 kB; the server may be writing at the same time."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while (room := os.statvfs(place)).f_bavail * room.f_frsize > 200_000:
            file.write(bytes(50_000))


def send_until(server: Served, collection: str, status: int, first: int) -> dict[int, bytes]:
    """Send large batches until one is answered with this status; returns all of them by their first value."""
    bodies: dict[int, bytes] = {}
    for start in range(first, SIZE, 4000):
        payload = np.arange(start, start + 4000, dtype="<u4").tobytes()
        bodies[start] = binary(collection, payload, width=WIDTH)
        found, reply = server.send(collection, bodies[start])
        if found == status:
            assert reply["status"] == status and "send" in reply["detail"]
            return bodies
        assert found == 201, reply
    raise AssertionError("the disk took everything")


def test_a_full_disk_is_507_and_the_same_process_recovers(tmp_path: Path):
    with small_disk(tmp_path, "6m") as place, served(str(place / "data"), tmp_path) as server:
        mine = server.publish(wide_draft(1 << 17, minimum_cohort=1))
        pid, ballast = server.pid, place / "ballast"
        first = 0
        for _ in range(2):
            fill(place, ballast)
            bodies = send_until(server, mine, 507, first)
            full = max(bodies)
            assert (server.get("/healthz")[0], server.get("/readyz")[0]) == (200, 503)
            assert server.get(f"/api/v1/collections/{mine}/status", server.token)[1]["reports"] == full
            ballast.unlink()
            assert server.send(mine, bodies[full])[0] == 201, "there is room again"
            assert server.is_ready()
            assert {server.send(mine, body)[0] for body in bodies.values()} == {200}
            first = full + 4000
        assert server.pid == pid
        server.stop()
        counts = counts_of(SqliteStore(place / "data"), mine)
    assert counts[:first].tolist() == [1] * first
    assert not counts[first:].any()


def test_a_file_that_may_not_grow_is_503_and_the_same_process_recovers(tmp_path: Path):
    """The kernel refuses every write beyond a size: a real I/O error, for which nobody need be root."""
    with served(str(tmp_path / "data"), tmp_path) as server:
        mine = server.publish(wide_draft(1 << 17, minimum_cohort=1))
        before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (300_000, before[1]))
        bodies = send_until(server, mine, 503, 0)
        refused = max(bodies)
        assert server.get("/healthz")[0] == 200
        assert server.get(f"/api/v1/collections/{mine}/status", server.token)[1]["reports"] == refused
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)
        assert server.send(mine, bodies[refused])[0] == 201
        assert {server.send(mine, body)[0] for body in bodies.values()} == {200}
        server.stop()
    counts = counts_of(SqliteStore(tmp_path / "data"), mine)
    assert counts[: refused + 4000].tolist() == [1] * (refused + 4000)


@pytest.mark.slow_cases("IOError-503-sync")
@pytest.mark.parametrize(
    ("error", "status", "failing"),
    [(apsw.FullError, 507, "write"), (apsw.IOError, 503, "write"), (apsw.IOError, 503, "sync")],
)
def test_a_disk_that_fails_under_a_server(
    disk: Disk, tmp_path: Path, error: type[apsw.Error], status: int, failing: str
):
    with serving(plain_app(SqliteStore(tmp_path / "data", vfs=disk.name))) as client:
        mine = client.publish(wide_draft(200, minimum_cohort=1))
        bodies = [binary(mine, bytes([value])) for value in range(6)]
        assert [client.send(mine, body).status_code for body in bodies[:2]] == [201, 201]
        disk.error, disk.failing = error, frozenset({failing})
        for body in (bodies[2], bodies[3], bodies[2]):
            refused = client.send(mine, body)
            assert refused.status_code == status
            assert refused.headers["content-type"] == "application/problem+json"
            assert int(refused.headers["retry-after"]) > 0
        for path in (f"/collections/{mine}/close", "/collections"):
            assert client.api("POST", path, wide_draft(3)).status_code == status  # Operators hear of it as well.
        assert client.http.get("/healthz").status_code == 200
        time.sleep(0.3)  # Folding fails meanwhile and goes on afterwards.
        disk.error = None
        assert [client.send(mine, body).status_code for body in bodies] == [200, 200, 201, 201, 201, 201]
        rows = client.answers(mine)["questions"][0]["rows"]
        assert [round(row["raw"]["estimate"] * 6) for row in rows] == [1] * 6 + [0] * 194
        assert client.status(mine)["state"] == "published"


# PostgreSQL.


@pytest.fixture
def pair(postgres: Any, tmp_path: Path) -> Iterator[list[Served]]:
    """Two collectors on one database."""
    with ExitStack() as stack:
        yield [stack.enter_context(served(postgres.url, tmp_path)) for _ in range(2)]


def finish(crowd: Crowd, pair: list[Served], make_store: Callable[[str], Store], url: str) -> None:
    crowd.send_the_rest()
    totals = {
        server.get(f"/api/v1/collections/{crowd.collection}/status", pair[0].token)[1]["reports"] for server in pair
    }
    assert totals == {sum(len(sent.values) for sent in crowd.sent)}
    for server in pair:
        server.stop()
    crowd.check(counts_of(make_store(url), crowd.collection))


@pytest.mark.slow
def test_two_collectors_share_a_database(pair: list[Served], postgres: Any, make_store: Any):
    crowd = start_crowd(*pair)
    with crowd.sending():
        crowd.wait_for_more(30)
        pair[1].kill()
        crowd.wait_for_more(30)
        pair[1].start()
        crowd.wait_for_more(30)
    finish(crowd, pair, make_store, postgres.url)


@pytest.mark.slow
def test_a_database_that_restarts_under_load(pair: list[Served], postgres: Any, make_store: Any):
    crowd = start_crowd(*pair)
    pids = [server.pid for server in pair]
    with crowd.sending():
        for i in range(10):
            crowd.wait_for_more(25)
            postgres.stop(signal.SIGQUIT if i % 2 else signal.SIGINT)
            try:
                refusals = crowd.statuses[503] + 10
                wait_until(lambda enough=refusals: crowd.statuses[503] >= enough, lambda: crowd.statuses)
                assert pair[0].get("/healthz")[0] == 200
                assert pair[0].get("/readyz")[0] == 503
            finally:
                postgres.start()
        crowd.wait_for_more(25)
    assert set(crowd.statuses) == {200, 201, 503}
    assert [server.pid for server in pair] == pids
    finish(crowd, pair, make_store, postgres.url)


def test_what_one_collector_closes_is_closed_for_the_other(pair: list[Served]):
    one, two = pair
    mine = one.publish(wide_draft(200, minimum_cohort=1))
    body = binary(mine, bytes([1]))
    assert [two.send(mine, body)[0], one.send(mine, body)[0]] == [201, 200]
    one.post(f"/collections/{mine}/close")
    assert [server.send(mine, binary(mine, bytes([2])))[0] for server in pair] == [410, 410]
    assert [server.send(mine, body)[0] for server in pair] == [200, 200]


def test_copies_that_reach_two_collectors_at_once_count_once(pair: list[Served]):
    mine = pair[0].publish(wide_draft(200, minimum_cohort=1))
    for value in range(10):
        body = binary(mine, bytes([value]))
        with ThreadPoolExecutor(6) as pool:
            heard = list(pool.map(lambda i, body=body: pair[i % 2].send(mine, body)[0], range(6)))
        assert sorted(heard) == [200] * 5 + [201]
        # And whichever is asked has counted what the other acknowledged.
        for server in pair:
            answers = server.get(f"/api/v1/collections/{mine}/answers", pair[0].token)[1]
            assert answers["n"] == value + 1


def test_a_database_without_room_is_507(pair: list[Served], postgres: Any):
    """The server is made to say that its disk is full."""
    mine = pair[0].publish(wide_draft(200, minimum_cohort=1))
    body = binary(mine, bytes([1]))
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(
            """CREATE FUNCTION tacit.full() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON tacit.waiting EXECUTE FUNCTION tacit.full()"""
        )
        assert {server.send(mine, body)[0] for server in pair} == {507}
        connection.execute("DROP TRIGGER full_disk ON tacit.waiting")
    assert [server.send(mine, body)[0] for server in pair] == [201, 200]


@pytest.mark.slow
def test_two_collectors_drop_what_is_past_its_retention(pair: list[Served], postgres: Any, make_store: Any):
    mine = pair[0].publish(wide_draft(200, minimum_cohort=1, retention_days=7))
    kept = pair[0].publish(wide_draft(200, minimum_cohort=1, retention_days=8))
    for name in (mine, kept):
        assert [server.send(name, binary(name, bytes([i])))[0] for i, server in enumerate(pair)] == [201, 201]
    token = pair[0].token
    for server in pair:
        server.day += 7
    wait_until(lambda: not pair[0].get(f"/api/v1/collections/{mine}/status", token)[1]["reports"])
    assert {server.send(mine, binary(mine, bytes([9])))[0] for server in pair} == {410}
    assert {server.get(f"/api/v1/collections/{kept}/status", token)[1]["reports"] for server in pair} == {2}
    for server in pair:
        server.stop()
        assert "failed" not in server.log.read_text()
    store = make_store(postgres.url)
    noted = {(entry.actor, entry.action, entry.subject) for entry in store.audit_log(9) if entry.actor == "retention"}
    assert noted == {("retention", "drop reports", mine)}
    assert store.tallies(mine) == []
    store.close()


# Clocks.


@pytest.mark.slow
def test_clocks_that_jump_lose_nothing_and_stop_nothing(tmp_path: Path):
    """Days go by and come back while reports arrive; none of them is long enough for the retention of a year."""
    with served(str(tmp_path / "data"), tmp_path) as server:
        crowd, today = start_crowd(server), server.day
        short = server.post("/tokens", {"scope": "analyst", "days": 10})["token"]
        with crowd.sending():
            for day, holds in ((9, True), (10, False), (-5000, True), (364, False), (0, True), (-today, True)):
                server.day = today + day
                crowd.wait_for_more(15)
                assert (server.get("/api/v1/collections", short)[0] == 200) == holds
                assert server.get("/api/v1/collections", server.token)[0] == 200
        assert set(crowd.statuses) == {200, 201}
        assert server.get("/api/v1/audit", server.token)[1]["entries"][-1]["day"] == today
        server.stop()
        log = server.log.read_text()
    crowd.check(counts_of(SqliteStore(tmp_path / "data"), crowd.collection))
    assert "failed" not in log


def test_the_rate_limit_does_not_look_at_the_calendar():
    days = [20_000]
    app = plain_app(
        limits=Limits(requests_per_second=1, burst=2), clock=Clock(day=lambda: days[0], seconds=lambda: 0.0)
    )
    with serving(app) as client:
        mine = client.publish(wide_draft(200, minimum_cohort=1))
        statuses = [client.send(mine, binary(mine, bytes([7]))).status_code for _ in range(3)]
        assert statuses == [201, 201, 429]
        for day in (20_001, 0, -10_000, 50_000):
            days[0] = day
            assert client.send(mine, binary(mine, bytes([7]))).status_code == 429


def test_when_the_last_admin_token_has_run_out_a_start_makes_another(tmp_path: Path):
    with served(str(tmp_path / "data"), tmp_path) as server:
        first = server.token
        mine = server.publish(wide_draft(200, minimum_cohort=1))
        body = binary(mine, bytes([7]))
        assert server.send(mine, body)[0] == 201
        second = server.post("/tokens", {"scope": "admin", "days": 5})["token"]
        names = [t["id"] for t in server.get("/api/v1/tokens", second)[1]["tokens"] if not t["expires"]]
        assert len(names) == 1
        status, _ = server.delete(f"/tokens/{names[0]}", second)
        assert status == 204
        server.day += 5
        assert {server.get("/api/v1/tokens", token)[0] for token in (first, second)} == {401}
        assert server.send(mine, body)[0] == 200  # Reports go on.
        server.stop()
        server.log.write_text("")
        server.start()
        assert server.get(f"/api/v1/collections/{mine}/status", server.token)[1]["reports"] == 1
