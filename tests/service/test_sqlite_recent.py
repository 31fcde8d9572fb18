"""Batch ids are told apart from the commit on, wherever they are at the moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.collector.ports import CLOSED, DUPLICATE, STORED, CollectionRecord, NewBatch
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite import schema
from tacit.collector.store.sqlite.store import FILE, SqliteStore
from tacit.hosting.sqlite import Database, make_private, open_reader, open_writer

A, B = "a" * 64, "b" * 64


def batch(name: str, collection: str = A) -> NewBatch:
    return NewBatch(collection, name.encode().ljust(16), b"x", 1, {})


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[..., SqliteStore]]:
    opened: list[SqliteStore] = []

    def open_it(**options: Any) -> SqliteStore:
        opened.append(SqliteStore(tmp_path, **options))
        return opened[-1]

    first = open_it()
    for name in (A, B):
        first.add_collection(CollectionRecord(name, "published", b"{}"))
    first.close()
    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], SqliteStore]) -> SqliteStore:
    return open_store()


def places(store: SqliteStore) -> tuple[int, int]:
    """Number of ids that are not sorted in, and of those that are."""
    db = open_reader(store.file, None)
    try:
        rows = db.run("SELECT (SELECT coalesce(sum(length(ids)), 0) / 16 FROM recent), (SELECT count(*) FROM batches)")
    finally:
        db.close()
    return rows[0][0], rows[0][1]


def fold(store: SqliteStore, collection: str = A) -> int:
    return store.fold_some(collection, "main", lambda tally, batches: b"tally", 1000)


def test_ids_are_appended_and_sorted_in_by_folding(store: SqliteStore):
    assert store.add_batches([batch("2"), batch("1")]) == [STORED] * 2
    assert places(store) == (2, 0)
    assert store.add_batches([batch("1")]) == [DUPLICATE]
    assert fold(store) == 2
    assert places(store) == (0, 2)
    assert store.add_batches([batch("1"), batch("3"), batch("3"), batch("2")]) == [
        DUPLICATE, STORED, DUPLICATE, DUPLICATE,
    ]  # fmt: skip
    assert store.stored_reports(A) == 3


def test_collections_do_not_share_ids(store: SqliteStore):
    assert store.add_batches([batch("1")]) == [STORED]
    assert store.add_batches([batch("1", B)]) == [STORED]
    assert store.add_batches([batch("1"), batch("1", B)]) == [DUPLICATE] * 2
    store.close_collection(A)
    assert store.add_batches([batch("2")]) == [CLOSED]
    assert store.add_batches([batch("1")]) == [DUPLICATE]


def test_they_survive_the_end_of_the_process(open_store: Callable[[], SqliteStore]):
    first = open_store()
    first.add_batches([batch("1")])
    first.close()
    again = open_store()
    assert places(again) == (1, 0)
    assert again.add_batches([batch("1"), batch("2")]) == [DUPLICATE, STORED]


def test_another_process_is_noticed(open_store: Callable[[], SqliteStore]):
    one, two = open_store(), open_store()
    for turn in range(5):
        assert one.add_batches([batch(f"{turn}")]) == [STORED]
        assert two.add_batches([batch(f"{turn}")]) == [DUPLICATE]
        assert two.add_batches([batch(f"other {turn}")]) == [STORED]
        assert one.add_batches([batch(f"other {turn}"), batch(f"{turn}")]) == [DUPLICATE] * 2
        if turn == 2:
            assert fold(two) == 6
    assert one.stored_reports(A) == 10


def test_no_more_than_so_many_wait(open_store: Callable[..., SqliteStore]):
    store = open_store(most_recent=5)
    for i in range(4):
        assert store.add_batches([batch(f"{i} {j}") for j in range(2)]) == [STORED] * 2
        assert places(store) == [(2, 0), (4, 0), (0, 6), (2, 6)][i]
    assert store.add_batches([batch("0 0"), batch("3 1")]) == [DUPLICATE] * 2


def test_a_transaction_that_was_undone_leaves_no_id_behind(store: SqliteStore, monkeypatch: pytest.MonkeyPatch):
    def fail(*given: Any) -> None:
        raise ZeroDivisionError

    assert store.add_batches([batch("0")]) == [STORED]
    with monkeypatch.context() as patch:
        patch.setattr(Database, "commit", fail)
        with pytest.raises(ZeroDivisionError):
            store.add_batches([batch("1")])
    assert places(store) == (1, 0)
    assert store.add_batches([batch("1"), batch("2")]) == [STORED] * 2
    assert store.add_batches([batch("0"), batch("1")]) == [DUPLICATE] * 2


def test_dropped_reports_take_their_ids_along(store: SqliteStore):
    store.add_batches([batch("1")])
    store.add_batches([batch("1", B)])
    store.drop_reports(A)
    assert places(store) == (1, 0)
    assert store.add_batches([batch("1")]) == [CLOSED]
    assert store.add_batches([batch("1", B)]) == [DUPLICATE]


def test_a_backup_has_them_all(store: SqliteStore, tmp_path: Path):
    store.add_batches([batch("1")])
    fold(store)
    store.add_batches([batch("2")])
    store.backup(str(tmp_path / "copy"))
    restored = SqliteStore.restore(tmp_path / "copy", tmp_path / "restored")
    assert restored.file.name == FILE
    assert restored.add_batches([batch("1"), batch("2"), batch("3")]) == [DUPLICATE, DUPLICATE, STORED]
    restored.close()


def test_so_has_postgresql_restored_from_it(store: SqliteStore, tmp_path: Path, postgres: Any):
    store.add_batches([batch("1")])
    fold(store)
    store.add_batches([batch("2")])
    store.backup(str(tmp_path / "copy"))
    restored = PostgresStore(postgres.url)
    try:
        restored.restore(str(tmp_path / "copy"))
        assert restored.add_batches([batch("1"), batch("2"), batch("3")]) == [DUPLICATE, DUPLICATE, STORED]
    finally:
        restored.close()


def test_a_group_is_one_row_and_says_nothing_of_the_order_of_arrival(store: SqliteStore):
    assert store.add_batches([batch(name) for name in "312"]) == [STORED] * 3
    db = open_reader(store.file, None)
    try:
        assert db.run("SELECT ids FROM recent") == [(b"".join(batch(name).batch for name in "123"),)]
        assert db.run("SELECT batches, reports FROM waiting") == [(3, 3)]
    finally:
        db.close()


def test_ids_of_another_length_are_told_apart_as_well(store: SqliteStore):
    """No client sends them; what is stored side by side must not be cut at the wrong place."""
    ids = (b"a" * 15, b"b" * 17, b"c" * 32)
    odd = [NewBatch(A, name, b"x", 1, {}) for name in ids]
    assert store.add_batches(odd[:2]) == [STORED] * 2
    assert store.add_batches([odd[2], batch("1")]) == [STORED] * 2
    assert store.add_batches([*odd, batch("1"), NewBatch(A, b"c" * 16, b"x", 1, {})]) == [DUPLICATE] * 4 + [STORED]


def test_those_of_an_earlier_release_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as past:
        past.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:5])
        make_private(tmp_path, tmp_path / FILE)
        with closing(open_writer(tmp_path / FILE, None)) as db:
            schema.migrate(db)
            db.run(
                "INSERT INTO collections (key, id, state, document, published) VALUES (1, ?, 'published', ?, 1)",
                A,
                b"{}",
            )
            for name in "12":
                db.run("INSERT INTO recent (collection, batch) VALUES (1, ?)", batch(name).batch)
    store = SqliteStore(tmp_path)
    try:
        assert store.add_batches([batch("1")]) == [DUPLICATE]
        assert store.add_batches([batch("2"), batch("3")]) == [DUPLICATE, STORED]
    finally:
        store.close()
