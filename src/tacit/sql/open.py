"""Open a table: rows, schema, design and reports become a connection."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.core.mechanism import Reports
from tacit.errors import InvalidSpec, ReportRejected
from tacit.sql.connection import Connection
from tacit.sql.design.levels import Design
from tacit.sql.engine.linked import Linked, link
from tacit.sql.engine.plan import FANOUTS, PLANNED, DesignOption, options
from tacit.sql.engine.predicate import Conditions, one_value
from tacit.sql.engine.private_numbers import PrivateNumber, private_number
from tacit.sql.engine.public import ArrowRows, OrderedRows, RowEvaluator, RowSource
from tacit.sql.engine.source import ReportSource
from tacit.sql.parse.select import parse_sql
from tacit.sql.parse.syntax import Both, ColumnRef
from tacit.sql.schema.regions import Region, slab
from tacit.sql.schema.schema import Schema, nearest_column

_STEPS = 8
"""Places at which a private number is cut when a design is planned for its sums and quantiles."""


def open_table(schema: Schema, rows: "RowSource | Any", design: Design, reports: "Reports | Linked") -> Connection:
    """A connection to rows (an Arrow table, or anything with the port `RowSource`) and their reports, row by row."""
    table = rows if isinstance(getattr(rows, "n", None), int) else ArrowRows(rows)
    linked = reports if isinstance(reports, Linked) else link(design, reports)
    if linked.n != table.n:
        raise ReportRejected(f"analytics: {linked.n} reports for {table.n} rows; every row has one report")
    private = [dimension.name for dimension in schema.dimensions if dimension.name in table.names]
    if private:
        raise InvalidSpec(f"analytics: {private[0]} is private and must not be among the public columns")
    _check_scales(schema, table)
    # Reports are sorted by what they answer, so that a kernel goes through one kind at a time; rows follow them.
    ordered = table if linked.order is None else OrderedRows(table, linked.order)
    return Connection(schema, ordered, ReportSource(linked), design)


def _check_scales(schema: Schema, rows: RowSource) -> None:
    """Measures with declared decimals are whole multiples of the last one."""
    public = RowEvaluator(rows)
    for name, decimals in schema.scales.items():
        column = ColumnRef(nearest_column(name, rows.names))
        numbers, _ = public.measure(column)
        public.check_measure(column, [None])
        scaled = numbers * 10.0**decimals
        if not np.all(np.abs(scaled - np.round(scaled)) <= 1e-6 + 1e-12 * np.abs(scaled)):
            raise InvalidSpec(f"analytics: {name} has more than the {decimals} decimals it declares; round it first")


def regions_of(schema: Schema, rows: RowSource, queries: Sequence[str]) -> list[Region]:
    """The regions that queries ask for: the workload to collect for. Groups by private columns are asked as a whole."""
    names = [dimension.name for dimension in schema.dimensions] + list(rows.names)
    conditions = Conditions(schema, RowEvaluator(rows))
    asked: list[Region] = []
    for text in queries:
        select = parse_sql(text, names, schema.table)
        for aggregate in select.aggregates:
            for region in conditions.regions(Both((select.condition, aggregate.condition))):
                for column in select.groups:
                    place = schema.dimension(column.name) if isinstance(column, ColumnRef) else None
                    # All groups of a private column have regions of one shape; the first stands for them.
                    region = region if place is None else region & one_value(schema, place, 0)
                asked += _measured(region, private_number(schema, aggregate))
    return asked


def _measured(region: Region, number: PrivateNumber | None) -> list[Region]:
    """The regions of an aggregate: of a private number, some of the steps that it falls into."""
    if number is None:
        return [region]
    size = region.sizes[number.place]
    starts = sorted({max(1, i * size // _STEPS) for i in range(1, _STEPS)})
    return [region & slab(region.sizes, number.place, ((start, size - 1),)) for start in starts]


def choose_design(
    schema: Schema, epsilon: str, workload: Sequence[Region], n: int, *, method: str = "auto",
    fanout: int | None = None, among: Sequence[str] = PLANNED,
) -> DesignOption:  # fmt: skip
    """The design with the least expected variance over a workload of regions: of one method, or the best of some."""
    fanouts = FANOUTS if fanout is None else (fanout,)
    if any(item < 2 for item in fanouts):
        raise InvalidSpec(f"analytics: fanout is {fanout}, must be at least 2")
    shapes = list({schema.shape(item): (item, schema.shape(item)) for item in fanouts}.values())
    return options(shapes, epsilon, workload, n, among if method == "auto" else (method,))[0]
