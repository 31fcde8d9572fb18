"""What BI tools send over PostgreSQL's protocol and over HTTP is answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from tests.service.bi_texts import ALIKE, COLUMNS, VALUES
from tests.service.pg_people import FEW as N
from tests.service.pg_people import Served, served

TEXTS = [(tool, i) for tool, pairs in ALIKE.items() for i in range(len(pairs))]


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Generator[Served]:
    with served(tmp_path_factory.mktemp("bi"), n=N) as found:
        yield found


@pytest.fixture(scope="module")
def connection(table: Served) -> Generator[psycopg.Connection[Any]]:
    with psycopg.connect(table.address(), autocommit=True) as found:
        yield found


def plain(value: Any) -> Any:
    """A value without the type that the tool asked for."""
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, (Decimal, float, int)):
        return pytest.approx(float(value))
    return value.isoformat() if isinstance(value, date) else value


def ask(connection: psycopg.Connection[Any], sql: str, *, binary: bool = False) -> list[tuple[Any, ...]]:
    with connection.cursor(binary=binary) as cursor:
        return cursor.execute(sql.encode()).fetchall()


@pytest.mark.parametrize(("tool", "place"), TEXTS, ids=[f"{tool}-{i}" for tool, i in TEXTS])
def test_queries_of_tools_have_the_answers_of_plain_queries(
    connection: psycopg.Connection[Any], tool: str, place: int
) -> None:
    sent, meant = ALIKE[tool][place]
    expected = [tuple(map(plain, row)) for row in ask(connection, meant)]
    assert expected
    for binary in (False, True):
        rows = ask(connection, sent, binary=binary)
        assert [tuple(value if isinstance(value, str) else _bare(value) for value in row) for row in rows] == expected


def _bare(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, (Decimal, int)) and not isinstance(value, bool) else value


def test_plain_counts_are_those_of_the_people(table: Served, connection: psycopg.Connection[Any]) -> None:
    people = table.people
    chosen = people["os"][(people["hours"] > 5) & (people["joined"] < date(2030, 1, 3))]
    expected = sorted((float(n) for n in Counter(chosen.tolist()).values()), reverse=True)
    assert [row[1] for row in ask(connection, ALIKE["superset"][0][0])] == expected


@pytest.mark.parametrize("name", VALUES)
def test_values_of_filters_are_those_that_enough_people_hold(
    table: Served, connection: psycopg.Connection[Any], name: str
) -> None:
    sent, column = VALUES[name]
    counts = Counter(table.people[column].tolist())
    held = [value for value, n in counts.items() if n >= 100]
    assert sorted(held, key=lambda value: (value is None, value)) == [row[0] for row in ask(connection, sent)]


@pytest.mark.parametrize("sent", COLUMNS)
def test_columns_of_a_table_are_told_without_rows(connection: psycopg.Connection[Any], sent: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sent.encode())
        assert cursor.fetchall() == [] and cursor.description is not None
        assert [item.name for item in cursor.description][:3] == ["age", "state", "os"]


def test_types_of_answers(connection: psycopg.Connection[Any]) -> None:
    sql = (
        "SELECT date_trunc('month', joined), date_trunc('month', joined::timestamp), extract(year FROM joined), "
        "date_part('year', joined), joined + INTERVAL '1 day', joined::date, MIN(os), MAX(purchases), COUNT(*), "
        "COUNT(*)::int, COUNT(*)::bigint, SUM(hours)::numeric, AVG(hours)::real FROM people GROUP BY 1, 2, 3, 4, 5, 6"
    )
    for binary in (False, True):
        with connection.cursor(binary=binary) as cursor:
            row = cursor.execute(sql.encode()).fetchone()
            types = [item.type_code for item in cursor.description or ()]
        assert types == [1184, 1114, 1700, 701, 1114, 1082, 25, 20, 701, 23, 20, 1700, 700]
        assert row is not None and row[:6] == (
            datetime.fromisoformat("2030-01-01T00:00:00+00:00"), datetime(2030, 1, 1), Decimal(2030), 2030.0,
            datetime(2030, 1, 2), date(2030, 1, 1),
        )  # fmt: skip
        assert [type(value) for value in row[6:]] == [str, int, float, int, int, Decimal, float]


def test_names_of_columns_are_postgresqls(connection: psycopg.Connection[Any]) -> None:
    sql = "SELECT date_trunc('month', joined), COUNT(*)::int, MAX(os), joined::text, 3 FROM people GROUP BY 1, 4"
    with connection.cursor() as cursor:
        cursor.execute(sql.encode())
        names = [item.name for item in cursor.description or ()]
    assert names == ["date_trunc", "count", "max", "joined", "?column?"]


REFUSED = [
    ("0A000", "SELECT COUNT(*) FROM (SELECT os, COUNT(*) FROM people GROUP BY os) AS v"),
    ("0A000", "SELECT COUNT(*) FROM people p JOIN people q ON p.os = q.os"),
    ("0A000", "SELECT MAX(age) FROM people"),
    ("0A000", "SELECT os FROM people WHERE age < 30 GROUP BY os"),
    ("0A000", "SELECT * FROM people LIMIT 100"),
    ("42803", "SELECT people.age, people.os FROM people"),
    ("22023", "SELECT date_trunc('eon', joined), COUNT(*) FROM people GROUP BY 1"),
    ("22007", "SELECT COUNT(*) FROM people WHERE joined > '2030-02-31'"),
]


@pytest.mark.parametrize(("state", "sent"), REFUSED)
def test_what_is_refused_says_so_in_sqls_words(connection: psycopg.Connection[Any], state: str, sent: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sent.encode())
    assert caught.value.sqlstate == state
    assert not any(word in str(caught.value) for word in ("date32", "TIMESTAMPTRUNC", "sqlglot", "Arrow", "int64"))


def test_the_same_is_answered_over_http(table: Served) -> None:
    path = f"/collections/{table.collection}/query"
    sql = (
        "SELECT date_trunc('day', joined) AS day, MIN(os) AS os, COUNT(*) AS n FROM (SELECT * FROM people WHERE "
        "purchases > 1) AS v GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1"
    )
    reply = table.client.api("POST", path, {"sql": sql}).json()
    assert [column["kind"] for column in reply["columns"]] == ["group", "group", "aggregate"]
    days = table.people["joined"][table.people["purchases"] > 1].tolist()
    counts = sorted(Counter(days).items())
    assert [(row[0][:10], row[1], row[2]["estimate"]) for row in reply["rows"]] == [
        (day.isoformat(), "ios", float(n)) for day, n in counts
    ]
    text = table.client.api("POST", f"{path}.csv", {"sql": sql}).text
    assert text.splitlines()[0].startswith("day,os,n,n_standard_error")
