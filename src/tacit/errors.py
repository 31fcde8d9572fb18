"""Every error Tacit raises, in one tree.

::

    TacitError
    ├── InvalidSpec        a mechanism, domain or budget that cannot exist
    │   ├── InvalidQuery   a query that is not answered
    │   ├── CertificateRefused  a privacy certificate that claims more than can be computed again
    │   └── MissingExtra   a library that comes with an extra of the package is not installed
    ├── InvalidValue       a private value outside its declared domain (never echoed)
    ├── ReportRejected     a report or report file that does not fit its mechanism
    │   └── OpenFailed     sealed bytes that do not open: altered, or sealed for somebody else
    ├── ProtocolViolation  a message of a shuffle that no honest party sends
    ├── SessionAborted     a shuffle was given up before anything reached the collector
    ├── ReleaseRefused     shuffled reports that must not be counted
    ├── ProgramFailed      a program under audit could not be run
    ├── SpecMismatch       a tally was added to, or estimated by, another mechanism
    ├── NoData             shares were asked of a tally whose weights sum to zero
    ├── Overflow           a tally would exceed 64-bit integers
    ├── StorageUnavailable the database cannot be reached or written; nothing was acknowledged
    │   └── StorageFull    the disk is full
    ├── StorageDamaged     what the database holds of a collection has other bytes than were written
    ├── SegmentDamaged     a file of sealed rows is missing or has other bytes than were sealed
    └── Busy               more was sent than can be stored just now; try again shortly

A message says who, which value, which rule and what to do; it never contains a private value or a payload.
"""

from typing import Any


class TacitError(Exception):
    """Base of all errors that Tacit raises on purpose."""


class InvalidSpec(TacitError, ValueError):
    """A mechanism, domain or budget that cannot exist."""


class InvalidQuery(InvalidSpec):
    """A query that is not answered; the message names the construct and what to write instead.

    `code` is the SQLSTATE that PostgreSQL gives such an error (appendix A of its manual), empty outside of SQL.
    `position` is the character of the text at fault, counted from 1, or 0 where none is known. Whoever shows the
    error takes both from here; nobody reads the message to find them.
    """

    def __init__(self, message: str, *, code: str = "", position: int = 0) -> None:
        """Refuse a query."""
        super().__init__(message)
        self.code, self.position = code, position

    def at(self, position: int) -> "InvalidQuery":
        """The same error, placed there unless whoever raised it knew its place already."""
        self.position = self.position or position
        return self


class CertificateRefused(InvalidSpec):
    """A certificate that claims a smaller epsilon than its accountant finds, or that belongs to another mechanism."""


class MissingExtra(InvalidSpec, ImportError):
    """A library that comes with an extra of the package is not installed; the message has the command to install it."""


class InvalidValue(TacitError, ValueError):
    """A private value outside its declared domain; the value itself is never part of the message."""


class ReportRejected(TacitError, ValueError):
    """A report, batch or file that does not fit the mechanism it is counted under."""


class OpenFailed(ReportRejected):
    """Sealed bytes do not open: they were altered, or sealed for another key, session or place."""


class ProtocolViolation(TacitError, ValueError):
    """A message of a shuffle that no honest party sends; the message names the party.

    `evidence` holds what convinces others, such as two different signed envelopes for the same place.
    """

    def __init__(self, message: str, *, evidence: tuple[Any, ...] = ()) -> None:
        """Accuse a party."""
        super().__init__(message)
        self.evidence = evidence


class SessionAborted(TacitError):
    """A shuffle was given up before anything reached the collector; nobody's privacy was spent."""


class ReleaseRefused(TacitError):
    """Shuffled reports fail a check before release, so that nothing is counted of them."""


class ProgramFailed(TacitError):
    """A program under audit could not be started, failed, or printed something else than what it was asked for."""


class SpecMismatch(TacitError, ValueError):
    """A tally was added to one of another mechanism, estimated by another mechanism, or has unfit weights."""


class NoData(TacitError, ValueError):
    """Shares were asked of a tally whose weights sum to zero, so that there is no whole."""


class Overflow(TacitError, OverflowError):
    """A tally would exceed 64-bit integers."""


class StorageUnavailable(TacitError):
    """The collector's database cannot be reached, read or written; nothing of the operation was acknowledged."""


class StorageFull(StorageUnavailable):
    """The disk of the collector's database is full; nothing of the operation was acknowledged."""


class StorageDamaged(TacitError):
    """What the collector's database holds of a collection is not as it was written; nothing is answered from it."""


class SegmentDamaged(TacitError):
    """A file of sealed rows is missing or has other bytes than were sealed; nothing is answered without it."""


class Busy(TacitError):
    """The collector has as many batches in hand as it can hold; the same batch can be sent again shortly."""
