"""The terms of shuffled collections, and the versions of documents."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.device.catalog import KINDS
from tacit.errors import InvalidSpec
from tacit.wire.document import ADDED, Collection
from tacit.wire.shuffled import MODES, Party, ShuffleTerms

VECTORS = json.loads((Path(__file__).parents[3] / "spec" / "vectors" / "documents.json").read_text(encoding="utf-8"))
GOOD = {vector["name"]: vector["document"] for vector in VECTORS["good"]}
PLAIN = GOOD["one question"]
RELAYED, SHARED = GOOD["shuffled by a relay and one shuffler"], GOOD["shuffled by sharing"]


def party(i: int) -> dict[str, str]:
    return {"name": f"S{i}", "url": f"https://s{i}.example", "identity": f"{i:064x}"}


def with_terms(**changes: Any) -> dict[str, Any]:
    return SHARED | {"shuffle": SHARED["shuffle"] | changes}


def test_terms_are_read_and_written_as_they_are() -> None:
    for document in GOOD.values():
        terms = document.get("shuffle")
        if terms is not None:
            assert ShuffleTerms.from_json(terms).to_json() == terms
    terms = ShuffleTerms.from_json(RELAYED["shuffle"])
    assert terms.roles == ("collector", "relay", "shuffler_1")
    assert [one.name for one in terms.parties] == ["Collector", "Relay", "First"]
    assert terms.collector == Party("Collector", identity="a" * 64)
    assert (terms.collector.key, terms.parties[1].key) == (bytes([0xAA] * 32), b"")
    assert terms.delta_fraction == Fraction(1, 10**9)
    assert ShuffleTerms.from_json(GOOD["shuffled in layers"]["shuffle"]).delta_fraction == Fraction(25, 10**11)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_takes_its_numbers_of_shufflers_and_no_others(mode: str) -> None:
    for count in range(11):
        terms = RELAYED["shuffle"] | {"mode": mode, "shufflers": [party(i) for i in range(count)]}
        if count in MODES[mode]:
            assert len(ShuffleTerms.from_json(terms).shufflers) == count
        else:
            with pytest.raises(InvalidSpec, match=r"document\.shuffle\.shufflers must be a list of .* parties in mode"):
                ShuffleTerms.from_json(terms)


def test_roles_are_apart_only_where_reports_are_shuffled_and_no_party_has_two_roles() -> None:
    apart = {name: Collection.from_json(document).roles_apart for name, document in GOOD.items()}
    assert apart["shuffled by a relay and one shuffler"] and apart["nine shufflers"]
    assert not apart["a collector that is its shuffler"] and not apart["parties with several roles"]
    assert not apart["one question"] and not apart["version 2 that adds nothing"]


def test_a_document_is_written_in_the_oldest_version_that_can_say_it() -> None:
    plain = Collection.from_json(PLAIN)
    assert (plain.version, set(plain.to_json()) & set(ADDED)) == (1, set())
    shuffled = replace(plain, shuffle=ShuffleTerms.from_json(RELAYED["shuffle"]))
    assert shuffled == Collection.from_json(RELAYED)
    assert (shuffled.version, shuffled.id) == (2, Collection.from_json(RELAYED).id)
    # A version that was read is kept, for the digest is that of what was read.
    empty = Collection.from_json(GOOD["version 2 that adds nothing"])
    assert (empty.version, empty.shuffle) == (2, None)
    assert empty.to_json() == GOOD["version 2 that adds nothing"]
    assert replace(empty, minimum_cohort=7).version == 2
    assert len({plain.id, shuffled.id, empty.id}) == 3


def test_the_kinds_that_fit_a_word_are_those_that_say_so() -> None:
    assert [kind.kind for kind in KINDS if kind.fits_word] == ["grr", "olh"]


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        (PLAIN | {"version": 4}, "version is 4, must be from 1 to 3; a newer document needs a newer version of tacit"),
        (PLAIN | {"version": True}, "version is True"),
        (PLAIN | {"version": 2}, "field 'shuffle' is missing"),
        (PLAIN | {"shuffle": None}, "unknown field 'shuffle'"),
        (SHARED | {"windows": {}}, "document.windows: field 'every' is missing"),
        (SHARED | {"account": {}}, "document.account: field 'name' is missing"),
        (SHARED | {"minimum_cohort": 1001}, "minimum_cohort is 1001, must be at most 1000"),
        (GOOD["rows"] | dict.fromkeys(ADDED) | {"version": 2, "shuffle": SHARED["shuffle"]}, "rows must be null"),
        (SHARED | {"plan": GOOD["a second round"]["plan"]}, "plan must be null"),
        (
            SHARED | {"mechanism": {"kind": "oue", "epsilon": "1", "size": 3}},
            "reports of oue do not fit",
        ),
        (SHARED | {"mechanism": GOOD["memoised"]["mechanism"]}, "reports of memo do not fit the 64-bit word"),
        (with_terms(mode="relay"), r"relay must be stated in mode \"relay\""),
        (with_terms(maximum=10), "maximum must be an integer from 1000 to 100000000"),
        (with_terms(delta="0.1"), "delta must be a probability in scientific form"),
        (
            with_terms(together=[["relay", "shuffler_1"]]),
            "must be one of collector, shuffler_1, shuffler_2, shuff",
        ),
        (with_terms(together=[["shuffler_2", "shuffler_1"]]), "roles must be sorted"),
        (with_terms(shufflers=[party(1), party(2), party(1)]), "every name must differ"),
        (with_terms(collector={"name": "C", "identity": "1" * 64}), "collector has the identity of a shuffler"),
    ],
)
def test_every_refusal_says_which_rule_is_broken(document: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidSpec, match=rule):
        Collection.from_json(document)


def test_several_questions_are_not_shuffled() -> None:
    several = GOOD["all of two"] | dict.fromkeys(ADDED) | {"version": 2, "shuffle": SHARED["shuffle"]}
    with pytest.raises(InvalidSpec, match='policy is all_of, must be "single" in a shuffled collection'):
        Collection.from_json(several)
