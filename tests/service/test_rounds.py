"""Adaptive plans through the collector: rounds follow each other, over restarts, and end in an answer."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import Client, binary, draft, serving

from tacit.catalog import parse
from tacit.client import Respondent
from tacit.client.ledger import AlreadyAnswered
from tacit.collector.server import make_app
from tacit.collector.service import Collector
from tacit.dashboard.pages import routes
from tacit.hosting.limits import Limits
from tacit.simulate.coins import SimulationCoins

LABELS = [f"item {i:02d}" for i in range(24)]
BASKET = {"name": "basket", "text": "What did you buy?", "domain": {"kind": "items", "labels": LABELS}}
ROUNDS = {"items": 3, "itemsets": 5}


def plan_draft(task: str = "items", **changes: Any) -> dict[str, Any]:
    given = {"questions": [BASKET | {"task": task}], "epsilon": "4", "k": 3, "respondents": 60_000}
    return draft(**(given | changes))


@pytest.fixture
def client() -> Generator[Client]:
    """A collector of one's own: some tests look at the list of all collections."""
    with serving(make_app(MemoryStore(), Limits(requests_per_second=0), pages=routes)) as client:
        yield client


def baskets(n: int, seed: int) -> list[tuple[int, ...]]:
    """Everybody buys items 0 and 1 together or not, and some of the others."""
    rng = np.random.default_rng(seed)
    both, third = rng.random(n) < 0.6, rng.random(n) < 0.4
    few = rng.random((n, len(LABELS))) < 0.03
    few[:, 0] = few[:, 1] = both
    few[:, 2] = third
    return [tuple(np.flatnonzero(row).tolist()) for row in few]


def answer_round(client: Client, collection: str, n: int, seed: int) -> None:
    """Send the reports of fresh respondents to one round."""
    mechanism = parse(client.http.get(f"/c/{collection}/document.json").json()["mechanism"])
    reports: Any = mechanism.privatize(baskets(n, seed), SimulationCoins(seed))  # type: ignore[arg-type]
    width = mechanism.report_dtype.itemsize
    received = client.send(collection, binary(collection, reports.tobytes(), width=width))
    assert received.status_code == 201, received.text


@pytest.mark.parametrize("task", ROUNDS)
@pytest.mark.slow_cases("itemsets")
def test_a_plan_runs_round_by_round_and_finds_what_is_frequent(client: Client, task: str) -> None:
    """20,000 respondents a round at epsilon 4: shares of 0.6 and 0.4 against noise below 0.05 cannot be missed."""
    first = current = client.publish(plan_draft(task))
    for i in range(ROUNDS[task]):
        state = client.status(first)["plan"]
        assert not state["finished"] and state["current"] == current and len(state["rounds"]) == i + 1
        assert client.answers(first)["status"] == "asking"
        answer_round(client, current, 20_000, seed=i)
        state = client.api("POST", f"/collections/{first}/advance").json()
        current = state["current"]
    assert state["finished"]
    found = client.answers(first)
    rows = found["questions"][0]["rows"]
    names = [tuple(row["value"]) for row in rows]
    pair = (LABELS[0], LABELS[1])
    wanted = {(LABELS[0],), (LABELS[1],)} | ({pair} if task == "itemsets" else {(LABELS[2],)})
    assert wanted == set(names)
    assert all(row["raw"]["low"] < row["raw"]["estimate"] < row["raw"]["high"] for row in rows)
    assert abs(rows[0]["raw"]["estimate"] - 0.6) < 0.1
    assert client.answers(current) == found | {"id": current}


def test_rounds_are_linked_and_take_no_reports_once_they_are_closed(client: Client) -> None:
    first = client.publish(plan_draft())
    answer_round(client, first, 5_000, seed=1)
    second = client.api("POST", f"/collections/{first}/advance").json()["current"]
    plan = client.http.get(f"/c/{second}/document.json").json()["plan"]
    assert (plan["first"], plan["previous"], plan["round"]) == (first, first, 2)
    mechanism = parse(client.http.get(f"/c/{first}/document.json").json()["mechanism"])
    late = mechanism.privatize_one((1,), SimulationCoins(1))
    assert client.send(first, binary(first, late, width=len(late))).status_code == 410
    assert client.http.get(f"/c/{first}", follow_redirects=False).headers["location"] == f"/c/{second}"


def test_a_respondent_is_in_one_round_of_a_plan(client: Client) -> None:
    first = client.publish(plan_draft(minimum_cohort=1))
    person = Respondent()
    assert person.answer(f"{client.http.base_url}/c/{first}", {"basket": [LABELS[1], LABELS[2]]}).state == "sent"
    second = client.api("POST", f"/collections/{first}/advance").json()["current"]
    with pytest.raises(AlreadyAnswered):
        person.answer(f"{client.http.base_url}/c/{second}", {"basket": [LABELS[1]]})
    assert Respondent().answer(f"{client.http.base_url}/c/{second}", {"basket": []}).state == "sent"


def test_a_round_with_too_few_respondents_is_not_advanced(client: Client) -> None:
    first = client.publish(plan_draft(minimum_cohort=100))
    refused = client.api("POST", f"/collections/{first}/advance")
    assert refused.status_code == 409 and "0 reports" in refused.json()["detail"]
    assert client.status(first)["state"] == "published"


def test_a_round_closes_by_itself_and_a_restart_in_the_middle_resumes() -> None:
    store = MemoryStore()
    with serving(make_app(store, Limits(requests_per_second=0))) as client:
        first = client.publish(plan_draft(respondents=2_000))
        answer_round(client, first, 1_200, seed=3)
    collector = Collector(store)  # Another process, which was not there when the reports came.
    collector.rounds.advance_due()
    state = collector.status(first)["plan"]
    assert [row["state"] for row in state["rounds"]] == ["closed", "published"]
    # The process died after closing a round and before publishing the next one.
    again = Collector(store)
    store.close_collection(state["current"])
    again.rounds.advance_due()
    assert again.status(first)["plan"]["finished"] is False


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": "many"}, "integer"),
        ({"questions": [BASKET | {"task": "items"}, BASKET | {"task": "items", "name": "other"}]}, "only question"),
        ({"questions": [{"name": "a", "text": "A?", "domain": {"kind": "booleans"}, "task": "items"}]}, "items"),
        ({"questions": [{"name": "a", "text": "A?", "domain": {"kind": "booleans"}}]}, "draft.k"),
    ],
)
def test_bad_plans_are_refused(client: Client, change: dict[str, Any], word: str) -> None:
    refused = client.api("POST", "/collections", plan_draft(**change))
    assert refused.status_code == 422 and word in refused.json()["detail"], refused.text


def test_a_collection_without_rounds_cannot_be_advanced(client: Client) -> None:
    collection = client.publish(draft())
    assert client.api("POST", f"/collections/{collection}/advance").status_code == 409


@pytest.mark.parametrize("task", ROUNDS)
@pytest.mark.parametrize("k", [3, 32])
def test_plans_are_forecast_before_they_begin(client: Client, task: str, k: int) -> None:
    told = client.api("POST", "/plan", plan_draft(task, k=k))
    assert told.status_code == 200, told.text
    (question,) = told.json()["questions"]
    assert 0 < question["standard_error"] < 0.1
    assert "first round" in question["of"]


def test_the_list_of_collections_says_which_round_one_is(client: Client) -> None:
    client.publish(plan_draft())
    client.publish(draft(title="No plan"))
    assert sorted(str(row["round"]) for row in client.api("GET", "/collections").json()["collections"]) == ["1", "None"]
