"""Opening what came out of a shuffle: in pieces, by several processes, with notes of progress."""

import numpy as np
import pytest

from tacit.collector.shuffle import opening
from tacit.collector.shuffle.opening import SessionKeys, open_all, rows_of
from tacit.collector.shuffle.release import batch_of
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ProtocolViolation
from tacit.shuffle.protocol.rehearsal import Rehearsed, rehearse
from tacit.shuffle.protocol.sealing import seal_word


def sealed(count: int) -> tuple[Rehearsed, np.ndarray]:
    coins = ReplayCoins(b"opening")
    made = rehearse(coins)
    rows = b"".join(seal_word(made.session, word, coins) for word in range(count))
    return made, np.frombuffer(rows, np.uint8).reshape(count, 56).copy()


@pytest.mark.parametrize(
    "alone", [pytest.param(0, marks=pytest.mark.slow, id="processes"), pytest.param(100, id="one")]
)
def test_pieces_are_opened_in_order_and_progress_is_noted(monkeypatch: pytest.MonkeyPatch, alone: int) -> None:
    monkeypatch.setattr(opening, "ALONE_ROWS", alone)
    monkeypatch.setattr(opening, "CHUNK_ROWS", 20)
    made, rows = sealed(50)
    rows[7, 40] ^= 1
    rows[9] = rows[8]
    notes: list[int] = []
    opened = open_all(SessionKeys(made.session, made.keys[0].private), rows, notes.append)
    assert notes == [20, 40, 50]
    assert opened.words.tolist() == [word for word in range(50) if word not in (7, 9)]
    assert (opened.rows, opened.failures, opened.duplicates) == (50, 1, 1)


def test_no_rows_are_opened_without_a_word() -> None:
    made, _ = sealed(0)
    assert (
        open_all(SessionKeys(made.session, made.keys[0].private), np.zeros((0, 56), np.uint8), lambda done: None).rows
        == 0
    )


def test_rows_of_a_chain_must_have_the_right_size() -> None:
    chain = rehearse(ReplayCoins(b"chain"), mode="ss").session
    assert rows_of(chain, {3: bytes(112)}, 99).shape == (2, 56)
    with pytest.raises(ProtocolViolation, match="shuffler_3: its rows are not 56 bytes each"):
        rows_of(chain, {3: bytes(100)}, 99)


def test_the_batch_of_a_session_is_always_the_same_and_of_no_other() -> None:
    assert batch_of("00" * 32) == batch_of("00" * 32) != batch_of("01" * 32)
    assert len(batch_of("00" * 32)) == 16
