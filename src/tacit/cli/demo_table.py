"""The demo's table with public columns: SQL over HTTP, beside what a program that sees everything would answer."""

import json
from typing import Any, cast

from tacit.cli.collections import Remote
from tacit.cli.demo_check import LEVEL, Outcome, Row
from tacit.cli.demo_crowd import Crowd, Query
from tacit.cli.query import shown_cell

_NORMAL = 0.05
"""Averages are quotients of estimates, which are normal where their relative error is below this."""


def compare_table(place: Remote, crowd: Crowd, status: dict[str, Any], answers: dict[str, Any]) -> Outcome:
    """Ask every query, and put the truth beside its answer."""
    rows, wrong, lost = list[Row](), list[str](), list[str]()
    for query in crowd.example.queries:
        found = place.query(crowd.collection.id, query.sql, float(LEVEL), "json")
        cells, truth = _cells(found), query.truth(crowd.columns)
        if found["n"] != len(crowd.values) or cells.keys() != truth.keys():
            wrong.append(f"'{query.sql}' was not answered over all rows and groups")
            continue
        lost += [f"No estimate of {name}: {shown_cell(cell)}." for name, cell in cells.items() if not _known(cell)]
        rows += [_row(query, name, truth[name], cell) for name, cell in cells.items() if _known(cell)]
    headings = {query.sql: query.sql for query in crowd.example.queries}
    summary = {"sql": [{"sql": row.question} | _numbers(row) for row in rows]}
    return Outcome(crowd, status, answers, rows, headings, tuple(lost), tuple(wrong), summary)


def _cells(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every aggregate of an answer, named by its group and column."""
    names = [column["name"] for column in found["columns"]]
    cells: dict[str, dict[str, Any]] = {}
    for row in found["rows"]:
        groups = [item if isinstance(item, str) else json.dumps(item) for item in row if not isinstance(item, dict)]
        for name, item in zip(names, row, strict=True):
            if isinstance(item, dict):
                cells[": ".join([*groups, name])] = cast("dict[str, Any]", item)
    return cells


def _known(cell: dict[str, Any]) -> bool:
    """Whether there is an estimate; there is none of groups that are too small, and averages may be lost in noise."""
    return cell["status"] == "estimate"


def _row(query: Query, name: str, truth: float, cell: dict[str, Any]) -> Row:
    numbers = {field: cell[field] for field in ("estimate", "standard_error", "low", "high")}
    normal = "AVG(" not in name or cell["standard_error"] < _NORMAL * abs(cell["estimate"])
    return Row(query.sql, "sql", name, truth, **numbers, normal=normal)


def _numbers(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("value", "truth", "estimate", "low", "high")}
