"""Opening, checking and counting what came out of a shuffle: each step can be repeated after a crash.

Nothing is stored between the vectors and the tally. The batch id is derived from the session, so that whatever is
counted is counted once; and the acknowledgement is the same at every attempt.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from tacit.collector.collections.active import Active, Shelf
from tacit.collector.ports import CLOSED, NewBatch, Store
from tacit.collector.shuffle.opening import SessionKeys, open_all, rows_of
from tacit.collector.shuffle.spots import KEPT as SPOTS
from tacit.collector.shuffle.spots import included_words, read_spots
from tacit.collector.shuffle.transcripts import dropped_rows, hops_of, put_together
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.envelope import MessagePlace
from tacit.shuffle.protocol.opening import OpenedRows, Released, acknowledge, release
from tacit.shuffle.protocol.parties import COLLECTOR, party_names, rounds_of
from tacit.shuffle.protocol.resharing import OUTPUT
from tacit.shuffle.protocol.session import RESHARING, ShuffleSession
from tacit.shuffle.protocol.transcript import HOP_PHASE, Transcript, leaves_of, verify
from tacit.shuffle.protocol.word_arrays import decode_words
from tacit.shuffler.letters import ATTEMPT, place_of
from tacit.shuffler.party_store import PartyStore, SessionRecord

DGK = "dgk key"
"""The name under which the private key of mode peos-dgk is kept, until the session ends."""
_BATCH_BYTES = 16


def output_places(session: ShuffleSession) -> list[MessagePlace]:
    """The letters that bring rows to the collector: of the last hiders, or of the last hop."""
    if session.mode in RESHARING:
        last = len(rounds_of(session.shuffler_count)) - 1
        return [place_of(session, OUTPUT, party, COLLECTOR, last) for party in rounds_of(session.shuffler_count)[-1]]
    return [place_of(session, HOP_PHASE, session.shuffler_count, COLLECTOR, session.shuffler_count - 1)]


def batch_of(session: str) -> bytes:
    """The batch id under which a session is counted."""
    return sha256(b"tacit shuffled batch\x00" + bytes.fromhex(session)).digest()[:_BATCH_BYTES]


@dataclass(eq=False)
class Releases:
    """Opens sessions, and hands their reports to the store of the collector."""

    party: PartyStore
    store: Store
    shelf: Shelf
    touch: Callable[[str], None]
    """Called with a collection that has something to fold."""
    opened_rows: dict[str, int] = field(default_factory=dict[str, int])
    """By session, how many rows have been opened: for whoever watches."""
    _opened: dict[str, OpenedRows] = field(default_factory=dict[str, OpenedRows])

    def invitations(self, collection: str) -> list[bytes]:
        """The stored hashes of a collection's invitations, which admit to its sessions."""
        return self.store.invitations(collection)

    def open(self, record: SessionRecord) -> tuple[Transcript, Released]:
        """Open all rows and check everything; ReleaseRefused or ProtocolViolation if something is wrong."""
        session, n = record.session, int(record.progress["n"])
        # The order matters: rows that were seen are acknowledged even if a check after this refuses them.
        opened = self._open_rows(record)
        transcript = put_together(self.party, record, self._ack(record, opened))
        verify(transcript, record.signed, record.pinned)
        spots = read_spots(self.party.kept(record.id, SPOTS))
        words = included_words(spots, leaves_of(transcript))
        hops = [] if session.mode in RESHARING else hops_of(self.party, record)
        found = release(session, opened, n, words, dropped=dropped_rows(hops))
        # Enough respondents came, so that all were due; whoever understated its uploads had them held back.
        few = f"{len(words)} of {session.spot_checks} spot checks took part"
        alarms = found.alarms if len(words) == session.spot_checks else (*found.alarms, few)
        return transcript, replace(found, alarms=alarms)

    def _open_rows(self, record: SessionRecord) -> OpenedRows:
        session, n = record.session, int(record.progress["n"])
        names = party_names(session.shuffler_count)
        bodies = {names.index(place.sender): self.party.body(place) or b"" for place in output_places(session)}
        rows = rows_of(session, bodies, n + session.fake_rows)
        opened = open_all(self._keys(session), rows, lambda done: self._note(record.id, done))
        self._opened[record.id] = opened
        return opened

    def _note(self, session: str, done: int) -> None:
        self.opened_rows[session] = done

    def _keys(self, session: ShuffleSession) -> SessionKeys:
        found = [key.private for key in self.party.seal_keys() if key.public.hex() == session.collector.seal_key]
        dgk = self.party.kept(session.id, DGK)
        if not found or (session.dgk is not None and dgk is None):
            raise ProtocolViolation("collector: it has lost the key of the session; restore it from a backup")
        return SessionKeys(session, found[0], None if dgk is None else json.loads(dgk))

    def _ack(self, record: SessionRecord, opened: OpenedRows) -> dict[str, Any]:
        return acknowledge(record.session, ATTEMPT, opened, self.party.identity)

    def ack_of(self, record: SessionRecord) -> dict[str, Any] | None:
        """The acknowledgement of rows that were opened; None if they could not even be put together."""
        opened = self._opened.get(record.id)
        return None if opened is None else self._ack(record, opened)

    def transcript_of(self, record: SessionRecord) -> Transcript | None:
        """The transcript of a session that was refused, if one can be made of what arrived."""
        ack = self.ack_of(record)
        try:
            return None if ack is None else put_together(self.party, record, ack)
        except ProtocolViolation:
            return None

    def count(self, record: SessionRecord, found: Released) -> dict[str, Any]:
        """Hand the reports to the store as one batch, once; returns what the operator is told."""
        active = self._active(record)
        payload = decode_words(active.mechanism, found.words).tobytes()
        batch = NewBatch(active.id, batch_of(record.id), payload, len(found.words), {})
        # Past the writer, whose queue is for many small batches; the store knows this one again by its id.
        (outcome,) = self.store.add_batches([batch])
        if outcome == CLOSED:
            return {"refused": True, "reason": "the collection was closed before its reports arrived"}
        self.touch(active.id)
        return {"respondents": found.n, "fakes": found.fakes, "alarms": list(found.alarms)}

    def _active(self, record: SessionRecord) -> Active:
        active = self.shelf.find(record.session.collection)
        if active is None:
            raise ProtocolViolation("collector: the collection of the session is not in its database any more")
        return active


def told(progress: Mapping[str, Any]) -> dict[str, Any]:
    """What is shown of a session's progress: no signature, no root."""
    return {name: progress[name] for name in ("n", "respondents", "fakes", "alarms", "reason") if name in progress}
