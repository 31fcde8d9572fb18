"""Functions of dates, casts and typed constants, with the answers that PostgreSQL 14 gives."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit.errors import InvalidQuery
from tacit.sql.engine.public import ArrowRows, RowEvaluator
from tacit.sql.parse.moments import interval_of, moment_of
from tacit.sql.parse.select import parse_sql
from tacit.sql.parse.syntax import Interval, type_of

DAYS = [date(2030, 1, 31), date(2000, 12, 31), date(2024, 2, 29), date(1969, 7, 20), None]
TABLE = pa.table({
    "d": pa.array(DAYS, pa.date32()), "x": [1.5, 2.5, -0.5, None, 1e6], "k": [1, 2, 3, None, 5],
    "s": ["12", "7", "-3", "0", None], "b": [True, False, None, True, True],
})  # fmt: skip
KINDS = {"d": "date", "x": "number", "k": "integer", "s": "text", "b": "boolean"}
ROWS = RowEvaluator(ArrowRows(TABLE))


def values(expression: str) -> list[Any]:
    """An expression in every row, by way of its groups."""
    item = parse_sql(f"SELECT {expression}, COUNT(*) FROM t GROUP BY 1", list(KINDS), "t").groups[0]
    codes, keys = ROWS.groups([item])
    return [keys[code][0] for code in codes]


def stamps(*days: date | None) -> list[datetime | None]:
    return [None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days]


@pytest.mark.parametrize(
    ("unit", "starts"),
    [
        ("day", DAYS[:4]),
        ("week", [date(2030, 1, 28), date(2000, 12, 25), date(2024, 2, 26), date(1969, 7, 14)]),
        ("month", [date(2030, 1, 1), date(2000, 12, 1), date(2024, 2, 1), date(1969, 7, 1)]),
        ("quarter", [date(2030, 1, 1), date(2000, 10, 1), date(2024, 1, 1), date(1969, 7, 1)]),
        ("year", [date(2030, 1, 1), date(2000, 1, 1), date(2024, 1, 1), date(1969, 1, 1)]),
        ("decade", [date(2030, 1, 1), date(2000, 1, 1), date(2020, 1, 1), date(1960, 1, 1)]),
        ("century", [date(2001, 1, 1), date(1901, 1, 1), date(2001, 1, 1), date(1901, 1, 1)]),
        ("millennium", [date(2001, 1, 1), date(1001, 1, 1), date(2001, 1, 1), date(1001, 1, 1)]),
        ("hour", DAYS[:4]),
        ("milliseconds", DAYS[:4]),
    ],
)
def test_date_trunc(unit: str, starts: list[date]) -> None:
    assert values(f"date_trunc('{unit}', d)") == stamps(*starts, None)
    naive = [None if moment is None else moment.replace(tzinfo=None) for moment in stamps(*starts, None)]
    assert values(f"DATE_TRUNC('{unit.upper()}', d::timestamp)") == naive


@pytest.mark.parametrize(
    ("field", "numbers"),
    [
        ("year", [2030, 2000, 2024, 1969]),
        ("quarter", [1, 4, 1, 3]),
        ("month", [1, 12, 2, 7]),
        ("day", [31, 31, 29, 20]),
        ("dow", [4, 0, 4, 0]),
        ("isodow", [4, 7, 4, 7]),
        ("doy", [31, 366, 60, 201]),
        ("week", [5, 52, 9, 29]),
        ("isoyear", [2030, 2000, 2024, 1969]),
        ("decade", [203, 200, 202, 196]),
        ("century", [21, 20, 21, 20]),
        ("millennium", [3, 2, 3, 2]),
        ("julian", [2462533, 2451910, 2460370, 2440423]),
        ("epoch", [1896048000, 978220800, 1709164800, -14256000]),
        ("hour", [0, 0, 0, 0]),
        ("second", [0, 0, 0, 0]),
    ],
)
def test_parts_of_dates(field: str, numbers: list[int]) -> None:
    assert values(f"EXTRACT({field} FROM d)") == [*numbers, None]
    assert values(f"date_part('{field}', d)") == [*numbers, None]


def test_parts_of_times() -> None:
    at = "TIMESTAMP '2030-01-31 13:14:15.25' "
    for field, number in {
        "hour": 13,
        "minute": 14,
        "second": 15.25,
        "milliseconds": 15250,
        "epoch": 1896095655.25,
    }.items():
        assert values(f"coalesce(date_part('{field}', {at}), k)")[0] == number


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("date_bin('7 days', d, TIMESTAMP '2001-01-01')", datetime(2030, 1, 28)),
        ("date_bin(INTERVAL '1 day', d, '2001-01-01 06:00')", datetime(2030, 1, 30, 6, tzinfo=UTC)),
        ("date_bin('15 minutes', TIMESTAMP '2030-01-31 10:37', '2001-01-01')", datetime(2030, 1, 31, 10, 30)),
        ("d + INTERVAL '1 month'", datetime(2030, 2, 28)),
        ("d - INTERVAL '1 year'", datetime(2029, 1, 31)),
        ("d + INTERVAL '36 hours'", datetime(2030, 2, 1, 12)),
        ("d::timestamp AT TIME ZONE 'UTC'", datetime(2030, 1, 31, tzinfo=UTC)),
        ("(d::timestamp + INTERVAL '30 hours')::date", date(2030, 2, 1)),
        ("d::text", "2030-01-31"),
        ("d::timestamp::text", "2030-01-31 00:00:00"),
        ("d::timestamptz::text", "2030-01-31 00:00:00+00"),
        ("x::int", 2),
        ("x::numeric(10, 0)", 2.0),
        ("k::text", "1"),
        ("s::int + 1", 13),
        ("b::int", 1),
        ("floor(x)", 1),
        ("upper(s)", "12"),
        ("coalesce(s, 'none')", "12"),
    ],
)  # fmt: skip
def test_other_functions(expression: str, first: Any) -> None:
    assert values(expression)[0] == first


def test_rounding_and_what_is_missing() -> None:
    assert values("x::int") == [2, 2, 0, None, 1_000_000]  # To even, as PostgreSQL rounds double precision.
    assert values("k::double precision") == [1, 2, 3, None, 5]
    assert values("coalesce(s, 'none')")[4] == "none" and values("s::int")[4] is None
    assert values("round(x, 0)") == [2, 3, -1, None, 1_000_000]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("d >= '2024-02-29'::date", [0, 2]),
        ("d >= '2024-02-29 00:00:00'::timestamp", [0, 2]),
        ("d > TIMESTAMP '2024-02-28 23:59:59'", [0, 2]),
        ("d >= TIMESTAMP '2024-02-29 00:00:01'", [0]),
        ("d >= '2024-02-29T00:00:00Z'::timestamptz", [0, 2]),
        ("d >= '2024-02-29T01:00:00+01:00'::timestamptz", [0, 2]),
        ("d > '2024-02-28T23:00:00+00'::timestamptz", [0, 2]),
        ("d >= '2024-02-29T12:00:00Z'", [0, 2]),  # Beside a date the text is a date, whose time is dropped.
        ("d BETWEEN '2000-12-31' AND DATE '2024-02-29'", [1, 2]),
        ("date_trunc('year', d) = '2024-01-01'", [2]),
        ("extract(year from d) IN (2000, 1969)", [1, 3]),
        ("d < TO_DATE('31.12.2000', 'DD.MM.YYYY')", [3]),
        ("d > to_timestamp(1709164800)", [0]),
        ("d - INTERVAL '1 day' < '2000-12-31'", [1, 3]),
        ("d::text LIKE '20%'", [0, 1, 2]),
        ("s::int < 8", [1, 2, 3]),
        ("k = '3'", [2]),
        ("x > '1.5'", [1, 4]),
        ("k = ANY('{1,3,9}')", [0, 2]),
        ("k = ANY('{1,3,9}'::bigint[])", [0, 2]),
        ("k = ANY(ARRAY[2, 5])", [1, 4]),
        ("s = ANY(ARRAY['12', '7'])", [0, 1]),
        ("k <> ALL('{1,3}')", [1, 4]),
        ("k = ANY('{}')", []),
        ("d = ANY('{2024-02-29,1969-07-20}')", [2, 3]),
    ],
)
def test_conditions(condition: str, rows: list[int]) -> None:
    item = parse_sql(f"SELECT COUNT(*) FROM t WHERE {condition}", list(KINDS), "t").condition
    assert np.flatnonzero(ROWS.mask(item)).tolist() == rows


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("date_trunc('eon', d)", "22023"),
        ("extract(eon from d)", "22023"),
        ("date_trunc('day', s)", "42804"),
        ("date_bin('1 month', d, '2001-01-01')", "0A000"),
        ("date_bin('0 days', d, '2001-01-01')", "0A000"),
        ("date_bin('1 day', d, d)", "0A000"),
        ("d + INTERVAL '1 fortnight'", "22007"),
        ("d AT TIME ZONE 'Europe/Paris'", "0A000"),
        ("d::int", "42846"),
        ("x::boolean", "42846"),
        ("s::json", "0A000"),
        ("'2030-02-30'::date", "22007"),
        ("(s || 'x')", "0A000"),
        ("coalesce(INTERVAL '1 day', d)", "42883"),
        ("date_trunc('decade', d - INTERVAL '1968 years')", "22008"),
    ],
)
def test_what_postgresql_refuses_is_refused(expression: str, code: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        values(f"coalesce({expression}, {expression})" if expression.startswith("'") else expression)
    assert caught.value.code == code
    words = str(caught.value)
    assert not any(part in words for part in ("date32", "timestamp[", "int64", "Arrow", "TIMESTAMPTRUNC"))


def test_a_value_that_cannot_be_cast_is_not_shown() -> None:
    rows = RowEvaluator(ArrowRows(pa.table({"s": ["3", "secret"]})))
    item = parse_sql("SELECT COUNT(*) FROM t WHERE s::int = 3", ["s"], "t").condition
    with pytest.raises(InvalidQuery, match="not every value of s can be cast to integer") as caught:
        rows.mask(item)
    assert "secret" not in str(caught.value)


def test_types_are_those_of_postgresql() -> None:
    expected = {
        "d": "date", "x": "double precision", "k": "bigint", "date_trunc('day', d)": "timestamptz",
        "date_trunc('day', d::timestamp)": "timestamp", "extract(day from d)": "numeric",
        "date_part('day', d)": "double precision", "date_bin('1 day', d, TIMESTAMP '2001-01-01')": "timestamp",
        "date_bin('1 day', d, '2001-01-01')": "timestamptz", "d + INTERVAL '1 day'": "timestamp", "k::int": "integer",
        "x::numeric": "numeric", "d::text": "text", "d::timestamptz": "timestamptz", "b": "boolean",
    }  # fmt: skip
    for text, kind in expected.items():
        output = parse_sql(f"SELECT {text} FROM t GROUP BY 1", list(KINDS), "t").outputs[0]
        assert type_of(output.item, KINDS) == kind, text


def test_moments_and_intervals_in_quotes() -> None:
    assert moment_of("2030-01-31 23:59:59.5") == datetime(2030, 1, 31, 23, 59, 59, 500_000)
    assert moment_of("2030-01-31T00:00:00-05:30").utcoffset().total_seconds() == -19_800  # type: ignore[union-attr]
    for wrong in ("", "2030", "2030-13-01", "2030-01-31 25:00", "2030-01-31 x", "31.1.2030"):
        assert moment_of(wrong) is None
    assert interval_of("1 year 2 mons -3 days") == Interval(14, -3 * 86_400_000_000)
    assert interval_of("1.5", "HOURS") == Interval(0, 5_400_000_000) == interval_of("01:30:00")
    for wrong in ("", "x", "3", "3 x", "1.5 months", "1 day x"):
        with pytest.raises(InvalidQuery):
            interval_of(wrong)
