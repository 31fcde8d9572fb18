"""The abstract syntax of the queries that are answered: immutable dataclasses, with no trace of sqlglot.

This is the only interface between the parser and the engine. Values compare and hash by structure, so that equal
conditions and measures of a query are recognised and computed once.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any


@dataclass(frozen=True)
class ColumnRef:
    """A column of the table."""

    name: str
    position: int = field(default=0, compare=False)
    """1-based position in the text, so that errors can point to it; 0 if unknown. It is left out of comparisons,
    because the same column or constant may stand in several places."""


@dataclass(frozen=True)
class Interval:
    """A span of time, as INTERVAL writes it; days have 24 hours, since all times are UTC."""

    months: int
    microseconds: int


@dataclass(frozen=True)
class Constant:
    """A literal: number, text, TRUE or FALSE."""

    value: int | float | str | bool | date | datetime | Interval
    position: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Arithmetic:
    """left sign right, the sign one of + - * /."""

    sign: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class FunctionCall:
    """A function of other expressions, by its name in SQL: date_trunc, extract, date_bin, floor and the like."""

    name: str
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Cast:
    """An expression as another type, such as `integer` or `timestamp`."""

    item: "Expression"
    type: str
    scale: int = -1
    """Decimals of a numeric; -1 for as many as there are."""


@dataclass(frozen=True)
class CellRef:
    """The answer of an aggregate of the same group, by its place among `Select.aggregates`; in HAVING alone."""

    place: int


Expression = ColumnRef | Constant | Arithmetic | FunctionCall | Cast | CellRef


@dataclass(frozen=True)
class Compare:
    """left sign right, the sign one of = <> < <= > >=."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Among:
    """item IN (constants)."""

    item: Expression
    values: tuple[Constant, ...]


@dataclass(frozen=True)
class Missing:
    """item IS NULL."""

    item: Expression


@dataclass(frozen=True)
class Like:
    """item LIKE pattern, or ILIKE with `ignore_case`."""

    item: Expression
    pattern: str
    ignore_case: bool = False


@dataclass(frozen=True)
class TruthLiteral:
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True)
class Both:
    """AND of all items."""

    items: "tuple[Condition, ...]"


@dataclass(frozen=True)
class Either:
    """OR of all items."""

    items: "tuple[Condition, ...]"


@dataclass(frozen=True)
class Negation:
    """NOT item."""

    item: "Condition"


Condition = Compare | Among | Missing | Like | TruthLiteral | Both | Either | Negation


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of the SELECT list, over the rows that meet its FILTER (`condition`).

    `function` is count, sum, avg, var_pop, var_samp, stddev_pop, stddev_samp or quantile; `argument` is None for
    COUNT(*); `text` is how the answer calls it.
    """

    function: str
    argument: Expression | None
    condition: Condition
    text: str
    share: float = 0.5
    """For a quantile, the share of rows that lie at or below it; 0.5 is the median."""
    position: int = field(default=0, compare=False)
    cuts: tuple[int, ...] = ()
    """For `prefixes`, which no query says and `engine.monotone` asks: the indices up to which rows are counted."""


@dataclass(frozen=True)
class Extreme:
    """MIN or MAX of a public expression: the extreme among values that at least the minimum cohort of rows hold."""

    function: str
    argument: Expression
    condition: Condition
    text: str
    position: int = field(default=0, compare=False)


Item = Expression | Aggregate | Extreme


@dataclass(frozen=True)
class Output:
    """A column of the answer: a GROUP BY column or an aggregate, and its name."""

    name: str
    item: Item
    type: str = ""
    """The type that an aggregate is cast to; none for `double precision`."""


@dataclass(frozen=True)
class Order:
    """One key of ORDER BY: the index of a column of the answer, and the direction."""

    place: int
    descending: bool


@dataclass(frozen=True)
class Select:
    """A whole query: SELECT outputs WHERE condition GROUP BY groups ORDER BY order LIMIT limit OFFSET offset."""

    outputs: tuple[Output, ...]
    condition: Condition
    groups: tuple[Expression, ...]
    order: tuple[Order, ...]
    limit: int | None
    offset: int
    explain: bool = False
    having: Condition = TruthLiteral(True)
    """What the aggregates of a group must meet, over `CellRef`."""
    hidden: tuple[Aggregate, ...] = ()
    """Aggregates that are computed and not shown: those of HAVING and, last, the count of a query that lists."""
    lists: bool = False
    """Whether it tells which groups there are (DISTINCT, HAVING): groups below the minimum cohort are left out."""

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates in order, those that are not shown last."""
        return tuple(o.item for o in self.outputs if isinstance(o.item, Aggregate)) + self.hidden

    @property
    def extremes(self) -> tuple[Extreme, ...]:
        """MIN and MAX, in order."""
        return tuple(output.item for output in self.outputs if isinstance(output.item, Extreme))


def children(item: "Expression | Condition") -> "tuple[Expression | Condition, ...]":
    """The expressions and conditions that one is made of."""
    match item:
        case Arithmetic(_, left, right) | Compare(_, left, right):
            return left, right
        case Among(inner, _) | Missing(inner) | Like(inner, _, _) | Negation(inner) | Cast(inner, _, _):
            return (inner,)
        case Both(items) | Either(items) | FunctionCall(_, items):
            return items
        case _:
            return ()


def columns_in(item: "Expression | Condition | None") -> Iterator[str]:
    """The names of all columns in an expression or a condition, duplicates included."""
    return (column.name for column in refs_in(item))


def place_in(item: "Expression | Condition | None") -> int:
    """The 1-based position for an error about an expression: its first column's, or that of a bare constant; else 0."""
    if isinstance(item, Constant):
        return item.position
    return next((column.position for column in refs_in(item) if column.position), 0)


def refs_in(item: "Expression | Condition | None") -> Iterator[ColumnRef]:
    """All columns of an expression or a condition, in order."""
    if isinstance(item, ColumnRef):
        yield item
    elif item is not None:
        for child in children(item):
            yield from refs_in(child)


def described(item: Expression) -> str:
    """An expression in SQL's words, for messages."""
    match item:
        case ColumnRef(name, _):
            return name
        case Constant(value, _):
            return repr(value)[:40] if isinstance(value, (int, float, str)) else f"'{value}'"[:40]
        case Arithmetic(sign, left, right):
            return f"{described(left)} {sign} {described(right)}"[:80]
        case FunctionCall(name, arguments):
            return f"{name}({', '.join(map(described, arguments))})"[:80]
        case Cast(inner, kind, _):
            return f"{described(inner)}::{kind}"[:80]
        case CellRef():
            return "the aggregate"


_OF_DOCUMENTS = {"integer": "bigint", "number": "double precision"}
_TEXTS = ("lower", "upper", "to_char")


def type_of(item: Item, columns: Mapping[str, str]) -> str:
    """The SQL type of a column of an answer, given the types that documents give to columns of the table.

    >>> type_of(FunctionCall("date_trunc", (Constant("month"), ColumnRef("joined"))), {"joined": "date"})
    'timestamptz'
    """
    match item:
        case ColumnRef(name, _):
            return _OF_DOCUMENTS.get(columns[name], columns[name])
        case Constant(value, _):
            return _constant_type(value)
        case Cast(_, kind, _):
            return kind
        case Extreme(_, argument, _, _, _):
            return type_of(argument, columns)
        case Arithmetic(_, left, right):
            return _sum_type(type_of(left, columns), type_of(right, columns))
        case FunctionCall(name, arguments):
            return _call_type(name, [type_of(one, columns) for one in arguments])
        case _:
            return "double precision"


def _constant_type(value: object) -> str:
    if isinstance(value, datetime):
        return "timestamp" if value.tzinfo is None else "timestamptz"
    kinds = ((bool, "boolean"), (int, "bigint"), (float, "numeric"), (date, "date"), (Interval, "interval"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "text")


def _sum_type(left: str, right: str) -> str:
    """A date and an interval make a timestamp; all else is calculated in double precision."""
    times = [kind for kind in (left, right) if kind in ("date", "timestamp", "timestamptz")]
    return "double precision" if not times else "timestamptz" if "timestamptz" in times else "timestamp"


def _call_type(name: str, arguments: list[str]) -> str:
    if name == "extract":
        return "numeric"
    if name == "date_trunc":
        # PostgreSQL reads a date as timestamptz here, the preferred type of its category.
        return "timestamp" if arguments[1] == "timestamp" else "timestamptz"
    if name == "date_bin":
        return "timestamp" if "timestamp" in arguments[1:] else "timestamptz"
    if name == "at_utc":
        return "timestamp" if arguments[0] == "timestamptz" else "timestamptz"
    if name == "coalesce":
        return next((kind for kind in arguments if kind != "text"), "text")
    return "text" if name in _TEXTS else "double precision"


def rewritten(item: "Expression | Condition", change: "Callable[[Expression], Expression]") -> Any:
    """The same with every expression replaced by what `change` makes of it, from the inside out."""
    match item:
        case Arithmetic(sign, left, right):
            return change(Arithmetic(sign, rewritten(left, change), rewritten(right, change)))
        case FunctionCall(name, arguments):
            return change(FunctionCall(name, tuple(rewritten(one, change) for one in arguments)))
        case Cast():
            return change(replace(item, item=rewritten(item.item, change)))
        case Compare(sign, left, right):
            return Compare(sign, rewritten(left, change), rewritten(right, change))
        case Among() | Missing() | Like() | Negation():
            return replace(item, item=rewritten(item.item, change))
        case Both(items) | Either(items):
            return replace(item, items=tuple(rewritten(one, change) for one in items))
        case TruthLiteral():
            return item
        case _:
            return change(item)
