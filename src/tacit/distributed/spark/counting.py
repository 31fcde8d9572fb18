"""Tallies of frames of reports, the same bits as on one machine."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from tacit.catalog import CATALOG
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, keeps_reports
from tacit.distributed.cells import rows_of, tally_of_rows
from tacit.distributed.parts import (
    add_parts,
    count_batches,
    count_part,
    log_kernel,
    mechanism_of,
    spec_of,
    sum_of_parts,
)
from tacit.distributed.spark.failures import explained
from tacit.distributed.spark.jobs import FEW_PARTS, Frame, each, gathered, merged, parts_of
from tacit.distributed.spark.readers import Read, as_they_are
from tacit.lake.layout import MEMBER, REPORT, WEIGHT, has_members
from tacit.tasks.plans import PlanResult, Round, Steps, drive
from tacit.wire.document import Collection
from tacit.wire.tallies import empty_tally, load_tally

FEW_CELLS = 1 << 14
"""Tallies of more cells are sent as rows of cells that are not zero, and summed by the engine."""


def tally(frame: Frame, mechanism: Mechanism) -> AnyTally:
    """The tally of a frame with the columns of report files (`member`), `report` and (`weight`).

    Of a mechanism that keeps a log of reports all of them end up in the driver: see `log_tally`.
    """
    return tally_read(report_columns(frame, mechanism), mechanism, as_they_are)


def tally_read(frame: Frame, mechanism: Mechanism, read: Read, partitions: int | None = None) -> AnyTally:
    """The tally of the reports that `read` extracts from the partitions of a frame, whose number may be known."""
    spec = spec_of(mechanism)
    if mechanism.cell_count > FEW_CELLS and not keeps_reports(empty_tally(mechanism)):
        return _tally_cells(frame, mechanism, partial(_cells, spec, read))
    parts = parts_of(frame, partial(_counted, spec, read))
    if keeps_reports(empty_tally(mechanism)):
        return sum_of_parts(mechanism, each(parts))
    few = partitions is not None and partitions <= FEW_PARTS
    part = (gathered if few else merged)(parts, partial(add_parts, spec))
    return empty_tally(mechanism) if part is None else load_tally(mechanism, part)


def _counted(spec: bytes, read: Read, batches: Iterable[Any]) -> bytes:
    return count_part(spec, read(batches))


def tally_collection(frame: Frame, document: Mapping[str, Any]) -> AnyTally:
    """The tally of a frame with the reports of a published collection."""
    collection = Collection.from_json(dict(document), CATALOG)
    mechanism = collection.mechanism
    assert isinstance(mechanism, Mechanism)
    # Among public columns one may be called like the weight, and is none.
    return tally(frame if collection.rows is None else frame.drop(WEIGHT), mechanism)


def run_plan(steps: Steps, frame_of: Callable[[Round], Frame]) -> PlanResult:
    """Drive an adaptive plan: `frame_of` gives the reports of the fresh respondents that a round was put to."""
    return drive(steps, lambda said: tally(frame_of(said), said.mechanism))


def report_columns(frame: Frame, mechanism: Mechanism) -> Frame:
    """The columns that counting reads, so that files are not read further."""
    wanted = [MEMBER] if has_members(mechanism) else []
    wanted.append(REPORT)
    return frame.select(*wanted, *([WEIGHT] if WEIGHT in frame.columns else []))


def _tally_cells(frame: Frame, mechanism: Mechanism, cells: Callable[..., Iterator[Any]]) -> AnyTally:
    from pyspark.sql import functions

    rows = frame.mapInArrow(cells, "array int, cell long, count long")
    # try_sum gives NULL where a sum leaves 64 bits, whatever the session says about overflows.
    summed = rows.groupBy("array", "cell").agg(functions.try_sum("count").alias("count"))
    with explained():
        table = summed.toArrow()
    return tally_of_rows(mechanism, table)


def _cells(spec: bytes, read: Read, batches: Iterable[Any]) -> Iterator[Any]:
    log_kernel()
    yield rows_of(count_batches(mechanism_of(spec), read(batch for batch in batches if batch.num_rows)))
