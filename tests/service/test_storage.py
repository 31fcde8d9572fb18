"""What every store promises, over SQLite, over a real PostgreSQL, and in memory."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.ports import (
    CLOSED,
    DUPLICATE,
    SPENT,
    STORED,
    AuditEntry,
    BatchNumbers,
    CollectionRecord,
    NewBatch,
    Store,
    StoredBatch,
    StoredTally,
    TokenRecord,
)
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.errors import InvalidSpec, StorageUnavailable

Open = Callable[[], Store]
A, B = "a" * 64, "b" * 64
TODAY = 20_000

LASTING = pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
"""For what a store in memory does not promise: to outlive its process, to copy itself, or to be closed."""


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is; in memory, one that stays until the test ends."""
    known = {"sqlite": lambda: str(tmp_path / "data"), "postgres": lambda: request.getfixturevalue("postgres").url}
    return known.get(request.param, lambda: "memory")()


def batch(name: str, *, collection: str = A, count: int = 2, **more: Any) -> NewBatch:
    return NewBatch(
        collection, name.encode().ljust(16, b"."), f"[{name}]".encode(), count, more.pop("rejected", {}), **more
    )


def publish(store: Store, collection: str = A) -> None:
    store.add_collection(CollectionRecord(collection, "published", b'{"of": "%s"}' % collection[:1].encode()))


def concatenate(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
    """A tally that shows what was folded into it and how often."""
    counts = Counter(json.loads(tally) if tally else {})
    counts.update({batch.payload.decode(): batch.count for batch in batches})
    return json.dumps(counts).encode()


def fold_all(store: Store, collection: str = A, shard: str = "main", most: int = 100) -> int:
    total = 0
    while folded := store.fold_some(collection, shard, concatenate, most):
        total += folded
    return total


def counted(store: Store, collection: str = A) -> dict[str, int]:
    total: Counter[str] = Counter()
    for tally in store.tallies(collection):
        total.update(json.loads(tally.content))
    return dict(total)


# Collections.


def test_collections_are_kept_in_order_and_never_overwritten(open_store: Open):
    store = open_store()
    assert store.collections() == [] and store.collection(A) is None
    publish(store, B)
    publish(store, A)
    store.add_collection(CollectionRecord(B, "published", b"another"))
    for reader in (store, open_store()):
        assert [record.id for record in reader.collections()] == [B, A]
        assert reader.collection(B) == CollectionRecord(B, "published", b'{"of": "b"}')
        assert reader.published_day(B) == TODAY


def test_drafts_change_and_go_and_published_documents_do_neither(store: Store):
    draft = CollectionRecord("draft-1", "draft", b"{}")
    store.add_collection(draft)
    assert store.published_day("draft-1") == 0
    store.replace_draft(CollectionRecord("draft-1", "draft", b'{"title": "x"}'))
    assert store.collection("draft-1") == CollectionRecord("draft-1", "draft", b'{"title": "x"}')
    publish(store)
    for change in (store.replace_draft, lambda record: store.delete_draft(record.id)):
        for name in (A, "draft-unknown"):
            with pytest.raises(InvalidSpec, match="is no draft"):
                change(CollectionRecord(name, "draft", b"forged"))
    store.delete_draft("draft-1")
    assert [record.id for record in store.collections()] == [A]


def test_only_a_published_collection_closes(store: Store):
    store.add_collection(CollectionRecord("draft-1", "draft", b"{}"))
    for name in ("draft-1", "unknown"):
        with pytest.raises(InvalidSpec, match="never published"):
            store.close_collection(name)
    publish(store)
    store.close_collection(A)
    store.close_collection(A)
    publish(store)  # Publishing again does not reopen.
    assert store.collection(A) == CollectionRecord(A, "closed", b'{"of": "a"}')


def test_asking_about_a_collection_that_is_not_there(store: Store):
    assert (store.rejected(A), store.stored_reports(A), store.tallies(A), store.tally(A, "main")) == ({}, 0, [], None)
    asks: list[Callable[[], Any]] = [
        lambda: store.published_day(A),
        lambda: store.count_rejected(A, {"range": 1}),
        lambda: store.add_invitations(A, [b"x"]),
        lambda: store.fold_some(A, "main", concatenate, 1),
        lambda: store.drop_reports(A),
    ]
    for ask in asks:
        with pytest.raises(InvalidSpec, match=r"unknown|never published"):
            ask()


# Batches.


def test_batches_are_stored_once_and_outlive_a_restart(open_store: Open):
    store = open_store()
    publish(store)
    assert store.add_batches([batch("one"), batch("two"), batch("one")]) == [STORED, STORED, DUPLICATE]
    assert store.stored_reports(A) == 4
    again = open_store()
    assert again.add_batches([batch("two"), batch("three")]) == [DUPLICATE, STORED]
    assert again.stored_reports(A) == store.stored_reports(A) == 6


def test_the_same_id_in_two_collections_is_two_batches(store: Store):
    publish(store, A)
    publish(store, B)
    assert store.add_batches([batch("x"), batch("x", collection=B), batch("y", collection=B)]) == [STORED] * 3
    assert (store.stored_reports(A), store.stored_reports(B)) == (2, 4)
    assert fold_all(store, B) == 2
    assert counted(store, B) == {"[x]": 2, "[y]": 2}
    assert counted(store, A) == {}


def test_batches_and_reports_are_numbered_folded_and_waiting(store: Store):
    assert store.batch_numbers(A) == BatchNumbers(0, 0, 0, 0)
    publish(store)
    store.add_batches([batch("one"), batch("two")])
    assert store.batch_numbers(A) == BatchNumbers(0, 0, 2, 4)
    fold_all(store, A)
    store.add_batches([batch("three"), batch("one")])
    numbers = store.batch_numbers(A)
    assert numbers == BatchNumbers(2, 4, 1, 2) and (numbers.batches, numbers.reports) == (3, 6)
    store.drop_reports(A)
    assert store.batch_numbers(A) == BatchNumbers(0, 0, 0, 0)


def test_nothing_is_added_to_what_is_not_published(store: Store):
    publish(store)
    store.add_collection(CollectionRecord("draft-1", "draft", b"{}"))
    assert store.add_batches([batch("one")]) == [STORED]
    store.close_collection(A)
    late = [batch("one"), batch("two"), batch("x", collection="draft-1"), batch("x", collection=B)]
    assert store.add_batches(late) == [DUPLICATE, CLOSED, CLOSED, CLOSED]
    assert store.stored_reports(A) == 2


def test_no_batches_at_all(store: Store):
    assert store.add_batches([]) == []


def test_a_large_group_of_batches(store: Store):
    publish(store)
    many = [NewBatch(A, os.urandom(16), os.urandom(1600), 100, {}) for _ in range(700)]
    assert store.add_batches(many) == [STORED] * 700
    assert store.add_batches(many[::7]) == [DUPLICATE] * 100
    assert store.stored_reports(A) == 70_000
    payloads: list[bytes] = []

    def gather(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
        payloads.extend(batch.payload for batch in batches)
        return b"done"

    assert store.fold_some(A, "main", gather, 10_000) == 700
    assert payloads == [new.payload for new in many]


def test_payloads_of_any_bytes_and_size(store: Store):
    publish(store)
    payloads = [b"", b"\x00", b"\x00\xff" * 3, bytes(range(256)) * 4096]
    seen: list[StoredBatch] = []
    assert store.add_batches([NewBatch(A, bytes([i]) * 16, p, 7, {}) for i, p in enumerate(payloads)]) == [STORED] * 4
    store.fold_some(A, "main", lambda _, batches: bytes(seen.extend(batches) or b""), 10)
    assert [(one.payload, one.count) for one in seen] == [(payload, 7) for payload in payloads]


def test_refusals_are_counted_with_the_batch_and_once(store: Store):
    publish(store)
    some = batch("one", rejected={"range": 3, "width": 1})
    assert store.add_batches([some, some, batch("none", count=0, rejected={"range": 5})]) == [STORED, DUPLICATE, STORED]
    assert store.add_batches([some]) == [DUPLICATE]
    assert store.rejected(A) == {"range": 8, "width": 1}
    store.count_rejected(A, {"range": 2, "too_large": 1})
    store.count_rejected(A, {})
    assert store.rejected(A) == {"range": 10, "width": 1, "too_large": 1}
    assert store.stored_reports(A) == 2
    assert store.rejected(B) == {}


# Invitations.


def test_an_invitation_is_spent_once(open_store: Open):
    store = open_store()
    publish(store)
    publish(store, B)
    store.add_invitations(A, [b"i1", b"i2"])
    store.add_invitations(A, [])
    assert sorted(store.invitations(A)) == [b"i1", b"i2"] and store.invitations(B) == store.invitations("unknown") == []
    group = [
        batch("one", invitation=b"i1"),
        batch("two", invitation=b"i1"),  # spent in the same group
        batch("three", invitation=b"unknown"),
        batch("one", invitation=b"i1"),  # the first one, sent again
        batch("x", collection=B, invitation=b"i2"),  # of another collection
    ]
    assert store.add_batches(group) == [STORED, SPENT, SPENT, DUPLICATE, SPENT]
    store.add_invitations(A, [b"i1"])  # Does not unspend it.
    store = open_store()
    assert store.add_batches([batch("one", invitation=b"i1"), batch("two", invitation=b"i1")]) == [DUPLICATE, SPENT]
    # A batch that was refused left nothing behind: its id can still be used.
    assert store.invitations(A) == [b"i2"]
    assert store.add_batches([batch("two", invitation=b"i2"), batch("four")]) == [STORED, STORED]
    assert (store.stored_reports(A), store.stored_reports(B)) == (6, 0)


# Folding.


def test_folding_counts_every_batch_once_and_in_order(open_store: Open):
    store = open_store()
    publish(store)
    names = [f"b{i}" for i in range(20)]
    for name in names:
        store.add_batches([batch(name, count=1)])
    order: list[bytes] = []

    def remember(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
        order.extend(batch.payload for batch in batches)
        return concatenate(tally, batches)

    assert store.fold_some(A, "main", remember, 7) == 7
    assert store.stored_reports(A) == 20
    assert store.add_batches([batch("b0", count=1), batch("late", count=1)]) == [DUPLICATE, STORED]
    store = open_store()
    while store.fold_some(A, "main", remember, 7):
        pass
    assert [payload.decode() for payload in order] == [f"[{name}]" for name in [*names, "late"]]
    assert counted(store) == {f"[{name}]": 1 for name in [*names, "late"]}
    assert store.stored_reports(A) == 21
    assert store.add_batches([batch(name) for name in names]) == [DUPLICATE] * 20
    assert fold_all(store) == 0


def test_shards_have_tallies_of_their_own(store: Store):
    publish(store)
    assert store.fold_some(A, "one", concatenate, 5) == 0
    assert store.tallies(A) == []
    for i in range(4):
        store.add_batches([batch(f"b{i}")])
        assert store.fold_some(A, ["one", "two"][i % 2], concatenate, 5) == 1
    assert json.loads(store.tally(A, "one") or b"") == {"[b0]": 2, "[b2]": 2}
    assert json.loads(store.tally(A, "two") or b"") == {"[b1]": 2, "[b3]": 2}
    assert store.tally(A, "three") is None
    assert len(store.tallies(A)) == 2
    assert counted(store) == {f"[b{i}]": 2 for i in range(4)}


def test_a_fold_that_fails_changes_nothing(store: Store):
    publish(store)
    store.add_batches([batch("one"), batch("two")])

    def fail(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            store.fold_some(A, "main", fail, 10)
        assert store.tallies(A) == []
    assert fold_all(store) == 2
    assert counted(store) == {"[one]": 2, "[two]": 2}


def test_batches_arrive_while_others_are_folded(store: Store):
    publish(store)
    store.add_batches([batch("one")])

    def meanwhile(tally: bytes | None, batches: list[StoredBatch]) -> bytes:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(store.add_batches, [batch("two"), batch("one")]).result(PATIENT_SECONDS) == [
                STORED,
                DUPLICATE,
            ]
            assert pool.submit(store.stored_reports, A).result(PATIENT_SECONDS) == 4
        return concatenate(tally, batches)

    assert store.fold_some(A, "main", meanwhile, 10) == 1
    assert counted(store) == {"[one]": 2}
    assert fold_all(store) == 1
    assert counted(store) == {"[one]": 2, "[two]": 2}


@pytest.mark.parametrize("shards", [["main"] * 3, ["one", "two", "three"]], ids=["one shard", "a shard each"])
def test_several_processes_store_and_fold_at_once(open_store: Open, shards: list[str]):
    """Three connections, each adding 20 groups that overlap with the others' and folding in between."""
    stores = [open_store() for _ in shards]
    publish(stores[0])
    start = threading.Barrier(len(shards))

    def work(me: int) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        start.wait()
        for group in range(20):
            names = [f"{(group * 10 + i) % 150}" for i in range(15)]
            outcomes.update(stores[me].add_batches([batch(n, count=1) for n in (names if me % 2 else names[::-1])]))
            stores[me].fold_some(A, shards[me], concatenate, 10)
        return outcomes

    with ThreadPoolExecutor(len(shards)) as pool:
        total = sum(pool.map(work, range(len(shards))), Counter[str]())
    assert total == {STORED: 150, DUPLICATE: 750}
    for store, shard in zip(stores, shards, strict=True):
        fold_all(store, shard=shard)
    assert counted(stores[0]) == {f"[{i}]": 1 for i in range(150)}
    assert stores[0].stored_reports(A) == 150


def test_dropping_reports_leaves_the_document_and_takes_no_more(store: Store):
    publish(store)
    publish(store, B)
    store.add_invitations(A, [b"i"])
    store.add_batches([batch("one", rejected={"range": 1}), batch("other", collection=B)])
    fold_all(store)
    store.add_batches([batch("two")])
    store.drop_reports(A)
    assert (store.stored_reports(A), store.tallies(A), fold_all(store)) == (0, [], 0)
    assert store.collection(A) == CollectionRecord(A, "closed", b'{"of": "a"}')
    assert store.add_batches([batch("one"), batch("three", invitation=b"i")]) == [CLOSED, CLOSED]
    assert store.stored_reports(B) == 2
    store.drop_reports(A)


# Access.


def test_tokens(open_store: Open):
    store = open_store()
    token = TokenRecord(b"\x00\xffhash", "reader", A, "for the press", 20_100)
    other = TokenRecord(b"other", "admin", "", "", 0)
    store.add_token(token)
    store.add_token(other)
    again = open_store()
    assert again.token(token.hash) == token and again.token(b"unknown") is None
    assert again.tokens() == [token, other]
    assert again.revoke_token(token.hash) is True
    assert store.revoke_token(token.hash) is False
    assert store.token(token.hash) is None and store.tokens() == [other]


def test_the_audit_log_is_newest_first(store: Store):
    entries = [AuditEntry(20_000 + i, "admin", "publish", f"c{i}") for i in range(5)]
    for entry in entries:
        store.audit(entry)
    assert store.audit_log(3) == entries[:1:-1]
    assert store.audit_log(100) == entries[::-1]
    assert store.audit_log(0) == []


# The database as a whole.


@LASTING
def test_a_closed_store_says_so(store: Store):
    publish(store)
    store.close()
    store.close()
    for ask in (store.collections, lambda: store.add_batches([batch("one")])):
        with pytest.raises(StorageUnavailable, match="close"):
            ask()


def fill(store: Store) -> None:
    publish(store)
    publish(store, B)
    store.close_collection(B)
    store.add_collection(CollectionRecord("draft-1", "draft", b"{}"))
    store.add_invitations(A, [b"i1", b"i2"])
    store.add_batches([batch("one", rejected={"range": 1}, invitation=b"i1"), batch("two")])
    store.fold_some(A, "main", concatenate, 10)
    store.add_batches([batch("three")])
    store.add_token(TokenRecord(b"hash", "admin", "", "me", 0))
    store.audit(AuditEntry(20_000, "admin", "publish", A))


def assert_filled(store: Store) -> None:
    assert [(record.id, record.state) for record in store.collections()] == [
        (A, "published"),
        (B, "closed"),
        ("draft-1", "draft"),
    ]
    assert (store.stored_reports(A), store.rejected(A), store.published_day(A)) == (6, {"range": 1}, TODAY)
    group = [batch("one"), batch("four", invitation=b"i1"), batch("five", invitation=b"i2")]
    assert store.add_batches(group) == [DUPLICATE, SPENT, STORED]
    assert fold_all(store) == 2
    assert counted(store) == {"[one]": 2, "[two]": 2, "[three]": 2, "[five]": 2}
    assert store.tokens() == [TokenRecord(b"hash", "admin", "", "me", 0)]
    store.audit(AuditEntry(20_001, "admin", "close", A))
    assert store.audit_log(9) == [AuditEntry(20_001, "admin", "close", A), AuditEntry(20_000, "admin", "publish", A)]
    publish(store, "c" * 64)
    assert store.collections()[-1].id == "c" * 64


@LASTING
def test_a_backup_restores_to_the_same_store(store: Store, tmp_path: Path):
    fill(store)
    copy = tmp_path / "backups" / "copy"
    store.backup(str(copy))
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]
    with pytest.raises(StorageUnavailable, match="exists"):
        store.backup(str(copy))
    restored = SqliteStore.restore(copy, tmp_path / "restored")
    assert_filled(restored)
    restored.close()
    with pytest.raises(StorageUnavailable, match="empty folder"):
        SqliteStore.restore(copy, tmp_path / "restored")
    assert_filled(store)  # The original is none the worse.


@LASTING
def test_a_backup_of_either_store_restores_to_postgres(store: Store, tmp_path: Path, postgres: Any):
    from tacit.collector.store.postgres.store import PostgresStore

    fill(store)
    store.backup(str(tmp_path / "copy"))
    postgres.forget()
    target = PostgresStore(postgres.url)
    target.restore(str(tmp_path / "copy"))
    assert_filled(target)
    with pytest.raises(StorageUnavailable, match="empty"):
        target.restore(str(tmp_path / "copy"))
    target.close()


@LASTING
def test_a_backup_is_taken_while_reports_arrive(store: Store, tmp_path: Path):
    publish(store)
    done = threading.Event()
    acknowledged: list[int] = []

    def write() -> None:
        while not done.is_set():
            store.add_batches([batch(f"{len(acknowledged)}", count=1)])
            acknowledged.append(1)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while len(acknowledged) < 20:
            pass
        least = len(acknowledged)
        store.backup(str(tmp_path / "copy"))
        most = len(acknowledged) + 1
        done.set()
        writing.result()
    restored = SqliteStore.restore(tmp_path / "copy", tmp_path / "restored")
    assert least <= restored.stored_reports(A) <= most
    restored.close()


def test_reports_are_counted_by_day_when_they_are_folded(store: Store):
    """Sums by day alone; retention removes them with the reports."""
    publish(store)
    assert store.reports_by_day(A) == store.reports_by_day(B) == {}
    store.add_batches([batch("one"), batch("two", count=3)])
    assert store.reports_by_day(A) == {}
    fold_all(store)
    store.add_batches([batch("three")])
    fold_all(store, shard="other")
    assert store.reports_by_day(A) == {TODAY: 7}
    store.add_tally(A, StoredTally("import-1", 10, b"{}"), [b"file".ljust(16, b".")])
    assert store.reports_by_day(A) == {TODAY: 17} and store.stored_reports(A) == 17
    store.drop_reports(A)
    assert store.reports_by_day(A) == {}


def test_sites_are_kept_beside_the_document(open_store: Open):
    store = open_store()
    publish(store)
    assert store.origins() == {}
    store.set_origins(A, ["https://b.example", "https://a.example"])
    assert open_store().origins() == {A: ("https://a.example", "https://b.example")}
    store.set_origins(A, ["https://b.example"])
    assert store.origins() == {A: ("https://b.example",)}
    store.set_origins(A, [])
    assert store.origins() == {}
    with pytest.raises(InvalidSpec, match="unknown"):
        store.set_origins(B, [])
