"""Expressions and conditions: sqlglot's tree to the small syntax of `syntax`, by an allow-list.

Whatever is not handled explicitly is refused with an error that names the construct and what to write instead.
Nothing is ignored: a part of a query that is overlooked would give a wrong answer without a word.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.sql.parse.functions import NUMBERS, TIMES, WHOLE, cast_type, read_call
from tacit.sql.parse.moments import array_items, constant_moment
from tacit.sql.parse.parsing import place_of, refusal
from tacit.sql.parse.syntax import (
    Among,
    Arithmetic,
    Both,
    Cast,
    ColumnRef,
    Compare,
    Condition,
    Constant,
    Either,
    Expression,
    Like,
    Missing,
    Negation,
    TruthLiteral,
)
from tacit.sql.schema.schema import nearest_column
from tacit.sql.schema.truths import truth_of

_SIGNS = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
# By the key of sqlglot's node: what is refused, and what to write instead.
_INSTEAD = {
    "subquery": "a subquery: write the values",
    "select": "a subquery: write the values",
    "exists": "EXISTS: write a condition on columns",
    "any": "ANY: write = ANY of an array of constants, or IN (...)",
    "all": "ALL: write <> ALL of an array of constants, or NOT IN (...)",
    "window": "OVER (a window function): write GROUP BY",
    "case": "CASE: write AND, OR and NOT",
    "placeholder": "a parameter: give it a value",
    "parameter": "a parameter: give it a value",
    "regexplike": "a regular expression: write LIKE or IN (...)",
    "nullsafeneq": "IS DISTINCT FROM: write <> and IS NULL",
    "nullsafeeq": "IS NOT DISTINCT FROM: write = and IS NULL",
    "dpipe": "|| (joining texts): compare the column as it is",
    "currentdate": "CURRENT_DATE: write a date such as '2030-12-31'",
    "currenttimestamp": "now(): write a date such as '2030-12-31'",
}
_SPELT = {"literal": "a constant", "null": "NULL", "hexstring": "a hexadecimal number", "bitstring": "a bit string",
          "rawstring": "$$ text", "jsonextract": "->", "mod": "%", "in": "IN", "tuple": "a row of values"}  # fmt: skip
MAX_DEPTH = 100


def name_of(item: Any) -> str:
    """The SQL name of a construct, for error messages."""
    if isinstance(item, exp.Anonymous):
        return str(item.this)[:40].upper()
    if item.key in _SPELT:
        return _SPELT[item.key]
    # sqlglot has its own names for functions (TimestampTrunc for date_trunc), so they are written back as SQL.
    return item.sql(dialect="postgres").partition("(")[0][:40].upper() if _is_call(item) else str(item.key).upper()


def _is_call(item: Any) -> bool:
    return isinstance(item, exp.Func) and not isinstance(item, (exp.Binary, exp.Cast, exp.Case))


def _refused(item: Any) -> InvalidQuery:
    instead = _INSTEAD.get(item.key, f"{name_of(item)}: write comparisons of columns with constants")
    # SQLSTATE: undefined parameter, undefined function, else feature not supported.
    code = {"placeholder": "42P02", "parameter": "42P02", "anonymous": "42883"}.get(item.key, "0A000")
    return InvalidQuery(f"sql: {instead}", code=code, position=place_of(item))


def only(item: Any, *parts: str) -> None:
    """Refuse a construct that has other parts than these: they would be ignored, and the answer be wrong."""
    for part, given in item.args.items():
        if given and part not in parts:
            words = " ".join((name_of(item), part.strip("_").replace("expressions", "of several").upper()))
            raise InvalidQuery(
                f"sql: {words} is not answered; write {name_of(item)} without it", code="0A000", position=place_of(item)
            )


def _number(item: Any) -> int | float:
    try:
        return _number_of(str(item.this))
    except InvalidQuery as error:
        raise error.at(place_of(item)) from None


def _number_of(text: str) -> int | float:
    whole = text.isascii() and text.lstrip("-").isdigit() and len(text) < 19
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        raise refusal(f"{text[:20]!r} is not a number", code="22P02") from None
    if not isfinite(number):
        raise refusal(f"the number {text[:20]} is too large", code="22003")
    return number


def _truth(item: Any) -> bool:
    """A literal cast to boolean: a word in quotes as PostgreSQL reads it, or an integer, of which only 0 is false."""
    text = str(item.this)
    # Stripping zeros instead of calling int(), which refuses texts of thousands of digits with a ValueError.
    number = text.strip("0") != "" if text.isascii() and text.isdigit() else None
    truth = truth_of(text) if item.is_string else number
    if truth is None:
        raise InvalidQuery(
            f"sql: {text[:20]!r} is not a truth value; write TRUE or FALSE", code="22P02", position=place_of(item)
        )
    return truth


def _check_order(low: Expression, high: Expression) -> None:
    """Refuse BETWEEN with its ends swapped: SQL says that it selects nothing, which is hardly ever meant."""
    if isinstance(low, Constant) and isinstance(high, Constant):
        a, b = low.value, high.value
        if isinstance(a, (int, float)) and isinstance(b, (int, float)) and a > b:
            raise InvalidQuery(
                f"sql: BETWEEN {a} AND {b} holds nothing; write BETWEEN {b} AND {a}",
                code="22023",
                position=low.position,
            )


class ConditionReader:
    """Translates expressions and conditions over the columns of one table."""

    def __init__(self, columns: Sequence[str], tables: set[str]) -> None:
        """Take the table's columns, and the names it may be called by (its own and its alias), in lower case."""
        self._columns = columns
        self._tables = tables
        self._depth = 0

    def column(self, item: Any) -> ColumnRef:
        """A column by its name, ignoring case; InvalidQuery suggests the nearest one."""
        if item.args.get("table") and item.table.lower() not in self._tables:
            raise InvalidQuery(f"sql: there is no table {item.table[:60]!r}", code="42P01", position=place_of(item))
        try:
            return ColumnRef(nearest_column(item.name, self._columns), place_of(item))
        except InvalidQuery as error:
            raise error.at(place_of(item)) from None

    def has(self, item: Any) -> bool:
        """Whether there is a column of this name."""
        return any(name.lower() == str(item.name).lower() for name in self._columns)

    def column_of(self, item: Any, where: str) -> ColumnRef:
        """A bare column; InvalidQuery for any other expression, with `where` naming the construct."""
        if not isinstance(item, exp.Column):
            raise InvalidQuery(f"sql: {where} takes one column, no expression", code="0A000", position=place_of(item))
        return self.column(item)

    def expression(self, item: Any) -> Expression:
        """A column, a constant, or arithmetic with them."""
        self._descend()
        found = self._expression(item)
        self._depth -= 1
        return found

    def _expression(self, item: Any) -> Expression:
        if isinstance(item, exp.Paren):
            return self.expression(item.this)
        if isinstance(item, exp.Column):
            return self.column(item)
        if isinstance(item, (exp.Literal, exp.Boolean)):
            return self.constant(item)
        if isinstance(item, exp.Neg):
            inner = self.expression(item.this)
            # Folded, so that -5 is a constant to compare private columns with, and no arithmetic.
            if isinstance(inner, Constant) and isinstance(inner.value, (int, float)):
                return Constant(-inner.value, inner.position)
            return Arithmetic("-", Constant(0), inner)
        if item.key in _ARITHMETIC:
            return Arithmetic(_ARITHMETIC[item.key], self.expression(item.this), self.expression(item.expression))
        if isinstance(item, exp.Cast):
            return self._cast(item)
        if isinstance(item, exp.Null):
            raise InvalidQuery(
                "sql: NULL is compared with IS NULL or IS NOT NULL", code="0A000", position=place_of(item)
            )
        call = read_call(item, self.expression)
        if call is None:
            raise _refused(item)
        return call

    def constant(self, item: Any) -> Constant:
        """A literal: text, number, TRUE or FALSE."""
        if isinstance(item, exp.Boolean):
            return Constant(bool(item.this), place_of(item))
        if item.is_string:
            return Constant(str(item.this), place_of(item))
        return Constant(_number(item), place_of(item))

    def _cast(self, item: Any) -> Expression:
        """A constant as a value of another type, or a column that is cast row by row."""
        kind, scale = cast_type(item)
        literal = item.this.unnest()
        if isinstance(literal, exp.Literal) and kind == "boolean":
            return Constant(_truth(literal), place_of(literal))
        inner = self.expression(item.this)
        if not isinstance(inner, Constant):
            return Cast(inner, kind, scale)
        try:
            return _constant_cast(inner, kind, scale)
        except InvalidQuery as error:
            raise error.at(inner.position) from None

    def condition(self, item: Any) -> Condition:
        """Comparisons, IN, BETWEEN, LIKE and IS NULL under AND, OR and NOT."""
        self._descend()
        found = self._condition(item)
        self._depth -= 1
        return found

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidQuery(f"sql: the query is nested too deeply, must be at most {MAX_DEPTH} deep", code="54001")

    def _condition(self, item: Any) -> Condition:
        if isinstance(item, exp.Paren):
            return self.condition(item.this)
        if isinstance(item, (exp.And, exp.Or)):
            kind, items = (Both if isinstance(item, exp.And) else Either), item.flatten()
            return kind(tuple(self.condition(part) for part in items))
        if isinstance(item, exp.Not):
            return Negation(self.condition(item.this))
        if isinstance(item, exp.Boolean):
            return TruthLiteral(bool(item.this))
        # A bare column is a boolean one: WHERE active means active = TRUE.
        if isinstance(item, exp.Column):
            return Compare("=", self.column(item), Constant(True))
        if isinstance(item, exp.Cast):
            return _truth_of_cast(self._cast(item))
        return self._atom(item)

    def _atom(self, item: Any) -> Condition:
        """A condition without AND, OR and NOT: a comparison, BETWEEN, IN, LIKE or IS."""
        if item.key in _SIGNS:
            array = _array_of(item)
            if array is not None:
                return self._in_array(item, array)
            return Compare(_SIGNS[item.key], self.expression(item.this), self.expression(item.expression))
        if isinstance(item, exp.Between):
            only(item, "this", "low", "high")
            inner = self.expression(item.this)
            low, high = self.expression(item.args["low"]), self.expression(item.args["high"])
            _check_order(low, high)
            return Both((Compare(">=", inner, low), Compare("<=", inner, high)))
        if isinstance(item, exp.In):
            return self._among(item)
        if isinstance(item, (exp.Like, exp.ILike)):
            if not (isinstance(item.expression, exp.Literal) and item.expression.is_string):
                raise InvalidQuery(
                    "sql: LIKE takes a pattern in quotes", code="0A000", position=place_of(item.expression)
                )
            pattern = str(item.expression.this)
            found = Like(self.expression(item.this), pattern, ignore_case=isinstance(item, exp.ILike))
            return Negation(found) if item.args.get("negate") else found
        if isinstance(item, exp.Is):
            return self._is(item)
        raise _refused(item)

    def _is(self, item: Any) -> Condition:
        inner = self.expression(item.this)
        if isinstance(item.expression, exp.Null):
            found: Condition = Missing(inner)
        elif isinstance(item.expression, exp.Boolean):
            # IS TRUE is never NULL, unlike = TRUE: that matters under NOT.
            truth = Compare("=", inner, Constant(bool(item.expression.this)))
            found = Both((Negation(Missing(inner)), truth))
        else:
            raise InvalidQuery("sql: IS takes NULL, TRUE or FALSE", code="42804", position=place_of(item))
        return Negation(found) if item.args.get("negate") else found

    def _among(self, item: Any) -> Condition:
        if item.args.get("query") or item.args.get("unnest"):
            raise InvalidQuery(
                "sql: a subquery inside IN is not answered; list the values", code="0A000", position=place_of(item)
            )
        values = tuple(self.expression(value) for value in item.expressions)
        constants = tuple(value for value in values if isinstance(value, Constant))
        if len(constants) < len(values) or not values:
            raise InvalidQuery("sql: IN takes a list of constants", code="0A000", position=place_of(item))
        return Among(self.expression(item.this), constants)

    def _in_array(self, item: Any, array: Any) -> Condition:
        """`= ANY(array)`, which is IN, or `<> ALL(array)`, which is NOT IN."""
        cast = array if isinstance(array, exp.Cast) else None
        inner = array.this.unnest() if cast is not None else array
        if isinstance(inner, exp.Array):
            values = [self.expression(value) for value in inner.expressions]
        elif isinstance(inner, exp.Literal) and inner.is_string and str(inner.this).startswith("{"):
            values = [_present(text) for text in array_items(str(inner.this))]
        else:
            raise refusal("ANY and ALL take an array of constants, such as ARRAY['a', 'b'] or '{a,b}'", item)
        constants = tuple(value for value in values if isinstance(value, Constant))
        if len(constants) < len(values):
            raise refusal("ANY and ALL take an array of constants", item)
        among = Among(self.expression(item.this), constants) if constants else TruthLiteral(False)
        return among if item.key == "eq" else Negation(among)


def _array_of(item: Any) -> Any:
    """The array of `= ANY(array)` or `<> ALL(array)`; None for other comparisons."""
    right = item.expression
    if item.key == "eq" and right.key == "any":
        return right.this.unnest()
    if item.key == "neq" and right.key == "all":
        return right.this.unnest()
    if item.key == "neq" and right.key == "anonymous" and str(right.this).upper() == "ALL" and right.expressions:
        return right.expressions[0].unnest()
    return None


def _present(text: str | None) -> Constant:
    if text is None:
        raise refusal("NULL inside an array is never equal to anything; leave it out, or write IS NULL")
    return Constant(text)


def _truth_of_cast(item: Expression) -> Condition:
    """A cast that stands where a condition is expected."""
    if isinstance(item, Constant) and isinstance(item.value, bool):
        return TruthLiteral(item.value)
    if isinstance(item, Cast) and item.type == "boolean":
        return Compare("=", item, Constant(True))
    raise refusal("WHERE takes conditions; compare the cast with a constant", code="42804")


def _constant_cast(constant: Constant, kind: str, scale: int) -> Expression:
    """A constant that is cast; what PostgreSQL could not read is refused."""
    value = constant.value
    if kind == "text":
        return constant if isinstance(value, str) else Cast(constant, kind)
    if kind == "boolean" and isinstance(value, bool):
        return constant
    if kind in TIMES and isinstance(value, str):
        return Constant(constant_moment(value, kind), constant.position)
    if kind in NUMBERS and isinstance(value, (int, float, str)) and not isinstance(value, bool):
        number = _number_of(value.strip()) if isinstance(value, str) else value
        number = round(number, scale) if scale >= 0 else number
        return Constant(round(number) if kind in WHOLE else number, constant.position)
    return Cast(constant, kind, scale)
