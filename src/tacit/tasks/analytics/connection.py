"""A connection answers SQL over rows and their linked reports."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tacit.errors import InvalidSpec
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.plan import Plan
from tacit.tasks.analytics.public import Public, Rows
from tacit.tasks.analytics.run import Answer, Run, answer_runs
from tacit.tasks.analytics.schema import Schema
from tacit.tasks.analytics.source import Source
from tacit.tasks.analytics.sql import parse_sql
from tacit.tasks.analytics.syntax import Select, columns_in


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
        selects = [self.parse(text) for text in texts]
        runs = {i: self._run(select) for i, select in enumerate(selects) if not select.explain}
        answers = dict(zip(runs, answer_runs(list(runs.values()), self.source, self.level), strict=True))
        return [
            self._run(select).plan(self.design).to_answer(Answer) if select.explain else answers[i]
            for i, select in enumerate(selects)
        ]

    def _run(self, select: Select) -> Run:
        return Run(self.schema, self.public, select)

    def explain(self, sql: str) -> Plan:
        """How a query will be answered, and the standard errors to expect; reads public columns alone."""
        return self._run(self.parse(sql)).plan(self.design)

    def parse(self, sql: str) -> Select:
        """A query whose columns exist."""
        select = parse_sql(sql, self.columns, self.schema.table)
        for aggregate in select.aggregates:
            for name in columns_in(aggregate.argument):
                if self.schema.dimension(name) is not None:
                    raise InvalidSpec(
                        f"sql: {name} is private and cannot be summed; write it in WHERE or GROUP BY, "
                        "and measures of public columns in aggregates"
                    )
        return select

    def with_source(self, source: Source) -> "Connection":
        """The same table with terms from elsewhere."""
        return replace(self, source=source)

    def cursor(self) -> Any:
        """A DB-API 2.0 cursor."""
        from tacit.tasks.analytics.dbapi import Cursor

        return Cursor(self)
