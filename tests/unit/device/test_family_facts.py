"""What families say of themselves: their values, levels, tables and words, and how a report names its member."""

from itertools import combinations
from math import prod
from typing import Any

import pytest

from tacit.core.asked import asked_levels, asked_tree
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.device.catalog import FAMILIES, device_of
from tacit.device.families.coefficients import Coefficients
from tacit.device.families.family import Family
from tacit.device.families.grid import Grid
from tacit.device.families.levels import Tree
from tacit.device.families.ticks import Ticks
from tacit.device.families.views import Views
from tacit.device.numbers.budget import Share
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.oracles.blocks import CBR
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE


def grr(size: int) -> GRR:
    return GRR(size=size, epsilon="1")


EXAMPLES: dict[str, Family] = {
    "questions": Questions(mechanisms=(grr(2), OUE(size=3, epsilon="1"))),
    "tree": Tree(size=10, fanout=3, heights=(2, 1, 0), mechanisms=(grr(2), grr(4), grr(10))),
    "grid": Grid(sizes=(3, 4), fanouts=(2, 3), heights=((2, 1), (0, 1)), mechanisms=(grr(2), grr(6))),
    "views": Views(sizes=(2, 3, 5), views=((0, 1), (2,)), mechanisms=(grr(5), grr(6))),
    "ticks": Ticks(size=3, mechanisms=(grr(2),)),
    "coefficients": Coefficients(sizes=(2, 3, 4), k=2, mechanisms=(grr(2),)),
}


def test_every_family_of_the_catalogue_is_here():
    assert set(EXAMPLES) == {family.kind for family in FAMILIES}
    assert all(issubclass(family, Family) for family in FAMILIES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_values_are_all_that_a_device_accepts(name: str):
    family, m = EXAMPLES[name], OneOf(family=EXAMPLES[name])
    values = list(family.values())
    assert len(values) == len(set(values)) == prod(family.answer_sizes())
    for value in values:
        m.check_value(value)
    if family.holds_sets:
        assert family.domain_size == len(family.answer_sizes())
        with pytest.raises(InvalidValue):
            m.check_value((family.domain_size,))
    elif family.domain_size:
        assert family.domain_size == len(values)
        assert values == list(range(family.domain_size))
        with pytest.raises(InvalidValue):
            m.check_value(family.domain_size)
    m.check_value(family.first_value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_levels_are_what_members_report(name: str):
    """A member at some heights tells two values apart exactly if a node of one of its trees does."""
    family = EXAMPLES[name]
    levels = family.levels()
    if levels is None:
        assert name in ("questions", "coefficients", "ticks")
        return
    assert levels.sizes == family.answer_sizes()
    answers = [(a, value) for a, value in zip(_all_answers(levels.sizes), family.values(), strict=True)]
    for i, heights in enumerate(levels.heights):
        view, widths = family.view(i), [f**t for f, t in zip(levels.fanouts, heights, strict=True)]
        nodes = [tuple(x // w for x, w in zip(a, widths, strict=True)) for a, _ in answers]
        told = [int(view(value)) for _, value in answers]
        assert len(set(zip(nodes, told, strict=True))) == len(set(nodes)) == len(set(told))


def _all_answers(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not sizes:
        return [()]
    return [(first, *rest) for first in range(sizes[0]) for rest in _all_answers(sizes[1:])]


def test_tables_are_the_attributes_that_members_look_at():
    tables = {name: set(family.tables()) for name, family in EXAMPLES.items()}
    assert tables == {
        "questions": {(0,), (1,)},
        "tree": {(0,)},
        "grid": {(1,), (0, 1)},
        "views": {(0, 1), (2,)},
        "ticks": {(0,), (1,), (2,)},
        "coefficients": set(combinations(range(3), 2)),
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_words_say_how_many_members_there_are(name: str):
    family = EXAMPLES[name]
    for words in (family.describe(), family.describe(spelled=True), family.describe(several=True)):
        assert str(len(family)) in words
        assert "epsilon" in words


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_report_is_taken_apart_and_put_together_again(name: str):
    m = OneOf(family=EXAMPLES[name])
    device, seen = device_of(m.spec()), set[int]()
    for turn in range(40):
        report = device.privatize_one(m.first_value, ReplayCoins(bytes([turn])))
        member, payload = device.split(report)
        seen.add(member)
        assert member == m.decode(report)["member"][0]
        assert len(payload) == m.payload_widths[member]
        assert device.join(member, payload) == report
        assert m.join_batch(member, payload).tobytes() == report
    assert len(seen) > 1
    reports = m.decode(b"".join(m.privatize_one(m.first_value, ReplayCoins(bytes([turn]))) for turn in range(40)))
    members, payloads = m.split_batch(reports)
    assert m.join_batch(members, payloads.tobytes()).tobytes() == reports.tobytes()


def test_mechanisms_that_draw_nothing_have_one_member():
    cbr: Any = CBR(size=5, family="singer", order=2, dimension=3, epsilon="1")
    assert cbr.drawn_from is None, "its family is one of designs"
    assert cbr.split(b"\1\2\3\4\5") == (0, b"\1\2\3\4\5")
    half = Share("1", "1/2")
    both = AllOf(epsilon="1", members=(GRR(size=2, epsilon=half), GRR(size=3, epsilon=half)))
    assert (both.drawn_from, both.member_count, both.payload_widths) == (None, 2, (2,))
    assert both.per_question == both.members
    assert grr(3).per_question == (grr(3),)


def test_levels_are_asked_by_trees_and_by_plain_oracles_alike():
    flat, tree = asked_tree(grr(10)), asked_tree(OneOf(family=EXAMPLES["tree"]))
    assert flat is not None
    assert tree is not None
    assert (flat.sizes, flat.fanouts, flat.heights, flat.shares) == ((10,), (10,), ((0,),), (1.0,))
    assert (tree.sizes, tree.fanouts, tree.heights) == ((10,), (3,), ((2,), (1,), (0,)))
    assert tree.members == [grr(2), grr(4), grr(10)]
    assert asked_tree(OneOf(family=EXAMPLES["grid"])) is None
    assert asked_levels(OneOf(family=EXAMPLES["coefficients"])) is None


def test_what_only_looks_like_a_family_is_refused():
    class Lookalike:
        kind, weights = "lookalike", (1,)

        def __len__(self) -> int:
            return 1

        def mechanism(self, i: int) -> GRR:
            return grr(2 + i)

    stranger: Any = Lookalike()
    with pytest.raises(InvalidSpec, match="must be a family of questions"):
        OneOf(epsilon="1", family=stranger, payload_bytes=1)
