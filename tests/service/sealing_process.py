"""A process that stores batches and seals them into a lake until it is killed: PLACE LAKE FIRST SHARD.

Clients send batches of one code each from FIRST on; some are sent again at once, and those of other processes too. A
code is printed when its batch is acknowledged, never before.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading

from tests.service.lakes import SMALL, LakeBench, batch
from tests.service.submitting import submit

from tacit.collector.ports import DUPLICATE, STORED
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite.store import SqliteStore


def send(bench: LakeBench, numbers: itertools.count[int]) -> None:
    for number in numbers:
        for copy in [number, number] if number % 10 < 3 else [number, number // 2]:
            assert submit(bench.collector.writer, batch(bench.id, [copy])).result() in (STORED, DUPLICATE)
            os.write(1, b"%d\n" % copy)


def main(place: str, lake: str, first: int, shard: str) -> None:
    store = PostgresStore(place) if "host=" in place else SqliteStore(place)
    bench = LakeBench(store, lake, shard=shard, folding=SMALL)
    numbers = itertools.count(first)
    for _ in range(4):
        threading.Thread(target=send, args=(bench, numbers), daemon=True).start()
    while True:
        bench.collector.folder.fold_some(bench.active)
        # Sweeping at once is allowed here: nobody reads a file that was merged.
        bench.sweep()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
