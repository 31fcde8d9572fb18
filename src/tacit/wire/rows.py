"""Public columns beside reports: their declaration in a document, and the validation of rows.

The public columns are not protected. A report that comes with a row stays linked to it, so a document states its
columns, clients show them, and such a collection is never shuffled. Standard library only: clients read it too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Self, cast

from tacit.device.domains.domain import is_text
from tacit.errors import InvalidSpec, InvalidValue

# Limits of a declaration; texts are counted in characters.
MAX_COLUMNS = 256
MAX_TEXT = 256
MAX_NUMBER = 10**12
"""The largest number in a row; the fourth powers that a standard deviation needs then stay far from overflow."""

RESERVED = ("report", "member")
"""Names that public columns must not have: uploads use them for the report itself."""

KEYWORDS = tuple(
    "all analyse analyze and any array as asc asymmetric authorization between binary both by case cast check collate "
    "collation column concurrently constraint create cross current_catalog current_date current_role current_schema "
    "current_time current_timestamp current_user default deferrable desc distinct do else end except exists false "
    "fetch for foreign freeze from full grant group having ilike in initially inner intersect into is isnull join "
    "lateral leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer "
    "overlaps placing primary references returning right select session_user similar some symmetric system_user "
    "table tablesample then to trailing true union unique user using variadic verbose when where window with".split()
)
"""SQL keywords, which neither a table nor a column may be called: a query would have to quote them."""

SYSTEM = "pg_"
"""A prefix that neither may have: PostgreSQL clients take such names for the system catalogue."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def _is_number(value: Any) -> bool:
    # Neither NaN nor an infinity is below any number.
    # By `type`, as True is an int to isinstance.
    return type(value) in (int, float) and abs(value) <= MAX_NUMBER


def _is_date(value: Any) -> bool:
    # Exactly YYYY-MM-DD: date.fromisoformat alone would also take 20301231 and 2030-W52-2.
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
"""Types of columns: the check of a value that is not null, and the rule in words for error messages."""

TYPES = tuple(_TYPES)


@dataclass(frozen=True)
class PublicColumn:
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
    columns: tuple[PublicColumn, ...]

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read the `rows` field of a document; InvalidSpec says which rule it breaks."""
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if fields.keys() != {"table", "columns"} or not isinstance(fields["columns"], list):
            raise InvalidSpec("document.rows must be null, or an object with table and a list of columns")
        if not _is_name(fields["table"]):
            raise InvalidSpec("document.rows.table must be a lower-case word of up to 40 letters, digits, underscores")
        check_word(fields["table"], "document.rows.table")
        items = cast("list[Any]", fields["columns"])
        if not 1 <= len(items) <= MAX_COLUMNS:
            raise InvalidSpec(f"document.rows.columns must be 1 to {MAX_COLUMNS} public columns")
        columns = tuple(_column(item, i) for i, item in enumerate(items))
        if len({column.name for column in columns}) < len(columns):
            raise InvalidSpec("document.rows.columns: names must differ from each other")
        for column in columns:
            if column.name in RESERVED:
                raise InvalidSpec(f"document.rows.columns: a public column must not be called '{column.name}'")
            check_word(column.name, "document.rows.columns")
        return cls(fields["table"], columns)

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        return {"table": self.table, "columns": [column.to_json() for column in self.columns]}

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}

    def check_given(self, row: Any) -> Mapping[str, Any]:
        """Return a row unchanged if its columns are the collection's and its values fit; InvalidValue otherwise."""
        cells = cast("Mapping[str, Any]", row) if isinstance(row, Mapping) else None
        if cells is None:
            raise InvalidValue("row must be an object with the public columns of the collection")
        for name, value in cells.items():
            kind = self._kinds.get(name)
            if kind is None:
                known = ", ".join(column.name for column in self.columns[:12])
                raise InvalidValue(f"row: there is a column that the collection does not have; it has {known}")
            fits, rule = _TYPES[kind]
            if value is not None and not fits(value):
                raise InvalidValue(f"row: {name} must be {rule}, or null")
        return cells

    def check_row(self, row: Any) -> dict[str, Any]:
        """Return a checked row with all columns in their declared order; missing ones are None."""
        cells = self.check_given(row)
        return {column.name: cells.get(column.name) for column in self.columns}


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def check_word(name: str, where: str) -> None:
    """Refuse the name of a table or column that could not be written in SQL as it is."""
    if name in KEYWORDS or name.startswith(SYSTEM):
        raise InvalidSpec(f"{where}: '{name}' means something in SQL; choose another name")


def _column(value: Any, i: int) -> PublicColumn:
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if fields.keys() != {"name", "type"} or not _is_name(fields["name"]):
        raise InvalidSpec(f"document.rows.columns[{i}] must have a name, a lower-case word, and a type")
    if fields["type"] not in TYPES:
        raise InvalidSpec(f"document.rows.columns[{i}].type must be one of {', '.join(TYPES)}")
    return PublicColumn(fields["name"], fields["type"])
