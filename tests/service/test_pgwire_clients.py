"""PostgreSQL's protocol with the libraries that people use; each one is skipped where it is not installed."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.service.pg_people import FEW as N
from tests.service.pg_people import Served, served
from tests.service.waiting import PATIENT_SECONDS, run_async

DAYS = (
    "SELECT date_trunc('day', joined) AS day, COUNT(*) AS n, COUNT(*)::int AS whole, MIN(os) AS os "
    "FROM (SELECT * FROM people WHERE purchases > 1) AS v GROUP BY 1 ORDER BY 1"
)
CHOSEN = (
    "SELECT COUNT(*)::int FROM people WHERE os = ANY({0}) AND joined >= {1} AND purchases = ANY({2}) AND paying = {3}"
)
GIVEN: tuple[Any, ...] = (["ios", "o'clock"], date(2030, 1, 2), [1, 2, 3], False)


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("clients"), n=N) as found:
        yield found


def address(table: Served, scheme: str = "postgresql") -> str:
    return f"{scheme}://ann:{table.token}@127.0.0.1:{table.port}/tacit"


def days(table: Served) -> list[tuple[Any, ...]]:
    """The answer to DAYS."""
    people = table.people
    joined = people["joined"][people["purchases"] > 1]
    counts = [(day, int((joined == day).sum())) for day in sorted(set(joined.tolist()))]
    return [(datetime(d.year, d.month, d.day, tzinfo=UTC), float(n), n, "ios") for d, n in counts]


def chosen(table: Served) -> int:
    """The answer to CHOSEN."""
    people, (systems, day, purchases, paying) = table.people, GIVEN
    some = [os in systems and bought in purchases for os, bought in zip(people["os"], people["purchases"], strict=True)]
    return int((some & (people["joined"] >= day) & (people["paying"] == paying)).sum())


def test_psycopg(table: Served) -> None:
    with psycopg.connect(table.address(), autocommit=True) as connection:
        assert connection.execute(DAYS.encode()).fetchall() == days(table)
        assert connection.execute(CHOSEN.format(*["%s"] * 4).encode(), GIVEN).fetchone() == (chosen(table),)
        with connection.cursor(binary=True) as cursor:
            assert cursor.execute(DAYS.encode()).fetchall() == days(table)
            with cursor.copy(f"COPY ({DAYS}) TO STDOUT (FORMAT BINARY)".encode()) as copy:
                copy.set_types(["timestamptz", "float8", "int4", "text"])
                assert list(copy.rows()) == days(table)


def test_psycopg2(table: Served) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(table.address())
    try:
        cursor = connection.cursor()
        cursor.execute(DAYS)
        assert cursor.fetchall() == days(table)
        cursor.execute(CHOSEN.format(*["%s"] * 4), GIVEN)
        assert cursor.fetchone() == (chosen(table),)
        text = io.StringIO()
        cursor.copy_expert(f"COPY ({DAYS}) TO STDOUT WITH CSV HEADER", text)
        rows = list(csv.reader(io.StringIO(text.getvalue())))
        assert rows[0] == ["day", "n", "whole", "os"] and rows[1][0] == "2030-01-01 00:00:00+00"
        assert [int(row[2]) for row in rows[1:]] == [row[2] for row in days(table)]
    finally:
        connection.close()


def test_pg8000(table: Served) -> None:
    native: Any = pytest.importorskip("pg8000.native")
    where = {"host": "127.0.0.1", "port": table.port, "database": "tacit"}
    connection = native.Connection("ann", password=table.token, **where)
    try:
        assert [tuple(row) for row in connection.run(DAYS)] == days(table)
        given = dict(zip("abcd", GIVEN, strict=True))
        assert connection.run(CHOSEN.format(":a", ":b", ":c", ":d"), **given) == [[chosen(table)]]
        stream = io.BytesIO()
        connection.run(f"COPY ({DAYS}) TO STDOUT", stream=stream)
        assert stream.getvalue().decode().splitlines()[0].split("\t")[1:] == [str(days(table)[0][2])] * 2 + ["ios"]
    finally:
        connection.close()


def test_asyncpg(table: Served) -> None:
    import asyncpg

    async def ask() -> None:
        connection = await asyncpg.connect(address(table))
        try:
            assert [tuple(row) for row in await connection.fetch(DAYS)] == days(table)
            assert await connection.fetchval(CHOSEN.format("$1", "$2", "$3", "$4"), *GIVEN) == chosen(table)
            cast = CHOSEN.format("$1::text[]", "$2::date", "$3::bigint[]", "$4::boolean")
            assert await connection.fetchval(cast, *GIVEN) == chosen(table)
            year = await connection.fetchval("SELECT extract(year FROM joined) FROM people GROUP BY 1")
            assert year == Decimal(2030)
            out = io.BytesIO()
            await connection.copy_from_query("SELECT os, COUNT(*) FROM people GROUP BY os", output=out, format="csv")
            assert out.getvalue().startswith(b"ios,")
        finally:
            await connection.close()

    run_async(ask())


def test_connectorx_with_polars(table: Served) -> None:
    connectorx: Any = pytest.importorskip("connectorx")
    pytest.importorskip("polars")
    for protocol in ("binary", "csv", "cursor"):
        frame = connectorx.read_sql(address(table), DAYS, return_type="polars", protocol=protocol)
        assert [tuple(row) for row in frame.rows()] == days(table), protocol


def test_adbc(table: Served) -> None:
    adbc: Any = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with adbc.connect(address(table)) as connection, connection.cursor() as cursor:
        cursor.execute(DAYS)
        answer = cursor.fetch_arrow_table()
        assert [tuple(row.values()) for row in answer.to_pylist()] == days(table)
        assert str(answer.schema.field("day").type) == "timestamp[us, tz=UTC]"
        cursor.execute("SELECT COUNT(*)::int FROM people WHERE os = $1", ("ios",))
        assert cursor.fetchone() == (int((table.people["os"] == "ios").sum()),)


@pytest.mark.slow
def test_pandas_and_sqlalchemy(table: Served) -> None:
    import pandas as pd
    import sqlalchemy as sa

    engine = sa.create_engine(address(table, "postgresql+psycopg"))
    people = sa.Table("people", sa.MetaData(), autoload_with=engine)
    day = sa.func.date_trunc("day", people.c.joined).label("day")
    inner = sa.select(people).where(people.c.purchases > 1).subquery()
    query = sa.select(inner.c.os, sa.func.count().label("n")).group_by(inner.c.os).having(sa.func.count() > 100)
    try:
        frame = pd.read_sql(sa.select(day, sa.func.count().label("n")).group_by(day).order_by(day), engine)
        assert frame["n"].sum() == N and str(frame["day"].dt.tz) == "UTC"
        with engine.connect() as connection:
            names = [row.os for row in connection.execute(query.order_by(inner.c.os))]
            assert names[:3] == ["ios", "o'clock", "win"]
            distinct = connection.execute(sa.select(people.c.os).distinct().where(people.c.os.in_(["ios", "win"])))
            assert distinct.scalars().all() == ["ios", "win"]
        # There are no rows to read, and the table says so.
        with pytest.raises(pd.errors.DatabaseError, match="rows are never shown"):
            pd.read_sql_table("people", engine)
    finally:
        engine.dispose()


@pytest.mark.slow
def test_ibis(table: Served) -> None:
    ibis: Any = pytest.importorskip("ibis")
    connection = ibis.connect(address(table))
    try:
        assert connection.list_tables() == ["others", "people"]
        people = connection.table("people")
        few = people.filter(people.purchases > 1)
        grouped = few.group_by(day=few.joined.truncate("D")).agg(n=few.count()).order_by("day")
        assert grouped.to_pyarrow()["n"].to_pylist() == [row[2] for row in days(table)]
        assert people.count().to_pyarrow().as_py() == N
        assert str(people.joined.max().to_pyarrow().as_py())[:10] == "2030-01-03"
        years = people.group_by(y=people.joined.year()).agg(n=people.count()).to_pyarrow().to_pylist()
        assert years == [{"y": 2030, "n": N}]
        ios = people.filter(people.os.isin(["ios"])).count().to_pyarrow().as_py()
        assert ios == (table.people["os"] == "ios").sum()
        assert people.select("os").distinct().to_pyarrow()["os"].to_pylist()[:3] == ["ios", "o'clock", "win"]
    finally:
        connection.disconnect()


OLDER = """
import os, sqlalchemy as sa
assert sa.__version__.startswith("2.0."), sa.__version__
engine = sa.create_engine(os.environ["TACIT_ADDRESS"])
people = sa.Table("people", sa.MetaData(), autoload_with=engine)
day = sa.func.date_trunc("day", people.c.joined)
with engine.connect() as connection:
    rows = connection.execute(sa.select(day, sa.func.count()).where(people.c.purchases > 1).group_by(day).order_by(day))
    print([int(row[1]) for row in rows], sorted(sa.inspect(engine).get_table_names()))
"""


@pytest.mark.slow
def test_sqlalchemy_2_0(table: Served, tmp_path: Path) -> None:
    """The older version goes into a folder of its own, since only one version fits into an environment."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path)]
    installed = subprocess.run([*command, "sqlalchemy>=2.0,<2.1"], capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip("SQLAlchemy 2.0 cannot be installed here")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "TACIT_ADDRESS": address(table, "postgresql+psycopg")}
    done = subprocess.run([sys.executable, "-c", OLDER], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"{[row[2] for row in days(table)]} ['others', 'people']", done.stderr[-2000:]


@pytest.mark.slow
def test_node_postgres(table: Served, tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("no Node.js with npm here")
    command = [npm, "install", "--no-audit", "--no-fund", "--fetch-retries=0", "--prefix", str(tmp_path), "pg"]
    installed = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENT_SECONDS, check=False
    )
    if installed.returncode:
        pytest.skip("npm cannot install pg here")
    script = Path(__file__).parent / "node_pg.mjs"
    environment = os.environ | {"TACIT_ADDRESS": address(table), "TZ": "UTC"}
    done = subprocess.run(
        [node, str(script), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENT_SECONDS,
        check=False,
    )
    people = table.people
    some = [os in ("ios", "win") for os in people["os"]]
    count = int((some & (people["joined"] >= date(2030, 1, 2)) & (people["purchases"] < 3) & ~people["paying"]).sum())
    every = [[day.isoformat(), int((people["joined"] == day).sum())] for day in sorted(set(people["joined"].tolist()))]
    assert done.stdout, done.stderr[-2000:]
    assert json.loads(done.stdout) == {"n": count, "days": every, "refused": "0A000"}


def test_psql_describes_a_query_by_values_in_from(table: Served) -> None:
    """What `\\gdesc` sends once it knows the columns of a query."""
    sql = """SELECT name AS "Column", pg_catalog.format_type(tp, tpm) AS "Type" FROM (VALUES ('os',
    '25'::pg_catalog.oid, -1), ('count', '701'::pg_catalog.oid, -1), ('day', '1184'::pg_catalog.oid, -1))
    s(name, tp, tpm)"""
    with psycopg.connect(table.address(), autocommit=True) as connection:
        assert connection.execute(sql.encode()).fetchall() == [
            ("os", "text"), ("count", "double precision"), ("day", "timestamp with time zone"),
        ]  # fmt: skip
