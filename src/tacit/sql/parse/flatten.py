"""Subqueries in FROM, written out: one SELECT over the table itself.

BI tools wrap what they ask. Two shapes are the same as a SELECT without a subquery, and become one:

    SELECT os, COUNT(*) FROM (SELECT * FROM t WHERE hours > 1) AS v GROUP BY os       the inner one is plain: rows that
                                                                                      are filtered, renamed, computed
    SELECT * FROM (SELECT os, COUNT(*) AS n FROM t GROUP BY os) AS v ORDER BY n       the outer one only shows: columns
                                                                                      that are picked, sorted, cut

Names of the subquery's columns are replaced by what they stand for, from the inside out. All else is refused.
"""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.sql.parse.parsing import label_of, place_of, refusal
from tacit.sql.schema.schema import nearest_column

MAX_NESTED = 20
_PLAIN_PARTS = frozenset({"expressions", "from_", "where", "order", "kind", "hint"})
_SHOWN_PARTS = frozenset({"expressions", "from_", "where", "order", "limit", "offset"})
_REFUSED = (
    "a subquery in FROM is answered where it only filters, renames or computes columns of rows, or where the outer "
    "SELECT only picks, sorts and cuts what the inner one answers; write one SELECT over the table itself"
)
Names = dict[str, Any]
"""Columns of a subquery, each with the expression that it stands for."""


def flattened(select: Any, columns: Sequence[str], depth: int = 0) -> Any:
    """The same SELECT without subqueries in FROM; refused where there is no such SELECT."""
    if depth > MAX_NESTED:
        raise refusal(f"subqueries in FROM are nested too deeply, must be at most {MAX_NESTED} deep", code="54001")
    source = select.args.get("from_")
    subquery = None if source is None else source.this
    if not isinstance(subquery, exp.Subquery):
        return select
    if not isinstance(subquery.this, exp.Select) or select.args.get("joins") or select.args.get("with_"):
        raise refusal(_REFUSED, subquery)
    if any(value for part, value in subquery.args.items() if part not in ("this", "alias")):
        raise refusal(_REFUSED, subquery)
    inner = flattened(subquery.this, columns, depth + 1)
    if _is_plain(inner):
        return _merged(select, inner, _names(subquery, inner, columns))
    if inner.args.get("from_") and _only_shows(select):
        return _shown(select, inner, _names(subquery, inner, ()))
    raise refusal(_REFUSED, subquery)


def without_ctes(select: Any) -> Any:
    """The same SELECT with every WITH query written where FROM names it."""
    clause = select.args.get("with_")
    if clause is None:
        return select
    if clause.args.get("recursive"):
        raise refusal("WITH RECURSIVE: write one SELECT", clause)
    result = select.copy()
    queries = {cte.alias.lower(): cte for cte in clause.expressions}
    result.set("with_", None)
    for _ in range(MAX_NESTED):
        tables = [t for t in result.find_all(exp.Table) if not t.db and t.name.lower() in queries]
        if not tables:
            return result
        for table in tables:
            cte = queries[table.name.lower()]
            names = cte.args["alias"].args.get("columns")
            name = exp.Identifier(this=table.alias or table.name, quoted=True)
            alias = exp.TableAlias(this=name, columns=names)
            table.replace(exp.Subquery(this=cte.this.copy(), alias=alias))
    raise refusal(f"queries of WITH are nested too deeply, must be at most {MAX_NESTED} deep", code="54001")


def _parts(select: Any) -> set[str]:
    return {part for part, value in select.args.items() if value}


def _has_aggregates(items: Sequence[Any]) -> bool:
    return any(item.find(exp.AggFunc, exp.Window, exp.Subquery) is not None for item in items)


def _is_plain(select: Any) -> bool:
    """Whether a SELECT returns rows of the table, filtered and with other columns."""
    return bool(select.args.get("from_")) and _parts(select) <= _PLAIN_PARTS and not _has_aggregates(select.expressions)


def _only_shows(select: Any) -> bool:
    return _parts(select) <= _SHOWN_PARTS and not _has_aggregates(select.expressions)


def _names(subquery: Any, inner: Any, columns: Sequence[str]) -> Names:
    """The columns of a subquery; `*` stands for all columns of the table, where these are known."""
    found: list[tuple[str, Any]] = []
    for item in inner.expressions:
        if item.is_star:
            if not columns:
                raise refusal(_REFUSED, subquery)
            found += [(name, exp.column(name, quoted=True)) for name in columns]
        else:
            found.append((output_name(item), item.unalias()))
    alias = subquery.args.get("alias")
    renamed = [] if alias is None else [identifier.name for identifier in alias.args.get("columns") or ()]
    if len(renamed) > len(found):
        raise refusal(
            f"the subquery has {len(found)} columns, and {len(renamed)} names are given to them", alias, "42P10"
        )
    pairs = [(renamed[i] if i < len(renamed) else name, item) for i, (name, item) in enumerate(found)]
    return {name: item for name, item in pairs if name}


def output_name(item: Any) -> str:
    """What PostgreSQL calls a column of SELECT: its alias, the column, or the function; empty if it has no name."""
    if isinstance(item, (exp.Alias, exp.Column)):
        return str(item.alias_or_name)
    if isinstance(item, (exp.Cast, exp.Paren)):
        return output_name(item.this)
    called = isinstance(item, (exp.Func, exp.Filter, exp.WithinGroup)) and not isinstance(item, exp.Binary)
    return label_of(item) if called else ""


def _merged(outer: Any, inner: Any, names: Names) -> Any:
    """The outer SELECT over the rows of the inner one."""
    result = _replaced(outer, names)
    inner_where, outer_where = inner.args.get("where"), result.args.get("where")
    conditions = [where.this.copy() for where in (inner_where, outer_where) if where is not None]
    if conditions:
        both = exp.and_(*conditions) if len(conditions) > 1 else conditions[0]
        result.set("where", exp.Where(this=both))
    result.set("from_", inner.args["from_"].copy())
    return result


def _shown(outer: Any, inner: Any, names: Names) -> Any:
    """The inner SELECT with the columns, the order and the limit of the outer one."""
    if inner.args.get("limit") or inner.args.get("offset"):
        if _parts(outer) & {"where", "order", "limit", "offset"}:
            raise refusal("LIMIT inside a subquery is answered where the outer SELECT only picks columns", inner)
    shown = _replaced(outer, names)
    result = inner.copy()
    result.set("group", _by_expressions(inner.args.get("group"), inner.expressions))
    stars = [item for item in shown.expressions if item.is_star]
    if stars and len(shown.expressions) > 1:
        raise refusal("* beside other columns is not answered; name the columns", stars[0])
    every = [exp.alias_(item.copy(), name, quoted=True) for name, item in names.items()]
    result.set("expressions", every if stars else shown.expressions)
    order = shown.args.get("order") or _by_expressions(inner.args.get("order"), inner.expressions)
    result.set("order", order)
    for part in ("limit", "offset"):
        result.set(part, shown.args.get(part) or inner.args.get(part))
    if shown.args.get("where"):
        having = inner.args.get("having")
        both = [shown.args["where"].this, *([] if having is None else [having.this.copy()])]
        result.set("having", exp.Having(this=exp.and_(*both) if len(both) > 1 else both[0]))
    return result


def _by_expressions(part: Any, outputs: Sequence[Any]) -> Any:
    """GROUP BY or ORDER BY with expressions in place of numbers and names of the outputs."""
    if part is None:
        return None
    by_name = {item.alias: item.this for item in outputs if isinstance(item, exp.Alias)}

    def spelt(node: Any) -> Any:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) - 1 if node.name.isdigit() and len(node.name) < 9 else -1
            return outputs[place].unalias().copy() if 0 <= place < len(outputs) else node
        if isinstance(node, exp.Column) and not node.table and node.name in by_name:
            return by_name[node.name].copy()
        return node

    result = part.copy()
    for item in result.expressions:
        if isinstance(item, exp.Ordered):  # Which has the direction; what is ordered by is inside.
            item.set("this", spelt(item.this))
    others = [item if isinstance(item, exp.Ordered) else spelt(item) for item in result.expressions]
    result.set("expressions", others)
    return result


def _replaced(outer: Any, names: Names) -> Any:
    """The outer SELECT with the columns of its subquery replaced by their expressions."""
    result = outer.copy()
    alias = outer.args["from_"].this.alias
    outputs = {item.alias for item in result.expressions if isinstance(item, exp.Alias)}
    result.set("expressions", [_named(item) for item in result.expressions])
    for part, value in list(result.args.items()):
        if part == "from_" or not value:
            continue
        # PostgreSQL finds names of ORDER BY among the outputs first, those of GROUP BY among the columns first.
        kept = outputs if part == "order" else outputs - set(names) if part == "group" else set[str]()
        for item in result.expressions if part == "expressions" else [value]:
            _replace_columns(item, names, alias, kept)
    return result


def _named(item: Any) -> Any:
    """A column keeps its name, whatever it is replaced by."""
    plain = isinstance(item, exp.Column) and not item.is_star
    return exp.alias_(item.copy(), item.name, quoted=True) if plain else item


def _replace_columns(item: Any, names: Names, alias: str, outputs: set[str]) -> None:
    """Replace the columns below a node, but for names of outputs."""
    for column in list(item.find_all(exp.Column)):
        if column.is_star:
            continue
        if column.table and column.table.lower() != alias.lower():
            raise refusal(
                f"there is no table {column.table[:60]!r}; write {alias or 'the column alone'}", column, "42P01"
            )
        if not column.table and column.name in outputs:
            continue
        try:
            meant = names[nearest_column(column.name, names)]
        except InvalidQuery as error:
            raise error.at(place_of(column)) from None
        column.replace(meant.copy() if isinstance(meant, (exp.Column, exp.Func)) else exp.Paren(this=meant.copy()))
