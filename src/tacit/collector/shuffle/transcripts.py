"""The transcript of a session, put together from what shufflers sent about it, and the file that is published."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.envelope import Envelope, MessagePlace
from tacit.shuffle.protocol.session import RESHARING, SignedSession
from tacit.shuffle.protocol.transcript import Transcript, expected_places
from tacit.shuffler.letters import ATTEMPT, COUNTS, ENVELOPES, ERASURE, LEAVES
from tacit.shuffler.party_store import PartyStore, SessionRecord

KEPT = "transcript"
"""The name under which the transcript without erasure notes is kept."""


def put_together(store: PartyStore, record: SessionRecord, ack: Mapping[str, Any]) -> Transcript:
    """Everything about a session but the erasure notes, which come after the acknowledgement."""
    roster = {name: record.progress[name] for name in ("root", "n", "signatures")}
    roster["leaves"] = (store.kept(record.id, LEAVES) or b"").hex()
    return Transcript(
        session=record.id,
        attempt=ATTEMPT,
        roster=roster,
        rows=int(ack["rows"]),
        envelopes=[envelope.to_json() for envelope in _envelopes(store, record)],
        hops=[] if record.session.mode in RESHARING else hops_of(store, record),
        ack=ack,
    )


def hops_of(store: PartyStore, record: SessionRecord) -> list[dict[str, Any]]:
    """What the hops of a chain signed about their rows, in their order; the signatures are verified later."""
    counts = {letter.place.sender: letter.json() for letter in store.letters(record.id, COUNTS)}
    return [counts[name] for name in sorted(counts)]


def dropped_rows(hops: Sequence[Mapping[str, Any]]) -> int:
    """Rows that hops say they have dropped."""
    try:
        return sum(int(hop["duplicates"]) + int(hop["failures"]) for hop in hops)
    except (KeyError, TypeError, ValueError):
        raise ProtocolViolation("hops: one of them did not sign how many rows it dropped") from None


def _envelopes(store: PartyStore, record: SessionRecord) -> list[Envelope]:
    """The envelopes of all messages between parties, in the order in which a transcript has them."""
    told: dict[MessagePlace, Envelope] = {}
    for letter in store.letters(record.id, ENVELOPES):
        items: Any = letter.json().get("envelopes", [])
        for envelope in (Envelope.from_json(item) for item in items):
            # Each shuffler speaks for itself alone.
            if envelope.place.sender == letter.place.sender:
                told.setdefault(envelope.place, envelope)
    # Those of letters about slots and ends are left out: a transcript has what moved rows, and no more.
    places = expected_places(record.session, ATTEMPT)
    missing = [str(place) for place in places if place not in told]
    if missing:
        raise ProtocolViolation(f"transcript: {len(missing)} envelopes are missing, the first is {missing[0]}")
    return [told[place] for place in places]


def published(store: PartyStore, record: SessionRecord, document: bytes) -> dict[str, Any] | None:
    """The file that is published about a session, with the erasure notes so far; None before there is a transcript."""
    content = store.kept(record.id, KEPT)
    if content is None:
        return None
    transcript = json.loads(content)
    notes = [letter.json() for letter in store.letters(record.id, ERASURE)]
    if notes:
        transcript |= {"erasures": sorted(notes, key=lambda note: str(note.get("by")))}
    return {"document": json.loads(document), "session": _signed(record.signed), "transcript": transcript}


def _signed(signed: SignedSession) -> dict[str, Any]:
    return signed.to_json()
