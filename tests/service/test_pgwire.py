"""PostgreSQL's protocol with real clients: psql, psycopg in all its ways, and pandas."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pytest
from click.testing import CliRunner
from psycopg import errors
from psycopg.types import TypeInfo
from tests.service.pg_people import STATES, N, Served, certificate, served
from tests.service.served import first_token, free_port
from tests.service.waiting import PATIENT_SECONDS, run_async, wait_until

from tacit.cli import cli

SURE = 6.0
"""Standard errors that an estimate may be off: by chance once in 5e8."""


def find_psql() -> str | None:
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin/psql"))
    return shutil.which("psql") or (str(system[-1]) if system else None)


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("pg")
    cert, key = certificate(folder)
    with served(folder, cert=cert, key=key) as found:
        yield found


@pytest.fixture
def connection(table: Served) -> Generator[psycopg.Connection[Any]]:
    with psycopg.connect(table.address()) as found:
        yield found


def psql(table: Served, *commands: str, **more: Any) -> str:
    program = find_psql()
    if program is None:
        pytest.skip("no psql here; install Debian's postgresql-client")
    asked = [part for command in commands for part in ("-c", command)]
    environment = os.environ | {"PGPASSWORD": more.pop("password", table.token), "LC_ALL": "C.UTF-8"}
    where = {"host": "127.0.0.1", "port": table.port, "user": "ann", "dbname": "tacit"} | more
    address = " ".join(f"{name}={value}" for name, value in where.items())
    done = subprocess.run(
        [program, "-X", "-d", address, *asked],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENT_SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


def test_psql_connects_with_and_without_tls(table: Served) -> None:
    assert "SSL connection (protocol: TLSv1.3" in psql(table, r"\conninfo", sslmode="require")
    plain = psql(table, r"\conninfo", sslmode="disable")
    assert 'connected to database "tacit" as user "ann"' in plain and "SSL" not in plain


@pytest.mark.slow
def test_psql_lists_tables_columns_databases_and_schemas(table: Served) -> None:
    assert psql(table, r"\dt").splitlines() == [
        "        List of relations",
        " Schema |  Name  | Type  | Owner ",
        "--------+--------+-------+-------",
        " public | others | table | tacit",
        " public | people | table | tacit",
        "(2 rows)",
        "",
    ]
    assert psql(table, r"\d people").splitlines() == [
        '                     Table "public.people"',
        "  Column   |       Type       | Collation | Nullable | Default ",
        "-----------+------------------+-----------+----------+---------",
        " age       | bigint           |           |          | ",
        " state     | text             |           |          | ",
        " os        | text             |           |          | ",
        " hours     | double precision |           |          | ",
        " purchases | bigint           |           |          | ",
        " paying    | boolean          |           |          | ",
        " joined    | date             |           |          | ",
        "",
    ]
    assert "private, 0 to 99" in psql(table, r"\d+ people") and " public" in psql(table, r"\d+ people")
    assert "tacit | tacit | UTF8" in psql(table, r"\l")
    assert psql(table, r"\dn").splitlines()[3] == " public | tacit"
    assert f"aggregates of {N} rows" in psql(table, r"\dt+ people")


DESCRIBES = r"\d \dt \dv \di \ds \dm \dE \df \da \dT \dD \do \dx \dp \ddp \du \dg \db \dc \dC \dF \dL \dO \drds \dy"
MORE = r"\dRp \dRs \des \dew \det \deu \dl \dA \dX \dconfig \l+ \dn+ \dP \z \dS \dtS \dT+ \dd"


def test_psql_describes_everything_without_an_error_or_an_excuse(table: Served) -> None:
    """Every command in one session; nothing of it is refused, nor answered with no rows for want of understanding."""
    output = psql(table, *DESCRIBES.split(), *MORE.split(), r"\dt p*", r"\d public.people", r"\dt nosuch")
    assert "ERROR" not in output and "NOTICE" not in output and "FATAL" not in output
    assert 'Did not find any relation named "nosuch"' in output


def test_psql_asks_and_is_told_what_to_write_instead(table: Served) -> None:
    output = psql(table, "SELECT COUNT(*) FROM people WHERE purchases = 2")
    truth = int((table.people["purchases"] == 2).sum())
    assert output.splitlines() == [" count ", "-------", f" {truth:>5}", "(1 row)", ""]
    for sql, words in {
        "SELECT COUNT(*) FROM people WHERE agee = 3": "did you mean age?",
        "SELECT COUNT(*) FROM poeple": 'relation "poeple" does not exist\nLINE',
        "SELECT * FROM people": "write aggregates such as COUNT(*)",
        "SELECT MAX(age) FROM people": "ask without it, or for AVG and STDDEV",
        "SELECT COUNT(*) FROM people JOIN others ON TRUE": "JOIN",
        "DELETE FROM people": "cannot execute DELETE: answers are read only",
        "COPY people TO STDOUT": "HINT:  Write COPY (SELECT aggregates",
        "SELEC 1": "A query begins with SELECT",
        "SELECT 'open": "a quote or a comment may have no end",
        "SELECT COUNT(*) FROM others": "0 rows are stored; queries are answered from 100 rows on",
        "SET tacit.level = 2": "from 0.01 to 0.9999",
        "SET tacit.eror = on": "There are tacit.errors and tacit.level",
    }.items():
        assert words.split("\nLINE")[0] in psql(table, sql), sql


def test_psql_shows_errors_levels_plans_and_cursors(table: Served) -> None:
    lines = psql(table, "SET tacit.errors = on", "SELECT COUNT(*) AS n FROM people WHERE age < 40").splitlines()
    assert [word.strip() for word in lines[1].split("|")] == ["n", "n_standard_error", "n_low", "n_high"]
    plan = psql(table, "EXPLAIN SELECT COUNT(*) FROM people WHERE age < 40")
    assert "QUERY PLAN" in plan and "expected_standard_error=" in plan
    fetched = psql(table, r"\set FETCH_COUNT 2", "SELECT purchases, COUNT(*) FROM people GROUP BY purchases", r"\q")
    assert fetched.count("\n") >= len(set(table.people["purchases"].tolist()))
    shown = psql(table, "SHOW tacit.level; SHOW server_version; SELECT 1 AS one; BEGIN; SELECT 2; COMMIT")
    assert "0.95" in shown and "14.0" in shown and "COMMIT" in shown


def test_mistakes_are_pointed_at_and_digits_can_be_cut(connection: Any, table: Served) -> None:
    for sql, place in {
        "SELECT COUNT(*) FROM people WHERE stat = 'CA'": 35,
        "SELECT 1; EXPLAIN SELECT COUNT(*) FROM people WHERE stat = 'CA'": 53,
    }.items():
        with pytest.raises(errors.UndefinedColumn) as caught:
            connection.execute(sql)
        connection.rollback()
        assert caught.value.diag.statement_position == str(place) and sql[place - 1 :].startswith("stat ")
    with pytest.raises(errors.UndefinedColumn) as caught:
        connection.execute("SELECT COUNT(*) FROM people WHERE os = %s AND stat = 'CA'", ("ios",))
    assert caught.value.diag.statement_position == "47"  # In the text that was sent, in which the parameter is $1.
    output = psql(table, "SET extra_float_digits = -11", "SELECT COUNT(*) AS n FROM people WHERE age < 40")
    assert len(output.split()[-3]) == 4


def near(row: Any, truth: float) -> None:
    estimate, error, low, high = row
    assert low < estimate < high and abs(estimate - truth) < SURE * error, (row, truth)


def test_aggregates_are_near_the_truth_with_errors_that_a_connection_asks_for(table: Served) -> None:
    people = table.people
    chosen = (people["age"] >= 30) & (people["age"] < 40) & (people["state"] == 0)
    sql = "SELECT COUNT(*), SUM(hours), AVG(hours) FROM people WHERE age BETWEEN 30 AND 39 AND state = 'CA'"
    with psycopg.connect(table.address(options="-c tacit.errors=on")) as connection:
        row = connection.execute(sql).fetchone()
        connection.execute("SET tacit.level = 0.999")
        wide = connection.execute(sql).fetchone()
    assert row is not None and wide is not None
    truths = chosen.sum(), people["hours"][chosen].sum(), people["hours"][chosen].mean()
    for i, truth in enumerate(truths):
        near(row[4 * i : 4 * i + 4], truth)
    assert wide[3] - wide[2] == pytest.approx((row[3] - row[2]) * 3.2905 / 1.9600, rel=1e-3)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("mark", ["%s", "%t", "%b"])
def test_parameters_and_results_of_every_type(connection: Any, table: Served, binary: bool, mark: str) -> None:
    people, day = table.people, date(2030, 1, 2)
    conditions: dict[str, tuple[Any, Any]] = {
        "purchases <": (3, people["purchases"] < 3),
        "hours >=": (20.5, people["hours"] >= 20.5),
        "os =": ("o'clock", people["os"] == "o'clock"),
        "paying =": (True, people["paying"]),
        "joined >": (day, people["joined"] > day),
    }
    for condition, (value, chosen) in conditions.items():
        cursor = connection.cursor(binary=binary)
        cursor.execute(f"SELECT COUNT(*) FROM people WHERE {condition} {mark}", (value,))
        assert cursor.fetchone() == (float(chosen.sum()),), condition
    cursor = connection.cursor(binary=binary)
    cursor.execute(
        "SELECT os, purchases, paying, joined, COUNT(*) FROM people WHERE hours > 30 AND os = 'ios' "
        f"GROUP BY os, purchases, paying, joined ORDER BY 5 DESC LIMIT {mark}",
        (2,),
    )
    rows = cursor.fetchall()
    assert [[type(value) for value in row] for row in rows] == 2 * [[str, int, bool, date, float]]
    os, purchases, paying, joined, count = rows[0]
    same = (people["os"] == os) & (people["purchases"] == purchases) & (people["paying"] == paying)
    assert count == int((same & (people["joined"] == joined) & (people["hours"] > 30)).sum())


def test_parameters_without_a_type_take_that_of_the_column(connection: Any, table: Served) -> None:
    people = table.people
    cases = {"purchases = %s": "2", "joined = %s": "2030-01-02", "paying = %s": "off", "hours < %s": "1e1"}
    chosen = (people["purchases"] == 2, people["joined"] == date(2030, 1, 2), ~people["paying"], people["hours"] < 10)
    for (condition, value), who in zip(cases.items(), chosen, strict=True):
        found = connection.execute(f"SELECT COUNT(*) FROM people WHERE {condition}", (value,)).fetchone()
        assert found == (float(who.sum()),), condition
    found = connection.execute("SELECT COUNT(*) FROM people WHERE os NOT LIKE %s", ("w%",)).fetchone()
    assert found == (float(sum(name is not None and name != "win" for name in people["os"])),)
    some = connection.execute("SELECT COUNT(*) FROM people WHERE purchases = ANY(%s)", ([1, 2],)).fetchone()
    assert some == (float(np.isin(people["purchases"], [1, 2]).sum()),)
    with pytest.raises(errors.InvalidTextRepresentation):
        connection.execute("SELECT COUNT(*) FROM people WHERE purchases = %s", ("two",))


def test_prepared_statements_pipelines_cursors_and_streams(connection: Any, table: Served) -> None:
    counts = np.bincount(table.people["purchases"]).astype(float).tolist()
    sql = "SELECT COUNT(*) FROM people WHERE purchases = %s"
    assert [connection.execute(sql, (i,), prepare=True).fetchone()[0] for i in range(7)] == counts[:7]
    with connection.pipeline():
        several = [connection.execute(sql, (i,)) for i in range(4)]
        assert [cursor.fetchone()[0] for cursor in several] == counts[:4]
    grouped = "SELECT purchases, COUNT(*) FROM people GROUP BY purchases ORDER BY 1"
    cursor = connection.execute(grouped)
    assert [len(cursor.fetchmany(3)), len(cursor.fetchmany(3)), len(cursor.fetchall())] == [3, 3, len(counts) - 6]
    with connection.cursor(name="some_rows") as cursor:
        cursor.execute(grouped)
        assert cursor.fetchmany(2) == [(0, counts[0]), (1, counts[1])] and len(cursor.fetchall()) == len(counts) - 2
    assert [row[1] for row in connection.cursor().stream(grouped)] == counts


def test_an_error_in_a_pipeline_skips_to_the_end_of_it(connection: Any) -> None:
    with pytest.raises(errors.UndefinedTable), connection.pipeline():
        connection.execute("SELECT COUNT(*) FROM nosuch")
        connection.execute("SELECT 1")
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_transactions_fail_and_end_as_clients_expect(connection: Any) -> None:
    assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(errors.ReadOnlySqlTransaction):
        connection.execute("UPDATE people SET os = 'x'")
    with pytest.raises(errors.InFailedSqlTransaction):
        connection.execute("SELECT 1")
    connection.rollback()
    with pytest.raises(errors.UndefinedColumn), connection.transaction():
        connection.execute("SELECT COUNT(*) FROM people WHERE nosuchcolumn = 1")
    with connection.transaction(), connection.transaction():
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
    connection.commit()
    connection.autocommit = True
    connection.execute("DISCARD ALL")


def test_null_cells_come_with_a_reason(connection: Any) -> None:
    notices: list[str] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    assert connection.execute("SELECT AVG(hours) FROM people WHERE age = 99").fetchone() == (None,)
    assert notices == [
        "AVG(hours) is NULL in 1 of 1 rows: the count is lost in the noise; ask for more rows or a wider range"
    ]


def test_parameters_are_never_sql(connection: Any, table: Served) -> None:
    for value in ("x' OR '1'='1", "'; DROP TABLE people; --", "\\' OR TRUE --", "$1", "%s", '"', "/*", "é\u2028'"):
        found = connection.execute("SELECT COUNT(*) FROM people WHERE os = %s", (value,)).fetchone()
        assert found == (0.0,), value
    connection.execute("SET standard_conforming_strings = on")
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT COUNT(*) FROM people WHERE purchases = %s", ("1 OR TRUE",))
    connection.rollback()
    found = connection.execute("SELECT COUNT(*) FROM people WHERE purchases >-%s", (-1,)).fetchone()
    assert found == (float((table.people["purchases"] > 1).sum()),)


def test_columns_are_described_before_anything_is_asked(connection: Any) -> None:
    cursor = connection.execute("SELECT * FROM people LIMIT 0")
    assert [column.name for column in cursor.description][:3] == ["age", "state", "os"] and cursor.fetchall() == []
    assert [column.type_display for column in cursor.description[-3:]] == ["int8", "bool", "date"]
    with pytest.raises(errors.FeatureNotSupported):
        connection.execute("SELECT * FROM people LIMIT 1")


def test_types_are_looked_up_as_psycopg_does(connection: Any) -> None:
    info = TypeInfo.fetch(connection, "float8")
    assert info is not None and (info.oid, info.array_oid) == (701, 1022)
    assert TypeInfo.fetch(connection, "hstore") is None


def test_pandas_reads_a_query(table: Served) -> None:
    sql = "SELECT state, COUNT(*) AS n FROM people WHERE age < %s GROUP BY state"
    with psycopg.connect(table.address(options="-c tacit.errors=on")) as connection:
        with pytest.warns(UserWarning, match="pandas only supports SQLAlchemy"):
            frame = pd.read_sql(sql, connection, params=(40,))
    assert list(frame.columns) == ["state", "n", "n_standard_error", "n_low", "n_high"]
    assert frame["state"].tolist() == list(STATES) and frame["n"].dtype == float
    for i, row in frame.iterrows():
        truth = int(((table.people["state"] == i) & (table.people["age"] < 40)).sum())
        near(row.iloc[1:], truth)


@pytest.mark.slow
def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    http, port = free_port(), free_port()
    command = [sys.executable, "-m", "tacit.cli", "serve", "--data", str(tmp_path / "data"), "--port", str(http)]
    with subprocess.Popen(
        [*command, "--pg-port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        token = first_token(run.stdout)
        address = f"host=127.0.0.1 port={port} user=ann password={token}"
        with closing(connected(address)) as connection:
            assert connection.execute("SELECT COUNT(*) FROM pg_class").fetchone() == (0,)
            run.terminate()
            assert (
                run.wait(PATIENT_SECONDS) == -signal.SIGTERM
            )  # Everything has ended in order before the signal is passed on.
            with pytest.raises(errors.AdminShutdown):
                connection.execute("SELECT 1")


def connected(address: str) -> psycopg.Connection[Any]:
    """A connection to a server that may not have started yet."""
    connections: list[psycopg.Connection[Any]] = []

    def is_connected() -> bool:
        with suppress(psycopg.OperationalError):
            connections.append(psycopg.connect(address, autocommit=True))
        return bool(connections)

    wait_until(is_connected)
    return connections[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pg-port", "5433", "--host", "0.0.0.0"], "tokens would cross the network in the clear"),
        (["--pg-port", "5433", "--pg-cert", "x"], "go together"),
        (["--pg-port", "5433", "--pg-cert", "nosuch", "--pg-key", "nosuch"], "cannot be read"),
        (["--pg-insecure"], "go with --pg-port"),
    ],
)
def test_the_command_refuses_what_would_be_unsafe(tmp_path: Path, options: list[str], words: str) -> None:
    done = CliRunner().invoke(cli, ["serve", "--data", str(tmp_path / "data"), *options])
    assert done.exit_code != 0 and words in f"{done.output} {done.exception}"
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_fifty_clients_at_once(table: Served) -> None:
    async def ask(i: int) -> float:
        async with await psycopg.AsyncConnection.connect(
            table.address(), connect_timeout=int(PATIENT_SECONDS)
        ) as connection:
            cursor = await connection.execute("SELECT COUNT(*) FROM people WHERE purchases = %s", (i % 5,))
            row = await cursor.fetchone()
            assert row is not None
            return row[0]

    async def everybody() -> list[float]:
        return await asyncio.gather(*(ask(i) for i in range(50)))

    counts = np.bincount(table.people["purchases"]).astype(float).tolist()
    assert run_async(everybody()) == counts[:5] * 10
