"""The method of post-processing is chosen per question put: by name, over HTTP and from the command line."""

from typing import Any

import numpy as np
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import binary, draft, plain_app, serving

from tacit.catalog import CATALOG
from tacit.collector.answers.answer import answer
from tacit.collector.answers.ask import ask
from tacit.collector.collections.active import Active
from tacit.collector.collections.parts import Total
from tacit.collector.collections.publish import Planner, publish_document
from tacit.collector.http.openapi import openapi
from tacit.collector.service import Collector
from tacit.errors import InvalidQuery, InvalidSpec
from tacit.post.frequencies.methods import NAMES
from tacit.simulate.coins import SimulationCoins
from tacit.tasks import histogram

AGE = {"name": "age", "text": "Age?", "task": "mean", "domain": {"kind": "integers", "low": 20, "high": 60, "step": 10}}


def published(**changes) -> Active:
    collector = Collector(MemoryStore())
    found = collector.find(publish_document(collector.store, Planner(CATALOG).plan(draft(**changes))[0]).id)
    collector.stop()
    return found


def tally(active: Active, values):
    return Total(active.mechanism.tally(active.mechanism.privatize(np.asarray(values), SimulationCoins(1))))


@pytest.mark.parametrize("post", [None, *NAMES, "cls"])
def test_every_method_of_the_table_can_be_asked_for(post: str | None):
    active = published()
    question = answer(active, tally(active, np.repeat([0, 1], [150, 50])), post=post).questions[0]
    # Two answers are too few for an estimated prior.
    assert question["method"] == {None: "norm_sub", "cls": "norm_sub", "npmle": "norm_sub"}.get(post, post)
    for row in question["rows"]:
        low, high = row["consistent"]["low"], row["consistent"]["high"]
        assert low <= row["consistent"]["estimate"] <= high


def test_an_unknown_method_is_refused_and_a_mean_has_none():
    active = published(questions=[AGE])
    counted = tally(active, np.repeat([0, 4], 50))
    with pytest.raises(InvalidSpec, match="norm_sub"):
        answer(active, counted, post="magic")
    question = answer(active, counted, post="norm").questions[0]
    assert (question["method"], question["rows"][0]["consistent"]) == ("none", None)


def test_the_interface_lists_the_table():
    for path in ("answers", "answers.csv", "answers.parquet"):
        parameters = openapi()["paths"][f"/api/v1/collections/{{id}}/{path}"]["get"]["parameters"]
        assert {"name": "post", "in": "query", "schema": {"type": "string", "enum": list(NAMES)}} in parameters


def test_the_method_is_asked_for_over_http():
    with serving(plain_app()) as client:
        mine = client.publish(draft(title="Methods"))
        client.send(mine, binary(mine, bytes([0] * 6 + [1] * 4)))
        asked = client.api("GET", f"/collections/{mine}/answers?post=power_ns").json()
        assert asked["questions"][0]["method"] == "power_ns"
        assert client.answers(mine)["questions"][0]["method"] == "norm_sub"
        refused = client.api("GET", f"/collections/{mine}/answers?post=magic")
        assert refused.status_code == 422
        assert "norm_sub" in refused.json()["detail"]


TOWNS = [f"town {i}" for i in range(64)]
TOWN = {"name": "town", "text": "Where?", "domain": {"kind": "categories", "labels": TOWNS}}


def asked_towns(query: str, **given: str) -> dict[str, Any]:
    active = published(questions=[TOWN], epsilon="2")
    values = np.random.default_rng(1).zipf(1.5, 6_000) % 64
    return ask(active, tally(active, values), "town", query, given)


def test_the_largest_answers_have_intervals_adjusted_for_selection():
    found = asked_towns("largest", k="5")
    assert (found["k"], found["answers"], found["adjusted_for_selection"]) == (5, 64, True)
    assert found["single_level"] == pytest.approx(1 - 0.05 * 5 / 64)
    assert [row["share"]["estimate"] for row in found["rows"]] == sorted(
        (row["share"]["estimate"] for row in found["rows"]), reverse=True
    )
    ordinary = {row["value"]: row["raw"] for row in towns_answered()["rows"]}
    for row in found["rows"]:
        assert row["share"]["low"] <= row["share"]["estimate"] <= row["share"]["high"]
        assert row["raw"]["high"] - row["raw"]["low"] > ordinary[row["value"]]["high"] - ordinary[row["value"]]["low"]
    assert asked_towns("largest", k="64")["adjusted_for_selection"] is False
    with pytest.raises(InvalidQuery, match="k must be"):
        asked_towns("largest", k="0")


def towns_answered() -> dict[str, Any]:
    active = published(questions=[TOWN], epsilon="2")
    return answer(active, tally(active, np.random.default_rng(1).zipf(1.5, 6_000) % 64)).questions[0]


def test_many_answers_are_picked_by_replay_and_sets_say_what_they_are():
    question = towns_answered()
    assert question["method"] in ("npmle", "power_ns", "norm_sub", "norm_mul")
    assert sum(row["consistent"]["estimate"] for row in question["rows"]) == pytest.approx(1)
    shown = {row["value"]: row["consistent"]["estimate"] for row in question["rows"]}
    few = asked_towns("set", values="town 1,town 2,town 1")
    assert few["answers"] == ["town 1", "town 2"]
    assert few["share"]["estimate"] == pytest.approx(shown["town 1"] + shown["town 2"], abs=0.02)
    many = asked_towns("set", values=",".join(TOWNS[20:52]))
    assert 0 <= many["share"]["low"] <= many["share"]["estimate"] <= many["share"]["high"] <= 1
    assert many["raw"]["estimate"] != many["share"]["estimate"]
    for wrong in ("", "nowhere"):
        with pytest.raises(InvalidQuery, match="set"):
            asked_towns("set", values=wrong)


def test_the_choice_is_made_once_per_tally(monkeypatch: pytest.MonkeyPatch):
    active, calls = published(questions=[TOWN], epsilon="2"), []
    counted = tally(active, np.arange(6_400) % 64)
    real = histogram.select_methods
    monkeypatch.setattr(histogram, "select_methods", lambda *given, **named: calls.append(1) or real(*given, **named))
    first, again = answer(active, counted), answer(active, counted)
    assert first.questions == again.questions
    ask(active, counted, "town", "largest", {})
    assert len(calls) == 1
