"""SQL over HTTP: the tables that a token may read, answers as JSON or CSV, and plans."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from tacit.collector.collections.access import READ
from tacit.collector.http.api import Api, Call
from tacit.collector.http.downloads import disposition, file_name
from tacit.collector.service import Collector
from tacit.core.statistics.level import check_level
from tacit.errors import InvalidSpec, MissingExtra
from tacit.hosting.problems import Problem
from tacit.hosting.responses import json_response

if TYPE_CHECKING:
    from tacit.collector.tables.tables import Tables


class Queries(Api):
    """The endpoints of SQL."""

    def __init__(self, collector: Collector, tables: "Callable[[], Tables]") -> None:
        """Answer from the tables of a collector, which load the engine of SQL when they are first needed."""
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
        """The tables that the token may read; none where the extra that could answer from them is missing."""
        try:
            from tacit.collector.tables.rendering import table_json

            found = self._tables().readable(call.bearer)
        except MissingExtra:
            return json_response({"tables": []})
        return json_response({"tables": [table_json(info) for info in found]})

    def query(self, call: Call) -> Response:
        """An answer or a plan as JSON."""
        from tacit.collector.tables.rendering import query_json, run_query

        sql, level = _asked(call)
        started = monotonic()
        info, select, found = run_query(self._tables(), call.bearer, call.id, sql, level)
        return json_response(query_json(info, select, found, level, monotonic() - started))

    def query_csv(self, call: Call) -> Response:
        """An answer or a plan as CSV."""
        from tacit.collector.tables.rendering import query_csv, run_query

        sql, level = _asked(call)
        info, select, found = run_query(self._tables(), call.bearer, call.id, sql, level)
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
