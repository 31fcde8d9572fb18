"""Tallies made elsewhere: imported once, by their sources, under the rules of the collection; in every store."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from tests.service.plain import PLAIN, Client, NoNoise, draft

from tacit.catalog import CATALOG, parse
from tacit.collector.collections.publish import publish_document
from tacit.collector.ports import CLOSED, DUPLICATE, OVERLAP, STORED, CollectionRecord, NewBatch, Store, StoredTally
from tacit.collector.service import Collector
from tacit.errors import ReportRejected
from tacit.hosting.problems import Problem
from tacit.oracles.grr import GRR
from tacit.wire.document import Collection
from tacit.wire.files import Origin, read_tally, sources_of, write_tally
from tacit.wire.tallies import dump_tally

A = "a" * 64
IDS = [bytes([i] * 16) for i in range(4)]


def test_a_tally_is_added_once_with_its_sources(store: Store):
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    one, two = StoredTally("import-1", 7, b"[one]"), StoredTally("import-2", 5, b"[two]")
    store.add_batches([NewBatch(A, IDS[3], b"x", 1, {})])
    assert store.add_tally(A, one, IDS[:2]) == STORED
    assert store.add_tally(A, one, IDS[:2]) == DUPLICATE
    # Less than before was counted with it, and more cannot be told apart any more.
    assert store.add_tally(A, two, IDS[:1]) == DUPLICATE
    assert store.add_tally(A, two, IDS[1:3]) == OVERLAP
    assert store.add_tally(A, two, [IDS[2], IDS[3]]) == OVERLAP
    assert store.add_tally(A, two, [IDS[2]]) == STORED
    assert store.add_batches([NewBatch(A, IDS[2], b"y", 1, {})]) == [DUPLICATE]
    assert [(item.shard, item.reports) for item in store.tallies(A)] == [("import-1", 7), ("import-2", 5)]
    assert store.stored_reports(A) == 13
    store.close_collection(A)
    assert store.add_tally(A, two, [b"z" * 16, IDS[1]]) == OVERLAP
    assert store.add_tally(A, two, [b"new" + bytes(13)]) == CLOSED
    store.drop_reports(A)
    assert (store.tallies(A), store.stored_reports(A)) == ([], 0)
    assert store.add_tally(A, one, IDS[:2]) == CLOSED
    assert store.add_tally("b" * 64, one, IDS[:2]) == CLOSED


def tally_file(tally: Any, *sources: str, collection: str = "") -> bytes:
    stream = BytesIO()
    origin = Origin(collection, tuple(source * 64 for source in sources)) if sources else None
    write_tally(stream, tally, None, origin)
    return stream.getvalue()


@pytest.fixture
def collector(store: Store) -> Iterator[Collector]:
    made = Collector(store, catalog=(*CATALOG, NoNoise), tasks=(PLAIN,))
    yield made
    made.stop()


def published(collector: Collector, **changes: Any) -> tuple[str, GRR]:
    """A collection that asks by a mechanism of the catalogue, which a file can state."""
    planned = collector.planner.plan(draft(**changes))[0]
    mechanism = GRR(size=planned.questions[0].domain.size, epsilon="1")
    document = planned.to_json() | {"mechanism": mechanism.spec(), "epsilon": "1"}
    return publish_document(collector.store, Collection.from_json(document, (*CATALOG, NoNoise))).id, mechanism


def test_what_is_imported_is_answered_and_counted_once(collector: Collector):
    id, mechanism = published(collector)
    tally = mechanism.tally(np.arange(40).astype(mechanism.report_dtype) % mechanism.size)
    assert collector.import_tally(id, tally_file(tally, "1", "2")) == {"reports": 40, "sources": 2, "duplicate": False}
    assert collector.import_tally(id, tally_file(tally, "2", "1"))["duplicate"]
    with pytest.raises(Problem, match="tally only the new files"):
        collector.import_tally(id, tally_file(tally, "2", "3"))
    # Without a manifest the file stands for itself.
    assert not collector.import_tally(id, tally_file(tally))["duplicate"]
    assert collector.import_tally(id, tally_file(tally))["duplicate"]
    assert (collector.status(id)["reports"], collector._folded(id)[1].tally.n) == (80, 80)
    collector.store.add_batches([NewBatch(id, bytes(16), bytes(3), 3, {})])
    assert collector._folded(id)[1].tally.n == 83


def test_what_is_not_imported(collector: Collector):
    id, mechanism = published(collector)
    tally = mechanism.tally(np.zeros(9, mechanism.report_dtype))
    other = GRR(size=mechanism.size, epsilon="2")
    for faulty, words in (
        (tally_file(other.tally(np.zeros(9, other.report_dtype)), "1"), "epsilon"),
        (tally_file(mechanism.tally(np.zeros(9, mechanism.report_dtype), np.arange(9)), "1"), "weighted"),
        (tally_file(tally, "1", collection="b" * 64), "files of collection bbbbbb"),
    ):
        with pytest.raises(Problem, match=words):
            collector.import_tally(id, faulty)
    whole = tally_file(tally, "1")
    for bad in (b"", whole[:50], whole[:-1], whole[:60] + b"x" + whole[61:]):
        with pytest.raises(ReportRejected):
            collector.import_tally(id, bad)
    assert collector.import_tally(id, tally_file(tally, "4", collection=id))["reports"] == 9
    collector.close(id)
    with pytest.raises(Problem, match="no more reports"):
        collector.import_tally(id, whole)
    assert collector.status(id)["reports"] == 9


def test_the_manifest_of_a_file():
    mechanism = GRR(size=3, epsilon="1")
    tally = mechanism.tally(np.zeros(9, mechanism.report_dtype))
    whole = tally_file(tally, "b", "a")
    assert sources_of(whole, "x") == ["a" * 64, "b" * 64]
    assert dump_tally(read_tally(BytesIO(whole), "x")[0]) == dump_tally(tally)
    assert len(sources_of(tally_file(tally), "x")) == 1
    with pytest.raises(ReportRejected, match="twice"):
        sources_of(tally_file(tally, "a", "a"), "x")
    with pytest.raises(ReportRejected, match="SHA-256"):
        sources_of(tally_file(tally, "x"), "x")


def test_an_operator_imports_over_http(client: Client):
    hours = {"name": "hours", "text": "How long?", "task": "mean", "domain": {"kind": "integers", "low": 0, "high": 4}}
    id = client.publish(draft(questions=[hours]))
    mechanism = parse(client.api("GET", f"/collections/{id}").json()["document"]["mechanism"])
    data = tally_file(mechanism.tally(mechanism.all_reports()), "1", "2")
    path, kind = f"/api/v1/collections/{id}/tallies", "application/vnd.tacit.tally"

    def post(token: str, content: bytes = data, kind: str = kind) -> Any:
        return client.http.post(
            path, content=content, headers={"Authorization": f"Bearer {token}", "Content-Type": kind}
        )

    first, again = post(client.token), post(client.token)
    assert (first.status_code, again.status_code) == (201, 200), first.text
    assert first.json() == again.json() | {"duplicate": False} and again.json()["duplicate"]
    assert client.api("GET", f"/collections/{id}/status").json()["reports"] == first.json()["reports"]
    noted = [entry["action"] for entry in client.api("GET", "/audit").json()["entries"] if entry["subject"] == id]
    assert noted.count(f"import {first.json()['reports']}") == 1
    assert post("nobody").status_code == 401
    analyst = client.api("POST", "/tokens", {"scope": "analyst", "label": "a", "days": 1}).json()["token"]
    assert post(analyst).status_code == 403
    assert post(client.token, kind="application/json").status_code == 415
    assert post(client.token, b"").status_code == 400
    assert post(client.token, data[:-1]).status_code == 400
