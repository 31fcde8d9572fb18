"""Reading Arrow streams from untrusted clients: bounded in memory, and validated before any value is used.

Arrow allocates what a compressed buffer claims to hold (a decompression bomb), so compressed streams are refused from
their metadata. Even without compression the size of the body bounds little: columns may share a buffer, nulls need
none, and a column of one-byte dictionary indices can stand for a long text in every row. So the decoded size is
computed before anything is decoded, and a stream may have few messages only.
"""

from collections.abc import Iterator
from struct import unpack_from
from typing import Any

from tacit.collector.limits import MOST_BATCH_BYTES, MOST_BATCH_ROWS
from tacit.core.extras import load
from tacit.hosting.problems import Problem
from tacit.wire.rows import MAX_COLUMNS

MEDIA_TYPE = "application/vnd.apache.arrow.stream"

MOST_PARTS = 64
"""Limit of record batches in a stream: each costs fixed work, however few rows it has."""

MOST_DICTIONARY_BYTES = 1 << 26
"""Limit of the bytes of dictionaries, counted once per record batch and column: validation reads them every time."""

_HEADER, _LENGTH, _ID, _DATA, _DELTA, _COMPRESSION = 2, 0, 0, 1, 2, 3
"""Field numbers in Arrow's Flatbuffers schema (format/Message.fbs): Message.header; RecordBatch.length;
DictionaryBatch.id, .data and .isDelta; RecordBatch.compression."""


def most_rows(row_bytes: int) -> int:
    """How many rows a batch may have if each takes so many bytes once decoded, not counting its texts."""
    return max(1, min(MOST_BATCH_ROWS, MOST_BATCH_BYTES // row_bytes))


def check_rows(rows: int, row_bytes: int) -> None:
    """Problem `too_large` for a batch of more rows than `most_rows` allows."""
    if rows > most_rows(row_bytes):
        raise Problem(
            "too_large", f"a batch of this collection has at most {most_rows(row_bytes)} rows, not {rows}; send several"
        )


def read_stream(body: bytes, row_bytes: int) -> Iterator[Any]:
    """Yield the record batches of a stream, fully validated and with dictionaries decoded.

    `row_bytes` is what a row takes once decoded, not counting its texts. Raises a Problem if the body is not a stream,
    is too large, or uses a feature that is not allowed.
    """
    pa = load("pyarrow")
    try:
        rows = _look_over(pa, body)
        check_rows(rows, row_bytes)
        yield from _batches(pa, body, MOST_BATCH_BYTES - rows * row_bytes)
    except Problem:
        raise
    except Exception:
        # Arrow's reader raises all kinds of exceptions on corrupt bytes; whichever it is, the body is at fault.
        raise Problem("malformed", "batch: the body is not a stream of Arrow record batches") from None


def _look_over(pa: Any, body: bytes) -> int:
    """Check the metadata of every message without decoding any; returns the number of rows that they claim."""
    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
    rows = parts = 0
    dictionaries: set[int] = set()
    while (message := next(reader, None)) is not None:
        # Before version 5 compression was declared in another place, which this check would miss.
        if message.metadata_version != pa.ipc.MetadataVersion.V5:
            raise Problem("malformed", "batch: the Arrow stream has metadata of an old version; write version 5")
        data = message.metadata.to_pybytes()
        header = _follow(data, _field(data, _follow(data, 0), _HEADER))
        if message.type == "dictionary":
            header = _dictionary(data, header, dictionaries)
        elif message.type == "record batch":
            parts, rows = parts + 1, rows + _rows(data, header, parts)
        if message.type != "schema" and _field(data, header, _COMPRESSION):
            raise Problem("malformed", "batch: the Arrow stream is compressed; write it without compression")
    return rows


def _rows(data: bytes, header: int, parts: int) -> int:
    """Number of rows of a record batch; `parts` record batches came before it."""
    rows = _integer(data, _field(data, header, _LENGTH))
    if rows < 1:
        raise Problem("malformed", "batch: there is a record batch without rows")
    if parts >= MOST_PARTS:
        raise Problem("too_large", f"an Arrow stream has at most {MOST_PARTS} record batches; write fewer, larger ones")
    return rows


def _dictionary(data: bytes, header: int, seen: set[int]) -> int:
    """Offset of the record batch inside a dictionary message; delta and replacement dictionaries are refused."""
    delta, number = _field(data, header, _DELTA), _integer(data, _field(data, header, _ID))
    if number in seen or (delta and data[delta]) or len(seen) >= MAX_COLUMNS:
        raise Problem("malformed", "batch: a dictionary of the Arrow stream must come once; unify dictionaries first")
    seen.add(number)
    return _follow(data, _field(data, header, _DATA))


# A minimal Flatbuffers reader, as pyarrow does not expose these fields. A table begins with the (signed) distance back
# to its vtable; the vtable holds its own size, the table's size, and a 16-bit offset per field, 0 if it is absent:
#
#     vtable: [size u16][table size u16][field 0 u16][field 1 u16]...      table: [i32 back to vtable][fields...]
#
# All reads are bounds-checked by struct, whose errors `read_stream` turns into a Problem.
def _follow(data: bytes, at: int) -> int:
    """Follow a relative 32-bit offset."""
    return at + unpack_from("<I", data, at)[0]


def _field(data: bytes, table: int, number: int) -> int:
    """The position of a field of a table; 0 if the table does not have it."""
    names = table - unpack_from("<i", data, table)[0]
    place = 4 + 2 * number
    offset = unpack_from("<H", data, names + place)[0] if place < unpack_from("<H", data, names)[0] else 0
    return table + offset if offset else 0


def _integer(data: bytes, at: int) -> int:
    return unpack_from("<q", data, at)[0] if at else 0


def _batches(pa: Any, body: bytes, room: int) -> Iterator[Any]:
    """Yield the record batches; `room` is how many bytes their texts may take once decoded."""
    looked = 0
    with pa.ipc.open_stream(body) as reader:
        _check_schema(pa, reader.schema)
        for batch in reader:
            # The cheap check first: it proves that offsets and lengths fit the buffers, so that nbytes can be trusted.
            # Only then the full one, which looks at every value, and only if the sizes are allowed.
            batch.validate()
            coded = [column for column in batch if pa.types.is_dictionary(column.type)]
            looked += sum(column.dictionary.nbytes for column in coded)
            room -= sum(column.nbytes for column in batch if _is_text(pa, column.type))
            if room < 0 or looked > MOST_DICTIONARY_BYTES:
                raise _too_long()
            batch.validate(full=True)
            room -= sum(_decoded_bytes(pa, column) for column in coded)
            if room < 0:
                raise _too_long()
            yield _decoded(pa, batch)


def _too_long() -> Problem:
    return Problem(
        "too_large", f"texts and dictionaries take more than {MOST_BATCH_BYTES >> 20} MB; send several batches"
    )


def _check_schema(pa: Any, schema: Any) -> None:
    if len(schema) > MAX_COLUMNS + 2:
        raise Problem("malformed", f"batch: there are more than {MAX_COLUMNS} public columns")
    for i, type_ in enumerate(schema.types):
        if pa.types.is_dictionary(type_) and not _is_text(pa, type_.value_type):
            raise Problem("malformed", "batch: a dictionary must be of text; send other columns as they are")
        if not _is_taken(pa, type_):
            raise Problem("malformed", f"batch: column number {i} is of a type that no column has here")


def _is_text(pa: Any, type_: Any) -> bool:
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)


def _is_taken(pa: Any, type_: Any) -> bool:
    """Whether a column of an upload may have this type; nested types, for one, are refused before they are read."""
    kinds = pa.types
    taken = (
        kinds.is_null, kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_string, kinds.is_large_string,
        kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary, kinds.is_date, kinds.is_dictionary,
    )  # fmt: skip
    return any(is_kind(type_) for is_kind in taken)


def _decoded_bytes(pa: Any, column: Any) -> int:
    """How many bytes of text a dictionary-encoded column would decode to."""
    pc = load("pyarrow.compute")
    # In 64 bits: lengths are int32, and the sum over a hostile batch would overflow it.
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _decoded(pa: Any, batch: Any) -> Any:
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
