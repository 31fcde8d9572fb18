"""Public columns: measures, filters and groups, evaluated exactly by Arrow's compute functions.

The evaluator walks the syntax tree of `parse.syntax`; no text of a query reaches another engine, so that there is
nothing to inject into. NULL follows SQL: comparisons with it are unknown, aggregates skip it, and GROUP BY makes it a
group of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tacit.arrays import F64, I64, Mask, flat_index
from tacit.device.domains.reals import as_number
from tacit.errors import InvalidQuery, InvalidSpec
from tacit.sql.engine import functions
from tacit.sql.parse.moments import moment_of
from tacit.sql.parse.syntax import (
    Among,
    Arithmetic,
    Both,
    Cast,
    CellRef,
    ColumnRef,
    Compare,
    Condition,
    Constant,
    Either,
    Expression,
    FunctionCall,
    Interval,
    Like,
    Missing,
    Negation,
    TruthLiteral,
    described,
    place_in,
)
from tacit.sql.schema.schema import MAX_MEASURE
from tacit.sql.schema.truths import truth_of

# A cached measure takes 8 bytes per row of a piece; a SELECT seldom has more than a few.
_KEPT_MEASURES = 8
# Product of the columns' numbers of values: `_grouped` allocates an array of this size to renumber the codes.
_MOST_CODES = 1 << 22
_WHOLE = 1 << 63
MAX_GROUPS = 1 << 16


class RowSource(Protocol):
    """The port through which public columns are read: the number of rows, and columns as Arrow arrays."""

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
        """A column; dictionary-encoded ones are decoded, as not all compute functions take them."""
        found = self.table[name]
        return found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found


_ARROW = {"integer": "int64", "number": "float64", "text": "string", "boolean": "bool_", "date": "date32"}


def arrow_type(kind: str) -> Any:
    """The Arrow type of a public column, from its type in collection documents."""
    return getattr(pa, _ARROW[kind])()


def empty_rows(columns: Sequence[tuple[str, str]]) -> Any:
    """An empty Arrow table of (name, type in documents) columns; InvalidSpec for unknown types."""
    for name, kind in columns:
        if kind not in _ARROW:
            raise InvalidSpec(f"rows: {name} is {kind[:20]!r}, must be one of {', '.join(_ARROW)}")
    return pa.schema([(name, arrow_type(kind)) for name, kind in columns]).empty_table()


class OrderedRows:
    """A permutation of rows, to match reports sorted by level (see `Linked`); columns are permuted lazily, once."""

    def __init__(self, rows: RowSource, order: I64) -> None:
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
        """A column in the new order."""
        if name not in self._columns:
            self._columns[name] = self._rows.column(name).take(self._order)
        return self._columns[name]


_SIGNS = {
    "=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "+": "add", "-": "subtract", "*": "multiply",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class RowEvaluator:
    """Evaluates expressions, conditions and groups over rows, with small caches of measures and groups."""

    rows: RowSource
    _groups: "dict[tuple[Expression, ...], tuple[I64, list[tuple[Any, ...]]]]" = field(
        default_factory=dict[Any, Any], repr=False
    )
    _measures: "dict[Expression, tuple[F64, Mask | None]]" = field(default_factory=dict[Any, Any], repr=False)
    _faults: "dict[Expression, npt.NDArray[np.uint8]]" = field(default_factory=dict[Any, Any], repr=False)
    """By measure, a code per row: 1 where it is huge or infinite, 2 where it is NaN, else 0; none if all are fine."""
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the cached groups and measures."""
        with self._lock:
            codes = sum(codes.nbytes for codes, _ in self._groups.values())
            return codes + sum(x.nbytes + (0 if mask is None else mask.nbytes) for x, mask in self._measures.values())

    def _values(self, item: Expression) -> Any:
        """An expression as an array of all rows, or as a scalar where no column is in it."""
        match item:
            case ColumnRef(name, _):
                return self.rows.column(name)
            case Constant(value, _):
                return functions.constant(value)
            case Arithmetic():
                return self._calculated(item)
            case Cast(inner, kind, scale):
                return functions.cast(self._values(inner), kind, scale, described(inner))
            case FunctionCall(name, arguments):
                return self._called(name, arguments)
            case CellRef():
                raise InvalidQuery("sql: an aggregate stands in HAVING alone", code="42803")

    def _called(self, name: str, arguments: tuple[Expression, ...]) -> Any:
        first = arguments[0].value if isinstance(arguments[0], Constant) else None
        if name in ("date_trunc", "extract", "date_part"):
            function = functions.date_trunc if name == "date_trunc" else functions.extract
            return function(str(first), self._values(arguments[1]), described(arguments[1]))
        if name == "date_bin" and isinstance(first, Interval):
            values, origin = self._values(arguments[1]), self._values(arguments[2])
            return functions.date_bin(first, values, origin, described(arguments[1]))
        if name in ("floor", "ceil", "round", "trunc", "abs"):
            self._number(arguments[0])  # Refuses what is no number.
        return functions.call(name, [self._values(one) for one in arguments], described(arguments[0]))

    def _calculated(self, item: Arithmetic) -> Any:
        span = item.right.value if isinstance(item.right, Constant) else None
        if isinstance(span, Interval) and item.sign in ("+", "-"):
            return functions.shifted(self._values(item.left), span, 1 if item.sign == "+" else -1, described(item.left))
        left, right = self._number(item.left), self._number(item.right)
        if item.sign == "/":
            # x / 0 is NULL, as with NULLIF(y, 0): an error would let one row fail the query, and infinity spoil a sum.
            zero = pc.equal(right, 0.0)
            safe = pc.if_else(zero, pa.scalar(None, pa.float64()), right)
            return pc.divide(left, safe)
        return pc.call_function(_SIGNS[item.sign], [left, right])

    def _number(self, item: Expression) -> Any:
        values = self._values(item)
        if not _is_number(values.type):
            raise InvalidQuery(
                f"sql: {_name(item)} is {_spelt(values.type)}, must be a number to calculate with",
                code="42804",
                position=place_in(item),
            )
        return pc.cast(values, pa.float64(), safe=False)

    def measure(self, item: Expression) -> tuple[F64, Mask | None]:
        """A measure as doubles, 0 where it is NULL, and the mask of rows where it is not NULL (None: all rows)."""
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
        values = self._spread(self._number(item))
        present = None if not values.null_count else np.asarray(pc.is_valid(values))
        numbers = np.asarray(pc.fill_null(values, 0.0), np.float64)
        good = np.abs(numbers) <= MAX_MEASURE
        if not good.all():
            # NaN times a weight of 0 is NaN, so bad values are zeroed here, and noted: `check_measure` refuses the
            # query only if rows that it asks for have them.
            self._faults[item] = np.where(good, 0, np.where(np.isnan(numbers), 2, 1)).astype(np.uint8)
            numbers = np.where(good, numbers, 0.0)
        return numbers, present

    def check_measure(self, item: Expression, masks: Sequence[Mask | None]) -> None:
        """InvalidQuery if a measure is NaN, infinite or huge in some row of these masks (None: all rows)."""
        faults = self._faults.get(item)
        if faults is None:
            return
        asked = [faults if mask is None else faults[mask] for mask in masks]
        nan, huge = (sum(int(np.count_nonzero(part == code)) for part in asked) for code in (2, 1))
        if nan:
            raise InvalidQuery(
                f"sql: {_name(item)} is NaN (not a number) in {nan} of the rows that are asked for; leave them out, "
                f"such as by WHERE {_name(item)} <= {MAX_MEASURE:g}, or store NULL, which aggregates skip",
                code="22003",
                position=place_in(item),
            )
        if huge:
            raise InvalidQuery(
                f"sql: {_name(item)} is infinite or huge in {huge} of the rows that are asked for, must be at most "
                f"{MAX_MEASURE:g}; leave them out in WHERE, or scale them",
                code="22003",
                position=place_in(item),
            )

    def distinct(self, name: str) -> int:
        """COUNT(DISTINCT) of a column, NULL counting as one value."""
        return int(pc.count_distinct(self.rows.column(name), mode="all").as_py())

    def present(self, item: Expression) -> Mask:
        """The mask of rows in which an expression is not NULL."""
        return np.asarray(pc.is_valid(self._spread(self._values(item))))

    def _spread(self, values: Any) -> Any:
        return pa.repeat(values, self.rows.n) if isinstance(values, pa.Scalar) else values

    def mask(self, item: Condition) -> Mask:
        """The mask of rows in which a condition on public columns is true; unknown (NULL) counts as false."""
        found = self._truth(item)
        return np.asarray(pc.fill_null(self._spread(found), False), np.bool_)

    def _truth(self, item: Condition) -> Any:
        """A condition in three-valued logic: an Arrow boolean array or scalar, NULL where it is unknown."""
        match item:
            case TruthLiteral(value):
                return pa.scalar(value)
            case Both(items) | Either(items):
                # Kleene's logic is SQL's: FALSE AND NULL is FALSE, not NULL.
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
            raise InvalidQuery(
                f"sql: LIKE is for text, and {_name(item)} is {_spelt(values.type)}",
                code="42804",
                position=place_in(item),
            )
        return values

    def _compare(self, sign: str, left: Expression, right: Expression) -> Any:
        a, b = self._values(left), self._values(right)
        a, b = _literal(a, left, b.type), _literal(b, right, a.type)
        kinds = _kind(a.type), _kind(b.type)
        if kinds == ("time", "time"):
            if a.type != b.type:  # A date is its midnight, in UTC.
                a, b = (functions.as_stamp(x, described(item), zone=False) for x, item in ((a, left), (b, right)))
        elif kinds == ("number", "number") and a.type != b.type:
            # Whole numbers beyond 2^53 are rounded, as PostgreSQL compares them with double precision.
            floating = pa.types.is_floating(a.type) or pa.types.is_floating(b.type)
            a, b = (pc.cast(x, pa.float64(), safe=False) if floating else x for x in (a, b))
        elif "time" in kinds and "text" in kinds:
            item = left if kinds[0] == "text" else right
            raise InvalidQuery(
                f"sql: {_name(item)} is no date; write it as 2026-01-31", code="22007", position=place_in(item)
            )
        elif kinds[0] != kinds[1]:
            raise InvalidQuery(
                f"sql: {_name(left)} ({_spelt(a.type)}) cannot be compared with {_name(right)} ({_spelt(b.type)}); "
                "text is written in quotes and numbers without",
                code="42804",
                position=place_in(left),
            )
        try:
            return pc.call_function(_SIGNS[sign], [a, b])
        except pa.ArrowNotImplementedError:
            raise InvalidQuery(
                f"sql: {_name(left)} cannot be compared with {sign}", code="42883", position=place_in(left)
            ) from None

    def groups(self, items: Sequence[Expression]) -> tuple[I64, list[tuple[Any, ...]]]:
        """The group of every row, and the values that every group has in these expressions."""
        known = tuple(items)
        with self._lock:
            if known not in self._groups:
                self._groups.clear()
                self._groups[known] = self._grouped(known)
            return self._groups[known]

    def _grouped(self, names: tuple[Expression, ...]) -> tuple[I64, list[tuple[Any, ...]]]:
        # A row's code is a mixed-radix number with a digit per column. Few of all codes occur, so those that do are
        # renumbered 0, 1, ... through the table `places`:
        #
        #     code      0   1   2   3   4   5         columns of 2 and 3 values
        #     occurs        x           x   x         found = [1, 4, 5]
        #     places    -   0   -   -   1   2
        if not names:
            return np.zeros(self.rows.n, np.int64), [()]
        columns, values = zip(*map(self._coded, names), strict=True)
        sizes = [max(1, len(labels)) for labels in values]
        total = prod(sizes)
        if total > _MOST_CODES:
            raise InvalidQuery(f"sql: GROUP BY has up to {total} groups, must be at most {_MOST_CODES}", code="54000")
        codes = flat_index(columns, sizes)
        found = np.flatnonzero(np.bincount(codes, minlength=total))
        _check_groups(len(found), ", ".join(map(described, names)))
        places = np.zeros(total, np.int64)
        places[found] = np.arange(len(found))
        return places[codes], [_key(int(code), values) for code in found]

    def _coded(self, item: Expression) -> tuple[I64, list[Any]]:
        """An expression as integer codes and the list of values they stand for; NULL has a code of its own."""
        encoded = pc.dictionary_encode(self._spread(self._values(item)), null_encoding="encode")
        if not getattr(encoded, "num_chunks", 1):
            return np.zeros(0, np.int64), []
        whole = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
        if not hasattr(whole, "indices"):
            whole = whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
        _check_groups(len(whole.dictionary), described(item))
        try:
            return np.asarray(whole.indices, np.int64), whole.dictionary.to_pylist()
        except (OverflowError, ValueError):
            raise InvalidQuery(
                f"sql: {described(item)} is outside the years 1 to 9999 in some rows; leave them out in WHERE",
                code="22008",
                position=place_in(item),
            ) from None


def _check_groups(count: int, names: str) -> None:
    if count > MAX_GROUPS:
        raise InvalidQuery(
            f"sql: GROUP BY {names[:200]} has {count} groups, must be at most {MAX_GROUPS}; leave it out of GROUP BY "
            "(WHERE, SUM and AVG may name it), or add a column of fewer values, such as the day of a time",
            code="54000",
        )


def _key(code: int, values: Sequence[list[Any]]) -> tuple[Any, ...]:
    """The values that a mixed-radix code stands for, from its last digit to its first."""
    found: list[Any] = []
    for column in reversed(values):
        code, place = divmod(code, max(1, len(column)))
        found.append(column[place])
    return tuple(reversed(found))


def _is_number(kind: Any) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _is_text(kind: Any) -> bool:
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind)


def _kind(kind: Any) -> str:
    types = pa.types
    if types.is_boolean(kind):
        return "truth"
    if types.is_temporal(kind):
        return "time"
    return "number" if _is_number(kind) else "text" if _is_text(kind) else str(kind)


_WORDS = {"truth": "a truth value", "time": "a date or time", "number": "a number", "text": "text"}


def _spelt(kind: Any) -> str:
    """A type as error messages name it."""
    return _WORDS.get(_kind(kind), "of another type")


def _literal(values: Any, item: Expression, kind: Any) -> Any:
    """A quoted constant, cast to the boolean or date it is compared with, as PostgreSQL casts unknown literals.

    Drivers bind their parameters as quoted text, so that this is common.
    """
    if not (isinstance(item, Constant) and isinstance(item.value, str)):
        return values
    beside = _kind(kind)
    if beside == "truth":
        truth = truth_of(item.value)
        return values if truth is None else pa.scalar(truth)
    if beside == "number":
        number = as_number(item.value.strip())
        whole = number is not None and number.denominator == 1 and abs(number) < _WHOLE
        return values if number is None else pa.scalar(int(number) if whole else float(number))
    moment = moment_of(item.value) if beside == "time" else None
    if moment is None:
        return values
    # The time of day of a date is dropped.
    return functions.constant(moment.date() if pa.types.is_date(kind) else moment)


def _name(item: Expression) -> str:
    if isinstance(item, ColumnRef):
        return item.name
    return described(item) if isinstance(item, Constant) else "the expression"
