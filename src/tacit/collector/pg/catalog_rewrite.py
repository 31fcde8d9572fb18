"""Catalogue queries from PostgreSQL's SQL to SQLite's: sqlglot's tree, with what differs put into functions.

A query that has something else raises Unknown, and is then answered with no rows.
"""

from collections.abc import Callable
from typing import Any, cast

from sqlglot import exp
from sqlglot.expressions.core import Expression

from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_data import NUMBERS, shapes
from tacit.collector.pg.catalog_functions import STANDING, type_oid

SYSTEM_SCHEMAS = {"pg_catalog", "information_schema"}
_INFORMATION = "information_schema"
_KEYWORDS = {"user", "current_role", "current_catalog", "session_user", "current_user", "current_schema"}
_OPERATORS = {
    "~": "pg_regex", "~*": "pg_iregex", "~~": "pg_like", "~~*": "pg_ilike", "!~": "!pg_regex", "!~*": "!pg_iregex",
    "!~~": "!pg_like", "!~~*": "!pg_ilike",
}  # fmt: skip
_AFFINITIES = {
    pg.BOOL: "bool", pg.INT2: "INTEGER", pg.INT4: "INTEGER", pg.INT8: "INTEGER", pg.OID: "INTEGER", pg.FLOAT4: "REAL",
    pg.FLOAT8: "REAL", pg.NUMERIC: "REAL", pg.TEXT: "TEXT", pg.VARCHAR: "TEXT", pg.NAME: "TEXT", pg.BPCHAR: "TEXT",
    pg.CHAR: "TEXT",
}  # fmt: skip


class Unknown(Exception):
    """Something that SQLite is not asked."""


def is_system(table: exp.Table) -> bool:
    """Whether a table of a query belongs to the catalogue."""
    if not isinstance(table.this, exp.Identifier):
        return True
    schema, name = table.db.lower(), table.name.lower()
    return schema in SYSTEM_SCHEMAS or (not schema and name.startswith("pg_"))


def tables_in(tree: Expression) -> list[exp.Table]:
    """All tables that a query names, without those that it defines itself."""
    own = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    return [table for table in tree.find_all(exp.Table) if table.db or table.name.lower() not in own]


def stored_name(table: exp.Table) -> str:
    """What a table of the catalogue is called in SQLite."""
    schema, name = table.db.lower(), table.name.lower()
    full = f"{_INFORMATION}.{name}" if schema == _INFORMATION else name
    if full not in shapes():
        raise Unknown(f"there is no {full[:80]}")
    return full


def rewritten(tree: Expression) -> Expression:
    """The tree that SQLite understands; the one that is given is left alone."""
    found = tree.copy()
    numbers: dict[str, int] = {}
    for table in tables_in(found):
        if isinstance(table.this, exp.Identifier):
            numbers[(table.alias or table.name).lower()] = NUMBERS.get(table.name.lower(), 0)
            _rename(table)
    for column in list(found.find_all(exp.Column)):
        # That of a subquery is a column like any other.
        if column.name.lower() == "tableoid" and (not column.table or column.table.lower() in numbers):
            column.replace(exp.Literal.number(numbers.get(column.table.lower(), 0)))
    return _walk(found)


def _walk(node: Expression) -> Expression:
    """Children first, so that what replaces a node is made of what SQLite understands."""
    for child in list(node.iter_expressions()):
        changed = _walk(child)
        if changed is not child:
            child.replace(changed)
    handler = _HANDLERS.get(type(node).__name__)
    return node if handler is None else handler(node)


def _rename(table: exp.Table) -> None:
    full, alias = stored_name(table), table.alias or table.name
    table.set("this", exp.to_identifier(full, quoted=True))
    table.set("db", None)
    table.set("catalog", None)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(str(alias))))


def _table(node: Expression) -> Expression:
    """A function in FROM: the items of an array, or numbers in a row, by way of JSON."""
    inner = node.this
    if isinstance(inner, exp.Identifier):
        return node
    kind = type(inner).__name__
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "pg_get_keywords":
        return exp.Table(this=exp.to_identifier("pg_get_keywords"), alias=node.args.get("alias"))
    if kind not in ("Explode", "ExplodingGenerateSeries"):
        name = node.alias or getattr(inner, "name", "") or "value"
        return exp.select(exp.alias_(inner, name)).subquery(name)
    series = kind != "Explode"
    items = _call("series_json", inner.args["start"], inner.args["end"]) if series else _call("array_json", inner.this)
    return _items(items, node)


def _unnest(node: Expression) -> Expression:
    if len(node.expressions) != 1 or node.args.get("offset"):
        raise Unknown("WITH ORDINALITY")
    return _items(_call("array_json", node.expressions[0]), node)


def _values(node: Expression) -> Expression:
    """VALUES in FROM with names of its columns, as psql's \\gdesc sends them; SQLite knows no such names."""
    alias = node.args.get("alias")
    if alias is None or not all(isinstance(row, exp.Tuple) for row in node.expressions):
        return node
    rows = [row.expressions for row in node.expressions]
    names = [column.name for column in alias.columns]
    names += [f"column{i + 1}" for i in range(len(names), max(map(len, rows)))]
    selects = [exp.select(*(exp.alias_(v, n, quoted=True) for v, n in zip(row, names, strict=False))) for row in rows]
    union = selects[0]
    for select in selects[1:]:
        union = exp.Union(this=union, expression=select, distinct=False)
    name = exp.Identifier(this=alias.name, quoted=True)
    return exp.Subquery(this=union, alias=exp.TableAlias(this=name))


def _items(items: Expression, node: Expression) -> Expression:
    alias = node.args.get("alias")
    name = alias.name if alias is not None else "unnest"
    column = alias.columns[0].name if alias is not None and alias.columns else name
    source = exp.Table(this=_call("json_each", items))
    return exp.select(exp.alias_(exp.column("value"), column)).from_(source).subquery(name)


def _call(name: str, *arguments: Any) -> Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _column(node: Expression) -> Expression:
    if node.args.get("db"):
        node.set("db", None)
        node.set("catalog", None)
    if not node.text("table") and node.name.lower() in _KEYWORDS and not node.this.args.get("quoted"):
        return _call(node.name.lower())
    return node


def _dot(node: Expression) -> Expression:
    if isinstance(node.this, exp.Identifier) and node.this.name.lower() in SYSTEM_SCHEMAS:
        return node.expression
    raise Unknown("a field of a row")


def type_of_cast(node: Expression) -> tuple[str, int]:
    """The name and number of the type that a cast names."""
    word = node.args["to"].sql(dialect="postgres").lower().removeprefix("pg_catalog.").split("(")[0]
    return word.strip('"'), type_oid(word) or 0


_REGISTERED = {
    "regclass": ("class_oid", "class_text"), "regtype": ("type_oid", "format_type"),
    "regnamespace": ("namespace_oid", "namespace_text"), "regproc": ("proc_oid", "proc_text"),
}  # fmt: skip
"""Types of names that are numbers: to the number, and back to the name."""
_TO_TEXT = dict(_REGISTERED.values()) | {"to_regtype": "format_type", "to_regclass": "class_text"}


def _cast(node: Expression) -> Expression:
    word, oid = type_of_cast(node)
    inner = node.this.unnest()
    if word in _REGISTERED:
        to_oid, to_text = _REGISTERED[word]
        found = _call(to_oid, inner)
        # A name is shown where the cast is a column of the answer, and compared as a number everywhere else.
        return _call(to_text, found) if isinstance(node.parent, (exp.Select, exp.Alias)) else found
    affinity = _AFFINITIES.get(oid)
    if affinity == "TEXT" and isinstance(inner, exp.Anonymous) and inner.name in _TO_TEXT:
        return _call(_TO_TEXT[inner.name], inner)
    if affinity is None:
        return node.this
    if affinity == "bool":
        return _call("to_bool", node.this)
    return exp.Cast(this=node.this, to=exp.DataType.build(affinity, dialect="sqlite"))


def _comparison(node: Expression) -> Expression:
    """`= ANY` and `<> ALL` of an array or a subquery; sqlglot takes ALL for a function."""
    right = node.expression
    word = right.name.upper() if isinstance(right, exp.Anonymous) else type(right).__name__.upper()
    if word not in (("ANY", "SOME") if isinstance(node, exp.EQ) else ("ALL",)):
        return node
    items = (right.expressions[0] if right.expressions else right.this).unnest()
    if isinstance(items, exp.Query):
        found = exp.In(this=node.this, query=items)
    else:
        found = _call("in_array", node.this, items)
    return exp.Not(this=found) if isinstance(node, exp.NEQ) else found


def _array(node: Expression) -> Expression:
    items = node.expressions
    if len(items) != 1 or not isinstance(items[0].unnest(), exp.Select):
        return _call("make_array", *items)
    inner = items[0].unnest()
    if len(inner.expressions) != 1:
        raise Unknown("an array of rows")
    inner.set("expressions", [exp.alias_(inner.expressions[0].unalias(), "item")])
    collected = exp.select(_call("array_agg_of", exp.column("item"))).from_(inner.subquery("items"))
    return _call("same", collected.subquery())


def _operator(node: Expression) -> Expression:
    sign = str(node.args["operator"]).rpartition(".")[2]
    if sign in ("=", "<>"):
        return (exp.EQ if sign == "=" else exp.NEQ)(this=node.this, expression=node.expression)
    name = _OPERATORS.get(sign)
    if name is None:
        raise Unknown(f"operator {sign}")
    found = _call(name.removeprefix("!"), node.this, node.expression)
    return exp.Not(this=found) if name.startswith("!") else found


def _like(node: Expression) -> Expression:
    found = _call("pg_ilike" if isinstance(node, exp.ILike) else "pg_like", node.this, node.expression)
    return exp.Not(this=found) if node.args.get("negate") else found


def _regex(node: Expression) -> Expression:
    name = "pg_iregex" if isinstance(node, exp.RegexpILike) else "pg_regex"
    return _call(name, node.this, node.expression)


def _inside(node: Expression) -> Expression:
    return node.this


def _array_agg(node: Expression) -> Expression:
    return _call("array_agg_of", node.this)


def _quoted(node: Expression) -> Expression:
    return exp.Literal.string(node.this)


def _missing(node: Expression) -> Expression:
    del node
    return exp.Null()


def _escape(node: Expression) -> Expression:
    call = node.this.find(exp.Anonymous)
    if call is None:
        raise Unknown("ESCAPE")
    call.append("expressions", node.expression)
    return node.this


_NAMED = {
    "CurrentDatabase": "current_database", "CurrentSchema": "current_schema", "CurrentSchemas": "current_schemas",
    "CurrentUser": "current_user", "SessionUser": "session_user", "CurrentVersion": "version",
    "CurrentCatalog": "current_database", "CurrentRole": "current_role", "ArrayToString": "array_to_string",
    "ArraySize": "array_length", "SplitPart": "split_part", "ArrayLength": "array_length", "Concat": "concat",
    "StringToArray": "string_to_array", "CurrentTimestamp": "now",
}  # fmt: skip


def _named(node: Expression) -> Expression:
    given: list[Any] = []
    for value in node.args.values():
        given += cast("list[Any]", value) if isinstance(value, list) else [value]
    return _call(_NAMED[type(node).__name__], *(item for item in given if isinstance(item, Expression)))


def _bracket(node: Expression) -> Expression:
    if len(node.expressions) != 1:
        raise Unknown("a slice of an array")
    place = node.expressions[0]
    # sqlglot counts from zero where a number is written, and leaves everything else as it was.
    counted = place if isinstance(place, exp.Literal) else exp.Sub(this=place, expression=exp.Literal.number(1))
    return _call("array_item", node.this, counted)


def _lateral(node: Expression) -> Expression:
    raise Unknown(type(node).__name__)


_HANDLERS: dict[str, Callable[[Expression], Expression]] = dict.fromkeys(_NAMED, _named) | {
    "Column": _column, "Dot": _dot, "Cast": _cast, "TryCast": _cast, "EQ": _comparison, "NEQ": _comparison,
    "Array": _array, "Operator": _operator, "Escape": _escape, "Bracket": _bracket,
    "Lateral": _lateral, "Unnest": _unnest, "Values": _values, "Table": _table,
    "Collate": _inside, "ArrayAgg": _array_agg, "Like": _like, "ILike": _like, "RegexpLike": _regex,
    "RegexpILike": _regex, "ByteString": _quoted, "Parameter": _missing, "Placeholder": _missing,
}  # fmt: skip

_TRUTHS = (
    "And", "Or", "Not", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "Is", "In", "Exists", "Boolean", "Like", "ILike",
    "RegexpLike", "RegexpILike", "Operator", "Between", "Escape", "NullSafeEQ", "NullSafeNEQ",
)  # fmt: skip


def type_of(node: Expression, functions: "dict[str, tuple[Any, int]]") -> int:
    """The type of an expression of a query, as far as its form tells; 0 if it does not."""
    kind = type(node).__name__
    if isinstance(node, (exp.Alias, exp.Paren, exp.Collate)):
        return type_of(node.this, functions)
    if isinstance(node, exp.Dot):
        return type_of(node.expression, functions)
    if isinstance(node, exp.Cast):
        return type_of_cast(node)[1]
    if kind in _TRUTHS:
        return pg.BOOL
    if isinstance(node, exp.Literal):
        return pg.TEXT if node.is_string else pg.INT4 if str(node.this).isdigit() and len(node.this) < 10 else 0
    if isinstance(node, (exp.Case, exp.Coalesce)):
        branches = [*(item.args["true"] for item in node.args.get("ifs") or ()), *node.expressions]
        first = [node.this] if isinstance(node, exp.Coalesce) else []
        return next((oid for item in (*first, *branches) if (oid := type_of(item, functions))), 0)
    name = _NAMED.get(kind) or (node.name.lower() if isinstance(node, exp.Anonymous) else "")
    named = name or (node.name.lower() if isinstance(node, exp.Column) and not node.table else "")
    found = functions.get(named) or STANDING.get(named)
    return found[1] if found is not None and (name or named in _KEYWORDS) else pg.INT8 if kind == "Count" else 0
