"""A table with columns of every type, served to clients of PostgreSQL."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from tests.service.plain import Client, http_client, serving
from tests.service.served import free_port

from tacit.catalog import parse
from tacit.collector.pg.listen import PgSettings
from tacit.collector.pg.messages import PgLimits
from tacit.collector.pg.server import PgServer
from tacit.collector.server import make_app, running
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.hosting.limits import Limits
from tacit.simulate.coins import SimulationCoins

N = 20_000
FEW = 2000
"""Enough where a test is not about estimates."""
STATES = ("CA", "NY", "WA")
COLUMNS = {"os": "text", "hours": "number", "purchases": "integer", "paying": "boolean", "joined": "date"}
DRAFT: dict[str, Any] = {
    "title": "People",
    "epsilon": "3",
    "minimum_cohort": 100,
    "respondents": N,
    "rows": {"table": "people", "columns": [{"name": name, "type": kind} for name, kind in COLUMNS.items()]},
    "queries": ["SELECT COUNT(*), AVG(hours) FROM people WHERE age BETWEEN 30 AND 39 AND state = 'CA'"],
    "questions": [
        {"name": "age", "text": "How old are you?", "domain": {"kind": "integers", "low": 0, "high": 99}},
        {"name": "state", "text": "Where do you live?", "domain": {"kind": "categories", "labels": list(STATES)}},
    ],
}
SECRET = DRAFT | {"title": "Others", "rows": DRAFT["rows"] | {"table": "others"}, "queries": []}


def people(n: int = N, seed: int = 1) -> dict[str, Any]:
    """Columns by name, the private ones among them."""
    rng = np.random.default_rng(seed)
    age = rng.binomial(99, 0.4, n)
    days = rng.integers(0, 3, n)
    return {
        "age": age,
        "state": rng.choice(len(STATES), n, p=[0.5, 0.3, 0.2]),
        "os": rng.choice(np.array(["ios", "o'clock", "win", None], object), n, p=[0.4, 0.2, 0.35, 0.05]),
        "hours": np.round(rng.gamma(4, 5, n) + age / 10, 1),
        "purchases": rng.poisson(3, n),
        "paying": rng.random(n) < 0.25,
        "joined": np.array([date(2030, 1, 1) + timedelta(days=int(day)) for day in days], object),
    }


def send(client: Client, collection: str, columns: dict[str, Any]) -> None:
    mechanism = parse(client.http.get(f"/c/{collection}/document.json").json()["mechanism"])
    values = np.stack([columns["age"], columns["state"]], axis=1)
    given = np.array([mechanism.family.of_answers(row) for row in values.tolist()])
    reports = mechanism.privatize(given, SimulationCoins(1))
    table = pa.table(
        {name: pa.array(columns[name]) for name in COLUMNS}
        | {"member": reports["member"].astype(np.uint32)}
        | {"report": pa.array([report.tobytes() for report in reports["payload"]], pa.binary())}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"Content-Type": "application/vnd.apache.arrow.stream", "Tacit-Batch": secrets.token_hex(16)}
    reply = client.http.post(f"/c/{collection}/reports", content=sink.getvalue().to_pybytes(), headers=headers)
    assert reply.status_code == 201, reply.text


@dataclass(frozen=True)
class Served:
    """A collector with two tables, and how to reach it."""

    client: Client
    pg: PgServer
    port: int
    collection: str
    other: str
    token: str
    """Of an analyst."""
    reader: str
    """For the first collection alone."""
    people: dict[str, Any]

    def address(self, **more: Any) -> str:
        given = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": "ann",
            "dbname": "tacit",
            "password": self.token,
        } | more
        return " ".join(f"{name}='{value}'" for name, value in given.items())

    @contextmanager
    def limited(self, **changes: Any) -> Generator[None]:
        """Other limits for the sessions that begin in the block; everybody else keeps the generous ones."""
        before = self.pg._limits
        self.pg._limits = replace(before, **changes)
        try:
            yield
        finally:
            self.pg._limits = before

    def is_left_by(self, most: int) -> bool:
        """Whether there are no more connections than so many."""
        return self.pg.connections <= most

    def make_token(self, scope: str, **more: Any) -> dict[str, Any]:
        return self.client.api("POST", "/tokens", {"scope": scope} | more).json()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine that nobody else knows."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1"  # RSA would search for primes.
    command = f"openssl req -x509 {curve} -nodes -days 2 -subj /CN=localhost -keyout {key} -out {cert}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return cert, key


@dataclass(frozen=True)
class Prepared:
    """The folder of a collector that has stopped, and what is in it."""

    folder: TemporaryDirectory[str]
    """Removed when the process ends."""
    collection: str
    other: str
    people: dict[str, Any]


@cache
def prepared(n: int) -> Prepared:
    """A collection that so many people answered, and one that nobody did; planned and filled once in a process."""
    folder, columns = TemporaryDirectory(prefix="tacit-people-"), people(n)
    with serving(make_app(SqliteStore(folder.name), Limits(requests_per_second=0))) as client:
        full, other = client.publish(DRAFT), client.publish(SECRET)
        send(client, full, columns)
    return Prepared(folder, full, other, columns)


@contextmanager
def served(folder: Path, limits: PgLimits | None = None, n: int = N, **settings: Any) -> Generator[Served]:
    """A collector with a full table, one that nobody answered, and a port for clients of PostgreSQL."""
    made = prepared(n)
    shutil.copytree(made.folder.name, folder / "data")
    app = make_app(SqliteStore(folder / "data"), Limits(requests_per_second=0))
    admin, analyst = app.collector.access.create("admin")[0], app.collector.access.create("analyst")[0]
    reader = app.collector.access.create("reader", collection=made.collection)[0]
    pg = PgSettings(free_port(), limits=limits or PgLimits(), **settings)
    with running(app, pg=pg) as server, http_client(server.url) as http:
        assert server.pg is not None
        client = Client(http, admin)
        yield Served(client, server.pg, pg.port, made.collection, made.other, analyst, reader, made.people)
