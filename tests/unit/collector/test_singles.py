"""Batches of one report side by side are to every store what the same batches are one by one."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from tests.service.memory import MemoryStore

from tacit.collector.ports import CLOSED, DUPLICATE, STORED, CollectionRecord, NewBatch
from tacit.collector.server import open_store
from tacit.collector.store.intake import pack, plain_group, unpack
from tacit.collector.store.singles import SingleBatches, payload_bytes

A = "a" * 64


def some(number: int, width: int = 3) -> SingleBatches:
    return SingleBatches(A, [secrets.token_bytes(16) for _ in range(number)], secrets.token_bytes(number * width))


def test_they_are_a_sequence_of_batches():
    batches = some(5)
    each = [NewBatch(A, name, batches.payload[3 * i : 3 * i + 3], 1, {}) for i, name in enumerate(batches.ids)]
    assert list(batches) == each
    assert [batches[i] for i in range(-5, 5)] == each + each
    for begin, end in ((0, 2), (2, 5), (0, 0), (4, 99)):
        part = batches[begin:end]
        assert isinstance(part, SingleBatches)
        assert list(part) == each[begin:end]
        assert payload_bytes(part) == payload_bytes(each[begin:end])
    with pytest.raises(IndexError):
        batches[5]
    with pytest.raises(ValueError, match="step"):
        batches[::2]
    with pytest.raises(ValueError, match="cannot have 7 bytes"):
        SingleBatches(A, batches.ids, bytes(7))


@pytest.mark.parametrize("number", [1, 7, 8, 300])
def test_they_are_packed_to_the_same_bytes(number: int):
    batches = some(number)
    assert plain_group(batches) == plain_group(list(batches)) == A
    assert pack(batches) == pack(list(batches))
    assert [stored.payload for stored in unpack(pack(batches).payload)] == [batch.payload for batch in batches]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_store_decides_about_them_like_about_others(tmp_path: Path, kind: str):
    store = MemoryStore() if kind == "memory" else open_store(tmp_path)
    try:
        store.add_collection(CollectionRecord(A, "published", b"{}"))
        batches = some(20)
        assert store.add_batches(batches) == [STORED] * 20
        assert store.add_batches(batches[:3]) == [DUPLICATE] * 3
        # Twice in one group, beside one that is known and one that is new.
        fresh = secrets.token_bytes(16)
        mixed = SingleBatches(A, [fresh, batches.ids[4], fresh], bytes(9))
        assert store.add_batches(mixed) == [STORED, DUPLICATE, DUPLICATE]
        assert store.stored_reports(A) == 21
        store.close_collection(A)
        assert store.add_batches(some(2)) == [CLOSED] * 2
        assert store.add_batches(batches[:1]) == [DUPLICATE]
    finally:
        store.close()
