"""Types and values of PostgreSQL's protocol: what goes out as text or binary, and what parameters come in as."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite, isinf, isnan
from struct import error as struct_error
from struct import pack
from typing import Any

from tacit.collector.pg.messages import Body, PgError, unpacked
from tacit.sql.schema.truths import truth_of

BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT4, TEXT, OID = 16, 17, 18, 19, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, UNKNOWN, VARCHAR, BPCHAR, DATE, NUMERIC = 700, 701, 705, 1043, 1042, 1082, 1700
TIMESTAMP, TIMESTAMPTZ, REGTYPE, REGCLASS, REGPROC, INT2VECTOR, XID = 1114, 1184, 2206, 2205, 24, 22, 28
BOOLS, INT2S, INT4S, INT8S, TEXTS, OIDS, FLOAT4S, FLOAT8S, VARCHARS, DATES, NAMES = (
    1000, 1005, 1007, 1016, 1009, 1028, 1021, 1022, 1015, 1182, 1003,
)  # fmt: skip

WIDTHS = {
    BOOL: 1, CHAR: 1, NAME: 64, INT8: 8, INT2: 2, INT4: 4, OID: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIMESTAMP: 8,
    TIMESTAMPTZ: 8, REGTYPE: 4, REGCLASS: 4, REGPROC: 4, XID: 4,
}  # fmt: skip
"""Bytes of a value; -1 for types not listed, whose values vary."""

ELEMENTS = {
    BOOLS: BOOL, INT2S: INT2, INT4S: INT4, INT8S: INT8, TEXTS: TEXT, OIDS: OID, FLOAT4S: FLOAT4, FLOAT8S: FLOAT8,
    VARCHARS: VARCHAR, DATES: DATE, NAMES: NAME, INT2VECTOR: INT2,
}  # fmt: skip
"""Arrays by the types of their elements."""

OF_COLUMNS = {"integer": INT8, "number": FLOAT8, "text": TEXT, "boolean": BOOL, "date": DATE}
"""The types of columns of a table."""

OF_TYPES = {
    "bigint": INT8, "integer": INT4, "smallint": INT2, "double precision": FLOAT8, "real": FLOAT4, "numeric": NUMERIC,
    "text": TEXT, "boolean": BOOL, "date": DATE, "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ,
}  # fmt: skip
"""The types of columns of an answer, by their names in SQL."""

_WHOLE = {INT2: "!h", INT4: "!i", INT8: "!q", OID: "!I", XID: "!I"}
_REAL = {FLOAT4: "!f", FLOAT8: "!d"}
_WORDS = {TEXT, VARCHAR, BPCHAR, NAME, CHAR, UNKNOWN, 0}
_MOMENTS = {TIMESTAMP, TIMESTAMPTZ}
_EPOCH = date(2000, 1, 1)
_MICROSECONDS_PER_DAY = 86_400_000_000
_MOST_DIGITS = 400
_MOST_ITEMS = 10_000
Value = bool | int | float | str | None
"""What a parameter is, in the end."""


@dataclass(frozen=True)
class Field:
    """A column of a result."""

    name: str
    type: int = TEXT

    @property
    def described(self) -> tuple[str, int, int]:
        """Name, type and width, as the protocol describes it."""
        return self.name, self.type, WIDTHS.get(self.type, -1)


def encode_value(value: Any, oid: int, binary: int, digits: int = 0) -> bytes | None:
    """A value of a column, as bytes; None for NULL. Numbers as text have so many digits, or (0) all that matter."""
    if value is None:
        return None
    return _binary(value, oid) if binary else _text(value, oid, digits).encode(errors="replace")


def _text(value: Any, oid: int, digits: int = 0) -> str:
    if oid == BOOL:
        return "t" if value else "f"
    if isinstance(value, bool):
        return "true" if value else "false"
    if oid == NUMERIC:
        return numeric_text(value)
    if isinstance(value, float):
        return float_text(value, digits)
    if isinstance(value, datetime):
        # An offset of whole hours is written without minutes: +00, not +00:00.
        return value.isoformat(" ").removesuffix(":00") if value.tzinfo else value.isoformat(" ")
    return str(value).replace("\0", "")


def float_text(value: float, digits: int = 0) -> str:
    """The shortest text that reads back as the same number, or one with so many digits.

    >>> float_text(2.0), float_text(0.1), float_text(float("-inf")), float_text(1234.567, 5)
    ('2', '0.1', '-Infinity', '1234.6')
    """
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{digits}g}" if digits else repr(float(value)).removesuffix(".0")


def numeric_text(value: Any) -> str:
    """A number as PostgreSQL writes a numeric, which has no exponent.

    >>> numeric_text(2030.0), numeric_text(1e-7), numeric_text(12.5)
    ('2030', '0.0000001', '12.5')
    """
    number = float(value)
    if not isfinite(number):
        return float_text(number)
    return f"{Decimal(float_text(number)):f}"


_NUMERIC_SPECIAL = {"NaN": 0xC000, "Infinity": 0xD000, "-Infinity": 0xF000}


def _binary_numeric(value: Any) -> bytes:
    """A numeric: digits to the base of 10,000, the power of the first one, the sign, and how many decimals it shows."""
    text = numeric_text(value)
    if text in _NUMERIC_SPECIAL:
        return pack("!hhHh", 0, 0, _NUMERIC_SPECIAL[text], 0)
    whole, _, decimals = text.lstrip("-").partition(".")
    # Four decimal digits each, aligned at the point:   12345.678  ->  0001 2345 . 6780
    padded = whole.rjust(-(-len(whole) // 4) * 4, "0") + decimals.ljust(-(-len(decimals) // 4) * 4, "0")
    digits = [int(padded[i : i + 4]) for i in range(0, len(padded), 4)]
    weight = -(-len(whole) // 4) - 1
    head = pack("!hhHh", len(digits), weight, 0x4000 if text.startswith("-") else 0, len(decimals))
    return head + b"".join(pack("!h", digit) for digit in digits)


def _microseconds(value: datetime) -> int:
    naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    # PostgreSQL counts microseconds of UTC from the beginning of the year 2000.
    return (naive - datetime(2000, 1, 1)) // timedelta(microseconds=1)


def _binary(value: Any, oid: int) -> bytes:
    try:
        if oid == BOOL:
            return b"\1" if value else b"\0"
        if oid in _WHOLE:
            return pack(_WHOLE[oid], int(value))
        if oid in _REAL:
            return pack(_REAL[oid], float(value))
        if oid == NUMERIC:
            return _binary_numeric(value)
        if oid in _MOMENTS and isinstance(value, datetime):
            return pack("!q", _microseconds(value))
        if oid == DATE:
            day = value if isinstance(value, date) else date.fromisoformat(str(value))
            return pack("!i", (day - _EPOCH).days)
        if oid in ELEMENTS:
            return _binary_array(str(value), ELEMENTS[oid])
    except (ValueError, TypeError, ArithmeticError, struct_error) as error:
        raise PgError("0A000", f"a value of this column has no binary form ({type(error).__name__})",
                      hint="Ask for text.") from None  # fmt: skip
    if oid in _WORDS:
        return _text(value, oid).encode(errors="replace")
    raise PgError("0A000", "columns of this type have no binary form here", hint="Ask for text.")


def _binary_array(value: str, element: int) -> bytes:
    items = parse_array(value)
    # Number of dimensions, whether an item is NULL, their type; then the length and the first index, 1.
    parts = [pack("!iiI", 1 if items else 0, int(None in items), element)]
    parts += [pack("!ii", len(items), 1)] if items else []
    for item in items:
        data = None if item is None else _binary(item, element)
        parts.append(b"\xff\xff\xff\xff" if data is None else pack("!i", len(data)) + data)
    return b"".join(parts)


_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?\Z)|([^,{}"]+)', re.DOTALL)
"""A quote without an end goes to the end, so that nothing is ever read twice."""


def parse_array(text: str) -> list[str | None]:
    r"""The items of an array of one dimension in PostgreSQL's spelling; `int2vector` has blanks instead.

    >>> parse_array('{a,"b,\\"c",NULL}'), parse_array("1 2")
    (['a', 'b,"c', None], ['1', '2'])
    """
    if not text.startswith("{"):
        return list(text.split())
    found: list[str | None] = []
    for match in _ITEM.finditer(text[1:-1]):
        quoted, plain = match.groups()
        if quoted is not None:
            found.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        else:
            found.append(None if plain.strip().upper() == "NULL" else plain.strip())
        if len(found) > _MOST_ITEMS:
            raise PgError("54000", f"an array may have at most {_MOST_ITEMS} items")
    return found


def array_text(items: Sequence[Any]) -> str:
    """An array in PostgreSQL's spelling.

    >>> array_text(["a", "b c", None, 1])
    '{a,"b c",NULL,1}'
    """
    return "{" + ",".join(_item_text(item) for item in items) + "}"


def _item_text(item: Any) -> str:
    if item is None:
        return "NULL"
    text = str(item)
    # The word NULL as text has to be quoted: bare, it would be read as a missing item.
    if text and re.fullmatch(r"[\w.:+-]+", text) and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def decode_parameter(data: bytes | None, oid: int, binary: int) -> "Value | list[Value]":
    """A parameter as a plain value: a list for an array, text for whatever has no plainer form."""
    if data is None:
        return None
    if oid in ELEMENTS:
        return _decode_array(data, ELEMENTS[oid], binary)
    return _decode_binary(data, oid) if binary else _decode_text(_utf8(data), oid)


def _utf8(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise PgError("22021", "a text parameter must be UTF-8") from None
    if "\0" in text:
        raise PgError("22021", "a text parameter must not have a zero byte")
    return text


def _decode_binary(data: bytes, oid: int) -> Value:
    if oid == BOOL:
        return bool(unpacked("!B", data))
    if oid in _WHOLE:
        return unpacked(_WHOLE[oid], data)
    if oid in _REAL:
        return _finite(unpacked(_REAL[oid], data))
    if oid == DATE:
        return _day(unpacked("!i", data))
    if oid in _MOMENTS:
        days, rest = divmod(unpacked("!q", data), _MICROSECONDS_PER_DAY)
        return _midnight(_day(days), whole=rest == 0)
    if oid == NUMERIC:
        return _finite(_numeric(data))
    if oid in _WORDS:
        return _utf8(data)
    raise PgError("0A000", "parameters of this type are not understood", hint="Send numbers, text, truth or dates.")


def _day(days: int) -> str:
    try:
        return (_EPOCH + timedelta(days=days)).isoformat()
    except OverflowError:
        raise PgError("22008", "a date parameter is outside the years 1 to 9999") from None


def _midnight(day: str, *, whole: bool) -> str:
    if not whole:
        raise PgError("22007", "columns hold dates; give a date, without a time of day")
    return day


def _numeric(data: bytes) -> float:
    body = Body(data)
    count, weight, sign, _ = body.count(), body.int16(), body.int16() & 0xFFFF, body.int16()
    digits = [body.int16() for _ in range(count)]
    body.end()
    # 0 is plus and 0x4000 minus; all other signs stand for NaN and the infinities.
    if sign not in (0, 0x4000) or abs(weight) > _MOST_DIGITS or count > _MOST_DIGITS:
        raise PgError("22003", "a numeric parameter is not a finite number of moderate length")
    total = sum((Decimal(digit) * Decimal(10000) ** (weight - i) for i, digit in enumerate(digits)), Decimal(0))
    return float(-total if sign else total)


def _finite(number: float) -> float:
    if not isfinite(number):
        raise PgError("22003", "a number must be finite")
    return number


def truth(text: str) -> bool:
    """A truth value in one of PostgreSQL's spellings."""
    found = truth_of(text)
    if found is None:
        raise PgError("22P02", "a truth value must be on or off, true or false")
    return found


_LONGEST_WORD = 500


def _decode_text(text: str, oid: int) -> Value:
    readers: dict[int, Callable[[str], Value]] = {BOOL: truth, DATE: _date_text}
    readers |= dict.fromkeys(_WHOLE, _whole) | dict.fromkeys((*_REAL, NUMERIC), _number)
    readers |= dict.fromkeys(_MOMENTS, _date_text)
    if oid in readers and len(text) > _LONGEST_WORD:
        raise PgError("22P02", f"a parameter that is not text has at most {_LONGEST_WORD} characters")
    return readers.get(oid, str)(text)


_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,18}\s*")


def _whole(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise PgError("22P02", "a parameter must be a whole number")
    return int(text)


def _number(text: str) -> int | float:
    """Whole numbers stay whole, so that they can be compared with whole columns."""
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        return _finite(float(Decimal(text.strip())))
    except InvalidOperation:
        raise PgError("22P02", "a parameter must be a number") from None


_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T]00:00(?::00(?:\.0+)?)?)?(?:\s*(?:Z|[-+]\d\d(?::?\d\d)?))?", re.ASCII)
"""A day, at midnight if a time is said; libraries add time zones to it, which a day does not have."""


def _date_text(text: str) -> str:
    found = _DAY.fullmatch(text.strip())
    try:
        return date.fromisoformat(found[1]).isoformat() if found else _midnight("", whole=False)
    except ValueError:
        raise PgError("22008", "a date parameter does not exist in the calendar") from None


def _decode_array(data: bytes, element: int, binary: int) -> list[Value]:
    if not binary:
        items = parse_array(_utf8(data))
        return [None if item is None else _decode_text(item, element) for item in items]
    body = Body(data)
    dimensions, _, oid = body.int32(), body.int32(), body.uint32()
    if dimensions == 0:
        return []
    count, _ = body.int32(), body.int32()
    if dimensions != 1 or not 0 <= count <= _MOST_ITEMS:
        raise PgError("0A000", f"array parameters have one dimension and at most {_MOST_ITEMS} items")
    found: list[Value] = []
    for _ in range(count):
        length = body.int32()
        found.append(None if length == -1 else _decode_binary(body.take(length), oid))
    return found


def constant(value: "Value | list[Value]") -> str:
    """A value as a constant of SQL, with blanks around it, so that it never joins what stands beside it.

    >>> constant("O'Brien"), constant(-3), constant([1, 2])
    (" 'O''Brien' ", ' -3 ', " '{1,2}' ")
    """
    if value is None:
        return " NULL "
    if isinstance(value, bool):
        return " TRUE " if value else " FALSE "
    if isinstance(value, (int, float)):
        return f" {value!r} "
    text = array_text(value) if isinstance(value, list) else value
    return " '" + text.replace("'", "''") + "' "
