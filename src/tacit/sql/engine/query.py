"""A SELECT bound to a schema: groups, limits and sort order, before any row is read."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from tacit.errors import InvalidQuery
from tacit.sql.engine.aggregate import AggregateCell
from tacit.sql.engine.predicate import one_value
from tacit.sql.engine.privacy import check_public, is_private
from tacit.sql.engine.private_numbers import private_number
from tacit.sql.engine.public import MAX_GROUPS
from tacit.sql.parse.functions import WHOLE
from tacit.sql.parse.syntax import Aggregate, ColumnRef, Constant, Expression, Extreme, Select
from tacit.sql.schema.regions import Region, everything
from tacit.sql.schema.schema import Dimension, Schema

# Every private group is a region, whose cover is hashed for all reports.
MAX_PRIVATE_GROUPS = 1 << 10
MAX_CELLS = 1 << 16
MAX_FUNCTIONS = 1 << 12
"""Limit of functions of private numbers in a query; each is evaluated over all reports."""
MAX_MEASURES = 64
"""Limit of distinct measures in a query, as the measures of all rows of a piece are in memory together."""
Group = tuple[tuple[Any, ...], Region]


class Query:
    """A SELECT over a schema.

    Private groups are all combinations of values in the domain, known in advance; public groups are the keys that
    occur in the rows. The answer has a cell per private group, public group and aggregate.
    """

    def __init__(self, schema: Schema, select: Select) -> None:
        """Check the query against the schema, and separate its public from its private columns."""
        self.schema = schema
        self.select = select
        check_public(schema, select)
        self.private = [item for item in select.groups if is_private(schema, item)]
        """Private columns of GROUP BY."""
        self.public = [item for item in select.groups if item not in self.private]
        """Public columns of GROUP BY, and expressions of them."""
        self.numbers = [private_number(schema, item) for item in select.aggregates]
        """Parallel to the aggregates: those of private numbers; None for the others."""
        self.widths = [1 if item is None else len(item.functions) for item in self.numbers]
        """Parallel to the aggregates: of how many sums (functions) each is made."""
        measures = {item.argument for item in select.aggregates if item.argument is not None}
        if len(measures) > MAX_MEASURES:
            raise InvalidQuery(
                f"sql: SELECT measures {len(measures)} different things, must be at most {MAX_MEASURES}; "
                "ask for the others in another query",
                code="54000",
            )

    @cached_property
    def private_groups(self) -> list[Group]:
        """Every combination of values of the private GROUP BY columns, with its region; one without any GROUP BY."""
        schema = self.schema
        names = [item.name for item in self.private if isinstance(item, ColumnRef)]
        places = [place for name in names if (place := schema.dimension(name)) is not None]
        found = everything(schema.kept_sizes)
        count = int(np.prod([schema.dimensions[place].size for place in places], dtype=np.int64))
        if count > MAX_PRIVATE_GROUPS:
            raise InvalidQuery(
                f"sql: GROUP BY has {count} combinations of private values, must be at most {MAX_PRIVATE_GROUPS}; "
                "ask for ranges in WHERE instead",
                code="54000",
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
        """InvalidQuery if the answer would have too many cells, given the number of public groups so far."""
        private, aggregates = len(self.private_groups), len(self.select.aggregates)
        cells = groups * private * sum(self.widths)
        functions = private * sum(w for w, number in zip(self.widths, self.numbers, strict=True) if number is not None)
        if functions > MAX_FUNCTIONS:
            raise InvalidQuery(
                f"sql: {functions} functions of private numbers are asked for (quantiles need one per value, for each "
                f"of {private} private groups), must be at most {MAX_FUNCTIONS}; group by fewer private columns",
                code="54000",
            )
        if groups > MAX_GROUPS or cells > MAX_CELLS:
            raise InvalidQuery(
                f"sql: the answer has {cells} cells ({groups} public groups, {private} private ones and {aggregates} "
                f"aggregates of each, quantiles once for every value), must be at most {MAX_CELLS}; group by fewer "
                "columns, or ask for fewer aggregates at a time",
                code="54000",
            )

    def values(self, labels: tuple[Any, ...], key: tuple[Any, ...]) -> dict[Expression, Any]:
        """What the columns and expressions of GROUP BY are in a group."""
        return dict(zip(self.private, labels, strict=True)) | dict(zip(self.public, key, strict=True))

    def sort_key(self, values: dict[Expression, Any]) -> tuple[Any, ...]:
        """The place of a group among others, by the items of GROUP BY: values first, then NaN, then NULL."""
        return tuple(self._rank(item, values[item]) for item in self.select.groups)

    def _rank(self, group: Expression, item: Any) -> tuple[int, Any]:
        private = self._dimension(group)
        if private is not None:
            return 0, private.rank(item)
        # NULL cannot be compared with other values, and NaN compares as false with everything, itself included, which
        # would break sorting: the first number of the key keeps both apart.
        return (2, 0) if item is None else (1, 0) if item != item else (0, item)

    def _dimension(self, item: object) -> Dimension | None:
        place = self.schema.dimension(item.name) if isinstance(item, ColumnRef) else None
        return None if place is None else self.schema.dimensions[place]

    def row(
        self, values: dict[Expression, Any], cells: Sequence[AggregateCell], extremes: Sequence[Any]
    ) -> tuple[Any, ...]:
        """One row of the answer: values of groups, aggregates and extremes, as SELECT lists them."""
        left, most = iter(cells), iter(extremes)
        row: list[Any] = []
        for output in self.select.outputs:
            match output.item:
                case Aggregate():
                    row.append(_rounded(next(left), output.type))
                case Extreme():
                    row.append(next(most))
                case Constant(value, _):
                    row.append(value)
                case item:
                    row.append(values[item])
        return tuple(row)

    def cut(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Apply ORDER BY (NULL last, in either direction), then OFFSET and LIMIT."""
        # Sorting is stable, so sorting by the last key first and the first key last sorts by all of them.
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
        if isinstance(item, AggregateCell):
            return item.estimate
        private = self._dimension(output)
        return item if private is None else private.rank(item)


def _rounded(cell: AggregateCell, kind: str) -> AggregateCell:
    """A cell that is cast to whole numbers; its error and interval stay those of the estimate."""
    whole = kind in WHOLE and cell.estimate is not None
    return replace(cell, estimate=float(round(cell.estimate))) if whole and cell.estimate is not None else cell
