"""Report files as frames: which files count is decided by their manifest and footers, and Spark reads them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.core.members import AnyTally
from tacit.distributed.spark.counting import tally, tally_read
from tacit.distributed.spark.failures import explained
from tacit.distributed.spark.jobs import Frame
from tacit.distributed.spark.readers import FileReader, NumberedFiles
from tacit.distributed.spark.rows import FrameTable, open_rows, table_of_rows
from tacit.errors import InvalidQuery, ReportRejected
from tacit.lake.about import About
from tacit.lake.count import survey
from tacit.lake.files import ReportFile
from tacit.lake.folder import find_files
from tacit.lake.layout import WEIGHT

# A file that cannot be read must fail the job, whatever the session is set to: a part of the reports is no answer.
_STRICT = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
_SCHEMES = {"s3": "s3a"}
"""Names that Hadoop has for a file system of pyarrow."""


@dataclass(frozen=True, eq=False)
class LakeFrame:
    """The report files of some folders as a frame, with their metadata."""

    session: Any
    paths: tuple[str, ...]
    """Where Spark finds the files."""
    about: About
    reports: int
    files: tuple[ReportFile, ...]
    by_executors: bool = True
    """Whether executors open the files themselves; else Spark reads them, by Hadoop's file systems."""

    @cached_property
    def frame(self) -> Frame:
        """The files as Spark reads them."""
        # Made when it is asked for: Spark starts a job to see which columns there are.
        with explained():
            return self.session.read.options(**_STRICT).parquet(*self.paths)

    @property
    def reader(self) -> FileReader | None:
        """What executors read the files with."""
        return FileReader(tuple(map(_absolute, self.files)), self.about) if self.by_executors else None

    def table(self, level: float = 0.95) -> FrameTable:
        """The rows of a collection as a table for SQL."""
        if self.about.document is None:
            raise InvalidQuery("sql: the files belong to no collection with rows, so there is no table to ask")
        reader = self.reader
        if reader is None:
            return open_rows(self.frame, self.about.document, level=level)
        files = NumberedFiles(reader, reader.frame(self.session))
        return table_of_rows(lambda: self.frame, self.reports, self.about.document, level, files)

    def tally(self) -> AnyTally:
        """The tally of all files; ReportRejected if Spark read another number of reports than the files state."""
        rows = self.about.document is not None and self.about.document.get("rows") is not None
        if (reader := self.reader) is not None:
            found = tally_read(reader.frame(self.session), self.about.mechanism, reader, reader.partitions)
        else:
            found = tally(self.frame.drop(WEIGHT) if rows else self.frame, self.about.mechanism)
        if found.n != self.reports:
            raise ReportRejected(f"spark: {found.n} reports were read where the files state {self.reports}")
        return found


def read_lake(session: Any, urls: Sequence[str], *, by_executors: bool = True) -> LakeFrame:
    """The report files that count at some folders or URLs; all must be of one collection."""
    found = {url: find_files(url) for url in urls}
    files = [file for some in found.values() for file in some]
    about, reports = survey(files)
    paths = tuple(_url(url, file.path) for url, some in found.items() for file in some)
    return LakeFrame(session, paths, about, reports, tuple(files), by_executors)


def _absolute(file: ReportFile) -> ReportFile:
    """The same file by a name that holds in every folder: executors are started in others than the driver."""
    return replace(file, path=str(Path(file.path).absolute())) if file.system.type_name == "local" else file


def _url(url: str, path: str) -> str:
    """The name under which Spark knows a file."""
    scheme = url.partition("://")[0] if "://" in url else "file"
    if scheme == "file":
        return Path(path).absolute().as_uri()
    return f"{_SCHEMES.get(scheme, scheme)}://{path}"
