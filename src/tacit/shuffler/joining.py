"""Joining a session: a shuffler signs what it can do for collectors that it knows; all signatures open the session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tacit.errors import Busy, InvalidSpec, ProtocolViolation, SessionAborted
from tacit.shuffle.crypto.signing import check_signature
from tacit.shuffle.protocol.machine import ShufflerProgress
from tacit.shuffle.protocol.parties import COLLECTOR, party_name, party_names
from tacit.shuffle.protocol.session import LABEL, MODES, ShuffleSession, SignedSession, pins
from tacit.shuffler.claims import check_claim
from tacit.shuffler.letters import widest_row
from tacit.shuffler.modes import takes_uploads
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.post import MOST_BODY_BYTES
from tacit.wire.shuffled import MAX_SESSION_DAYS

MOST_SESSIONS = 64
MOST_PHASE_SECONDS = 86_400
_DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Offer:
    """What a shuffler is willing to do, and for whom."""

    collectors: frozenset[str] = frozenset()
    """Identities of the collectors that it works for, in hexadecimal."""
    any_collector: bool = False
    """For tests and demonstrations: work for whoever asks."""
    modes: tuple[str, ...] = MODES
    url: str = ""
    """The own address; sessions that name another are refused. Empty to sign any."""
    most_bytes: int = MOST_BODY_BYTES
    """The largest vector that it handles."""


def join(store: PartyStore, offer: Offer, document: Mapping[str, Any], now: float) -> str:
    """Sign a session and remember it; with all signatures, open it. The same document again has the same result.

    `now` is in seconds since 1970.
    """
    signed = SignedSession.from_json(document)
    session = signed.session
    party = _own_number(store, session)
    _check(store, offer, signed, party)
    known = store.session(session.id)
    if known is not None and known.is_over:
        raise SessionAborted(f"session: {session.id[:16]} is over; make a new one, with fresh keys of the collector")
    if known is None and len(store.sessions(only_live=True)) >= MOST_SESSIONS:
        raise Busy(f"shuffler: {MOST_SESSIONS} sessions are under way; ask again when some have ended")
    # Stored before it is signed: a signature for a session that was lost could never be kept to.
    if known is None:
        _check_times(session, now)
        check_claim(session)
        store.add_session(signed, party, ShufflerProgress().state, most_uploads=_room(offer, session))
    if all(name in signed.signatures for name in party_names(session.shuffler_count)):
        _open(store, signed, party)
    return session.sign(store.identity)


def _open(store: PartyStore, signed: SignedSession, party: int) -> None:
    session = signed.verify(pins(signed.session.parties))
    record = store.session(session.id)
    if record is not None and record.state == ShufflerProgress().state:
        store.add_signatures(signed)
        after = ShufflerProgress(record.state).after("open").state
        store.commit(session.id, PhaseChange(state=after, is_open=takes_uploads(session, party)))


def _own_number(store: PartyStore, session: ShuffleSession) -> int:
    mine = store.identity.public.hex()
    numbers = [i for i, party in enumerate(session.parties) if party.identity == mine and i != COLLECTOR]
    if not numbers:
        _refuse(f"no shuffler of the session has the identity {mine}; the collector must pin this one")
    return numbers[0]


def _check(store: PartyStore, offer: Offer, signed: SignedSession, party: int) -> None:
    session, own = signed.session, signed.session.parties[party]
    if not offer.any_collector and session.collector.identity not in offer.collectors:
        raise ProtocolViolation(
            f"session: this shuffler does not work for the collector {session.collector.identity}; its operator can "
            "name that key with --collector"
        )
    name = party_name(COLLECTOR)
    check_signature(pins(session.parties), name, LABEL, session.document, signed.signatures.get(name, ""))
    if session.mode not in offer.modes:
        _refuse(f"mode {session.mode} is not offered here; offered are {', '.join(offer.modes)}")
    if own.seal_key not in {key.public.hex() for key in store.seal_keys()}:
        _refuse(f"the seal_key of {party_name(party)} is not valid any more; take the present one from /identity.json")
    if offer.url and own.url.rstrip("/") != offer.url.rstrip("/"):
        _refuse(f"the url of {party_name(party)} is {own.url}, this shuffler is {offer.url}")
    if _room(offer, session) < session.n_min + session.spot_checks:
        _refuse(f"n_min is {session.n_min}: vectors of so many rows exceed {offer.most_bytes} bytes, the limit here")


def _check_times(session: ShuffleSession, now: float) -> None:
    if session.phase_seconds > MOST_PHASE_SECONDS:
        _refuse(f"phase_seconds is {session.phase_seconds}, must be at most {MOST_PHASE_SECONDS}")
    # Shares are held until then if the collector never closes the session.
    if not now < session.closes <= now + MAX_SESSION_DAYS * _DAY_SECONDS:
        _refuse(
            f"closes is {session.closes}, must be later than {int(now)}, the time here, and by at most "
            f"{MAX_SESSION_DAYS} days; take another time, or set the clock"
        )


def _room(offer: Offer, session: ShuffleSession) -> int:
    """How many uploads are taken at most."""
    return min(session.n_max, offer.most_bytes // widest_row(session) - session.fake_rows)


def _refuse(reason: str) -> NoReturn:
    raise InvalidSpec(f"session: {reason}")
