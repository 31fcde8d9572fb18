"""What advances the sessions of a shuffler: a thread that makes the next step as soon as all it needs is stored.

State decides what is done, never a timer: after a crash the driver finds the last stored phase and goes on. Time only
ends sessions: who keeps the others waiting for longer than a phase may take is named in an abort. Durations are
measured from when this process first saw a phase, on a monotonic clock.
"""

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import ProtocolViolation, SessionAborted, StorageUnavailable, TacitError
from tacit.hosting.clock import Clock
from tacit.shuffle.protocol.machine import ShufflerProgress
from tacit.shuffle.protocol.parties import COLLECTOR, party_name
from tacit.shuffle.protocol.roster import Roster
from tacit.shuffle.protocol.session import RESHARING
from tacit.shuffle.protocol.transcript import erasure_note
from tacit.shuffler import joining
from tacit.shuffler.joining import Offer
from tacit.shuffler.letters import ABORT, ACK, ATTEMPT, ERASURE, Letter, abort_document, text_letters
from tacit.shuffler.party_store import ROUNDS, PartyStore, PhaseChange, SessionRecord
from tacit.shuffler.post import Courier
from tacit.shuffler.steps import StepMaker

LOG = logging.getLogger("tacit.shuffler")
_LOOK_SECONDS = 1.0
_PARTY = re.compile(r"\b(?:collector|shuffler_\d+)\b")
_MOST_REASON = 500
_END_PHASES = 3
"""Who has sent its last rows waits for the last phases of others and for the collector to open all rows."""


class ShufflerDriver:
    """Advances all sessions of a store. `arrived` and `wake` may be called from any thread."""

    def __init__(self, store: PartyStore, courier: Courier, offer: Offer, *, clock: Clock | None = None) -> None:
        """Drive a store; `courier` delivers what the steps write."""
        self.store, self.courier, self.offer = store, courier, offer
        self.steps = StepMaker(store)
        self._clock = clock or Clock()
        self._since: dict[str, tuple[Any, float]] = {}
        self._rosters: dict[str, Roster] = {}
        # One step or abort at a time; receiving letters goes on meanwhile.
        self._working = threading.RLock()
        self._change, self._is_woken, self._is_stopping = threading.Condition(), False, False
        self._thread = threading.Thread(target=self._run, name="tacit-shuffler", daemon=True)

    def start(self) -> None:
        """Go on with all sessions that have not ended."""
        self._thread.start()
        self.wake()

    def stop(self) -> None:
        """Finish the step under way, and end."""
        with self._change:
            self._is_stopping = True
            self._change.notify()
        if self._thread.is_alive():
            self._thread.join()
        self.courier.stop()

    def wake(self, session: str = "") -> None:
        """Look at all sessions again, as something has arrived."""
        del session
        with self._change:
            self._is_woken = True
            self._change.notify()

    def join(self, document: Mapping[str, Any]) -> str:
        """Join a session or open it; returns the own signature."""
        signature = joining.join(self.store, self.offer, document, self._clock.now())
        self.wake()
        return signature

    def roster(self, session: str) -> Roster | None:
        """The slots that take part, for proofs; None before they are agreed and after they are erased."""
        known = self._rosters.get(session) or self.steps.roster(session)
        with self._working:
            record = self.store.session(session)
            if known is None or record is None or record.is_over:
                return None
            # Its hashes take a while to compute, so that those of one session are kept.
            if session not in self._rosters:
                self._rosters = {session: known}
            return known

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._is_woken or self._is_stopping, timeout=_LOOK_SECONDS)
                self._is_woken = False
                if self._is_stopping:
                    return
            try:
                self.look()
            except StorageUnavailable as error:
                # The disk may be full or away for a while; what was stored is still there.
                LOG.error("shuffler: %s", error)

    def look(self) -> None:
        """Make all steps that can be made, and end what took too long."""
        for record in self.store.sessions(only_live=True):
            try:
                while self._advance(record.id):
                    if self._is_stopping:
                        return
                self._check_time(record.id)
            except StorageUnavailable:
                raise
            except Exception as error:
                # A session that nobody foresaw must not hold up the others; what is secret of it is erased.
                LOG.error("session %s: unexpected %s", record.id[:16], type(error).__name__)
                self.abort(record.id, f"{party_name(record.party)}: it could not go on")
        self.courier.wake()

    def _advance(self, session: str) -> bool:
        """Make one step; whether there was one."""
        with self._working:
            record = self.store.session(session)
            if record is None or record.is_over:
                return False
            try:
                if (aborts := self.store.letters(session, ABORT)) and not self.store.letters(session, ACK):
                    self._follow(record, aborts[0])
                    return False
                with self.store.meter.spent_on(ROUNDS):
                    change = self.steps.make(record)
            except (ProtocolViolation, SessionAborted) as error:
                self._abort(record, str(error), _blamed(error), getattr(error, "evidence", ()))
                return False
            if change is None:
                return False
            # Nothing secret outlives the acknowledgement: the state and the erasure are one transaction.
            if change.state == "ERASED":
                self._rosters.pop(session, None)
                self.store.end(session, change, {"reason": "acknowledged"})
            else:
                self.store.commit(session, change)
            self.courier.wake()
            return change.state != "ERASED"

    # Endings.

    def violated(self, session: str, party: str, error: ProtocolViolation) -> None:
        """Abort, as a party signed two different bodies for one place."""
        self.abort(session, str(error), blames=party, evidence=error.evidence)

    def refused(self, session: str, receiver: str) -> None:
        """Abort, as a party refuses a letter for good."""
        self.abort(session, f"{receiver}: it refused a letter", blames=receiver)

    def abort(self, session: str, reason: str, *, blames: str = "", evidence: Sequence[Any] = ()) -> None:
        """Give a session up: erase, and tell everybody why."""
        with self._working:
            record = self.store.session(session)
            # Several reasons to give up may come at once; the first one counts.
            if record is not None and not record.is_over:
                self._abort(record, reason, blames, evidence)

    def _abort(self, record: SessionRecord, reason: str, blames: str, evidence: Sequence[Any]) -> None:
        session, identity = record.session, self.store.identity
        document = abort_document(session, record.party, reason[:_MOST_REASON], blames=blames, evidence=evidence)
        others = [party for party in range(session.shuffler_count + 1) if party != record.party]
        self._end(record, document, text_letters(session, ABORT, record.party, others, document, identity))

    def _follow(self, record: SessionRecord, taken: Letter) -> None:
        """Another party has given up."""
        document = taken.json()
        reason, blames = str(document.get("reason", ""))[:_MOST_REASON], str(document.get("blames", ""))[:20]
        ending = {
            "reason": reason,
            "blames": blames,
            "by": taken.place.sender,
            "evidence": document.get("evidence", []),
        }
        self._end(record, ending, [])

    def _end(self, record: SessionRecord, ending: Mapping[str, Any], letters: Sequence[Letter]) -> None:
        LOG.warning("session %s: aborted: %s", record.id[:16], ending["reason"])
        identity = self.store.identity
        note = erasure_note(record.session, ATTEMPT, record.party, identity)
        erasure = text_letters(record.session, ERASURE, record.party, [COLLECTOR], note, identity)
        state = ShufflerProgress(record.state).after("abort").state
        # Respondents ask for this before they take part again: what has left this shuffler may have been seen.
        ending = {**ending, "had_sent": record.state == "SENT"}
        self._rosters.pop(record.id, None)
        self.store.end(record.id, PhaseChange(state=state, letters=[*letters, *erasure]), ending)
        self.courier.wake()

    # Time.

    def _check_time(self, session: str) -> None:
        """Abort a session whose present phase has lasted too long, and name who is late."""
        with self._working:
            record = self.store.session(session)
            if record is None or record.is_over:
                self._since.pop(session, None)
                return
            phase = (record.state, tuple(sorted(record.progress.items())))
            before = self._since.get(session)
            if before is None or before[0] != phase:
                before = self._since[session] = (phase, self._clock.seconds())
            # Only somebody whom the next step waits for can be late; a slow step of one's own is nobody's fault.
            late = self.steps.awaited(record)
            if late and self._clock.seconds() - before[1] > _allowed_seconds(record):
                limit = record.session.phase_seconds
                self._abort(record, f"{', '.join(late)}: late by more than {limit} seconds", late[0], ())
            elif not late and _is_overdue(record, self._clock.now()):
                name = party_name(COLLECTOR)
                self._abort(record, f"{name}: the session should have closed long ago", name, ())


def _allowed_seconds(record: SessionRecord) -> float:
    """How long the present phase may take: a hop of a chain waits for those before it, or for those behind it."""
    session, limit = record.session, record.session.phase_seconds
    if session.mode not in RESHARING and record.state in ("ROUND", "SENT"):
        hops = record.party - 1 if record.state == "ROUND" else session.shuffler_count - record.party + 1
        return limit * max(1, hops)
    return limit * (_END_PHASES if record.state == "SENT" else 1)


def _is_overdue(record: SessionRecord, now: float) -> bool:
    """Whether a collector has forgotten a session, so that shares lie about for nothing."""
    closes = record.session.closes
    waits = record.state in ("JOINED", "COLLECTING") and not record.progress
    return waits and now > closes + record.session.phase_seconds


def _blamed(error: TacitError) -> str:
    """The party that a message names first, if it accuses anybody."""
    found = _PARTY.search(str(error)) if isinstance(error, ProtocolViolation) else None
    return found[0] if found else ""
