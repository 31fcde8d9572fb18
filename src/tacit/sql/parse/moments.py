"""Dates, times, intervals and arrays as PostgreSQL spells them in quotes."""

import re
from datetime import UTC, date, datetime, timedelta, timezone

from tacit.errors import InvalidQuery
from tacit.sql.parse.syntax import Interval

_MOMENT = re.compile(
    r"\s*(\d{4}-\d\d-\d\d)"
    r"(?:(?:[ Tt]+)(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?"
    r"\s*(?:(Z|z|UTC|utc)|([-+])(\d\d)(?::?(\d\d))?)?\s*",
    re.ASCII,
)
"""A day, a time of day behind a blank or T, and a time zone; each of the latter may be left out."""


def moment_of(text: str) -> datetime | None:
    """A date with an optional time and zone; aware if there is a zone, None if the text is something else.

    >>> moment_of("2030-01-31T12:00:00+02:00").isoformat(), moment_of("2030-02-31")
    ('2030-01-31T12:00:00+02:00', None)
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    day, hour, minute, second, fraction, utc, sign, zone_hours, zone_minutes = match.groups()
    try:
        found = datetime.fromisoformat(day).replace(
            hour=int(hour or 0), minute=int(minute or 0), second=int(second or 0),
            microsecond=int((fraction or "0")[:6].ljust(6, "0")),
        )  # fmt: skip
        if utc:
            return found.replace(tzinfo=UTC)
        if sign:
            offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes or 0))
            return found.replace(tzinfo=timezone(-offset if sign == "-" else offset))
    except ValueError:
        return None
    return found


def constant_moment(text: str, kind: str) -> date | datetime:
    """A constant in quotes as a date, timestamp or timestamptz, read as PostgreSQL reads it.

    The time of a date is dropped, and so is the zone of a timestamp; a timestamptz without a zone is in UTC.
    """
    found = moment_of(text)
    if found is None:
        raise InvalidQuery(
            f"sql: {text[:40]!r} is no {kind}; write it as '2030-12-31' or '2030-12-31 23:59:59'", code="22007"
        )
    if kind == "date":
        return found.date()
    if kind == "timestamp":
        return found.replace(tzinfo=None)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


_SECOND = 1_000_000
_UNITS = {"microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": 60 * _SECOND, "hour": 3600 * _SECOND,
          "day": 86_400 * _SECOND, "week": 7 * 86_400 * _SECOND}  # fmt: skip
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_SHORT = {
    "sec": "second", "min": "minute", "hr": "hour", "mon": "month", "s": "second",
    "m": "minute", "h": "hour", "d": "day", "w": "week", "y": "year", "ms": "millisecond", "us": "microsecond",
    "centuries": "century",
}  # fmt: skip
_AMOUNT = re.compile(r"\s*([-+]?\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+)", re.ASCII)
_CLOCK = re.compile(r"\s*([-+]?)(\d{1,5}):(\d\d)(?::(\d\d))?\s*", re.ASCII)


def interval_of(text: str, unit: str = "") -> Interval:
    """An interval such as '1 month', '7 days 12 hours', '01:30:00', or a number whose unit stands behind the quotes.

    >>> interval_of("-1 month"), interval_of("15", "MINUTES").microseconds // 60_000_000
    (Interval(months=-1, microseconds=0), 15)
    """
    words = f"{text} {unit}".lower().strip()
    clock = _CLOCK.fullmatch(words)
    if clock is not None:
        hours, minutes, seconds = int(clock[2]), int(clock[3]), int(clock[4] or 0)
        total = ((hours * 60 + minutes) * 60 + seconds) * _SECOND
        return Interval(0, -total if clock[1] == "-" else total)
    months, microseconds, at = 0, 0, 0
    while at < len(words) and (match := _AMOUNT.match(words, at)) is not None:
        word = match[2] if match[2] in _SHORT else match[2].removesuffix("s")
        name = _SHORT.get(word, word)
        if name in _MONTHS and float(match[1]).is_integer():
            months += int(float(match[1])) * _MONTHS[name]
        elif name in _UNITS:
            microseconds += round(float(match[1]) * _UNITS[name])
        else:
            break
        at = match.end()
    if not at or words[at:].strip():
        raise InvalidQuery(
            f"sql: INTERVAL {words[:40]!r} is not understood; write such as INTERVAL '7 days'", code="22007"
        )
    return Interval(months, microseconds)


_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?\Z)|([^,{}"]+)', re.DOTALL)
"""An item of an array. A quote without an end goes to the end, so that nothing is ever read twice."""


def array_items(text: str) -> list[str | None]:
    r"""The items of an array of one dimension in PostgreSQL's spelling.

    >>> array_items('{a,"b,\\"c",NULL}')
    ['a', 'b,"c', None]
    """
    items: list[str | None] = []
    for match in _ITEM.finditer(text[1:-1]):
        quoted, plain = match.groups()
        if quoted is not None:
            items.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        else:
            items.append(None if plain.strip().upper() == "NULL" else plain.strip())
    return items
