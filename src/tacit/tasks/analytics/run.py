"""Answers to queries: sums over the pieces of a table, merged by the keys of their groups."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidQuery
from tacit.tasks.analytics.aggregate import Cell, GroupSums, cell_of
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.pieces import Centres, Piece, Run, fill
from tacit.tasks.analytics.plan import Plan, plan_step
from tacit.tasks.analytics.public import MAX_GROUPS
from tacit.tasks.analytics.query import Query
from tacit.tasks.analytics.regions import Region

F64 = npt.NDArray[np.float64]
MAX_CELLS = 1 << 18
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

    def __init__(self, query: Query) -> None:
        """Nothing was added yet."""
        self._query = query
        self.centres = Centres()
        self._places: dict[tuple[Any, ...], int] = {}
        self._sums: list[GroupSums] = []
        self._exact: list[bool] = []

    def run(self, piece: Piece) -> Run:
        """The query over a piece; refused before any work where there are too many groups."""
        found = Run(self._query, piece.public, self.centres)
        for key in found.keys:
            self._places.setdefault(_same(key), len(self._places))
        self._check_size()
        return found

    def add(self, run: Run) -> None:
        """Add a piece whose jobs are done: groups of equal keys are one group."""
        at, count = np.array([self._places[_same(key)] for key in run.keys], np.int64), len(self._places)
        sums = [job.total.placed(at, count) for job in run.jobs]
        exact = [job.exact for job in run.jobs]
        if not self._sums:
            self._sums, self._exact = sums, exact
            return
        known = np.arange(self._sums[0].groups)
        self._sums = [a.placed(known, count) + b for a, b in zip(self._sums, sums, strict=True)]
        self._exact = [a and b for a, b in zip(self._exact, exact, strict=True)]

    def _check_size(self) -> None:
        groups, query = len(self._places), self._query
        cells = groups * len(query.private_groups) * len(query.select.aggregates)
        if groups > MAX_GROUPS or cells > MAX_CELLS:
            raise InvalidQuery(
                f"sql: GROUP BY has {groups} public groups and {cells} cells, must be at most {MAX_GROUPS} and "
                f"{MAX_CELLS}; group by fewer columns"
            )

    def answer(self, level: float) -> Answer:
        """All groups in the order of their keys, then sorted and cut as the query says."""
        query, select = self._query, self._query.select
        keys = sorted(self._places, key=_sort_key)
        columns = iter([self._cells(i, keys, level) for i in range(len(self._sums))])
        rows: list[tuple[Any, ...]] = []
        for labels, _ in query.private_groups:
            found = [next(columns) for _ in select.aggregates]
            for g, key in enumerate(keys):
                cells = [column[g] for column in found]
                if not select.groups or any(cell.n for cell in cells):
                    rows.append(query.row(labels, key, cells))
        names = tuple(output.name for output in select.outputs)
        return Answer(names, tuple(query.cut(rows)), tuple(column.name for column in select.groups))

    def _cells(self, i: int, keys: Sequence[tuple[Any, ...]], level: float) -> list[Cell]:
        """One aggregate of one private group, for all public groups."""
        item = self._query.select.aggregates[i % len(self._query.select.aggregates)]
        sums, exact = self._sums[i], self._exact[i]
        groups = [sums.group(self._places[key]) for key in keys]
        return [cell_of(item.function, item.text, group, exact=exact, level=level) for group in groups]


def _same(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key that equals itself: what is not a number is one object, which dictionaries find again."""
    return tuple(_NAN if item != item else item for item in key)


def _sort_key(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Missing values last, what is not a number before them."""
    return tuple((2, 0) if item is None else (1, 0) if item is _NAN else (0, item) for item in key)


def answer_queries(queries: Sequence[Query], pieces: Iterable[Piece], level: float) -> list[Answer]:
    """Several answers, for which every piece is gone through once."""
    totals = [Totals(query) for query in queries]
    for piece in pieces:
        with piece.lock:
            runs = [total.run(piece) for total in totals]
            fill(runs, piece.source)
            for total, run in zip(totals, runs, strict=True):
                total.add(run)
    return [total.answer(level) for total in totals]


def explain_query(query: Query, pieces: Iterable[Piece], design: Design) -> Plan:
    """A step per private group and aggregate; reads public columns alone."""
    merged: list[dict[Region, F64]] = []
    centres = Centres()
    for piece in pieces:
        with piece.lock:
            found = Run(query, piece.public, centres).weights()
        merged = [_added(a, b) for a, b in zip(merged, found, strict=True)] if merged else found
    names = [
        (f"{item.text} [{', '.join(map(str, labels))}]" if labels else item.text, item.function)
        for labels, _ in query.private_groups
        for item in query.select.aggregates
    ]
    steps = [plan_step(design, *name, weights) for name, weights in zip(names, merged, strict=True)]
    return Plan(design.method, tuple(steps))


def _added(a: dict[Region, F64], b: dict[Region, F64]) -> dict[Region, F64]:
    return a | {region: powers + a[region] if region in a else powers for region, powers in b.items()}
