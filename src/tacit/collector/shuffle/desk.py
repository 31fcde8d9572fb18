"""The collector's desk for shuffled collections: opens sessions, takes letters, drives them on, and says how they are.

One thread drives all sessions: it makes every step that can be made, then waits to be woken by a letter or an
operator. What it does is in `steps`; that letters arrive and leave is the business of `tacit.shuffler.post`.
"""

import json
import logging
import threading
from collections.abc import AsyncIterable, Callable, Mapping
from contextlib import nullcontext
from typing import Any

from tacit.client.sealed.posting import SealedPost
from tacit.client.transport import Transport, Unreachable
from tacit.collector.collections.active import Active, Shelf
from tacit.collector.ports import Store
from tacit.collector.shuffle.neighbours import Neighbours, SessionRefused
from tacit.collector.shuffle.release import DGK, Releases, told
from tacit.collector.shuffle.spots import SpotPlanter
from tacit.collector.shuffle.steps import (
    ABORTED,
    ASKED,
    CLOSING,
    COLLECTING,
    DRAFT,
    PUBLISHED,
    RELEASED,
    CollectorSteps,
)
from tacit.collector.shuffle.transcripts import published
from tacit.collector.store.party_copies import RESTORED
from tacit.device.numbers.coins import SystemCoins
from tacit.errors import InvalidSpec, ProtocolViolation, SessionAborted, TacitError
from tacit.hosting.clock import Clock
from tacit.hosting.problems import Problem, as_problem
from tacit.shuffle.protocol.parties import COLLECTOR, party_name
from tacit.shuffle.protocol.session import DGK_SIZES, PEOS, SignedSession
from tacit.shuffler.party_store import PartyStore, PhaseChange, SessionRecord
from tacit.shuffler.post import Courier, PostReply, Reception
from tacit.wire.document import Collection
from tacit.wire.sessions import certificate_of, make_session, terms_of
from tacit.wire.shuffled import MAX_SESSION_DAYS

LOG = logging.getLogger("tacit.collector")

SESSION_DAYS = 30
"""How long a session stays open, if nobody says otherwise or closes it."""
_DAY_SECONDS = 86_400
_LONGEST_REST = 60.0
_LATE = 2
"""A phase of shufflers may take so many times `phase_seconds` before the collector gives up: they give up first."""


class ShuffleDesk:
    """Sessions of all shuffled collections of one collector."""

    def __init__(
        self,
        party: PartyStore,
        store: Store,
        shelf: Shelf,
        *,
        touch: Callable[[str], None],
        clock: Clock | None = None,
        neighbours: Neighbours | None = None,
        pause_seconds: float = 1.0,
        phase_seconds: int = 600,
    ) -> None:
        """Keep sessions in `party`; `touch` hears of collections with something to fold."""
        self.party, self._shelf, self._store = party, shelf, store
        self.url = ""
        """The address at which shufflers reach this collector; set by whoever serves it."""
        self._clock = clock or Clock()
        self._now = self._clock.now
        self._pause, self._phase_seconds = pause_seconds, phase_seconds
        self._neighbours = neighbours or Neighbours()
        self._releases = Releases(party, store, shelf, touch)
        self._planter = SpotPlanter(party, self._neighbours, SealedPost(Transport(), SystemCoins()))
        self._steps = CollectorSteps(party, self._neighbours, self._releases)
        self._courier = Courier(party, refused=self._letter_refused)
        self._reception = Reception(party, self._letter_arrived, self._equivocated)
        self._lock, self._woken, self._stopping = threading.RLock(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        # By session: why it does not go on, and what is being waited for and since when.
        self._notes, self._since = dict[str, str](), dict[str, tuple[Any, float]]()
        # By collection or session: how often shufflers could not be reached, and when to try again.
        self._failures: dict[str, tuple[int, float]] = {}

    @property
    def identity(self) -> str:
        """The public key that drafts of shuffled collections name as the collector's."""
        return self.party.identity.public.hex()

    # Life.

    def start(self) -> None:
        """Drive sessions from now on; a second call does nothing."""
        with self._lock:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="tacit-shuffle", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End after the step that is being made."""
        self._stopping.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
        self._courier.stop()
        self.party.close()

    def wake(self) -> None:
        """Look at all sessions soon."""
        self._woken.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            self._guarded(self.tend)
            self._woken.wait(self._pause)

    def _guarded(self, act: Callable[[], None], session: str = "") -> None:
        try:
            act()
            return
        except TacitError as error:
            # The disk may be full or away for a while; what was stored is still there, and the next round tries again.
            LOG.error("shuffle: %s", error)
        except Exception as error:
            # By type and place alone: a message of another library could quote what somebody sent.
            as_problem(error)
        if session:
            self._failed(session, "a step failed and is tried again; the log of the collector names the error")

    def tend(self) -> None:
        """Make every step that can be made; where several collectors share a database, one of them does."""
        if not self.party.leads():
            return
        for record in self.party.sessions(only_live=True):
            self._guarded(lambda record=record: self._advance(record.id), record.id)
        self._guarded(self._open_first)
        self._guarded(self._courier.wake)

    def _open_first(self) -> None:
        """Open the first session of every collection that was published and has none yet."""
        if not self.url:
            return
        known = {record.session.collection for record in self.party.sessions()}
        for record in self._store.collections():
            active = self._shelf.find(record.id) if record.state == "published" and record.id not in known else None
            if active is None or active.collection.shuffle is None or self._rests(active.id):
                continue
            try:
                self.open(active)
            except (Problem, TacitError) as error:
                self._failed(active.id, str(error))

    def _failed(self, name: str, why: str) -> None:
        """Note why something did not go on, and let it rest: longer every time, up to a minute."""
        count = self._failures.get(name, (0, 0.0))[0] + 1
        self._failures[name] = count, self._clock.seconds() + min(_LONGEST_REST, self._pause * 2 ** min(count, 10))
        self._notes[name] = why

    def _rests(self, name: str) -> bool:
        return self._clock.seconds() < self._failures.get(name, (0, 0.0))[1]

    def _advance(self, session: str) -> None:
        """Make all steps of one session that can be made now."""
        while (record := self.party.session(session)) is not None and not record.is_over and not self._rests(session):
            try:
                moved = self._step(record)
            except (ProtocolViolation, SessionAborted) as error:
                evidence = getattr(error, "evidence", ())
                self._steps.abort(record, str(error), evidence=evidence)
                moved = True
            except (SessionRefused, Unreachable) as error:
                self._failed(session, str(error))
                return
            self._courier.wake()
            if not moved or self._stopping.is_set():
                return

    def _step(self, record: SessionRecord) -> bool:
        self._notes.pop(record.id, None)
        if record.state == COLLECTING and not record.progress.get(CLOSING):
            return self._close_if_due(record)
        with self.party.alone() if record.state == COLLECTING else nullcontext():
            moved = self._steps.make(record)
        if not moved:
            self._give_up_if_late(record)
        return moved

    def _close_if_due(self, record: SessionRecord) -> bool:
        """Send spot checks while the session is open; close it when the operator asked for that, or its time is up."""
        is_planted = self._planter.plant(record)
        if not record.progress.get(ASKED) and self._now() < record.session.closes:
            return self._steps.make(record)
        if not is_planted:
            self._notes[record.id] = "a spot check could not be sent to the shufflers"
            return False
        with self.party.alone():
            # Read again: invitations may have been announced since.
            self._steps.close(self.party.session(record.id) or record)
        return True

    def _give_up_if_late(self, record: SessionRecord) -> None:
        """Abort a session in which nothing has arrived for too long, and name who is missing."""
        awaited = self._steps.awaited(record)
        if record.state in (DRAFT, PUBLISHED, RELEASED, ABORTED) or not awaited:
            return
        mark, now = (record.state, len(self.party.arrived(record.id))), self._clock.seconds()
        before, since = self._since.get(record.id, (None, now))
        if before != mark:
            self._since[record.id] = mark, now
        elif now - since > _LATE * record.session.phase_seconds:
            names = ", ".join(awaited)
            self._steps.abort(record, f"{names}: nothing arrived within {now - since:.0f} seconds", blames=awaited[0])

    # Letters.

    async def take(self, collection: str, chunks: AsyncIterable[bytes]) -> PostReply:
        """Take a letter of a shuffler of a collection's latest session."""
        record = self._latest(collection)
        if record is None:
            return PostReply(404, "this collection has no session")
        return await self._reception.take(record.id, chunks)

    def _letter_arrived(self, session: str) -> None:
        del session
        self.wake()

    def _equivocated(self, session: str, party: str, error: ProtocolViolation) -> None:
        record = self.party.session(session)
        if record is not None and not record.is_over:
            self._steps.abort(record, str(error), blames=party, evidence=error.evidence)
        self.wake()

    def _letter_refused(self, session: str, receiver: str) -> None:
        self._notes[session] = f"{receiver} refused a letter"

    # What operators do.

    def check(self, collection: Collection) -> None:
        """Refuse a collection that could not be run here: another collector's key, fakes that cannot be shared."""
        terms = terms_of(collection)
        if terms.collector.identity != self.identity:
            raise InvalidSpec(
                f"draft.shuffle.collector.identity must be the key of this collector, {self.identity}; "
                "`tacit shuffle identity` prints it"
            )
        # With made-up keys: everything else that a session refuses is found before the document is published.
        keys = [f"{number:064x}" for number in range(len(terms.shufflers) + 1)]
        dgk = DGK_SIZES if terms.mode == PEOS else None
        make_session(collection, url="http://localhost", seal_keys=keys, closes=0, dgk=dgk)

    def open(self, active: Active, days: int = SESSION_DAYS) -> SessionRecord:
        """Make a session; Problem `conflict` while another one goes on or after one whose reports were refused.

        After one that was released it is for further people: devices answer a collection once, so that the
        respondents of sessions are disjoint, and every one of them keeps the epsilon of its own session.
        """
        if type(days) is not int or not 1 <= days <= MAX_SESSION_DAYS:
            raise InvalidSpec(f"session: days must be an integer from 1 to {MAX_SESSION_DAYS}")
        self.check(active.collection)
        with self.party.alone():
            self._refuse_second(active)
            shufflers, mode = terms_of(active.collection).shufflers, terms_of(active.collection).mode
            try:
                theirs = [self._neighbours.seal_key(each.url, each.identity, mode) for each in shufflers]
            except Unreachable as error:
                raise Problem("unavailable", str(error)) from None
            except ProtocolViolation as error:
                raise Problem("conflict", str(error)) from None
            dgk = _draw_dgk() if mode == PEOS else None
            session = make_session(
                active.collection,
                url=self.url,
                seal_keys=[self.party.rotate_seal_key().public.hex(), *theirs],
                closes=int(self._now()) + days * _DAY_SECONDS,
                phase_seconds=self._phase_seconds,
                dgk=None if dgk is None else dgk.public.to_json(),
            )
            signed = SignedSession(
                session=session, signatures={party_name(COLLECTOR): session.sign(self.party.identity)}
            )
            keep = {} if dgk is None else {DGK: json.dumps(dgk.to_json()).encode()}
            first = PhaseChange(state=DRAFT, progress={"invitations": active.collection.invitations}, keep=keep)
            self.party.add_session(signed, COLLECTOR, DRAFT, first=first)
        self._notes.pop(active.id, None)
        self.start()
        self.wake()
        made = self.party.session(session.id)
        assert made is not None
        return made

    def _refuse_second(self, active: Active) -> None:
        before = self._latest(active.id)
        if before is not None and (before.ending.get("seen") or before.progress.get("refused")):
            raise Problem(
                "conflict",
                "the reports of the last session have been seen and were not counted, and must not be asked for again; "
                "publish a new collection",
            )
        if before is not None and not before.is_over:
            raise Problem("conflict", f"session {before.id[:16]} is {before.state.lower()}; there is one at a time")
        record = self._store.collection(active.id)
        if record is None or record.state != "published":
            raise Problem("conflict", "the collection takes no more reports")

    def close(self, active: Active) -> SessionRecord:
        """Close the session that takes reports: shufflers agree on slots and begin; Problem `conflict` if none does."""
        with self.party.alone():
            record = self._needed(active)
            if record.state != COLLECTING:
                raise Problem("conflict", f"session {record.id[:16]} is {record.state.lower()}; it takes no reports")
            self._steps.ask_to_close(record)
        self.wake()
        return record

    def abort(self, active: Active, reason: str) -> SessionRecord:
        """Give up a session before its reports arrive; Problem `conflict` once they have."""
        with self.party.alone():
            record = self._needed(active)
            if record.is_over or record.state not in (DRAFT, PUBLISHED, COLLECTING):
                raise Problem("conflict", f"session {record.id[:16]} is {record.state.lower()}; it cannot be given up")
            self._steps.abort(record, reason)
        self.wake()
        return record

    def is_busy(self, active: Active) -> bool:
        """Whether a session of a collection goes on."""
        record = self._latest(active.id)
        return record is not None and not record.is_over and record.state not in (RELEASED, ABORTED)

    def admit(self, active: Active, invitations: "list[bytes]") -> None:
        """Announce more invitations to the shufflers of the session that takes reports, if there is one."""
        with self.party.alone():
            record = self._latest(active.id)
            if record is None or record.state not in (PUBLISHED, COLLECTING) or not record.progress.get("admitted"):
                return
            if record.progress.get(RESTORED):
                # The rounds that follow may have been used by letters that were sent after the backup was made.
                self._notes[record.id] = "restored from a backup: new invitations admit to the next session only"
                return
            first = int(record.progress["admitted"])
            letters = self._steps.admissions(record, invitations, first)
            progress = {**record.progress, "admitted": first + len(letters) // record.session.shuffler_count}
            change = PhaseChange(state=record.state, progress=progress, letters=letters)
            self.party.commit(record.id, change)
        self.wake()

    # What is shown.

    def session_json(self, active: Active) -> dict[str, Any]:
        """The session that takes reports now, as clients verify it; a Problem if there is none."""
        record = self._latest(active.id)
        if record is None or record.state in (DRAFT, PUBLISHED):
            raise Problem("not_found", "no session of this collection takes reports yet; ask again later")
        if record.state != COLLECTING or record.progress.get(ASKED):
            raise Problem("closed", "the last session of this collection takes no more reports")
        return record.signed.to_json()

    def transcript(self, active: Active, session: str = "") -> dict[str, Any]:
        """What is published about a session, by default the latest; Problem `not_found` before it has ended."""
        asked = [record for record in self._all(active.id) if session in ("", record.id)]
        found = published(self.party, asked[-1], active.document) if asked else None
        if found is None:
            raise Problem("not_found", "there is no transcript of this collection yet")
        return found

    def status(self, active: Active) -> dict[str, Any]:
        """How the latest session is, in plain data."""
        record, terms = self._latest(active.id), terms_of(active.collection)
        certificate = certificate_of(active.collection)
        about: dict[str, Any] = {
            "collection": active.id,
            "mode": terms.mode,
            "minimum": terms.minimum,
            "epsilon": {
                "collector": certificate.epsilon,
                "others": certificate.epsilon_others,
                "local": certificate.local_epsilon,
            },
            "delta": certificate.delta,
            "sessions": len(self._all(active.id)),
            "released": [record.id for record in self._all(active.id) if record.state == RELEASED],
        }
        if record is None:
            return about | {"session": None, "state": "none", "note": self._notes.get(active.id, "")}
        return about | self._of(record)

    def _of(self, record: SessionRecord) -> dict[str, Any]:
        ending: Mapping[str, Any] = record.ending
        note = record.progress.get("reason") or ending.get("reason") or self._notes.get(record.id, "")
        return {
            "session": record.id,
            "state": record.state,
            "closes": record.session.closes,
            "closing": bool(record.progress.get(ASKED) or record.progress.get(CLOSING)),
            "awaited": [] if record.is_over else self._steps.awaited(record),
            "uploads": self._uploads(record),
            "rows": int(record.progress.get("n", 0)) + record.session.fake_rows if "n" in record.progress else 0,
            "opened_rows": self._releases.opened_rows.get(record.id, 0),
            "blames": ending.get("blames", ""),
            "note": note,
            **told(record.progress),
        }

    def _uploads(self, record: SessionRecord) -> dict[str, int | None]:
        """What every shuffler holds, while uploads are taken."""
        if record.state != COLLECTING:
            return {}
        shufflers = enumerate(record.session.shufflers, start=1)
        return {party_name(i): self._neighbours.uploads(each.url, record.id) for i, each in shufflers}

    def _needed(self, active: Active) -> SessionRecord:
        record = self._latest(active.id)
        if record is None:
            raise Problem("conflict", "the collection has no session yet")
        return record

    def _latest(self, collection: str) -> SessionRecord | None:
        found = self._all(collection)
        return found[-1] if found else None

    def _all(self, collection: str) -> list[SessionRecord]:
        return [record for record in self.party.sessions() if record.session.collection == collection]


def _draw_dgk() -> Any:
    """A key for one session, so that it is erased with it."""
    from tacit.shuffle.crypto.dgk import draw_dgk_key

    return draw_dgk_key(SystemCoins())
