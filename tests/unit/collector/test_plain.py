"""The common form of an upload is cut out of a body, and agrees with the careful decoder on every body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.catalog import CATALOG
from tacit.collector.collections.active import Active, activate
from tacit.collector.collections.publish import create_draft, publish
from tacit.collector.ingest.plain import plain_batch, plain_form, singles
from tacit.collector.server import open_store
from tacit.collector.service import Collector
from tacit.errors import ReportRejected
from tacit.wire.batch import Batch, Block, decode_batch, encode_batch, invitation_hash

BODIES = 4000


def draft(questions: int, **more: Any) -> dict[str, Any]:
    domain = {"kind": "integers", "low": 0, "high": 63}
    asked = [{"name": f"value_{i}", "text": "Which?", "domain": domain} for i in range(questions)]
    return (
        {"title": "Plain", "epsilon": "1", "questions": asked} | more | ({"policy": "one_of"} if questions > 1 else {})
    )


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Active]:
    """A question, one of three questions, and a question by invitation."""
    store = open_store(tmp_path_factory.mktemp("plain"))
    collector = Collector(store)
    try:
        drafts = {"one": draft(1), "sampled": draft(3), "invited": draft(1, invitations=True)}
        made = {name: create_draft(store, collector.planner, given).id for name, given in drafts.items()}
        records = {name: publish(store, collector.planner, each) for name, each in made.items()}
        return {name: activate(record, CATALOG) for name, record in records.items()}
    finally:
        collector.stop()
        store.close()


def careful(active: Active, body: bytes) -> tuple[bytes, bytes, int] | None:
    """Id, payload and count of a body by the decoder, if it has one block; None if there is none or it is refused."""
    try:
        batch = decode_batch(body, active.widths)
    except ReportRejected:
        return None
    one = batch.collection == active.id and len(batch.blocks) == 1 and batch.blocks[0].count > 0
    return (batch.batch, active.payload(batch), batch.blocks[0].count) if one else None


def mutated(body: bytes, rng: np.random.Generator) -> bytes:
    """A body with bytes changed, added, doubled or cut away; now and then as it was."""
    data = bytearray(body)
    for _ in range(int(rng.integers(0, 3))):
        at = int(rng.integers(len(data)))
        match int(rng.integers(4)):
            case 0:
                data[at] ^= 1 << int(rng.integers(8))
            case 1:
                data[at:at] = rng.bytes(int(rng.integers(1, 9)))
            case 2:
                del data[at : at + int(rng.integers(1, 9))]
            case _:
                data += data[52:]
        if not data:
            break
    return bytes(data)


@pytest.mark.parametrize("name", ["one", "sampled"])
def test_what_is_cut_out_is_what_the_decoder_reads(collections: dict[str, Active], name: str):
    active, rng, taken = collections[name], np.random.default_rng(7), 0
    for _ in range(BODIES):
        count = 1 if active.sampled else int(rng.integers(1, 4))
        block = Block(int(rng.integers(len(active.widths))), count, rng.bytes(count * active.widths[0]))
        body = mutated(encode_batch(Batch(active.id, rng.bytes(16), (block,))), rng)
        found, expected = plain_batch(active, body), careful(active, body)
        if found is not None:
            taken += 1
            # A member that does not exist is found when reports are validated, before anything is stored.
            valid = active.mechanism.valid(np.frombuffer(found.payload, active.dtype)).all()
            assert (found.batch, found.payload, found.count) == expected or not (valid or expected)
            assert (found.collection, found.invitation, dict(found.rejected)) == (active.id, None, {})
            # The head of the request may stand before the body.
            form = plain_form(active, len(body))
            assert form is not None and form.batch(b"head" + body, 4) == found
    assert BODIES // 4 < taken < BODIES


@pytest.mark.parametrize("name", ["one", "sampled"])
def test_single_reports_that_are_taken_apart_together_are_the_same_batches(collections: dict[str, Active], name: str):
    active, rng = collections[name], np.random.default_rng(8)
    blocks = [Block(int(rng.integers(len(active.widths))), 1, rng.bytes(active.widths[0])) for _ in range(200)]
    bodies = [encode_batch(Batch(active.id, rng.bytes(16), (block,))) for block in blocks]
    if active.sampled:
        # A member that no document has: it fits the form, and is no valid report.
        bodies[7] = encode_batch(Batch(active.id, rng.bytes(16), (Block(99, 1, bytes(active.widths[0])),)))
    form = plain_form(active, len(bodies[0]))
    assert form is not None and form.is_single and all(form.fits(b"head" + body, 4) for body in bodies)
    batches, valid = singles(active, bodies)
    alone = [plain_batch(active, body) for body in bodies]
    assert list(batches) == alone
    judged = [bool(active.mechanism.valid(np.frombuffer(each.payload, active.dtype)).all()) for each in alone if each]
    assert valid.tolist() == judged
    assert 0 < sum(judged) < len(judged), "some of them are valid, and some are not"


def test_what_is_more_than_one_report_or_spends_something_is_not_taken_apart_with_others(
    collections: dict[str, Active],
):
    one, invited = collections["one"], collections["invited"]
    double, spending = plain_form(one, 60 + 2 * one.widths[0]), plain_form(invited, 60 + invited.widths[0], "told")
    assert double is not None and spending is not None
    assert not double.is_single and not spending.is_single


def test_an_invitation_is_spent_with_one_report(collections: dict[str, Active]):
    active = collections["invited"]
    width = active.widths[0]

    def body(count: int) -> bytes:
        return encode_batch(Batch(active.id, bytes(16), (Block(0, count, bytes(count * width)),)))

    found = plain_batch(active, body(1), "told")
    assert found is not None and found.invitation == invitation_hash("told")
    assert plain_batch(active, body(1)) is None, "without an invitation"
    assert plain_batch(active, body(2), "told") is None, "one invitation for two reports"


def test_lengths_that_hold_no_report(collections: dict[str, Active]):
    active = collections["one"]
    assert all(plain_form(active, length) is None for length in (0, 59, 60))
