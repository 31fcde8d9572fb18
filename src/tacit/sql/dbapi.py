"""Python's DB-API 2.0 (PEP 249) over a table, so that `pandas.read_sql` and kin work.

Every aggregate is a column of estimates; with `errors=True` it is followed by columns of its standard error and the
ends of its interval, named after it with `_standard_error`, `_low` and `_high`.
"""

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, Protocol

from tacit.errors import InvalidSpec
from tacit.sql.engine.aggregate import ERROR_ENDS, AggregateCell, flat_row
from tacit.sql.engine.run import QueryAnswer

apilevel = "2.0"
threadsafety = 1
paramstyle = "format"


class QueryEngine(Protocol):
    """What answers a query: any `QueryTable`, which this module must not import, for it lies below."""

    def query(self, sql: str, /) -> QueryAnswer:
        """The answer to a SELECT."""
        ...


class Warning(Exception):
    """Not used; PEP 249 asks for it."""


class Error(Exception):
    """Base of the errors that PEP 249 asks for."""


class InterfaceError(Error):
    """The interface was used wrongly, such as a closed cursor."""


class DatabaseError(Error):
    """The query was refused."""


class ProgrammingError(DatabaseError):
    """The query was refused; the message says why and what to write instead."""


class NotSupportedError(DatabaseError):
    """Answers are read only."""


class DataError(DatabaseError):
    """Not used; PEP 249 asks for it."""


class OperationalError(DatabaseError):
    """Not used; PEP 249 asks for it."""


class IntegrityError(DatabaseError):
    """Not used; PEP 249 asks for it."""


class InternalError(DatabaseError):
    """Not used; PEP 249 asks for it."""


def connect(connection: QueryEngine, *, errors: bool = False) -> "DBConnection":
    """A DB-API connection over a table; `errors` adds columns of standard errors and intervals."""
    return DBConnection(connection, errors)


class DBConnection:
    """A read-only DB-API connection."""

    def __init__(self, connection: QueryEngine, errors: bool) -> None:
        """Connect to a table."""
        self._connection = connection
        self._errors = errors
        self._closed = False

    def cursor(self) -> "Cursor":
        """A new cursor."""
        if self._closed:
            raise InterfaceError("the connection is closed")
        return Cursor(self._connection, errors=self._errors)

    def commit(self) -> None:
        """Nothing is ever changed."""

    def rollback(self) -> None:
        """Nothing is ever changed."""

    def close(self) -> None:
        """No more cursors."""
        self._closed = True


class Cursor:
    """One query at a time."""

    arraysize = 1

    def __init__(self, connection: QueryEngine, *, errors: bool = False) -> None:
        """Open a cursor on a table."""
        self._connection = connection
        self._errors = errors
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self._closed = False

    def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> "Cursor":
        """Answer a query; parameters fill its %s, quoted."""
        if self._closed:
            raise InterfaceError("the cursor is closed")
        try:
            answer = self._connection.query(_filled(operation, parameters))
        except InvalidSpec as error:
            raise ProgrammingError(str(error)) from None
        rows = [flat_row(row, errors=self._errors) for row in answer.rows]
        # Which columns are aggregates is seen in a row; without rows, nobody misses the columns of their errors.
        kinds = answer.rows[0] if answer.rows else [None] * len(answer.columns)
        names = [name for column, kind in zip(answer.columns, kinds, strict=True) for name in self._names(column, kind)]
        self.description = [(name, None, None, None, None, None, True) for name in names]
        self.rowcount, self._rows = len(rows), iter(rows)
        return self

    def _names(self, column: str, kind: Any) -> list[str]:
        more = ERROR_ENDS if self._errors and isinstance(kind, AggregateCell) else ()
        return [column, *(column + end for end in more)]

    def executemany(self, operation: str, parameters: Sequence[Sequence[Any]]) -> None:
        """Refused: it is for changes, and answers are read only."""
        raise NotSupportedError("executemany is for changes; call execute once for every query")

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Some next rows."""
        wanted = range(self.arraysize if size is None else size)
        return [row for _, row in zip(wanted, self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Rows that are left."""
        return self._rows

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing to do."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """No more queries."""
        self._closed = True


_PLACES = re.compile(r"'(?:[^']|'')*'|%s|%%")
"""Quoted text, in which nothing is filled in, places of parameters, and percent signs that are none."""


def _filled(operation: str, parameters: Sequence[Any] | None) -> str:
    """The query with its parameters as quoted constants."""
    if not parameters:
        return operation
    places = _PLACES.findall(operation).count("%s")
    if places != len(parameters):
        raise ProgrammingError(f"the query has {places} places %s for {len(parameters)} parameters")
    values = iter(parameters)

    def filled(found: re.Match[str]) -> str:
        return {"%s": lambda: _quoted(next(values)), "%%": lambda: "%"}.get(found[0], lambda: found[0])()

    return _PLACES.sub(filled, operation)


def _quoted(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        if not isfinite(value):
            raise ProgrammingError("a parameter is infinite or not a number; SQL has no such constant")
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"
