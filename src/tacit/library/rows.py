"""`tacit.table`: SQL over rows whose private columns are known as noisy reports alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit.core.extras import load
from tacit.device.arguments import explained
from tacit.device.domains.domain import Domain
from tacit.device.numbers.budget import Declared
from tacit.device.numbers.coins import Coins, SystemCoins
from tacit.errors import InvalidSpec
from tacit.library.columns import Column, columns_of
from tacit.library.domains import Scope, name_scope, number_scope
from tacit.library.finding import Ends, Finding
from tacit.library.inquiry import RESPONDENTS, Inquiry, checked_epsilon, respondents
from tacit.tasks.rows import ANALYTICS
from tacit.tasks.task import JointQuestions, PublicRows

if TYPE_CHECKING:
    # The engine takes long to load, and only this question needs it.
    from tacit.sql.connection import Connection
    from tacit.sql.engine.run import QueryAnswer

SQL = "SELECT COUNT(*) FROM t"
TABLE = "t"
"""What the table is called in SQL."""
ASK = 'ask these reports for more: .query("SELECT COUNT(*) FROM t WHERE …"), where t is the table'


@dataclass(frozen=True, eq=False, repr=False)
class SqlFinding(Finding):
    """The answer to a SELECT; `query` asks the same reports for more, and `answers` is the connection."""

    def query(self, sql: str) -> "SqlFinding":
        """Return the answer to another SELECT over the table t."""
        return _answered(self.inquiry, self.tally, cast("Connection", self.answers), sql)

    def collect(self, reports: Any, rows: Any = None) -> Finding:
        """Answer the same query from reports that devices made, and the public columns of their rows."""
        return cast("RowsInquiry", self.inquiry).collect(reports, rows)


@dataclass(frozen=True, eq=False, repr=False)
class RowsInquiry(Inquiry):
    """Private columns beside public ones: reports stay with their rows, and SQL is asked afterwards."""

    sql: str = SQL

    def collect(self, reports: Any, rows: Any = None) -> Finding:
        """Answer from reports and the public columns of their rows, in the same order."""
        self._check_declared("collect")
        counted = self.read(reports)
        # A table without public columns still has as many rows as reports.
        public = {"row": list(range(len(counted)))} if rows is None else rows
        return self._opened(counted, arrow_of(public))

    def simulate_rows(self, columns: tuple[Column, ...], public: Any, coins: Coins | None) -> Finding:
        """Perturb private columns that are all here, and answer beside the public ones."""
        from tacit.sql.design.levels import answers_of

        values = np.stack([self._indices(*pair) for pair in zip(self.scopes, columns, strict=True)], axis=1)
        source = SystemCoins() if coins is None else coins
        reports = self.mechanism.privatize(answers_of(self._design(), values.astype(np.int64)), source)
        return self._opened(reports, public)

    def _design(self) -> Any:
        from tacit.sql.documents import design_of

        return design_of(self.mechanism, self._schema())

    def _schema(self) -> Any:
        from tacit.sql.documents import table_schema

        domains = [scope.domain for scope in self.scopes]
        return table_schema([str(getattr(domain, "name", "")) for domain in domains], domains, TABLE)

    def _opened(self, reports: Any, public: Any) -> Finding:
        from tacit.sql.open import open_table

        connection = open_table(self._schema(), public, self._design(), reports)
        return _answered(self, reports, connection, self.sql)


def _answered(inquiry: Inquiry, reports: Any, connection: "Connection", sql: str) -> SqlFinding:
    """One row per aggregate of every group; intervals of another level are asked for again."""
    answer = connection.query(sql)
    cells = answer.cells()
    if not cells:
        raise InvalidSpec("table: the query has no estimates; use .answers.explain(sql) for plans")

    def ends(level: float) -> Ends:
        again = cells if level == connection.level else connection.with_level(level).query(sql).cells()
        return np.array([_float(c.low) for c in again]), np.array([_float(c.high) for c in again])

    value = np.array([_float(cell.estimate) for cell in cells])
    names = (*answer.groups, "aggregate")
    lost = sorted({cell.status for cell in cells} - {"estimate", "exact"})
    notes = tuple(f"no estimate: {status.replace('_', ' ')}" for status in lost) + ((ASK,) if sql == SQL else ())
    labels = _labels(answer)
    return SqlFinding(inquiry, reports, names, labels, value, ends, "estimate", answers=connection, notes=notes)


def _float(number: float | None) -> float:
    return float("nan") if number is None else float(number)


def _labels(answer: "QueryAnswer") -> list[Any]:
    """The group values and the name of every aggregate; the name alone without GROUP BY."""
    rows = answer.to_rows()
    if not answer.groups:
        return [row["aggregate"] for row in rows]
    return [(*row["group"].values(), row["aggregate"]) for row in rows]


def arrow_of(rows: Any) -> Any:
    """Public columns as an Arrow table."""
    arrow = load("pyarrow")
    if isinstance(rows, arrow.Table):
        return rows
    if hasattr(rows, "to_arrow"):
        return rows.to_arrow()
    if hasattr(rows, "to_numpy"):
        return arrow.Table.from_pandas(rows, preserve_index=False)
    return arrow.table(dict(cast("Any", rows))) if isinstance(rows, Mapping) else arrow.Table.from_pylist(list(rows))


def _scope(name: str, declared: Any, column: Column | None) -> Scope:
    """A private column: (low, high) for numbers, a list of labels, a domain, or None to read it off the values."""
    if isinstance(declared, tuple) and len(cast("tuple[Any, ...]", declared)) == 2 and not isinstance(declared, Domain):
        low, high = cast("tuple[Any, Any]", declared)
        if not isinstance(low, str):
            return number_scope("table", name, None, column, low=low, high=high, bins=None)
    # Undeclared whole numbers are ordered, as ages and years are; codes can be declared as labels.
    numbers = column is not None and all(type(item) is int for item in column.items) and declared is None
    if numbers:
        return number_scope("table", name, None, column, low=None, high=None, bins=None)
    return name_scope("table", name, declared, column, None, ordered=False)


def _private(private: Any, columns: Mapping[str, Column] | None) -> dict[str, Scope]:
    named: Any = [private] if isinstance(private, str) else private
    declared = cast("dict[str, Any]", named if isinstance(named, Mapping) else dict.fromkeys(named or ()))
    if not declared:
        raise InvalidSpec("table: private is missing; say which columns are: private={'age': (0, 99), 'state': [...]}")
    known = list(declared) if columns is None else list(columns)
    wrong = next((name for name in declared if name not in known), None)
    if wrong is not None:
        raise InvalidSpec(f"table: there is no column '{str(wrong)[:40]}', must be one of {', '.join(known)}")
    return {name: _scope(name, given, None if columns is None else columns[name]) for name, given in declared.items()}


_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "text", "date": "date"}


def _typed(name: str, column: Column) -> tuple[str, str]:
    """A public column with its type in documents, by its values."""
    kinds = {type(item).__name__ for item in column.items if item is not None}
    # Whole numbers arrive as int from a column of floats, see `columns`.
    kind = "float" if kinds == {"int", "float"} else next(iter(kinds)) if len(kinds) == 1 else "str"
    return name, _TYPES.get(kind, "text")


@explained
def ask_table(
    columns: Mapping[str, Column] | None = None, *, epsilon: Declared | None = None, n: int = RESPONDENTS,
    private: Any = None, public: Mapping[str, str] | None = None, sql: str = SQL, queries: Sequence[str] = (),
) -> Inquiry:  # fmt: skip
    """Plan private columns beside public ones (with their types: integer, number, text, boolean or date)."""
    scopes = _private(private, columns)
    people = len(next(iter(columns.values())).items) if columns else respondents("table", n, None)
    typed = tuple((public or {}).items()) if columns is None else tuple(
        _typed(name, column) for name, column in columns.items() if name not in scopes
    )  # fmt: skip
    asked = JointQuestions(tuple(scopes), tuple(scope.domain for scope in scopes.values()))
    rows = PublicRows(TABLE, typed, (*queries, *((sql,) if sql != SQL else ())))
    policy, mechanism = ANALYTICS.plan(asked, rows, checked_epsilon("table", epsilon), max(1, people))
    predict = partial(ANALYTICS.forecast, asked)
    # Rows are answered query by query; there is no tally that a task could answer from.
    return RowsInquiry(
        "table", mechanism, tuple(scopes.values()), max(1, people), _no_tally, predict, policy=policy, sql=sql
    )


def _no_tally(inquiry: Inquiry, tally: Any) -> Finding:
    del tally
    raise InvalidSpec(f"{inquiry.task}: reports stay with their rows; use collect(reports, rows)")


@explained
def table(
    rows: Any, epsilon: Declared | None = None, *, private: Any = None, sql: str = SQL, queries: Sequence[str] = (),
    coins: Coins | None = None,
) -> SqlFinding:  # fmt: skip
    """Answer SQL over rows of which some columns are private, each row's perturbed at `epsilon`; the others are public.

    `private` has the domain of every private column: (low, high) for whole numbers, a list of labels, or a domain; a
    list of names reads domains off the values, which is a simulation. The table is called t; it is planned for `sql`
    and `queries`, and `found.query(sql)` asks more. Needs the extra `analytics`.

    >>> people = {"age": [20, 30, 40, 50] * 5_000, "os": ["ios", "win"] * 10_000}
    >>> found = table(people, epsilon=2, private={"age": (0, 99)}, sql="SELECT COUNT(*) FROM t WHERE age < 35")
    >>> bool(abs(found.value[0] - 10_000) < 3_000)
    True
    """
    columns = columns_of("table", rows)
    inquiry = cast("RowsInquiry", ask_table(columns, epsilon=epsilon, private=private, sql=sql, queries=queries))
    names = [str(getattr(scope.domain, "name", "")) for scope in inquiry.scopes]
    public = arrow_of(rows).drop_columns(names)
    return cast("SqlFinding", inquiry.simulate_rows(tuple(columns[name] for name in names), public, coins))
