"""A shuffler signs only what it can do, for whom it was told to, and opens only when everybody has signed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import Busy, InvalidSpec, ProtocolViolation, SessionAborted, TacitError
from tacit.shuffle.crypto.signing import Identity, is_signed
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffle.protocol.session import LABEL, ShuffleSession, SignedSession
from tacit.shuffler import joining
from tacit.shuffler.joining import Offer, join
from tacit.shuffler.party_store import PartyStore, PhaseChange

MADE = rehearse(ReplayCoins(b"parties"))
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
        (replace(FOR_IT, most_bytes=560), {"n_min": 11}, InvalidSpec, "exceed 560 bytes"),
        (FOR_IT, {"phase_seconds": 90_000}, InvalidSpec, "phase_seconds is 90000"),
    ],
)
def test_it_refuses_what_it_does_not_offer(
    store: PartyStore, offer: Offer, changes: dict[str, Any], error: type[TacitError], words: str
) -> None:
    with pytest.raises(error, match=words):
        join(store, offer, proposal(session_of(store, **changes)))
    assert store.sessions() == []


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
        join(store, FOR_IT, proposal(replace(session, n_max=77)))


def test_it_takes_so_many_sessions_at_a_time(store: PartyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MOST_SESSIONS", 1)
    join(store, FOR_IT, proposal(session_of(store)))
    with pytest.raises(Busy):
        join(store, FOR_IT, proposal(session_of(store, n_max=77)))


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
