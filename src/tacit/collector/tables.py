"""Tables: collections whose reports came with rows, as analysts see them in SQL.

Opened segments are kept in memory up to a number of bytes; new ones are opened when a query first meets them.
Queries are counted by their outcome; their texts are neither logged nor stored.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import monotonic
from typing import TypeVar

from tacit.collector.access import READ, Bearer
from tacit.collector.active import Active
from tacit.collector.policies import asked_of
from tacit.collector.problems import Problem
from tacit.collector.query_problem import query_problem
from tacit.collector.service import Collector
from tacit.core.level import check_level
from tacit.errors import InvalidQuery
from tacit.tasks.analytics.documents import design_of, table_schema
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.plan import Plan
from tacit.tasks.analytics.run import Answer
from tacit.tasks.analytics.schema import Dimension, Schema
from tacit.tasks.analytics.segments import SegmentCache, SegmentedTable
from tacit.tasks.analytics.sql import parse_sql
from tacit.tasks.analytics.syntax import Select

DATABASE = "tacit"
"""The database that has all tables; any other is the id of a collection, or its beginning."""

_MAX_KNOWN = 256
_SHORT = 8
_MAX_LISTED = 1000

Result = TypeVar("Result")


@dataclass(frozen=True)
class ColumnInfo:
    """A column of a table: a public one, or the domain of a private one."""

    name: str
    type: str
    """integer, number, text, boolean or date."""
    private: bool
    domain: str = ""
    """What a private column may hold, in words."""
    labels: tuple[str, ...] = ()
    """The values of a private column that has labels, or the first thousand of them."""
    low: int = 0
    """The least value of a private column that holds whole numbers."""
    high: int = 0
    ordered: bool = False
    """Whether the values of a private column have an order, in which groups come."""

    @property
    def is_in_order(self) -> bool:
        """Whether neighbouring groups belong together: private values in an order, public numbers and dates."""
        return self.ordered if self.private else self.type in ("integer", "number", "date")


@dataclass(frozen=True)
class TableInfo:
    """A collection as a table."""

    collection: str
    name: str
    """What it is called in FROM; equal names are told apart, and the newest keeps the plain one."""
    columns: tuple[ColumnInfo, ...]
    n: int
    """Reports that are stored, each with its row."""
    minimum_cohort: int = 1
    title: dict[str, str] = field(default_factory=dict[str, str])
    damaged: bool = False
    """Whether what is stored is not as it was written; nothing is answered then, and n is 0."""


class Tables:
    """The tables of a collector."""

    def __init__(self, collector: Collector) -> None:
        """Read from a collector; queries run in the thread of their caller, and end when its check says so."""
        self._collector, self._cache = collector, SegmentCache()
        collector.when_dropped(lambda collection: self._cache.forget_for_good(_start(collection)))
        self._schema = lru_cache(_MAX_KNOWN)(self._read_schema)
        self._design = lru_cache(_MAX_KNOWN)(self._read_design)

    def readable(self, bearer: Bearer, database: str = "") -> list[TableInfo]:
        """The tables that a token may read, newest last: all, or those of collections whose ids begin so."""
        begin = "" if database == DATABASE else database
        ids = [id for id in self._collector.shelf.all_ids() if id.startswith(begin) and bearer.may(READ, id)]
        found = [active for id in ids if (active := self._with_rows(id)) is not None]
        newest = {_plain_name(active): active.id for active in found}
        return [self._info(active, _name(active, plain=newest[_plain_name(active)] == active.id)) for active in found]

    def find(self, bearer: Bearer, collection: str, sql: str = "") -> TableInfo:
        """The table of one collection, under its plain name or, where a query says so, under its longer one."""
        if not bearer.may(READ, collection):
            raise Problem("forbidden", f"a token with the scope '{bearer.scope}' does not allow this here")
        active = self._collector.find(collection)
        if active.collection.rows is None:
            raise Problem("conflict", "the collection has no rows, so it has no table; read its answers instead")
        longer = _name(active, plain=False)
        return self._info(active, _name(active, plain=not re.search(rf"\bfrom\s+\"?{longer}\b", sql, re.IGNORECASE)))

    def query(self, info: TableInfo, sql: str, level: float = 0.95) -> Answer:
        """The answer to a SELECT or EXPLAIN; a problem says what cannot be answered and what to write instead."""
        check_level(level)
        return self._counted(info, sql, lambda table: table.with_level(level).query(sql))

    def explain(self, info: TableInfo, sql: str) -> Plan:
        """How a query will be answered, and the standard errors to expect; `sql` with or without EXPLAIN."""
        return self._counted(info, sql, lambda table: table.explain(sql))

    def select(self, info: TableInfo, sql: str) -> Select:
        """What a query asks for; no row is looked at."""
        try:
            return parse_sql(sql, [column.name for column in info.columns], info.name)
        except InvalidQuery as error:
            raise query_problem(str(error), sql) from None

    def _counted(self, info: TableInfo, sql: str, work: Callable[[SegmentedTable], Result]) -> Result:
        started, outcome = monotonic(), "failed"
        try:
            found = work(self._open(info))
            outcome = "answered"
        except InvalidQuery as error:
            outcome = "refused"
            raise query_problem(str(error), sql) from None
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
        private = [_private_column(dimension) for dimension in self._schema(active.id).dimensions]
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
    return _plain_name(active) if plain else f"{_plain_name(active)}_{active.id[:_SHORT]}"


def _private_column(dimension: Dimension) -> ColumnInfo:
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
