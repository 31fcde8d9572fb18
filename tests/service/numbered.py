"""Batches that are numbers: a tally of them tells how often each was counted."""

from __future__ import annotations

from collections import Counter

from tacit.collector.ports import NewBatch, Store, StoredBatch

A = "a" * 64
"""The collection that they belong to."""


def batch(number: int, count: int = 1) -> NewBatch:
    """A batch named by its number, whose reports are that number."""
    return NewBatch(A, number.to_bytes(16, "little"), number.to_bytes(4, "little") * count, count, {})


def add(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
    """A fold that keeps every report, in the order in which they are folded."""
    return (tally or b"") + b"".join(batch.payload for batch in batches)


def counted(store: Store, collection: str = A) -> Counter[int]:
    """How often every number was folded."""
    data = b"".join(tally.content for tally in store.tallies(collection))
    return Counter(int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4))
