"""SELECT statements: text to `syntax.Select`. sqlglot parses; an allow-list decides what is answered.

Everything that is not listed here is refused by name, with a hint at what to write instead. SQLSTATE codes are
PostgreSQL's, as clients of the wire protocol react to them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from tacit.device.domains.domain import is_text
from tacit.errors import InvalidQuery
from tacit.sql.parse.aggregates import (
    HavingReader,
    has_aggregate,
    is_extreme,
    is_unknown,
    read_aggregate,
    read_extreme,
    split_having,
    written,
)
from tacit.sql.parse.conditions import ConditionReader, name_of
from tacit.sql.parse.flatten import flattened, output_name, without_ctes
from tacit.sql.parse.functions import NUMBERS, cast_type
from tacit.sql.parse.parsing import EXPLAIN, MAX_TEXT, ParsedQuery, parse_text, place_of, refusal
from tacit.sql.parse.syntax import (
    Aggregate,
    Among,
    Both,
    ColumnRef,
    Compare,
    Condition,
    Constant,
    Expression,
    Extreme,
    Item,
    Order,
    Output,
    Select,
    TruthLiteral,
    children,
    described,
    place_in,
)

MAX_OUTPUTS = 256
_BEGIN = re.compile(r"\s*(select|with|\()", re.IGNORECASE)
_PARTS = frozenset({"expressions", "from_", "where", "group", "order", "limit", "offset", "having", "distinct"})
_REFUSED = {
    "joins": "JOIN: put the columns into the table before it is collected",
    "laterals": "LATERAL: put the columns into the table before it is collected",
    "windows": "WINDOW: write GROUP BY",
    "qualify": "QUALIFY: write GROUP BY",
    "locks": "FOR UPDATE: answers are read only",
    "into": "SELECT INTO: answers are read only",
}


def parse_sql(text: str, columns: Sequence[str], table: str) -> Select:
    """Parse a query over these columns of a table; InvalidQuery names what is refused and what to write instead.

    >>> parse_sql("SELECT COUNT(*) FROM t WHERE age < 30", ["age"], "t").aggregates[0].function
    'count'
    """
    return select_of(read_query(text), columns, table)


def read_query(text: str) -> ParsedQuery:
    """Parse one SELECT, or EXPLAIN SELECT, without looking at its columns; the table need not be known yet."""
    if len(text) > MAX_TEXT:
        raise InvalidQuery(f"sql: the query has {len(text)} characters, must have at most {MAX_TEXT}", code="54000")
    if not is_text(text) or "\0" in text:
        raise InvalidQuery("sql: the query holds characters that no text has; write plain Unicode", code="22021")
    # Before sqlglot sees the text: its parser would accept INSERT, CREATE and much more, only to refuse them later.
    explain = EXPLAIN.match(text)
    start = explain.end() if explain else 0
    if not _BEGIN.match(text, start):
        word = (text[start:].split() or ["nothing"])[0][:20].upper()
        raise InvalidQuery(
            f"sql: a query begins with SELECT (or EXPLAIN SELECT), not with {word}", code="42601",
            position=start + len(text[start:]) - len(text[start:].lstrip()) + 1,
        )  # fmt: skip
    return parse_text(text)


def select_of(parsed: ParsedQuery, columns: Sequence[str], table: str) -> Select:
    """Translate a parsed query over these columns of a table; InvalidQuery names what is refused."""
    if not isinstance(parsed.tree, exp.Select):
        raise InvalidQuery(
            f"sql: {parsed.tree.key.upper()} is not answered; write one SELECT", code="0A000",
            position=place_of(parsed.tree),
        )  # fmt: skip
    try:
        return _select(parsed, columns, table)
    except RecursionError:
        raise InvalidQuery("sql: the query is nested too deeply", code="54001") from None


def _select(parsed: ParsedQuery, columns: Sequence[str], table: str) -> Select:
    args: dict[str, Any] = flattened(without_ctes(parsed.tree), columns).args
    for part, given in args.items():
        if given and part not in _PARTS:
            words = _REFUSED.get(part, part.upper() + ": write a plain SELECT without it")
            # The message begins with the keyword, which is looked up among the tokens to point at it.
            position = parsed.keyword(re.split(r"\W", words.removeprefix("SELECT "))[0])
            raise InvalidQuery(f"sql: {words}", code="0A000", position=position)
    alias = _check_source(args.get("from_"), table)
    reader = ConditionReader(columns, {table.lower(), alias.lower()})
    if len(args["expressions"]) > MAX_OUTPUTS:
        raise refusal(f"SELECT has {len(args['expressions'])} columns, must have at most {MAX_OUTPUTS}", code="54011")
    outputs = tuple(_output(item, reader) for item in args["expressions"])
    groups = _groups(args.get("group"), outputs, reader) + _distinct(args.get("distinct"), outputs)
    _check_outputs(outputs, groups)
    before, after = split_having(args.get("having"))
    where = args.get("where")
    conditions = ([] if where is None else [where.this]) + before
    having = HavingReader(reader, [o.item for o in outputs if isinstance(o.item, Aggregate)])
    select = Select(
        outputs=outputs,
        condition=_every([reader.condition(item) for item in conditions]),
        groups=tuple(dict.fromkeys(groups)),
        order=_orders(args.get("order"), outputs, reader),
        limit=_number(args.get("limit"), "LIMIT"),
        offset=_number(args.get("offset"), "OFFSET") or 0,
        explain=parsed.explain,
        having=_every([having.condition(item) for item in after]),
    )
    return _counted(select, having.hidden)


def _every(conditions: Sequence[Condition]) -> Condition:
    return TruthLiteral(True) if not conditions else conditions[0] if len(conditions) == 1 else Both(tuple(conditions))


def _counted(select: Select, hidden: list[Aggregate]) -> Select:
    """The query with hidden aggregates: those of HAVING, and the row counts of listed groups."""
    if select.aggregates and not _compares(select.having):
        return replace(select, hidden=tuple(hidden))
    count = Aggregate("count", None, TruthLiteral(True), "COUNT(*)")
    return replace(select, hidden=(*hidden, count), lists=True)


def _compares(item: Expression | Condition) -> bool:
    """Whether HAVING looks at answers; whether a cell is NULL is seen in the answer as well."""
    return isinstance(item, Compare | Among) or any(_compares(child) for child in children(item))


def _distinct(distinct: Any, outputs: tuple[Output, ...]) -> tuple[Expression, ...]:
    """SELECT DISTINCT groups by all of its columns; beside GROUP BY all rows differ anyway."""
    if not distinct:
        return ()
    if distinct.args.get("on"):
        raise refusal("DISTINCT ON would show rows; write GROUP BY", distinct)
    if any(isinstance(output.item, Aggregate | Extreme) for output in outputs):
        return ()
    return tuple(output.item for output in outputs if not isinstance(output.item, Aggregate | Extreme | Constant))


def _check_source(source: Any, table: str) -> str:
    """Check that FROM is this table and nothing else; returns its alias."""
    if source is None:
        raise InvalidQuery(f"sql: FROM is missing; write FROM {table}", code="42601")
    inner = source.this
    if not isinstance(inner, exp.Table):
        raise InvalidQuery(
            "sql: FROM takes one table; write one SELECT over the table itself",
            code="0A000",
            position=place_of(inner),
        )
    if inner.name.lower() != table.lower():
        raise InvalidQuery(
            f"sql: there is no table {(inner.name or inner.sql())[:60]!r}; write FROM {table}",
            code="42P01",
            position=place_of(inner),
        )
    if inner.args.get("alias") and inner.args["alias"].args.get("columns"):
        raise InvalidQuery(
            "sql: columns of a table are not renamed in FROM; write AS in SELECT",
            code="0A000",
            position=place_of(inner),
        )
    for part, given in inner.args.items():
        if given and part not in ("this", "alias", "db"):
            name = {"sample": "TABLESAMPLE", "joins": "JOIN"}.get(part, part.upper())
            raise InvalidQuery(
                f"sql: {name} is not answered; write FROM {table}", code="0A000", position=place_of(inner)
            )
    return inner.alias or table


def _output(item: Any, reader: ConditionReader) -> Output:
    name = item.alias if isinstance(item, exp.Alias) else ""
    inner = item.this if isinstance(item, exp.Alias) else item
    if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        raise InvalidQuery(
            "sql: SELECT * would show rows; write aggregates such as COUNT(*)", code="0A000", position=place_of(inner)
        )
    if isinstance(inner, exp.Column):
        column = reader.column(inner)
        return Output(name or column.name, column)
    name = name or output_name(inner)
    if not has_aggregate(inner) and not is_unknown(inner):
        return Output(name or "?column?", reader.expression(inner))
    kind = ""
    while isinstance(inner, (exp.Cast, exp.Paren)):
        kind, inner = kind or (cast_type(inner)[0] if isinstance(inner, exp.Cast) else ""), inner.this
    if is_extreme(inner):
        extreme = read_extreme(inner, reader, kind)
        return Output(name or extreme.function, extreme)
    aggregate = read_aggregate(inner, reader)
    if kind not in ("", *NUMBERS):
        raise refusal(f"an aggregate cannot be cast to {kind}; cast it to a number, or leave it", inner)
    return Output(name or aggregate.function, aggregate, kind)


def _groups(group: Any, outputs: tuple[Output, ...], reader: ConditionReader) -> tuple[Expression, ...]:
    """Columns and expressions of GROUP BY; of a name, PostgreSQL takes the column first and then the output."""
    if group is None:
        return ()
    if any(given for part, given in group.args.items() if part != "expressions"):
        raise refusal("GROUP BY takes columns; write ROLLUP, CUBE and sets as several queries", group)
    groups: list[Expression] = []
    for item in group.expressions:
        # GROUP BY 1 names a column of the SELECT list, as does an alias, before a column of the table.
        if isinstance(item, exp.Literal):
            column = outputs[_place(item, outputs, "GROUP BY")].item
        elif isinstance(item, exp.Column):
            column = (None if reader.has(item) else _named(item, outputs)) or reader.column(item)
        elif item.key in ("cube", "rollup", "groupingsets", "tuple"):
            raise refusal(f"GROUP BY takes columns, not {name_of(item)}; write several queries", item)
        else:
            column = reader.expression(item)
        if isinstance(column, Aggregate | Extreme):
            raise refusal(f"GROUP BY takes columns, not {column.text[:60]}", item)
        if not isinstance(column, Constant):  # Which is the same in all rows.
            groups.append(column)
    return tuple(groups)


def _named(item: Any, outputs: tuple[Output, ...]) -> Item | None:
    """What SELECT gave this name."""
    return next((output.item for output in outputs if output.name.lower() == item.name.lower()), None)


def _check_outputs(outputs: tuple[Output, ...], groups: tuple[Expression, ...]) -> None:
    for output in outputs:
        if isinstance(output.item, Aggregate | Extreme | Constant) or output.item in groups:
            continue
        raise InvalidQuery(
            f"sql: {described(output.item)} is neither in GROUP BY nor inside an aggregate; rows are never shown",
            code="42803",
            position=place_in(output.item),
        )
    if not groups and all(isinstance(output.item, Constant) for output in outputs):
        raise refusal("the query has no aggregate; write one such as COUNT(*)")


def _place(item: Any, outputs: tuple[Output, ...], where: str) -> int:
    """The 0-based column of the answer that a literal such as ORDER BY 2 names."""
    place = int(item.this) if not item.is_string and _is_digits(str(item.this)) and len(item.this) < 9 else 0
    if not 1 <= place <= len(outputs):
        raise InvalidQuery(
            f"sql: {where} {str(item.this)[:20]} names no column of the answer, 1 to {len(outputs)}",
            code="42P10",
            position=place_of(item),
        )
    return place - 1


def _is_digits(text: str) -> bool:
    """Whether a text is an unsigned integer in ASCII; isdigit() alone would accept superscripts."""
    return text.isascii() and text.isdigit()


def _orders(order: Any, outputs: tuple[Output, ...], reader: ConditionReader) -> tuple[Order, ...]:
    if order is None:
        return ()
    # Names of the answer first, then columns of the table and texts of aggregates: ORDER BY COUNT(*) finds its column.
    texts: list[Callable[[Output], str]] = [
        lambda output: output.name.lower(),
        lambda output: output.item.text.lower() if isinstance(output.item, Aggregate | Extreme) else "",
        lambda output: output.item.name.lower() if isinstance(output.item, ColumnRef) else "",
    ]
    found: list[Order] = []
    for item in order.expressions:
        inner, descending = item.this, bool(item.args.get("desc"))
        if isinstance(inner, exp.Literal):
            found.append(Order(_place(inner, outputs, "ORDER BY"), descending))
            continue
        text = (inner.name if isinstance(inner, exp.Column) else written(inner)).lower()
        place = next((i for get in texts for i, output in enumerate(outputs) if get(output) == text), None)
        if place is None and not has_aggregate(inner):
            meant = reader.expression(inner)
            place = next((i for i, output in enumerate(outputs) if output.item == meant), None)
        if place is None:
            raise InvalidQuery(
                f"sql: ORDER BY {text[:60]} is not in the answer; add it to SELECT",
                code="42P10",
                position=place_of(inner),
            )
        found.append(Order(place, descending))
    return tuple(found)


def _number(item: Any, name: str) -> int | None:
    """The number of LIMIT or OFFSET, None where there is none; InvalidQuery for anything but a small integer."""
    if item is None:
        return None
    inner = item.args.get("count") if item.key == "fetch" else item.expression
    if inner is not None and inner.key == "null":  # LIMIT ALL is no limit, and PostgreSQL takes NULL for it.
        return None
    text = getattr(inner, "this", None)
    if not isinstance(text, str) or not _is_digits(text) or len(text) > 9 or getattr(inner, "is_string", True):
        code = "2201W" if name == "LIMIT" else "2201X"
        raise InvalidQuery(f"sql: {name} must be a whole number", code=code, position=place_of(inner))
    return int(text)
