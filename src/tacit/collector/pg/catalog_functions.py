"""Functions of PostgreSQL that catalogue queries call, as Python functions for SQLite, with the types they return.

What they are given comes from whoever asks, so nothing here may take long or make a text much longer than those it got.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_data import KEYWORDS, NUMBERS, OWNER_NAME, PROCS, PUBLIC, SYSTEM, TYPES, VERSION
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.patterns import ilike, like, regex
from tacit.collector.pg.settings import SessionSettings

Function = Callable[..., Any]
LONGEST = 1 << 16
"""Characters of any text in a catalogue query, those that aggregates and functions make among them."""


def too_long() -> PgError:
    """Refuse a text that is longer than the catalogue needs."""
    return PgError("54000", f"a text in a catalogue query may have at most {LONGEST} characters")


def _by_name() -> dict[str, int]:
    found = {name: oid for oid, short, long, *_ in TYPES for name in (short, long)}
    found |= {f"{name}[]": array for array, oid in pg.ELEMENTS.items() for name, of in found.items() if of == oid}
    # CHAR without quotes is character(1), in quotes it is PostgreSQL's own type of one byte.
    found |= {"char": pg.BPCHAR, "character": pg.BPCHAR}
    return found | {"int": pg.INT4, "float": pg.FLOAT8, "double": pg.FLOAT8, "decimal": pg.NUMERIC, "string": pg.TEXT}


_BY_NAME = _by_name() | {"uint[]": pg.OIDS}
"""Types by name; sqlglot has no oid, so that arrays of it come as those of its unsigned numbers."""
_SPELT = {oid: spelt for oid, _, spelt, *_ in TYPES}


def type_oid(name: Any) -> int | None:
    """The number of a type by any of its names."""
    if name is None or isinstance(name, int) or str(name).isdigit():
        return None if name is None else int(name)
    word = str(name).lower().removeprefix("pg_catalog.").strip()
    word = word.removeprefix("_") + "[]" if word.startswith("_") else word
    return _BY_NAME.get(word, _BY_NAME.get(word.strip('"')))


def format_type(oid: Any, modifier: Any = None) -> str | None:
    """A type's name in SQL."""
    del modifier
    if oid is None:
        return None
    number = type_oid(oid) or 0
    if number in pg.ELEMENTS and number not in _SPELT:
        return _SPELT.get(pg.ELEMENTS[number], "???") + "[]"
    return _SPELT.get(number, "-" if not number else "???")


def quote_ident(name: Any) -> str | None:
    """A name as it is written in SQL."""
    if name is None or (re.fullmatch(r"[a-z_][a-z0-9_$]*", str(name)) and name not in KEYWORDS):
        return name
    return '"' + str(name).replace('"', '""') + '"'


def array_to_string(array: Any, separator: Any, missing: Any = None) -> str | None:
    """The items of an array, joined."""
    if array is None or separator is None:
        return None
    items = [missing if item is None else item for item in pg.parse_array(str(array))]
    present, between = [str(item) for item in items if item is not None], str(separator)
    if sum(map(len, present)) + len(between) * len(present) > LONGEST:
        raise too_long()
    return between.join(present)


def in_array(value: Any, array: Any) -> int | None:
    """`= ANY(array)`."""
    if value is None or array is None:
        return None
    return int(str(value) in pg.parse_array(str(array)))


def array_item(array: Any, place: Any) -> str | None:
    """An item of an array, counted from zero."""
    if array is None or place is None:
        return None
    items = pg.parse_array(str(array))
    return items[int(place)] if 0 <= int(place) < len(items) else None


def array_length(array: Any, dimension: Any = 1) -> int | None:
    """Number of items; there is none of nothing."""
    del dimension
    return None if array is None else len(pg.parse_array(str(array))) or None


def array_json(array: Any) -> str:
    """The items of an array as JSON."""
    return "[]" if array is None else json.dumps(pg.parse_array(str(array)))


def series_json(start: Any, end: Any) -> str:
    """Whole numbers from one to another as JSON; not very many."""
    return json.dumps(list(range(int(start), min(int(end) + 1, int(start) + 10_000))))


def split_part(text: Any, separator: Any, place: Any) -> str | None:
    """One part of a text, counted from one."""
    if text is None or not separator:
        return text
    parts = str(text).split(str(separator))
    return parts[int(place) - 1] if 1 <= int(place) <= len(parts) else ""


def _truth(value: Any) -> int | None:
    if value is None or isinstance(value, (int, float)):
        return None if value is None else int(bool(value))
    return int(pg.truth(str(value)))


class ArrayAgg:
    """Aggregate: the values of a column as an array."""

    def __init__(self) -> None:
        """Start with an empty array."""
        self._items: list[Any] = []
        self._size = 0

    def step(self, *values: Any) -> None:
        """Append one value to the array (SQLite aggregate callback)."""
        self._size += len(str(values[0])) + 1
        if self._size > LONGEST:
            raise too_long()
        self._items.append(values[0])

    def final(self) -> str:
        """Return the array as PostgreSQL's text (SQLite aggregate callback)."""
        return pg.array_text(self._items)


def _always(value: Any) -> Function:
    return lambda *_: value


def _same(value: Any) -> Any:
    return value


def _bytes(size: Any) -> str:
    return f"{size or 0} bytes"


def replaced(text: Any, old: Any, new: Any) -> str | None:
    """Text with one part in place of another."""
    if text is None or old is None or new is None or not old:
        return text
    found, part, other = str(text), str(old), str(new)
    if len(found) + found.count(part) * len(other) > LONGEST:
        raise too_long()
    return found.replace(part, other)


def formatted(pattern: Any, *values: Any) -> str | None:
    """Text with values in place of %s (as they are), %I (as names) and %L (in quotes).

    >>> print(formatted("%s of %I is %L", 1, "A b", "it's"))
    1 of "A b" is 'it''s'
    """
    if pattern is None:
        return None
    left = iter(values)
    ways: dict[str, Function] = {
        "%%": lambda: "%",
        "%s": lambda: str(_next(left, "")),
        "%I": lambda: quote_ident(str(_next(left, ""))),
        "%L": lambda: "'" + str(_next(left, "")).replace("'", "''") + "'",
    }
    return "".join(ways[part]() if part in ways else part for part in re.split("(%[%sIL])", str(pattern)))


def _next(values: Iterator[Any], otherwise: str) -> Any:
    found = next(values, None)
    return otherwise if found is None else found


def _found_at(text: Any, part: Any) -> int | None:
    return None if text is None or part is None else str(text).find(str(part)) + 1


def _trimmed(method: str, text: Any, characters: Any = " ") -> str | None:
    """Text without some characters at its ends; SQLite's own takes as long as both lengths multiplied."""
    return None if text is None or characters is None else getattr(str(text), method)(str(characters)[:100])


def _parts(text: Any, by: Any) -> str | None:
    return None if text is None else pg.array_text(str(text).split(str(by) or None))


def _schemas(system: Any = 0) -> str:
    return "{pg_catalog,public}" if system else "{public}"


def _namespace_text(oid: Any) -> str:
    return {SYSTEM: "pg_catalog", PUBLIC: "public"}.get(oid, str(oid))


def _namespace_oid(name: Any) -> int:
    return int(name) if isinstance(name, int) else {"pg_catalog": SYSTEM, "public": PUBLIC}.get(str(name), 0)


def _json_object(*items: Any) -> str:
    return json.dumps(dict(zip(items[::2], items[1::2], strict=False)))


def _proc_oid(name: Any) -> int | None:
    return name if name is None or isinstance(name, int) else PROCS.get(str(name).removeprefix("pg_catalog."), 0)


_PROC_NAMES = {oid: name for name, oid in PROCS.items()}


def _proc_text(oid: Any) -> str | None:
    return None if oid is None else _PROC_NAMES.get(oid, "-" if not oid else str(oid))


_NOTHING = (
    "pg_get_expr", "pg_get_constraintdef", "pg_get_indexdef", "pg_get_viewdef", "pg_get_triggerdef", "pg_get_ruledef",
    "pg_get_partkeydef", "pg_get_partition_constraintdef", "pg_get_statisticsobjdef_columns", "pg_get_functiondef",
    "pg_get_function_result", "pg_get_function_arguments", "pg_get_function_identity_arguments",
    "pg_get_serial_sequence", "pg_tablespace_location", "inet_server_addr", "inet_client_addr", "inet_client_port",
    "pg_last_xact_replay_timestamp",
    "shobj_description", "pg_conf_load_time", "pg_advisory_unlock_all", "pg_last_wal_receive_lsn",
)  # fmt: skip
_VISIBLE = (
    "table",
    "type",
    "function",
    "operator",
    "opclass",
    "opfamily",
    "collation",
    "conversion",
    "statistics_obj",
    "ts_config",
)
_OF_PRIVILEGES = ("table", "schema", "database", "column", "any_column", "function", "type", "tablespace", "server")
_SIZES = ("pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size", "pg_database_size",
          "pg_tablespace_size")  # fmt: skip


def _privilege(*words: Any) -> int:
    """Reading is allowed, and nothing else."""
    asked = {word.strip().upper() for word in str(words[-1]).split(",")} if words else set[str]()
    return int(bool(asked & {"SELECT", "USAGE", "CONNECT"}))


def _standing() -> dict[str, tuple[Function, int]]:
    found: dict[str, tuple[Function, int]] = {
        "pg_like": (like, pg.BOOL), "pg_ilike": (ilike, pg.BOOL), "pg_regex": (regex, pg.BOOL),
        "pg_iregex": (partial(regex, ignore_case=True), pg.BOOL), "to_bool": (_truth, pg.BOOL),
        "type_oid": (type_oid, pg.OID), "to_regtype": (type_oid, pg.REGTYPE), "format_type": (format_type, pg.TEXT),
        "quote_ident": (quote_ident, pg.TEXT), "array_to_string": (array_to_string, pg.TEXT),
        "in_array": (in_array, pg.BOOL), "array_json": (array_json, pg.TEXT), "series_json": (series_json, pg.TEXT),
        "same": (_same, pg.TEXT), "array_item": (array_item, pg.TEXT),
        "array_length": (array_length, pg.INT4),
        "proc_oid": (_proc_oid, pg.OID), "proc_text": (_proc_text, pg.REGPROC), "to_regproc": (_proc_oid, pg.REGPROC),
        "json_build_object": (_json_object, pg.TEXT), "array_lower": (_always(1), pg.INT4),
        "getdatabaseencoding": (_always("UTF8"), pg.NAME),
        "array_upper": (array_length, pg.INT4), "cardinality": (array_length, pg.INT4),
        "make_array": (lambda *items: pg.array_text(items), pg.TEXTS), "split_part": (split_part, pg.TEXT),
        "pg_get_userbyid": (_always(OWNER_NAME), pg.NAME), "pg_encoding_to_char": (_always("UTF8"), pg.NAME),
        "pg_is_in_recovery": (_always(0), pg.BOOL), "pg_is_other_temp_schema": (_always(0), pg.BOOL),
        "pg_my_temp_schema": (_always(0), pg.OID), "txid_current": (_always(1), pg.INT8),
        "pg_relation_is_publishable": (_always(0), pg.BOOL), "pg_has_role": (_always(1), pg.BOOL),
        "pg_size_pretty": (_bytes, pg.TEXT), "row_security_active": (_always(0), pg.BOOL),
        "pg_stat_get_numscans": (_always(0), pg.INT8), "pg_char_to_encoding": (_always(6), pg.INT4),
        "concat": (lambda *items: "".join(str(item) for item in items if item is not None), pg.TEXT),
        "now": (lambda: datetime.now(UTC).isoformat(" ", "seconds"), pg.TIMESTAMPTZ),
        "pg_postmaster_start_time": (_always("2000-01-01 00:00:00+00:00"), pg.TIMESTAMPTZ),
        "replace": (replaced, pg.TEXT), "format": (formatted, pg.TEXT), "instr": (_found_at, pg.INT4),
        "trim": (partial(_trimmed, "strip"), pg.TEXT), "ltrim": (partial(_trimmed, "lstrip"), pg.TEXT),
        "rtrim": (partial(_trimmed, "rstrip"), pg.TEXT),
        "array_positions": (_always("{}"), pg.INT4S), "string_to_array": (_parts, pg.TEXTS),
    }  # fmt: skip
    found |= dict.fromkeys(_NOTHING, (_always(None), pg.TEXT)) | dict.fromkeys(_SIZES, (_always(0), pg.INT8))
    found |= {f"pg_{what}_is_visible": (_always(1), pg.BOOL) for what in _VISIBLE}
    return found | {f"has_{what}_privilege": (_privilege, pg.BOOL) for what in _OF_PRIVILEGES}


STANDING = _standing()
"""Functions that are the same for everybody."""


class Lookups:
    """Functions that know the tables and the session that asks."""

    def __init__(self, oids: Mapping[str, int], words: Mapping[int, Sequence[str]], session: "SessionFacts") -> None:
        """Numbers of tables, and descriptions by table: its own, then those of its columns."""
        self._oids, self._names = dict(oids), {oid: name for name, oid in oids.items()}
        self._words, self._session = words, session

    def class_oid(self, name: Any) -> int | None:
        """The OID of a table name (`regclass`); a number is returned unchanged."""
        if name is None or isinstance(name, int) or str(name).isdigit():
            return None if name is None else int(name)
        found = self.to_class(name)
        if found is None:
            raise PgError("42P01", f"relation {str(name)[:80]!r} does not exist")
        return found

    def to_class(self, name: Any) -> int | None:
        """The number of a table, if there is one of this name."""
        if name is None:
            return None
        word = str(name).replace('"', "").lower()
        if word.startswith("public."):
            return self._oids.get(word.removeprefix("public."))
        return NUMBERS.get(word.removeprefix("pg_catalog."), self._oids.get(word))

    def class_text(self, value: Any) -> str | None:
        """The name of a table by its number."""
        if value is None or not (isinstance(value, int) or str(value).isdigit()):
            return value
        return self._names.get(int(value), "-" if int(value) == 0 else str(value))

    def description(self, oid: Any, column: Any = 0) -> str | None:
        """What is said about a table or one of its columns."""
        words = self._words.get(int(oid or 0), ())
        place = int(column) if str(column).isdigit() else 0
        return words[place] if 0 <= place < len(words) else None

    def setting(self, name: Any, quiet: Any = 0) -> str | None:
        """The value of a setting."""
        return self._session.settings.find(str(name)) if quiet else self._session.settings.get(str(name))

    def set_setting(self, name: Any, value: Any, local: Any = 0) -> str:
        """Give a setting a value."""
        del local
        return self._session.settings.get(self._session.set(str(name), "" if value is None else str(value)))

    def functions(self) -> dict[str, tuple[Function, int]]:
        """SQL functions by name, each with its return type."""
        session = self._session
        return {
            "class_oid": (self.class_oid, pg.OID), "to_regclass": (self.to_class, pg.REGCLASS),
            "class_text": (self.class_text, pg.REGCLASS), "obj_description": (self.description, pg.TEXT),
            "col_description": (self.description, pg.TEXT), "current_setting": (self.setting, pg.TEXT),
            "set_config": (self.set_setting, pg.TEXT),
            "version": (_always(f"PostgreSQL {VERSION} (Tacit, read only)"), pg.TEXT),
            "current_database": (_always(session.database), pg.NAME),
            "current_catalog": (_always(session.database), pg.NAME),
            "current_schema": (_always("public"), pg.NAME),
            "current_schemas": (_schemas, pg.NAMES),
            "current_user": (_always(session.user), pg.NAME), "session_user": (_always(session.user), pg.NAME),
            "user": (_always(session.user), pg.NAME), "current_role": (_always(session.user), pg.NAME),
            "pg_backend_pid": (_always(session.process), pg.INT4), "inet_server_port": (_always(session.port), pg.INT4),
            "namespace_text": (_namespace_text, pg.TEXT),
            "namespace_oid": (_namespace_oid, pg.OID),
        }  # fmt: skip


class SessionFacts:
    """What functions may know of the session that asks, and the one thing they may do: change a setting."""

    def __init__(self, user: str, database: str, process: int, port: int, settings: SessionSettings) -> None:
        """Facts of one connection; names that change are remembered until they are taken."""
        self.user, self.database, self.process, self.port, self.settings = user, database, process, port, settings
        self.changed: set[str] = set()

    def set(self, name: str, value: str | None) -> str:
        """Change a setting; returns its proper name."""
        key = self.settings.set(name, value)
        self.changed.add(key)
        return key

    def reset_all(self) -> None:
        """Every setting as it was at the beginning."""
        self.changed.update(self.settings.all())
        self.settings.reset_all()
