"""A shuffler signs only what it can do, for whom it was told to, and opens only when everybody has signed."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tacit.device.catalog import device_of
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import Busy, CertificateRefused, InvalidSpec, ProtocolViolation, SessionAborted, TacitError
from tacit.shuffle.accounting.fakes import counted_fakes
from tacit.shuffle.certificate import certify, decimal_text
from tacit.shuffle.crypto.signing import Identity, is_signed
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffle.protocol.session import LABEL, ShuffleSession, SignedSession
from tacit.shuffle.protocol.words import WordRule, rule_of
from tacit.shuffler import joining
from tacit.shuffler.joining import Offer
from tacit.shuffler.party_store import PartyStore, PhaseChange

NOW = 1_700_000_000.5
MECHANISM = device_of({"kind": "grr", "epsilon": "4", "size": 10})
CERTIFICATE = certify(MECHANISM, n_min=1000, delta="1e-9").to_json()
MADE = rehearse(ReplayCoins(b"parties"), n_min=1000, closes=int(NOW) + 100, certificate=CERTIFICATE)
COLLECTOR = MADE.identities[0]
FOR_IT = Offer(frozenset({COLLECTOR.public.hex()}))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PartyStore]:
    made = PartyStore(tmp_path)
    yield made
    made.close()


def session_of(store: PartyStore, number: int = 2, **changes: Any) -> ShuffleSession:
    """The rehearsed session, with the store's keys at one shuffler."""
    keys = {"identity": store.identity.public.hex(), "seal_key": store.seal_key.public.hex()}
    shufflers = list(MADE.session.shufflers)
    shufflers[number - 1] = replace(shufflers[number - 1], **keys)
    return replace(MADE.session, **{"shufflers": tuple(shufflers), **changes})


def join(store: PartyStore, offer: Offer, document: Any) -> str:
    return joining.join(store, offer, document, NOW)


def signed_by(session: ShuffleSession, *signers: tuple[str, Identity]) -> dict[str, Any]:
    signatures = {name: session.sign(identity) for name, identity in signers}
    return SignedSession(session=session, signatures=signatures).to_json()


def proposal(session: ShuffleSession) -> dict[str, Any]:
    return signed_by(session, ("collector", COLLECTOR))


def test_it_signs_and_opens_when_everybody_has(store: PartyStore) -> None:
    session = session_of(store)
    signature = join(store, FOR_IT, proposal(session))
    assert is_signed(store.identity.public, LABEL, session.document, signature)
    assert join(store, FOR_IT, proposal(session)) == signature
    record = store.session(session.id)
    assert record is not None
    assert (record.party, record.state, record.is_open) == (2, "JOINED", False)
    everybody = [("collector", COLLECTOR), ("shuffler_1", MADE.identities[1]), ("shuffler_3", MADE.identities[3])]
    complete = signed_by(session, *everybody, ("shuffler_2", store.identity))
    assert join(store, FOR_IT, complete) == signature
    record = store.session(session.id)
    assert record is not None
    assert (record.state, record.is_open) == ("COLLECTING", True)
    # Once more changes nothing; a session that is over cannot be opened again.
    join(store, FOR_IT, complete)
    store.end(session.id, PhaseChange(state="ABORTED"))
    with pytest.raises(SessionAborted, match="make a new one"):
        join(store, FOR_IT, complete)


def test_a_forged_signature_of_another_shuffler_does_not_open(store: PartyStore) -> None:
    session = session_of(store)
    forged = [("shuffler_1", MADE.identities[3]), ("shuffler_3", MADE.identities[3]), ("shuffler_2", store.identity)]
    with pytest.raises(ProtocolViolation, match="shuffler_1"):
        join(store, FOR_IT, signed_by(session, ("collector", COLLECTOR), *forged))
    record = store.session(session.id)
    assert record is not None
    assert record.state == "JOINED"


@pytest.mark.parametrize(
    ("offer", "changes", "error", "words"),
    [
        (Offer(), {}, ProtocolViolation, "does not work for the collector"),
        (replace(FOR_IT, modes=("relay",)), {}, InvalidSpec, "mode osh is not offered here; offered are relay"),
        (replace(FOR_IT, url="https://other.example"), {}, InvalidSpec, "this shuffler is https://other.example"),
        (replace(FOR_IT, most_bytes=56_000), {"n_min": 1001}, InvalidSpec, "exceed 56000 bytes"),
        (FOR_IT, {"phase_seconds": 90_000}, InvalidSpec, "phase_seconds is 90000"),
        (FOR_IT, {"closes": 0}, InvalidSpec, "closes is 0, must be later than 1700000000, the time here"),
        (FOR_IT, {"closes": int(NOW)}, InvalidSpec, "closes is 1700000000"),
        (FOR_IT, {"closes": int(NOW) + 3650 * 86_400 + 1}, InvalidSpec, "by at most 3650 days; take another time"),
        (FOR_IT, {"closes": 2**53 - 1}, InvalidSpec, "closes is 9007199254740991"),
    ],
)
def test_it_refuses_what_it_does_not_offer(
    store: PartyStore, offer: Offer, changes: dict[str, Any], error: type[TacitError], words: str
) -> None:
    with pytest.raises(error, match=words):
        join(store, offer, proposal(session_of(store, **changes)))
    assert store.sessions() == []


@pytest.mark.parametrize("closes", [int(NOW) + 1, int(NOW) + 3650 * 86_400])
def test_it_signs_sessions_that_close_in_time(store: PartyStore, closes: int) -> None:
    document = proposal(session_of(store, closes=closes))
    signature = join(store, FOR_IT, document)
    # What was signed stays signed: a repetition that comes late has the same reply.
    assert joining.join(store, FOR_IT, document, float(closes + 1)) == signature


CLAIMS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "smaller epsilon": (
        {"epsilon": "0.1"},
        {},
        "epsilon is 0.1, must be at least 2.203 at delta 0.000000001 with 1000",
    ),
    "smaller for others": ({"epsilon_others": "3.9"}, {}, "epsilon_others is 3.9, must be at least 4 at delta"),
    "larger crowd": (certify(MECHANISM, n_min=2000, delta="1e-9").to_json(), {}, "n_min is 2000, must be 1000"),
    "fakes that nobody draws": (
        certify(MECHANISM, n_min=1000, delta="1e-9", fakes=50).to_json(),
        {"fakes": 50},
        "fakes is 50, must be at most 49",
    ),
    "more outcomes than reports have": (
        certify(device_of({"kind": "grr", "epsilon": "4", "size": 1000}), n_min=1000, delta="1e-9").to_json(),
        {},
        "must be at least 2.203",
    ),
    "another accountant": ({"accountant": "published_solh"}, {}, "accountant is published_solh, must be amp_blanket"),
    "bits one by one": ({"fragmented": True}, {}, "fragmented is True, must be False"),
    "removal": ({"neighbours": "removal"}, {}, "neighbours is removal, must be replacement"),
    "local epsilon out of range": ({"local_epsilon": "999"}, {}, "epsilon"),
    "one outcome": ({}, {"words": WordRule(1, seeded=True)}, "size"),
    "no outcome": ({}, {"words": WordRule(0, seeded=True)}, "size"),
    "another version": ({"version": 2}, {}, "version is 2"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_it_signs_no_claim_that_its_session_does_not_keep(store: PartyStore, name: str) -> None:
    certificate, changes, words = CLAIMS[name]
    session = session_of(store, certificate=CERTIFICATE | certificate, **changes)
    with pytest.raises(InvalidSpec, match=words):
        join(store, FOR_IT, proposal(session))
    assert store.sessions() == []


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "grr", "epsilon": "2.5", "size": 1000},
        {"kind": "olh", "epsilon": "3", "size": 1 << 40, "buckets": 21, "state": "log"},
        {"kind": "olh", "epsilon": "2", "size": 50, "buckets": 404, "state": "log"},
        {"kind": "blh", "epsilon": "1", "size": 9},
    ],
)
@pytest.mark.parametrize("accountant", ["", "amp_clone"])
def test_the_session_alone_is_enough_for_the_claim_that_was_issued(
    store: PartyStore, spec: dict[str, Any], accountant: str
) -> None:
    mechanism = device_of(spec)
    fakes = counted_fakes(mechanism, 500)
    issued = certify(mechanism, n_min=5000, delta="1e-8", fakes=fakes, accountant=accountant)
    assert Decimal(issued.epsilon) < Decimal(issued.local_epsilon)
    given: dict[str, Any] = {"n_min": 5000, "fakes": 500, "words": rule_of(mechanism)}
    # The last digit less is refused, so that nothing is lost by not knowing the mechanism.
    less = Decimal(issued.epsilon) - Decimal((0, (1,), int(Decimal(issued.epsilon).as_tuple().exponent)))
    small = session_of(store, **given, certificate=issued.to_json() | {"epsilon": decimal_text(less)})
    with pytest.raises(CertificateRefused, match=f"must be at least {issued.epsilon} at delta"):
        join(store, FOR_IT, proposal(small))
    join(store, FOR_IT, proposal(session_of(store, **given, certificate=issued.to_json())))


def test_a_session_that_claims_no_amplification_needs_no_accountant(store: PartyStore) -> None:
    plain = session_of(store, certificate={"epsilon": "4"}, claims_amplification=False)
    join(store, FOR_IT, proposal(plain))


def test_it_refuses_sessions_that_are_not_signed_not_its_own_or_sealed_for_an_old_key(store: PartyStore) -> None:
    session = session_of(store)
    with pytest.raises(ProtocolViolation, match="collector"):
        join(store, FOR_IT, signed_by(session, ("collector", MADE.identities[1])))
    with pytest.raises(InvalidSpec, match="no shuffler of the session has the identity"):
        join(store, FOR_IT, proposal(MADE.session))
    store.rotate_seal_key()
    join(store, FOR_IT, proposal(session))
    store.end(session.id, PhaseChange(state="ABORTED"))
    store.rotate_seal_key()
    with pytest.raises(InvalidSpec, match="seal_key of shuffler_2 is not valid any more"):
        join(store, FOR_IT, proposal(replace(session, n_max=7777)))


def test_it_takes_so_many_sessions_at_a_time(store: PartyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MOST_SESSIONS", 1)
    join(store, FOR_IT, proposal(session_of(store)))
    with pytest.raises(Busy):
        join(store, FOR_IT, proposal(session_of(store, n_max=7777)))


ODD_VALUES: tuple[Any, ...] = (None, "", "x", -1, 10**30, True, [], [None], {}, {"a": 1}, 0.5)


def damaged(document: Any) -> Iterator[Any]:
    """A document with every part of it replaced by odd values, and left out."""
    yield from ODD_VALUES
    if isinstance(document, dict):
        for name, value in document.items():
            yield {other: kept for other, kept in document.items() if other != name}
            yield from ({**document, name: wrong} for wrong in damaged(value))
    elif isinstance(document, list):
        for i, value in enumerate(document):
            yield from ([*document[:i], wrong, *document[i + 1 :]] for wrong in damaged(value))


def test_a_damaged_session_is_refused_by_its_rule_and_never_by_accident(store: PartyStore) -> None:
    document = proposal(session_of(store))
    tried = 0
    for wrong in (made for made in damaged(document) if made != document):
        tried += 1
        try:
            join(store, FOR_IT, wrong)
        except TacitError:
            continue
        raise AssertionError(f"a damaged session was signed: {wrong}")
    assert tried > 400
    assert store.sessions() == []


def test_a_damaged_certificate_is_refused_although_the_collector_signed_it(store: PartyStore) -> None:
    # Which kind it is does not matter here; clients know.
    damages = [made for made in damaged(CERTIFICATE) if made not in (CERTIFICATE, CERTIFICATE | {"kind": "x"})]
    for wrong in damages:
        with pytest.raises(TacitError):
            join(store, FOR_IT, proposal(session_of(store, certificate=wrong)))
    assert len(damages) > 100 and store.sessions() == []
