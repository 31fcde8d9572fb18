"""Ask a collector SQL over HTTP. Standard library only; with psycopg, the collector's PostgreSQL port does the same."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from tacit.client.transport import Unreachable
from tacit.errors import InvalidQuery, TacitError

_SECONDS = 60.0


class Cell(NamedTuple):
    """One aggregate: its estimate with an interval, or a status that says why there is none."""

    estimate: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    n: int
    """Rows that meet the public conditions."""
    status: str
    """estimate, exact, insufficient_data (lost in noise), no_data or below_minimum_cohort."""


class Refused(TacitError):
    """The collector refused a query for another reason than its text: a token, a collection, too few rows."""


@dataclass(frozen=True)
class Sql:
    """A collector that answers SQL to whoever holds a token that may read.

    >>> people = Sql("https://collector.example.org", "tct_…")
    >>> people.ask("82f2cc…", "SELECT os, COUNT(*) FROM people WHERE age < 40 GROUP BY os")  # doctest: +SKIP
    [{'os': 'ios', 'COUNT(*)': Cell(estimate=3779.5, ...)}, ...]
    """

    server: str
    token: str
    timeout_seconds: float = _SECONDS

    def tables(self) -> list[dict[str, Any]]:
        """The tables that the token may read: their collections, names and columns."""
        return self._call("GET", "tables", None)["tables"]

    def ask(self, collection: str, sql: str, level: float = 0.95) -> list[dict[str, Any]]:
        """Rows of the answer: values of groups, and a `Cell` for every aggregate; for EXPLAIN, steps of the plan."""
        found = self._call("POST", f"collections/{quote(collection, '')}/query", {"sql": sql, "level": level})
        if "plan" in found:
            return found["plan"]
        names = [column["name"] for column in found["columns"]]
        return [dict(zip(names, map(_value, row), strict=True)) for row in found["rows"]]

    def _call(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = Request(f"{self.server.rstrip('/')}/api/v1/{path}", data, headers, method=method)
        try:
            with urlopen(request, timeout=self.timeout_seconds) as response:
                return json.loads(response.read())
        except HTTPError as error:
            with error:
                raise _problem(error) from None
        except (URLError, TimeoutError) as error:
            raise Unreachable(f"{self.server}: no reply ({getattr(error, 'reason', error)})") from None


def _value(item: Any) -> Any:
    return Cell(**item) if isinstance(item, dict) else item


def _problem(error: HTTPError) -> TacitError:
    try:
        problem = json.loads(error.read())
        kind, words = problem["type"].rpartition(":")[2], f"{problem['title']}: {problem['detail']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return Refused(f"the collector answered with status {error.code}")
    return InvalidQuery(words) if kind == "invalid_query" else Refused(words)
