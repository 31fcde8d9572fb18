"""The catalogue that clients of PostgreSQL ask: queries of the shapes that drivers and BI tools send."""

from __future__ import annotations

import resource
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog import CatalogResult, Catalogue
from tacit.collector.pg.catalog_data import shapes
from tacit.collector.pg.catalog_functions import SessionFacts
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.settings import SessionSettings
from tacit.collector.tables.info import ColumnInfo, TableInfo
from tacit.errors import InvalidQuery
from tacit.sql.parse.parsing import parse_text

AGE, OS = ColumnInfo("age", "integer", True, "0 to 99"), ColumnInfo("os", "text", False)
PEOPLE = TableInfo("ab12cd34" * 8, "people", (AGE, OS, ColumnInfo("d", "date", False)), 50)
OTHER = TableInfo("ab12cd35" * 8, "other", (ColumnInfo("x", "number", False), ColumnInfo("y", "boolean", True)), 7)


def ask(sql: str) -> CatalogResult:
    facts = SessionFacts("ann", "tacit", 7, 5433, SessionSettings("ann"))
    return Catalogue([PEOPLE, OTHER], facts).answer(parse_text(sql).tree)


def rows(sql: str) -> list[tuple[Any, ...]]:
    found = ask(sql)
    assert not found.notices, sql
    return found.rows


def test_expressions_without_a_table() -> None:
    found = ask(
        "SELECT 1, 'a' AS Word, TRUE, NULL, version(), current_user, current_schema(), 2 + 3, current_database()"
    )
    assert found.rows == [(1, "a", 1, None, "PostgreSQL 14.0 (Tacit, read only)", "ann", "public", 5, "tacit")]
    assert [field.name for field in found.fields][:5] == ["?column?", "word", "?column?", "?column?", "version"]
    assert [field.type for field in found.fields][:3] == [pg.INT4, pg.TEXT, pg.BOOL]
    assert rows("SELECT E'a\\nb' || 'c', COALESCE(NULL, 'x'), CASE WHEN 1 > 2 THEN 'y' ELSE 'n' END") == [
        ("a\nbc", "x", "n")
    ]


SHAPES = {
    "tables with their descriptions": (
        """SELECT NULL AS cat, n.nspname AS schem, c.relname AS name, CASE c.relkind WHEN 'r' THEN 'TABLE' ELSE NULL END
        AS kind, d.description FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c LEFT JOIN
        pg_catalog.pg_description d
        ON (c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass)
        WHERE c.relnamespace = n.oid AND n.nspname LIKE 'pub%' AND c.relname LIKE E'peo\\\\_%' ESCAPE '\\' OR
        (c.relnamespace = n.oid AND c.relname LIKE 'oth__') ORDER BY 2, 3""",
        [(None, "public", "other", "TABLE",
          "collection ab12cd35ab12: aggregates of 7 rows, with noise on private columns")],
    ),
    "columns in their order": (
        """SELECT * FROM (SELECT a.attname, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS no, t.typname,
        row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS place, pg_catalog.pg_get_expr(f.adbin,
        f.adrelid)
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON (a.attrelid = c.oid) JOIN pg_catalog.pg_type t ON
        (a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef f ON (a.attrelid = f.adrelid AND a.attnum = f.adnum)
        WHERE c.relname = 'people' AND a.attnum > 0 AND NOT a.attisdropped) c WHERE true ORDER BY place""",
        [("age", 0, "int8", 1, None), ("os", 0, "text", 2, None), ("d", 0, "date", 3, None)],
    ),
    "names in full": (
        """SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON
        pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relkind =
        ANY (ARRAY['r', 'p']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND nspname != 'pg_catalog'
        ORDER BY 1""",
        [("other",), ("people",)],
    ),
    "arrays by their functions": (
        """SELECT t.typname, e.typname FROM pg_type t LEFT JOIN pg_proc p ON p.oid = t.typreceive LEFT JOIN pg_type e ON
        e.oid = CASE WHEN p.proname = 'array_recv' THEN t.typelem END WHERE t.typname IN ('_float8', 'float8')
        ORDER BY 1""",
        [("_float8", "float8"), ("float8", None)],
    ),
    "arrays by their input": (
        "SELECT typname FROM pg_type WHERE typinput = 'pg_catalog.array_in'::regproc AND typelem = 'int4'::regtype",
        [("_int4",)],
    ),
    "names of things": (
        """SELECT 'people'::regclass::oid = c.oid, c.oid::regclass::text, format_type(701, -1), 'text'::regtype,
        to_regclass('nosuch'), obj_description(c.oid), col_description(c.oid, 1) FROM pg_class c WHERE relname ~
        '^(people)$'""",
        [(1, "people", "double precision", "text", None, "aggregates of 50 rows of collection ab12cd34ab12",
          "private, 0 to 99")],
    ),
    "information schema": (
        """SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'other' AND
        information_schema.columns.table_schema NOT IN ('pg_catalog') ORDER BY ORDINAL_POSITION""",
        [("x", "double precision", "YES"), ("y", "boolean", "YES")],
    ),
    "the search path": (
        """SELECT quote_ident(table_name) FROM information_schema.tables WHERE quote_ident(table_schema) IN (SELECT CASE
        WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(
        current_setting('search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','),
        1)) AS
        i, string_to_array(current_setting('search_path'), ',') s) ORDER BY 1""",
        [("other",), ("people",)],
    ),
    "privileges under awkward names": (
        """WITH t AS (SELECT tablename AS table, has_table_privilege(current_user, tablename, 'select') AS select,
        has_any_column_privilege(tablename, 'update') AS update FROM pg_catalog.pg_tables) SELECT t.* FROM t ORDER BY
        1""",
        [("other", 1, 0), ("people", 1, 0)],
    ),
    "lists and subqueries": (
        """SELECT array_to_string(ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = 'people'::regclass
        ORDER BY
        a.attnum), ', '), (pg_catalog.current_schemas(true))[1], x FROM unnest(ARRAY[4, 5]) x WHERE x <> ALL
        ('{5,6}')""",
        [("age, os, d", "pg_catalog", "4")],
    ),
    "keys, of which there are none": (
        """SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
        WHERE i.indrelid = 'people'::regclass AND i.indisprimary""",
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_queries_of_drivers_and_tools(name: str) -> None:
    sql, expected = SHAPES[name]
    assert rows(sql) == expected


def test_settings_are_read_and_changed() -> None:
    facts = SessionFacts("ann", "tacit", 7, 5433, SessionSettings("ann"))
    catalogue = Catalogue([], facts)
    sql = (
        "SELECT set_config('tacit.errors', 'on', false), current_setting('tacit.errors'), current_setting('no.t', true)"
    )
    assert catalogue.answer(parse_text(sql).tree).rows == [("on", "on", None)] and facts.settings.errors
    with pytest.raises(PgError, match="unrecognized configuration parameter"):
        catalogue.answer(parse_text("SELECT current_setting('nosuch')").tree)


def test_what_is_not_understood_has_columns_and_no_rows() -> None:
    found = ask(
        "SELECT (i.keys).n AS Place, x FROM (SELECT information_schema._pg_expandarray(indkey) AS keys FROM pg_index) i"
    )
    assert [field.name for field in found.fields] == ["place", "x"] and found.rows == [] and found.notices
    with pytest.raises(PgError, match="without a table"):
        ask("SELECT nosuchfunction(1)")
    with pytest.raises(PgError, match="relation 'nosuch' does not exist"):
        ask("SELECT 'nosuch'::regclass")


def test_every_table_of_the_catalogue_can_be_read() -> None:
    for name, shape in shapes().items():
        found = ask(f"SELECT * FROM {name if '.' in name else 'pg_catalog.' + name}")
        assert tuple(field.name for field in found.fields) == shape.names and not found.notices
        for row in found.rows:
            for value, field in zip(row, found.fields, strict=True):
                pg.encode_value(value, field.type, 0)


def test_nothing_but_reading_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.collector.pg.catalog._SECONDS", 0.2)
    for sql in (
        "SELECT load_extension('x')",
        "SELECT zeroblob(1000000000)",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT COUNT(*) FROM t",
    ):
        try:
            assert ask(sql).rows == []
        except PgError:
            pass
    with pytest.raises(PgError, match=r"too long|too much"):
        ask("SELECT a.*, b.* FROM pg_type a, pg_type b, pg_type c, pg_type d")


LONG = "'" + "a" * 60_000 + "'"
PRODUCT = "FROM pg_type a, pg_type b, pg_type c"
EXPENSIVE = {
    "like": f"SELECT {LONG} LIKE '%{'a' * 250}b' {PRODUCT}",
    "regex": f"SELECT {LONG} ~ '{'(a|aa)' * 40}b' {PRODUCT}",
    "array_agg": f"SELECT array_agg({LONG} || a.oid || b.oid) {PRODUCT}",
    "array_agg of little": f"SELECT array_agg(a.oid) {PRODUCT}",
    "an array of a query": f"SELECT ARRAY(SELECT {LONG} || a.oid {PRODUCT})",
    "string_agg": f"SELECT string_agg({LONG} || a.oid, ',') {PRODUCT}",
    "distinct": f"SELECT COUNT(DISTINCT {LONG} || a.oid || 'x' || b.oid || 'x' || c.oid) {PRODUCT}",
    "sorting": f"SELECT length(x) FROM (SELECT {LONG} || a.oid || b.oid AS x {PRODUCT} ORDER BY 1) y LIMIT 1",
    "separators": f"SELECT array_to_string('{{{'a,' * 8000}a}}', '{'b' * 30_000}')",
    "quotes": f"SELECT in_array(a.oid, '{{\"{chr(92)}\"{(chr(92) + chr(34)) * 20_000}}}') {PRODUCT}",
}


@pytest.mark.parametrize("name", EXPENSIVE)
def test_expensive_queries_are_refused_in_time_and_in_little_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a deadline after 0.2 s no query takes ten times as much CPU time, whatever else the machine does."""
    monkeypatch.setattr("tacit.collector.pg.catalog._SECONDS", 0.2)
    before, started = resident_bytes(), time.process_time()
    with pytest.raises(PgError) as caught:
        ask(EXPENSIVE[name])
    assert caught.value.state in ("54000", "57014") and time.process_time() - started < 2
    assert resident_bytes() - before < 400_000_000


def test_trimming_takes_no_longer_than_the_text_is_long() -> None:
    started = time.process_time()
    assert rows(f"SELECT length(trim({LONG[:30_000]}', '{'b' * 30_000}')) {PRODUCT} LIMIT 1000") == [(29_999,)] * 1000
    assert time.process_time() - started < 2 and rows("SELECT trim(' a '), ltrim('xxa', 'x'), rtrim('a ')") == [
        ("a",) * 3
    ]


def test_texts_are_searched_replaced_and_formatted_within_limits() -> None:
    sql = "SELECT strpos('people', 'pl'), replace('pg_temp_1', 'temp', 'toast'), format('%s FROM %I', 'a', 'select')"
    assert rows(sql) == [(4, "pg_toast_1", 'a FROM "select"')]
    assert rows("SELECT format('%.99999c%%', 'a'), replace('a', '', 'b'), strpos(NULL, 'a')") == [
        ("%.99999c%", "a", None)
    ]
    with pytest.raises(PgError, match="at most 65536 characters"):
        ask(f"SELECT replace({LONG}, 'a', 'bb')")


def resident_bytes() -> int:
    """The most that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize(
    "call",
    ["printf('%.99c', 'a')", "hex('a')", "char(65)", "zeroblob(9)", "randomblob(9)", "glob('*', 'a')", "'a' GLOB '*'",
     "quote('a')", "random()",
     "json_extract('[1]', '$[0]')", "sqlite_version()", "load_extension('x')", "strftime('%s')"],
)  # fmt: skip
def test_functions_of_sqlite_that_the_catalogue_does_not_need_are_not_there(call: str) -> None:
    with pytest.raises(PgError, match="not understood"):
        ask(f"SELECT {call}")


def test_numbers_that_fit_nowhere_are_no_failure_of_the_server() -> None:
    for sql in ("SELECT '99999999999999999999999'::regclass", "SELECT obj_description(1e308 * 10)"):
        with pytest.raises(PgError):
            ask(sql)


def test_tables_with_the_names_of_other_things_confuse_nobody() -> None:
    names = ("select", "pg_class", "user", "sqlite_master", "json_each", "information_schema", "pg_get_keywords", "oid")
    tables = [TableInfo(f"{i:x}" * 64, name, (ColumnInfo(name, "text", False),), i) for i, name in enumerate(names, 1)]
    catalogue = Catalogue(tables, SessionFacts("ann", "tacit", 7, 5433, SessionSettings("ann")))

    def asked(sql: str) -> list[tuple[Any, ...]]:
        found = catalogue.answer(parse_text(sql).tree)
        assert not found.notices, sql
        return found.rows

    assert sorted(asked("SELECT relname FROM pg_class")) == sorted((name,) for name in names)
    assert len(asked("SELECT * FROM pg_get_keywords()")) > 10
    assert asked("SELECT 'pg_class'::regclass::oid, 'public.pg_class'::regclass::oid = c.oid FROM pg_class c WHERE "
                 "relname = 'pg_class'") == [(1259, 1)]  # fmt: skip
    for name in names:
        columns = asked(f"SELECT attname FROM pg_attribute WHERE attrelid = 'public.{name}'::regclass")
        assert columns == [(name,)]
    assert asked("SELECT quote_ident(relname) FROM pg_class WHERE relname IN ('select', 'oid') ORDER BY 1") == [
        ('"select"',), ("oid",)]  # fmt: skip
    assert asked("SELECT user, current_user FROM pg_class LIMIT 1") == [("ann", "ann")]


WORDS = st.sampled_from(
    "SELECT FROM WHERE pg_class pg_type oid relname = ANY ( ) ARRAY [ 1 ] , * 'a' :: regclass text AND OR NOT LIKE ~ "
    "CASE WHEN THEN END AS x JOIN ON information_schema.tables table_name IN NULL IS UNION ORDER BY LIMIT 2 . "
    "count".split()
)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=14))
def test_any_query_is_answered_or_refused(words: list[str]) -> None:
    try:
        ask("SELECT " + " ".join(words))
    except (PgError, InvalidQuery) as error:
        assert "Traceback" not in str(error)
