"""SQL text to `syntax`: sqlglot parses, and only what is listed here goes on; everything else is refused by name."""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from tacit.device.domain import is_text
from tacit.errors import InvalidQuery
from tacit.tasks.analytics.imports import expressions, sqlglot
from tacit.tasks.analytics.parsing import parse_text
from tacit.tasks.analytics.sql_conditions import Reader, name_of, only
from tacit.tasks.analytics.syntax import Aggregate, Both, Column, Constant, Order, Output, Select, Truth

MAX_TEXT = 20_000
MAX_OUTPUTS = 256
EXPLAIN = re.compile(r"\s*explain\s+", re.IGNORECASE)
_PARTS = frozenset({"expressions", "from_", "from", "where", "group", "order", "limit", "offset"})
_REFUSED = {
    "joins": "JOIN: put the columns into the table before it is collected",
    "laterals": "LATERAL: put the columns into the table before it is collected",
    "with_": "WITH: write one SELECT",
    "with": "WITH: write one SELECT",
    "having": "HAVING: answers are noisy, so read them all and their standard errors; or use ORDER BY and LIMIT",
    "distinct": "DISTINCT: write GROUP BY and COUNT(*)",
    "windows": "WINDOW: write GROUP BY",
    "qualify": "QUALIFY: write GROUP BY",
    "locks": "FOR UPDATE: answers are read only",
    "into": "SELECT INTO: answers are read only",
}


def parse_sql(text: str, columns: Sequence[str], table: str) -> Select:
    """A query over these columns, or InvalidQuery that names what is refused and what to write instead.

    >>> parse_sql("SELECT COUNT(*) FROM t WHERE age < 30", ["age"], "t").aggregates[0].function
    'count'
    """
    if len(text) > MAX_TEXT:
        raise InvalidQuery(f"sql: the query has {len(text)} characters, must have at most {MAX_TEXT}")
    if not is_text(text) or "\0" in text:
        raise InvalidQuery("sql: the query holds characters that no text has; write plain Unicode")
    found = EXPLAIN.match(text)
    body = text[found.end() :] if found else text
    try:
        return _select(_parsed(body), columns, table, explain=found is not None)
    except RecursionError:
        raise InvalidQuery("sql: the query is nested too deeply") from None


def _parsed(text: str) -> Any:
    library, exp = sqlglot(), expressions()
    if not re.match(r"\s*(select|with|\()", text, re.IGNORECASE):
        word = (text.split() or ["nothing"])[0][:20].upper()
        raise InvalidQuery(f"sql: a query begins with SELECT (or EXPLAIN SELECT), not with {word}")
    try:
        kinds = [token.token_type.name for token in library.tokenize(text, read="postgres")]
        if "SEMICOLON" in kinds[:-1]:
            raise InvalidQuery("sql: several statements at once; send one SELECT")
        parsed = parse_text(text)
    except library.errors.SqlglotError as error:
        first = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()[0]
        plain = re.sub(r"\s*<.*?(?=\. Line \d|$)", " something else", first)  # What the parser calls its own parts.
        raise InvalidQuery(f"sql: the text is not SQL: {plain[:200]}") from None
    if not isinstance(parsed, exp.Select):
        raise InvalidQuery(f"sql: {parsed.key.upper()} is not answered; write one SELECT")
    return parsed


def _select(parsed: Any, columns: Sequence[str], table: str, *, explain: bool) -> Select:
    args: dict[str, Any] = parsed.args
    for part, given in args.items():
        if given and part not in _PARTS:
            raise InvalidQuery(f"sql: {_REFUSED.get(part, part.upper() + ': write a plain SELECT without it')}")
    alias = _check_source(args.get("from_") or args.get("from"), table)
    reader = Reader(columns, {table.lower(), alias.lower()})
    where = args.get("where")
    if len(args["expressions"]) > MAX_OUTPUTS:
        raise InvalidQuery(f"sql: SELECT has {len(args['expressions'])} columns, must have at most {MAX_OUTPUTS}")
    outputs = tuple(_output(item, reader) for item in args["expressions"])
    groups = _groups(args.get("group"), outputs, reader)
    _check_outputs(outputs, groups)
    return Select(
        outputs=outputs,
        condition=Truth(True) if where is None else reader.condition(where.this),
        groups=groups,
        order=_orders(args.get("order"), outputs, reader),
        limit=_number(args.get("limit"), "LIMIT"),
        offset=_number(args.get("offset"), "OFFSET") or 0,
        explain=explain,
    )


def _check_source(source: Any, table: str) -> str:
    exp = expressions()
    if source is None:
        raise InvalidQuery(f"sql: FROM is missing; write FROM {table}")
    inner = source.this
    if not isinstance(inner, exp.Table):
        raise InvalidQuery("sql: a subquery in FROM is not answered; write one SELECT over the table itself")
    if inner.name.lower() != table.lower():
        raise InvalidQuery(f"sql: there is no table {(inner.name or inner.sql())[:60]!r}; write FROM {table}")
    if inner.args.get("alias") and inner.args["alias"].args.get("columns"):
        raise InvalidQuery("sql: columns of a table are not renamed in FROM; write AS in SELECT")
    for part, given in inner.args.items():
        if given and part not in ("this", "alias", "db"):
            name = {"sample": "TABLESAMPLE", "joins": "JOIN"}.get(part, part.upper())
            raise InvalidQuery(f"sql: {name} is not answered; write FROM {table}")
    return inner.alias or table


def _output(item: Any, reader: Reader) -> Output:
    exp = expressions()
    name = item.alias if isinstance(item, exp.Alias) else ""
    inner = item.this if isinstance(item, exp.Alias) else item
    if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        raise InvalidQuery("sql: SELECT * would show rows; write aggregates such as COUNT(*)")
    if isinstance(inner, exp.Column):
        column = reader.column(inner)
        return Output(name or column.name, column)
    aggregate = _aggregate(inner, reader)
    return Output(name or aggregate.text, aggregate)


def _functions() -> dict[Any, str]:
    exp = expressions()
    return {
        exp.Count: "count", exp.CountIf: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Variance: "var_samp",
        exp.VariancePop: "var_pop", exp.Stddev: "stddev_samp", exp.StddevSamp: "stddev_samp",
        exp.StddevPop: "stddev_pop",
    }  # fmt: skip


_INSTEAD = {
    "window": "OVER (a window function): write GROUP BY",
    "max": "MAX: extremes cannot be estimated; write AVG and STDDEV",
    "min": "MIN: extremes cannot be estimated; write AVG and STDDEV",
    "subquery": "a subquery: write one SELECT",
    "div": "arithmetic with aggregates: write AVG for SUM/COUNT, or divide the answers",
}


_NAMES = (
    "count",
    "sum",
    "avg",
    "variance",
    "var_pop",
    "var_samp",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "count_if",
    "median",
)


def _not_aggregate(item: Any) -> str:
    """What is wrong with an item of SELECT, and the function that was probably meant."""
    name = name_of(item)
    near = get_close_matches(name.lower(), _NAMES, 1, 0.6)
    hint = f"did you mean {near[0].upper()}?" if near else "write COUNT, SUM, AVG, VARIANCE or STDDEV of columns"
    return f"{name}: {hint}"


def _written(item: Any) -> str:
    """An expression as text; MEDIAN stays what it is called, which PostgreSQL would spell as PERCENTILE_CONT."""
    exp = expressions()

    def kept(node: Any) -> Any:
        return exp.Anonymous(this="MEDIAN", expressions=[node.this]) if isinstance(node, exp.Median) else node

    return item.transform(kept).sql(dialect="postgres")


def _aggregate(item: Any, reader: Reader) -> Aggregate:
    exp = expressions()
    text = _written(item)
    condition: Any = Truth(True)
    if isinstance(item, exp.Filter):
        condition, item = reader.condition(item.expression.this), item.this
    if isinstance(item, (exp.WithinGroup, exp.Median)):
        return _quantile(item, condition, text, reader)
    function = _functions().get(item.__class__)
    if function is None:
        raise InvalidQuery(f"sql: SELECT {_INSTEAD.get(item.key) or _not_aggregate(item)}")
    only(item, "this", "big_int")
    if isinstance(item, exp.CountIf):
        return Aggregate(function, None, _both(condition, reader.condition(item.this)), text)
    inner = item.this
    if isinstance(inner, exp.Distinct):
        raise InvalidQuery("sql: DISTINCT inside an aggregate is not answered; write GROUP BY and COUNT(*)")
    if isinstance(inner, exp.Star):
        return Aggregate(function, None, condition, text)
    if isinstance(inner, exp.Case):
        chosen, inner = _case(inner, reader, function)
        condition = _both(condition, chosen)
    argument = reader.expression(inner)
    constant = function == "count" and not isinstance(argument, Column)
    return Aggregate(function, None if constant else argument, condition, text)


def _quantile(item: Any, condition: Any, text: str, reader: Reader) -> Aggregate:
    """MEDIAN of a column, or PERCENTILE_CONT or PERCENTILE_DISC (share) WITHIN GROUP (ORDER BY column)."""
    exp = expressions()
    if isinstance(item, exp.Median):
        return Aggregate("quantile", reader.column_of(item.this, "MEDIAN"), condition, text)
    kinds, orders = (exp.PercentileCont, exp.PercentileDisc), item.expression.expressions
    if not isinstance(item.this, kinds) or len(orders) != 1:
        raise InvalidQuery("sql: WITHIN GROUP is for PERCENTILE_CONT and PERCENTILE_DISC of one column")
    share = reader.expression(item.this.this)
    number = share.value if isinstance(share, Constant) else None
    if isinstance(number, (bool, str)) or number is None or not 0 <= number <= 1:
        raise InvalidQuery("sql: PERCENTILE_CONT and PERCENTILE_DISC take a share from 0 to 1, such as 0.5")
    column = reader.column_of(orders[0].this, "WITHIN GROUP (ORDER BY ...)")
    return Aggregate("quantile", column, condition, text, float(1 - number if orders[0].args.get("desc") else number))


def _both(a: Any, b: Any) -> Any:
    return b if a == Truth(True) else Both((a, b))


def _case(case: Any, reader: Reader, function: str) -> tuple[Any, Any]:
    """CASE WHEN condition THEN value [ELSE 0 or NULL] END: the condition and the value."""
    exp = expressions()
    args: dict[str, Any] = case.args
    branches: list[Any] = list(args.get("ifs") or ())
    other: Any = args.get("default")
    zero = isinstance(other, exp.Literal) and other.this == "0" and function == "sum"
    plain = other is None or isinstance(other, exp.Null) or zero
    if len(branches) != 1 or case.this is not None or not plain:
        raise InvalidQuery(
            "sql: CASE must be CASE WHEN condition THEN value END (ELSE 0 inside SUM); or write FILTER (WHERE ...)"
        )
    return reader.condition(branches[0].this), branches[0].args["true"]


def _groups(group: Any, outputs: tuple[Output, ...], reader: Reader) -> tuple[Column, ...]:
    exp = expressions()
    if group is None:
        return ()
    if any(given for part, given in group.args.items() if part != "expressions"):
        raise InvalidQuery("sql: GROUP BY takes columns; write ROLLUP, CUBE and sets as several queries")
    found: list[Column] = []
    for item in group.expressions:
        if isinstance(item, exp.Literal):
            column = outputs[_place(item, outputs, "GROUP BY")].item
        else:
            column = _named(item, outputs) or reader.column(item) if isinstance(item, exp.Column) else None
        if not isinstance(column, Column):
            raise InvalidQuery(f"sql: GROUP BY takes columns, not {item.key.upper()}")
        found.append(column)
    return tuple(dict.fromkeys(found))


def _named(item: Any, outputs: tuple[Output, ...]) -> Column | None:
    """The column that SELECT gave this name."""
    found = (output.item for output in outputs if output.name.lower() == item.name.lower())
    return next((column for column in found if isinstance(column, Column)), None)


def _check_outputs(outputs: tuple[Output, ...], groups: tuple[Column, ...]) -> None:
    for output in outputs:
        if isinstance(output.item, Column) and output.item not in groups:
            raise InvalidQuery(f"sql: {output.item.name} is neither in GROUP BY nor inside an aggregate")
    if not any(isinstance(output.item, Aggregate) for output in outputs):
        raise InvalidQuery("sql: the query has no aggregate; write one such as COUNT(*)")


def _place(item: Any, outputs: tuple[Output, ...], where: str) -> int:
    place = int(item.this) if not item.is_string and _is_digits(str(item.this)) and len(item.this) < 9 else 0
    if not 1 <= place <= len(outputs):
        raise InvalidQuery(f"sql: {where} {str(item.this)[:20]} names no column of the answer, 1 to {len(outputs)}")
    return place - 1


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _orders(order: Any, outputs: tuple[Output, ...], reader: Reader) -> tuple[Order, ...]:
    exp = expressions()
    if order is None:
        return ()
    texts: list[Callable[[Output], str]] = [
        lambda output: output.name.lower(),
        lambda output: output.item.name.lower() if isinstance(output.item, Column) else output.item.text.lower(),
    ]
    found: list[Order] = []
    for item in order.expressions:
        inner, descending = item.this, bool(item.args.get("desc"))
        if isinstance(inner, exp.Literal):
            found.append(Order(_place(inner, outputs, "ORDER BY"), descending))
            continue
        text = (inner.name if isinstance(inner, exp.Column) else _written(inner)).lower()
        place = next((i for get in texts for i, output in enumerate(outputs) if get(output) == text), None)
        if place is None:
            raise InvalidQuery(f"sql: ORDER BY {text[:60]} is not in the answer; add it to SELECT")
        found.append(Order(place, descending))
    return tuple(found)


def _number(item: Any, name: str) -> int | None:
    if item is None:
        return None
    inner = item.expression
    text = getattr(inner, "this", None)
    if not isinstance(text, str) or not _is_digits(text) or len(text) > 9 or getattr(inner, "is_string", True):
        raise InvalidQuery(f"sql: {name} must be a whole number")
    return int(text)
