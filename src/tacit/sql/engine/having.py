"""HAVING: conditions on the cells of a group, with NULL as in SQL."""

from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from tacit.errors import InvalidQuery
from tacit.sql.engine.aggregate import AggregateCell
from tacit.sql.parse.syntax import (
    Among,
    Arithmetic,
    Both,
    CellRef,
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

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_ARITHMETIC: dict[str, Callable[[float, float], float | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else None,
}


def holds(condition: Condition, cells: Sequence[AggregateCell]) -> bool:
    """Whether a group meets HAVING; what is unknown does not."""
    return _truth(condition, cells) is True


def _truth(item: Condition, cells: Sequence[AggregateCell]) -> bool | None:
    match item:
        case TruthLiteral(value):
            return value
        case Negation(inner):
            truth = _truth(inner, cells)
            return None if truth is None else not truth
        case Both(items) | Either(items):
            # One FALSE decides an AND and one TRUE an OR, whatever is unknown beside it.
            deciding = isinstance(item, Either)
            truths = [_truth(one, cells) for one in items]
            return deciding if deciding in truths else None if None in truths else not deciding
        case Missing(inner):
            return _number(inner, cells) is None
        case Compare(sign, left, right):
            a, b = _number(left, cells), _number(right, cells)
            return None if a is None or b is None else _SIGNS[sign](a, b)
        case Among(inner, values):
            return _truth(Either(tuple(Compare("=", inner, value) for value in values)), cells)
        case Like():
            raise InvalidQuery("sql: HAVING compares aggregates with numbers, not by LIKE", code="42804")


def _number(item: Expression, cells: Sequence[AggregateCell]) -> float | None:
    match item:
        case CellRef(place):
            return cells[place].estimate
        case Constant(value, _) if isinstance(value, int | float):
            return value
        case Arithmetic(sign, left, right):
            a, b = _number(left, cells), _number(right, cells)
            return None if a is None or b is None else _ARITHMETIC[sign](a, b)
        case _:
            raise InvalidQuery("sql: HAVING compares aggregates with numbers", code="42804")
