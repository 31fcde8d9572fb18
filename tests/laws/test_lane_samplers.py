"""The laws of samplers that read coin words bit by bit, and of what is built on them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import pytest
from tests.laws.intervals import (
    EPSILONS,
    ID,
    Law,
    below,
    check_complete,
    check_law,
    check_log_prob,
    check_unbiased,
    has_bit,
    lane_by_lane,
    lane_law,
    largest_ratio,
    law,
    laws_of,
    mean,
)

from tacit.device.kinds.unary import bit_planes, draw_bits, draw_lanes
from tacit.device.numbers.coins import Coins, ReplayCoins, ScriptedCoins
from tacit.device.numbers.exact import WORD
from tacit.oracles.rappor import RAPPOR, BasicRAPPOR
from tacit.oracles.sketch import CMS
from tacit.oracles.unary import OUE, RUE, SUE, THE

SOME_THRESHOLDS = [1, 2, 3 << 62, WORD // 2, WORD - 1, 0x123456789ABCDEF1, WORD // 3]


@pytest.mark.parametrize("threshold", SOME_THRESHOLDS, ids=hex)
def test_a_lane_is_set_by_exactly_as_many_words_as_its_threshold(threshold: int):
    for lane, planes in ((1, bit_planes(threshold, 0)), (0, bit_planes(0, threshold))):
        found = lane_law(lambda c, lane=lane, planes=planes: draw_lanes(1, planes, lane, c))
        assert found == {1: Fraction(threshold, WORD), 0: Fraction(WORD - threshold, WORD)}


def test_lanes_are_independent_over_all_sequences_of_short_words():
    """Three lanes, every pair of thresholds of three bits, every sequence of three words."""
    sequences = list(product(range(8), repeat=3))
    for t1, t0, lane in product(range(1, 8), range(1, 8), range(8)):
        planes = [(t1 >> j & 1, t0 >> j & 1) for j in (2, 1, 0)]
        limits = [t1 if lane >> i & 1 else t0 for i in range(3)]
        for words in sequences[(t1 + t0 + lane) % 4 :: 4]:
            numbers = [sum((words[r] >> i & 1) << 2 - r for r in range(3)) for i in range(3)]
            expected = sum((number < limit) << i for i, (number, limit) in enumerate(zip(numbers, limits, strict=True)))
            assert draw_lanes(7, planes, lane, ScriptedCoins(list(words))) == expected


def test_lanes_that_do_not_exist_are_never_set_and_never_waited_for():
    for words in product(range(8), repeat=2):
        planes = [(1, 0), (0, 1)]
        both = draw_lanes(3, planes, 1, ScriptedCoins(list(words)))
        assert both == draw_lanes(7, planes, 1, ScriptedCoins(list(words))) & 3


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 130])
def test_every_block_of_lanes_has_words_of_its_own(size: int):
    """Bit i of a report is column i mod 64 of the words of block i // 64, compared with its threshold."""
    t1, t0 = 0xC000000000000001, 0x3FFFFFFFFFFFFFFF
    planes = bit_planes(t1, t0)
    for turn in range(20):
        ones, stream = 1 << turn * 7 % size, ReplayCoins(b"block%d" % turn)
        report = int.from_bytes(draw_bits(size, ones, planes, stream), "little")
        again = ReplayCoins(b"block%d" % turn)
        for start in range(0, size, 64):
            open_ = set(range(start, min(size, start + 64)))
            for j in range(63, -1, -1):
                word = again.word()
                for i in sorted(open_):
                    threshold, drawn = (t1 if ones >> i & 1 else t0) >> j & 1, word >> i - start & 1
                    if threshold != drawn:
                        assert report >> i & 1 == (drawn < threshold)
                        open_.remove(i)
                if not open_:
                    break
            assert not any(report >> i & 1 for i in open_)
        assert stream.word() == again.word()
        assert report >> size == 0


UNARY: dict[str, Callable[[Any], Any]] = {
    "sue": lambda e: SUE(size=2, epsilon=e),
    "oue": lambda e: OUE(size=2, epsilon=e),
    "rue": lambda e: RUE(size=2, epsilon=e),
    "the": lambda e: THE(size=2, epsilon=e),
    "brappor": lambda e: BasicRAPPOR(size=2, epsilon=e),
}


# What differs is the pair of thresholds, and the machine runs four thousand paths of up to 128 bits for every one.
FOUR = [("the", "0.001"), ("the", "1"), ("oue", "0.001"), ("oue", "1")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), FOUR)
def test_two_lanes_to_the_last_of_64_bits(name: str, epsilon: str):
    m = UNARY[name](epsilon)
    laws = [lane_law(lambda c, v=v: m.privatize_one(v, c)) for v in range(2)]
    check_law(m, laws, [0, 1])
    check_complete(m, laws)
    for v, found in enumerate(laws):
        assert [mean(found, has_bit(i)) for i in range(2)] == [m.p if i == v else m.q for i in range(2)]


LANES: dict[str, Callable[[Any], Any]] = {
    "sue": lambda e: SUE(size=3, epsilon=e),
    "oue": lambda e: OUE(size=3, epsilon=e),
    "rue": lambda e: RUE(size=3, epsilon=e),
    "the": lambda e: THE(size=3, epsilon=e),
    "the_half": lambda e: THE(size=3, epsilon=e, theta="0.5"),
    "the_one": lambda e: THE(size=3, epsilon=e, theta="1"),
    "brappor": lambda e: BasicRAPPOR(size=3, epsilon=e),
    "cms": lambda e: CMS(size=4, epsilon=e, rows=3, width=4, key=7),
}


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", EPSILONS, ids=ID)
@pytest.mark.parametrize("name", LANES)
def test_unary_kinds_have_the_law_they_state(name: str, epsilon: Any):
    m = LANES[name](epsilon)
    laws = laws_of(m, below(m))
    check_law(m, laws, below(m))
    check_complete(m, laws)
    if name != "cms":
        check_unbiased(m, laws)
        for v, found in enumerate(laws):
            assert [mean(found, has_bit(i)) for i in range(3)] == [m.p if i == v else m.q for i in range(3)]


ENDS = ("0.001", "32")
LAYERED: dict[str, Callable[[Any], Any]] = {
    "brappor": lambda e: BasicRAPPOR(size=3, epsilon=e, zero="0.25", one="0.75"),
    "brappor_edges": lambda e: BasicRAPPOR(size=2, epsilon=e, zero="0", one="1"),
    "rappor": lambda e: RAPPOR(bits=3, cohorts=3, key=7, epsilon=e, zero="0.1", one="0.6"),
    "rappor_two_hashes": lambda e: RAPPOR(bits=4, cohorts=1, key=7, hashes=2, epsilon=e, zero="0.5", one="0.75"),
    "rappor_one_shot": lambda e: RAPPOR(bits=4, cohorts=2, key=7, hashes=2, epsilon=e),
}


# Thousands of boxes of words for each; the two ends of epsilon are tested for basic RAPPOR, which has fewer.
@pytest.mark.slow_cases("rappor_two_hashes-Share")
@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        pytest.param(name, e, marks=pytest.mark.slow if name[0] == "r" and e in ENDS else (), id=f"{name}-{e}")
        for name in LAYERED
        for e in EPSILONS
    ],
)
def test_both_layers_of_rappor(name: str, epsilon: Any):
    """One report is bounded by `one_report_odds`; Bloom filters of two values may share bits, then it is less."""
    m: Any = LAYERED[name](epsilon)
    values = list(range(m.size)) if isinstance(m, BasicRAPPOR) else [0, 1, 5, (1 << 64) - 1]
    laws = laws_of(m, values)
    assert all(sum(found.values()) == 1 for found in laws)
    assert largest_ratio(laws) <= m.one_report_odds() <= m.realised_odds() <= Fraction(m.odds, WORD)
    for _, realised, declared in m.guarantees():
        assert realised <= declared
    check_log_prob(m, laws, values)
    check_complete(m, laws)
    if isinstance(m, BasicRAPPOR):
        assert largest_ratio(laws) == m.one_report_odds()
        check_unbiased(m, laws)


@pytest.mark.usefixtures("proven_lanes")
def test_permanent_bits_of_rappor_bound_any_number_of_reports():
    """Three reports from the same permanent bits stay below `realised_odds` and above those of one report."""
    m = BasicRAPPOR(size=2, epsilon="1", zero="0.25", one="0.75")
    joint: list[Law] = []
    for v in range(2):
        permanent = law(lambda c, v=v: draw_permanent(m, v, c))
        found: Law = {}
        for bits, chance in permanent.items():
            single = law(lambda c, bits=bits: lane_by_lane(2, bits, bit_planes(*m.instant), c))
            for reports in product(single, repeat=3):
                share = chance * prod(single[y] for y in reports)
                found[reports] = found.get(reports, Fraction(0)) + share
        joint.append(found)
    assert m.one_report_odds() < largest_ratio(joint) < m.realised_odds()


def draw_permanent(m: BasicRAPPOR, value: int, coins: Coins) -> int:
    return int.from_bytes(lane_by_lane(m.size, 1 << value, bit_planes(*m.thresholds), coins), "little")


# Composition and memoisation.
