"""Rows: public columns that come with every report of a collection that says so, for SQL over both.

The public columns are not protected. A report that comes with a row stays linked to it, so a document states its
columns, clients show them, and such a collection is never shuffled. Standard library only: clients read it too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Self, cast

from tacit.device.domain import is_text
from tacit.errors import InvalidSpec, InvalidValue

MAX_COLUMNS = 256
MAX_TEXT = 256
MAX_NUMBER = 10**12
"""The largest number in a row; the fourth powers that a standard deviation needs then stay far from overflow."""

RESERVED = ("report", "member")
"""What columns are not called, for uploads have columns of these names beside the public ones."""

KEYWORDS = tuple(
    "all analyse analyze and any array as asc asymmetric authorization between binary both by case cast check collate "
    "collation column concurrently constraint create cross current_catalog current_date current_role current_schema "
    "current_time current_timestamp current_user default deferrable desc distinct do else end except exists false "
    "fetch for foreign freeze from full grant group having ilike in initially inner intersect into is isnull join "
    "lateral leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer "
    "overlaps placing primary references returning right select session_user similar some symmetric system_user "
    "table tablesample then to trailing true union unique user using variadic verbose when where window with".split()
)
"""What neither a table nor a column is called: a query would have to quote it, or would mean something else."""

SYSTEM = "pg_"
"""What neither begins with: in PostgreSQL's protocol such names are the catalogue's."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def _is_number(value: Any) -> bool:
    # Neither NaN nor an infinity is below any number.
    return type(value) in (int, float) and abs(value) <= MAX_NUMBER


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and len(value) == 10 == value.rfind("-") + 3 and bool(date.fromisoformat(value))
    except ValueError:
        return False


_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "integer": (lambda value: type(value) is int and abs(value) <= MAX_NUMBER, f"a whole number up to {MAX_NUMBER}"),
    "number": (_is_number, f"a finite number up to {MAX_NUMBER}"),
    "text": (lambda value: is_text(value) and len(value) <= MAX_TEXT, f"text of up to {MAX_TEXT} characters"),
    "boolean": (lambda value: type(value) is bool, "true or false"),
    "date": (_is_date, "a date such as 2030-12-31"),
}
"""What a column may hold, beside null: how it is recognised, and what it must be in words."""

TYPES = tuple(_TYPES)


@dataclass(frozen=True)
class Column:
    """A public column."""

    name: str
    type: str

    def to_json(self) -> dict[str, str]:
        """The wire form."""
        return {"name": self.name, "type": self.type}


@dataclass(frozen=True)
class Rows:
    """What comes with every report: the name of the table in SQL and its public columns."""

    table: str
    columns: tuple[Column, ...]

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read the rows of a document."""
        given = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if given.keys() != {"table", "columns"} or not isinstance(given["columns"], list):
            raise InvalidSpec("document.rows must be null, or an object with table and a list of columns")
        if not _is_name(given["table"]):
            raise InvalidSpec("document.rows.table must be a lower-case word of up to 40 letters, digits, underscores")
        check_word(given["table"], "document.rows.table")
        items = cast("list[Any]", given["columns"])
        if not 1 <= len(items) <= MAX_COLUMNS:
            raise InvalidSpec(f"document.rows.columns must be 1 to {MAX_COLUMNS} public columns")
        columns = tuple(_column(item, i) for i, item in enumerate(items))
        if len({column.name for column in columns}) < len(columns):
            raise InvalidSpec("document.rows.columns: names must differ from each other")
        for column in columns:
            if column.name in RESERVED:
                raise InvalidSpec(f"document.rows.columns: a public column must not be called '{column.name}'")
            check_word(column.name, "document.rows.columns")
        return cls(given["table"], columns)

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        return {"table": self.table, "columns": [column.to_json() for column in self.columns]}

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}

    def check_given(self, row: Any) -> Mapping[str, Any]:
        """A row as it was given, once its columns are known to be the collection's and its values to fit."""
        given = cast("Mapping[str, Any]", row) if isinstance(row, Mapping) else None
        if given is None:
            raise InvalidValue("row must be an object with the public columns of the collection")
        for name, value in given.items():
            kind = self._kinds.get(name)
            if kind is None:
                known = ", ".join(column.name for column in self.columns[:12])
                raise InvalidValue(f"row: there is a column that the collection does not have; it has {known}")
            fits, rule = _TYPES[kind]
            if value is not None and not fits(value):
                raise InvalidValue(f"row: {name} must be {rule}, or null")
        return given

    def check_row(self, row: Any) -> dict[str, Any]:
        """A row with all its columns, in their order; one that is left out is null."""
        given = self.check_given(row)
        return {column.name: given.get(column.name) for column in self.columns}


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def check_word(name: str, where: str) -> None:
    """Refuse the name of a table or column that could not be written in SQL as it is."""
    if name in KEYWORDS or name.startswith(SYSTEM):
        raise InvalidSpec(f"{where}: '{name}' means something in SQL; choose another name")


def _column(value: Any, i: int) -> Column:
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if given.keys() != {"name", "type"} or not _is_name(given["name"]):
        raise InvalidSpec(f"document.rows.columns[{i}] must have a name, a lower-case word, and a type")
    if given["type"] not in TYPES:
        raise InvalidSpec(f"document.rows.columns[{i}].type must be one of {', '.join(TYPES)}")
    return Column(given["name"], given["type"])
