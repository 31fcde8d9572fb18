"""COPY (SELECT ...) TO STDOUT: its options, and rows as text, CSV and binary."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tacit.collector.pg import values as pg
from tacit.collector.pg.copying import CopyFormat, copy_messages, read_copy
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.text import statements
from tacit.collector.pg.values import Field, encode_value, numeric_text

FIELDS = (Field("os", pg.TEXT), Field("n", pg.FLOAT8), Field("d", pg.DATE))
ROWS: list[tuple[Any, ...]] = [("a,b", 2.0, date(2000, 1, 2)), (None, None, None), ('q"\t\\', 1.5, date(1999, 12, 31))]


def read(text: str) -> CopyFormat:
    return read_copy(statements(text, 1000)[0], 1000)[1]


def data(form: CopyFormat, rows: list[tuple[Any, ...]] = ROWS) -> bytes:
    """What a client receives inside the messages."""
    messages = list(copy_messages(form, FIELDS, rows, 0))
    assert messages[0][:1] == b"H" and messages[-1] == b"c\0\0\0\4"
    return b"".join(message[5:] for message in messages[1:-1])


def test_the_query_and_its_place() -> None:
    text = "  COPY ( SELECT COUNT(*) FROM t WHERE x = ')' ) TO STDOUT (FORMAT csv)"
    query, form = read_copy(statements(text, 1000)[0], 1000)
    assert query.text == "SELECT COUNT(*) FROM t WHERE x = ')'" and text[query.start :].startswith(query.text)
    assert form.name == "csv"


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ("", CopyFormat()),
        ("WITH (FORMAT text, NULL '', DELIMITER '|')", CopyFormat(null="", delimiter="|")),
        ("(FORMAT CSV, HEADER)", CopyFormat("csv", True, ",", "")),
        ("(FORMAT csv, HEADER true, DELIMITER ';', QUOTE '''')", CopyFormat("csv", True, ";", "", "'", "'")),
        ("(FORMAT csv, HEADER off, FORCE_QUOTE *)", CopyFormat("csv", False, ",", "", force=True)),
        ("CSV HEADER", CopyFormat("csv", True, ",", "")),
        ("WITH CSV HEADER DELIMITER AS ';' NULL AS 'x'", CopyFormat("csv", True, ";", "x")),
        ("WITH BINARY", CopyFormat("binary")),
        ("(FORMAT binary)", CopyFormat("binary")),
        ("(FORMAT csv, ENCODING 'UTF8')", CopyFormat("csv", False, ",", "")),
    ],
)
def test_options(options: str, form: CopyFormat) -> None:
    assert read(f"COPY (SELECT 1) TO STDOUT {options}") == form


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("COPY people TO STDOUT", "0A000"),
        ("COPY people FROM STDIN", "0A000"),
        ("COPY (SELECT 1) TO '/etc/passwd'", "0A000"),
        ("COPY (SELECT 1) TO PROGRAM 'sh'", "0A000"),
        ("COPY (SELECT 1) FROM STDIN", "0A000"),
        ("COPY (SELECT 1; SELECT 2) TO STDOUT", "42601"),
        ("COPY (SELECT 1 TO STDOUT", "42601"),
        ("COPY () TO STDOUT", "42601"),
        ("COPY (SELECT 1) TO STDOUT (FORMAT parquet)", "22023"),
        ("COPY (SELECT 1) TO STDOUT (FORMAT binary, HEADER)", "0A000"),
        ("COPY (SELECT 1) TO STDOUT (DELIMITER 'ab')", "22023"),
        ("COPY (SELECT 1) TO STDOUT (ENCODING 'latin1')", "0A000"),
        ("COPY (SELECT 1) TO STDOUT (FREEZE)", "42601"),
    ],
)
def test_what_is_refused(text: str, state: str) -> None:
    with pytest.raises(PgError) as caught:
        for statement in statements(text, 1000):
            read_copy(statement, 1000)
    assert caught.value.state == state


def test_text() -> None:
    assert data(CopyFormat()) == b'a,b\t2\t2000-01-02\n\\N\t\\N\t\\N\nq"\\t\\\\\t1.5\t1999-12-31\n'


def test_csv() -> None:
    form = CopyFormat("csv", True, ",", "")
    assert data(form) == b'os,n,d\n"a,b",2,2000-01-02\n,,\n"q""\t\\",1.5,1999-12-31\n'
    assert data(form, [("", 1.0, None)]) == b'os,n,d\n"",1,\n'


def test_binary() -> None:
    head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    assert data(CopyFormat("binary"), []) == head + b"\xff\xff"
    row = b"\0\3" + b"\0\0\0\3a,b" + b"\0\0\0\x08\x40" + bytes(7) + b"\0\0\0\4\0\0\0\1"
    assert data(CopyFormat("binary"), ROWS[:2]) == head + row + b"\0\3" + b"\xff" * 12 + b"\xff\xff"
    # The first row comes in one message with the signature, as PostgreSQL sends it.
    assert list(copy_messages(CopyFormat("binary"), FIELDS, ROWS[:1], 0))[1][5:16] == head[:11]


@pytest.mark.parametrize(
    ("number", "text", "binary"),
    [
        (0.0, "0", "0001 0000 0000 0000 0000"),
        (2030, "2030", "0001 0000 0000 0000 07ee"),
        (-12345.678, "-12345.678", "0003 0001 4000 0003 0001 0929 1a7c"),
        (1e-7, "0.0000001", "0003 0000 0000 0007 0000 0000 000a"),
        (1e20, "100000000000000000000", None),
        (float("nan"), "NaN", "0000 0000 c000 0000"),
    ],
)
def test_numerics(number: float, text: str, binary: str | None) -> None:
    assert numeric_text(number) == text == (encode_value(number, pg.NUMERIC, 0) or b"").decode()
    if binary is not None:
        assert encode_value(number, pg.NUMERIC, 1) == bytes.fromhex(binary)


def test_times() -> None:
    moment = datetime(2030, 1, 1, 12, 30, 0, 250_000)
    assert encode_value(moment, pg.TIMESTAMP, 0) == b"2030-01-01 12:30:00.250000"
    assert encode_value(moment.replace(tzinfo=UTC), pg.TIMESTAMPTZ, 0) == b"2030-01-01 12:30:00.250000+00"
    for value in (moment, moment.replace(tzinfo=UTC)):
        data = encode_value(value, pg.TIMESTAMPTZ, 1)
        assert data is not None and int.from_bytes(data) == 946_816_200_250_000
