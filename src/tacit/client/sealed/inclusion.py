"""Whether a sealed report took part: what shufflers and the collector publish about a session, checked.

A respondent holds a random slot. All shufflers sign one root over the hashes of the slots that take part, and these
hashes are published when the session has ended. Before, a shuffler shows a short path from a slot to the root. Nobody
learns from it which report is whose.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from tacit.client.sealed.asking import Asking
from tacit.client.sealed.sealing import SealedReport
from tacit.client.transport import MAX_DOCUMENT_BYTES, Transport, Unreachable
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.merkle import HASH_BYTES
from tacit.shuffle.protocol.leaves import took_part
from tacit.shuffle.protocol.relayed import proof_path, status_path
from tacit.shuffle.protocol.session import SignedSession
from tacit.shuffle.protocol.status import says_aborted
from tacit.shuffle.protocol.transcript import Transcript, check_receipt, verify
from tacit.wire.document import Collection
from tacit.wire.sessions import pinned_keys, terms_of
from tacit.wire.shuffled import ShuffleTerms

_HASH = re.compile(r"[0-9a-f]{64}")
WAITING, SHOWN, INCLUDED, MISSING, ABORTED = "waiting", "shown", "included", "missing", "aborted"


@dataclass(frozen=True)
class Inclusion:
    """What is known about the part that a report took in a shuffle."""

    state: str
    """"waiting" (slots are not agreed yet), "shown" (a shuffler shows the slot, the signatures of all are not published
    yet), "included", "missing" (the slot is not among those that were signed), or "aborted"."""
    words: str
    """The same as a sentence."""
    respondents: int = 0
    """How many took part."""

    @property
    def took_part(self) -> bool:
        """Whether that is certain."""
        return self.state == INCLUDED


def look_up(
    collection: Callable[[], Collection], sealed: SealedReport, transcript_url: str, asking: Asking
) -> tuple[Inclusion, dict[str, Any] | None]:
    """Find out whether a report took part, and return the proof to be kept: what is published may vanish.

    ProtocolViolation if what is published is not as it must be.
    """
    try:
        terms = terms_of(collection())
    except Unreachable:
        terms = None
    transcript = None if terms is None else _transcript(terms, sealed, transcript_url, asking.transport)
    if transcript is None:
        proof = sealed.proof or _first_proof(sealed, asking)
        return _without_transcript(terms, sealed, proof, asking), proof
    # Nobody is asked about the slot: the hashes of all of them are published, under a root that all shufflers signed.
    n = int(transcript.roster["n"])
    proof = check_receipt(transcript, {"session": sealed.session, "slot": sealed.slot})
    if proof is None:
        return Inclusion(MISSING, f"The report is not one of the {n} that all shufflers signed for.", n), sealed.proof
    return Inclusion(INCLUDED, f"The report is one of {n} that all shufflers signed for.", n), proof


def _transcript(terms: ShuffleTerms, sealed: SealedReport, url: str, transport: Transport) -> Transcript | None:
    """The verified transcript of the session that a report was sealed for; None before there is one."""
    try:
        most = MAX_DOCUMENT_BYTES + 2 * HASH_BYTES * terms.maximum
        published = transport.fetch_json(url, f"collection at {url}: the transcript", most)
        transcript = _verified(terms, published)
    except Unreachable:
        return None
    return transcript if transcript.session == sealed.session else None


def _first_proof(sealed: SealedReport, asking: Asking) -> dict[str, Any] | None:
    """The first proof by any shuffler that leads to the root that it states."""
    for number in range(1, len(sealed.shufflers) + 1):
        # One is enough: the root is compared with the one that all of them signed, as soon as that is published.
        proof = asking.ask(sealed, number, proof_path(sealed.session, sealed.slot))
        is_ours = proof is not None and _is_proof(proof) and proof["slot"] == sealed.slot
        if proof is not None and is_ours and took_part(proof["root"], proof["n"], proof):
            return proof
    return None


def _verified(terms: ShuffleTerms, published: Any) -> Transcript:
    if not isinstance(published, dict) or not {"session", "transcript"} <= set(cast("dict[str, Any]", published)):
        raise ProtocolViolation("transcript: the file must have a session and a transcript")
    fields = cast("dict[str, Any]", published)
    try:
        transcript = Transcript.from_json(fields["transcript"])
        verify(transcript, SignedSession.from_json(fields["session"]), pinned_keys(terms))
    except (KeyError, TypeError):
        raise ProtocolViolation("transcript: a part of it is missing or has another type") from None
    return transcript


def _is_proof(fields: dict[str, Any]) -> bool:
    """Whether what a shuffler sent has the form of a proof."""
    path: Any = fields.get("path")
    whole = all(type(fields.get(name)) is int for name in ("index", "n"))
    named = isinstance(fields.get("slot"), str) and whole and isinstance(path, list)
    return named and all(
        isinstance(node, str) and _HASH.fullmatch(node) for node in [*cast("list[Any]", path), fields.get("root")]
    )


def _without_transcript(
    terms: ShuffleTerms | None, sealed: SealedReport, proof: dict[str, Any] | None, asking: Asking
) -> Inclusion:
    if terms is not None and is_aborted(terms, sealed, asking):
        return Inclusion(ABORTED, "The session was given up before anything reached the collector; `flush` tries on.")
    if proof is not None:
        n = int(proof["n"])
        words = f"A shuffler shows the report as one of {n}; the signatures of all are published when the session ends."
        return Inclusion(SHOWN, words, n)
    return Inclusion(WAITING, "The session goes on; shufflers can show who takes part after it has been closed.")


def is_aborted(terms: ShuffleTerms, sealed: SealedReport, asking: Asking) -> bool:
    """Whether so many shufflers say, each signed, that they aborted the session that at least one honest one does.

    The collector alone is not believed: it could open the reports and then ask for the same ones again, among others.
    Nor is whoever answers at an address, which is the collector's choice.
    """
    path, said = status_path(sealed.session), 0
    for number, party in enumerate(terms.shufflers[: len(sealed.shufflers)], start=1):
        said += says_aborted(asking.ask(sealed, number, path), sealed.session, party.key)
    return said >= sealed.enough
