"""Rows as files have them, and back: the layout of spec/report-files.md, in which the member is a column of its own.

In memory a table has the reports of a collection as one column, member included, in the mechanism's own bytes.
"""

from functools import reduce
from operator import add
from typing import Any, Protocol, cast

from tacit.collector.collections.active import Active
from tacit.collector.rows.batches import reports_of, rows_of
from tacit.collector.rows.columns import MEMBER, REPORT, report_array, schema_of
from tacit.core.extras import load
from tacit.core.members import as_bytes
from tacit.errors import TacitError
from tacit.lake import layout
from tacit.lake.about import KEY, About, BatchSet, stated_batches
from tacit.lake.entries import SegmentEntry


class SealedFiles(Protocol):
    """Where sealed rows are: a folder that processes lock, or a lake whose files are fenced by the database."""

    @property
    def is_ready(self) -> bool:
        """Whether there is a place for files."""
        ...

    def write(self, active: Active, table: Any, batches: BatchSet) -> SegmentEntry:
        """Write rows as a file, durable when this returns."""
        ...

    def read(self, active: Active, entry: SegmentEntry, *, anew: bool = False) -> Any:
        """The rows of a file, verified; SegmentDamaged if it is not as it was sealed."""
        ...


def about(active: Active, batches: BatchSet, nonce: str = "") -> About:
    """What a file of a collection says about itself."""
    return About(active.mechanism, active.collection.to_json(), batches=batches, nonce=nonce)


def outward(active: Active, table: Any) -> Any:
    """A table as files have it."""
    pa = load("pyarrow")
    columns = {name: table.column(name) for name in table.column_names}
    if active.sampled:
        members, payloads = active.mechanism.split_batch(reports_of(active, table))
        columns[MEMBER], columns[REPORT] = pa.array(members), layout.fixed_binary(as_bytes(payloads))
    schema = layout.schema_of(active.mechanism, rows=active.collection.rows)
    return pa.table([columns[name] for name in schema.names], schema)


def inward(active: Active, table: Any) -> Any | None:
    """A table in memory from one of a file; None if it has other columns than files of this collection have.

    Files of earlier releases have the member inside of the report.
    """
    pa, wanted = load("pyarrow"), schema_of(rows_of(active), active.dtype.itemsize)
    if active.sampled and MEMBER in table.column_names:
        try:
            reports = layout.reports_of(active.mechanism, table)
        except TacitError:
            return None
        # Member and report are the first two columns of a file, and one column in memory.
        columns = [report_array(reports.tobytes(), active.dtype.itemsize), *table.columns[2:]]
        names = [REPORT, *table.column_names[2:]]
        table = pa.table(columns, names=names, metadata=table.schema.metadata)
    if table.schema.names != wanted.names or table.schema.types != wanted.types:
        return None
    return table


def batches_in(tables: list[Any]) -> BatchSet:
    """The batches that the metadata of tables state, together; files of earlier releases state none."""
    stated = [cast("dict[bytes, bytes]", table.schema.metadata or {}) for table in tables]
    return reduce(add, (stated_batches(data[KEY]) for data in stated if KEY in data), BatchSet())
