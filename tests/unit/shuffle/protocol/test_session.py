"""The session document: what cannot be run or promised is refused, and only all pinned signatures count."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.protocol.rehearsal import Rehearsed, rehearse
from tacit.shuffle.protocol.session import ShuffleSession, SignedSession, pins
from tacit.shuffle.protocol.words import WordRule


def made(**changes: Any) -> Rehearsed:
    return rehearse(ReplayCoins(b"session"), **changes)


def test_a_session_survives_json_with_its_id():
    signed = made(fakes=10, relay={"operator": "relay operator", "url": "https://relay.example"}).signed
    again = SignedSession.from_json(json.loads(json.dumps(signed.to_json())))
    assert again == signed and again.session.id == signed.session.id
    assert len(signed.session.id_bytes) == 32
    assert again.verify(pins(signed.session.parties)) == signed.session


def test_every_field_changes_the_id():
    session = made().session
    changes: list[dict[str, Any]] = [
        {"collection": "11" * 32}, {"mode": "ss"}, {"words": WordRule(11, seeded=False)}, {"n_min": 3}, {"n_max": 5},
        {"fakes": 1}, {"spot_checks": 1}, {"closes": 1}, {"retention_seconds": 1}, {"phase_seconds": 1},
        {"certificate": {"epsilon": "2"}}, {"claims_amplification": False}, {"shufflers": session.shufflers[::-1]},
        {"relay": {"operator": "x", "url": "y"}},
        {"together": (("collector", "shuffler_1"),), "claims_amplification": False},
    ]  # fmt: skip
    assert len({session.id, *(replace(session, **change).id for change in changes)}) == len(changes) + 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mode": "osh", "shufflers": 2}, "odd number"),
        ({"mode": "osh", "shufflers": 1}, "odd number"),
        ({"mode": "peos-dgk", "shufflers": 4}, "odd number"),
        ({"mode": "relay", "shufflers": 2}, "relay has one"),
        ({"mode": "ss", "shufflers": 10}, "at most 9"),
        ({"mode": "mix"}, "must be one of relay, ss, osh"),
        ({"n_min": 1}, "crowd of one"),
        ({"n_min": 10, "n_max": 9}, "at most n_max"),
        ({"fakes": -1}, "fakes is -1"),
        ({"phase_seconds": 0}, "phase_seconds"),
        ({"mode": "osh-z", "spot_checks": 0}, "needs spot_checks"),
        ({"n_min": 90, "n_max": 100, "spot_checks": 11}, "n_max is 100, must be at least n_min and spot_checks"),
        ({"collection": "xy"}, "digest"),
        ({"certificate": {"epsilon": 1}}, "decimal text"),
        ({"certificate": {"epsilon": "1e3"}}, "decimal text"),
        ({"certificate": {"epsilon": "1", "delta": 0.5}}, "floats"),
        ({"certificate": []}, "JSON object"),
        ({"dgk": {}}, "peos-dgk"),
        ({"together": (("collector",),), "claims_amplification": False}, "two or more"),
        ({"together": (("collector", "nobody"),), "claims_amplification": False}, "two or more"),
        ({"relay": {"operator": "operator 1", "url": "u"}}, "same operator"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], reason: str):
    with pytest.raises(InvalidSpec, match=reason):
        made(**changes)


def test_who_runs_several_roles_may_not_claim_amplification():
    roles = (("collector", "shuffler_2"),)
    with pytest.raises(InvalidSpec, match="no amplification"):
        made(together=roles)
    assert made(together=roles, claims_amplification=False).session.together == roles
    session = made().session
    same = replace(session.shufflers[1], operator=session.shufflers[0].operator)
    with pytest.raises(InvalidSpec, match="shuffler_1 and shuffler_2 have the same operator"):
        replace(session, shufflers=(session.shufflers[0], same, session.shufflers[2]))
    copied = replace(session.shufflers[1], identity=session.shufflers[0].identity)
    with pytest.raises(InvalidSpec, match="keys of its own"):
        replace(session, shufflers=(session.shufflers[0], copied, session.shufflers[2]))
    with pytest.raises(InvalidSpec, match="hexadecimal"):
        replace(session.collector, seal_key="AB" * 32)


@pytest.mark.parametrize(
    ("mode", "fakes", "each", "rows"),
    [("osh", 100, 50, 150), ("osh", 101, 51, 153), ("osh-z", 100, 0, 100), ("ss", 100, 100, 300), ("osh", 0, 0, 0)],
)
def test_the_fakes_of_honest_shufflers_suffice(mode: str, fakes: int, each: int, rows: int):
    session = made(mode=mode, fakes=fakes).session
    assert (session.fakes_each, session.fake_rows) == (each, rows)
    assert mode == "osh-z" or session.honest * each >= fakes


@pytest.mark.parametrize("name", ["collector", "shuffler_1", "shuffler_2", "shuffler_3"])
def test_every_party_must_have_signed_by_its_pinned_key(name: str):
    cast = made()
    signatures = dict(cast.signed.signatures)
    del signatures[name]
    with pytest.raises(ProtocolViolation, match=f"{name} has not signed"):
        replace(cast.signed, signatures=signatures).verify(cast.pinned)
    wrong = {**cast.signed.signatures, name: cast.session.sign(rehearse(ReplayCoins(b"other")).identities[0])}
    with pytest.raises(ProtocolViolation, match=f"signature of {name}"):
        replace(cast.signed, signatures=wrong).verify(cast.pinned)
    other = {**cast.pinned, name: rehearse(ReplayCoins(b"other")).identities[0].public}
    with pytest.raises(ProtocolViolation, match=f"another key for {name}"):
        cast.signed.verify(other)
    with pytest.raises(ProtocolViolation, match=f"another key for {name}"):
        cast.signed.verify({key: value for key, value in cast.pinned.items() if key != name})


def test_a_changed_document_is_not_the_one_that_was_signed():
    cast = made()
    changed = replace(cast.signed, session=replace(cast.session, n_min=3))
    with pytest.raises(ProtocolViolation, match="collector is not by its pinned key"):
        changed.verify(cast.pinned)


def test_a_document_does_not_change_with_the_objects_it_was_made_of():
    certificate: dict[str, Any] = {"epsilon": "1", "parts": ["a"]}
    session = made(certificate=certificate).session
    before = session.id
    certificate["parts"].append("b")
    assert ShuffleSession.from_json(session.document).id == before


def test_malformed_documents_are_refused():
    document = made().session.document
    for wrong in ({**document, "extra": 1}, {k: v for k, v in document.items() if k != "mode"}):
        with pytest.raises(InvalidSpec, match="unknown or missing"):
            ShuffleSession.from_json(wrong)
    for name, value in (("n_min", "3"), ("collector", {"operator": "x"}), ("words", 3), ("shufflers", None)):
        with pytest.raises(InvalidSpec, match="wrong type"):
            ShuffleSession.from_json({**document, name: value})
    with pytest.raises(InvalidSpec, match="list of signatures"):
        SignedSession.from_json({"session": document})
