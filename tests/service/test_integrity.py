"""What a collector sees of forged reports: counted with the tally, in one transaction, and told on request."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.service.memory import MemoryStore

from tacit.catalog import CATALOG
from tacit.collector.collections.publish import Planner, publish_document
from tacit.collector.ingest.watching import framed, unframed
from tacit.collector.ports import NewBatch
from tacit.collector.service import Collector
from tacit.errors import ReportRejected
from tacit.integrity.watch import MOST_WATCHED, WatchedSums, watch_more
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.poisoning.attacks import Attack, fake_reports

LABELS = [f"answer {i}" for i in range(24)]
DRAFT = {
    "title": "Habits",
    "epsilon": "1",
    "minimum_cohort": 100,
    "questions": [{"name": "habit", "text": "Which?", "domain": {"kind": "categories", "labels": LABELS}}],
}


def collecting(kind: str) -> tuple[Collector, str, Any]:
    collector = Collector(MemoryStore())
    planned = Planner(CATALOG).plan(DRAFT)[0]
    # The planner would take the oracle of the least error; every oracle may be published.
    mechanism = {"oue": OUE(len(LABELS), "1"), "olh": OLH(len(LABELS), "1")}[kind]
    record = publish_document(collector.store, replace(planned, mechanism=mechanism))
    return collector, record.id, collector.find(record.id).mechanism


def send(collector: Collector, collection: str, mechanism: Any, reports: Any, first: int) -> None:
    """Batches of up to 4,000 reports, and a fold after each, so that sums are added again and again."""
    for i, start in enumerate(range(0, len(reports), 4_000)):
        part = reports[start : start + 4_000]
        batch = NewBatch(collection, (first + i).to_bytes(16, "little"), part.tobytes(), len(part), {})
        assert collector.store.add_batches([batch]) == ["stored"]
        collector.folder.fold_all(collection, 10)


@pytest.mark.parametrize("kind", ["oue", "olh"])
def test_forged_reports_raise_an_alarm_and_honest_ones_do_not(kind: str) -> None:
    """A false alarm has probability below 0.003 by the budget; seeds are fixed."""
    collector, collection, mechanism = collecting(kind)
    try:
        send(collector, collection, mechanism, mechanism.privatize(np.arange(16_000) % 24, SimulationCoins(4)), 1)
        quiet = collector.integrity(collection)
        assert quiet["state"] != "alarm" and quiet["status"] == "ok" and quiet["repair"] is None
        fakes = fake_reports(mechanism, Attack("mga", np.array([2, 7, 11, 19]), search=20_000), 800, 4)
        send(collector, collection, mechanism, fakes, 100)
        found = collector.integrity(collection)
        assert found["state"] == "alarm" and found["hot"] == [LABELS[i] for i in (2, 7, 11, 19)]
        assert found["repair"]["method"] == "rec_model"
        assert all(row["repaired"] < row["raw"] for row in found["repair"]["rows"])
        assert found["influence"]["coalition"] > 0.04 and found["n"] == 16_800
    finally:
        collector.stop()


def test_below_the_cohort_nothing_is_said() -> None:
    collector, collection, mechanism = collecting("oue")
    try:
        send(collector, collection, mechanism, mechanism.privatize([0] * 50, SimulationCoins(1)), 1)
        found = collector.integrity(collection)
        assert (found["status"], found["state"], found["inspections"]) == ("below_minimum_cohort", "quiet", [])
        assert found["influence"] is None
    finally:
        collector.stop()


@pytest.mark.parametrize("mechanism", [OUE(300, "1"), OLH(12, "1"), OUE(9, "2")])
def test_sums_add_like_tallies_and_survive_storage(mechanism: Any) -> None:
    reports = mechanism.privatize(np.arange(900) % mechanism.size, SimulationCoins(1))
    first = watch_more(mechanism, None, reports[:400])
    assert first is not None and len(first.values) == min(mechanism.size, MOST_WATCHED)
    parts = watch_more(mechanism, WatchedSums.load(first.dump()), reports[400:])
    whole = first.plus(mechanism, reports[400:])
    assert parts is not None and parts.n == 900
    for name in ("values", "both", "ones", "seeds", "buckets"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name))
    kept, tally = unframed(framed(parts, b"TCTL tally"))
    assert kept is not None and kept.dump() == parts.dump() and tally == b"TCTL tally"
    assert unframed(b"TCTL tally") == (None, b"TCTL tally")
    for wrong in (b"", b"{}\n", first.dump()[:-8], first.dump() + b"12345678", first.dump()[:-3]):
        with pytest.raises(ReportRejected):
            WatchedSums.load(wrong)


def test_kinds_without_structure_are_not_watched() -> None:
    from tacit.oracles.grr import GRR

    mechanism = GRR(5, "1")
    assert watch_more(mechanism, None, mechanism.privatize([1, 2], SimulationCoins(1))) is None
    assert watch_more(OUE(5, "1"), None, OUE(5, "1").privatize([], SimulationCoins(1))) is None
