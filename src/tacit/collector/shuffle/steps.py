"""What the collector does next in a session; each step reads what is stored and makes one change of one transaction.

    DRAFT        until every shuffler has counter-signed
    PUBLISHED    until tokens of invitations have arrived and every shuffler has opened for uploads
    COLLECTING   until it is closed; then until all shufflers have signed the same slots
    SHUFFLING    until all vectors and envelopes are there: they are opened, checked, and counted (`release`)
    RELEASED     until every shuffler has signed that it erased what it held
    ABORTED      the end; if the vectors had been seen, erasure notes are still waited for

States decide, never a timer: a step that cannot be made yet returns False.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.collector.shuffle.neighbours import Neighbours
from tacit.collector.shuffle.release import Releases, output_places
from tacit.collector.shuffle.spots import KEPT as SPOTS
from tacit.collector.shuffle.spots import draw_spots, draw_tokens, read_spots
from tacit.collector.shuffle.transcripts import KEPT, published
from tacit.collector.store.party_copies import RESTORED
from tacit.device.numbers.coins import SystemCoins
from tacit.errors import ProtocolViolation, ReleaseRefused, SessionAborted
from tacit.shuffle.crypto.signing import check_signature
from tacit.shuffle.protocol.leaves import SlotLeaves, check_statements
from tacit.shuffle.protocol.machine import CollectorProgress
from tacit.shuffle.protocol.parties import COLLECTOR, party_name
from tacit.shuffle.protocol.roster import hash_many
from tacit.shuffle.protocol.session import LABEL, RESHARING, ShuffleSession, SignedSession
from tacit.shuffler.admission import admission_hash
from tacit.shuffler.letters import (
    ABORT,
    ADMISSIONS,
    ATTEMPT,
    CLOSE,
    COUNTS,
    ENVELOPES,
    ERASURE,
    LEAVES,
    LEAVES_SENDER,
    MAX_ADMISSIONS,
    STATEMENT,
    Letter,
    RosterStatement,
    abort_document,
    letter,
    place_of,
    text_letters,
)
from tacit.shuffler.party_store import PartyStore, PhaseChange, SessionRecord

DRAFT, PUBLISHED, COLLECTING, SHUFFLING = "DRAFT", "PUBLISHED", "COLLECTING", "SHUFFLING"
VERIFIED, RELEASED, ABORTED = "VERIFIED", "RELEASED", "ABORTED"
ASKED, CLOSING = "asked", "closing"


@dataclass(frozen=True)
class CollectorSteps:
    """Makes the steps of a collector over its store."""

    party: PartyStore
    neighbours: Neighbours
    releases: Releases

    def make(self, record: SessionRecord) -> bool:
        """Make the next step of a session; whether there was one."""
        if record.state in (DRAFT, PUBLISHED, COLLECTING, SHUFFLING) and self._is_called_off(record):
            return True
        if record.progress.get(RESTORED) and self._is_unsettled(record):
            self.abort(record, "the collector was restored from a backup that was made before the session had opened")
            return True
        if record.state == DRAFT:
            return self._sign(record)
        if record.state == PUBLISHED:
            return self._open(record)
        if record.state == COLLECTING:
            return self._collect(record)
        if record.state in (SHUFFLING, VERIFIED):
            return self._receive(record)
        return self._finish(record)

    def awaited(self, record: SessionRecord) -> list[str]:
        """The parties without whom the session does not go on."""
        arrived = self.party.arrived(record.id)
        return sorted({sender for number, phase, sender in _needs(record) if (number, phase, sender) not in arrived})

    def _shufflers(self, session: ShuffleSession) -> range:
        return range(1, session.shuffler_count + 1)

    def _is_unsettled(self, record: SessionRecord) -> bool:
        """Whether the next step would draw anew what a crashed step may have drawn and announced already."""
        # A second set of spot checks would count as respondents, and a second list of tokens contradict the first.
        waits = record.progress.get("invitations") and not record.progress.get("admitted")
        return record.state == DRAFT or bool(record.state == PUBLISHED and waits)

    # Signatures, and opening for uploads.

    def _sign(self, record: SessionRecord) -> bool:
        session, signatures = record.session, dict(record.signed.signatures)
        own = SignedSession(session=session, signatures={party_name(COLLECTOR): signatures[party_name(COLLECTOR)]})
        for number in self._shufflers(session):
            name = party_name(number)
            if name not in signatures:
                text = self.neighbours.sign(session.parties[number].url, own)
                check_signature(record.pinned, name, LABEL, session.document, text)
                signatures[name] = text
                self.party.add_signatures(SignedSession(session=session, signatures=signatures))
        tokens = draw_tokens(session) if record.progress.get("invitations") else []
        self._commit(record, "publish", keep={SPOTS: draw_spots(session, tokens, SystemCoins())})
        return True

    def _open(self, record: SessionRecord) -> bool:
        """Tokens first: a shuffler that opened without them would take uploads of anybody."""
        if record.progress.get("invitations") and not record.progress.get("admitted"):
            return self._admit(record)
        if any(item.session == record.id and item.phase == ADMISSIONS for item in self.party.waiting()):
            return False
        for number in self._shufflers(record.session):
            self.neighbours.sign(record.session.parties[number].url, record.signed)
        self._commit(record, "open")
        return True

    def _admit(self, record: SessionRecord) -> bool:
        spots = [spot.token for spot in read_spots(self.party.kept(record.id, SPOTS))]
        tokens = [*self.releases.invitations(record.session.collection), *spots]
        letters = self.admissions(record, tokens, first_round=0)
        progress = {**record.progress, "admitted": len(letters) // record.session.shuffler_count}
        self.party.commit(record.id, PhaseChange(state=record.state, progress=progress, letters=letters))
        return True

    def admissions(self, record: SessionRecord, tokens: Sequence[bytes], first_round: int) -> list[Letter]:
        """Letters that announce tokens to every shuffler; at least one, which says that tokens are needed."""
        hashes = sorted(admission_hash(token) for token in tokens)
        pieces = [hashes[i : i + MAX_ADMISSIONS] for i in range(0, len(hashes), MAX_ADMISSIONS)] or [[]]
        return [
            letter(
                place_of(record.session, ADMISSIONS, COLLECTOR, number, first_round + i),
                b"".join(piece),
                self.party.identity,
                rows=len(piece),
            )
            for i, piece in enumerate(pieces)
            for number in self._shufflers(record.session)
        ]

    # Closing.

    def ask_to_close(self, record: SessionRecord) -> None:
        """Note that the session is to be closed; the step after sends what is left to send, and closes it."""
        self.party.commit(record.id, PhaseChange(state=record.state, progress={**record.progress, ASKED: True}))

    def close(self, record: SessionRecord) -> None:
        """Tell all shufflers to take no more uploads, and to go on."""
        receivers = list(self._shufflers(record.session))
        letters = text_letters(record.session, CLOSE, COLLECTOR, receivers, {}, self.party.identity)
        progress = {**record.progress, CLOSING: True}
        self.party.commit(record.id, PhaseChange(state=record.state, progress=progress, letters=letters))

    def _collect(self, record: SessionRecord) -> bool:
        if not record.progress.get(CLOSING) or self.awaited(record):
            return False
        letters = self.party.letters(record.id, STATEMENT)
        statements = {each.place.sender: RosterStatement.read(each) for each in letters}
        first = next(iter(statements.values()))
        different = [name for name, each in statements.items() if (each.root, each.n) != (first.root, first.n)]
        if different:
            raise ProtocolViolation(f"{', '.join(different)}: the statement about the slots differs from the others'")
        signatures = {name: each.signature for name, each in statements.items()}
        statement = {"session": record.id, "attempt": ATTEMPT, "root": first.root, "n": first.n}
        check_statements(record.session, statement, signatures, record.pinned)
        if first.n - record.session.spot_checks < record.session.n_min:
            raise SessionAborted(f"roster: {first.n} uploads, fewer than the certificate needs")
        agreed = {"root": first.root, "n": first.n, "signatures": signatures}
        (leaves,) = self.party.letters(record.id, LEAVES)
        # The sender signed the root as well: whoever shows both shows that it contradicts itself.
        SlotLeaves(leaves.body, hash_many).check(first.root, first.n)
        used = [each.place for each in (*letters, leaves)]
        self._commit(record, "shuffle", progress=agreed, used=used, keep={LEAVES: leaves.body})
        return True

    # Vectors, release, and the end.

    def _receive(self, record: SessionRecord) -> bool:
        if self.awaited(record):
            return False
        try:
            transcript, found = self.releases.open(record)
        except (ProtocolViolation, ReleaseRefused) as error:
            # The rows have been seen: that is acknowledged, so that shufflers erase theirs, and never tried again.
            self._seen(record, ABORTED, {"refused": True, "reason": str(error)}, self.releases.transcript_of(record))
            return True
        self.party.commit(record.id, PhaseChange(state=VERIFIED, progress=record.progress))
        told = self.releases.count(record, found)
        self._seen(record, ABORTED if "refused" in told else RELEASED, told, transcript)
        return True

    def _seen(self, record: SessionRecord, state: str, told: dict[str, Any], transcript: Any) -> None:
        receivers = list(self._shufflers(record.session))
        ack = self.releases.ack_of(record)
        letters = text_letters(record.session, "ack", COLLECTOR, receivers, ack, self.party.identity) if ack else []
        self.party.commit(
            record.id,
            PhaseChange(
                state=state,
                progress={**record.progress, **told},
                keep={SPOTS: None} | ({KEPT: json.dumps(transcript.to_json()).encode()} if transcript else {}),
                letters=letters,
                used=output_places(record.session),
            ),
        )

    def _finish(self, record: SessionRecord) -> bool:
        if self.awaited(record):
            return False
        told = published(self.party, record, b"{}")
        keep = {KEPT: json.dumps(told["transcript"]).encode()} if told else {}
        change = PhaseChange(state=record.state, progress=record.progress, keep=keep)
        self.party.end(record.id, change, ending={"state": record.state})
        return True

    # Aborts.

    def _is_called_off(self, record: SessionRecord) -> bool:
        """End a session that a shuffler has aborted, unless everything has arrived that is needed to count it."""
        letters = self.party.letters(record.id, ABORT)
        if not letters or (record.state == SHUFFLING and not self.awaited(record)):
            return False
        told = letters[0].json()
        ending = {name: told.get(name, "") for name in ("reason", "blames", "evidence")}
        self._end(record, {**ending, "by": letters[0].place.sender}, ())
        return True

    def abort(self, record: SessionRecord, reason: str, *, blames: str = "", evidence: Sequence[Any] = ()) -> None:
        """Give up a session, and tell all shufflers why."""
        document = abort_document(record.session, COLLECTOR, reason, blames=blames, evidence=evidence)
        receivers = list(self._shufflers(record.session))
        letters = text_letters(record.session, ABORT, COLLECTOR, receivers, document, self.party.identity)
        ending = {"reason": reason, "blames": blames, "evidence": list(evidence), "by": party_name(COLLECTOR)}
        self._end(record, ending, letters)

    def _end(self, record: SessionRecord, ending: dict[str, Any], letters: Sequence[Letter]) -> None:
        arrived = self.party.arrived(record.id)
        outputs = [(place.round, place.phase, place.sender) for place in output_places(record.session)]
        # Whoever has seen all vectors has seen all reports; the same ones are never asked for a second time.
        ending = {**ending, "seen": all(output in arrived for output in outputs)}
        change = PhaseChange(state=ABORTED, progress=record.progress, letters=letters)
        self.party.end(record.id, change, ending=ending)

    def _commit(self, record: SessionRecord, event: str, **changes: Any) -> None:
        needed = len(output_places(record.session))
        state = CollectorProgress(needed, record.state).after(event).state
        progress = {**record.progress, **changes.pop("progress", {})}
        self.party.commit(record.id, PhaseChange(state=state, progress=progress, **changes))


def _needs(record: SessionRecord) -> list[tuple[int, str, str]]:
    """(round, phase, sender) of the letters that the next step needs."""
    session = record.session
    names = [party_name(number) for number in range(1, session.shuffler_count + 1)]
    if record.state == COLLECTING:
        statements = [(0, STATEMENT, name) for name in names]
        return [*statements, (0, LEAVES, party_name(LEAVES_SENDER))] if record.progress.get(CLOSING) else []
    if record.state in (SHUFFLING, VERIFIED):
        outputs = [(place.round, place.phase, place.sender) for place in output_places(session)]
        counts = [] if session.mode in RESHARING else [(0, COUNTS, name) for name in names]
        return [*outputs, *counts, *((0, ENVELOPES, name) for name in names)]
    if record.state in (RELEASED, ABORTED):
        return [(0, ERASURE, name) for name in names]
    return []
