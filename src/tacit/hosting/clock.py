"""The clocks of a server, injected so that tests can stop them, advance them and make them jump."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from time import monotonic, time

_DAY_SECONDS = 86_400


def today() -> int:
    """The day, counted from 1970-01-01 UTC."""
    return int(time()) // _DAY_SECONDS


def date_of(day: int) -> str:
    """The date of a Unix day.

    >>> date_of(20_000)
    '2024-10-04'
    """
    return date.fromordinal(date(1970, 1, 1).toordinal() + day).isoformat()


@dataclass(frozen=True)
class Clock:
    """A calendar, which may be set and jump, and a monotonic clock, which never does."""

    day: Callable[[], int] = today
    """Unix day (days since 1970-01-01 UTC), for retention and expiry."""
    seconds: Callable[[], float] = monotonic
    """Monotonic seconds from an arbitrary origin, for durations."""
    now: Callable[[], float] = time
    """Seconds since 1970, for what a document says about the end of a session."""
