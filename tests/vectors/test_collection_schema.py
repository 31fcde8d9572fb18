"""The JSON Schema of documents and drafts: it takes whatever the collector takes, and knows every kind."""

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tacit.catalog import CATALOG
from tacit.collector.collections.publish import Planner
from tacit.device.catalog import KINDS
from tacit.device.domains.product import DOMAINS
from tacit.errors import InvalidSpec

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "spec" / "collection.schema.json").read_text(encoding="utf-8"))
VECTORS = json.loads((ROOT / "spec" / "vectors" / "documents.json").read_text(encoding="utf-8"))
DOCUMENT = jsonschema_rs.Draft202012Validator(SCHEMA)
DRAFT = jsonschema_rs.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": "#/$defs/draft"})
PLANNER = Planner(CATALOG)

WINDOWS = {"every": "day", "first": "2030-01-07", "count": 7, "per": 7}
UNSEEN = {
    "windows that begin on no date",
    "windows that begin in the year 0",
    "windows that begin in the year 9999",
    "windows of a week from a Tuesday",
    "windows of a month from the 7th",
    "windows with more slots than windows",
    "windows with another guarantee",
    "an account with a cap out of range",
    "an account with a cap that a slot exceeds",
    "an account with a run that holds two slots",
    "an account with a cap for life below one report",
    "text that is not NFC",
    "a question twice",
    "another epsilon than the mechanism's",
    "a mechanism of another size",
    "a mechanism for two questions",
    "attributes in another order",
    "fewer questions than attributes",
    "more questions than attributes",
    "views of other sizes",
    "a column twice",
    "a column that is a question",
    "a set too wide for its payload",
    "all answers to one question of free text",
    "a cohort that shufflers do not wait for",
    "a maximum below the minimum",
    "a shuffler whose name is not NFC",
    "a shuffler's name twice",
    "a shuffler's address twice",
    "a shuffler's key twice",
    "the collector's key at a shuffler",
    "a group that is not sorted",
    "groups that are not sorted",
    "a role in two groups",
    "a role that nobody has",
    "a fourth of three shufflers",
}
"""Rules between fields, or on characters: no schema can say them."""


def faults(validator: Any, value: Any) -> list[str]:
    return [f"{list(error.instance_path)}: {error.message[:200]}" for error in validator.iter_errors(value)]


def test_it_is_a_schema_and_what_the_script_makes() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    script = runpy.run_path(str(ROOT / "tools" / "make_schema.py"))
    assert script["make"]() == script["TARGET"].read_text(encoding="utf-8")


def kinds_of(choice: dict[str, Any]) -> list[str]:
    """The kinds among which a definition chooses."""
    names = [branch["$ref"].removeprefix("#/$defs/") for branch in choice["oneOf"]]
    return [SCHEMA["$defs"][name]["properties"]["kind"]["const"] for name in names]


def test_every_kind_is_in_it() -> None:
    definitions = SCHEMA["$defs"]
    assert kinds_of(definitions["mechanism"]) == [kind.kind for kind in KINDS]
    assert kinds_of(definitions["domain"]) == kinds_of(definitions["draft_domain"]) == [kind.kind for kind in DOMAINS]


@pytest.mark.parametrize("vector", VECTORS["good"], ids=lambda vector: vector["name"])
def test_good_documents_are_taken(vector: dict[str, Any]) -> None:
    assert faults(DOCUMENT, vector["document"]) == []


@pytest.mark.parametrize("vector", VECTORS["bad_documents"], ids=lambda vector: vector["name"])
def test_bad_documents_are_refused_unless_only_a_program_can_see_it(vector: dict[str, Any]) -> None:
    assert DOCUMENT.is_valid(vector["document"]) == (vector["name"] in UNSEEN)


def test_the_spec_of_every_golden_vector_is_taken() -> None:
    mechanism = jsonschema_rs.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": "#/$defs/mechanism"})
    for kind in KINDS:
        for path in sorted((ROOT / "spec" / "vectors" / kind.kind).glob("*.json")):
            if not path.name.startswith("bad_"):
                assert faults(mechanism, json.loads(path.read_text(encoding="utf-8"))["spec"]) == [], path.name


def test_the_domain_of_every_golden_vector_is_taken() -> None:
    domain = jsonschema_rs.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": "#/$defs/domain"})
    vectors = json.loads((ROOT / "spec" / "vectors" / "domains.json").read_text(encoding="utf-8"))
    specs = [vector["spec"] for vector in vectors["good"]]
    assert specs
    for spec in specs:
        assert faults(domain, spec) == [], spec


WORDS = st.sampled_from(["Pets", "Haustiere?", "\u00e9t\u00e9", "\U0001f600", "x" * 200])
TEXTS = st.one_of(WORDS, st.dictionaries(st.sampled_from(["en", "de", "pt_br"]), WORDS, min_size=1))
NUMBER = st.integers(-30, 30)
LABELS = st.lists(st.sampled_from(["cat", "dog", "fish", "caf\u00e9", "a b", "1"]), min_size=2, max_size=5, unique=True)
DOMAIN = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.just("categories"), "labels": LABELS},
        optional={"other": st.sampled_from([None, "another"]), "name": WORDS},
    ),
    st.fixed_dictionaries({"kind": st.just("ordered"), "labels": LABELS}),
    st.just({"kind": "booleans"}),
    st.fixed_dictionaries({"kind": st.just("bits"), "length": st.integers(1, 6)}),
    st.fixed_dictionaries(
        {"kind": st.just("integers"), "low": NUMBER, "high": NUMBER}, optional={"step": st.integers(1, 3)}
    ),
    st.fixed_dictionaries(
        {"kind": st.just("buckets"), "edges": st.sampled_from([["0", "1.5"], [0, 10, 100], ["-01.50", "2", "2.25"]])},
        optional={"open_below": st.booleans(), "open_above": st.booleans()},
    ),
    st.just({"kind": "product", "attributes": [{"kind": "booleans", "name": "x"}, {"kind": "booleans", "name": "y"}]}),
)
QUESTION = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b_2", "c"]), "text": TEXTS, "domain": DOMAIN},
    optional={"task": st.sampled_from(["histogram", "mean"])},
)
GOOD_DRAFT = st.fixed_dictionaries(
    {
        "title": TEXTS,
        "questions": st.lists(QUESTION, min_size=1, max_size=3, unique_by=lambda question: question["name"]),
        "epsilon": st.sampled_from(["1", "0.5", "2.50", 1, "4"]),
    },
    optional={
        "about": st.one_of(TEXTS, st.sampled_from(["", None])),
        "policy": st.sampled_from(["", None, "one_of", "all_of", "single"]),
        "respondents": st.sampled_from([1, 1000, 10**10]),
        "minimum_cohort": st.sampled_from([1, 10**9]),
        "retention_days": st.sampled_from([1, 36500]),
        "origins": st.sampled_from([[], ["*"], ["https://a.example", "http://localhost:8080"]]),
        "invitations": st.booleans(),
    },
)
JUNK = st.one_of(
    st.sampled_from(["", "x" * 5000, "\ud800", 0, -1, 1.5, True, 10**40, "Big", "https://a.example/p", "../x"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in pairs for place in places(item, (*path, key)))]


def with_junk(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """The same value with something else at one place."""
    if not path:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_junk(value[path[0]], path[1:], junk)
    return copy


@st.composite
def drafts(draw: Any) -> Any:
    """Mostly good drafts; some with junk in one place, or a further field."""
    made = draw(GOOD_DRAFT)
    how = draw(st.integers(0, 3))
    if how == 0:
        made = with_junk(made, draw(st.sampled_from(places(made)[1:])), draw(JUNK))
    return made | {draw(st.text(max_size=5)): 1} if how == 1 else made


# Planning is slow for a property test; what is tested is shapes, so that a few hundred drafts say enough.
@examples(150)
@given(drafts())
@pytest.mark.slow
def test_whatever_is_published_has_the_shape_of_a_draft_and_of_a_document(draft: Any) -> None:
    check_shapes(draft)


@pytest.mark.slow
@examples(1000)
@given(drafts())
def test_whatever_is_published_has_these_shapes_for_many_more_drafts(draft: Any) -> None:
    check_shapes(draft)


def check_shapes(draft: Any) -> None:
    """Either the planner refuses a draft, or the schema takes both it and its document."""
    try:
        collection, _ = PLANNER.plan(draft)
    except InvalidSpec:
        return
    # These two have a default that stands in for anything empty.
    shaped = {key: value for key, value in draft.items() if value or key not in ("about", "policy")}
    assert faults(DRAFT, shaped) == []
    assert faults(DOCUMENT, json.loads(json.dumps(collection.to_json()))) == []


TERMS = next(vector["document"]["shuffle"] for vector in VECTORS["good"] if vector["document"].get("shuffle"))


def test_a_shuffled_draft_has_the_shape_of_a_draft_and_becomes_a_document() -> None:
    question = {"name": "a", "text": "A?", "domain": {"kind": "booleans"}}
    draft = {"title": "T", "epsilon": "1", "questions": [question], "shuffle": TERMS}
    assert faults(DRAFT, draft) == []
    document = PLANNER.plan(draft)[0].to_json()
    assert faults(DOCUMENT, document) == []
    assert faults(DOCUMENT, document | {"version": 1}) != []


@pytest.mark.parametrize(
    "change",
    [
        {"title": ""},
        {"title": None},
        {"title": {"english": "x"}},
        {"epsilon": 0.5},
        {"epsilon": "one"},
        {"questions": []},
        {"questions": {}},
        {"questions": [{"name": "a", "text": "A?"}]},
        {"questions": [{"name": "A", "text": "A?", "domain": {"kind": "booleans"}}]},
        {"questions": [{"name": "a", "text": "A?", "domain": {"kind": "booleans", "labels": []}}]},
        {"questions": [{"name": "a", "text": "A?", "domain": {"kind": "bits"}}]},
        {"questions": [{"name": "a", "text": "A?", "domain": {"kind": "colours"}}]},
        {"policy": "some_of"},
        {"respondents": 0},
        {"respondents": "many"},
        {"origins": ["https://example.org/page"]},
        {"retention_days": 36501},
        {"invitations": 1},
        {"mechanism": {"kind": "grr"}},
        {"shuffle": {}},
        {"shuffle": False},
        {"shuffle": TERMS | {"mode": "ss"}},
        {"shuffle": TERMS | {"relay": None}},
        {"shuffle": TERMS | {"delta": "0.1"}},
        {"windows": {}},
        {"windows": {"every": "hour", "first": "2030-01-07", "count": 7, "per": 7}},
        {"windows": WINDOWS, "account": {"run_epsilon": 1}},
    ],
)
def test_drafts_of_a_wrong_shape_are_refused_by_both(change: dict[str, Any]) -> None:
    good = {"title": "T", "epsilon": "1", "questions": [{"name": "a", "text": "A?", "domain": {"kind": "booleans"}}]}
    assert faults(DRAFT, good) == []
    PLANNER.plan(good)
    assert faults(DRAFT, good | change) != []
    with pytest.raises(InvalidSpec):
        PLANNER.plan(good | change)
