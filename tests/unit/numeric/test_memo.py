"""Memoisation: the coins' test vector, stable answers, the cap, guarantees by enumeration, delegation."""

from itertools import product
from math import inf, log

import numpy as np
import pytest

from tacit.device.kinds.bit_flip import DBitFlipDevice
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.mean import OneBitDevice
from tacit.device.kinds.memo import MemoCoins, MemoizedDevice, Memory, longitudinal
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, InvalidValue, SpecMismatch
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.mean import OneBit
from tacit.numeric.memo import Memoized
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE

KEY = bytes(range(32))


def test_coins_match_the_published_vector():
    coins = MemoCoins(KEY, "c1", bytes(32), b"blue")
    block = bytes.fromhex("bbf152033e8675d8d141c169e3c31117ce9c3ed6d7697cc45bff65ec4285217d")
    words = [coins.word() for _ in range(4)]
    assert words == [int.from_bytes(block[i : i + 8], "big") for i in range(0, 32, 8)]
    assert [word < 3 << 62 for word in words] == [True, False, False, True]
    assert coins.secure and coins.word() not in words


def test_coins_do_not_depend_on_how_they_are_read():
    one, many = (MemoCoins(KEY, "c1", bytes(32), b"blue") for _ in range(2))
    assert b"".join(one.word().to_bytes(8, "little") for _ in range(11)) == many.words(11)


@pytest.mark.parametrize("field", range(4))
def test_coins_of_another_key_campaign_mechanism_or_value_differ(field):
    parts = [KEY, "c1", bytes(32), b"blue"]
    other = [bytes(32), "c2", bytes([1] * 32), b"red"]
    changed = [other[i] if i == field else parts[i] for i in range(4)]
    assert MemoCoins(*parts).word() != MemoCoins(*changed).word()


INNER = [
    GRRDevice(size=4, epsilon="1"),
    OneBitDevice(top=12, epsilon="1"),
    DBitFlipDevice(size=6, sampled=2, epsilon="1"),
]


@pytest.mark.parametrize("inner", INNER)
def test_the_same_value_always_gets_the_same_report(inner):
    m = MemoizedDevice(inner=inner, most_values=10)
    memory = Memory(KEY, "week")
    first = [m.report(v, memory) for v in range(4)]
    assert [m.report(v, memory) for v in range(4)] == first
    assert len(memory.seen) <= 4 and all(len(tag) == 32 for tag in memory.seen)
    # Another campaign draws afresh; 4 equal reports in all 30 campaigns would be a coincidence below 1e-15.
    assert any([m.report(v, Memory(KEY, f"c{i}")) for v in range(4)] != first for i in range(30))


def test_after_the_cap_the_last_report_is_repeated():
    m = MemoizedDevice(inner=GRRDevice(size=64, epsilon="8"), most_values=2)
    memory = Memory(KEY, "cap")
    a, b = m.report(1, memory), m.report(2, memory)
    assert m.report(3, memory) == b and len(memory.seen) == 2
    assert m.report(1, memory) == a and m.report(3, memory) == a


def test_dbitflip_keeps_its_buckets_and_hides_moves_outside_them():
    m = MemoizedDevice(inner=DBitFlipDevice(size=50, sampled=2, epsilon="1"), most_values=3)
    memory = Memory(KEY, "J")
    reports = [m.report(v, memory) for v in range(50)]
    assert len({r[:2] for r in reports}) == 1
    held = set(reports[0][:2])
    assert len({r for v, r in enumerate(reports) if v not in held}) == 1
    assert len(memory.seen) == 3


def test_onebit_is_rounded_to_the_ends_by_default():
    m = MemoizedDevice(inner=OneBitDevice(top=12, epsilon="1"), most_values=2)
    assert m.step == 12
    for i in range(20):
        memory = Memory(bytes([i]) * 32, "")
        for v in range(13):
            m.report(v, memory)
        assert len(memory.seen) == 2
    assert MemoizedDevice(inner=OneBitDevice(top=12, epsilon="1"), most_values=2, step=3).step == 3


def longest(epsilon, times, *, flip=0.0):
    """Largest losses between all pairs of sequences over two values: (equal patterns, different patterns)."""
    keep = np.exp(epsilon) / (np.exp(epsilon) + 1)
    laws = {}
    for sequence in product(range(2), repeat=times):
        law = dict.fromkeys(product(range(2), repeat=times), 0.0)
        for memo in product(range(2), repeat=2):
            chance = np.prod([keep if memo[v] == v else 1 - keep for v in range(2)])
            for out in law:
                sent = [1 - flip if out[t] == memo[v] else flip for t, v in enumerate(sequence)]
                law[out] += chance * np.prod(sent)
        laws[sequence] = law
    losses = {True: 0.0, False: 0.0}
    for a, b in product(laws, repeat=2):
        same = [x == a[0] for x in a] == [x == b[0] for x in b]
        for out, chance in laws[a].items():
            other = laws[b][out]
            loss = 0.0 if chance == 0 else inf if other == 0 else log(chance / other)
            losses[same] = max(losses[same], loss)
    return losses[True], losses[False]


@pytest.mark.parametrize("times", [2, 3])
def test_longitudinal_guarantees_by_enumeration(times):
    constant, same, different, _ = longitudinal(1.0, 2)
    equal, unequal = longest(1.0, times)
    assert constant.epsilon == 1 and equal == pytest.approx(same.epsilon) == 2
    assert unequal == different.epsilon == inf
    _, same, different, event = longitudinal(1.0, 2, flip=0.2, edits=times - 1)
    equal, unequal = longest(1.0, times, flip=0.2)
    assert equal <= same.epsilon and unequal <= different.epsilon < inf
    assert event.epsilon == pytest.approx(1.3863, abs=1e-4)


def test_guarantees_hold_in_exact_arithmetic():
    m = MemoizedDevice(inner=GRRDevice(size=3, epsilon="1"), most_values=4)
    assert [realised <= bound for _, realised, bound in m.guarantees()] == [True, True]
    assert m.guarantees()[1][1] == m.inner.realised_odds() ** 4
    assert m.holds()


@pytest.mark.parametrize(
    ("inner", "size"),
    [
        (GRR(size=4, epsilon="1"), 4),
        (OUE(size=4, epsilon="1"), 4),
        (OneBit(top=6, epsilon="1"), 7),
        (DBitFlip(size=4, sampled=2, epsilon="1"), 4),
    ],
)
def test_server_half_is_the_inner_mechanism(inner, size):
    m = Memoized(inner=inner, most_values=2)
    values = np.arange(30) % size
    reports = m.privatize(values, ReplayCoins(b"memo"))
    coins = ReplayCoins(b"memo")
    assert reports.tobytes() == b"".join(m.privatize_one(int(v), coins) for v in values)
    mine, plain = m.estimate(m.tally(reports)), inner.estimate(inner.tally(reports))
    np.testing.assert_array_equal(mine.value, plain.value)
    np.testing.assert_array_equal(mine.variance, plain.variance)
    both = m.tally(reports[:10]) + m.tally(reports[10:])
    assert (both.cells == m.tally(reports).cells).all()
    with pytest.raises(SpecMismatch):
        inner.tally(reports) + m.tally(reports)
    again = Memoized.from_spec(m.spec())
    assert again == m and type(again.inner) is type(inner)


def test_reports_of_new_devices_have_the_inner_law():
    """3000 devices, each output within 5.5 standard errors of its probability: false alarm below 2e-7."""
    m = Memoized(inner=GRR(size=4, epsilon="1"), most_values=1)
    reports = m.privatize(np.zeros(3000, int), ReplayCoins(b"law"))
    p = np.exp(m.log_prob(m.all_reports(), 0))
    seen = np.bincount(reports, minlength=4) / 3000
    assert (np.abs(seen - p) < 5.5 * np.sqrt(p * (1 - p) / 3000)).all()


def test_refusals():
    grr = GRRDevice(size=4, epsilon="1")
    for wrong in (
        {"most_values": 0},
        {"inner": OLH(size=4, epsilon="1")},
        {"inner": {"kind": "grr", "size": 4}},
        {"inner": 3},
        {"epsilon": "0.5"},
        {"step": 2},
        {"inner": OneBitDevice(top=12, epsilon="1"), "step": 5},
    ):
        with pytest.raises(InvalidSpec):
            MemoizedDevice(**({"inner": grr, "most_values": 2} | wrong))
    m = MemoizedDevice(inner=grr, most_values=2)
    memory = Memory(KEY, "c")
    for value in (4, -1, True, "x"):
        with pytest.raises(InvalidValue):
            m.report(value, memory)
    assert memory.seen == []
    with pytest.raises(InvalidSpec, match="32"):
        Memory(b"short", "c")
    assert "secret" not in repr(memory)
