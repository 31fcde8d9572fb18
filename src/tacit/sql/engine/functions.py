"""Functions and casts of public values, on Arrow's arrays and scalars; NULL stays NULL.

Times are UTC: a `date` is Arrow's date32, a `timestamp` is in microseconds without a zone, a `timestamptz` with UTC.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tacit.errors import InvalidQuery
from tacit.sql.parse.moments import moment_of
from tacit.sql.parse.syntax import Interval

_DAY = 86_400_000_000
_ARROW_TYPES = {"smallint": "int16", "integer": "int32", "bigint": "int64", "real": "float32",
                "double precision": "float64", "numeric": "float64", "boolean": "bool_", "text": "string"}  # fmt: skip
I64 = npt.NDArray[np.int64]


def stamp(zone: bool = False) -> Any:
    """Arrow's type of a timestamp, with UTC or without a zone."""
    return pa.timestamp("us", "UTC" if zone else None)


def type_name(kind: Any) -> str:
    """What SQL calls one of Arrow's types."""
    types = pa.types
    if types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    for test, name in (
        (types.is_boolean, "boolean"), (types.is_integer, "bigint"), (types.is_floating, "double precision"),
        (types.is_decimal, "numeric"), (types.is_date, "date"), (types.is_string, "text"),
        (types.is_large_string, "text"),
    ):  # fmt: skip
        if test(kind):
            return name
    return "of a type that is not compared"


def as_stamp(values: Any, what: str, *, zone: bool | None = None) -> Any:
    """Dates, timestamps or text as a timestamp; with or without a zone, or (None) with one if there was."""
    types = pa.types
    if isinstance(values, pa.Scalar) and types.is_string(values.type):
        moment = moment_of(str(values.as_py()))
        if moment is None:
            raise InvalidQuery(f"sql: {what} is no date; write it as '2030-12-31'", code="22007")
        values = pa.scalar(moment if moment.tzinfo is None else moment.astimezone(UTC))
    if not (types.is_date(values.type) or types.is_timestamp(values.type)):
        raise InvalidQuery(f"sql: {what} is {type_name(values.type)}, must be a date or a timestamp", code="42804")
    had = types.is_timestamp(values.type) and values.type.tz is not None
    # Through UTC, so that a wall clock elsewhere becomes the same instant.
    instants = pc.cast(values, stamp(had))
    return pc.cast(pc.cast(instants, stamp(zone=True)), stamp(had if zone is None else zone)) if had else (
        pc.cast(instants, stamp(bool(zone)))
    )  # fmt: skip


def _on_integers(values: Any, change: Callable[[I64], I64]) -> Any:
    """Apply a function of microseconds since 1970 to timestamps."""
    scalar = isinstance(values, pa.Scalar)
    whole = pa.array([values.as_py()], values.type) if scalar else values
    numbers = np.asarray(pc.fill_null(pc.cast(whole, pa.int64()), 0), np.int64)
    made = pa.array(change(numbers), pa.int64(), mask=np.asarray(pc.is_null(whole)))
    made = made.cast(values.type)
    return made[0] if scalar else made


def _year_start(years: npt.NDArray[np.int64]) -> I64:
    return (years - 1970).astype("M8[Y]").astype("M8[us]").astype(np.int64)


def _years(values: I64) -> I64:
    return values.astype("M8[us]").astype("M8[Y]").astype(np.int64) + 1970


_LONG: dict[str, Callable[[I64], I64]] = {
    "decade": lambda y: y // 10 * 10,
    "century": lambda y: (y - 1) // 100 * 100 + 1,
    "millennium": lambda y: (y - 1) // 1000 * 1000 + 1,
}
"""The first year of a decade (2020), a century (2001) or a millennium (2001)."""


def date_trunc(unit: str, values: Any, what: str) -> Any:
    """The start of the unit that a time falls into; weeks start on Monday. A date becomes a timestamptz."""
    types = pa.types
    naive = types.is_timestamp(values.type) and values.type.tz is None
    times = as_stamp(values, what, zone=not naive)
    if unit in _LONG:
        return _on_integers(times, lambda x: _year_start(_LONG[unit](_years(x))))
    plain = unit.removesuffix("s") if unit in ("microseconds", "milliseconds") else unit
    return pc.floor_temporal(times, 1, plain, week_starts_monday=True)


def date_bin(stride: Interval, values: Any, origin: Any, what: str) -> Any:
    """The start of the bin that a time falls into, bins being `stride` wide and one of them starting at `origin`."""
    types = pa.types
    naive = any(types.is_timestamp(one.type) and one.type.tz is None for one in (values, origin))
    times, start = as_stamp(values, what, zone=not naive), as_stamp(origin, "the origin", zone=False)
    at = int(start.cast(pa.int64()).as_py())
    width = stride.microseconds
    return _on_integers(times, lambda x: (x - at) // width * width + at)


def shifted(values: Any, span: Interval, sign: int, what: str) -> Any:
    """A time plus or minus an interval; a day that a month does not have is its last one."""
    times = as_stamp(values, what)

    def moved(x: I64) -> I64:
        if span.months:
            months = x.astype("M8[us]").astype("M8[M]")
            day, clock = np.divmod(x - months.astype("M8[us]").astype(np.int64), _DAY)
            target = months + sign * span.months
            last = (target + 1).astype("M8[D]").astype(np.int64) - target.astype("M8[D]").astype(np.int64) - 1
            x = target.astype("M8[us]").astype(np.int64) + np.minimum(day, last) * _DAY + clock
        return x + sign * span.microseconds

    return _on_integers(times, moved)


def extract(field: str, values: Any, what: str) -> Any:
    """A part of a time as a number: whole where it is whole for every date."""
    times = as_stamp(values, what, zone=False)
    plain = {"year": pc.year, "month": pc.month, "day": pc.day, "quarter": pc.quarter, "hour": pc.hour,
             "minute": pc.minute, "doy": pc.day_of_year, "week": pc.iso_week, "isoyear": pc.iso_year}  # fmt: skip
    if field in plain:
        return plain[field](times)
    if field in ("dow", "isodow"):
        return pc.day_of_week(times, count_from_zero=field == "dow", week_start=7 if field == "dow" else 1)
    parts: dict[str, Callable[[I64], I64]] = {
        "decade": lambda x: _years(x) // 10,
        "century": lambda x: (_years(x) + 99) // 100,
        "millennium": lambda x: (_years(x) + 999) // 1000,
        "julian": lambda x: x // _DAY + 2_440_588,
        "microseconds": lambda x: x % 60_000_000,
        "milliseconds": lambda x: x % 60_000_000,
        "second": lambda x: x % 60_000_000,
        "epoch": lambda x: x,
    }
    whole = pc.cast(_on_integers(times, parts[field]), pa.int64())
    unit = {"milliseconds": 1000, "second": 1_000_000, "epoch": 1_000_000}.get(field)
    if unit is None:
        return whole
    return pc.divide(pc.cast(whole, pa.float64(), safe=False), float(unit))


def cast(values: Any, kind: str, scale: int, what: str) -> Any:
    """Values as another type of SQL; what PostgreSQL could not convert is refused without being shown."""
    types = pa.types
    if kind == "date":
        return pc.cast(pc.floor_temporal(as_stamp(values, what, zone=False), 1, "day"), pa.date32())
    if kind in ("timestamp", "timestamptz"):
        return as_stamp(values, what, zone=kind == "timestamptz")
    if kind == "text" and types.is_timestamp(values.type):
        return _stamp_text(values)
    target = getattr(pa, _ARROW_TYPES[kind])()
    if types.is_temporal(values.type) and kind != "text":
        raise InvalidQuery(f"sql: {what} is {type_name(values.type)}, it cannot be cast to {kind}", code="42846")
    try:
        if types.is_integer(target) and types.is_string(values.type):
            values = pc.cast(values, pa.int64())
        if types.is_integer(target) and types.is_floating(values.type):
            values = pc.round(values, round_mode="half_to_even")
        if kind == "boolean" and types.is_floating(values.type):
            raise InvalidQuery(f"sql: {what} is double precision, it cannot be cast to boolean", code="42846")
        made = pc.cast(values, target)
        return pc.round(made, scale, "half_towards_infinity") if kind == "numeric" and scale >= 0 else made
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidQuery(f"sql: not every value of {what} can be cast to {kind}", code="22P02") from None


def _stamp_text(values: Any) -> Any:
    """A timestamp as PostgreSQL writes it, in whole seconds."""
    text = pc.strftime(pc.cast(as_stamp(values, "", zone=False), pa.timestamp("s"), safe=False), "%Y-%m-%d %H:%M:%S")
    return pc.binary_join_element_wise(text, pa.scalar("+00"), "") if values.type.tz else text


def call(name: str, values: Sequence[Any], what: str) -> Any:
    """A function of values: those of numbers and texts; those of times have functions of their own."""
    first = values[0]
    if name in ("lower", "upper"):
        if type_name(first.type) != "text":
            raise InvalidQuery(f"sql: {what} is {type_name(first.type)}, must be text", code="42883")
        return (pc.utf8_lower if name == "lower" else pc.utf8_upper)(first)
    if name == "coalesce":
        try:
            return pc.coalesce(*values)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise InvalidQuery("sql: COALESCE takes values of one type", code="42804") from None
    if name == "at_utc":
        stated = as_stamp(first, what)
        return as_stamp(stated, what, zone=stated.type.tz is None)
    number = pc.cast(first, pa.float64(), safe=False)
    if name == "round":
        return pc.round(number, int(values[1].as_py()), "half_towards_infinity")
    return {"floor": pc.floor, "ceil": pc.ceil, "trunc": pc.trunc, "abs": pc.abs}[name](number)


def constant(value: Any) -> Any:
    """A constant of a query as Arrow's scalar."""
    if isinstance(value, Interval):
        raise InvalidQuery("sql: an INTERVAL is added to a date, or taken from one", code="42883")
    if isinstance(value, datetime):
        return pa.scalar(value, stamp(value.tzinfo is not None))
    return pa.scalar(value, pa.date32()) if isinstance(value, date) else pa.scalar(value)
