"""Expressions and conditions of SQL, from sqlglot's tree to `syntax`."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tacit.errors import InvalidSpec
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
}


def _refused(item: Any) -> InvalidSpec:
    key = item.key
    return InvalidSpec(f"sql: {_INSTEAD.get(key, f'{key.upper()}: write comparisons of columns with constants')}")


class Reader:
    """Reads expressions over known columns."""

    def __init__(self, columns: Sequence[str], tables: set[str]) -> None:
        """Columns, and the names by which their table may be called, in lower case."""
        self._columns = columns
        self._tables = tables

    def column(self, item: Any) -> Column:
        """A column by its name, or InvalidSpec with the nearest one."""
        if item.args.get("table") and item.table.lower() not in self._tables:
            raise InvalidSpec(f"sql: there is no table {item.table[:60]!r}")
        return Column(nearest_column(item.name, self._columns))

    def expression(self, item: Any) -> Expression:
        """A column, a constant, or arithmetic with them."""
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
        if isinstance(item, exp.Null):
            raise InvalidSpec("sql: NULL is compared with IS NULL or IS NOT NULL")
        raise _refused(item)

    def constant(self, item: Any) -> Constant:
        """A literal."""
        exp = expressions()
        if isinstance(item, exp.Boolean):
            return Constant(bool(item.this))
        if item.is_string:
            return Constant(str(item.this))
        text = str(item.this)
        number = int(text) if text.isdigit() and len(text) < 19 else float(text)
        if not isfinite(number):
            raise InvalidSpec(f"sql: the number {text[:20]} is too large")
        return Constant(number)

    def condition(self, item: Any) -> Condition:
        """Comparisons, IN, BETWEEN, LIKE and IS NULL under AND, OR and NOT."""
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
        return self._atom(item)

    def _atom(self, item: Any) -> Condition:
        exp = expressions()
        if item.key in _SIGNS:
            return Compare(_SIGNS[item.key], self.expression(item.this), self.expression(item.expression))
        if isinstance(item, exp.Between):
            inner = self.expression(item.this)
            low, high = self.expression(item.args["low"]), self.expression(item.args["high"])
            return Both((Compare(">=", inner, low), Compare("<=", inner, high)))
        if isinstance(item, exp.In):
            return self._among(item)
        if isinstance(item, (exp.Like, exp.ILike)):
            if not (isinstance(item.expression, exp.Literal) and item.expression.is_string):
                raise InvalidSpec("sql: LIKE takes a pattern in quotes")
            pattern = str(item.expression.this)
            return Like(self.expression(item.this), pattern, ignore_case=isinstance(item, exp.ILike))
        if isinstance(item, exp.Is):
            return self._is(item)
        raise _refused(item)

    def _is(self, item: Any) -> Condition:
        exp = expressions()
        if not isinstance(item.expression, exp.Null):
            raise InvalidSpec("sql: IS takes NULL; for truth values write the condition itself or NOT")
        found = Missing(self.expression(item.this))
        return Negation(found) if item.args.get("negate") else found

    def _among(self, item: Any) -> Condition:
        if item.args.get("query") or item.args.get("unnest"):
            raise InvalidSpec("sql: a subquery inside IN is not answered; list the values")
        values = tuple(self.expression(value) for value in item.expressions)
        constants = tuple(value for value in values if isinstance(value, Constant))
        if len(constants) < len(values) or not values:
            raise InvalidSpec("sql: IN takes a list of constants")
        return Among(self.expression(item.this), constants)
