"""Answers to queries: sums over the pieces of a table, merged by the keys of their groups."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.tasks.analytics.aggregate import Cell, GroupSums, cell_of
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.patience import Check, holding, patient
from tacit.tasks.analytics.pieces import Centres, Piece, Run, fill
from tacit.tasks.analytics.plan import Plan, Step, plan_step
from tacit.tasks.analytics.query import Query
from tacit.tasks.analytics.source import Asked

F64 = npt.NDArray[np.float64]
_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a query: a row per group; its cells are the groups' values and estimates."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    groups: tuple[str, ...]

    def cells(self) -> list[Cell]:
        """All estimates, row by row."""
        return [item for row in self.rows for item in row if isinstance(item, Cell)]

    def to_rows(self) -> list[dict[str, Any]]:
        """An entry per aggregate, with its group where there are groups."""
        found: list[dict[str, Any]] = []
        for row in self.rows:
            named = zip(self.columns, row, strict=True)
            group = {name: item for name, item in named if not isinstance(item, Cell)}
            cells = [item for item in row if isinstance(item, Cell)]
            found += [({"group": group} if self.groups else {}) | cell.to_row() for cell in cells]
        return found


class Totals:
    """The sums of one query over the pieces that were added."""

    def __init__(self, query: Query, check: Check = patient) -> None:
        """Nothing was added yet; the check is called between steps."""
        self._query, self._check = query, check
        self.centres = Centres()
        self._places: dict[tuple[Any, ...], int] = {}
        self._sums: list[GroupSums] = []

    def run(self, piece: Piece) -> Run:
        """The query over a piece; refused before any work where there are too many groups."""
        found = Run(self._query, piece.public, self.centres, self._check)
        for key in found.keys:
            self._places.setdefault(_same(key), len(self._places))
        self._query.check_size(len(self._places))
        return found

    def add(self, run: Run) -> None:
        """Add a piece whose jobs are done: groups of equal keys are one group."""
        at, count = np.array([self._places[_same(key)] for key in run.keys], np.int64), len(self._places)
        sums = [job.total.placed(at, count) for job in run.jobs]
        if not self._sums:
            self._sums = sums
            return
        known = np.arange(self._sums[0].groups)
        self._sums = [a.placed(known, count) + b for a, b in zip(self._sums, sums, strict=True)]

    def answer(self, level: float, least: int = 0) -> Answer:
        """All groups in the order of their values, then sorted and cut as the query says.

        Estimates from the reports of fewer than `least` rows are left out.
        """
        query, select = self._query, self._query.select
        keys = list(self._places)
        columns = iter(self._columns(keys, level, least))
        rows: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        for labels, _ in query.private_groups:
            found = [next(columns) for _ in select.aggregates]
            for g, key in enumerate(keys):
                cells = [column[g] for column in found]
                if not select.groups or any(cell.n for cell in cells):
                    rows.append((query.sort_key(labels, key), query.row(labels, key, cells)))
        names = tuple(output.name for output in select.outputs)
        rows.sort(key=lambda pair: pair[0])
        return Answer(names, tuple(query.cut([row for _, row in rows])), tuple(column.name for column in select.groups))

    def _columns(self, keys: Sequence[tuple[Any, ...]], level: float, least: int) -> Iterator[list[Cell]]:
        """Every aggregate of every private group, for all public groups."""
        query, start = self._query, 0
        while start < len(self._sums):
            for item, number, width in zip(query.select.aggregates, query.numbers, query.widths, strict=True):
                self._check()
                sums = self._sums[start : start + width]
                start += width
                groups = [[one.group(self._places[key]) for one in sums] for key in keys]
                if number is not None:
                    yield [number.cell(group, level=level, least=least) for group in groups]
                else:
                    yield [cell_of(item.function, item.text, one, level=level, least=least) for (one,) in groups]


def _same(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key that equals itself: what is not a number is one object, which dictionaries find again."""
    return tuple(_NAN if item != item else item for item in key)


def answer_queries(
    queries: Sequence[Query], pieces: Iterable[Piece], level: float, *, least: int = 0, check: Check = patient
) -> list[Answer]:
    """Several answers, for which every piece is gone through once.

    Estimates from the reports of fewer than `least` rows are left out; the check is called between steps.
    """
    totals = [Totals(query, check) for query in queries]
    for piece in pieces:
        with holding(piece.lock, check):
            runs = [total.run(piece) for total in totals]
            fill(runs, piece.source, check)
            for total, run in zip(totals, runs, strict=True):
                total.add(run)
    return [total.answer(level, least) for total in totals]


def explain_query(query: Query, pieces: Iterable[Piece], design: Design, check: Check = patient) -> Plan:
    """A step per private group and aggregate; reads public columns alone."""
    query.check_size(1)
    merged: list[dict[Asked, F64]] = []
    centres = Centres()
    for piece in pieces:
        with holding(piece.lock, check):
            found = Run(query, piece.public, centres, check).weights()
        merged = [_added(a, b) for a, b in zip(merged, found, strict=True)] if merged else found
    names = [
        (f"{item.text} [{', '.join(map(str, labels))}]" if labels else item.text, item.function)
        for labels, _ in query.private_groups
        for item in query.select.aggregates
    ]
    steps: list[Step] = []
    for name, weights in zip(names, merged, strict=True):
        check()
        steps.append(plan_step(design, *name, weights))
    return Plan(design.method, tuple(steps))


def _added(a: dict[Asked, F64], b: dict[Asked, F64]) -> dict[Asked, F64]:
    return a | {region: powers + a[region] if region in a else powers for region, powers in b.items()}
