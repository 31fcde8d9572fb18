"""A collection with rows on a store, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.service.plain import PLAIN, NoNoise
from tests.service.row_bodies import publish_rows, sealed_values, stream, table, twin

from tacit.catalog import CATALOG
from tacit.collector.ingest.uploads import Form
from tacit.collector.limits import FoldLimits, Intervals
from tacit.collector.ports import STORED, Store
from tacit.collector.service import Collector
from tacit.hosting.clock import Clock
from tacit.lake.entries import SegmentEntry
from tacit.wire.batch import new_batch_id


class Bench:
    """A process that works on a collection with rows; its store may be opened by others after it."""

    def __init__(
        self,
        store: Store,
        collection: str = "",
        *,
        folding: FoldLimits | None = None,
        intervals: Intervals | None = None,
        lake: str = "",
        **changes: Any,
    ) -> None:
        self.store, self.seconds, self.lake = store, 0.0, lake
        self.id = collection or publish_rows(store, **changes)
        self.open(folding, intervals)

    def open(self, folding: FoldLimits | None = None, intervals: Intervals | None = None) -> None:
        """What a process that starts does; its clock stands still until `seconds` is moved."""
        clock = Clock(seconds=lambda: self.seconds)
        self.collector = Collector(
            self.store,
            catalog=(*CATALOG, NoNoise),
            tasks=(PLAIN,),
            clock=clock,
            folding=folding,
            intervals=intervals,
            lake=self.lake,
        )
        self.active = self.collector.find(self.id)

    def add(self, values: Sequence[int], form: Form = Form.ARROW) -> None:
        name = new_batch_id()
        body = stream(table(values)) if form is Form.ARROW else twin(self.id, values, name)
        upload = self.collector.ingest.judge(self.active, body, form, "", name.hex())
        assert upload.batch is not None
        assert self.store.add_batches([upload.batch]) == [STORED]

    def seal(self, values: Sequence[int]) -> None:
        self.add(values)
        assert self.collector.folder.fold_some(self.active) == 1

    @property
    def entries(self) -> list[SegmentEntry]:
        return [segment.entry for segment in self.collector.folder.segments(self.active)]

    @property
    def folder(self) -> Path:
        assert self.store.segments is not None
        return self.store.segments / self.id

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.is_dir() else []

    def values(self) -> list[int]:
        return sealed_values(self.collector, self.id)

    def sweep(self, seconds: float = Intervals().confirm_sweep) -> int:
        """Look twice, some time apart; returns what the second look removed."""
        self.collector.folder.sweep()
        self.seconds += seconds
        return self.collector.folder.sweep()


def damaged(path: Path, how: str) -> bytes:
    """Damage a file in some way; returns what was in it."""
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "short":
        path.write_bytes(data[:-1])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    return data
