"""Drafts become documents that never change; what could not be answered is refused before anybody is asked."""

from typing import Any

import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import SHUFFLE, draft
from tests.service.rows import ROWS

from tacit.catalog import CATALOG
from tacit.collector.collections.publish import (
    Planner,
    close,
    create_draft,
    delete_draft,
    publish,
    publish_document,
    replace_draft,
)
from tacit.core.compose import AllOf, OneOf
from tacit.device.numbers.canonical import digest
from tacit.errors import InvalidSpec
from tacit.hosting.problems import Problem
from tacit.wire.document import Collection

PLANNER = Planner(CATALOG)
AGE = {"name": "age", "text": "How old?", "task": "mean", "domain": {"kind": "integers", "low": 0, "high": 120}}
SET = {"name": "basket", "text": "What?", "task": "items", "domain": {"kind": "items", "labels": ["a", "b", "c"]}}
COLOUR = {"name": "colour", "text": {"en": "Colour?", "de": "Farbe?"}, "domain": {"kind": "booleans"}}


def test_a_published_document_is_named_by_its_digest():
    store = MemoryStore()
    record = publish(store, PLANNER, create_draft(store, PLANNER, draft()).id)
    collection = Collection.from_json(PLANNER.plan(draft())[0].to_json())
    assert record.id == collection.id == digest(collection.to_json())
    assert [kept.state for kept in store.collections()] == ["published"]


def test_publishing_the_same_draft_twice_is_one_collection():
    store = MemoryStore()
    ids = {publish(store, PLANNER, create_draft(store, PLANNER, draft()).id).id for _ in range(2)}
    assert len(ids) == len(store.collections()) == 1


def test_a_closed_collection_stays_closed_when_published_again():
    store = MemoryStore()
    record = publish(store, PLANNER, create_draft(store, PLANNER, draft()).id)
    close(store, record.id)
    assert publish_document(store, PLANNER.plan(draft())[0]).state == "closed"


def test_a_draft_can_be_edited_and_a_published_one_cannot():
    store = MemoryStore()
    record = create_draft(store, PLANNER, draft())
    replace_draft(store, PLANNER, record.id, draft(epsilon="2"))
    published = publish(store, PLANNER, record.id)
    assert b'"epsilon":"2"' in published.document
    for attempt in (
        lambda: replace_draft(store, PLANNER, published.id, draft()),
        lambda: delete_draft(store, published.id),
        lambda: publish(store, PLANNER, published.id),
    ):
        with pytest.raises(Problem) as caught:
            attempt()
        assert caught.value.kind == "conflict"


def test_a_draft_is_not_closed_but_deleted():
    store = MemoryStore()
    record = create_draft(store, PLANNER, draft())
    with pytest.raises(Problem, match="draft"):
        close(store, record.id)
    delete_draft(store, record.id)
    assert store.collections() == []


def test_one_of_several_questions_is_asked_at_full_epsilon():
    collection, _ = PLANNER.plan(draft(questions=[AGE, COLOUR]))
    assert isinstance(collection.mechanism, OneOf)
    assert [member.budget.to_spec() for member in collection.members] == ["1", "1"]


def test_all_questions_share_epsilon_and_keep_no_log():
    collection, _ = PLANNER.plan(draft(questions=[AGE, COLOUR], policy="all_of"))
    assert isinstance(collection.mechanism, AllOf)
    assert collection.mechanism.state == "joint"
    many = {"kind": "integers", "low": 0, "high": 4999}
    wide = [{"name": f"q{i}", "text": "?", "domain": many} for i in range(3)]
    assert PLANNER.plan(draft(questions=wide, policy="all_of"))[0].mechanism.spec()["state"] == "members"


def test_predicted_error_shrinks_with_the_root_of_the_respondents():
    few, many = (PLANNER.predict(draft(respondents=n))[0]["standard_error"] for n in (1_000, 100_000))
    assert few / many == pytest.approx(10)


def test_the_error_of_a_mean_is_in_its_own_unit():
    step = {"kind": "integers", "low": 0, "high": 1200, "step": 10}
    plain, scaled = (PLANNER.predict(draft(questions=[AGE | {"domain": d}]))[0] for d in (AGE["domain"], step))
    assert scaled["standard_error"] == pytest.approx(10 * plain["standard_error"])


MANY = {"kind": "integers", "low": 0, "high": 1 << 22}
BAD: list[tuple[str, Any]] = [
    ("not an object", []),
    ("nothing", {}),
    ("no questions", draft(questions=[])),
    ("questions are text", draft(questions="pet")),
    ("a question is text", draft(questions=["pet"])),
    ("epsilon is a float", draft(epsilon=1.0)),
    ("epsilon is zero", draft(epsilon="0")),
    ("unknown field", draft(colour="red")),
    ("unknown task", draft(questions=[AGE | {"task": "median"}])),
    ("mean of categories", draft(questions=[draft()["questions"][0] | {"task": "mean"}])),
    ("unknown policy", draft(policy="two_of")),
    ("policy for one question", draft(policy="one_of")),
    ("no respondents", draft(respondents=0)),
    ("respondents are text", draft(respondents="many")),
    ("cohort of zero", draft(minimum_cohort=0)),
    ("kept for ever", draft(retention_days=10**9)),
    ("origin with a path", draft(origins=["https://example.org/page"])),
    ("labels that nobody lists", draft(questions=[AGE | {"task": "histogram", "domain": MANY}])),
    ("same name twice", draft(questions=[AGE, AGE])),
    ("empty title", draft(title="")),
]  # fmt: skip


@pytest.mark.parametrize("bad", [value for _, value in BAD], ids=[name for name, _ in BAD])
def test_a_draft_that_cannot_be_published_is_not_even_kept(bad: Any):
    store = MemoryStore()
    with pytest.raises(InvalidSpec):
        create_draft(store, PLANNER, bad)
    assert store.collections() == []


def test_a_collector_without_a_place_for_rows_does_not_publish_what_it_could_not_take():
    rowed = draft(questions=[AGE | {"task": "analytics"}], rows=ROWS)
    assert PLANNER.plan(rowed)[0].rows is not None
    with pytest.raises(InvalidSpec, match="no folder for rows; its operator starts it with --segments"):
        Planner(CATALOG, takes_rows=False).plan(rowed)


def test_a_draft_without_anything_new_is_published_in_version_1_as_before():
    """The digest is written down from before there was a version 2."""
    collection, _ = PLANNER.plan(draft())
    assert (collection.version, collection.id) == (
        1,
        "fe70b7d15f3db8dac62e04709381fa5fc749ec08ba36251676640d18f6b208f9",
    )
    assert PLANNER.plan(draft(shuffle=None))[0].id == collection.id


@pytest.mark.parametrize(("size", "epsilon", "kind"), [(3, "1", "grr"), (64, "1", "olh"), (64, "8", "grr")])
def test_a_shuffled_draft_gets_a_mechanism_whose_reports_fit_a_word(size: int, epsilon: str, kind: str):
    domain = {"kind": "integers", "low": 0, "high": size - 1}
    given = draft(questions=[{"name": "n", "text": "Which?", "domain": domain}], epsilon=epsilon, shuffle=SHUFFLE)
    collection, _ = PLANNER.plan(given)
    assert (collection.mechanism.kind, collection.version, collection.policy) == (kind, 2, "single")
    assert collection.shuffle is not None
    assert collection.to_json()["shuffle"] == SHUFFLE
    # Whatever is claimed for shuffled reports, a report itself spends what the draft says.
    assert collection.epsilon == epsilon
    assert PLANNER.predict(given)[0]["mechanism"]["kind"] == kind


def test_texts_that_are_looked_up_fit_a_word():
    words = {
        "name": "w",
        "text": "Which?",
        "task": "heavy_hitters",
        "domain": {"kind": "strings", "key": "k", "max_bytes": 9},
    }
    assert PLANNER.plan(draft(questions=[words], shuffle=SHUFFLE))[0].mechanism.kind == "olh"
    with pytest.raises(InvalidSpec, match="fakes is 30, must be 0 for a question of more than 4194304"):
        PLANNER.plan(draft(questions=[words], shuffle=SHUFFLE | {"fakes": 30}))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"shuffle": {}}, "document.shuffle: field 'mode' is missing"),
        ({"shuffle": SHUFFLE | {"minimum": 4}}, "document.minimum_cohort is 5, must be at most 4"),
        ({"shuffle": SHUFFLE | {"collector": {"name": "C\u200b", "identity": "c" * 64}}}, "U\\+200B"),
        ({"shuffle": SHUFFLE, "questions": [AGE]}, "draft.shuffle: mean has no mechanism for 'age' whose reports fit"),
        ({"shuffle": SHUFFLE, "questions": [AGE, COLOUR]}, "a shuffled collection has one question"),
        ({"shuffle": SHUFFLE, "rows": ROWS}, "without rows"),
        ({"shuffle": SHUFFLE, "k": 3}, "without k"),
        ({"shuffle": SHUFFLE, "policy": "joint"}, 'draft.policy must be "single"'),
        ({"shuffle": SHUFFLE, "questions": [SET]}, "draft.shuffle: items has no mechanism for 'basket'"),
    ],
)
def test_what_cannot_be_shuffled_is_refused_with_the_rule(changes: dict[str, Any], rule: str):
    with pytest.raises(InvalidSpec, match=rule):
        PLANNER.plan(draft(**changes))


MIXED: list[dict[str, Any]] = [
    {"name": "pets", "text": "Pets?", "task": "shares",
     "domain": {"kind": "optional", "domain": {"kind": "items", "labels": ["cat", "dog"]}}},
    {"name": "age", "text": "Age?",
     "domain": {"kind": "optional", "domain": {"kind": "integers", "low": 17, "high": 80}}},
    COLOUR | {"text": "Colour?"},
]  # fmt: skip


def test_ticks_and_optional_questions_mix_with_others_at_the_whole_epsilon():
    collection, _ = PLANNER.plan(draft(questions=MIXED, epsilon="1"))
    assert collection.policy == "one_of" and collection.mechanism.budget.to_spec() == "1"
    assert [member.domain_size for member in collection.members] == [3, 65, 2]
    assert collection.questions[1].domain.spec()["declined"] == "Prefer not to say"
    encoded = collection.encode({"pets": None, "age": None, "colour": True})
    assert encoded == ((2,), 64, 1)
    for task in ("mean", "ranges"):
        with pytest.raises(InvalidSpec, match=r"optional|must be"):
            PLANNER.plan(draft(questions=[MIXED[1] | {"task": task}]))
    with pytest.raises(InvalidSpec, match="set its task to shares"):
        PLANNER.plan(draft(questions=[MIXED[0] | {"task": "histogram"}]))


def test_a_group_that_answers_for_everybody_is_forecast_with_its_sampling_error():
    """Yes or no at epsilon 1: e/(e - 1)^2 of noise and 1/4 (1 - 1/2) of having asked half of the people, per report."""
    two = [COLOUR | {"text": "Colour?"}, COLOUR | {"name": "second", "text": "Second?"}]
    found = PLANNER.predict(draft(questions=two, epsilon="1", respondents=20_000))
    assert found[0]["standard_error"] == pytest.approx(((0.92067359 + 0.125) / 10_000) ** 0.5, rel=1e-4)
    assert found[0]["options"][0]["standard_error"] == pytest.approx(found[0]["standard_error"])
