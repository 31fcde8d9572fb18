"""Tables: collections whose reports came with rows, as analysts see them in SQL.

Opened segments are kept in memory up to a number of bytes; new ones are opened when a query first meets them.
Queries are counted by their outcome; their texts are neither logged nor stored.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from time import monotonic
from typing import TypeVar

from tacit.collector.collections.access import READ, Bearer
from tacit.collector.collections.active import Active
from tacit.collector.collections.policies import asked_of
from tacit.collector.service import Collector
from tacit.collector.tables.info import DATABASE, ColumnInfo, TableInfo, longer_name
from tacit.core.statistics.level import check_level
from tacit.errors import InvalidQuery
from tacit.hosting.problems import Problem
from tacit.sql.design.levels import Design
from tacit.sql.documents import design_of, table_schema
from tacit.sql.engine.plan import QueryPlan
from tacit.sql.engine.run import QueryAnswer
from tacit.sql.parse.parsing import ParsedQuery
from tacit.sql.parse.select import read_query, select_of
from tacit.sql.parse.syntax import Select
from tacit.sql.schema.schema import Dimension, Schema
from tacit.sql.segments import SegmentCache, SegmentedTable

_MAX_KNOWN = 256
"""Collections whose schema and design stay cached."""
_MAX_LISTED = 1000

Result = TypeVar("Result")


class Tables:
    """The tables of a collector."""

    def __init__(self, collector: Collector) -> None:
        """Read from a collector; queries run in the thread of their caller, and end when its check says so."""
        self._collector, self._cache = collector, SegmentCache()
        collector.when_dropped(lambda collection: self._cache.forget_for_good(_start(collection)))
        # Published documents never change, so what is derived from them needs no expiry.
        self._schema = lru_cache(_MAX_KNOWN)(self._read_schema)
        self._design = lru_cache(_MAX_KNOWN)(self._read_design)

    def readable(self, bearer: Bearer, database: str = "") -> list[TableInfo]:
        """The tables that a token may read, newest last: all, or those of collections whose ids begin so."""
        begin = "" if database == DATABASE else database
        ids = [id for id in self._collector.shelf.all_ids() if id.startswith(begin) and bearer.may(READ, id)]
        found = [active for id in ids if (active := self._with_rows(id)) is not None]
        newest = {_plain_name(active): active.id for active in found}
        return [self._info(active, _name(active, plain=newest[_plain_name(active)] == active.id)) for active in found]

    def find(self, bearer: Bearer, collection: str) -> TableInfo:
        """The table of one collection, under its plain name."""
        if not bearer.may(READ, collection):
            raise Problem("forbidden", f"a token with the scope '{bearer.scope}' does not allow this here")
        active = self._collector.find(collection)
        if active.collection.rows is None:
            raise Problem("conflict", "the collection has no rows, so it has no table; read its answers instead")
        return self._info(active, _plain_name(active))

    def read(self, info: TableInfo, sql: str) -> Select:
        """The text of a query, parsed: what everything else here takes."""
        return self.select(info, read_query(sql))

    def select(self, info: TableInfo, parsed: ParsedQuery) -> Select:
        """What a query asks of this table; no row is looked at."""
        return select_of(parsed, [column.name for column in info.columns], info.name)

    def query(self, info: TableInfo, select: Select, level: float = 0.95) -> QueryAnswer:
        """The answer to a SELECT; InvalidQuery or a problem says what cannot be answered and what to write instead."""
        check_level(level)
        return self._counted(lambda: self._open(info).with_level(level).query(select))

    def explain(self, info: TableInfo, select: Select) -> QueryPlan:
        """How a query will be answered, and the standard errors to expect; with or without EXPLAIN in its text."""
        return self._counted(lambda: self._open(info).explain(select))

    def _counted(self, work: Callable[[], Result]) -> Result:
        started, outcome = monotonic(), "failed"
        try:
            found = work()
            outcome = "answered"
        except InvalidQuery:
            outcome = "refused"
            raise
        except Problem as problem:
            outcome = "late" if problem.kind == "query_timeout" else "refused"
            raise
        finally:
            self._collector.metrics.count("tacit_queries_total", f'outcome="{outcome}"')
            milliseconds = round(1000 * (monotonic() - started))
            self._collector.metrics.count("tacit_query_milliseconds_total", amount=milliseconds)
        return found

    def _with_rows(self, collection: str) -> Active | None:
        active = self._collector.shelf.find(collection)
        return active if active is not None and active.collection.rows is not None else None

    def _info(self, active: Active, name: str) -> TableInfo:
        document = active.collection
        assert document.rows is not None
        private = [private_column(dimension) for dimension in self._schema(active.id).dimensions]
        public = [ColumnInfo(column.name, column.type, private=False) for column in document.rows.columns]
        n, damaged = self._collector.stored(active)
        return TableInfo(active.id, name, (*private, *public), n, document.minimum_cohort, document.title, damaged)

    def _read_schema(self, collection: str) -> Schema:
        document = self._collector.find(collection).collection
        asked = asked_of(document.questions)
        return table_schema(asked.names, asked.domains, "" if document.rows is None else document.rows.table)

    def _read_design(self, collection: str) -> Design:
        return design_of(self._collector.find(collection).mechanism, self._schema(collection))

    def _open(self, info: TableInfo) -> SegmentedTable:
        """The table with everything that is stored; refused below the minimum cohort."""
        segments = self._collector.segments(info.collection)
        # What was merged into larger segments, or dropped by another process, need not stay in memory.
        self._cache.forget(_start(info.collection), but={segment.key for segment in segments})
        n, least = sum(segment.n for segment in segments), info.minimum_cohort
        if n < least:
            raise Problem("below_minimum_cohort", f"{n} rows are stored; queries are answered from {least} rows on")
        schema, design = replace(self._schema(info.collection), table=info.name), self._design(info.collection)
        public = [(column.name, column.type) for column in info.columns if not column.private]
        return SegmentedTable(schema, design, public, segments, self._cache, least=least)


def _start(collection: str) -> str:
    """How the keys of a collection's segments begin."""
    return f"{collection}/"


def _plain_name(active: Active) -> str:
    return "" if active.collection.rows is None else active.collection.rows.table


def _name(active: Active, *, plain: bool) -> str:
    return _plain_name(active) if plain else longer_name(_plain_name(active), active.id)


def private_column(dimension: Dimension) -> ColumnInfo:
    """A private column as analysts see it."""
    ends = (dimension.label(0), dimension.label(dimension.size - 1)) if dimension.type == "integer" else (0, 0)
    return ColumnInfo(
        dimension.name,
        dimension.type,
        private=True,
        domain=dimension.describe(),
        labels=dimension.labels[:_MAX_LISTED],
        low=ends[0],
        high=ends[1],
        ordered=dimension.is_ordinal,
    )
