"""Sealing: the fold of collections with rows. Waiting batches become segments, merging small segments on the way.

    waiting batches --stored_table--> table --+--> sort --> split --> Parquet files --> new entries --+
    small segments of the manifest --read-----+                                                        +--> manifest
    other segments of the manifest ------------------------------------------------------- unchanged --+

It is like the compaction of a log-structured merge tree. Rows are sorted by member, report and columns, so that
nothing is left of the order of arrival. That also makes files deterministic: equal rows give the same bytes and name,
so that a fold that is repeated after a crash writes the same file again and does no harm.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

from tacit.collector.collections.active import Active
from tacit.collector.limits import FoldLimits
from tacit.collector.ports import Fold, StoredBatch
from tacit.collector.rows.batches import reports_of, row_bytes, stored_table
from tacit.collector.rows.columns import MEMBER, REPORT
from tacit.collector.rows.filed import SealedFiles, batches_in
from tacit.collector.rows.manifest import dump_manifest, load_manifest
from tacit.core.extras import load
from tacit.errors import SegmentDamaged
from tacit.lake.about import BatchSet
from tacit.lake.entries import SegmentEntry

LOG = logging.getLogger("tacit.collector")

_GROWTH = 2
"""A segment is merged if it is at most this many times as large as all that is merged before it.

Segments that stay then at least double in size from one to the next, so there are O(log n) of them, and every row is
rewritten O(log n) times.
"""


def sealing(active: Active, files: SealedFiles, limits: FoldLimits) -> Fold:
    """The fold function of a collection with rows: (manifest, batches) -> new manifest. It writes segment files.

    The store commits the returned manifest in the transaction that drops the batches. Files are durable before this
    returns; if the transaction fails they are garbage, which the sweep removes.
    """

    def sealed(data: bytes | None, batches: list[StoredBatch]) -> bytes:
        entries, (*full, last) = load_manifest(data), list(_groups(active, batches, limits))
        written = [
            entry
            for group in full
            for entry in _written(active, files, stored_table(active, group), limits, _ids(group))
        ]
        new = stored_table(active, last)
        merged, tables = _readable(active, files, to_merge(entries, new.num_rows, new.nbytes, limits))
        joined = load("pyarrow").concat_tables([new, *(table.cast(new.schema) for table in tables)])
        written += _written(active, files, joined, limits, _ids(last) + batches_in(tables))
        unchanged = list(entries)
        for entry in merged:
            # By value, and one at a time: equal rows that were sealed twice have two equal entries.
            unchanged.remove(entry)
        return dump_manifest([*unchanged, *written])

    return sealed


def _groups(active: Active, batches: Sequence[StoredBatch], limits: FoldLimits) -> Iterable[list[StoredBatch]]:
    """Split batches into groups that fit into memory once decoded; the last group is the one merged with segments.

    Sizes are estimated from rows, not payloads, because columns of NULLs take no room in a payload.
    """
    group: list[StoredBatch] = []
    size, each = 0, row_bytes(active)
    for batch in batches:
        needed = batch.count * each + len(batch.payload)
        if group and size + needed > limits.segment_memory:
            yield group
            group, size = [], 0
        group.append(batch)
        size += needed
    yield group


def _ids(batches: Sequence[StoredBatch]) -> BatchSet:
    """The batches of a group, as the metadata of files state them."""
    return reduce(add, (BatchSet(1, batch.ids) for batch in batches), BatchSet())


def _written(
    active: Active, files: SealedFiles, table: Any, limits: FoldLimits, batches: BatchSet
) -> list[SegmentEntry]:
    """Sort rows and write them, in as many segments as the limits require; the first one states all batches."""
    parts = _parts(sorted_rows(active, table), limits)
    return [files.write(active, part, BatchSet() if i else batches) for i, part in enumerate(parts)]


def to_merge(entries: Iterable[SegmentEntry], rows: int, memory: int, limits: FoldLimits) -> list[SegmentEntry]:
    """Choose the segments to merge with so many new rows: from the smallest up, while the merged one stays in limits.

    It stops at the first segment that is more than `_GROWTH` times as large as all before it.
    """
    chosen: list[SegmentEntry] = []
    for entry in sorted(entries, key=lambda entry: entry.rows):
        rows, memory = rows + entry.rows, memory + entry.memory
        is_full = rows > limits.segment_rows or memory > limits.segment_memory
        if is_full or entry.rows > _GROWTH * (rows - entry.rows):
            break
        chosen.append(entry)
    return chosen


def _readable(
    active: Active, files: SealedFiles, entries: Sequence[SegmentEntry]
) -> tuple[list[SegmentEntry], list[Any]]:
    """The segments that can be read, and their tables; a damaged one is logged, and stays in the manifest unmerged.

    Folding goes on without it, so that new reports are not held up until an operator restores the file.
    """
    merged: list[SegmentEntry] = []
    tables: list[Any] = []
    for entry in entries:
        try:
            # The checksum is verified again (`anew`): merging damaged rows would give them a new, valid checksum.
            tables.append(files.read(active, entry, anew=True))
            merged.append(entry)
        except SegmentDamaged as error:
            LOG.error("%s", error)
    return merged, tables


def sorted_rows(active: Active, table: Any) -> Any:
    """Rows in canonical order: by member, report and columns, which says nothing about when they came."""
    pa, keys = load("pyarrow"), [(name, "ascending") for name in table.column_names]
    if not active.sampled:
        return table.take(load("pyarrow.compute").sort_indices(table, sort_keys=keys)).combine_chunks()
    # The member is inside the bytes of a report, little-endian, so that sorting bytes would not sort by member; as a
    # column of its own it makes the reports of a level contiguous, which compresses well and links fast.
    members = pa.array(reports_of(active, table)[MEMBER])
    keyed = table.append_column(_BY_MEMBER, members)
    order = load("pyarrow.compute").sort_indices(keyed, sort_keys=[(_BY_MEMBER, "ascending"), *keys])
    return table.take(order).combine_chunks()


_BY_MEMBER = "-" + REPORT
"""The name of the temporary sort column, which no public column can have."""


def _parts(table: Any, limits: FoldLimits) -> Iterable[Any]:
    """Split a table evenly into pieces within the limits of a segment."""
    pieces = max(-(-table.num_rows // limits.segment_rows), -(-table.nbytes // limits.segment_memory), 1)
    size = -(-table.num_rows // pieces)
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)
