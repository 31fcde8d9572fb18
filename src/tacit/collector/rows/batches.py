"""Uploads with rows: reading, validating report by report, packing for the store, and unpacking when they are sealed.

The store keeps one payload per batch, whose first byte tells its format:

    1  MessagePack   [concatenated reports, column or nil, ...]              JSON uploads: a few rows each
    2  Arrow         [indices of columns, record batch without schema]       bulk uploads

The schema follows from the collection's document and is not repeated. Columns that are NULL from end to end take no
room in either format: a small upload must not become a large payload by leaving columns out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.collector.collections.active import Active
from tacit.collector.ports import StoredBatch
from tacit.collector.rows.arrow_stream import check_rows, read_stream
from tacit.collector.rows.columns import EPOCH, MEMBER, REPORT, Mask, fitted, report_array, schema_of
from tacit.core.extras import load
from tacit.errors import InvalidValue, ReportRejected
from tacit.hosting.problems import Problem
from tacit.wire.rows import Rows

_PACKED, _ARROW = b"\1", b"\2"
_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode


@dataclass(frozen=True)
class Judged:
    """A validated upload with rows: the payload to store, and the indices of refused reports and refused rows."""

    payload: bytes
    count: int
    bad_reports: tuple[int, ...]
    bad_rows: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of reports that were sent."""
        return self.count + len(self.bad_reports) + len(self.bad_rows)


_NO_ROWS = Rows("", ())


def rows_of(active: Active) -> Rows:
    """The public columns of a collection; none where reports come alone."""
    return active.collection.rows or _NO_ROWS


def row_bytes(active: Active) -> int:
    """Upper bound of the decoded bytes of a row without its texts: its report, and 8 bytes per column."""
    return active.dtype.itemsize + 8 * len(rows_of(active).columns)


def split_rows(active: Active, value: Any) -> tuple[Any, list[Any]]:
    """Take the rows out of a JSON batch, so that the rest can be read like one of a collection without rows.

    Returns the batch and a row (or None) per report. Malformed input is returned as it is, for the next step to refuse.
    """
    fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    items: Any = fields.get("reports")
    if not isinstance(items, list):
        return cast("Any", value), []
    given = cast("list[Any]", items)
    check_rows(len(given), row_bytes(active))
    rows = [cast("dict[str, Any]", item).pop("row", None) if isinstance(item, dict) else None for item in given]
    return cast("Any", value), rows


def judge_json(active: Active, payload: bytes, rows: Sequence[Any]) -> Judged:
    """Validate reports (in the mechanism's layout) and their JSON rows, and pack the good ones."""
    reports = np.frombuffer(payload, active.dtype)
    valid = active.mechanism.valid(reports)
    public = rows_of(active)
    fits = np.fromiter((_fits(public, row) for row in rows), np.bool_, len(rows))
    kept = np.flatnonzero(valid & fits)
    columns = _by_column(public, [rows[i] for i in kept.tolist()])
    packed = _PACKED + _pack([np.ascontiguousarray(reports[kept]).tobytes(), *columns])
    return _judged(packed, valid, fits)


def _fits(public: Rows, row: Any) -> bool:
    try:
        public.check_given(row)
    except InvalidValue:
        return False
    return True


def _by_column(public: Rows, rows: Sequence[dict[str, Any]]) -> list[list[Any] | None]:
    """Transpose rows to columns; None for a column that is NULL in all rows.

    The cost is that of the values present, not rows times columns: a tiny upload may name a collection of many columns.
    """
    kinds = {column.name: _KEPT.get(column.type) for column in public.columns}
    columns: dict[str, list[Any]] = {}
    for i, row in enumerate(rows):
        for name, value in row.items():
            if value is not None:
                if name not in columns:
                    columns[name] = [None] * len(rows)
                convert = kinds[name]
                columns[name][i] = value if convert is None else convert(value)
    return [columns.get(column.name) for column in public.columns]


_KEPT: dict[str, Callable[[Any], Any]] = {
    "date": lambda value: date.fromisoformat(value).toordinal() - EPOCH,
    "number": float,
}
"""Conversions from JSON to stored values, by type of column: dates become days since 1970, numbers become floats."""


def _judged(payload: bytes, valid: Mask, fits: Mask) -> Judged:
    bad_rows = tuple(np.flatnonzero(valid & ~fits).tolist())
    return Judged(payload, int(np.count_nonzero(valid & fits)), tuple(np.flatnonzero(~valid).tolist()), bad_rows)


def judge_arrow(active: Active, body: bytes) -> Judged:
    """Read and validate an Arrow stream, whole columns at a time, and pack the good rows."""
    pa = load("pyarrow")
    parts = [_arrow_part(active, batch) for batch in read_stream(body, row_bytes(active))]
    if not parts:
        raise Problem("malformed", "batch: there are no reports in it")
    valid, fits = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    table = pa.Table.from_batches([part[0] for part in parts])
    kept = table if (valid & fits).all() else table.filter(pa.array(valid & fits))
    batches = kept.combine_chunks().to_batches()
    if not batches:
        return _judged(b"", valid, fits)
    held = [i for i, column in enumerate(rows_of(active).columns) if column.name in table.column_names]
    return _judged(_ARROW + _pack([held, batches[0].serialize().to_pybytes()]), valid, fits)


def _arrow_part(active: Active, batch: Any) -> tuple[Any, Mask, Mask]:
    """One record batch in the stored types, the mask of valid reports, and the mask of rows whose values fit."""
    pa, public, names = load("pyarrow"), rows_of(active), list(batch.schema.names)
    known = {REPORT, MEMBER, *(column.name for column in public.columns)}
    if REPORT not in names or len(set(names)) < len(names) or not set(names) <= known:
        columns = ", ".join(column.name for column in public.columns[:12])
        raise Problem("malformed", f"batch: the columns must be report, member and {columns}, each once")
    reports, fits = _reports(active, batch, names), np.ones(batch.num_rows, np.bool_)
    arrays = {REPORT: report_array(reports.tobytes(), active.dtype.itemsize)}
    for column in public.columns:
        if column.name in names and not pa.types.is_null(batch.column(column.name).type):
            arrays[column.name], good = fitted(batch.column(column.name), column.type, column.name)
            fits &= good
    return pa.RecordBatch.from_pydict(arrays), active.mechanism.valid(reports), fits


def _reports(active: Active, batch: Any, names: Sequence[str]) -> npt.NDArray[Any]:
    """The reports of a record batch as an array in the mechanism's layout."""
    payload = _report_bytes(batch.column(REPORT), active.widths[0])
    members = _members(active, batch.column(MEMBER) if MEMBER in names else None, batch.num_rows)
    return active.mechanism.join_batch(members, payload)


def _report_bytes(column: Any, width: int) -> bytes:
    """The concatenated reports of a column; a Problem unless each is present and has exactly `width` bytes."""
    pa = load("pyarrow")
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise Problem("malformed", f"batch: column report must be of binary type, each of {width} bytes")
    try:
        fixed = column.cast(pa.binary(width)) if column.null_count == 0 else None
    except pa.ArrowException:
        fixed = None
    if fixed is None:
        raise Problem("width", f"batch: every report must have {width} bytes")
    # A sliced column starts somewhere inside its buffer.
    data = fixed.buffers()[1]
    start = fixed.offset * width
    return data.slice(start, len(fixed) * width).to_pybytes() if data is not None else b""


def _members(active: Active, column: Any, n: int) -> npt.NDArray[np.uint32]:
    """The member (level) that every report answers, checked to be in range; 0 where the mechanism has only one."""
    pa = load("pyarrow")
    if column is None and not active.sampled:
        return np.zeros(n, np.uint32)
    if column is None or not pa.types.is_integer(column.type) or column.null_count:
        raise Problem("malformed", "batch: column member must be there, an integer for every report")
    members = column.to_numpy(zero_copy_only=False)
    if n and not (members.min() >= 0 and members.max() < len(active.widths)):
        raise Problem("malformed", f"batch: column member must be below {len(active.widths)}")
    return members.astype(np.uint32)


def stored_table(active: Active, batches: Sequence[StoredBatch]) -> Any:
    """Unpack waiting batches into one table of the segment schema; ReportRejected if rows are missing."""
    pa, public = load("pyarrow"), rows_of(active)
    schema = schema_of(public, active.dtype.itemsize)
    if active.collection.rows is None:
        # Reports alone are stored end to end, without a byte for their format.
        reports = report_array(b"".join(batch.payload for batch in batches), active.dtype.itemsize)
        return _whole(pa.Table.from_arrays([reports], schema=schema), batches)
    packed = [_unpack(batch.payload[1:]) for batch in batches if batch.payload[:1] == _PACKED]
    parts = [_arrow_stored(schema, batch) for batch in batches if batch.payload[:1] == _ARROW]
    if packed:
        parts.append(_packed_part(public, schema, packed))
    return _whole(pa.Table.from_batches(parts, schema), batches)


def _whole(table: Any, batches: Sequence[StoredBatch]) -> Any:
    if table.num_rows != sum(batch.count for batch in batches):
        raise ReportRejected("segments: stored batches have another number of rows than they state")
    return table


def _arrow_stored(schema: Any, stored: StoredBatch) -> Any:
    """Unpack an Arrow payload; columns that it leaves out are filled with NULLs."""
    pa = load("pyarrow")
    held, data = _unpack(stored.payload[1:])
    stored_schema = pa.schema([schema.field(REPORT), *(schema.field(1 + i) for i in held)])
    batch = pa.ipc.read_record_batch(pa.py_buffer(data), stored_schema)
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [columns[f.name] if f.name in columns else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _packed_part(public: Rows, schema: Any, packed: Sequence[Any]) -> Any:
    """Unpack MessagePack payloads, all batches at once: building Arrow arrays costs more per call than per row."""
    from tacit.sql.engine.public import arrow_type

    pa, width = load("pyarrow"), schema.field(REPORT).type.byte_width
    arrays = [report_array(b"".join(batch[0] for batch in packed), width)]
    for i, column in enumerate(public.columns):
        columns = [batch[1 + i] or [None] * (len(batch[0]) // width) for batch in packed]
        # Dates are packed as days since 1970; Arrow makes dates of integers by a cast only.
        kind = pa.int32() if column.type == "date" else arrow_type(column.type)
        arrays.append(pa.array(list(chain.from_iterable(columns)), kind).cast(arrow_type(column.type)))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def reports_of(active: Active, table: Any) -> npt.NDArray[Any]:
    """The reports of a table as an array in the mechanism's layout: a view of the column's buffer, not a copy."""
    column = table.column(REPORT).combine_chunks()
    if not len(column):
        return np.empty(0, active.dtype)
    width = active.dtype.itemsize
    return np.frombuffer(column.buffers()[1], active.dtype, len(column), column.offset * width)
