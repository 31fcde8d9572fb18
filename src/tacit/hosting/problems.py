"""Errors of the HTTP interface, as RFC 9457 problem documents; `spec/errors.md` says what to do about each kind."""

import logging
import traceback
from typing import Any

from tacit.errors import (
    Busy,
    InvalidQuery,
    InvalidSpec,
    InvalidValue,
    MissingExtra,
    NoData,
    ProtocolViolation,
    ReleaseRefused,
    ReportRejected,
    SegmentDamaged,
    SessionAborted,
    StorageDamaged,
    StorageFull,
    StorageUnavailable,
    TacitError,
)

LOG = logging.getLogger("tacit.collector")

KINDS: dict[str, tuple[int, str]] = {
    "malformed": (400, "The request cannot be read"),
    "unauthorized": (401, "A token is needed"),
    "forbidden": (403, "The token does not allow this"),
    "origin": (403, "The collection does not allow this site"),
    "invitation": (403, "The invitation is missing, unknown or spent"),
    "token": (403, "The token is missing, forged or used"),
    "protocol_violation": (403, "No honest party of a shuffle sends this"),
    "not_found": (404, "There is nothing here"),
    "method_not_allowed": (405, "This address takes other methods"),
    "timeout": (408, "The request took too long to arrive"),
    "conflict": (409, "The state of the collection does not allow this"),
    "wrong_collection": (409, "The batch is for another collection"),
    "shuffled": (409, "The collection takes reports from its shufflers alone"),
    "no_data": (409, "There are no reports to answer from"),
    "below_minimum_cohort": (409, "Too few reports are stored to answer from"),
    "window_future": (425, "The window of the reports has not begun"),
    "closed": (410, "The collection takes no more reports"),
    "window_closed": (410, "The window of the reports takes no more of them"),
    "too_large": (413, "The request is too large"),
    "unsupported_media_type": (415, "This content type is not understood here"),
    "invalid_spec": (422, "The collection or setting cannot exist"),
    "invalid_value": (422, "A value is outside its domain"),
    "invalid_query": (422, "The query cannot be answered"),
    "width": (422, "Reports have another width than the mechanism's"),
    "rate_limited": (429, "Too many requests"),
    "internal": (500, "The collector made a mistake"),
    "damaged": (500, "What the collector has stored is damaged"),
    "missing_extra": (501, "The collector lacks a library"),
    "query_timeout": (503, "The query took too long"),
    "unavailable": (503, "The collector cannot take this now"),
    "storage_full": (507, "The storage is full"),
}
"""Every kind of problem: its HTTP status and its title."""

TYPE_PREFIX = "urn:tacit:error:"
MEDIA_TYPE = "application/problem+json"

# Checked in order, so that a subclass must stand before its base.
_OF_ERRORS: tuple[tuple[type[TacitError], str], ...] = (
    (InvalidSpec, "invalid_spec"),
    (InvalidValue, "invalid_value"),
    (NoData, "no_data"),
    (ReportRejected, "malformed"),
    (ProtocolViolation, "protocol_violation"),
    (SessionAborted, "conflict"),
    (ReleaseRefused, "conflict"),
    (SegmentDamaged, "damaged"),
    (StorageDamaged, "damaged"),
)
_RETRY_SECONDS = 2


class Problem(Exception):
    """A refusal: a kind of `KINDS`, and one helpful sentence, which never contains a payload or a private value."""

    def __init__(
        self, kind: str, detail: str, *, retry_seconds: int = 0, code: str = "", position: int = 0
    ) -> None:  # fmt: skip
        """Refuse. `retry_seconds` becomes Retry-After; `code` (SQLSTATE) and `position` are for errors in SQL."""
        super().__init__(detail)
        self.kind, self.detail, self.retry_seconds = kind, detail, retry_seconds
        self.code, self.position = code, position

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.kind][0]

    def to_json(self) -> dict[str, Any]:
        """The problem document as plain data."""
        status, title = KINDS[self.kind]
        document = {"type": TYPE_PREFIX + self.kind, "title": title, "status": status, "detail": self.detail}
        code = {"code": self.code} if self.code else {}
        return document | code | ({"position": self.position} if self.position else {})


def problem_of(error: TacitError) -> Problem:
    """The problem that corresponds to an error of the library; `internal` if none does."""
    if isinstance(error, StorageFull):
        return Problem("storage_full", "the disk of the collector is full; nothing was stored, send it again later",
                       retry_seconds=60)  # fmt: skip
    if isinstance(error, (StorageUnavailable, Busy)):
        # A commit that failed may still have reached the disk, so the text claims nothing about what was stored. The
        # client sends the same bytes again; the batch id makes that safe.
        return Problem("unavailable", "this cannot be taken now; send the same bytes again shortly, they count once",
                       retry_seconds=_RETRY_SECONDS)  # fmt: skip
    # Before InvalidSpec, of which it is a subclass: the client cannot correct a library that is not installed.
    if isinstance(error, MissingExtra):
        return Problem("missing_extra", f"on the collector's machine, {error}")
    if isinstance(error, InvalidQuery):
        words = str(error).removeprefix("sql: ")
        return Problem("invalid_query", words, code=error.code, position=error.position)
    for kind, name in _OF_ERRORS:
        if isinstance(error, kind):
            return Problem(name, str(error))
    return Problem("internal", f"{type(error).__name__}: the operation was refused")


def as_problem(error: BaseException) -> Problem:
    """The problem of any exception.

    Unexpected ones are logged by type and stack position, never by message, which might contain a respondent's data.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, TacitError):
        return problem_of(error)
    places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]
    LOG.error("unexpected %s at %s", type(error).__name__, " < ".join(reversed(places)))
    return Problem("internal", "the collector failed on this request; it has been logged")
