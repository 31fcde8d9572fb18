"""A connection answers SQL over rows and their linked reports."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from tacit.errors import InvalidQuery
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.patience import Check, patient
from tacit.tasks.analytics.pieces import Piece
from tacit.tasks.analytics.plan import Plan
from tacit.tasks.analytics.private_numbers import FUNCTIONS, private_number
from tacit.tasks.analytics.public import Public, Rows
from tacit.tasks.analytics.query import Query
from tacit.tasks.analytics.run import Answer, answer_queries, explain_query
from tacit.tasks.analytics.schema import Schema
from tacit.tasks.analytics.source import Source
from tacit.tasks.analytics.sql import parse_sql
from tacit.tasks.analytics.syntax import Column, Select, columns_in


class Asked(Protocol):
    """What answers SQL over a schema by a design."""

    @property
    def schema(self) -> Schema:
        """The private columns."""
        ...

    @property
    def design(self) -> Design:
        """How they were collected."""
        ...

    def parse(self, sql: str) -> Select:
        """A query whose columns exist."""
        ...


def parse_query(sql: str, columns: Sequence[str], schema: Schema) -> Select:
    """A query over columns that exist, with measures of public ones, or of a private one alone."""
    select = parse_sql(sql, columns, schema.table)
    for aggregate in select.aggregates:
        private = [name for name in columns_in(aggregate.argument) if schema.dimension(name) is not None]
        alone = isinstance(aggregate.argument, Column)
        if private and not (alone and aggregate.function in ("count", *FUNCTIONS)):
            raise InvalidQuery(
                f"sql: {private[0]} is private; COUNT, SUM, AVG, MEDIAN and PERCENTILE_CONT of it alone are answered, "
                "all else of public columns"
            )
        if aggregate.function == "quantile" and not private:
            raise InvalidQuery("sql: MEDIAN and PERCENTILE_CONT are of private numbers; write AVG of a public one")
        private_number(schema, aggregate)  # Refuses what is no number.
    return select


def answer_texts(
    table: Asked, texts: Sequence[str], pieces: Callable[[], Iterable[Piece]], level: float,
    *, least: int = 0, check: Check = patient,
) -> list[Answer]:  # fmt: skip
    """Several answers in one pass over the pieces; those of EXPLAIN are plans."""
    queries = [Query(table.schema, table.parse(text)) for text in texts]
    asked = [query for query in queries if not query.select.explain]
    answers = iter(answer_queries(asked, pieces(), level, least=least, check=check) if asked else [])
    return [
        explain_query(query, pieces(), table.design, check).to_answer(Answer) if query.select.explain else next(answers)
        for query in queries
    ]


@dataclass(frozen=True, eq=False)
class Connection:
    """Answers queries over a table whose private columns are known as noisy reports alone."""

    schema: Schema
    rows: Rows
    source: Source
    design: Design
    level: float = 0.95

    @cached_property
    def public(self) -> Public:
        """The public columns; measures that were asked for are kept."""
        return Public(self.rows)

    @property
    def columns(self) -> list[str]:
        """All columns, the private ones first."""
        return [dimension.name for dimension in self.schema.dimensions] + list(self.rows.names)

    def query(self, sql: str) -> Answer:
        """The answer to a SELECT."""
        return self.queries([sql])[0]

    def queries(self, texts: Sequence[str]) -> list[Answer]:
        """Several answers, for which the reports are gone through once, and equal conditions looked at once."""
        return answer_texts(self, texts, lambda: [self._piece], self.level)

    @property
    def _piece(self) -> Piece:
        return Piece(self.public, self.source)

    def explain(self, sql: str) -> Plan:
        """How a query will be answered, and the standard errors to expect; reads public columns alone."""
        return explain_query(Query(self.schema, self.parse(sql)), [self._piece], self.design)

    def parse(self, sql: str) -> Select:
        """A query whose columns exist."""
        return parse_query(sql, self.columns, self.schema)

    def with_level(self, level: float) -> "Connection":
        """The same table with intervals of another level."""
        return replace(self, level=level)

    def with_source(self, source: Source) -> "Connection":
        """The same table with terms from elsewhere."""
        return replace(self, source=source)

    def cursor(self) -> Any:
        """A DB-API 2.0 cursor."""
        from tacit.tasks.analytics.dbapi import Cursor

        return Cursor(self)
