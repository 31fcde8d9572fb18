"""Logs of reports that stay in a frame: candidates are counted by a job when they are named.

For domains that nobody enumerates a tally is the reports themselves, which do not fit into a driver. A search for
heavy hitters asks for some thousand candidates at a time, each time of all reports: keep the frame in the memory of the
executors (`frame.cache()`), since every block of candidates is a job over it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64
from tacit.core.cell_rule import LIMIT
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, PerMember
from tacit.core.one_of import OneOf
from tacit.core.tally import Counts, Log, check_sums, count_reports
from tacit.distributed.parts import joined, mechanism_of, spec_of
from tacit.distributed.spark.counting import report_columns, tally
from tacit.distributed.spark.failures import explained
from tacit.distributed.spark.jobs import Frame, merged, parts_of
from tacit.errors import ReportRejected, SpecMismatch
from tacit.lake.layout import MEMBER, WEIGHT, reports_of, weights_of
from tacit.wire.tallies import empty_tally

Count = Callable[[npt.NDArray[Any], I64 | None], I64]


@dataclass(frozen=True, eq=False)
class FrameLog(Log):
    """A log whose reports are in a frame: those on one member, or all of a mechanism that is not composed."""

    frame: Frame = None
    whole: bytes = b""
    """The spec of the mechanism whose reports the frame has."""
    member: int | None = None
    totals: tuple[int, int, int, int] | None = None
    """Number of reports; sum, sum of squares and largest absolute value of the weights."""
    has_weights: bool = False

    @property
    def n(self) -> int:
        """Number of reports."""
        return 0 if self.totals is None else self.totals[0]

    @property
    def is_weighted(self) -> bool:
        """Whether reports carry weights."""
        return self.has_weights

    @property
    def weight_sums(self) -> tuple[int, int, int]:
        """Sum, sum of squares and largest absolute value of the weights."""
        return (0, 0, 0) if self.totals is None else self.totals[1:]

    def __add__(self, other: Log) -> Log:
        """Refused: frames are put together before they are tallied."""
        raise SpecMismatch("cannot merge tallies: this log is in a frame; tally the union of the frames")

    def fold(self, count: Count) -> Counts:
        """The counts of the candidates, by one job over the frame."""
        frame = self.frame if self.member is None else self.frame.where(self.frame[MEMBER] == self.member)
        parts = parts_of(frame, partial(_counted, self.whole, self.member, count))
        part = merged(parts, partial(_added, self.whole, self.member))
        if part is None:
            return _count(self.mechanism, np.empty(0, _own(mechanism_of(self.whole), self.member).report_dtype), count)
        return _load(self.mechanism, part)


def log_tally(frame: Frame, mechanism: Mechanism) -> AnyTally:
    """The tally of a frame as `tally` gives it, but logs stay in the frame; what is small is counted at once."""
    empty, asked = empty_tally(mechanism), report_columns(frame, mechanism)
    if isinstance(empty, PerMember) and isinstance(mechanism, OneOf):
        return _members(asked, mechanism, empty)
    if isinstance(empty, Log):
        told = _totals(asked, by_member=False)
        return _log(asked, mechanism, None, spec_of(mechanism), told.get(0))
    return tally(frame, mechanism)


def _members(asked: Frame, mechanism: OneOf, empty: PerMember) -> PerMember:
    """Counts of the members that keep them, and logs in the frame for the others."""
    lazy = [i for i in range(mechanism.member_count) if isinstance(empty.member(i), Log)]
    counted = tally(asked.where(~asked[MEMBER].isin(lazy)), mechanism)
    assert isinstance(counted, PerMember)
    told, spec = _totals(asked.where(asked[MEMBER].isin(lazy)), by_member=True), spec_of(mechanism)
    logs = {i: _log(asked, mechanism.member(i), i, spec, told.get(i)) for i in lazy}
    parts = list(counted.parts)
    for block, part in enumerate(parts):
        if isinstance(part, tuple):
            mine = [i for i, at in enumerate(mechanism.layout.block) if at == block]
            parts[block] = tuple(logs.get(i, one) for i, one in zip(mine, part, strict=True))
    return replace(counted, n=counted.n + sum(log.n for log in logs.values()), parts=tuple(parts))


def _log(frame: Frame, member: Mechanism, place: int | None, spec: bytes, told: Any) -> FrameLog:
    return FrameLog(member, (), None, frame, spec, place, told, WEIGHT in frame.columns)


def _totals(frame: Frame, *, by_member: bool) -> dict[int, tuple[int, int, int, int]]:
    """Number of reports and sums of weights by member, which Spark itself adds up."""
    from pyspark.sql import functions

    # Decimals of 38 digits hold the square of any 64-bit integer, so that nothing wraps before it is checked.
    weight = (functions.col(WEIGHT) if WEIGHT in frame.columns else functions.lit(1)).cast("decimal(19,0)")
    sums = [
        functions.count("*"),
        functions.sum(weight),
        functions.sum(weight * weight),
        functions.max(functions.abs(weight)),
    ]
    rows = frame.groupBy(*([MEMBER] if by_member else [])).agg(*sums)
    with explained():
        found = [tuple(row) if by_member else (0, *row) for row in rows.collect()]
    told: dict[int, tuple[int, int, int, int]] = {}
    for place, n, *sums in found:
        if n:
            # NULL is a sum that not even 38 digits hold.
            total, total2, most = (LIMIT if item is None else int(item) for item in sums)
            check_sums(n, total, total2, most)
            told[int(place)] = n, total, total2, most
    return told


def _own(whole: Mechanism, member: int | None) -> Mechanism:
    return whole if member is None else whole.member(member)


def _counted(spec: bytes, member: int | None, count: Count, batches: Iterable[Any]) -> bytes:
    """The counts of the candidates in one partition."""
    whole, found = mechanism_of(spec), list[Counts]()
    own = _own(whole, member)
    for table in joined(batches):
        reports = reports_of(whole, table)
        if member is not None:
            assert isinstance(whole, OneOf)
            reports = whole.payload(member, whole.check_reports(reports))
        found.append(count_reports(own, own.check_reports(reports), weights_of(whole, table), count))
    return _dump(reduce(add, found)) if found else b""


def _count(mechanism: Any, reports: npt.NDArray[Any], count: Count) -> Counts:
    return count_reports(mechanism, reports, None, count)


def _added(spec: bytes, member: int | None, parts: Iterable[bytes]) -> bytes:
    own = _own(mechanism_of(spec), member)
    return _dump(reduce(add, (_load(own, part) for part in parts)))


def _dump(counts: Counts) -> bytes:
    """Counts of candidates: whether they are weighted, n, both totals, cells and their squares, as int64."""
    head = np.array([counts.is_weighted, counts.n, counts.total, counts.total2], np.int64)
    arrays = [head, counts.cells, counts.cells2] if counts.is_weighted else [head, counts.cells]
    return np.concatenate(arrays).astype("<i8").tobytes()


def _load(mechanism: Any, data: bytes) -> Counts:
    if len(data) < 32 or len(data) % 8:
        raise ReportRejected("spark: an executor sent other bytes than counts")
    numbers = np.frombuffer(data, "<i8").astype(np.int64)
    weighted, n, total, total2 = numbers[:4].tolist()
    cells = numbers[4:]
    if weighted:
        cells, squares = np.split(cells, 2)
        return Counts(mechanism, n, cells, squares, total, total2)
    return Counts(mechanism, n, cells, cells, total, total2)
