"""Parameters of prepared statements: their types, and their values put into the tree of the query.

A query is parsed once, with its parameters as nodes of the tree. Values replace these nodes and never become text, so
nothing that a value says can be read as SQL.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_functions import type_oid
from tacit.collector.pg.messages import PgError
from tacit.sql.parse.parsing import MAX_TEXT, ParsedQuery, place_of

_LONGEST = 1 << 18


def bind(
    parsed: ParsedQuery, values: "Sequence[pg.Value | list[pg.Value]]", *, lists: bool = False
) -> ParsedQuery:  # fmt: skip
    """The query with constants in place of its parameters; with `lists`, `= ANY` of an array becomes IN of a list.

    The tree that was parsed stays as it is, so that the statement can be run again with other values.
    """
    nodes = list(parsed.tree.find_all(exp.Parameter))
    if not nodes:
        return parsed
    # Queries over a collection's table have a limit of their own, which values count towards as if they were written.
    size, longest = 0, MAX_TEXT if lists else _LONGEST
    tree = parsed.tree.copy()
    for node in list(tree.find_all(exp.Parameter)):
        number = _number(node)
        if not 1 <= number <= len(values):
            raise PgError("42P02", f"there is no parameter ${number or ''}", position=place_of(node))
        value = values[number - 1]
        size += len(pg.constant(value))
        if size > longest:
            raise PgError("54000", f"the parameters of a statement may have at most {longest} characters")
        _put(node, value, lists=lists)
    return ParsedQuery(tree, parsed.tokens, parsed.explain)


def _number(node: Any) -> int:
    text = str(node.name)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _put(node: Any, value: "pg.Value | list[pg.Value]", *, lists: bool) -> None:
    place, parent = node, node.parent
    # A value has the type of its cast already, so that `$1::date` becomes the constant alone.
    if isinstance(parent, exp.Cast):
        kind = type_oid(parent.to.sql(dialect="postgres"))
        # Names of tables and types are numbers only once they are cast; a time stays one beside a date.
        keeps = kind in (pg.REGCLASS, pg.REGTYPE, pg.REGPROC) or (lists and kind in (pg.TIMESTAMP, pg.TIMESTAMPTZ))
        if isinstance(value, list) or (kind and not keeps):
            place = parent
    if lists and isinstance(value, list):
        some: Any = place.find_ancestor(exp.Any)
        comparison: Any = getattr(some, "parent", None)
        if isinstance(comparison, exp.EQ) and some.this.unnest() is place and comparison.expression is some:
            comparison.replace(exp.In(this=comparison.this, expressions=_listed(value, place_of(node))))
            return
    place.replace(_literal(value, place_of(node)))


def _listed(values: "Sequence[pg.Value]", position: int) -> list[Any]:
    present = [value for value in values if value is not None]
    if not present:
        raise PgError("22023", "an empty list has nothing to compare with; leave out the condition", position=position)
    return [_literal(value, position) for value in present]


def _literal(value: "pg.Value | list[pg.Value]", position: int) -> Any:
    """A constant that stands where its parameter stood."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, float)):
        found: Any = exp.Literal.number(repr(abs(value)))
        inner = found
        found = exp.Neg(this=found) if value < 0 else found
    else:
        found = inner = exp.Literal.string(pg.array_text(value) if isinstance(value, list) else value)
    inner.meta["start"] = position - 1
    return found


def parameter_types(parsed: ParsedQuery, given: Sequence[int], columns: Mapping[str, int]) -> tuple[int, ...]:
    """Types of parameters: as stated by the client, else the type of the cast or comparison they stand in."""
    nodes = [(node, _number(node)) for node in parsed.tree.find_all(exp.Parameter)]
    count = max((number for _, number in nodes), default=0)
    found = [*given, *[0] * (count - len(given))]
    for node, number in nodes:
        if number and found[number - 1] in (0, pg.UNKNOWN):
            found[number - 1] = _compared(node, columns)
    return tuple(oid or pg.TEXT for oid in found)


def is_unit(node: Any) -> bool:
    """Whether a parameter is the unit of a date function, such as 'month' of date_trunc."""
    inside = node
    while isinstance(inside.parent, (exp.Cast, exp.Paren)):
        inside = inside.parent
    parent = inside.parent
    if isinstance(parent, exp.Anonymous):
        return str(parent.this).upper() == "DATE_PART" and parent.expressions[0] is inside
    return isinstance(parent, exp.TimestampTrunc) and inside.arg_key == "unit"


def example_values(parsed: ParsedQuery, types: Sequence[int]) -> list[Any]:
    """A value of every parameter's type, by which a query is looked at before its parameters are known."""
    values = [_example(oid) for oid in types]
    for node in parsed.tree.find_all(exp.Parameter):
        if is_unit(node) and 1 <= _number(node) <= len(values):
            values[_number(node) - 1] = "day"
    return values


_EXAMPLES: dict[int, Any] = {pg.BOOL: True, pg.DATE: "2000-01-01", pg.TEXT: "x"} | dict.fromkeys(
    (pg.TIMESTAMP, pg.TIMESTAMPTZ), "2000-01-01"
)


def _example(oid: int) -> Any:
    if oid in pg.ELEMENTS:
        return [_example(pg.ELEMENTS[oid])]
    return _EXAMPLES.get(oid, "x" if oid in (pg.VARCHAR, pg.BPCHAR, pg.NAME, pg.UNKNOWN) else 1)


def _compared(node: Any, columns: Mapping[str, int]) -> int:
    inside = node
    while (parent := inside.parent) is not None:
        if isinstance(parent, (exp.Limit, exp.Offset)):
            return pg.INT8
        if isinstance(parent, exp.Cast):
            return type_oid(parent.to.sql(dialect="postgres")) or pg.TEXT
        others = [column.name.lower() for column in parent.find_all(exp.Column)]
        if isinstance(parent, (exp.Binary, exp.Between, exp.In)) and others:
            kind = columns.get(others[0], pg.TEXT)
            return pg.TEXT if isinstance(parent, (exp.Like, exp.ILike)) else _array_of(node, kind)
        if isinstance(parent, exp.Select):
            break
        inside = parent
    return pg.TEXT


def _array_of(node: Any, kind: int) -> int:
    some = isinstance(node.parent, exp.Any) or isinstance(getattr(node.parent, "parent", None), exp.Any)
    return next((array for array, of in pg.ELEMENTS.items() if of == kind), kind) if some else kind
