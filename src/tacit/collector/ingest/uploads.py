"""Uploads: decoding a request body into a batch, validating every report, and writing the receipt.

A batch that cannot be decoded is refused as a whole; otherwise every report is accepted or refused on its own. The
receipt is written only after the store has committed, so that an acknowledged report is a durable one.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from threading import Lock
from time import time
from typing import Any, cast

import msgspec
import numpy as np

from tacit.collector.collections.active import Active, Shelf
from tacit.collector.limits import MOST_WAITING_BYTES
from tacit.collector.ports import CLOSED, DUPLICATE, INVALID, NO_FOLDER, SPENT, NewBatch, Outcome, Store, window_id
from tacit.collector.rows.batches import Judged, judge_arrow, judge_json, split_rows
from tacit.device.windows.terms import FINAL, FUTURE
from tacit.errors import ReportRejected
from tacit.hosting.problems import Problem
from tacit.wire.batch import Batch, batch_from_json, decode_batch, invitation_hash, read_head
from tacit.wire.tokens import AnonymousToken

REASONS = (
    "wrong_collection",
    "shuffled",
    "closed",
    "malformed",
    "width",
    "range",
    "row",
    "duplicate",
    "too_large",
    "invitation",
    "token",
    "window_future",
    "window_closed",
)
"""The reasons under which refusals are counted, in the store and in the metrics."""

Spends = tuple[bytes | None, bytes | None]
"""What a batch spends: the hash of an invitation, or that of a token."""

MOST_LISTED = 1000
"""How many refused reports a receipt lists at most, so that a small upload cannot cause a very large response."""

_BATCH_ID = re.compile(r"[0-9a-f]{32}")
_REFUSALS: Mapping[Outcome, str] = {CLOSED: "closed", DUPLICATE: "duplicate", SPENT: "invitation"}
_decode_json = msgspec.json.Decoder().decode


class Form(Enum):
    """The encoding of an upload."""

    TEXT = "text"
    """What text/plain announces: JSON, or a binary batch, which its first bytes tell."""
    BINARY = "binary"
    JSON = "json"
    ARROW = "arrow"


class Rejections:
    """Counts of refusals, buffered in memory and flushed periodically: a flood of garbage must not cause commits."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._lock, self._waiting = Lock(), dict[str, Counter[str]]()

    def add(self, collection: str, reason: str, reports: int = 1) -> None:
        """Count refused reports; an upload that cannot be decoded counts as one."""
        with self._lock:
            self._waiting.setdefault(collection, Counter())[reason] += reports

    def waiting(self, collection: str) -> dict[str, int]:
        """Refusals of a collection that are not in the store yet."""
        with self._lock:
            return dict(self._waiting.get(collection, {}))

    def flush(self, store: Store) -> None:
        """Write the buffered counts to the store; those that fail stay buffered, and the error is raised."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
        # Outside of the lock: a slow commit must not block requests that are being refused.
        for collection, reasons in taken.items():
            try:
                store.count_rejected(collection, reasons)
            except Exception:
                for reason, reports in reasons.items():
                    self.add(collection, reason, reports)
                raise


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """A decoded and validated upload: the batch to store, and the indices of refused reports."""

    batch: NewBatch | None
    """None if no report is valid, so that there is nothing to store."""
    accepted: int
    rejected: tuple[int, ...] = ()
    """Indices of reports that the mechanism could not have produced."""
    bad_rows: tuple[int, ...] = ()
    """Places of other reports whose rows do not fit the public columns."""

    @property
    def refused(self) -> dict[str, int]:
        """Number of refused reports by reason."""
        counts = {"range": len(self.rejected), "row": len(self.bad_rows)}
        return {reason: reports for reason, reports in counts.items() if reports}

    def receipt(self, outcome: Outcome) -> dict[str, Any]:
        """The receipt, for after the commit.

        A duplicate has 0 accepted reports: a batch with its id is stored already, whatever reports that one had.
        """
        # Cut before sorting: an upload of a million bad reports must not be sorted to name a thousand.
        first, rows = self.rejected[:MOST_LISTED], self.bad_rows[:MOST_LISTED]
        places = sorted([*((i, "range") for i in first), *((i, "row") for i in rows)])
        refused = [{"index": i, "reason": reason} for i, reason in places[:MOST_LISTED]]
        again = outcome == DUPLICATE
        return {"accepted": 0 if again else self.accepted, "rejected": refused, "duplicate": again}


class Ingest:
    """Decodes and validates uploads, and writes receipts; storing is the writer's part."""

    def __init__(
        self, shelf: Shelf, rejections: Rejections, *, takes_rows: bool = True, now: Callable[[], float] = time
    ) -> None:
        """Work with the collections of a shelf; `takes_rows` if there is a folder for segments.

        `now`, in seconds since 1970, decides which windows take reports.
        """
        self._shelf, self._rejections, self._takes_rows, self._now = shelf, rejections, takes_rows, now

    def find(self, collection: str) -> Active:
        """The published or closed collection of an id; Problem `not_found` if there is none."""
        active = self._shelf.find(collection)
        if active is None:
            raise Problem("not_found", "there is no such collection; check the address")
        return active

    def judge(self, active: Active, body: bytes, form: Form, invitation: str = "", named: str = "") -> JudgedBatch:
        """Decode a batch and validate its reports; a refusal of the whole batch is counted and raised as a Problem.

        `named` is the batch id in hexadecimal, for Arrow streams, which have no place for it.
        """
        if active.collection.rows is not None and not self._takes_rows:
            raise Problem("unavailable", NO_FOLDER)
        try:
            _refuse_unshuffled(active)
            if active.collection.rows is not None:
                return _of_a_size(self._judge_rows(active, body, form, invitation, named))
            if form is Form.ARROW:
                raise Problem("malformed", "batch: this collection takes reports without rows, not an Arrow stream")
            batch = _read_binary(active, body) if form is Form.BINARY else _read_json(active, _read_text(body))
            _check_names(active, batch)
            spends = _admitted(active, batch.count, invitation)
            return _of_a_size(_judged(active, batch, spends, _stored_under(active, batch, self._now)))
        except Problem as problem:
            # Counted here, because a batch that is refused as a whole never reaches the store, which counts others.
            self._rejections.add(active.id, problem.kind)
            raise

    def _judge_rows(self, active: Active, body: bytes, form: Form, invitation: str, named: str) -> JudgedBatch:
        """`judge` for a collection with rows."""
        if form is Form.BINARY:
            raise Problem("malformed", "batch: every report needs its row here; send JSON or an Arrow stream")
        if form is Form.ARROW:
            if not _BATCH_ID.fullmatch(named):
                raise Problem("malformed", "batch: the header Tacit-Batch must have 32 lower-case hexadecimal digits")
            judged, name = judge_arrow(active, body), bytes.fromhex(named)
            return _upload(active, name, judged, _admitted(active, judged.total, invitation))
        value, rows = split_rows(active, _read_text(body))
        batch = _read_json(active, value)
        _check_names(active, batch)
        spends = _admitted(active, batch.count, invitation)
        _need_reports(batch)
        return _upload(active, batch.batch, judge_json(active, active.payload(batch), rows), spends)

    def settle(self, active: Active, upload: JudgedBatch, outcome: Outcome) -> dict[str, Any]:
        """The receipt for an outcome of the store; raises a Problem, and counts the refusal, if it was not stored."""
        reason = _REFUSALS.get(outcome)
        if reason is not None:
            self._rejections.add(active.id, _about(active) if outcome == SPENT else reason, upload.accepted)
        if outcome == CLOSED:
            raise Problem("closed", "the collection is closed and takes no more reports")
        if outcome == SPENT:
            raise Problem(_about(active), f"the {_about(active)} is unknown or was used before")
        return upload.receipt(outcome)

    def nothing_stored(self, active: Active, upload: JudgedBatch) -> dict[str, Any]:
        """The receipt of a batch without a single valid report, which never reaches the store."""
        for reason, reports in upload.refused.items():
            self._rejections.add(active.id, reason, reports)
        return upload.receipt(INVALID)


def _refuse_unshuffled(active: Active) -> None:
    """Problem `shuffled` for a report that comes straight from a device: whoever sends it would be known by address."""
    if active.collection.shuffle is not None:
        raise Problem(
            "shuffled", "reports of this collection are sealed and sent to its shufflers; the document names them"
        )


def _check_names(active: Active, batch: Batch) -> None:
    if batch.collection != active.id:
        raise Problem("wrong_collection", "the batch names another collection than the address it was sent to")


def _stored_under(active: Active, batch: Batch, now: Callable[[], float]) -> str:
    """The id that a batch is stored under: that of its window, if the collection has windows and this one is open.

    The time decides and is not kept. Problem `window_future` or `window_closed` for a window that takes no reports.
    """
    windows = active.collection.windows
    if windows is None or batch.window is None:
        if windows is not None:
            raise Problem("malformed", "batch: this collection has windows; a batch must name one (TCB2, or window)")
        if batch.window is not None:
            raise Problem("malformed", "batch: this collection has no windows, so a batch must not name one")
        return active.id
    if batch.window >= windows.count:
        raise Problem("malformed", f"batch: the window must be below {windows.count}")
    state = windows.state(batch.window, now())
    if state == FUTURE:
        raise Problem("window_future", "the window has not begun; check the clock of the device")
    if state == FINAL:
        raise Problem("window_closed", "the window takes no more reports; the report stays charged and is not counted")
    return window_id(active.id, batch.window)


def _of_a_size(upload: JudgedBatch) -> JudgedBatch:
    """Problem `too_large` for batches that exceed the writer's whole queue: a 503 would make clients retry for ever."""
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
    """The kind of problem of a binary batch that cannot be decoded: bad head, other collection, or wrong widths."""
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
    """Whether a refused JSON batch has a well-formed report of a wrong width, which deserves a better error."""
    reports: Any = cast("dict[str, Any]", value).get("reports") if isinstance(value, dict) else None
    for item in cast("list[Any]", reports) if isinstance(reports, list) else []:
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        member, text = fields.get("member", 0), fields.get("report")
        known = type(member) is int and 0 <= member < len(widths)
        if known and isinstance(text, str) and re.fullmatch(r"([0-9a-f]{2})*", text):
            if len(text) != 2 * widths[member]:
                return True
    return False


def _about(active: Active) -> str:
    """What admits reports to a collection by invitation."""
    return "invitation" if active.collection.tokens is None else "token"


def _admitted(active: Active, count: int, given: str) -> Spends:
    """What a batch spends, nothing where the collection is for everybody; one invitation or token is for one report."""
    if not active.collection.invitations:
        return None, None
    kind, terms = _about(active), active.collection.tokens
    if not given:
        raise Problem(kind, f"this collection takes reports by {kind}; send the one you were given")
    if count != 1:
        raise Problem(kind, f"one {kind} is for one report, the batch has {count}")
    if terms is None:
        return invitation_hash(given), None
    token = AnonymousToken.parse(given)
    if token is None or not token.is_signed(active.id, terms):
        raise Problem("token", "the token is not one that was signed for this collection; redeem an invitation for one")
    return None, token.spent


_NONE: Mapping[str, int] = {}


def _judged(active: Active, batch: Batch, spends: Spends, under: str) -> JudgedBatch:
    """Validate the reports of a batch one by one; the valid ones are kept, in the mechanism's layout."""
    _need_reports(batch)
    payload = active.payload(batch)
    reports = np.frombuffer(payload, active.dtype)
    valid = active.mechanism.valid(reports)
    n = len(reports)
    accepted = int(np.count_nonzero(valid))
    # Fast path: nearly every batch is valid as a whole, and its payload is stored as it came.
    if accepted == n:
        return JudgedBatch(NewBatch(under, batch.batch, payload, n, _NONE, *spends), n)
    places = tuple(np.flatnonzero(~valid).tolist())
    if not accepted:
        return JudgedBatch(None, 0, places)
    payload = np.ascontiguousarray(reports[valid]).tobytes()
    counts = {"range": len(places)}
    return JudgedBatch(NewBatch(under, batch.batch, payload, accepted, counts, *spends), accepted, places)


def _upload(active: Active, name: bytes, judged: Judged, spends: Spends) -> JudgedBatch:
    """The validated upload of a collection with rows."""
    upload = JudgedBatch(None, judged.count, judged.bad_reports, judged.bad_rows)
    if not judged.count:
        return upload
    batch = NewBatch(active.id, name, judged.payload, judged.count, upload.refused or _NONE, *spends)
    return replace(upload, batch=batch)
