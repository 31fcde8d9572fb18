"""What a shuffler does next in a session: each step reads what is stored, and makes one change of one transaction.

    COLLECTING            until the collector's `close`; then no upload is taken any more
    COLLECTING, closing   its own slots go to the other shufflers
    COLLECTING, closed    until all slots are there: the roster is agreed, signed, and sent to everybody
    FROZEN                until all statements are there and equal: shares become a vector, the first round begins
    ROUND                 until what the next step of the round needs is there; in a chain, the rows of the hop before
    SENT                  until the collector's `ack`: everything is erased

A step that cannot be made yet returns None. What no honest party sends raises ProtocolViolation, too few respondents
SessionAborted; `driver` aborts the session then.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tacit.arrays import U8
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.envelope import LABEL as ENVELOPE_LABEL
from tacit.shuffle.crypto.envelope import Envelope
from tacit.shuffle.crypto.signing import check_signature, is_signed
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.leaves import check_statements
from tacit.shuffle.protocol.machine import ShufflerProgress
from tacit.shuffle.protocol.onion import pass_on
from tacit.shuffle.protocol.opening import ACK_LABEL
from tacit.shuffle.protocol.parties import COLLECTOR, party_name, party_names
from tacit.shuffle.protocol.resharing import (
    COMMIT,
    RESHARE,
    REVEAL,
    Need,
    Outgoing,
    Setup,
    ShareState,
    begin,
    gather,
    step,
)
from tacit.shuffle.protocol.roster import Roster, agree, cut_slots
from tacit.shuffle.protocol.sealing import SLOT_BYTES, onion_bytes
from tacit.shuffle.protocol.session import RESHARING, ShuffleSession
from tacit.shuffle.protocol.shares import Vector, as_rows
from tacit.shuffle.protocol.transcript import HOP_PHASE, erasure_note, expected_places
from tacit.shuffler.letters import (
    ACK,
    ADMISSION_BYTES,
    ADMISSIONS,
    ATTEMPT,
    CLOSE,
    COUNTS,
    ENVELOPES,
    ERASURE,
    LEAVES,
    LEAVES_SENDER,
    SLOTS,
    STATEMENT,
    Letter,
    RosterStatement,
    letter,
    place_of,
    text_letters,
)
from tacit.shuffler.modes import algebra_of, first_vector, takes_uploads
from tacit.shuffler.party_store import PartyStore, PhaseChange, SessionRecord

CLOSING, CLOSED = "closing", "closed"
_ROSTER, _MACHINE = "roster", "machine"


class StepMaker:
    """Makes the steps of one shuffler over its store."""

    def __init__(self, store: PartyStore) -> None:
        """Hold the store."""
        self._store = store
        self._slots = ("", b"")

    def make(self, record: SessionRecord) -> PhaseChange | None:
        """The next change of a session; None if something is still missing."""
        self._admit(record)
        if record.state == "COLLECTING":
            return self._collecting(record)
        if record.state == "FROZEN":
            return self._frozen(record)
        if record.state == "ROUND":
            return self._round(record) if record.session.mode in RESHARING else self._hop(record)
        return self._sent(record) if record.state == "SENT" else None

    def awaited(self, record: SessionRecord) -> list[str]:
        """The parties without whose letters the next step cannot be made."""
        return sorted({sender for _, _, sender in self.missing(record)})

    def missing(self, record: SessionRecord) -> list[tuple[int, str, str]]:
        """(round, phase, sender) of the letters without which the next step cannot be made."""
        needs = self._needs(record)
        arrived = self._store.arrived(record.id) if needs else set[tuple[int, str, str]]()
        return [need for need in needs if need not in arrived]

    def _needs(self, record: SessionRecord) -> list[tuple[int, str, str]]:
        """(round, phase, sender) of the letters that the next step needs, as far as somebody is late with them."""
        session, others = record.session, self._others(record)
        if record.state == "COLLECTING" and record.progress.get("phase") == CLOSED:
            return [(0, SLOTS, party_name(party)) for party in _slot_senders(session) if party != record.party]
        if record.state == "FROZEN":
            return [(0, STATEMENT, party_name(party)) for party in others]
        if record.state == "SENT":
            return [(0, ACK, party_name(COLLECTOR))]
        if record.state != "ROUND":
            return []
        if session.mode not in RESHARING:
            return [(record.party - 2, HOP_PHASE, party_name(record.party - 1))] if record.party > 1 else []
        return [(need.round, need.phase, party_name(need.sender)) for need in self._state(record, ()).needs()]

    def _others(self, record: SessionRecord) -> list[int]:
        return [party for party in range(1, record.session.shuffler_count + 1) if party != record.party]

    def _admit(self, record: SessionRecord) -> None:
        for taken in self._store.letters(record.id, ADMISSIONS):
            hashes = [
                taken.body[i : i + ADMISSION_BYTES] for i in range(0, len(taken.body), ADMISSION_BYTES)
            ]  # fmt: skip
            self._store.add_admissions(record.id, hashes, taken.place)

    # Slots and statements.

    def _collecting(self, record: SessionRecord) -> PhaseChange | None:
        phase = record.progress.get("phase", "")
        if phase == CLOSED:
            return self._freeze(record)
        if phase == CLOSING:
            return self._show_slots(record)
        if not self._store.letters(record.id, CLOSE):
            return None
        # Uploads end in a transaction of their own, so that no slot can come after the list of slots was read.
        return PhaseChange(state="COLLECTING", progress={"phase": CLOSING})

    def _show_slots(self, record: SessionRecord) -> PhaseChange:
        session, sent = record.session, list[Letter]()
        if record.party in _slot_senders(session):
            body = self._own_slots(record)
            places = [place_of(session, SLOTS, record.party, other) for other in self._others(record)]
            rows = len(body) // SLOT_BYTES
            sent = [letter(place, body, self._store.identity, rows=rows) for place in places]
        return PhaseChange(state="COLLECTING", progress={"phase": CLOSED}, letters=sent)

    def _own_slots(self, record: SessionRecord) -> bytes:
        """The slots of a session that takes no more uploads; read once, as they are needed twice."""
        if self._slots[0] != record.id:
            self._slots = (record.id, self._store.slots(record.id))
        return self._slots[1]

    def _freeze(self, record: SessionRecord) -> PhaseChange | None:
        session, identity = record.session, self._store.identity
        if self.awaited(record):
            return None
        taken = self._store.letters(record.id, SLOTS)
        bodies = [_checked_slots(each) for each in taken]
        if record.party in _slot_senders(session):
            bodies.append(self._own_slots(record))
        # In a chain one shuffler knows the slots, and the others sign what it showed them.
        roster = agree(session, bodies)
        heard = tuple(each.envelope.to_json() for each in taken)
        signature = roster.sign(session, ATTEMPT, identity)
        self._slots = ("", b"")
        statement = RosterStatement(roster.root, roster.n, signature, heard).to_json()
        everybody = [COLLECTOR, *self._others(record)]
        letters = text_letters(session, STATEMENT, record.party, everybody, statement, identity)
        if record.party == LEAVES_SENDER:
            # Slots are erased in the end; their hashes let respondents find theirs for ever.
            place = place_of(session, LEAVES, record.party, COLLECTOR)
            letters.append(letter(place, roster.leaves, identity, rows=roster.n))
        return PhaseChange(
            state=ShufflerProgress(record.state).after("freeze").state,
            keep={_ROSTER: roster.content, STATEMENT: json.dumps(statement).encode()},
            letters=letters,
            used=[each.place for each in taken],
        )

    def roster(self, session: str) -> Roster | None:
        """The slots that take part, from the agreement to the end of the session."""
        content = self._store.kept(session, _ROSTER)
        return None if content is None else Roster(content)

    def _frozen(self, record: SessionRecord) -> PhaseChange | None:
        if self.awaited(record):
            return None
        # Nobody shuffles before everybody has signed the same slots: shares of different rows would not add up, and
        # a shuffler that shows others a smaller crowd would learn who is in the difference.
        taken = self._store.letters(record.id, STATEMENT)
        own = json.loads(self._store.kept(record.id, STATEMENT) or b"{}")
        self._check_statements(record, own, {each.place.sender: RosterStatement.read(each) for each in taken})
        progress = ShufflerProgress(record.state)
        if record.session.mode not in RESHARING:
            after = progress.after("begin", phase=HOP_PHASE)
            return PhaseChange(state=after.state, progress={"phase": HOP_PHASE}, used=[each.place for each in taken])
        return self._begin(record, progress)

    def _check_statements(
        self, record: SessionRecord, own: Mapping[str, Any], others: Mapping[str, RosterStatement]
    ) -> None:
        session = record.session
        agreed = {"session": session.id, "attempt": ATTEMPT, "root": own["root"], "n": own["n"]}
        different = [name for name, each in others.items() if (each.root, each.n) != (own["root"], own["n"])]
        if different:
            raise _split_brain(record, [own["slots"], *(each.heard for each in others.values())], different)
        signatures = {name: each.signature for name, each in others.items()}
        signatures[party_name(record.party)] = own["signature"]
        check_statements(session, agreed, signatures, record.pinned)

    # Rounds.

    def _begin(self, record: SessionRecord, progress: ShufflerProgress) -> PhaseChange:
        session, stream = record.session, AesStream.from_system()
        vector = first_vector(session, record.party, self._shares(record), stream)
        state, outgoing = begin(self._setup(record), vector, stream)
        after = progress.after("begin", round_number=state.round, phase=state.phase)
        return self._change(record, after, state, outgoing, (), drops_uploads=True)

    def _shares(self, record: SessionRecord) -> U8:
        """Shares in the order of the roster; both are in the order of slots."""
        roster, held = self._store.kept(record.id, _ROSTER) or b"", self._store.uploads(record.id)
        # Nearly always every upload takes part, and slots need not be looked at.
        if held.slots == roster:
            return held.shares
        wanted = set(cut_slots(roster))
        return held.shares[[slot in wanted for slot in cut_slots(held.slots)]]

    def _round(self, record: SessionRecord) -> PhaseChange | None:
        bare = self._state(record, ())
        arrived = self._store.arrived(record.id)
        needs = bare.needs()
        if any((need.round, need.phase, party_name(need.sender)) not in arrived for need in needs):
            return None
        # Showing a seed leaves the rows as they are, so that they are not read.
        vector = self._vector(record, bare) if bare.phase == REVEAL else ()
        # Fresh randomness even after a crash: what the lost step had drawn was stored nowhere, and nobody saw it.
        state, outgoing = step(self._state(record, vector), self._bodies(record, needs), AesStream.from_system())
        event = "send" if state.is_done else "step"
        progress = ShufflerProgress(record.state, bare.round, bare.phase)
        after = progress.after(event, round_number=state.round, phase=state.phase)
        if bare.phase == COMMIT:
            return self._change(record, after, state, outgoing, needs, keeps_rows=True)
        if bare.phase == RESHARE and state.vector and state.setup.algebra.is_cheap:
            # Summands are mostly seeds: they stay in place of their sum until the rows are permuted.
            return self._change(record, after, replace(state, vector=()), outgoing, ())
        used = [*needs, *(_before(bare).needs() if bare.phase == REVEAL and bare.round else [])]
        return self._change(record, after, state, outgoing, used)

    def _bodies(self, record: SessionRecord, needs: Sequence[Need]) -> dict[Need, bytes]:
        return {need: self._store.body(self._place(record, need)) or b"" for need in needs}

    def _change(
        self,
        record: SessionRecord,
        after: ShufflerProgress,
        state: ShareState,
        outgoing: Sequence[Outgoing],
        used: Sequence[Need],
        *,
        drops_uploads: bool = False,
        keeps_rows: bool = False,
    ) -> PhaseChange:
        """State, vector and letters of a step, for one transaction."""
        identity, session = self._store.identity, record.session
        letters, own = list[Letter](), list[tuple[Any, bytes]]()
        for each in outgoing:
            place = place_of(session, each.phase, record.party, each.receiver, each.round)
            if each.receiver == record.party:
                own.append((place, each.body.tobytes()))
            else:
                letters.append(letter(place, each.body.tobytes(), identity, rows=len(each.body)))
        if state.is_done:
            letters += self._last_letters(record, letters)
        # The old vector goes in the same transaction that stores the new one, and with it the old seed.
        matrices = dict[str, bytes | None]({} if keeps_rows else {"vector 0": None, "vector 1": None})
        matrices |= {f"vector {i}": rows.tobytes() for i, rows in enumerate(state.vector)}
        return PhaseChange(
            state=after.state,
            progress={"round": after.round, "phase": after.phase, "rows": state.count},
            keep={**matrices, _MACHINE: json.dumps(state.to_json()).encode()},
            letters=letters,
            own=own,
            used=[self._place(record, need) for need in used],
            drops_uploads=drops_uploads,
        )

    def _last_letters(self, record: SessionRecord, fresh: Sequence[Letter]) -> list[Letter]:
        """All envelopes that it sent, for the transcript."""
        wanted = set(expected_places(record.session, ATTEMPT))
        envelopes = [*self._store.sent(record.id), *(each.envelope for each in fresh)]
        document = {"envelopes": [each.to_json() for each in envelopes if each.place in wanted]}
        return text_letters(record.session, ENVELOPES, record.party, [COLLECTOR], document, self._store.identity)

    def _setup(self, record: SessionRecord) -> Setup:
        session = record.session
        return Setup(session.id_bytes, ATTEMPT, record.party, session.shuffler_count, algebra_of(session))

    def _state(self, record: SessionRecord, vector: Vector) -> ShareState:
        document = json.loads(self._store.kept(record.id, _MACHINE) or b"{}")
        return ShareState.from_json(self._setup(record), document, vector)

    def _vector(self, record: SessionRecord, bare: ShareState) -> Vector:
        """The own rows, as they were kept or from the summands that were."""
        kept = [self._store.kept(record.id, f"vector {i}") for i in range(2)]
        rows = tuple(as_rows(content, bare.count) for content in kept if content is not None)
        before = _before(bare)
        return rows or gather(before, self._bodies(record, before.needs()))

    def _place(self, record: SessionRecord, need: Need) -> Any:
        return place_of(record.session, need.phase, need.sender, record.party, need.round)

    # Chains.

    def _hop(self, record: SessionRecord) -> PhaseChange | None:
        """Take the whole batch, peel, mix, and pass it on; the last hop passes it to the collector."""
        session, party = record.session, record.party
        if self.awaited(record):
            return None
        before = place_of(session, HOP_PHASE, party - 1, party, party - 2) if party > 1 else None
        if before is None:
            onions = [row.tobytes() for row in self._shares(record)]
        else:
            onions = _onions(session, party, self._store.body(before) or b"")
        key = next(key for key in self._store.seal_keys() if key.public.hex() == session.parties[party].seal_key)
        passed = pass_on(session, party, key, onions, AesStream.from_system(), attempt=ATTEMPT)
        receiver = party + 1 if party < session.shuffler_count else COLLECTOR
        place = place_of(session, HOP_PHASE, party, receiver, party - 1)
        identity = self._store.identity
        sent = [letter(place, b"".join(passed.rows), identity, rows=len(passed.rows))]
        sent += text_letters(session, COUNTS, party, [COLLECTOR], passed.sign(identity), identity)
        return PhaseChange(
            state=ShufflerProgress(record.state, 0, HOP_PHASE).after("send").state,
            progress={"rows": len(passed.rows)},
            letters=[*sent, *self._last_letters(record, sent)],
            used=[before] if before is not None else [],
            drops_uploads=True,
        )

    # The end.

    def _sent(self, record: SessionRecord) -> PhaseChange | None:
        acks = self._store.letters(record.id, ACK)
        if not acks:
            return None
        document = acks[0].json()
        signed = {name: value for name, value in document.items() if name != "signature"}
        name = party_name(COLLECTOR)
        check_signature(record.pinned, name, ACK_LABEL, signed, str(document.get("signature", "")))
        if (signed.get("session"), signed.get("attempt")) != (record.id, ATTEMPT):
            raise ProtocolViolation("collector: its acknowledgement is about another session")
        note = erasure_note(record.session, ATTEMPT, record.party, self._store.identity)
        return PhaseChange(
            state=ShufflerProgress(record.state).after("acknowledged").state,
            progress={"rows": signed.get("rows", 0)},
            letters=text_letters(record.session, ERASURE, record.party, [COLLECTOR], note, self._store.identity),
        )


def _before(state: ShareState) -> ShareState:
    """The same shuffler when it waited for the summands of its present rows."""
    return replace(state, round=state.round - 1, phase=RESHARE)


def _slot_senders(session: ShuffleSession) -> list[int]:
    """Who has slots of its own."""
    return [party for party in range(1, session.shuffler_count + 1) if takes_uploads(session, party)]


def _checked_slots(taken: Letter) -> bytes:
    if len(taken.body) % SLOT_BYTES:
        raise ProtocolViolation(f"{taken.place.sender}: its slots are not {SLOT_BYTES} bytes each")
    return taken.body


def _onions(session: ShuffleSession, party: int, body: bytes) -> list[bytes]:
    size = onion_bytes(session, party)
    if len(body) % size:
        raise ProtocolViolation(f"{party_name(party - 1)}: its rows are not {size} bytes each")
    return [body[i : i + size] for i in range(0, len(body), size)]


def _split_brain(
    record: SessionRecord, heard: Sequence[Sequence[Mapping[str, Any]]], different: Sequence[str]
) -> ProtocolViolation:
    """Why statements differ: two envelopes of one shuffler with different slots, if there are any, name the guilty."""
    seen: dict[str, Envelope] = {}
    names = party_names(record.session.shuffler_count)
    for envelope in (Envelope.from_json(item) for items in heard for item in items):
        place = envelope.place
        known = place.session == record.id and place.phase == SLOTS and place.sender in names
        key = record.pinned.get(place.sender, b"")
        if not known or not is_signed(key, ENVELOPE_LABEL, envelope.document, envelope.signature):
            continue
        first = seen.setdefault(place.sender, envelope)
        if first.body != envelope.body:
            return ProtocolViolation(
                f"{place.sender}: it showed different slots to different shufflers; abort, and keep both envelopes",
                evidence=(first.to_json(), envelope.to_json()),
            )
    return ProtocolViolation(f"{', '.join(different)}: the statement about the slots differs from the own one; abort")
