"""Stored tallies that are not as they were written: found, named, never answered from; other collections go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from struct import Struct
from typing import Any

import apsw
import numpy as np
import psycopg
import pytest
from tests.service.plain import PLAIN, NoNoise, serving, wide_draft
from tests.service.row_bench import Bench
from tests.service.row_bodies import publish_rows

from tacit.catalog import CATALOG
from tacit.collector.collections.publish import publish_document
from tacit.collector.ports import STORED, CollectionRecord, NewBatch, Store, StoredBatch
from tacit.collector.server import make_app
from tacit.collector.service import Collector
from tacit.collector.store.checksums import TallyRow
from tacit.collector.store.postgres import schema as postgres_schema
from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite import schema as sqlite_schema
from tacit.collector.store.sqlite.store import FILE, SqliteStore
from tacit.errors import StorageDamaged, StorageUnavailable
from tacit.hosting.limits import Limits
from tacit.hosting.problems import as_problem
from tacit.wire.tallies import dump_tally

A, B = "a" * 64, "b" * 64
Open = Callable[[], Store]
Change = Callable[..., Any]


def run(file: Path, text: str, *values: Any) -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(file))
    try:
        return list(db.execute(text, values))
    finally:
        db.close()


def behind(place: str, text: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement behind the collector's back; it is written as for SQLite."""
    if "host=" not in place:
        return run(Path(place) / FILE, text, *values)
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("SET search_path TO tacit")
        cursor = connection.execute(text.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def change(place: str) -> Change:
    """Changes the database of this test."""
    return partial(behind, place)


def join(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
    return (tally or b"") + b"".join(batch.payload for batch in batches)


def filled(store: Store) -> Store:
    """Two collections with a tally each, and a batch that waits."""
    for name in (A, B):
        store.add_collection(CollectionRecord(name, "published", b"{}"))
        for i in range(3):
            assert store.add_batches([NewBatch(name, bytes([i]) * 16, b"tally"[i:], 2, {})]) == [STORED]
            if i < 2:
                store.fold_some(name, "main", join, 10)
    return store


def flipped(data: bytes, bit: int) -> bytes:
    return bytes(byte ^ (1 << bit % 8 if i == bit // 8 else 0) for i, byte in enumerate(data))


@pytest.mark.parametrize("column", ["content", "reports", "folds", "checksum", "shard"])
@pytest.mark.slow_cases("postgres-reports", "postgres-folds", "postgres-content", "postgres-checksum")
def test_a_row_that_was_changed_is_named_and_the_other_collection_goes_on(
    open_store: Open, change: Change, column: str
):
    store = filled(open_store())
    where = "WHERE collection = (SELECT key FROM collections WHERE id = ?)"
    (before,) = change(f"SELECT {column} FROM tallies {where}", A)[0]
    bad = {"shard": "maim", "content": flipped(b"tallyally", 3), "checksum": bytes(32)}
    change(f"UPDATE tallies SET {column} = ? {where}", bad.get(column, before if column in bad else before ^ 64), A)
    name = "maim" if column == "shard" else "main"
    for ask in (lambda: store.tallies(A), lambda: store.tally(A, name), lambda: store.fold_some(A, name, join, 9)):
        with pytest.raises(StorageDamaged, match=rf"collection {A}: the tally of shard '{name}'.*backup"):
            ask()
    assert [(item.reports, item.content) for item in store.tallies(B)] == [(4, b"tallyally")]
    assert store.fold_some(B, "main", join, 9) == 1
    assert store.add_batches([NewBatch(A, b"x" * 16, b"", 1, {})]) == [STORED], "reports are still taken"
    change(f"UPDATE tallies SET {column} = ? {where}", before, A)
    assert store.fold_some(A, "main", join, 9) == 2
    assert [(item.reports, item.content) for item in store.tallies(A)] == [(7, b"tallyallylly")]


def test_a_tally_of_another_collection_is_not_taken_for_ones_own(open_store: Open, change: Change):
    """The row is whole, and in another's place."""
    store = filled(open_store())
    keys = dict(change("SELECT id, key FROM collections"))
    change("DELETE FROM tallies WHERE collection = ?", keys[A])
    change("UPDATE tallies SET collection = ?", keys[A])
    with pytest.raises(StorageDamaged, match=f"collection {A}"):
        store.tallies(A)


def test_no_flipped_bit_of_the_file_is_answered_from(tmp_path: Path):
    """One bit of the tally in the file of SQLite at a time; every reading says so, or that the file is damaged."""
    filled(SqliteStore(tmp_path)).close()
    file = tmp_path / FILE
    data = file.read_bytes()
    start, rng = data.index(b"tallyally"), np.random.default_rng(12)
    for bit in rng.choice(8 * len(b"tallyally"), 12, replace=False).tolist():
        file.write_bytes(data[:start] + flipped(data[start : start + 9], bit) + data[start + 9 :])
        store = SqliteStore(tmp_path)
        with pytest.raises((StorageDamaged, StorageUnavailable)):
            [*store.tallies(A), *store.tallies(B)]
        store.close()


# Collections that answer.


@pytest.fixture
def collector(store: Store) -> Iterator[Collector]:
    made = Collector(store, catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
    yield made
    made.writer.stop()


def asked(collector: Collector, size: int) -> str:
    """A collection with three reports on the value 1."""
    document = collector.planner.plan(wide_draft(size, minimum_cohort=1))[0]
    name = publish_document(collector.store, document).id
    collector.store.add_batches([NewBatch(name, bytes(16), bytes([1, 1, 1]), 3, {})])
    collector.folder.fold_all(name, 1)
    return name


def test_nothing_is_answered_from_a_damaged_tally(
    collector: Collector, change: Change, caplog: pytest.LogCaptureFixture
):
    mine, other = asked(collector, 200), asked(collector, 201)
    where = "WHERE collection = (SELECT key FROM collections WHERE id = ?)"
    (content,) = change(f"SELECT content FROM tallies {where}", mine)[0]
    change(f"UPDATE tallies SET content = ? {where}", flipped(bytes(content), 8 * 90), mine)
    with pytest.raises(StorageDamaged, match=mine) as refused:
        collector.answers(mine, 0.95)
    problem = as_problem(refused.value)
    assert (problem.kind, problem.status) == ("damaged", 500) and mine in problem.detail
    assert collector.answers(other, 0.95).n == 3
    # Reports still come, wait, and are counted when the tally is back.
    assert collector.store.add_batches([NewBatch(mine, b"1" * 16, bytes([2]), 1, {})]) == [STORED]
    collector.touch_all()
    with caplog.at_level(logging.ERROR):
        collector.fold_touched()
    assert mine in caplog.text
    change(f"UPDATE tallies SET content = ? {where}", bytes(content), mine)
    assert collector.answers(mine, 0.95).n == 4


@pytest.mark.parametrize("reports", [2, 4])
def test_a_tally_must_count_as_many_reports_as_were_folded(collector: Collector, change: Change, reports: int):
    """What was damaged before there were checksums has a checksum of its damage, and sums that do not fit."""
    mine = asked(collector, 200)
    (found,) = collector.store.tallies(mine)
    checksum = TallyRow(mine, found.shard, 1, reports, found.content).checksum()
    change("UPDATE tallies SET reports = ?, checksum = ?", reports, checksum)
    with pytest.raises(StorageDamaged, match=f"counts 3 reports where {reports} were folded"):
        collector.answers(mine, 0.95)


def test_a_tally_of_another_mechanism_is_damage(collector: Collector, change: Change):
    mine, other = asked(collector, 200), asked(collector, 201)
    content = dump_tally(collector.folder.total(collector.find(other)))
    row = TallyRow(mine, "main", 1, 3, content)
    where = "WHERE collection = (SELECT key FROM collections WHERE id = ?)"
    change(f"UPDATE tallies SET content = ?, checksum = ? {where}", content, row.checksum(), mine)
    with pytest.raises(StorageDamaged, match=rf"{mine}.*stored under"):
        collector.answers(mine, 0.95)


def test_damaged_manifests_are_neither_answered_from_nor_swept(
    bench: Bench, change: Change, monkeypatch: pytest.MonkeyPatch
):
    bench.seal(range(10))
    files = bench.files
    change("UPDATE tallies SET reports = reports + 1")
    with pytest.raises(StorageDamaged, match=bench.id):
        bench.values()
    bench.sweep()
    assert bench.files == files
    change("UPDATE tallies SET reports = reports - 1")
    assert bench.values() == list(range(10))
    content = b"[]"
    change(
        "UPDATE tallies SET content = ?, checksum = ?", content, TallyRow(bench.id, "main", 1, 10, content).checksum()
    )
    with pytest.raises(StorageDamaged, match="counts 0 reports where 10 were folded"):
        bench.values()


@pytest.mark.parametrize("column", ["content", "reports"])
@pytest.mark.slow_cases("sqlite-content", "postgres-content", "postgres-reports")
def test_a_damaged_collection_of_rows_says_so_everywhere(store: Store, change: Change, column: str):
    """Answers in every form are refused; lists go on, and show which collection it is."""
    app = make_app(store, Limits(requests_per_second=0), catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
    with serving(app) as client:
        mine, other = publish_rows(store), publish_rows(store, title="Another")
        for name in (mine, other):
            bench = Bench(store, name)
            bench.seal(range(10))
            bench.collector.writer.stop()
        path = f"/collections/{mine}"
        assert client.api("GET", f"{path}/answers").json()["n"] == 10
        assert client.status(mine)["damaged"] is False
        where = "WHERE collection = (SELECT key FROM collections WHERE id = ?)"
        (before,) = change(f"SELECT {column} FROM tallies {where}", mine)[0]
        bad = before ^ 64 if column == "reports" else flipped(bytes(before), 12)
        change(f"UPDATE tallies SET {column} = ? {where}", bad, mine)
        for form in ("answers", "answers.csv", "answers.parquet"):
            reply = client.api("GET", f"{path}/{form}")
            assert reply.status_code == 500 and reply.json()["type"].endswith("damaged"), form
            assert client.api("GET", f"/collections/{other}/{form}").status_code == 200
        assert client.status(mine).items() >= {"state": "published", "damaged": True, "reports": 0}.items()
        assert client.status(other).items() >= {"damaged": False, "reports": 10}.items()
        listed = client.api("GET", "/collections").json()["collections"]
        assert {row["id"]: (row["damaged"], row["reports"]) for row in listed} == {mine: (True, 0), other: (False, 10)}
        tables = client.api("GET", "/tables").json()["tables"]
        assert {row["collection"]: (row["damaged"], row["n"]) for row in tables} == {
            mine: (True, 0),
            other: (False, 10),
        }
        assert "tacit_damaged_collections 1" in client.http.get("/metrics").text
        change(f"UPDATE tallies SET {column} = ? {where}", before, mine)
        assert client.status(mine).items() >= {"damaged": False, "reports": 10}.items()
        assert "tacit_damaged_collections 0" in client.http.get("/metrics").text


def test_a_damaged_tally_is_shown_in_the_status_and_found_in_the_background(collector: Collector, change: Change):
    mine, other = asked(collector, 200), asked(collector, 201)
    where = "WHERE collection = (SELECT key FROM collections WHERE id = ?)"
    change(f"UPDATE tallies SET reports = -reports {where}", mine)
    collector.look_for_damage()
    assert collector.damage.number == 1
    assert {row["id"]: row["damaged"] for row in collector.summaries()} == {mine: True, other: False}
    assert (collector.status(mine)["reports"], collector.status(other)["reports"]) == (0, 3)


# Folders and databases of earlier releases.


def old_database(place: str, monkeypatch: pytest.MonkeyPatch, name: str, document: bytes) -> None:
    """What the release before the checksums left: its tables, a collection, and a batch that waits."""
    head = Struct("<3I").pack(1, 1, 1)  # One batch, of one report, of one byte.
    # Written by statements: the store of today names columns that these tables did not have yet.
    rows = [
        ("INSERT INTO collections (id, state, document, published) VALUES (?, 'published', ?, 0)", name, document),
        ("INSERT INTO batches (collection, batch) SELECT key, ? FROM collections", b"2" * 16),
        (
            "INSERT INTO waiting (collection, batches, reports, payload) SELECT key, 1, 1, ? FROM collections",
            head + bytes([3]),
        ),
    ]
    with monkeypatch.context() as past:
        past.setattr(sqlite_schema, "MIGRATIONS", sqlite_schema.MIGRATIONS[:2])
        past.setattr(postgres_schema, "MIGRATIONS", postgres_schema.MIGRATIONS[:1])
        if "host=" in place:
            with psycopg.connect(place, autocommit=True) as connection:
                postgres_schema.migrate(connection)
        else:
            Path(place).mkdir(parents=True)
            (Path(place) / FILE).touch()
            sqlite_schema.migrate_file(Path(place) / FILE)
    for text, *values in rows:
        behind(place, text, *values)


def test_a_database_of_an_earlier_release_answers_as_before(
    place: str, open_store: Open, change: Change, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    elsewhere = Collector(SqliteStore(tmp_path / "elsewhere"), catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
    mine = asked(elsewhere, 200)
    active = elsewhere.find(mine)
    (tally,) = elsewhere.store.tallies(mine)
    elsewhere.stop()
    old_database(place, monkeypatch, mine, active.document)
    change(
        "INSERT INTO tallies (collection, shard, folds, reports, tally) SELECT key, ?, ?, ?, ? FROM collections",
        *("main", 1, 3, tally.content),
    )
    collector = Collector(open_store(), catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
    assert [item.content for item in collector.store.tallies(mine)] == [tally.content]
    assert collector.answers(mine, 0.95).n == 4
    change("UPDATE tallies SET folds = folds + 1")
    with pytest.raises(StorageDamaged, match=mine):
        collector.answers(mine, 0.95)
    collector.writer.stop()


def test_a_collector_of_an_earlier_release_cannot_fold_beside_this_one(open_store: Open, change: Change):
    """Its statements name a column that there is not any more; they fail, instead of leaving a wrong checksum."""
    filled(open_store())
    for text in (
        "UPDATE tallies SET tally = ?, reports = reports + 1, folds = folds + 1",
        "INSERT INTO tallies (collection, shard, folds, reports, tally) SELECT key, 'new', 1, 1, ? FROM collections",
    ):
        with pytest.raises((apsw.SQLError, psycopg.errors.UndefinedColumn)):
            change(text, b"tally")


# Backups.


def test_a_damaged_tally_is_not_backed_up_as_if_it_were_whole(store: Store, change: Change, tmp_path: Path):
    filled(store)
    change("UPDATE tallies SET content = ? WHERE folds = 2", b"other")
    with pytest.raises(StorageDamaged, match="tally of shard 'main'"):
        store.backup(str(tmp_path / "copy.sqlite"))
    assert not list(tmp_path.glob("copy*"))


def test_a_backup_with_a_damaged_tally_is_not_restored(store: Store, tmp_path: Path, postgres: Any):
    filled(store)
    file = tmp_path / "copy.sqlite"
    store.backup(str(file))
    store.close()
    data = file.read_bytes()
    file.write_bytes(data.replace(b"tallyally", b"tallyalli", 1))
    assert file.read_bytes() != data
    with pytest.raises(StorageDamaged):
        SqliteStore.restore(file, tmp_path / "again")
    assert not (tmp_path / "again" / FILE).exists()
    postgres.forget()
    empty = PostgresStore(postgres.url)
    with pytest.raises(StorageDamaged):
        empty.restore(str(file))
    assert empty.collections() == []
    file.write_bytes(data)
    empty.restore(str(file))
    assert [item.content for item in empty.tallies(B)] == [b"tallyally"]
    empty.close()


def test_a_backup_of_an_earlier_release_is_restored(tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "old" / FILE
    old_database(str(file.parent), monkeypatch, A, b"{}")
    run(file, "INSERT INTO tallies SELECT key, 'main', 1, 5, ? FROM collections", b"five")
    stores = [SqliteStore.restore(file, tmp_path / "new"), PostgresStore(postgres.url)]
    stores[1].restore(str(file))
    for store in stores:
        assert [(item.reports, item.content) for item in store.tallies(A)] == [(5, b"five")]
        assert store.stored_reports(A) == 6
        store.close()
    assert run(file, "SELECT value FROM meta WHERE key = 'version'") == [(2,)], "the backup is left alone"


# A database that was lost.


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_lost_database_beside_segments_is_not_begun_anew(tmp_path: Path, how: str):
    bench = Bench(SqliteStore(tmp_path / "data"))
    bench.seal(range(10))
    bench.store.backup(str(tmp_path / "copy.sqlite"))
    bench.collector.stop()
    file, files = tmp_path / "data" / FILE, bench.files
    file.unlink()
    if how == "empty":
        file.touch()
    with pytest.raises(StorageUnavailable, match=rf"is {how}.*sealed rows of 1 collections.*tacit restore"):
        SqliteStore(tmp_path / "data")
    assert file.exists() == (how == "empty") and bench.files == files
    file.unlink(missing_ok=True)
    again = Bench(SqliteStore.restore(tmp_path / "copy.sqlite", tmp_path / "data"), bench.id)
    assert again.values() == list(range(10))
    again.collector.stop()


def test_an_empty_database_of_the_right_form_beside_segments_is_not_begun_with(tmp_path: Path, postgres: Any):
    bench = Bench(SqliteStore(tmp_path / "data"))
    bench.seal(range(10))
    bench.collector.stop()
    SqliteStore(tmp_path / "fresh").close()
    (tmp_path / "fresh" / FILE).replace(tmp_path / "data" / FILE)
    with pytest.raises(StorageUnavailable, match=r"holds no collection.*sealed rows"):
        SqliteStore(tmp_path / "data")
    with pytest.raises(StorageUnavailable, match=r"holds no collection.*sealed rows"):
        PostgresStore(postgres.url, segments=tmp_path / "data" / "segments")


def test_an_empty_database_beside_its_log_is_not_begun_anew(tmp_path: Path):
    """SQLite would remove the log, with everything that was acknowledged since the last checkpoint."""
    store = filled(SqliteStore(tmp_path / "data"))
    log = (tmp_path / "data" / f"{FILE}-wal").read_bytes()
    store.close()
    (tmp_path / "data" / FILE).write_bytes(b"")
    (tmp_path / "data" / f"{FILE}-wal").write_bytes(log)
    with pytest.raises(StorageUnavailable, match=r"is empty, but the log tacit\.sqlite-wal"):
        SqliteStore(tmp_path / "data")
    assert (tmp_path / "data" / f"{FILE}-wal").read_bytes() == log


def test_segments_that_the_database_has_never_heard_of_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As when a collector is started with the folder of another one."""
    bench, other = Bench(SqliteStore(tmp_path / "one")), Bench(SqliteStore(tmp_path / "two"), title="Another")
    bench.seal(range(10))
    other.seal(range(10))
    strange = bench.store.segments / other.id  # pyright: ignore[reportOptionalOperand]
    other.folder.rename(strange)
    before = sorted(strange.iterdir())
    bench.sweep()
    assert sorted(strange.iterdir()) == before
    bench.collector.stop()
    other.collector.stop()
