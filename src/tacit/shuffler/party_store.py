"""What a party of a shuffle keeps: keys, sessions, uploads, and letters in and out, in one database.

The same class serves shufflers and the collector. Rules that everybody relies on:

- A phase is one transaction: `commit` stores the new state, what the machine keeps, and all letters that follow, or
  nothing. Letters are sent afterwards, from the outbox, byte for byte, until they are acknowledged.
- A letter is taken once: `take` tells a repetition, which is harmless, from a second body for the same place, which
  is raised as ProtocolViolation with both envelopes as evidence.
- Uploads are stored in groups, one sync for all of a group (`add_uploads`, see `intake`).
- `end` erases all that is secret of a session, and leaves its document, counters, ending and last letters.

    store = PartyStore(folder)              or PartyStore(database), see `party_database`
    store.identity, store.seal_key          own keys, made at first use; store.rotate_seal_key()
    store.add_session(signed, party, state) or store.session(id), store.sessions()
    store.commit(id, PhaseChange(state=..., keep={...}, letters=[...], used=[...]))
    store.take(letter), store.letters(id, phase), store.letter(place), store.arrived(id)
    store.waiting(), store.outgoing(number), store.acknowledge(number)      for the courier of `post`
    store.end(id, PhaseChange(state="ABORTED", letters=[...]), ending={...})
"""

import json
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tacit.device.numbers.canonical import canonical
from tacit.device.numbers.coins import Coins, SystemCoins
from tacit.errors import ProtocolViolation, SessionAborted, StorageUnavailable
from tacit.hosting.cpu_meter import CpuMeter
from tacit.hosting.sqlite import explained
from tacit.shuffle.crypto.envelope import Envelope, MessagePlace, is_repetition
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.session import ShuffleSession, SignedSession
from tacit.shuffler.admission import Admission, Invitations
from tacit.shuffler.letters import Letter, read_head
from tacit.shuffler.party_database import PartyDatabase, PartyFile
from tacit.shuffler.party_uploads import NewUpload, SeenSlots, StoredUploads, UploadDoor

FILE = "party.sqlite"
OPENING, ROUNDS, STORAGE = "opening", "rounds", "storage"
"""What the time of a shuffler is spent on: uploads, the steps of sessions, the database."""
_SECRET_TABLES = ("kept", "inbox", "outbox", "admissions")
_KEY_WORDS = 4
_PATIENCE_SECONDS, _PAUSE_SECONDS = 60.0, 0.02


@dataclass(frozen=True)
class SessionRecord:
    """A session as a party has it."""

    signed: SignedSession
    party: int
    """The own number; 0 is the collector."""
    state: str
    progress: Mapping[str, Any]
    is_over: bool
    is_open: bool
    uploads: int
    ending: Mapping[str, Any]
    """What is known about the end: reason, who is blamed, evidence."""

    @property
    def session(self) -> ShuffleSession:
        """The session document."""
        return self.signed.session

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.session.id

    @cached_property
    def pinned(self) -> dict[str, bytes]:
        """The keys of all parties, as the document names them."""
        return {party_name(i): bytes.fromhex(party.identity) for i, party in enumerate(self.session.parties)}


@dataclass(frozen=True, kw_only=True, eq=False)
class PhaseChange:
    """Everything that one phase changes, for one transaction."""

    state: str
    progress: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keep: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    """Named bytes to be kept until the session ends; None erases a name."""
    letters: Sequence[Letter] = ()
    """To others: into the outbox."""
    own: Sequence[tuple[MessagePlace, bytes]] = ()
    """To oneself: into the inbox."""
    used: Sequence[MessagePlace] = ()
    """Letters whose bodies are not needed any more."""
    is_open: bool = False
    """Whether uploads are taken."""
    drops_uploads: bool = False


class WaitingLetter(NamedTuple):
    """A letter that waits to be acknowledged: its number, its session, to whom, and what it is."""

    number: int
    session: str
    receiver: str
    phase: str


class PartyStore:
    """One connection under one lock: transactions are short."""

    def __init__(self, place: str | Path | PartyDatabase, *, coins: Coins | None = None,
                 admission: Admission | None = None) -> None:  # fmt: skip
        """Use a database, or open or make a file in a folder that only its owner can read."""
        self._db = PartyFile(Path(place) / FILE) if isinstance(place, str | Path) else place
        self.file = self._db.file
        self._lock, self._deciding = threading.RLock(), threading.RLock()
        self._coins = coins or SystemCoins()
        self._admission = admission or Invitations()
        self._seen: SeenSlots = {}
        self.meter = CpuMeter()
        """What the party spends its time on; what is spent here is "storage"."""

    @contextmanager
    def _write(self) -> Generator[PartyDatabase]:
        with self._lock, self.meter.spent_on(STORAGE), explained(self.file), self._db.transaction("BEGIN IMMEDIATE"):
            yield self._db

    def _rows(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, self.meter.spent_on(STORAGE), explained(self.file):
            return self._db.run(text, *values)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Hold the exclusive right to decide: no other thread or process reads and decides while the block runs."""
        end = time.monotonic() + _PATIENCE_SECONDS
        with self._deciding:
            # Tried again and again rather than waited for, so that letters can be stored meanwhile.
            while not self._decides():
                if time.monotonic() > end:
                    raise StorageUnavailable("party: another process keeps sessions to itself for too long; try again")
                time.sleep(_PAUSE_SECONDS)
            try:
                yield
            finally:
                with self._lock:
                    self._db.let_others_in()

    def _decides(self) -> bool:
        with self._lock:
            return self._db.keep_others_out()

    def leads(self) -> bool:
        """Whether this process is the one that makes steps and sends letters."""
        with self._lock:
            return self._db.leads()

    def close(self) -> None:
        """Release the database."""
        with self._lock, explained(self.file):
            self._db.close()

    # Keys.

    @cached_property
    def identity(self) -> Identity:
        """Who this party is; drawn at first use and kept for ever."""
        with self._write() as db:
            rows = db.run("SELECT content FROM secrets WHERE name = 'identity'")
            secret = rows[0][0] if rows else self._coins.words(_KEY_WORDS)
            if not rows:
                db.run("INSERT INTO secrets VALUES ('identity', ?)", secret)
        return Identity(secret)

    def seal_keys(self) -> list[HpkeKey]:
        """The keys that respondents may seal for, newest first; one is drawn if there is none."""
        text = "SELECT private FROM seal_keys ORDER BY number DESC"
        if rows := self._rows(text):
            return [HpkeKey(row[0]) for row in rows]
        with self._write() as db:
            return [HpkeKey(row[0]) for row in db.run(text)] or [self._add_seal_key(db)]

    @property
    def seal_key(self) -> HpkeKey:
        """The newest key: what new sessions are made with."""
        return self.seal_keys()[0]

    def rotate_seal_key(self) -> HpkeKey:
        """Draw a new key. The one before stays valid; older ones are erased unless a session still needs them."""
        with self._write() as db:
            live = {party.seal_key for record in self._records(db, only_live=True) for party in record.session.parties}
            text = "SELECT number, public FROM seal_keys WHERE number < (SELECT max(number) FROM seal_keys)"
            for number, public in db.run(text):
                if public not in live:
                    db.run("DELETE FROM seal_keys WHERE number = ?", number)
            made = self._add_seal_key(db)
        self._shrink()
        return made

    def _add_seal_key(self, db: PartyDatabase) -> HpkeKey:
        made = HpkeKey.draw(self._coins)
        db.run("INSERT INTO seal_keys (public, private) VALUES (?, ?)", made.public.hex(), made.private)
        return made

    def add_secret(self, name: str, content: bytes) -> bytes:
        """Keep a secret under a name, unless there is one already; returns the one that is kept."""
        with self._write() as db:
            db.run("INSERT INTO secrets VALUES (?, ?) ON CONFLICT DO NOTHING", name, content)
            return db.run("SELECT content FROM secrets WHERE name = ?", name)[0][0]

    # Sessions.

    def add_session(self, signed: SignedSession, party: int, state: str, *, most_uploads: int | None = None,
                    first: PhaseChange | None = None) -> None:  # fmt: skip
        """Add a session, and its first phase in the same transaction; one that is there already stays as it is."""
        most = signed.session.n_max if most_uploads is None else most_uploads
        values = (signed.session.id, canonical(signed.to_json()), party, state, "{}", most)
        text = "INSERT INTO sessions (id, document, party, state, progress, most_uploads) VALUES (?, ?, ?, ?, ?, ?)"
        with self._write() as db:
            is_new = db.change(f"{text} ON CONFLICT DO NOTHING", *values) == 1
            if is_new and first is not None:
                self._commit(db, _key(db, signed.session.id), first)

    def add_signatures(self, signed: SignedSession) -> None:
        """Replace the signatures of a session that is known; they must have been verified."""
        with self._write() as db:
            db.run("UPDATE sessions SET document = ? WHERE id = ?", canonical(signed.to_json()), signed.session.id)

    def session(self, session: str) -> SessionRecord | None:
        """A session, if it is known."""
        with self._lock, explained(self.file):
            found = self._records(self._db, session)
        return found[0] if found else None

    def sessions(self, *, only_live: bool = False) -> list[SessionRecord]:
        """All sessions, or those that have not ended."""
        with self._lock, explained(self.file):
            return self._records(self._db, only_live=only_live)

    def _records(
        self, db: PartyDatabase, session: str | None = None, *, only_live: bool = False
    ) -> list[SessionRecord]:
        text = "SELECT document, party, state, progress, is_over, is_open, uploads, ending FROM sessions"
        where = " WHERE is_over = 0" if only_live else "" if session is None else " WHERE id = ?"
        rows = db.run(text + where + " ORDER BY key", *([] if session is None else [session]))
        return [
            SessionRecord(
                _read_session(document), party, state, json.loads(progress), bool(over),
                bool(is_open), uploads, json.loads(ending)
            )
            for document, party, state, progress, over, is_open, uploads, ending in rows
        ]  # fmt: skip

    def commit(self, session: str, change: PhaseChange) -> None:
        """Store a phase: all of it or nothing. A session that has ended does not come back."""
        with self._write() as db:
            key = _key(db, session)
            if db.run("SELECT 1 FROM sessions WHERE key = ? AND is_over = 1", key):
                raise SessionAborted(f"party: session {session[:16]} is over; nothing of it is stored any more")
            self._commit(db, key, change)

    def _commit(self, db: PartyDatabase, key: int, change: PhaseChange) -> None:
        text = "UPDATE sessions SET state = ?, progress = ?, is_open = ? WHERE key = ?"
        db.run(text, change.state, json.dumps(dict(change.progress)), int(change.is_open), key)
        for name, content in change.keep.items():
            db.run("DELETE FROM kept WHERE session = ? AND name = ?", key, name)
            if content is not None:
                db.run("INSERT INTO kept VALUES (?, ?, ?)", key, name, content)
        for place in change.used:
            db.run(f"UPDATE inbox SET body = NULL WHERE {_PLACE}", key, *_of_place(place))
        for place, body in change.own:
            db.run("INSERT INTO inbox VALUES (?, ?, ?, ?, ?, ?, ?)", key, *_of_place(place), b"", body)
        for letter in change.letters:
            values = (key, letter.place.receiver, letter.place.phase, canonical(letter.envelope.to_json()), letter.body)
            db.run("INSERT INTO outbox (session, receiver, phase, envelope, body) VALUES (?, ?, ?, ?, ?)", *values)
        if change.drops_uploads:
            self._drop_uploads(db, key)

    def _drop_uploads(self, db: PartyDatabase, key: int) -> None:
        db.run("DELETE FROM uploads WHERE session = ?", key)
        self._seen.pop(key, None)

    def kept(self, session: str, name: str) -> bytes | None:
        """Bytes that a phase kept under a name."""
        rows = self._rows(f"SELECT content FROM kept WHERE session = {_SESSION} AND name = ?", session, name)
        return rows[0][0] if rows else None

    def end(self, session: str, change: PhaseChange, ending: Mapping[str, Any] | None = None) -> None:
        """End a session: erase all its secrets, keep document and counters, and store its last letters."""
        with self._write() as db:
            key = _key(db, session)
            self._drop_uploads(db, key)
            for table in _SECRET_TABLES:
                db.run(f"DELETE FROM {table} WHERE session = ?", key)
            self._commit(db, key, change)
            text = json.dumps(dict(ending or {}))
            db.run("UPDATE sessions SET is_over = 1, is_open = 0, ending = ? WHERE key = ?", text, key)
        self._shrink()

    def forget(self, session: str) -> None:
        """Remove what is left of a session that has ended."""
        with self._write() as db:
            key = _key(db, session)
            if not db.run("SELECT 1 FROM sessions WHERE key = ? AND is_over = 1", key):
                raise StorageUnavailable(
                    f"party: session {session[:16]} has not ended; abort it before it is forgotten"
                )
            self._drop_uploads(db, key)
            for table in (*_SECRET_TABLES, "counters"):
                db.run(f"DELETE FROM {table} WHERE session = ?", key)
            db.run("DELETE FROM sessions WHERE key = ?", key)
        self._shrink()

    def _shrink(self) -> None:
        """Leave nothing of deleted rows in the file or in its log."""
        with self._lock, self.meter.spent_on(STORAGE), explained(self.file):
            self._db.shrink()

    # Uploads.

    def add_uploads(self, uploads: Sequence[NewUpload]) -> list[str]:
        """Store many uploads in one transaction; returns STORED, REPEATED, CLOSED, FULL, UNINVITED or the refusal."""
        with self._lock:
            with self._write() as db:
                doors = {session: UploadDoor(db, session, self._seen) for session in {each.session for each in uploads}}
                outcomes = [doors[upload.session].take(upload, self._admission) for upload in uploads]
                for door in doors.values():
                    door.store()
            # Only what is durable counts as seen.
            for door in doors.values():
                door.note_seen()
        return outcomes

    def slots(self, session: str) -> bytes:
        """The slots of all uploads, sorted, end to end."""
        groups = self._rows(f"SELECT slots, x'' FROM uploads WHERE session = {_SESSION}", session)
        return StoredUploads.of(groups).slots

    def uploads(self, session: str) -> StoredUploads:
        """Slots and shares of all uploads, sorted by slot."""
        groups = self._rows(f"SELECT slots, shares FROM uploads WHERE session = {_SESSION}", session)
        return StoredUploads.of(groups)

    def add_admissions(self, session: str, hashes: Sequence[bytes], used: MessagePlace | None = None) -> None:
        """Admit the holders of tokens, by hash; from now on the session needs tokens."""
        with self._write() as db:
            key = _key(db, session)
            db.run("UPDATE sessions SET needs_token = 1 WHERE key = ?", key)
            for each in hashes:
                db.run("INSERT INTO admissions (session, hash) VALUES (?, ?) ON CONFLICT DO NOTHING", key, each)
            if used is not None:
                db.run(f"UPDATE inbox SET body = NULL WHERE {_PLACE}", key, *_of_place(used))

    def counters(self, session: str) -> dict[str, int]:
        """How many uploads had which outcome."""
        return dict(self._rows(f"SELECT reason, amount FROM counters WHERE session = {_SESSION}", session))

    # Letters.

    def take(self, letter: Letter) -> bool:
        """Store a letter that arrived and was checked; False for a repetition or a session that is over.

        ProtocolViolation, with both envelopes as evidence, if another body arrived for the same place before.
        """
        place = letter.place
        with self._write() as db:
            key = _key(db, place.session)
            if db.run("SELECT 1 FROM sessions WHERE key = ? AND is_over = 1", key):
                return False
            rows = db.run(f"SELECT envelope FROM inbox WHERE {_PLACE}", key, *_of_place(place))
            # The envelope stays after its body was used, so that a late contradiction is noticed as well.
            if rows:
                return not is_repetition(read_head(rows[0][0]), letter.envelope)
            values = (key, *_of_place(place), canonical(letter.envelope.to_json()), letter.body)
            db.run("INSERT INTO inbox VALUES (?, ?, ?, ?, ?, ?, ?)", *values)
        return True

    def arrived(self, session: str) -> set[tuple[int, str, str]]:
        """(round, phase, sender) of all letters whose bodies are there; of one's own too."""
        text = f"SELECT round, phase, sender FROM inbox WHERE session = {_SESSION} AND body IS NOT NULL"
        return {(number, phase, sender) for number, phase, sender in self._rows(text, session)}

    def body(self, place: MessagePlace) -> bytes | None:
        """The body of a letter that arrived, or that one sent to oneself."""
        text = f"SELECT body FROM inbox WHERE {_PLACE}".replace("session = ?", f"session = {_SESSION}")
        rows = self._rows(text, place.session, *_of_place(place))
        return rows[0][0] if rows else None

    def letters(self, session: str, phase: str) -> list[Letter]:
        """All letters of a phase that arrived from others and have their bodies, by round and sender."""
        text = f"SELECT envelope, body FROM inbox WHERE session = {_SESSION} AND phase = ? AND length(envelope) > 0"
        rows = self._rows(text + " AND body IS NOT NULL ORDER BY round, sender", session, phase)
        return [Letter(read_head(envelope), body) for envelope, body in rows]

    def waiting(self) -> list[WaitingLetter]:
        """All letters that nobody has acknowledged yet, oldest first."""
        text = "SELECT number, id, receiver, phase FROM outbox JOIN sessions ON key = session WHERE body IS NOT NULL"
        return [WaitingLetter(*row) for row in self._rows(text + " ORDER BY number")]

    def outgoing(self, number: int) -> Letter | None:
        """A letter that waits; None if it has been acknowledged or erased meanwhile."""
        rows = self._rows("SELECT envelope, body FROM outbox WHERE number = ? AND body IS NOT NULL", number)
        return Letter(read_head(rows[0][0]), rows[0][1]) if rows else None

    def acknowledge(self, number: int) -> None:
        """A letter has arrived: its body is dropped, its envelope kept."""
        with self._write() as db:
            db.run("UPDATE outbox SET body = NULL WHERE number = ?", number)

    def sent(self, session: str) -> list[Envelope]:
        """The envelopes of all letters to others, oldest first."""
        rows = self._rows(f"SELECT envelope FROM outbox WHERE session = {_SESSION} ORDER BY number", session)
        return [read_head(row[0]) for row in rows]

    def probe(self) -> None:
        """Write something, to see whether that is possible."""
        with self._write() as db:
            db.run(
                "INSERT INTO meta AS kept VALUES ('probe', 1) ON CONFLICT (key) DO UPDATE SET value = 1 - kept.value"
            )


_SESSION = "(SELECT key FROM sessions WHERE id = ?)"
_PLACE = "session = ? AND attempt = ? AND round = ? AND phase = ? AND sender = ?"


@lru_cache(maxsize=64)
def _read_session(document: bytes) -> SignedSession:
    # It never changes but for added signatures, and checking it takes longer than everything else about a letter.
    return SignedSession.from_json(json.loads(document))


def _of_place(place: MessagePlace) -> tuple[int, int, str, str]:
    return (place.attempt, place.round, place.phase, place.sender)


def _key(db: PartyDatabase, session: str) -> int:
    rows = db.run("SELECT key FROM sessions WHERE id = ?", session)
    if not rows:
        raise ProtocolViolation(f"party: session {session[:16]} is not known here")
    return rows[0][0]
