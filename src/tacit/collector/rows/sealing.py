"""Sealing: waiting batches with rows become segments, and small segments become larger ones on the way.

Rows are sorted by member, report and columns, so that nothing of the order of arrival is left, and equal rows always
make the same file: a fold that is repeated after a failure does no harm.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from tacit.collector.active import Active
from tacit.collector.ports import Fold, StoredBatch
from tacit.collector.rows.batches import reports_of, row_bytes, stored_table
from tacit.collector.rows.columns import MEMBER, REPORT
from tacit.collector.rows.manifest import Entry, dump_manifest, load_manifest
from tacit.collector.rows.segments import SegmentFiles
from tacit.errors import SegmentDamaged
from tacit.tasks.analytics.imports import arrow, compute

LOG = logging.getLogger("tacit.collector")

MAX_ROWS, MAX_MEMORY = 1 << 20, 1 << 27
"""A segment has no more rows than this, and bytes in memory: what a fold rewrites at most, beside what is new."""

_GROWTH = 2
"""Segments up to so many times what is new are merged with it, so that those that are left at least double in size."""


def sealing(active: Active, files: SegmentFiles) -> Fold:
    """How the batches of a collection are folded: into the manifest of a shard."""

    def sealed(data: bytes | None, batches: list[StoredBatch]) -> bytes:
        entries, (*full, last) = load_manifest(data), list(_groups(active, batches))
        made = [entry for group in full for entry in _written(active, files, stored_table(active, group))]
        new = stored_table(active, last)
        merged, tables = _readable(active, files, to_merge(entries, new.num_rows, new.nbytes))
        made += _written(active, files, arrow().concat_tables([new, *tables]))
        left = list(entries)
        for entry in merged:
            # One of two equal ones, where equal rows were sealed twice.
            left.remove(entry)
        return dump_manifest([*left, *made])

    return sealed


def _groups(active: Active, batches: Sequence[StoredBatch]) -> Iterable[list[StoredBatch]]:
    """Batches together as long as they fit into memory: nulls take room there, and none while they wait."""
    group: list[StoredBatch] = []
    size, each = 0, row_bytes(active)
    for batch in batches:
        needed = batch.count * each + len(batch.payload)
        if group and size + needed > MAX_MEMORY:
            yield group
            group, size = [], 0
        group.append(batch)
        size += needed
    yield group


def _written(active: Active, files: SegmentFiles, table: Any) -> list[Entry]:
    """Rows in as many segments as they need."""
    return [files.write(active.id, part) for part in _parts(sorted_rows(active, table))]


def to_merge(entries: Iterable[Entry], rows: int, memory: int) -> list[Entry]:
    """The smallest segments, each not much larger than all before it together, as long as one segment holds them."""
    found: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: entry.rows):
        rows, memory = rows + entry.rows, memory + entry.memory
        if entry.rows > _GROWTH * (rows - entry.rows) or rows > MAX_ROWS or memory > MAX_MEMORY:
            break
        found.append(entry)
    return found


def _readable(active: Active, files: SegmentFiles, entries: Sequence[Entry]) -> tuple[list[Entry], list[Any]]:
    """Those segments that can be read; a damaged one stays in its manifest as it is, and does not hold up new rows."""
    merged: list[Entry] = []
    tables: list[Any] = []
    for entry in entries:
        try:
            # What is written again gets a checksum of its own, which must not make damage look whole.
            tables.append(files.read(active, entry, anew=True))
            merged.append(entry)
        except SegmentDamaged as error:
            LOG.error("%s", error)
    return merged, tables


def sorted_rows(active: Active, table: Any) -> Any:
    """Rows in an order that says nothing about when they came."""
    pa, keys = arrow(), [(name, "ascending") for name in table.column_names]
    if not active.sampled:
        return table.take(compute().sort_indices(table, sort_keys=keys)).combine_chunks()
    members = pa.array(reports_of(active, table)[MEMBER])
    keyed = table.append_column(_BY_MEMBER, members)
    order = compute().sort_indices(keyed, sort_keys=[(_BY_MEMBER, "ascending"), *keys])
    return table.take(order).combine_chunks()


_BY_MEMBER = "-" + REPORT
"""A name that no column has."""


def _parts(table: Any) -> Iterable[Any]:
    """Pieces that are small enough for a segment each."""
    pieces = max(-(-table.num_rows // MAX_ROWS), -(-table.nbytes // MAX_MEMORY), 1)
    size = -(-table.num_rows // pieces)
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)
