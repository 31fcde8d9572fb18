"""Every error Tacit raises, in one tree.

::

    TacitError
    ├── InvalidSpec        a mechanism, domain or budget that cannot exist
    ├── InvalidValue       a private value outside its declared domain (never echoed)
    ├── ReportRejected     a report or report file that does not fit its mechanism
    ├── SpecMismatch       two tallies of different mechanisms were added
    ├── NoData             shares were asked of a tally whose weights sum to zero
    └── Overflow           a tally would exceed 64-bit integers

A message says who, which value, which rule and what to do; it never contains a private value or a payload.
"""


class TacitError(Exception):
    """Base of all errors that Tacit raises on purpose."""


class InvalidSpec(TacitError, ValueError):
    """A mechanism, domain or budget that cannot exist."""


class InvalidValue(TacitError, ValueError):
    """A private value outside its declared domain; the value itself is never part of the message."""


class ReportRejected(TacitError, ValueError):
    """A report, batch or file that does not fit the mechanism it is counted under."""


class SpecMismatch(TacitError, ValueError):
    """Two tallies of different mechanisms cannot be added."""


class NoData(TacitError, ValueError):
    """Shares were asked of a tally whose weights sum to zero, so that there is no whole."""


class Overflow(TacitError, OverflowError):
    """A tally would exceed 64-bit integers."""
