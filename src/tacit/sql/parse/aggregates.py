"""Aggregates of SQL, from sqlglot's tree to `syntax`, and HAVING, which compares them."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.sql.parse.conditions import ConditionReader, name_of, only
from tacit.sql.parse.functions import CALLED
from tacit.sql.parse.parsing import place_of, refusal
from tacit.sql.parse.syntax import (
    Aggregate,
    Both,
    Cast,
    CellRef,
    ColumnRef,
    Condition,
    Constant,
    Expression,
    Extreme,
    TruthLiteral,
)


def _functions() -> dict[Any, str]:
    return {
        exp.Count: "count", exp.CountIf: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Variance: "var_samp",
        exp.VariancePop: "var_pop", exp.Stddev: "stddev_samp", exp.StddevSamp: "stddev_samp",
        exp.StddevPop: "stddev_pop",
    }  # fmt: skip


_INSTEAD = {
    "window": "OVER (a window function): write GROUP BY",
    "max": "MAX inside an expression: write MAX of a public column alone",
    "min": "MIN inside an expression: write MIN of a public column alone",
    "subquery": "a subquery: write one SELECT",
    "div": "arithmetic with aggregates: write AVG for SUM/COUNT, or divide the answers",
} | dict.fromkeys(("add", "sub", "mul"), "arithmetic with aggregates: calculate with the answers")


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
    "min",
    "max",
)


def _not_aggregate(item: Any) -> str:
    """The error for an unsupported item of SELECT, which suggests the function that was probably meant."""
    name = name_of(item)
    near = get_close_matches(name.lower(), _NAMES, 1, 0.6)
    hint = f"did you mean {near[0].upper()}?" if near else "write COUNT, SUM, AVG, VARIANCE or STDDEV of columns"
    return f"{name}: {hint}"


def written(item: Any) -> str:
    """An expression as text; keeps MEDIAN, which sqlglot's PostgreSQL dialect would write as PERCENTILE_CONT."""

    def kept(node: Any) -> Any:
        return exp.Anonymous(this="MEDIAN", expressions=[node.this]) if isinstance(node, exp.Median) else node

    return item.transform(kept).sql(dialect="postgres")


def read_aggregate(item: Any, reader: ConditionReader) -> Aggregate:
    """COUNT, SUM and the like of an expression, with FILTER or CASE as a condition."""
    text, place = written(item), place_of(item)
    condition: Any = TruthLiteral(True)
    if isinstance(item, exp.Filter):
        condition, item = reader.condition(item.expression.this), item.this
    if isinstance(item, (exp.WithinGroup, exp.Median)):
        return _quantile(item, condition, text, reader)
    function = _functions().get(item.__class__)
    if function is None:
        code = "42883" if isinstance(item, exp.Anonymous) else "0A000"
        words = _INSTEAD.get(item.key) or _not_aggregate(item)
        raise InvalidQuery(f"sql: SELECT {words}", code=code, position=place_of(item))
    only(item, "this", "big_int")
    if isinstance(item, exp.CountIf):
        return Aggregate(function, None, _both(condition, reader.condition(item.this)), text, position=place)
    inner = item.this.unnest() if item.this is not None else item.this
    if isinstance(inner, exp.Distinct):
        raise InvalidQuery(
            "sql: DISTINCT inside an aggregate is not answered; write GROUP BY and COUNT(*)",
            code="0A000",
            position=place_of(item),
        )
    if isinstance(inner, exp.Star):
        return Aggregate(function, None, condition, text, position=place)
    if isinstance(inner, exp.Case):
        chosen, inner = _case(inner, reader, function)
        condition = _both(condition, chosen)
    argument = reader.expression(inner)
    constant = function == "count" and isinstance(argument, Constant)
    return Aggregate(function, None if constant else argument, condition, text, position=place)


def _quantile(item: Any, condition: Any, text: str, reader: ConditionReader) -> Aggregate:
    """MEDIAN of a column, or PERCENTILE_CONT or PERCENTILE_DISC (share) WITHIN GROUP (ORDER BY column)."""
    if isinstance(item, exp.Median):
        return Aggregate("quantile", reader.column_of(item.this, "MEDIAN"), condition, text, position=place_of(item))
    kinds, orders = (exp.PercentileCont, exp.PercentileDisc), item.expression.expressions
    if not isinstance(item.this, kinds) or len(orders) != 1:
        raise InvalidQuery(
            "sql: WITHIN GROUP is for PERCENTILE_CONT and PERCENTILE_DISC of one column",
            code="0A000",
            position=place_of(item),
        )
    share = reader.expression(item.this.this)
    number = share.value if isinstance(share, Constant) else None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise InvalidQuery(
            "sql: PERCENTILE_CONT and PERCENTILE_DISC take a share from 0 to 1, such as 0.5",
            code="22003",
            position=place_of(item.this.this),
        )
    column = reader.column_of(orders[0].this, "WITHIN GROUP (ORDER BY ...)")
    share_below = float(1 - number if orders[0].args.get("desc") else number)
    return Aggregate("quantile", column, condition, text, share_below, place_of(item))


def _both(a: Any, b: Any) -> Any:
    return b if a == TruthLiteral(True) else Both((a, b))


def _case(case: Any, reader: ConditionReader, function: str) -> tuple[Any, Any]:
    """CASE WHEN condition THEN value [ELSE 0 or NULL] END: the condition and the value."""
    args: dict[str, Any] = case.args
    branches: list[Any] = list(args.get("ifs") or ())
    other: Any = args.get("default")
    zero = isinstance(other, exp.Literal) and other.this == "0" and function == "sum"
    plain = other is None or isinstance(other, exp.Null) or zero
    if len(branches) != 1 or case.this is not None or not plain:
        raise InvalidQuery(
            "sql: CASE must be CASE WHEN condition THEN value END (ELSE 0 inside SUM); or write FILTER (WHERE ...)",
            code="0A000",
            position=place_of(case),
        )
    return reader.condition(branches[0].this), branches[0].args["true"]


def is_unknown(item: Any) -> bool:
    """Whether it is a function that nobody knows, perhaps a misspelt aggregate."""
    return isinstance(item, exp.Anonymous) and str(item.this).lower() not in CALLED


def is_extreme(item: Any) -> bool:
    """Whether an item of SELECT is MIN or MAX, perhaps with FILTER."""
    return isinstance(item.this if isinstance(item, exp.Filter) else item, (exp.Min, exp.Max))


def read_extreme(item: Any, reader: ConditionReader, kind: str) -> Extreme:
    """MIN or MAX of a public expression; `kind` is the type that it is cast to, if any."""
    text, place = written(item), place_of(item)
    condition: Condition = TruthLiteral(True)
    if isinstance(item, exp.Filter):
        condition, item = reader.condition(item.expression.this), item.this
    only(item, "this")
    argument = reader.expression(item.this)
    function = "min" if isinstance(item, exp.Min) else "max"
    return Extreme(function, Cast(argument, kind) if kind else argument, condition, text, place)


def has_aggregate(item: Any) -> bool:
    """Whether an expression is an aggregate, or holds one."""
    return item.find(exp.AggFunc, exp.Window, exp.Filter, exp.WithinGroup) is not None


def split_having(having: Any) -> tuple[list[Any], list[Any]]:
    """Conditions of HAVING without aggregates, which may as well stand in WHERE, and those with them."""
    if having is None:
        return [], []
    whole = having.this.unnest()
    items = list(whole.flatten()) if isinstance(whole, exp.And) else [whole]
    return [item for item in items if not has_aggregate(item)], [item for item in items if has_aggregate(item)]


class HavingReader(ConditionReader):
    """Reads the conditions of HAVING: aggregates of a group, compared with constants."""

    def __init__(self, reader: ConditionReader, shown: Sequence[Aggregate]) -> None:
        """The reader of WHERE, and the aggregates that SELECT shows."""
        super().__init__((), set())
        self._reader, self._shown = reader, list(shown)
        self.hidden: list[Aggregate] = []
        """Aggregates that SELECT does not show, which follow the others."""

    def column(self, item: Any) -> ColumnRef:
        """Refused: columns of groups are compared in conditions of their own."""
        raise refusal("HAVING compares aggregates with constants; put conditions on columns into WHERE", item)

    def _expression(self, item: Any) -> Expression:
        if isinstance(item, (exp.Cast, exp.Paren)) and has_aggregate(item):
            return self.expression(item.this)
        if is_extreme(item):
            raise refusal("HAVING with MIN or MAX is not answered; put the condition into WHERE", item)
        if not isinstance(item, (exp.AggFunc, exp.Filter, exp.WithinGroup)):
            return super()._expression(item)
        aggregate = read_aggregate(item, self._reader)
        every = [*self._shown, *self.hidden]
        if aggregate not in every:
            self.hidden.append(aggregate)
            every.append(aggregate)
        return CellRef(every.index(aggregate))
