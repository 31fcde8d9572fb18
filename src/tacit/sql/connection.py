"""Tables that answer SQL: what they have in common, and the one whose rows and reports are all in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tacit.errors import InvalidQuery
from tacit.sql.design.levels import Design
from tacit.sql.engine.pieces import Piece
from tacit.sql.engine.plan import QueryPlan
from tacit.sql.engine.privacy import without_casts
from tacit.sql.engine.private_numbers import FUNCTIONS, private_number
from tacit.sql.engine.public import RowEvaluator, RowSource
from tacit.sql.engine.query import Query
from tacit.sql.engine.run import QueryAnswer, answer_queries, explain_query
from tacit.sql.engine.source import TermSource
from tacit.sql.parse.select import parse_sql
from tacit.sql.parse.syntax import Aggregate, ColumnRef, Select, columns_in
from tacit.sql.patience import Check, patient
from tacit.sql.schema.schema import Schema


class QueryTable:
    """A table that answers SQL over a schema, by the design that its reports were collected with.

    Where a query is taken, it is the text or, where somebody has parsed it already, the `Select`.
    """

    schema: Schema
    """The private columns."""
    design: Design
    """How they were collected."""
    level: float
    """The confidence of intervals."""
    least: int
    """Estimates from the reports of fewer rows are not told."""
    check: Check
    """Called between steps; it raises once nobody waits for the answer."""

    @property
    def public_names(self) -> Sequence[str]:
        """Names of the public columns."""
        raise NotImplementedError

    @property
    def n(self) -> int:
        """Number of rows."""
        raise NotImplementedError

    def pieces(self) -> Iterable[Piece]:
        """The rows with their reports, piece by piece; gone through anew by every call."""
        raise NotImplementedError

    @property
    def columns(self) -> list[str]:
        """All columns, the private ones first."""
        return [*(dimension.name for dimension in self.schema.dimensions), *self.public_names]

    def parse(self, sql: str) -> Select:
        """A query over columns that exist, whose aggregates can be estimated."""
        select = without_casts(parse_sql(sql, self.columns, self.schema.table), self.schema)
        check_aggregates(select, self.schema)
        return select

    def query(self, query: str | Select) -> QueryAnswer:
        """The answer to a SELECT; to EXPLAIN, the plan as rows."""
        return self.queries([query])[0]

    def queries(self, queries: Sequence[str | Select]) -> list[QueryAnswer]:
        """Several answers in one pass over the pieces, in which equal conditions are looked at once."""
        asked = [self._query(query) for query in queries]
        estimated = [query for query in asked if not query.select.explain]
        if estimated:
            answers = answer_queries(
                estimated, self.pieces(), self.level, rows=self.n, least=self.least, check=self.check
            )
        else:
            answers = []
        left = iter(answers)
        return [self._plan(query).to_answer(QueryAnswer) if query.select.explain else next(left) for query in asked]

    def explain(self, query: str | Select) -> QueryPlan:
        """How a query will be answered, and the standard errors to expect; reads public columns alone."""
        return self._plan(self._query(query))

    def cursor(self) -> Any:
        """A DB-API 2.0 cursor."""
        # The module of the DB-API knows nothing of tables, and is needed by few.
        from tacit.sql.dbapi import Cursor

        return Cursor(self)

    def _query(self, query: str | Select) -> Query:
        if isinstance(query, str):
            return Query(self.schema, self.parse(query))
        select = without_casts(query, self.schema)
        check_aggregates(select, self.schema)
        return Query(self.schema, select)

    def _plan(self, query: Query) -> QueryPlan:
        return explain_query(query, self.pieces(), self.design, self.check)


def check_aggregates(select: Select, schema: Schema) -> None:
    """Refuse aggregates of private columns that reports say nothing about."""
    for aggregate in select.aggregates:
        try:
            _check_aggregate(aggregate, schema)
        except InvalidQuery as error:
            raise error.at(aggregate.position) from None


def _check_aggregate(aggregate: Aggregate, schema: Schema) -> None:
    private = [name for name in columns_in(aggregate.argument) if schema.dimension(name) is not None]
    alone = isinstance(aggregate.argument, ColumnRef)
    if private and not (alone and aggregate.function in ("count", *FUNCTIONS)):
        raise InvalidQuery(
            f"sql: {private[0]} is private; COUNT, SUM, AVG, MEDIAN and PERCENTILE_CONT of it alone are answered, "
            "all else of public columns",
            code="0A000",
        )
    if aggregate.function == "quantile" and not private:
        raise InvalidQuery(
            "sql: MEDIAN and PERCENTILE_CONT are of private numbers; write AVG of a public one", code="0A000"
        )
    private_number(schema, aggregate)  # Refuses what is no number.


@dataclass(frozen=True, eq=False)
class Connection(QueryTable):
    """Answers queries over a table whose private columns are known as noisy reports alone."""

    schema: Schema
    rows: RowSource
    source: TermSource
    design: Design
    level: float = 0.95
    least: int = 0
    check: Check = patient

    @cached_property
    def public(self) -> RowEvaluator:
        """The public columns; measures that were asked for stay cached."""
        return RowEvaluator(self.rows)

    @property
    def public_names(self) -> Sequence[str]:
        """Names of the public columns."""
        return self.rows.names

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    def pieces(self) -> Iterable[Piece]:
        """All rows in one piece."""
        return [Piece(self.public, self.source)]

    def with_level(self, level: float) -> "Connection":
        """The same table with intervals of another level."""
        return replace(self, level=level)

    def with_source(self, source: TermSource) -> "Connection":
        """The same table with terms from elsewhere."""
        return replace(self, source=source)
