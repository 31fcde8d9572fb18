"""The `.reports` and `.tally` files: magic, version, header, blocks, checksum.

::

    magic (8 bytes) | version u16 | header length u32 | header (canonical JSON) |
    blocks: length u32, payload ... | length 0 | number of reports u64 | SHA-256 of everything before it

All integers are little-endian. The header states the spec, its digest and (optionally) the domain, so that a
file can be read years later by anyone. Readers stream; a truncated, altered or foreign file is refused.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from tacit.catalog import parse
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, PerMember
from tacit.core.tally import Counts, Log
from tacit.core.tally_check import check_tally
from tacit.device.numbers.canonical import canonical, digest
from tacit.errors import InvalidSpec, ReportRejected
from tacit.wire.tallies import dump_tally, empty_tally, load_tally

REPORTS_MAGIC = b"TACITREP"
TALLY_MAGIC = b"TACITTAL"
VERSION = 1
# Bounds on what a damaged or forged file can make a reader allocate at a time.
_MAX_HEADER = 1 << 24
_MAX_BLOCK = 1 << 28


@dataclass(frozen=True)
class Header:
    """The header of a file: its mechanism, domain and further fields."""

    mechanism: Mechanism
    domain: dict[str, Any] | None
    extra: dict[str, Any]


class Writer:
    """Write one file block by block; `close` adds the number of reports and the checksum."""

    def __init__(self, stream: BinaryIO, magic: bytes, mechanism: Mechanism, **extra: Any) -> None:
        """Write magic, version and header."""
        self._stream, self._hash, self._n = stream, sha256(), 0
        # Canonical JSON, so that equal tallies give equal files.
        header = canonical({"spec": mechanism.spec(), "digest": mechanism.digest} | extra)
        self._write(magic + VERSION.to_bytes(2, "little") + len(header).to_bytes(4, "little") + header)

    def _write(self, data: bytes | memoryview) -> None:
        self._hash.update(data)
        self._stream.write(data)

    def block(self, payload: bytes | memoryview, reports: int) -> None:
        """Add one non-empty block that stands for `reports` reports."""
        if len(payload):
            self._write(len(payload).to_bytes(4, "little"))
            self._write(payload)
        self._n += reports

    def close(self) -> int:
        """Finish the file; returns the number of reports."""
        self._write((0).to_bytes(4, "little") + self._n.to_bytes(8, "little"))
        self._stream.write(self._hash.digest())
        self._stream.flush()
        return self._n


class Reader:
    """Read one file block by block; the checksum is verified when the last block has been read."""

    def __init__(self, stream: BinaryIO, magic: bytes, name: str) -> None:
        """Read and check magic, version and header."""
        self._stream, self._hash, self.name = stream, sha256(), name
        if self._read(8) != magic:
            raise ReportRejected(f"{name}: not a {_what(magic)} file; it begins with other bytes")
        version = int.from_bytes(self._read(2), "little")
        if version != VERSION:
            raise ReportRejected(f"{name}: file version is {version}, must be {VERSION}; update tacit to read it")
        length = int.from_bytes(self._read(4), "little")
        if length > _MAX_HEADER:
            raise ReportRejected(f"{name}: the header claims {length} bytes; the file is damaged")
        self.header = self._parse(self._read(length))
        self.n = -1

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) != size:
            raise ReportRejected(f"{self.name}: the file is truncated; nothing of it was counted")
        self._hash.update(data)
        return data

    def _parse(self, data: bytes) -> Header:
        try:
            fields = json.loads(data)
            mechanism = parse(fields["spec"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, InvalidSpec):
                raise
            raise ReportRejected(f"{self.name}: the header is damaged") from None
        # The checksum at the end covers this too, but a foreign spec should not be read that far.
        if digest(fields["spec"]) != fields.get("digest"):
            raise ReportRejected(f"{self.name}: the header's digest does not match its spec; the file was altered")
        rest = {key: value for key, value in fields.items() if key not in ("spec", "digest", "domain")}
        return Header(mechanism, fields.get("domain"), rest)

    def blocks(self) -> Iterator[bytes]:
        """Yield every payload; raises at the end if the file was truncated or altered."""
        while length := int.from_bytes(self._read(4), "little"):
            if length > _MAX_BLOCK:
                raise ReportRejected(f"{self.name}: a block claims {length} bytes; the file is damaged")
            yield self._read(length)
        self.n = int.from_bytes(self._read(8), "little")
        # One byte more than a checksum has, so that anything behind it is noticed too.
        if self._stream.read(33) != self._hash.digest():
            raise ReportRejected(f"{self.name}: the checksum does not match; nothing of it was counted")


def _what(magic: bytes) -> str:
    return ".reports" if magic == REPORTS_MAGIC else ".tally"


def report_blocks(reader: Reader, at_least: int = 1 << 18) -> Iterator[npt.NDArray[Any]]:
    """Yield batches of reports from a `.reports` file; small blocks are joined, as every kernel call has overhead."""
    mechanism, waiting, n = reader.header.mechanism, bytearray(), 0
    for payload in reader.blocks():
        waiting += payload
        if len(waiting) >= at_least * mechanism.report_dtype.itemsize:
            n += len(waiting) // mechanism.report_dtype.itemsize
            yield mechanism.decode(bytes(waiting))
            waiting = bytearray()
    # The last batch is held back until the number of reports and the checksum have been verified.
    n += len(waiting) // mechanism.report_dtype.itemsize
    if n != reader.n:
        raise ReportRejected(f"{reader.name}: {n} reports where {reader.n} are stated; nothing of it was counted")
    if waiting:
        yield mechanism.decode(bytes(waiting))


@dataclass(frozen=True)
class Origin:
    """Where the reports of a tally come from, for a collector that is to count them once."""

    collection: str
    """The id of the collection that the files belong to; empty if they do not say."""
    files: tuple[str, ...]
    """The SHA-256 of every file that was counted."""

    def to_json(self) -> dict[str, Any]:
        """The fields of a tally's header; the order of files does not matter."""
        named = {"collection": self.collection} if self.collection else {}
        return named | {"manifest": sorted(self.files)}


def write_tally(
    stream: BinaryIO, tally: AnyTally, domain: dict[str, Any] | None = None, origin: Origin | None = None
) -> None:
    """Write a tally with everything needed to go on adding to it, and where its reports come from if that is known."""
    extra: dict[str, Any] = ({} if domain is None else {"domain": domain}) | (origin.to_json() if origin else {})
    mechanism = tally.mechanism
    assert isinstance(mechanism, Mechanism)
    if isinstance(tally, PerMember):
        writer = Writer(stream, TALLY_MAGIC, mechanism, state="members", **extra)
        _write_arrays(writer, [np.frombuffer(dump_tally(tally), np.uint8)], tally.n)
    elif isinstance(tally, Log):
        writer = Writer(stream, TALLY_MAGIC, mechanism, state="log", weighted=tally.is_weighted, **extra)
        _write_arrays(writer, [*tally.chunks, *(tally.weights or ())], tally.n)
    else:
        totals = {"total": str(tally.total), "total_squared": str(tally.total2)}
        writer = Writer(
            stream, TALLY_MAGIC, mechanism, state="counts", weighted=tally.is_weighted,
            **totals, **extra,
        )  # fmt: skip
        arrays = [tally.cells, tally.cells2] if tally.is_weighted else [tally.cells]
        _write_arrays(writer, [array.astype("<i8") for array in arrays], tally.n)
    writer.close()


def _write_arrays(writer: Writer, arrays: list[npt.NDArray[Any]], reports: int) -> None:
    """Write all arrays one after the other, little-endian, in blocks of bounded size."""
    for array in arrays:
        data = np.ascontiguousarray(array).tobytes()
        for start in range(0, len(data), _MAX_BLOCK // 2):
            writer.block(memoryview(data)[start : start + _MAX_BLOCK // 2], 0)
    writer.block(b"", reports)


def read_tally(stream: BinaryIO, name: str) -> tuple[AnyTally, dict[str, Any] | None]:
    """Return the tally of a file, checked, and its domain if it has one."""
    reader = Reader(stream, TALLY_MAGIC, name)
    data = b"".join(reader.blocks())
    fields, mechanism = reader.header.extra, reader.header.mechanism
    weighted = fields.get("weighted") is True
    # Before the empty tally below is allocated: a forged spec could ask for more memory than there is.
    if 8 * mechanism.cell_count > len(data):
        raise ReportRejected(f"{name}: the file holds fewer cells than its spec has; it is damaged")
    # The state follows from the spec; the header's word for it is only compared.
    expected = empty_tally(mechanism)
    state = "members" if isinstance(expected, PerMember) else "log" if isinstance(expected, Log) else "counts"
    if fields.get("state") != state:
        raise ReportRejected(f"{name}: the state is not the one its spec says; the file is damaged")
    if isinstance(expected, PerMember):
        tally: AnyTally = _read_members(mechanism, data, reader)
    elif isinstance(expected, Log):
        tally = _read_log(mechanism, data, reader.n, weighted)
    else:
        tally = _read_counts(mechanism, data, reader, expected.cells.shape, weighted)
    check_tally(mechanism, tally)
    return tally, reader.header.domain


def sources_of(data: bytes, name: str) -> list[str]:
    """What the reports of a tally file came from: the SHA-256 of every file that was counted, or of the tally itself.

    Two tallies with a source in common hold some reports twice.
    """
    origin = read_origin(data, name)
    return [sha256(data).hexdigest()] if origin is None else list(origin.files)


def read_origin(data: bytes, name: str) -> Origin | None:
    """Where the reports of a tally file come from; None if it does not say."""
    extra = Reader(BytesIO(data), TALLY_MAGIC, name).header.extra
    manifest, collection = extra.get("manifest"), extra.get("collection", "")
    if manifest is None:
        return None
    files = cast("list[Any]", manifest) if isinstance(manifest, list) else []
    if not files or not all(isinstance(item, str) and re.fullmatch("[0-9a-f]{64}", item) for item in files):
        raise ReportRejected(f"{name}: the manifest must be a list of SHA-256 in hexadecimal; the file is damaged")
    if len(set(files)) < len(files):
        raise ReportRejected(f"{name}: the manifest names a file twice, whose reports are counted twice")
    if not isinstance(collection, str) or not re.fullmatch("([0-9a-f]{64})?", collection):
        raise ReportRejected(f"{name}: the collection must be an id of 64 hexadecimal digits; the file is damaged")
    return Origin(collection, tuple(files))


def _read_counts(mechanism: Mechanism, data: bytes, reader: Reader, shape: tuple[int, ...], weighted: bool) -> Counts:
    # Totals are decimal text, since JSON numbers beyond 2^53 are not exact everywhere.
    stated = reader.header.extra.get("total"), reader.header.extra.get("total_squared")
    totals = [int(text) for text in stated if isinstance(text, str) and re.fullmatch("-?[0-9]{1,20}", text)]
    cells = np.frombuffer(data, "<i8").astype(np.int64) if len(data) % 8 == 0 else np.zeros(0, np.int64)
    if cells.size != (2 if weighted else 1) * int(np.prod(shape)) or len(totals) != 2:
        raise ReportRejected(f"{reader.name}: the cells do not fit the spec; the file is damaged")
    if not weighted and totals != [reader.n, reader.n]:
        raise ReportRejected(f"{reader.name}: the totals are not the number of reports; the file is damaged")
    first = cells[: int(np.prod(shape))].reshape(shape)
    second = cells[first.size :].reshape(shape) if weighted else first
    return Counts(mechanism, reader.n, first, second, totals[0], totals[1])


def _read_members(mechanism: Mechanism, data: bytes, reader: Reader) -> AnyTally:
    """A tally per member, in the format of `tacit.wire.tallies`; both state the number of reports, and must agree."""
    tally = load_tally(mechanism, data)
    if tally.n != reader.n:
        raise ReportRejected(f"{reader.name}: {tally.n} reports where {reader.n} are stated; the file is damaged")
    return tally


def _read_log(mechanism: Mechanism, data: bytes, n: int, weighted: bool) -> Log:
    """A log: the bytes of all reports, then all weights."""
    width = mechanism.report_dtype.itemsize
    if len(data) != n * (width + (8 if weighted else 0)):
        raise ReportRejected(f"tally: {len(data)} bytes do not hold the {n} reports stated; the file is damaged")
    reports = mechanism.decode(data[: n * width])
    weights = (np.frombuffer(data[n * width :], "<i8").astype(np.int64),) if weighted else None
    return Log(mechanism, (reports,), weights)
