"""Uploads in the database of a party: those of a transaction are one row, so that a session has few and large ones.

    slots     16 bytes each, end to end
    shares    what was sealed for this shuffler, end to end in the same order; all of a session have one size

Which slots are there is remembered beside the database, and read from it after a restart: a table with a row for each
would be changed all over by every transaction, as slots are random. That is right because only shufflers take uploads,
and the file of a shuffler belongs to one process.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tacit.arrays import U8
from tacit.shuffle.protocol.roster import cut_slots, order_of_slots
from tacit.shuffle.protocol.sealing import SLOT_BYTES
from tacit.shuffle.protocol.shares import as_rows, take_rows
from tacit.shuffler.admission import Admission
from tacit.shuffler.party_database import PartyDatabase

STORED, REPEATED, CLOSED, FULL, UNINVITED = "stored", "repeated", "closed", "full", "uninvited"

SeenSlots = dict[int, set[bytes]]
"""The slots of sessions, by their row keys."""


class NewUpload(NamedTuple):
    """An upload to be stored; `refusal` is a reason that is only counted."""

    session: str
    slot: bytes
    share: bytes
    token: bytes = b""
    refusal: str = ""


class StoredUploads(NamedTuple):
    """All uploads of a session, sorted by slot."""

    slots: bytes
    """End to end."""
    shares: U8
    """A row for each slot."""

    @classmethod
    def of(cls, groups: Sequence[tuple[Any, ...]]) -> "StoredUploads":
        """The uploads of rows of the table."""
        slots, shares = (b"".join(parts) for parts in zip(*groups, strict=True)) if groups else (b"", b"")
        count, order = len(slots) // SLOT_BYTES, order_of_slots(slots)
        rows, others = as_rows(slots, count), as_rows(shares, count)
        return cls(take_rows(rows, order).tobytes(), take_rows(others, order))


class UploadDoor:
    """Uploads of one session inside one transaction."""

    def __init__(self, db: PartyDatabase, session: str, seen: SeenSlots) -> None:
        """Look the session up; an unknown one is closed."""
        rows = db.run("SELECT key, is_open, needs_token, most_uploads, uploads FROM sessions WHERE id = ?", session)
        self._key, self._is_open, self._needs_token, self._most, self._uploads = rows[0] if rows else (0, 0, 0, 0, 0)
        self._db, self._counts, self._fresh = db, dict[str, int](), dict[bytes, bytes]()
        self._seen = set[bytes]()
        if self._is_open:
            self._seen = seen.get(self._key) or seen.setdefault(self._key, self._read())

    def _read(self) -> set[bytes]:
        groups = self._db.run("SELECT slots FROM uploads WHERE session = ?", self._key)
        return {slot for group in groups for slot in cut_slots(group[0])}

    def take(self, upload: NewUpload, admission: Admission) -> str:
        """What becomes of an upload; it is stored with all others by `store`."""
        outcome = upload.refusal or self._outcome(upload, admission)
        self._counts[outcome] = self._counts.get(outcome, 0) + 1
        return outcome

    def _outcome(self, upload: NewUpload, admission: Admission) -> str:
        if not self._is_open:
            return CLOSED
        # Before anything else: who sends the same upload again has spent its token, and may see a full session.
        if upload.slot in self._seen or upload.slot in self._fresh:
            return REPEATED
        if self._uploads + len(self._fresh) >= self._most:
            return FULL
        if self._needs_token and not admission.spend(self._db, self._key, upload.token):
            return UNINVITED
        self._fresh[upload.slot] = upload.share
        return STORED

    def store(self) -> None:
        """Write uploads and counts; uploads of unknown sessions are dropped."""
        if not self._key:
            return
        if self._fresh:
            slots, shares = b"".join(self._fresh), b"".join(self._fresh.values())
            self._db.run("INSERT INTO uploads VALUES (?, ?, ?)", self._key, slots, shares)
            uploads = self._uploads + len(self._fresh)
            self._db.run("UPDATE sessions SET uploads = ? WHERE key = ?", uploads, self._key)
        text = (
            "INSERT INTO counters AS kept VALUES (?, ?, ?) ON CONFLICT (session, reason) "
            "DO UPDATE SET amount = kept.amount + excluded.amount"
        )
        for reason, amount in self._counts.items():
            self._db.run(text, self._key, reason, amount)

    def note_seen(self) -> None:
        """Remember the slots, after the transaction."""
        self._seen.update(self._fresh)
