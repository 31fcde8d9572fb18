"""Answers to queries as the API tells them: JSON and CSV. The HTTP routes and the command line show the same."""

from dataclasses import asdict
from typing import Any

import numpy as np

from tacit.collector.collections.access import Bearer
from tacit.collector.safe_csv import csv_text
from tacit.collector.tables.info import TableInfo
from tacit.collector.tables.tables import Tables
from tacit.sql.engine.aggregate import ERROR_ENDS, AggregateCell, flat_row
from tacit.sql.engine.plan import QueryPlan
from tacit.sql.engine.run import QueryAnswer
from tacit.sql.parse.select import read_query
from tacit.sql.parse.syntax import Aggregate, ColumnRef, Item, Select, type_of

CELL = ("estimate", "standard_error", "low", "high", "n", "status")
_CSV_ENDS = ("", *ERROR_ENDS, "_status")
"""How the columns of a cell in a CSV file are named after the aggregate."""


def run_query(
    tables: Tables, bearer: Bearer, collection: str, sql: str, level: float
) -> tuple[TableInfo, Select, QueryAnswer | QueryPlan]:
    """The answer to a SELECT over the table of a collection, or the plan of an EXPLAIN; the text is parsed here."""
    info = tables.find(bearer, collection)
    parsed = read_query(sql)
    info = info.called(parsed.table)
    select = tables.select(info, parsed)
    return info, select, tables.explain(info, select) if select.explain else tables.query(info, select, level)


def query_json(
    info: TableInfo, select: Select, found: QueryAnswer | QueryPlan, level: float, seconds: float
) -> dict[str, Any]:
    """An answer or a plan as the API says it."""
    about: dict[str, Any] = {"table": info.name, "n": info.n, "seconds": round(seconds, 6)}
    if isinstance(found, QueryPlan):
        return {"plan": [{name: _plain(item) for name, item in row.items()} for row in found.to_rows()]} | about
    outputs = zip(found.columns, select.outputs, strict=True)
    columns = [{"name": name} | _about(info, output.item) for name, output in outputs]
    rows = [[_plain(item) for item in row] for row in found.rows]
    return {"columns": columns, "rows": rows, "level": level} | about


def _about(info: TableInfo, item: Item) -> dict[str, Any]:
    """What a column of an answer is, and whether the values of a group have an order, in which they come."""
    if isinstance(item, Aggregate):
        return {"kind": "aggregate"}
    if not isinstance(item, ColumnRef):
        kinds = {column.name: column.type for column in info.columns}
        return {"kind": "group", "ordered": type_of(item, kinds) not in ("text", "boolean")}
    return {"kind": "group", "ordered": any(one.name == item.name and one.is_in_order for one in info.columns)}


def _plain(item: Any) -> Any:
    if isinstance(item, AggregateCell):
        better = {"better": item.better.to_row()} if item.better else {}
        return {name: _plain(getattr(item, name)) for name in CELL} | better
    found: Any = item
    return found.item() if isinstance(item, np.generic) else found


def query_csv(select: Select, found: QueryAnswer | QueryPlan) -> str:
    """The same as CSV: an aggregate is followed by its standard error, the ends of its interval and its status."""
    if isinstance(found, QueryPlan):
        rows = found.to_rows()
        return csv_text([list(rows[0]) if rows else [], *(list(row.values()) for row in rows)])
    header: list[str] = []
    for name, output in zip(found.columns, select.outputs, strict=True):
        header += [name + end for end in _CSV_ENDS] if isinstance(output.item, Aggregate) else [name]
    return csv_text([header, *([item for cell in row for item in _flat(cell)] for row in found.rows)])


def _flat(item: Any) -> list[Any]:
    return [*flat_row([item], errors=True), item.status] if isinstance(item, AggregateCell) else [_plain(item)]


def table_json(info: TableInfo) -> dict[str, Any]:
    """A table as the API lists it."""
    columns = [asdict(column) | {"labels": list(column.labels)} for column in info.columns]
    return asdict(info) | {"columns": columns}
