"""Heavy hitters through the whole collector: planned, collected by devices, folded, walked, answered as text."""

from typing import Any

import numpy as np
import pytest
from tests.service.plain import Client, draft
from tests.service.test_ranges import upload

from tacit.catalog import parse
from tacit.client import Respondent
from tacit.core.compose import OneOf
from tacit.device.domains.domain import Strings
from tacit.device.domains.text import Text
from tacit.simulate.coins import SimulationCoins
from tacit.wire.batch import Batch, Block, encode_batch, new_batch_id

LONGEST = 5
"""Letters: the fewest for which several prefixes are asked for. Six take ten times as long and say nothing more."""
WORD = {
    "name": "word",
    "text": "Which word?",
    "domain": {"kind": "text", "alphabet": "lower", "length": LONGEST},
    "task": "heavy_hitters",
}
PAGE = {
    "name": "page",
    "text": "Which page?",
    "domain": {"kind": "strings", "key": "k", "max_bytes": 100},
    "task": "heavy_hitters",
}
N = 2000
SHARES = {"fig": 0.4, "kiwi": 0.3, "plum": 0.2}


def words(n: int) -> Any:
    """Indices of a crowd's words: three frequent ones, and many rare ones."""
    domain, rng = Text("word", "lower", LONGEST), np.random.default_rng(3)
    known = np.array([domain.encode(word) for word in SHARES], np.uint64)
    frequent = np.repeat(known, [int(n * share) for share in SHARES.values()])
    letters = rng.integers(1, 27, (n - len(frequent), LONGEST)).astype(np.uint64)
    rare = letters @ np.array([27**i for i in range(LONGEST)], np.uint64)
    return np.concatenate([frequent, rare])


@pytest.mark.slow
def test_a_crowd_of_words_is_searched_and_comes_back_as_text(client: Client) -> None:
    """Hitters of 6.5 and more standard deviations: missing one has a probability below 1e-9."""
    collection = client.publish(draft(questions=[WORD], epsilon="4", respondents=N))
    document = client.http.get(f"/c/{collection}/document.json").json()
    assert isinstance(parse(document["mechanism"]), OneOf)
    upload(client, collection, words(N))
    question = client.answers(collection)["questions"][0]
    assert {row["value"] for row in question["rows"]} == set(SHARES)
    for row in question["rows"]:
        raw = row["raw"]
        assert abs(raw["estimate"] - SHARES[row["value"]]) < 6 * raw["standard_error"]
        assert raw["low"] < raw["estimate"] < raw["high"]
    path = f"/collections/{collection}/questions/word"
    top = client.api("GET", f"{path}/top?k=5").json()
    assert [row["value"] for row in top["values"]][:3] == list(SHARES)
    assert top["significant"] == 3 and 0 < top["detectable_share"] < 0.2
    assert "every second time" in top["about"]
    for k in (5, 32):  # Among noise, the order of all groups is not that of the shares that are shown.
        shares = [row["estimate"] for row in client.api("GET", f"{path}/top?k={k}").json()["values"]]
        assert shares == sorted(shares, reverse=True) and len(shares) == k
    above = client.api("GET", f"{path}/above?threshold=0.15").json()
    assert {row["value"] for row in above["values"]} == set(SHARES)
    named = client.api("GET", f"{path}/candidates?values=fig%0Apear").json()["values"]
    assert client.api("GET", f"{path}/candidates?values=fig,pear").json()["values"] == named
    least = client.api("GET", f"{path}/above").json()
    assert 0 < least["threshold"] < 0.15 and {row["value"] for row in least["values"]} >= set(SHARES)
    assert not least["flags"]
    assert named[0]["low"] < 0.4 < named[0]["high"] and named[1]["low"] < 0.02


@pytest.mark.slow
def test_the_python_client_answers_with_text_and_few_respondents_give_no_noise_as_answers(client: Client) -> None:
    collection = client.publish(draft(questions=[WORD], epsilon="1", minimum_cohort=5, respondents=1000))
    url = f"{client.http.base_url}/c/{collection}"
    for word in ("date", "", "plum", "fig", "kiwi", "pear"):
        assert Respondent().answer(url, {"word": word}).state == "sent"
    question = client.answers(collection)["questions"][0]
    assert question["status"] == "ok" and question["rows"] == []
    answer = client.api("GET", f"/collections/{collection}/questions/word/top")
    assert answer.status_code == 200 and "NaN" not in answer.text and "Infinity" not in answer.text


def test_hashed_texts_are_looked_up_in_a_public_dictionary(client: Client) -> None:
    collection = client.publish(draft(questions=[PAGE], epsilon="4"))
    domain = Strings("page", "k", 100)
    mechanism = parse(client.http.get(f"/c/{collection}/document.json").json()["mechanism"])
    ids = np.array([domain.encode(page) for page in ("/home", "/about")], np.uint64)
    reports = mechanism.privatize(np.repeat(ids, [3000, 1000]), SimulationCoins(1))
    body = encode_batch(Batch(collection, new_batch_id(), (Block(0, len(reports), reports.tobytes()),)))
    assert client.send(collection, body).status_code == 201
    path = f"/collections/{collection}/questions/page"
    rows = client.api("GET", f"{path}/candidates?values=%2Fhome%0A%2Fabout%0A%2Fnone").json()["values"]
    comma = client.api("GET", f"{path}/candidates?values=%2Fhome,%2Fabout").json()["values"]
    assert [row["value"] for row in comma] == ["/home,/about"]  # Hashed texts may hold commas.
    for row, share in zip(rows, (0.75, 0.25, 0.0), strict=True):
        assert abs(row["estimate"] - share) < 6 * row["standard_error"]
    refused = client.api("GET", f"{path}/top")
    assert refused.status_code == 422 and "looked up" in refused.json()["detail"]
    assert client.answers(collection)["questions"][0]["rows"] == []


@pytest.fixture(scope="module")
def few(client: Client) -> str:
    """A collection with the words of a few people."""
    collection = client.publish(draft(questions=[WORD], epsilon="2", minimum_cohort=1, respondents=2000))
    upload(client, collection, words(2000))
    return collection


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("top?k=0", "from 1 to 1024"),
        ("top?k=many", "from 1 to 1024"),
        ("above?threshold=0", "between 0 and 1"),
        ("above?threshold=x", "between 0 and 1"),
        ("above?threshold=0.000001", "can be searched for"),
        ("candidates", "one a line"),
        ("candidates?values=Fig", "not in the domain"),
    ],
)
def test_bad_queries_are_refused_with_the_rule(client: Client, few: str, query: str, word: str) -> None:
    collection = few
    answer = client.api("GET", f"/collections/{collection}/questions/word/{query}")
    assert answer.status_code == 422, answer.text
    assert word in answer.json()["detail"]


def test_a_domain_without_prefixes_is_refused(client: Client) -> None:
    pet = {"kind": "categories", "labels": ["cat", "dog"]}
    refused = client.api("POST", "/collections", draft(questions=[WORD | {"domain": pet}]))
    assert refused.status_code == 422 and "must be text, bits or integers" in refused.json()["detail"]
    long = {"kind": "text", "alphabet": "lower", "length": 14}
    refused = client.api("POST", "/collections", draft(questions=[WORD | {"domain": long}]))
    assert refused.status_code == 422 and "from 1 to 13: more of its 27 symbols" in refused.json()["detail"]
