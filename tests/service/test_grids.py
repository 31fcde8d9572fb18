"""Rectangles, means within ranges and areas under curves through the whole collector and the command line."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from click.testing import CliRunner
from tests.service.plain import Client, draft
from tests.service.test_ranges import upload

from tacit.cli.collection import collection as group
from tacit.client import Respondent

AGE: dict[str, Any] = {"kind": "integers", "name": "age", "low": 20, "high": 80, "step": 4}
INCOME: dict[str, Any] = {
    "kind": "ordered",
    "name": "income",
    "labels": ["low", "middling, or so", "high", "very high"],
}
SCORE: dict[str, Any] = {"kind": "integers", "name": "score", "low": 0, "high": 15, "step": 1}
WON: dict[str, Any] = {"kind": "booleans", "name": "won"}
MANY = tuple(WON | {"name": f"won {i}"} for i in range(9))


def asked(name: str, task: str, *attributes: dict[str, Any]) -> dict[str, Any]:
    domain: Any = attributes[0] if len(attributes) == 1 else {"kind": "product", "attributes": list(attributes)}
    return {"name": name, "text": "?", "domain": domain, "task": task}


def test_a_crowd_is_asked_for_rectangles_and_margins(client: Client) -> None:
    """Every number is within 6 standard errors of the truth, which fails by chance with probability below 1e-7."""
    collection = client.publish(draft(questions=[asked("who", "ranges", AGE, INCOME)], epsilon="2"))
    rng = np.random.default_rng(1)
    ages, incomes = rng.binomial(15, 0.4, 10_000), rng.integers(0, 4, 10_000)
    upload(client, collection, ages * 4 + incomes)
    path = f"/collections/{collection}/questions/who/rectangle"
    ends = urlencode({"low": '28,"middling, or so"', "high": "44,high"})
    found = client.api("GET", f"{path}?{ends}").json()
    truth = np.mean((ages >= 2) & (ages <= 6) & (incomes >= 1) & (incomes <= 2))
    assert found["from"] == [28, "middling, or so"] and found["to"] == [44, "high"] and found["n"] == 10_000
    share = found["share"]
    assert abs(share["estimate"] - truth) < 6 * share["standard_error"] < 0.2
    margin = client.api("GET", f"{path}?{urlencode({'low': '28,', 'high': '44,'})}").json()
    assert margin["to"] == [44, "very high"]
    assert abs(margin["share"]["estimate"] - np.mean((ages >= 2) & (ages <= 6))) < 6 * margin["share"]["standard_error"]
    assert client.api("GET", path).json()["share"]["estimate"] == 1.0
    rows = client.answers(collection)["questions"][0]["rows"]
    assert len(rows) == 64 and rows[0]["value"] == [20, "low"]
    assert sum(row["raw"]["estimate"] for row in rows) == pytest.approx(1)


@pytest.fixture(scope="module")
def few(client: Client) -> str:
    """A collection that three people have answered."""
    collection = client.publish(draft(questions=[asked("who", "ranges", AGE, INCOME)], minimum_cohort=1))
    upload(client, collection, np.array([0, 5, 63]))
    return collection


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("rectangle?low=28", "one value for each of age, income"),
        ("rectangle?low=19,low", "from 20 to 80"),
        ("rectangle?low=44,high&high=28,low", "low is above high"),
        ("range?low=28", "ask for a rectangle"),
        ("quantiles", "ask for a rectangle"),
        ("auc", "two attributes"),
    ],
)
def test_bad_rectangles_are_refused_with_the_rule(client: Client, few: str, query: str, word: str) -> None:
    answer = client.api("GET", f"/collections/{few}/questions/who/{query}")
    assert answer.status_code == 422 and word in answer.json()["detail"], answer.text


def test_domains_that_are_no_grids_are_refused(client: Client) -> None:
    colours = {"kind": "categories", "name": "colour", "labels": ["red", "green", "blue"], "other": None}
    for attributes, word in (((AGE, colours), "ordered"), (MANY, "attributes")):
        refused = client.api("POST", "/collections", draft(questions=[asked("who", "ranges", *attributes)]))
        assert refused.status_code == 422 and word in refused.json()["detail"], refused.text
    large = [AGE | {"name": name, "low": 0, "high": (1 << 21) - 1, "step": 1} for name in ("a", "b")]
    refused = client.api("POST", "/collections", draft(questions=[asked("who", "ranges", *large)]))
    assert refused.status_code == 422 and "1099511627776" in refused.json()["detail"]


def test_the_mean_of_a_number_within_a_range_of_a_key(client: Client) -> None:
    """Within 6 standard errors of the truth, which fails by chance with probability below 1e-7."""
    hours = {"kind": "integers", "name": "hours", "low": 10, "high": 60, "step": 5}
    collection = client.publish(draft(questions=[asked("overtime", "range_means", AGE, hours)], epsilon="2"))
    rng = np.random.default_rng(2)
    ages = rng.binomial(15, 0.4, 10_000)
    numbers = np.minimum(10, rng.poisson(2 + ages * 0.4))
    upload(client, collection, ages * 11 + numbers)
    path = f"/collections/{collection}/questions/overtime/mean"
    found = client.api("GET", f"{path}?{urlencode({'low': '36', 'high': '48'})}").json()
    inside = (ages >= 4) & (ages <= 7)
    assert abs(found["mean"]["estimate"] - (10 + 5 * numbers[inside].mean())) < 6 * found["mean"]["standard_error"] < 5
    assert abs(found["share"]["estimate"] - inside.mean()) < 6 * found["share"]["standard_error"]
    nobody = client.api("GET", f"{path}?{urlencode({'low': '80', 'high': '80'})}").json()["mean"]
    assert nobody["estimate"] is None and (nobody["low"], nobody["high"]) == (10, 60)
    row = client.answers(collection)["questions"][0]["rows"][0]
    assert abs(row["raw"]["estimate"] - (10 + 5 * numbers.mean())) < 6 * row["raw"]["standard_error"]
    for params, word in (({"low": "48", "high": "36"}, "above"), ({"low": "19"}, "from 20 to 80")):
        assert word in client.api("GET", f"{path}?{urlencode(params)}").json()["detail"]
    refused = client.api("POST", "/collections", draft(questions=[asked("overtime", "range_means", AGE, WON)]))
    assert refused.status_code == 422 and "integer number" in refused.json()["detail"]


def areas(client: Client) -> tuple[str, str, str, float]:
    """Two collections of scores, one of scores with labels, and the true area."""
    rng = np.random.default_rng(3)
    high, low = rng.binomial(15, 0.6, 8_000), rng.binomial(15, 0.4, 8_000)
    ids = [client.publish(draft(questions=[asked("score", "ranges", SCORE)], epsilon="2", title=name)) for name in "ab"]
    upload(client, ids[0], high)
    upload(client, ids[1], low, seed=2)
    both = client.publish(draft(questions=[asked("score", "ranges", SCORE, WON)], epsilon="2"))
    upload(client, both, np.concatenate([2 * high + 1, 2 * low]), seed=3)
    p, q = (np.bincount(scores, minlength=16) / 8_000 for scores in (high, low))
    return ids[0], ids[1], both, float(p @ (np.cumsum(q) - q / 2))


def test_the_area_under_the_curve_from_two_collections_and_from_one(client: Client) -> None:
    """Within 6 standard errors of the truth, which fails by chance with probability below 1e-7."""
    positives, negatives, both, truth = areas(client)
    found = client.api("GET", f"/collections/{positives}/questions/score/auc?other={negatives}").json()
    one = client.api("GET", f"/collections/{both}/questions/score/auc").json()
    for area in (found["auc"], one["auc"]):
        assert abs(area["estimate"] - truth) < 6 * area["standard_error"] < 0.2
        assert area["low"] < area["estimate"] < area["high"]
    path = f"/collections/{positives}/questions/score"
    for query, status in (("auc", 422), (f"auc?other={both}", 422), ("auc?other=" + "0" * 64, 404),
                          (f"cdf?other={negatives}", 422)):  # fmt: skip
        assert client.api("GET", f"{path}/{query}").status_code == status, query
    token = client.api("POST", "/tokens", {"scope": "reader", "collection": positives}).json()["token"]
    http = client.http.get(f"/api/v1{path}/auc?other={negatives}", headers={"Authorization": f"Bearer {token}"})
    assert http.status_code == 403


def test_the_command_line_asks_for_the_area_in_a_folder(tmp_path: Path) -> None:
    runner = CliRunner()
    ids: list[str] = []
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(
            json.dumps(draft(questions=[asked("score", "ranges", SCORE)], title=name, minimum_cohort=1))
        )
        made = runner.invoke(group, ["publish", str(tmp_path / f"{name}.json"), "--data", str(tmp_path)])
        assert made.exit_code == 0, made.output
        ids.append(made.output.strip())
    asked_for = ["auc", *ids, "--question", "score", "--data", str(tmp_path)]
    answer = runner.invoke(group, asked_for)
    assert answer.exit_code == 0 and json.loads(answer.output)["status"] == "below_minimum_cohort", answer.output


def test_the_python_client_answers_pairs(client: Client) -> None:
    questions = [asked("who", "ranges", AGE, INCOME)]
    collection = client.publish(draft(title="Pairs", questions=questions, minimum_cohort=5))
    url = f"{client.http.base_url}/c/{collection}"
    for i in range(12):
        assert Respondent().answer(url, {"who": {"age": 20 + 4 * i, "income": "high"}}).state == "sent"
    assert client.answers(collection)["questions"][0]["n"] == 12


@pytest.mark.slow
def test_the_command_line_asks_for_a_rectangle_of_a_million_combinations(client: Client) -> None:
    """Within 6 standard errors of the truth, which fails by chance with probability below 1e-7."""
    sides: list[dict[str, Any]] = [
        {"kind": "integers", "name": name, "low": 0, "high": 1023, "step": 1} for name in ("across", "down")
    ]
    collection = client.publish(draft(questions=[asked("where", "ranges", *sides)], epsilon="4", minimum_cohort=1))
    at = np.random.default_rng(5).binomial(1023, 0.5, (20_000, 2))
    upload(client, collection, at[:, 0] * 1024 + at[:, 1])
    place = ["--server", str(client.http.base_url), "--token", client.token]
    ends = ["--set", "low=500,", "--set", "high=1023,511"]
    answer = CliRunner().invoke(group, ["ask", collection, "where", "rectangle", *ends, *place])
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.output)
    assert (found["from"], found["to"]) == ([500, 0], [1023, 511])
    truth, share = np.mean((at[:, 0] >= 500) & (at[:, 1] <= 511)), found["share"]
    assert abs(share["estimate"] - truth) < 6 * share["standard_error"] < 0.5
    assert share["low"] < share["estimate"] < share["high"]


def test_four_attributes_are_asked_with_grids_of_pairs(client: Client) -> None:
    """6 standard errors, which hold the noise and the unevenness: by chance below 1e-7 if both were normal."""
    attributes = [SCORE | {"name": f"score {i}", "high": 31} for i in range(4)]
    question = asked("who", "ranges", *attributes)
    collection = client.publish(draft(questions=[question], epsilon="2"))
    rng = np.random.default_rng(2)
    scores = rng.binomial(31, 0.3 + 0.4 * rng.random((8000, 1)), (8000, 4))
    upload(client, collection, np.ravel_multi_index(tuple(scores.T), (32,) * 4))
    path = f"/collections/{collection}/questions/who/rectangle"
    for low, high in (([8, 4, 0, 0], [31, 15, 31, 31]), ([8, 8, 8, 0], [31, 31, 31, 31])):
        ends = urlencode({"low": ",".join(map(str, low)), "high": ",".join(map(str, high))})
        found = client.api("GET", f"{path}?{ends}").json()
        truth = np.mean(np.all((scores >= low) & (scores <= high), axis=1))
        share = found["share"]
        assert abs(share["estimate"] - truth) < 6 * share["standard_error"] < 1 and "grids of pairs" in found["note"]
    answer = client.answers(collection)["questions"][0]
    assert answer["method"] == "agreed" and answer["rows"][0]["value"][2:] == ["0 … 31", "0 … 31"]
    assert sum(row["consistent"]["estimate"] for row in answer["rows"]) == pytest.approx(1)
