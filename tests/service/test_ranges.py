"""Ranges and quantiles through the whole collector: planned, collected, folded, asked."""

from typing import Any

import numpy as np
import pytest
from tests.service.plain import Client, draft

from tacit.catalog import parse
from tacit.client import Respondent
from tacit.core.compose import OneOf
from tacit.simulate.coins import SimulationCoins
from tacit.wire.batch import Batch, Block, encode_batch, new_batch_id

AGE = {
    "name": "age",
    "text": "How old are you?",
    "domain": {"kind": "integers", "low": 18, "high": 97},
    "task": "ranges",
}
PET = {"name": "pet", "text": "Which pet?", "domain": {"kind": "categories", "labels": ["cat", "dog", "fish"]}}


def upload(client: Client, collection: str, values: Any, seed: int = 1) -> None:
    """Perturb a whole crowd and send its reports as one batch, a block per member."""
    document = client.http.get(f"/c/{collection}/document.json").json()
    mechanism = parse(document["mechanism"])
    reports = mechanism.privatize(values, SimulationCoins(seed))
    assert isinstance(mechanism, OneOf)
    blocks = []
    for member in np.unique(reports["member"]).tolist():
        chosen = reports[reports["member"] == member]["payload"]
        blocks.append(Block(member, len(chosen), chosen.tobytes()))
    body = encode_batch(Batch(collection, new_batch_id(), tuple(blocks)))
    received = client.send(collection, body)
    assert received.status_code == 201, received.text
    assert received.json()["accepted"] == len(values)


def test_a_crowd_is_asked_for_ranges_quantiles_and_the_cdf(client: Client) -> None:
    """Every number is within 6 standard errors of the truth, which fails by chance with probability below 1e-7."""
    collection = client.publish(draft(questions=[AGE], epsilon="2"))
    ages = np.random.default_rng(1).binomial(79, 0.4, 40_000)
    upload(client, collection, ages)
    path = f"/collections/{collection}/questions/age"
    found = client.api("GET", f"{path}/range?low=40&high=49").json()
    truth = float(np.mean((ages >= 22) & (ages <= 31)))
    assert found["from"] == 40 and found["to"] == 49 and found["n"] == 40_000
    share = found["share"]
    assert abs(share["estimate"] - truth) < 6 * share["standard_error"] < 0.1
    assert share["low"] < share["estimate"] < share["high"]
    median = client.api("GET", f"{path}/quantiles?shares=0.5").json()["quantiles"][0]
    assert median["low"] <= 18 + np.median(ages) <= median["high"]
    cdf = client.api("GET", f"{path}/cdf?band=simultaneous").json()
    exact = np.array([np.mean(ages + 18 <= value) for value in cdf["value"]])
    inside = (np.array(cdf["low"]) <= exact) & (exact <= np.array(cdf["high"]))
    assert inside.mean() == 1.0
    assert np.all(np.diff(cdf["consistent"]) >= 0)
    heavy = client.api("GET", f"{path}/heavy?threshold=0.4").json()["intervals"]
    assert heavy and all(row["estimate"] >= 0.4 for row in heavy)
    rows = client.answers(collection)["questions"][0]["rows"]
    assert [rows[0]["value"], rows[-1]["value"]] == [18, 97]
    assert sum(row["raw"]["estimate"] for row in rows) == pytest.approx(1)


def test_ranges_stand_beside_other_questions_and_the_python_client_answers_them(client: Client) -> None:
    collection = client.publish(draft(questions=[PET, AGE], minimum_cohort=5))
    url = f"{client.http.base_url}/c/{collection}"
    for i in range(60):
        assert Respondent().answer(url, {"pet": "dog", "age": 18 + i}).state == "sent"
    questions = {item["name"]: item for item in client.answers(collection)["questions"]}
    assert questions["pet"]["n"] + questions["age"]["n"] == 60
    asked = client.api("GET", f"/collections/{collection}/questions/age/range?low=18&high=97").json()
    assert asked["share"] == {"estimate": 1.0, "standard_error": 0.0, "low": 1.0, "high": 1.0}


def test_three_respondents_get_honest_intervals_and_no_nan(client: Client) -> None:
    collection = client.publish(draft(questions=[AGE], minimum_cohort=1))
    upload(client, collection, np.array([0, 40, 79]))
    for query in ("range?low=20&high=21", "quantiles", "cdf", "heavy"):
        answer = client.api("GET", f"/collections/{collection}/questions/age/{query}")
        assert answer.status_code == 200
        assert "NaN" not in answer.text and "Infinity" not in answer.text
    assert "NaN" not in client.api("GET", f"/collections/{collection}/answers").text


@pytest.mark.parametrize(
    ("query", "status", "word"),
    [
        ("range?low=40&high=30", 422, "low is above high"),
        ("range?low=400", 422, "from 18 to 97"),
        ("range?low=young", 422, "from 18 to 97"),
        ("quantiles?shares=1.5", 422, "from 0 to 1"),
        ("quantiles?shares=most", 422, "numbers"),
        ("cdf?band=wide", 422, "pointwise"),
        ("heavy?threshold=0", 422, "threshold"),
        ("horoscope", 422, "quantiles"),
        ("range?colour=red", 422, "unknown parameter"),
        ("range?level=2", 422, "level"),
    ],
)
def test_bad_queries_are_refused_with_the_rule(client: Client, query: str, status: int, word: str) -> None:
    collection = client.publish(draft(questions=[AGE], minimum_cohort=1))
    upload(client, collection, np.array([0, 40, 79]))
    answer = client.api("GET", f"/collections/{collection}/questions/age/{query}")
    assert answer.status_code == status, answer.text
    assert word in answer.json()["detail"]


def test_other_questions_are_not_asked_for_ranges(client: Client) -> None:
    collection = client.publish(draft(questions=[PET], minimum_cohort=1))
    answer = client.api("GET", f"/collections/{collection}/questions/pet/range")
    assert answer.status_code == 422
    assert client.api("GET", f"/collections/{collection}/questions/age/range").status_code == 404
    refused = client.api("POST", "/collections", draft(questions=[PET | {"task": "ranges"}]))
    assert refused.status_code == 422 and "ordered" in refused.json()["detail"]


def test_nothing_is_said_below_the_minimum_cohort(client: Client) -> None:
    collection = client.publish(draft(questions=[AGE], minimum_cohort=5))
    upload(client, collection, np.array([0, 40, 79]))
    answer = client.api("GET", f"/collections/{collection}/questions/age/range").json()
    assert answer["status"] == "below_minimum_cohort" and "share" not in answer
