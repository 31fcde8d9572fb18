"""Whether a sealed report took part: what shufflers and the collector publish about a session, checked.

A respondent holds a random slot. All shufflers sign one root over the slots that take part; a short path from a slot to
that root shows that it is among them. Nobody learns from it which report is whose.
"""

from dataclasses import dataclass
from typing import Any, cast

from tacit.client.sealed.sealing import SealedReport
from tacit.client.transport import Transport, Unreachable
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.protocol.session import SignedSession
from tacit.shuffle.protocol.transcript import Transcript, check_receipt, verify
from tacit.wire.document import Collection
from tacit.wire.sessions import pinned_keys, terms_of

WAITING, INCLUDED, MISSING, ABORTED = "waiting", "included", "missing", "aborted"


@dataclass(frozen=True)
class Inclusion:
    """What is known about the part that a report took in a shuffle."""

    state: str
    """"waiting" (nothing is published yet), "included", "missing" (no shuffler could show it), or "aborted"."""
    words: str
    """The same as a sentence."""
    respondents: int = 0
    """How many took part, as all shufflers signed."""

    @property
    def took_part(self) -> bool:
        """Whether that is certain."""
        return self.state == INCLUDED


def look_up(collection: Collection, sealed: SealedReport, transcript_url: str, transport: Transport) -> Inclusion:
    """Find out whether a report took part; ProtocolViolation if what is published about it is not as it must be."""
    try:
        published = transport.fetch_json(transcript_url, f"collection {collection.id}: the transcript")
    except Unreachable:
        return _without_transcript(sealed, transport)
    transcript = verified_transcript(collection, published)
    if transcript.session != sealed.session:
        return _without_transcript(sealed, transport)
    n = int(transcript.roster["n"])
    receipt = {"session": sealed.session, "slot": sealed.slot}
    for url in sealed.shufflers:
        proof = _proof(url, sealed, transport)
        if proof is not None and check_receipt(transcript, receipt, proof):
            return Inclusion(INCLUDED, f"The report is one of {n} that all shufflers signed for.", n)
    return Inclusion(MISSING, "No shuffler could show that the report took part; it may be too late to ask them.", n)


def verified_transcript(collection: Collection, published: Any) -> Transcript:
    """The transcript of a collection as it was published; ProtocolViolation names what is wrong with it."""
    if not isinstance(published, dict) or not {"session", "transcript"} <= set(cast("dict[str, Any]", published)):
        raise ProtocolViolation("transcript: the file must have a session and a transcript")
    fields = cast("dict[str, Any]", published)
    try:
        transcript = Transcript.from_json(fields["transcript"])
        verify(transcript, SignedSession.from_json(fields["session"]), pinned_keys(terms_of(collection)))
    except (KeyError, TypeError):
        raise ProtocolViolation("transcript: a part of it is missing or has another type") from None
    return transcript


def _proof(url: str, sealed: SealedReport, transport: Transport) -> dict[str, Any] | None:
    try:
        value = transport.fetch_json(f"{url}/s/{sealed.session}/proof/{sealed.slot}", "the proof of a slot")
    except Unreachable:
        return None
    return cast("dict[str, Any]", value) if _is_proof(value) else None


def _is_proof(value: Any) -> bool:
    """Whether what a shuffler sent has the form of a proof."""
    if not isinstance(value, dict):
        return False
    fields = cast("dict[str, Any]", value)
    path: Any = fields.get("path")
    named = isinstance(fields.get("slot"), str) and type(fields.get("index")) is int and isinstance(path, list)
    return named and all(isinstance(node, str) and len(node) == 64 for node in cast("list[Any]", path))


def _without_transcript(sealed: SealedReport, transport: Transport) -> Inclusion:
    if is_aborted(sealed, transport):
        return Inclusion(ABORTED, "The session was given up before anything reached the collector; `flush` tries on.")
    return Inclusion(WAITING, "The session goes on; its transcript is published when it has ended.")


def is_aborted(sealed: SealedReport, transport: Transport) -> bool:
    """Whether so many shufflers say that they aborted the session that at least one honest one does.

    The collector alone is not believed: it could open the reports and then ask for the same ones again, among others.
    """
    return sum(_says_aborted(url, sealed, transport) for url in sealed.shufflers) >= sealed.enough


def _says_aborted(url: str, sealed: SealedReport, transport: Transport) -> bool:
    try:
        status = transport.fetch_json(f"{url}/s/{sealed.session}/status", "the status of a session")
    except (Unreachable, InvalidSpec):
        return False
    return isinstance(status, dict) and cast("dict[str, Any]", status).get("state") == "ABORTED"
