"""AUD-LONG: random walks of answering, retrying and restarting never let two reports out on one question.

A walk is a seeded list of steps on one ledger file; whatever the order, epsilon is spent once per question, or once per
different value where reports are memoised, and what was drawn is sent again with the same bytes.
"""

from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.unit.client.test_client import BASE, DOCUMENTS, respondent

from tacit.client import AlreadyAnswered
from tacit.client.transport import Outcome
from tacit.wire.batch import decode_batch

COLOURS = ("red", "café")
FRESH = ("one question", "all of two")
"""Collections that are answered once."""


@pytest.mark.parametrize("seed", range(12))
def test_a_question_is_answered_once_whatever_happens(tmp_path: Path, seed: int) -> None:
    rng, path = np.random.default_rng(seed), tmp_path / "ledger.json"
    sent: dict[str, set[bytes]] = defaultdict(set)
    answered: set[str] = set()
    memoised: dict[str, set[bytes]] = defaultdict(set)
    for _ in range(25):
        # A new respondent on the same file is a restart; uploads fail half of the time.
        client, wire = respondent(path, *(Outcome("pending" if rng.random() < 0.5 else "sent") for _ in range(30)))
        name, colour = str(rng.choice(["one question", "all of two", "memoised", "retry"])), str(rng.choice(COLOURS))
        if name == "retry":
            client.flush()
        elif name == "memoised":
            client.answer(DOCUMENTS[name], {"colour": colour}, collector=BASE)
            memoised[colour].add(decode_batch(wire.uploads[0][1], [1]).blocks[0].payload)
        else:
            answers = {"colour": colour} | ({"smoker": 1} if name == "all of two" else {})
            if name in answered:
                with pytest.raises(AlreadyAnswered):
                    client.answer(DOCUMENTS[name], answers, collector=BASE)
            else:
                client.answer(DOCUMENTS[name], answers, collector=BASE)
                answered.add(name)
        for _, batch, _ in wire.uploads:
            # Bytes 4 to 36 of a batch name its collection.
            sent[batch[4:36].hex()].add(batch)
        spent = sum((DOCUMENTS[one].mechanism.budget.declared for one in answered), Fraction(0))
        each = DOCUMENTS["memoised"].mechanism.budget.declared
        assert client.ledger().total == spent + each * len(memoised)
    assert all(len(reports) == 1 for reports in memoised.values())
    assert all(len(sent[DOCUMENTS[one].id]) <= 1 for one in FRESH)


def test_a_cleared_ledger_draws_anew() -> None:
    """Nothing can tell that a device answered before; LIMITATIONS says so, and invitations bound it."""
    reports = set[bytes]()
    for _ in range(40):
        client, wire = respondent(None)
        client.answer(DOCUMENTS["buckets"], DOCUMENT_ANSWER, collector=BASE)
        reports.add(decode_batch(wire.uploads[0][1], [1]).blocks[0].payload)
        assert client.ledger().total == DOCUMENTS["buckets"].mechanism.budget.declared
    # Reports of at least three noisy bits: forty equal ones have probability below 2^-39.
    assert len(reports) > 1


DOCUMENT_ANSWER = {DOCUMENTS["buckets"].questions[0].name: 1}
