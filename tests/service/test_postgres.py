"""What is PostgreSQL's own: restarts of the server, several processes, schema versions."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from tests.service.numbered import A, add, batch
from tests.service.submitting import submit
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.ingest.writer import BatchWriter
from tacit.collector.ports import DUPLICATE, STORED, CollectionRecord, StoredBatch
from tacit.collector.store.postgres import schema as postgres_schema
from tacit.collector.store.postgres.store import PostgresStore
from tacit.errors import StorageFull, StorageUnavailable


@pytest.fixture
def store(postgres: Any) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres.url)
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    yield store
    store.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["orderly", "at once"])
def test_a_restart_of_the_server_is_survived(store: PostgresStore, postgres: Any, how: signal.Signals):
    assert store.add_batches([batch(1)]) == [STORED]
    postgres.stop(how)
    try:
        for ask in (lambda: store.add_batches([batch(2)]), lambda: store.stored_reports(A)):
            with pytest.raises(StorageUnavailable, match="PostgreSQL"):
                ask()
    finally:
        postgres.start()
    assert store.add_batches([batch(1), batch(2)]) == [DUPLICATE, STORED]
    postgres.stop(how)
    postgres.start()
    assert store.stored_reports(A) == 2  # Nobody noticed.


@pytest.mark.slow
def test_a_restart_in_the_middle_of_ingest_loses_nothing(store: PostgresStore, postgres: Any):
    writer = BatchWriter(store)
    acknowledged: set[int] = set()
    refused: set[int] = set()
    done = threading.Event()

    def send(me: int) -> None:
        number = me
        while not done.is_set():
            number += 4
            try:
                assert submit(writer, batch(number)).result(PATIENT_SECONDS) in (STORED, DUPLICATE)
                acknowledged.add(number)
            except StorageUnavailable:
                refused.add(number)

    with ThreadPoolExecutor(4) as pool:
        sending = [pool.submit(send, me) for me in range(4)]
        for _ in range(3):
            enough = len(acknowledged) + 100
            while len(acknowledged) < enough:
                store.fold_some(A, "main", add, 10)
            postgres.stop()
            postgres.start()
        done.set()
        for future in sending:
            future.result()
    writer.stop()
    # Those that were refused may be in or not; sent again, they are in once.
    again = sorted(refused)
    assert set(store.add_batches([batch(number) for number in again])) <= {STORED, DUPLICATE}
    while store.fold_some(A, "main", add, 1000):
        pass
    data = store.tally(A, "main") or b""
    numbers = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
    assert sorted(numbers) == sorted(acknowledged | refused)


def test_a_connection_that_breaks_in_a_fold_folds_once(store: PostgresStore, postgres: Any):
    store.add_batches([batch(1), batch(2)])
    calls: list[int] = []

    def cut_off(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
        calls.append(len(batches))
        if len(calls) == 1:
            with psycopg.connect(postgres.url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        return add(tally, batches)

    assert store.fold_some(A, "main", cut_off, 10) == 2
    assert calls == [2, 2]
    assert store.tally(A, "main") == b"\x01\x00\x00\x00\x02\x00\x00\x00"


def test_a_batch_that_another_process_folds_is_left_to_it(store: PostgresStore, postgres: Any):
    """The second folder takes the segments that the first has not claimed, and waits for nobody."""
    other = PostgresStore(postgres.url)
    for number in range(6):
        store.add_batches([batch(number)])

    def meanwhile(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
        assert other.fold_some(A, "two", add, 100) == 4
        return add(tally, batches)

    assert store.fold_some(A, "one", meanwhile, 2) == 2
    assert other.fold_some(A, "two", add, 100) == 0
    assert len(b"".join(tally.content for tally in store.tallies(A))) == 6 * 4
    other.close()


def test_several_processes_start_on_an_empty_database(postgres: Any):
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: PostgresStore(postgres.url), range(4)))
    for store in stores:
        assert store.collections() == []
        store.close()


def test_a_newer_schema_is_refused(store: PostgresStore, postgres: Any):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("UPDATE tacit.meta SET value = 999")
    with pytest.raises(StorageUnavailable, match="version 999"):
        PostgresStore(postgres.url)


def test_migrations_run_in_order_and_once(postgres: Any, monkeypatch: pytest.MonkeyPatch):
    PostgresStore(postgres.url).close()
    steps = ("CREATE TABLE tacit.later (x int)", "INSERT INTO tacit.later VALUES (1)")
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", postgres_schema.MIGRATIONS + steps)
    for _ in range(2):
        PostgresStore(postgres.url).close()
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT * FROM tacit.later").fetchall() == [(1,)]


def test_commits_are_durable_whatever_the_server_prefers(postgres: Any):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("ALTER ROLE tacit SET synchronous_commit TO off")
        try:
            store = PostgresStore(postgres.url)
            query = store._query("SHOW synchronous_commit")  # pyright: ignore[reportPrivateUsage]
            assert query == [("on",)]
            store.close()
        finally:
            connection.execute("ALTER ROLE tacit RESET synchronous_commit")


def test_a_full_disk_is_told_from_other_faults(store: PostgresStore, postgres: Any):
    """The server is made to say that its disk is full."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(
            """CREATE FUNCTION tacit.full() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON tacit.waiting EXECUTE FUNCTION tacit.full()"""
        )
        with pytest.raises(StorageFull):
            store.add_batches([batch(1)])
        connection.execute("DROP TRIGGER full_disk ON tacit.waiting")
    assert store.add_batches([batch(1)]) == [STORED]


def test_a_server_that_is_not_there():
    with pytest.raises(StorageUnavailable, match="PostgreSQL"):
        PostgresStore("host=127.0.0.1 port=1 user=tacit password=hidden")
