"""SQL over rows through the whole collector: published, sent, sealed, asked over HTTP."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from tests.service.plain import Client, draft, serving
from tests.service.rows import PEOPLE, STATES, Crowd, crowd, send_crowd

from tacit.collector.collections.access import OWNER
from tacit.collector.server import make_app
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.collector.tables.tables import Tables
from tacit.hosting.limits import Limits

N = 20_000
SURE = 6.0
"""Standard errors that an estimate may be off: by chance once in 5e8. Some 40 are looked at, so below 1e-7 in all."""


class Asked:
    """A collector with a crowd in it."""

    def __init__(self, client: Client, app: Any) -> None:
        self.client, self.app = client, app
        self.collection = client.publish(PEOPLE)
        self.people = crowd(N)
        half = N // 2
        for seed, part in enumerate((slice(0, half), slice(half, N))):
            chosen = Crowd(*(getattr(self.people, name)[part] for name in ("os", "hours", "age", "state")))
            send_crowd(client.http, self.collection, chosen, seed)

    def ask(self, sql: str, token: str | None = None, **more: Any) -> Any:
        path = f"/collections/{self.collection}/query"
        return self.client.api("POST", path, {"sql": sql} | more, token=token)

    def rows(self, sql: str, **more: Any) -> Any:
        reply = self.ask(sql, **more)
        assert reply.status_code == 200, reply.text
        return reply.json()["rows"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: Any) -> Generator[Asked]:
    app = make_app(SqliteStore(tmp_path_factory.mktemp("data")), Limits(requests_per_second=0))
    with serving(app) as client:
        yield Asked(client, app)


@pytest.fixture
def client(tmp_path: Any) -> Generator[Client]:
    with serving(make_app(SqliteStore(tmp_path), Limits(requests_per_second=0))) as client:
        yield client


def near(cell: dict[str, Any], truth: float) -> None:
    assert cell["status"] == "estimate" and cell["low"] < cell["estimate"] < cell["high"]
    assert abs(cell["estimate"] - truth) < SURE * cell["standard_error"], (cell, truth)


def conditions(people: Crowd) -> dict[str, Any]:
    """Conditions with whom they hold for."""
    age, state, os = people.age, people.state, people.os
    return {
        "age BETWEEN 30 AND 39 AND state = 'CA'": (age >= 30) & (age <= 39) & (state == 0),
        "age < 45": age < 45,
        "state <> 'CA'": state != 0,
        "NOT (age >= 35 OR state IN ('NY', 'WA'))": ~((age >= 35) | (state > 0)),
        "age >= 40 AND os = 'ios'": (age >= 40) & (os == "ios"),
        "age < 40 OR os = 'win'": (age < 40) | (os == "win"),
    }


def test_answers_are_near_the_truth_and_sharp(asked: Asked) -> None:
    """No estimate is off by more than `SURE` standard errors, and counts are known to a fifth."""
    for condition, chosen in conditions(asked.people).items():
        found = asked.rows(f"SELECT COUNT(*), SUM(hours), AVG(hours) FROM people WHERE {condition}")
        count, total, mean = asked.people.chosen(chosen)
        for cell, truth in zip(found[0], (count, total, mean), strict=True):
            near(cell, truth)
        assert found[0][0]["standard_error"] < 0.2 * count


@pytest.mark.slow
def test_private_numbers_are_summed_averaged_and_ranked(asked: Asked) -> None:
    people = asked.people
    quantile = "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age)"
    sql = f"SELECT SUM(age), AVG(age), MEDIAN(age), {quantile} FROM people WHERE os = 'ios'"
    total, mean, median, low = asked.rows(sql)[0]
    ages = np.sort(people.age[people.os == "ios"])
    near(total, float(ages.sum()))
    near(mean, float(ages.mean()))
    assert mean["standard_error"] < 3
    for cell, share in ((median, 0.5), (low, 0.25)):
        truth = ages[int(np.ceil(share * len(ages))) - 1]
        assert cell["low"] <= cell["estimate"] <= cell["high"]
        assert cell["low"] - 10 <= truth <= cell["high"] + 10
    found = asked.rows("SELECT state, AVG(age) FROM people GROUP BY state")
    assert [row[0] for row in found] == list(STATES)
    for name, cell in found:
        near(cell, float(people.age[people.state == STATES.index(name)].mean()))


def test_one_row_cannot_be_given_all_the_weight(asked: Asked) -> None:
    hours = float(asked.people.hours[0])
    cell = asked.rows(f"SELECT SUM(1/((hours-{hours})*(hours-{hours})+1e-9)) FROM people WHERE age < 40")[0][0]
    assert (cell["status"], cell["estimate"], cell["low"]) == ("below_minimum_cohort", None, None)


def test_what_depends_on_public_columns_alone_is_exact(asked: Asked) -> None:
    people = asked.people
    found = asked.rows("SELECT COUNT(*), COUNT(os), SUM(hours) FROM people WHERE hours > 20")[0]
    chosen = people.hours > 20
    named = int(sum(item is not None for item in people.os[chosen]))
    assert [cell["estimate"] for cell in found] == pytest.approx([chosen.sum(), named, people.hours[chosen].sum()])
    assert {cell["status"] for cell in found} == {"exact"}
    assert asked.rows("SELECT COUNT(*) FROM people WHERE age BETWEEN 0 AND 99")[0][0]["estimate"] == N


def test_groups_by_public_and_private_columns(asked: Asked) -> None:
    people = asked.people
    systems = asked.rows("SELECT os, COUNT(*) AS c FROM people WHERE age < 40 GROUP BY os")
    assert [row[0] for row in systems] == ["ios", "linux", "win", None]
    for name, cell in systems:
        near(cell, int(((people.age < 40) & np.array([item == name for item in people.os])).sum()))
    states = asked.rows("SELECT state, os, AVG(hours) FROM people WHERE os <> 'win' GROUP BY state, os")
    assert [(row[0], row[1]) for row in states] == [(s, o) for s in STATES for o in ("ios", "linux")]
    for state, name, cell in states:
        near(cell, people.hours[(people.state == STATES.index(state)) & (people.os == name)].mean())
    first = asked.rows("SELECT state, COUNT(*) FROM people GROUP BY state ORDER BY 2 DESC LIMIT 1")
    assert [row[0] for row in first] == ["CA"]


def test_the_level_sets_the_width_of_intervals(asked: Asked) -> None:
    sql = "SELECT COUNT(*) FROM people WHERE age < 45"
    for level in (0.5, 0.95, 0.999):
        cell = asked.rows(sql, level=level)[0][0]
        width = NormalDist().inv_cdf((1 + level) / 2) * cell["standard_error"]
        assert cell["high"] - cell["estimate"] == pytest.approx(width)
    for wrong in (0, 1, 2, -1, "x"):
        assert asked.ask(sql, level=wrong).json()["type"].endswith(":invalid_spec")


def test_what_an_answer_says_of_itself(asked: Asked) -> None:
    reply = asked.ask("SELECT os AS system, COUNT(*) FROM people WHERE age < 9 GROUP BY os").json()
    system = {"name": "system", "kind": "group", "ordered": False}
    assert reply["columns"] == [system, {"name": "count", "kind": "aggregate"}]
    by_age = asked.ask("SELECT age AS years, COUNT(*) FROM people GROUP BY age").json()
    assert by_age["columns"][0] == {"name": "years", "kind": "group", "ordered": True}
    assert (reply["n"], reply["level"], reply["table"]) == (N, 0.95, "people") and reply["seconds"] > 0
    assert set(reply["rows"][0][1]) == {"estimate", "standard_error", "low", "high", "n", "status", "better"}
    lost = asked.rows("SELECT AVG(hours) FROM people WHERE age = 99 AND state = 'WA' AND os = 'linux'")[0][0]
    assert lost["status"] in ("insufficient_data", "no_data") and lost["estimate"] is None


def test_explain_shows_the_plan_and_no_answer(asked: Asked) -> None:
    sql = "SELECT COUNT(*), AVG(hours) FROM people WHERE age BETWEEN 30 AND 39 AND os = 'ios'"
    reply = asked.ask(f"EXPLAIN {sql}").json()
    assert "rows" not in reply and len(reply["plan"]) == 2
    step = reply["plan"][0]
    assert step["mechanism"].startswith("hio") and step["nodes"] > 0 and not step["exact"]
    assert step["rows"] == int((asked.people.os == "ios").sum()) and step["volume"] == pytest.approx(0.1)
    actual = asked.rows(sql)[0][0]["standard_error"]
    assert step["expected_standard_error"] == pytest.approx(actual, rel=0.5)


def test_get_and_post_agree_and_csv_has_the_same_numbers(asked: Asked) -> None:
    sql = "SELECT os, COUNT(*) AS c FROM people WHERE age < 40 GROUP BY os"
    posted, path = asked.ask(sql).json(), f"/collections/{asked.collection}/query"
    got = asked.client.http.get(
        f"/api/v1{path}", params={"sql": sql}, headers={"Authorization": f"Bearer {asked.client.token}"}
    )
    numbers = [[cell["estimate"] for _, cell in reply["rows"]] for reply in (got.json(), posted)]
    assert numbers[0] == pytest.approx(numbers[1]) and got.json()["columns"] == posted["columns"]
    reply = asked.client.api("POST", f"{path}.csv", {"sql": sql})
    assert reply.headers["content-type"].startswith("text/csv")
    assert re.fullmatch(
        r'attachment; filename="people-select-[a-z0-9-]+-[0-9a-f]{8}\.csv"', reply.headers["content-disposition"]
    )
    header, *lines = csv.reader(io.StringIO(reply.text))
    assert header == ["os", "c", "c_standard_error", "c_low", "c_high", "c_status"]
    assert [line[0] for line in lines] == ["ios", "linux", "win", ""]
    names = ("estimate", "standard_error", "low", "high")
    for line, (_, cell) in zip(lines, posted["rows"], strict=True):
        assert [float(item) for item in line[1:5]] == pytest.approx([cell[name] for name in names])
    plan = asked.client.api("POST", f"{path}.csv", {"sql": f"EXPLAIN {sql}"}).text
    assert plan.startswith("mechanism,aggregate,")


BAD = {
    "SELECT COUNT(*) FROM people WHERE aeg < 3": ("did you mean age", 35),
    "SELECT * FROM people": ("would show rows", 0),
    "SELECT COUNT(*) FROM people WHERE age = 200": ("never 200", 41),
    "SELECT COUNT(*) FROM people WHERE state = 'XX'": ("not one of its labels", 43),
    "SELECT SUM(age + 1) FROM people": ("private", 8),
    "SELECT COUNT(*) FROM other": ("no table", 22),
    "SELECT COUNT(*) FROM people JOIN b ON 1 = 1": ("JOIN", 29),
    "SELECT COUNT(*) FROM people HAVING AVG(age) > 3": ("HAVING", 36),
    "SELECT COUNT(*) FROM (SELECT 1)": ("subquery", 0),
    "SELECT COUNT(*) FROM people WHERE age <": ("not SQL", 39),
    "SELECT COUNT(*) FROM people; DROP TABLE people": ("several statements", 0),
    "DROP TABLE people": ("begins with SELECT", 1),
    "SELECT COUNT(*) OVER () FROM people": ("window", 8),
    "SELECT SUM(os) FROM people": ("must be a number", 12),
    "SELECT pg_sleep(10) FROM people": ("write COUNT", 0),
    "SELECT COUNT(*) FROM people WHERE os = (SELECT 1)": ("", 0),
    "SELECT COUNT(*) FROM people WHERE '" + "(" * 5000: ("", 0),
}


@pytest.mark.parametrize("sql", BAD, ids=range(len(BAD)))
def test_what_is_not_answered_is_a_problem_with_its_place(asked: Asked, sql: str) -> None:
    words, position = BAD[sql]
    reply = asked.ask(sql)
    problem = reply.json()
    assert reply.status_code == 422 and reply.headers["content-type"] == "application/problem+json"
    assert problem["type"] == "urn:tacit:error:invalid_query" and words in problem["detail"]
    if position:
        assert problem["position"] == position, problem
    assert 0 <= problem.get("position", 0) <= len(sql)


def test_requests_that_ask_for_nothing(asked: Asked) -> None:
    path = f"/collections/{asked.collection}/query"
    for body in ({}, {"sql": ""}, {"sql": "  "}, {"sql": 3}, [1]):
        assert asked.client.api("POST", path, body).status_code == 400
    assert asked.client.api("POST", path, {"sql": "SELECT 1", "extra": 1}).status_code == 422
    assert asked.client.api("GET", path).status_code == 400


def test_who_may_ask(asked: Asked) -> None:
    access, sql = asked.app.collector.access, "SELECT COUNT(*) FROM people"
    other = asked.client.publish(draft())
    tokens = {
        "": 401,
        "tct_wrong": 401,
        access.create("reporter")[0]: 403,
        access.create("reader", collection=other)[0]: 403,
        access.create("reader", collection=asked.collection)[0]: 200,
        access.create("analyst")[0]: 200,
    }
    for token, status in tokens.items():
        assert asked.ask(sql, token=token).status_code == status
    reader = access.create("reader", collection=asked.collection)[0]
    stranger = access.create("reader", collection=other)[0]
    assert [table["name"] for table in asked.client.api("GET", "/tables", token=reader).json()["tables"]] == ["people"]
    assert asked.client.api("GET", "/tables", token=stranger).json() == {"tables": []}
    assert asked.client.api("GET", "/tables", token="").status_code == 401
    share = asked.client.http.get(f"/api/v1/collections/{asked.collection}/query", params={"sql": sql, "share": reader})
    assert share.json()["rows"][0][0]["estimate"] == N


def test_tables_say_what_is_private(asked: Asked) -> None:
    tables = asked.client.api("GET", "/tables").json()["tables"]
    table = next(item for item in tables if item["collection"] == asked.collection)
    assert (table["name"], table["n"], table["minimum_cohort"]) == ("people", N, 100)
    shown = {column["name"]: (column["type"], column["private"], column["labels"]) for column in table["columns"]}
    assert shown == {
        "age": ("integer", True, []),
        "state": ("text", True, list(STATES)),
        "os": ("text", False, []),
        "hours": ("number", False, []),
    }


def test_nothing_is_answered_below_the_minimum_cohort_or_without_rows(client: Client) -> None:
    plain, made = client.publish(draft()), client.api("POST", "/collections", PEOPLE).json()["id"]
    collection = client.publish(PEOPLE)
    send_crowd(client.http, collection, crowd(99))
    asked = {"sql": "SELECT COUNT(*) FROM people"}
    for name, kind in ((collection, "below_minimum_cohort"), (plain, "conflict"), (made, "conflict")):
        for sql in ("SELECT COUNT(*) FROM people", "EXPLAIN SELECT COUNT(*) FROM people"):
            reply = client.api("POST", f"/collections/{name}/query", {"sql": sql})
            assert (reply.status_code, reply.json()["type"].rpartition(":")[2]) == (409, kind), name
    assert client.api("POST", f"/collections/{'0' * 64}/query", asked).status_code == 404
    send_crowd(client.http, collection, crowd(1, 2))
    found = client.api("POST", f"/collections/{collection}/query", asked).json()
    assert found["rows"][0][0]["estimate"] == found["n"] == 100


def test_rows_that_arrive_later_are_in_the_next_answer(client: Client) -> None:
    collection = client.publish(PEOPLE)
    for turn in range(1, 4):
        send_crowd(client.http, collection, crowd(200, turn), turn)
        found = client.api("POST", f"/collections/{collection}/query", {"sql": "SELECT COUNT(*) FROM people"})
        assert found.json()["rows"][0][0]["estimate"] == 200 * turn


def test_of_equal_names_the_newest_is_the_plain_one(client: Client) -> None:
    first, second = client.publish(PEOPLE), client.publish(PEOPLE | {"title": "Again"})
    send_crowd(client.http, first, crowd(300))
    tables = {table["collection"]: table["name"] for table in client.api("GET", "/tables").json()["tables"]}
    longer = f"people_{first[:8]}"
    assert tables == {first: longer, second: "people"}
    for name in ("people", longer, longer.upper()):
        reply = client.api("POST", f"/collections/{first}/query", {"sql": f"SELECT COUNT(*) FROM {name}"})
        assert reply.json()["rows"][0][0]["estimate"] == 300


def test_databases_are_collections_or_all_of_them(asked: Asked) -> None:
    tables = Tables(asked.app.collector)
    names = [info.collection for info in tables.readable(OWNER, "tacit")]
    assert asked.collection in names
    assert [info.collection for info in tables.readable(OWNER, asked.collection[:12])] == [asked.collection]
    assert tables.readable(OWNER, "zzz") == []


def test_many_at_once_get_the_same_answers_as_one_after_the_other(asked: Asked) -> None:
    queries = [f"SELECT COUNT(*), AVG(hours) FROM people WHERE {condition}" for condition in conditions(asked.people)]
    alone = {sql: asked.rows(sql)[0] for sql in queries}
    with ThreadPoolExecutor(8) as analysts:
        together = list(analysts.map(asked.rows, queries * 4))
    for sql, rows in zip(queries * 4, together, strict=True):
        for cell, other in zip(rows[0], alone[sql], strict=True):
            assert cell["estimate"] == pytest.approx(other["estimate"])


def test_a_query_that_takes_too_long_ends(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    work = asked.app.collector.work
    monkeypatch.setattr(work, "limits", replace(work.limits, seconds=0.0))
    reply = asked.ask("SELECT COUNT(*) FROM people WHERE age < 3")
    assert reply.status_code == 503 and "retry-after" in reply.headers


def test_queries_are_counted_and_their_texts_are_not_logged(asked: Asked, caplog: pytest.LogCaptureFixture) -> None:
    def counts() -> dict[str, int]:
        lines = asked.client.http.get("/metrics").text.splitlines()
        pairs = [line.rsplit(" ", 1) for line in lines if line.startswith("tacit_queries_total{")]
        return {name.split('"')[1]: int(value) for name, value in pairs}

    before = counts()
    with caplog.at_level(logging.DEBUG):
        asked.ask("SELECT COUNT(*) FROM people WHERE age < 31")
        asked.ask("SELECT COUNT(*) FROM people WHERE age < 'zebra'")
    after = counts()
    for outcome in ("answered", "refused"):
        assert after[outcome] == before.get(outcome, 0) + 1
    assert not any("zebra" in record.getMessage() or "SELECT" in record.getMessage() for record in caplog.records)


def test_a_spreadsheet_runs_nothing_of_a_csv_file(client: Client) -> None:
    collection = client.publish(PEOPLE)
    people = crowd(200)
    people.os[:] = "=1+1"
    send_crowd(client.http, collection, replace(people))
    reply = client.api(
        "POST", f"/collections/{collection}/query.csv", {"sql": "SELECT os, COUNT(*) FROM people GROUP BY os"}
    )
    assert "\n'=1+1,200.0" in reply.text


def test_the_description_names_the_routes(asked: Asked) -> None:
    description = asked.client.http.get("/openapi.json").json()
    assert {"/api/v1/tables", "/api/v1/collections/{id}/query", "/api/v1/collections/{id}/query.csv"} <= set(
        description["paths"]
    )
    assert "urn:tacit:error:invalid_query" in json.dumps(description)
