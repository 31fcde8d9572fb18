"""SQL that asks for too much, of too few, or of what is gone."""

from __future__ import annotations

import json
import logging
import re
import time
import warnings
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from tests.service.plain import Client, serving
from tests.service.rows import PEOPLE, crowd, send_crowd
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector import server
from tacit.collector.collections.access import OWNER
from tacit.collector.limits import Intervals
from tacit.collector.pg.statement import _notices
from tacit.collector.server import make_app
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.core.statistics.level import check_level
from tacit.errors import InvalidSpec
from tacit.hosting.clock import Clock
from tacit.hosting.limits import Limits
from tacit.hosting.problems import Problem
from tacit.sql.engine.aggregate import PublicMeasure

N = 3000


@pytest.fixture(scope="module")
def app(tmp_path_factory: Any) -> Any:
    return make_app(SqliteStore(tmp_path_factory.mktemp("data")), Limits(requests_per_second=0))


@pytest.fixture(scope="module")
def client(app: Any) -> Generator[Client]:
    with serving(app) as client:
        yield client


@pytest.fixture(scope="module")
def people(client: Client) -> str:
    collection = client.publish(PEOPLE)
    send_crowd(client.http, collection, crowd(N))
    return collection


def ask(client: Client, collection: str, sql: str, **more: Any) -> Any:
    return client.api("POST", f"/collections/{collection}/query", {"sql": sql} | more)


def heavy(aggregates: int) -> str:
    """Every combination of private values, for many measures."""
    measures = ", ".join(f"AVG(hours * {i} + hours)" for i in range(aggregates))
    return f"SELECT age, state, {measures} FROM people GROUP BY age, state"


def test_late_queries_free_their_threads(app: Any, people: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two queries of half a minute that may take a second: soon after, a short query is answered again."""
    plain = PublicMeasure.sums

    def slow(*args: Any, **given: Any) -> Any:
        time.sleep(0.001)
        return plain(*args, **given)

    monkeypatch.setattr(PublicMeasure, "sums", slow)
    work, info = app.collector.work, app.tables.find(OWNER, people)
    late = [
        work.submit("analyst", lambda: app.tables.query(info, app.tables.read(info, heavy(20))), 1.0) for _ in range(3)
    ]
    for job in late:
        with pytest.raises(Problem, match="within 1 seconds"):
            job.future.result(PATIENT_SECONDS)
    found = work.submit("analyst", lambda: app.tables.query(info, app.tables.read(info, "SELECT COUNT(*) FROM people")))
    assert found.future.result(PATIENT_SECONDS).cells()[0].estimate == N
    assert work.running + work.waiting <= 1  # The last one may still be on its way out.


def test_too_many_cells_are_refused_with_advice(client: Client, people: str) -> None:
    reply = ask(client, people, heavy(249))
    assert reply.status_code == 422 and "249 different things, must be at most 64" in reply.json()["detail"]
    counts = ", ".join(["COUNT(*)"] * 249)
    reply = ask(client, people, f"SELECT age, state, {counts} FROM people GROUP BY age, state")
    assert reply.status_code == 422
    assert "has 74700 cells (1 public groups, 300 private ones and 249 aggregates" in reply.json()["detail"]


def test_single_rows_cannot_be_read(client: Client, people: str) -> None:
    """Whatever public columns tell people apart, no cell of fewer than a hundred of them has an estimate."""
    rows = ask(
        client, people, "SELECT os, hours, COUNT(*), AVG(hours) FROM people WHERE state = 'CA' GROUP BY os, hours"
    )
    cells = [cell for row in rows.json()["rows"] for cell in row[2:]]
    assert len(cells) > 1000 and min(cell["n"] for cell in cells) == 1
    assert {cell["status"] for cell in cells if cell["n"] < 100} == {"below_minimum_cohort"}
    assert all(cell["estimate"] is None and cell["low"] is None for cell in cells if cell["n"] < 100)
    public = ask(client, people, "SELECT hours, COUNT(*) FROM people GROUP BY hours").json()["rows"]
    assert {cell["status"] for _, cell in public} == {"exact"} and sum(cell["estimate"] for _, cell in public) == N
    systems = ask(client, people, "SELECT os, COUNT(*) FROM people WHERE state = 'CA' GROUP BY os").json()["rows"]
    assert {cell["status"] for _, cell in systems} == {"estimate"}
    text = client.api(
        "POST", f"/collections/{people}/query.csv",
        {"sql": "SELECT COUNT(*) AS c FROM people WHERE age < 9 AND hours > 60"},
    ).text  # fmt: skip
    assert text.splitlines()[1] == ",,,,below_minimum_cohort"


def test_clients_of_postgresql_are_told_why_a_cell_is_null(app: Any, people: str) -> None:
    info = app.tables.find(OWNER, people)
    select = app.tables.read(info, "SELECT hours, COUNT(*) FROM people WHERE age < 9 GROUP BY hours")
    notices = _notices(app.tables.query(info, select))
    assert len(notices) == 1
    assert re.match(r"COUNT\(\*\) is NULL in (\d+) of \1 rows: fewer rows .* than the minimum cohort", notices[0])


def test_levels_out_of_bounds_are_refused_everywhere(client: Client, people: str) -> None:
    for level in ("1e-17", "1e-300", "0", "1", "0.9999999999999999", "nan", "inf", "x", "1" * 5000, ""):
        for path in ("answers", "answers.csv", "query?sql=SELECT+COUNT(*)+FROM+people", "questions/age/range"):
            reply = client.api("GET", f"/collections/{people}/{path}{'&' if '?' in path else '?'}level={level}")
            assert reply.status_code == 422 and "from 0.01 to 0.9999" in reply.text, (path, level[:20])
    for level in (True, None, [0.5], 10**400, -0.5, 1.0):
        assert "from 0.01 to 0.9999" in ask(client, people, "SELECT COUNT(*) FROM people", level=level).text
        with pytest.raises(InvalidSpec):
            check_level(level)
    assert [check_level(level) for level in (0.01, "0.5", 0.9999)] == [0.01, 0.5, 0.9999]


def test_rows_leave_the_memory_when_retention_drops_them(tmp_path: Any) -> None:
    day, seconds = [20_000], [0.0]
    clock = Clock(lambda: day[0], lambda: seconds[0])
    app = make_app(SqliteStore(tmp_path, today=clock.day), Limits(requests_per_second=0), clock=clock)
    with serving(app) as client:
        collection = client.publish(PEOPLE)
        send_crowd(client.http, collection, crowd(200))
        assert ask(client, collection, "SELECT COUNT(*) FROM people").status_code == 200
        assert app.tables._cache.nbytes > 0
        retention = app.collector.retention
        day[0] += 10_000
        retention.look()
        seconds[0] += Intervals().confirm_drop
        assert retention.look() == [collection]
        assert app.tables._cache.nbytes == 0
        assert ask(client, collection, "SELECT COUNT(*) FROM people").json()["type"].endswith("below_minimum_cohort")


def test_segments_that_were_merged_leave_the_memory(app: Any, client: Client) -> None:
    collection = client.publish(PEOPLE | {"title": "Merged"})
    for turn in range(1, 5):
        send_crowd(client.http, collection, crowd(150, turn), turn)
        assert ask(client, collection, "SELECT COUNT(*) FROM people").json()["rows"][0][0]["estimate"] == 150 * turn
    keys = {segment.key for segment in app.collector.segments(collection)}
    ask(client, collection, "SELECT COUNT(*) FROM people")
    assert {key for key in app.tables._cache._kept if key.startswith(collection)} <= keys


def test_what_nobody_foresaw_is_logged_by_type_and_place_alone(
    app: Any, client: Client, people: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(app.tables, "query", fail)
    # A test before this one may have set up the log as a server does, without propagation: then `caplog` listens at
    # this logger too and, with propagation, would hear every line twice.
    monkeypatch.setattr(logging.getLogger("tacit"), "handlers", [])
    monkeypatch.setattr(logging.getLogger("tacit"), "propagate", True)
    with caplog.at_level(logging.INFO, "tacit"):
        assert ask(client, people, "SELECT COUNT(*) FROM people").status_code == 500
    lines = [record.getMessage() for record in caplog.records if "unexpected" in record.getMessage()]
    assert len(lines) == 1 and "ZeroDivisionError" in str(lines) and "secret" not in str(lines)


def test_warnings_of_libraries_are_lines_of_the_log(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """By their kind and place; the words, which may be somebody's, are left out."""
    loggers = [logging.getLogger(name) for name in ("tacit", "uvicorn.error", "sqlglot")]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        try:
            server.set_up_logs()
            re.compile("[[a]")
            np.array([1.0]) / np.array([0.0])
        finally:
            for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
                logger.handlers, logger.propagate = handlers, propagate
                logger.setLevel(level)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["message"].partition(" at ")[0] for line in lines] == ["FutureWarning", "RuntimeWarning"]
