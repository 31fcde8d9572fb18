"""Rows: what a document may say about public columns, and which rows fit it."""

from copy import deepcopy
from typing import Any

import pytest

from tacit.errors import InvalidSpec, InvalidValue
from tacit.wire.document import Collection
from tacit.wire.rows import MAX_COLUMNS, MAX_NUMBER, MAX_TEXT, RESERVED, TYPES, Rows

SALES: dict[str, Any] = {"table": "sales", "columns": [{"name": f"a_{kind}", "type": kind} for kind in TYPES]}
ROWS = Rows.from_json(SALES)
DOCUMENT: dict[str, Any] = {
    "version": 1,
    "title": {"en": "Sales"},
    "about": {"en": "What was sold."},
    "questions": [
        {"name": "old", "text": {"en": "Old?"}, "domain": {"kind": "booleans", "name": "old"}, "task": "analytics"}
    ],
    "policy": "single",
    "epsilon": "1",
    "mechanism": {"kind": "grr", "epsilon": "1", "size": 2},
    "minimum_cohort": 100,
    "retention_days": 365,
    "origins": [],
    "invitations": False,
    "plan": None,
    "rows": SALES,
}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("integer", [0, -3, MAX_NUMBER, -MAX_NUMBER]),
        ("number", [0, -0.5, 1e-300, MAX_NUMBER, float(-MAX_NUMBER)]),
        ("text", ["", "caf\u00e9", "\U0001f600" * MAX_TEXT, "\0", "'; DROP TABLE sales; --"]),
        ("boolean", [True, False]),
        ("date", ["2030-12-31", "2028-02-29", "0001-01-01", "9999-12-31"]),
    ],
)
def test_what_a_column_holds(kind: str, values: list[Any]) -> None:
    for value in [*values, None]:
        row = ROWS.check_row({f"a_{kind}": value})
        assert list(row) == [column.name for column in ROWS.columns]
        assert row[f"a_{kind}"] == value
        assert type(row[f"a_{kind}"]) is type(value)
        assert [other for name, other in row.items() if name != f"a_{kind}"] == [None] * 4


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("integer", [1.0, True, "1", MAX_NUMBER + 1, 10**400, [1], float("nan")]),
        ("number", [True, "1.5", 1.1 * MAX_NUMBER, 10**400, float("nan"), float("inf"), -float("inf"), 1j]),
        ("text", [5, b"x", "x" * (MAX_TEXT + 1), "\ud800", "x\udfff", ["x"]]),
        ("boolean", [0, 1, "true", []]),
        (
            "date",
            ["2030-02-30", "2030-13-01", "20301231", "2030-W01-1", "31.12.2030", "2030-12-31T00:00", " 2030-12-3"],
        ),
    ],
)
def test_what_a_column_does_not_hold_is_named_and_not_shown(kind: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidValue, match=f"^row: a_{kind} must be .*, or null$") as caught:
            ROWS.check_row({f"a_{kind}": value})
        assert len(str(caught.value)) < 100


@pytest.mark.parametrize("row", [None, 5, "text", [], [("a_text", "x")]])
def test_a_row_is_an_object(row: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^row must be an object"):
        ROWS.check_row(row)


@pytest.mark.parametrize("row", [{"price": 1}, {"a_text": "x", "secret": "x"}, {1: 2}, {None: 1}])
def test_columns_that_the_collection_does_not_have_are_not_taken_or_shown(row: Any) -> None:
    with pytest.raises(InvalidValue, match="does not have; it has a_integer, a_number") as caught:
        ROWS.check_row(row)
    assert "secret" not in str(caught.value)


def test_a_checked_row_is_checked_again_without_a_change() -> None:
    row = ROWS.check_row({"a_text": "x", "a_integer": 1})
    assert ROWS.check_row(row) == row


def test_a_document_with_rows_is_read_back_and_has_an_id_of_its_own() -> None:
    made = Collection.from_json(DOCUMENT)
    assert made.rows == ROWS
    assert made.to_json() == DOCUMENT
    assert made.id != Collection.from_json(DOCUMENT | {"rows": None}).id
    assert Collection.from_json(DOCUMENT | {"rows": None}).rows is None


def test_the_order_of_columns_is_part_of_the_document() -> None:
    turned = SALES | {"columns": SALES["columns"][::-1]}
    assert Collection.from_json(DOCUMENT).id != Collection.from_json(DOCUMENT | {"rows": turned}).id


def with_columns(*columns: Any) -> dict[str, Any]:
    return SALES | {"columns": list(columns)}


def named(name: Any) -> dict[str, Any]:
    return {"name": name, "type": "text"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (1, "must be null"),
        ([], "must be null"),
        ({}, "must be null"),
        ({"table": "sales"}, "must be null"),
        (SALES | {"more": 1}, "must be null"),
        (SALES | {"columns": {}}, "a list of columns"),
        (SALES | {"table": "Sales"}, "table must be a lower-case word"),
        (SALES | {"table": ""}, "table must be a lower-case word"),
        (SALES | {"table": "x" * 41}, "table must be a lower-case word"),
        (with_columns(), f"1 to {MAX_COLUMNS} public columns"),
        (with_columns(*(named(f"c_{i}") for i in range(MAX_COLUMNS + 1))), f"1 to {MAX_COLUMNS} public columns"),
        (with_columns(named("a"), "b"), r"columns\[1\] must have a name"),
        (with_columns({"name": "a"}), r"columns\[0\] must have a name"),
        (with_columns(named("a") | {"more": 1}), r"columns\[0\] must have a name"),
        (with_columns(named("A")), r"columns\[0\] must have a name"),
        (with_columns(named(5)), r"columns\[0\] must have a name"),
        (with_columns({"name": "a", "type": "money"}), "type must be one of integer, number"),
        (with_columns({"name": "a", "type": ["text"]}), "type must be one of integer, number"),
        (with_columns(named("a"), named("a")), "names must differ"),
        (with_columns(named("old")), "'old' is a question"),
        *((with_columns(named(name)), f"must not be called '{name}'") for name in RESERVED),
    ],
)
def test_other_rows_are_refused(rows: Any, said: str) -> None:
    with pytest.raises(InvalidSpec, match=said):
        Collection.from_json(DOCUMENT | {"rows": rows})


def test_the_most_columns_are_taken() -> None:
    rows = with_columns(*(named(f"c_{i}") for i in range(MAX_COLUMNS)))
    made = Collection.from_json(DOCUMENT | {"rows": rows}).rows
    assert made is not None
    assert len(made.check_row({"c_255": "x"})) == MAX_COLUMNS


def test_a_document_states_whether_it_has_rows() -> None:
    silent = deepcopy(DOCUMENT)
    del silent["rows"]
    with pytest.raises(InvalidSpec, match="'rows' is missing"):
        Collection.from_json(silent)


def test_rounds_of_a_plan_have_no_rows() -> None:
    plan = {"method": "svim", "k": 8, "respondents": 1000, "round": 1, "target": 100, "first": "", "previous": ""}
    assert Collection.from_json(DOCUMENT | {"plan": plan, "rows": None}).plan is not None
    with pytest.raises(InvalidSpec, match="adaptive plan"):
        Collection.from_json(DOCUMENT | {"plan": plan})


def test_private_columns_do_not_take_words_of_sql_either() -> None:
    first, *others = DOCUMENT["questions"]
    renamed = DOCUMENT | {"questions": [first | {"name": "order"}, *others]}
    assert Collection.from_json(renamed | {"rows": None}).questions[0].name == "order"
    with pytest.raises(InvalidSpec, match="beside rows: 'order' means something in SQL"):
        Collection.from_json(renamed)
