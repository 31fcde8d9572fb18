"""One SELECT over a schema, before any row is looked at."""

from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from tacit.errors import InvalidQuery
from tacit.tasks.analytics.aggregate import Cell
from tacit.tasks.analytics.predicate import one_value
from tacit.tasks.analytics.private_numbers import private_number
from tacit.tasks.analytics.public import MAX_GROUPS
from tacit.tasks.analytics.regions import Region, everything
from tacit.tasks.analytics.schema import Schema
from tacit.tasks.analytics.syntax import Column, Select

MAX_PRIVATE_GROUPS = 1 << 10
MAX_CELLS = 1 << 16
MAX_FUNCTIONS = 1 << 12
"""Functions of private numbers, each of which goes through all reports."""
MAX_MEASURES = 64
"""Measures of all rows are in memory together."""
Group = tuple[tuple[Any, ...], Region]


class Query:
    """What a SELECT asks: aggregates of every combination of private groups, for every public group."""

    def __init__(self, schema: Schema, select: Select) -> None:
        """Nothing is computed yet."""
        names = [column.name for column in select.groups]
        self.schema = schema
        self.select = select
        self.private = [name for name in names if schema.dimension(name) is not None]
        """Private columns of GROUP BY."""
        self.public = [name for name in names if name not in self.private]
        """Public columns of GROUP BY."""
        self.numbers = [private_number(schema, item) for item in select.aggregates]
        """Aggregates of private numbers; None for the others."""
        self.widths = [1 if item is None else len(item.functions) for item in self.numbers]
        """How many sums every aggregate is made of."""
        measures = {item.argument for item in select.aggregates if item.argument is not None}
        if len(measures) > MAX_MEASURES:
            raise InvalidQuery(
                f"sql: SELECT measures {len(measures)} different things, must be at most {MAX_MEASURES}; "
                "ask for the others in another query"
            )

    @cached_property
    def private_groups(self) -> list[Group]:
        """Every combination of values of private groups, with its region."""
        schema = self.schema
        places = [place for name in self.private if (place := schema.dimension(name)) is not None]
        found = everything(schema.kept_sizes)
        count = int(np.prod([schema.dimensions[place].size for place in places], dtype=np.int64))
        if count > MAX_PRIVATE_GROUPS:
            raise InvalidQuery(
                f"sql: GROUP BY has {count} combinations of private values, must be at most {MAX_PRIVATE_GROUPS}; "
                "ask for ranges in WHERE instead"
            )
        groups: list[Group] = []
        for combination in product(*(range(schema.dimensions[place].size) for place in places)):
            region = found
            for place, index in zip(places, combination, strict=True):
                region = region & one_value(schema, place, index)
            pairs = zip(places, combination, strict=True)
            groups.append((tuple(schema.dimensions[place].label(index) for place, index in pairs), region))
        return groups

    def check_size(self, groups: int) -> None:
        """Refuse answers of too many cells, given how many public groups there are."""
        private, aggregates = len(self.private_groups), len(self.select.aggregates)
        cells = groups * private * sum(self.widths)
        functions = private * sum(w for w, number in zip(self.widths, self.numbers, strict=True) if number is not None)
        if functions > MAX_FUNCTIONS:
            raise InvalidQuery(
                f"sql: {functions} functions of private numbers are asked for (quantiles need one per value, for each "
                f"of {private} private groups), must be at most {MAX_FUNCTIONS}; group by fewer private columns"
            )
        if groups > MAX_GROUPS or cells > MAX_CELLS:
            raise InvalidQuery(
                f"sql: the answer has {cells} cells ({groups} public groups, {private} private ones and {aggregates} "
                f"aggregates of each, quantiles once for every value), must be at most {MAX_CELLS}; group by fewer "
                "columns, or ask for fewer aggregates at a time"
            )

    def sort_key(self, labels: tuple[Any, ...], key: tuple[Any, ...]) -> tuple[Any, ...]:
        """The place of a group among others, by the columns of GROUP BY: what is missing last, then no numbers."""
        values = dict(zip(self.private, labels, strict=True)) | dict(zip(self.public, key, strict=True))
        return tuple(self._rank(column.name, values[column.name]) for column in self.select.groups)

    def _rank(self, name: str, item: Any) -> tuple[int, Any]:
        private = self.schema.dimension(name)
        if private is not None:
            return 0, self.schema.dimensions[private].rank(item)
        return (2, 0) if item is None else (1, 0) if item != item else (0, item)

    def row(self, labels: tuple[Any, ...], key: tuple[Any, ...], cells: list[Cell]) -> tuple[Any, ...]:
        """One row of the answer: values of groups and aggregates, as SELECT lists them."""
        values = dict(zip(self.private, labels, strict=True)) | dict(zip(self.public, key, strict=True))
        left = iter(cells)
        outputs = self.select.outputs
        return tuple(values[o.item.name] if isinstance(o.item, Column) else next(left) for o in outputs)

    def cut(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """ORDER BY, what is missing last; then OFFSET and LIMIT."""
        for order in reversed(self.select.order):
            keys = [self._sort_key(row, order.place) for row in rows]
            present = [i for i, key in enumerate(keys) if key is not None]
            missing = [i for i, key in enumerate(keys) if key is None]
            chosen = sorted(present, key=keys.__getitem__, reverse=order.descending) + missing
            rows = [rows[i] for i in chosen]
        stop = None if self.select.limit is None else self.select.offset + self.select.limit
        return rows[self.select.offset : stop]

    def _sort_key(self, row: tuple[Any, ...], place: int) -> Any:
        item, output = row[place], self.select.outputs[place].item
        if isinstance(item, Cell):
            return item.estimate
        private = self.schema.dimension(output.name) if isinstance(output, Column) else None
        return item if private is None else self.schema.dimensions[private].rank(item)
