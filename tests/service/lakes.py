"""A collection whose reports can be told apart, a collector that keeps them in a lake, and an S3 server for it.

The mechanism is GRR over many values, and reports are made by hand, each with a code of its own: a count of 2 is a
report that was counted twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.service.plain import PLAIN, NoNoise, wide_draft
from tests.service.served import free_port
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.catalog import CATALOG
from tacit.collector.collections import publish
from tacit.collector.collections.publish import Planner
from tacit.collector.limits import FoldLimits, Intervals
from tacit.collector.ports import NewBatch, Store
from tacit.collector.service import Collector
from tacit.hosting.clock import Clock
from tacit.lake.about import BatchSet
from tacit.lake.count import survey, tally_files
from tacit.lake.folder import find_files
from tacit.oracles.grr import GRR
from tacit.wire.document import Collection

SIZE = 1 << 16
MECHANISM = GRR(size=SIZE, epsilon="1")
SMALL = FoldLimits(segment_rows=64, manifest_bytes=2000)
"""Limits that make a test merge and split files, and begin new shards."""


@cache
def document() -> Collection:
    """Planned once for all tests."""
    planned = Planner((*CATALOG, NoNoise), (PLAIN,)).plan(wide_draft(SIZE, minimum_cohort=1))[0]
    return Collection.from_json(planned.to_json() | {"mechanism": MECHANISM.spec()}, CATALOG)


def batch(collection: str, values: Sequence[int]) -> NewBatch:
    """A batch of codes, named by the first of them."""
    payload = b"".join(value.to_bytes(MECHANISM.report_dtype.itemsize, "little") for value in values)
    return NewBatch(collection, values[0].to_bytes(16, "little"), payload, len(values), {})


class LakeBench:
    """A process that works on a store and a lake; its clock stands still until `seconds` is moved."""

    def __init__(self, store: Store, lake: str, *, shard: str = "main", folding: FoldLimits | None = None) -> None:
        self.store, self.lake, self.seconds = store, lake, 0.0
        self.id = publish.publish_document(store, document()).id
        clock = Clock(seconds=lambda: self.seconds)
        self.collector = Collector(store, shard=shard, lake=lake, clock=clock, folding=folding)
        self.active = self.collector.find(self.id)

    def add(self, *batches: Sequence[int]) -> None:
        self.store.add_batches([batch(self.id, values) for values in batches])

    def seal(self, *batches: Sequence[int]) -> int:
        self.add(*batches)
        return self.collector.folder.fold_some(self.active)

    @property
    def url(self) -> str:
        """Where the files of the collection are."""
        place, _, options = self.lake.partition("?")
        return f"{place}/{self.id}" + (f"?{options}" if options else "")

    def published(self) -> dict[int, int]:
        """How often every code is counted in the files that the published manifest names."""
        files = find_files(self.url)
        return codes_of(tally_files(files, survey(files)[0]))

    def answered(self) -> dict[int, int]:
        """How often every code is counted in what answers come from."""
        self.collector.folder.fold_all(self.id, 60)
        return codes_of(self.collector.folder.total(self.active))

    def batches(self) -> BatchSet:
        """The batches that the published files state."""
        sets = [file.stated(file.footer()).batches for file in find_files(self.url)]
        return sum(sets[1:], sets[0])

    def names(self) -> set[str]:
        """The names of all objects of the collection, counted or not."""
        place: Any = self.collector.files
        return {info.path.rpartition("/")[2] for info in place.place.inner(self.id).files()}

    def sweep(self, seconds: float = Intervals().confirm_sweep) -> int:
        """Look twice, some time apart; returns what the second look removed."""
        self.collector.folder.sweep()
        self.seconds += seconds
        return self.collector.folder.sweep()


def codes_of(tally: Any) -> dict[int, int]:
    return {int(code): int(tally.cells[code]) for code in tally.cells.nonzero()[0]}


def ids_of(*batches: Sequence[int]) -> BatchSet:
    return BatchSet.of([values[0].to_bytes(16, "little") for values in batches])


@contextmanager
def s3_server(folder: Path) -> Generator[str]:
    """A server that speaks S3, with a bucket; yields the URL of a lake in it."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "s3.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: _made_bucket(port), lambda: (folder / "s3.log").read_text()[-2000:])
            os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
            yield f"s3://lake/reports?endpoint_override=127.0.0.1:{port}&scheme=http"
        finally:
            process.send_signal(signal.SIGTERM)


def _made_bucket(port: int) -> bool:
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/lake", method="PUT")
        with urllib.request.urlopen(request, timeout=PATIENT_SECONDS) as answer:
            return answer.status == 200
    except OSError:
        return False
