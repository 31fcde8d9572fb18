"""Refused queries: the problem document, and where in the text the trouble is."""

import re
from typing import Any

from tacit.collector.problems import Problem
from tacit.tasks.analytics.sql import EXPLAIN

_LINE = re.compile(r"Line (\d+), Col: (\d+)")
_QUOTED = re.compile(r"'([^']{1,80})'")
_WORD = re.compile(r"\w+")
_COMMON = frozenset({
    "a", "an", "and", "as", "at", "be", "by", "has", "in", "is", "it", "its", "must", "not", "of", "or", "query",
    "select", "sql", "the", "there", "to", "with",
})  # fmt: skip
"""Words of messages that say nothing about a place."""


class QueryProblem(Problem):
    """A query that is not answered; `position` is the character it fails at, from 1 on, or 0 if none is known."""

    def __init__(self, detail: str, position: int = 0) -> None:
        """Refuse a query."""
        super().__init__("invalid_query", detail)
        self.position = position

    def to_json(self) -> dict[str, Any]:
        """The problem document, with the position where it is known."""
        return super().to_json() | ({"position": self.position} if self.position else {})


def query_problem(message: str, sql: str) -> QueryProblem:
    """The problem of a message about a query."""
    return QueryProblem(message.removeprefix("sql: "), position_of(message, sql))


def position_of(message: str, sql: str) -> int:
    """Where a message points to in a query, from 1 on; 0 if it names nothing that stands there.

    >>> position_of("sql: there is no column 'aeg'; did you mean age?", "SELECT COUNT(*) FROM t WHERE aeg < 3")
    30
    """
    line = _LINE.search(message)
    if line:
        return _of_line(sql, int(line[1]), int(line[2]))
    named = message.removeprefix("sql: ").partition(";")[0]
    words = _WORD.findall(named.partition(":")[0] if not named.startswith("SELECT") else named)
    for word in [*_QUOTED.findall(named), *(word for word in words if word.lower() not in _COMMON)]:
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sql, re.IGNORECASE)
        if found:
            return found.start() + 1
    return 0


def _of_line(sql: str, line: int, column: int) -> int:
    """The place of a line and a column of the text after EXPLAIN."""
    explain = EXPLAIN.match(sql)
    start = explain.end() if explain else 0
    lines = sql[start:].split("\n")
    before = sum(len(item) + 1 for item in lines[: line - 1])
    return min(len(sql), start + before + column) or 1
