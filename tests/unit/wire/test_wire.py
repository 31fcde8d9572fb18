"""Collection documents and report batches."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.catalog import parse
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.device.domains.domain import Categories
from tacit.device.domains.reals import Integers
from tacit.device.numbers.budget import Share
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.numeric.mean import OneBit
from tacit.oracles.grr import GRR
from tacit.wire.batch import (
    Batch,
    Block,
    batch_from_json,
    batch_to_json,
    decode_batch,
    encode_batch,
    new_batch_id,
    read_head,
)
from tacit.wire.document import Collection, Question

COLOUR = Question(
    "colour", {"en": "Which?", "de": "Welche?"}, Categories("colour", ("red", "green", "blue")), "histogram"
)
HOURS = Question("hours", {"en": "How long?"}, Integers("hours", 0, 24), "mean")


def single(**changes: Any) -> Collection:
    fields: dict[str, Any] = {
        "title": {"en": "Colours", "de": "Farben"},
        "about": {"en": "About.", "de": "Dazu."},
        "questions": (COLOUR,),
        "policy": "single",
        "mechanism": GRR(size=3, epsilon="1"),
    }
    return Collection(**fields | changes)


def several(policy: str) -> Collection:
    if policy == "one_of":
        mechanism: Any = OneOf(family=Questions(mechanisms=(GRR(size=3, epsilon="1"), OneBit(top=24, epsilon="1"))))
    else:
        half = Share("1", "1/2")
        mechanism = AllOf(epsilon="1", members=(GRR(size=3, epsilon=half), OneBit(top=24, epsilon=half)))
    return single(questions=(COLOUR, HOURS), policy=policy, mechanism=mechanism)


@pytest.mark.parametrize(
    "collection", [single(), several("one_of"), several("all_of")], ids=["one", "one_of", "all_of"]
)
def test_a_document_survives_json_and_keeps_its_id(collection: Collection) -> None:
    again = Collection.from_json(json.loads(json.dumps(collection.to_json())))
    assert again.id == collection.id
    assert again.to_json() == collection.to_json()
    assert parse(again.mechanism.spec()).digest == collection.mechanism.digest


def test_any_change_changes_the_id() -> None:
    assert single().id != single(minimum_cohort=101).id
    assert single().id != single(title={"en": "Colour", "de": "Farben"}).id


def test_languages_are_those_in_which_everything_is_said() -> None:
    assert single().languages == ["de", "en"]
    assert several("one_of").languages == ["en"]


def test_answers_become_the_value_of_the_mechanism() -> None:
    assert single().encode({"colour": "green"}) == 1
    assert several("all_of").encode({"hours": 3, "colour": "blue"}) == (2, 3)


@pytest.mark.parametrize("answers", [{}, {"colour": "secret-value"}, {"color": "red"}])
def test_wrong_answers_are_refused_and_not_shown(answers: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue) as refused:
        single().encode(answers)
    assert "secret-value" not in str(refused.value)


BAD: dict[str, dict[str, Any]] = {
    "version": {"version": 2},
    "no questions": {"questions": []},
    "policy": {"policy": "one_of"},
    "unknown field": {"colour": 1},
    "title": {"title": {}},
    "language": {"title": {"EN": "x"}},
    "cohort": {"minimum_cohort": 0},
    "origin": {"origins": ["javascript:alert(1)"]},
    "invitations": {"invitations": "no"},
    "mechanism of another size": {"mechanism": GRR(size=4, epsilon="1").spec()},
    "epsilon that the mechanism does not have": {"epsilon": "2"},
    "mechanism of many questions": {"mechanism": several("one_of").mechanism.spec()},
}


@pytest.mark.parametrize("name", BAD)
def test_documents_that_cannot_be(name: str) -> None:
    with pytest.raises(InvalidSpec):
        Collection.from_json(single().to_json() | BAD[name])


def test_policy_and_mechanism_agree() -> None:
    with pytest.raises(InvalidSpec, match="policy"):
        Collection.from_json(several("all_of").to_json() | {"policy": "one_of"})


def test_a_missing_field_is_named() -> None:
    document = single().to_json()
    del document["retention_days"]
    with pytest.raises(InvalidSpec, match="retention_days"):
        Collection.from_json(document)


WIDTHS = (1, 5, 16)
blocks = st.lists(
    st.integers(0, 2).flatmap(
        lambda member: st.integers(1, 4).flatmap(
            lambda count: st.binary(min_size=count * WIDTHS[member], max_size=count * WIDTHS[member]).map(
                lambda payload: Block(member, count, payload)
            )
        )
    ),
    max_size=5,
)


@given(blocks)
def test_batches_survive_both_forms(found: list[Block]) -> None:
    batch = Batch("ab" * 32, bytes(range(16)), tuple(found))
    assert decode_batch(encode_batch(batch), WIDTHS) == batch
    assert read_head(encode_batch(batch)) == (batch.collection, batch.batch)
    twin = batch_from_json(json.loads(json.dumps(batch_to_json(batch, WIDTHS))), WIDTHS)
    assert (twin.collection, twin.batch, twin.count) == (batch.collection, batch.batch, batch.count)
    assert b"".join(block.payload for block in twin.blocks) == b"".join(block.payload for block in batch.blocks)


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    for body in (data, encode_batch(Batch("00" * 32, bytes(16), ()))[:-1] + data):
        try:
            decode_batch(body, WIDTHS)
        except ReportRejected:
            continue
        assert body[:4] == b"TCB1"


@pytest.mark.parametrize("cut", range(1, 9 + 5))
def test_a_truncated_block_is_refused(cut: int) -> None:
    whole = encode_batch(Batch("00" * 32, new_batch_id(), (Block(1, 1, bytes(5)),)))
    if cut == 13:  # The whole block is gone: a batch without reports.
        assert decode_batch(whole[:-cut], WIDTHS).count == 0
        return
    with pytest.raises(ReportRejected):
        decode_batch(whole[:-cut], WIDTHS)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"collection": "00" * 32, "batch": "00" * 16},
        {"collection": "0" * 63, "batch": "00" * 16, "reports": []},
        {"collection": "00" * 32, "batch": "00" * 16, "reports": [{"report": "zz"}]},
        {"collection": "00" * 32, "batch": "00" * 16, "reports": [{"report": "00", "member": 9}]},
        {"collection": "00" * 32, "batch": "00" * 16, "reports": [{"report": "00", "member": True}]},
        {"collection": "00" * 32, "batch": "00" * 16, "reports": [{"report": "00", "answer": 1}]},
    ],
)
def test_json_that_is_no_batch(value: Any) -> None:
    with pytest.raises(ReportRejected):
        batch_from_json(value, WIDTHS)
