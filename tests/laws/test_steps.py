"""Losses of whole streams of `tree_steps`, by running the device over every word of its coins (AL-4)."""

from fractions import Fraction
from itertools import product
from math import log
from typing import Any

import pytest
from tests.laws.intervals import Law, check_complete, check_law, law

from tacit.device.domains.domain import Booleans
from tacit.device.kinds.memo import KEY_BYTES
from tacit.device.kinds.steps import StepMemory, pattern_count, plus_words, ranked_pattern
from tacit.device.numbers.coins import Coins, ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue
from tacit.numeric.steps import TreeSteps
from tacit.wire.document import Collection, Question


def stream_law(m: TreeSteps, states: "tuple[int, ...]", told: "list[tuple[int, ...]] | None" = None) -> Law:
    """The law of all bits that a device of level 0 sends; `told` are the histories it is given, else the true ones."""

    def reports(coins: Coins) -> bytes:
        level, pattern = m.draw_once(coins)
        assert level == 0
        histories = told or [states[: j + 1] for j in range(len(states))]
        return bytes(m._bit(history, m.patterned(0), pattern, coins) for history in histories)

    return law(reports)


def worst(laws: "list[Law]") -> Fraction:
    return max(max(f[y] for f in laws) / min(f[y] for f in laws) for y in laws[0])


def tree(nodes: int, changes: int, epsilon: str, *, one_way: bool = False) -> TreeSteps:
    return TreeSteps(fanout=nodes + 1, levels=1, changes=changes, epsilon=epsilon, one_way=one_way)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize(("nodes", "changes"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3)])
def test_all_reports_of_a_device_keep_epsilon_for_life(nodes: int, changes: int, epsilon: str) -> None:
    """Every sequence of states, those with more changes than are covered among them: they are clipped."""
    m = tree(nodes, changes, epsilon)
    laws = [stream_law(m, states) for states in product((0, 1), repeat=nodes)]
    assert all(sum(found.values()) == 1 for found in laws)
    found = worst(laws)
    assert found <= m.realised_odds() <= Fraction(m.odds, WORD)
    if nodes > changes:
        assert log(found) == pytest.approx(float(epsilon), abs=1e-12)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_all_reports_on_a_state_that_only_switches_on_keep_epsilon_for_life(nodes: int, epsilon: str) -> None:
    """States that switch off again are taken for on, so that all of them may be tried."""
    m = tree(nodes, 1, epsilon, one_way=True)
    found = worst([stream_law(m, states) for states in product((0, 1), repeat=nodes)])
    assert found == m.realised_odds() <= Fraction(m.odds, WORD)


def test_a_device_that_does_not_clip_would_be_noticed() -> None:
    m = tree(2, 1, "1")
    laws = [stream_law(m, (0, 0)), stream_law(m, (1, 0), told=[(1,), (1,)])]
    # The step is told twice with the same sign, so that two signs that differ never come.
    assert set(laws[1]) < set(laws[0])


def test_a_host_that_tells_another_past_is_refused_and_would_break_epsilon() -> None:
    m = tree(3, 2, "1")
    memory = StepMemory(bytes(KEY_BYTES), "c")
    m.report((0, 1), memory, ReplayCoins(b"a"))
    kept = memory.nodes, memory.tag
    for states in ((0, 0, 1), (0, 1), (0,), (1, 1, 1)):
        with pytest.raises(InvalidValue, match="do not go on"):
            m.report(states, memory, ReplayCoins(b"b"))
    assert (memory.nodes, memory.tag) == kept and b"\x00\x01" not in memory.tag
    m.report((0, 1, 0), memory, ReplayCoins(b"b"))
    # Without the hash: switched on in node 2, and later in node 3 instead.
    moved = stream_law(m, (0, 1, 1), told=[(0,), (0, 1), (0, 0, 1)])
    assert set(moved) < set(stream_law(m, (0, 0, 0)))


@pytest.mark.parametrize("epsilon", ["0.001", "1", "32"])
@pytest.mark.parametrize("fields", [{"changes": 1}, {"changes": 2}, {"one_way": True}], ids=str)
def test_first_reports_have_the_law_they_state(fields: "dict[str, Any]", epsilon: str, monkeypatch) -> None:
    m = TreeSteps(fanout=3, levels=2, weights=(2, 1), epsilon=epsilon, **fields)

    def first(state: int, coins: Coins) -> bytes:
        monkeypatch.setattr(StepMemory, "once", lambda *_: coins)
        return m.report((state,), StepMemory(bytes(KEY_BYTES), ""), coins)

    laws = [law(lambda coins, state=state: first(state, coins)) for state in (0, 1)]
    check_law(m, laws, [0, 1], exact=False)
    check_complete(m, laws)


@pytest.mark.parametrize("changes", range(1, 9))
def test_patterns_are_ranked_in_order_and_favoured_as_stated(changes: int) -> None:
    odds = tree(1, 1, "1").odds
    for least in range(1, changes + 1):
        favoured = [x for x in range(1 << changes) if x.bit_count() >= least]
        assert [ranked_pattern(rank, changes, least) for rank in range(len(favoured))] == favoured
        assert pattern_count(changes, least) == len(favoured)
        words, others = plus_words(odds, changes, least), (1 << changes) - len(favoured)
        assert Fraction(words * others, (WORD - words) * len(favoured)) <= Fraction(odds, WORD)


def test_a_secret_is_long_and_a_level_has_so_many_nodes() -> None:
    with pytest.raises(InvalidSpec, match="32 random"):
        StepMemory(b"short", "")
    m = tree(2, 1, "1")
    assert [m.is_due(0, t) for t in (-1, 0, 1, 2)] == [False, True, True, False]
    with pytest.raises(InvalidValue, match="at most 2 nodes"):
        m.report((0, 0, 0), StepMemory(bytes(KEY_BYTES), ""), ReplayCoins(b""))


def test_documents_do_not_carry_it_and_say_what_to_do() -> None:
    question = Question("q", {"en": "?"}, Booleans("q"), "histogram")
    asked = Collection({"en": "t"}, {"en": "a"}, (question,), "single", tree(2, 1, "1"))
    with pytest.raises(InvalidSpec, match="no document carries yet"):
        asked.check()
