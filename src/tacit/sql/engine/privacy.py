"""Checks that private columns are not used where only public ones can be answered."""

from collections.abc import Iterator
from dataclasses import replace

from tacit.errors import InvalidQuery
from tacit.sql.parse.functions import NUMBERS
from tacit.sql.parse.syntax import (
    Aggregate,
    Cast,
    CellRef,
    ColumnRef,
    Condition,
    Expression,
    Extreme,
    Missing,
    Select,
    children,
    columns_in,
    described,
    place_in,
    rewritten,
)
from tacit.sql.schema.schema import Schema


def _private(schema: Schema, *items: Expression | Condition | None) -> str:
    """The first private column of some expressions and conditions; empty if there is none."""
    names = (name for item in items for name in columns_in(item))
    return next((name for name in names if schema.dimension(name) is not None), "")


def is_private(schema: Schema, group: Expression) -> bool:
    """Whether an item of GROUP BY is a private column; expressions of private columns are refused."""
    name = _private(schema, group)
    if name and not isinstance(group, ColumnRef):
        raise InvalidQuery(
            f"sql: {name} is private; group by the column itself, not by {described(group)}",
            code="0A000",
            position=place_in(group),
        )
    return bool(name)


def check_public(schema: Schema, select: Select) -> None:
    """Refuse MIN, MAX, DISTINCT and HAVING where they would need private values, which are known as noise alone."""
    for item in select.extremes:
        name = _private(schema, item.argument, item.condition, select.condition, *select.groups)
        if name:
            raise InvalidQuery(
                f"sql: {item.text[:60]} would depend on {name}, which is private; extremes of noisy values cannot be "
                "estimated: ask without it, or for AVG and STDDEV",
                code="0A000",
                position=item.position,
            )
    if not select.lists:
        return
    name = _private(schema, select.condition)
    if name:
        raise InvalidQuery(
            f"sql: which groups there are (DISTINCT, HAVING) would depend on {name}, which is private; leave the "
            "condition out, or ask for COUNT(*) with GROUP BY and read its standard error",
            code="0A000",
            position=place_in(select.condition),
        )
    _check_having(schema, select)


def _cells(item: Expression | Condition) -> Iterator[int]:
    """The places of the aggregates that HAVING compares; whether one is NULL is seen in the answer anyway."""
    if isinstance(item, CellRef):
        yield item.place
    elif not isinstance(item, Missing):
        for child in children(item):
            yield from _cells(child)


def _check_having(schema: Schema, select: Select) -> None:
    for place in _cells(select.having):
        item = select.aggregates[place]
        name = _private(schema, item.argument, item.condition, *select.groups)
        if name:
            raise InvalidQuery(
                f"sql: HAVING with {item.text[:60]} would depend on {name}, which is private: answers are noisy, so "
                "read them all and their standard errors; or use ORDER BY and LIMIT",
                code="0A000",
                position=item.position,
            )


def without_casts(select: Select, schema: Schema) -> Select:
    """The same query, where private columns that are cast to what they are anyway stand without the cast."""
    kinds = {"integer": NUMBERS, "text": ("text",), "boolean": ("boolean",)}

    def plain(item: Expression) -> Expression:
        if isinstance(item, Cast) and isinstance(item.item, ColumnRef):
            place = schema.dimension(item.item.name)
            if place is not None and item.type in kinds.get(schema.dimensions[place].type, ()):
                return item.item
        return item

    def aggregate(item: Aggregate | Extreme) -> Aggregate | Extreme:
        argument = None if item.argument is None else rewritten(item.argument, plain)
        return replace(item, argument=argument, condition=rewritten(item.condition, plain))  # type: ignore[arg-type]

    outputs = tuple(
        replace(o, item=aggregate(o.item) if isinstance(o.item, Aggregate | Extreme) else rewritten(o.item, plain))
        for o in select.outputs
    )
    return replace(
        select, outputs=outputs, condition=rewritten(select.condition, plain),
        groups=tuple(rewritten(item, plain) for item in select.groups),
        hidden=tuple(aggregate(item) for item in select.hidden),
    )  # fmt: skip
