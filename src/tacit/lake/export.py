"""From a `.reports` file to a folder of report files."""

from collections.abc import Callable, Iterator

from tacit.core.mechanism import Reports
from tacit.errors import InvalidSpec
from tacit.lake.about import About
from tacit.lake.entries import SegmentEntry
from tacit.lake.files import GROUP_BYTES, put_table
from tacit.lake.folder import put_manifest
from tacit.lake.layout import table_of
from tacit.lake.place import LakePlace
from tacit.wire.files import Reader, report_blocks

FILE_REPORTS = 1 << 22
"""Reports of a file, and bytes of them as many as a row group may have: enough to read fast, little enough to sort."""


def export(reader: Reader, place: LakePlace, advance: Callable[[int], None]) -> int:
    """Write the reports of a `.reports` file as Parquet files to an empty place; returns how many files there are.

    The manifest comes first, without files, and is replaced at the end: an export that was interrupted counts nothing.
    """
    if place.files():
        raise InvalidSpec(f"{place.url}: there are files already; export to a folder that is new or empty")
    about = About(reader.header.mechanism, domain=reader.header.domain)
    # From here on the folder counts as nothing, until the manifest is complete.
    put_manifest(place, about, [])
    entries: list[SegmentEntry] = []
    for reports in _parts(reader):
        entries.append(put_table(place, table_of(about.mechanism, reports), about))
        advance(len(reports))
    put_manifest(place, about, entries)
    return len(entries)


def _parts(reader: Reader) -> Iterator[Reports]:
    """The reports, as many at a time as go into a file; one empty part if there are none."""
    mechanism = reader.header.mechanism
    size = max(1, min(FILE_REPORTS, GROUP_BYTES // mechanism.report_dtype.itemsize))
    n = 0
    for reports in report_blocks(reader, at_least=size):
        # A block of the file may be larger than asked for.
        for start in range(0, len(reports), size):
            yield reports[start : start + size]
        n += len(reports)
    if not n:
        yield mechanism.decode(b"")
