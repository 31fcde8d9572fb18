"""SQL over frames of rows: partial sums per partition, merged exactly, and the answers of the embedded engine.

    SELECT --columns and public filters--> frame --mapInArrow: the engine over a partition--> partial sums
    partial sums --exact, in steps--> sums of the whole table --QuerySums.answer--> cells with errors

Sums of a partition are taken by the engine itself, over pieces of some hundred thousand rows. They are then added
without rounding, so that neither the order of partitions nor a task that runs twice changes a bit of the answer. The
embedded engine cuts the rows elsewhere, so that its last bits may differ: tests hold both to a relative 1e-9.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from tacit.catalog import CATALOG
from tacit.core.mechanism import Mechanism, Reports
from tacit.distributed.parts import joined
from tacit.distributed.row_sums import merge, pack, unpack
from tacit.distributed.spark.filters import pushed
from tacit.distributed.spark.jobs import Frame, merged, parts_of
from tacit.distributed.spark.readers import NumberedFiles, Read, as_they_are
from tacit.errors import InvalidQuery
from tacit.lake.layout import MEMBER, REPORT, has_members, reports_of
from tacit.sql.connection import QueryTable
from tacit.sql.design.levels import Design
from tacit.sql.documents import design_of, table_schema
from tacit.sql.engine.aggregate import is_centred
from tacit.sql.engine.pieces import Centres, Run
from tacit.sql.engine.query import Query
from tacit.sql.engine.run import AskedQueries, QueryAnswer, QuerySums, sum_pieces
from tacit.sql.parse.syntax import Select, columns_in
from tacit.sql.patience import Check, patient
from tacit.sql.schema.schema import Schema
from tacit.sql.segments import SegmentCache, SegmentedTable
from tacit.wire.document import Collection

PIECE_ROWS = 1 << 18
"""Rows that the engine has in memory at a time: its terms take some twenty megabytes."""

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Rows:
    """Rows of a partition in memory, as the engine reads segments."""

    mechanism: Mechanism
    table: Any
    key: str = ""

    @property
    def n(self) -> int:
        return self.table.num_rows

    def load(self) -> tuple[Any, Reports]:
        return self.table, reports_of(self.mechanism, self.table)


@dataclass(frozen=True, eq=False)
class RowTask:
    """What executors are told: the queries, and everything to answer them from rows. It travels with the job."""

    schema: Schema
    design: Design
    public: Columns
    selects: tuple[Select, ...]
    centres: tuple[dict[int, float], ...] = ()
    read: Read = as_they_are

    def queries(self) -> list[Query]:
        """The queries, bound to the schema again."""
        return [Query(self.schema, select) for select in self.selects]

    def pieces(self, batches: Iterable[Any]) -> Any:
        """The rows of a partition, some at a time; nothing is kept of them."""
        segments: Any = (_Rows(self.design.mechanism, table) for table in joined(self.read(batches), PIECE_ROWS))
        return SegmentedTable(self.schema, self.design, self.public, segments, SegmentCache(0)).pieces()


def _sums(task: RowTask, batches: Iterable[Any]) -> bytes:
    """The partial sums of a partition."""
    pairs = zip(task.queries(), task.centres, strict=True)
    totals = [QuerySums(query, centres=Centres(known)) for query, known in pairs]
    sum_pieces(totals, task.pieces(batches))
    return pack([total.partial for total in totals])


def _measured(task: RowTask, batches: Iterable[Any]) -> bytes:
    """For every query and aggregate with a centre: number and sum of its measures in a partition."""
    queries, found = task.queries(), list[tuple[int, int, int, float]]()
    for piece in task.pieces(batches):
        for i, query in enumerate(queries):
            sums = Run(query, piece.public, Centres()).measure_sums()
            found += [(i, place, n, total) for place, (n, total) in sums.items() if n]
    return msgspec.msgpack.encode(found) if found else b""


def _joined(parts: Iterable[bytes]) -> bytes:
    return msgspec.msgpack.encode([item for part in parts for item in msgspec.msgpack.decode(part)])


@dataclass(frozen=True, eq=False)
class FrameTable(QueryTable):
    """Answers queries over a frame of rows: the columns of report files, public columns among them."""

    schema: Schema
    design: Design
    public_columns: Columns
    """Names and types of the public columns."""
    frame: Callable[[], Frame]
    """The frame as Spark reads it; that of files is only made where a query needs it."""
    level: float = 0.95
    least: int = 0
    """Estimates from the reports of fewer rows are not told."""
    check: Check = patient
    files: NumberedFiles | None = None
    """The files of the frame, which executors read themselves where there is no condition to skip rows by."""

    @property
    def public_names(self) -> Sequence[str]:
        """Names of the public columns."""
        return [name for name, _ in self.public_columns]

    def with_level(self, level: float) -> "FrameTable":
        """The same table with intervals of another level."""
        return replace(self, level=level)

    def queries(self, queries: Sequence[str | Select]) -> list[QueryAnswer]:
        """Several answers with one pass over the frame; one pass before it where a measure has to be centred."""
        asked = [self._query(query) for query in queries]
        if any(query.select.explain for query in asked):
            raise InvalidQuery("sql: EXPLAIN is not answered on Spark; ask the collector, or tacit query", code="0A000")
        every = AskedQueries(asked, None)
        task, frame, partitions = self.prepared(every.every)
        task = replace(task, centres=_centres(task, frame, partitions))
        totals = [QuerySums(query, self.check) for query in every.every]
        part = merged(parts_of(frame, partial(_sums, task)), merge, partitions)
        # Without any row, the engine still checks the query, and says what it says about an empty table.
        sums = unpack([_sums(task, ()) if part is None else part])
        for total, one in zip(totals, sums, strict=True):
            total.restore(one)
        return every.answers(totals, self.level, self.least)

    def prepared(self, queries: Sequence[Query]) -> tuple[RowTask, Frame, int | None]:
        """What executors are told, the frame of the rows that the queries need, and its partitions where known."""
        used = {name for query in queries for name in _used(query.select)}
        # A table without any column would not know how many rows it has.
        public = tuple(pair for pair in self.public_columns if pair[0] in used) or self.public_columns[:1]
        task = RowTask(self.schema, self.design, public, tuple(query.select for query in queries))
        condition = pushed([query.select.condition for query in queries], dict(self.public_columns))
        own = [MEMBER] if has_members(self.design.mechanism) else []
        columns = (*own, REPORT, *(name for name, _ in public))
        if condition is None and self.files is not None:
            read = replace(self.files.reader, columns=columns, rows=PIECE_ROWS)
            return replace(task, read=read), self.files.numbers, read.partitions
        frame = self.frame() if condition is None else self.frame().where(condition)
        return task, frame.select(*columns), None


def _used(select: Select) -> Iterator[str]:
    """Columns that a query reads."""
    yield from columns_in(select.condition)
    for item in select.groups:
        yield from columns_in(item)
    for one in (*select.aggregates, *select.extremes):
        yield from columns_in(one.argument)
        yield from columns_in(one.condition)


def _centres(task: RowTask, frame: Frame, partitions: int | None) -> tuple[dict[int, float], ...]:
    """By query and aggregate the mean of its measure, around which powers are taken; in any order the same number."""
    none = tuple(dict[int, float]() for _ in task.selects)
    wanted = [one for select in task.selects for one in select.aggregates]
    if not any(is_centred(one.function) and one.argument is not None for one in wanted):
        return none
    part = merged(parts_of(frame, partial(_measured, task)), _joined, partitions)
    sums: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for i, place, n, total in msgspec.msgpack.decode(part) if part else ():
        sums.setdefault((i, place), []).append((n, total))
    for (i, place), pairs in sums.items():
        # `fsum` rounds once, so that the order of partitions does not matter here either.
        none[i][place] = math.fsum(total for _, total in pairs) / sum(n for n, _ in pairs)
    return none


def open_rows(frame: Frame, document: Mapping[str, Any], *, level: float = 0.95) -> FrameTable:
    """A table over the rows of a published collection; refused below its minimum cohort."""
    return table_of_rows(lambda: frame, None, document, level)


def table_of_rows(
    frame: Callable[[], Frame],
    rows: int | None,
    document: Mapping[str, Any],
    level: float,
    files: NumberedFiles | None = None,
) -> FrameTable:
    """The same over files, whose footers have told the number of rows; None if Spark is to count them."""
    collection = Collection.from_json(dict(document), CATALOG)
    if collection.rows is None:
        raise InvalidQuery("sql: the collection has no rows, so it has no table; tally its reports instead")
    mechanism, questions = collection.mechanism, collection.questions
    assert isinstance(mechanism, Mechanism)
    names, domains = [item.name for item in questions], [item.domain for item in questions]
    schema = table_schema(names, domains, collection.rows.table)
    n, least = frame().count() if rows is None else rows, collection.minimum_cohort
    if n < least:
        raise InvalidQuery(f"sql: there are {n} rows; queries are answered from {least} rows on")
    public = tuple((column.name, column.type) for column in collection.rows.columns)
    return FrameTable(schema, design_of(mechanism, schema), public, frame, level, least, files=files)
