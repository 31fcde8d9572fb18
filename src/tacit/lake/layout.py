"""The columns of a report file, and the reports in them: Arrow buffers straight to numpy, no object per report.

    member  uint32                only where respondents answer one of several questions
    report  fixed_size_binary     the bytes that a batch has for a report of this mechanism
    weight  int64                 only where reports are weighted
    ...                           the public columns of a collection with rows, in the document's order

The layout for people who write such files elsewhere is in spec/report-files.md.
"""

from typing import Any

import numpy as np

from tacit.arrays import I64, U8, U32
from tacit.core.extras import load
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.members import as_bytes
from tacit.errors import ReportRejected
from tacit.wire.rows import Rows

MEMBER, REPORT, WEIGHT = "member", "report", "weight"

_KEY_BYTES = 8
"""Reports of at most so many bytes are sorted as integers, which is twice as fast as comparing bytes."""


def has_members(mechanism: Mechanism) -> bool:
    """Whether files of this mechanism have a column of members."""
    return mechanism.drawn_from is not None


def report_width(mechanism: Mechanism) -> int:
    """Bytes of a report without its member: those of all members are padded to the same width."""
    return mechanism.payload_widths[0]


def schema_of(mechanism: Mechanism, *, rows: Rows | None = None, weighted: bool = False) -> Any:
    """The Arrow schema of the files of a mechanism; `rows` are the public columns of a collection that has some."""
    pa = load("pyarrow")
    fields = [(MEMBER, pa.uint32())] if has_members(mechanism) else []
    fields.append((REPORT, pa.binary(report_width(mechanism))))
    if weighted:
        fields.append((WEIGHT, pa.int64()))
    if rows is not None:
        # Imported here, because the SQL engine imports pyarrow, which is optional.
        from tacit.sql.engine.public import arrow_type

        fields += [(column.name, arrow_type(column.type)) for column in rows.columns]
    # NULL is no report, no member and no weight; only a public column may be NULL.
    own = (MEMBER, REPORT, WEIGHT) if rows is None else (MEMBER, REPORT)
    return pa.schema([pa.field(name, type_, nullable=name not in own) for name, type_ in fields])


def table_of(mechanism: Mechanism, reports: Reports, weights: I64 | None = None) -> Any:
    """Reports (and their weights) as an Arrow table in canonical order, which says nothing about when they came."""
    pa = load("pyarrow")
    members, payloads = mechanism.split_batch(mechanism.check_reports(reports))
    rows = as_bytes(payloads)
    order = canonical_order(members, rows, weights)
    columns = [pa.array(members[order])] if has_members(mechanism) else []
    columns.append(fixed_binary(rows[order]))
    if weights is not None:
        columns.append(pa.array(weights[order]))
    return pa.table(columns, schema_of(mechanism, weighted=weights is not None))


def fixed_binary(rows: U8) -> Any:
    """A fixed-size binary column over rows of bytes, without copying them."""
    pa, (n, width) = load("pyarrow"), rows.shape
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), n, [None, pa.py_buffer(np.ascontiguousarray(rows))])


def canonical_order(members: U32, rows: U8, weights: I64 | None = None) -> I64:
    """The order of reports by member, bytes and weight."""
    width = rows.shape[1]
    if width <= _KEY_BYTES:
        padded = np.zeros((len(rows), _KEY_BYTES), np.uint8)
        padded[:, :width] = rows
        # Big-endian, so that integers are in the order of their bytes.
        keys = padded.view(">u8").reshape(-1).astype(np.uint64)
    else:
        # Places among the sorted reports; equal reports have equal places, so that weights decide between them.
        keys = np.unique(np.ascontiguousarray(rows).view(f"V{width}").reshape(-1), return_inverse=True)[1]
    if weights is None and not members.any():
        return np.argsort(keys, kind="stable")
    # The last key is the first that np.lexsort sorts by.
    return np.lexsort((keys, members) if weights is None else (weights, keys, members))


def reports_of(mechanism: Mechanism, batch: Any) -> Reports:
    """The reports of an Arrow record batch or table in the mechanism's layout; ReportRejected if it does not fit.

    A plain mechanism's are a view of the column's buffer. Ranges are not looked at: counting them does that.
    """
    payload = _payload(mechanism, _column(mechanism, batch, REPORT))
    if not has_members(mechanism):
        return mechanism.decode(payload)
    return mechanism.join_batch(_members(mechanism, _column(mechanism, batch, MEMBER)), payload)


def weights_of(mechanism: Mechanism, batch: Any) -> I64 | None:
    """The weights of the reports of a record batch; None where there is no such column."""
    if WEIGHT not in batch.schema.names:
        return None
    column = _column(mechanism, batch, WEIGHT)
    if not load("pyarrow").types.is_int64(column.type):
        raise _unfit(mechanism, f"column {WEIGHT} is {column.type}, must be int64, in a declared decimal scale")
    return column.to_numpy(zero_copy_only=False)


def _unfit(mechanism: Mechanism, fault: str) -> ReportRejected:
    return ReportRejected(f"{mechanism.kind} {mechanism.digest[:6]}: {fault}")


def _column(mechanism: Mechanism, batch: Any, name: str) -> Any:
    """A column in one piece, without NULLs."""
    if batch.schema.names.count(name) != 1:
        raise _unfit(mechanism, f"there must be one column {name}; see spec/report-files.md for the layout")
    column = batch.column(name)
    if hasattr(column, "combine_chunks"):  # Of a table, whose columns may be in several pieces.
        column = column.combine_chunks()
    if column.null_count:
        raise _unfit(mechanism, f"column {name} has {column.null_count} NULLs; every row must have a {name}")
    return column


def _payload(mechanism: Mechanism, column: Any) -> memoryview:
    """The reports of a column end to end; both fixed-size and variable binary columns are taken, without a copy."""
    types, width, n = load("pyarrow").types, report_width(mechanism), len(column)
    if types.is_fixed_size_binary(column.type):
        if column.type.byte_width != width:
            raise _unfit(mechanism, f"reports are of {column.type.byte_width} bytes, must be of {width}")
        start = column.offset * width
    elif types.is_binary(column.type) or types.is_large_binary(column.type):
        start = _start(mechanism, column, np.dtype(np.int32 if types.is_binary(column.type) else np.int64), width)
    else:
        told = str(column.type).partition("<")[0][:20]
        raise _unfit(mechanism, f"column {REPORT} is {told}, must be fixed-size binary of {width} bytes")
    # The last buffer holds the values, before it come validity and offsets; it is missing where there are no values.
    data = column.buffers()[-1]
    return memoryview(b"") if data is None or not n else memoryview(data)[start : start + n * width]


def _start(mechanism: Mechanism, column: Any, offset: "np.dtype[Any]", width: int) -> int:
    """Where the values of a variable binary column begin in its buffer, once all of them are known to be this wide.

    Engines without a fixed-size type, such as Spark, hand reports over like this.
    """
    if not len(column):
        return 0
    # One offset more than values; a slice of a column starts somewhere inside of its offsets.
    ends = np.frombuffer(column.buffers()[1], offset, len(column) + 1, column.offset * offset.itemsize)
    wrong = int(np.count_nonzero(np.diff(ends) != width))
    if wrong:
        raise _unfit(mechanism, f"{wrong} of {len(column)} reports are not of {width} bytes")
    return int(ends[0])


def _members(mechanism: Mechanism, column: Any) -> U32:
    """The member of every report, checked; engines without unsigned integers use signed ones."""
    if not load("pyarrow").types.is_integer(column.type):
        raise _unfit(mechanism, f"column {MEMBER} is {str(column.type)[:20]}, must be uint32")
    members = column.to_numpy(zero_copy_only=False)
    if len(members) and not (members.min() >= 0 and members.max() < mechanism.member_count):
        raise _unfit(mechanism, f"column {MEMBER} must be from 0 to {mechanism.member_count - 1}")
    return members.astype(np.uint32, copy=False)
