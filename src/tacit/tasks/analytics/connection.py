"""A connection answers SQL over rows and their linked reports."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidSpec
from tacit.tasks.analytics.aggregate import Cell, cell_of, power_sums
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.linked import Linked
from tacit.tasks.analytics.plan import Plan, Step, plan_step
from tacit.tasks.analytics.predicate import Conditions, Part
from tacit.tasks.analytics.public import Public, Rows
from tacit.tasks.analytics.regions import Region, everything
from tacit.tasks.analytics.schema import Schema
from tacit.tasks.analytics.sql import parse_sql
from tacit.tasks.analytics.syntax import Aggregate, Both, Column, Condition, Select, columns_in
from tacit.tasks.analytics.terms import Terms, constant_terms, region_terms

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
MAX_PRIVATE_GROUPS = 1 << 10
MAX_GROUPS = 1 << 16
_CACHED_VALUES = 1 << 26


class Source(Protocol):
    """Where terms come from: noisy reports, or known values in a rehearsal."""

    def terms(self, region: Region) -> Terms:
        """Terms of all rows."""
        ...


class ReportSource:
    """Terms of linked reports; those of the last regions are kept, since many aggregates ask for the same one."""

    def __init__(self, linked: Linked) -> None:
        """Hold the reports."""
        self._linked = linked
        self._kept: OrderedDict[Region, Terms] = OrderedDict()

    def terms(self, region: Region) -> Terms:
        """Terms of all rows, from memory where they are there."""
        found = self._kept.pop(region, None)
        if found is None:
            found = region_terms(self._linked, region)
        self._kept[region] = found
        while len(self._kept) > max(1, _CACHED_VALUES // max(1, 2 * self._linked.n)):
            self._kept.popitem(last=False)
        return found


class ValueSource:
    """True indicators of known values, for comparing answers with the truth."""

    def __init__(self, values: I64) -> None:
        """Hold rows of private indices."""
        self._values = values

    def terms(self, region: Region) -> Terms:
        """Indicators without variance."""
        return Terms(region.holds(self._values).astype(np.float64), np.zeros(len(self._values)))


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


@dataclass(frozen=True, eq=False)
class Connection:
    """Answers queries over a table whose private columns are known as noisy reports alone."""

    schema: Schema
    rows: Rows
    source: Source
    design: Design
    level: float = 0.95

    @cached_property
    def public(self) -> Public:
        """The public columns; measures that were asked for are kept."""
        return Public(self.rows)

    @property
    def columns(self) -> list[str]:
        """All columns, the private ones first."""
        return [dimension.name for dimension in self.schema.dimensions] + list(self.rows.names)

    def query(self, sql: str) -> Answer:
        """The answer to a SELECT."""
        select = self.parse(sql)
        if select.explain:
            return self.explain(sql).to_answer(Answer)
        return _Run(self, select).answer()

    def queries(self, texts: Sequence[str]) -> list[Answer]:
        """Several answers; conditions that occur more than once are looked at once."""
        return [self.query(text) for text in texts]

    def explain(self, sql: str) -> Plan:
        """How a query will be answered, and the standard errors to expect; reads public columns alone."""
        return _Run(self, self.parse(sql)).plan()

    def parse(self, sql: str) -> Select:
        """A query whose columns exist."""
        select = parse_sql(sql, self.columns, self.schema.table)
        for aggregate in select.aggregates:
            for name in columns_in(aggregate.argument):
                if self.schema.dimension(name) is not None:
                    raise InvalidSpec(
                        f"sql: {name} is private and cannot be summed; write it in WHERE or GROUP BY, "
                        "and measures of public columns in aggregates"
                    )
        return select

    def with_source(self, source: Source) -> "Connection":
        """The same table with terms from elsewhere."""
        return replace(self, source=source)

    def cursor(self) -> Any:
        """A DB-API 2.0 cursor."""
        from tacit.tasks.analytics.dbapi import Cursor

        return Cursor(self)


class _Run:
    """One query."""

    def __init__(self, connection: Connection, select: Select) -> None:
        self._connection = connection
        self._select = select
        self._public = connection.public
        self._conditions = Conditions(connection.schema, self._public)
        names = [column.name for column in select.groups]
        self._private = [name for name in names if connection.schema.dimension(name) is not None]
        self._open = [name for name in names if name not in self._private]

    def _private_groups(self) -> list[tuple[tuple[Any, ...], Region]]:
        """Every combination of values of private groups, with its region."""
        schema = self._connection.schema
        places = [place for name in self._private if (place := schema.dimension(name)) is not None]
        found = everything(tuple(schema.dimensions[i].size for i in schema.kept))
        count = int(np.prod([schema.dimensions[place].size for place in places], dtype=np.int64))
        if count > MAX_PRIVATE_GROUPS:
            raise InvalidSpec(
                f"sql: GROUP BY has {count} combinations of private values, must be at most {MAX_PRIVATE_GROUPS}; "
                "ask for ranges in WHERE instead"
            )
        groups: list[tuple[tuple[Any, ...], Region]] = []
        for combination in product(*(range(schema.dimensions[place].size) for place in places)):
            region = found
            for place, index in zip(places, combination, strict=True):
                region = region & self._conditions.of_dimension(place, index)
            pairs = zip(places, combination, strict=True)
            groups.append((tuple(schema.dimensions[place].label(index) for place, index in pairs), region))
        return groups

    def answer(self) -> Answer:
        """All groups, sorted and cut."""
        select = self._select
        codes, keys = self._public.groups(self._open)
        if len(keys) > MAX_GROUPS:
            raise InvalidSpec(f"sql: GROUP BY has {len(keys)} groups, must be at most {MAX_GROUPS}")
        rows: list[tuple[Any, ...]] = []
        for labels, region in self._private_groups():
            columns = [self._cells(item, region, codes, len(keys)) for item in select.aggregates]
            for g, key in enumerate(keys):
                cells = [column[g] for column in columns]
                if select.groups and not any(cell.n for cell in cells):
                    continue
                rows.append(self._row(dict(zip(self._private, labels, strict=True)), key, cells))
        names = tuple(output.name for output in select.outputs)
        return Answer(names, tuple(self._cut(rows)), tuple(column.name for column in select.groups))

    def _row(self, private: dict[str, Any], key: tuple[Any, ...], cells: list[Cell]) -> tuple[Any, ...]:
        values = private | dict(zip(self._open, key, strict=True))
        left = iter(cells)
        outputs = self._select.outputs
        return tuple(values[o.item.name] if isinstance(o.item, Column) else next(left) for o in outputs)

    def _cut(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        for order in reversed(self._select.order):
            present = [row for row in rows if _sort_key(row[order.place]) is not None]
            missing = [row for row in rows if _sort_key(row[order.place]) is None]
            place, down = order.place, order.descending
            rows = sorted(present, key=lambda row: _sort_key(row[place]), reverse=down) + missing
        stop = None if self._select.limit is None else self._select.offset + self._select.limit
        return rows[self._select.offset : stop]

    def _parts(self, condition: Condition, region: Region) -> list[Part]:
        parts = self._conditions.parts(condition)
        if region.is_full:
            return parts
        narrowed = [Part(part.mask, part.region & region) for part in parts]
        return [part for part in narrowed if not part.region.is_empty]

    def _cells(self, item: Aggregate, region: Region, codes: I64, groups: int) -> list[Cell]:
        """One aggregate of all public groups."""
        parts = self._parts(Both((self._select.condition, item.condition)), region)
        terms, rows = self._terms(parts)
        measure, present = self._measure(item)
        counted = present if rows is None else rows if present is None else rows & present
        sums = power_sums(terms, measure, counted, codes if self._open else None, groups, item.function)
        exact = all(part.region.is_full or part.region.is_empty for part in parts)
        return [cell_of(item.function, item.text, s, exact=exact, level=self._connection.level) for s in sums]

    def _measure(self, item: Aggregate) -> tuple[F64 | None, Any]:
        if item.argument is None:
            return None, None
        if item.function == "count" and isinstance(item.argument, Column):
            return None, self._public.present(item.argument.name)
        return self._public.measure(item.argument)

    def _terms(self, parts: list[Part]) -> tuple[Terms, Any]:
        """Terms of all rows, and which rows are asked at all (None: all)."""
        n = self._connection.rows.n
        if len(parts) == 1 and parts[0].mask is None:
            return self._region_terms(parts[0].region), None
        inside, variance, rows = np.zeros(n), np.zeros(n), np.zeros(n, np.bool_)
        for part in parts:
            mask = np.ones(n, np.bool_) if part.mask is None else part.mask
            found = self._region_terms(part.region)
            np.copyto(inside, found.inside, where=mask)
            np.copyto(variance, found.variance, where=mask)
            rows |= mask
        return Terms(inside, variance), rows

    def _region_terms(self, region: Region) -> Terms:
        if region.is_full or region.is_empty:
            return constant_terms(self._connection.rows.n, float(region.is_full))
        return self._connection.source.terms(region)

    def plan(self) -> Plan:
        """A step per aggregate and private group."""
        steps: list[Step] = []
        for labels, region in self._private_groups():
            for item in self._select.aggregates:
                parts = self._parts(Both((self._select.condition, item.condition)), region)
                name = f"{item.text} [{', '.join(map(str, labels))}]" if labels else item.text
                measure, present = self._measure(item)
                design, n = self._connection.design, self._connection.rows.n
                steps.append(plan_step(design, n, name, item.function, parts, measure, present))
        return Plan(self._connection.design.method, tuple(steps))


def _sort_key(item: Any) -> Any:
    return item.estimate if isinstance(item, Cell) else item
