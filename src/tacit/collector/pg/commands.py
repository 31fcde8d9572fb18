"""Statements that return at once: settings, transactions, cursors, and what is refused.

Nothing is ever changed, so transactions do nothing; they are accepted, and followed as clients expect, since almost
every library opens one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_functions import SessionFacts
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.statement import Prepared, StatementResult
from tacit.collector.pg.text import Statement
from tacit.collector.pg.values import Field

QUERIES = {"SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "("}
_WRITES = {
    "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE", "COMMENT", "LOCK",
    "VACUUM", "ANALYZE", "ANALYSE", "REINDEX", "CLUSTER", "REFRESH", "IMPORT", "REASSIGN", "SECURITY", "CALL", "DO",
}  # fmt: skip
_INSTEAD = {
    "PREPARE": "Send the query with parameters; libraries prepare it themselves.",
    "EXECUTE": "Send the query itself.",
    "NOTIFY": "There are no notifications.",
}
_CURSORS = {"DECLARE", "FETCH", "MOVE"}
_AFTER_FAILURE = {"ROLLBACK", "ABORT", "COMMIT", "END"}
_IDLE = {"UNLISTEN", "LISTEN", "CHECKPOINT", "LOAD"}
"""Commands that clients send and that have nothing to do here."""


@dataclass(eq=False)
class Portal:
    """A statement with its parameters, and the rows that are left of its result."""

    prepared: Prepared
    values: "Sequence[pg.Value | list[pg.Value]]" = ()
    formats: tuple[int, ...] = ()
    result: StatementResult | None = None
    at: int = 0
    hold: bool = False

    @property
    def cells(self) -> int:
        """How many values its result holds."""
        if self.result is None or not self.result.fields:
            return 0
        return len(self.result.fields) * len(self.result.rows)

    def take(self, limit: int) -> tuple[Sequence[tuple[Any, ...]], bool]:
        """The next rows, and whether more are left."""
        rows = self.result.rows if self.result is not None else ()
        end = len(rows) if limit <= 0 else min(len(rows), self.at + limit)
        found, self.at = rows[self.at : end], end
        return found, end < len(rows)


@dataclass(eq=False)
class SessionState:
    """What a session remembers between statements."""

    facts: SessionFacts
    transaction: str = "I"
    """I outside, T inside, E inside one that failed."""
    statements: dict[str, Prepared] = field(default_factory=dict[str, Prepared])
    portals: dict[str, Portal] = field(default_factory=dict[str, Portal])
    local: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """Settings of the transaction alone, with the values that they had before."""

    def end_transaction(self) -> None:
        """Forget what belongs to the transaction."""
        self.transaction = "I"
        self.portals = {name: portal for name, portal in self.portals.items() if portal.hold}
        for name, value in self.local.items():
            self.facts.set(name, value)
        self.local = {}

    def fail(self) -> None:
        """Say that a statement was refused."""
        self.transaction = "E" if self.transaction != "I" else "I"


def is_query(statement: Statement) -> bool:
    """Whether a statement returns rows from the catalogue or from a table."""
    return statement.words[0] in QUERIES


def check_transaction(state: SessionState, statement: Statement) -> None:
    """After a failure inside a transaction, only its end is understood, as clients rely on."""
    if state.transaction == "E" and statement.words[0] not in _AFTER_FAILURE:
        raise PgError("25P02", "current transaction is aborted, commands ignored until end of transaction block")


def check_command(statement: Statement) -> None:
    """Refuse unknown commands; the error says which statement to write instead."""
    word = statement.words[0]
    if word in _WRITES:
        raise PgError("25006", f"cannot execute {word}: answers are read only",
                      hint="Write SELECT aggregates FROM a table, such as SELECT COUNT(*) FROM t.")  # fmt: skip
    if word in _INSTEAD:
        raise PgError("0A000", f"{word} is not supported", hint=_INSTEAD[word])
    if word not in _COMMANDS and word not in _IDLE and word not in _CURSORS:
        raise PgError("42601", f"syntax error at or near {word[:40]!r}",
                      hint="A query begins with SELECT or EXPLAIN SELECT.")  # fmt: skip


def run_command(state: SessionState, statement: Statement) -> StatementResult:
    """Run a statement that is not a query."""
    check_command(statement)
    word = statement.words[0]
    if word in _IDLE:
        return StatementResult(word)
    return _COMMANDS[word](state, statement)


def _begin(state: SessionState, statement: Statement) -> StatementResult:
    already = state.transaction == "T"
    state.transaction = "T"
    tag = "START TRANSACTION" if statement.words[0] == "START" else "BEGIN"
    return StatementResult(tag, notices=("there is already a transaction in progress",) if already else ())


def _commit(state: SessionState, statement: Statement) -> StatementResult:
    del statement
    failed, outside = state.transaction == "E", state.transaction == "I"
    state.end_transaction()
    notices = ("there is no transaction in progress",) if outside else ()
    return StatementResult("ROLLBACK" if failed else "COMMIT", notices=notices)


def _rollback(state: SessionState, statement: Statement) -> StatementResult:
    if "TO" in statement.words:
        _inside(state, "ROLLBACK TO SAVEPOINT")
        state.transaction = "T"
        return StatementResult("ROLLBACK")
    outside = state.transaction == "I"
    state.end_transaction()
    return StatementResult("ROLLBACK", notices=("there is no transaction in progress",) if outside else ())


def _inside(state: SessionState, what: str) -> None:
    if state.transaction == "I":
        raise PgError("25P01", f"{what} can only be used in transaction blocks")


def _savepoint(state: SessionState, statement: Statement) -> StatementResult:
    _inside(state, statement.words[0])
    return StatementResult(statement.words[0])


_SET = re.compile(r"(?is)set\s+(?:(session|local)\s+)?(.*)")
_ASSIGN = re.compile(r'(?is)"?([\w.$]+)"?\s*(?:=|\bto\b)\s*(.+)')
_OTHER = (
    (re.compile(r"(?is)time\s+zone\s+(.+)"), "TimeZone"),
    (re.compile(r"(?is)names\s+(.+)"), "client_encoding"),
)
_HARMLESS = re.compile(r"(?is)(transaction|characteristics\s+as\s+transaction|constraints)\b.*")
_ROLES = re.compile(r"(?is)(?:session\s+)?(role|authorization)\s+(.+)")


def _set(state: SessionState, statement: Statement) -> StatementResult:
    scope, rest = (_SET.fullmatch(statement.text) or _refuse_set()).groups()
    if _HARMLESS.fullmatch(rest):
        return StatementResult("SET")
    if found := _ROLES.fullmatch(rest):
        if _unquoted(found[2]).lower() not in ("none", "default"):
            raise PgError("42501", "there are no roles here; what may be read depends on the token")
        return StatementResult("SET")
    assigned = next(((name, found[1]) for pattern, name in _OTHER if (found := pattern.fullmatch(rest))), None)
    name, value = assigned or (_ASSIGN.fullmatch(rest) or _refuse_set()).groups()
    before = state.facts.settings.find(name)
    spelt = value.strip().lower()
    state.facts.set(name, None if spelt in ("default", "local") else _unquoted(value))
    if (scope or "").lower() == "local" and state.transaction == "T":
        state.local.setdefault(name, before)
    return StatementResult("SET")


def _refuse_set() -> Any:
    raise PgError("42601", "syntax error in SET", hint="Write SET tacit.level = 0.9, or SET tacit.errors = on.")


def _unquoted(value: str) -> str:
    """The value of a setting; a list stays a list.

    >>> _unquoted("'on'"), _unquoted("ISO, 'MDY'"), _unquoted("'it''s'")
    ('on', 'ISO, MDY', "it's")
    """
    items = re.findall(r"'(?:[^']|'')*'|\"[^\"]*\"|[^,\s]+", value)
    plain = [item[1:-1].replace("''", "'") if item[0] in "'\"" else item for item in items]
    return ", ".join(plain) if "," in value else " ".join(plain)


def _reset(state: SessionState, statement: Statement) -> StatementResult:
    name = statement.text.split(None, 1)[1].strip() if len(statement.words) > 1 else ""
    if name.lower() == "all":
        state.facts.reset_all()
    elif not re.fullmatch(r"(?is)(session\s+authorization|role)", name):
        state.facts.set({"time zone": "TimeZone"}.get(" ".join(name.lower().split()), name), None)
    return StatementResult("RESET")


def show_fields(statement: Statement) -> tuple[Field, ...]:
    """The columns of SHOW."""
    name = _shown(statement)
    return (Field("name"), Field("setting"), Field("description")) if name.lower() == "all" else (Field(name),)


def _shown(statement: Statement) -> str:
    name = " ".join(statement.text.split()[1:]).strip('" ')
    several = {"transaction isolation level": "transaction_isolation", "time zone": "TimeZone"}
    return several.get(name.lower(), name)


def _show(state: SessionState, statement: Statement) -> StatementResult:
    name, settings = _shown(statement), state.facts.settings
    if name.lower() == "all":
        rows: list[tuple[Any, ...]] = [(key, value, "") for key, value in sorted(settings.all().items())]
        return StatementResult("SHOW", show_fields(statement), rows)
    return StatementResult("SHOW", show_fields(statement), [(settings.get(name),)])


def _discard(state: SessionState, statement: Statement) -> StatementResult:
    what = statement.words[1] if len(statement.words) > 1 else ""
    if what == "ALL":
        if state.transaction != "I":
            raise PgError("25001", "DISCARD ALL cannot run inside a transaction block")
        state.statements.clear()
        state.portals.clear()
        state.facts.reset_all()
    return StatementResult(f"DISCARD {what}".strip())


def _deallocate(state: SessionState, statement: Statement) -> StatementResult:
    words = statement.text.split()[1:]
    words = words[1:] if len(words) > 1 and words[0].upper() == "PREPARE" else words
    name = words[0] if words else ""
    if name.upper() == "ALL":
        state.statements = {key: kept for key, kept in state.statements.items() if not key}
        return StatementResult("DEALLOCATE ALL")
    if state.statements.pop(_identifier(name), None) is None:
        raise PgError("26000", f"prepared statement {name[:63]!r} does not exist")
    return StatementResult("DEALLOCATE")


def _identifier(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _close(state: SessionState, statement: Statement) -> StatementResult:
    name = " ".join(statement.text.split()[1:])
    if name.upper() == "ALL":
        state.portals.clear()
        return StatementResult("CLOSE CURSOR ALL")
    if state.portals.pop(_identifier(name), None) is None:
        raise PgError("34000", f"cursor {name[:63]!r} does not exist")
    return StatementResult("CLOSE CURSOR")


_NAME = r'("(?:[^"]|"")+"|\w+)'
_DECLARE = re.compile(
    rf"(?is)declare\s+{_NAME}\s+((?:(?:binary|asensitive|insensitive|no\s+scroll|scroll)\s+)*)"
    r"cursor\s+(?:(with|without)\s+hold\s+)?for\s+(.*)"
)
_FETCH = re.compile(
    rf"(?is)(fetch|move)\s+(?:(next|forward\s+all|forward\s+[1-9]\d*|forward|all|[1-9]\d*)\s+)?(?:(?:from|in)\s+)?{_NAME}\s*"
)


def declared(statement: Statement) -> tuple[str, bool, int]:
    """The name of a cursor, whether it outlives its transaction, and where its query begins."""
    found = _DECLARE.fullmatch(statement.text)
    if found is None:
        raise PgError("42601", "syntax error in DECLARE", hint="Write DECLARE name CURSOR FOR SELECT ...")
    return _identifier(found[1]), (found[3] or "").lower() == "with", found.start(4)


def fetched(statement: Statement) -> tuple[str, int]:
    """The name of a cursor and how many rows are asked of it; 0 for all.

    >>> fetched(Statement("FETCH FORWARD 2 FROM c", ())), fetched(Statement("FETCH ALL c", ()))
    (('c', 2), ('c', 0))
    """
    found = _FETCH.fullmatch(statement.text)
    if found is None:
        raise PgError("0A000", "a cursor goes forward alone", hint="Write FETCH FORWARD 100 FROM name.")
    words = (found[2] or "next").lower().split()
    count = {"next": 1, "forward": 1, "all": 0}.get(words[-1])
    return _identifier(found[3]), int(words[-1][:9]) if count is None else count


_COMMANDS: dict[str, Callable[[SessionState, Statement], StatementResult]] = {
    "BEGIN": _begin, "START": _begin, "COMMIT": _commit, "END": _commit, "ROLLBACK": _rollback, "ABORT": _rollback,
    "SAVEPOINT": _savepoint, "RELEASE": _savepoint, "SET": _set, "RESET": _reset, "SHOW": _show, "DISCARD": _discard,
    "DEALLOCATE": _deallocate, "CLOSE": _close,
}  # fmt: skip
