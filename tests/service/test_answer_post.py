"""The method of post-processing is chosen per question put: by name, over HTTP and from the command line."""

import numpy as np
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import binary, draft, plain_app, serving

from tacit.catalog import CATALOG
from tacit.collector.answers.answer import answer
from tacit.collector.collections.active import Active
from tacit.collector.collections.parts import Total
from tacit.collector.collections.publish import Planner, publish_document
from tacit.collector.http.openapi import openapi
from tacit.collector.service import Collector
from tacit.errors import InvalidSpec
from tacit.post.frequencies.methods import NAMES
from tacit.simulate.coins import SimulationCoins

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
