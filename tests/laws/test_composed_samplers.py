"""The laws of mechanisms that are made of others."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any, cast

import numpy as np
import pytest
from tests.laws.intervals import (
    ID,
    Law,
    below,
    check_complete,
    check_law,
    check_log_prob,
    largest_ratio,
    law,
    laws_of,
    mean,
)
from tests.laws.test_lane_samplers import LANES, LAYERED
from tests.laws.test_samplers import FIXED

from tacit.catalog import CATALOG
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.core.mechanism import Mechanism
from tacit.device.families.grid import Grid
from tacit.device.families.levels import Tree
from tacit.device.families.ticks import Ticks
from tacit.device.kinds.memo import Memory
from tacit.device.numbers.budget import Share
from tacit.device.numbers.coins import Coins, ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.layered import LayeredMemo
from tacit.numeric.mean import OneBit
from tacit.numeric.memo import Memoized
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.oracles.sets import Padded, SetSize
from tacit.oracles.unary import OUE, RUE, SUE
from tacit.simulate.coins import SimulationCoins


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", ["0.001", "1", "32"])
def test_one_of_has_the_law_it_states(epsilon: str):
    family = Questions(
        mechanisms=(GRR(size=3, epsilon=epsilon), OUE(size=2, epsilon="0.5" if epsilon != "0.001" else epsilon)),
        weights=(2, 1),
    )
    m = OneOf(family=family)
    values = list(product(range(3), range(2)))
    laws = laws_of(m, values)
    check_law(m, laws, values)
    check_complete(m, laws)
    for found in laws:
        drawn = [mean(found, lambda y, i=i: y[0] == i) for i in range(2)]
        assert [float(chance) for chance in drawn] == [m.probability(i) for i in range(2)]
        assert sum(drawn) == 1


def plain_tree(epsilon: Any) -> Tree:
    """Ten leaves below 4 and 2 nodes: ragged at both levels, with kinds of their own."""
    return Tree(
        size=10, fanout=3, heights=(2, 1), mechanisms=(GRR(size=2, epsilon=epsilon), HRR(size=4, epsilon=epsilon))
    )


def signed_tree(epsilon: Any) -> Tree:
    """All Haar levels over five leaves."""
    levels = tuple(HRRSigned(size=size, epsilon=epsilon) for size in (2, 3, 5))
    return Tree(size=5, fanout=2, heights=(2, 1, 0), mechanisms=levels, weights=(3, 1, 2))


def pair_grid(epsilon: Any) -> Grid:
    """Two ragged attributes, one of them summed over for the first member."""
    members = (GRR(size=2, epsilon=epsilon), HRR(size=6, epsilon=epsilon))
    return Grid(sizes=(3, 4), fanouts=(2, 3), heights=((2, 1), (0, 1)), mechanisms=members, weights=(2, 3))


@pytest.mark.parametrize("epsilon", ["0.001", "1", "32", Share("1", "1/3")], ids=ID)
@pytest.mark.parametrize("make", [plain_tree, signed_tree, pair_grid])
def test_one_level_of_a_tree_has_the_law_it_states(make: Callable[[Any], Tree | Grid], epsilon: Any):
    tree = make(epsilon)
    m, values = OneOf(family=tree), list(range(tree.size))
    laws = laws_of(m, values)
    check_law(m, laws, values)
    check_complete(m, laws)


@pytest.mark.parametrize("epsilon", ["0.001", "1", "32"])
@pytest.mark.parametrize("size", [1, 3])
def test_one_thing_to_tick_has_the_law_it_states(size: int, epsilon: str):
    """All sets, the empty one included; what is not drawn does not matter."""
    m = OneOf(family=Ticks(size=size, mechanisms=(GRR(size=2, epsilon=epsilon),)))
    values = list(m.family.values())
    assert sorted(map(len, values))[0] == 0 and len(values) == 2**size
    laws = laws_of(m, values)
    check_law(m, laws, values)
    check_complete(m, laws)


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", ["0.003", "1", "32"])
def test_all_of_has_the_law_it_states(epsilon: str):
    thirds = [Share(epsilon, "1/3")] * 3
    m = AllOf(
        epsilon=epsilon,
        members=(GRR(size=2, epsilon=thirds[0]), HRR(size=2, epsilon=thirds[1]), OUE(size=2, epsilon=thirds[2])),
    )
    values = list(product(range(2), repeat=3))
    laws = laws_of(m, values)
    assert largest_ratio(laws) == m.realised_odds()
    assert m.realised_odds() <= prod(Fraction(member.odds, WORD) for member in m.members)
    assert m.holds()
    assert all(sum(found.values()) == 1 for found in laws)
    check_log_prob(m, laws, values)
    marginal: Law = {}
    for report, chance in laws[-1].items():
        marginal[report[0]] = marginal.get(report[0], Fraction(0)) + chance
    assert marginal == {y[0]: c for y, c in laws_of(cast("Mechanism", m.members[0]), [1])[0].items()}


MEMOISED: dict[str, Callable[[Any], Any]] = {
    "grr": lambda e: GRR(size=3, epsilon=e),
    "sue": lambda e: SUE(size=2, epsilon=e),
    "rue": lambda e: RUE(size=2, epsilon=e),
    "onebit": lambda e: OneBit(top=4, epsilon=e),
    "dbitflip": lambda e: DBitFlip(size=3, sampled=2, epsilon=e),
}


@pytest.mark.usefixtures("proven_lanes")
@pytest.mark.parametrize("epsilon", ["0.001", "1", "32"])
@pytest.mark.parametrize("name", MEMOISED)
def test_the_first_memoised_report_has_the_inner_law(name: str, epsilon: str, monkeypatch: pytest.MonkeyPatch):
    """With HMAC taken as a random function, streams of different keys are independent words."""
    m = Memoized(inner=MEMOISED[name](epsilon), most_values=2)
    keys: list[bytes] = []

    def first_report(value: int, coins: Coins) -> bytes:
        asked: list[bytes] = []
        monkeypatch.setattr(Memory, "coins", lambda _, parameters, key: asked.append(parameters + key) or coins)
        report = m.report(value, Memory(bytes(32), ""))
        assert len(set(asked)) == len(asked)
        keys.extend(asked)
        return report

    laws = [law(lambda c, v=v: first_report(v, c)) for v in below(m)]
    check_law(m, laws, below(m), exact=name != "onebit")
    check_complete(m, laws)
    assert all(key.startswith(m.parameters) for key in keys)
    if name == "onebit":
        assert largest_ratio(laws) == m.realised_odds()


def test_a_memoised_report_is_the_inner_one_with_coins_of_its_own_secret():
    m = Memoized(inner=GRR(size=3, epsilon="1"), most_values=2)
    secret = ReplayCoins(b"memo").words(4)
    coins = Memory(secret, "").coins(m.parameters, b"2")
    assert m.privatize_one(2, ReplayCoins(b"memo")) == m.inner.privatize_one(2, coins)


TWO_LAYERS: dict[str, Callable[[str], Any]] = {
    "two_values": lambda e: GRR(size=2, epsilon=e),
    "three_values": lambda e: GRR(size=3, epsilon=e),
    "rows": lambda e: HRR(size=3, skip_zero=False, epsilon=e),
    "one_row": lambda e: HRR(size=2, epsilon=e),
    "numbers": lambda e: OneBit(top=2, epsilon=e),
}
"""Uniform draws among powers of two alone, so that laws are exact in every word."""


@pytest.mark.parametrize(("epsilon", "first"), [("2", "1"), ("32", "8"), ("0.002", "0.001")])
@pytest.mark.parametrize("name", TWO_LAYERS)
def test_the_first_layered_report_has_the_law_of_both_layers(
    name: str, epsilon: str, first: str, monkeypatch: pytest.MonkeyPatch
):
    """What is drawn once, one word of the key's own stream, one of the fresh layer: exactly the stated law."""
    m = LayeredMemo(inner=TWO_LAYERS[name](epsilon), first=first, most_values=2)

    def first_report(value: int, coins: Coins) -> bytes:
        monkeypatch.setattr(Memory, "coins", lambda *_: coins)
        return m.report(value, Memory(bytes(32), ""), coins)

    laws = [law(lambda c, v=v: first_report(v, c)) for v in below(m)]
    assert laws == [stated_law(m, value) for value in below(m)]
    assert largest_ratio(laws) == m.one_report_odds() <= Fraction(m.first_budget.odds, WORD)
    # Rounding up one word loses next to nothing of what a report may say.
    assert m.one_report_odds() / Fraction(m.first_budget.odds, WORD) > 1 - Fraction(1, 10**14)


def stated_law(m: LayeredMemo, value: int) -> Law:
    """The law of a report by the exact probabilities that the collector inverts."""
    sent: Any = m.sends
    if isinstance(sent, OneBit):
        one = Fraction(sent.low + value * sent.slope) / WORD
        return {b"\0": 1 - one, b"\1": one}
    if isinstance(sent, HRR):
        rows, low = range(sent.first, sent.order), Fraction(sent.low) / WORD
        return {
            bytes([2 * row + sign]): (1 - low if sign == (row & value).bit_count() % 2 else low) / len(rows)
            for row in rows
            for sign in range(2)
        }
    return {bytes([y]): sent.p if y == value else sent.q for y in range(sent.size)}


@pytest.mark.parametrize("top", [1, 7, 1000, (1 << 32) - 1])
def test_one_report_on_a_number_keeps_first_whatever_the_grid(top: int):
    """The grid rounds its ends unevenly, which the flip makes up for: the bound is exact and nearly reached."""
    for epsilon, first in (("1", "0.5"), ("2", "1"), ("16", "8")):
        m = LayeredMemo(inner=OneBit(top=top, epsilon=epsilon), first=first, most_values=2)
        bound = Fraction(m.first_budget.odds, WORD)
        assert 1 - Fraction(1, 10**14) < m.one_report_odds() / bound <= 1


def test_a_layered_tally_has_the_law_of_real_reports():
    """Shares and means of simulated rounds hit the truth within five standard errors (false alarm 1e-6 each)."""
    rng = np.random.default_rng(4)
    for inner, counts in (
        (GRR(size=4, epsilon="2"), [4000, 3000, 2000, 1000]),
        (HRR(size=4, epsilon="2"), [4000, 3000, 2000, 1000]),
        (OneBit(top=3, epsilon="2"), [4000, 3000, 2000, 1000]),
    ):
        m = LayeredMemo(inner=inner, first="1", most_values=2)
        truth = np.array(counts) / 10_000 if not isinstance(inner, OneBit) else np.array([1.0])
        simulated = m.estimate(m.simulate_tally(counts, rng))
        drawn = m.estimate(m.tally(m.privatize(np.repeat([0, 1, 2, 3], 400), SimulationCoins(3))))
        assert np.all(np.abs(simulated.value - truth) < 5 * simulated.standard_error)
        even = np.full(4, 0.25) if not isinstance(inner, OneBit) else np.array([1.5])
        assert np.all(np.abs(drawn.value - even) < 5 * drawn.standard_error)
        assert m.estimate(m.tally(m.privatize([], SimulationCoins(3)))).n == 0


SETS: dict[str, Callable[[str], Any]] = {
    "padded": lambda e: Padded.amplified(epsilon=e, size=3, length=2),
    "padded_uneven": lambda e: Padded.amplified(epsilon=e, size=2, length=3),
    "padded_itemsets": lambda e: Padded.amplified(epsilon=e, size=3, candidates=((0, 1), (2,)), length=1),
    "padded_plain": lambda e: Padded(epsilon=e, size=3, length=2, inner=GRR(size=5, epsilon=e)),
    "set_size": lambda e: SetSize(epsilon=e, size=3, most=2, inner=GRR(size=3, epsilon=e)),
}


@pytest.mark.parametrize("epsilon", ["0.001", "1", "32"])
@pytest.mark.parametrize("name", SETS)
def test_reports_on_sets_have_the_law_they_state(name: str, epsilon: str):
    """All sets, the empty one and those beyond the length included."""
    m = SETS[name](epsilon)
    values = [one for length in range(m.size + 1) for one in combinations(range(m.size), length)]
    laws = laws_of(m, values)
    check_law(m, laws, values)
    check_complete(m, laws)


def test_every_kind_of_the_catalogue_is_proved_here():
    made = [make("1") for part in (FIXED, LANES, LAYERED) for make in part.values()]
    apart = {"blh", "olh", "one_of", "all_of", "memo", "layered", "padded", "set_size", "tree_steps"}
    proved = {m.kind for m in made} | apart
    assert proved == {kind.kind for kind in CATALOG}
