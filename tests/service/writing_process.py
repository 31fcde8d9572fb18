"""A process that stores and folds batches until it is killed: python writing_process.py PLACE FIRST [WINDOWS].

Eight clients send batches named by numbers from FIRST on; three in ten are sent again at once, and batches of earlier
processes are sent again as well. A number is printed when its batch is acknowledged, never before.
With WINDOWS, the number of a batch decides which of so many windows it is stored under.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading

from tests.service.submitting import submit

from tacit.collector.ingest.writer import BatchWriter
from tacit.collector.ports import DUPLICATE, STORED, NewBatch, StoredBatch, window_id
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite.store import SqliteStore

A = "a" * 64


def under(number: int, windows: int) -> str:
    return window_id(A, number % windows) if windows else A


def batch(number: int, windows: int) -> NewBatch:
    return NewBatch(under(number, windows), number.to_bytes(16, "little"), number.to_bytes(4, "little"), 1, {})


def add(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
    return (tally or b"") + b"".join(batch.payload for batch in batches)


def send(writer: BatchWriter, numbers: itertools.count[int], windows: int) -> None:
    for number in numbers:
        copies = [number, number] if number % 10 < 3 else [number, number // 2]
        for copy, future in [(copy, submit(writer, batch(copy, windows))) for copy in copies]:
            assert future.result() in (STORED, DUPLICATE)
            os.write(1, b"%d\n" % copy)


def main(place: str, first: int, windows: int = 0) -> None:
    store = PostgresStore(place) if "host=" in place else SqliteStore(place)
    writer = BatchWriter(store)
    numbers = itertools.count(first)
    for _ in range(8):
        threading.Thread(target=send, args=(writer, numbers, windows), daemon=True).start()
    for turn in itertools.count():
        store.fold_some(under(turn, windows), "main", add, 20)


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:]))
