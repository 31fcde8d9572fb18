"""A crowd with public rows and private columns, and how its reports get into a collector."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pyarrow as pa

from tacit.catalog import parse
from tacit.core.compose import OneOf
from tacit.simulate.coins import SimulationCoins

STREAM = "application/vnd.apache.arrow.stream"
STATES = ("CA", "NY", "WA")
ROWS = {"table": "people", "columns": [{"name": "os", "type": "text"}, {"name": "hours", "type": "number"}]}
PEOPLE: dict[str, Any] = {
    "title": "People",
    "epsilon": "3",
    "minimum_cohort": 100,
    "respondents": 20_000,
    "rows": ROWS,
    "queries": ["SELECT COUNT(*), AVG(hours) FROM people WHERE age BETWEEN 30 AND 39 AND state = 'CA'"],
    "questions": [
        {"name": "age", "text": "How old are you?", "domain": {"kind": "integers", "low": 0, "high": 99}},
        {"name": "state", "text": "Where do you live?", "domain": {"kind": "categories", "labels": list(STATES)}},
    ],
}


@dataclass(frozen=True)
class Crowd:
    """People as they are: what is public of them, and what only they know."""

    os: Any
    hours: Any
    age: Any
    state: Any

    def chosen(self, condition: Any) -> tuple[int, float, float]:
        """How many there are, the sum and the mean of their hours."""
        return int(condition.sum()), float(self.hours[condition].sum()), float(self.hours[condition].mean())


def crowd(n: int, seed: int = 1) -> Crowd:
    """Hours depend on the age; some do not say which system they use."""
    rng = np.random.default_rng(seed)
    age = rng.binomial(99, 0.4, n)
    hours = np.round(rng.gamma(4, 5, n) + age / 10, 1)
    systems = rng.choice(np.array(["ios", "linux", "win", None], object), n, p=[0.4, 0.2, 0.35, 0.05])
    return Crowd(systems, hours, age, rng.choice(len(STATES), n, p=[0.5, 0.3, 0.2]))


def json_batch(collection: str, mechanism: Any, values: Any, rows: list[dict[str, Any]]) -> bytes:
    """Reports on encoded values beside their rows, as JSON."""
    reports = mechanism.privatize(np.array(values), SimulationCoins(1))
    pairs = zip(reports["member"], reports["payload"], strict=True) if isinstance(mechanism, OneOf) else None
    split = [(0, report) for report in reports] if pairs is None else list(pairs)
    items = [
        {"member": int(member), "report": report.tobytes().hex(), "row": row}
        for (member, report), row in zip(split, rows, strict=True)
    ]
    return json.dumps({"collection": collection, "batch": secrets.token_hex(16), "reports": items}).encode()


def stream(mechanism: Any, people: Crowd, seed: int = 1) -> bytes:
    """The reports of a crowd beside its rows, as Arrow."""
    family = mechanism.family if isinstance(mechanism, OneOf) else None
    values = np.stack([people.age, people.state], axis=1)
    given: Any = [family.of_answers(row) for row in values.tolist()] if family is not None else values
    reports = mechanism.privatize(np.array(given), SimulationCoins(seed))
    columns: dict[str, Any] = {"os": pa.array(people.os, pa.string()), "hours": people.hours}
    if family is not None:
        columns |= {"member": reports["member"].astype(np.uint32)}
        reports = reports["payload"]
    columns |= {"report": pa.array([report.tobytes() for report in reports], pa.binary())}
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def send_crowd(http: httpx.Client, collection: str, people: Crowd, seed: int = 1) -> None:
    """Privatize a crowd and send it as one batch."""
    mechanism = parse(http.get(f"/c/{collection}/document.json").json()["mechanism"])
    headers = {"Content-Type": STREAM, "Tacit-Batch": secrets.token_hex(16)}
    reply = http.post(f"/c/{collection}/reports", content=stream(mechanism, people, seed), headers=headers)
    assert reply.status_code == 201, reply.text
    assert reply.json()["accepted"] == len(people.age)
