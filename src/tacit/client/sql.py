"""Ask a collector SQL over HTTP, for analysts' programs: a thin layer over `client.operator`.

Standard library only; with psycopg, the collector's PostgreSQL port does the same.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from tacit.client.operator import TIMEOUT_SECONDS, Operator, Refused

__all__ = ["Cell", "Refused", "Sql"]


class Cell(NamedTuple):
    """One aggregate: its estimate with an interval, or a status that says why there is none."""

    estimate: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    n: int
    """The number of rows that meet the public conditions."""
    status: str
    """estimate, exact, insufficient_data (lost in noise), no_data or below_minimum_cohort."""
    better: dict[str, Any] | None = None
    """For an estimated COUNT: a biased estimate that is nearer to the truth on average, with its own interval."""

    @classmethod
    def of(cls, item: dict[str, Any]) -> "Cell":
        """Read a cell of an answer; fields that later releases add are left out."""
        return cls(**{name: item[name] for name in cls._fields if name in item})


@dataclass(frozen=True)
class Sql:
    """A collector that answers SQL to whoever holds a token that may read.

    >>> people = Sql("https://collector.example.org", "tct_…")
    >>> people.ask("82f2cc…", "SELECT os, COUNT(*) FROM people WHERE age < 40 GROUP BY os")  # doctest: +SKIP
    [{'os': 'ios', 'count': Cell(estimate=3779.5, ...)}, ...]
    """

    server: str
    token: str
    timeout_seconds: float = TIMEOUT_SECONDS

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables that the token may read: their collections, names and columns."""
        return self._operator.tables()

    def ask(self, collection: str, sql: str, level: float = 0.95) -> list[dict[str, Any]]:
        """The rows of the answer: group values, and a `Cell` for every aggregate; for EXPLAIN, the plan's steps."""
        answer = self._operator.query(collection, sql, level)
        if "plan" in answer:
            return answer["plan"]
        names = _different([column["name"] for column in answer["columns"]])
        rows = (
            [Cell.of(cast("dict[str, Any]", item)) if isinstance(item, dict) else item for item in row]
            for row in answer["rows"]
        )
        return [dict(zip(names, row, strict=True)) for row in rows]

    @property
    def _operator(self) -> Operator:
        return Operator(self.server, self.token, self.timeout_seconds)


def _different(names: list[str]) -> list[str]:
    """Names that are keys: the second of equal ones is numbered, and so on.

    >>> _different(["os", "sum", "sum", "sum_2"])
    ['os', 'sum', 'sum_2', 'sum_2_2']
    """
    taken: list[str] = []
    for name in names:
        others = (f"{name}_{i}" for i in range(2, len(names) + 2))
        taken.append(name if name not in taken else next(other for other in others if other not in taken))
    return taken
