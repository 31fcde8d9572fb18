"""One query over a table: its jobs, what they ask for, and the answer they make up."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidSpec
from tacit.tasks.analytics.aggregate import Cell, GroupSums, Measured, cell_of
from tacit.tasks.analytics.levels import Design
from tacit.tasks.analytics.plan import Plan, Step, plan_step
from tacit.tasks.analytics.predicate import Conditions, Part
from tacit.tasks.analytics.public import Public
from tacit.tasks.analytics.regions import Region, everything
from tacit.tasks.analytics.schema import Schema
from tacit.tasks.analytics.source import Source
from tacit.tasks.analytics.syntax import Aggregate, Both, Column, Condition, Select
from tacit.tasks.analytics.terms import Terms, constant_terms

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
MAX_PRIVATE_GROUPS = 1 << 10
MAX_GROUPS = 1 << 16


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


@dataclass(eq=False)
class Job:
    """One aggregate of one private group: which rows are asked for what, and the sums so far."""

    text: str
    measured: Measured
    parts: list[Part]
    total: GroupSums

    @property
    def exact(self) -> bool:
        """Whether nothing has to be estimated."""
        return all(part.region.is_full or part.region.is_empty for part in self.parts)

    def add(self, part: Part, terms: Terms, rows: slice) -> None:
        """Count the terms of some rows."""
        self.total = self.total + self.measured.sums(terms, part.mask, rows)

    def cells(self, level: float) -> list[Cell]:
        """The aggregate of every public group."""
        function, exact = self.measured.function, self.exact
        groups = range(self.measured.groups)
        return [cell_of(function, self.text, self.total.group(g), exact=exact, level=level) for g in groups]


def answer_runs(runs: "Sequence[Run]", source: Source, level: float) -> list[Answer]:
    """The answers to several queries; every region is looked at once, however many aggregates ask for it."""
    asked: dict[Region, list[tuple[Job, Part]]] = {}
    for run in runs:
        for job in run.jobs:
            for part in job.parts:
                if part.region.is_full or part.region.is_empty:
                    job.add(part, constant_terms(run.n, float(part.region.is_full)), slice(0, run.n))
                else:
                    asked.setdefault(part.region, []).append((job, part))
    for region, rows, terms in source.scan(list(asked)):
        for job, part in asked[region]:
            job.add(part, terms, rows)
    return [run.answer(level) for run in runs]


class Run:
    """One query over a table."""

    def __init__(self, schema: Schema, public: Public, select: Select) -> None:
        """Nothing is computed yet."""
        self._schema = schema
        self._select = select
        self._public = public
        self._conditions = Conditions(schema, public)
        names = [column.name for column in select.groups]
        self._private = [name for name in names if schema.dimension(name) is not None]
        self._open = [name for name in names if name not in self._private]

    @property
    def n(self) -> int:
        """Number of rows of the table."""
        return self._public.rows.n

    @cached_property
    def _keys(self) -> tuple[I64, list[tuple[Any, ...]]]:
        codes, keys = self._public.groups(self._open)
        if len(keys) > MAX_GROUPS:
            raise InvalidSpec(f"sql: GROUP BY has {len(keys)} groups, must be at most {MAX_GROUPS}")
        return codes, keys

    @cached_property
    def jobs(self) -> list[Job]:
        """One per private group and aggregate, in this order."""
        pairs = product(self._private_groups, self._select.aggregates)
        return [self._job(item, region) for (_, region), item in pairs]

    def _job(self, item: Aggregate, region: Region) -> Job:
        codes, keys = self._keys
        measure, present = self._measure(item)
        measured = Measured(item.function, measure, present, codes if self._open else None, len(keys))
        parts = self._parts(Both((self._select.condition, item.condition)), region)
        return Job(item.text, measured, parts, measured.nothing)

    @cached_property
    def _private_groups(self) -> list[tuple[tuple[Any, ...], Region]]:
        """Every combination of values of private groups, with its region."""
        schema = self._schema
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

    def answer(self, level: float) -> Answer:
        """All groups, sorted and cut, once the jobs are done."""
        select, keys = self._select, self._keys[1]
        columns = iter([job.cells(level) for job in self.jobs])
        rows: list[tuple[Any, ...]] = []
        for labels, _ in self._private_groups:
            found = [next(columns) for _ in select.aggregates]
            for g, key in enumerate(keys):
                cells = [column[g] for column in found]
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

    def _measure(self, item: Aggregate) -> tuple[F64 | None, Any]:
        if item.argument is None:
            return None, None
        if item.function == "count" and isinstance(item.argument, Column):
            return None, self._public.present(item.argument.name)
        return self._public.measure(item.argument)

    def plan(self, design: Design) -> Plan:
        """A step per aggregate and private group."""
        steps: list[Step] = []
        for labels, region in self._private_groups:
            for item in self._select.aggregates:
                parts = self._parts(Both((self._select.condition, item.condition)), region)
                name = f"{item.text} [{', '.join(map(str, labels))}]" if labels else item.text
                measure, present = self._measure(item)
                steps.append(plan_step(design, self.n, name, item.function, parts, measure, present))
        return Plan(design.method, tuple(steps))


def _sort_key(item: Any) -> Any:
    return item.estimate if isinstance(item, Cell) else item
