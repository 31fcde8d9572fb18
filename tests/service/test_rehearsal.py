"""Nothing is published that a device could not answer: example answers are reported by the code of a device first."""

from dataclasses import replace
from typing import Any

import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import draft
from tests.service.rows import PEOPLE

from tacit.catalog import CATALOG
from tacit.collector.collections.publish import Planner, create_draft, publish_document
from tacit.collector.collections.rehearsal import example_answers, rehearse
from tacit.core.patience import checked_by
from tacit.device.domains.product import domain_of
from tacit.errors import InvalidSpec, InvalidValue
from tacit.hosting.problems import Problem
from tacit.oracles.grr import GRR
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.task import QuestionTask

PLANNER = Planner(CATALOG)
ITEMS = {"kind": "items", "labels": ["bread", "milk", "eggs"]}
BASKET = {"name": "basket", "text": "What did you buy?", "domain": ITEMS}
YES = {"name": "yes", "text": "Yes?", "domain": {"kind": "booleans"}}
HOME = {"name": "home", "text": "Where?", "domain": {"kind": "categories", "labels": ["city", "village", "sea"]}}
WORD = {"name": "word", "text": "Word?", "domain": {"kind": "text", "alphabet": "lower", "length": 8}}
AGE = {"name": "age", "text": "Age?", "domain": {"kind": "integers", "low": 0, "high": 99}}
PAIR = {"kind": "product", "attributes": [
    {"kind": "integers", "name": "age", "low": 0, "high": 99, "step": 1},
    {"kind": "buckets", "name": "pay", "edges": ["0", "9"], "open_below": True, "open_above": True}]}  # fmt: skip


@pytest.mark.parametrize("policy", ["one_of", "all_of", "joint"])
def test_a_set_without_a_task_beside_other_questions_is_refused_with_what_to_do(policy: str):
    store = MemoryStore()
    with pytest.raises(InvalidSpec, match=r"basket.*a set.*task.*items.*only question"):
        create_draft(store, PLANNER, draft(questions=[BASKET, YES], policy=policy))
    assert store.collections() == []


def test_a_set_without_a_task_alone_is_refused_with_what_to_do():
    with pytest.raises(InvalidSpec, match=r"basket.*a set.*task.*items"):
        PLANNER.plan(draft(questions=[BASKET]))


def test_rounds_beside_other_questions_say_what_to_do():
    with pytest.raises(InvalidSpec, match=r"only question.*collection of their own"):
        PLANNER.plan(draft(questions=[BASKET | {"task": "items"}, YES]))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"questions": [YES | {"task": "marginals"}]}, r'marginals: .* asked together; set the policy to "joint"'),
        ({"questions": [YES | {"task": "marginals"}, HOME], "policy": "all_of"}, 'set the policy to "joint"'),
        ({"questions": [YES | {"task": "analytics"}]}, "analytics: .* state rows in the draft"),
        ({"questions": [YES | {"task": "analytics"}, HOME], "policy": "joint"}, "state rows in the draft"),
        ({"questions": [YES, HOME | {"task": "histogram"}], "policy": "joint"}, "task marginals, not histogram"),
        ({"questions": [BASKET | {"task": "items"}, YES], "policy": "joint"}, "task marginals, not items"),
    ],
)
def test_a_task_in_a_draft_of_another_sort_says_what_to_do(changes: dict[str, Any], word: str):
    with pytest.raises(InvalidSpec, match=word):
        PLANNER.plan(draft(**changes))


@pytest.mark.parametrize("length", [2, 8])
def test_text_without_a_task_says_what_to_do(length: int):
    domain = WORD["domain"] | {"length": length}  # type: ignore[operator]
    with pytest.raises(InvalidSpec, match=r"word.*text.*task to heavy_hitters.*or list the answers.*categories"):
        PLANNER.plan(draft(questions=[WORD | {"domain": domain}]))


def test_numbers_that_nobody_lists_say_what_to_do():
    wide = AGE | {"domain": {"kind": "integers", "low": 0, "high": 1 << 40}}
    with pytest.raises(InvalidSpec, match=r"age.*1099511627777 values.*heavy_hitters.*larger step"):
        PLANNER.plan(draft(questions=[wide]))


ANSWERABLE: list[tuple[str, dict[str, Any]]] = [
    ("one choice", draft()),
    ("one of several", draft(questions=[AGE, YES, HOME], policy="one_of")),
    ("all of several", draft(questions=[AGE | {"task": "mean"}, YES, HOME], policy="all_of")),
    ("one of them a tree", draft(questions=[AGE | {"task": "ranges"}, WORD | {"task": "heavy_hitters"}])),
    ("together, by views", draft(questions=[HOME, YES, AGE], policy="joint", k=2)),
    ("together, by signs", draft(questions=[YES | {"name": f"q{i}"} for i in range(9)], policy="joint", k=2)),
    ("rows", PEOPLE),
    ("a plan of items", draft(questions=[BASKET | {"task": "items"}])),
    ("a plan of itemsets", draft(questions=[BASKET | {"task": "itemsets"}])),
    ("a set with a limit", draft(questions=[BASKET | {"task": "items", "domain": ITEMS | {"most": 2}}])),
    ("a text", draft(questions=[WORD | {"task": "heavy_hitters"}])),
    ("hashed text", draft(questions=[WORD | {
        "task": "heavy_hitters", "domain": {"kind": "strings", "key": "k", "max_bytes": 9}}])),
    ("a rectangle", draft(questions=[AGE | {"task": "ranges", "domain": PAIR}])),
    ("bits", draft(questions=[AGE | {"domain": {"kind": "bits", "length": 5}}])),
]  # fmt: skip


@pytest.mark.parametrize("given", [given for _, given in ANSWERABLE], ids=[name for name, _ in ANSWERABLE])
def test_what_a_device_can_answer_is_published(given: dict[str, Any]):
    collection, _ = PLANNER.plan(given)
    assert publish_document(MemoryStore(), collection).state == "published"


class _Deaf(GRR):
    """A mechanism whose device fails on every value but the first, whose report tells how wide reports are."""

    def privatize_one(self, value: Any, coins: Any) -> bytes:
        if value != 0:
            raise InvalidValue("the value must be the first one")
        return super().privatize_one(value, coins)


class _Talkative(GRR):
    """A mechanism whose device sends what its own collector refuses."""

    def privatize_one(self, value: Any, coins: Any) -> bytes:
        return bytes([255])


@pytest.mark.parametrize("broken", [_Deaf, _Talkative])
@pytest.mark.parametrize("policy", ["single", "one_of", "all_of"])
def test_a_mechanism_that_fails_on_the_device_is_not_published(broken: Any, policy: str):
    def plan(domain: Any, budget: Any, n: int) -> Any:
        return (broken if domain.name == "home" else GRR)(size=domain.size, epsilon=budget)

    task = QuestionTask("histogram", plan, HISTOGRAM.answer, HISTOGRAM.forecast)
    planner = Planner((broken, *CATALOG), (task,))
    questions = [HOME] if policy == "single" else [YES, HOME]
    with pytest.raises(InvalidSpec, match=r"no device can answer (the )?question( 'home')?"):
        planner.plan(draft(questions=questions, policy=policy))


def test_a_later_round_that_no_device_could_answer_is_not_published():
    store = MemoryStore()
    collection, _ = PLANNER.plan(draft(questions=[BASKET | {"task": "items"}]))
    publish_document(store, collection)
    deaf = replace(collection, mechanism=GRR(size=3, epsilon="1"))
    with pytest.raises(InvalidSpec, match=r"no device can answer question 'basket'"):
        publish_document(store, deaf)
    assert len(store.collections()) == 1


def test_example_answers_reach_both_ends_of_every_kind_of_domain():
    domains = [
        {"kind": "integers", "name": "a", "low": -5, "high": 5, "step": 5},
        {"kind": "ordered", "name": "a", "labels": ["x", "y", "z"]},
        {"kind": "categories", "name": "a", "labels": ["x", "y"], "other": "else"},
        {"kind": "booleans", "name": "a"},
        {"kind": "bits", "name": "a", "length": 4},
        {"kind": "buckets", "name": "a", "edges": ["-1.5", "0", "2"], "open_below": True, "open_above": True},
        {"kind": "buckets", "name": "a", "edges": ["-1.5", "0", "2"], "open_below": False, "open_above": False},
        {"kind": "buckets", "name": "a", "edges": ["7"], "open_below": True, "open_above": False},
        PAIR,
    ]
    for spec in domains:
        domain = domain_of(spec)
        indices = domain.encode_many(example_answers(domain))
        assert {0, domain.size - 1} <= set(indices), spec
    text = domain_of({"kind": "text", "name": "t", "alphabet": "bytes", "length": 8})
    assert len(set(text.encode_many(example_answers(text)))) == 3


def test_a_rehearsal_repeats_itself():
    collection, _ = PLANNER.plan(PEOPLE)
    rehearse(collection)
    rehearse(collection)


def test_questions_that_are_asked_alike_are_rehearsed_once_and_the_rehearsal_can_be_given_up(monkeypatch: Any):
    questions = [AGE | {"name": f"q{i}"} for i in range(64)]
    collection, _ = PLANNER.plan(draft(questions=questions, policy="one_of"))
    kind, reported = type(collection.members[0]), list[Any]()
    privatize_one = kind.privatize_one

    def counted(self: Any, value: Any, coins: Any) -> bytes:
        reported.append(value)
        return privatize_one(self, value, coins)

    monkeypatch.setattr(kind, "privatize_one", counted)
    rehearse(collection)
    # Three examples of the one mechanism, and what three whole reports draw.
    assert len(reported) == 3 + 3

    def gone() -> None:
        raise Problem("query_timeout", "nobody waits")

    with checked_by(gone), pytest.raises(Problem, match="nobody waits"):
        rehearse(collection)
