"""10^4 damaged batches, 10^5 with `-m slow`: no error is undocumented, and none is counted otherwise than it says."""

import http.client
import json
from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.service.fuzz import INPUTS, Dice, Report, damaged, damaged_twin, read_binary, read_twin, twin
from tests.service.memory import MemoryStore
from tests.service.plain import PLAIN, NoNoise, draft, plain_app, serving, wide_draft
from tests.service.waiting import PATIENT_SECONDS

from tacit.catalog import CATALOG
from tacit.collector.collections.active import Active, Shelf
from tacit.collector.collections.publish import Planner, publish_document
from tacit.collector.http.reports import FORMS
from tacit.collector.ingest.uploads import REASONS, Form, Ingest, JudgedBatch, Rejections
from tacit.device.numbers.coins import ReplayCoins
from tacit.hosting.limits import Limits
from tacit.hosting.problems import KINDS, Problem
from tacit.tasks.table import TASKS
from tacit.wire.batch import Batch, Block, encode_batch

PET = {"name": "pet", "text": "Pet?", "domain": {"kind": "categories", "labels": ["cat", "dog", "fish"]}}
AGE = {"name": "age", "text": "Age?", "domain": {"kind": "integers", "low": 0, "high": 99}, "task": "mean"}
SMOKES = {"name": "smokes", "text": "Smoke?", "domain": {"kind": "booleans"}}

DRAFTS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "one byte": (draft(), TASKS),
    "wide": (wide_draft(50_000), TASKS),
    "one of three": (draft(questions=[PET, AGE, SMOKES], policy="one_of"), TASKS),
    "all of two": (draft(questions=[PET, SMOKES], policy="all_of"), TASKS),
    "without noise": (wide_draft(60_000), (PLAIN,)),
}
REFUSALS = {"malformed", "width", "wrong_collection"}
PLAIN_FORMS = (Form.BINARY, Form.JSON)
"""Those that hold reports without rows."""


class Bench:
    """One collection with an ingest of its own, and a model of both."""

    def __init__(self, name: str) -> None:
        given, tasks = DRAFTS[name]
        store, catalog = MemoryStore(), (*CATALOG, NoNoise)
        record = publish_document(store, Planner(catalog, tasks).plan(given)[0])
        self.rejections, self.checked = Rejections(), 0
        self.ingest = Ingest(Shelf(store, catalog), self.rejections)
        self.active: Active = self.ingest.find(record.id)
        self.genuine = [self._genuine(bytes([i])) for i in range(64)]

    def _genuine(self, seed: bytes) -> Report:
        """What a device would send."""
        collection = self.active.collection
        answers = {question.name: question.domain.decode(seed[0] % 2) for question in collection.questions}
        report = collection.mechanism.privatize_one(collection.encode(answers), ReplayCoins(seed))
        return (int.from_bytes(report[:4], "little"), report[4:]) if self.active.sampled else (0, report)

    def some_reports(self, dice: Dice) -> list[Report]:
        """Up to six reports; many of them no mechanism could have made."""
        widths = self.active.widths
        made: list[Report] = [dice.one_of(self.genuine) for _ in range(dice.below(4))]
        junk = [dice.below(len(widths)) for _ in range(dice.below(3) + (not made))]
        return [*made, *((member, dice.bytes(widths[member])) for member in junk)]

    def binary(self, dice: Dice) -> bytes:
        blocks = tuple(Block(member, 1, payload) for member, payload in self.some_reports(dice))
        if len(self.active.widths) == 1:
            blocks = (Block(0, len(blocks), b"".join(block.payload for block in blocks)),)
        return damaged(encode_batch(Batch(self.active.id, dice.bytes(16), blocks)), dice)

    def json(self, dice: Dice) -> bytes:
        return damaged_twin(twin(self.active.id, dice.bytes(16), self.some_reports(dice), dice), dice)

    def stored_form(self, report: Report) -> bytes:
        """A report in the mechanism's layout, member first where one of several is answered."""
        member, payload = report
        return member.to_bytes(4, "little") + payload if self.active.sampled else payload

    def judge(self, body: bytes, form: Form) -> "JudgedBatch | str":
        """What the collector says; anything but a problem would end the test."""
        try:
            return self.ingest.judge(self.active, body, form)
        except Problem as problem:
            assert problem.kind in KINDS
            return problem.kind

    def check(self, body: bytes, form: Form) -> str:
        """The verdict on one body must be that of the second reading; returns it in a word."""
        read = (read_binary if form is Form.BINARY else read_twin)(body, self.active.widths)
        verdict = self.judge(body, form)
        if isinstance(verdict, str):
            assert verdict in REFUSALS, verdict
            assert read is None or read[0] != self.active.id or not read[1], (verdict, body)
            return verdict
        assert read is not None, body
        assert read[0] == self.active.id, body
        self._check_upload(verdict, [self.stored_form(report) for report in read[1]])
        return "stored" if verdict.batch else "nothing"

    def _check_upload(self, upload: JudgedBatch, reports: list[bytes]) -> None:
        mechanism = self.active.mechanism
        valid = mechanism.valid(np.frombuffer(b"".join(reports), self.active.dtype)).tolist()
        assert upload.rejected == tuple(i for i, fits in enumerate(valid) if not fits)
        assert upload.accepted == sum(valid)
        stored = b"".join(report for report, fits in zip(reports, valid, strict=True) if fits)
        assert (upload.batch.payload if upload.batch else b"") == stored
        self.checked += 1
        # What is stored must be countable, whatever it is; large tables take their time.
        if self.checked % 32 == 0:
            assert mechanism.tally(mechanism.decode(stored)).n == upload.accepted


@pytest.mark.parametrize("inputs", [INPUTS, pytest.param(10 * INPUTS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", PLAIN_FORMS, ids=lambda form: form.value)
@pytest.mark.parametrize("place", range(len(DRAFTS)), ids=list(DRAFTS))
def test_damaged_batches_are_judged_as_the_specification_says(place: int, form: Form, inputs: int):
    bench, dice, verdicts = Bench(list(DRAFTS)[place]), Dice(place, form is Form.JSON), Counter[str]()
    make = bench.binary if form is Form.BINARY else bench.json
    for _ in range(inputs):
        verdicts[bench.check(make(dice), form)] += 1
    # The mutations must reach every branch often, or the test proves little.
    assert min(verdicts[name] for name in (*REFUSALS, "stored")) > inputs // 100, verdicts
    counted = bench.rejections.waiting(bench.active.id)
    assert counted == {name: verdicts[name] for name in REFUSALS}
    assert counted.keys() <= set(REASONS)


@pytest.mark.parametrize("form", list(Form), ids=lambda form: form.value)
def test_huge_and_deep_bodies_are_refused_at_once(form: Form):
    bench = Bench("one byte")
    head = f'{{"collection":"{bench.active.id}","batch":"{"0" * 32}","reports":'.encode()
    count = b"\xff\xff\xff\xff"
    for body in (
        b"",
        b"[" * (4 << 20),
        b'{"a":' * (1 << 19),
        head + b"[" * (1 << 20),
        head + b"9" * (1 << 20) + b"}",
        head + b'[{"member":' + b"9" * (1 << 20) + b',"report":"00"}]}',
        head + b'"' + b"\\u0000" * (1 << 18) + b'"}',
        head[:-10] + b'"' + b"\xf0" * (1 << 20) + b'"}',
        b"TCB1" + bytes.fromhex(bench.active.id) + bytes(16) + bytes(4) + count,
        b"TCB1" + bytes.fromhex(bench.active.id) + bytes(16) + (bytes(4) + b"\x01\0\0\0") * (1 << 18),
    ):
        assert bench.judge(body, form) in REFUSALS


def test_an_invitation_is_good_for_exactly_one_report():
    store = MemoryStore()
    record = publish_document(store, Planner(CATALOG).plan(draft(invitations=True))[0])
    rejections = Rejections()
    ingest = Ingest(Shelf(store, CATALOG), rejections)
    active, dice = ingest.find(record.id), Dice(99)
    for i in range(2000):
        count, invitation = 1 + dice.below(3), dice.one_of(["", "inv_x", "\u00ff" * 300, "\ud800", "a\0b"])
        body = damaged(encode_batch(Batch(record.id, dice.bytes(16), (Block(0, count, bytes(count)),))), dice)
        read = read_binary(body, active.widths)
        try:
            upload = ingest.judge(active, body, Form.BINARY, invitation)
            assert invitation
            assert read is not None
            assert len(read[1]) == 1, i
            assert upload.batch is None or upload.batch.invitation
        except Problem as problem:
            assert problem.kind in REFUSALS | {"invitation"}


def sent(connection: http.client.HTTPConnection, path: str, body: bytes, media_type: str) -> tuple[int, Any]:
    connection.request("POST", path, body, {"Content-Type": media_type})
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read())


def test_over_http_nothing_is_a_fault_of_the_collector_and_every_receipt_is_true():
    """Values without noise: what was counted must be, value by value, what the receipts said."""
    types = {form: [name for name, of in FORMS.items() if of is form] for form in Form}
    dice, expected, statuses = Dice(7), Counter[int](), Counter[int]()
    with serving(plain_app(limits=Limits(requests_per_second=0))) as client:
        mine = client.publish(wide_draft(60_000, minimum_cohort=1))
        bench = Bench("without noise")
        bench.active = replace(bench.active, id=mine)
        address = urlsplit(str(client.http.base_url))
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENT_SECONDS)
        for _ in range(min(3 * INPUTS // 10, 300_000)):
            form = dice.one_of(list(PLAIN_FORMS))
            body = bench.binary(dice) if form is Form.BINARY else bench.json(dice)
            status, reply = sent(connection, f"/c/{mine}/reports", body, dice.one_of(types[form]))
            statuses[status] += 1
            if status == 201:
                read = (read_binary if form is Form.BINARY else read_twin)(body, bench.active.widths)
                assert read is not None
                values = [int.from_bytes(payload, "little") for _, payload in read[1]]
                assert [item["index"] for item in reply["rejected"]] == [i for i, v in enumerate(values) if v >= 60_000]
                expected.update(value for value in values if value < 60_000)
                assert reply["accepted"] == sum(value < 60_000 for value in values)
            else:
                assert reply["status"] == status
        connection.close()
        rows = client.answers(mine)["questions"][0]["rows"]
        total = expected.total()
        assert client.status(mine)["reports"] == total
        assert {
            i: round(row["raw"]["estimate"] * total) for i, row in enumerate(rows) if row["raw"]["estimate"]
        } == expected
    assert statuses.keys() == {201, 400, 409, 422}, statuses
