"""Catalogue queries, and queries without a table, answered by a SQLite database in memory that holds the catalogue.

Such a database is made for every query from what the asking token may read: names, columns and numbers of rows. It
never holds a row of a collection, so whatever is asked of it can reveal none; queries over collections never come
here. What SQLite cannot do is answered with no rows and a notice, as tools then show less instead of failing.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import cache, partial
from time import thread_time
from typing import Any

import apsw
import sqlglot
from sqlglot import exp

from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_data import (
    KINDS,
    OF_DECLARED,
    described,
    rows_of,
    shapes,
    standing_rows,
    table_oids,
)
from tacit.collector.pg.catalog_functions import LONGEST, STANDING, ArrayAgg, Lookups, SessionFacts, too_long
from tacit.collector.pg.catalog_rewrite import Unknown, rewritten, type_of
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.values import Field
from tacit.collector.tables.info import TableInfo

_SECONDS, _STEPS = 2.0, 1_000
_MOST_ROWS, _MOST_CHARACTERS, _MOST_BYTES = 50_000, 1 << 24, 1 << 27
_ALLOWED = (apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE)
"""Recursion is how asyncpg looks up types of arrays; one without an end runs into the limits of time and memory."""
_AGGREGATES = ("array_agg_of", "array_agg")
_BUILT_IN = (
    "abs avg coalesce count current_date current_time current_timestamp dense_rank first_value group_concat ifnull iif "
    "lag last_value lead length lower max min nullif rank round row_number string_agg substr substring sum upper"
).split()
"""SQLite's own functions that may be called: none of them takes longer than its arguments are long."""
_FUNCTIONS = frozenset((*_BUILT_IN, *_AGGREGATES, *STANDING))


@dataclass(frozen=True)
class CatalogResult:
    """Columns and rows of a catalogue query, with the notices to send along."""

    fields: tuple[Field, ...]
    rows: list[tuple[Any, ...]]
    notices: list[str] = field(default_factory=list[str])


@cache
def _standing() -> bytes:
    """The database before any table of a collection is in it."""
    database: Any = apsw.Connection(":memory:")
    for name, shape in shapes().items():
        columns = ", ".join(f'"{n}" {KINDS[kind][0]}' for n, kind in zip(shape.names, shape.kinds, strict=True))
        database.execute(f'CREATE TABLE "{name}" ({columns})')
    _insert(database, standing_rows())
    return database.serialize("main")


def _insert(database: Any, content: dict[str, list[dict[str, Any]]]) -> None:
    for table, rows in content.items():
        names = shapes()[table].names
        places = ", ".join("?" * len(names))
        database.executemany(f'INSERT INTO "{table}" VALUES ({places})', [[row.get(n) for n in names] for row in rows])


class Catalogue:
    """The catalogue as one session sees it."""

    def __init__(self, tables: Sequence[TableInfo], session: SessionFacts) -> None:
        """Tables that may be read, and who asks."""
        self._tables, self._session = tables, session
        oids = table_oids(tables)
        words = {oids[table.name]: ["", *map(described, table.columns)] for table in tables}
        for table in tables:
            words[oids[table.name]][0] = f"aggregates of {table.n} rows of collection {table.collection[:12]}"
        self._functions = Lookups(oids, words, session).functions()

    def answer(self, tree: Any) -> CatalogResult:
        """The answer to a query, given as sqlglot's tree."""
        problems: list[PgError] = []
        watch = _Watch(problems)
        database = self._open(watch)
        try:
            return self._run(database, rewritten(tree), tree)
        except apsw.InterruptError:
            raise watch.reason() from None
        except apsw.TooBigError:
            raise too_long() from None
        except (Unknown, apsw.Error, RecursionError, ValueError, TypeError, OverflowError):
            if problems:
                raise problems[0] from None
            return self._nothing(tree)
        finally:
            database.close()

    def _open(self, watch: "_Watch") -> Any:
        database: Any = apsw.Connection(":memory:")
        # What is sorted or made distinct stays where it is counted, and never goes to a disk.
        database.pragma("temp_store", 2)
        database.deserialize("main", _standing())
        _insert(database, rows_of(self._tables, self._session.database))
        settings = [
            {"name": k, "setting": v, "context": "user", "source": "default", "vartype": "string"}
            for k, v in self._session.settings.all().items()
        ]
        _insert(database, {"pg_settings": settings})
        for name, (function, _) in (STANDING | self._functions).items():
            database.create_scalar_function(name, watch.kept(function))
        for name in _AGGREGATES:
            database.create_aggregate_function(name, watch.array_agg)
        database.limit(apsw.SQLITE_LIMIT_LENGTH, LONGEST)
        database.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
        database.authorizer = partial(_authorize, _FUNCTIONS | self._functions.keys())
        # A name in quotes that does not exist is a mistake, and not text.
        database.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        database.set_progress_handler(watch.is_over, _STEPS)
        return database

    def _run(self, database: Any, tree: Any, original: Any) -> CatalogResult:
        text = tree.sql(dialect="sqlite", identify=True, unsupported_level=sqlglot.ErrorLevel.IGNORE)
        cursor, described = database.cursor(), list[tuple[str, Any]]()

        def note(cursor: Any, *_: Any) -> bool:
            """Columns are known before the first row, and not any more after the last."""
            described.extend((name, declared) for name, declared in cursor.getdescription())
            return True

        cursor.exec_trace = note
        rows, size = list[tuple[Any, ...]](), 0
        for row in cursor.execute(text):
            rows.append(row)
            size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
            if len(rows) > _MOST_ROWS or size > _MOST_CHARACTERS:
                raise PgError("54000", "the catalogue query returns too much")
        fields = self._fields(described, rows, original)
        return CatalogResult(fields, self._with_names(fields, rows))

    def _with_names(self, fields: tuple[Field, ...], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Rows with names of tables, types and functions; inside they are numbers, which are compared and joined."""
        functions = STANDING | self._functions
        names = {pg.REGPROC: "proc_text", pg.REGCLASS: "class_text", pg.REGTYPE: "format_type"}
        places = {i: functions[names[item.type]][0] for i, item in enumerate(fields) if item.type in names}
        if not places:
            return rows
        return [tuple(places[i](v) if i in places else v for i, v in enumerate(row)) for row in rows]

    def _fields(self, described: list[tuple[str, Any]], rows: list[tuple[Any, ...]], tree: Any) -> tuple[Field, ...]:
        selects = _selects(tree)
        known = [type_of(item, self._functions) for item in selects] if len(selects) == len(described) else []
        names = [_name(item, name) for item, (name, _) in zip(selects, described, strict=True)] if known else []
        found: list[Field] = []
        for place, (name, declared) in enumerate(described):
            oid = (known[place] if known else 0) or OF_DECLARED.get(declared or "", 0)
            found.append(Field(names[place] if names else name, oid or _type_of_values(row[place] for row in rows)))
        return tuple(found)

    def _nothing(self, tree: Any) -> CatalogResult:
        """No rows, under the names that the query gives its columns."""
        selects = _selects(tree)
        fields = tuple(Field(_name(item, "?column?"), type_of(item, self._functions) or pg.TEXT) for item in selects)
        if not tree.find(exp.Table):
            raise PgError("0A000", "an expression without a table is not understood",
                          hint="Write SELECT aggregates FROM a table; \\d lists the tables.") from None  # fmt: skip
        return CatalogResult(fields, [], ["this catalogue query is not understood here; it is answered with no rows"])


def _selects(tree: Any) -> list[Any]:
    """The columns of a query; those of a subquery where all of them are asked for."""
    found: list[Any] = list(getattr(tree, "selects", []))
    source = tree.args.get("from_") or tree.args.get("from")
    if len(found) == 1 and isinstance(found[0], exp.Star) and source is not None and not tree.args.get("joins"):
        return _selects(source.this.this) if isinstance(source.this, exp.Subquery) else found
    return found


class _Watch:
    """Ends a query that takes too long or too much, and keeps why a function refused."""

    def __init__(self, problems: list[PgError]) -> None:
        """The clock runs from now on; refusals are added to the problems."""
        # CPU time of this thread: a busy machine ends no query, and one that works too long is ended wherever it runs.
        self._problems, self._end = problems, thread_time() + _SECONDS
        # All of SQLite's memory is counted, other queries' too: a crowd of large ones ends earlier, which is as well.
        self._most = apsw.memory_used() + _MOST_BYTES

    def is_over(self) -> bool:
        """Whether the query must end."""
        return thread_time() > self._end or apsw.memory_used() > self._most

    def reason(self) -> PgError:
        """Why it had to."""
        if thread_time() > self._end:
            return PgError("57014", "the catalogue query took too long")
        return PgError("54000", "the catalogue query takes too much memory")

    def kept(self, function: Any) -> Any:
        """A function whose refusal is kept, as SQLite passes on no more than that something failed."""

        def call(*values: Any) -> Any:
            # A function may take as long as thousands of steps, between which the time is not looked at.
            if self.is_over():
                self._problems.append(self.reason())
                raise ValueError("over")
            try:
                return function(*values)
            except PgError as problem:
                self._problems.append(problem)
                raise ValueError("refused") from None

        return call

    def array_agg(self) -> tuple[ArrayAgg, Any, Any]:
        """The aggregate, in the form that SQLite is given it."""
        return ArrayAgg(), self.kept(ArrayAgg.step), self.kept(ArrayAgg.final)


def _authorize(functions: Set[str], operation: int, first: str | None, second: str | None, *_: Any) -> int:
    if operation not in _ALLOWED or (operation == apsw.SQLITE_FUNCTION and (second or "") not in functions):
        return apsw.SQLITE_DENY
    if operation == apsw.SQLITE_READ and (first or "").startswith("sqlite_"):
        return apsw.SQLITE_DENY
    return apsw.SQLITE_OK


_OF_NODES = {"Case": "case", "Array": "array", "Exists": "exists", "Coalesce": "coalesce"}


def _name(item: Any, otherwise: str) -> str:
    """What PostgreSQL calls a column of a result."""
    kind = type(item).__name__
    if isinstance(item, (exp.Alias, exp.Column)) or kind in _OF_NODES:
        return otherwise if isinstance(item.this, exp.Star) else _OF_NODES.get(kind) or _folded(item)
    if isinstance(item, exp.Dot):
        return _name(item.expression, otherwise)
    if isinstance(item, exp.Cast):
        return _name(item.this, item.args["to"].sql(dialect="postgres").lower())
    if isinstance(item, exp.Anonymous):
        return item.name.lower()
    if isinstance(item, exp.Star):
        return otherwise
    if isinstance(item, exp.Func) and not isinstance(item, (exp.And, exp.Or)):
        special = {
            "GroupConcat": "string_agg",
            "CurrentVersion": "version",
            "CurrentTimestamp": "now",
            "CurrentCatalog": "current_catalog",
        }
        return special.get(kind) or item.sql_name().lower()
    return "?column?"


def _folded(item: Any) -> str:
    """A name, in lower case unless it is in quotes."""
    name = item.args.get("alias") if isinstance(item, exp.Alias) else item.this
    return item.alias_or_name if name is None or name.args.get("quoted") else item.alias_or_name.lower()


def _type_of_values(values: Any) -> int:
    """The type that fits the first value that is there."""
    first = next((value for value in values if value is not None), None)
    return pg.INT8 if isinstance(first, int) else pg.FLOAT8 if isinstance(first, float) else pg.TEXT
