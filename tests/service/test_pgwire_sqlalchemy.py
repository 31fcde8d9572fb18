"""PostgreSQL's protocol with SQLAlchemy, by psycopg and by asyncpg: inspection, reflection, and queries."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import date
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from tests.service.pg_people import COLUMNS, FEW, Served, served
from tests.service.waiting import run_async

KINDS = {"text": "TEXT", "number": "DOUBLE PRECISION", "integer": "BIGINT", "boolean": "BOOLEAN", "date": "DATE"}
TYPES = {"age": "BIGINT", "state": "TEXT"} | {name: KINDS[kind] for name, kind in COLUMNS.items()}


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("pg"), n=FEW) as found:
        yield found


Look = Callable[[sa.Connection], Any]


def by_psycopg(table: Served, look: Look) -> Any:
    engine = sa.create_engine(f"postgresql+psycopg://ann:{table.token}@127.0.0.1:{table.port}/tacit")
    try:
        with engine.connect() as connection:
            return look(connection)
    finally:
        engine.dispose()


def by_asyncpg(table: Served, look: Look) -> Any:
    async def run() -> Any:
        engine = create_async_engine(f"postgresql+asyncpg://ann:{table.token}@127.0.0.1:{table.port}/tacit")
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(look)
        finally:
            await engine.dispose()

    return run_async(run())


DRIVERS = pytest.mark.parametrize("ask", [by_psycopg, by_asyncpg], ids=["psycopg", "asyncpg"])


@pytest.mark.slow_cases("asyncpg")
@DRIVERS
def test_metadata_is_reflected(table: Served, ask: Callable[[Served, Look], Any]) -> None:
    def look(connection: sa.Connection) -> Any:
        metadata = sa.MetaData()
        metadata.reflect(connection)
        people = sa.Table("people", sa.MetaData(), autoload_with=connection)
        return sorted(metadata.tables), {column.name: str(column.type) for column in people.columns}

    assert ask(table, look) == (["others", "people"], TYPES)


@pytest.mark.slow_cases("asyncpg")
@DRIVERS
def test_tables_are_inspected(table: Served, ask: Callable[[Served, Look], Any]) -> None:
    def look(connection: sa.Connection) -> Any:
        found = sa.inspect(connection)
        assert "public" in found.get_schema_names() and sorted(found.get_table_names()) == ["others", "people"]
        for nothing in (
            found.get_view_names(), found.get_materialized_view_names(), found.get_temp_table_names(),
            found.get_sequence_names(), found.get_foreign_keys("people"), found.get_indexes("people"),
            found.get_unique_constraints("people"), found.get_check_constraints("people"),
            found.get_table_options("people"), found.get_pk_constraint("people")["constrained_columns"],
        ):  # fmt: skip
            assert not nothing
        assert found.has_table("people") and not found.has_table("nobody")
        assert f"{FEW} rows" in str(found.get_table_comment("people")["text"])
        return {column["name"]: str(column["type"]) for column in found.get_columns("people")}

    assert ask(table, look) == TYPES


@DRIVERS
def test_parameters_of_every_type(table: Served, ask: Callable[[Served, Look], Any]) -> None:
    text = "SELECT COUNT(*) FROM people WHERE paying = :p AND os = :o AND purchases < :k AND hours > :h AND joined > :d"
    given = {"p": False, "o": "o'clock", "k": 3, "h": 1.5, "d": date(2030, 1, 1)}
    people = table.people
    chosen = ~people["paying"] & (people["os"] == "o'clock") & (people["purchases"] < 3) & (people["hours"] > 1.5)
    expected = float((chosen & (people["joined"] > date(2030, 1, 1))).sum())
    assert ask(table, lambda connection: connection.execute(sa.text(text), given).scalar_one()) == expected


def test_a_char_is_not_postgresqls_own_type_of_one_byte(table: Served) -> None:
    async def types(sql: str) -> list[str]:
        connection = await asyncpg.connect(
            user="ann", password=table.token, host="127.0.0.1", port=table.port, database="tacit"
        )
        try:
            return [kind.name for kind in (await connection.prepare(sql)).get_parameters()]
        finally:
            await connection.close()

    sql = 'SELECT relname FROM pg_class WHERE relkind = $1::CHAR OR relkind = $2::"char" OR relkind = $3::character'
    assert run_async(types(sql)) == ["bpchar", "char", "bpchar"]


# What JDBC's driver writes in its simple mode, in which it puts parameters into the text.


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("paying = ('TRUE')", True),
        ("paying = ('FALSE')", False),
        ("('TRUE') = paying", True),
        ("paying <> ('TRUE')", False),
        ("paying IN (('FALSE'))", False),
        ("paying = 't'", True),  # As other drivers and people write it.
        ("paying = '0'", False),
        ("paying = ' Off '", False),
        ("paying = ('TRUE'::boolean)", True),  # With its type, as JDBC's driver writes it.
        ("paying IN (('FALSE'::bool))", False),
    ],
)
def test_truth_in_quotes_is_read_as_postgresql_reads_it(table: Served, condition: str, meant: bool) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection:
        found = connection.execute(f"SELECT COUNT(*) FROM people WHERE {condition}".encode()).fetchone()
        assert found == (float((table.people["paying"] == meant).sum()),)


def test_a_day_in_quotes_may_have_a_time_zone(table: Served) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection:
        found = connection.execute("SELECT COUNT(*) FROM people WHERE joined > ('2030-01-01 +00')").fetchone()
        assert found == (float((table.people["joined"] > date(2030, 1, 1)).sum()),)
        for wrong in ("joined > '2030-01-01 12:00 +00 x'", "paying = 'o'", "paying = ''", "paying = 'maybe'"):
            with pytest.raises(psycopg.Error):
                connection.execute(f"SELECT COUNT(*) FROM people WHERE {wrong}".encode())
