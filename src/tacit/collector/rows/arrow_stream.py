"""Reading an Arrow stream that anybody may have sent: within limits, and checked before a value of it is looked at.

Arrow allocates what a compressed buffer claims to hold, so compressed streams are refused before they are read. Without
compression every buffer is a part of the body, and the size of the body bounds everything but dictionaries: a column
of one-byte indices can stand for a long text in every row. What those would come to is computed before it is done.
"""

from collections.abc import Iterator
from struct import error as struct_error
from struct import unpack_from
from typing import Any

from tacit.collector.problems import Problem
from tacit.tasks.analytics.imports import arrow, compute
from tacit.wire.rows import MAX_COLUMNS

MEDIA_TYPE = "application/vnd.apache.arrow.stream"

MOST_ROWS = 1 << 18
MOST_BYTES = 1 << 25
"""What one upload may hold, dictionaries decoded; many uploads hold more."""

_HEADER, _DATA, _COMPRESSION = 2, 1, 3
"""Places of fields in Arrow's metadata: the header of a message, the data of a dictionary, the compression of data."""


def read_stream(body: bytes) -> Iterator[Any]:
    """The record batches of a stream, valid and with dictionaries decoded; a problem if it is none or too large."""
    pa = arrow()
    rows = size = 0
    try:
        _refuse_compressed(pa, body)
        with pa.ipc.open_stream(body) as reader:
            if len(reader.schema) > MAX_COLUMNS + 2:
                raise Problem("malformed", f"batch: there are more than {MAX_COLUMNS} public columns")
            for batch in reader:
                batch.validate(full=True)
                rows, size = rows + batch.num_rows, size + _decoded_bytes(pa, batch)
                if rows > MOST_ROWS or size > MOST_BYTES:
                    most = f"{MOST_ROWS} rows and {MOST_BYTES >> 20} MB"
                    raise Problem("too_large", f"a batch has at most {most}; send several")
                yield _decoded(pa, batch)
    except (pa.ArrowException, OSError, ValueError, struct_error, StopIteration):
        raise Problem("malformed", "batch: the body is not a stream of Arrow record batches") from None


def _refuse_compressed(pa: Any, body: bytes) -> None:
    """Look at the metadata of every message; they are Flatbuffers, of which two fields are needed."""
    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
    while (message := next(reader, None)) is not None:
        if message.type == "schema":
            continue
        data = message.metadata.to_pybytes()
        header = _follow(data, _field(data, _follow(data, 0), _HEADER))
        if message.type == "dictionary":
            header = _follow(data, _field(data, header, _DATA))
        if _field(data, header, _COMPRESSION):
            raise Problem("malformed", "batch: the Arrow stream is compressed; write it without compression")


def _follow(data: bytes, at: int) -> int:
    return at + unpack_from("<I", data, at)[0]


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 if the table does not have it."""
    names = table - unpack_from("<i", data, table)[0]
    place = 4 + 2 * number
    offset = unpack_from("<H", data, names + place)[0] if place < unpack_from("<H", data, names)[0] else 0
    return table + offset if offset else 0


def _decoded_bytes(pa: Any, batch: Any) -> int:
    return sum(_dictionary_bytes(column) if pa.types.is_dictionary(column.type) else column.nbytes for column in batch)


def _dictionary_bytes(column: Any) -> int:
    pa, pc = arrow(), compute()
    kind = column.type.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise Problem("malformed", "batch: a dictionary must be of text; send other columns as they are")
    # As whole numbers of 64 bits, for many long texts add up to more than 32 hold.
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0) + 4 * len(column)


def _decoded(pa: Any, batch: Any) -> Any:
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
