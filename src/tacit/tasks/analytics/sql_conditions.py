"""Expressions and conditions of SQL, from sqlglot's tree to `syntax`."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tacit.errors import InvalidQuery
from tacit.tasks.analytics.imports import expressions
from tacit.tasks.analytics.schema import nearest_column
from tacit.tasks.analytics.syntax import (
    Among,
    Arithmetic,
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

_SIGNS = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_INSTEAD = {
    "subquery": "a subquery: write the values",
    "select": "a subquery: write the values",
    "exists": "EXISTS: write a condition on columns",
    "any": "ANY: write IN (...)",
    "all": "ALL: write IN (...)",
    "cast": "a cast: compare the column as it is",
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
_DATES = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TEXT", "VARCHAR")
_NUMBERS = ("INT", "BIGINT", "SMALLINT", "DOUBLE", "FLOAT", "DECIMAL")
MAX_DEPTH = 100


def name_of(item: Any) -> str:
    """What a construct is called in SQL."""
    if isinstance(item, expressions().Anonymous):
        return str(item.this)[:40].upper()
    return _SPELT.get(item.key) or str(item.key).upper()


def _refused(item: Any) -> InvalidQuery:
    instead = _INSTEAD.get(item.key, f"{name_of(item)}: write comparisons of columns with constants")
    return InvalidQuery(f"sql: {instead}")


def only(item: Any, *parts: str) -> None:
    """Refuse a construct that has more than its usual parts, which would otherwise be overlooked."""
    for part, given in item.args.items():
        if given and part not in parts:
            words = " ".join((name_of(item), part.strip("_").replace("expressions", "of several").upper()))
            raise InvalidQuery(f"sql: {words} is not answered; write {name_of(item)} without it")


def _number(text: str) -> int | float:
    try:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else float(text)
    except ValueError:
        raise InvalidQuery(f"sql: {text[:20]!r} is not a number") from None
    if not isfinite(number):
        raise InvalidQuery(f"sql: the number {text[:20]} is too large")
    return number


def _truth(text: str, *, is_string: bool) -> bool:
    """A literal that is cast to a truth value: a word in quotes, or a whole number, of which only zero is false."""
    # Zeros are stripped instead of calling int, which raises ValueError for thousands of digits.
    number = text.strip("0") != "" if text.isascii() and text.isdigit() else None
    truth = truth_of(text) if is_string else number
    if truth is None:
        raise InvalidQuery(f"sql: {text[:20]!r} is not a truth value; write TRUE or FALSE")
    return truth


def _check_order(low: Expression, high: Expression) -> None:
    """Refuse ends of a range the wrong way round, which hold nothing and are hardly ever meant."""
    if isinstance(low, Constant) and isinstance(high, Constant):
        a, b = low.value, high.value
        if isinstance(a, (int, float)) and isinstance(b, (int, float)) and a > b:
            raise InvalidQuery(f"sql: BETWEEN {a} AND {b} holds nothing; write BETWEEN {b} AND {a}")


class Reader:
    """Reads expressions over known columns."""

    def __init__(self, columns: Sequence[str], tables: set[str]) -> None:
        """Columns, and the names by which their table may be called, in lower case."""
        self._columns = columns
        self._tables = tables
        self._depth = 0

    def column(self, item: Any) -> Column:
        """A column by its name, or InvalidQuery with the nearest one."""
        if item.args.get("table") and item.table.lower() not in self._tables:
            raise InvalidQuery(f"sql: there is no table {item.table[:60]!r}")
        return Column(nearest_column(item.name, self._columns))

    def column_of(self, item: Any, where: str) -> Column:
        """A column and nothing else."""
        if not isinstance(item, expressions().Column):
            raise InvalidQuery(f"sql: {where} takes one column, no expression")
        return self.column(item)

    def expression(self, item: Any) -> Expression:
        """A column, a constant, or arithmetic with them."""
        self._descend()
        found = self._expression(item)
        self._depth -= 1
        return found

    def _expression(self, item: Any) -> Expression:
        exp = expressions()
        if isinstance(item, exp.Paren):
            return self.expression(item.this)
        if isinstance(item, exp.Column):
            return self.column(item)
        if isinstance(item, (exp.Literal, exp.Boolean)):
            return self.constant(item)
        if isinstance(item, exp.Neg):
            inner = self.expression(item.this)
            if isinstance(inner, Constant) and isinstance(inner.value, (int, float)):
                return Constant(-inner.value)
            return Arithmetic("-", Constant(0), inner)
        if item.key in _ARITHMETIC:
            return Arithmetic(_ARITHMETIC[item.key], self.expression(item.this), self.expression(item.expression))
        if isinstance(item, exp.Cast):
            return self._cast(item)
        if isinstance(item, exp.Null):
            raise InvalidQuery("sql: NULL is compared with IS NULL or IS NOT NULL")
        raise _refused(item)

    def constant(self, item: Any) -> Constant:
        """A literal."""
        exp = expressions()
        if isinstance(item, exp.Boolean):
            return Constant(bool(item.this))
        if item.is_string:
            return Constant(str(item.this))
        return Constant(_number(str(item.this)))

    def _cast(self, item: Any) -> Constant:
        """A constant as a date, text, number or truth value; columns are compared as they are."""
        exp = expressions()
        kind, inner = item.to.this.name, item.this.unnest()
        if isinstance(inner, exp.Literal) and kind in _DATES:
            return Constant(str(inner.this))
        if isinstance(inner, exp.Literal) and kind in _NUMBERS:
            return Constant(_number(str(inner.this)))
        if isinstance(inner, exp.Literal) and kind == "BOOLEAN":
            return Constant(_truth(str(inner.this), is_string=inner.is_string))
        if isinstance(inner, exp.Boolean) and kind == "BOOLEAN":
            return self.constant(inner)
        raise _refused(item)

    def condition(self, item: Any) -> Condition:
        """Comparisons, IN, BETWEEN, LIKE and IS NULL under AND, OR and NOT."""
        self._descend()
        found = self._condition(item)
        self._depth -= 1
        return found

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidQuery(f"sql: the query is nested too deeply, must be at most {MAX_DEPTH} deep")

    def _condition(self, item: Any) -> Condition:
        exp = expressions()
        if isinstance(item, exp.Paren):
            return self.condition(item.this)
        if isinstance(item, (exp.And, exp.Or)):
            kind, items = (Both if isinstance(item, exp.And) else Either), item.flatten()
            return kind(tuple(self.condition(part) for part in items))
        if isinstance(item, exp.Not):
            return Negation(self.condition(item.this))
        if isinstance(item, exp.Boolean):
            return Truth(bool(item.this))
        if isinstance(item, exp.Column):
            return Compare("=", self.column(item), Constant(True))
        if isinstance(item, exp.Cast) and isinstance(truth := self._cast(item).value, bool):
            return Truth(truth)
        return self._atom(item)

    def _atom(self, item: Any) -> Condition:
        exp = expressions()
        if item.key in _SIGNS:
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
                raise InvalidQuery("sql: LIKE takes a pattern in quotes")
            pattern = str(item.expression.this)
            found = Like(self.expression(item.this), pattern, ignore_case=isinstance(item, exp.ILike))
            return Negation(found) if item.args.get("negate") else found
        if isinstance(item, exp.Is):
            return self._is(item)
        raise _refused(item)

    def _is(self, item: Any) -> Condition:
        exp = expressions()
        inner = self.expression(item.this)
        if isinstance(item.expression, exp.Null):
            found: Condition = Missing(inner)
        elif isinstance(item.expression, exp.Boolean):
            truth = Compare("=", inner, Constant(bool(item.expression.this)))
            found = Both((Negation(Missing(inner)), truth))
        else:
            raise InvalidQuery("sql: IS takes NULL, TRUE or FALSE")
        return Negation(found) if item.args.get("negate") else found

    def _among(self, item: Any) -> Condition:
        if item.args.get("query") or item.args.get("unnest"):
            raise InvalidQuery("sql: a subquery inside IN is not answered; list the values")
        values = tuple(self.expression(value) for value in item.expressions)
        constants = tuple(value for value in values if isinstance(value, Constant))
        if len(constants) < len(values) or not values:
            raise InvalidQuery("sql: IN takes a list of constants")
        return Among(self.expression(item.this), constants)
