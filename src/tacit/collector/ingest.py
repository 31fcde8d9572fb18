"""Ingest: from the bytes of an upload to valid reports in the store, and a receipt that is true.

A batch that cannot be read is refused as a whole; in one that can, every report is judged on its own. The receipt is
given out only after the store has committed.
"""

import re
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import sha256
from threading import Lock
from typing import Any, Protocol, cast

import msgspec
import numpy as np

from tacit.collector.active import Active, Shelf
from tacit.collector.limits import MOST_WAITING_BYTES
from tacit.collector.ports import CLOSED, DUPLICATE, SPENT, NewBatch, Store
from tacit.collector.problems import Problem
from tacit.collector.rows.batches import Judged, judge_arrow, judge_json, split_rows
from tacit.collector.rows.segments import NO_FOLDER
from tacit.errors import ReportRejected
from tacit.wire.batch import Batch, batch_from_json, decode_batch, read_head

REASONS = (
    "wrong_collection",
    "closed",
    "malformed",
    "width",
    "range",
    "row",
    "duplicate",
    "too_large",
    "invitation",
)
"""Why reports are refused; every refusal is counted under one of these."""

MOST_LISTED = 1000
"""Refused reports that a receipt names, the first ones: a small upload must not have a very large answer."""

_BATCH_ID = re.compile(r"[0-9a-f]{32}")
_REFUSALS = {CLOSED: "closed", DUPLICATE: "duplicate", SPENT: "invitation"}
_decode_json = msgspec.json.Decoder().decode


class Form(Enum):
    """How a batch is written."""

    BINARY = "binary"
    JSON = "json"
    ARROW = "arrow"


class Writes(Protocol):
    """The writer: stores batches, many in one commit."""

    def submit(self, batch: NewBatch) -> "Future[str]":
        """Queue a batch; the future gives its outcome once it is durable."""
        ...


class Rejections:
    """Refusals that wait to be counted in the store, so that a flood of garbage is not a flood of commits."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock, self._waiting = Lock(), dict[str, Counter[str]]()

    def add(self, collection: str, reason: str, reports: int = 1) -> None:
        """Note refused reports; an upload that cannot be read counts as one."""
        with self._lock:
            self._waiting.setdefault(collection, Counter())[reason] += reports

    def waiting(self, collection: str) -> dict[str, int]:
        """Refusals of a collection that are not in the store yet."""
        with self._lock:
            return dict(self._waiting.get(collection, {}))

    def flush(self, store: Store) -> None:
        """Count what is waiting; what the store does not take waits on."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
        for collection, reasons in taken.items():
            try:
                store.count_rejected(collection, reasons)
            except Exception:
                for reason, reports in reasons.items():
                    self.add(collection, reason, reports)
                raise


@dataclass(frozen=True, slots=True)
class Upload:
    """A batch that was read and judged: what is to be stored, and which reports are not."""

    batch: NewBatch | None
    """None if no report of it is valid: there is nothing to store."""
    accepted: int
    rejected: tuple[int, ...] = ()
    """Places of reports that the mechanism could not have made."""
    bad_rows: tuple[int, ...] = ()
    """Places of other reports whose rows do not fit the public columns."""

    @property
    def refused(self) -> dict[str, int]:
        """Number of refused reports by reason."""
        counts = {"range": len(self.rejected), "row": len(self.bad_rows)}
        return {reason: reports for reason, reports in counts.items() if reports}

    def receipt(self, outcome: str) -> dict[str, Any]:
        """What the client is told after the commit.

        Of a duplicate nothing is accepted: a batch of that id is stored, which may have had other reports.
        """
        first, rows = self.rejected[:MOST_LISTED], self.bad_rows[:MOST_LISTED]
        places = sorted([*((i, "range") for i in first), *((i, "row") for i in rows)])
        refused = [{"index": i, "reason": reason} for i, reason in places[:MOST_LISTED]]
        again = outcome == DUPLICATE
        return {"accepted": 0 if again else self.accepted, "rejected": refused, "duplicate": again}


class Ingest:
    """Reads, judges and stores uploads."""

    def __init__(self, shelf: Shelf, writer: Writes, rejections: Rejections, *, takes_rows: bool = True) -> None:
        """Work with these collections and this writer; rows are taken where there is a place for them."""
        self._shelf, self._writer, self._rejections, self._takes_rows = shelf, writer, rejections, takes_rows

    def find(self, collection: str) -> Active:
        """The collection of an address, or a problem."""
        active = self._shelf.find(collection)
        if active is None:
            raise Problem("not_found", "there is no such collection; check the address")
        return active

    def judge(self, active: Active, body: bytes, form: Form, invitation: str = "", named: str = "") -> Upload:
        """Read a batch and judge its reports; a refusal as a whole is counted and raised.

        `named` is the batch id, in hexadecimal, of a form that does not hold it.
        """
        if active.collection.rows is not None and not self._takes_rows:
            raise Problem("unavailable", NO_FOLDER)
        try:
            if active.collection.rows is not None:
                return _of_a_size(self._judge_rows(active, body, form, invitation, named))
            if form is Form.ARROW:
                raise Problem("malformed", "batch: this collection takes reports without rows, not an Arrow stream")
            batch = _read_binary(active, body) if form is Form.BINARY else _read_json(active, _read_text(body))
            _check_names(active, batch)
            spends = _invitation(active, batch.count, invitation)
            return _of_a_size(_judged(active, batch, spends))
        except Problem as problem:
            self._rejections.add(active.id, problem.kind)
            raise

    def _judge_rows(self, active: Active, body: bytes, form: Form, invitation: str, named: str) -> Upload:
        """The same for a collection whose reports come with rows."""
        if form is Form.BINARY:
            raise Problem("malformed", "batch: every report needs its row here; send JSON or an Arrow stream")
        if form is Form.ARROW:
            if not _BATCH_ID.fullmatch(named):
                raise Problem("malformed", "batch: the header Tacit-Batch must have 32 lower-case hexadecimal digits")
            judged, name = judge_arrow(active, body), bytes.fromhex(named)
            return _upload(active, name, judged, _invitation(active, judged.total, invitation))
        value, rows = split_rows(active, _read_text(body))
        batch = _read_json(active, value)
        _check_names(active, batch)
        spends = _invitation(active, batch.count, invitation)
        _need_reports(batch)
        return _upload(active, batch.batch, judge_json(active, active.payload(batch), rows), spends)

    def store(self, batch: NewBatch) -> "Future[str]":
        """Hand a batch to the writer."""
        return self._writer.submit(batch)

    def settle(self, active: Active, upload: Upload, outcome: str) -> dict[str, Any]:
        """The receipt of a batch that the store has taken, or the problem why it has not."""
        reason = _REFUSALS.get(outcome)
        if reason is not None:
            self._rejections.add(active.id, reason, upload.accepted)
        if outcome == CLOSED:
            raise Problem("closed", "the collection is closed and takes no more reports")
        if outcome == SPENT:
            raise Problem("invitation", "the invitation is unknown or was used before")
        return upload.receipt(outcome)

    def nothing_stored(self, active: Active, upload: Upload) -> dict[str, Any]:
        """The receipt of a batch without a single valid report."""
        for reason, reports in upload.refused.items():
            self._rejections.add(active.id, reason, reports)
        return upload.receipt("")


def _check_names(active: Active, batch: Batch) -> None:
    if batch.collection != active.id:
        raise Problem("wrong_collection", "the batch names another collection than the address it was sent to")


def _of_a_size(upload: Upload) -> Upload:
    """Refuse what the writer would never have room for; to send it again would be of no use."""
    if upload.batch is not None and len(upload.batch.payload) > MOST_WAITING_BYTES:
        raise Problem("too_large", f"a batch may have at most {MOST_WAITING_BYTES >> 20} MB; send several")
    return upload


def _need_reports(batch: Batch) -> None:
    if not batch.blocks:
        raise Problem("malformed", "batch: there are no reports in it")


def _read_text(body: bytes) -> Any:
    try:
        return _decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Problem("malformed", "batch: the body is not JSON") from None


def _read_binary(active: Active, body: bytes) -> Batch:
    try:
        return decode_batch(body, active.widths)
    except ReportRejected as error:
        raise Problem(_fault(active, body), str(error)) from None


def _fault(active: Active, body: bytes) -> str:
    """Why a binary batch cannot be read: its beginning, the collection it names, or the length of its blocks."""
    try:
        return "width" if read_head(body)[0] == active.id else "wrong_collection"
    except ReportRejected:
        return "malformed"


def _read_json(active: Active, value: Any) -> Batch:
    try:
        return batch_from_json(value, active.widths)
    except ReportRejected as error:
        kind = "width" if _has_wrong_width(value, active.widths) else "malformed"
        raise Problem(kind, str(error)) from None


def _has_wrong_width(value: Any, widths: tuple[int, ...]) -> bool:
    """Whether a batch that was refused has a well-formed report of another width."""
    reports: Any = cast("dict[str, Any]", value).get("reports") if isinstance(value, dict) else None
    for item in cast("list[Any]", reports) if isinstance(reports, list) else []:
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        member, text = fields.get("member", 0), fields.get("report")
        known = type(member) is int and 0 <= member < len(widths)
        if known and isinstance(text, str) and re.fullmatch(r"([0-9a-f]{2})*", text):
            if len(text) != 2 * widths[member]:
                return True
    return False


def _invitation(active: Active, count: int, invitation: str) -> bytes | None:
    """The hash of the invitation to spend; one invitation is good for one report."""
    if not active.collection.invitations:
        return None
    if not invitation:
        raise Problem("invitation", "this collection takes reports by invitation; send the one you were given")
    if count != 1:
        raise Problem("invitation", f"an invitation is for one report, the batch has {count}")
    return invitation_hash(invitation)


def invitation_hash(invitation: str) -> bytes:
    """What is kept of an invitation."""
    return sha256(b"invitation:" + invitation.encode(errors="replace")).digest()


_NONE: Mapping[str, int] = {}


def _judged(active: Active, batch: Batch, invitation: bytes | None) -> Upload:
    """Every report on its own: those that the mechanism could have made are kept, in its layout."""
    _need_reports(batch)
    payload = active.payload(batch)
    reports = np.frombuffer(payload, active.dtype)
    valid = active.mechanism.valid(reports)
    n = len(reports)
    accepted = int(np.count_nonzero(valid))
    if accepted == n:
        return Upload(NewBatch(active.id, batch.batch, payload, n, _NONE, invitation), n)
    places = tuple(np.flatnonzero(~valid).tolist())
    if not accepted:
        return Upload(None, 0, places)
    payload = np.ascontiguousarray(reports[valid]).tobytes()
    counts = {"range": len(places)}
    return Upload(NewBatch(active.id, batch.batch, payload, accepted, counts, invitation), accepted, places)


def _upload(active: Active, name: bytes, judged: Judged, invitation: bytes | None) -> Upload:
    """What becomes of reports with rows."""
    upload = Upload(None, judged.count, judged.bad_reports, judged.bad_rows)
    if not judged.count:
        return upload
    batch = NewBatch(active.id, name, judged.payload, judged.count, upload.refused or _NONE, invitation)
    return replace(upload, batch=batch)
