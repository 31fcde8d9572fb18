"""Jobs over frames: a part per partition, and parts merged in steps, by the DataFrame API alone (also Spark Connect).

    frame --mapInArrow--> a part per partition --by key--> a part per group of partitions --one--> a single part

Parts are small and are merged on executors, so that the driver holds one of them, however many partitions there are.
Of few partitions they are merged in one step: every step is a job with tasks of its own, which takes longer than
adding a few parts does. The driver adds few parts itself where their size is known to be small.
There are no accumulators: a task that runs twice, because its executor was lost or was slow, counts once.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from typing import Any

from tacit.core.extras import load
from tacit.distributed.parts import KERNEL, log_kernel
from tacit.distributed.spark.failures import explained

LOG = logging.getLogger("tacit.distributed")

Frame = Any
"""A pyspark.sql.DataFrame, of a classic session or of Spark Connect; pyspark is optional."""

Make = Callable[[Iterable[Any]], bytes]
"""Makes the part of a partition from its record batches; empty bytes where there is nothing to say."""
Merge = Callable[[Iterable[bytes]], bytes]
"""Makes one part of several."""

_SCHEMA = "key int, kernel string, part binary"
FEW_PARTS = 32
"""Groups of the first merge: with as many partitions as a thousand, no task merges more than some thirty parts."""


def parts_of(frame: Frame, make: Make) -> Frame:
    """A frame with the part of every partition that has one."""
    return frame.mapInArrow(partial(_made, make), _SCHEMA)


def merged(parts: Frame, merge: Merge, partitions: int | None = None) -> bytes | None:
    """All parts as one; None if there is none. `partitions` is the number of them, where it is known."""
    if partitions is None or partitions > FEW_PARTS:
        # Of the merged parts there are few, and as many as executors worked on them.
        parts = parts.repartition("key").mapInArrow(partial(_merged, merge), _SCHEMA)
    one = parts.repartition(1).mapInArrow(partial(_merged, merge), _SCHEMA)
    rows = _collected(one)
    return bytes(rows[0].part) if rows else None


def gathered(parts: Frame, merge: Merge) -> bytes | None:
    """The same, merged by the driver: for at most `FEW_PARTS` parts that are known to be small."""
    rows = _collected(parts)
    return merge(bytes(row.part) for row in rows) if rows else None


def _collected(parts: Frame) -> list[Any]:
    with explained():
        rows = parts.collect()
    kernels = {kernel for row in rows for kernel in row.kernel.split("+")}
    if kernels:
        told("+".join(sorted(kernels)))
    return rows


def each(parts: Frame) -> Iterator[bytes]:
    """All parts one after the other, for those that the driver has to hold together anyway."""
    with explained():
        for row in parts.toLocalIterator():
            yield bytes(row.part)


def told(kernels: str) -> None:
    """Tell the driver's log which kernels executors counted with."""
    if "numpy" in kernels:
        LOG.warning("spark: executors counted with the kernels %s; numpy is slow, install compiled ones", kernels)
    else:
        LOG.info("spark: executors counted with the C kernels")


def _made(make: Make, batches: Iterable[Any]) -> Iterator[Any]:
    log_kernel()
    part = make(batch for batch in batches if batch.num_rows)
    if part:
        yield _batch(KERNEL, part)


def _merged(merge: Merge, batches: Iterable[Any]) -> Iterator[Any]:
    """Merge the parts of a task; they are passed on one at a time, and only `merge` decides what it keeps."""
    kernels = set[str]()

    def parts() -> Iterator[bytes]:
        for batch in batches:
            kernels.update(*(item.split("+") for item in batch.column("kernel").to_pylist()))
            yield from (item.as_py() for item in batch.column("part"))

    waiting = parts()
    first = next(waiting, None)
    if first is not None:
        part = merge(_again(first, waiting))
        yield _batch("+".join(sorted(kernels)), part)


def _again(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def _batch(kernels: str, part: bytes) -> Any:
    pa = load("pyarrow")
    # By content and not by the number of the partition: which parts meet must not depend on the order of files.
    key = sha256(part).digest()[0] % FEW_PARTS
    columns = [pa.array([key], pa.int32()), pa.array([kernels], pa.string()), pa.array([part], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["key", "kernel", "part"])
