"""Answering queries: sums over the pieces of a table, merged by group keys, and turned into cells.

answer_queries --for each piece--> Run (jobs) --fill--> sums per job and group --QuerySums.add--> merged
               --at the end------> QuerySums.answer: cells with errors, sorted and cut
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.sql.design.levels import Design
from tacit.sql.engine.aggregate import AggregateCell, GroupSums, cell_of
from tacit.sql.engine.better import with_better
from tacit.sql.engine.extremes import ExtremeCount, ExtremeValues
from tacit.sql.engine.having import holds
from tacit.sql.engine.monotone import RangeCounts, range_counts
from tacit.sql.engine.pieces import Centres, Piece, Run, fill
from tacit.sql.engine.plan import PlanStep, QueryPlan, plan_step
from tacit.sql.engine.query import Query
from tacit.sql.engine.source import Asked
from tacit.sql.parse.syntax import TruthLiteral, described
from tacit.sql.patience import Check, holding, patient

_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class QueryAnswer:
    """The answer to a query: column names, and a row per group of plain group values and `AggregateCell`s."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    groups: tuple[str, ...]

    def cells(self) -> list[AggregateCell]:
        """All aggregate cells, row by row."""
        return [item for row in self.rows for item in row if isinstance(item, AggregateCell)]

    def to_rows(self) -> list[dict[str, Any]]:
        """A dictionary per aggregate cell for JSON, with the values of its group where there is a GROUP BY."""
        found: list[dict[str, Any]] = []
        for row in self.rows:
            named = zip(self.columns, row, strict=True)
            group = {name: item for name, item in named if not isinstance(item, AggregateCell)}
            cells = [item for item in row if isinstance(item, AggregateCell)]
            found += [({"group": group} if self.groups else {}) | cell.to_row() for cell in cells]
        return found


@dataclass(frozen=True, eq=False)
class PartialSums:
    """The sums of one query over some pieces: the keys of public groups, and by job the sums of these groups.

    What one process knows of a query, to be added to what others know.
    """

    keys: tuple[tuple[Any, ...], ...]
    sums: tuple[GroupSums, ...]


class QuerySums:
    """The running sums of one query over the pieces of a table.

    Public groups are numbered in the order in which they first occur; `_places` maps a key to its number, which never
    changes, so that later pieces only append groups.
    """

    def __init__(self, query: Query, check: Check = patient, centres: Centres | None = None) -> None:
        """Begin without any piece; `check` is called between steps and may raise, such as at a deadline."""
        self._query, self._check = query, check
        self.centres = centres or Centres()
        self._places: dict[tuple[Any, ...], int] = {}
        self._sums: list[GroupSums] = []

    def run(self, piece: Piece) -> Run:
        """Prepare the query for a piece; InvalidQuery, before any scan, where there are too many groups."""
        found = Run(self._query, piece.public, self.centres, self._check)
        for key in found.keys:
            self._places.setdefault(_same(key), len(self._places))
        self._query.check_size(len(self._places))
        return found

    def add(self, run: Run) -> None:
        """Add the sums of a piece whose jobs were filled, group by group."""
        # `at[g]` is the number, over all pieces, of the piece's group g.
        at, count = np.array([self._places[_same(key)] for key in run.keys], np.int64), len(self._places)
        sums = [job.total.placed(at, count) for job in run.jobs]
        if not self._sums:
            self._sums = sums
            return
        known = np.arange(self._sums[0].groups)
        self._sums = [a.placed(known, count) + b for a, b in zip(self._sums, sums, strict=True)]

    @property
    def partial(self) -> PartialSums:
        """What is known so far."""
        return PartialSums(tuple(self._places), tuple(self._sums))

    def restore(self, partial: PartialSums) -> None:
        """Go on from what is known of other pieces; InvalidQuery where there are too many groups."""
        self._places = {_same(key): i for i, key in enumerate(partial.keys)}
        self._sums = list(partial.sums)
        self._query.check_size(len(self._places))

    def answer(
        self, level: float, least: int = 0, extremes: Sequence[ExtremeValues] = (),
        ranges: Mapping[int, float] | None = None,
    ) -> QueryAnswer:  # fmt: skip
        """All groups in the order of their values, then sorted and cut as the query says.

        Estimates from the reports of fewer than `least` rows are left out, and so are groups of fewer rows where the
        query is about which groups there are. `ranges` are monotone shares of the rows, by place of the aggregate.
        """
        query, select = self._query, self._query.select
        keys = list(self._places)
        columns = iter(self._columns(keys, level, least))
        cells = [[next(columns) for _ in select.aggregates] for _ in query.private_groups]
        table = with_better(query, cells, ranges or {})
        rows: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = []
        for (labels, _), found in zip(query.private_groups, table, strict=True):
            for g, key in enumerate(keys):
                cells = [column[g] for column in found]
                if self._is_told(cells, least):
                    values = query.values(labels, key)
                    most = [one.get(key) for one in extremes]
                    rows.append((query.sort_key(values), query.row(values, cells, most)))
        names = tuple(output.name for output in select.outputs)
        rows.sort(key=lambda pair: pair[0])
        groups = tuple(described(item) for item in select.groups)
        return QueryAnswer(names, tuple(query.cut([row for _, row in rows])), groups)

    def _is_told(self, cells: list[AggregateCell], least: int) -> bool:
        """Whether a group is in the answer: it has rows, enough of them if groups are listed, and meets HAVING."""
        select = self._query.select
        if select.lists:
            enough = cells[-1].n >= max(1, least) or (not select.groups and select.having == TruthLiteral(True))
        else:
            enough = not select.groups or any(cell.n for cell in cells)
        return enough and holds(select.having, cells)

    def counts(self) -> tuple[F64, int]:
        """The estimated count of every job of a query without groups, and its number of rows; 0 without any."""
        groups = [sums.group(0) for sums in self._sums if sums.groups]
        return np.array([float(group.inside[0]) for group in groups]), max((group.n for group in groups), default=0)

    def rows_by_key(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Rows that meet the conditions of the only aggregate, by the public groups that they are in."""
        if self._sums:
            counts = self._sums[0].n
            yield from ((key, int(counts[place])) for key, place in self._places.items())

    def _columns(self, keys: Sequence[tuple[Any, ...]], level: float, least: int) -> Iterator[list[AggregateCell]]:
        """For every private group and aggregate the list of cells by public group, in the order of `Run.jobs`."""
        # `_sums` is flat: private group by private group, in each the aggregates, of each as many sums as its width.
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
    """A group key that can be looked up: every NaN is replaced by one NaN object.

    NaN != NaN, so that groups of NaN would never be found again; but dictionaries compare by identity first.
    """
    return tuple(_NAN if item != item else item for item in key)


def answer_queries(
    queries: Sequence[Query], pieces: Iterable[Piece], level: float, *, rows: int, least: int = 0,
    check: Check = patient,
) -> list[QueryAnswer]:  # fmt: skip
    """Answer several queries with one pass over the pieces (of so many rows), which share scans of equal regions.

    Estimates from the reports of fewer than `least` rows are withheld; `check` is called between steps, and raises
    when the deadline has passed or the client has gone.
    """
    asked = AskedQueries(queries, rows)
    totals = [QuerySums(query, check) for query in asked.every]
    sum_pieces(totals, pieces, check)
    return asked.answers(totals, level, least)


class AskedQueries:
    """Queries, and the counts that MIN, MAX and ranges of ordered columns need: all that is summed over the pieces."""

    def __init__(self, queries: Sequence[Query], rows: int | None) -> None:
        """Nothing is summed yet; `rows` is how many the table has, None where counting them would be a pass more."""
        self._extremes = [[ExtremeCount(query, item) for item in query.select.extremes] for query in queries]
        self._ranges = [[] if rows is None else range_counts(query, rows) for query in queries]
        extra = [one.query for some in self._extremes for one in some]
        self.every = [*queries, *extra, *(one.query for some in self._ranges for one in some)]
        """The queries whose sums `answers` takes, in this order."""

    def answers(self, totals: Sequence[QuerySums], level: float, least: int) -> list[QueryAnswer]:
        """The answers, from the sums over all pieces."""
        counts = iter(totals[len(self._extremes) :])
        most = [[one.values(next(counts).rows_by_key(), least) for one in some] for some in self._extremes]
        shares = [self._shares(some, counts) for some in self._ranges]
        return [
            total.answer(level, least, extremes, ranges)
            for total, extremes, ranges in zip(totals, most, shares, strict=False)
        ]

    def _shares(self, some: Sequence[RangeCounts], counts: Iterator[QuerySums]) -> dict[int, float]:
        """The monotone shares of the ranges of one query, by place of the aggregate."""
        found: dict[int, float] = {}
        for one in some:
            found |= one.shares(*next(counts).counts())
        return found


def sum_pieces(totals: Sequence[QuerySums], pieces: Iterable[Piece], check: Check = patient) -> None:
    """Add the sums of all pieces to those of several queries, in one pass."""
    for piece in pieces:
        with holding(piece.lock, check):
            runs = [total.run(piece) for total in totals]
            fill(runs, piece.source, check)
            for total, run in zip(totals, runs, strict=True):
                total.add(run)


def explain_query(query: Query, pieces: Iterable[Piece], design: Design, check: Check = patient) -> QueryPlan:
    """The plan of a query: a step per private group and aggregate. It reads public columns and no reports."""
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
    steps: list[PlanStep] = []
    for name, weights in zip(names, merged, strict=True):
        check()
        steps.append(plan_step(design, *name, weights))
    return QueryPlan(design.method, tuple(steps))


def _added(a: dict[Asked, F64], b: dict[Asked, F64]) -> dict[Asked, F64]:
    return a | {region: powers + a[region] if region in a else powers for region, powers in b.items()}
