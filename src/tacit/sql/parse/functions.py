"""Functions, casts and typed constants of SQL, from sqlglot's tree to `syntax`."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tacit.sql.parse.moments import constant_moment, interval_of
from tacit.sql.parse.parsing import refusal
from tacit.sql.parse.syntax import Cast, Constant, Expression, FunctionCall

Read = Callable[[Any], Expression]

TYPES = {
    "TEXT": "text", "VARCHAR": "text", "CHAR": "text", "BPCHAR": "text", "NAME": "text",
    "SMALLINT": "smallint", "INT": "integer", "BIGINT": "bigint", "FLOAT": "real", "DOUBLE": "double precision",
    "DECIMAL": "numeric", "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp", "TIMESTAMPTZ": "timestamptz",
}  # fmt: skip
"""What sqlglot calls the types that casts go to, and their names in PostgreSQL."""

TIMES = ("date", "timestamp", "timestamptz")
WHOLE = ("smallint", "integer", "bigint")
NUMBERS = (*WHOLE, "real", "double precision", "numeric")

_TRUNCATED = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year",
              "decade", "century", "millennium")  # fmt: skip
_EXTRACTED = ("century", "day", "decade", "dow", "doy", "epoch", "hour", "isodow", "isoyear", "julian",
              "microseconds", "millennium", "milliseconds", "minute", "month", "quarter", "second", "week",
              "year")  # fmt: skip
_PLURALS = {"years": "year", "months": "month", "days": "day", "weeks": "week", "hours": "hour", "minutes": "minute",
            "seconds": "second", "microsecond": "microseconds", "millisecond": "milliseconds",
            "dayofweek": "dow", "dayofyear": "doy"}  # fmt: skip
_PLAIN = {"floor": "floor", "ceil": "ceil", "abs": "abs", "trunc": "trunc", "lower": "lower", "upper": "upper"}


CALLED = ("date_part", "date_bin", "timezone")
"""Functions that sqlglot has no node for, or that our parser leaves as they were written."""


def cast_type(item: Any) -> tuple[str, int]:
    """The type that a cast goes to, and its decimals (-1 if it states none); InvalidQuery for other types."""
    name = TYPES.get(item.to.this.name)
    if name is None:
        raise refusal(
            f"a cast to {item.to.sql(dialect='postgres')[:40].lower()} is not answered; cast to text, integer, "
            "bigint, numeric, double precision, boolean, date or timestamp",
            item,
        )
    sizes = [str(size.name) for size in item.to.expressions]
    if name == "numeric" and sizes:
        return name, int(sizes[1]) if len(sizes) > 1 and sizes[1].isdigit() else 0
    return name, -1


def read_call(item: Any, read: Read) -> Expression | None:
    """Parse a function of public values; None for functions that are not supported."""
    key = str(item.key)
    if key in ("timestamptrunc", "datetrunc"):
        _check_zone(item.args.get("zone"))
        return _truncated(str(item.args["unit"].name), read(item.this))
    if key == "extract":
        return _extracted("extract", str(item.this.name), read(item.expression))
    if key == "anonymous":
        return _anonymous(item, read)
    if key in _PLAIN and item.this is not None and not item.args.get("decimals") and not item.args.get("to"):
        return FunctionCall(_PLAIN[key], (read(item.this),))
    if key == "round":
        digits = item.args.get("decimals")
        return FunctionCall("round", (read(item.this), Constant(0) if digits is None else read(digits)))
    if key == "coalesce":
        return FunctionCall("coalesce", (read(item.this), *map(read, item.expressions)))
    if key == "date" and item.this is not None and not item.expressions:
        return Cast(read(item.this), "date")
    if key == "attimezone":
        _check_zone(item.args.get("zone"))
        return FunctionCall("at_utc", (read(item.this),))
    if key == "interval":
        return _interval(item)
    if key in ("strtodate", "strtotime", "unixtotime"):
        return _converted(item, key, read)
    return None


def _check_zone(zone: Any) -> None:
    if zone is not None and str(zone.name).upper() not in ("UTC", "ETC/UTC", "GMT", "Z"):
        raise refusal("dates have no time zone, so all times are UTC; write 'UTC' or leave the zone out", zone)


def _field(name: str, known: tuple[str, ...], function: str) -> Constant:
    field = name.lower()
    field = field if field in known else _PLURALS.get(field, field)
    if field not in known:
        raise refusal(f"{function} does not know {name[:20]!r}; it takes {', '.join(known)}", code="22023")
    return Constant(field)


def _truncated(unit: str, item: Expression) -> FunctionCall:
    return FunctionCall("date_trunc", (_field(unit, _TRUNCATED, "date_trunc"), item))


def _extracted(function: str, field: str, item: Expression) -> FunctionCall:
    return FunctionCall(function, (_field(field, _EXTRACTED, function), item))


def _anonymous(item: Any, read: Read) -> Expression | None:
    """Functions that our parser leaves as they were written."""
    name, arguments = str(item.this).lower(), list(item.expressions)
    if name == "date_part" and len(arguments) == 2:
        return _extracted("date_part", str(arguments[0].name), read(arguments[1]))
    if name == "date_bin" and len(arguments) in (2, 3):
        stride = arguments[0]
        width = Constant(interval_of(str(stride.name))) if stride.key == "literal" else read(stride)
        origin = read(arguments[2]) if len(arguments) > 2 else Constant(datetime(2000, 1, 1))
        return _binned(width, read(arguments[1]), origin)
    if name == "timezone" and len(arguments) == 2:
        _check_zone(arguments[0])
        return FunctionCall("at_utc", (read(arguments[1]),))
    return None


def _binned(stride: Expression, item: Expression, origin: Expression) -> FunctionCall:
    width: Any = stride.value if isinstance(stride, Constant) else None
    if getattr(width, "months", 1) or width.microseconds <= 0:
        raise refusal("date_bin takes an interval of days or less, such as '7 days'; write date_trunc for months")
    if isinstance(origin, Constant) and isinstance(origin.value, str):
        origin = Constant(constant_moment(origin.value, "timestamptz"))
    if not isinstance(origin, Constant) or not isinstance(origin.value, date):
        raise refusal("date_bin takes a constant origin, such as TIMESTAMP '2001-01-01'")
    return FunctionCall("date_bin", (stride, item, origin))


def _interval(item: Any) -> Constant:
    text, unit = item.this, item.args.get("unit")
    if text is None or text.key not in ("literal", "neg"):
        raise refusal("INTERVAL takes a constant, such as INTERVAL '7 days'", item)
    words = str(text.name) if text.key == "literal" else f"-{text.this.name}"
    return Constant(interval_of(words, "" if unit is None else str(unit.name)))


def _converted(item: Any, key: str, read: Read) -> Constant:
    """TO_DATE and TO_TIMESTAMP of constants."""
    inner = read(item.this)
    value = inner.value if isinstance(inner, Constant) else None
    try:
        if key == "unixtotime" and isinstance(value, (int, float)):
            return Constant(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value))
        if key != "unixtotime" and isinstance(value, str):
            moment = datetime.strptime(value, str(item.args["format"].name))
            return Constant(moment.date() if key == "strtodate" else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise refusal("TO_DATE and TO_TIMESTAMP take a constant that fits its format", item, "22007") from None
    raise refusal("TO_DATE and TO_TIMESTAMP take a constant; cast a column with ::date", item)
