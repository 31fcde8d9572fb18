"""SQL over HTTP: the tables that a token may read, answers as JSON or CSV, and plans."""

from collections.abc import Mapping
from dataclasses import asdict
from time import monotonic
from typing import Any

import numpy as np
from starlette.responses import Response
from starlette.routing import BaseRoute

from tacit.collector.access import READ, Bearer
from tacit.collector.downloads import disposition, file_name
from tacit.collector.http_api import Api, Call
from tacit.collector.http_common import json_response
from tacit.collector.problems import Problem
from tacit.collector.safe_csv import csv_text
from tacit.collector.service import Collector
from tacit.collector.tables import TableInfo, Tables
from tacit.core.level import check_level
from tacit.errors import InvalidSpec
from tacit.tasks.analytics.aggregate import ERROR_ENDS, Cell, flat_row
from tacit.tasks.analytics.plan import Plan
from tacit.tasks.analytics.run import Answer
from tacit.tasks.analytics.syntax import Aggregate, Column, Select

CELL = ("estimate", "standard_error", "low", "high", "n", "status")
_CSV_ENDS = ("", *ERROR_ENDS, "_status")
"""How the columns of a cell in a CSV file are named after the aggregate."""


def run_query(
    tables: Tables, bearer: Bearer, collection: str, sql: str, level: float
) -> tuple[TableInfo, Select, Answer | Plan]:
    """The answer to a SELECT over the table of a collection, or the plan of an EXPLAIN."""
    info = tables.find(bearer, collection, sql)
    select = tables.select(info, sql)
    return info, select, tables.explain(info, sql) if select.explain else tables.query(info, sql, level)


def query_json(info: TableInfo, select: Select, found: Answer | Plan, level: float, seconds: float) -> dict[str, Any]:
    """An answer or a plan as the API says it."""
    about: dict[str, Any] = {"table": info.name, "n": info.n, "seconds": round(seconds, 6)}
    if isinstance(found, Plan):
        return {"plan": [{name: _plain(item) for name, item in row.items()} for row in found.to_rows()]} | about
    outputs = zip(found.columns, select.outputs, strict=True)
    columns = [{"name": name} | _about(info, output.item) for name, output in outputs]
    rows = [[_plain(item) for item in row] for row in found.rows]
    return {"columns": columns, "rows": rows, "level": level} | about


def _about(info: TableInfo, item: Column | Aggregate) -> dict[str, Any]:
    """What a column of an answer is, and whether the values of a group have an order, in which they come."""
    if not isinstance(item, Column):
        return {"kind": "aggregate"}
    return {"kind": "group", "ordered": any(one.name == item.name and one.is_in_order for one in info.columns)}


def _plain(item: Any) -> Any:
    if isinstance(item, Cell):
        return {name: _plain(getattr(item, name)) for name in CELL}
    found: Any = item
    return found.item() if isinstance(item, np.generic) else found


def query_csv(select: Select, found: Answer | Plan) -> str:
    """The same as CSV: an aggregate is followed by its standard error, the ends of its interval and its status."""
    if isinstance(found, Plan):
        rows = found.to_rows()
        return csv_text([list(rows[0]) if rows else [], *(list(row.values()) for row in rows)])
    header: list[str] = []
    for name, output in zip(found.columns, select.outputs, strict=True):
        header += [name] if isinstance(output.item, Column) else [name + end for end in _CSV_ENDS]
    return csv_text([header, *([item for cell in row for item in _flat(cell)] for row in found.rows)])


def _flat(item: Any) -> list[Any]:
    return [*flat_row([item], errors=True), item.status] if isinstance(item, Cell) else [_plain(item)]


def table_json(info: TableInfo) -> dict[str, Any]:
    """A table as the API lists it."""
    columns = [asdict(column) | {"labels": list(column.labels)} for column in info.columns]
    return asdict(info) | {"columns": columns}


class Queries(Api):
    """The endpoints of SQL."""

    def __init__(self, collector: Collector, tables: Tables) -> None:
        """Answer from the tables of a collector."""
        super().__init__(collector)
        self._tables = tables

    def routes(self) -> list[BaseRoute]:
        """Queries of one collection, and the list of tables."""
        path = "/api/v1/collections/{id}/query"
        return [
            self._route("GET", path, READ, self.query, heavy=True),
            self._route("POST", path, READ, self.query, heavy=True),
            self._route("GET", f"{path}.csv", READ, self.query_csv, heavy=True),
            self._route("POST", f"{path}.csv", READ, self.query_csv, heavy=True),
            self._route("GET", "/api/v1/tables", READ, self.tables, anything=True),
        ]

    def tables(self, call: Call) -> Response:
        """The tables that the token may read."""
        return json_response({"tables": [table_json(info) for info in self._tables.readable(call.bearer)]})

    def query(self, call: Call) -> Response:
        """An answer or a plan as JSON."""
        sql, level = _asked(call)
        started = monotonic()
        info, select, found = run_query(self._tables, call.bearer, call.id, sql, level)
        return json_response(query_json(info, select, found, level, monotonic() - started))

    def query_csv(self, call: Call) -> Response:
        """An answer or a plan as CSV."""
        sql, level = _asked(call)
        info, select, found = run_query(self._tables, call.bearer, call.id, sql, level)
        name = file_name(info.title, call.id, sql, "csv")
        headers = {"cache-control": "no-store"} | disposition(name)
        return Response(query_csv(select, found).encode(), 200, headers, "text/csv; charset=utf-8")


def _asked(call: Call) -> tuple[str, float]:
    """The query and its level, from the address or from the body."""
    given: Mapping[str, Any] = call.query if call.body is None else call.fields
    unknown = sorted(set(given) - {"sql", "level", "share"})
    if unknown:
        raise InvalidSpec(f"query: unknown field '{unknown[0][:40]}', must be sql or level")
    sql, level = given.get("sql"), given.get("level", 0.95)
    if not isinstance(sql, str) or not sql.strip():
        raise Problem("malformed", "sql must be the text of a query, such as SELECT COUNT(*) FROM table")
    return sql, check_level(level)
