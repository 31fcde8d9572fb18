"""Statements that return rows: parsed, routed to the catalogue or to a collection's table, described, and answered.

A client prepares a statement, may ask for its columns, and then runs it any number of times with other parameters.
The text is parsed in `Desk.prepare` alone; `Desk.run` puts values into a copy of the tree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tacit.collector.collections.access import READ, Access
from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog import Catalogue
from tacit.collector.pg.catalog_functions import SessionFacts
from tacit.collector.pg.catalog_rewrite import is_system, tables_in
from tacit.collector.pg.copying import CopyFormat
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.parameters import bind, example_values, parameter_types
from tacit.collector.pg.text import Statement
from tacit.collector.pg.values import Field
from tacit.collector.tables.info import TableInfo
from tacit.collector.tables.tables import Tables
from tacit.hosting.problems import Problem, as_problem
from tacit.sql.engine.aggregate import ERROR_ENDS, flat_row
from tacit.sql.engine.plan import QueryPlan
from tacit.sql.engine.run import QueryAnswer
from tacit.sql.parse.parsing import ParsedQuery, parse_text
from tacit.sql.parse.syntax import Aggregate, Select, type_of

PLAN_FIELDS = (Field("QUERY PLAN"),)
_OPTIONS = ("ANALYZE", "ANALYSE", "VERBOSE", "(")


@dataclass(frozen=True)
class StatementResult:
    """What a statement returns: rows under columns, or nothing (None) but its tag."""

    tag: str
    fields: tuple[Field, ...] | None = None
    rows: Sequence[tuple[Any, ...]] = ()
    notices: tuple[str, ...] = ()
    copy: CopyFormat | None = None
    """How the rows are written where COPY asked for them."""


@dataclass(eq=False)
class Prepared:
    """A statement that was looked at: where it goes, its parameters, and the columns that it will return."""

    statement: Statement
    kind: str
    """catalogue, select, explain, columns (of a table, without rows), command, declare or copy."""
    types: tuple[int, ...] = ()
    fields: tuple[Field, ...] | None = None
    info: TableInfo | None = None
    parsed: ParsedQuery | None = None
    """The tree of a query, in which parameters are still to be replaced by values."""
    select: Select | None = None
    """What is asked of a table; with parameters, examples of their types stand in their places."""
    inner: "Prepared | None" = None
    """The query of a cursor or of a COPY."""
    copy: CopyFormat | None = None


_STATES = {
    "unauthorized": "28000", "forbidden": "42501", "not_found": "42P01", "no_data": "02000", "closed": "55000",
    "below_minimum_cohort": "55000", "conflict": "55000", "too_large": "54000", "invalid_value": "22000",
    "query_timeout": "57014", "rate_limited": "53400", "unavailable": "57P03", "storage_full": "53100",
    "damaged": "58030", "internal": "XX000", "invalid_spec": "22023", "malformed": "XX001",
}  # fmt: skip
"""The SQLSTATE of every kind of problem that does not come with its own, as those of queries do."""


def as_error(error: BaseException) -> PgError:
    """The SQLSTATE of any failure; what nobody foresaw is logged by type and place, and said without details."""
    if isinstance(error, PgError):
        return error
    problem = as_problem(error) if isinstance(error, Exception) else Problem("internal", "the collector stopped")
    state = problem.code or _STATES.get(problem.kind, "0A000")
    return PgError(state, problem.detail, position=problem.position)


class Desk:
    """Prepares and answers the statements of one session; everything here may take a while."""

    def __init__(self, tables: Tables, access: Access, token: str, facts: SessionFacts, database: str) -> None:
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
        """Parse a query, once and for all; PgError or InvalidQuery says what is wrong with it."""
        _check_explain(statement)
        tables, parsed = self.readable(), parse_text(statement.text)
        named = tables_in(parsed.tree)
        mine = [table for table in named if not is_system(table)]
        if not mine:
            if parsed.explain:
                raise PgError("0A000", "EXPLAIN is for queries over a collection's table")
            return self._prepare_catalogue(statement, parsed, types, tables)
        if len(mine) < len(named):
            raise PgError("0A000", "a collection's table cannot be joined with the catalogue")
        info = _find(mine[0], tables)
        columns = {column.name: pg.OF_COLUMNS[column.type] for column in info.columns}
        known = parameter_types(parsed, types, columns)
        if _asks_nothing(parsed.tree):
            fields = tuple(Field(column.name, columns[column.name]) for column in info.columns)
            return Prepared(statement, "columns", known, fields, info)
        # Columns do not depend on the values of parameters, so any of the right type will do to find them out.
        select = self._tables.select(info, bind(parsed, example_values(parsed, known), lists=True))
        kind = "explain" if parsed.explain else "select"
        kinds = {column.name: column.type for column in info.columns}
        fields = PLAN_FIELDS if parsed.explain else self._fields(select, kinds)
        return Prepared(statement, kind, known, fields, info, parsed, select)

    def _prepare_catalogue(
        self, statement: Statement, parsed: ParsedQuery, types: Sequence[int], tables: Mapping[str, TableInfo]
    ) -> Prepared:
        if not isinstance(parsed.tree, exp.Query):
            raise PgError("0A000", "only SELECT is answered; answers are read only")
        known = parameter_types(parsed, types, {})
        fields = self._catalogue(tables).answer(parsed.tree).fields
        return Prepared(statement, "catalogue", known, fields, parsed=parsed)

    def _catalogue(self, tables: Mapping[str, TableInfo]) -> Catalogue:
        return Catalogue(list(tables.values()), self._facts)

    def fields(self, prepared: Prepared) -> tuple[Field, ...] | None:
        """The columns that a prepared statement returns under the settings of now."""
        if prepared.kind != "select" or prepared.info is None or prepared.select is None:
            return prepared.fields
        return self._fields(prepared.select, {column.name: column.type for column in prepared.info.columns})

    def _fields(self, select: Select, columns: Mapping[str, str]) -> tuple[Field, ...]:
        found: list[Field] = []
        for output in select.outputs:
            if not isinstance(output.item, Aggregate):
                found.append(Field(output.name, pg.OF_TYPES.get(type_of(output.item, columns), pg.TEXT)))
                continue
            found.append(Field(output.name, pg.OF_TYPES.get(output.type, pg.FLOAT8)))
            found += [Field(output.name + end, pg.FLOAT8) for end in ERROR_ENDS] if self._facts.settings.errors else []
        return tuple(found)

    def check(self, prepared: Prepared) -> dict[str, TableInfo]:
        """Refuse a query that the token may not ask any more; returns the tables that it may read."""
        tables = self.readable()
        info = prepared.info
        if info is not None and (info.name not in tables or tables[info.name].collection != info.collection):
            raise PgError("42P01", f"relation {info.name!r} does not exist any more")
        return tables

    def run(self, prepared: Prepared, values: "Sequence[pg.Value | list[pg.Value]]" = ()) -> StatementResult:
        """Answer a prepared query, whose parameters have these values."""
        tables = self.check(prepared)
        if prepared.kind == "columns":
            return StatementResult("SELECT 0", prepared.fields)
        assert prepared.parsed is not None
        if prepared.kind == "catalogue":
            found = self._catalogue(tables).answer(bind(prepared.parsed, values).tree)
            fields = prepared.fields if prepared.fields and len(prepared.fields) == len(found.fields) else found.fields
            return StatementResult(f"SELECT {len(found.rows)}", fields, found.rows, tuple(found.notices))
        assert prepared.info is not None and prepared.select is not None
        info, select = tables[prepared.info.name], prepared.select
        if prepared.types:
            select = self._tables.select(info, bind(prepared.parsed, values, lists=True))
        if prepared.kind == "explain":
            return StatementResult("EXPLAIN", PLAN_FIELDS, _plan_rows(self._tables.explain(info, select)))
        fields, errors = self.fields(prepared), self._facts.settings.errors
        answer = self._tables.query(info, select, self._facts.settings.level)
        rows = [flat_row(row, errors=errors) for row in answer.rows]
        return StatementResult(f"SELECT {len(rows)}", fields, rows, _notices(answer))


def _check_explain(statement: Statement) -> None:
    if statement.words[:1] == ("EXPLAIN",) and statement.words[1:2] and statement.words[1] in _OPTIONS:
        raise PgError("0A000", "EXPLAIN takes no options", hint="Write EXPLAIN SELECT ...")


def _find(table: Any, tables: Mapping[str, TableInfo]) -> TableInfo:
    schema, name = table.db.lower(), table.name.lower()
    found = tables.get(name) if schema in ("", "public") else None
    if found is None:
        names = ", ".join(list(tables)[:12])
        hint = f"There are: {names}." if names else "The token can read no collection with rows in this database."
        raise PgError("42P01", f'relation "{(f"{schema}." if schema else "") + name[:63]}" does not exist', hint=hint)
    return found


def _asks_nothing(tree: Any) -> bool:
    """`SELECT * ... LIMIT 0` or `WHERE 1 = 0`, with which tools ask for the columns of a table."""
    if not isinstance(tree, exp.Select) or len(tree.selects) != 1 or not tree.selects[0].is_star:
        return False
    limit, where = tree.args.get("limit"), tree.args.get("where")
    amount = None if limit is None else limit.args.get("count") or limit.expression
    if isinstance(amount, exp.Literal) and amount.name == "0":
        return True
    return where is not None and _is_false(where.this.unnest())


def _is_false(condition: Any) -> bool:
    """FALSE, or two different numbers that are compared, as tools write it."""
    if isinstance(condition, exp.EQ):
        sides = condition.this.unnest(), condition.expression.unnest()
        numbers = all(isinstance(side, exp.Literal) and not side.is_string for side in sides)
        return numbers and sides[0].name != sides[1].name
    return isinstance(condition, exp.Boolean) and not condition.this


_WHY = {
    "insufficient_data": "the count is lost in the noise; ask for more rows or a wider range",
    "no_data": "no row meets the public conditions",
    "below_minimum_cohort": "fewer rows meet the public conditions, or carry the measure, than the minimum cohort; "
    "ask for more rows",
}


def _notices(answer: QueryAnswer) -> tuple[str, ...]:
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


def _plan_rows(plan: QueryPlan) -> list[tuple[str]]:
    lines = [(f"Mechanism: {plan.method}",)]
    for row in plan.to_rows():
        shown = [f"{name}={_spelt(value)}" for name, value in row.items() if name not in ("mechanism", "aggregate")]
        lines.append((f"  -> {row['aggregate']}  ({' '.join(shown)})",))
    return lines


def _spelt(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
