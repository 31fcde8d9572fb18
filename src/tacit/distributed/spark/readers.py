"""Report files that executors read themselves, by the names that the driver has found.

Spark's own reader makes an object of every report and writes it to Arrow again, which takes longer than counting.
An executor that opens the file has the reports in one buffer, as on one machine, and verifies its checksum as well.

    driver: files --a number per partition--> executor: files of this number --record batches--> count
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tacit.lake.about import About, same_reports
from tacit.lake.files import ReportFile

Read = Callable[[Iterable[Any]], Iterable[Any]]
"""Makes the record batches with reports of those that a partition of a frame has."""

MOST_PARTITIONS = 4096
"""Of more files, partitions have several: a task has overhead, and the driver keeps a record of each."""


def as_they_are(batches: Iterable[Any]) -> Iterable[Any]:
    """The batches of a frame that holds the reports itself."""
    return batches


@dataclass(frozen=True)
class FileReader:
    """Reads the report files of partitions, which are numbered; it travels to executors with the job."""

    files: tuple[ReportFile, ...]
    about: About
    columns: tuple[str, ...] | None = None
    """Those that a query reads; None for those that counting needs."""
    rows: int | None = None
    """Most rows of a batch, where a query keeps more than the reports of them."""

    most: int = MOST_PARTITIONS

    @property
    def partitions(self) -> int:
        """How many partitions the files are cut into: one each, if there are not too many."""
        return min(len(self.files), self.most)

    def frame(self, session: Any) -> Any:
        """A frame whose partitions hold a number each."""
        return session.range(0, self.partitions, 1, self.partitions)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The rows of the files whose numbers stand in some batches, in the order of the files."""
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            for file in self._files(number):
                opened = file.opened()
                # Once more: the file may have been replaced since the driver saw it.
                same_reports(self.about, file.stated(opened), file.name)
                yield from file.batches(opened, self.about, columns=self.columns, rows=self.rows)

    def _files(self, number: int) -> tuple[ReportFile, ...]:
        start, end = (len(self.files) * place // self.partitions for place in (number, number + 1))
        return self.files[start:end]


@dataclass(frozen=True, eq=False)
class NumberedFiles:
    """A reader of files, and the frame with the numbers of its partitions."""

    reader: FileReader
    numbers: Any
