"""What a session must say, given its document: whatever differs is refused, before anything is drawn."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import CertificateRefused, InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.session import ShuffleSession, SignedSession
from tacit.wire.document import Collection
from tacit.wire.sessions import (
    certificate_of,
    check_certificate,
    check_fakes,
    check_session,
    honest_fakes,
    make_session,
    pinned_keys,
    terms_of,
)

VECTORS = json.loads((Path(__file__).parents[3] / "spec" / "vectors" / "documents.json").read_text(encoding="utf-8"))
DOCUMENTS = {vector["name"]: vector["document"] for vector in VECTORS["good"]}
COINS = ReplayCoins(b"parties of a session")
IDENTITIES = [Identity.draw(COINS) for _ in range(4)]
STRANGER = Identity.draw(COINS)
KEYS = [f"{digit}" * 64 for digit in "6789"]


def collection(name: str = "shuffled by sharing", **changes: Any) -> Collection:
    """A document of the vectors whose parties have keys that sign."""
    document = json.loads(json.dumps(DOCUMENTS[name]))
    terms = document["shuffle"]
    for party, identity in zip([terms["collector"], *terms["shufflers"]], IDENTITIES, strict=False):
        party["identity"] = identity.public.hex()
    document["shuffle"] = terms | {"fakes": 30} | changes
    return Collection.from_json(document)


def session_of(asked: Collection) -> ShuffleSession:
    count = len(terms_of(asked).shufflers) + 1
    return make_session(asked, url="https://collector.example", seal_keys=KEYS[:count], closes=2_000_000_000)


def signed(session: ShuffleSession, identities: list[Identity] | None = None) -> dict[str, Any]:
    signatures = {
        party_name(i): each.sign("session", session.document)
        for i, each in enumerate((identities or IDENTITIES)[: session.shuffler_count + 1])
    }
    return SignedSession(session=session, signatures=signatures).to_json()


ASKED = collection()
GOOD = session_of(ASKED)


@pytest.mark.parametrize("name", ["shuffled by sharing", "shuffled in layers", "shuffled by a relay and one shuffler"])
def test_a_session_that_is_made_is_accepted(name: str) -> None:
    # Room for the spot checks beside the respondents, which one of the documents does not have.
    asked = collection(name, maximum=10_000)
    session = session_of(asked)
    agreed = check_session(asked, signed(session))
    assert agreed.session == session
    assert agreed.certificate == certificate_of(asked)
    # The document states how many fakes there are; the session, how many of them honest shufflers draw.
    assert session.fake_rows == terms_of(asked).fakes


def test_fakes_that_count_are_those_of_honest_shufflers() -> None:
    assert honest_fakes(terms_of(ASKED)) == 20  # Two of three.
    assert honest_fakes(terms_of(collection("shuffled in layers"))) == 15  # One of two.
    assert honest_fakes(terms_of(collection(mode="osh-z"))) == 30  # Drawn by all together.
    assert ASKED.mechanism.kind == "grr" and certificate_of(ASKED).fakes == 19  # One word may be spoilt.
    check_fakes(terms_of(ASKED))
    with pytest.raises(InvalidSpec, match=r"fakes is 31, must be a multiple of 3 in mode osh.*take 33"):
        check_fakes(terms_of(collection(fakes=31)))
    check_fakes(terms_of(collection(mode="osh-z", fakes=31)))


def test_a_signature_that_is_missing_or_by_another_key_is_refused() -> None:
    published = signed(GOOD)
    for missing in range(4):
        fewer = {**published, "signatures": [item for i, item in enumerate(published["signatures"]) if i != missing]}
        with pytest.raises(ProtocolViolation, match="has not signed"):
            check_session(ASKED, fewer)
    for wrong in range(4):
        others = [STRANGER if i == wrong else each for i, each in enumerate(IDENTITIES)]
        with pytest.raises(ProtocolViolation, match=f"the signature of {party_name(wrong)} is not by its pinned key"):
            check_session(ASKED, signed(GOOD, others))


def test_parties_that_are_not_pinned_are_refused_although_they_have_signed() -> None:
    others = [*IDENTITIES[:3], STRANGER]
    last = replace(GOOD.shufflers[2], identity=STRANGER.public.hex())
    with pytest.raises(ProtocolViolation, match="another key for shuffler_3 than the one pinned"):
        check_session(ASKED, signed(replace(GOOD, shufflers=(*GOOD.shufflers[:2], last)), others))
    assert pinned_keys(terms_of(ASKED))["shuffler_3"] == IDENTITIES[3].public


@pytest.mark.parametrize(
    "changes",
    [
        {"collection": "0" * 64},
        {"mode": "osh-z"},
        {"n_min": 2},
        {"n_max": 10**9},
        {"fakes": 0},
        {"spot_checks": 0},
        {"retention_seconds": 1},
        {"claims_amplification": False},
        {"relay": {"operator": "R", "url": "https://relay.example"}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_session_that_differs_from_its_document_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ProtocolViolation, match=f"session: {next(iter(changes))} is not what the document"):
        check_session(ASKED, signed(replace(GOOD, **changes)))


def test_a_shuffler_at_another_place_is_refused_and_the_collector_may_be_anywhere() -> None:
    moved = replace(GOOD.shufflers[0], url="https://elsewhere.example")
    with pytest.raises(ProtocolViolation, match="shuffler_1 is another party than in the document"):
        check_session(ASKED, signed(replace(GOOD, shufflers=(moved, *GOOD.shufflers[1:]))))
    check_session(ASKED, signed(replace(GOOD, collector=replace(GOOD.collector, url="https://new.example"))))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": "0.01"}, "epsilon is 0.01, must be at least"),
        ({"n_min": 10**6}, "n_min is not 1000"),
        ({"fakes": 20}, "fakes is not 19"),
        ({"delta": "0.1"}, "delta is not 0.000000001"),
        ({"accountant": "published_bbgn"}, "published_bbgn is no accountant of sessions"),
        ({"digest": "0" * 64}, "must be the one certified"),
    ],
)
def test_a_claim_that_the_accountant_does_not_find_is_refused(changes: dict[str, Any], words: str) -> None:
    claimed = replace(GOOD, certificate={**GOOD.certificate, **changes})
    with pytest.raises(CertificateRefused, match=words):
        check_session(ASKED, signed(claimed))


def test_a_larger_claim_is_honest() -> None:
    modest = {**GOOD.certificate, "epsilon": "0.9", "epsilon_others": "1"}
    assert check_session(ASKED, signed(replace(GOOD, certificate=modest))).certificate.epsilon == "0.9"


def test_where_one_party_runs_several_roles_only_the_local_epsilon_may_be_claimed() -> None:
    asked = collection(together=[["collector", "shuffler_2"]])
    session = session_of(asked)
    assert session.together == (("collector", "shuffler_2"),) and not session.claims_amplification
    assert check_session(asked, signed(session)).certificate.triple == ("1", "1", "1")
    claimed = replace(session, certificate=GOOD.certificate)
    with pytest.raises(CertificateRefused, match="only the local epsilon holds"):
        check_session(asked, signed(claimed))


@pytest.mark.parametrize(
    "published", [None, [], {}, {"session": {}, "signatures": []}, {"session": 1, "signatures": 2}]
)
def test_what_is_no_session_is_refused(published: Any) -> None:
    with pytest.raises((InvalidSpec, ProtocolViolation)):
        check_session(ASKED, published)
    with pytest.raises(CertificateRefused):
        check_certificate(ASKED, published)


def test_a_document_that_is_not_shuffled_has_no_session() -> None:
    with pytest.raises(InvalidSpec, match="it is not shuffled"):
        check_session(Collection.from_json(DOCUMENTS["one question"]), signed(GOOD))
