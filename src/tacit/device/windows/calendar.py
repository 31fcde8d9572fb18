"""Civil calendars: which window a date is in, and which days a window has. Dates only, so summer time cannot matter."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from tacit.errors import InvalidSpec

EVERY = ("day", "week", "month")
ZONES = ("utc", "local")
MAX_WINDOWS = 4096
_EARLIEST_LOCAL, _LATEST_LOCAL = timedelta(hours=14), timedelta(hours=12)
"""Civil dates begin up to 14 hours before and end up to 12 hours after those of UTC, somewhere on earth."""
_LAST_YEAR = 9000
"""Calendars end before the last year that dates can have, so that the day after a window always exists."""


@dataclass(frozen=True)
class Calendar:
    """Windows of equal civil length, numbered from 0 on.

    >>> Calendar("week", date(2030, 1, 7)).window(date(2030, 3, 1))
    7
    """

    every: str
    first: date
    zone: str = "utc"

    def __post_init__(self) -> None:
        """Weeks begin on a Monday and months on the 1st, so that a window is what people call a week or a month."""
        if self.every not in EVERY:
            raise InvalidSpec(f"windows.every is {str(self.every)[:20]!r}, must be one of {', '.join(EVERY)}")
        if self.zone not in ZONES:
            raise InvalidSpec(f"windows.zone is {str(self.zone)[:20]!r}, must be one of {', '.join(ZONES)}")
        if self.every == "week" and self.first.weekday() != 0:
            raise InvalidSpec(f"windows.first is {self.first}, must be a Monday for windows of a week")
        if self.every == "month" and self.first.day != 1:
            raise InvalidSpec(f"windows.first is {self.first}, must be the 1st of a month for windows of a month")
        if self.first.year > _LAST_YEAR:
            raise InvalidSpec(f"windows.first is {self.first}, must be before the year {_LAST_YEAR}")

    def window(self, day: date) -> int:
        """Return the number of the window that a date is in; negative before the first one."""
        if self.every == "month":
            return 12 * (day.year - self.first.year) + day.month - self.first.month
        # Floor division, so that days before the first window get negative numbers and never 0.
        return (day - self.first).days // (7 if self.every == "week" else 1)

    def first_day(self, window: int) -> date:
        """Return the first day of a window."""
        if self.every != "month":
            return self.first + timedelta(days=window * (7 if self.every == "week" else 1))
        # Months are counted from January as 0, so that a quotient and a remainder by 12 split them again.
        months = 12 * self.first.year + self.first.month - 1 + window
        return date(months // 12, months % 12 + 1, 1)

    def last_day(self, window: int) -> date:
        """Return the last day of a window."""
        return self.first_day(window + 1) - timedelta(days=1)

    def opens(self, window: int) -> float:
        """Return the Unix time from which on some device may be in this window."""
        earlier = _EARLIEST_LOCAL if self.zone == "local" else timedelta(0)
        return (_midnight(self.first_day(window)) - earlier).timestamp()

    def closes(self, window: int) -> float:
        """Return the Unix time from which on no device is in this window any more."""
        later = _LATEST_LOCAL if self.zone == "local" else timedelta(0)
        return (_midnight(self.first_day(window + 1)) + later).timestamp()


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def parse_date(text: object, where: str) -> date:
    """Return a date from its one written form, such as 2030-01-07; InvalidSpec for anything else."""
    try:
        day = date.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        day = None
    # Python reads other forms of ISO 8601 too, which would give one document several texts.
    if day is None or day.isoformat() != text:
        raise InvalidSpec(f'{where} must be a date such as "2030-01-07"')
    return day
