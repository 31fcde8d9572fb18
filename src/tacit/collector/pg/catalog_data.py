"""PostgreSQL's system catalogue as far as clients look at it: which tables and columns there are, and what is in them.

There is one database, one schema `public`, one role, and a table for every collection with rows that a token may read.
Everything else that PostgreSQL could have (indexes, functions, triggers and so on) exists as an empty table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_shapes import EMPTY, FILLED
from tacit.collector.tables.info import ColumnInfo, TableInfo

VERSION = "14.0"
"""The version whose catalogue this resembles; clients choose their queries by it."""

SYSTEM, PUBLIC, INFORMATION = 11, 2200, 13000
OWNER, DATABASE, FIRST_TABLE = 10, 5, 16384
OWNER_NAME = "tacit"


NUMBERS = {
    "pg_class": 1259, "pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_database": 1262, "pg_namespace": 2615,
}  # fmt: skip
"""Tables of the catalogue that others refer to by number."""


TYPES: tuple[tuple[int, str, str, int, str], ...] = (
    (pg.BOOL, "bool", "boolean", 1, "B"),
    (pg.BYTEA, "bytea", "bytea", -1, "U"),
    (pg.CHAR, "char", '"char"', 1, "Z"),
    (pg.NAME, "name", "name", 64, "S"),
    (pg.INT8, "int8", "bigint", 8, "N"),
    (pg.INT2, "int2", "smallint", 2, "N"),
    (pg.INT2VECTOR, "int2vector", "int2vector", -1, "A"),
    (pg.INT4, "int4", "integer", 4, "N"),
    (pg.REGPROC, "regproc", "regproc", 4, "N"),
    (pg.TEXT, "text", "text", -1, "S"),
    (pg.OID, "oid", "oid", 4, "N"),
    (pg.XID, "xid", "xid", 4, "U"),
    (pg.FLOAT4, "float4", "real", 4, "N"),
    (pg.FLOAT8, "float8", "double precision", 8, "N"),
    (pg.UNKNOWN, "unknown", "unknown", -2, "X"),
    (pg.BPCHAR, "bpchar", "character", -1, "S"),
    (pg.VARCHAR, "varchar", "character varying", -1, "S"),
    (pg.DATE, "date", "date", 4, "D"),
    (pg.TIMESTAMP, "timestamp", "timestamp without time zone", 8, "D"),
    (pg.TIMESTAMPTZ, "timestamptz", "timestamp with time zone", 8, "D"),
    (pg.NUMERIC, "numeric", "numeric", -1, "N"),
    (pg.REGCLASS, "regclass", "regclass", 4, "N"),
    (pg.REGTYPE, "regtype", "regtype", 4, "N"),
)
"""Number, name, name in SQL, width and category."""

_SPACED = ("date", "timestamp", "timestamptz", "numeric")
"""Types whose functions PostgreSQL writes with an underscore, such as date_recv beside int4recv."""


def _procedure(name: str, end: str) -> str:
    return f"{name}_{end}" if name in _SPACED else name + end


PROCS = {"array_in": 750, "array_out": 751, "array_recv": 2400, "array_send": 2401} | {
    _procedure(name, end): 9000 + 4 * place + turn
    for place, (_, name, *_) in enumerate(TYPES)
    for turn, end in enumerate(("in", "out", "recv", "send"))
}
"""Functions that read and write types, by which libraries tell arrays from other types."""

ARRAYS = {element: array for array, element in pg.ELEMENTS.items() if array != pg.INT2VECTOR}

KINDS = {
    "oid": ("INT_OID", pg.OID), "int2": ("INT_2", pg.INT2), "int4": ("INT_4", pg.INT4), "int8": ("INT_8", pg.INT8),
    "name": ("NAME_TEXT", pg.NAME), "text": ("TEXT", pg.TEXT), "char": ("CHAR_1", pg.CHAR),
    "bool": ("BOOL_INT", pg.BOOL), "float4": ("REAL_4", pg.FLOAT4), "texts": ("ARRAY_TEXT", pg.TEXTS),
    "oids": ("ARRAY_OID_TEXT", pg.OIDS), "vector": ("VECTOR_TEXT", pg.INT2VECTOR),
    "chars": ("ARRAY_CHAR_TEXT", pg.TEXTS), "int2s": ("ARRAY_INT2_TEXT", pg.INT2S),
    "regproc": ("INT_PROC", pg.REGPROC),
}  # fmt: skip
"""Kinds of columns: the type declared to SQLite, whose words give it the right affinity, and PostgreSQL's type."""

OF_DECLARED = {declared: oid for declared, oid in KINDS.values()}

KEYWORDS = (
    "all and as asc between by case count desc else end explain false filter from group having in is like limit not "
    "null offset on or order select sum table then true user when where"
).split()
"""Words that names are told from by quotes."""


@dataclass(frozen=True)
class CatalogShape:
    """A table of the catalogue: its names and the kinds of its columns."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]


@cache
def shapes() -> dict[str, CatalogShape]:
    """Every table of the catalogue; those of the information schema are called by both names."""
    found: dict[str, CatalogShape] = {}
    for table, text in (FILLED | EMPTY).items():
        pairs = [column.split(":") for column in text.split()]
        found[table] = CatalogShape(tuple(name for name, _ in pairs), tuple(kind for _, kind in pairs))
    return found


def table_oids(tables: Sequence[TableInfo]) -> dict[str, int]:
    """A number for every table that stays the same from query to query, as it follows from the collection's id."""
    found: dict[str, int] = {}
    for table in tables:
        number = FIRST_TABLE + int(table.collection[:7], 16) * 2
        while number in found.values():
            number += 2
        found[table.name] = number
    return found


Row = dict[str, Any]


def type_rows() -> Iterator[Row]:
    """Types and their arrays."""
    for oid, name, _, width, category in TYPES:
        array = ARRAYS.get(oid, 0)
        yield _type(oid, name, width, category) | {"typarray": array}
        if array:
            yield _type(array, f"_{name}", -1, "A") | {"typelem": oid} | _procs("array_")


def _type(oid: int, name: str, width: int, category: str) -> Row:
    return {
        "oid": oid, "typname": name, "typnamespace": SYSTEM, "typowner": OWNER, "typlen": width,
        "typbyval": 0 < width <= 8, "typtype": "b", "typcategory": category, "typispreferred": False,
        "typisdefined": True, "typdelim": ",", "typrelid": 0, "typsubscript": 0, "typelem": 0, "typarray": 0,
        "typmodin": 0, "typmodout": 0, "typanalyze": 0, "typalign": "i", "typstorage": "p",
        "typnotnull": False, "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0,
    } | ({} if name.startswith("_") else _procs(name))  # fmt: skip


def _procs(name: str) -> Row:
    ends = {"typinput": "in", "typoutput": "out", "typreceive": "recv", "typsend": "send"}
    return {column: PROCS[_procedure(name, end)] for column, end in ends.items()}


def _proc(name: str, oid: int) -> Row:
    return {
        "oid": oid, "proname": name, "pronamespace": SYSTEM, "proowner": OWNER, "prolang": 12, "prokind": "f",
        "proretset": False, "pronargs": 1, "prorettype": pg.INT4, "proargtypes": "", "prosecdef": False,
        "provolatile": "s", "proparallel": "s", "proisstrict": True, "proleakproof": False,
    }  # fmt: skip


def standing_rows() -> dict[str, list[Row]]:
    """What is the same for everybody."""
    names = {SYSTEM: "pg_catalog", PUBLIC: "public", INFORMATION: "information_schema"}
    role = {
        "rolsuper": False, "rolinherit": True, "rolcreaterole": False, "rolcreatedb": False, "rolcanlogin": True,
        "rolreplication": False, "rolconnlimit": -1, "rolpassword": "********", "rolbypassrls": False,
    }  # fmt: skip
    return {
        "pg_namespace": [{"oid": oid, "nspname": name, "nspowner": OWNER} for oid, name in names.items()],
        "pg_type": list(type_rows()),
        "pg_proc": [_proc(name, oid) for name, oid in PROCS.items() if name.endswith("recv")],
        "pg_roles": [{"oid": OWNER, "rolname": OWNER_NAME} | role],
        "pg_user": [{"usename": OWNER_NAME, "usesysid": OWNER, "usesuper": False, "usecreatedb": False}],
        "pg_get_keywords": [{"word": word, "catcode": "R", "catdesc": "reserved"} for word in KEYWORDS],
        "pg_am": [{"oid": 2, "amname": "heap", "amhandler": 0, "amtype": "t"}],
        "pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": OWNER}],
    }


def rows_of(tables: Sequence[TableInfo], database: str) -> dict[str, list[Row]]:
    """The catalogue rows that depend on the tables the token may read."""
    found: dict[str, list[Row]] = {name: [] for name in FILLED}
    found["pg_database"] = [{
        "oid": DATABASE, "datname": database, "datdba": OWNER, "encoding": 6, "datcollate": "C.UTF-8",
        "datctype": "C.UTF-8", "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "datlastsysoid": 0,
        "dattablespace": 1663, "datlocprovider": "c",
    }]  # fmt: skip
    for name in ("pg_catalog", "information_schema", "public"):
        found["information_schema.schemata"].append(
            {"catalog_name": database, "schema_name": name, "schema_owner": OWNER_NAME}
        )
    for table in tables:
        for name, row in _rows_of_table(table, table_oids(tables)[table.name], database):
            found[name].append(row)
    return found


def _rows_of_table(table: TableInfo, oid: int, database: str) -> Iterator[tuple[str, Row]]:
    here = {"table_catalog": database, "table_schema": "public", "table_name": table.name}
    yield "pg_class", _class(table, oid)
    yield "pg_tables", {"schemaname": "public", "tablename": table.name, "tableowner": OWNER_NAME,
                        "hasindexes": False, "hasrules": False, "hastriggers": False, "rowsecurity": False}  # fmt: skip
    yield "information_schema.tables", here | {"table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
    yield (
        "information_schema.table_privileges",
        here | {"grantor": OWNER_NAME, "grantee": OWNER_NAME, "privilege_type": "SELECT", "is_grantable": "NO"},
    )
    words = f"collection {table.collection[:12]}: aggregates of {table.n} rows, with noise on private columns"
    yield "pg_description", {"objoid": oid, "classoid": 1259, "objsubid": 0, "description": words}
    for place, column in enumerate(table.columns, 1):
        yield "pg_attribute", _attribute(column, oid, place)
        yield "information_schema.columns", here | _column(column, place, database)
        words = described(column)
        yield "pg_description", {"objoid": oid, "classoid": 1259, "objsubid": place, "description": words}


def described(column: ColumnInfo) -> str:
    """A column in words."""
    if not column.private:
        return "public"
    return f"private, {column.domain}" if column.domain else "private"


def _class(table: TableInfo, oid: int) -> Row:
    false = ("relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass", "relrowsecurity",
             "relforcerowsecurity", "relispartition", "relhasoids")  # fmt: skip
    zero = ("reltype", "reloftype", "reltablespace", "reltoastrelid", "relchecks", "relallvisible", "relrewrite")
    return dict.fromkeys(false, False) | dict.fromkeys(zero, 0) | {
        "oid": oid, "relname": table.name, "relnamespace": PUBLIC, "relowner": OWNER, "relam": 2, "relfilenode": oid,
        "relpages": 1, "reltuples": table.n, "relpersistence": "p", "relkind": "r", "relnatts": len(table.columns),
        "relispopulated": True, "relreplident": "d", "relacl": f"{{{OWNER_NAME}=r/{OWNER_NAME}}}",
    }  # fmt: skip


def _attribute(column: ColumnInfo, oid: int, place: int) -> Row:
    kind = pg.OF_COLUMNS[column.type]
    width = pg.WIDTHS.get(kind, -1)
    return {
        "attrelid": oid, "attname": column.name, "atttypid": kind, "attstattarget": -1, "attlen": width,
        "attnum": place, "attndims": 0, "attcacheoff": -1, "atttypmod": -1, "attbyval": width > 0, "attalign": "d",
        "attstorage": "x" if kind == pg.TEXT else "p", "attcompression": "", "attnotnull": False, "atthasdef": False,
        "atthasmissing": False, "attidentity": "", "attgenerated": "", "attisdropped": False, "attislocal": True,
        "attinhcount": 0, "attcollation": 0,
    }  # fmt: skip


def _column(column: ColumnInfo, place: int, database: str) -> Row:
    kind = pg.OF_COLUMNS[column.type]
    name, spelt = next((item[1], item[2]) for item in TYPES if item[0] == kind)
    precision = {pg.INT8: (64, 2, 0), pg.FLOAT8: (53, 2, None)}.get(kind, (None, None, None))
    return {
        "column_name": column.name, "ordinal_position": place, "is_nullable": "YES", "data_type": spelt,
        "numeric_precision": precision[0], "numeric_precision_radix": precision[1], "numeric_scale": precision[2],
        "datetime_precision": 0 if kind == pg.DATE else None, "udt_catalog": database, "udt_schema": "pg_catalog",
        "udt_name": name, "is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO",
    }  # fmt: skip
