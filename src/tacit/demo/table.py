"""The demo's table with public columns: answers to SQL over HTTP, beside the true ones."""

import json
from typing import Any, cast

from tacit.cli.query import shown_cell
from tacit.client.operator import Operator
from tacit.demo.check import LEVEL, CheckedRow, DemoOutcome
from tacit.demo.crowd import Crowd, DemoQuery

_NORMAL = 0.05
"""Averages are ratios of estimates; they are about normal where their relative standard error is below this."""


def compare_table(place: Operator, crowd: Crowd, status: dict[str, Any], answers: dict[str, Any]) -> DemoOutcome:
    """Ask every query, and put the truth beside every cell of its answer."""
    rows, wrong, lost = list[CheckedRow](), list[str](), list[str]()
    for query in crowd.example.queries:
        answer = place.query(crowd.collection.id, query.sql, float(LEVEL))
        cells, truth = _cells(answer), query.truth(crowd.columns)
        if answer["n"] != len(crowd.values) or cells.keys() != truth.keys():
            wrong.append(f"'{query.sql}' was not answered over all rows and groups")
            continue
        # A cell without an estimate is a legitimate answer: it is told, not counted as wrong.
        lost += [f"No estimate of {name}: {shown_cell(cell)}." for name, cell in cells.items() if not _known(cell)]
        rows += [_row(query, name, truth[name], cell) for name, cell in cells.items() if _known(cell)]
    headings = {query.sql: query.sql for query in crowd.example.queries}
    summary = {"sql": [{"sql": row.question} | _numbers(row) for row in rows]}
    return DemoOutcome(crowd, status, answers, rows, headings, tuple(lost), tuple(wrong), summary)


def _cells(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every aggregate of an answer, named "group: column"."""
    names = [column["name"] for column in found["columns"]]
    cells: dict[str, dict[str, Any]] = {}
    for row in found["rows"]:
        groups = [item if isinstance(item, str) else json.dumps(item) for item in row if not isinstance(item, dict)]
        for name, item in zip(names, row, strict=True):
            if isinstance(item, dict):
                cells[": ".join([*groups, name])] = cast("dict[str, Any]", item)
    return cells


def _known(cell: dict[str, Any]) -> bool:
    """Return whether a cell has an estimate; small groups have none, and an average may be lost in noise."""
    return cell["status"] == "estimate"


def _row(query: DemoQuery, name: str, truth: float, cell: dict[str, Any]) -> CheckedRow:
    numbers = {field: cell[field] for field in ("estimate", "standard_error", "low", "high")}
    normal = "AVG(" not in name or cell["standard_error"] < _NORMAL * abs(cell["estimate"])
    return CheckedRow(query.sql, "sql", name, truth, **numbers, normal=normal)


def _numbers(row: CheckedRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("value", "truth", "estimate", "low", "high")}
