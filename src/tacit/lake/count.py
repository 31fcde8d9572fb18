"""Counting report files: batch by batch, on all cores, in memory that does not grow with the number of reports."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally
from tacit.errors import ReportRejected, SpecMismatch
from tacit.kernels.threads import thread_count
from tacit.lake.about import About, same_reports
from tacit.lake.files import ReportFile
from tacit.lake.layout import reports_of, weights_of
from tacit.wire.files import Origin
from tacit.wire.tallies import empty_tally

Advance = Callable[[int], None]


def tally_batch(mechanism: Mechanism, batch: Any) -> AnyTally:
    """The tally of an Arrow record batch: what every engine computes for a part of the reports."""
    return mechanism.tally(reports_of(mechanism, batch), weights_of(mechanism, batch))


def tally_files(files: Sequence[ReportFile], about: About, advance: Advance = lambda _: None) -> AnyTally:
    """The tally of all files, which must be about this; `advance` is told of reports as they are counted.

    Nothing is returned unless all of them could be read and are of the same collection.
    """
    # Kernels release the interpreter lock, so that threads count several batches at once. Twice as many batches as
    # threads are in memory: each thread finds the next one read already.
    threads = thread_count()
    # Results are added in the order of the files, so that a log of reports is the same every time.
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[AnyTally]] = deque()
        total = empty_tally(about.mechanism)
        try:
            for name, batch in _batches(files, about):
                waiting.append(pool.submit(_named, name, about.mechanism, batch))
                if len(waiting) >= 2 * threads:
                    total = _added(total, waiting.popleft(), advance)
            while waiting:
                total = _added(total, waiting.popleft(), advance)
        finally:
            # After an error, what has not begun is not begun any more.
            for future in waiting:
                future.cancel()
    return total


def survey(files: Sequence[ReportFile]) -> tuple[About, int]:
    """What all files are about, and how many reports their footers state; nothing else is read of them.

    SpecMismatch names the first file of another collection, before anything is counted.
    """
    first, rows = None, 0
    for file in files:
        footer = file.footer()
        about = file.stated(footer)
        first = about if first is None else first
        same_reports(first, about, file.name)
        rows += footer.metadata.num_rows
    if first is None:
        raise ReportRejected("lake: there are no report files; nothing was counted")
    return first, rows


def origin_of_files(files: Sequence[ReportFile], about: About) -> Origin | None:
    """What a collector is to know of a tally of these files, whichever engine counts them.

    None if two files are equal, since a file counts once; such a tally stands for itself.
    """
    found = sorted(file.checksum for file in files)
    collection = about.digest if about.document is not None else ""
    return Origin(collection, tuple(found)) if len(set(found)) == len(found) else None


def _batches(files: Sequence[ReportFile], about: About) -> Iterator[tuple[str, Any]]:
    for file in files:
        opened = file.opened()
        # Once more: the file may have been replaced since.
        same_reports(about, file.stated(opened), file.name)
        for batch in file.batches(opened, about):
            yield file.name, batch


def _named(name: str, mechanism: Mechanism, batch: Any) -> AnyTally:
    """The tally of a batch; an error names its file."""
    try:
        return tally_batch(mechanism, batch)
    except (ReportRejected, SpecMismatch) as error:
        raise type(error)(f"{name}: {error}") from None


def _added(total: Any, future: "Future[AnyTally]", advance: Advance) -> AnyTally:
    part = future.result()
    advance(part.n)
    return total + part
