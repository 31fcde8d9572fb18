"""Uploads with rows: read, judged report by report, and packed for the store; and unpacked again when they are sealed.

What waits in the store is one payload per batch. A few rows are packed as MessagePack, many as an Arrow record batch of
a schema that the document states, so that it need not be repeated. The first byte tells which. Columns that are null
from end to end take no room in either: a small upload must not become a large one by leaving columns out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.collector.active import Active
from tacit.collector.ports import StoredBatch
from tacit.collector.problems import Problem
from tacit.collector.rows.arrow_stream import check_rows, read_stream
from tacit.collector.rows.columns import EPOCH, MEMBER, REPORT, Mask, fitted, report_array, schema_of
from tacit.errors import InvalidValue, ReportRejected
from tacit.tasks.analytics.imports import arrow
from tacit.tasks.analytics.public import arrow_type
from tacit.wire.rows import Rows

_PACKED, _ARROW = b"\1", b"\2"
_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode


@dataclass(frozen=True)
class Judged:
    """An upload with rows: what is to be stored of it, and which reports are not."""

    payload: bytes
    count: int
    bad_reports: tuple[int, ...]
    bad_rows: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of reports that were sent."""
        return self.count + len(self.bad_reports) + len(self.bad_rows)


def rows_of(active: Active) -> Rows:
    """The public columns of a collection that has some."""
    assert active.collection.rows is not None
    return active.collection.rows


def row_bytes(active: Active) -> int:
    """What a row counts for beside its texts: its report, and 8 bytes for every column, no type of which needs more."""
    return active.dtype.itemsize + 8 * len(rows_of(active).columns)


def split_rows(active: Active, value: Any) -> tuple[Any, list[Any]]:
    """Take the rows out of a JSON twin, as if the collection had none; None for one that is missing."""
    fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    items: Any = fields.get("reports")
    if not isinstance(items, list):
        return cast("Any", value), []
    given = cast("list[Any]", items)
    check_rows(len(given), row_bytes(active))
    rows = [cast("dict[str, Any]", item).pop("row", None) if isinstance(item, dict) else None for item in given]
    return cast("Any", value), rows


def judge_json(active: Active, payload: bytes, rows: Sequence[Any]) -> Judged:
    """Judge reports, in the mechanism's layout, and the rows that came with them as JSON."""
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
    """The values of rows, column by column; None for a column that is null in all. No work for what rows leave out."""
    kinds = {column.name: _KEPT.get(column.type) for column in public.columns}
    found: dict[str, list[Any]] = {}
    for i, row in enumerate(rows):
        for name, value in row.items():
            if value is not None:
                if name not in found:
                    found[name] = [None] * len(rows)
                kept = kinds[name]
                found[name][i] = value if kept is None else kept(value)
    return [found.get(column.name) for column in public.columns]


_KEPT: dict[str, Callable[[Any], Any]] = {
    "date": lambda value: date.fromisoformat(value).toordinal() - EPOCH,
    "number": float,
}
"""What is kept of a value of JSON, where it is not the value itself."""


def _judged(payload: bytes, valid: Mask, fits: Mask) -> Judged:
    bad_rows = tuple(np.flatnonzero(valid & ~fits).tolist())
    return Judged(payload, int(np.count_nonzero(valid & fits)), tuple(np.flatnonzero(~valid).tolist()), bad_rows)


def judge_arrow(active: Active, body: bytes) -> Judged:
    """Read and judge an Arrow stream, whole columns at a time."""
    pa = arrow()
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
    """One record batch in the types that are kept, which reports are valid, and which rows fit."""
    pa, public, names = arrow(), rows_of(active), list(batch.schema.names)
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
    """The reports of a record batch in the mechanism's layout."""
    payload = _report_bytes(batch.column(REPORT), active.widths[0])
    members = _members(active, batch.column(MEMBER) if MEMBER in names else None, batch.num_rows)
    if not active.sampled:
        return np.frombuffer(payload, active.dtype)
    reports = np.empty(batch.num_rows, active.dtype)
    reports["member"] = members
    reports["payload"] = np.frombuffer(payload, np.uint8).reshape(batch.num_rows, active.widths[0])
    return reports


def _report_bytes(column: Any, width: int) -> bytes:
    """Reports end to end; each must be there and have the width of the mechanism's."""
    pa = arrow()
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise Problem("malformed", f"batch: column report must be of binary type, each of {width} bytes")
    try:
        kept = column.cast(pa.binary(width)) if column.null_count == 0 else None
    except pa.ArrowException:
        kept = None
    if kept is None:
        raise Problem("width", f"batch: every report must have {width} bytes")
    data = kept.buffers()[1]
    start = kept.offset * width
    return data.slice(start, len(kept) * width).to_pybytes() if data is not None else b""


def _members(active: Active, column: Any, n: int) -> npt.NDArray[np.uint32]:
    """The members that reports are about; below their number, and 0 where there is one."""
    pa = arrow()
    if column is None and not active.sampled:
        return np.zeros(n, np.uint32)
    if column is None or not pa.types.is_integer(column.type) or column.null_count:
        raise Problem("malformed", "batch: column member must be there, an integer for every report")
    members = column.to_numpy(zero_copy_only=False)
    if n and not (members.min() >= 0 and members.max() < len(active.widths)):
        raise Problem("malformed", f"batch: column member must be below {len(active.widths)}")
    return members.astype(np.uint32)


def stored_table(active: Active, batches: Sequence[StoredBatch]) -> Any:
    """The rows of batches that waited in the store, as one table."""
    pa, public = arrow(), rows_of(active)
    schema = schema_of(public, active.dtype.itemsize)
    packed = [_unpack(batch.payload[1:]) for batch in batches if batch.payload[:1] == _PACKED]
    parts = [_arrow_stored(schema, batch) for batch in batches if batch.payload[:1] == _ARROW]
    if packed:
        parts.append(_packed_part(public, schema, packed))
    table = pa.Table.from_batches(parts, schema)
    if table.num_rows != sum(batch.count for batch in batches):
        raise ReportRejected("segments: stored batches have another number of rows than they state")
    return table


def _arrow_stored(schema: Any, stored: StoredBatch) -> Any:
    """A record batch with the columns that its payload has, and nulls in the others."""
    pa = arrow()
    held, data = _unpack(stored.payload[1:])
    kept = pa.schema([schema.field(REPORT), *(schema.field(1 + i) for i in held)])
    batch = pa.ipc.read_record_batch(pa.py_buffer(data), kept)
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [given[f.name] if f.name in given else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _packed_part(public: Rows, schema: Any, packed: Sequence[Any]) -> Any:
    pa, width = arrow(), schema.field(REPORT).type.byte_width
    arrays = [report_array(b"".join(batch[0] for batch in packed), width)]
    for i, column in enumerate(public.columns):
        columns = [batch[1 + i] or [None] * (len(batch[0]) // width) for batch in packed]
        kind = pa.int32() if column.type == "date" else arrow_type(column.type)
        arrays.append(pa.array(list(chain.from_iterable(columns)), kind).cast(arrow_type(column.type)))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def reports_of(active: Active, table: Any) -> npt.NDArray[Any]:
    """The reports of a table of rows, in the mechanism's layout."""
    column = table.column(REPORT).combine_chunks()
    if not len(column):
        return np.empty(0, active.dtype)
    width = active.dtype.itemsize
    return np.frombuffer(column.buffers()[1], active.dtype, len(column), column.offset * width)
