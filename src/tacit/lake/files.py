"""Writing and reading report files.

Reports are noise, which neither a dictionary nor compression makes smaller: they are written plainly, and reading
them takes a few per cent of the time that counting does. Members are sorted, so that theirs take next to nothing.

A file that Tacit writes is named by the SHA-256 of its bytes. Whoever opens it by that name verifies the bytes; of
files with other names only the checksums of pages are verified, where there are some.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from tacit.arrays import I64
from tacit.core.extras import load
from tacit.core.mechanism import Reports
from tacit.errors import ReportRejected
from tacit.lake.about import About, about_of
from tacit.lake.entries import SUFFIX, SegmentEntry
from tacit.lake.layout import MEMBER, REPORT, WEIGHT, has_members, table_of
from tacit.lake.place import LakePlace, explained

GROUP_ROWS, GROUP_BYTES = 1 << 20, 1 << 26
"""A row group has at most so many rows and bytes of reports: what a reader has in memory at a time."""

_NAMED = re.compile(rf"([0-9a-f]{{64}}){re.escape(SUFFIX)}")
_HASHED_BYTES = 1 << 22
_MOST_WHOLE = 1 << 28
"""Files named by their checksum are read whole, up to this size; Tacit writes none that is larger."""


def group_rows(width: int) -> int:
    """How many reports of a width are written or read at a time."""
    return max(1, min(GROUP_ROWS, GROUP_BYTES // width))


def write_table(sink: Any, table: Any, about: About) -> None:
    """Write rows of a file's schema, in the order that they have, as one file."""
    parquet, rows = load("pyarrow.parquet"), table.num_rows
    # Members are sorted and public columns repeat themselves: a dictionary and compression make both small.
    public = [name for name in table.column_names if name not in (REPORT, WEIGHT)]
    with parquet.ParquetWriter(
        sink,
        table.schema,
        compression={name: "zstd" if name in public else "none" for name in table.column_names},
        use_dictionary=public,
        write_page_checksum=True,
        write_statistics=public,
        # Readers in other languages know the Parquet types alone, and they say everything.
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=group_rows(max(1, table.nbytes // max(1, rows))))
        writer.add_key_value_metadata(about.to_metadata(rows))


def write_reports(sink: Any, about: About, reports: Reports, weights: I64 | None = None) -> int:
    """Write reports in canonical order as one file to a path or binary stream; returns how many there are."""
    write_table(sink, table_of(about.mechanism, reports, weights), about)
    return len(reports)


def put_table(place: LakePlace, table: Any, about: About) -> SegmentEntry:
    """Write rows as a file named by its checksum; equal rows of equal batches give the same file."""
    sink = load("pyarrow").BufferOutputStream()
    write_table(sink, table, about)
    data = sink.getvalue()
    digest = sha256(data).hexdigest()
    place.put(digest + SUFFIX, data)
    return SegmentEntry(digest + SUFFIX, table.num_rows, data.size, digest, table.nbytes)


@dataclass(frozen=True)
class ReportFile:
    """A Parquet file of reports."""

    system: Any
    path: str
    bytes: int
    about: About | None = None
    """What its folder says of it; used where the file says nothing itself."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.path

    def opened(self) -> Any:
        """The Parquet file; ReportRejected if it is none, is truncated, or has other bytes than its name says."""
        named = _NAMED.fullmatch(PurePosixPath(self.path).name)
        source = self._source()
        if named is None or self.bytes > _MOST_WHOLE:
            return self._parquet(source)
        # Read once and verified before it is parsed: a parser is the last place to meet altered bytes.
        with explained(self.path):
            data = source.read_buffer()
        if sha256(data).hexdigest() != named[1]:
            raise self._damaged("has other bytes than its name says")
        return self._parquet(load("pyarrow").BufferReader(data))

    @property
    def checksum(self) -> str:
        """The SHA-256 of its bytes: as its name says, or else they are read for it."""
        named = _NAMED.fullmatch(PurePosixPath(self.path).name)
        if named is not None:
            return named[1]
        found = sha256()
        with explained(self.path), self.system.open_input_stream(self.path) as stream:
            while data := stream.read(_HASHED_BYTES):
                found.update(data)
        return found.hexdigest()

    def footer(self) -> Any:
        """The Parquet file with nothing read but its end, and nothing of the rest verified."""
        return self._parquet(self._source())

    def _source(self) -> Any:
        try:
            with explained(self.path):
                return self.system.open_input_file(self.path)
        except FileNotFoundError:
            raise self._damaged("is missing") from None

    def _parquet(self, source: Any) -> Any:
        try:
            return load("pyarrow.parquet").ParquetFile(source, page_checksum_verification=True)
        except (OSError, load("pyarrow").ArrowException):
            raise self._damaged("is not a Parquet file, or is truncated or damaged") from None

    def _damaged(self, fault: str) -> ReportRejected:
        return ReportRejected(f"{self.name}: the file {fault}; nothing of it was counted")

    def stated(self, opened: Any) -> About:
        """What the file (or else its folder) says about itself, checked against the number of rows."""
        about = about_of(opened.metadata.metadata, self.name) or self.about
        if about is None:
            raise ReportRejected(
                f"{self.name}: neither the file nor a _tacit.json beside it says what its reports are; "
                'write the metadata "tacit" as in spec/report-files.md'
            )
        if about.reports is not None and about.reports != opened.metadata.num_rows and about is not self.about:
            raise self._damaged(f"has {opened.metadata.num_rows} rows where {about.reports} are stated")
        return about

    def batches(
        self, opened: Any, about: About, *, columns: Sequence[str] | None = None, rows: int | None = None
    ) -> Iterator[Any]:
        """Arrow record batches with these columns, or with those that counting needs, of at most so many rows."""
        names, found = opened.schema_arrow.names, 0
        wanted = _counted(about, names) if columns is None else columns
        size = min(group_rows(about.mechanism.report_dtype.itemsize), rows or GROUP_ROWS)
        try:
            for batch in opened.iter_batches(
                batch_size=size, columns=[name for name in wanted if name in names], use_threads=False
            ):
                found += batch.num_rows
                yield batch
        except (OSError, load("pyarrow").ArrowException):
            raise self._damaged("is truncated or damaged") from None
        if found != opened.metadata.num_rows:
            raise self._damaged(f"has {found} rows where its footer states {opened.metadata.num_rows}")


def _counted(about: About, names: Sequence[str]) -> list[str]:
    """The columns that counting needs; public ones are not read, as Parquet has every column apart."""
    wanted = [MEMBER] if has_members(about.mechanism) else []
    return [*wanted, *([WEIGHT] if WEIGHT in names and not _has_rows(about) else []), REPORT]


def _has_rows(about: About) -> bool:
    """Whether reports come with public columns, one of which may be called like the weight."""
    return about.document is not None and about.document.get("rows") is not None
