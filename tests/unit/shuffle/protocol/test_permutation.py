"""The secret order: uniform, decided by all hiders together, and the same on every machine."""

from itertools import permutations

import numpy as np
import pytest

from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol import permutation as module
from tacit.shuffle.protocol.permutation import check_reveal, commit, permutation, round_key
from tacit.testing.statistics import assert_fits, chi_square_p


def key(i: int) -> bytes:
    return i.to_bytes(32, "little")


def test_all_orders_are_equally_likely():
    """False-alarm probability 1e-7. Power: with one of the 24 orders missing, 4800 draws give p below 1e-25."""
    places = {order: i for i, order in enumerate(permutations(range(4)))}
    draws = 4800
    cells = np.zeros(24, np.int64)
    for i in range(draws):
        cells[places[tuple(permutation(key(i), 4).tolist())]] += 1
    assert_fits(cells, np.full(24, 1 / 24))
    assert chi_square_p(draws / 24 + draws / 24 / 23, 23) < 1e-25


def test_the_order_is_deterministic_and_complete():
    first, second = permutation(key(7), 1000), permutation(key(7), 1000)
    assert (first == second).all() and sorted(first.tolist()) == list(range(1000))
    assert not (first == permutation(key(8), 1000)).all()
    assert permutation(key(1), 1).tolist() == [0] and permutation(key(1), 0).tolist() == []


def test_equal_keys_are_drawn_again(monkeypatch: pytest.MonkeyPatch):
    drawn = [np.array([5, 5, 1], np.uint64), np.array([2, 9, 4], np.uint64)]

    class Scripted(AesStream):
        def array(self, count: int):
            assert count == 3
            return drawn.pop(0)

    monkeypatch.setattr(module, "AesStream", Scripted)
    assert permutation(key(0), 3).tolist() == [0, 2, 1] and not drawn


def test_every_seed_and_every_place_changes_the_key():
    seeds = [key(1), key(2)]
    keys = {
        round_key(key(9), 1, 0, seeds),
        round_key(key(8), 1, 0, seeds),
        round_key(key(9), 2, 0, seeds),
        round_key(key(9), 1, 1, seeds),
        round_key(key(9), 1, 0, [key(1), key(3)]),
        round_key(key(9), 1, 0, [key(2), key(1)]),
    }
    assert len(keys) == 6


def test_seeds_other_than_the_committed_and_copied_ones_are_refused():
    check_reveal(commit(key(1)), key(1), "shuffler_1")
    for seed in (key(2), key(1) + b"\x00", b""):
        with pytest.raises(ProtocolViolation, match="shuffler_1"):
            check_reveal(commit(key(1)), seed, "shuffler_1")
    with pytest.raises(ProtocolViolation, match="copied"):
        round_key(key(9), 1, 0, [key(1), key(1)])
