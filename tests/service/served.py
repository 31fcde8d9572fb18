"""A whole collector in a process of its own, which can be killed: `tacit serve`, with a mechanism without noise.

Processes are forked from one that has imported everything already, so that a start costs a tenth of a second.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import struct
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.service.plain import PLAIN, NoNoise
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.catalog import CATALOG
from tacit.collector.limits import Intervals
from tacit.collector.ports import STORED, NewBatch, Store
from tacit.collector.server import Settings, make_app
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.collector.workers import serve
from tacit.hosting.clock import Clock
from tacit.hosting.limits import Limits
from tacit.wire.batch import MEDIA_TYPE

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.service.served"])
FIRST_DAY = 20_000
QUICK = 0.05
QUICKLY = Intervals(retire=QUICK, confirm_drop=QUICK, sweep=QUICK, confirm_sweep=10 * QUICK, seal=QUICK)
"""Fractions of a second in the place of the hours of retention and the minutes of segments."""

Reply = tuple[int, Any]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def first_token(printed: Iterable[str]) -> str:
    """The admin token among the lines that a first start prints; lines after it are left unread."""
    return next(found[0] for line in printed if (found := re.search(r"tct_[\w-]{43}", line)))


class Forgetful(SqliteStore):
    """A store that does not know a batch again: the proof that tests notice a report that counts twice."""

    def add_batches(self, batches: Sequence[NewBatch]) -> list[str]:
        return super().add_batches([replace(batch, batch=os.urandom(16)) for batch in batches])


class Hasty(SqliteStore):
    """A store that acknowledges first and commits later: the proof that tests notice a report that is lost."""

    _held: Sequence[NewBatch] = ()

    def add_batches(self, batches: Sequence[NewBatch]) -> list[str]:
        before, self._held = self._held, batches
        super().add_batches(before)
        return [STORED] * len(batches)


def _serve(place: str, port: int, calendar: Path, log: Path, sqlite: type[SqliteStore], workers: int) -> None:
    """What the process does: everything that `tacit serve` does, with another catalogue and another calendar."""
    output = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    clock = Clock(day=lambda: int(calendar.read_text()))

    def open_other(data: Path | None, database: str, segments: Path | None, clock: Clock) -> Store:
        # Not by `open_store`, which wants an address: PostgreSQL listens on a socket in a folder here.
        if database:
            return PostgresStore(database, segments=segments, today=clock.day)
        return sqlite(str(data), today=clock.day)

    rows = calendar.with_name("segments")
    where = {"database": place, "segments": rows} if "host=" in place else {"data": Path(place)}
    settings = Settings(port=port, limits=Limits(requests_per_second=0), intervals=QUICKLY, workers=workers, **where)
    make = partial(make_app, catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
    serve(settings, lambda line: os.write(1, line.encode() + b"\n"), open_store=open_other, make_app=make, clock=clock)


class Served:
    """A collector that is started, stopped and killed, always at the same address."""

    def __init__(self, place: str, folder: Path, sqlite: type[SqliteStore] = SqliteStore, workers: int = 1) -> None:
        self.port, self.place, self._sqlite, self._workers = free_port(), place, sqlite, workers
        self.calendar, self.log = folder / f"day-{self.port}", folder / f"log-{self.port}"
        self.day = FIRST_DAY
        self._process: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def token(self) -> str:
        """The token of the first start."""
        return first_token(self.log.read_text().splitlines())

    @property
    def day(self) -> int:
        return int(self.calendar.read_text())

    @day.setter
    def day(self, day: int) -> None:
        fresh = self.calendar.with_suffix(".new")
        fresh.write_text(str(day))
        fresh.replace(self.calendar)

    def start(self) -> None:
        where = (self.place, self.port, self.calendar, self.log, self._sqlite, self._workers)
        self._process = CONTEXT.Process(target=_serve, args=where)
        self._process.start()
        wait_until(lambda: self.is_ready() or not self._process.is_alive(), lambda: self.log.read_text()[-2000:])
        assert self._process.is_alive(), self.log.read_text()[-2000:]

    def is_ready(self) -> bool:
        with suppress(OSError, HTTPException):
            return self.get("/readyz")[0] == 200
        return False

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.join()

    def children(self) -> list[int]:
        """The processes of a collector with several workers: on a folder first the one that writes."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def kill_child(self, place: int) -> None:
        """kill -9 one of the processes, and wait until another has taken its place."""
        before = self.children()
        os.kill(before[place], signal.SIGKILL)
        wait_until(lambda: before[place] not in self.children() and len(self.children()) == len(before))

    def ask_to_stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def wait(self) -> int:
        """The exit code of a process that was asked to stop."""
        self._process.join(PATIENT_SECONDS)
        return self._process.exitcode

    def stop(self) -> None:
        self.ask_to_stop()
        assert self.wait() in (0, -signal.SIGTERM), self.log.read_text()[-2000:]

    def get(self, path: str, token: str = "") -> Reply:
        return self._exchange("GET", path, b"", {"Authorization": f"Bearer {token}"} if token else {})

    def post(self, path: str, body: Any = None) -> Any:
        """What an operator does, which must succeed."""
        data = b"" if body is None else json.dumps(body).encode()
        head = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        status, reply = self._exchange("POST", f"/api/v1{path}", data, head)
        assert status in (200, 201), reply
        return reply

    def delete(self, path: str, token: str) -> Reply:
        return self._exchange("DELETE", f"/api/v1{path}", b"", {"Authorization": f"Bearer {token}"})

    def publish(self, draft: dict[str, Any]) -> str:
        return self.post(f"/collections/{self.post('/collections', draft)['id']}/publish")["id"]

    def send(self, collection: str, body: bytes, media_type: str = MEDIA_TYPE, **headers: str) -> Reply:
        head = {"Content-Type": media_type} | {key.replace("_", "-"): value for key, value in headers.items()}
        return self._exchange("POST", f"/c/{collection}/reports", body, head)

    def _exchange(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENT_SECONDS)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def begin(
        self, collection: str, body: bytes, media_type: str = MEDIA_TYPE, *, missing: int = 0, **headers: str
    ) -> socket.socket:
        """Send a batch, but for its last bytes, and do not wait for an answer."""
        lines = [f"POST /c/{collection}/reports HTTP/1.1", "Host: x", f"Content-Type: {media_type}"]
        lines += [f"{key.replace('_', '-')}: {value}" for key, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "", ""]
        with ExitStack() as stack:
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", self.port), timeout=PATIENT_SECONDS)
            )
            connection.sendall("\r\n".join(lines).encode() + body[: max(0, len(body) - missing)])
            stack.pop_all()  # Whoever asked for it closes it.
        return connection


def hang_up(connection: socket.socket) -> None:
    """Close a connection with a reset, as when a device loses its network."""
    with connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextmanager
def served(place: str, folder: Path, sqlite: type[SqliteStore] = SqliteStore, workers: int = 1) -> Generator[Served]:
    """A running collector, which is killed in the end if it still runs."""
    made = Served(place, folder, sqlite, workers)
    made.start()
    try:
        yield made
    finally:
        made.kill()
