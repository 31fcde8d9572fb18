"""Reports that a document keeps for integrity: in no order, until the collection is closed, for every detector."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.service.memory import MemoryStore
from tests.service.test_integrity import DRAFT, LABELS, send

from tacit.catalog import CATALOG
from tacit.collector.collections.publish import Planner, publish_document
from tacit.collector.ports import NewBatch, Store
from tacit.collector.service import Collector
from tacit.errors import InvalidSpec
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.poisoning.attacks import Attack, fake_reports
from tacit.wire.document import Collection

KEPT = {"reports": "until_closed"}
TARGETS = np.array([2, 7, 11, 19])


def keeping(store: Store, mechanism: Any) -> tuple[Collector, str, Any]:
    collector = Collector(store)
    planned = Planner(CATALOG).plan(DRAFT | {"integrity": KEPT})[0]
    assert planned.version == 3 and planned.integrity is not None
    record = publish_document(store, replace(planned, mechanism=mechanism))
    return collector, record.id, collector.find(record.id).mechanism


@pytest.mark.parametrize("kind", [OUE, OLH])
def test_kept_reports_have_every_detector_and_every_repair(kind: type[Any]) -> None:
    """A false alarm has probability below 0.003 by the budget; seeds are fixed."""
    collector, collection, mechanism = keeping(MemoryStore(), kind(len(LABELS), "1"))
    send(collector, collection, mechanism, mechanism.privatize(np.arange(8_000) % 24, SimulationCoins(4)), 1)
    quiet = collector.integrity(collection)
    assert (quiet["looked_at"], quiet["repair"], quiet["repairs"]) == ("reports", None, [])
    assert quiet["state"] != "alarm" and quiet["jump"]["detector"] == "det_jump"
    send(collector, collection, mechanism, fake_reports(mechanism, Attack("mga", TARGETS, search=20_000), 600, 4), 100)
    found = collector.integrity(collection)
    assert found["state"] == "alarm" and found["hot"] == [LABELS[i] for i in TARGETS]
    assert [repair["method"] for repair in found["repairs"]] == ["rec_hist", "rec_drop", "rec_model"]
    assert found["repair"] == found["repairs"][0]
    raw, repaired = (sum(row[name] for row in found["repair"]["rows"]) for name in ("raw", "repaired"))
    # Four values of 24 have a share of 1/6 in all, and fakes have pushed that; the repair takes most of it off.
    assert raw > 1 / 6 + 0.2 and raw - repaired > 0.6 * (raw - 1 / 6)
    collector.stop()


def test_a_doubling_that_has_just_begun_is_compared_with_nothing() -> None:
    """A change between a crowd and one report would tell what that report supports, below the minimum cohort."""
    collector, collection, mechanism = keeping(MemoryStore(), OUE(size=len(LABELS), epsilon="1"))
    least = collector.find(collection).collection.least_reports
    reports = mechanism.privatize(np.arange(400) % 24, SimulationCoins(1))
    jumps: list[Any] = []
    for i, (start, stop) in enumerate(((0, 199), (199, 200), (200, 198 + least), (198 + least, 199 + least))):
        send(collector, collection, mechanism, reports[start:stop], i + 1)
        jumps.append(collector.integrity(collection)["jump"])
    assert jumps[:3] == [None, None, None] and jumps[3]["detector"] == "det_jump"
    collector.stop()


def test_reports_are_kept_in_no_order_and_closing_deletes_them(open_store: Callable[[], Store]) -> None:
    store = open_store()
    collector, collection, mechanism = keeping(store, OUE(size=len(LABELS), epsilon="1"))
    reports = mechanism.privatize(np.arange(300) % 24, SimulationCoins(1))
    for i, start in enumerate((0, 100, 200)):
        part = reports[start : start + 100]
        store.add_batches([NewBatch(collection, bytes([i]) * 16, part.tobytes(), 100, {})])
        collector.folder.fold_all(collection, 10)
    kept = store.kept_reports(collection)
    assert sorted(one.part for one in kept) == [1, 2, 2] and len({one.name for one in kept}) == 3
    found = np.concatenate([mechanism.decode(one.payload) for one in kept])
    assert sorted(map(bytes, found)) == sorted(map(bytes, reports))
    first = next(one for one in kept if one.part == 1)
    assert first.payload != reports[:100].tobytes()
    # What still waits when a collection is closed is counted and not kept.
    store.add_batches([NewBatch(collection, b"w" * 16, reports[:100].tobytes(), 100, {})])
    collector.close(collection)
    assert store.kept_reports(collection) == []
    collector.folder.fold_all(collection, 10)
    assert store.kept_reports(collection) == [] and store.stored_reports(collection) == 400
    assert collector.integrity(collection)["looked_at"] == "sums"


def test_other_collections_keep_nothing_and_some_cannot() -> None:
    collector = Collector(MemoryStore())
    record = publish_document(collector.store, Planner(CATALOG).plan(DRAFT)[0])
    mechanism: Any = collector.find(record.id).mechanism
    send(collector, record.id, mechanism, mechanism.privatize(np.arange(200) % 24, SimulationCoins(1)), 1)
    assert collector.store.kept_reports(record.id) == []
    assert collector.integrity(record.id)["looked_at"] in ("sums", "nothing")
    collector.stop()
    with pytest.raises(InvalidSpec, match="kept in its lake"):
        Planner(CATALOG, in_lake=True).plan(DRAFT | {"integrity": KEPT})
    with pytest.raises(InvalidSpec, match="until_closed"):
        Planner(CATALOG).plan(DRAFT | {"integrity": {"reports": "for_ever"}})
    document = Planner(CATALOG).plan(DRAFT | {"integrity": KEPT})[0].to_json()
    assert Collection.from_json(document).to_json() == document
