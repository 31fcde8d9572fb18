"""What parties of a shuffle write to each other: kinds of letters, who may send them to whom, their bodies and sizes.

A letter is a signed envelope (`tacit.shuffle.crypto.envelope`) and a body. Its `phase` says what it is; (session,
attempt, round, phase, from, to) is used once. All letters travel as `POST` to `address_of(session, party)`:

    4 bytes    length of the head, big-endian, at most MAX_HEAD_BYTES
    head       the envelope as JSON
    body       rows x width bytes

    phase        from        to            round       body
    admissions   collector   shufflers     0, 1, ...   SHA-256 of tokens, 32 bytes each; see `admission`
    close        collector   shufflers     0           {} - no more uploads; go on
    slots        shufflers   shufflers     0           its slots, sorted, 16 bytes each (M2); in a chain only the first
    statement    shufflers   everybody     0           JSON: root and number of the agreed slots, signed, and the
                                                       envelopes of the slots that it was sent
    leaves       shuffler 1  collector     0           hashes of the agreed slots, in their order, 32 bytes each
    commit .. output, hop                              as in `resharing` and `transcript.expected_places`
    counts       shufflers   collector     0           JSON: what a hop of a chain signs about its rows
    envelopes    shufflers   collector     0           JSON: all envelopes that it sent, for the transcript
    ack          collector   shufflers     0           JSON: `opening.acknowledge`
    erasure      shufflers   collector     0           JSON: `transcript.erasure_note`
    abort        anybody     everybody     0           JSON: {session, attempt, by, blames, reason, evidence}

The order in which a session goes, seen from the collector:

    POST {shuffler}/sessions with its own signature     -> {"signature"} of each shuffler; with "protocol", the version
    letters `admissions`, where invitations are needed, until they are acknowledged
    POST {shuffler}/sessions with all signatures        -> the shuffler opens for uploads
    letters `close`                                     -> letters `statement` from all shufflers, all the same,
                                                           and `leaves` from the first
    `output` of the last hiders (or `hop` of the last in a chain) and `envelopes` (and `counts`) of all
    letters `ack`                                       -> letters `erasure`
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from tacit.device.numbers.canonical import canonical
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.envelope import Envelope, MessagePlace, enclose
from tacit.shuffle.crypto.merkle import HASH_BYTES
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.parties import COLLECTOR, party_name, party_names, rounds_of
from tacit.shuffle.protocol.resharing import COMMIT, OUTPUT, RESHARE, REVEAL, SPLIT
from tacit.shuffle.protocol.sealing import CIPHERTEXT_BYTES, SLOT_BYTES, onion_bytes
from tacit.shuffle.protocol.session import PEOS, RESHARING, ShuffleSession
from tacit.shuffle.protocol.transcript import HOP_PHASE, expected_places

PROTOCOL = 2
"""The version of all this. In version 1 random summands travelled as rows, and nobody sent hashes of slots."""

ATTEMPT = 1
"""A session is tried once; who tries again makes a new session, with fresh shares of the same reports."""

ADMISSIONS, CLOSE, SLOTS, STATEMENT, LEAVES = "admissions", "close", "slots", "statement", "leaves"
COUNTS, ENVELOPES, ACK, ERASURE, ABORT = "counts", "envelopes", "ack", "erasure", "abort"

MEDIA_TYPE = "application/vnd.tacit.letter"
MAX_HEAD_BYTES = 4096
LENGTH_BYTES = 4
MAX_TEXT_BYTES = 1 << 16
"""Of a JSON body."""
MAX_ADMISSIONS = 1 << 16
"""Of one letter; more go into letters of the next rounds."""
MAX_ADMISSION_LETTERS = 1 << 11
ADMISSION_BYTES = 32
_ENVELOPE_BYTES = 1024

_SEED_BYTES = 32
_FROM_COLLECTOR = {ADMISSIONS, CLOSE, ACK}
LEAVES_SENDER = 1
"""Who tells the collector the hashes of slots: it signs their root as well, so that others would only repeat it."""
_TO_COLLECTOR = {STATEMENT, LEAVES, OUTPUT, COUNTS, ENVELOPES, ERASURE, HOP_PHASE}
_AMONG_SHUFFLERS = {SLOTS, STATEMENT, COMMIT, REVEAL, SPLIT, RESHARE, HOP_PHASE}


@dataclass(frozen=True, eq=False)
class Letter:
    """A signed envelope and the body that it is about."""

    envelope: Envelope
    body: bytes

    @property
    def place(self) -> MessagePlace:
        """Where it belongs."""
        return self.envelope.place

    @cached_property
    def head(self) -> bytes:
        """What stands in front of the body when it travels."""
        text = canonical(self.envelope.to_json())
        return len(text).to_bytes(LENGTH_BYTES, "big") + text

    def json(self) -> dict[str, Any]:
        """A JSON body; ProtocolViolation if it is no JSON object."""
        return read_object(self.body, str(self.place))


def read_object(body: bytes, what: str) -> dict[str, Any]:
    """A JSON object, or ProtocolViolation."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ProtocolViolation(f"{what}: the body must be a JSON object")
    return cast("dict[str, Any]", value)


def read_head(head: bytes) -> Envelope:
    """The envelope of a head without its length."""
    return Envelope.from_json(read_object(head, "envelope"))


def check_protocol(who: str, spoken: Any) -> None:
    """Raise ProtocolViolation unless a party speaks the version of the protocol that is spoken here."""
    if spoken != PROTOCOL:
        older = who if not isinstance(spoken, int) or spoken < PROTOCOL else "this side"
        raise ProtocolViolation(
            f"{who}: it speaks version {spoken} of the protocol between parties of a shuffle, this side version "
            f"{PROTOCOL}; update {older}, and begin a new session"
        )


def place_of(session: ShuffleSession, phase: str, sender: int, receiver: int, round_number: int = 0) -> MessagePlace:
    """The place of a letter between two parties, by their numbers."""
    return MessagePlace(
        session=session.id,
        attempt=ATTEMPT,
        round=round_number,
        phase=phase,
        sender=party_name(sender),
        receiver=party_name(receiver),
    )


def letter(place: MessagePlace, body: bytes, identity: Identity, *, rows: int = 1) -> Letter:
    """Sign a body for its place."""
    return Letter(enclose(place, body, rows=rows, identity=identity), body)


def text_letters(
    session: ShuffleSession, phase: str, sender: int, receivers: Sequence[int], document: Any, identity: Identity
) -> list[Letter]:
    """The same JSON for several parties."""
    body = canonical(document)
    return [letter(place_of(session, phase, sender, receiver), body, identity) for receiver in receivers]


def address_of(session: ShuffleSession, party: int) -> str:
    """Where letters to a party are posted."""
    url = session.parties[party].url.rstrip("/")
    if party == COLLECTOR:
        return f"{url}/c/{session.collection}/session/messages"
    return f"{url}/s/{session.id}/messages"


def check_route(session: ShuffleSession, own: int, place: MessagePlace) -> None:
    """Raise ProtocolViolation unless the named sender may send this to us."""
    names = party_names(session.shuffler_count)
    fits = place.session == session.id and place.attempt == ATTEMPT and place.receiver == party_name(own)
    if not fits or place.sender not in names or place.sender == place.receiver:
        raise ProtocolViolation(f"{place}: it is not for {party_name(own)} in this attempt of the session")
    sender = names.index(place.sender)
    allowed = _FROM_COLLECTOR if sender == COLLECTOR else _TO_COLLECTOR if own == COLLECTOR else _AMONG_SHUFFLERS
    if place.phase != ABORT and place.phase not in allowed:
        raise ProtocolViolation(f"{place}: {place.sender} does not send that to {party_name(own)}")
    # What no step waits for would be kept for nothing, and there are endless rounds to name.
    if not _is_expected(session, place.phase, place.round, sender, own):
        raise ProtocolViolation(f"{place}: nobody sends that to {place.receiver} in this session")


def _is_expected(session: ShuffleSession, phase: str, number: int, sender: int, receiver: int) -> bool:
    """Whether there is such a letter in a session; the same places as `expected_places` lists, and all others."""
    if phase == ADMISSIONS:
        return 0 <= number < MAX_ADMISSION_LETTERS
    if phase == LEAVES:
        return (number, sender) == (0, LEAVES_SENDER)
    if phase == HOP_PHASE:
        after = sender + 1 if sender < session.shuffler_count else COLLECTOR
        return session.mode not in RESHARING and (number, receiver) == (sender - 1, after)
    if phase not in (COMMIT, REVEAL, SPLIT, RESHARE, OUTPUT):
        return number == 0
    rounds = rounds_of(session.shuffler_count) if session.mode in RESHARING else []
    if not 0 <= number < len(rounds):
        return False
    hiders, is_last = rounds[number], number == len(rounds) - 1
    if phase == SPLIT:
        return sender not in hiders and receiver in hiders
    if phase in (RESHARE, OUTPUT):
        return sender in hiders and is_last == (phase == OUTPUT)
    return sender in hiders and receiver in hiders


def largest_body(session: ShuffleSession, place: MessagePlace) -> int:
    """How many bytes the body of a letter may have at most."""
    if place.phase in (COMMIT, REVEAL):
        return _SEED_BYTES
    if place.phase in (SLOTS, LEAVES):
        return session.n_max * (SLOT_BYTES if place.phase == SLOTS else HASH_BYTES)
    if place.phase == ADMISSIONS:
        return MAX_ADMISSIONS * ADMISSION_BYTES
    if place.phase == ENVELOPES:
        return MAX_TEXT_BYTES + _ENVELOPE_BYTES * len(expected_places(session, ATTEMPT))
    if place.phase in (SPLIT, RESHARE, OUTPUT, HOP_PHASE):
        return (session.n_max + session.fake_rows) * widest_row(session)
    return MAX_TEXT_BYTES


def widest_row(session: ShuffleSession) -> int:
    """Bytes of the widest row that shufflers hand on."""
    if session.mode == PEOS:
        return CIPHERTEXT_BYTES
    return LAYOUTS[session.mode].width if session.mode in RESHARING else onion_bytes(session, 1)


@dataclass(frozen=True)
class RosterStatement:
    """What a shuffler signed about the slots that take part, and the envelopes of the slots that it was sent."""

    root: str
    n: int
    signature: str
    heard: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """The body of the letter."""
        return {"root": self.root, "n": self.n, "signature": self.signature, "slots": list(self.heard)}

    @classmethod
    def read(cls, taken: Letter) -> "RosterStatement":
        """The statement in a letter; the signature is not verified yet."""
        document = taken.json()
        heard: Any = document.get("slots")
        items: list[Any] = cast("list[Any]", heard) if isinstance(heard, list) else [None]
        fits = set(document) == {"root", "n", "signature", "slots"} and all(isinstance(item, dict) for item in items)
        if not fits or type(document["n"]) is not int or not isinstance(document["root"], str):
            raise ProtocolViolation(f"{taken.place}: a statement has root, n, signature and slots")
        return cls(document["root"], document["n"], str(document["signature"]), tuple(items))


def abort_document(
    session: ShuffleSession, by: int, reason: str, *, blames: str = "", evidence: Sequence[Any] = ()
) -> dict[str, Any]:
    """The body of an abort."""
    return {
        "session": session.id,
        "attempt": ATTEMPT,
        "by": party_name(by),
        "blames": blames,
        "reason": reason,
        "evidence": list(evidence),
    }
