"""Statements that return rows: routed to the catalogue or to a collection's table, described, and answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tacit.collector.access import READ, Access, Bearer
from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog import Catalogue
from tacit.collector.pg.catalog_functions import SessionFacts
from tacit.collector.pg.catalog_rewrite import is_system, tables_in
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.text import Statement, fill, parameter_types, parsed
from tacit.collector.pg.values import Field
from tacit.collector.problems import Problem, as_problem
from tacit.collector.tables import TableInfo
from tacit.tasks.analytics.aggregate import ERROR_ENDS, flat_row
from tacit.tasks.analytics.imports import expressions
from tacit.tasks.analytics.plan import Plan
from tacit.tasks.analytics.run import Answer
from tacit.tasks.analytics.syntax import Column, Select

PLAN_FIELDS = (Field("QUERY PLAN"),)
_DUMMIES: dict[int, Any] = {pg.BOOL: True, pg.DATE: "2000-01-01", pg.TEXT: "x"}


class TablesPort(Protocol):
    """The tables of a collector; `tables.Tables` is one."""

    def readable(self, bearer: Bearer, database: str = "") -> list[TableInfo]:
        """The tables that a token may read, in a database."""
        ...

    def query(self, info: TableInfo, sql: str, level: float = 0.95) -> Answer:
        """The answer to a SELECT."""
        ...

    def explain(self, info: TableInfo, sql: str) -> Plan:
        """How a query will be answered."""
        ...

    def select(self, info: TableInfo, sql: str) -> Select:
        """What a query asks for; no row is looked at."""
        ...


@dataclass(frozen=True)
class Result:
    """What a statement returns: rows under columns, or nothing (None) but its tag."""

    tag: str
    fields: tuple[Field, ...] | None = None
    rows: Sequence[tuple[Any, ...]] = ()
    notices: tuple[str, ...] = ()


@dataclass(eq=False)
class Prepared:
    """A statement that was looked at: where it goes, its parameters, and the columns that it will return."""

    statement: Statement
    kind: str
    """catalogue, select, explain, columns (of a table, without rows), command or declare."""
    types: tuple[int, ...] = ()
    fields: tuple[Field, ...] | None = None
    info: TableInfo | None = None
    select: Select | None = None
    inner: "Prepared | None" = None
    """The query of a cursor."""


_STATES = {
    "unauthorized": "28000", "forbidden": "42501", "not_found": "42P01", "no_data": "02000", "closed": "55000",
    "below_minimum_cohort": "55000", "conflict": "55000", "too_large": "54000", "invalid_value": "22000",
    "query_timeout": "57014", "rate_limited": "53400", "unavailable": "57P03", "storage_full": "53100",
    "damaged": "58030", "internal": "XX000",
}  # fmt: skip
_OF_WORDS = (
    ("there is no column", "42703"), ("there is no table", "42P01"), ("the text is not sql", "42601"),
    ("level must", "22023"), ("is never", "22000"), ("compare it with", "42804"), ("must be a number", "42804"),
    ("several statements", "42601"), ("nested too deeply", "54001"), ("groups, must be at most", "54000"),
    ("characters, must have at most", "54000"), ("neither in group by", "42803"), ("is not a truth value", "22P02"),
)  # fmt: skip


def as_error(error: BaseException) -> PgError:
    """The SQLSTATE of any failure; what nobody foresaw is logged by type and place, and said without details."""
    if isinstance(error, PgError):
        return error
    problem = as_problem(error) if isinstance(error, Exception) else Problem("internal", "the collector stopped")
    words = problem.detail.lower()
    state = next((found for part, found in _OF_WORDS if part in words), "0A000")
    return PgError(_STATES.get(problem.kind, state), problem.detail, position=getattr(problem, "position", 0))


class Desk:
    """Prepares and answers the statements of one session; everything here may take a while."""

    def __init__(self, tables: TablesPort, access: Access, token: str, facts: SessionFacts, database: str) -> None:
        """Whoever shows this token asks about these tables."""
        self._tables, self._access, self._token, self._facts, self._database = tables, access, token, facts, database

    def readable(self) -> dict[str, TableInfo]:
        """Tables by name, as the token allows now: one that was revoked a moment ago ends the session."""
        bearer = self._access.bearer(self._token)
        if bearer is None:
            raise PgError("28000", "the token does not hold any more", hint="Ask for a new token.", fatal=True)
        if not (bearer.may(READ) or bearer.may(READ, bearer.collection)):
            raise PgError("28000", f"a token with the scope '{bearer.scope}' may not read", fatal=True)
        return {info.name: info for info in self._tables.readable(bearer, self._database)}

    def prepare(self, statement: Statement, types: Sequence[int] = ()) -> Prepared:
        """Look at a query; PgError says what is wrong with it."""
        tables = self.readable()
        explain = statement.words[0] == "EXPLAIN"
        body = _explained(statement) if explain else statement
        tree = parsed(body.text)
        named = tables_in(tree)
        mine = [table for table in named if not is_system(table)]
        if not mine:
            if explain:
                raise PgError("0A000", "EXPLAIN is for queries over a collection's table")
            return self._prepare_catalogue(statement, tree, types, tables)
        if len(mine) < len(named):
            raise PgError("0A000", "a collection's table cannot be joined with the catalogue")
        info = _find(mine[0], tables)
        columns = {column.name: pg.OF_COLUMNS[column.type] for column in info.columns}
        known = tuple(parameter_types(tree, body, types, columns))
        if _asks_nothing(tree):
            fields = tuple(Field(column.name, columns[column.name]) for column in info.columns)
            return Prepared(statement, "columns", known, fields, info)
        select = self._tables.select(info, fill(body, [_dummy(oid) for oid in known], lists=True))
        kind = "explain" if explain else "select"
        fields = PLAN_FIELDS if explain else self._fields(select, columns)
        return Prepared(statement, kind, known, fields, info, select)

    def _prepare_catalogue(
        self, statement: Statement, tree: Any, types: Sequence[int], tables: Mapping[str, TableInfo]
    ) -> Prepared:
        if not isinstance(tree, expressions().Query):
            raise PgError("0A000", "only SELECT is answered; answers are read only")
        known = tuple(parameter_types(tree, statement, types, {}))
        fields = self._catalogue(tables).answer(tree).fields
        return Prepared(statement, "catalogue", known, fields)

    def _catalogue(self, tables: Mapping[str, TableInfo]) -> Catalogue:
        return Catalogue(list(tables.values()), self._facts)

    def fields(self, prepared: Prepared) -> tuple[Field, ...] | None:
        """The columns that a prepared statement returns under the settings of now."""
        if prepared.kind != "select" or prepared.info is None or prepared.select is None:
            return prepared.fields
        columns = {column.name: pg.OF_COLUMNS[column.type] for column in prepared.info.columns}
        return self._fields(prepared.select, columns)

    def _fields(self, select: Select, columns: Mapping[str, int]) -> tuple[Field, ...]:
        found: list[Field] = []
        for output in select.outputs:
            if isinstance(output.item, Column):
                found.append(Field(output.name, columns[output.item.name]))
                continue
            found.append(Field(output.name, pg.FLOAT8))
            found += [Field(output.name + end, pg.FLOAT8) for end in ERROR_ENDS] if self._facts.settings.errors else []
        return tuple(found)

    def check(self, prepared: Prepared) -> dict[str, TableInfo]:
        """Refuse a query that the token may not ask any more; returns the tables that it may read."""
        tables = self.readable()
        info = prepared.info
        if info is not None and (info.name not in tables or tables[info.name].collection != info.collection):
            raise PgError("42P01", f"relation {info.name!r} does not exist any more")
        return tables

    def run(self, prepared: Prepared, values: "Sequence[pg.Value | list[pg.Value]]" = ()) -> Result:
        """Answer a prepared query."""
        tables = self.check(prepared)
        if prepared.kind == "catalogue":
            found = self._catalogue(tables).answer(parsed(fill(prepared.statement, values)))
            fields = prepared.fields if prepared.fields and len(prepared.fields) == len(found.fields) else found.fields
            return Result(f"SELECT {len(found.rows)}", fields, found.rows, tuple(found.notices))
        assert prepared.info is not None
        info = tables[prepared.info.name]
        if prepared.kind == "columns":
            return Result("SELECT 0", prepared.fields)
        text = fill(prepared.statement, values, lists=True)
        if prepared.kind == "explain":
            body = _explained(Statement(text, prepared.statement.words)).text
            return Result("EXPLAIN", PLAN_FIELDS, _plan_rows(self._tables.explain(info, body)))
        fields, errors = self.fields(prepared), self._facts.settings.errors
        answer = self._tables.query(info, text, self._facts.settings.level)
        rows = [flat_row(row, errors=errors) for row in answer.rows]
        return Result(f"SELECT {len(rows)}", fields, rows, _notices(answer))


def _explained(statement: Statement) -> Statement:
    """The statement without EXPLAIN, at the same places."""
    if len(statement.words) > 1 and statement.words[1] in ("ANALYZE", "ANALYSE", "VERBOSE", "("):
        raise PgError("0A000", "EXPLAIN takes no options", hint="Write EXPLAIN SELECT ...")
    blank = " " * len("EXPLAIN")
    return Statement(blank + statement.text[len(blank) :], statement.words[1:], statement.places, statement.start)


def _find(table: Any, tables: Mapping[str, TableInfo]) -> TableInfo:
    schema, name = table.db.lower(), table.name.lower()
    found = tables.get(name) if schema in ("", "public") else None
    if found is None:
        names = ", ".join(list(tables)[:12])
        hint = f"There are: {names}." if names else "The token can read no collection with rows in this database."
        raise PgError("42P01", f'relation "{(f"{schema}." if schema else "") + name[:63]}" does not exist', hint=hint)
    return found


def _asks_nothing(tree: Any) -> bool:
    """`SELECT * ... LIMIT 0`, with which tools ask for the columns of a table."""
    exp = expressions()
    limit = tree.args.get("limit") if isinstance(tree, exp.Select) else None
    amount: Any = None if limit is None else limit.expression
    stars = [item for item in getattr(tree, "selects", []) if item.is_star and not isinstance(item, exp.Count)]
    return bool(stars) and len(tree.selects) == 1 and isinstance(amount, exp.Literal) and amount.name == "0"


def _dummy(oid: int) -> Any:
    if oid in pg.ELEMENTS:
        return [_dummy(pg.ELEMENTS[oid])]
    return _DUMMIES.get(oid, "x" if oid in (pg.VARCHAR, pg.BPCHAR, pg.NAME, pg.UNKNOWN) else 1)


_WHY = {
    "insufficient_data": "the count is lost in the noise; ask for more rows or a wider range",
    "no_data": "no row meets the public conditions",
    "below_minimum_cohort": "fewer rows meet the public conditions, or carry the measure, than the minimum cohort; "
    "ask for more rows",
}


def _notices(answer: Answer) -> tuple[str, ...]:
    """Why cells are NULL."""
    empty: dict[tuple[str, str], int] = {}
    for cell in answer.cells():
        if cell.estimate is None:
            key = cell.aggregate, cell.status
            empty[key] = empty.get(key, 0) + 1
    return tuple(
        f"{aggregate[:200]} is NULL in {count} of {len(answer.rows)} rows: {_WHY.get(status, status)}"
        for (aggregate, status), count in list(empty.items())[:20]
    )


def _plan_rows(plan: Plan) -> list[tuple[str]]:
    lines = [(f"Mechanism: {plan.method}",)]
    for row in plan.to_rows():
        shown = [f"{name}={_spelt(value)}" for name, value in row.items() if name not in ("mechanism", "aggregate")]
        lines.append((f"  -> {row['aggregate']}  ({' '.join(shown)})",))
    return lines


def _spelt(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
