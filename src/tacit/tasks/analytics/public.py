"""Public columns: measures, filters and groups, exactly and by Arrow's compute functions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery, InvalidSpec
from tacit.tasks.analytics.imports import arrow, compute
from tacit.tasks.analytics.schema import MAX_MEASURE
from tacit.tasks.analytics.syntax import (
    Among,
    Both,
    Column,
    Compare,
    Condition,
    Constant,
    Either,
    Expression,
    Like,
    Missing,
    Negation,
    Truth,
)
from tacit.tasks.analytics.truths import truth_of

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_KEPT_MEASURES = 8
_MOST_CODES = 1 << 22
MAX_GROUPS = 1 << 16


class Rows(Protocol):
    """The port through which public columns are read: how many rows, and columns as Arrow arrays."""

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """Names of the public columns."""
        ...

    def column(self, name: str) -> Any:
        """A public column, as an Arrow array of all rows in order."""
        ...


@dataclass(frozen=True, eq=False)
class ArrowRows:
    """Rows of an Arrow table in memory."""

    table: Any

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.table.num_rows

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return tuple(self.table.column_names)

    def column(self, name: str) -> Any:
        """A column; one that is kept as codes is spelt out."""
        found = self.table[name]
        return found.cast(found.type.value_type) if arrow().types.is_dictionary(found.type) else found


_ARROW = {"integer": "int64", "number": "float64", "text": "string", "boolean": "bool_", "date": "date32"}


def arrow_type(kind: str) -> Any:
    """How Arrow keeps a public column of a type that documents have."""
    return getattr(arrow(), _ARROW[kind])()


def empty_rows(columns: Sequence[tuple[str, str]]) -> Any:
    """An Arrow table without rows, of public columns with the types that documents have."""
    for name, kind in columns:
        if kind not in _ARROW:
            raise InvalidSpec(f"rows: {name} is {kind[:20]!r}, must be one of {', '.join(_ARROW)}")
    return arrow().schema([(name, arrow_type(kind)) for name, kind in columns]).empty_table()


class OrderedRows:
    """Rows in another order; columns are put into it when they are first asked for."""

    def __init__(self, rows: Rows, order: I64) -> None:
        """Place i of the new order is row `order[i]`."""
        self._rows = rows
        self._order = order
        self._columns: dict[str, Any] = {}

    @property
    def n(self) -> int:
        """Number of rows."""
        return self._rows.n

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return self._rows.names

    def column(self, name: str) -> Any:
        """A column, in order."""
        if name not in self._columns:
            self._columns[name] = self._rows.column(name).take(self._order)
        return self._columns[name]


_SIGNS = {
    "=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "+": "add", "-": "subtract", "*": "multiply",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Public:
    """Evaluates expressions over rows; text of a query never reaches another engine."""

    rows: Rows
    _groups: "dict[tuple[str, ...], tuple[I64, list[tuple[Any, ...]]]]" = field(
        default_factory=dict[Any, Any], repr=False
    )
    _measures: "dict[Expression, tuple[F64, Mask | None]]" = field(default_factory=dict[Any, Any], repr=False)
    _faults: "dict[Expression, npt.NDArray[np.uint8]]" = field(default_factory=dict[Any, Any], repr=False)
    """Rows in which a measure is huge (1) or NaN (2)."""
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def nbytes(self) -> int:
        """Memory of groups and measures that are kept."""
        with self._lock:
            codes = sum(codes.nbytes for codes, _ in self._groups.values())
            return codes + sum(x.nbytes + (0 if mask is None else mask.nbytes) for x, mask in self._measures.values())

    def _values(self, item: Expression) -> Any:
        pa, pc = arrow(), compute()
        if isinstance(item, Column):
            return self.rows.column(item.name)
        if isinstance(item, Constant):
            return pa.scalar(item.value)
        left, right = self._number(item.left), self._number(item.right)
        if item.sign == "/":
            # A quotient by zero is missing, as NULLIF would make it; it is never infinite.
            zero = pc.equal(right, 0.0)
            safe = pc.if_else(zero, pa.scalar(None, pa.float64()), right)
            return pc.divide(left, safe)
        return pc.call_function(_SIGNS[item.sign], [left, right])

    def _number(self, item: Expression) -> Any:
        pa, pc = arrow(), compute()
        values = self._values(item)
        if not _is_number(values.type):
            raise InvalidQuery(f"sql: {_name(item)} is {values.type}, must be a number to calculate with")
        return pc.cast(values, pa.float64(), safe=False)

    def measure(self, item: Expression) -> tuple[F64, Mask | None]:
        """A measure of every row, zero where it is missing, and where it is there (None: everywhere)."""
        with self._lock:
            if item not in self._measures:
                made = self._measure(item)
                while len(self._measures) >= _KEPT_MEASURES:
                    oldest = next(iter(self._measures))
                    self._measures.pop(oldest)
                    self._faults.pop(oldest, None)
                self._measures[item] = made
            return self._measures[item]

    def _measure(self, item: Expression) -> tuple[F64, Mask | None]:
        pc = compute()
        values = self._spread(self._number(item))
        present = None if not values.null_count else np.asarray(pc.is_valid(values))
        numbers = np.asarray(pc.fill_null(values, 0.0), np.float64)
        good = np.abs(numbers) <= MAX_MEASURE
        if not good.all():
            # They count as zero until `check_measure` finds them among the rows that are asked for.
            self._faults[item] = np.where(good, 0, np.where(np.isnan(numbers), 2, 1)).astype(np.uint8)
            numbers = np.where(good, numbers, 0.0)
        return numbers, present

    def check_measure(self, item: Expression, masks: Sequence[Mask | None]) -> None:
        """Refuse a measure that is NaN, infinite or huge in rows that are asked for."""
        faults = self._faults.get(item)
        if faults is None:
            return
        asked = [faults if mask is None else faults[mask] for mask in masks]
        nan, huge = (sum(int(np.count_nonzero(part == code)) for part in asked) for code in (2, 1))
        if nan:
            raise InvalidQuery(
                f"sql: {_name(item)} is NaN (not a number) in {nan} of the rows that are asked for; leave them out, "
                f"such as by WHERE {_name(item)} <= {MAX_MEASURE:g}, or store NULL, which aggregates skip"
            )
        if huge:
            raise InvalidQuery(
                f"sql: {_name(item)} is infinite or huge in {huge} of the rows that are asked for, must be at most "
                f"{MAX_MEASURE:g}; leave them out in WHERE, or scale them"
            )

    def distinct(self, name: str) -> int:
        """How many different values a column has, what is missing among them."""
        return int(compute().count_distinct(self.rows.column(name), mode="all").as_py())

    def present(self, name: str) -> Mask:
        """Where a column is not missing."""
        pc = compute()
        return np.asarray(pc.is_valid(self.rows.column(name)))

    def _spread(self, values: Any) -> Any:
        pa = arrow()
        return values if hasattr(values, "__len__") else pa.repeat(values, self.rows.n)

    def mask(self, item: Condition) -> Mask:
        """Where a condition on public columns holds; where it is unknown, it does not."""
        pc = compute()
        found = self._truth(item)
        return np.asarray(pc.fill_null(self._spread(found), False), np.bool_)

    def _truth(self, item: Condition) -> Any:
        pa, pc = arrow(), compute()
        match item:
            case Truth(value):
                return pa.scalar(value)
            case Both(items) | Either(items):
                join = pc.and_kleene if isinstance(item, Both) else pc.or_kleene
                found = self._truth(items[0])
                for other in items[1:]:
                    found = join(found, self._truth(other))
                return found
            case Negation(inner):
                return pc.invert(self._truth(inner))
            case Missing(inner):
                return pc.is_null(self._values(inner))
            case Like(inner, pattern, ignore_case):
                return pc.match_like(self._text(inner), pattern, ignore_case=ignore_case)
            case Among(inner, values):
                return self._truth(Either(tuple(Compare("=", inner, value) for value in values)))
            case Compare(sign, left, right):
                return self._compare(sign, left, right)

    def _text(self, item: Expression) -> Any:
        values = self._values(item)
        if not _is_text(values.type):
            raise InvalidQuery(f"sql: LIKE is for text, and {_name(item)} is {values.type}")
        return values

    def _compare(self, sign: str, left: Expression, right: Expression) -> Any:
        pa, pc = arrow(), compute()
        a, b = self._values(left), self._values(right)
        a, b = _literal(a, left, b.type), _literal(b, right, a.type)
        kinds = _kind(a.type), _kind(b.type)
        if "time" in kinds and "text" in kinds:
            a, b = (self._as_time(x, y.type, item) for x, y, item in ((a, b, left), (b, a, right)))
        elif kinds[0] != kinds[1]:
            raise InvalidQuery(
                f"sql: {_name(left)} ({a.type}) cannot be compared with {_name(right)} ({b.type}); "
                "text is written in quotes and numbers without"
            )
        try:
            return pc.call_function(_SIGNS[sign], [a, b])
        except pa.ArrowNotImplementedError:
            raise InvalidQuery(f"sql: {_name(left)} cannot be compared with {sign}") from None

    def _as_time(self, values: Any, kind: Any, item: Expression) -> Any:
        pa, pc = arrow(), compute()
        if _kind(values.type) == "time":
            return values
        try:
            return pc.cast(values, kind)
        except pa.ArrowInvalid:
            raise InvalidQuery(f"sql: {_name(item)} is no {kind}; write it as 2026-01-31") from None

    def groups(self, names: Sequence[str]) -> tuple[I64, list[tuple[Any, ...]]]:
        """The group of every row, and the values that every group has in these columns."""
        known = tuple(names)
        with self._lock:
            if known not in self._groups:
                self._groups.clear()
                self._groups[known] = self._grouped(known)
            return self._groups[known]

    def _grouped(self, names: tuple[str, ...]) -> tuple[I64, list[tuple[Any, ...]]]:
        codes, total, values = np.zeros(self.rows.n, np.int64), 1, [*map(self._coded, names)]
        if not names:
            return codes, [()]
        for column, labels in values:
            codes, total = codes * max(1, len(labels)) + column, total * max(1, len(labels))
        if total > _MOST_CODES:
            raise InvalidQuery(f"sql: GROUP BY has up to {total} groups, must be at most {_MOST_CODES}")
        found = np.flatnonzero(np.bincount(codes, minlength=total))
        _check_groups(len(found), ", ".join(names))
        places = np.zeros(total, np.int64)
        places[found] = np.arange(len(found))
        return places[codes], [_key(int(code), [labels for _, labels in values]) for code in found]

    def _coded(self, name: str) -> tuple[I64, list[Any]]:
        """A column as codes, and what they stand for; what is missing is a value of its own."""
        encoded = compute().dictionary_encode(self.rows.column(name), null_encoding="encode")
        if not getattr(encoded, "num_chunks", 1):
            return np.zeros(0, np.int64), []
        whole = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
        if not hasattr(whole, "indices"):
            whole = whole.chunk(0) if whole.num_chunks else arrow().array([], whole.type)
        _check_groups(len(whole.dictionary), name)
        return np.asarray(whole.indices, np.int64), whole.dictionary.to_pylist()


def _check_groups(count: int, names: str) -> None:
    if count > MAX_GROUPS:
        raise InvalidQuery(
            f"sql: GROUP BY {names[:200]} has {count} groups, must be at most {MAX_GROUPS}; leave it out of GROUP BY "
            "(WHERE, SUM and AVG may name it), or add a column of fewer values, such as the day of a time"
        )


def _key(code: int, values: list[list[Any]]) -> tuple[Any, ...]:
    found: list[Any] = []
    for column in reversed(values):
        code, place = divmod(code, max(1, len(column)))
        found.append(column[place])
    return tuple(reversed(found))


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _is_text(kind: Any) -> bool:
    types = arrow().types
    return types.is_string(kind) or types.is_large_string(kind)


def _kind(kind: Any) -> str:
    types = arrow().types
    if types.is_boolean(kind):
        return "truth"
    if types.is_temporal(kind):
        return "time"
    return "number" if _is_number(kind) else "text" if _is_text(kind) else str(kind)


_DAY = re.compile(r"\s*(\d{4}-\d{2}-\d{2}) ?[+-]\d{2}(?::?\d{2})?\s*")
"""A day with a time zone, which says nothing about a day."""


def _literal(values: Any, item: Expression, kind: Any) -> Any:
    """A constant in quotes as PostgreSQL reads it beside a truth value or a day; drivers write their parameters so."""
    if not (isinstance(item, Constant) and isinstance(item.value, str)):
        return values
    if _kind(kind) == "truth":
        truth = truth_of(item.value)
        return values if truth is None else arrow().scalar(truth)
    day = _DAY.fullmatch(item.value) if arrow().types.is_date(kind) else None
    return values if day is None else arrow().scalar(day[1])


def _name(item: Expression) -> str:
    if isinstance(item, Column):
        return item.name
    return repr(item.value)[:40] if isinstance(item, Constant) else "the expression"
