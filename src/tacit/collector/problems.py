"""What the collector refuses, as RFC 9457 problem documents; `spec/errors.md` says what to do about each kind."""

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
    ReportRejected,
    SegmentDamaged,
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
    "invitation": (403, "The invitation is missing, unknown or spent"),
    "not_found": (404, "There is nothing here"),
    "method_not_allowed": (405, "This address takes other methods"),
    "timeout": (408, "The request took too long to arrive"),
    "conflict": (409, "The state of the collection does not allow this"),
    "wrong_collection": (409, "The batch is for another collection"),
    "no_data": (409, "There are no reports to answer from"),
    "below_minimum_cohort": (409, "Too few reports are stored to answer from"),
    "closed": (410, "The collection takes no more reports"),
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
"""Every kind of problem: its status and its title."""

TYPE_PREFIX = "urn:tacit:error:"
MEDIA_TYPE = "application/problem+json"

_OF_ERRORS: tuple[tuple[type[TacitError], str], ...] = (
    (InvalidQuery, "invalid_query"),
    (InvalidSpec, "invalid_spec"),
    (InvalidValue, "invalid_value"),
    (NoData, "no_data"),
    (ReportRejected, "malformed"),
    (SegmentDamaged, "damaged"),
    (StorageDamaged, "damaged"),
)
_RETRY_SECONDS = 2


class Problem(Exception):
    """A refusal with a kind and one sentence that helps; never a payload, never a private value."""

    def __init__(self, kind: str, detail: str, *, retry_seconds: int = 0) -> None:
        """Refuse; `retry_seconds` says when it is worth trying again."""
        super().__init__(detail)
        self.kind, self.detail, self.retry_seconds = kind, detail, retry_seconds

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.kind][0]

    def to_json(self) -> dict[str, Any]:
        """The problem document."""
        status, title = KINDS[self.kind]
        return {"type": TYPE_PREFIX + self.kind, "title": title, "status": status, "detail": self.detail}


def problem_of(error: TacitError) -> Problem:
    """The problem that an error of the library is; what nobody foresaw is our own mistake."""
    if isinstance(error, StorageFull):
        return Problem("storage_full", "the disk of the collector is full; nothing was stored, send it again later",
                       retry_seconds=60)  # fmt: skip
    if isinstance(error, (StorageUnavailable, Busy)):
        # A commit that failed may have reached the disk all the same, so nothing is said about what was stored.
        return Problem("unavailable", "this cannot be taken now; send the same bytes again shortly, they count once",
                       retry_seconds=_RETRY_SECONDS)  # fmt: skip
    if isinstance(error, MissingExtra):  # Also an InvalidSpec, and yet nothing that who asked could correct.
        return Problem("missing_extra", f"on the collector's machine, {error}")
    for kind, name in _OF_ERRORS:
        if isinstance(error, kind):
            return Problem(name, str(error))
    return Problem("internal", f"{type(error).__name__}: the operation was refused")


def as_problem(error: BaseException) -> Problem:
    """The problem document of any failure; what nobody foresaw is logged by type and place, never by its message."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, TacitError):
        return problem_of(error)
    places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]
    LOG.error("unexpected %s at %s", type(error).__name__, " < ".join(reversed(places)))
    return Problem("internal", "the collector failed on this request; it has been logged")
