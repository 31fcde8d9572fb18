"""What a collector sees of forged reports: counted with the tally, in one transaction, and told on request."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from tests.service.memory import MemoryStore

from tacit.catalog import CATALOG
from tacit.collector.answers.looks import Looks
from tacit.collector.collections.publish import Planner, publish_document
from tacit.collector.ingest.watching import framed, unframed
from tacit.collector.ports import NewBatch
from tacit.collector.service import Collector
from tacit.core.all_of import AllOf
from tacit.core.one_of import OneOf
from tacit.device.families.compose import Questions
from tacit.device.numbers.budget import Epsilon, Share
from tacit.errors import ReportRejected
from tacit.integrity.watch import (
    FIRST_REPORTS,
    MOST_WATCHED,
    WatchedSums,
    added_up,
    most_watched,
    watch_more,
    watched_parts,
)
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.poisoning.attacks import Attack, fake_reports

LABELS = [f"answer {i}" for i in range(24)]
DRAFT: dict[str, Any] = {
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


def more(mechanism: Any, kept: WatchedSums | None, reports: Any, before: Any = None) -> WatchedSums | None:
    so_far = reports if before is None else np.concatenate([before, reports])
    return watch_more(mechanism, kept, reports, mechanism.tally(so_far))


@pytest.mark.parametrize("mechanism", [OUE(300, "1"), OLH(12, "1"), OUE(9, "2")])
def test_sums_add_like_tallies_and_survive_storage(mechanism: Any) -> None:
    reports = mechanism.privatize(np.arange(900) % mechanism.size, SimulationCoins(1))
    first = more(mechanism, None, reports[:400])
    assert first is not None and len(first.values) == mechanism.size
    parts = more(mechanism, WatchedSums.load(first.dump()), reports[400:], reports[:400])
    whole = first.plus(mechanism, reports[400:])
    alone = more(mechanism, None, reports[400:])
    assert parts is not None and alone is not None and parts.n == 900
    for sums in (whole, *added_up([first, alone])):
        for name in ("n", "values", "both", "ones", "seeds", "buckets"):
            assert np.array_equal(getattr(parts, name), getattr(sums, name))
    for watches in ({(): parts}, {(0,): parts, (2, 1): first}):
        kept, tally = unframed(framed(watches, b"TCTL tally"))
        assert {path: sums.dump() for path, sums in kept.items()} == {k: v.dump() for k, v in watches.items()}
        assert tally == b"TCTL tally"
    assert unframed(b"TCTL tally") == ({}, b"TCTL tally")
    for wrong in (b"", b"{}\n", first.dump()[:-8], first.dump() + b"12345678", first.dump()[:-3]):
        with pytest.raises(ReportRejected):
            WatchedSums.load(wrong)
    with pytest.raises(ReportRejected):
        unframed(b"TCTM" + (3).to_bytes(8, "little") + b"\x01\x00\x00")


def test_values_of_large_domains_are_chosen_when_enough_reports_have_come() -> None:
    """One value is held by one of five, which 5,000 reports show beyond doubt (17 standard errors)."""
    mechanism = OUE(MOST_WATCHED + 88, "2")
    values = np.where(np.arange(FIRST_REPORTS) % 5 == 0, 590, np.arange(FIRST_REPORTS) % mechanism.size)
    reports = mechanism.privatize(values, SimulationCoins(1))
    assert more(mechanism, None, reports[:4_000]) is None
    late = more(mechanism, None, reports[4_000:], reports[:4_000])
    assert late is not None and late.n == 1_000 and len(late.values) == MOST_WATCHED and 590 in late.values
    # Of a small domain all reports are watched, or none.
    small = OUE(9, "1")
    some = small.privatize(np.arange(20) % 9, SimulationCoins(1))
    assert more(small, None, some[10:], some[:10]) is None


def test_kinds_without_structure_are_not_watched() -> None:
    from tacit.oracles.grr import GRR

    assert watched_parts(GRR(5, "1")) == [] and most_watched(64) == 64
    assert more(OUE(5, "1"), None, OUE(5, "1").privatize([], SimulationCoins(1))) is None


TWO: dict[str, Any] = DRAFT | {"questions": [{**DRAFT["questions"][0], "name": name} for name in ("first", "second")]}


def asking_two(policy: str, integrity: Any = None) -> tuple[Collector, str, Any]:
    collector = Collector(MemoryStore())
    draft: dict[str, Any] = TWO | {"policy": policy, "integrity": integrity}
    planned = Planner(CATALOG).plan(draft)[0]
    oracles = (OUE(len(LABELS), "1"), OUE(len(LABELS), "1"))
    if policy == "one_of":
        mechanism: Any = OneOf(family=Questions(mechanisms=oracles))
    else:
        share: Any = Share(Epsilon("2"), "1/2")
        mechanism = AllOf(epsilon="2", members=(OUE(len(LABELS), share), OUE(len(LABELS), share)))
    record = publish_document(collector.store, replace(planned, mechanism=mechanism))
    return collector, record.id, collector.find(record.id).mechanism


@pytest.mark.parametrize("policy", ["one_of", "all_of"])
@pytest.mark.parametrize("kept", [None, {"reports": "until_closed"}])
def test_every_question_of_several_is_looked_at(policy: str, kept: Any) -> None:
    """A false alarm at first has probability below 0.003 by the budget; seeds are fixed."""
    collector, collection, mechanism = asking_two(policy, kept)
    answers = np.stack([np.arange(12_000) % 24, np.arange(12_000) // 24 % 24], axis=1)
    send(collector, collection, mechanism, mechanism.privatize(answers, SimulationCoins(4)), 1)
    quiet = collector.integrity(collection)
    assert quiet["state"] != "alarm" and {look["part"] for look in quiet["inspections"]} == {"first", "second"}
    assert quiet["looked_at"] == ("reports" if kept else "sums" if policy == "one_of" else "log")
    targets = np.array([2, 7, 11, 19])
    part = mechanism.member(1)
    fakes = fake_reports(part, Attack("mga", targets), 900, 4)
    if policy == "one_of":
        reports = mechanism.wrapped(1, fakes)
    else:
        honest = part.privatize(np.arange(900) % 24, SimulationCoins(5))
        reports = np.zeros(900, mechanism.report_dtype)
        for name, column in zip(reports.dtype.names or (), (honest, fakes), strict=True):
            cast("Any", reports)[name] = column
    send(collector, collection, mechanism, reports, 100)
    found = collector.integrity(collection)
    assert found["state"] == "alarm" and found["hot"] == [f"second: {LABELS[i]}" for i in targets]
    assert found["repair"]["part"] == "second"
    assert all(row["repaired"] < row["raw"] for row in found["repair"]["rows"])
    collector.stop()


def test_the_same_reports_are_looked_at_once_and_refusals_are_up_to_date() -> None:
    looks, calls = Looks(), list[int]()

    def look() -> dict[str, Any]:
        calls.append(1)
        return {"state": len(calls)}

    assert [looks.of("a", what, look)["state"] for what in (1, 1, 2, 2)] == [1, 1, 2, 2]
    assert looks.of("b", 2, look)["state"] == 3
    looks.forget("a")
    assert looks.of("a", 2, look)["state"] == 4
    for i in range(300):
        looks.of(str(i), 1, look)
    before = len(calls)
    assert looks.of("299", 1, look)["state"] == before and looks.of("b", 2, look)["state"] == before + 1
    collector, collection, mechanism = collecting("oue")
    send(collector, collection, mechanism, mechanism.privatize(np.arange(200) % 24, SimulationCoins(1)), 1)
    first = collector.integrity(collection)
    collector.rejections.add(collection, "range", 3)
    second = collector.integrity(collection)
    assert first["inspections"] is second["inspections"] and second["rejected"] == {"range": 3}
    collector.stop()
