"""Tables in segments: queries go through them one after the other, and only some stay opened in memory."""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any, Protocol

import pyarrow as pa

from tacit.arrays import I64
from tacit.core.mechanism import Reports
from tacit.errors import InvalidSpec, ReportRejected
from tacit.sql.connection import QueryTable
from tacit.sql.design.levels import Design
from tacit.sql.engine.linked import Linked, link
from tacit.sql.engine.pieces import Piece
from tacit.sql.engine.public import ArrowRows, RowEvaluator, empty_rows
from tacit.sql.engine.source import NoSource, ReportSource
from tacit.sql.patience import Check, patient
from tacit.sql.schema.schema import Schema

CACHE_BYTES = 1 << 30
_KEPT_REGIONS = 1
"""Regions whose terms a segment caches. There are many segments, and one region of each is as large as a column."""


class Segment(Protocol):
    """An immutable part of a table: rows with their reports, identified by a key."""

    @property
    def key(self) -> str:
        """What tells it apart from all other segments of all tables."""
        ...

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    def load(self) -> tuple[Any, Reports]:
        """An Arrow table of the public columns, and the reports row by row."""
        ...


class SegmentRows:
    """The public columns of a segment; each is put into the order of the reports when it is first asked for.

    Reports are stored sorted by what they answer, so the rows have to follow. Most queries read few columns, and
    reordering all of them would take longer than the query.
    """

    def __init__(self, table: Any, order: I64 | None) -> None:
        """Columns of an Arrow table; place i of the new order is row `order[i]`, and None leaves them as they are."""
        self.n: int = table.num_rows
        self.names: Sequence[str] = tuple(table.column_names)
        self._order = order
        self._stored = {name: table[name] for name in self.names}
        self._ordered: dict[str, Any] = {}
        self._lock = Lock()

    def column(self, name: str) -> Any:
        """A column in one piece, in order."""
        with self._lock:
            if name not in self._ordered:
                stored = self._stored[name].combine_chunks()
                self._ordered[name] = stored if self._order is None else stored.take(pa.array(self._order))
                del self._stored[name]  # Two copies of a column would double what the cache counts.
            return self._ordered[name]

    @property
    def nbytes(self) -> int:
        """Memory of the columns."""
        with self._lock:
            return sum(column.nbytes for column in (*self._stored.values(), *self._ordered.values()))


@dataclass(frozen=True, eq=False)
class Opened:
    """A segment in memory."""

    rows: SegmentRows
    linked: Linked
    piece: Piece
    source: ReportSource

    @property
    def nbytes(self) -> int:
        """Bytes of columns, reports, and cached results of earlier queries."""
        return self.rows.nbytes + self.linked.nbytes + self.piece.public.nbytes + self.source.nbytes


class SegmentCache:
    """A cache of opened segments of any number of tables, limited in bytes; the least recently used go first.

    A segment never evicts another one of the same query. Every query scans all segments in the same order, and with
    plain LRU a table that is one segment too large would be evicted just ahead of the scan, so that no query ever hit:

        cache of 3, table of segments a b c d     LRU after each scan: b c d, c d a, ...   always a miss
                                                  here: a b c stays, only d is loaded again
    """

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        """Start with an empty cache that holds at most `limit` bytes of opened segments."""
        self._limit = limit
        # The segment, its bytes when it was last used, and the number of the query that did.
        self._kept: OrderedDict[str, tuple[Opened, int, int]] = OrderedDict()
        self._forgotten: set[str] = set()
        self._lock = Lock()
        self._queries = 0

    @property
    def nbytes(self) -> int:
        """Memory of everything that is kept."""
        with self._lock:
            return self._total()

    def _total(self) -> int:
        return sum(size for _, size, _ in self._kept.values())

    def forget(self, start: str, but: Collection[str] = ()) -> None:
        """Let go of all segments whose keys begin so, but for some."""
        with self._lock:
            for key in [key for key in self._kept if key.startswith(start) and key not in but]:
                del self._kept[key]

    def forget_for_good(self, start: str) -> None:
        """The same, and keep none of them again, not even those that a running query will hand back at its end."""
        self._forgotten.add(start)
        self.forget(start)

    def begin(self) -> int:
        """A number for the next query."""
        with self._lock:
            self._queries += 1
            return self._queries

    def get(self, key: str) -> Opened | None:
        """A segment that is kept."""
        with self._lock:
            found = self._kept.get(key)
            return None if found is None else found[0]

    def keep(self, key: str, opened: Opened, query: int) -> None:
        """Keep a segment that a query has just used, if there is room or others can go."""
        size = opened.nbytes  # Measured after use, for columns and terms grow while a query runs.
        with self._lock:
            self._kept.pop(key, None)
            if any(key.startswith(start) for start in self._forgotten):
                return
            total = self._total()
            for other, (_, bytes_of, last) in list(self._kept.items()):
                if total + size <= self._limit:
                    break
                if last < query:
                    del self._kept[other]
                    total -= bytes_of
            if total + size <= self._limit:
                self._kept[key] = opened, size, query


@dataclass(frozen=True, eq=False)
class SegmentedTable(QueryTable):
    """Answers queries over the segments of a table, in memory that does not grow with their number."""

    schema: Schema
    design: Design
    public_columns: Sequence[tuple[str, str]]
    """Names and types of the public columns."""
    segments: Sequence[Segment]
    cache: SegmentCache
    level: float = 0.95
    least: int = 0
    """Estimates from the reports of fewer rows are not told."""
    check: Check = patient
    """Called between steps; it raises once nobody waits for the answer."""

    def __post_init__(self) -> None:
        """Refuse a public column that is private."""
        for name, _ in self.public_columns:
            if self.schema.dimension(name) is not None:
                raise InvalidSpec(f"analytics: {name} is private and must not be among the public columns")

    @property
    def public_names(self) -> Sequence[str]:
        """Names of the public columns."""
        return [name for name, _ in self.public_columns]

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(segment.n for segment in self.segments)

    @cached_property
    def _no_rows(self) -> Any:
        return empty_rows(self.public_columns)

    def with_level(self, level: float) -> "SegmentedTable":
        """The same table with intervals of another level."""
        return replace(self, level=level)

    def pieces(self) -> Iterator[Piece]:
        """First a piece without rows, then all segments.

        The empty piece makes every table check the types of columns, also one that has no rows yet: a mistake in a
        query is refused before any segment is opened.
        """
        yield Piece(RowEvaluator(ArrowRows(self._no_rows)), NoSource())
        query = self.cache.begin()
        for segment in self.segments:
            if not segment.n:
                continue
            self.check()
            opened = self.cache.get(segment.key) or self._open(segment)
            yield opened.piece
            self.cache.keep(segment.key, opened, query)

    def _open(self, segment: Segment) -> Opened:
        table, reports = segment.load()
        if len(reports) != table.num_rows:
            raise ReportRejected(f"analytics: {len(reports)} reports for {table.num_rows} rows in a segment")
        linked = link(self.design, reports)
        named = table.select(self._no_rows.column_names)
        typed = named if named.schema.equals(self._no_rows.schema) else named.cast(self._no_rows.schema)
        rows = SegmentRows(typed, linked.order)
        source = ReportSource(linked, kept=_KEPT_REGIONS)
        return Opened(rows, linked, Piece(RowEvaluator(rows), source), source)
