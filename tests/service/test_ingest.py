"""From bytes to counted reports: every reason for a refusal, and every report exactly once."""

import json

import numpy as np
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import PLAIN, SHUFFLE, NoNoise, binary, draft, wide_draft
from tests.service.submitting import submit

from tacit.catalog import CATALOG
from tacit.collector.collections.publish import publish_document
from tacit.collector.ingest.uploads import Form
from tacit.collector.limits import FoldLimits
from tacit.collector.service import Collector
from tacit.device.numbers.coins import SystemCoins
from tacit.errors import ReportRejected
from tacit.hosting.problems import Problem
from tacit.tasks.mean import MEAN
from tacit.testing.examples import example
from tacit.testing.laws import values_of
from tacit.wire.batch import Batch, Block, batch_to_json, encode_batch, new_batch_id
from tacit.wire.tallies import dump_tally, empty_tally, load_tally


@pytest.fixture
def collector():
    made = Collector(MemoryStore(), catalog=(*CATALOG, NoNoise), tasks=(PLAIN, MEAN))
    yield made
    made.stop()


def active_of(collector: Collector, given: dict):
    return collector.find(publish_document(collector.store, collector.planner.plan(given)[0]).id)


def take(collector: Collector, active, body: bytes, form: Form = Form.BINARY, invitation: str = ""):
    upload = collector.ingest.judge(active, body, form, invitation)
    if upload.batch is None:
        return collector.ingest.nothing_stored(active, upload)
    return collector.ingest.settle(active, upload, submit(collector.writer, upload.batch).result())


def refused(collector: Collector, active, body: bytes, form: Form = Form.BINARY, invitation: str = "") -> str:
    with pytest.raises(Problem) as caught:
        take(collector, active, body, form, invitation)
    return caught.value.kind


def test_good_reports_are_stored_and_bad_ones_are_named(collector: Collector):
    active = active_of(collector, draft())
    receipt = take(collector, active, binary(active.id, bytes([0, 9, 2, 3, 1])))
    assert receipt == {
        "accepted": 3,
        "rejected": [{"index": 1, "reason": "range"}, {"index": 3, "reason": "range"}],
        "duplicate": False,
    }
    assert collector.status(active.id)["reports"] == 3
    assert collector.status(active.id)["rejected"] == {"range": 2}


def test_a_retried_batch_counts_once_and_its_refusals_too(collector: Collector):
    active = active_of(collector, draft())
    body = binary(active.id, bytes([0, 9, 2]))
    first, again = take(collector, active, body), take(collector, active, body)
    assert again == first | {"accepted": 0, "duplicate": True}
    status = collector.status(active.id)
    assert (status["reports"], status["rejected"]) == (2, {"range": 1, "duplicate": 2})


def test_a_batch_without_a_valid_report_stores_nothing(collector: Collector):
    active = active_of(collector, draft())
    receipt = take(collector, active, binary(active.id, bytes([7, 8])))
    assert receipt["accepted"] == 0
    assert [item["index"] for item in receipt["rejected"]] == [0, 1]
    assert collector.status(active.id)["reports"] == 0
    assert collector.status(active.id)["rejected"] == {"range": 2}


def test_every_reason_is_told_and_counted(collector: Collector):
    active = active_of(collector, draft())
    good = binary(active.id, bytes([1]))
    cases = {
        "malformed": [b"", b"garbage", good[:40], b"TCB3" + good[4:]],
        "wrong_collection": [binary("00" * 32, bytes([1]))],
        "width": [good[:-1], good + b"\0", good + bytes(8), good[:52] + b"\1" + good[53:]],
    }
    for reason, bodies in cases.items():
        assert {refused(collector, active, body) for body in bodies} == {reason}
    assert refused(collector, active, good[:52]) == "malformed"  # no blocks at all
    counts = collector.status(active.id)["rejected"]
    assert counts == {"malformed": 5, "wrong_collection": 1, "width": 4}


def test_bad_json_is_told_apart_from_reports_of_another_width(collector: Collector):
    active = active_of(collector, draft())
    good = {"collection": active.id, "batch": "00" * 16, "reports": [{"report": "01"}]}
    malformed = [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        json.dumps(good | {"extra": 1}).encode(),
        json.dumps(good | {"batch": "00"}).encode(),
        json.dumps(good | {"reports": [{"report": "0g"}]}).encode(),
        json.dumps(good | {"reports": [{"report": "01", "member": 1}]}).encode(),
        json.dumps(good | {"reports": [{"report": "01", "member": 10**30}]}).encode(),
        json.dumps(good | {"reports": []}).encode(),
    ]
    for body in malformed:
        assert refused(collector, active, body, Form.JSON) == "malformed"
    wide = json.dumps(good | {"reports": [{"report": "0101"}]}).encode()
    assert refused(collector, active, wide, Form.JSON) == "width"
    other = json.dumps(good | {"collection": "00" * 32}).encode()
    assert refused(collector, active, other, Form.JSON) == "wrong_collection"
    assert take(collector, active, json.dumps(good).encode(), Form.JSON)["accepted"] == 1


def test_the_binary_and_the_json_form_of_a_batch_are_the_same_batch(collector: Collector):
    active = active_of(collector, draft())
    batch = Batch(active.id, new_batch_id(), (Block(0, 2, bytes([1, 2])),))
    assert not take(collector, active, encode_batch(batch))["duplicate"]
    twin = json.dumps(batch_to_json(batch, active.widths)).encode()
    assert take(collector, active, twin, Form.JSON)["duplicate"]


@pytest.mark.parametrize("together", [[], [["collector", "shuffler_1"]]], ids=["apart", "together"])
def test_a_shuffled_collection_takes_nothing_from_devices(collector: Collector, together: list):
    made = Collector(collector.store)
    me = {"name": "Pets", "identity": made.shuffle.desk.identity}
    terms = SHUFFLE | {"together": together, "collector": me}
    active = active_of(made, draft(shuffle=terms, invitations=True))
    assert not active.plain
    report = bytes(active.widths[0])
    batch = Batch(active.id, new_batch_id(), (Block(0, 1, report),))
    twin = json.dumps(batch_to_json(batch, active.widths)).encode()
    assert refused(made, active, encode_batch(batch), invitation="x") == "shuffled"
    assert refused(made, active, twin, Form.JSON) == "shuffled"
    assert refused(made, active, b"", Form.ARROW) == "shuffled"
    status = made.status(active.id)
    assert (status["reports"], status["rejected"]) == (0, {"shuffled": 3})
    made.stop()


def test_a_closed_collection_takes_nothing_but_knows_its_duplicates(collector: Collector):
    active = active_of(collector, draft())
    body = binary(active.id, bytes([1]))
    take(collector, active, body)
    collector.store.close_collection(active.id)
    assert refused(collector, active, binary(active.id, bytes([1]))) == "closed"
    assert take(collector, active, body)["duplicate"]
    assert collector.status(active.id)["rejected"] == {"closed": 1, "duplicate": 1}


def test_an_invitation_is_good_for_one_report_once(collector: Collector):
    active = active_of(collector, draft(invitations=True))
    first, second = collector.access.invite(active.id, 2)
    body = binary(active.id, bytes([1]))
    assert refused(collector, active, body) == "invitation"
    assert refused(collector, active, body, invitation="inv_made_up") == "invitation"
    assert refused(collector, active, binary(active.id, bytes([1, 2])), invitation=first) == "invitation"
    assert take(collector, active, body, invitation=first)["accepted"] == 1
    assert take(collector, active, body, invitation=first)["duplicate"]
    assert refused(collector, active, binary(active.id, bytes([1])), invitation=first) == "invitation"
    assert take(collector, active, binary(active.id, bytes([1])), invitation=second)["accepted"] == 1
    assert collector.status(active.id)["reports"] == 2


def test_one_of_several_questions_comes_in_blocks_by_member(collector: Collector):
    colour = {"name": "colour", "text": "?", "domain": {"kind": "booleans"}}
    size = {"name": "size", "text": "?", "domain": {"kind": "integers", "low": 0, "high": 999}}
    active = active_of(collector, draft(questions=[colour, size], minimum_cohort=1))
    assert active.widths == (2, 2)
    blocks = (Block(0, 2, bytes([1, 0, 0, 0])), Block(1, 1, (999).to_bytes(2, "little")))
    assert take(collector, active, encode_batch(Batch(active.id, new_batch_id(), blocks)))["accepted"] == 3
    padded = (Block(0, 1, bytes([1, 5])), Block(1, 1, (1000).to_bytes(2, "little")))
    receipt = take(collector, active, encode_batch(Batch(active.id, new_batch_id(), padded)))
    assert [item["index"] for item in receipt["rejected"]] == [0, 1]
    answers = collector.answers(active.id, 0.95).questions
    assert [question["n"] for question in answers] == [2, 1]
    assert answers[1]["rows"][999]["raw"]["estimate"] == 1


def test_distinct_reports_are_each_counted_once(collector: Collector):
    size = 1 << 18
    active = active_of(collector, wide_draft(size))
    values = np.random.default_rng(1).permutation(size).astype(active.dtype)
    bodies = [binary(active.id, part.tobytes(), width=4) for part in np.split(values, 64)]
    for body in bodies + bodies[:9]:
        take(collector, active, body)
    collector.folder.fold_all(active.id, 60)
    cells = collector.folder.total(active).cells
    assert cells.min() == cells.max() == 1


@pytest.mark.parametrize("kind", [kind.kind for kind in CATALOG])
def test_every_kind_of_tally_survives_storage(kind: str):
    mechanism = example(kind, "1")
    assert dump_tally(load_tally(mechanism, dump_tally(empty_tally(mechanism)))) == dump_tally(empty_tally(mechanism))
    value, coins = values_of(mechanism)[-1], SystemCoins()
    reports = mechanism.decode(b"".join(mechanism.privatize_one(value, coins) for _ in range(40)))
    for weights in (None, np.arange(40)):
        tally = mechanism.tally(reports, weights)
        loaded = load_tally(mechanism, dump_tally(tally))
        assert loaded.n == 40
        assert loaded.is_weighted == tally.is_weighted
        assert dump_tally(loaded) == dump_tally(tally)
        assert dump_tally(loaded + tally) == dump_tally(tally + tally)


def test_damaged_tallies_are_refused():
    mechanism, other = example("grr", "1"), example("grr", "2")
    data = dump_tally(mechanism.tally(np.zeros(3, mechanism.report_dtype)))
    for bad in (b"", data[:-1], data + b"\0", b"X" + data[1:], data[:38] + b"\1" + data[39:], data[:60]):
        with pytest.raises(ReportRejected):
            load_tally(mechanism, bad)
    with pytest.raises(ReportRejected, match="stored under"):
        load_tally(other, data)


def test_a_log_of_reports_is_split_into_shards():
    store = MemoryStore()
    collector = Collector(store, tasks=(PLAIN,), folding=FoldLimits(log_bytes=2000))
    try:
        olh = example("olh", "1")
        spec = olh.spec() | {"state": "log"}
        document = collector_document(spec, olh.size)
        active = collector.find(publish_document(store, document).id)
        for _ in range(5):
            reports = olh.privatize(np.zeros(200, np.int64), SystemCoins())
            take(collector, active, binary(active.id, reports.tobytes(), width=active.widths[0]))
            collector.folder.fold_all(active.id, 5)
        assert len(store.tallies(active.id)) > 1
        assert collector.folder.total(active).n == 1000
    finally:
        collector.stop()


def collector_document(mechanism: dict, size: int):
    from tacit.collector.collections.publish import Planner
    from tacit.wire.document import Collection

    domain = {"kind": "integers", "low": 0, "high": size - 1}
    planned = Planner(CATALOG).plan(draft(questions=[{"name": "value", "text": "?", "domain": domain}]))[0]
    return Collection.from_json(planned.to_json() | {"mechanism": mechanism}, CATALOG)
