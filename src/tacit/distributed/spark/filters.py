"""Public conditions of a query as filters of a frame, which Spark pushes down to Parquet.

A filter only has to keep every row that can meet the condition: the engine looks at all conditions again. So what is
not translated is left out, and private columns, which no file has, never are.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import reduce
from operator import eq, ge, gt, le, lt
from typing import Any

from tacit.sql.parse.syntax import Among, Both, ColumnRef, Compare, Condition, Constant, Either, Missing

_COMPARE = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The sign that a comparison has from the other side."""
_MOST = 1 << 53
"""Larger integers are not compared by Spark: as doubles they would be rounded."""


def pushed(conditions: Sequence[Condition], types: Mapping[str, str]) -> Any:
    """A column of Spark that is true in all rows that meet one of the conditions; None where all rows might.

    `types` are those that the document gives to public columns.
    """
    found = [_filter(condition, types) for condition in conditions]
    return None if not found or any(item is None for item in found) else reduce(lambda a, b: a | b, found)


def _filter(condition: Condition, types: Mapping[str, str]) -> Any:
    match condition:
        case Both(items):
            parts = [part for part in (_filter(item, types) for item in items) if part is not None]
            return reduce(lambda a, b: a & b, parts) if parts else None
        case Either(items):
            return pushed(items, types)
        case Missing(ColumnRef(name, _)) if name in types:
            return _column(name).isNull()
        case Among(ColumnRef(name, _), values) if name in types:
            plain = [_plain(constant, types[name]) for constant in values]
            return None if None in plain else _column(name).isin(plain)
        case Compare(sign, ColumnRef(name, _), Constant() as constant) if name in types:
            return _compared(name, sign, constant, types[name])
        case Compare(sign, Constant() as constant, ColumnRef(name, _)) if name in types:
            return _compared(name, _TURNED.get(sign, ""), constant, types[name])
        case _:
            return None


def _column(name: str) -> Any:
    from pyspark.sql import functions

    return functions.col(name)


def _compared(name: str, sign: str, constant: Constant, kind: str) -> Any:
    value = _plain(constant, kind)
    # Of texts only equality, as their order depends on a collation.
    if value is None or sign not in _COMPARE or (isinstance(value, str) and sign != "="):
        return None
    return _COMPARE[sign](_column(name), value)


def _plain(constant: Constant, kind: str) -> Any:
    """The value that Spark compares with a column of this type as the engine does; None if that is not certain."""
    value: Any = constant.value
    if kind in ("integer", "number"):
        return value if type(value) in (int, float) and abs(value) < _MOST else None
    if kind == "date":
        return _day(value)
    return value if type(value) is {"text": str, "boolean": bool}.get(kind) else None


def _day(value: Any) -> date | None:
    if isinstance(value, date):
        return None if isinstance(value, datetime) else value
    try:
        # Exactly YYYY-MM-DD: other forms may mean another time to the engine.
        return date.fromisoformat(value) if isinstance(value, str) and len(value) == 10 else None
    except ValueError:
        return None
